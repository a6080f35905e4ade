"""The logistic distribution as a family of leaf distributions: what the author of a new one has to write."""

from __future__ import annotations

import math

from ....runtime.compile import kernel


@kernel
def _log_share(z):
    """Log of 1 / (1 + exp(-z))."""
    return -math.log1p(math.exp(-z)) if z > -30.0 else z - math.log1p(math.exp(z))


@kernel
def _log_interval(za, zb, h):
    """Log of P(za < Z <= zb), h = zb - za: F(za) (1 - F(zb)) (exp(h) - 1), by the tail that is nearer."""
    if za + zb < 0.0:
        za, zb = -zb, -za
    if zb == math.inf:
        return _log_share(-za)
    return _log_share(za) + _log_share(-zb) + (math.log(math.expm1(h)) if h < 30.0 else h)


@kernel
def log_norm(d):
    """Log of the mass that the parent gives to the support."""
    if d.lo == -math.inf and d.hi == math.inf:
        return 0.0
    return _log_interval((d.lo - d.a) / d.b, (d.hi - d.a) / d.b, (d.hi - d.lo) / d.b)


@kernel
def log_pdf(d, x):
    """Log density."""
    z = (x - d.a) / d.b
    return _log_share(z) + _log_share(-z) - math.log(d.b) - d.log_norm


@kernel
def log_mass(d, u, v):
    """Log of P(u < X <= v)."""
    return _log_interval((u - d.a) / d.b, (v - d.a) / d.b, (v - u) / d.b) - d.log_norm
