"""Grow one tree on ranks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...data.schema import Columns
from ...models.box_forest.structure import Trees, with_weights
from ...models.box_forest.structure_kernels import restrict_trees
from ...runtime.random_kernels import stream_state
from ...runtime.records import record
from .grow_kernels import GINI, N_NODES, N_WORDS, VARIANCE, cut_ranks, grow_tree, route


@record
class Ranks(NamedTuple):
    """Table of n rows and d columns as integer codes.

    codes : int32 array (d, n). Rank of the value (numeric) or level (categorical); -1 where missing. `grow` takes no
        column with both known and missing cells.
    n_codes : int32 array (d,). Number of ranked values of the column, or of its levels.
    value_start : int64 array (d + 1,). The ranked values of column j, distinct, ascending, are
        ``values[value_start[j]:value_start[j + 1]]`` (none if categorical).
    values : float64 array
    """

    codes: np.ndarray
    n_codes: np.ndarray
    value_start: np.ndarray
    values: np.ndarray


def thresholds_between(
    low: np.ndarray, high: np.ndarray, step: np.ndarray | float, origin: np.ndarray | float
) -> np.ndarray:
    """Thresholds between pairs of values, ``low <= threshold < high``: halfway; on a grid the cell edge next to it."""
    middle = low / 2 + high / 2
    middle = np.where((middle >= low) & (middle < high), middle, low)
    grid = np.asarray(step) > 0
    safe = np.where(grid, step, 1.0)
    cell_low, cell_high = (np.rint((np.where(grid, x, 0.0) - origin) / safe) for x in (low, high))
    edge = origin + step * (cell_low + np.floor((cell_high - cell_low - 1) / 2) + 0.5)
    return np.where(grid, edge, middle)


def rank(columns: Columns, X: np.ndarray, rows: np.ndarray | None = None) -> Ranks:
    """Ranks of the cells of X (n, d), NaN where missing; grid columns must be snapped. Ranked are the values of all
    rows, or of ``rows`` (numbers, (m,)): then a cell of another row has the rank of the value on its side of every
    threshold between two neighbours (`thresholds_between`), so that it goes where a split of these sends it."""
    n, d = X.shape
    codes = np.empty((d, n), dtype=np.int32)
    n_codes = np.zeros(d, dtype=np.int32)
    values: list[np.ndarray] = []
    for j in range(d):
        known = ~np.isnan(X[:, j])
        codes[j] = -1
        if columns.is_categorical[j]:
            slot = columns.slot[j]
            codes[j, known] = X[known, j].astype(np.int32)
            n_codes[j] = columns.n_levels(slot)
            values.append(np.empty(0))
            continue
        if rows is None:
            distinct, codes[j, known] = np.unique(X[known, j], return_inverse=True)
        else:
            distinct = np.unique(X[rows[known[rows]], j])
            slot = columns.slot[j]
            thresholds = thresholds_between(distinct[:-1], distinct[1:], columns.step[slot], columns.origin[slot])
            codes[j, known] = np.searchsorted(thresholds, X[known, j])
        n_codes[j] = len(distinct)
        values.append(distinct)
    start = np.concatenate([[0], np.cumsum([len(v) for v in values])]).astype(np.int64)
    return Ranks(codes, n_codes, start, np.concatenate(values) if values else np.empty(0))


# ---- One tree on ranks: where rows end in it, and what it is without its small leaves.


@record
class RankTree(NamedTuple):
    """One tree of N nodes on ranks, children after their parent.

    feature : int32 array (N,). Column of the split; -1 at leaves.
    below_rank : int32 array (N,). Largest rank that goes left; -1 unless the split is numeric. Rows up to it go left,
        whether the tree was grown on them or not: the threshold lies between the column's values of that rank and the
        next.
    levels_at : int32 array (N,). First word of the node's set in ``level_words``; -1 unless the split is categorical.
    left, right : int32 arrays (N,). Children; -1 at leaves.
    level_words : uint64 array. Level sets that go left, see `structure.Trees.left_levels`.
    """

    feature: np.ndarray
    below_rank: np.ndarray
    levels_at: np.ndarray
    left: np.ndarray
    right: np.ndarray
    level_words: np.ndarray


def find_leaves(tree: RankTree, codes: np.ndarray, node: np.ndarray | None = None) -> np.ndarray:
    """Leaf node (int32, n) of each row of ``codes`` (d, n); those that ``node`` (n,) has, not -1, stay."""
    out = np.full(codes.shape[1], -1, np.int32) if node is None else node.copy()
    moved = np.flatnonzero(out < 0).astype(np.int32)
    start, stop = np.zeros((2, len(tree.feature)), dtype=np.int64)
    stop[0] = len(moved)
    route(codes, tree, moved, np.empty_like(moved), start, stop, out)
    return out


def prune(tree: RankTree, rows_at: np.ndarray, min_rows: int) -> tuple[RankTree, np.ndarray]:
    """Remove leaves that fewer than ``min_rows`` of the rows ``rows_at`` (N,) reach (Watson et al. 2023, Algorithm 1).
    Returns the smaller tree, and the number that each node has in it (int32, N); -1 for those that are gone."""
    # The sibling of such a leaf takes the place of their parent, so its box grows to hold both. Where both children are
    # too small, so is their parent.
    counted = np.where(tree.left < 0, rows_at, -1)
    stays = (counted >= min_rows).astype(np.uint8)
    stays[counted.argmax()] = 1  # a tree of few rows is a leaf
    order, left, right, _, _ = restrict_trees(tree.left, tree.right, np.zeros(1, np.int32), stays)
    inner = left >= 0
    number = np.full(len(tree.left), -1, dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    smaller = RankTree(
        feature=np.where(inner, tree.feature[order], -1).astype(np.int32),
        below_rank=np.where(inner, tree.below_rank[order], -1).astype(np.int32),
        levels_at=np.where(inner, tree.levels_at[order], -1).astype(np.int32),
        left=left,
        right=right,
        level_words=tree.level_words,
    )
    return smaller, number


# ---- What a tree is grown on and by which rules, the tree while it grows, and scratch: records for kernels.


@record
class GrowthRows(NamedTuple):
    """What a tree is grown on.

    codes : int32 array (d, n), n_codes : int32 array (d,). Ranks and levels, and how many a column has; see `Ranks`.
    is_categorical, is_ordered : uint8 arrays (d,)
    target : float64 array (n,). Class of each row, 0..n_statistics-1; or for VARIANCE a number, of variance 1 or 0.
    weight : float64 array (n,). Weight of each row (how often the bootstrap drew it).
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

    criterion : int. GINI, ENTROPY or VARIANCE.
    max_features : int. Columns tried at each node, of those with more than one value in the table.
    keep_looking : bool. Whether to try more where all of them are constant in the node; else it becomes a leaf.
    min_weight : float. Nodes of less weight become leaves.
    min_leaf : float. Least weight of either side of a split.
    max_depth, max_leaf_nodes : int. -1 for no limit. Nodes are split best first if leaves are limited, else depth
        first.
    """

    criterion: int
    max_features: int
    keep_looking: bool
    min_weight: float
    min_leaf: float
    max_depth: int
    max_leaf_nodes: int


@record
class GrowingTree(NamedTuple):
    """A tree while it grows: room for C nodes, children after their parent, of which the first are in use.

    tree : RankTree. Its ``below_rank`` is the largest rank of the node's rows that go left; see
        `grow_kernels.cut_ranks`.
    above_rank : int32 array (C,). Smallest rank of the node's rows that go right; -1 unless the split is numeric.
    start, stop : int64 arrays (C,). The node's rows are ``Scratch.rows[start:stop]``.
    depth : int32 array (C,)
    priority : float64 array (C,), queue : int64 array (C,). Nodes that can be split, a binary heap with the largest
        priority first: the gain if leaves are limited, else the node's number.
    counts : int64 array (4,). Nodes in use, examined and queued, and words of level sets in use.
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

    rows : int32 array (m,). The rows of the tree, of positive weight, node by node; reordered when a node is split.
    spare : int32 array (m,)
    tried : int64 array. Columns with more than one value, in the order in which they were last tried.
    state : uint64 array (1,). The tree's stream of random numbers.
    trial, chosen : uint8 arrays (most levels,). Whether each level goes left, in the split tried and in the best one so
        far.
    target, weight : float64 arrays (m,). Class or number of each row of the node, in their order, and its weight.
    node : float64 array (S,). Statistics of the node.
    code : int32 array (m,). Rank or level of each row of the node in the column tried.
    left, right : float64 arrays (S,)
    table : float64 array (m or most levels, S). Statistics by rank or level.
    order, spare_order : int64 arrays (m or most levels,)
    share, spare_share : float64 arrays (most levels,)
    first : int32 array (most ranks,), after : int32 array (m,). Rows of the node by rank: the first of a rank, and the
        one after each; -1 for none. ``first`` is all -1 between uses.
    words, groups : uint64 arrays. The set of ranks in use, as bits; and which words are not 0, as bits. All 0 between
        uses.
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
    priority = np.zeros(capacity)
    start[0], stop[0], depth[0] = 0, n_rows, 0
    tree = RankTree(feature, below_rank, levels_at, left, right, np.zeros(n_words, dtype=np.uint64))
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
    node, left, right = np.empty((3, n_statistics))
    target, weight = np.empty((2, m))
    return Scratch(
        rows=rows,
        spare=np.empty_like(rows),
        tried=np.flatnonzero(table.n_codes > 1),  # columns of one value tell nothing, and do not count
        state=stream_state(seed, number),
        trial=np.empty(most_levels, dtype=np.uint8),
        chosen=np.empty(most_levels, dtype=np.uint8),
        target=target,
        weight=weight,
        node=node,
        code=np.empty(m, dtype=np.int32),
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


# ---- Grow a tree.

_FIRST_CAPACITY = 64
"""Nodes for which a tree has room at first, at least; it doubles when it is full."""
_ROWS_A_NODE = 8
"""Rows for each node for which a tree has room at first: most trees end before their leaves are that small."""


class GrowthSettings(NamedTuple):
    """When and how nodes are split.

    max_features : int. Columns tried at each node, of those with more than one value in the table.
    criterion : int. GINI, ENTROPY or VARIANCE.
    keep_looking : bool. Whether to try more columns where all of these are constant in the node; else it becomes a
        leaf.
    min_samples_split, min_samples_leaf : float. Smallest weight of a node that is split, and of a leaf: a row drawn
        twice counts as two.
    max_depth, max_leaf_nodes : int, optional. If leaves are limited, the best split comes first.
    """

    max_features: int
    criterion: int = GINI
    keep_looking: bool = True
    min_samples_split: float = 2.0
    min_samples_leaf: float = 0.0
    max_depth: int | None = None
    max_leaf_nodes: int | None = None


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
    """Grow tree ``number`` of the forest with this ``seed`` on the rows of positive weight; and the leaf node of each
    row. y (n,) is the class of each row, or for the criterion VARIANCE a number. The weight (n,) is how often the
    bootstrap drew the row."""
    # Rows that the tree was grown on are where growing left them, and the others are sent down.
    if (ranks.codes.min(axis=1, initial=0)[ranks.n_codes > 1] < 0).any():  # kernels do not look for them
        raise ValueError("a column has missing cells, which have to be filled before trees are grown")
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
    tree, node = _finished(growing, ranks), _leaf_of_rows(growing, scratch.rows, len(weight))
    return tree, find_leaves(tree, ranks.codes, node)


def _rules(settings: GrowthSettings) -> Rules:
    """The settings as kernels take them: of one type each."""
    return Rules(
        criterion=int(settings.criterion),
        max_features=int(settings.max_features),
        keep_looking=bool(settings.keep_looking),
        min_weight=float(settings.min_samples_split),
        min_leaf=float(settings.min_samples_leaf),
        max_depth=-1 if settings.max_depth is None else int(settings.max_depth),
        max_leaf_nodes=-1 if settings.max_leaf_nodes is None else int(settings.max_leaf_nodes),
    )


def _leaf_of_rows(growing: GrowingTree, rows: np.ndarray, n: int) -> np.ndarray:
    """Leaf node of each of the ``rows``, which lie node by node; -1 of others (int32, n)."""
    leaves = np.flatnonzero(growing.tree.left[: growing.counts[N_NODES]] < 0)
    leaves = leaves[np.argsort(growing.start[leaves])].astype(np.int32)
    node = np.full(n, -1, dtype=np.int32)
    node[rows] = np.repeat(leaves, growing.stop[leaves] - growing.start[leaves])
    return node


def _finished(growing: GrowingTree, ranks: Ranks) -> RankTree:
    """The tree without its unused memory, its numeric splits halfway between their neighbours in the node."""
    n_nodes, n_words = growing.counts[N_NODES], growing.counts[N_WORDS]
    tree = RankTree(*(array[:n_nodes].copy() for array in growing.tree))
    tree = tree._replace(level_words=growing.tree.level_words[:n_words].copy())
    cut_ranks(tree.feature, tree.below_rank, growing.above_rank[:n_nodes], ranks.value_start, ranks.values)
    return tree


# ---- Trees on ranks become the node table of a forest.


def thresholds(columns: Columns, ranks: Ranks, tree: RankTree) -> np.ndarray:
    """Threshold of each node (0 where the split is not numeric): halfway between the column's values on either side. On
    a grid it is the cell edge next to the middle; always ``low <= threshold < high``, so that rows keep their side."""
    out = np.zeros(len(tree.feature))
    numeric = np.flatnonzero((tree.feature >= 0) & (tree.levels_at < 0))
    first = ranks.value_start[tree.feature[numeric]]
    low = ranks.values[first + tree.below_rank[numeric]]
    high = ranks.values[first + tree.below_rank[numeric] + 1]
    slot = columns.slot[tree.feature[numeric]]
    out[numeric] = thresholds_between(low, high, columns.step[slot], columns.origin[slot])
    return out


def join_trees(columns: Columns, ranks: Ranks, trees: list[RankTree], rows_at: list[np.ndarray]) -> Trees:
    """The node table of a forest; ``rows_at[t]`` (N_t,) counts the rows that end in each node of tree t."""
    node_at = np.cumsum([0] + [len(t.feature) for t in trees])
    word_at = np.cumsum([0] + [len(t.level_words) for t in trees])

    def shifted(field: str, by: np.ndarray) -> np.ndarray:
        parts = [getattr(t, field) for t in trees]
        return np.concatenate([np.where(p >= 0, p + by[i], -1) for i, p in enumerate(parts)]).astype(np.int32)

    is_leaf = np.concatenate([t.left < 0 for t in trees])
    table = Trees(
        feature=np.concatenate([t.feature for t in trees]),
        threshold=np.concatenate([thresholds(columns, ranks, t) for t in trees]),
        levels_at=shifted("levels_at", word_at),
        left_levels=np.concatenate([t.level_words for t in trees]),
        left=shifted("left", node_at),
        right=shifted("right", node_at),
        leaf=np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32),
        weight=np.zeros(len(is_leaf)),
        root=node_at[:-1].astype(np.int32),
    )
    return with_weights(table, np.concatenate(rows_at)[is_leaf])
