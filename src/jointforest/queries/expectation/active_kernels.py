"""Kernels: the components of a joint that count for a row, and the masses that they give to split regions."""

from __future__ import annotations

import math

from ...forest.posterior.circuit_kernels import circuit_log_density, find_atoms, has_circuit, share_out
from ...ground.compile import kernel
from .component_kernels import add_wide_levels, component_mass
from .split_regions import ONE, ZERO

BLOCK = 128
"""Components a block."""
STRIDE = BLOCK + 8
"""Entries a row of a block: no power of two, whose rows would fall into the same few cache lines."""
_BUCKETS = 128
_TILE = 32  # components whose masses are fetched at once: their cache lines stay for the next regions

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
        add_levels(arrays.regions, scratch.residual.used[v], start, end - start, n, level_mass, scratch.mass[v])


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
def add_levels(regions, m, start, n_levels, n, level_mass, out):
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
