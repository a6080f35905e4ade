"""Kernels: group the rows of a node by one column's value."""

from __future__ import annotations

from ...ground.compile import kernel
from ...ground.sort_kernels import stable_sort


@kernel
def count_groups(data, rows, weight, by, groups):
    """Groups from a table of bin by statistic, for nodes with many rows; returns how many.

    Parameters
    ----------
    data : JointRows
    rows : int32 array (m,)
    weight : float64 array (n,)
    by : SplitColumn
    groups : Groups
        Of `groups.empty_groups`, binned.
    """
    code, size, start, stat, value = groups.code, groups.size, groups.start, groups.stat, groups.value
    cells = by.statistic.shape[0]
    _count(data, rows, weight, by, value, size)
    n_groups = 0
    n_entries = 0
    start[0] = 0
    for b in range(by.n_bins):
        if size[b] > 0.0:
            for s in range(cells):
                v = value[b * cells + s]
                if v != 0.0:  # to a place that has been read
                    stat[n_entries] = by.statistic[s]
                    value[n_entries] = v
                    n_entries += 1
            code[n_groups] = b
            size[n_groups] = size[b]
            n_groups += 1
            start[n_groups] = n_entries
    return n_groups


@kernel
def _count(data, rows, weight, by, table, size):
    """Count each row in the table, a bin after the other, and its weight in the size of its bin."""
    bins, z, source, cell, n_numeric = data.bins, data.z, by.source, by.cell, by.n_numeric
    cells = by.statistic.shape[0]
    for b in range(by.n_bins):
        size[b] = 0.0
    for c in range(by.n_bins * cells):
        table[c] = 0.0
    for i in rows:
        b = bins[i, by.column]
        if b < 0:
            continue
        w, at = weight[i], b * cells
        size[b] += w
        for t in range(n_numeric):
            x = z[i, source[t]]
            if x == x:
                table[at + cell[t]] += w
                table[at + cell[t] + 1] += w * x
        for t in range(n_numeric, source.shape[0]):
            c = bins[i, source[t]]
            if c >= 0:
                table[at + cell[t] + c] += w


@kernel
def list_groups(data, rows, weight, by, groups, scratch):
    """Groups of equal values, each row's statistics listed, for nodes with few rows and tables too large to make;
    returns how many.

    Parameters
    ----------
    data : JointRows
    rows : int32 array (m,)
    weight : float64 array (n,)
    by : SplitColumn
    groups : Groups
        Of `groups.empty_groups`, not binned.
    scratch : SplitScratch
    """
    code, size, start, stat, value = groups.code, groups.size, groups.start, groups.stat, groups.value
    key, order, targets = scratch.key[0], scratch.order[0], by.targets
    n_known = _sort_known(data.ranks[by.column], rows, scratch)
    n_groups = 0
    e = 0
    start[0] = 0
    for at in range(n_known):
        i, rank = order[at], key[at]
        if n_groups == 0 or rank != code[n_groups - 1]:
            code[n_groups] = rank
            size[n_groups] = 0.0
            n_groups += 1
        w = weight[i]
        size[n_groups - 1] += w
        for k in targets:
            s = data.first[k]
            if data.is_categorical[k]:
                c = data.bins[i, k]
                if c >= 0:
                    stat[e], value[e] = s + c, w
                    e += 1
            else:
                z = data.z[i, data.slot[k]]
                if z == z:
                    stat[e], value[e] = s, w
                    stat[e + 1], value[e + 1] = s + 1, w * z
                    e += 2
        start[n_groups] = e
    return n_groups


@kernel
def _sort_known(ranks, rows, scratch):
    """The rows with known value by rank, in ``scratch.order[0]``; their ranks in ``scratch.key[0]``; their number."""
    key, order = scratch.key[0], scratch.order[0]
    n_known = 0
    for i in rows:
        if ranks[i] >= 0:
            key[n_known] = ranks[i]
            order[n_known] = i
            n_known += 1
    stable_sort(key, order, n_known, scratch.key[1], scratch.order[1])
    return n_known
