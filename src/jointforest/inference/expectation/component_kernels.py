"""Kernels: the components of circuits, and the masses that components give to split regions."""

from __future__ import annotations

import math

import numpy as np

from ...models.box_forest.circuit_kernels import circuit_log_density, find_atoms, has_circuit, share_out
from ...models.box_forest.leaves.level_kernels import add_levels, add_wide, level_mass
from ...models.box_forest.leaves.slot_kernels import slot_cdf
from ...models.box_forest.leaves.table import FACTORS, PRODUCT, SUM
from ...runtime.compile import entry, kernel
from .split_regions import ONE, ZERO


@entry
def circuit_components(leaves):
    """The fields of `components.Components` of a joint some of whose leaves have circuits."""
    n_leaves, n_nodes = leaves.log_weight.shape[0], leaves.node_kind.shape[0]
    width, is_product = np.zeros(n_nodes, np.int32), np.ones(n_nodes, np.uint8)
    find_products(leaves, width, is_product)
    most = n_leaves + n_nodes
    start, part_start = np.zeros(n_leaves + 1, np.int32), np.zeros(most + 1, np.int32)
    leaf_of, node_of, simple = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint8)
    part_row, part_scope, part_weight = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.float64)
    log_weight = np.zeros(n_nodes, np.float64)
    n, n_parts = 0, 0
    for leaf in range(n_leaves):
        q, stop = leaves.node_start[leaf], leaves.node_start[leaf + 1]
        if q == stop:
            leaf_of[n], node_of[n], simple[n] = leaf, -1, 1
            part_row[n_parts], part_scope[n_parts], part_weight[n_parts] = leaf, -1, 1.0
            n_parts += 1
            n += 1
            part_start[n] = n_parts
        while q < stop:
            if leaves.node_kind[q] == SUM and width[q] > 1:
                q += 1
                continue
            leaf_of[n], node_of[n], simple[n] = leaf, q, is_product[q]
            if is_product[q]:
                n_parts = add_parts(leaves, q, log_weight, n_parts, part_row, part_scope, part_weight)
            n += 1
            part_start[n] = n_parts
            q = leaves.node_end[q]
        start[leaf + 1] = n
    return (
        start, leaf_of[:n].copy(), node_of[:n].copy(), simple[:n].copy(), part_start[: n + 1].copy(),
        part_row[:n_parts].copy(), part_scope[:n_parts].copy(), part_weight[:n_parts].copy(),
    )  # fmt: skip


@kernel
def find_products(leaves, width, is_product):
    """Write how many columns each node of the circuits has, and whether these are independent below it."""
    for q in range(width.shape[0] - 1, -1, -1):  # children come after their parent
        if leaves.node_kind[q] == FACTORS:
            k = leaves.node_scope[q]
            width[q] = leaves.scope_start[k + 1] - leaves.scope_start[k]
            continue
        child = q + 1
        while child < leaves.node_end[q]:
            if leaves.node_kind[q] == PRODUCT:
                width[q] += width[child]
            else:
                width[q] = width[child]
            is_product[q] &= is_product[child]
            child = leaves.node_end[child]
        if leaves.node_kind[q] == SUM and width[q] > 1:
            is_product[q] = 0


@kernel
def add_parts(leaves, q, log_weight, n, part_row, part_scope, part_weight):
    """Write the parts of node q from place n on; return the place after them. ``log_weight`` (Q,) is scratch."""
    log_weight[q] = 0.0
    for r in range(q, leaves.node_end[q]):
        if leaves.node_kind[r] == FACTORS:
            part_row[n], part_scope[n] = leaves.node_row[r], leaves.node_scope[r]
            part_weight[n] = math.exp(log_weight[r])
            n += 1
        child = r + 1
        while child < leaves.node_end[r]:
            log_weight[child] = log_weight[r] + leaves.node_log_weight[child]
            child = leaves.node_end[child]
    return n


@kernel
def row_mass(columns, leaves, evidence, regions, row, m):
    """Mass of a split region under a parameter row."""
    j = regions.column[m]
    if j < 0:
        return 1.0 if m == ONE else 0.0
    slot = columns.slot[j]
    if not columns.is_categorical[j]:
        return slot_cdf(columns, leaves, evidence, row, slot, -1, regions.edge[m])
    total = 0.0
    for k in range(regions.level_start[m], regions.level_start[m + 1]):
        total += level_mass(leaves, row, slot, regions.level[k])
    return min(total, 1.0)


@kernel
def component_mass(columns, leaves, evidence, regions, components, c, m):
    """Mass of a split region in a component whose columns are independent."""
    first, stop = components.part_start[c], components.part_start[c + 1]
    if stop - first == 1:
        return row_mass(columns, leaves, evidence, regions, components.part_row[first], m)
    if m <= ONE:
        return 1.0 if m == ONE else 0.0
    total = 0.0
    for k in range(first, stop):
        if leaves.scope[components.part_scope[k], regions.column[m]]:
            mass = row_mass(columns, leaves, evidence, regions, components.part_row[k], m)
            total += components.part_weight[k] * mass
    return min(total, 1.0)


@entry
def fill_level_masses(leaves, columns, components, first, stop, out):
    """Masses of the levels of columns of few in the components first..stop-1, into ``out`` (C, N)."""
    for c in range(first, stop):
        out[c] = 0.0
        for k in range(components.part_start[c], components.part_start[c + 1]):
            row, scope, weight = components.part_row[k], components.part_scope[k], components.part_weight[k]
            for j in range(columns.slot.shape[0]):
                if columns.is_categorical[j] and (scope < 0 or leaves.scope[scope, j]):
                    slot = columns.slot[j]
                    place, size = leaves.wide.place[slot], columns.level_start[slot + 1] - columns.level_start[slot]
                    if place >= 0:
                        add_levels(leaves, row, slot, size, weight, out[c], place)


@kernel
def add_wide_levels(leaves, components, j, t, c, out, start):
    """Add the masses of the levels of column j, the wide column t, in component c to ``out`` from ``start`` on."""
    for k in range(components.part_start[c], components.part_start[c + 1]):
        scope = components.part_scope[k]
        if scope < 0 or leaves.scope[scope, j]:
            add_wide(leaves.wide, components.part_row[k], t, components.part_weight[k], out, start)


@entry
def fill_region_masses(columns, leaves, evidence, regions, components, region, first, stop, out):
    """Masses of the split regions ``region`` (m,) in the components first..stop-1, into ``out`` (C, m)."""
    for c in range(first, stop):
        if not components.is_product[c]:
            out[c] = 0.0
            continue
        for k in range(region.shape[0]):
            out[c, k] = component_mass(columns, leaves, evidence, regions, components, c, region[k])


# ---- Kernels: the components of a joint that count for a row, and the masses that they give to split regions.

BLOCK = 128
"""Components a block."""
STRIDE = BLOCK + 8
"""Entries a row of a block: no power of two, whose rows would fall into the same few cache lines."""
_BUCKETS = 128
"""Halvings of the greatest weight until the lightest components are found: 2^-128 is far below any tolerance."""
_TILE = 32
"""Components whose masses are fetched at once: their cache lines stay for the next regions."""

# divisions by 0 are seen to; without Python's check of them loops become vector instructions


@kernel
def find_active(arrays, evidence, row, post, at, most, scratch):
    """Write the components of row ``at`` of the posterior, but for light ones of at most ``most`` weight together.

    ``scratch.value`` and ``scratch.node_weight`` get log p(evidence) and log p(node takes part, evidence) of the
    circuits' nodes.
    """
    active, leaves, components = scratch.active, arrays.leaves, arrays.components
    n = list_components(arrays, evidence, row, post, at, scratch)
    limit = 0.0 if most <= 0.0 else light_weight(active.weight, n, most)
    kept, total, dropped = 0, 0.0, 0.0
    for i in range(n):
        if active.weight[i] < limit:
            dropped += active.weight[i]
        else:
            active.component[kept], active.weight[kept] = active.component[i], active.weight[i]
            total += active.weight[i]
            kept += 1
    for i in range(kept):
        active.weight[i] /= total
    active.n[0], active.dropped[0] = kept, dropped
    first = kept  # products first
    if leaves.node_kind.shape[0] > 0:
        first = 0
        for i in range(kept):
            if components.is_product[active.component[i]]:
                c, w = active.component[i], active.weight[i]
                active.component[i], active.weight[i] = active.component[first], active.weight[first]
                active.component[first], active.weight[first] = c, w
                first += 1
    active.n_products[0] = first


@kernel
def list_components(arrays, evidence, row, post, at, scratch):
    """Write all components of row ``at`` of the posterior, and their weights; return how many."""
    columns, leaves, components, active = arrays.columns, arrays.leaves, arrays.components, scratch.active
    value, weight, n = scratch.value, scratch.node_weight, 0
    if leaves.node_kind.shape[0] > 0:
        find_atoms(columns, evidence, row, scratch.atom)
    for k in range(post.start[at], post.start[at + 1]):
        leaf = post.leaf[k]
        log_weight = post.log_weight[k] - post.log_evidence[at]
        if not has_circuit(leaves, leaf):
            active.component[n], active.weight[n] = components.start[leaf], math.exp(log_weight)
            n += 1
            continue
        circuit_log_density(columns, leaves, evidence, row, scratch.atom, leaf, value)
        share_out(leaves, leaf, log_weight, value, weight)
        for c in range(components.start[leaf], components.start[leaf + 1]):
            share = math.exp(weight[components.node[c]])
            if share > 0.0:
                active.component[n], active.weight[n] = c, share
                n += 1
    return n


@kernel
def light_weight(weight, n, most):
    """The largest power of 1/2 such that the weights below it sum to at most ``most``."""
    limit, top = 1.0, 0.0
    for i in range(n):
        top = max(top, weight[i])
    while limit > top:  # the heaviest stays
        limit *= 0.5
    for _ in range(_BUCKETS):
        total = 0.0
        for i in range(n):
            if weight[i] < limit:
                total += weight[i]
        if total <= most:
            return limit
        limit *= 0.5
    return 0.0


@kernel
def gather_masses(arrays, evidence, n_used, first, n, scratch):
    """Masses of the used split regions in the active components first..first+n-1, into ``scratch.mass``; 0 beyond n.

    ``scratch.level_mass`` gets the masses of the levels of the regions' columns.
    """
    columns, regions, used, out = arrays.columns, arrays.regions, scratch.residual.used, scratch.mass
    end = (n + 7) // 8 * 8
    for i in range(end):
        out[ZERO, i], out[ONE, i] = 0.0, 1.0
    u = 2
    while u < n_used:
        j = regions.column[used[u]]
        stop = u
        while stop < n_used and regions.column[used[stop]] == j:
            stop += 1
        if columns.is_categorical[j]:
            gather_levels(arrays, j, u, stop, first, n, scratch)
        else:
            gather_numbers(arrays, evidence, u, stop, first, n, scratch)
        for v in range(u, stop):
            for i in range(n, end):
                out[v, i] = 0.0
        u = stop


@kernel
def gather_levels(arrays, j, u, stop, first, n, scratch):
    """`gather_masses` of the regions u..stop-1, of column j of levels."""
    level, component, level_mass = arrays.masses.level, scratch.active.component, scratch.level_mass
    slot = arrays.columns.slot[j]
    start, end, place = (
        arrays.columns.level_start[slot],
        arrays.columns.level_start[slot + 1],
        arrays.leaves.wide.place[slot],
    )
    for k in range(start, end):
        for i in range(n if place >= 0 else 0, (n + 7) // 8 * 8):
            level_mass[k, i] = 0.0
    if place < 0:
        for i in range(n):
            add_wide_levels(
                arrays.leaves, arrays.components, j, -1 - place, component[first + i], level_mass[:, i], start
            )
    else:
        for tile in range(0, n, _TILE):
            for k in range(end - start):
                for i in range(tile, min(tile + _TILE, n)):
                    level_mass[start + k, i] = level[component[first + i], place + k]
    for v in range(u, stop):
        add_regions_of_levels(
            arrays.regions, scratch.residual.used[v], start, end - start, n, level_mass, scratch.mass[v]
        )


@kernel
def gather_numbers(arrays, evidence, u, stop, first, n, scratch):
    """`gather_masses` of the regions u..stop-1, of one numeric column."""
    columns, leaves, regions, components = arrays.columns, arrays.leaves, arrays.regions, arrays.components
    place_of, table = arrays.masses.place, arrays.masses.table
    used, component, out = scratch.residual.used, scratch.active.component, scratch.mass
    for tile in range(0, n, _TILE):
        for v in range(u, stop):
            place = place_of[used[v]]
            for i in range(tile, min(tile + _TILE, n)):
                c = component[first + i]
                if place >= 0:
                    out[v, i] = table[c, place]
                else:
                    out[v, i] = component_mass(columns, leaves, evidence, regions, components, c, used[v])


@kernel
def add_regions_of_levels(regions, m, start, n_levels, n, level_mass, out):
    """Write the mass of a set of levels, the sum of rows of ``level_mass`` from ``start`` on, into ``out``."""
    first, stop = regions.level_start[m], regions.level_start[m + 1]
    if 2 * (stop - first) <= n_levels:
        for i in range(n):
            out[i] = 0.0
        for at in range(first, stop):
            k = start + regions.level[at]
            for i in range(n):
                out[i] += level_mass[k, i]
        for i in range(n):
            out[i] = min(out[i], 1.0)
        return
    for i in range(n):
        out[i] = 1.0
    at = first
    for k in range(n_levels):
        if at < stop and regions.level[at] == k:
            at += 1
            continue
        for i in range(n):
            out[i] -= level_mass[start + k, i]
    for i in range(n):
        out[i] = max(out[i], 0.0)


# ---- Kernels: masses of leaves in a component whose columns depend on each other, up its circuit.


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

    ``scratch.value`` is what `component_kernels.find_active` says of the nodes.
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
