"""Standard normal on an interval (za, zb]: mass, mean and variance without cancellation.

Every kernel takes the ends and the width h = zb - za on its own, because the width of a narrow interval far out
cannot be had from its rounded ends. Intervals are reflected so that their middle is not negative.
"""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import kernel
from .special_kernels import (
    INV_SQRT_2PI,
    LOG_SQRT_2PI,
    Z_MAX,
    mills,
    upper_tail,
)

_NODE, _WEIGHT = (np.ascontiguousarray(v[8:]) for v in np.polynomial.legendre.leggauss(16))


@kernel
def narrow_series(z2, y):
    """S with mass of (m - h/2, m + h/2] = phi(m) h (1 + S), for z2 = m^2, y = h^2, y (z2 + 4) <= 1.

    S is the sum over k of He_2k(m) (h/2)^2k / (2k + 1)!.
    """
    p1 = (z2 - 1.0) * (1.0 / 24.0)
    p2 = ((z2 - 6.0) * z2 + 3.0) * (1.0 / 1920.0)
    p3 = (((z2 - 15.0) * z2 + 45.0) * z2 - 15.0) * (1.0 / 322560.0)
    p4 = ((((z2 - 28.0) * z2 + 210.0) * z2 - 420.0) * z2 + 105.0) * (1.0 / 92897280.0)
    p5 = (((((z2 - 45.0) * z2 + 630.0) * z2 - 3150.0) * z2 + 4725.0) * z2 - 945.0) * (1.0 / 40874803200.0)
    return y * (p1 + y * (p2 + y * (p3 + y * (p4 + y * p5))))


@kernel
def short_series(z2, y):
    """`narrow_series` for y (z2 + 4) <= 0.05."""
    p2 = ((z2 - 6.0) * z2 + 3.0) * (1.0 / 1920.0)
    p3 = (((z2 - 15.0) * z2 + 45.0) * z2 - 15.0) * (1.0 / 322560.0)
    return y * ((z2 - 1.0) * (1.0 / 24.0) + y * (p2 + y * p3))


@kernel
def _narrow(m, h):
    """1 + S of `narrow_series`, also for huge m."""
    w = h * m
    if abs(m) < 1e6:
        return 1.0 + narrow_series(m * m, h * h)
    y = 0.25 * w * w
    return 1.0 + y / 6.0 * (1.0 + y / 20.0 * (1.0 + y / 42.0 * (1.0 + y / 72.0 * (1.0 + y / 110.0))))


@kernel
def _narrow_ok(m, h):
    return h < 0.5 and h * abs(m) <= 0.9 and (h * m) * (h * m) + 4.0 * h * h <= 1.0


@kernel
def log_scaled(za, zb, h):
    """Log of the integral of exp(-za t - t^2/2) over 0 < t <= h, for za >= 0: the mass over phi(za)."""
    m = za + 0.5 * h
    if _narrow_ok(m, h):
        return math.log(h * _narrow(m, h)) - 0.5 * h * (za + 0.25 * h)
    s = mills(za)
    if zb < math.inf:
        s -= mills(zb) * math.exp(-h * m)
    return math.log(s)


@kernel
def log_interval(za, zb, h):
    """Log of P(za < Z <= zb); -inf only if za is infinite or the interval empty."""
    if za + zb < 0.0:
        za, zb = -zb, -za
    if not h > 0.0 or za == math.inf:
        return -math.inf
    if za >= 0.0:
        if za > Z_MAX:
            return -0.5 * Z_MAX * Z_MAX
        return log_scaled(za, zb, h) - 0.5 * za * za - LOG_SQRT_2PI
    m = za + 0.5 * h
    if _narrow_ok(m, h):
        return math.log(h * _narrow(m, h)) - 0.5 * m * m - LOG_SQRT_2PI
    if za < -0.5:
        return math.log1p(-(upper_tail(-za) + upper_tail(zb)))
    return math.log(0.5 * (math.erf(zb * 0.7071067811865476) - math.erf(za * 0.7071067811865476)))


@kernel
def log_fraction(za, zb, h, zlo, zhi, w):
    """Log of P(za < Z <= zb | zlo < Z <= zhi), inside one far tail, where log masses would cancel."""
    if zlo < 0.0:
        za, zb, zlo, zhi = -zb, -za, -zhi, -zlo
    if za > Z_MAX:
        return log_interval(za, zb, h) - log_interval(zlo, zhi, w)
    return log_scaled(za, zb, h) - log_scaled(zlo, zhi, w) - (za - zlo) * (0.5 * za + 0.5 * zlo)


@kernel
def _gap(z):
    """Mean excess over z of the part above z >= 0, and its variance; far out by Laplace's continued fraction."""
    if z < 4.0:
        g = 1.0 / mills(z)
        return g - z, 1.0 - g * (g - z)
    c = 0.0
    for k in range(8 + int(min(600.0 / (z * z), 60.0)), 1, -1):
        c = k / (z + c)
    g = 1.0 / (z + c)
    return g, (c - g) * g


@kernel
def _quadrature(m, h):
    """Mean (from the middle m) and variance by 16-point Gauss-Legendre, for h max(1, m) up to about 8."""
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    for i in range(8):
        t = 0.5 * h * _NODE[i]
        e = _WEIGHT[i] * math.exp(-0.5 * t * t)
        up = math.exp(-m * t)
        s0 += e * (up + 1.0 / up)
        s1 += e * (up - 1.0 / up) * t
        s2 += e * (up + 1.0 / up) * t * t
    mean = s1 / s0
    return mean, max(s2 / s0 - mean * mean, 0.0)


@kernel
def mean_variance(za, zb, h):
    """Mean as (anchor, distance), see `normal_draw_kernels.draw`, and variance, of the part in (za, zb]."""
    flip = za + zb < 0.0
    if flip:
        za, zb = -zb, -za
    m = za + 0.5 * h
    anchor = 1
    if h * max(1.0, m) <= 8.0 and h <= 5.0:
        mean, var = _quadrature(m, h)
        mean += 0.5 * h
    elif za >= 0.0:
        za = min(za, Z_MAX)
        mean, var = _gap(za)
        if zb < math.inf:
            ratio = mills(zb) / mills(za) * math.exp(-h * m)
            if ratio > 0.0:
                d, v = _gap(zb)
                d += h
                second = (var + mean * mean - ratio * (v + d * d)) / (1.0 - ratio)
                mean = (mean - ratio * d) / (1.0 - ratio)
                var = second - mean * mean
    else:
        fa = INV_SQRT_2PI * math.exp(-0.5 * za * za)
        fb = INV_SQRT_2PI * math.exp(-0.5 * zb * zb)
        mass = 1.0 - upper_tail(-za) - upper_tail(zb)
        mean = (fa - fb) / mass
        ga = za * fa if za > -math.inf else 0.0
        gb = zb * fb if zb < math.inf else 0.0
        var = 1.0 + (ga - gb) / mass - mean * mean
        anchor = 0
    var = max(var, 0.0)
    if flip:
        return (2, mean, var) if anchor == 1 else (0, -mean, var)
    return anchor, mean, var
