"""Kernels: the components of a joint, which are its leaves, and the masses that they give to split regions."""

import math

from ...models.box_forest.leaves.level_kernels import add_wide, level_mass
from ...models.box_forest.leaves.slot_kernels import slot_cdf
from ...runtime.compile import entry, kernel
from .match import ONE, ZERO


@kernel
def leaf_mass(columns, leaves, evidence, regions, leaf, m):
    """Mass of a split region in a leaf."""
    j = regions.column[m]
    if j < 0:
        return 1.0 if m == ONE else 0.0
    slot = columns.slot[j]
    if not columns.is_categorical[j]:
        return slot_cdf(columns, leaves, evidence, leaf, slot, -1, regions.edge[m])
    total = 0.0
    for k in range(regions.level_start[m], regions.level_start[m + 1]):
        total += level_mass(leaves, leaf, slot, regions.level[k])
    return min(total, 1.0)


@entry
def fill_region_masses(columns, leaves, evidence, regions, region, first, stop, out):
    """Masses of the split regions ``region`` (m,) in the leaves first..stop-1, into ``out`` (L, m)."""
    for leaf in range(first, stop):
        for k in range(region.shape[0]):
            out[leaf, k] = leaf_mass(columns, leaves, evidence, regions, leaf, region[k])


# ---- Kernels: the components of a joint that count for a row, and the masses that they give to split regions.

COMPONENTS_AT_ONCE = 128
"""Components a block."""
STRIDE = COMPONENTS_AT_ONCE + 8
"""Entries a row of a block: no power of two, whose rows would fall into the same few cache lines."""
_BUCKETS = 128
"""Halvings of the greatest weight until the lightest components are found: 2^-128 is far below any tolerance."""
_TILE = 32
"""Components whose masses are fetched at once: their cache lines stay for the next regions."""

# divisions by 0 are seen to; without Python's check of them loops become vector instructions


@kernel
def find_active(post, at, most, scratch):
    """Write the components of row ``at`` of the posterior, but for light ones of at most ``most`` weight together."""
    active, n = scratch.active, post.start[at + 1] - post.start[at]
    for i in range(n):
        k = post.start[at] + i
        active.component[i], active.weight[i] = post.leaf[k], math.exp(post.log_weight[k] - post.log_evidence[at])
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
    """Masses of the used split regions in the active components first..first+n-1, into ``scratch.mass``; 0 beyond n."""
    # ``scratch.level_mass`` gets the masses of the levels of the regions' columns.
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
    level, component, level_mass = arrays.leaves.level_mass, scratch.active.component, scratch.level_mass
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
            add_wide(arrays.leaves.wide, component[first + i], -1 - place, 1.0, level_mass[:, i], start)
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
    columns, leaves, regions = arrays.columns, arrays.leaves, arrays.regions
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
                    out[v, i] = leaf_mass(columns, leaves, evidence, regions, c, used[v])


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
