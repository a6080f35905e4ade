"""Kernel: where rows end in a tree of the node table."""

from __future__ import annotations

import numpy as np

from ...ground.compile import entry, kernel
from ...ground.random_kernels import stream, uniform


@entry
def arrive(trees, first, stop, values, weight, seed, number, out):
    """Leaf of every row of ``values`` (d, n) in the tree of nodes first..stop-1, into ``out`` (int32, n).

    A row without the split's value goes left by a draw, as often as the node's rows with value do by ``weight`` (n,).
    """
    n = values.shape[1]
    rows = np.arange(n).astype(np.int32)
    spare = np.empty(n, np.int32)
    begin = np.zeros(stop - first, np.int64)
    end = np.zeros(stop - first, np.int64)
    end[0] = n
    state = stream(seed, number)
    for node in range(first, stop):
        a, b = begin[node - first], end[node - first]
        left, right = trees.left[node], trees.right[node]
        if left < 0:
            for i in rows[a:b]:
                out[i] = trees.leaf[node]
            continue
        x = values[trees.feature[node]]
        share = share_left(trees, node, x, rows[a:b], weight)
        middle = a
        n_right = 0
        for k in range(a, b):
            i = rows[k]
            is_left = uniform(state) < share if np.isnan(x[i]) else goes_left(trees, node, x[i])
            if is_left:
                rows[middle] = i
                middle += 1
            else:
                spare[n_right] = i
                n_right += 1
        rows[middle:b] = spare[:n_right]
        begin[left - first], end[left - first] = a, middle
        begin[right - first], end[right - first] = middle, b


@kernel
def share_left(trees, node, x, rows, weight):
    """Share of the rows with value that go left, by weight; one half if there are none."""
    known = 0.0
    known_left = 0.0
    for i in rows:
        if not np.isnan(x[i]):
            known += weight[i]
            if goes_left(trees, node, x[i]):
                known_left += weight[i]
    return known_left / known if known > 0.0 else 0.5


@kernel
def goes_left(trees, node, x):
    """Whether a value, or a level's code, goes left."""
    at = trees.levels_at[node]
    if at < 0:
        return x <= trees.threshold[node]
    code = np.int64(x)
    return (trees.left_levels[at + code // 64] >> np.uint64(code % 64)) & np.uint64(1) == np.uint64(1)
