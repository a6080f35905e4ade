"""Columns with a grid: the mass of a cell, and the moments of the cells' centres weighted by their masses."""

from __future__ import annotations

import math

import numpy as np

from ....runtime.compile import kernel
from .family_kernels import _FAR, log_mass, log_pdf, mean_variance
from .normal_kernels import LOG_SQRT_2PI, narrow_series, short_series
from .student_kernels import log_pdf as student_log_pdf
from .table import NORMAL, UNIFORM

_FEW = 32
"""Up to this many cells are summed one by one."""
_UNRESOLVED = 2.0**50
"""Beyond this many cells from 0 floats no longer tell the edges of a cell well."""
_CORE = 40.0
"""Cells on either side of a coarse Student t's centre that are summed one by one."""


@kernel
def cell_centre(step, origin, x):
    """Centre of the cell (centre - step/2, centre + step/2] with x in it."""
    # np.ceil, not math.ceil: that one makes an int64, which overflows far out
    cell = (x - origin) / step
    return origin + np.ceil(cell - 0.5) * step if abs(cell) < _UNRESOLVED else x


@kernel
def _log_cell_general(family, a, b, lo, hi, log_norm, centre, step):
    if abs(centre) > _UNRESOLVED * step:  # the cell's edges would be rounded, far out even to its centre
        return log_pdf(family, a, b, lo, hi, log_norm, centre)
    return log_mass(family, a, b, lo, hi, log_norm, centre - 0.5 * step, centre + 0.5 * step) - math.log(step)


@kernel
def log_cell_density(family, a, b, lo, hi, log_norm, centre, step):
    """Log of the mass of a cell over its width; -inf if its centre is outside (lo, hi]."""
    if not lo < centre <= hi:
        return -math.inf
    if family == NORMAL:
        scale = 1.0 / b
        z = (centre - a) * scale
        h = step * scale
        z2 = z * z
        y = h * h
        r = y * (z2 + 4.0)
        if r <= 1.0 and log_norm >= _FAR:
            series = short_series(z2, y) if r <= 0.05 else narrow_series(z2, y)
            return math.log(scale + scale * series) - 0.5 * z2 - (log_norm + LOG_SQRT_2PI)
    elif family == UNIFORM:
        return -log_norm
    return _log_cell_general(family, a, b, lo, hi, log_norm, centre, step)


@kernel
def _derivatives(family, z):
    """Log of the standard density f at z, and its first to sixth derivative over f (Student t: only to the third)."""
    z2 = z * z
    if family == NORMAL:
        d3 = z * (3.0 - z2)
        d4 = (z2 - 6.0) * z2 + 3.0
        d5 = -z * ((z2 - 10.0) * z2 + 15.0)
        d6 = ((z2 - 15.0) * z2 + 45.0) * z2 - 15.0
        return -0.5 * z2 - LOG_SQRT_2PI, -z, z2 - 1.0, d3, d4, d5, d6
    p = 1.0 / (4.0 + z2)
    d1 = -5.0 * z * p
    d2 = (30.0 * z2 - 20.0) * p * p
    d3 = -z * (210.0 * z2 - 420.0) * p * p * p
    return student_log_pdf(z), d1, d2, d3, 0.0, 0.0, 0.0


@kernel
def _edge(family, z, y, log_m, r):
    """One edge's part of E[t], E[(X - r) t] and E[t^2], t = X - centre of X's cell, in standard units; y = step^2.

    Summing the Taylor series of the density over cells gives, with D the derivative at the edges and h the step,
    E[t] = [A(D) f] and E[t^2] = h^2/12 + [B(D) f] with A = (h/2) coth(hD/2) / D - 1 / D^2 and
    B = h^2 / (4 D) - h coth(hD/2) / D^2 + 2 / D^3 - h^2 / (12 D); E[(X - r) t] = [A(D) (x - r) f].
    """
    if math.isinf(z):
        return 0.0, 0.0, 0.0
    log_f, d1, d2, d3, d4, d5, d6 = _derivatives(family, z)
    f = math.exp(log_f - log_m)
    a1, a2, a3 = y / 720.0, y * y / 30240.0, y * y * y / 1209600.0
    a = 1.0 / 12.0 - a1 * d2 + a2 * d4 - a3 * d6
    c = (z - r) * a - 2.0 * a1 * d1 + 4.0 * a2 * d3 - 6.0 * a3 * d5
    b = y * (d1 / 360.0 - y * d3 / 15120.0 + y * y * d5 / 604800.0)
    return y * f * a, y * f * c, y * f * b


@kernel
def _smooth(family, a, b, log_m, u, v, step):
    """Moments of the centres from those of the density and corrections at the edges (Euler-Maclaurin)."""
    mean, var = mean_variance(family, a, b, u, v, u, v)
    if family == UNIFORM:
        return mean, max(var - step * step / 12.0, 0.0)
    r = (mean - a) / b
    y = (step / b) * (step / b)
    t_hi, xt_hi, tt_hi = _edge(family, (v - a) / b, y, log_m, r)
    t_lo, xt_lo, tt_lo = _edge(family, (u - a) / b, y, log_m, r)
    t = t_hi - t_lo
    var_z = var / (b * b) - 2.0 * (xt_hi - xt_lo) + (tt_hi - tt_lo) + y / 12.0 - t * t
    return mean - b * t, max(var_z, 0.0) * b * b


@kernel
def _few(family, a, b, lo, hi, log_norm, first, last, step, origin):
    """Moments of the centres first..last cell by cell, outwards from the mode."""
    at = min(max(cell_centre(step, origin, a), first), last)
    peak = log_cell_density(family, a, b, lo, hi, log_norm, at, step)
    s0, s1, s2 = 1.0, 0.0, 0.0
    for sign in (1.0, -1.0):
        k = 1.0
        end = (last - at) / step if sign > 0.0 else (at - first) / step
        while k < end + 0.5:
            d = sign * k
            w = math.exp(log_cell_density(family, a, b, lo, hi, log_norm, at + d * step, step) - peak)
            s0 += w
            s1 += w * d
            s2 += w * d * d
            if w < 1e-25:
                break
            k += 1.0
    mean = s1 / s0
    return at + mean * step, max(s2 / s0 - mean * mean, 0.0) * step * step


@kernel
def pool(log_w1, mean1, var1, log_w2, mean2, var2):
    """Log weight, mean and variance of two parts together."""
    if log_w2 == -math.inf:
        return log_w1, mean1, var1
    if log_w1 == -math.inf:
        return log_w2, mean2, var2
    top = max(log_w1, log_w2)
    w1, w2 = math.exp(log_w1 - top), math.exp(log_w2 - top)
    p = w2 / (w1 + w2)
    d = mean2 - mean1
    return top + math.log(w1 + w2), mean1 + p * d, (1.0 - p) * var1 + p * var2 + p * (1.0 - p) * d * d


@kernel
def _is_smooth(family, a, b, log_m, u, v, step):
    """Whether the expansion at the edges is exact to about 1e-11 of the spread."""
    h = step / b
    if family == UNIFORM:
        return True
    if family != NORMAL:
        return h <= 1.0 / 16.0
    if h > 0.7:
        return False
    for x in (u, v):
        z = abs(x - a) / b
        if h * z > 0.5 and z < math.inf and -0.5 * z * z - log_m + math.log(h) > -60.0:
            return False
    return True


@kernel
def _centres_inside(u, v, step, origin):
    """The first and last cell centre in (u, v], whose ends are on cell edges up to rounding; infinite ends stay."""
    first = origin + np.floor((u - origin) / step + 1.0) * step if u > -math.inf else u
    last = origin + np.ceil((v - origin) / step - 1.0) * step if v < math.inf else v
    return first, last


@kernel
def grid_mean_variance(family, a, b, lo, hi, log_norm, u, v, step, origin):
    """Mean and variance of the centres of the cells in (u, v] within the support, which lies on cell edges."""
    u, v = max(u, lo), min(v, hi)
    first, last = _centres_inside(u, v, step, origin)
    if family == UNIFORM:
        n = (v - u) / step
        return 0.5 * (first + last), (n * n - 1.0) / 12.0 * step * step if n > 1.5 else 0.0
    if last - first <= (_FEW - 1) * step:
        if last - first < 0.5 * step:
            return first, 0.0
        return _few(family, a, b, lo, hi, log_norm, first, last, step, origin)
    log_m = log_mass(family, a, b, lo, hi, log_norm, u, v) + log_norm
    if _is_smooth(family, a, b, log_m, u, v, step):
        mean, var = _smooth(family, a, b, log_m, u, v, step)
        return min(max(mean, first), last), var
    if family == NORMAL:
        return _few(family, a, b, lo, hi, log_norm, first, last, step, origin)
    return _core_and_tails(family, a, b, lo, hi, log_norm, u, v, step, origin)


@kernel
def _core_and_tails(family, a, b, lo, hi, log_norm, u, v, step, origin):
    """A coarse Student t: cell by cell near its centre, by the smooth expansion further out."""
    first, last = _centres_inside(u, v, step, origin)
    middle = cell_centre(step, origin, a)
    left, right = middle - _CORE * step, middle + _CORE * step
    log_w, mean, var = -math.inf, 0.0, 0.0
    low, high = max(first, left), min(last, right)
    if low <= high + 0.5 * step:
        if low < high:
            mean, var = _few(family, a, b, lo, hi, log_norm, low, high, step, origin)
        else:
            mean = low
        log_w = log_mass(family, a, b, lo, hi, log_norm, low - 0.5 * step, high + 0.5 * step)
    for side in (0, 1):
        x, y = (u, min(v, left - 0.5 * step)) if side == 0 else (max(u, right + 0.5 * step), v)
        if y - x > 0.5 * step:
            w = log_mass(family, a, b, lo, hi, log_norm, x, y)
            part_mean, part_var = _smooth(family, a, b, w + log_norm, x, y, step)
            log_w, mean, var = pool(log_w, mean, var, w, part_mean, part_var)
    return mean, var
