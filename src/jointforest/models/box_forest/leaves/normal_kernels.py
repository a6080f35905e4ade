"""The normal distribution, accurate in the tails: its special functions, then the family of `family_kernels`."""

from __future__ import annotations

import math

import numpy as np

from ....runtime.compile import kernel
from ....runtime.random_kernels import SCALE, next_bits, uniform
from .density_kernels import cell_by_mass, place, standard

SQRT2 = math.sqrt(2.0)
SQRT_PI_2 = math.sqrt(math.pi / 2.0)
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
SQRT_2PI = math.sqrt(2.0 * math.pi)
INV_SQRT_2PI = 1.0 / SQRT_2PI
Z_MAX = 1e154
"""|z| is clamped here: z * z stays finite."""


@kernel
def erfcx(x):
    """exp(x^2) erfc(x) for x >= 0, relative error below 2e-15."""
    # A Chebyshev series of (1 + 2x) erfcx(x) in (x - k) / (x + k), the mapping of Shepherd and Laframboise (1981),
    # computed to 50 digits and written as a polynomial in four interleaved parts.
    t = 1.0 - 7.5 / (x + 3.75)
    t2 = t * t
    w = t2 * t2
    p0 = (3.8675334242222354e-08 * w + 1.751637648849062e-06) * w + 5.164909889268241e-05
    p0 = ((p0 * w - 0.009746579558029276) * w - 0.10880393014174886) * w + 1.2375126308378275
    p1 = (-3.744210080962018e-09 * w - 5.7218230603224086e-08) * w + 2.238423915508223e-05
    p1 = ((p1 * w + 0.0017556258528952954) * w + 0.09230432116037748) * w - 0.14024059858554697
    p2 = (-5.1739902140113095e-09 * w - 2.5866850716155884e-07) * w - 1.1444146237700524e-05
    p2 = ((p2 * w + 0.0002937136655913448) * w - 0.05869339858963677) * w + 0.0035854154854644293
    p3 = (3.1114333809799254e-10 * w + 2.3263508708859124e-08) * w - 9.73559896736775e-07
    p3 = ((p3 * w - 0.0002901540805408417) * w + 0.028362277418956406) * w + 0.0822767384901452
    p0 += 4.2514714447963895e-10 * (w * w) * (w * w) * (w * w)
    return ((p0 + t * p1) + t2 * (p2 + t * p3)) / (1.0 + 2.0 * x)


@kernel
def mills(z):
    """Mills ratio Q(z) / phi(z) of the standard normal, z >= 0 (0 at infinity)."""
    return SQRT_PI_2 * erfcx(z / SQRT2)


@kernel
def upper_tail(z):
    """P(Z > z) for z >= 0 (0 where it is below 1e-315)."""
    return 0.0 if z > 38.0 else INV_SQRT_2PI * mills(z) * math.exp(-0.5 * z * z)


# ---- Standard normal on an interval (za, zb]: mass, mean and variance without cancellation.

_NODE, _WEIGHT = (np.ascontiguousarray(v[8:]) for v in np.polynomial.legendre.leggauss(16))


@kernel
def narrow_series(z2, y):
    """S with mass of (m - h/2, m + h/2] = phi(m) h (1 + S), for z2 = m^2, y = h^2, y (z2 + 4) <= 1."""
    # S is the sum over k of He_2k(m) (h/2)^2k / (2k + 1)!.
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
def standard_moments(za, zb, h):
    """Mean as (anchor, distance), see `standard_draw`, and variance, of the part in (za, zb]."""
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


# ---- Draws from the standard normal on an interval by rejection: exact, and without its quantile function.

_LAYERS = 256
"""Layers of the ziggurat: a power of two, so that random bits choose one."""
_TAIL_START = 3.6541528853610088
"""Where the tail begins that the lowest layer holds, so that all layers have the same area."""


def _layers() -> tuple[np.ndarray, np.ndarray]:
    """Right ends of the layers under exp(-x^2/2), the widest first, and the curve's heights there."""
    f = math.exp(-0.5 * _TAIL_START**2)
    area = _TAIL_START * f + math.sqrt(math.pi / 2) * math.erfc(_TAIL_START / math.sqrt(2))
    x = [area / f, _TAIL_START]  # the lowest layer as a rectangle
    for _ in range(_LAYERS - 2):
        x.append(math.sqrt(-2 * math.log(math.exp(-0.5 * x[-1] ** 2) + area / x[-1])))
    ends = np.array([*x, 0.0])
    return ends, np.exp(-0.5 * ends**2)


_END, _HEIGHT = _layers()


@kernel
def draw_normal(state):
    """A standard normal number by the ziggurat of Marsaglia and Tsang (2000)."""
    while True:
        bits = next_bits(state)
        layer = np.int64(bits & np.uint64(_LAYERS - 1))
        x = (np.float64(bits >> np.uint64(12)) + 0.5) * (2.0 * SCALE) - 1.0
        x *= _END[layer]
        if abs(x) < _END[layer + 1]:
            return x
        if layer == 0:
            excess = _tail(_TAIL_START, math.inf, state)
            return _TAIL_START + excess if x > 0.0 else -_TAIL_START - excess
        low, high = _HEIGHT[layer], _HEIGHT[layer + 1]
        if low + uniform(state) * (high - low) < math.exp(-0.5 * x * x):
            return x


@kernel
def _accepts(w, state):
    """True with probability exp(-w)."""
    u = uniform(state)
    return u <= 1.0 - w or u <= math.exp(-w)


@kernel
def _tail(za, h, state):
    """Excess over za >= 1 of a draw in (za, za + h], za h >= 1, by exponential numbers (after Robert 1995)."""
    while True:
        t = -math.log(uniform(state)) / za
        if t <= h and _accepts(0.5 * t * t, state):
            return t


@kernel
def _draw_flat(za, h, state):
    """Excess over za of a draw in (za, za + h], where the density hardly changes, by uniform numbers."""
    while True:
        t = uniform(state) * h
        if _accepts(t * (za + 0.5 * t) if za >= 0.0 else 0.5 * (za + t) * (za + t), state):
            return t


@kernel
def standard_draw(za, zb, h, state):
    """A draw from the part in (za, zb], h wide: (anchor, t), the point being za + t, zb - t or t for anchor 1, 2, 0."""
    # Of the numbers tried more than one in four is taken, wherever the interval is.
    flip = za + zb < 0.0
    if flip:
        za, zb = -zb, -za
    if h * max(za, 1.0) < 1.0:
        t = _draw_flat(za, h, state)
    elif za >= 1.0:
        t = _tail(za, h, state)
    else:
        t = draw_normal(state)
        while not za < t <= zb:
            t = draw_normal(state) if za < 0.0 else abs(draw_normal(state))
        return 0, (-t if flip else t)
    return (2 if flip else 1), t


# ---- The family: a is the mean, b the standard deviation of the parent.

SPANS = np.array([-8, -4, -2, -1, 0, 1, 2, 4, 8])
"""Places in units of b around a: between them polynomials follow the density, and nothing is beyond."""
FAR = -200.0
"""Parents' log masses below this lose digits when subtracted: far tails are then computed relative to the edge."""


@kernel
def log_norm(d):
    """Log of the mass that the parent gives to the support."""
    return log_interval(*standard(d, d.lo, d.hi))


@kernel
def _far_log_pdf(d, x):
    """`log_pdf` where the support lies far in a tail."""
    zl, zh, h = standard(d, d.lo, d.hi)
    if zl < 0.0:
        zl, zh = -zh, -zl
        t, z = (d.hi - x) / d.b, (d.a - x) / d.b
    else:
        t, z = (x - d.lo) / d.b, (x - d.a) / d.b
    if zl > Z_MAX:
        return -math.log(d.hi - d.lo)
    return -t * (0.5 * z + 0.5 * zl) - math.log(d.b) - log_scaled(zl, zh, h)


@kernel
def log_pdf(d, x):
    """Log density."""
    if d.log_norm < FAR:
        return _far_log_pdf(d, x)
    z = (x - d.a) / d.b
    return -0.5 * z * z - math.log(d.b) - (d.log_norm + LOG_SQRT_2PI)


@kernel
def log_mass(d, u, v):
    """Log of P(u < X <= v)."""
    za, zb, h = standard(d, u, v)
    if d.log_norm < FAR and (d.lo >= d.a or d.hi <= d.a):
        zlo, zhi, w = standard(d, d.lo, d.hi)
        return log_fraction(za, zb, h, zlo, zhi, w)
    return log_interval(za, zb, h) - d.log_norm


@kernel
def mean_variance(d, u, v):
    """Mean and variance of the part in (u, v]."""
    anchor, t, var = standard_moments(*standard(d, u, v))
    return place(d, u, v, anchor, t), var * d.b * d.b


@kernel
def draw(d, u, v, state):
    """A draw from the part in (u, v]."""
    za, zb, h = standard(d, u, v)
    anchor, t = standard_draw(za, zb, h, state)
    return place(d, u, v, anchor, t)


_cell_by_mass = cell_by_mass(log_pdf, log_mass)


@kernel
def log_cell(d, centre, step):
    """Log of the mass of a cell over its width, by a series where that reaches."""
    scale = 1.0 / d.b
    z = (centre - d.a) * scale
    h = step * scale
    z2 = z * z
    y = h * h
    r = y * (z2 + 4.0)
    if r > 1.0 or d.log_norm < FAR:
        return _cell_by_mass(d, centre, step)
    series = short_series(z2, y) if r <= 0.05 else narrow_series(z2, y)
    return math.log(scale + scale * series) - 0.5 * z2 - (d.log_norm + LOG_SQRT_2PI)


@kernel
def derivatives(d, z):
    """Log density at z in standard units, and its first to sixth derivative over the density."""
    z2 = z * z
    d3 = z * (3.0 - z2)
    d4 = (z2 - 6.0) * z2 + 3.0
    d5 = -z * ((z2 - 10.0) * z2 + 15.0)
    d6 = ((z2 - 15.0) * z2 + 45.0) * z2 - 15.0
    return -0.5 * z2 - LOG_SQRT_2PI, -z, z2 - 1.0, d3, d4, d5, d6


@kernel
def is_smooth(d, log_m, u, v, step):
    """Whether the expansion at the edges is exact to about 1e-11 of the spread; ``log_m``: the parent's mass there."""
    h = step / d.b
    if h > 0.7:
        return False
    for x in (u, v):
        z = abs(x - d.a) / d.b
        if h * z > 0.5 and z < math.inf and -0.5 * z * z - log_m + math.log(h) > -60.0:
            return False
    return True


@kernel
def entropy(d):
    """Entropy, and the mean of the square of the log density's slope."""
    za, zb, h = standard(d, d.lo, d.hi)
    if za + zb < 0.0:
        za, zb = -zb, -za
    if za > Z_MAX:
        return math.log(d.hi - d.lo), 0.0
    anchor, mean, var = standard_moments(za, zb, h)
    mu = mean if anchor == 0 else za + mean
    slope = (var + mu * mu) / (d.b * d.b)
    if za >= 0.0:  # relative to the edge: far out the log mass and the mean square cancel
        return math.log(d.b) + log_scaled(za, zb, h) + za * mean + 0.5 * (var + mean * mean), slope
    return math.log(d.b) + log_interval(za, zb, h) + LOG_SQRT_2PI + 0.5 * (var + mu * mu), slope
