"""Shapley values and their standard errors from the values of a plan's coalitions."""

from __future__ import annotations

import numpy as np

from .plan import Plan


def solve(plan: Plan, value: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shapley values of n games with K outputs, and the variance of each.

    The variance has two sources. Which coalitions were drawn: by the residuals of the drawn pairs (a sandwich, HC3), in
    which the noise of their own values shows as well. The noise of all other values: by the linear map.

    Parameters
    ----------
    plan : Plan
        Of p players and m coalitions.
    value, variance : float64 arrays (n, m, K)
        Of each coalition; variance 0 where the value is exact.

    Returns
    -------
    phi, variance : float64 arrays (n, p, K)
    """
    phi = np.matmul(plan.weight, value)
    given = slice(0, plan.first_sampled)
    spread = np.matmul(plan.weight[:, given] ** 2, variance[:, given])
    k = plan.score.shape[1]
    if k:
        drawn = plan.member[plan.first_sampled :][:k] - 0.5
        first = value[:, plan.first_sampled : plan.first_sampled + k]
        second = value[:, plan.first_sampled + k :]
        residual = (first - second) / 2.0 - np.matmul(drawn, phi)
        mean = np.matmul(plan.score, residual) / k
        squares = np.matmul(plan.score**2, residual**2)
        spread = spread + np.maximum(squares - k * mean**2, 0.0) * (k / (k - 1))
    return phi, spread
