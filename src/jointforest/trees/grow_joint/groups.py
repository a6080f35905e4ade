"""The rows of a node in groups by one column's value, and what each group adds to the targets' statistics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.records import record
from .group_kernels import count_groups, list_groups
from .joint_rows import JointRows

MOST_EXACT = 16384
"""Nodes of more rows are split at the edges of bins; the others between any two values."""
_MOST_CELLS = 1 << 22  # of a table of bin by statistic: 32 MiB


@record
class SplitColumn(NamedTuple):
    """A column that may split nodes, and its targets: those that judge the split, numeric ones first.

    Attributes
    ----------
    column : int
    n_others : int
        What the sum of the targets' relative reductions is divided by.
    targets : int64 array (k,)
        Ascending.
    n_numeric : int
    source : int64 array (k,)
        Of each target, numeric ones first: its column of ``JointRows.z``, or of ``bins``.
    cell : int64 array (k,)
        Of each target, numeric ones first: the first cell of its statistics in a table of bin by statistic.
    statistic : int32 array (cells,)
        The statistic of each of these cells.
    n_entries : int
        To how many statistics one row adds, at most.
    is_exact : bool
        Whether each bin of the column is one value.
    """

    column: int
    n_others: int
    targets: np.ndarray
    n_numeric: int
    source: np.ndarray
    cell: np.ndarray
    statistic: np.ndarray
    n_entries: int
    is_exact: bool


@record
class Groups(NamedTuple):
    """Groups of a node's rows that a split keeps together, ascending; rows with missing value are in none.

    Attributes
    ----------
    code : int32 array (G,)
        Rank, bin or level of each group.
    size : float64 array (G,)
        Weight of its rows.
    start : int64 array (G + 1,), stat : int32 array (E,), value : float64 array (E,)
        To the targets' statistics group g adds ``value[e]`` to statistic ``stat[e]``, for e of
        ``start[g]..start[g + 1] - 1``.
    is_binned : bool
        Whether the codes are bins.
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
        is_exact=bool(
            data.is_categorical[column] or data.last_rank[data.bin_start[column + 1] - 1] == data.n_bins[column] - 1
        ),
    )


def groups_of(data: JointRows, rows: np.ndarray, weight: np.ndarray, by: SplitColumn) -> Groups:
    """Groups of a node's rows (int32 array) by one column's value."""
    n_cells = int(data.n_bins[by.column]) * len(by.statistic)
    if by.is_exact:  # a bin is a value: worth a table if that has fewer cells than the rows have statistics
        is_counted = n_cells <= len(rows) * len(by.targets)
    else:
        is_counted = len(rows) > MOST_EXACT and n_cells <= _MOST_CELLS
    return counted(data, rows, weight, by) if is_counted else listed(data, rows, weight, by)


def counted(data: JointRows, rows: np.ndarray, weight: np.ndarray, by: SplitColumn) -> Groups:
    """Groups from a table of bin by statistic: for nodes with many rows."""
    n_bins, cells = int(data.n_bins[by.column]), len(by.statistic)
    groups = _room(n_bins, n_bins * cells, data.is_categorical[by.column] == 0)
    return _used(groups, count_groups(data, rows, weight, by, np.zeros((n_bins, cells)), groups))


def listed(data: JointRows, rows: np.ndarray, weight: np.ndarray, by: SplitColumn) -> Groups:
    """Groups of equal values, each row's statistics listed: for nodes with few rows, and tables too large to make."""
    ranks = data.ranks[by.column][rows]
    n_missing = np.count_nonzero(ranks < 0)  # the first, once sorted
    known = rows[ranks.argsort(kind="stable")[n_missing:]]
    groups = _room(len(known), len(known) * by.n_entries, False)
    return _used(groups, list_groups(data, known, weight, by, groups))


def _room(n_groups: int, n_entries: int, is_binned: bool) -> Groups:
    """Room for groups."""
    return Groups(
        code=np.empty(n_groups, dtype=np.int32),
        size=np.zeros(n_groups),
        start=np.zeros(n_groups + 1, dtype=np.int64),
        stat=np.empty(n_entries, dtype=np.int32),
        value=np.empty(n_entries),
        is_binned=bool(is_binned),
    )


def _used(groups: Groups, n_groups: int) -> Groups:
    """The first groups alone."""
    n_entries = groups.start[n_groups]
    return Groups(
        groups.code[:n_groups], groups.size[:n_groups], groups.start[: n_groups + 1], groups.stat[:n_entries],
        groups.value[:n_entries], groups.is_binned,
    )  # fmt: skip
