"""Entropies, mutual information, and divergences of two models. The mathematics is in docs/information.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...forest.forest import Forest
from ...forest.posterior.posterior import LeafPosterior, by_chunks
from ...table.regions import Evidence
from .cross_entropy import cross_entropy
from .entropy_kernels import column_entropies, told_of_leaf
from .integral import integral
from .partition import column_of_leaves, is_partition, mixes_columns
from .projection import View

Columns = tuple[int, ...]
"""Numbers of a view's columns."""


class Estimate(NamedTuple):
    """A number, and how well it is known.

    Attributes
    ----------
    value : float
        Natural logarithms: nats.
    standard_error : float
        Of the mean over the draws; 0 if the answer is exact, NaN if it is infinite.
    method : str
        ``"exact"`` (to about 1e-6) or ``"sampling"``.
    """

    value: float
    standard_error: float
    method: str


def exact(value: float) -> Estimate:
    """An answer without sampling."""
    return Estimate(float(value), 0.0 if np.isfinite(value) else np.nan, "exact")


def averaged(*draws: np.ndarray) -> Estimate:
    """The mean over strata of equal weight of the means of their draws, with its standard error."""
    value = float(np.mean([x.mean() for x in draws]))
    if not np.isfinite(value):
        return Estimate(value, np.nan, "sampling")
    variance = sum(x.var(ddof=1) / len(x) for x in draws) / len(draws) ** 2
    return Estimate(value, float(np.sqrt(variance)), "sampling")


# -- one model


def entropy(v: View, of: Columns, n: int, seed: int, n_jobs: int | None = -1) -> Estimate:
    """Entropy of some columns against the measure of `log_density`: -E log p.

    Parameters
    ----------
    v : View
    of : tuple of int
    n : int
        Rows to draw if it is not exact.
    seed : int
    n_jobs : int or None
        Threads; the answer does not depend on it.
    """
    found = exact_entropy(v, of, n_jobs)
    if found is not None:
        return exact(found)
    X, columns = v.draw(n, seed, n_jobs), [v.number[k] for k in of]
    of_leaves = leaf_entropies(v.model, columns)
    if of_leaves is None:
        return averaged(-v.log_density(X, of, n_jobs))
    told = averaged(_told_of_leaf(v.model, v.evidence(X, of), n_jobs))
    return told._replace(value=told.value + float(np.exp(v.model.leaves.log_weight) @ of_leaves))


def _told_of_leaf(model: Forest, evidence: Evidence, n_jobs: int | None) -> np.ndarray:
    """Divergence of the posterior of the leaves from their weights, (n,): what rows tell of their leaf, at least 0."""

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        return told_of_leaf(model.leaves, post)

    return by_chunks(model, evidence, read, n_jobs)


def conditional_entropy(v: View, of: Columns, given: Columns, n: int, seed: int, n_jobs: int | None = -1) -> Estimate:
    """Entropy of some columns given others, H(of, given) - H(given): parameters as of `entropy`."""
    return _signed(v, [(1.0, of + given), (-1.0, given)], n, seed, n_jobs)


def mutual_information(
    v: View, a: Columns, b: Columns, given: Columns, n: int, seed: int, n_jobs: int | None = -1
) -> Estimate:
    """Mutual information of columns a and b given others: H(a, c) + H(b, c) - H(a, b, c) - H(c).

    Parameters as of `entropy`; a, b and ``given`` have no column in common.
    """
    terms = [(1.0, a + given), (1.0, b + given), (-1.0, a + b + given), (-1.0, given)]
    found = _signed(v, terms, n, seed, n_jobs)
    return exact(max(found.value, 0.0)) if found.method == "exact" else found


def _signed(v: View, terms: list[tuple[float, Columns]], n: int, seed: int, n_jobs: int | None) -> Estimate:
    """A sum of entropies with signs: exact if all are, else all from the same draws, so that much noise cancels."""
    terms = [(sign, of) for sign, of in terms if of]
    total = 0.0
    for sign, of in sorted(terms, key=lambda term: -len(term[1])):  # the largest is the least likely to be exact
        found = exact_entropy(v, of, n_jobs)
        if found is None:
            break
        total += sign * found
    else:
        return exact(total)
    X = v.draw(n, seed, n_jobs)
    return averaged(np.sum([-sign * v.log_density(X, of, n_jobs) for sign, of in terms], axis=0))


def exact_entropy(v: View, of: Columns, n_jobs: int | None = -1) -> float | None:
    """Entropy of some columns where one tree gives it in closed form, or else by quadrature; None if neither can."""
    found = tree_entropy(v.model, [v.number[k] for k in of])
    return found if found is not None else integral((v,), of, _minus_p_log_p, n_jobs)


def tree_entropy(model: Forest, columns: list[int]) -> float | None:
    """Entropy of some columns of one tree, sum_l w_l (H_l - log w_l).

    None if leaves may overlap in these columns (`is_partition`), or the leaves' own entropies are not known.
    """
    of_leaves = leaf_entropies(model, columns) if is_partition(model, columns) else None
    if of_leaves is None:
        return None
    log_weight = model.leaves.log_weight
    some = log_weight[log_weight > -np.inf]
    return float(np.exp(log_weight) @ of_leaves - np.exp(some) @ some)


def leaf_entropies(model: Forest, columns: list[int]) -> np.ndarray | None:
    """Entropy (L,) of some columns in each leaf, the sum of the columns' own.

    None if a leaf is no product over these columns, or mixes densities of one that overlap.
    """
    if mixes_columns(model, columns):
        return None
    total = np.zeros(len(model.leaves.log_weight))
    for j in columns:
        total += column_entropies(model.columns, model.leaves, j, *column_of_leaves(model, j))
    return None if np.isnan(total).any() else total


# -- two models


def kl_divergence(p: View, q: View, of: Columns, n: int, seed: int, n_jobs: int | None = -1) -> Estimate:
    """Divergence of Kullback and Leibler, E_p log(p / q), in nats; infinite where q gives rows of p probability 0.

    Parameters as of `entropy`; draws are of p.
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
    own = tree_entropy(p.model, [p.number[k] for k in of])
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


def _minus_p_log_p(log_p: np.ndarray) -> np.ndarray:
    return -np.exp(log_p) * np.where(log_p > -np.inf, log_p, 0.0)


def _kl(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    some = log_p > -np.inf
    return np.exp(log_p) * np.where(some, np.where(some, log_p, 0.0) - np.where(some, log_q, 0.0), 0.0)
