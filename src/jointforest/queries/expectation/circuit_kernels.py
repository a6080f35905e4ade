"""Kernels: masses of leaves in a component whose columns depend on each other, up its circuit."""

from __future__ import annotations

import math

from ...ground.compile import kernel
from ...leaves.table import FACTORS, PRODUCT, SUM
from .component_kernels import row_mass


@kernel
def leaf_box(splits, residual, k, box, column):
    """Write the box of the leaf at place k; return how many columns it has.

    ``column`` (d,) gets the columns that are split above, ``box`` (d, 2) the places, among the used split regions, of
    those between which the leaf lies in each.
    """
    n = 0
    below, parent = k, residual.parent[k]
    while parent >= 0:  # the nearest split of a column tells its region
        node = residual.node[parent]
        j = splits.column[node]
        is_known = False
        for i in range(n):
            is_known = is_known or column[i] == j
        if not is_known:
            is_left = below == parent + 1
            box[j, 0] = residual.local[splits.lo[node] if is_left else splits.mid[node]]
            box[j, 1] = residual.local[splits.mid[node] if is_left else splits.hi[node]]
            column[n] = j
            n += 1
        below, parent = parent, residual.parent[parent]
    return n


@kernel
def descend_circuit(arrays, evidence, n_used, c, weight, scratch):
    """Add the mass of a component with dependent columns that arrives at each leaf, leaf by leaf, up its circuit.

    ``scratch.value`` is what `active_kernels.find_active` says of the nodes.
    """
    leaves, residual, circuit, column = arrays.leaves, scratch.residual, scratch.circuit, scratch.box_column
    first = arrays.components.node[c]
    circuit_masses(arrays, evidence, first, residual.used, n_used, circuit.mass)
    circuit_shares(leaves, first, scratch.value, circuit.share)
    for k in range(residual.start[0], residual.start[residual.start.shape[0] - 1]):
        if residual.right[k] < 0:
            n = leaf_box(arrays.splits, residual, k, scratch.box, column)
            fit = circuit_fit(leaves, first, circuit.mass, circuit, scratch.box, column, n)
            residual.mass[k] += weight * fit


@kernel
def circuit_masses(arrays, evidence, first, used, n_used, mass):
    """Masses of the used split regions at the FACTORS nodes of the circuit below node ``first``."""
    leaves, regions = arrays.leaves, arrays.regions
    for q in range(first, leaves.node_end[first]):
        if leaves.node_kind[q] == FACTORS:
            for u in range(n_used):
                j = regions.column[used[u]]
                if j < 0 or leaves.scope[leaves.node_scope[q], j]:
                    row = leaves.node_row[q]
                    mass[q - first, u] = row_mass(arrays.columns, leaves, evidence, regions, row, used[u])


@kernel
def circuit_shares(leaves, first, value, share):
    """Write the part of each child of a SUM node below ``first`` in its sum, given the evidence."""
    for q in range(first, leaves.node_end[first]):
        if leaves.node_kind[q] == SUM:
            child = q + 1
            while child < leaves.node_end[q]:
                share[child - first] = 0.0
                if value[q] > -math.inf:
                    share[child - first] = math.exp(leaves.node_log_weight[child] + value[child] - value[q])
                child = leaves.node_end[child]


@kernel
def circuit_fit(leaves, first, mass, circuit, box, column, n):
    """P(box | evidence) of a circuit's node ``first``; ``circuit.fit`` gets that of each node below.

    The box has n columns, and ``mass`` the masses of the regions to which it refers.
    """
    share, fit = circuit.share, circuit.fit
    for q in range(leaves.node_end[first] - 1, first - 1, -1):
        child, end, at = q + 1, leaves.node_end[q], q - first
        if leaves.node_kind[q] == FACTORS:
            total = 1.0
            for i in range(n):
                j = column[i]
                if leaves.scope[leaves.node_scope[q], j]:
                    total *= max(mass[at, box[j, 1]] - mass[at, box[j, 0]], 0.0)
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
