"""The best split of a node by one column, judged on all targets (Nyga et al. 2023, Eq. 19-20)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...ground.records import record
from .cut_kernels import best_cut
from .groups import Groups, SplitColumn, groups_of
from .impurity_kernels import describe
from .joint_rows import JointRows
from .level_order_kernels import place_levels


@record
class NodeStatistics(NamedTuple):
    """What the targets are in a node; S statistics, d columns.

    Attributes
    ----------
    total : float64 array (S,)
        Statistics of the targets.
    impurity : float64 array (d,)
        Weighted impurity of each target; 0 where it is pure, or no target.
    mean, squares : float64 arrays (d,)
        Mean of each numeric target, and the weighted sum of squares around it.
    """

    total: np.ndarray
    impurity: np.ndarray
    mean: np.ndarray
    squares: np.ndarray


@record
class LevelScratch(NamedTuple):
    """Scratch for `place_levels`, by statistic (S,); ``place`` (G,) is the answer."""

    mean: np.ndarray
    unit: np.ndarray
    direction: np.ndarray
    sums: np.ndarray
    slope: np.ndarray
    place: np.ndarray


class Split(NamedTuple):
    """A split of a node by one column.

    Attributes
    ----------
    improvement : float
        Mean relative reduction of the targets' impurity; 0 if there is no split.
    column : int
    below, above : int
        Largest rank that goes left and smallest that goes right; -1 if categorical, or without a split.
    goes_left : uint8 array (K,), or (0,) if numeric
        Levels that go left.
    log_cuts : float
        Logarithm of the number of splits that were possible.
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
    describe(data, rows, weight, targets, criterion, node)
    return node


def best_split(
    data: JointRows,
    rows: np.ndarray,
    weight: np.ndarray,
    by: SplitColumn,
    node: NodeStatistics,
    criterion: int,
    min_weight: float,
) -> Split:
    """Best split of a node by one column.

    Parameters
    ----------
    rows : int32 array (m,)
    criterion : int
        ENTROPY or GINI, for categorical targets.
    min_weight : float
        Smallest weight of either side.
    """
    j = by.column
    is_set, is_ordered = data.is_categorical[j] == 1, data.is_ordered[j] == 1
    goes_left = np.zeros(data.n_bins[j] if is_set else 0, dtype=np.uint8)
    groups = groups_of(data, rows, weight, by)
    n_groups = len(groups.code)
    if n_groups < 2:
        return Split(0.0, j, -1, -1, goes_left, 0.0)
    order = np.arange(n_groups)
    log_cuts = math.log(n_groups - 1.0)
    if is_set and not is_ordered and n_groups > 2:
        order = level_order(data, groups, by.targets, node, criterion)
        log_cuts = (n_groups - 1) * math.log(2.0) + math.log1p(-(2.0 ** (1.0 - n_groups)))
    sums, powers = np.zeros((2, len(data.owner))), np.zeros((5, len(node.impurity)))
    score, cut = best_cut(data, groups, order, by.targets, node.impurity, criterion, float(min_weight), sums, powers)
    if cut == 0:
        return Split(0.0, j, -1, -1, goes_left, log_cuts)
    improvement = score / by.n_others
    last, following = int(groups.code[order[cut - 1]]), int(groups.code[order[cut]])
    if is_set:
        _mark_levels(groups, order, cut, is_ordered, goes_left)
        last, following = -1, -1
    elif groups.is_binned:
        ranks = data.last_rank[data.bin_start[j] :]
        last, following = int(ranks[last]), int(ranks[following - 1]) + 1
    return Split(improvement, j, last, following, goes_left, log_cuts)


def level_order(
    data: JointRows, groups: Groups, targets: np.ndarray, node: NodeStatistics, criterion: int
) -> np.ndarray:
    """Groups of a categorical column in an order in which a good set of levels is a cut; see `place_levels`."""
    mean, unit, direction, sums, slope = np.zeros((5, len(data.owner)))
    scratch = LevelScratch(mean, unit, direction, sums, slope, place=np.zeros(len(groups.code)))
    place_levels(data, groups, targets, node, criterion, scratch)
    return np.argsort(scratch.place, kind="stable")


def _mark_levels(groups: Groups, order: np.ndarray, cut: int, is_ordered: bool, goes_left: np.ndarray) -> None:
    """The set of levels of a cut; levels that no row of the node has go to the heavier side (ordered: keep order)."""
    if is_ordered:
        goes_left[: groups.code[order[cut - 1]] + 1] = 1
        return
    goes_left[:] = 2.0 * groups.size[order[:cut]].sum() >= groups.size.sum()
    goes_left[groups.code[order[:cut]]] = 1
    goes_left[groups.code[order[cut:]]] = 0
