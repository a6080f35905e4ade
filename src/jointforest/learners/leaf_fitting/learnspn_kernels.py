"""Kernels of LearnSPN (Gens and Domingos 2013): the circuit of one leaf. See docs/concepts/learnspn-leaves.md."""

import math

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.random_kernels import below, uniform
from .independence_kernels import mixed_p_value, numeric_p_value, rank_scores, table_p_value

SUM, PRODUCT, FACTORS = 0, 1, 2
"""Kinds of nodes: mixture of its children, product of its children, product of one distribution for each column."""

# ---- Kernels of LearnSPN: which columns depend on each other in some rows, by pairwise tests of independence.

_CONSTANT, _NUMERIC, _LEVELS = 0, 1, 2
"""How a column is tested in some rows: not at all, by its ranks, or by its levels."""
_HEAVY = 2.0 / 3.0
"""A value with a larger share of a numeric column is tested as two levels: mid-ranks would hang on the few others."""
_RUN = 12
"""Runs of so many values are sorted by insertion, before they are merged."""


@kernel
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


@kernel
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


@kernel
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
        _, n_scores = rank_scores(x, order, views.everywhere, views.linear[c][:n], views.quadratic[c][:n])
        views.n_scores[c] = n_scores


@kernel
def _levels_p_value(views, n, a, b):
    """Independence of two columns of levels."""
    counts = np.zeros((views.n_levels[a], views.n_levels[b]))
    for i in range(n):
        if views.level[a, i] >= 0 and views.level[b, i] >= 0:
            counts[views.level[a, i], views.level[b, i]] += 1.0
    return table_p_value(counts)


@kernel
def _common_p_value(views, n, x, y):
    """Independence of a numeric column x and a column y, of which cells are missing, on the rows that have both."""
    common, common_level, scores = views.common[:n], views.common_level[:n], views.common_scores
    for i in range(n):
        known_y = views.level[y, i] >= 0  # of numeric columns, too
        common[i] = views.level[x, i] >= 0 and known_y
        common_level[i] = views.level[y, i] if common[i] else -1
    linear_x, quadratic_x = scores[0][:n], scores[1][:n]
    m, n_x = rank_scores(views.values[x][:n], views.order[x][: views.n_known[x]], common, linear_x, quadratic_x)
    if views.kind[y] == _LEVELS:
        return mixed_p_value(m, linear_x, quadratic_x, n_x, common_level, views.n_levels[y])
    linear_y, quadratic_y = scores[2][:n], scores[3][:n]
    _, n_y = rank_scores(views.values[y][:n], views.order[y][: views.n_known[y]], common, linear_y, quadratic_y)
    return numeric_p_value(m, linear_x, quadratic_x, n_x, linear_y, quadratic_y, n_y)


@kernel
def _pair_p_value(views, n, a, b):
    """Independence of two columns that vary on the n rows in view."""
    if views.kind[a] == _LEVELS and views.kind[b] == _LEVELS:
        return _levels_p_value(views, n, a, b)
    x, y = (a, b) if views.kind[a] == _NUMERIC else (b, a)
    if views.n_known[a] < n or views.n_known[b] < n:
        return _common_p_value(views, n, x, y)
    linear_x, quadratic_x, n_x = views.linear[x][:n], views.quadratic[x][:n], views.n_scores[x]
    if views.kind[y] == _LEVELS:
        return mixed_p_value(n, linear_x, quadratic_x, n_x, views.level[y][:n], views.n_levels[y])
    return numeric_p_value(
        n, linear_x, quadratic_x, n_x, views.linear[y][:n], views.quadratic[y][:n], views.n_scores[y]
    )


@kernel
def components(cells, rows, columns, significance, views):
    """Components (int32 (k,), the number of the first column) of the graph of pairs of columns that are dependent."""
    # Bonferroni: a pair is dependent if its p-value is below ``significance`` / number of pairs of columns that vary.
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


# ---- Kernels of LearnSPN: rows in two groups, by k-means on the columns' scores.

_RESTARTS = 3
"""Starts of k-means, of which the best is taken: one start alone is often a poor minimum."""
_MAX_ITERATIONS = 50
"""Most rounds of k-means, which with two clusters nearly always ends long before."""


@kernel
def points_of(cells, rows, columns):
    """Cells as points (n, D): numbers in units, levels as indicators in units, about their means, missing ones at 0."""
    values, codes, is_categorical = cells.values, cells.codes, cells.is_categorical
    centre, unit, n_levels = cells.centre, cells.unit, cells.n_levels
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


@kernel
def two_means(points, min_rows, state):
    """Cluster of each point (n, D), bool (n,), by k-means with k-means++ starts (Arthur and Vassilvitskii 2007), the
    best of a few; all False if no start led to clusters of at least ``min_rows`` points each."""
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


_OPEN, _CONNECTED, _REST = 0, 1, 2
"""What is known of a node to come: nothing, that its columns do not split, that it takes what a product has left."""


@kernel
def _sort_columns(columns, label):
    """Sort columns in place: those alone in their component first, then one component after the other; their ends."""
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


@kernel
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


@kernel
def _push(nodes, waiting, r0, r1, c0, c1, known, parent, log_weight):
    """Put a node to come on top of ``waiting`` others; how many wait."""
    task = nodes.stack[waiting]
    task[0], task[1], task[2], task[3], task[4], task[5] = r0, r1, c0, c1, known, parent
    nodes.stack_log_weight[waiting] = log_weight
    return waiting + 1


@kernel
def _begin_product(nodes, waiting, q, r0, r1, c0, columns, end):
    """Node q is the product of groups of columns, which end at ``end``; how many nodes wait."""
    # The first group, of columns that are alone, is for the FACTORS node that comes last.
    n_groups = end.shape[0]
    nodes.kind[q] = PRODUCT
    nodes.n_children[q] = n_groups
    for k in range(c0, end[0]):
        nodes.in_rest[columns[k]] = True
    waiting = _push(nodes, waiting, r0, r1, c0, end[n_groups - 1], _REST, q, 0.0)
    for g in range(n_groups - 1, 0, -1):
        waiting = _push(nodes, waiting, r0, r1, end[g - 1], end[g], _CONNECTED, q, 0.0)
    return waiting


@kernel
def _count_rest(nodes, columns):
    n = 0
    for j in columns:
        n += nodes.in_rest[j]
    return n


@kernel
def _add_factors(nodes, q, f, rows, columns, is_rest):
    """Node q is FACTORS node f, of these rows and columns, or of those of the columns that are in the rest."""
    for j in columns:
        nodes.scope[f, j] = nodes.in_rest[j] or not is_rest
        nodes.in_rest[j] = False
    nodes.kind[q] = FACTORS
    first = nodes.group_start[f]
    for i in range(rows.shape[0]):
        nodes.group_rows[first + i] = rows[i]
    nodes.group_start[f + 1] = first + rows.shape[0]


@kernel
def _find_ends(nodes, q):
    """Ends of the subtrees of the q nodes, from how many children each has."""
    for node in range(q - 1, -1, -1):
        last = node + 1
        for _ in range(nodes.n_children[node]):
            last = nodes.end[last]
        nodes.end[node] = last


@entry
def learn_leaf(cells, rows, columns, n_apart, min_rows, significance, views, nodes, state):
    """Circuit over all d columns of the rows of one leaf, into ``nodes``; how many nodes and FACTORS nodes there are.
    There are none if no sum is among them, so that the leaf is one product. The first ``n_apart`` of ``columns`` (d,)
    are left out of the structure. ``rows`` (n,) and ``columns`` are reordered; ``views`` is scratch for n rows."""
    waiting = _push(nodes, 0, 0, rows.shape[0], 0, columns.shape[0], _OPEN, -1, 0.0)
    q, f, n_sums = 0, 0, 0
    while waiting > 0:
        waiting -= 1
        task = nodes.stack[waiting]
        r0, r1, c0, c1, known, parent = task[0], task[1], task[2], task[3], task[4], task[5]
        nodes.log_weight[q] = nodes.stack_log_weight[waiting]
        nodes.n_children[q] = 0
        here = rows[r0:r1]
        if known == _OPEN and r1 - r0 >= 2 * min_rows:
            inside = columns[c0 + n_apart : c1] if q == 0 else columns[c0:c1]
            end = _sort_columns(inside, components(cells, here, inside, significance, views)) + (c1 - inside.shape[0])
            if end[0] == c0 and len(end) == 2:
                known = _CONNECTED
            elif len(end) > 1:
                waiting = _begin_product(nodes, waiting, q, r0, r1, c0, columns, end)
                q += 1
                continue
        if known == _CONNECTED:
            side = two_means(points_of(cells, here, columns[c0:c1]), min_rows, state)
            middle = r1 - np.sum(side)
            if middle < r1:
                nodes.kind[q] = SUM
                nodes.n_children[q] = 2
                n_sums += 1
                log_share = _part_rows(here, side, cells.weight)
                waiting = _push(nodes, waiting, middle, r1, c0, c1, _OPEN, q, log_share[1])
                waiting = _push(nodes, waiting, r0, middle, c0, c1, _OPEN, q, log_share[0])
                q += 1
                continue
            if parent >= 0 and nodes.kind[parent] == PRODUCT:  # no clusters: to the columns that are alone
                for j in columns[c0:c1]:
                    nodes.in_rest[j] = True
                nodes.n_children[parent] -= 1
                continue
        if known == _REST:
            if _count_rest(nodes, columns[c0:c1]) == 0:
                nodes.n_children[parent] -= 1
                continue
            if parent == q - 1:  # no other child
                q, nodes.n_children[parent] = parent, 0
        _add_factors(nodes, q, f, here, columns[c0:c1], known == _REST)
        q, f = q + 1, f + 1
    if n_sums == 0:
        return 0, 0
    _find_ends(nodes, q)
    return q, f
