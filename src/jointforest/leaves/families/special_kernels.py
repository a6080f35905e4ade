"""Special functions of the normal distribution that stay accurate in the tails."""

from __future__ import annotations

import math

from ...ground.compile import kernel

SQRT2 = math.sqrt(2.0)
SQRT_PI_2 = math.sqrt(math.pi / 2.0)
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
SQRT_2PI = math.sqrt(2.0 * math.pi)
INV_SQRT_2PI = 1.0 / SQRT_2PI
Z_MAX = 1e154
"""|z| is clamped here: z * z stays finite."""


@kernel
def erfcx(x):
    """exp(x^2) erfc(x) for x >= 0, relative error below 2e-15.

    A Chebyshev series of (1 + 2x) erfcx(x) in (x - k) / (x + k), the mapping of Shepherd and Laframboise (1981),
    computed to 50 digits and written as a polynomial in four interleaved parts.
    """
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


@kernel
def _halley(z0, r0, e, t):
    """`tail_step` from a start t, by Halley's method on the log; r0 is the Mills ratio at z0."""
    for _ in range(8):
        z = z0 + t
        r = mills(z)
        g = (math.log(r / r0) - t * (z0 + 0.5 * t) + e) * r
        d = g / (1.0 + 0.5 * g * max(1.0 / r - z, 0.0))
        t = max(t + d, 0.0)
        if abs(d) < 4e-5 * r:
            break
    return t


@kernel
def tail_step(z0, e):
    """The t >= 0 with Q(z0 + t) = Q(z0) exp(-e), for z0 >= 0 and e >= 0."""
    if e == math.inf:
        return math.inf
    r0 = mills(z0)
    h = 1.0 / r0
    k = 1.0 if z0 > 10.0 else h * (h - z0)
    # log Q(z0 + t) is close to the parabola -h t - k t^2 / 2, k in (0.63, 1), tending to 1
    k += (1.0 - k) * e / (e + 6.0)
    return _halley(z0, r0, e, 2.0 * e / (h + math.sqrt(h * h + 2.0 * k * e)))


@kernel
def upper_quantile(e):
    """The z >= 0 with Q(z) = exp(-e) / 2, for e >= 0.33."""
    if e > 700.0:
        return tail_step(0.0, e)
    s = math.sqrt(2.0 * e)
    # s - z as a polynomial in (s - 3) / (s + 3), to 2e-5 for s in (0.8, 38)
    x = (s - 3.0) / (s + 3.0)
    p = ((-0.0988952339 * x + 0.0878330633) * x + 0.0963588222) * x - 0.292757944
    p = (((p * x + 0.315866847) * x - 0.262644655) * x - 0.297114714) * x + 0.460733526
    return _halley(0.0, SQRT_PI_2, e, s - p)


@kernel
def central_quantile(d):
    """The z with Phi(z) = 1/2 + d for |d| <= 1/4 (a polynomial to 2e-7, then one step of Halley's method)."""
    c = d * SQRT_2PI
    y = c * c
    z = c * ((((0.0209649425 * y + 0.0217178528) * y + 0.0588566318) * y + 0.166639666) * y + 1.00000022)
    e = (0.5 * math.erf(z / SQRT2) - d) * SQRT_2PI * math.exp(0.5 * z * z)
    return z - e / (1.0 + 0.5 * z * e)
