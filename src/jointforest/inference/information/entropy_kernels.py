"""Kernels of entropies of one column: families, grids, leaves."""

# The formulas are in docs/concepts/information.md.

import math

import numpy as np

from ...models.box_forest.leaves.family_kernels import entropy as entropy_of
from ...models.box_forest.leaves.family_kernels import log_mass, log_norm, mode
from ...models.box_forest.leaves.grid_kernels import cell_centre, centres_inside, log_cell_density
from ...models.box_forest.leaves.level_kernels import level_mass, log_level
from ...models.box_forest.leaves.slot_kernels import (
    find_atom,
    piece,
    piece_numbers,
    rest_log_density,
    value_log_density,
)
from ...models.box_forest.leaves.table import Density
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
    """Entropy of a density with respect to length; on a grid, of the density mass / step of its cells."""
    # In the midpoint rule's sum of -c log c over fine cells of density c = f + step^2 f''/24 + ..., the terms at the
    # ends cancel: the sum is the entropy of f plus step^2/24 times the mean of (f'/f)^2, plus terms of step^4.
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
def _numeric_entropy(columns, leaves, s, leaf):
    """Entropy of numeric slot s in a leaf, whose pieces are disjoint."""
    step, origin = columns.step[s], columns.origin[s]
    total, log_rest = 0.0, leaves.log_rest[leaf, s]
    first, stop = piece_numbers(leaves, leaf, s)
    for k in range(first, stop):
        d, log_share = piece(leaves, leaf, s, k)
        mass = math.exp(log_rest + log_share)
        if mass > 0.0:
            total += mass * density_entropy(d, step, origin) - _plogp(mass)
    for k in range(columns.atom_start[s], columns.atom_start[s + 1]):
        atom = leaves.atom_mass[leaf, k]
        if atom == 0.0:
            continue
        if step == 0.0:
            total -= _plogp(atom)
            continue
        # on a grid the atom's cell has some of the rest, too
        off_atoms = step * math.exp(log_rest + rest_log_density(leaves, leaf, s, columns.atom_value[k], step))
        total += _plogp(off_atoms) - _plogp(atom + off_atoms) + atom * math.log(step)
    return total


@kernel
def _level_entropy(columns, leaves, s, leaf):
    """Entropy of categorical slot s in a leaf."""
    total = 0.0
    for k in range(columns.level_start[s + 1] - columns.level_start[s]):
        total -= _plogp(level_mass(leaves, leaf, s, k))
    return total


@entry
def column_entropies(columns, leaves, j):
    """Entropy of column j in each leaf, (L,)."""
    s = columns.slot[j]
    out = np.empty(leaves.log_weight.shape[0], np.float64)
    for leaf in range(out.shape[0]):
        if columns.is_categorical[j]:
            out[leaf] = _level_entropy(columns, leaves, s, leaf)
        else:
            out[leaf] = _numeric_entropy(columns, leaves, s, leaf)
    return out


@entry
def column_log_densities(columns, leaves, j, x):
    """Log density of column j at points or level codes x in each leaf: (L, x)."""
    s = columns.slot[j]
    out = np.empty((leaves.log_weight.shape[0], x.shape[0]), np.float64)
    for i in range(x.shape[0]):
        atom = -1 if columns.is_categorical[j] else find_atom(columns, s, x[i])
        for leaf in range(out.shape[0]):
            if columns.is_categorical[j]:
                out[leaf, i] = log_level(leaves, leaf, s, int(x[i]))
            else:
                out[leaf, i] = value_log_density(columns, leaves, leaf, s, x[i], atom)
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
