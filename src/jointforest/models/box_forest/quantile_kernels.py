"""Kernels of quantiles of one numeric column: a bracketed search on the mixture's CDF."""

# The search runs on places u: the value itself where there is no grid, the number of the cell on a grid.

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.numeric_kernels import chandrupatla
from .descent_kernels import cell_region, known_number
from .leaves.slot_kernels import cell_end, find_atom, line_cdf, slot_cdf
from .leaves.table import UNIFORM
from .posterior_kernels import RowMixture, mixed_cdf, mixed_moments, row_mixture

_SAMPLE = 256
"""Leaves in the sample that shows where the quantiles of many leaves may be."""
_MARGIN = 0.02
"""The sample's CDF is about this close to the mixture's."""
_SHARP = 5e-11
"""Width of the last bracket where there is no grid, in standard deviations."""
_ULPS = 4.5e-16
"""Relative distance of numbers that no float64 number lies between, twice over."""


class Near(NamedTuple):
    """Where to look for a place: guesses of ``low`` and ``high`` ends, the first step beyond them, how sharp to be."""

    low: float
    high: float
    width: float
    sharp: float


class Bracket(NamedTuple):
    """Two places with the one that is sought between them, and F - q at them: below 0 at ``low``, not at ``high``."""

    low: float
    f_low: float
    high: float
    f_high: float


@kernel
def thinned(mixture):
    """A systematic sample of many leaves, by their weights, and equal weights; few leaves as they are."""
    leaf, weight = mixture
    if leaf.shape[0] <= 2 * _SAMPLE:
        return mixture
    few, total = np.empty(_SAMPLE, leaf.dtype), 0.0
    for i in range(leaf.shape[0]):
        total += weight[i]
    step = total / _SAMPLE
    total, taken, last = 0.0, 0, 0
    for i in range(leaf.shape[0]):
        if weight[i] > 0.0:
            total += weight[i]
            last = i
            while taken < _SAMPLE and (taken + 0.5) * step <= total:
                few[taken] = leaf[i]
                taken += 1
    few[taken:] = leaf[last]
    share = np.empty(_SAMPLE, np.float64)
    share[:] = 1.0 / _SAMPLE
    return RowMixture(few, share)


@kernel
def excess(columns, leaves, evidence, slot, region, mixture, q, part, u):
    """F - q at the place u; the leaves' shares of F go to ``part[2]``."""
    # ``part[0]`` and ``part[1]`` are their shares at the ends of the bracket: a leaf with equal ones has no mass
    # between.
    leaf, weight = mixture
    step = columns.step[slot]
    x = columns.origin[slot] + u * step if step > 0.0 else u
    # Lines (`is_line`, the pieces of quantile leaves) are most of the work: no call, no logarithm.
    family, lo, hi, end = leaves.family, leaves.lo, leaves.hi, cell_end(columns, slot, x)
    lines = region < 0 and columns.atom_start[slot] == columns.atom_start[slot + 1]
    total = 0.0
    for i in range(leaf.shape[0]):
        if part[0, i] == part[1, i]:
            part[2, i] = part[0, i]
        elif lines and family[leaf[i], slot] == UNIFORM:
            part[2, i] = weight[i] * line_cdf(lo[leaf[i], slot], hi[leaf[i], slot], end)
        elif weight[i] > 0.0:
            part[2, i] = weight[i] * slot_cdf(columns, leaves, evidence, leaf[i], slot, region, x)
        else:
            part[2, i] = 0.0
        total += part[2, i]
    return total - q


@kernel
def copy(of, to):
    """Write the numbers of one array into another; numba's own assignment would make a third one."""
    for i in range(of.shape[0]):
        to[i] = of[i]


@kernel
def enclose(columns, leaves, evidence, slot, region, mixture, q, part, near):
    """A bracket of the lowest place with F >= q: the guessed ends, moved by steps of doubled width until they are."""
    low, high, width, _ = near
    f_low = math.nan
    part[0, :], part[1, :] = -1.0, 2.0
    f_high = excess(columns, leaves, evidence, slot, region, mixture, q, part, high)
    while f_high < 0.0 and high < math.inf:
        low, f_low = high, f_high
        copy(part[2], part[0])
        high += width
        width *= 2.0
        f_high = excess(columns, leaves, evidence, slot, region, mixture, q, part, high)
    copy(part[2], part[1])
    if f_low != f_low:
        f_low = excess(columns, leaves, evidence, slot, region, mixture, q, part, low)
        while f_low >= 0.0 and low > -math.inf:
            high, f_high = low, f_low
            copy(part[2], part[1])
            low -= width
            width *= 2.0
            f_low = excess(columns, leaves, evidence, slot, region, mixture, q, part, low)
        copy(part[2], part[0])
    return Bracket(low, f_low, high, f_high)


@kernel
def between_atoms(columns, leaves, evidence, slot, region, mixture, q, part, bracket):
    """The part of a bracket between two atoms; if the place is an atom, a bracket of nothing but it."""
    low, f_low, high, f_high = bracket
    first, last = columns.atom_start[slot], columns.atom_start[slot + 1]
    while first < last:  # the lowest atom with F >= q, and the one below it
        middle = (first + last) // 2
        atom = columns.atom_value[middle]
        f = -1.0
        if low < atom < high:
            f = excess(columns, leaves, evidence, slot, region, mixture, q, part, atom)
            if f < 0.0:
                low, f_low = atom, f
                copy(part[2], part[0])
            else:
                high, f_high = atom, f
                copy(part[2], part[1])
        if f >= 0.0 or atom >= high:
            last = middle
        else:
            first = middle + 1
    if find_atom(columns, slot, high) < 0:
        return Bracket(low, f_low, high, f_high)
    before = np.nextafter(high, -math.inf)
    f = excess(columns, leaves, evidence, slot, region, mixture, q, part, before) if low < before else -1.0
    if f < 0.0:
        return Bracket(high, f_high, high, f_high)
    copy(part[2], part[1])
    return Bracket(low, f_low, before, f)


@kernel
def next_fraction(low, f_low, high, f_high, old, f_old, newest_high):
    """Fraction of the way from low to high at which to look next; ``old`` is the end replaced last, NaN if none."""
    if old != old:
        return -f_low / (f_high - f_low)
    if newest_high:
        return 1.0 - min(max(chandrupatla(high, f_high, low, f_low, old, f_old), 0.0), 1.0)
    return min(max(chandrupatla(low, f_low, high, f_high, old, f_old), 0.0), 1.0)


@kernel
def narrow(columns, leaves, evidence, slot, region, mixture, q, part, bracket, sharp):
    """The upper end of a bracket that is made no wider than ``sharp``."""
    low, f_low, high, f_high = bracket
    grid = columns.step[slot] > 0.0
    old, f_old, newest_high = math.nan, math.nan, low > high  # false, but not a constant: numba compiles those apart
    waited, half = 0, 0.5 * (high - low)
    while True:
        apart = max(sharp, _ULPS * max(abs(low), abs(high)))
        if not high - low > apart:
            return high
        t = 0.5
        if waited < 3:  # otherwise three steps have not halved the bracket
            t = next_fraction(low, f_low, high, f_high, old, f_old, newest_high)
        u = low + t * (high - low)
        if grid:
            u = np.ceil(u)
        else:
            apart *= 0.5
        u = min(max(u, low + apart), high - apart)  # so that the end near the root closes in too
        if not low < u < high:
            return high
        f = excess(columns, leaves, evidence, slot, region, mixture, q, part, u)
        newest_high = f >= 0.0
        if newest_high:
            old, f_old = high, f_high
            high, f_high = u, f
            copy(part[2], part[1])
        else:
            old, f_old = low, f_low
            low, f_low = u, f
            copy(part[2], part[0])
        waited += 1
        if high - low <= half:
            waited, half = 0, 0.5 * (high - low)


@kernel
def lowest(columns, leaves, evidence, slot, region, mixture, q, near):
    """Lowest place with F >= q: an atom exactly, else the upper end of a bracket no wider than ``near.sharp``."""
    part = np.empty((3, mixture.leaf.shape[0]), np.float64)
    bracket = enclose(columns, leaves, evidence, slot, region, mixture, q, part, near)
    if columns.step[slot] == 0.0:
        bracket = between_atoms(columns, leaves, evidence, slot, region, mixture, q, part, bracket)
    return narrow(columns, leaves, evidence, slot, region, mixture, q, part, bracket, near.sharp)


@kernel
def mixture_quantile(columns, leaves, evidence, slot, region, mixture, sample, q, at, spread):
    """Lowest place with F >= q in a mixture, looked for where the `thinned` sample of it has that place."""
    # ``at`` and ``spread`` are the mean and the standard deviation of the sample.
    width, sharp = 0.5 * spread, _SHARP * spread
    at += 0.55 * spread * math.log(q / (1.0 - q))
    low, high = at - width, at + width
    if columns.step[slot] > 0.0:
        low, high, width, sharp = np.floor(low), np.ceil(high), np.ceil(width), 1.0
    if sample.leaf.shape[0] < mixture.leaf.shape[0]:
        rough = max(sharp, 1e-4 * spread if columns.step[slot] == 0.0 else 1.0)
        under, over = max(q - _MARGIN, 0.25 * q), min(q + _MARGIN, 1.0 - 0.25 * (1.0 - q), 1.0 - 1e-9)
        under = min(under, over)
        low = lowest(columns, leaves, evidence, slot, region, sample, under, Near(low, high, width, rough))
        high = lowest(columns, leaves, evidence, slot, region, sample, over, Near(low, low + width, width, rough))
        low -= rough
        width = max(high - low, sharp if columns.step[slot] > 0.0 else 0.02 * spread)
    return lowest(columns, leaves, evidence, slot, region, mixture, q, Near(low, high, width, sharp))


@entry
def quantile_rows(columns, leaves, evidence, j, post, first, q):
    """Quantiles of column j in each row of the posterior (of the rows first..); shape (rows, len(q))."""
    n = post.log_evidence.shape[0]
    slot = columns.slot[j]
    step, origin = columns.step[slot], columns.origin[slot]
    out = np.empty((n, q.shape[0]), np.float64)
    nothing = np.empty((0, 2), np.float64)
    for i in range(n):
        value = evidence.value[first + i, j]
        if post.log_evidence[i] == -math.inf:
            out[i] = math.nan
        elif value == value:
            out[i] = known_number(columns, slot, value)
        else:
            region = cell_region(evidence, first + i, j)
            mixture = row_mixture(post, i)
            sample = thinned(mixture)
            at, variance = mixed_moments(columns, leaves, evidence, slot, region, sample, nothing)
            spread = max(math.sqrt(variance), 1e-12 * abs(at), 1e-300)
            if step > 0.0:
                at, spread = (at - origin) / step, max(spread / step, 1.0)
            for k in range(q.shape[0]):
                p = q[k]
                if p > 1.0 - 1e-9:  # all the leaves' shares may sum to less, by rounding
                    p = min(p, mixed_cdf(columns, leaves, evidence, slot, region, mixture, math.inf))
                u = mixture_quantile(columns, leaves, evidence, slot, region, mixture, sample, p, at, spread)
                out[i, k] = origin + u * step if step > 0.0 else u
    return out
