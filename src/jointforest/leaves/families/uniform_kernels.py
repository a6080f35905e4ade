"""Uniform distribution on an interval (u, v]."""

from __future__ import annotations

from ...ground.compile import kernel


@kernel
def quantile(u, v, q):
    """Quantile of the part in (u, v]."""
    return u + q * (v - u)


@kernel
def mean_variance(u, v):
    """Mean and variance of the part in (u, v]."""
    return 0.5 * u + 0.5 * v, (v - u) * (v - u) * (1.0 / 12.0)
