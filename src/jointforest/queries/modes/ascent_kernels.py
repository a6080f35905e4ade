"""Kernels: the best value of one column in a mixture of parameter rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...forest.posterior.region_kernels import cell_region, in_region
from ...ground.compile import entry, kernel
from ...ground.records import record
from ...leaves.one_slot.grid_kernels import cell_centre
from ...leaves.one_slot.slot_kernels import cut_to_support, has_atom
from .mode_kernels import cell_density, cell_mode

PEAKS = 64
"""Parameter rows whose peaks and ends of support are tried, those of the greatest peaks."""
_STEPS = 48
"""Golden sections: an interval shrinks to 1e-10 of itself."""
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


@record
class Tried(NamedTuple):
    """Scratch of one column: the greatest peaks, their parameter rows, and the places that are tried.

    Attributes
    ----------
    peak : float64 array (PEAKS,), descending
    of : int64 array (PEAKS,)
    place : float64 array (3 * PEAKS + 64,), ascending
        A row has a peak and two ends of support; a column has 64 atoms at most.
    """

    peak: np.ndarray
    of: np.ndarray
    place: np.ndarray


def tried_scratch() -> Tried:
    """Scratch for `best_number`."""
    return Tried(np.empty(PEAKS), np.empty(PEAKS, np.int64), np.empty(3 * PEAKS + 64))


@kernel
def mixture_log_density(columns, leaves, j, row, log_weight, x):
    """Log of the sum over parameter rows of exp(log_weight) times the density of the value x of column j."""
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
def best_level(problem, box, j, row, log_weight, x):
    """The allowed level of greatest mass, and its log density; x if no other is better."""
    columns, leaves = problem.columns, problem.leaves
    start = columns.level_start[columns.slot[j]]
    best = mixture_log_density(columns, leaves, j, row, log_weight, x)
    for k in range(columns.level_start[columns.slot[j] + 1] - start):
        if box.allowed[start + k]:
            density = mixture_log_density(columns, leaves, j, row, log_weight, float(k))
            if density > best:
                best, x = density, float(k)
    return x, best


@kernel
def add_greatest(greatest, at, n, x, i):
    """Put x, of place i, among the n greatest numbers, which descend, if it is one of them; return how many there are.

    The first of equal numbers stay.
    """
    k = n
    if n == greatest.shape[0]:
        if not x > greatest[n - 1]:
            return n
        k = n - 1
    last = k
    while k > 0 and x > greatest[k - 1]:
        greatest[k], at[k] = greatest[k - 1], at[k - 1]
        k -= 1
    greatest[k], at[k] = x, i
    return last + 1


@kernel
def add_place(place, n, x):
    """Put x among the n places, which ascend, unless it is there; return how many there are."""
    k = n
    while k > 0 and place[k - 1] > x:
        k -= 1
    if k > 0 and place[k - 1] == x:
        return n
    for i in range(n, k, -1):
        place[i] = place[i - 1]
    place[k] = x
    return n + 1


@kernel
def find_places(problem, box, j, row, log_weight, tried):
    """Write peaks, ends of support and atoms that agree with the evidence to ``tried.place``; return how many.

    They ascend, each once.
    """
    columns, leaves, evidence, place = problem.columns, problem.leaves, problem.evidence, tried.place
    slot, region = columns.slot[j], cell_region(evidence, np.int64(0), j)
    n_peaks, n = np.int64(0), np.int64(0)
    for i in range(row.shape[0]):
        peak = log_weight[i] + cell_mode(columns, leaves, evidence, box, j, row[i])[1]
        if peak > -math.inf:
            n_peaks = add_greatest(tried.peak, tried.of, n_peaks, peak, i)
    for i in tried.of[:n_peaks]:
        n = add_place(place, n, cell_mode(columns, leaves, evidence, box, j, row[i])[0])
        u, v = cut_to_support(columns, leaves, row[i], slot, -math.inf, math.inf)
        half = 0.5 * columns.step[slot]
        for x in (u + half if half > 0.0 else np.nextafter(u, math.inf), v - half):
            if abs(x) < math.inf and (region < 0 or in_region(columns, evidence, slot, region, x)):
                n = add_place(place, n, x)
    start = columns.atom_start[slot]
    for k in range(columns.atom_start[slot + 1] - start):
        if has_atom(evidence, region, k):
            n = add_place(place, n, columns.atom_value[start + k])
    return n


@kernel
def on_grid(columns, slot, x):
    """The centre of x's cell; x itself without grid."""
    return cell_centre(columns.step[slot], columns.origin[slot], x) if columns.step[slot] > 0.0 else x


@kernel
def golden_section(problem, j, row, log_weight, lo, hi, x, best):
    """The best of x, which has the log density ``best``, and what a golden section of lo..hi meets; its log density."""
    columns, leaves, evidence = problem.columns, problem.leaves, problem.evidence
    slot, region = columns.slot[j], cell_region(evidence, np.int64(0), j)
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


@entry
def best_number(problem, box, j, row, log_weight, tried, x):
    """A number that agrees with the evidence and is at least as good as x, and its log density.

    The best of the places, then golden sections between it and its neighbours. ``tried`` is scratch.
    """
    columns, leaves = problem.columns, problem.leaves
    n = find_places(problem, box, j, row, log_weight, tried)
    best = mixture_log_density(columns, leaves, j, row, log_weight, x)
    for y in tried.place[:n]:
        density = mixture_log_density(columns, leaves, j, row, log_weight, y)
        if density > best:
            best, x = density, y
    below, above = math.nan, math.nan
    for y in tried.place[:n]:
        if y < x:
            below = y
        elif y > x and above != above:
            above = y
    if below == below:
        x, best = golden_section(problem, j, row, log_weight, below, x, x, best)
    if above == above:
        x, best = golden_section(problem, j, row, log_weight, x, above, x, best)
    return x, best
