"""Divergences and distances of two models over columns that both have. The mathematics is in docs/information.md."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .cross_entropy import cross_entropy
from .entropy import tree_entropy
from .estimate import Estimate, averaged, exact
from .integral import integral
from .projection import Columns, View


def kl_divergence(p: View, q: View, of: Columns, n: int, seed: int, n_jobs: int | None = -1) -> Estimate:
    """Divergence of Kullback and Leibler, E_p log(p / q), in nats; infinite where q gives rows of p probability 0.

    If it is not exact, ``n`` rows are drawn from p.
    """
    found = tree_divergence(p, q, of)
    if found is None:
        found = integral((p, q), of, _kl, n_jobs)
    if found is not None:
        return exact(max(found, 0.0))
    X = p.draw(n, seed, n_jobs)
    return averaged(p.log_density(X, of, n_jobs) - q.log_density(X, of, n_jobs))


def tree_divergence(p: View, q: View, of: Columns) -> float | None:
    """KL(p || q) of two single trees, -H(p) - E_p log q; None where one of them is none, or it takes too much work."""
    if not (p.model.is_forest and q.model.is_forest):
        return None
    own = tree_entropy(p.forest, [p.number[k] for k in of])
    cross = cross_entropy(p, q, of) if own is not None else None
    return cross - own if own is not None and cross is not None else None


def jensen_shannon(p: View, q: View, of: Columns, n: int, seed: int, n_jobs: int | None = -1) -> Estimate:
    """Divergence of Jensen and Shannon, the mean of KL(p || m) and KL(q || m) with m = (p + q) / 2: 0 to log 2 nats."""
    most = np.log(2.0)
    return _of_shares(p, q, of, lambda s: most + _x_log_x(s) + _x_log_x(1.0 - s), most, n, seed, n_jobs)


def total_variation(p: View, q: View, of: Columns, n: int, seed: int, n_jobs: int | None = -1) -> Estimate:
    """Total variation, the largest difference of the probabilities of an event: 0 to 1."""
    return _of_shares(p, q, of, lambda s: np.abs(2.0 * s - 1.0), 1.0, n, seed, n_jobs)


def hellinger(p: View, q: View, of: Columns, n: int, seed: int, n_jobs: int | None = -1) -> Estimate:
    """Hellinger distance, the root of 1 - int sqrt(p q): 0 to 1."""
    # 1 - 2 sqrt(s (1 - s)) without cancellation
    found = _of_shares(p, q, of, lambda s: (np.sqrt(s) - np.sqrt(1.0 - s)) ** 2, 1.0, n, seed, n_jobs)
    root = np.sqrt(found.value)
    error = found.standard_error / (2.0 * root) if root > 0 else found.standard_error
    return Estimate(float(root), float(error), found.method)


MEASURES: dict[str, Callable[..., Estimate]] = {
    "kl": kl_divergence,
    "jensen-shannon": jensen_shannon,
    "total-variation": total_variation,
    "hellinger": hellinger,
}


def _of_shares(
    p: View,
    q: View,
    of: Columns,
    function: Callable[[np.ndarray], np.ndarray],
    most: float,
    n: int,
    seed: int,
    n_jobs: int | None,
) -> Estimate:
    """E_m f(s) over m = (p + q) / 2, s = p / (p + q): f is in 0..most, so the variance is finite, whatever p and q."""

    def summed(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
        return 0.5 * (np.exp(log_p) + np.exp(log_q)) * function(_share(log_p, log_q))

    found = integral((p, q), of, summed, n_jobs)
    if found is not None:
        return exact(min(max(found, 0.0), most))
    seeds = np.random.default_rng(seed).integers(2**63, size=2)  # two models' draws must not share their streams
    draws = [v.draw((n + 1) // 2, int(s), n_jobs) for v, s in zip((p, q), seeds, strict=True)]
    return averaged(*(function(_share(p.log_density(X, of, n_jobs), q.log_density(X, of, n_jobs))) for X in draws))


def _share(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """p / (p + q); one half where both are 0."""
    top = np.maximum(log_p, log_q)
    top = np.where(top > -np.inf, top, 0.0)
    a, b = np.exp(log_p - top), np.exp(log_q - top)
    return np.where(a + b > 0, a / np.maximum(a + b, 1e-300), 0.5)


def _x_log_x(x: np.ndarray) -> np.ndarray:
    return x * np.log(np.where(x > 0, x, 1.0))


def _kl(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    some = log_p > -np.inf
    return np.exp(log_p) * np.where(some, np.where(some, log_p, 0.0) - np.where(some, log_q, 0.0), 0.0)
