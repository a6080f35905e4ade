"""One numeric slot of one leaf: its family truncated to (lo, hi], by family code.

Restrictions are half-open intervals (u, v]; they are cut to the support first. The parent of the uniform family is
taken to be the length on the line, so that its ``log_norm`` is the log of hi - lo.
"""

from __future__ import annotations

import math

import numpy as np

from ....runtime.compile import kernel
from ....runtime.random_kernels import uniform as next_uniform
from . import normal_kernels as normal_draw
from . import student_kernels as student
from .normal_kernels import LOG_SQRT_2PI, Z_MAX
from .table import NORMAL, UNIFORM

# ---- Uniform distribution on an interval (u, v].


@kernel
def quantile(u, v, q):
    """Quantile of the part in (u, v]."""
    return u + q * (v - u)


@kernel
def uniform_mean_variance(u, v):
    """Mean and variance of the part in (u, v]."""
    return 0.5 * u + 0.5 * v, (v - u) * (v - u) * (1.0 / 12.0)


_FAR = -200.0
"""Parents' log masses below this lose digits when subtracted: far tails are then computed relative to the edge."""

_LOG_STUDENT_TAIL = student.LOG_3_8 - 5.0 * math.log(2.0)
"""Log density of the standard Student t far out, plus 5 log |z / 4|."""

_normal_mass, _student_mass = normal_draw.log_interval, student.log_interval
_normal_fraction, _student_pdf = normal_draw.log_fraction, student.log_pdf
_normal_draw, _student_quantile, _uniform_quantile = normal_draw.draw, student.quantile, quantile
_normal_moments, _student_moments = normal_draw.mean_variance, student.mean_variance
_uniform_moments = uniform_mean_variance


@kernel
def log_norm(family, a, b, lo, hi):
    """Log of the mass that the untruncated parent gives to (lo, hi]."""
    if family == NORMAL:
        return _normal_mass((lo - a) / b, (hi - a) / b, (hi - lo) / b)
    if family == UNIFORM:
        return math.log(hi - lo)
    return _student_mass((lo - a) / b, (hi - a) / b, (hi - lo) / b)


@kernel
def _far_log_pdf(a, b, lo, hi, x):
    """`log_pdf` of a normal whose support lies far in a tail."""
    zl, zh = (lo - a) / b, (hi - a) / b
    if zl < 0.0:
        zl, zh = -zh, -zl
        t, z = (hi - x) / b, (a - x) / b
    else:
        t, z = (x - lo) / b, (x - a) / b
    if zl > Z_MAX:
        return -math.log(hi - lo)
    return -t * (0.5 * z + 0.5 * zl) - math.log(b) - normal_draw.log_scaled(zl, zh, (hi - lo) / b)


@kernel
def log_pdf(family, a, b, lo, hi, log_norm, x):
    """Log density at x; -inf outside (lo, hi]."""
    if not (lo < x <= hi):
        return -math.inf
    if family == NORMAL:
        if log_norm < _FAR:
            return _far_log_pdf(a, b, lo, hi, x)
        z = (x - a) / b
        return -0.5 * z * z - math.log(b) - (log_norm + LOG_SQRT_2PI)
    if family == UNIFORM:
        return -log_norm
    z = (x - a) / b
    if math.isinf(z):  # only far out: the tail is a power
        return _LOG_STUDENT_TAIL - 5.0 * math.log(abs(0.25 * x - 0.25 * a)) + 4.0 * math.log(b) - log_norm
    return _student_pdf(z) - math.log(b) - log_norm


@kernel
def log_mass(family, a, b, lo, hi, log_norm, u, v):
    """Log of P(u < X <= v)."""
    if u <= lo:
        if v >= hi:
            return 0.0
        u = lo
    v = min(v, hi)
    if not u < v:
        return -math.inf
    if family == UNIFORM:
        return min(math.log((v - u) / (hi - lo)), 0.0)
    za, zb, h = (u - a) / b, (v - a) / b, (v - u) / b
    if family == NORMAL:
        if log_norm < _FAR and (lo >= a or hi <= a):
            return min(_normal_fraction(za, zb, h, (lo - a) / b, (hi - a) / b, (hi - lo) / b), 0.0)
        return min(_normal_mass(za, zb, h) - log_norm, 0.0)
    return min(_student_mass(za, zb, h) - log_norm, 0.0)


@kernel
def _place(a, b, u, v, anchor, t):
    """The point at distance t (in units of b) from u (anchor 1), below v (2) or from a (0)."""
    if anchor == 0:
        return a + b * t
    if anchor == 1:
        return u + b * t
    return v - b * t


@kernel
def draw(family, a, b, lo, hi, u, v, state):
    """A draw from the part in (u, v] and the support, inside it; NaN if that is empty."""
    u, v = max(u, lo), min(v, hi)
    if not u < v:
        return math.nan
    if family == UNIFORM:
        x = _uniform_quantile(u, v, next_uniform(state))
    else:
        za, zb, h = (u - a) / b, (v - a) / b, (v - u) / b
        if family == NORMAL:
            anchor, t = _normal_draw(za, zb, h, state)
        else:
            anchor, t = _student_quantile(za, zb, h, next_uniform(state))
        x = _place(a, b, u, v, anchor, t)
    if x <= u:
        return np.nextafter(u, math.inf)
    return min(x, v)


@kernel
def mean_variance(family, a, b, lo, hi, u, v):
    """Mean and variance of the part in (u, v] and the support; NaN if that is empty."""
    u, v = max(u, lo), min(v, hi)
    if not u < v:
        return math.nan, math.nan
    if family == UNIFORM:
        return _uniform_moments(u, v)
    za, zb, h = (u - a) / b, (v - a) / b, (v - u) / b
    if family == NORMAL:
        anchor, t, var = _normal_moments(za, zb, h)
    else:
        anchor, t, var = _student_moments(za, zb, h)
    return min(max(_place(a, b, u, v, anchor, t), u), v), var * b * b
