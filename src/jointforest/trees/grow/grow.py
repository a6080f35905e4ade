"""Grow, route through and prune trees on ranks, and join them into a node table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...table.columns import Columns
from ..nodes import Trees
from ..prune_kernels import pruned, rows_below
from ..ranks import Ranks
from .criterion_kernels import GINI, VARIANCE
from .tree_kernels import cut_ranks, grow_tree, route, shares_of


class RankTree(NamedTuple):
    """One tree on ranks: see `_grow.grow_tree` for its arrays.

    Rows of a rank up to ``below_rank`` go left, whether the tree was grown on them or not: the threshold lies between
    the column's values of that rank and the next.
    """

    feature: np.ndarray
    below_rank: np.ndarray
    levels_at: np.ndarray
    left: np.ndarray
    right: np.ndarray
    level_words: np.ndarray
    share_left: np.ndarray


def grow(
    ranks: Ranks,
    is_categorical: np.ndarray,
    is_ordered: np.ndarray,
    y: np.ndarray,
    n_classes: int,
    weight: np.ndarray,
    *,
    criterion: int = GINI,
    max_features: int,
    keep_looking: bool = True,
    min_samples_split: float = 2.0,
    min_samples_leaf: float = 0.0,
    min_class: np.ndarray | None = None,
    max_depth: int | None = None,
    max_leaf_nodes: int | None = None,
    min_gain: float = 1e-9,
    seed: int,
    number: int,
) -> RankTree:
    """Grow tree ``number`` of the forest with this ``seed`` on the rows of positive weight; see `_grow.grow_tree`.

    Parameters
    ----------
    y : int array (n,)
        Class of each row, 0..n_classes-1; for the criterion VARIANCE any numbers (float64), and ``n_classes`` is
        ignored.
    min_samples_split, min_samples_leaf : float
        Smallest weight of a node that is split, and of a leaf: a row drawn twice counts as two.
    min_class : float array (n_classes,), optional
        Smallest weight of each class in a leaf.
    """
    target = np.asarray(y, dtype=np.float64)
    if criterion == VARIANCE:
        target = target - target.mean()
        target /= target.std() or 1.0
    feature, low, high, levels_at, left, right, level_words, share_left = grow_tree(
        ranks.codes,
        ranks.n_codes,
        is_categorical,
        is_ordered,
        target,
        2 if criterion == VARIANCE else n_classes,
        weight,
        np.flatnonzero(weight > 0).astype(np.int32),
        criterion,
        max_features,
        keep_looking,
        float(min_samples_split),
        float(min_samples_leaf),
        np.zeros(0) if min_class is None else np.asarray(min_class, dtype=np.float64),
        -1 if max_depth is None else max_depth,
        -1 if max_leaf_nodes is None else max_leaf_nodes,
        min_gain,
        seed,
        number,
    )
    below_rank = cut_ranks(feature, low, high, ranks.value_start, ranks.values)
    return RankTree(feature, below_rank, levels_at, left, right, level_words, share_left)


def find_leaves(tree: RankTree, codes: np.ndarray, seed: int, number: int) -> np.ndarray:
    """Leaf node (int32, n) of each row of ``codes`` (d, n); rows missing a split value take a side by a seeded draw."""
    out = np.empty(codes.shape[1], dtype=np.int32)
    route(
        codes, tree.feature, tree.below_rank, tree.levels_at, tree.level_words, tree.left, tree.right, tree.share_left,
        seed, number, out,
    )  # fmt: skip
    return out


def with_shares(tree: RankTree, codes: np.ndarray, seed: int, number: int) -> RankTree:
    """The tree, but rows missing a split value take sides as often as the rows of ``codes`` (d, n) do.

    The rows that a tree was grown on are those of all classes; the rows of one class may split otherwise.
    """
    share_left = shares_of(
        codes, tree.feature, tree.below_rank, tree.levels_at, tree.level_words, tree.left, tree.right, tree.share_left,
        seed, number,
    )  # fmt: skip
    return tree._replace(share_left=share_left)


def prune(tree: RankTree, rows_at: np.ndarray, min_rows: int) -> RankTree:
    """Remove leaves that fewer than ``min_rows`` rows reach (Watson et al. 2023, Algorithm 1).

    The sibling of such a leaf takes the place of their parent, so its box grows to hold both. Where both children
    are too small, so is their parent.

    Parameters
    ----------
    rows_at : int array (N,)
        Number of rows that end in each node, as leaves of ``tree``.
    """
    left, right, order = pruned(tree.left, tree.right, rows_at.astype(np.int64), min_rows)
    inner = left >= 0
    return RankTree(
        feature=np.where(inner, tree.feature[order], -1).astype(np.int32),
        below_rank=np.where(inner, tree.below_rank[order], -1).astype(np.int32),
        levels_at=np.where(inner, tree.levels_at[order], -1).astype(np.int32),
        left=left,
        right=right,
        level_words=tree.level_words,
        share_left=tree.share_left[order],
    )


def thresholds(columns: Columns, ranks: Ranks, tree: RankTree) -> np.ndarray:
    """Threshold of each node (0 where the split is not numeric): halfway between the column's values on either side.

    On a grid it is the cell edge next to the middle; always ``low <= threshold < high``, so that rows keep their side.
    """
    out = np.zeros(len(tree.feature))
    numeric = np.flatnonzero((tree.feature >= 0) & (tree.levels_at < 0))
    first = ranks.value_start[tree.feature[numeric]]
    low = ranks.values[first + tree.below_rank[numeric]]
    high = ranks.values[first + tree.below_rank[numeric] + 1]
    middle = low / 2 + high / 2
    middle = np.where((middle >= low) & (middle < high), middle, low)
    slot = columns.slot[tree.feature[numeric]]
    step, origin = columns.step[slot], columns.origin[slot]
    grid = step > 0
    safe = np.where(grid, step, 1.0)
    cell_low, cell_high = np.rint((low - origin) / safe), np.rint((high - origin) / safe)
    edge = origin + step * (cell_low + np.floor((cell_high - cell_low - 1) / 2) + 0.5)
    out[numeric] = np.where(grid, edge, middle)
    return out


def join(columns: Columns, ranks: Ranks, trees: list[RankTree], rows_at: list[np.ndarray]) -> Trees:
    """The node table of a forest; ``rows_at[t]`` (N_t,) counts the rows that end in each node of tree t."""
    node_at = np.cumsum([0] + [len(t.feature) for t in trees])
    word_at = np.cumsum([0] + [len(t.level_words) for t in trees])
    leaf_at = np.cumsum([0] + [int((t.left < 0).sum()) for t in trees])

    def shifted(field: str, by: np.ndarray) -> np.ndarray:
        parts = [getattr(t, field) for t in trees]
        return np.concatenate([np.where(p >= 0, p + by[i], -1) for i, p in enumerate(parts)]).astype(np.int32)

    leaf_parts = [np.where(t.left < 0, np.cumsum(t.left < 0) - 1 + leaf_at[i], -1) for i, t in enumerate(trees)]
    return Trees(
        feature=np.concatenate([t.feature for t in trees]),
        threshold=np.concatenate([thresholds(columns, ranks, t) for t in trees]),
        levels_at=shifted("levels_at", word_at),
        left_levels=np.concatenate([t.level_words for t in trees]),
        left=shifted("left", node_at),
        right=shifted("right", node_at),
        leaf=np.concatenate(leaf_parts).astype(np.int32),
        weight=np.concatenate([node_weights(t.left, t.right, r) for t, r in zip(trees, rows_at, strict=True)]),
        root=node_at[:-1].astype(np.int32),
    )


def node_weights(left: np.ndarray, right: np.ndarray, rows_at: np.ndarray) -> np.ndarray:
    """Share of the rows below each node (N,), from the number of rows that end in each leaf."""
    rows: np.ndarray = rows_below(left, right, rows_at.astype(np.float64))
    return np.asarray(rows / rows[0])
