"""The families of numeric leaf distributions, and kernels that call the right family for a density.

A family is a module of kernels on a `table.Density` d, which contains its family code, parameters and support
(lo, hi]. Kernels of a family may assume that intervals (u, v] lie in the support and are not empty, and that points x
lie inside the support. Required kernels:

- ``log_norm(d)``: log of the mass that the untruncated parent gives to the support;
- ``log_pdf(d, x)``, ``log_mass(d, u, v)``: log density, log of P(u < X <= v).

The other kernels have defaults. These assume that the untruncated parent has one mode, at a, and that its density
changes little over distances much smaller than b:

- ``mean_variance(d, u, v)``, ``quantile(d, u, v, q)``, ``draw(d, u, v, state)``, ``mode(d, u, v)``: of the part in
  (u, v];
- ``entropy(d)``, ``derivatives(d, z)``: see below;
- ``log_cell``, ``is_smooth``, ``grid_mean_variance``: shortcuts of `grid_kernels`.

A family with ``HAS_SCALE = False`` has no location and scale: its a and b are 0. ``SPANS`` lists the places at which an
integral over a density is divided (see `normal_kernels`); without it, such integrals are estimated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....runtime.compile import kernel
from ....runtime.random_kernels import uniform
from . import normal_kernels, student_kernels, uniform_kernels

FAMILIES = {"normal": normal_kernels, "uniform": uniform_kernels, "student": student_kernels}
"""In the order of their codes (`table.NORMAL` is 0). Model files contain these codes, so the order must not change."""
MODULES = tuple(FAMILIES.values())
NO_SCALE = [code for code, family in enumerate(MODULES) if not getattr(family, "HAS_SCALE", True)]
"""Codes of families whose a and b are no location and scale."""


def by_family(name: str, default: Callable | None = None) -> Any:
    """A kernel that calls the kernel ``name`` of the density's family, or ``default`` if the family has none."""
    # It compares the family code of the density with each code in turn.
    *others, chosen = [getattr(family, name, default) for family in MODULES]
    for code, one in reversed([*enumerate(others)]):
        if one is not chosen:
            chosen = _either(code, one, chosen)
    return chosen


def _either(code: int, one: Any, other: Any) -> Any:
    @kernel
    def choose(d, *arguments):
        if d.family == code:
            return one(d, *arguments)
        return other(d, *arguments)

    return choose


log_norm = by_family("log_norm")
log_pdf_inside = by_family("log_pdf")
_log_mass = by_family("log_mass")


@kernel
def log_pdf(d, x):
    """Log density at x; -inf outside (lo, hi]."""
    return log_pdf_inside(d, x) if d.lo < x <= d.hi else -math.inf


@kernel
def log_mass(d, u, v):
    """Log of P(u < X <= v)."""
    if u <= d.lo:
        if v >= d.hi:
            return 0.0
        u = d.lo
    v = min(v, d.hi)
    return min(_log_mass(d, u, v), 0.0) if u < v else -math.inf


# ---- The kernels that have defaults.

_SHARP = 2.3e-16
"""Relative width at which bisection ends: about the distance between neighbouring floats."""
_STEP = 0.05
"""Step of central differences, in units of b. Its error is small enough: the results enter only terms below 1e-5."""
_NODE, _WEIGHT = (0.5 * x for x in np.polynomial.legendre.leggauss(16))
_NODE = _NODE + 0.5
_NEGLIGIBLE = 1e-17
"""Quadrature ends after a panel that adds less than this share of the variance."""


@kernel
def _nearest_to_a(d, u, v):
    return min(max(d.a, u), v)


mode = by_family("mode", _nearest_to_a)
"""The point of [u, v] at which the density is greatest."""


@kernel
def _bisected(d, u, v, q):
    """The point up to which (u, v] holds the share q of its mass."""
    target = math.log(q) + log_mass(d, u, v)
    low, high = mode(d, u, v), mode(d, u, v)
    width = d.b
    while low > u and log_mass(d, u, low) > target:
        low, width = max(u, low - width), 2.0 * width
    width = d.b
    while high < v and log_mass(d, u, high) < target:
        high, width = min(v, high + width), 2.0 * width
    while high - low > _SHARP * max(min(d.b, v - u), abs(low), abs(high)):
        middle = 0.5 * low + 0.5 * high
        if not low < middle < high:  # neighbouring floats, which far below 1 are far apart
            break
        if log_mass(d, u, middle) < target:
            low = middle
        else:
            high = middle
    return high


quantile = by_family("quantile", _bisected)


@kernel
def _draw_by_quantile(d, u, v, state):
    return quantile(d, u, v, uniform(state))


_draw = by_family("draw", _draw_by_quantile)


@kernel
def draw(d, u, v, state):
    """A draw from the part in (u, v] and the support, inside it; NaN if that is empty."""
    u, v = max(u, d.lo), min(v, d.hi)
    if not u < v:
        return math.nan
    x = _draw(d, u, v, state)
    if x <= u:
        return np.nextafter(u, math.inf)
    return min(x, v)


@kernel
def _central_differences(d, z):
    """`derivatives`, by central differences; the fourth and higher ones as 0."""
    x, h = d.a + d.b * z, d.b * _STEP
    log_f = log_pdf_inside(d, x)
    below, above = math.exp(log_pdf_inside(d, x - h) - log_f), math.exp(log_pdf_inside(d, x + h) - log_f)
    lowest, highest = math.exp(log_pdf_inside(d, x - 2.0 * h) - log_f), math.exp(log_pdf_inside(d, x + 2.0 * h) - log_f)
    d1 = (8.0 * (above - below) - (highest - lowest)) / (12.0 * _STEP)
    d2 = (16.0 * (above + below) - (highest + lowest) - 30.0) / (12.0 * _STEP * _STEP)
    d3 = ((highest - lowest) - 2.0 * (above - below)) / (2.0 * _STEP * _STEP * _STEP)
    return log_f + math.log(d.b) + d.log_norm, d1, d2, d3, 0.0, 0.0, 0.0


derivatives = by_family("derivatives", _central_differences)
"""Log density of the standard parent at z, and its first to sixth derivative over the density."""


@kernel
def _by_quadrature(d, u, v, with_slope):
    """Mean, variance, mean log density and, if asked for, mean square of its slope, of the part in (u, v]."""
    # By Gauss rules on panels from the mode outwards, each as wide as all before, until the variance stays.
    centre = mode(d, u, v)
    top = log_pdf_inside(d, centre)
    total, first, second, logs, slopes = 0.0, 0.0, 0.0, 0.0, 0.0
    for side in (-1.0, 1.0):
        end = (v - centre if side > 0.0 else centre - u) / d.b
        start, stop = 0.0, min(1.0, end)
        while start < end:
            before = second
            for i in range(_NODE.shape[0]):
                t = side * (start + (stop - start) * _NODE[i])
                log_f = log_pdf_inside(d, centre + d.b * t)
                weight = (stop - start) * _WEIGHT[i] * math.exp(log_f - top)
                total += weight
                first += weight * t
                second += weight * t * t
                logs += weight * log_f
                if with_slope:
                    slope = derivatives(d, (centre - d.a) / d.b + t)[1]
                    slopes += weight * slope * slope
            if second - before < _NEGLIGIBLE * second:
                break
            start, stop = stop, min(2.0 * stop, end)
    mean = first / total
    variance = max(second / total - mean * mean, 0.0) * d.b * d.b
    return centre + d.b * mean, variance, logs / total, slopes / total / (d.b * d.b)


@kernel
def _moments_by_quadrature(d, u, v):
    mean, variance, _, _ = _by_quadrature(d, u, v, False)
    return mean, variance


_mean_variance = by_family("mean_variance", _moments_by_quadrature)


@kernel
def mean_variance(d, u, v):
    """Mean and variance of the part in (u, v] and the support; NaN if that is empty."""
    u, v = max(u, d.lo), min(v, d.hi)
    if not u < v:
        return math.nan, math.nan
    mean, variance = _mean_variance(d, u, v)
    return min(max(mean, u), v), variance


@kernel
def _entropy_by_quadrature(d):
    _, _, log_density, slope = _by_quadrature(d, d.lo, d.hi, True)
    return -log_density, slope


entropy = by_family("entropy", _entropy_by_quadrature)
"""Entropy, and the mean squared slope of the log density."""
