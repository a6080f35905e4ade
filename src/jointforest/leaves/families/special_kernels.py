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
