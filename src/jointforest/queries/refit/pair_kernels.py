"""Kernels: for pairs of leaves of an ensemble, how much of the rows' weight is expected to be in both."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import entry, kernel
from ..expectation.active_kernels import BLOCK
from ..expectation.descent_kernels import descend, row_sum
from ..expectation.leaf_probability_kernels import load, start_row
from ..expectation.pair_kernels import copy_masses, lift_restriction, restrict_to_leaf
from .circuit_kernels import add_pair, circuit_pairs


@entry
def pair_rows(arrays, rows, first, post, weight, sums, scratch, pairs):
    """Add weight times P(in leaf a and in leaf b | known cells) of the rows of a posterior (rows first.. of all).

    To ``sums.matrix`` (L, L) at [a, b], each pair once, and pairs of a leaf and itself; if it is empty, times
    ``sums.value`` (L, K) of leaf b to ``sums.product`` (L, K) of leaf a, and the other way round. Of all trees if
    ``sums.tree`` is -1; else only of leaves a of this tree and b of the trees before ``sums.stop``, itself left out,
    to the ``product`` of a.
    """
    residual, active, narrow = scratch.residual, scratch.active, pairs.narrow
    begin, end = (0, residual.start.shape[0] - 1) if sums.tree < 0 else (sums.tree, sums.tree + 1)
    for at in range(post.log_evidence.shape[0]):
        row = first + at
        if post.log_evidence[at] == -math.inf or weight[row] == 0.0:
            continue
        _, n_used = start_row(arrays, rows, row, post, at, scratch)
        n_products = active.n_products[0]
        for block in range(0, n_products, BLOCK):
            n, _ = load(arrays, rows.evidence, n_used, block, scratch)
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
        for i in range(n_products, active.n[0]):
            share = weight[row] * active.weight[i]
            circuit_pairs(arrays, rows.evidence, n_used, active.component[i], share, sums, scratch, pairs)


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
    """Mean value (N, K), by mass, of the leaves below each node; at nodes without mass that of the nearest node above.

    ``mass`` (L,) and ``value`` (L, K) are of leaves.
    """
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
