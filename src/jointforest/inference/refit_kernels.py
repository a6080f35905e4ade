"""Kernels: pairs of leaves of complete rows, cells of others and their leaves, and the curvature of log-loss."""

from __future__ import annotations

import math

import numpy as np

from ..runtime.compile import entry, kernel
from .expectation.cell_kernels import advance, end_node, weigh_combinations


@entry
def pair_leaves(leaf, weight, first, stop, matrix):
    """Add the weight of rows first..stop-1, whose leaves (n, T) are known, to ``matrix`` at [a, b], each pair once."""
    for i in range(first, stop):
        for t in range(leaf.shape[1]):
            for s in range(t, leaf.shape[1]):
                matrix[leaf[i, t], leaf[i, s]] += weight[i]


@entry
def means_above(left, right, leaf, mass, value):
    """Mean value (N, K), by mass (L,), of the leaves below each node, or below the nearest node above with mass."""
    n_nodes, n_outputs = leaf.shape[0], value.shape[1]
    here, mean = np.zeros(n_nodes, np.float64), np.zeros((n_nodes, n_outputs), np.float64)
    for node in range(n_nodes - 1, -1, -1):  # children come after their parent
        if leaf[node] >= 0:
            here[node] = mass[leaf[node]]
            for k in range(n_outputs):
                mean[node, k] = value[leaf[node], k]
            continue
        a, b = left[node], right[node]
        here[node] = here[a] + here[b]
        if here[node] > 0.0:
            share = here[a] / here[node]
            for k in range(n_outputs):
                mean[node, k] = (mean[a, k] * share if share > 0.0 else 0.0) + (
                    mean[b, k] * (1.0 - share) if share < 1.0 else 0.0
                )
    for node in range(n_nodes):
        if leaf[node] < 0:
            for child in (left[node], right[node]):
                if here[child] == 0.0:
                    for k in range(n_outputs):
                        mean[child, k] = mean[node, k]
    return mean


# ---- Kernel: completions of rows that lack few columns, all of them, as leaves of an ensemble.


@entry
def cell_leaves(arrays, rows, first, post, most, scratch, grid):
    """Combinations of cells of the missing columns: count by row (-1 above ``most``), probability, leaves (, T)."""
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
            _route(arrays.splits, scratch.residual, grid, leaf[end])
            advance(grid.cells, grid.combination)
            end += 1
    return count, probability[:end].copy(), leaf[:end].copy()


@kernel
def _route(splits, residual, grid, out):
    """The leaf of the current combination of cells in each tree, into ``out`` (T,)."""
    for tree in range(residual.start.shape[0] - 1):
        out[tree] = splits.leaf[end_node(splits, residual, grid.cells, grid.combination, tree)]


@entry
def curvature(leaf, tree, output, shift, weight, share, out):
    """Add second derivatives of log-loss to ``out``, each pair of leaf numbers once."""
    # A number of kind v goes to output ``output[v]`` in the leaves of tree ``tree[v]``, at the leaf's number plus
    # ``shift[v]``. ``share`` (N, K) are the probabilities of the outputs, ``leaf`` (N, T).
    for i in range(leaf.shape[0]):
        for v in range(tree.shape[0]):
            a, p = leaf[i, tree[v]] + shift[v], share[i, output[v]]
            out[a, a] += weight[i] * p * (1.0 - p)
            for u in range(v + 1, tree.shape[0]):
                same = 1.0 if output[u] == output[v] else 0.0
                out[a, leaf[i, tree[u]] + shift[u]] += weight[i] * p * (same - share[i, output[u]])
