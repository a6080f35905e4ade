"""Grow a tree that splits all columns at once (Nyga et al. 2023, section 3.1), the most improving node first."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...data.schema import Columns
from ...models.box_forest.leaves.levels import bits
from ...runtime.progress import bar
from ...runtime.records import record
from ...runtime.threads import map_ordered, one_by_one
from ..growing.grow import Ranks, RankTree
from ..growing.grow_kernels import cut_ranks
from .constants import FIXED
from .split_kernels import describe_targets, log_chance_of_tables, partition, split_rows

# ---- The rows of a table as joint trees want them, row by row.


@record
class JointRows(NamedTuple):
    """Table of n rows and d columns for trees that split all columns at once.

    A column is a *target* with one statistic a level (weights), or two if it is numeric (weight, weighted sum).

    ranks : int32 array (d, n). As in `growing.grow.Ranks`; of the columns that may split.
    bins : int16 array (n, d). Level, or bin of the rank (quantile bins of the whole table); -1 where missing.
    z : float64 array (n, p). Numbers, each column with mean 0 and variance 1 (0 if constant); NaN where missing.
    n_bins : int32 array (d,). Number of bins, or of levels.
    last_rank : int32 array, bin_start : int64 array (d + 1,). ``last_rank[bin_start[j] + b]`` is the largest rank of
        bin b of column j; the level b if categorical.
    is_categorical, is_ordered : uint8 arrays (d,)
    slot : int32 array (d,). Column of ``z``, if numeric.
    first : int64 array (d + 1,). Statistics of target k are ``first[k]..first[k + 1] - 1``.
    owner : int32 array (S,). Target of each statistic.
    """

    ranks: np.ndarray
    bins: np.ndarray
    z: np.ndarray
    n_bins: np.ndarray
    last_rank: np.ndarray
    bin_start: np.ndarray
    is_categorical: np.ndarray
    is_ordered: np.ndarray
    slot: np.ndarray
    first: np.ndarray
    owner: np.ndarray


def joint_rows(
    columns: Columns, is_ordered: np.ndarray, ranks: Ranks, X: np.ndarray, max_bins: int = FIXED.bins
) -> JointRows:
    """`JointRows` of the cells X (n, d), whose ranks these are."""
    n, d = X.shape
    bins = np.empty((n, d), dtype=np.int16)
    z = np.empty((n, len(columns.step)))
    n_bins = ranks.n_codes.copy()
    last_rank: list[np.ndarray] = []
    for j in range(d):
        if columns.is_categorical[j]:
            bins[:, j] = ranks.codes[j]
            last_rank.append(np.arange(n_bins[j], dtype=np.int32))
            continue
        bin_of = _bins_of_ranks(np.bincount(ranks.codes[j] + 1, minlength=ranks.n_codes[j] + 1)[1:], max_bins)
        n_bins[j] = bin_of[-1] + 1
        last_rank.append(np.searchsorted(bin_of, np.arange(n_bins[j]), side="right").astype(np.int32) - 1)
        bins[:, j] = np.append(bin_of, -1).astype(np.int16)[ranks.codes[j]]
        z[:, columns.slot[j]] = _standard(X[:, j])
    width = np.where(columns.is_categorical == 1, ranks.n_codes, 2)
    return JointRows(
        ranks=ranks.codes,
        bins=bins,
        z=z,
        n_bins=n_bins,
        last_rank=np.concatenate(last_rank),
        bin_start=np.cumsum([0] + [len(last) for last in last_rank]),
        is_categorical=columns.is_categorical,
        is_ordered=is_ordered,
        slot=columns.slot,
        first=np.cumsum([0, *width]).astype(np.int64),
        owner=np.repeat(np.arange(d, dtype=np.int32), width),
    )


def with_targets(data: JointRows, values: np.ndarray) -> JointRows:
    """The rows with q more targets, numbers in (0, 1) spread evenly, (n, q), NaN where missing; they split nothing."""
    q = values.shape[1]
    d, p = data.bins.shape[1], data.z.shape[1]
    bins = np.where(np.isnan(values), -1, np.minimum(np.nan_to_num(values) * FIXED.target_bins, FIXED.target_bins - 1))
    return JointRows(
        ranks=data.ranks,
        bins=np.concatenate([data.bins, bins.astype(np.int16)], axis=1),
        z=np.concatenate([data.z, (values - 0.5) * np.sqrt(12.0)], axis=1),
        n_bins=_append(data.n_bins, np.full(q, FIXED.target_bins)),
        last_rank=_append(data.last_rank, np.tile(np.arange(FIXED.target_bins), q)),
        bin_start=_append(data.bin_start, data.bin_start[-1] + FIXED.target_bins * np.arange(1, q + 1)),
        is_categorical=_append(data.is_categorical, np.zeros(q)),
        is_ordered=_append(data.is_ordered, np.zeros(q)),
        slot=_append(data.slot, p + np.arange(q)),
        first=_append(data.first, data.first[-1] + 2 * np.arange(1, q + 1)),
        owner=_append(data.owner, np.repeat(np.arange(d, d + q), 2)),
    )


def _append(array: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Both, one after the other, in the dtype of the first."""
    return np.concatenate([array, more.astype(array.dtype)])


def _bins_of_ranks(count: np.ndarray, max_bins: int) -> np.ndarray:
    """Bin of each rank, from the rows of each rank: the rank itself, or quantile bins if there are many."""
    if len(count) <= max_bins:
        return np.arange(len(count))
    middle = np.cumsum(count) - count / 2
    return np.unique((middle * (max_bins / count.sum())).astype(np.int64), return_inverse=True)[1]


def _standard(x: np.ndarray) -> np.ndarray:
    """Numbers less their mean over their standard deviation, without overflow."""
    centred = x - np.nanmin(x) / 2 - np.nanmax(x) / 2
    centred /= np.nanmax(np.abs(centred)) or 1.0
    centred -= np.nanmean(centred)
    return centred / (np.nanstd(centred) or 1.0)


# ---- The rows of a node in groups by one column's value, and what each group adds to the targets' statistics.


@record
class SplitColumn(NamedTuple):
    """A column that may split nodes, and its targets: those that judge the split, numeric ones first.

    n_others : int. What the sum of the targets' relative reductions is divided by.
    targets : int64 array (k,). Ascending.
    source : int64 array (k,). Of each target, numeric ones first: its column of ``JointRows.z``, or of ``bins``.
    cell : int64 array (k,). Of each target, numeric ones first: the first cell of its statistics in a table of bin by
        statistic.
    statistic : int32 array (cells,). The statistic of each of these cells.
    n_entries : int. To how many statistics one row adds, at most.
    n_bins : int. Number of bins, or of levels.
    n_levels : int. 0 if the column is numeric.
    is_nominal : bool. Whether the column is categorical and its levels have no order.
    is_exact : bool. Whether each bin of the column is one value.
    """

    column: int
    n_others: int
    targets: np.ndarray
    n_numeric: int
    source: np.ndarray
    cell: np.ndarray
    statistic: np.ndarray
    n_entries: int
    n_bins: int
    n_levels: int
    is_nominal: bool
    is_exact: bool


@record
class Groups(NamedTuple):
    """Groups of a node's rows that a split keeps together, ascending; rows with missing value are in none.

    code : int32 array (G,). Rank, bin or level of each group; the arrays may be longer than there are groups.
    size : float64 array (G,). Weight of its rows.
    start : int64 array (G + 1,), stat : int32 array (E,), value : float64 array (E,). To the targets' statistics group
        g adds ``value[e]`` to statistic ``stat[e]``, for e of ``start[g]..start[g + 1] - 1``.
    is_binned : bool. Whether the codes are bins, or levels, as the groups are counted in a table; else they are ranks,
        or levels.
    """

    code: np.ndarray
    size: np.ndarray
    start: np.ndarray
    stat: np.ndarray
    value: np.ndarray
    is_binned: bool


def split_column(data: JointRows, column: int, targets: np.ndarray, n_others: int) -> SplitColumn:
    """The column with its targets (int64 array)."""
    is_categorical = data.is_categorical[targets] == 1
    numeric, categorical = targets[~is_categorical], targets[is_categorical]
    order = np.concatenate([numeric, categorical])
    width = np.diff(data.first)[order]
    cell = np.cumsum(width) - width
    n_bins = int(data.n_bins[column])
    statistic = np.arange(width.sum()) + np.repeat(data.first[order] - cell, width)
    return SplitColumn(
        column=int(column),
        n_others=int(n_others),
        targets=targets,
        n_numeric=len(numeric),
        source=np.concatenate([data.slot[numeric], categorical]).astype(np.int64),
        cell=cell,
        statistic=statistic.astype(np.int32),
        n_entries=2 * len(numeric) + len(categorical),
        n_bins=n_bins,
        n_levels=n_bins if data.is_categorical[column] else 0,
        is_nominal=bool(data.is_categorical[column] and not data.is_ordered[column]),
        is_exact=bool(data.last_rank[data.bin_start[column + 1] - 1] == n_bins - 1),
    )


def empty_groups(n_rows: int, by: SplitColumn) -> Groups:
    """Arrays to hold the groups of a node with so many rows, and whether they are to be bins."""
    n_cells = by.n_bins * len(by.statistic)
    is_binned = n_rows > FIXED.exact_rows and n_cells <= FIXED.table_cells
    if by.is_exact:  # a bin is a value: worth a table if that has fewer cells than the rows have statistics
        is_binned = n_cells <= n_rows * len(by.targets)
    n_groups, n_entries = (by.n_bins, n_cells) if is_binned else (n_rows, n_rows * by.n_entries)
    return Groups(
        code=np.empty(n_groups, dtype=np.int32),
        size=np.empty(n_groups),
        start=np.empty(n_groups + 1, dtype=np.int64),
        stat=np.empty(n_entries, dtype=np.int32),
        value=np.empty(n_entries),
        is_binned=is_binned,
    )


# ---- The best split of a node by one column, judged on all targets (Nyga et al. 2023, Eq. 19-20).


@record
class NodeStatistics(NamedTuple):
    """What the targets are in a node; S statistics, d columns.

    total : float64 array (S,). Statistics of the targets.
    impurity : float64 array (d,). Weighted impurity of each target; 0 where it is pure, or no target.
    mean, squares : float64 arrays (d,). Mean of each numeric target, and the weighted sum of squares around it.
    """

    total: np.ndarray
    impurity: np.ndarray
    mean: np.ndarray
    squares: np.ndarray


@record
class SplitScratch(NamedTuple):
    """Scratch for `split_kernels.split_rows`.

    sides : float64 array (2, S). Zeros: statistics of either side of a cut.
    powers : float64 array (5, d). Zeros: by target, weight and power of either side of a cut, and the purity of both.
    axes : float64 array (5, S). Zeros, for `split_kernels.place_levels`: mean, unit, direction, sums and slope of each
        statistic.
    key : float64 array (2, G), order : int64 array (2, G). What rows or groups are sorted by, and their order; each
        with a spare. G as in `Groups`.
    """

    sides: np.ndarray
    powers: np.ndarray
    axes: np.ndarray
    key: np.ndarray
    order: np.ndarray


class _JointSplit(NamedTuple):
    """A split of a node by one column.

    improvement : float. Mean relative reduction of the targets' impurity; 0 if there is no split.
    below, above : int. Largest rank that goes left and smallest that goes right; -1 if categorical, or without a split.
    goes_left : uint8 array (K,), or (0,) if numeric. Levels that go left.
    log_cuts : float. Logarithm of the number of splits that were possible.
    """

    improvement: float
    column: int
    below: int
    above: int
    goes_left: np.ndarray
    log_cuts: float


def node_statistics(
    data: JointRows, rows: np.ndarray, weight: np.ndarray, targets: np.ndarray, criterion: int
) -> NodeStatistics:
    """Statistics of the rows (int32 array) of a node; for categorical targets by ENTROPY or GINI."""
    node = NodeStatistics(np.zeros(len(data.owner)), *np.zeros((3, data.bins.shape[1])))
    describe_targets(data, rows, weight, targets, criterion, node)
    return node


def best_split(
    data: JointRows,
    rows: np.ndarray,
    weight: np.ndarray,
    by: SplitColumn,
    node: NodeStatistics,
    criterion: int,
    min_weight: float,
) -> _JointSplit:
    """Best split of a node by one column, with at least ``min_weight`` on either side."""
    groups = empty_groups(len(rows), by)
    goes_left = np.zeros(by.n_levels, dtype=np.uint8)
    scratch = split_scratch(len(data.owner), len(data.n_bins), len(groups.code))
    score, below, above, n_groups = split_rows(
        data, rows, weight, by, node, criterion, float(min_weight), groups, scratch, goes_left
    )
    log_cuts = math.log(n_groups - 1.0) if n_groups > 1 else 0.0
    if by.is_nominal and n_groups > 2:
        log_cuts = (n_groups - 1) * math.log(2.0) + math.log1p(-(2.0 ** (1.0 - n_groups)))
    return _JointSplit(score / by.n_others, by.column, below, above, goes_left, log_cuts)


def split_scratch(n_statistics: int, n_columns: int, n_groups: int) -> SplitScratch:
    """Scratch for groups that need so many codes."""
    return SplitScratch(
        np.zeros((2, n_statistics)), np.zeros((5, n_columns)), np.zeros((5, n_statistics)),
        np.empty((2, n_groups)), np.empty((2, n_groups), dtype=np.int64),
    )  # fmt: skip


# ---- Could a split be noise? docs/concepts/joint-tree.md derives the bound.


def log_chance(
    data: JointRows, rows: np.ndarray, j: int, below_rank: int, goes_left: np.ndarray, targets: np.ndarray
) -> float:
    """Logarithm of a bound on the chance that a fixed split by column j, independent of the targets, separates any of
    them as far."""
    # Rows count 1 each, so that a bootstrap's repeats are no evidence. The bound is corrected for the number of
    # targets, not for the number of splits.
    count = np.zeros((len(data.last_rank), 2))
    return float(log_chance_of_tables(data, rows, j, below_rank, goes_left, targets, count))


class JointSettings(NamedTuple):
    """Parameters of joint trees; see `learners.joint_tree.joint_tree.JointTree` for their meaning.

    criterion : int. ENTROPY or GINI, for categorical targets.
    min_weight : float. Smallest weight of a leaf.
    min_impurity_decrease : float or None. None: splits must be more than noise.
    """

    criterion: int
    min_weight: float
    max_depth: int | None
    max_leaf_nodes: int | None
    min_impurity_decrease: float | None
    max_features: int


class _Task(NamedTuple):
    """What one tree is grown on, and how.

    columns : list of SplitColumn. Those that may split nodes.
    targets : int64 array. Columns that judge any split.
    """

    data: JointRows
    weight: np.ndarray
    columns: list[SplitColumn]
    targets: np.ndarray
    settings: JointSettings
    seed: int
    number: int


@dataclass
class _Node:
    """A node with the rows ``start..stop-1`` of the tree's, and its split: once it is made, or is the next to make."""

    start: int
    stop: int
    depth: int
    split: _JointSplit | None
    left: int = -1
    right: int = -1


def grow_joint(
    data: JointRows,
    ranks: Ranks,
    weight: np.ndarray,
    judges: np.ndarray,
    settings: JointSettings,
    seed: int,
    number: int,
) -> tuple[RankTree, np.ndarray]:
    """Grow tree ``number`` on the rows of positive weight; and the node in which each row ends, int32 (n,), -1 for the
    others. The weight (n,) is how often the bootstrap drew the row. A split by column j is judged by target k where
    ``judges[j, k]``, bool (d, d), never by j itself. It has q columns more with q targets that are no columns
    (`with_targets`)."""
    n, d = len(data.bins), len(judges)
    rows = np.flatnonzero(weight > 0).astype(np.int32)
    spare = np.empty_like(rows)
    is_target = np.asarray(judges.any(axis=0))
    others = is_target.sum() - is_target[:d] if judges.shape[1] == d else judges.sum(axis=1)
    n_others = [max(int(number), 1) for number in others]
    columns = [
        split_column(data, j, np.flatnonzero(judges[j]), n_others[j])
        for j in range(d)
        if judges[j].any() and data.n_bins[j] > 1
    ]
    task = _Task(data, weight, columns, np.flatnonzero(is_target), settings, seed, number)
    nodes: list[_Node] = []
    heap: list[tuple[float, int]] = []

    def add(start: int, stop: int, depth: int) -> int:
        """A node, and the number of rows for which nothing is left to do."""
        here = rows[start:stop]
        split = _examine(task, here, len(nodes), depth)
        if split is not None:
            heapq.heappush(heap, (-split.improvement * float(weight[here].sum()), len(nodes)))
        nodes.append(_Node(start, stop, depth, split))
        return stop - start if split is None else 0

    with bar(len(rows), "growing a tree") as step:
        add(0, len(rows), 0)
        while heap and (len(nodes) + 1) // 2 != settings.max_leaf_nodes:
            node = nodes[heapq.heappop(heap)[1]]
            split = node.split
            assert split is not None
            n_left = partition(
                data.ranks[split.column], rows[node.start : node.stop], spare[node.start : node.stop],
                split.below, split.goes_left,
            )  # fmt: skip
            node.left, node.right = len(nodes), len(nodes) + 1
            step(add(node.start, node.start + n_left, node.depth + 1))
            step(add(node.start + n_left, node.stop, node.depth + 1))
    leaf_node = np.full(n, -1, dtype=np.int32)
    for k, node in enumerate(nodes):
        if node.left < 0:
            leaf_node[rows[node.start : node.stop]] = k
            node.split = None
    return _rank_tree(nodes, ranks), leaf_node


def _examine(task: _Task, rows: np.ndarray, node: int, depth: int) -> _JointSplit | None:
    """The split of a node with these rows, or None: of those by each column, the most improving one that is allowed."""
    data, weight, settings = task.data, task.weight, task.settings
    size = float(weight[rows].sum())
    if size < 2 * settings.min_weight or (settings.max_depth is not None and depth >= settings.max_depth):
        return None
    tried = task.columns
    if settings.max_features < len(tried):
        picked = np.random.default_rng([task.seed, task.number, node]).permutation(len(tried))
        tried = [tried[k] for k in np.sort(picked[: settings.max_features])]
    statistics = node_statistics(data, rows, weight, task.targets, settings.criterion)
    if not statistics.impurity.any():
        return None

    def split_by(by: SplitColumn) -> _JointSplit:
        return best_split(data, rows, weight, by, statistics, settings.criterion, settings.min_weight)

    work = len(rows) * len(tried) * len(task.targets)
    splits = list((map_ordered if work >= FIXED.threads_from else one_by_one)(split_by, [(by,) for by in tried]))
    targets = {by.column: by.targets for by in tried}
    for split in sorted((s for s in splits if s.improvement > 0), key=lambda s: (-s.improvement, s.column)):
        if settings.min_impurity_decrease is not None:
            return split if split.improvement >= settings.min_impurity_decrease else None
        chance = log_chance(data, rows, split.column, split.below, split.goes_left, targets[split.column])
        if chance + split.log_cuts + math.log(len(tried)) <= math.log(FIXED.noise_level):
            return split
    return None


def _rank_tree(nodes: list[_Node], ranks: Ranks) -> RankTree:
    """The tree as arrays; each numeric split is cut halfway between its two neighbours in the node."""
    splits = [node.split for node in nodes]
    feature = np.array([-1 if s is None else s.column for s in splits], dtype=np.int32)
    below_rank = np.array([-1 if s is None else s.below for s in splits], dtype=np.int32)
    above_rank = np.array([-1 if s is None else s.above for s in splits], dtype=np.int32)
    cut_ranks(feature, below_rank, above_rank, ranks.value_start, ranks.values)
    levels_at = np.full(len(nodes), -1, dtype=np.int32)
    words: list[int] = []
    for node, split in enumerate(splits):
        if split is not None and split.below < 0:
            levels_at[node] = len(words)
            words += bits(split.goes_left).tolist()
    return RankTree(
        feature,
        below_rank,
        levels_at,
        np.array([node.left for node in nodes], dtype=np.int32),
        np.array([node.right for node in nodes], dtype=np.int32),
        np.array(words, dtype=np.uint64),
    )
