"""Kernels: the statistics of all targets in a node, and in the groups of its rows by one column's value."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.compile import array_kernel, entry
from ...ground.records import record
from ..grow.criterion_kernels import ENTROPY, class_power

MOST_EXACT = 16384
"""Nodes of more rows are split at the edges of bins; the others between any two values."""
_MOST_CELLS = 1 << 22  # of a table of bin by statistic: 32 MiB
_PURE = 1e-14


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


@entry
def describe(data, rows, weight, targets, criterion):
    """Statistics (S,) of a node and the weighted impurity (d,) of its targets, 0 where pure or no target."""
    d = data.bins.shape[1]
    total, squares, impurity = np.zeros(data.owner.shape[0]), np.zeros(d), np.zeros(d)
    for i in rows:
        w = weight[i]
        for k in targets:
            at = data.first[k]
            if data.is_categorical[k]:
                if data.bins[i, k] >= 0:
                    total[at + data.bins[i, k]] += w
            else:
                z = data.z[i, data.slot[k]]
                if z == z:
                    total[at] += w
                    total[at + 1] += w * z
    mean = np.zeros(d)
    for k in targets:
        if not data.is_categorical[k] and total[data.first[k]] > 0.0:
            mean[k] = total[data.first[k] + 1] / total[data.first[k]]
    for i in rows:
        for k in targets:
            if not data.is_categorical[k]:
                z = data.z[i, data.slot[k]]
                if z == z:
                    squares[k] += weight[i] * (z - mean[k]) ** 2
    for k in targets:
        at, end = data.first[k], data.first[k + 1]
        if not data.is_categorical[k]:
            impurity[k] = squares[k] if squares[k] > _PURE * total[at] else 0.0
            continue
        known = total[at:end].sum()
        if known - total[at:end].max() > 0.0:
            power = 0.0
            for s in range(at, end):
                power += class_power(criterion, total[s])
            whole = class_power(criterion, known) / (1.0 if criterion == ENTROPY else known)
            impurity[k] = whole - (power if criterion == ENTROPY else power / known)
    return total, impurity


@array_kernel
def groups_of(data, rows, weight, j, targets):
    """`Groups` of the node's rows by column j; ``targets`` (int64) are the columns whose statistics are wanted."""
    cells = 0
    for k in targets:
        cells += data.first[k + 1] - data.first[k]
    cells_of_all = cells * data.n_bins[j]
    is_exact = data.is_categorical[j] == 1 or data.last_rank[data.bin_start[j + 1] - 1] == data.n_bins[j] - 1
    if is_exact:  # a bin is a value: worth a table if that has fewer cells than the rows have statistics
        if cells_of_all <= rows.shape[0] * targets.shape[0]:
            return _counted(data, rows, weight, j, targets, cells)
    elif rows.shape[0] > MOST_EXACT and cells_of_all <= _MOST_CELLS:
        return _counted(data, rows, weight, j, targets, cells)
    return _listed(data, rows, weight, j, targets)


@array_kernel
def _counted(data, rows, weight, j, targets, cells):
    """Groups from a table of bin by statistic: for nodes with many rows."""
    n_bins = data.n_bins[j]
    table = np.zeros((n_bins, cells))
    size = np.zeros(n_bins)
    stat_of = np.empty(cells, np.int32)
    column = np.empty(targets.shape[0], np.int64)  # where each target's statistics begin in the table
    slot = np.empty(targets.shape[0], np.int64)
    n_numeric = 0
    at = 0
    for want in range(2):  # numbers first
        place = n_numeric
        for k in targets:
            if data.is_categorical[k] == want:
                column[place] = at
                slot[place] = k if want else data.slot[k]
                place += 1
                for s in range(data.first[k], data.first[k + 1]):
                    stat_of[at] = s
                    at += 1
        if want == 0:
            n_numeric = place
    for i in rows:
        b = data.bins[i, j]
        if b < 0:
            continue
        w = weight[i]
        size[b] += w
        for t in range(n_numeric):
            z = data.z[i, slot[t]]
            if z == z:
                table[b, column[t]] += w
                table[b, column[t] + 1] += w * z
        for t in range(n_numeric, targets.shape[0]):
            c = data.bins[i, slot[t]]
            if c >= 0:
                table[b, column[t] + c] += w
    n_groups = 0
    n_entries = 0
    for b in range(n_bins):
        if size[b] > 0.0:
            n_groups += 1
            for s in range(cells):
                if table[b, s] != 0.0:
                    n_entries += 1
    code = np.empty(n_groups, np.int32)
    start = np.zeros(n_groups + 1, np.int64)
    stat = np.empty(n_entries, np.int32)
    value = np.empty(n_entries, np.float64)
    g = 0
    e = 0
    for b in range(n_bins):
        if size[b] > 0.0:
            for s in range(cells):
                if table[b, s] != 0.0:
                    stat[e] = stat_of[s]
                    value[e] = table[b, s]
                    e += 1
            code[g] = b
            size[g] = size[b]
            g += 1
            start[g] = e
    return Groups(code, size[:n_groups].copy(), start, stat, value, data.is_categorical[j] == 0)


@array_kernel
def _listed(data, rows, weight, j, targets):
    """Groups of equal values, each row's statistics listed: for nodes with few rows, and tables too large to make."""
    ranks = data.ranks[j]
    known = rows[ranks[rows] >= 0]
    known = known[np.argsort(ranks[known], kind="mergesort")]
    n = known.shape[0]
    width = 0
    for k in targets:
        width += 1 if data.is_categorical[k] else 2
    code = np.empty(n, np.int32)
    size = np.empty(n, np.float64)
    start = np.zeros(n + 1, np.int64)
    stat = np.empty(n * width, np.int32)
    value = np.empty(n * width, np.float64)
    g = -1
    e = 0
    for i in known:
        if g < 0 or ranks[i] != code[g]:
            g += 1
            code[g] = ranks[i]
            size[g] = 0.0
        w = weight[i]
        size[g] += w
        for k in targets:
            at = data.first[k]
            if data.is_categorical[k]:
                c = data.bins[i, k]
                if c >= 0:
                    stat[e], value[e] = at + c, w
                    e += 1
            else:
                z = data.z[i, data.slot[k]]
                if z == z:
                    stat[e], value[e] = at, w
                    stat[e + 1], value[e + 1] = at + 1, w * z
                    e += 2
        start[g + 1] = e
    g += 1
    return Groups(code[:g].copy(), size[:g].copy(), start[: g + 1].copy(), stat[:e].copy(), value[:e].copy(), False)
