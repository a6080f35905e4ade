"""Kernel: where rows end in a tree of the node table."""

from __future__ import annotations

import numpy as np

from ..models.box_forest.descent_kernels import goes_left
from ..runtime.compile import entry, kernel
from ..runtime.random_kernels import uniform


@entry
def route_by_draws(trees, values, weight, state, scratch, out):
    """Leaf of each row of ``values`` (d, n) in one tree, into ``out``; missing values draw a side by ``weight``."""
    first, spare = scratch.first, scratch.spare
    for k in range(scratch.begin.shape[0]):
        node = first + k
        begin, end = scratch.begin[k], scratch.end[k]
        rows = scratch.rows[begin:end]
        left, right = trees.left[node], trees.right[node]
        if left < 0:
            for i in rows:
                out[i] = trees.leaf[node]
            continue
        x = values[trees.feature[node]]
        share = share_left(trees, node, x, rows, weight)
        n_left = 0
        n_right = 0
        for i in rows:
            is_left = uniform(state) < share if np.isnan(x[i]) else goes_left(trees, node, x[i])
            if is_left:
                rows[n_left] = i
                n_left += 1
            else:
                spare[n_right] = i
                n_right += 1
        for at in range(n_right):
            rows[n_left + at] = spare[at]
        middle = begin + n_left
        scratch.begin[left - first], scratch.end[left - first] = begin, middle
        scratch.begin[right - first], scratch.end[right - first] = middle, end


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
