"""The marginal distribution of some columns, as a forest of its own. See docs/how-to/reshape-a-joint.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...data.schema import Columns, Schema, kernel_columns
from ...runtime.arrays import ranges
from .leaves.derived import make_leaves
from .leaves.levels import layout, take_levels, words_of
from .leaves.pieces import taken_pieces
from .leaves.table import ParameterTables
from .structure import Forest, Trees, keep_leaves, with_weights
from .structure_kernels import MIXED


class Restricted(NamedTuple):
    """Trees of some of the leaves.

    Attributes
    ----------
    trees : Trees
    log_weight : float64 array (l,)
        Sums to 1 over all leaves.
    tree, old_tree : int64 arrays (l,), (t,)
        Tree of each leaf, and which tree each one was.
    leaf : int64 array (l,)
        Which leaf each one was.
    """

    trees: Trees
    log_weight: np.ndarray
    tree: np.ndarray
    old_tree: np.ndarray
    leaf: np.ndarray


def restricted_trees(columns: Columns, trees: Trees, log_weight: np.ndarray) -> Restricted:
    """The trees of the leaves with weight, and the sets of levels of their splits alone."""
    kept, leaf, old_tree = keep_leaves(trees, log_weight > -np.inf)
    of_leaf = log_weight[leaf] - np.logaddexp.reduce(log_weight[leaf])
    by_levels = kept.levels_at >= 0
    n_words = np.zeros(len(by_levels), np.int64)
    n_words[by_levels] = words_of(np.diff(columns.level_start)[columns.slot[kept.feature[by_levels]]])
    kept = kept._replace(
        levels_at=np.where(by_levels, np.cumsum(n_words) - n_words, -1).astype(np.int32),
        left_levels=trees.left_levels[ranges(kept.levels_at[by_levels].astype(np.int64), n_words[by_levels])],
    )
    tree = (np.searchsorted(kept.root, np.arange(len(by_levels)), side="right") - 1)[kept.leaf >= 0]
    top = np.full(len(old_tree), -np.inf)
    np.maximum.at(top, tree, of_leaf)
    return Restricted(with_weights(kept, np.exp(of_leaf - top[tree])), of_leaf, tree, old_tree, leaf)


def marginalize(forest: Forest, columns: Sequence[int]) -> Forest:
    """The marginal of a forest over some of its columns, exact; it answers as the forest does with the others missing.

    Where the column of a split goes, the node mixes its children. So tree t's density is the marginal of what it was.
    """
    d = len(forest.schema.columns)
    stays = np.zeros(d, bool)
    stays[list(columns)] = True
    if not stays.any():
        raise ValueError("keep: name at least one column")
    kept = np.flatnonzero(stays)
    leaves = forest.leaves
    schema = Schema(tuple(forest.schema.columns[j] for j in kept), forest.schema.frame, n_rows=forest.schema.n_rows)
    numeric = forest.columns.slot[kept[forest.columns.is_categorical[kept] == 0]]
    categorical = forest.columns.slot[kept[forest.columns.is_categorical[kept] == 1]]
    atoms = ranges(forest.columns.atom_start[numeric], np.diff(forest.columns.atom_start)[numeric])
    place = layout(forest.columns).place[categorical]
    levels = ranges(place[place >= 0], np.diff(forest.columns.level_start)[categorical][place >= 0])
    columns_kept = kernel_columns(schema)
    family, a, b = (field[:, numeric].copy() for field in (leaves.family, leaves.a, leaves.b))
    pieces = taken_pieces(leaves.pieces, family, a, b)
    return Forest(
        schema=schema,
        columns=columns_kept,
        trees=_without_splits(forest.trees, stays),
        leaves=make_leaves(
            columns_kept,
            ParameterTables(
                leaves.tree,
                leaves.log_weight,
                family,
                a,
                b,
                leaves.lo[:, numeric],
                leaves.hi[:, numeric],
                leaves.atom_mass[:, atoms],
                leaves.level_mass[:, levels],
                leaves.missing_rate[:, kept],
                take_levels(
                    layout(columns_kept), leaves.wide, np.arange(len(leaves.tree)), (-1 - place[place < 0]).tolist()
                ),
                pieces,
            ),
        ),
        has_background=forest.has_background,
    )


def _without_splits(trees: Trees, stays: np.ndarray) -> Trees:
    """The trees without the splits of columns that do not stay (bool (d,)); columns are numbered anew."""
    is_split, column = trees.feature >= 0, np.maximum(trees.feature, 0)
    goes = is_split & ~stays[column]
    number = np.where(is_split, (np.cumsum(stays) - 1)[column], trees.feature)
    return trees._replace(
        feature=np.where(goes, MIXED, number).astype(np.int32),
        threshold=np.where(goes, 0.0, trees.threshold),
        levels_at=np.where(goes, -1, trees.levels_at).astype(np.int32),
    )
