"""Kernels of LearnSPN: rows in two groups, by k-means on the columns' scores."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import array_kernel, kernel
from ...ground.random_kernels import below, uniform

_RESTARTS = 3
_MAX_ITERATIONS = 50


@array_kernel
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
