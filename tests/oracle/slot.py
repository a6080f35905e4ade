"""One numeric column in one leaf: atoms, and a truncated parent that holds the rest of the mass; masses of levels.

It is meant for mild parameters, where differences of distribution functions are accurate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import mpmath
import numpy as np
from scipy.special import expit, ndtr, stdtr

from .boxes import n_levels

NORMAL, UNIFORM, STUDENT, LOGISTIC, PIECES = 0, 1, 2, 3, 255
"""LOGISTIC is the family that `test_new_family` adds."""


class Piece(NamedTuple):
    """A numeric column's distribution in a leaf: atoms, and a truncated parent that holds the rest of the mass.

    The rest of one in parts is their mixture: pairs of a share and a `Piece` without atoms.
    """

    atoms: list[tuple[float, float]]  # (value, mass)
    rest: float
    family: int
    a: float
    b: float
    lo: float
    hi: float
    step: float
    origin: float
    parts: list = []  # noqa: RUF012


def piece(model, leaf, j):
    """The distribution of numeric column j in a leaf."""
    c, v, s = model.columns, model.leaves, int(model.columns.slot[j])
    numbers = range(int(c.atom_start[s]), int(c.atom_start[s + 1]))
    atoms = [(float(c.atom_value[k]), float(v.atom_mass[leaf, k])) for k in numbers]
    rest, grid = max(1.0 - math.fsum(mass for _, mass in atoms), 0.0), (float(c.step[s]), float(c.origin[s]))
    family, *parameters = density(v, leaf, s)
    if family != PIECES:
        return Piece(atoms, rest, family, *parameters, *grid)
    first, n = int(parameters[0]), int(parameters[1])
    parts = [
        (math.exp(v.pieces.log_weight[k]), Piece([], 1.0, *density(v.pieces, k, 0), *grid))
        for k in range(first, first + n)
    ]
    middle = parts[n // 2][1]
    return Piece(atoms, rest, PIECES, 0.5 * (max(middle.lo, -9e9) + min(middle.hi, 9e9)), *parameters[1:], *grid, parts)


def density(table, row, s):
    """Family, parameters and support of a density."""
    return int(table.family[row, s]), *(float(of[row, s]) for of in (table.a, table.b, table.lo, table.hi))


def in_parts(piece, of_part, *arguments):
    """What is asked of each part times its share, summed; of a density that is whole, what is asked of it."""
    if not piece.parts:
        return of_part(piece, *arguments)
    return math.fsum(share * of_part(part, *arguments) for share, part in piece.parts)


def parent_mass(piece, u, v):
    """P(u < X <= v) of the untruncated parent; works on arrays."""
    if piece.family == UNIFORM:
        return (v - u) / (piece.hi - piece.lo)
    cdf = {NORMAL: ndtr, STUDENT: lambda z: stdtr(4.0, z), LOGISTIC: expit}[piece.family]
    u, v = (u - piece.a) / piece.b, (v - piece.a) / piece.b
    # Above the centre the difference of upper tails keeps more digits than that of lower ones.
    return np.where(np.asarray(u) > 0.0, cdf(-u) - cdf(-v), cdf(v) - cdf(u))


def parent_log_pdf(piece, x):
    """Log-density of the untruncated parent, in 30 digits so that no square overflows."""
    if piece.family == UNIFORM:
        return -math.log(piece.hi - piece.lo)
    with mpmath.workdps(30):
        z = (mpmath.mpf(x) - piece.a) / piece.b
        if piece.family == NORMAL:
            return float(-z * z / 2 - mpmath.log(2 * mpmath.pi) / 2 - mpmath.log(piece.b))
        if piece.family == LOGISTIC:
            return float(-z - 2 * mpmath.log1p(mpmath.exp(-z)) - mpmath.log(piece.b))
        return float(mpmath.log(mpmath.mpf(3) / 8) - mpmath.log(1 + z * z / 4) * 5 / 2 - mpmath.log(piece.b))


def log(x):
    """Logarithm with log 0 = -inf."""
    return math.log(x) if x > 0.0 else -math.inf


def rest_log_pdf(piece, x):
    """Log-density of the truncated part at x."""
    for share, part in piece.parts:
        if part.lo < x <= part.hi:
            return log(share) + rest_log_pdf(part, x)
    if piece.parts or not piece.lo < x <= piece.hi:
        return -math.inf
    return parent_log_pdf(piece, x) - log(parent_mass(piece, piece.lo, piece.hi))


def rest_mass(piece, u, v):
    """P(u < X <= v) of the truncated part."""
    return in_parts(piece, _mass, u, v)


def _mass(piece, u, v):
    u, v = max(u, piece.lo), min(v, piece.hi)
    return float(parent_mass(piece, u, v) / parent_mass(piece, piece.lo, piece.hi)) if u < v else 0.0


def cell_number(piece, x):
    """Number of the grid cell ``(centre - step/2, centre + step/2]`` that x lies in."""
    return math.ceil((x - piece.origin) / piece.step - 0.5)


def cell_of(piece, x):
    """Bounds of the grid cell that x lies in."""
    k = cell_number(piece, x)
    return piece.origin + (k - 0.5) * piece.step, piece.origin + (k + 0.5) * piece.step


def value_log_density(piece, x):
    """Design, "Densities of one column in one leaf": atom, density, or mass of the cell over its width."""
    if piece.step == 0.0:
        for value, mass in piece.atoms:
            if value == x:
                return log(mass)
        return log(piece.rest) + rest_log_pdf(piece, x)
    lo, hi = cell_of(piece, x)
    on_atom = math.fsum(mass for value, mass in piece.atoms if lo < value <= hi)
    return log(on_atom + piece.rest * rest_mass(piece, lo, hi)) - math.log(piece.step)


def level_mass(model, leaf, j):
    """Masses of the levels of categorical column j in a leaf."""
    slot, leaves, n = model.columns.slot[j], model.leaves, n_levels(model, j)
    wide, place = leaves.wide, int(leaves.wide.place[slot])
    if place >= 0:
        return leaves.level_mass[leaf, place : place + n].tolist()
    t, w = -1 - place, wide.scale.shape[1]
    first, level = int(wide.start[t]), np.arange(n)
    word = wide.words[wide.set_at[leaf, t] + level // 64]
    is_shared = word >> (level % 64).astype(np.uint64) & np.uint64(1) == 1
    shared = np.where(is_shared, wide.share[wide.share_row[leaf, t], first : first + n], 0.0)
    mass = (wide.scale[leaf, t] * shared).tolist()
    for at in range(wide.own_start[leaf * w + t], wide.own_start[leaf * w + t + 1]):
        mass[wide.own_level[at]] += float(wide.own_mass[at])
    return mass
