"""Kernel: completions of rows that lack few columns, all of them, as leaves of an ensemble."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import entry, kernel
from ..expectation.cell_kernels import advance, end_node, weigh_combinations


@entry
def cell_leaves(arrays, rows, first, post, most, scratch, grid):
    """All combinations of cells of the missing columns, of the rows with at most ``most``.

    Returns
    -------
    count : number of combinations of each row, -1 where there are more
    probability : of each combination
    leaf : the leaf of each combination in each tree (combinations, T)
    """
    n, n_trees = post.log_evidence.shape[0], arrays.splits.root.shape[0]
    count, probability = np.full(n, -1, np.int64), np.empty(n * most, np.float64)
    leaf = np.empty((n * most, n_trees), np.int32)
    end = 0
    for at in range(n):
        if post.log_evidence[at] == -math.inf:
            count[at] = 0
            continue
        count[at] = weigh_combinations(arrays, rows, first + at, post, at, most, scratch, grid)
        for combination in range(count[at]):
            probability[end] = grid.probability[combination]
            route(arrays.splits, scratch.residual, grid, leaf[end])
            advance(grid.cells, grid.combination)
            end += 1
    return count, probability[:end].copy(), leaf[:end].copy()


@kernel
def route(splits, residual, grid, out):
    """The leaf of the current combination of cells in each tree, into ``out`` (T,)."""
    for tree in range(residual.start.shape[0] - 1):
        out[tree] = splits.leaf[end_node(splits, residual, grid.cells, grid.combination, tree)]


@entry
def curvature(leaf, tree, output, shift, weight, share, out):
    """Add second derivatives of log-loss to ``out``, those of each pair of numbers of leaves once.

    A number of the v-th kind is added to output ``output[v]`` in the leaves of tree ``tree[v]``; its place is the
    leaf's number plus ``shift[v]``. ``share`` (N, K) are the probabilities of the outputs, ``leaf`` (N, T).
    """
    for i in range(leaf.shape[0]):
        for v in range(tree.shape[0]):
            a, p = leaf[i, tree[v]] + shift[v], share[i, output[v]]
            out[a, a] += weight[i] * p * (1.0 - p)
            for u in range(v + 1, tree.shape[0]):
                same = 1.0 if output[u] == output[v] else 0.0
                out[a, leaf[i, tree[u]] + shift[u]] += weight[i] * p * (same - share[i, output[u]])
