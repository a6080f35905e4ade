"""Kernels of entropies of one column: families, grids, mixtures of rows. The formulas are in
docs/how-to/measure-information.md."""

from __future__ import annotations

import math

import numpy as np

from ...models.box_forest.leaves import normal_kernels as normal
from ...models.box_forest.leaves import student_kernels as student
from ...models.box_forest.leaves.family_kernels import log_mass
from ...models.box_forest.leaves.family_kernels import log_norm as log_parent_mass
from ...models.box_forest.leaves.grid_kernels import cell_centre, log_cell_density
from ...models.box_forest.leaves.level_kernels import level_mass, log_level
from ...models.box_forest.leaves.normal_kernels import LOG_SQRT_2PI, Z_MAX
from ...models.box_forest.leaves.slot_kernels import find_atom, value_log_density
from ...models.box_forest.leaves.table import NORMAL, UNIFORM
from ...models.box_forest.posterior_kernels import log_sum
from ...runtime.compile import entry, kernel

_NODE, _WEIGHT = np.polynomial.legendre.leggauss(16)
_FAR = 10.0
"""In y = asinh(z / 2) the Student t falls like exp(-4 y): beyond this nothing is left."""
_FINE = 1.0 / 32.0
"""Cells this narrow against the density's scale are summed by the smooth expansion, with an error of some 1e-9."""
_CORE = 1000.0
"""Cells on either side of a coarse Student t's centre that are summed one by one."""
_NEGLIGIBLE = 1e-20
"""Mass of a cell from which on further cells add less than rounding."""


@kernel
def _normal_entropy(a, b, lo, hi):
    """Entropy of a truncated normal, and the mean of the square of its log density's slope."""
    za, zb, h = (lo - a) / b, (hi - a) / b, (hi - lo) / b
    if za + zb < 0.0:
        za, zb = -zb, -za
    if za > Z_MAX:
        return math.log(hi - lo), 0.0
    anchor, mean, var = normal.mean_variance(za, zb, h)
    mu = mean if anchor == 0 else za + mean
    slope = (var + mu * mu) / (b * b)
    if za >= 0.0:  # relative to the edge: far out the log mass and the mean square cancel
        return math.log(b) + normal.log_scaled(za, zb, h) + za * mean + 0.5 * (var + mean * mean), slope
    return math.log(b) + normal.log_interval(za, zb, h) + LOG_SQRT_2PI + 0.5 * (var + mu * mu), slope


@kernel
def _student_entropy(a, b, lo, hi):
    """Entropy of a truncated Student t, and the mean of the square of its log density's slope.

    In y = asinh(z / 2) its density is as cosh(y)^-4.
    """
    ya, yb = math.asinh(0.5 * (lo - a) / b), math.asinh(0.5 * (hi - a) / b)
    if ya + yb < 0.0:
        ya, yb = -yb, -ya
    nearest = max(ya, 0.0)
    ya, yb = max(ya, -_FAR), min(yb, nearest + _FAR)
    panels = max(math.ceil(yb - ya), 1)
    width = (yb - ya) / panels
    total, log_cosh, slope = 0.0, 0.0, 0.0
    for k in range(panels):
        for i in range(_NODE.shape[0]):
            y = ya + (k + 0.5 + 0.5 * _NODE[i]) * width
            # log cosh y, and relative to the nearest point
            s = abs(y)
            g = s + math.log1p(math.exp(-2.0 * s))
            w = _WEIGHT[i] * math.exp(-4.0 * (g - nearest - math.log1p(math.exp(-2.0 * nearest))))
            t = math.tanh(y)
            total += w
            log_cosh += w * (g - math.log(2.0))
            slope += w * 6.25 * t * t * (1.0 - t * t)
    log_norm = student.log_interval((lo - a) / b, (hi - a) / b, (hi - lo) / b)
    return math.log(b) + log_norm - student.LOG_3_8 + 5.0 * log_cosh / total, slope / total / (b * b)


@kernel
def _density_entropy(family, a, b, lo, hi, step):
    """Entropy of the density on (lo, hi]; on a grid of fine cells, that of the cells.

    Summing -c log c over cells of density c = f + step^2 f''/24 + ... by the midpoint rule, the terms at the ends
    cancel: the sum is the entropy of f plus step^2/24 times the mean of (f'/f)^2, plus terms of step^4.
    """
    if family == UNIFORM:
        return math.log(hi - lo)
    if family == NORMAL:
        entropy, slope = _normal_entropy(a, b, lo, hi)
    else:
        entropy, slope = _student_entropy(a, b, lo, hi)
    return entropy + step * step / 24.0 * slope


@kernel
def _cells_entropy(family, a, b, lo, hi, log_norm, first, last, step, origin):
    """Sum of -p log(p / step) over the cells first..last, outwards from the mode."""
    at = min(max(cell_centre(step, origin, a), first), last)
    total = 0.0
    for sign in (1.0, -1.0):
        k = 0.0 if sign > 0.0 else 1.0
        end = (last - at) / step if sign > 0.0 else (at - first) / step
        while k < end + 0.5:
            log_density = log_cell_density(family, a, b, lo, hi, log_norm, at + sign * k * step, step)
            mass = step * math.exp(log_density)
            if mass > 0.0:
                total -= mass * log_density
            if mass < _NEGLIGIBLE and k > 0.0:
                break
            k += 1.0
    return total


@kernel
def _fine_cells_entropy(family, a, b, lo, hi, log_norm, u, v, step):
    """Sum of -p log(p / step) over the fine cells in (u, v]."""
    if v - u <= 0.5 * step:
        return 0.0
    log_m = log_mass(family, a, b, lo, hi, log_norm, u, v)
    return math.exp(log_m) * (_density_entropy(family, a, b, u, v, step) - log_m) if log_m > -math.inf else 0.0


@kernel
def family_entropy(family, a, b, lo, hi, step, origin):
    """Entropy of a truncated family against the length on the line; on a grid of its cells' density, mass over step."""
    if step == 0.0 or family == UNIFORM:
        return _density_entropy(family, a, b, lo, hi, 0.0)
    # a density changes over b / z at z if normal, over b hypot(2, z) / 5 if Student t
    nearest = max((lo - a) / b, (a - hi) / b, 0.0)
    steepest = nearest + 2.0 if family == NORMAL else 3.0
    if step * steepest <= _FINE * b:
        return _density_entropy(family, a, b, lo, hi, step)
    log_norm = log_parent_mass(family, a, b, lo, hi)
    first = cell_centre(step, origin, lo + 0.5 * step) if lo > -math.inf else -math.inf
    last = cell_centre(step, origin, hi - 0.5 * step) if hi < math.inf else math.inf
    if family == NORMAL:
        return _cells_entropy(family, a, b, lo, hi, log_norm, first, last, step, origin)
    middle = cell_centre(step, origin, a)
    left, right = middle - _CORE * step, middle + _CORE * step
    total = 0.0
    low, high = max(first, left), min(last, right)
    if low <= high + 0.5 * step:
        total = _cells_entropy(family, a, b, lo, hi, log_norm, low, high, step, origin)
    total += _fine_cells_entropy(family, a, b, lo, hi, log_norm, lo, min(hi, left - 0.5 * step), step)
    return total + _fine_cells_entropy(family, a, b, lo, hi, log_norm, max(lo, right + 0.5 * step), hi, step)


@kernel
def _plogp(p):
    return p * math.log(p) if p > 0.0 else 0.0


@kernel
def _numeric_entropy(columns, leaves, s, row, weight, order, first, stop):
    """Entropy of numeric slot s in the mixture first..stop-1; NaN if the supports of two densities overlap.

    ``order[first:stop]`` are its entries in the order of their supports.
    """
    step, origin = columns.step[s], columns.origin[s]
    total, end = 0.0, -math.inf
    for k in range(first, stop):
        r = row[order[k]]
        mass = weight[order[k]] * math.exp(leaves.log_rest[r, s])
        if mass == 0.0:
            continue
        lo, hi = leaves.lo[r, s], leaves.hi[r, s]
        if lo < end - 0.25 * step:
            return math.nan
        end = hi
        entropy = family_entropy(leaves.family[r, s], leaves.a[r, s], leaves.b[r, s], lo, hi, step, origin)
        total += mass * entropy - _plogp(mass)
    for k in range(columns.atom_start[s], columns.atom_start[s + 1]):
        atom = 0.0
        for i in range(first, stop):
            atom += weight[i] * leaves.atom_mass[row[i], k]
        if atom == 0.0:
            continue
        if step == 0.0:
            total -= _plogp(atom)
            continue
        # on a grid the atom's cell has some of the rest, too
        off_atoms, x = 0.0, columns.atom_value[k]
        for i in range(first, stop):
            r = row[i]
            f, a, b, lo, hi = leaves.family[r, s], leaves.a[r, s], leaves.b[r, s], leaves.lo[r, s], leaves.hi[r, s]
            log_density = log_cell_density(f, a, b, lo, hi, leaves.log_norm[r, s], x, step)
            off_atoms += weight[i] * step * math.exp(leaves.log_rest[r, s] + log_density)
        total += _plogp(off_atoms) - _plogp(atom + off_atoms) + atom * math.log(step)
    return total


@kernel
def _level_entropy(columns, leaves, s, row, weight, first, stop):
    """Entropy of categorical slot s in the mixture first..stop-1."""
    total = 0.0
    for k in range(columns.level_start[s + 1] - columns.level_start[s]):
        mass = 0.0
        for i in range(first, stop):
            mass += weight[i] * level_mass(leaves, row[i], s, k)
        total -= _plogp(mass)
    return total


@entry
def column_entropies(columns, leaves, j, start, row, weight, order):
    """Entropy of column j in the mixtures of parameter rows ``row[start[k]:start[k + 1]]``; NaN where it is not exact.

    ``order[start[k]:start[k + 1]]`` are the mixture's entries; those of a number in the order of their supports.
    """
    s = columns.slot[j]
    out = np.empty(start.shape[0] - 1, np.float64)
    for k in range(out.shape[0]):
        if columns.is_categorical[j]:
            out[k] = _level_entropy(columns, leaves, s, row, weight, start[k], start[k + 1])
        else:
            out[k] = _numeric_entropy(columns, leaves, s, row, weight, order, start[k], start[k + 1])
    return out


@entry
def column_log_densities(columns, leaves, j, start, row, weight, x):
    """Log density of column j at points or level codes x in the mixtures ``row[start[k]:start[k + 1]]``: (k, x)."""
    s = columns.slot[j]
    out = np.full((start.shape[0] - 1, x.shape[0]), -math.inf)
    terms = np.empty(row.shape[0], np.float64)
    for i in range(x.shape[0]):
        atom = -1 if columns.is_categorical[j] else find_atom(columns, s, x[i])
        for k in range(out.shape[0]):
            n = start[k + 1] - start[k]
            for e in range(n):
                at = start[k] + e
                if columns.is_categorical[j]:
                    terms[e] = log_level(leaves, row[at], s, int(x[i]))
                else:
                    terms[e] = value_log_density(columns, leaves, row[at], s, x[i], atom)
                terms[e] += math.log(weight[at])
            out[k, i] = log_sum(terms, n)
    return out


@entry
def leaf_divergence(leaves, post):
    """Divergence of each row's posterior of the leaves from their weights, (rows,)."""
    out = np.zeros(post.log_evidence.shape[0], np.float64)
    for i in range(out.shape[0]):
        for k in range(post.start[i], post.start[i + 1]):
            log_share = post.log_weight[k] - post.log_evidence[i]
            out[i] += math.exp(log_share) * (log_share - leaves.log_weight[post.leaf[k]])
    return out
