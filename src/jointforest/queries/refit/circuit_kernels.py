"""Kernel: pairs of leaves of an ensemble in a component whose columns depend on each other, up its circuit."""

from __future__ import annotations

from ...ground.compile import kernel
from ...leaves.levels.level_kernels import level_mass
from ...leaves.table import FACTORS
from ..expectation.circuit_kernels import circuit_fit, circuit_masses, circuit_shares, leaf_box
from ..expectation.pair_kernels import in_region
from ..expectation.split_regions import ONE, ZERO


@kernel
def circuit_pairs(arrays, evidence, n_used, c, weight, sums, scratch, pairs):
    """`pair_kernels.pair_rows` of one row and one component; ``weight``: of both."""
    leaves, residual, n_trees = arrays.leaves, scratch.residual, arrays.splits.root.shape[0]
    first = arrays.components.node[c]
    circuit_masses(arrays, evidence, first, residual.used, n_used, pairs.mass)
    circuit_shares(leaves, first, scratch.value, scratch.circuit.share)
    begin, end = (0, n_trees) if sums.tree < 0 else (sums.tree, sums.tree + 1)
    for t in range(begin, end):
        for k in range(residual.start[t], residual.start[t + 1]):
            if residual.right[k] >= 0:
                continue
            n_box = leaf_box(arrays.splits, residual, k, pairs.box, pairs.column)
            narrow_circuit(arrays, residual.used, n_used, first, n_box, pairs)
            for i in range(n_box):
                j = pairs.column[i]
                pairs.both_box[j, 0], pairs.both_box[j, 1] = ZERO, n_used + j
            fit = circuit_fit(leaves, first, pairs.narrow_mass, scratch.circuit, pairs.both_box, pairs.column, n_box)
            if weight * fit <= 0.0:
                continue
            a = arrays.splits.leaf[residual.node[k]]
            if sums.tree < 0:
                add_pair(a, a, weight * fit, False, sums)
            for s in range(t + 1 if sums.tree < 0 else 0, n_trees if sums.tree < 0 else sums.stop):
                if s != t:
                    circuit_others(arrays, n_used, c, weight, a, s, n_box, sums, scratch, pairs)


@kernel
def circuit_others(arrays, n_used, c, weight, a, tree, n_box, sums, scratch, pairs):
    """Add the pairs of leaf a, whose box has n_box columns, with all leaves of a tree."""
    leaves, residual = arrays.leaves, scratch.residual
    first = arrays.components.node[c]
    for p in range(residual.start[tree], residual.start[tree + 1]):
        if residual.right[p] < 0:
            n = both_leaves(arrays, n_used, p, n_box, scratch, pairs)
            box, column = pairs.both_box, pairs.both_column
            both = weight * circuit_fit(leaves, first, pairs.narrow_mass, scratch.circuit, box, column, n)
            if both > 0.0:
                add_pair(a, arrays.splits.leaf[residual.node[p]], both, sums.tree < 0, sums)


@kernel
def narrow_circuit(arrays, used, n_used, first, n_box, pairs):
    """Masses of the split regions within the first leaf, and of its own regions, at all nodes."""
    mass, narrow = pairs.mass, pairs.narrow_mass
    for at in range(arrays.leaves.node_end[first] - first):
        for u in range(n_used):
            narrow[at, u] = mass[at, u]
        for j in range(arrays.columns.slot.shape[0]):
            narrow[at, n_used + j] = 1.0
    for i in range(n_box):
        narrow_column(arrays, used, n_used, first, pairs.column[i], pairs)


@kernel
def narrow_column(arrays, used, n_used, first, j, pairs):
    """Masses of column j's split regions within the first leaf, and of its region in this leaf, at all nodes."""
    leaves, regions, columns = arrays.leaves, arrays.regions, arrays.columns
    low, high, mass, narrow = pairs.box[j, 0], pairs.box[j, 1], pairs.mass, pairs.narrow_mass
    for q in range(first, leaves.node_end[first]):
        at = q - first
        if leaves.node_kind[q] != FACTORS or not leaves.scope[leaves.node_scope[q], j]:
            continue
        narrow[at, n_used + j] = max(mass[at, high] - mass[at, low], 0.0)
        for u in range(2, n_used):
            if regions.column[used[u]] != j:
                continue
            if not columns.is_categorical[j]:
                narrow[at, u] = min(max(mass[at, u], mass[at, low]), mass[at, high]) - mass[at, low]
                continue
            total, slot = 0.0, columns.slot[j]
            for i in range(regions.level_start[used[u]], regions.level_start[used[u] + 1]):
                level = regions.level[i]
                if in_region(regions, used[high], level) and not in_region(regions, used[low], level):
                    total += level_mass(leaves, leaves.node_row[q], slot, level)
            narrow[at, u] = total


@kernel
def both_leaves(arrays, n_used, p, n_box, scratch, pairs):
    """Write the box of the leaf at place p within the first leaf; return how many columns it has."""
    box, column = pairs.both_box, pairs.both_column
    n = leaf_box(arrays.splits, scratch.residual, p, box, column)
    for i in range(n):
        j = column[i]
        if box[j, 1] == ONE:
            box[j, 1] = n_used + j
    for i in range(n_box):
        n = with_column(pairs.column[i], n_used, box, column, n)
    return n


@kernel
def with_column(j, n_used, box, column, n):
    """Add column j, as the first leaf leaves it, to the n columns of the second leaf if it is not among them."""
    for i in range(n):
        if column[i] == j:
            return n
    box[j, 0], box[j, 1] = ZERO, n_used + j
    column[n] = j
    return n + 1


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
