"""Weights of a mixture by EM on held-out log-densities."""

from __future__ import annotations

import numpy as np

_MOST_STEPS = 1_000
_SMALLEST = 0.02  # weight below which a member is left out of a mixture


def mixture_weights(log_density: np.ndarray) -> np.ndarray:
    """Weights (K,) that maximise the mean of log sum_k weight[k] exp(log_density[:, k]), log_density: (n, K).

    The mean is concave in the weights, so EM from equal ones ends at its maximum. Rows that are impossible to all
    members say nothing.
    """
    top = log_density.max(axis=1)
    known = np.isfinite(top)
    density = np.exp(log_density[known] - top[known, None])
    weight = np.full(log_density.shape[1], 1.0 / log_density.shape[1])
    for _ in range(_MOST_STEPS if len(density) else 0):
        share = density * weight
        new = (share / share.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(new - weight).max() < 1e-9:
            return new
        weight = new
    return weight


def mixed(log_density: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Log-density (n,) of the mixture; -inf where all members say so. Members of weight 0 have no say."""
    used = weight > 0
    with np.errstate(divide="ignore"):
        found: np.ndarray = np.logaddexp.reduce(log_density[:, used] + np.log(weight[used]), axis=1)
    return found


def sparse_weights(log_density: np.ndarray) -> np.ndarray:
    """As `mixture_weights`, with 0 for members that would have next to none."""
    weight = np.zeros(log_density.shape[1])
    used = np.arange(len(weight))
    while True:
        found = mixture_weights(log_density[:, used])
        if len(used) == 1 or found.min() >= _SMALLEST:
            weight[used] = found
            return weight
        used = np.delete(used, found.argmin())


def judge_mixture(log_density: np.ndarray, seed: int) -> np.ndarray:
    """Log-density (n,) of each held-out row by the mixture whose weights were found on the other half of the rows."""
    half = np.random.default_rng(seed).permutation(len(log_density)) % 2 == 0
    judged = np.empty(len(log_density))
    for side in (half, ~half):
        judged[side] = mixed(log_density[side], sparse_weights(log_density[~side]))
    return judged
