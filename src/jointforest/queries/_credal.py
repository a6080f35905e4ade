"""Kernels: how improbable and how probable one cell can become when a leaf's parameters are contaminated.

Rows of the parameter tables stand for leaves, or for parts of circuits. The mean of a normal may move by ``reach``; its
density at x is log-concave in the mean, as the derivative of its logarithm is (E[X | cell of x] - E[X]) / b^2 and that
of the expectations the difference of two variances, of which that of the cell is the smaller one.
"""

from __future__ import annotations

import math

from ..leaves._cells import log_norm, log_pdf, mean_variance
from ..leaves._grid import log_cell_density
from ..leaves._slots import kernel
from ..leaves.table import NORMAL

_NEAR = 1e-9
"""A mean this close to the best one, in standard deviations, is the best one: the density is flat there."""


@kernel
def has_cut(leaves, row, slot):
    """Whether the slot's support has an end."""
    return leaves.lo[row, slot] > -math.inf or leaves.hi[row, slot] < math.inf


@kernel
def _log_density_at(leaves, row, slot, mean, x, step):
    """Log density of the value (of its cell, whose centre is x) if the normal had this mean."""
    b, lo, hi = leaves.b[row, slot], leaves.lo[row, slot], leaves.hi[row, slot]
    norm = log_norm(NORMAL, mean, b, lo, hi) if has_cut(leaves, row, slot) else 0.0
    if step > 0.0:
        return log_cell_density(NORMAL, mean, b, lo, hi, norm, x, step)
    return log_pdf(NORMAL, mean, b, lo, hi, norm, x)


@kernel
def _slope(leaves, row, slot, mean, x, step):
    """Slope of the log density in the mean, and its own slope; both times b^2."""
    b, lo, hi = leaves.b[row, slot], leaves.lo[row, slot], leaves.hi[row, slot]
    all_mean, all_var = mean_variance(NORMAL, mean, b, lo, hi, lo, hi)
    if step == 0.0:
        return x - all_mean, -all_var / (b * b)
    cell_mean, cell_var = mean_variance(NORMAL, mean, b, lo, hi, x - 0.5 * step, x + 0.5 * step)
    return cell_mean - all_mean, (cell_var - all_var) / (b * b)


@kernel
def best_mean(leaves, row, slot, x, step, reach):
    """The mean within ``reach`` of the normal's own at which the value is most probable."""
    a, b = leaves.a[row, slot], leaves.b[row, slot]
    if not has_cut(leaves, row, slot):
        return min(max(x, a - reach), a + reach)
    if not leaves.lo[row, slot] < x <= leaves.hi[row, slot]:
        return a
    slope, bend = _slope(leaves, row, slot, a, x, step)
    end = a + reach if slope > 0.0 else a - reach
    at_end = _slope(leaves, row, slot, end, x, step)[0]
    if slope == 0.0 or (slope > 0.0) == (at_end > 0.0):
        return a if slope == 0.0 else end
    lo, hi = min(a, end), max(a, end)
    mean = a
    for _ in range(60):
        new = mean - slope / bend if bend < 0.0 else hi
        if not lo < new < hi:
            new = 0.5 * (lo + hi)
        if abs(new - mean) <= _NEAR * b:
            return new
        mean = new
        slope, bend = _slope(leaves, row, slot, mean, x, step)
        if slope > 0.0:
            lo = mean
        else:
            hi = mean
    return mean


@kernel
def _log_rest(columns, leaves, row, slot, x, reach, best, upper):
    """Bound of the log density of the rest, the part without atoms."""
    family, a, b = leaves.family[row, slot], leaves.a[row, slot], leaves.b[row, slot]
    lo, hi, norm, step = leaves.lo[row, slot], leaves.hi[row, slot], leaves.log_norm[row, slot], columns.step[slot]
    if family != NORMAL or reach == 0.0:
        if step > 0.0:
            return log_cell_density(family, a, b, lo, hi, norm, x, step)
        return log_pdf(family, a, b, lo, hi, norm, x)
    if upper:
        return _log_density_at(leaves, row, slot, min(max(best, a - reach), a + reach), x, step)
    if has_cut(leaves, row, slot):
        left = _log_density_at(leaves, row, slot, a - reach, x, step)
        return min(left, _log_density_at(leaves, row, slot, a + reach, x, step))
    return _log_density_at(leaves, row, slot, a - reach if x >= a else a + reach, x, step)


@kernel
def _log(x):
    return math.log(x) if x > 0.0 else -math.inf


@kernel
def value_log_bound(columns, leaves, row, slot, x, atom, epsilon, reach, best, upper):
    """Bound of `leaves._slots.value_log_density`; ``x`` is the cell's centre on a grid, ``best`` from `best_mean`.

    Atoms and the rest are the outcomes of one categorical distribution, which is contaminated like any other.
    """
    first = columns.atom_start[slot]
    n_atoms = columns.atom_start[slot + 1] - first
    if n_atoms == 0:
        return _log_rest(columns, leaves, row, slot, x, reach, best, upper)
    kept = 1.0 - epsilon
    added = epsilon if upper else 0.0
    step = columns.step[slot]
    if atom >= 0 and step == 0.0:
        return _log(kept * leaves.atom_mass[row, first + atom] + added)
    log_rest = _log_rest(columns, leaves, row, slot, x, reach, best, upper)
    share = math.exp(leaves.log_rest[row, slot])
    if atom < 0:
        return _log(kept * share + added) + log_rest
    mass = math.exp(log_rest) * step
    if not upper and n_atoms == 1:  # all that contaminates is on the atom or in the rest: the cell gets some
        added = epsilon * mass
    return _log(kept * (leaves.atom_mass[row, first + atom] + share * mass) + added) - math.log(step)
