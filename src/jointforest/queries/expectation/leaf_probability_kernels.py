"""Kernels: how probable each leaf of an ensemble is, given a row's known cells, under a joint.

P(leaf | known cells) = sum over the joint's components c of P(c | known cells) * product over missing columns of the
mass of the leaf's box in c. Components come in blocks that stay in the processor's cache.
"""

from __future__ import annotations

import math

import numpy as np

from ...forest.posterior.weight_kernels import widened
from ...ground.compile import entry, kernel
from .active_kernels import BLOCK, find_active, gather_masses
from .circuit_kernels import descend_circuit
from .descent_kernels import descend
from .residual_kernels import find_residual


@kernel
def start_row(arrays, rows, row, post, at, scratch):
    """Find the residual trees and the components of a row; return the numbers of nodes and of used split regions."""
    n, n_used = find_residual(arrays.splits, rows, row, scratch.stack, scratch.residual)
    find_active(arrays, rows.evidence, row, post, at, 0.0, scratch)
    return n, n_used


@kernel
def load(arrays, evidence, n_used, first, scratch):
    """Gather a block of components, from the first on; return their number, rounded up to 8, and their weight."""
    vector, root_mass, weight = scratch.vector, scratch.root_mass, scratch.active.weight
    size = min(BLOCK, scratch.active.n_products[0] - first)
    gather_masses(arrays, evidence, n_used, first, size, scratch)
    for u in range(n_used):
        root_mass[u] = math.nan
    end, total = (size + 7) // 8 * 8, 0.0
    for i in range(end):
        vector[0, i] = weight[first + i] if i < size else 0.0
        total += vector[0, i]
    return end, total


@kernel
def arrive(arrays, evidence, tolerance, n, n_used, scratch):
    """Write the probability of each of the n nodes of the residual trees of a row (see `ResidualTrees.mass`)."""
    residual, active, splits, half_most = scratch.residual, scratch.active, arrays.splits, arrays.half_most
    for k in range(n):
        residual.mass[k] = 0.0
    blocks = (active.n_products[0] + BLOCK - 1) // BLOCK
    for b in range(blocks):
        end, total = load(arrays, evidence, n_used, b * BLOCK, scratch)
        for tree in range(splits.root.shape[0]):
            budget = 0.5 * tolerance * half_most[splits.root[tree]] / blocks
            descend(arrays, tree, scratch.mass, end, total, budget, scratch)
    for i in range(active.n_products[0], active.n[0]):
        descend_circuit(arrays, evidence, n_used, active.component[i], active.weight[i], scratch)


@kernel
def weight_to_drop(half, splits, residual, tolerance):
    """Posterior weight to leave out such that errors are at most half the tolerance of each output's range."""
    least = 1.0
    for k in range(half.shape[1]):
        whole, here = 0.0, 0.0
        for tree in range(splits.root.shape[0]):
            whole += half[splits.root[tree], k]
            here += half[residual.node[residual.start[tree]], k]
        if here > 0.0:
            least = min(least, 0.25 * tolerance * whole / here)
    return least


@entry
def expected_rows(arrays, rows, first, post, tolerance, scratch, out, error):
    """Expected sums over trees of rows first.. (those of the posterior), and bounds of their errors; both (n, K)."""
    residual, middle, half = scratch.residual, arrays.middle, arrays.half
    for at in range(post.log_evidence.shape[0]):
        row = first + at
        if post.log_evidence[at] == -math.inf:
            out[row], error[row] = math.nan, math.nan
            continue
        n, n_used = find_residual(arrays.splits, rows, row, scratch.stack, residual)
        most = weight_to_drop(half, arrays.splits, residual, tolerance) if tolerance > 0.0 else 0.0
        find_active(arrays, rows.evidence, row, post, at, most, scratch)
        arrive(arrays, rows.evidence, tolerance, n, n_used, scratch)
        dropped = scratch.active.dropped[0]
        for k in range(middle.shape[1]):
            total, wrong, low, high = 0.0, 0.0, 0.0, 0.0
            for p in range(n):
                total += residual.mass[p] * middle[residual.node[p], k]
                wrong += residual.mass[p] * half[residual.node[p], k]
            for tree in range(residual.start.shape[0] - 1):
                root = residual.node[residual.start[tree]]
                low += middle[root, k] - half[root, k]
                high += middle[root, k] + half[root, k]
            if dropped > 0.0:
                wrong += dropped * max(total - low, high - total)
            out[row, k], error[row, k] = total, wrong


@entry
def leaf_rows(arrays, rows, first, post, scratch):
    """Start, leaf and probability of the ensemble's leaves that rows first.. can reach."""
    residual, leaf_of = scratch.residual, arrays.splits.leaf
    start = np.zeros(post.log_evidence.shape[0] + 1, np.int64)
    leaf, probability = np.empty(1024, np.int32), np.empty(1024, np.float64)
    end = 0
    for at in range(post.log_evidence.shape[0]):
        if post.log_evidence[at] > -math.inf:
            n, n_used = start_row(arrays, rows, first + at, post, at, scratch)
            arrive(arrays, rows.evidence, 0.0, n, n_used, scratch)
            if end + n > leaf.shape[0]:
                wider = max(2 * leaf.shape[0], end + n)
                leaf, probability = widened(leaf, end, wider), widened(probability, end, wider)
            for p in range(n):
                if residual.mass[p] > 0.0 and residual.right[p] < 0:
                    leaf[end], probability[end] = leaf_of[residual.node[p]], residual.mass[p]
                    end += 1
        start[at + 1] = end
    return start, leaf[:end].copy(), probability[:end].copy()
