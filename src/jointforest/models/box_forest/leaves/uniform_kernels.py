"""The uniform distribution on (lo, hi], as a family of `family_kernels`. Its parent is the length on the line."""

import math

import numpy as np

from ....runtime.compile import kernel

HAS_SCALE = False
SPANS = np.empty(0)


@kernel
def log_norm(d):
    """Log of the length of the support."""
    return math.log(d.hi - d.lo)


@kernel
def log_pdf(d, x):
    """Log density, the same everywhere."""
    return -d.log_norm


@kernel
def log_mass(d, u, v):
    """Log of P(u < X <= v)."""
    return math.log((v - u) / (d.hi - d.lo))


@kernel
def mean_variance(d, u, v):
    """Mean and variance of the part in (u, v]."""
    return 0.5 * u + 0.5 * v, (v - u) * (v - u) * (1.0 / 12.0)


@kernel
def quantile(d, u, v, q):
    """Quantile of the part in (u, v]."""
    return u + q * (v - u)


@kernel
def mode(d, u, v):
    """The middle: anywhere would do."""
    return u + 0.5 * (v - u)


@kernel
def log_cell(d, centre, step):
    """Log density of a cell, the same everywhere."""
    return -d.log_norm


@kernel
def grid_mean_variance(d, u, v, first, last, step, origin):
    """Mean and variance of equally probable cell centres."""
    n = (v - u) / step
    return 0.5 * (first + last), (n * n - 1.0) / 12.0 * step * step


@kernel
def entropy(d):
    """Entropy; the log density has no slope."""
    return math.log(d.hi - d.lo), 0.0
