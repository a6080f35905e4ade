"""Kernels of LearnSPN: which columns depend on each other in some rows, by pairwise tests of independence."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import array_kernel, kernel
from .independence_kernels import mixed_p_value, numeric_p_value, rank_scores, table_p_value

_CONSTANT, _NUMERIC, _LEVELS = 0, 1, 2
_HEAVY = 2.0 / 3.0
"""A value with a larger share of a numeric column is tested as two levels: mid-ranks would hang on the few others."""
_RUN = 12
"""Runs of so many values are sorted by insertion, before they are merged."""


@array_kernel
def _level_view(codes, rows, level):
    """Levels present among the rows, numbered from 0, into ``level`` (n,), -1 where missing; how many there are."""
    most = -1
    for i in range(rows.shape[0]):
        level[i] = codes[rows[i]]
        most = max(most, level[i])
    number = np.full(most + 1, -1, np.int32)
    n_levels = 0
    for i in range(rows.shape[0]):
        if level[i] >= 0:
            if number[level[i]] < 0:
                number[level[i]] = n_levels
                n_levels += 1
            level[i] = number[level[i]]
    return n_levels


@array_kernel
def _numeric_view(x, order, level):
    """Longest run of equal values of x in ``order``; ``level`` (n,) is 1 there, 0 at other values, -1 where missing."""
    level[:] = -1
    longest, at = 0, 0
    first = 0
    for last in range(1, order.shape[0] + 1):
        if last == order.shape[0] or x[order[last]] != x[order[first]]:
            if last - first > longest:
                longest, at = last - first, first
            first = last
    for k in range(order.shape[0]):
        level[order[k]] = at <= k < at + longest
    return longest


@kernel
def _root(parent, a):
    while parent[a] != a:
        a = parent[a]
    return a


@kernel
def _sort_known(x, order, spare):
    """Numbers of the known values of x (n,) in ascending order into ``order``; how many. Insertion, then merging."""
    m = 0
    for i in range(x.shape[0]):
        if not math.isnan(x[i]):
            order[m] = i
            m += 1
    for first in range(0, m, _RUN):
        for k in range(first + 1, min(first + _RUN, m)):
            at, i = k, order[k]
            while at > first and x[order[at - 1]] > x[i]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = i
    width = _RUN
    while width < m:
        for first in range(0, m - width, 2 * width):
            middle, end = first + width, min(first + 2 * width, m)
            for k in range(first, middle):
                spare[k] = order[k]
            a, b = first, middle
            for k in range(first, end):
                if a == middle:
                    break
                if b < end and x[order[b]] < x[spare[a]]:
                    order[k] = order[b]
                    b += 1
                else:
                    order[k] = spare[a]
                    a += 1
        width *= 2
    return m


@array_kernel
def _view_column(cells, rows, column, views, c):
    """How the tests see a column on these rows, into place c of ``views``."""
    n = rows.shape[0]
    level = views.level[c][:n]
    views.n_levels[c], views.n_scores[c] = 0, 0
    if cells.is_categorical[column]:
        views.n_levels[c] = _level_view(cells.codes[column], rows, level)
        n_known = 0
        for i in range(n):
            n_known += level[i] >= 0
        views.n_known[c] = n_known
        views.kind[c] = _LEVELS if views.n_levels[c] > 1 else _CONSTANT
        return
    x = views.values[c][:n]
    for i in range(n):
        x[i] = cells.values[column, rows[i]]
    n_known = _sort_known(x, views.order[c], views.spare)
    views.n_known[c] = n_known
    order = views.order[c][:n_known]
    longest = _numeric_view(x, order, level)
    if longest == n_known:
        views.kind[c] = _CONSTANT
    elif longest > _HEAVY * n_known:
        views.kind[c], views.n_levels[c] = _LEVELS, 2
    else:
        views.kind[c] = _NUMERIC
        _, n_scores = rank_scores(x, order, views.everywhere, views.linear[c][:n], views.bent[c][:n])
        views.n_scores[c] = n_scores


@array_kernel
def _levels_p_value(views, n, a, b):
    """Independence of two columns of levels."""
    counts = np.zeros((views.n_levels[a], views.n_levels[b]))
    for i in range(n):
        if views.level[a, i] >= 0 and views.level[b, i] >= 0:
            counts[views.level[a, i], views.level[b, i]] += 1.0
    return table_p_value(counts)


@array_kernel
def _common_p_value(views, n, x, y):
    """Independence of a numeric column x and a column y, of which cells are missing, on the rows that have both."""
    common, common_level, scores = views.common[:n], views.common_level[:n], views.common_scores
    for i in range(n):
        known_y = views.level[y, i] >= 0  # of numeric columns, too
        common[i] = views.level[x, i] >= 0 and known_y
        common_level[i] = views.level[y, i] if common[i] else -1
    linear_x, bent_x = scores[0][:n], scores[1][:n]
    m, n_x = rank_scores(views.values[x][:n], views.order[x][: views.n_known[x]], common, linear_x, bent_x)
    if views.kind[y] == _LEVELS:
        return mixed_p_value(m, linear_x, bent_x, n_x, common_level, views.n_levels[y])
    linear_y, bent_y = scores[2][:n], scores[3][:n]
    _, n_y = rank_scores(views.values[y][:n], views.order[y][: views.n_known[y]], common, linear_y, bent_y)
    return numeric_p_value(m, linear_x, bent_x, n_x, linear_y, bent_y, n_y)


@array_kernel
def _pair_p_value(views, n, a, b):
    """Independence of two columns that vary on the n rows in view."""
    if views.kind[a] == _LEVELS and views.kind[b] == _LEVELS:
        return _levels_p_value(views, n, a, b)
    x, y = (a, b) if views.kind[a] == _NUMERIC else (b, a)
    if views.n_known[a] < n or views.n_known[b] < n:
        return _common_p_value(views, n, x, y)
    linear_x, bent_x, n_x = views.linear[x][:n], views.bent[x][:n], views.n_scores[x]
    if views.kind[y] == _LEVELS:
        return mixed_p_value(n, linear_x, bent_x, n_x, views.level[y][:n], views.n_levels[y])
    return numeric_p_value(n, linear_x, bent_x, n_x, views.linear[y][:n], views.bent[y][:n], views.n_scores[y])


@array_kernel
def components(cells, rows, columns, significance, views):
    """Connected components of the graph whose edges are the pairs of columns that are found dependent on these rows.

    Bonferroni: a pair is dependent if its p-value is below ``significance`` / number of pairs of columns that vary.

    Returns
    -------
    int32 array (k,)
        The number of the component's first column, among the k.
    """
    n, k = rows.shape[0], columns.shape[0]
    n_varying = 0
    for c in range(k):
        _view_column(cells, rows, columns[c], views, c)
        n_varying += views.kind[c] != _CONSTANT
    threshold = significance / max(n_varying * (n_varying - 1) // 2, 1)
    parent = np.arange(k).astype(np.int32)
    for a in range(k):
        for b in range(a + 1, k):
            if views.kind[a] == _CONSTANT or views.kind[b] == _CONSTANT or _root(parent, a) == _root(parent, b):
                continue
            if _pair_p_value(views, n, a, b) < threshold:
                a_root, b_root = _root(parent, a), _root(parent, b)
                parent[max(a_root, b_root)] = min(a_root, b_root)
    for c in range(k):
        parent[c] = _root(parent, c)
    return parent
