"""A forest as named arrays, and back: what a model file holds of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data.schema import Schema, kernel_columns
from . import check
from .leaves.derived import make_leaves
from .leaves.levels import WideLevels, layout
from .leaves.table import ParameterTables, no_pieces
from .structure import Forest, Trees

NAMES = frozenset(
    {f"trees.{name}" for name in check.TREE_FIELDS}
    | {f"leaves.{name}" for name in check.LEAF_FIELDS}
    | {f"leaves.wide.{name}" for name in check.WIDE_FIELDS}
    | {f"leaves.pieces.{name}" for name in check.PIECE_FIELDS}
)
"""Names of a forest's arrays; what is derived from others is computed again."""


def forest_to_arrays(forest: Forest) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The metadata of a forest, and its arrays; a ValueError if the forest is broken."""
    check.check_forest(forest.schema, forest.columns, forest.trees, forest.leaves, forest.has_background)
    arrays = {f"trees.{name}": getattr(forest.trees, name) for name in check.TREE_FIELDS}
    arrays |= {f"leaves.{name}": getattr(forest.leaves, name) for name in check.LEAF_FIELDS}
    arrays |= {f"leaves.wide.{name}": getattr(forest.leaves.wide, name) for name in check.WIDE_FIELDS}
    arrays |= {f"leaves.pieces.{name}": getattr(forest.leaves.pieces, name) for name in check.PIECE_FIELDS}
    return {"kind": "forest", "has_background": bool(forest.has_background)}, arrays


def forest_from_arrays(schema: Schema, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Forest:
    """The forest, every field checked; a ValueError if one is not as it must be."""
    if set(about) != {"kind", "has_background"} or type(about["has_background"]) is not bool:
        raise ValueError("a forest's metadata are has_background, true or false")
    columns = kernel_columns(schema)
    trees = Trees(**{name: arrays[f"trees.{name}"] for name in check.TREE_FIELDS})
    where = layout(columns)
    wide = {name: arrays[f"leaves.wide.{name}"] for name in check.WIDE_FIELDS}
    fields: dict[str, Any] = {name: arrays[f"leaves.{name}"] for name in check.LEAF_FIELDS}
    fields["wide"] = WideLevels(place=where.place, start=where.start, **wide)
    fields["pieces"] = no_pieces()._replace(**{name: arrays[f"leaves.pieces.{name}"] for name in check.PIECE_FIELDS})
    # nothing may be computed from arrays before they are checked
    check.check_columns(schema, columns)
    check.check_trees(columns, trees, about["has_background"])
    check.check_leaves(columns, trees, fields)
    leaves = make_leaves(columns, ParameterTables(**fields))
    check.check_derived(columns, leaves)
    return Forest(schema, columns, trees, leaves, about["has_background"])
