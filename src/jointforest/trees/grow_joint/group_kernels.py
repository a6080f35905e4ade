"""Kernels: group the rows of a node by one column's value."""

from __future__ import annotations

from ...ground.compile import entry, kernel


@entry
def count_groups(data, rows, weight, by, table, groups):
    """Groups from a table of bin by statistic; returns how many.

    Parameters
    ----------
    data : JointRows
    rows : int32 array (m,)
    weight : float64 array (n,)
    by : SplitColumn
    table : float64 array (bins, cells)
        Zeros.
    groups : Groups
        At least as many as bins, of sizes 0.
    """
    _count(data, rows, weight, by, table, groups.size)
    size, stat, value = groups.size, groups.stat, groups.value
    n_groups = 0
    n_entries = 0
    for b in range(table.shape[0]):
        if size[b] > 0.0:
            for s in range(table.shape[1]):
                if table[b, s] != 0.0:
                    stat[n_entries] = by.statistic[s]
                    value[n_entries] = table[b, s]
                    n_entries += 1
            groups.code[n_groups] = b
            size[n_groups] = size[b]
            n_groups += 1
            groups.start[n_groups] = n_entries
    return n_groups


@kernel
def _count(data, rows, weight, by, table, size):
    """Add each row to the table, and its weight to the size of its bin."""
    bins, z, source, cell, n_numeric = data.bins, data.z, by.source, by.cell, by.n_numeric
    for i in rows:
        b = bins[i, by.column]
        if b < 0:
            continue
        w = weight[i]
        size[b] += w
        for t in range(n_numeric):
            x = z[i, source[t]]
            if x == x:
                table[b, cell[t]] += w
                table[b, cell[t] + 1] += w * x
        for t in range(n_numeric, source.shape[0]):
            c = bins[i, source[t]]
            if c >= 0:
                table[b, cell[t] + c] += w


@entry
def list_groups(data, rows, weight, by, groups):
    """Groups of equal values, each row's statistics listed; returns how many.

    Parameters
    ----------
    data : JointRows
    rows : int32 array (m,)
        Rows with known value, by rank.
    weight : float64 array (n,)
    by : SplitColumn
    groups : Groups
        At least as many as rows, of sizes 0.
    """
    ranks, targets = data.ranks[by.column], by.targets
    code, size, start, stat, value = groups.code, groups.size, groups.start, groups.stat, groups.value
    n_groups = 0
    e = 0
    for i in rows:
        if n_groups == 0 or ranks[i] != code[n_groups - 1]:
            code[n_groups] = ranks[i]
            n_groups += 1
        w = weight[i]
        size[n_groups - 1] += w
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
        start[n_groups] = e
    return n_groups
