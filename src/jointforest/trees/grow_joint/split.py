"""The best split of a node by one column, judged on all targets (Nyga et al. 2023, Eq. 19-20)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...ground.records import record
from .groups import SplitColumn, empty_groups
from .impurity_kernels import describe
from .joint_rows import JointRows
from .split_kernels import split_rows


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
class SplitScratch(NamedTuple):
    """Scratch for `split_kernels.split_rows`.

    Attributes
    ----------
    sides : float64 array (2, S)
        Zeros: statistics of either side of a cut.
    powers : float64 array (5, d)
        Zeros: by target, weight and power of either side of a cut, and the purity of both.
    axes : float64 array (5, S)
        Zeros, for `level_order_kernels.place_levels`: mean, unit, direction, sums and slope of each statistic.
    key : float64 array (2, G), order : int64 array (2, G)
        What rows or groups are sorted by, and their order; each with a spare. G as in `groups.Groups`.
    """

    sides: np.ndarray
    powers: np.ndarray
    axes: np.ndarray
    key: np.ndarray
    order: np.ndarray


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
    groups = empty_groups(len(rows), by)
    goes_left = np.zeros(by.n_levels, dtype=np.uint8)
    scratch = split_scratch(len(data.owner), len(data.n_bins), len(groups.code))
    score, below, above, n_groups = split_rows(
        data, rows, weight, by, node, criterion, float(min_weight), groups, scratch, goes_left
    )
    log_cuts = math.log(n_groups - 1.0) if n_groups > 1 else 0.0
    if by.is_nominal and n_groups > 2:
        log_cuts = (n_groups - 1) * math.log(2.0) + math.log1p(-(2.0 ** (1.0 - n_groups)))
    return Split(score / by.n_others, by.column, below, above, goes_left, log_cuts)


def split_scratch(n_statistics: int, n_columns: int, n_groups: int) -> SplitScratch:
    """Scratch for groups that need so many codes."""
    return SplitScratch(
        np.zeros((2, n_statistics)), np.zeros((5, n_columns)), np.zeros((5, n_statistics)),
        np.empty((2, n_groups)), np.empty((2, n_groups), dtype=np.int64),
    )  # fmt: skip
