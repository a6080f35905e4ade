"""Mean and variance of one column given the rest of a row, by integrals and by sums over cells; imputation."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.integrate import quad

from .column import expectation, given, level_probability, probability_of
from .density import posterior
from .slot import LOGISTIC, NORMAL, STUDENT, UNIFORM, cell_number, cell_of, in_parts, parent_mass, piece


def integral(piece, function, u, v):
    """Integral of function(x) over the truncated part within (u, v], the density cut where it bends."""
    return in_parts(piece, _integral, function, u, v)


def _integral(piece, function, u, v):
    u, v = max(u, piece.lo), min(v, piece.hi)
    if u >= v:
        return 0.0
    scales = (-1000, -40, -8, -3, -1, 0, 1, 3, 8, 40, 1000)
    bends = [] if piece.family == UNIFORM else [piece.a + k * piece.b for k in scales]
    cuts = [u, *(x for x in bends if u < x < v), v]
    norm = float(parent_mass(piece, piece.lo, piece.hi))
    # In standard units, which suit the rule for infinite ranges.
    a, b = (0.0, 1.0) if piece.family == UNIFORM else (piece.a, piece.b)
    parts = [
        b * quad(lambda z: function(a + b * z) * parent_pdf(piece, a + b * z), lo, hi, epsabs=0.0, epsrel=1e-11)[0]
        for lo, hi in pairwise((x - a) / b for x in cuts)
    ]
    return math.fsum(parts) / norm


def parent_pdf(piece, x):
    """Density of the untruncated parent, in plain floats."""
    if piece.family == UNIFORM:
        return 1.0 / (piece.hi - piece.lo)
    z = (x - piece.a) / piece.b
    if piece.family == NORMAL:
        return math.exp(-0.5 * z * z) / (math.sqrt(2 * math.pi) * piece.b)
    if piece.family == LOGISTIC:
        return 0.25 / math.cosh(0.5 * z) ** 2 / piece.b if abs(z) < 700 else 0.0
    return 0.375 / (1.0 + 0.25 * z * z) ** 2.5 / piece.b


def cell_sum(piece, function, u, v):
    """Sum of function(centre) * mass over the grid cells of the truncated part within (u, v], which is on cell edges.

    Beyond 300 scales of a Student t, where 1e-9 of its mass is left, an integral stands for the sum of cells.
    """
    return in_parts(piece, _cell_sum, function, u, v)


def _cell_sum(piece, function, u, v):
    u, v = max(u, piece.lo), min(v, piece.hi)
    if u >= v:
        return 0.0
    far = {NORMAL: 40.0 * piece.b, STUDENT: 300.0 * piece.b, LOGISTIC: 60.0 * piece.b, UNIFORM: math.inf}[piece.family]
    middle_lo = max(u, cell_of(piece, piece.a - far)[0]) if math.isfinite(far) else u
    middle_hi = min(v, cell_of(piece, piece.a + far)[1]) if math.isfinite(far) else v
    total = 0.0
    if middle_lo < middle_hi:
        first, last = cell_number(piece, middle_lo + 0.5 * piece.step), cell_number(piece, middle_hi - 0.5 * piece.step)
        centre = piece.origin + np.arange(first, last + 1) * piece.step
        mass = parent_mass(piece, centre - 0.5 * piece.step, centre + 0.5 * piece.step)
        total = float(np.sum(function(centre) * mass) / parent_mass(piece, piece.lo, piece.hi))
    if piece.family == STUDENT:
        total += integral(piece, function, u, min(v, middle_lo)) + integral(piece, function, max(u, middle_hi), v)
    return total


def slot_integral(piece, function, region):
    """Integral of function over one leaf's column within a set: atoms, and the cells or the density of the rest."""
    held = [(region.weight_of(k) * m, value) for k, (value, m) in enumerate(piece.atoms) if k in region.atoms]
    total = math.fsum(m * function(value) for m, value in held if m > 0.0)
    part = cell_sum if piece.step > 0.0 else integral
    if piece.rest > 0.0:
        total += piece.rest * math.fsum(w * part(piece, function, lo, hi) for (lo, hi), w in region.weighed_runs())
    return total


def mean_variance(given):
    """Mean and variance of numeric column j given the evidence."""
    total = probability_of(given, given.known)
    if total == 0.0:
        return math.nan, math.nan
    if isinstance(given.known, float):
        return given.known, 0.0

    def average(function):
        pieces = {leaf: piece(given.model, leaf, given.j) for _, leaf, _ in given.leaves}
        return expectation(given, lambda leaf, _: slot_integral(pieces[leaf], function, given.known)) / total

    mean = average(lambda x: x)
    return mean, average(lambda x: (x - mean) ** 2)


def impute(model, evidence, i):
    """Row i with its gaps filled: posterior mean (its cell's centre on a grid), or the most probable level."""
    row = []
    for j in range(len(model.columns.slot)):
        column = given(model, evidence, i, j)
        if isinstance(column.known, float):
            row.append(column.known)
        elif model.columns.is_categorical[j]:
            p = level_probability(column)
            row.append(math.nan if np.isnan(p[0]) else float(np.argmax(p)))
        else:
            mean, this = mean_variance(column)[0], piece(model, 0, j)
            if this.step > 0.0 and not math.isnan(mean):
                mean = this.origin + round((mean - this.origin) / this.step) * this.step
            row.append(mean)
    return np.array(row)


def missing_rate(model, evidence, i, j):
    """Expected share of missing cells of column j given the evidence of row i."""
    return float(np.dot(posterior(model, evidence, i), model.leaves.missing_rate[:, j]))
