"""Student t with 4 degrees of freedom, standardised, on an interval (za, zb]: everything is algebraic; then the family
of `family_kernels`.

With u = z / 2, c = 1 / sqrt(1 + u^2) and s = u c the density is 3/8 c^5, the CDF 1/2 + (3 s - s^3) / 4, the upper tail
c^4 (2 + s) / (4 (1 + s)^2), the integral of z times the density -c^3 / 2 and that of z^2 times it s^3. Intervals are
reflected so that their middle is not negative; h is the width zb - za, given on its own, because far out it cannot be
had from the rounded ends.
"""

import math

import numpy as np

from ....runtime.compile import kernel
from .density_kernels import place, standard

LOG_3_8 = math.log(0.375)
_NODE, _WEIGHT = (np.ascontiguousarray(v[8:]) for v in np.polynomial.legendre.leggauss(16))


@kernel
def standard_log_pdf(z):
    """Log density at z."""
    if abs(z) < 1e150:
        return LOG_3_8 - 2.5 * math.log(1.0 + 0.25 * z * z)
    return LOG_3_8 - 5.0 * math.log(0.5 * abs(z))


@kernel
def _cosine_sine(z):
    """c and s of the module's docstring."""
    u = 0.5 * abs(z)
    if u < 1e150:
        c = 1.0 / math.sqrt(1.0 + u * u)
        return c, 0.5 * z * c
    return 1.0 / u, (1.0 if z > 0.0 else -1.0)


@kernel
def upper_tail(z):
    """P(Z > z) for z >= 0."""
    c, s = _cosine_sine(z)
    c2 = c * c
    return c2 * c2 * (2.0 + s) / (4.0 * (1.0 + s) * (1.0 + s))


@kernel
def _mass_scaled(za, zb, h):
    """Mass of (za, zb], za >= 0, over c(za)^4, and c(za), s(za), c(zb), s(zb)."""
    ca, sa = _cosine_sine(za)
    if zb == math.inf:
        return (2.0 + sa) / (4.0 * (1.0 + sa) * (1.0 + sa)), ca, sa, 0.0, 1.0
    cb, sb = _cosine_sine(zb)
    # s_b - s_a = (s_b^2 - s_a^2) / (s_a + s_b), without cancellation
    d = (0.5 * h * cb) * ((0.5 * za) * cb + sb) / (sa + sb)
    r = cb / ca
    g = 1.0 + r * r + (1.0 + r * r - cb * cb) / (1.0 + sa * sb)
    return 0.25 * d * g, ca, sa, cb, sb


@kernel
def log_interval(za, zb, h):
    """Log of P(za < Z <= zb); -inf only if the interval is empty."""
    if za + zb < 0.0:
        za, zb = -zb, -za
    if not h > 0.0 or za == math.inf:
        return -math.inf
    if za >= 0.0:
        m, c, _, _, _ = _mass_scaled(za, zb, h)
        return math.log(m) + 4.0 * math.log(c)
    if za < -0.5:
        return math.log1p(-(upper_tail(-za) + upper_tail(zb)))
    _, sa = _cosine_sine(za)
    _, sb = _cosine_sine(zb)
    return math.log(0.25 * (sb - sa) * (3.0 - sa * sa - sa * sb - sb * sb))


@kernel
def _student_quadrature(m, h):
    """Mean (from the middle m) and variance by 16-point Gauss-Legendre, for h up to hypot(2, m)."""
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    top = math.hypot(2.0, m)
    for i in range(8):
        t = 0.5 * h * _NODE[i]
        up = (top / math.hypot(2.0, m + t)) ** 5
        down = (top / math.hypot(2.0, m - t)) ** 5
        x = _NODE[i]
        s0 += _WEIGHT[i] * (up + down)
        s1 += _WEIGHT[i] * (up - down) * x
        s2 += _WEIGHT[i] * (up + down) * x * x
    mean = s1 / s0
    return 0.5 * h * mean, 0.25 * h * h * max(s2 / s0 - mean * mean, 0.0)


@kernel
def standard_moments(za, zb, h):
    """Mean as (anchor, distance), see `density_kernels.place`, and variance, of the part in (za, zb]."""
    flip = za + zb < 0.0
    if flip:
        za, zb = -zb, -za
    m = za + 0.5 * h
    anchor = 1
    if h < math.inf and h <= math.hypot(2.0, m):
        mean, var = _student_quadrature(m, h)
        mean += 0.5 * h
    elif za >= 0.0:
        mass, ca, sa, cb, sb = _mass_scaled(za, zb, h)
        r = cb / ca
        # everything over c_a^4; z_a c_a = 2 s_a
        mean_c = 0.5 * (1.0 - r * r * r) / mass
        d = (0.5 * h * cb) * ((0.5 * za) * cb + sb) / (sa + sb) if zb < math.inf else 1.0 / (1.0 + sa)
        second_c2 = d * (sa * sa + sa * sb + sb * sb) / mass
        mean = (mean_c - 2.0 * sa) / ca
        var = (second_c2 - mean_c * mean_c) / ca / ca
    else:
        ca, sa = _cosine_sine(za)
        cb, sb = _cosine_sine(zb)
        mass = 0.25 * (sb - sa) * (3.0 - sa * sa - sa * sb - sb * sb)
        mean = 0.5 * (ca * ca * ca - cb * cb * cb) / mass
        var = (sb - sa) * (sa * sa + sa * sb + sb * sb) / mass - mean * mean
        anchor = 0
    var = max(var, 0.0)
    if flip:
        return (2, mean, var) if anchor == 1 else (0, -mean, var)
    return anchor, mean, var


# ---- The family: a is the location, b the scale.

_LOG_TAIL = LOG_3_8 - 5.0 * math.log(2.0)
"""Log density of the standard Student t far out, plus 5 log |z / 4|."""


@kernel
def log_norm(d):
    """Log of the mass that the parent gives to the support."""
    return log_interval(*standard(d, d.lo, d.hi))


@kernel
def log_pdf(d, x):
    """Log density."""
    z = (x - d.a) / d.b
    if math.isinf(z):  # only far out: the tail is a power
        return _LOG_TAIL - 5.0 * math.log(abs(0.25 * x - 0.25 * d.a)) + 4.0 * math.log(d.b) - d.log_norm
    return standard_log_pdf(z) - math.log(d.b) - d.log_norm


@kernel
def log_mass(d, u, v):
    """Log of P(u < X <= v)."""
    return log_interval(*standard(d, u, v)) - d.log_norm


@kernel
def mean_variance(d, u, v):
    """Mean and variance of the part in (u, v]."""
    anchor, t, var = standard_moments(*standard(d, u, v))
    return place(d, u, v, anchor, t), var * d.b * d.b
