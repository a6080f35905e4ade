"""Kernels of entropies of one column: families, grids, mixtures of rows. The formulas are in
docs/how-to/measure-information.md."""

from __future__ import annotations

import math

import numpy as np

from ...models.box_forest.leaves.density_kernels import density_of
from ...models.box_forest.leaves.family_kernels import entropy as entropy_of
from ...models.box_forest.leaves.family_kernels import log_mass, log_norm, mode
from ...models.box_forest.leaves.grid_kernels import cell_centre, centres_inside, log_cell_density
from ...models.box_forest.leaves.level_kernels import level_mass, log_level
from ...models.box_forest.leaves.slot_kernels import find_atom, value_log_density
from ...models.box_forest.leaves.table import Density
from ...models.box_forest.posterior_kernels import log_sum
from ...runtime.compile import entry, kernel

_FINE = 1.0 / 128.0
"""Cells over which the log density changes by less are summed by the smooth expansion, with an error of some 1e-9."""
_CORE = 1000.0
"""Cells on either side of a coarse density's mode that are summed one by one."""
_NOTHING = -60.0
"""Log mass of a tail that adds less than rounding."""
_NEGLIGIBLE = 1e-20
"""Mass of a cell from which on further cells add less than rounding."""


@kernel
def _cells_entropy(d, at, first, last, step):
    """Sum of -p log(p / step) over the cells first..last, outwards from the one with centre ``at``."""
    total = 0.0
    for sign in (1.0, -1.0):
        k = 0.0 if sign > 0.0 else 1.0
        end = (last - at) / step if sign > 0.0 else (at - first) / step
        while k < end + 0.5:
            log_density = log_cell_density(d, at + sign * k * step, step)
            mass = step * math.exp(log_density)
            if mass > 0.0:
                total -= mass * log_density
            if mass < _NEGLIGIBLE and k > 0.0:
                break
            k += 1.0
    return total


@kernel
def _fine_cells_entropy(d, u, v, step):
    """Sum of -p log(p / step) over the fine cells in (u, v]."""
    log_m = log_mass(d, u, v) if v - u > 0.5 * step else -math.inf
    if log_m < _NOTHING:
        return 0.0
    part = Density(d.family, d.a, d.b, u, v, 0.0)
    entropy, slope = entropy_of(Density(d.family, d.a, d.b, u, v, log_norm(part)))
    return math.exp(log_m) * (entropy + step * step / 24.0 * slope - log_m)


@kernel
def density_entropy(d, step, origin):
    """Entropy of a density against the length on the line; on a grid of its cells' density, mass over step.

    Summing -c log c over fine cells of density c = f + step^2 f''/24 + ... by the midpoint rule, the terms at the ends
    cancel: the sum is the entropy of f plus step^2/24 times the mean of (f'/f)^2, plus terms of step^4.
    """
    entropy, slope = entropy_of(d)
    if step * step * slope <= _FINE * _FINE:
        return entropy + step * step / 24.0 * slope
    first, last = centres_inside(d.lo, d.hi, step, origin)
    at = min(max(cell_centre(step, origin, mode(d, first, last)), first), last)
    left, right = max(first, at - _CORE * step), min(last, at + _CORE * step)
    total = _cells_entropy(d, at, left, right, step)
    total += _fine_cells_entropy(d, d.lo, left - 0.5 * step, step)
    return total + _fine_cells_entropy(d, right + 0.5 * step, d.hi, step)


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
        d = density_of(leaves, r, s)
        if d.lo < end - 0.25 * step:
            return math.nan
        end = d.hi
        total += mass * density_entropy(d, step, origin) - _plogp(mass)
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
            log_density = log_cell_density(density_of(leaves, row[i], s), x, step)
            off_atoms += weight[i] * step * math.exp(leaves.log_rest[row[i], s] + log_density)
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
