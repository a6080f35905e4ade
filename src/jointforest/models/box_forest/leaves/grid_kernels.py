"""Columns with a grid: the mass of a cell, and the moments of the cells' centres weighted by their masses."""

import math

import numpy as np

from ....runtime.compile import kernel
from .density_kernels import cell_by_mass
from .family_kernels import by_family, derivatives, log_mass, log_pdf, mean_variance, mode

_FEW = 32
"""Up to this many cells are summed one by one."""
_UNRESOLVED = 2.0**50
"""Beyond this many cells from 0, floats are too coarse for the edges of a cell."""
_CORE = 64.0
"""Cells on either side of the mode of a coarse density that are summed one by one."""
_NOTHING = 60.0
"""By how much the log mass of a tail may be below the core's without being left out."""
_FINE = 1.0 / 16.0
"""Cells this narrow, in scales, are summed by the expansion at the edges, exact to about 1e-11 of the spread."""


@kernel
def cell_centre(step, origin, x):
    """Centre of the cell (centre - step/2, centre + step/2] with x in it."""
    # np.ceil, not math.ceil: that one makes an int64, which overflows far out
    cell = (x - origin) / step
    return origin + np.ceil(cell - 0.5) * step if abs(cell) < _UNRESOLVED else x


_log_cell = by_family("log_cell", cell_by_mass(log_pdf, log_mass))


@kernel
def log_cell_density(d, centre, step):
    """Log of the mass of a cell over its width; -inf if its centre is outside (lo, hi]."""
    return _log_cell(d, centre, step) if d.lo < centre <= d.hi else -math.inf


@kernel
def log_density(d, x, step):
    """Log density at x; on a grid (``step`` > 0) of the cell with centre x."""
    return log_cell_density(d, x, step) if step > 0.0 else log_pdf(d, x)


@kernel
def _edge_moments(d, z, y, log_m, r):
    """One edge's part of E[t], E[(X - r) t] and E[t^2], t = X - centre of X's cell, in standard units; y = step^2."""
    # Summing the Taylor series of the density over cells gives, with D the derivative at the edges and h the step, E[t]
    # = [A(D) f] and E[t^2] = h^2/12 + [B(D) f] with A = (h/2) coth(hD/2) / D - 1 / D^2 and B = h^2 / (4 D) - h
    # coth(hD/2) / D^2 + 2 / D^3 - h^2 / (12 D); E[(X - r) t] = [A(D) (x - r) f].
    if math.isinf(z):
        return 0.0, 0.0, 0.0
    log_f, d1, d2, d3, d4, d5, d6 = derivatives(d, z)
    f = math.exp(log_f - log_m)
    a1, a2, a3 = y / 720.0, y * y / 30240.0, y * y * y / 1209600.0
    a = 1.0 / 12.0 - a1 * d2 + a2 * d4 - a3 * d6
    c = (z - r) * a - 2.0 * a1 * d1 + 4.0 * a2 * d3 - 6.0 * a3 * d5
    b = y * (d1 / 360.0 - y * d3 / 15120.0 + y * y * d5 / 604800.0)
    return y * f * a, y * f * c, y * f * b


@kernel
def _smooth(d, log_m, u, v, step):
    """Moments of the centres from those of the density and corrections at the edges (Euler-Maclaurin)."""
    mean, var = mean_variance(d, u, v)
    r = (mean - d.a) / d.b
    y = (step / d.b) * (step / d.b)
    t_hi, xt_hi, tt_hi = _edge_moments(d, (v - d.a) / d.b, y, log_m, r)
    t_lo, xt_lo, tt_lo = _edge_moments(d, (u - d.a) / d.b, y, log_m, r)
    t = t_hi - t_lo
    var_z = var / (d.b * d.b) - 2.0 * (xt_hi - xt_lo) + (tt_hi - tt_lo) + y / 12.0 - t * t
    return mean - d.b * t, max(var_z, 0.0) * d.b * d.b


@kernel
def _few(d, first, last, step, origin):
    """Moments of the centres first..last cell by cell, outwards from the mode."""
    at = min(max(cell_centre(step, origin, mode(d, first, last)), first), last)
    peak = log_cell_density(d, at, step)
    s0, s1, s2 = 1.0, 0.0, 0.0
    for sign in (1.0, -1.0):
        k = 1.0
        end = (last - at) / step if sign > 0.0 else (at - first) / step
        while k < end + 0.5:
            t = sign * k
            w = math.exp(log_cell_density(d, at + t * step, step) - peak)
            s0 += w
            s1 += w * t
            s2 += w * t * t
            if w < 1e-25:
                break
            k += 1.0
    mean = s1 / s0
    return at + mean * step, max(s2 / s0 - mean * mean, 0.0) * step * step


@kernel
def pool_moments(log_w1, mean1, var1, log_w2, mean2, var2):
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
def _is_fine(d, log_m, u, v, step):
    return step <= _FINE * d.b


_is_smooth = by_family("is_smooth", _is_fine)


@kernel
def centres_inside(u, v, step, origin):
    """The first and last cell centre in (u, v], whose ends are on cell edges up to rounding; infinite ends stay."""
    first = origin + np.floor((u - origin) / step + 1.0) * step if u > -math.inf else u
    last = origin + np.ceil((v - origin) / step - 1.0) * step if v < math.inf else v
    return first, last


@kernel
def _by_cells(d, u, v, first, last, step, origin):
    """Mean and variance of the centres first..last of the cells in (u, v]."""
    if last - first <= (_FEW - 1) * step:
        return _few(d, first, last, step, origin)
    log_m = log_mass(d, u, v) + d.log_norm
    if _is_smooth(d, log_m, u, v, step):
        return _smooth(d, log_m, u, v, step)
    return _core_and_tails(d, u, v, first, last, step, origin)


@kernel
def _core_and_tails(d, u, v, first, last, step, origin):
    """A coarse density: cell by cell near its mode, by the smooth expansion further out."""
    middle = min(max(cell_centre(step, origin, mode(d, first, last)), first), last)
    left, right = max(first, middle - _CORE * step), min(last, middle + _CORE * step)
    mean, var = _few(d, left, right, step, origin)
    log_w = log_mass(d, left - 0.5 * step, right + 0.5 * step)
    for x, y in ((u, left - 0.5 * step), (right + 0.5 * step, v)):
        w = log_mass(d, x, y) if y - x > 0.5 * step else -math.inf
        if w > log_w - _NOTHING:
            part_mean, part_var = _smooth(d, w + d.log_norm, x, y, step)
            log_w, mean, var = pool_moments(log_w, mean, var, w, part_mean, part_var)
    return mean, var


_of_family = by_family("grid_mean_variance", _by_cells)


@kernel
def grid_mean_variance(d, u, v, step, origin):
    """Mean and variance of the centres of the cells in (u, v] within the support, which lies on cell edges."""
    u, v = max(u, d.lo), min(v, d.hi)
    first, last = centres_inside(u, v, step, origin)
    if last - first < 0.5 * step:
        return first, 0.0
    mean, var = _of_family(d, u, v, first, last, step, origin)
    return min(max(mean, first), last), var
