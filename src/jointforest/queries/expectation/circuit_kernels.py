"""Kernels: masses of leaves in a component whose columns depend on each other, up its circuit."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import array_kernel, kernel
from ...leaves.table import FACTORS, PRODUCT, SUM
from .region_kernels import row_mass


@array_kernel
def descend_circuit(columns, leaves, evidence, marks, components, splits, left, n_used, c, weight, value, region):
    """Add the mass of a component with dependent columns that arrives at each leaf, leaf by leaf, up its circuit.

    ``value`` is what `find_live` says of the nodes; ``region`` (d, 2) is scratch.
    """
    first = components.node[c]
    size = leaves.node_end[first] - first
    mass = np.zeros((size, n_used), np.float64)
    share, fit = np.zeros(size, np.float64), np.empty(size, np.float64)
    for q in range(first, first + size):
        if leaves.node_kind[q] == FACTORS:
            for u in range(n_used):
                j = marks.column[left.used[u]]
                if j < 0 or leaves.scope[leaves.node_scope[q], j]:
                    mass[q - first, u] = row_mass(columns, leaves, evidence, marks, leaves.node_row[q], left.used[u])
    circuit_shares(leaves, first, size, value, share)
    split_columns = np.empty(region.shape[0], np.int32)
    for tree in range(left.start.shape[0] - 1):
        for k in range(left.start[tree], left.start[tree + 1]):
            if left.right[k] >= 0:
                continue
            n_split = 0
            region[:, 1] = -1
            below, k_above = k, left.above[k]
            while k_above >= 0:  # the nearest split of a column tells its region
                node = left.node[k_above]
                j = splits.column[node]
                if region[j, 1] < 0:
                    is_left = below == k_above + 1
                    region[j, 0] = left.local[splits.lo[node] if is_left else splits.mid[node]]
                    region[j, 1] = left.local[splits.mid[node] if is_left else splits.hi[node]]
                    split_columns[n_split] = j
                    n_split += 1
                below, k_above = k_above, left.above[k_above]
            left.mass[k] += weight * circuit_fit(leaves, first, size, mass, share, fit, region, split_columns, n_split)


@kernel
def circuit_shares(leaves, first, size, value, share):
    """Write the part of each child of a SUM node in its sum, given the evidence, into ``share`` (size,)."""
    for q in range(first, first + size):
        if leaves.node_kind[q] == SUM and value[q] > -math.inf:
            child = q + 1
            while child < leaves.node_end[q]:
                share[child - first] = math.exp(leaves.node_log_weight[child] + value[child] - value[q])
                child = leaves.node_end[child]


@kernel
def circuit_fit(leaves, first, size, mass, share, fit, region, split_columns, n_split):
    """P(regions | evidence) of a circuit's node ``first``; ``fit`` gets that of each node below."""
    for at in range(size - 1, -1, -1):
        q = first + at
        child, end = q + 1, leaves.node_end[q]
        if leaves.node_kind[q] == FACTORS:
            total = 1.0
            for i in range(n_split):
                j = split_columns[i]
                if leaves.scope[leaves.node_scope[q], j]:
                    total *= max(mass[at, region[j, 1]] - mass[at, region[j, 0]], 0.0)
        elif leaves.node_kind[q] == PRODUCT:
            total = 1.0
            while child < end:
                total *= fit[child - first]
                child = leaves.node_end[child]
        else:
            total = 0.0
            while child < end:
                total += share[child - first] * fit[child - first]
                child = leaves.node_end[child]
        fit[at] = total
    return fit[0]
