"""What a tree is grown on and by which rules, the tree while it grows, and scratch: records, made here for kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...runtime.random_kernels import stream
from ...runtime.records import record
from .criterion_kernels import Limits
from .rank_tree import RankTree

N_NODES, N_EXAMINED, N_QUEUED, N_WORDS = range(4)
"""Places in `GrowingTree.counts`."""


@record
class GrowthRows(NamedTuple):
    """What a tree is grown on.

    Attributes
    ----------
    codes : int32 array (d, n), n_codes : int32 array (d,)
        Ranks and levels, and how many a column has; see `ranks.Ranks`.
    is_categorical, is_ordered : uint8 arrays (d,)
    target : float64 array (n,)
        Class of each row, 0..n_statistics-1; or for VARIANCE a number, of variance 1 or 0.
    weight : float64 array (n,)
        Weight of each row (how often the bootstrap drew it).
    """

    codes: np.ndarray
    n_codes: np.ndarray
    is_categorical: np.ndarray
    is_ordered: np.ndarray
    target: np.ndarray
    weight: np.ndarray


@record
class Rules(NamedTuple):
    """When and how nodes are split.

    Attributes
    ----------
    criterion : int
        GINI, ENTROPY or VARIANCE.
    max_features : int
        Columns tried at each node, of those with more than one value in the table.
    keep_looking : bool
        Whether to try more where all of them are constant in the node; else it becomes a leaf.
    min_weight : float
        Nodes of less weight become leaves.
    limits : Limits
        What either side of a split must keep.
    max_depth, max_leaf_nodes : int
        -1 for no limit. Nodes are split best first if leaves are limited, else depth first.
    min_gain : float
        Smallest gain worth a split, a unit of weight; with VARIANCE as a share of the node's sum of squares.
    """

    criterion: int
    max_features: int
    keep_looking: bool
    min_weight: float
    limits: Limits
    max_depth: int
    max_leaf_nodes: int
    min_gain: float


@record
class GrowingTree(NamedTuple):
    """A tree while it grows: room for C nodes, children after their parent, of which the first are in use.

    Attributes
    ----------
    tree : RankTree
        Its ``below_rank`` is the largest rank of the node's rows that go left; see `route_kernels.cut_ranks`.
    above_rank : int32 array (C,)
        Smallest rank of the node's rows that go right; -1 unless the split is numeric.
    start, stop : int64 arrays (C,)
        The node's rows are ``Scratch.rows[start:stop]``.
    depth : int32 array (C,)
    priority : float64 array (C,), queue : int64 array (C,)
        Nodes that can be split, a binary heap with the largest priority first: the gain if leaves are limited, else
        the node's number.
    counts : int64 array (4,)
        Nodes in use, examined and queued, and words of level sets in use.
    """

    tree: RankTree
    above_rank: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    depth: np.ndarray
    priority: np.ndarray
    queue: np.ndarray
    counts: np.ndarray


@record
class Scratch(NamedTuple):
    """All rows of the tree, those of the node at hand, and scratch for its splits.

    m is the most rows of a node, S the number of statistics: the class weights; for VARIANCE the weight and the sum
    of weight times target.

    Attributes
    ----------
    rows : int32 array (m,)
        The rows of the tree, of positive weight, node by node; reordered when a node is split.
    spare : int32 array (m,)
    tried : int64 array
        Columns with more than one value, in the order in which they were last tried.
    state : uint64 array (1,)
        The tree's stream of random numbers.
    trial, chosen : uint8 arrays (most levels,)
        Whether each level goes left, in the split tried and in the best one so far.
    target, weight : float64 arrays (m,)
        Class or number of each row of the node, in their order, and its weight.
    node : float64 array (S,)
        Statistics of the node.
    code : int32 array (m,)
        Rank or level of each row of the node in the column tried.
    total, left, right : float64 arrays (S,)
    table : float64 array (m or most levels, S)
        Statistics by rank or level.
    order, spare_order : int64 arrays (m or most levels,)
    share, spare_share : float64 arrays (most levels,)
    first : int32 array (most ranks,), after : int32 array (m,)
        Rows of the node by rank: the first of a rank, and the one after each; -1 for none. ``first`` is all
        -1 between uses.
    words, groups : uint64 arrays
        The set of ranks in use, as bits; and which words are not 0, as bits. All 0 between uses.
    """

    rows: np.ndarray
    spare: np.ndarray
    tried: np.ndarray
    state: np.ndarray
    trial: np.ndarray
    chosen: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    node: np.ndarray
    code: np.ndarray
    total: np.ndarray
    left: np.ndarray
    right: np.ndarray
    table: np.ndarray
    order: np.ndarray
    spare_order: np.ndarray
    share: np.ndarray
    spare_share: np.ndarray
    first: np.ndarray
    after: np.ndarray
    words: np.ndarray
    groups: np.ndarray


def growing_tree(capacity: int, n_words: int, n_rows: int) -> GrowingTree:
    """A tree of one node, with all rows and not yet examined, and room for more."""
    feature, below_rank, levels_at, left, right, above_rank, depth = np.full((7, capacity), -1, dtype=np.int32)
    start, stop, queue = np.empty((3, capacity), dtype=np.int64)
    share_left, priority = np.zeros((2, capacity))
    start[0], stop[0], depth[0] = 0, n_rows, 0
    tree = RankTree(feature, below_rank, levels_at, left, right, np.zeros(n_words, dtype=np.uint64), share_left)
    return GrowingTree(tree, above_rank, start, stop, depth, priority, queue, np.array([1, 0, 0, 0]))


def with_more_room(growing: GrowingTree) -> GrowingTree:
    """The tree with room for twice the nodes and words."""
    old = growing.tree
    larger = growing_tree(2 * len(old.feature), 2 * len(old.level_words), 0)
    for new, array in zip((*larger.tree, *larger[1:]), (*old, *growing[1:]), strict=True):
        new[: len(array)] = array
    return larger


def scratch_for(table: GrowthRows, rows: np.ndarray, n_statistics: int, seed: int, number: int) -> Scratch:
    """Scratch to grow tree ``number`` of the forest with this ``seed`` on these rows (int32 array (m,))."""
    numeric = table.is_categorical == 0
    most_ranks = int(table.n_codes[numeric].max(initial=1))
    most_levels = int(table.n_codes[~numeric].max(initial=1))
    m = len(rows)
    longest = max(m, most_levels)
    n_words = most_ranks // 64 + 1
    node, total, left, right = np.empty((4, n_statistics))
    target, weight = np.empty((2, m))
    return Scratch(
        rows=rows,
        spare=np.empty_like(rows),
        tried=np.flatnonzero(table.n_codes > 1),  # columns of one value tell nothing, and do not count
        state=stream(seed, number),
        trial=np.empty(most_levels, dtype=np.uint8),
        chosen=np.empty(most_levels, dtype=np.uint8),
        target=target,
        weight=weight,
        node=node,
        code=np.empty(m, dtype=np.int32),
        total=total,
        left=left,
        right=right,
        table=np.empty((longest, n_statistics)),
        order=np.empty(longest, dtype=np.int64),
        spare_order=np.empty(longest, dtype=np.int64),
        share=np.empty(most_levels),
        spare_share=np.empty(most_levels),
        first=np.full(most_ranks, -1, dtype=np.int32),
        after=np.empty(m, dtype=np.int32),
        words=np.zeros(n_words, dtype=np.uint64),
        groups=np.zeros(n_words // 64 + 1, dtype=np.uint64),
    )
