"""Kernel: pairs of leaves of an ensemble in a component whose columns depend on each other, up its circuit."""

from __future__ import annotations

import numpy as np

from ...ground.compile import array_kernel, kernel
from ...leaves.table import FACTORS
from ..expectation.circuit_kernels import circuit_fit, circuit_shares
from ..expectation.pair_kernels import in_mark, leaf_region
from ..expectation.region_kernels import ONE, ZERO, row_mass


@array_kernel
def circuit_pairs(bound, evidence, room, n_used, c, weight, tree, stop, value, matrix, product):
    """`_refit.pair_rows` of one row and one component.

    Masses of marks have a row for each node of the circuit; after the marks each column has a place for the mass of
    what the first leaf leaves of it.
    """
    leaves, marks, left, splits = bound.leaves, bound.marks, room.left, bound.splits
    d, n_trees = bound.columns.slot.shape[0], splits.root.shape[0]
    first = bound.components.node[c]
    size = leaves.node_end[first] - first
    mass = np.zeros((size, n_used + d), np.float64)
    for q in range(first, first + size):
        if leaves.node_kind[q] == FACTORS:
            for u in range(n_used):
                j = marks.column[left.used[u]]
                if j < 0 or leaves.scope[leaves.node_scope[q], j]:
                    row = leaves.node_row[q]
                    mass[q - first, u] = row_mass(bound.columns, leaves, evidence, marks, row, left.used[u])
            mass[q - first, n_used:] = 1.0
    narrow = mass.copy()
    share, fit = np.zeros(size, np.float64), np.empty(size, np.float64)
    circuit_shares(leaves, first, size, room.value, share)
    region, region_both = np.empty((d, 2), np.int32), np.empty((d, 2), np.int32)
    split, split_both = np.empty(d, np.int32), np.empty(2 * d, np.int32)
    begin, end = (0, n_trees) if tree < 0 else (tree, tree + 1)
    for t in range(begin, end):
        for k in range(left.start[t], left.start[t + 1]):
            if left.right[k] >= 0:
                continue
            n_split = leaf_region(splits, left, k, region, split)
            narrow[:] = mass
            for i in range(n_split):
                j = split[i]
                narrow_column(bound, left.used, n_used, first, size, j, region[j, 0], region[j, 1], mass, narrow)
                region_both[j, 0], region_both[j, 1] = ZERO, n_used + j
            total = weight * circuit_fit(leaves, first, size, narrow, share, fit, region_both, split, n_split)
            if total <= 0.0:
                continue
            a = splits.leaf[left.node[k]]
            if tree < 0:
                add_pair(a, a, total, False, value, matrix, product)
            for s in range(t + 1 if tree < 0 else 0, n_trees if tree < 0 else stop):
                for p in range(left.start[s], left.start[s + 1]):
                    if s == t or left.right[p] >= 0:
                        continue
                    n_both = leaf_region(splits, left, p, region_both, split_both)
                    for i in range(n_both):
                        j = split_both[i]
                        if region_both[j, 1] == ONE:
                            region_both[j, 1] = n_used + j
                    for i in range(n_split):
                        n_both = with_column(split[i], n_used, region_both, split_both, n_both)
                    both = weight * circuit_fit(
                        leaves, first, size, narrow, share, fit, region_both, split_both, n_both
                    )
                    if both > 0.0:
                        add_pair(a, splits.leaf[left.node[p]], both, tree < 0, value, matrix, product)


@kernel
def with_column(j, n_used, region, split, n):
    """Add column j, as the first leaf leaves it, to the n columns of the second leaf if it is not among them."""
    for i in range(n):
        if split[i] == j:
            return n
    region[j, 0], region[j, 1] = ZERO, n_used + j
    split[n] = j
    return n + 1


@kernel
def narrow_column(bound, used, n_used, first, size, j, low, high, mass, out):
    """Masses of column j's marks within a region of it, and of the region itself, at all nodes."""
    leaves, marks, columns = bound.leaves, bound.marks, bound.columns
    for at in range(size):
        q = first + at
        if leaves.node_kind[q] != FACTORS or not leaves.scope[leaves.node_scope[q], j]:
            continue
        out[at, n_used + j] = max(mass[at, high] - mass[at, low], 0.0)
        for u in range(2, n_used):
            if marks.column[used[u]] != j:
                continue
            if not columns.is_categorical[j]:
                out[at, u] = min(max(mass[at, u], mass[at, low]), mass[at, high]) - mass[at, low]
                continue
            total, start = 0.0, columns.level_start[columns.slot[j]]
            for i in range(marks.level_start[used[u]], marks.level_start[used[u] + 1]):
                level = marks.level[i]
                if in_mark(marks, used[high], level) and not in_mark(marks, used[low], level):
                    total += leaves.level_mass[leaves.node_row[q], start + level]
            out[at, u] = total


@kernel
def add_pair(a, b, mass, is_mutual, value, matrix, product):
    """Add what is in both leaves to the matrix; to the product if that is empty."""
    if matrix.shape[0] > 0:
        matrix[a, b] += mass
        return
    for k in range(value.shape[1]):
        product[a, k] += mass * value[b, k]
        if is_mutual:
            product[b, k] += mass * value[a, k]
