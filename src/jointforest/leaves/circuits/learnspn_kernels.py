"""Kernels of LearnSPN (Gens and Domingos 2013): the circuit of one leaf. See docs/learnspn.md."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import array_kernel, entry, kernel
from ...ground.random_kernels import below, uniform
from ..table import FACTORS, PRODUCT, SUM
from .independence_kernels import mixed_p_value, numeric_p_value, rank_scores, table_p_value

_CONSTANT, _NUMERIC, _LEVELS = 0, 1, 2
_HEAVY = 2.0 / 3.0
"""A value with a larger share of a numeric column is tested as two levels: mid-ranks would hang on the few others."""
_RESTARTS = 3
_MAX_ITERATIONS = 50
_OPEN, _CONNECTED, _REST = 0, 1, 2
"""What is known of a node to come: nothing, that its columns do not split, that it takes what a product has left."""


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


@array_kernel
def components(values, codes, is_categorical, rows, columns, significance):
    """Connected components of the graph whose edges are the pairs of columns that are found dependent.

    Bonferroni: a pair is dependent if its p-value is below ``significance`` / number of pairs of columns that vary.

    Parameters
    ----------
    values : float64 array (d, n_all), codes : int32 array (d, n_all), is_categorical : uint8 array (d,)
    rows : int32 array (n,), columns : int32 array (k,)
        The cells to look at.

    Returns
    -------
    int32 array (k,)
        The number of the component's first column, among the k.
    """
    n, k = rows.shape[0], columns.shape[0]
    kind = np.zeros(k, np.uint8)
    level, n_levels = np.empty((k, n), np.int32), np.zeros(k, np.int32)
    order, n_known = np.empty((k, n), np.int64), np.zeros(k, np.int32)
    linear, bent, n_scores = np.empty((k, n)), np.empty((k, n)), np.zeros(k, np.int32)
    cells = np.empty((k, n))
    everywhere = np.ones(n, np.bool_)
    n_varying = 0
    for c in range(k):
        if is_categorical[columns[c]]:
            n_levels[c] = _level_view(codes[columns[c]], rows, level[c])
            n_known[c] = np.sum(level[c] >= 0)
            kind[c] = _LEVELS if n_levels[c] > 1 else _CONSTANT
        else:
            for i in range(n):
                cells[c, i] = values[columns[c], rows[i]]
                n_known[c] += not math.isnan(cells[c, i])
            order[c] = np.argsort(cells[c])  # missing cells come last
            longest = _numeric_view(cells[c], order[c, : n_known[c]], level[c])
            if longest == n_known[c]:
                kind[c] = _CONSTANT
            elif longest > _HEAVY * n_known[c]:
                kind[c], n_levels[c] = _LEVELS, 2
            else:
                kind[c] = _NUMERIC
                _, n_scores[c] = rank_scores(cells[c], order[c, : n_known[c]], everywhere, linear[c], bent[c])
        n_varying += kind[c] != _CONSTANT
    threshold = significance / max(n_varying * (n_varying - 1) // 2, 1)
    parent = np.arange(k).astype(np.int32)
    common, common_level = np.empty(n, np.bool_), np.empty(n, np.int32)
    scores = np.empty((4, n))
    for a in range(k):
        for b in range(a + 1, k):
            if kind[a] == _CONSTANT or kind[b] == _CONSTANT or _root(parent, a) == _root(parent, b):
                continue
            complete = n_known[a] == n and n_known[b] == n
            if kind[a] == _LEVELS and kind[b] == _LEVELS:
                counts = np.zeros((n_levels[a], n_levels[b]))
                for i in range(n):
                    if level[a, i] >= 0 and level[b, i] >= 0:
                        counts[level[a, i], level[b, i]] += 1.0
                p = table_p_value(counts)
            elif complete and kind[a] == kind[b]:
                p = numeric_p_value(n, linear[a], bent[a], n_scores[a], linear[b], bent[b], n_scores[b])
            else:
                x, y = (a, b) if kind[a] == _NUMERIC else (b, a)
                for i in range(n):
                    known_y = level[y, i] >= 0  # of numeric columns, too
                    common[i] = level[x, i] >= 0 and known_y
                    common_level[i] = level[y, i] if common[i] else -1
                if complete:
                    p = mixed_p_value(n, linear[x], bent[x], n_scores[x], level[y], n_levels[y])
                else:
                    m, n_x = rank_scores(cells[x], order[x, : n_known[x]], common, scores[0], scores[1])
                    if kind[y] == _LEVELS:
                        p = mixed_p_value(m, scores[0], scores[1], n_x, common_level, n_levels[y])
                    else:
                        _, n_y = rank_scores(cells[y], order[y, : n_known[y]], common, scores[2], scores[3])
                        p = numeric_p_value(m, scores[0], scores[1], n_x, scores[2], scores[3], n_y)
            if p < threshold:
                a_root, b_root = _root(parent, a), _root(parent, b)
                parent[max(a_root, b_root)] = min(a_root, b_root)
    for c in range(k):
        parent[c] = _root(parent, c)
    return parent


@array_kernel
def _points(values, codes, is_categorical, centre, unit, n_levels, rows, columns):
    """Cells as points (n, D): numbers in units, levels as indicators in units, about their means, missing ones at 0."""
    n = rows.shape[0]
    width = 0
    for j in columns:
        width += n_levels[j] if is_categorical[j] else 1
    points = np.zeros((n, width))
    at = 0
    for j in columns:
        n_here = n_levels[j] if is_categorical[j] else 1
        total, n_known = np.zeros(n_here), 0
        for i in range(n):
            if is_categorical[j]:
                if codes[j, rows[i]] >= 0:
                    points[i, at + codes[j, rows[i]]] = 1.0 / unit[j]
                    total[codes[j, rows[i]]] += 1.0 / unit[j]
                    n_known += 1
            elif not math.isnan(values[j, rows[i]]):
                points[i, at] = (values[j, rows[i]] - centre[j]) / unit[j]
                total[0] += points[i, at]
                n_known += 1
        for i in range(n):
            if not math.isnan(values[j, rows[i]]):
                for c in range(n_here):
                    points[i, at + c] -= total[c] / n_known
        at += n_here
    return points


@kernel
def _distance(x, y):
    total = 0.0
    for c in range(x.shape[0]):
        total += (x[c] - y[c]) ** 2
    return total


@array_kernel
def two_means(points, min_rows, state):
    """Two clusters of points (n, D): k-means with k-means++ starts (Arthur and Vassilvitskii 2007), the best of a few.

    Returns
    -------
    bool array (n,)
        Cluster of each point; all False if no start led to clusters of at least ``min_rows`` points each.
    """
    n, width = points.shape
    best, best_loss = np.zeros(n, np.bool_), math.inf
    near = np.empty(n)
    for _ in range(_RESTARTS):
        middle = np.empty((2, width))
        middle[0] = points[below(state, n)]
        total = 0.0
        for i in range(n):
            near[i] = _distance(points[i], middle[0])
            total += near[i]
        if not total > 0.0:
            break
        draw = uniform(state) * total
        second = 0
        for i in range(n):
            if near[i] > 0.0:
                second = i
                draw -= near[i]
                if draw <= 0.0:
                    break
        middle[1] = points[second]
        side = np.zeros(n, np.bool_)
        loss, size = 0.0, 0
        for iteration in range(_MAX_ITERATIONS):
            loss, size, changed = 0.0, 0, iteration == 0
            for i in range(n):
                first, other = _distance(points[i], middle[0]), _distance(points[i], middle[1])
                changed |= side[i] != (other < first)
                side[i] = other < first
                size += side[i]
                loss += min(first, other)
            if not changed or size == 0 or size == n:
                break
            middle[:] = 0.0
            for i in range(n):
                middle[int(side[i])] += points[i]
            middle[0] /= n - size
            middle[1] /= size
        if min(size, n - size) >= min_rows and loss < best_loss:
            best, best_loss = side, loss
    return best


@array_kernel
def _sort_columns(columns, label):
    """Sort columns in place: those alone in their component first, then one component after the other.

    Returns the ends (of the columns alone, of the first component, ...).
    """
    k = columns.shape[0]
    size = np.zeros(k, np.int64)
    for c in label:
        size[c] += 1
    old = columns.copy()
    end = np.zeros(1 + np.sum(size > 1), np.int64)
    at = 0
    for c in range(k):
        if size[label[c]] == 1:
            columns[at] = old[c]
            at += 1
    end[0] = at
    group = 1
    for first in range(k):
        if size[first] > 1:
            for c in range(k):
                if label[c] == first:
                    columns[at] = old[c]
                    at += 1
            end[group] = at
            group += 1
    return end


@array_kernel
def _part_rows(rows, side, weight):
    """Sort rows in place, those on side False first; the log shares of the two sides in the weight."""
    old = rows.copy()
    at = np.array([0, rows.shape[0] - np.sum(side)])
    share = np.zeros(2)
    for i in range(rows.shape[0]):
        s = int(side[i])
        rows[at[s]] = old[i]
        at[s] += 1
        share[s] += weight[old[i]]
    return np.log(share / share.sum())


@entry
def learn_leaf(
    values, codes, is_categorical, centre, unit, n_levels, rows, weight, n_apart, columns, min_rows, significance, state
):
    """Circuit over all d columns of the rows of one leaf.

    Parameters
    ----------
    values : float64 array (d, n_all), codes : int32 array (d, n_all), is_categorical : uint8 array (d,)
    centre, unit : float64 arrays (d,), n_levels : int32 array (d,)
        What makes columns comparable in the clustering.
    rows : int32 array (n,), columns : int32 array (d,)
        Rows of the leaf; all columns, of which the first ``n_apart`` are left out of the structure. Both are
        reordered.
    weight : float64 array (n_all,)

    Returns
    -------
    node_kind, node_end, node_log_weight : arrays (q,)
        In preorder; no node if there is no sum among them, so that the leaf is one product.
    scope : uint8 array (f, d), group_rows : int32 array (m,), group_start : int64 array (f + 1,)
        Columns, and rows, of the FACTORS nodes.
    """
    n, d = rows.shape[0], columns.shape[0]
    # The FACTORS nodes are disjoint in the table, each of at least min_rows rows (or all) and a column.
    most = max(n // min_rows, 1) * d
    kind, n_children, log_weight = np.empty(2 * most, np.uint8), np.zeros(2 * most, np.int64), np.zeros(2 * most)
    scope = np.zeros((most, d), np.uint8)
    group_rows, group_start = np.empty(n * d, np.int32), np.zeros(most + 1, np.int64)
    # Nodes to come: row and column ranges, state, parent. Ranges are reordered inside, so each keeps its content.
    stack, stack_log_weight = np.empty((2 * most, 6), np.int64), np.zeros(2 * most)
    stack[0] = np.array([0, n, 0, d, _OPEN, -1])
    in_rest = np.zeros(d, np.bool_)  # columns of the FACTORS node that comes last under the product at work
    waiting, q, f, n_sums = 1, 0, 0, 0
    while waiting > 0:
        waiting -= 1
        r0, r1, c0, c1, known, parent = stack[waiting]
        log_weight[q] = stack_log_weight[waiting]
        n_children[q] = 0
        if known == _OPEN and r1 - r0 >= 2 * min_rows:
            inside = columns[c0 + n_apart : c1] if q == 0 else columns[c0:c1]
            label = components(values, codes, is_categorical, rows[r0:r1], inside, significance)
            end = _sort_columns(inside, label) + (c1 - inside.shape[0])
            if end[0] == c0 and len(end) == 2:
                known = _CONNECTED
            elif len(end) > 1:
                kind[q] = PRODUCT
                n_children[q] = len(end)
                in_rest[columns[c0 : end[0]]] = True
                stack[waiting] = np.array([r0, r1, c0, c1, _REST, q])
                for g in range(1, len(end)):
                    stack[waiting + len(end) - g] = np.array([r0, r1, end[g - 1], end[g], _CONNECTED, q])
                stack_log_weight[waiting : waiting + len(end)] = 0.0
                waiting += len(end)
                q += 1
                continue
        if known == _CONNECTED:
            inside = columns[c0:c1]
            points = _points(values, codes, is_categorical, centre, unit, n_levels, rows[r0:r1], inside)
            side = two_means(points, min_rows, state)
            middle = r1 - np.sum(side)
            if middle < r1:
                kind[q] = SUM
                n_sums += 1
                n_children[q] = 2
                log_share = _part_rows(rows[r0:r1], side, weight)
                stack[waiting] = np.array([middle, r1, c0, c1, _OPEN, q])
                stack[waiting + 1] = np.array([r0, middle, c0, c1, _OPEN, q])
                stack_log_weight[waiting], stack_log_weight[waiting + 1] = log_share[1], log_share[0]
                waiting += 2
                q += 1
                continue
            if parent >= 0 and kind[parent] == PRODUCT:  # no clusters: to the columns that are alone
                in_rest[columns[c0:c1]] = True
                n_children[parent] -= 1
                continue
        if known == _REST:
            if not np.any(in_rest[columns[c0:c1]]):
                n_children[parent] -= 1
                continue
            if parent == q - 1:  # no other child
                q, n_children[parent] = parent, 0
        for j in columns[c0:c1]:
            scope[f, j] = in_rest[j] or known != _REST
            in_rest[j] = False
        kind[q] = FACTORS
        group_start[f + 1] = group_start[f] + r1 - r0
        group_rows[group_start[f] : group_start[f + 1]] = rows[r0:r1]
        f += 1
        q += 1
    if n_sums == 0:
        q, f = 0, 0
    node_end = np.empty(q, np.int32)
    for node in range(q - 1, -1, -1):
        last = node + 1
        for _ in range(n_children[node]):
            last = node_end[last]
        node_end[node] = last
    return kind[:q], node_end, log_weight[:q], scope[:f], group_rows[: group_start[f]], group_start[: f + 1]
