"""The rows of a node in groups by one column's value, and what each group adds to the targets' statistics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.records import record
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
    n_bins : int
        Number of bins, or of levels.
    n_levels : int
        0 if the column is numeric.
    is_nominal : bool
        Whether the column is categorical and its levels have no order.
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
    n_bins: int
    n_levels: int
    is_nominal: bool
    is_exact: bool


@record
class Groups(NamedTuple):
    """Groups of a node's rows that a split keeps together, ascending; rows with missing value are in none.

    Attributes
    ----------
    code : int32 array (G,)
        Rank, bin or level of each group; the arrays may be longer than there are groups.
    size : float64 array (G,)
        Weight of its rows.
    start : int64 array (G + 1,), stat : int32 array (E,), value : float64 array (E,)
        To the targets' statistics group g adds ``value[e]`` to statistic ``stat[e]``, for e of
        ``start[g]..start[g + 1] - 1``.
    is_binned : bool
        Whether the codes are bins, or levels, as the groups are counted in a table; else they are ranks, or levels.
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
    is_binned = n_rows > MOST_EXACT and n_cells <= _MOST_CELLS
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
