"""Weights of a mixture of models, by EM on the log-densities of validation rows."""

from __future__ import annotations

import numpy as np

from .constants import FIXED


def mixture_weights(log_density: np.ndarray) -> np.ndarray:
    """Weights (K,) that maximise the mean of log sum_k weight[k] exp(log_density[:, k]), log_density: (n, K).

    The mean is concave in the weights, so EM from equal ones ends at its maximum. Rows that are impossible to all
    members say nothing.
    """
    top = log_density.max(axis=1)
    known = np.isfinite(top)
    density = np.exp(log_density[known] - top[known, None])
    weight = np.full(log_density.shape[1], 1.0 / log_density.shape[1])
    for _ in range(FIXED.em_steps if len(density) else 0):
        share = density * weight
        new = (share / share.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(new - weight).max() < 1e-9:
            return new
        weight = new
    return weight


def members_log_density(log_density: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Log-density (n,) of the mixture; -inf where all members say so. Members of weight 0 do not count."""
    used = weight > 0
    with np.errstate(divide="ignore"):
        log_mixture: np.ndarray = np.logaddexp.reduce(log_density[:, used] + np.log(weight[used]), axis=1)
    return log_mixture


def sparse_weights(log_density: np.ndarray) -> np.ndarray:
    """As `mixture_weights`, with 0 for members that would have next to none."""
    weight = np.zeros(log_density.shape[1])
    used = np.arange(len(weight))
    while True:
        weights = mixture_weights(log_density[:, used])
        if len(used) == 1 or weights.min() >= FIXED.least_weight:
            weight[used] = weights
            return weight
        used = np.delete(used, weights.argmin())


def validate_mixture(log_density: np.ndarray, seed: int) -> np.ndarray:
    """Log-density (n,) of each validation row by the mixture whose weights were found on the other half of the rows."""
    half = np.random.default_rng(seed).permutation(len(log_density)) % 2 == 0
    found = np.empty(len(log_density))
    for side in (half, ~half):
        found[side] = members_log_density(log_density[side], sparse_weights(log_density[~side]))
    return found
