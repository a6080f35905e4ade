"""Masses and moments of truncated normals and Student t's (4 degrees of freedom) in many digits, with mpmath."""

import math

import mpmath as mp
import numpy as np

NORMAL, UNIFORM, STUDENT = 0, 1, 2
DIGITS = 60


def standard(a, b, x):
    """(x - a) / b in many digits."""
    with mp.workdps(DIGITS):
        return (mp.mpf(float(x)) - mp.mpf(float(a))) / mp.mpf(float(b))


def mills(z):
    """Q(z) / phi(z), z >= 0, by mpmath's erfc or far out by Laplace's continued fraction."""
    if z < 30:
        return mp.erfc(z / mp.sqrt(2)) * mp.exp(z * z / 2) * mp.sqrt(mp.pi / 2)
    c = mp.mpf(0)
    for k in range(300, 0, -1):
        c = k / (z + c)
    return 1 / (z + c)


def normal_log_mass(za, zb):
    """Log of P(za < Z <= zb)."""
    with mp.workdps(DIGITS):
        if za + zb < 0:
            za, zb = -zb, -za
        if za >= 0:
            ratio = mills(zb) / mills(za) * mp.exp(-(zb - za) * (zb + za) / 2) if mp.isfinite(zb) else 0
            return mp.log(mills(za)) + mp.log1p(-ratio) - za * za / 2 - mp.log(2 * mp.pi) / 2
        return mp.log1p(-(mp.erfc(-za / mp.sqrt(2)) + mp.erfc(zb / mp.sqrt(2))) / 2)


def student_mass(za, zb):
    """P(za < Z <= zb), from the CDF 1/2 + (3 s - s^3) / 4 with s = z / sqrt(4 + z^2)."""

    def upper(z):
        s = z / mp.sqrt(4 + z * z) if mp.isfinite(z) else mp.sign(z)
        return (1 - s) ** 2 * (2 + s) / 4

    with mp.workdps(8 * DIGITS):
        if za + zb < 0:
            za, zb = -zb, -za
        return +(upper(za) - upper(zb))


def log_mass(family, a, b, u, v):
    """Log of the mass that the untruncated parent gives to (u, v]."""
    za, zb = standard(a, b, u), standard(a, b, v)
    return normal_log_mass(za, zb) if family == NORMAL else mp.log(student_mass(za, zb))


def moments(family, a, b, u, v):
    """Mean (less a) and variance of the part in (u, v], in units of b."""
    za, zb = standard(a, b, u), standard(a, b, v)
    with mp.workdps(DIGITS):
        if za + zb < 0:
            mean, variance = upper_moments(family, -zb, -za)
            return -mean, variance
        return upper_moments(family, za, zb)


def upper_moments(family, za, zb):
    """Mean and variance of the part in (za, zb], za + zb >= 0."""
    if family == STUDENT:  # the integrals of z and z^2 times the density, in so many digits that nothing cancels
        with mp.workdps(8 * DIGITS):
            sa, sb = (z / mp.sqrt(4 + z * z) if mp.isfinite(z) else mp.sign(z) for z in (za, zb))
            mass = student_mass(za, zb)
            mean = ((1 - sa * sa) ** mp.mpf("1.5") - (1 - sb * sb) ** mp.mpf("1.5")) / 2 / mass
            return mean, (sb**3 - sa**3) / mass - mean * mean
    with mp.workdps(40):
        base = max(za, -40)
        end = zb - base
        scale = 1 / max(1, base)
        steps = [scale * mp.mpf(2) ** k for k in range(-3, 12)] if base >= 0 else [mp.mpf(k) for k in range(0, 80, 3)]
        cuts = sorted({mp.mpf(0), end, *(t for t in steps if t < end)})
        peak = max(base, 0)

        def integrand(k):
            return lambda t: t**k * mp.exp(-(t + base - peak) * (t + base + peak) / 2)

        s0, s1, s2 = (mp.quad(integrand(k), cuts) for k in (0, 1, 2))
        mean = s1 / s0
        return mean + base, s2 / s0 - mean * mean


def intervals(n, seed, largest=8):
    """Random (a, b, u, v): near and far, narrow and wide, one-sided, on both sides."""
    rng = np.random.default_rng(seed)
    while n > 0:
        a = rng.choice([0.0, 1.0, 100 * rng.normal()])
        b = 10 ** rng.uniform(-3, 3)
        z = rng.choice([-1, 1]) * rng.choice([10 ** rng.uniform(-3, largest), rng.uniform(0, 6), rng.uniform(0, 1)])
        h = math.inf if rng.random() < 0.1 else 10 ** rng.uniform(-12, rng.choice([-4, 0, 2, 9]))
        u, v = a + b * z, a + b * z + b * h
        if rng.random() < 0.05:
            u = -math.inf
        if u < v:
            n -= 1
            yield float(a), float(b), float(u), float(v)
