"""Kernel of LearnSPN: rows in two groups, by k-means."""

import math

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.random_kernels import below, uniform

_RESTARTS = 3
"""Starts of k-means, of which the best is taken: one start alone is often a poor minimum."""
_MAX_ITERATIONS = 50
"""Most rounds of k-means, which with two clusters nearly always ends long before."""


@kernel
def _distance(x, y):
    total = 0.0
    for c in range(x.shape[0]):
        total += (x[c] - y[c]) ** 2
    return total


@entry
def two_means(points, min_rows, state):
    """Cluster of each point (n, D), bool (n,), by k-means++ (Arthur, Vassilvitskii 2007); all False: none found."""
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
