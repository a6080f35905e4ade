"""Grow one tree on ranks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...data.schema import Columns
from ...models.box_forest.structure import Trees, rows_below
from .criterion_kernels import GINI, VARIANCE, Limits
from .grow_kernels import grow_tree
from .growth_records import N_NODES, N_WORDS, GrowingTree, GrowthRows, Rules, growing_tree, scratch_for, with_more_room
from .rank_tree import RankTree, find_again, incomplete
from .ranks import Ranks, between
from .route_kernels import cut_ranks

_FIRST_CAPACITY = 64
_ROWS_A_NODE = 8  # for which there is room at first


class GrowthSettings(NamedTuple):
    """When and how nodes are split.

    Attributes
    ----------
    max_features : int
        Columns tried at each node, of those with more than one value in the table.
    criterion : int
        GINI, ENTROPY or VARIANCE.
    keep_looking : bool
        Whether to try more columns where all of these are constant in the node; else it becomes a leaf.
    min_samples_split, min_samples_leaf : float
        Smallest weight of a node that is split, and of a leaf: a row drawn twice counts as two.
    min_class : float array (n_classes,), optional
        Smallest weight of each class in a leaf.
    max_depth, max_leaf_nodes : int, optional
        If leaves are limited, the best split comes first.
    min_gain : float
        Smallest gain worth a split, a unit of weight; with VARIANCE as a share of the node's sum of squares.
    """

    max_features: int
    criterion: int = GINI
    keep_looking: bool = True
    min_samples_split: float = 2.0
    min_samples_leaf: float = 0.0
    min_class: np.ndarray | None = None
    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_gain: float = 1e-9


def grow(
    ranks: Ranks,
    is_categorical: np.ndarray,
    is_ordered: np.ndarray,
    y: np.ndarray,
    n_classes: int,
    weight: np.ndarray,
    settings: GrowthSettings,
    *,
    seed: int,
    number: int,
) -> tuple[RankTree, np.ndarray]:
    """Grow tree ``number`` of the forest with this ``seed`` on the rows of positive weight.

    Parameters
    ----------
    is_categorical, is_ordered : uint8 arrays (d,)
    y : int array (n,)
        Class of each row, 0..n_classes-1; for the criterion VARIANCE any numbers (float64), and ``n_classes`` is
        ignored.
    weight : float64 array (n,)
        Weight of each row (how often the bootstrap drew it).

    Returns
    -------
    RankTree
    int32 array (n,)
        Leaf node of each row, as `rank_tree.find_leaves` of this stream has them. Complete rows that the tree was grown
        on are where growing left them; the others are sent down.
    """
    target = np.asarray(y, dtype=np.float64)
    n_statistics = n_classes
    if settings.criterion == VARIANCE:
        n_statistics = 2
        target = target - target.mean()
        target /= target.std() or 1.0
    table = GrowthRows(ranks.codes, ranks.n_codes, is_categorical, is_ordered, target, weight)
    rows = np.flatnonzero(weight > 0).astype(np.int32)
    scratch = scratch_for(table, rows, n_statistics, seed, number)
    capacity = max(_FIRST_CAPACITY, len(rows) // _ROWS_A_NODE)
    n_words = max(4 * ((len(scratch.trial) + 63) // 64), capacity)
    growing = growing_tree(capacity, n_words, len(rows))
    rules = _rules(settings)
    while not grow_tree(table, rules, growing, scratch):
        growing = with_more_room(growing)
    tree, node = _whole(growing, ranks), _leaves(growing, scratch.rows, len(weight))
    node[incomplete(ranks.codes)] = -1
    return tree, find_again(tree, ranks.codes, node, np.flatnonzero(node < 0), seed, number)


def _rules(settings: GrowthSettings) -> Rules:
    """The settings as kernels take them: of one type each."""
    classes = np.zeros(0) if settings.min_class is None else np.asarray(settings.min_class, dtype=np.float64)
    return Rules(
        criterion=int(settings.criterion),
        max_features=int(settings.max_features),
        keep_looking=bool(settings.keep_looking),
        min_weight=float(settings.min_samples_split),
        limits=Limits(float(settings.min_samples_leaf), classes),
        max_depth=-1 if settings.max_depth is None else int(settings.max_depth),
        max_leaf_nodes=-1 if settings.max_leaf_nodes is None else int(settings.max_leaf_nodes),
        min_gain=float(settings.min_gain),
    )


def _leaves(growing: GrowingTree, rows: np.ndarray, n: int) -> np.ndarray:
    """Leaf node of each of the ``rows``, which lie node by node; -1 of others (int32, n)."""
    leaves = np.flatnonzero(growing.tree.left[: growing.counts[N_NODES]] < 0)
    leaves = leaves[np.argsort(growing.start[leaves])].astype(np.int32)
    node = np.full(n, -1, dtype=np.int32)
    node[rows] = np.repeat(leaves, growing.stop[leaves] - growing.start[leaves])
    return node


def _whole(growing: GrowingTree, ranks: Ranks) -> RankTree:
    """The tree without its unused memory, its numeric splits halfway between their neighbours in the node."""
    n_nodes, n_words = growing.counts[N_NODES], growing.counts[N_WORDS]
    tree = RankTree(*(array[:n_nodes].copy() for array in growing.tree))
    tree = tree._replace(level_words=growing.tree.level_words[:n_words].copy())
    cut_ranks(tree.feature, tree.below_rank, growing.above_rank[:n_nodes], ranks.value_start, ranks.values)
    return tree


# ---- Trees on ranks become the node table of a forest.


def thresholds(columns: Columns, ranks: Ranks, tree: RankTree) -> np.ndarray:
    """Threshold of each node (0 where the split is not numeric): halfway between the column's values on either side.

    On a grid it is the cell edge next to the middle; always ``low <= threshold < high``, so that rows keep their side.
    """
    out = np.zeros(len(tree.feature))
    numeric = np.flatnonzero((tree.feature >= 0) & (tree.levels_at < 0))
    first = ranks.value_start[tree.feature[numeric]]
    low = ranks.values[first + tree.below_rank[numeric]]
    high = ranks.values[first + tree.below_rank[numeric] + 1]
    slot = columns.slot[tree.feature[numeric]]
    out[numeric] = between(low, high, columns.step[slot], columns.origin[slot])
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
    rows = rows_below(left, right, rows_at)
    return np.asarray(rows / rows[0])
