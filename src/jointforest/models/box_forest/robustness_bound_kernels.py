"""Kernels: how improbable and how probable one number can become when its distribution is contaminated.

The mean of a normal may move by ``reach``. The density at x is log-concave in the mean: the derivative of the logarithm
is (E[X | cell of x] - E[X]) / b^2, and that of the expectations the difference of two variances, of which that of the
cell is the smaller one.
"""

from __future__ import annotations

import math

from ...runtime.compile import kernel
from .leaves.family_kernels import log_norm, mean_variance
from .leaves.grid_kernels import log_density
from .leaves.level_kernels import level_mass, log_level
from .leaves.normal_kernels import INV_SQRT_2PI, short_series, upper_tail
from .leaves.piece_kernels import piece, piece_at
from .leaves.table import NORMAL, PIECES, Density

_NEAR = 1e-5
"""A last step of Newton's method of this, in standard deviations, leaves an error of about its square, and the density
is flat there."""
_FINE = 1e-4
"""In cells this narrow, in standard deviations, the mean is the centre, to the square of this."""

_MEAN_EXCESS = 0.8
"""The mean of a standard normal above z >= 0 lies at most this (the square root of 2 / pi) above z."""


@kernel
def is_cut(d):
    """Whether the support has an end."""
    return d.lo > -math.inf or d.hi < math.inf


@kernel
def _moved(d, mean):
    """The normal with another mean."""
    moved = Density(d.family, mean, d.b, d.lo, d.hi, 0.0)
    if is_cut(d):
        moved = Density(d.family, mean, d.b, d.lo, d.hi, log_norm(moved))
    return moved


@kernel
def _slope(d, mean, step, x):
    """Slope of the log density in the mean, and its own slope; both times b^2."""
    moved = Density(d.family, mean, d.b, d.lo, d.hi, 0.0)
    all_mean, all_var = mean_variance(moved, d.lo, d.hi)
    if step <= _FINE * d.b:
        return x - all_mean, -all_var / (d.b * d.b)
    cell_mean, cell_var = mean_variance(moved, x - 0.5 * step, x + 0.5 * step)
    return cell_mean - all_mean, (cell_var - all_var) / (d.b * d.b)


@kernel
def best_mean(d, step, x, reach):
    """The mean within ``reach`` of a at which the value is most probable."""
    if not is_cut(d):
        return min(max(x, d.a - reach), d.a + reach)
    if not d.lo < x <= d.hi:
        return d.a
    slope, curvature = _slope(d, d.a, step, x)
    if slope == 0.0:
        return d.a
    end = d.a + reach if slope > 0.0 else d.a - reach
    if (slope > 0.0) == (_slope(d, end, step, x)[0] > 0.0):
        return end
    low, high, mean = min(d.a, end), max(d.a, end), d.a
    for _ in range(60):
        new = mean - slope / curvature if curvature < 0.0 else high
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - mean) <= _NEAR * d.b:
            return new
        mean = new
        slope, curvature = _slope(d, mean, step, x)
        if slope > 0.0:
            low = mean
        else:
            high = mean
    return mean


@kernel
def trend(d, step, x, reach):
    """1 if the value is the more probable the larger the mean, everywhere within ``reach`` of a; -1 if the smaller.

    0 if neither is plain to see. What is cut off below raises E[X], but not above max(mean, lo) + 0.8 b.
    """
    above = d.a + reach if d.lo == -math.inf else max(d.a + reach, d.lo) + _MEAN_EXCESS * d.b
    if x - 0.5 * step >= above:
        return 1
    below = d.a - reach if d.hi == math.inf else min(d.a - reach, d.hi) - _MEAN_EXCESS * d.b
    return -1 if x + 0.5 * step <= below else 0


@kernel
def _density_at(d, mean, step, x):
    """Density of a normal with this mean, of the value or its cell: a log and a factor, as logarithms take time."""
    scale = 1.0 / d.b
    z, h = (x - mean) * scale, step * scale
    z2, y = z * z, h * h
    zl, zh = (d.lo - mean) * scale, (d.hi - mean) * scale
    near = (zl > -0.5 and zh < 40.0) or (zh < 0.5 and zl > -40.0)  # both ends matter, and their masses may cancel
    if y * (z2 + 4.0) > 0.05 or zl > 8.0 or zh < -8.0 or near:
        return log_density(_moved(d, mean), x, step), 1.0
    if not d.lo < x <= d.hi:
        return -math.inf, 1.0
    factor = INV_SQRT_2PI * scale
    if step > 0.0:
        factor += factor * short_series(z2, y)
    if zl > -0.5:
        factor /= upper_tail(zl) if zl > 0.0 else 1.0 - upper_tail(-zl)
    elif zh < 0.5:
        factor /= upper_tail(-zh) if zh < 0.0 else 1.0 - upper_tail(zh)
    elif is_cut(d):
        factor /= 1.0 - upper_tail(-zl) - upper_tail(zh)
    return -0.5 * z2, factor


@kernel
def normal_density_bound(d, step, x, reach, rises, best, upper):
    """Bound of the density of a normal, cut or not, whose mean may move by ``reach``, as a log and a factor.

    ``rises`` is from `trend`. Where it is 0, upper bounds of a cut normal need ``best`` from `best_mean`, those of
    a whole one x.
    """
    if rises != 0:
        return _density_at(d, d.a + reach if (rises > 0) == upper else d.a - reach, step, x)
    if upper:
        return _density_at(d, min(max(best, d.a - reach), d.a + reach), step, x)
    if not is_cut(d):
        return _density_at(d, d.a - reach if x >= d.a else d.a + reach, step, x)
    log_1, factor_1 = _density_at(d, d.a - reach, step, x)
    log_2, factor_2 = _density_at(d, d.a + reach, step, x)  # the farther end need not be the worse one
    return (log_1, factor_1) if log_1 - log_2 < math.log(factor_2 / factor_1) else (log_2, factor_2)


@kernel
def with_atoms(log_bound, log_rest, atom_mass, n_atoms, step, epsilon, upper):
    """Bound of a number's density in a slot with atoms, as a mass and the log of a factor.

    ``log_bound`` is the bound without atoms, ``atom_mass`` the mass of the number's atom, or -1 if it is none.
    Atoms and the rest are outcomes of one categorical distribution, which is contaminated like any other.
    """
    kept, added = 1.0 - epsilon, epsilon if upper else 0.0
    if atom_mass < 0.0:
        return kept * math.exp(log_rest) + added, log_bound
    if step == 0.0:
        return kept * atom_mass + added, 0.0
    cell = math.exp(log_bound) * step
    if not upper and n_atoms == 1:  # all that contaminates is on the atom or in the rest: the cell gets some
        added = epsilon * cell
    return kept * (atom_mass + math.exp(log_rest) * cell) + added, -math.log(step)


# ---- Kernels: the lowest and the highest density that a contaminated leaf can give the evidence.


@kernel
def _log(x):
    return math.log(x) if x > 0.0 else -math.inf


@kernel
def _best_mean(worst, at, d, step, x, unit, reach):
    """`best_mean` of x, kept for every epsilon ``at`` a reached leaf (its place) and slot; place -1: not kept."""
    if at[0] < 0:
        return best_mean(d, step, x, reach)
    best = worst.best_mean[at]
    if best != best:
        best = best_mean(d, step, x, unit)
        worst.best_mean[at] = best
    return best


@kernel
def _number_bound(problem, reached, worst, row, j, i, epsilon, upper):
    """Bound of the density of the known number j in a leaf, as the product of a mass, a factor and e^log.

    ``i`` is the place of the leaf among the reached ones.
    """
    columns, leaves = problem.columns, problem.leaves
    slot, x, atom = columns.slot[j], reached.x[j], reached.atom[j]
    step, first = columns.step[slot], columns.atom_start[slot]
    log, factor, mass, n_atoms = 0.0, 1.0, 1.0, columns.atom_start[slot + 1] - first
    if step > 0.0 or atom < 0:
        d, log_share = piece(leaves, row, slot, piece_at(leaves, row, slot, x))
        unit = problem.c * (d.b if problem.unit.shape[0] == 0 else problem.unit[slot])
        reach = unit * epsilon
        if d.family != NORMAL or reach == 0.0:
            log = log_density(d, x, step)
        else:
            rises, best = trend(d, step, x, reach), x
            if upper and rises == 0 and is_cut(d):
                best = _best_mean(worst, (i, slot), d, step, x, unit, reach)
            log, factor = normal_density_bound(d, step, x, reach, rises, best, upper)
        if leaves.family[row, slot] == PIECES:
            log += _log((1.0 - epsilon) * math.exp(log_share) + (epsilon if upper else 0.0))
    if n_atoms > 0:
        atom_mass = -1.0
        if atom >= 0:
            atom_mass = leaves.atom_mass[row, first + atom]
            log, factor = log + math.log(factor), 1.0
        mass, log = with_atoms(log, leaves.log_rest[row, slot], atom_mass, n_atoms, step, epsilon, upper)
    return mass, factor, log


@kernel
def _leaf_log_bound(problem, reached, worst, i, epsilon, log_kept, upper):
    """Log bound of the evidence in the i-th of the reached leaves; log_kept: log(1 - epsilon)."""
    leaves, slot, level = problem.leaves, reached.level_slot, reached.level
    row, n_levels = reached.leaf[i], reached.n_levels[0]
    total, product = 0.0, 1.0  # logarithms are taken of products of many
    if upper and epsilon > 0.0:
        for k in range(n_levels):
            product *= (1.0 - epsilon) * level_mass(leaves, row, slot[k], level[k]) + epsilon
            if product < 1e-100:
                total, product = total + math.log(product), 1.0
    else:
        for k in range(n_levels):
            total += log_level(leaves, row, slot[k], level[k])
        total += n_levels * log_kept if n_levels > 0 else 0.0
    for k in range(reached.n_numbers[0]):
        if total == -math.inf:
            break
        mass, factor, log = _number_bound(problem, reached, worst, row, reached.number[k], i, epsilon, upper)
        product *= factor * mass
        if not 1e-100 < product < 1e100:
            total, product = total + _log(product), 1.0
        total += log
    return total + math.log(product)


@kernel
def bound_leaves(problem, reached, worst, first, stop, epsilon):
    """Write the log bounds of the evidence in those of the reached leaves that lack them."""
    leaves = problem.leaves
    log_kept = math.log1p(-epsilon) if epsilon < 1.0 else -math.inf
    for i in range(first, stop):
        row, upper = reached.leaf[i], worst.value[i] > 0.0
        bound = worst.upper[i] if upper else worst.lower[i]
        if bound == bound:
            continue
        bound = 0.0
        if not worst.is_impossible[leaves.tree[row]]:
            bound = _leaf_log_bound(problem, reached, worst, i, epsilon, log_kept, upper)
        if upper:
            worst.upper[i] = bound
        else:
            worst.lower[i] = bound
