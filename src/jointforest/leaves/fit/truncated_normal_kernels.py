"""Kernels: parents of truncated normals with given moments, and the mass that leaves put beyond the data."""

from __future__ import annotations

import math

from ...ground.compile import entry
from ..families.family_kernels import log_mass, log_norm, mean_variance
from ..table import NORMAL

_ROUNDS = 60
_TOLERANCE = 1e-8


@entry
def truncated_mle(mean, spread, lo, hi, floor, ceiling):
    """Parameters of the parents whose parts on (lo, hi] have these means and standard deviations.

    The truncated normal is an exponential family, so matching the first two moments is maximum likelihood (Cohen
    1959). The two equations are solved in turn: a Newton step for the location (d mean / d mu = variance /
    sigma^2), a fixed-point step for the scale. Where no finite solution exists (flat or U-shaped leaves) the scale
    stops at ``ceiling``, nearly uniform.

    Parameters
    ----------
    mean, spread, lo, hi : float64 arrays (l,)
    floor, ceiling : float
        Range of the scale.

    Returns
    -------
    a, b : float64 arrays (l,)
    """
    a = mean.copy()
    b = spread.copy()
    for leaf in range(mean.shape[0]):
        if lo[leaf] == -math.inf and hi[leaf] == math.inf:
            continue
        ceiling_here = max(ceiling, spread[leaf])
        mu = mean[leaf]
        sigma = spread[leaf]
        for _ in range(_ROUNDS):
            m, v = mean_variance(NORMAL, mu, sigma, lo[leaf], hi[leaf], lo[leaf], hi[leaf])
            if not v > 0.0:
                break
            step = (mean[leaf] - m) * sigma * sigma / v
            step = min(max(step, -2.0 * sigma), 2.0 * sigma)
            scale = min(max(spread[leaf] / math.sqrt(v), 0.5), 2.0)
            new = min(max(sigma * scale, floor), ceiling_here)
            done = abs(step) < _TOLERANCE * sigma and abs(new - sigma) < _TOLERANCE * sigma
            mu = min(max(mu + step, mean[leaf] - 20.0 * ceiling_here), mean[leaf] + 20.0 * ceiling_here)
            sigma = new
            if done:
                break
        a[leaf] = mu
        b[leaf] = sigma
    return a, b


@entry
def truncated_location(mean, spread, lo, hi):
    """Locations of the parents of these scales whose parts on (lo, hi] have these means; Newton's method.

    The mean of the part grows with the location at the rate variance / scale^2, always positive. Where the mean is so
    close to an end that the location runs off, it stops 20 scales away.
    """
    a = mean.copy()
    for leaf in range(mean.shape[0]):
        if lo[leaf] == -math.inf and hi[leaf] == math.inf:
            continue
        sigma = spread[leaf]
        width = (hi[leaf] - lo[leaf]) / sigma
        if 1e-9 < width < 2.0:  # nearly a line: its mean is off the middle by (a - middle) * width^2 / 12
            middle = lo[leaf] / 2 + hi[leaf] / 2
            start = middle + (mean[leaf] - middle) / width * 12.0 / width
            a[leaf] = min(max(start, mean[leaf] - 20.0 * sigma), mean[leaf] + 20.0 * sigma)
        for _ in range(_ROUNDS):
            m, v = mean_variance(NORMAL, a[leaf], sigma, lo[leaf], hi[leaf], lo[leaf], hi[leaf])
            if not v > 0.0:
                break
            step = (mean[leaf] - m) * sigma * sigma / v
            a[leaf] += min(max(step, -2.0 * sigma), 2.0 * sigma)
            if abs(step) < _TOLERANCE * sigma or abs(a[leaf] - mean[leaf]) > 20.0 * sigma:
                break
        a[leaf] = min(max(a[leaf], mean[leaf] - 20.0 * sigma), mean[leaf] + 20.0 * sigma)
    return a


@entry
def mass_beyond(weight, a, b, lo, hi, low, high):
    """Mass below ``low`` and above ``high`` of the mixture of these truncated normals with these weights."""
    below = 0.0
    above = 0.0
    for leaf in range(weight.shape[0]):
        norm = log_norm(NORMAL, a[leaf], b[leaf], lo[leaf], hi[leaf])
        if lo[leaf] < low:
            below += weight[leaf] * math.exp(
                log_mass(NORMAL, a[leaf], b[leaf], lo[leaf], hi[leaf], norm, lo[leaf], low)
            )
        if hi[leaf] > high:
            above += weight[leaf] * math.exp(
                log_mass(NORMAL, a[leaf], b[leaf], lo[leaf], hi[leaf], norm, high, hi[leaf])
            )
    return below, above
