"""Kernel: maximum likelihood of a truncated normal."""

from __future__ import annotations

import math

from numba import njit

from ._cells import mean_variance
from .table import NORMAL

_ROUNDS = 60
_TOLERANCE = 1e-8


@njit(nogil=True, cache=True)
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
