"""Kernels: the best value of one column in a mixture of rows of the parameter tables."""

from __future__ import annotations

import math

import numpy as np

from ...forest.posterior.region_kernels import cell_region, in_region
from ...ground.compile import array_kernel, entry, kernel
from ...leaves.one_slot.grid_kernels import cell_centre
from ...leaves.one_slot.slot_kernels import cut_to_support, has_atom
from .mode_kernels import cell_density, cell_mode

PEAKS = 64
"""Rows whose peaks and ends of support are tried, those of the greatest peaks."""
_STEPS = 48
"""Golden sections: an interval shrinks to 1e-10 of itself."""
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


@kernel
def mixture_log_density(columns, leaves, j, row, log_weight, x):
    """Log of the sum over rows of exp(log_weight) times the density of the value x of column j."""
    top, total = -math.inf, 0.0
    for i in range(row.shape[0]):
        density = log_weight[i] + cell_density(columns, leaves, j, row[i], x)
        if density > top:
            total = total * math.exp(top - density) + 1.0 if top > -math.inf else 1.0
            top = density
        elif density > -math.inf:
            total += math.exp(density - top)
    return top + math.log(total) if top > -math.inf else top


@entry
def best_level(columns, leaves, box, j, row, log_weight, x):
    """The allowed level of greatest mass, and its log density; x if no other is better."""
    start = columns.level_start[columns.slot[j]]
    best = mixture_log_density(columns, leaves, j, row, log_weight, x)
    for k in range(columns.level_start[columns.slot[j] + 1] - start):
        if box.allowed[start + k]:
            density = mixture_log_density(columns, leaves, j, row, log_weight, float(k))
            if density > best:
                best, x = density, float(k)
    return x, best


@array_kernel
def places(columns, leaves, evidence, box, j, row, log_weight):
    """Peaks, ends of support and atoms that agree with the evidence, ascending."""
    slot, region = columns.slot[j], cell_region(evidence, 0, j)
    peak = np.empty(row.shape[0], np.float64)
    for i in range(row.shape[0]):
        peak[i] = log_weight[i] + cell_mode(columns, leaves, evidence, box, j, row[i])[1]
    found, n = np.empty(3 * min(row.shape[0], PEAKS) + 64, np.float64), 0
    for i in np.argsort(-peak)[:PEAKS]:
        if peak[i] == -math.inf:
            continue
        found[n] = cell_mode(columns, leaves, evidence, box, j, row[i])[0]
        n += 1
        u, v = cut_to_support(columns, leaves, row[i], slot, -math.inf, math.inf)
        half = 0.5 * columns.step[slot]
        for x in (u + half if half > 0.0 else np.nextafter(u, math.inf), v - half):
            if abs(x) < math.inf and (region < 0 or in_region(columns, evidence, slot, region, x)):
                found[n] = x
                n += 1
    start = columns.atom_start[slot]
    for k in range(columns.atom_start[slot + 1] - start):
        if has_atom(evidence, region, k):
            found[n] = columns.atom_value[start + k]
            n += 1
    return np.unique(found[:n])


@kernel
def on_grid(columns, slot, x):
    """The centre of x's cell; x itself without grid."""
    return cell_centre(columns.step[slot], columns.origin[slot], x) if columns.step[slot] > 0.0 else x


@entry
def best_number(columns, leaves, evidence, box, j, row, log_weight, x):
    """A number that agrees with the evidence and is at least as good as x, and its log density.

    The best of the places, then golden sections between it and its neighbours.
    """
    slot, region = columns.slot[j], cell_region(evidence, 0, j)
    place = places(columns, leaves, evidence, box, j, row, log_weight)
    best = mixture_log_density(columns, leaves, j, row, log_weight, x)
    for y in place:
        density = mixture_log_density(columns, leaves, j, row, log_weight, y)
        if density > best:
            best, x = density, y
    above = np.searchsorted(place, x, side="right")
    below = np.searchsorted(place, x) - 1
    for side in (0, 1):
        if (below < 0) if side == 0 else (above >= place.shape[0]):
            continue
        lo, hi = (place[below], x) if side == 0 else (x, place[above])
        for _ in range(_STEPS):
            width = _GOLDEN * (hi - lo)
            u, v = on_grid(columns, slot, hi - width), on_grid(columns, slot, lo + width)
            at_u = mixture_log_density(columns, leaves, j, row, log_weight, u)
            at_v = mixture_log_density(columns, leaves, j, row, log_weight, v)
            for y, density in ((u, at_u), (v, at_v)):
                held = region < 0 or in_region(columns, evidence, slot, region, y)
                if density > best and held:
                    best, x = density, y
            if at_u > at_v:
                hi = lo + width
            else:
                lo = hi - width
            if hi - lo < 0.5 * columns.step[slot]:
                break
    return x, best
