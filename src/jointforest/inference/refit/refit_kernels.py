"""Kernels: how much of the rows' weight is expected in leaves, and in pairs of leaves, of an ensemble."""

import math

import numpy as np

from ...runtime.compile import entry, kernel
from ..expectation.cell_kernels import advance, end_node, weigh_combinations
from ..expectation.component_kernels import COMPONENTS_AT_ONCE
from ..expectation.descent_kernels import descend, load_block, row_sum, start_row
from ..expectation.pair_kernels import copy_masses, lift_restriction, restrict_to_leaf


@kernel
def add_pair(a, b, mass, is_mutual, sums):
    """Add what is in both leaves to the matrix; to the product if that is empty."""
    value, matrix, product = sums.value, sums.matrix, sums.product
    if matrix.shape[0] > 0:
        matrix[a, b] += mass
        return
    for k in range(value.shape[1]):
        product[a, k] += mass * value[b, k]
        if is_mutual:
            product[b, k] += mass * value[a, k]


# ---- Kernels: for pairs of leaves of an ensemble, how much of the rows' weight is expected to be in both.


@entry
def leaf_pair_rows(arrays, rows, first, post, weight, sums, scratch, narrow):
    """Add weight times P(in leaf a and in leaf b | known cells) of rows to ``sums.matrix`` (L, L), or its product."""
    # Without a matrix, times ``sums.value`` (L, K) of one leaf to ``sums.product`` (L, K) of the other. ``sums.tree``
    # and ``sums.stop`` restrict the pairs to leaves a of one tree and b of earlier trees; -1 means all trees.
    residual, active = scratch.residual, scratch.active
    begin, end = (0, residual.start.shape[0] - 1) if sums.tree < 0 else (sums.tree, sums.tree + 1)
    for at in range(post.log_evidence.shape[0]):
        row = first + at
        if post.log_evidence[at] == -math.inf or weight[row] == 0.0:
            continue
        _, n_used = start_row(arrays, rows, row, post, at, scratch)
        for block in range(0, active.n[0], COMPONENTS_AT_ONCE):
            n, _ = load_block(arrays, rows.evidence, n_used, block, scratch)
            copy_masses(arrays.regions, residual.used, n_used, -1, n, scratch.mass, narrow)
            for t in range(begin, end):
                for k in range(residual.start[t], residual.start[t + 1]):
                    if residual.right[k] >= 0:
                        continue
                    n_box = restrict_to_leaf(arrays, k, block, n, n_used, weight[row], scratch, narrow)
                    total = row_sum(scratch.vector, 0, n)
                    if total > 0.0:
                        add_leaf(arrays, n_used, t, k, n, total, sums, scratch, narrow)
                    lift_restriction(arrays, n_box, n, n_used, scratch, narrow)


@kernel
def add_leaf(arrays, n_used, t, k, n, total, sums, scratch, narrow):
    """Add the leaf at place k of tree t, of probability ``total``, with itself and with the leaves of other trees."""
    residual, leaf_of, is_mutual = scratch.residual, arrays.splits.leaf, sums.tree < 0
    a = leaf_of[residual.node[k]]
    if is_mutual:
        add_pair(a, a, total, False, sums)
    for u in range(n_used):
        scratch.root_mass[u] = math.nan
    for s in range(t + 1 if is_mutual else 0, residual.start.shape[0] - 1 if is_mutual else sums.stop):
        first, end = residual.start[s], residual.start[s + 1]
        if s == t:
            continue
        if residual.right[first] < 0:
            add_pair(a, leaf_of[residual.node[first]], total, is_mutual, sums)
            continue
        for p in range(first, end):
            residual.mass[p] = 0.0
        descend(arrays, s, narrow, n, total, 0.0, scratch)
        for p in range(first, end):
            if residual.right[p] < 0 and residual.mass[p] > 0.0:
                add_pair(a, leaf_of[residual.node[p]], residual.mass[p], is_mutual, sums)


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
