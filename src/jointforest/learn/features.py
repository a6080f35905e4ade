"""Evidence of features alone: the first columns of a joint, whose target comes after them and is not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..table.build_evidence import build
from ..table.evidence import Evidence
from ..table.frames import encode
from ..table.schema import Schema
from ..table.unseen_levels import warn_unseen


def feature_schema(schema: Schema, d: int) -> Schema:
    """The first d columns."""
    return replace(schema, columns=schema.columns[:d])


def read_features(schema: Schema, d: int, X: Any) -> Evidence:
    """Evidence of the rows of a frame or array X of the first d columns; warns of levels never seen at learning."""
    features = feature_schema(schema, d)
    cells, unseen = encode(features, X)
    warn_unseen(features, X, unseen)
    return know_features(schema, cells, unseen)


def read_others(schema: Schema, target: int, X: Any, extra: str = "refuse") -> Evidence:
    """`read_features` of all columns but one, of which nothing is known, whether X has it or not.

    Columns that the joint does not have are refused, or with ``extra="ignore"`` left aside.
    """
    cells, unseen = read_cells(schema, target, X, extra)
    return build(schema, np.insert(cells, target, np.nan, axis=1), np.insert(unseen, target, False, axis=1))


def read_cells(schema: Schema, target: int, X: Any, extra: str = "refuse") -> tuple[np.ndarray, np.ndarray]:
    """Numbers and codes of all columns but one (n, d - 1), and which levels were never seen, as `read_others` reads."""
    others = schema.without(target)
    cells, unseen = encode(others, X, None if extra == "ignore" else (schema.names[target],))
    warn_unseen(others, X, unseen)
    return cells, unseen


def know_features(schema: Schema, cells: np.ndarray, unseen: np.ndarray | None = None) -> Evidence:
    """Evidence of encoded features (n, d); ``unseen`` (bool (n, d)) are cells with a level never seen at learning."""
    others = ((0, 0), (0, len(schema.columns) - cells.shape[1]))
    return build(
        schema, np.pad(cells, others, constant_values=np.nan), None if unseen is None else np.pad(unseen, others)
    )
