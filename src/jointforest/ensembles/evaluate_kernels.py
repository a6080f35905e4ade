"""Kernels: the leaves that rows reach in an ensemble, and the sums of what these leaves add."""

import numpy as np

from ..models.box_forest.descent_kernels import goes_left
from ..runtime.compile import entry, kernel
from ..runtime.random_kernels import uniform


@kernel
def row_goes_left(ensemble, node, X, other, i):
    """Whether row i of X and other (n, n_features) goes left at an inner node."""
    j = ensemble.feature[node]
    x = X[i, j]
    if x != x:
        return ensemble.other_left[node] if other[i, j] else ensemble.missing_left[node]
    return goes_left(ensemble, node, x)


@kernel
def _find_leaf(ensemble, node, X, other, i):
    """Leaf that row i of X and other (n, n_features) reaches from a node."""
    while ensemble.leaf[node] < 0:
        node = ensemble.left[node] if row_goes_left(ensemble, node, X, other, i) else ensemble.right[node]
    return ensemble.leaf[node]


@entry
def leaf_rows(ensemble, X, other, start, stop, out):
    """Leaf of rows start..stop-1 in each tree, into ``out`` (int32, (n, T))."""
    for tree in range(len(ensemble.root)):
        for i in range(start, stop):
            out[i, tree] = _find_leaf(ensemble, ensemble.root[tree], X, other, i)


@entry
def raw_rows(ensemble, X, other, start, stop, out):
    """Sums of rows start..stop-1, into ``out`` (float64, (n, K)); tree by tree, which the processor's cache likes."""
    for i in range(start, stop):
        for k in range(out.shape[1]):
            out[i, k] = ensemble.base[k]
    for tree in range(len(ensemble.root)):
        for i in range(start, stop):
            leaf = _find_leaf(ensemble, ensemble.root[tree], X, other, i)
            for k in range(out.shape[1]):
                out[i, k] += ensemble.value[leaf, k]


@kernel
def part_rows(ensemble, node, X, other, index, spare, first, stop):
    """Put the rows index[first:stop] that go left at an inner node before the others; return where these begin."""
    to, n_right = first, 0
    for k in range(first, stop):
        i = index[k]
        left = row_goes_left(ensemble, node, X, other, i)
        index[to], spare[n_right] = i, i  # no branch: which way a row goes cannot be guessed
        to += 1 if left else 0
        n_right += 0 if left else 1
    for k in range(n_right):
        index[to + k] = spare[k]
    return to


@entry
def block_rows(ensemble, X, other, same, index, spare, stack, out):
    """Sums of blocks of rows, into ``out`` (n, K); a block goes down a tree together until it must be divided."""
    m = index.shape[0]
    for block in range(same.shape[0]):
        for i in range(block * m, (block + 1) * m):
            for k in range(out.shape[1]):
                out[i, k] = ensemble.base[k]
        for tree in range(len(ensemble.root)):
            for i in range(m):
                index[i] = block * m + i
            stack[0, 0], stack[1, 0], stack[2, 0] = ensemble.root[tree], 0, m
            top = 1
            while top > 0:
                top -= 1
                node, first, stop = stack[0, top], stack[1, top], stack[2, top]
                while ensemble.leaf[node] < 0 and first < stop:
                    if stop - first == 1 or same[block, ensemble.feature[node]]:
                        is_left = row_goes_left(ensemble, node, X, other, index[first])
                        node = ensemble.left[node] if is_left else ensemble.right[node]
                        continue
                    middle = part_rows(ensemble, node, X, other, index, spare, first, stop)
                    stack[0, top], stack[1, top], stack[2, top] = ensemble.right[node], middle, stop
                    top += 1
                    node, stop = ensemble.left[node], middle
                leaf = ensemble.leaf[node]
                for at in range(first, stop):
                    for k in range(out.shape[1]):
                        out[index[at], k] += ensemble.value[leaf, k]


# ---- Kernel: where rows end in a tree of the node table.


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
