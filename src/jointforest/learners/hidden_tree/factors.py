"""Hidden trees of tables of few rows, mostly of numbers, from a factor analysis (Rubin and Thayer 1982)."""

# Transition tables of states need many rows. A factor analysis of normal scores has a few numbers for each column. Its
# factors become the states of the root: each state is a draw of the factors of one row. Given the state the columns are
# independent, and the code of a number has the mass of a normal between the edges of the code. So the states need not
# have a normal distribution, and a hidden tree answers exactly.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ...data.discretization.discretizer import Scale
from ...data.discretization.refine import Refined
from ...models.hidden_tree.hidden_trees import TreeTables
from ...runtime.threads import of_finite
from .complete import completed
from .constants import FIXED
from .em import spread_inside
from .features import features
from .rake import with_marginal
from .start import clusters
from .structure import CodeColumn, CodeTable, code_column, code_columns

_SIGMAS = (0.1587, 0.5, 0.8413)
"""Probabilities of a standard normal below -1, 0 and 1."""


def factor_tree(
    table: CodeTable, refined: tuple[Refined, ...], n_states: int, most_factors: int, seed: int
) -> TreeTables:
    """The hidden tree of a factor analysis: the root is column 0, and the states of the others are their codes."""
    # Rows have as many states each as fit into ``n_states``, the most of the root; of more rows some have one. Missing
    # cells are drawn first. ``refined`` are the scales that the codes are of. Tables are in float32, and the mixture of
    # all states has the marginals of the table.
    rng = np.random.default_rng(seed)
    table = table.take(table.weighed_rows())
    n, d = table.codes.shape
    weight = np.ones(n) if table.weight is None else table.weight
    columns = smoothed_columns(table, refined)
    codes = completed(table.codes, columns, rng, table.weight)
    seen, axes = features(codes, columns), []
    for j, (column, of) in enumerate(zip(columns, refined, strict=True)):
        axis = axis_of(column, of.scale) if column.is_ordered else None
        axes.append(axis)
        if axis is not None:
            seen[j] = axis.place[codes[:, j], None]
    X = np.hstack(seen).astype(np.float64)
    centre = _centres(X, weight, rng)
    loading, noise = fit_complete(X - centre, weight, n_factors(X.shape[1], most_factors))
    rows = np.repeat(np.arange(n), n_states // n) if n <= n_states else np.sort(rng.permutation(n)[:n_states])
    place = centre[rows] + draw_factors((X - centre)[rows], loading, noise, rng) @ loading.T
    share = weight[rows] / weight[rows].sum()
    near = _shares_of_states(X, place, noise, share)
    masses = []
    at = np.cumsum([0] + [of.shape[1] for of in seen])
    for j, (column, axis) in enumerate(zip(columns, axes, strict=True)):
        if axis is not None:
            mass = number_masses(axis, place[:, at[j]], float(noise[at[j]]), column.marginal)
        else:
            mass = np.zeros((len(rows), column.n_codes))
            np.add.at(mass.T, codes[:, j], near * weight[:, None])
            mass += (FIXED.odd_cells * mass.sum(axis=1, keepdims=True) + 1e-9) * column.marginal
        masses.append(with_marginal(mass, share, column.marginal))
    return TreeTables(
        np.arange(d, dtype=np.int32),
        np.array([-1] + [0] * (d - 1), np.int32),
        (share[None].astype(np.float32), *(mass.astype(np.float32) for mass in masses[1:])),
        (masses[0].astype(np.float32), *(np.eye(mass.shape[1], dtype=np.float32) for mass in masses[1:])),
    )


def n_factors(f: int, most: int) -> int:
    """Factors of f features: as many as their correlations determine (Ledermann 1937), within a bound."""
    return int(np.clip(np.floor((2 * f + 1 - np.sqrt(8 * f + 1)) / 2), 1, most))


def _centres(X: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Mean of the rows of each row's cluster (n, f), as factors explain straight lines alone."""
    n_clusters = int(np.clip(len(X) // FIXED.rows_a_cluster, 1, FIXED.most_clusters))
    of_row = clusters(X.astype(np.float32), n_clusters, rng, weight)
    mass = np.bincount(of_row, weight)
    total = np.zeros((len(mass), X.shape[1]))
    np.add.at(total, of_row, weight[:, None] * X)
    return np.asarray((total / mass[:, None])[of_row])


@of_finite
def fit_complete(X: np.ndarray, weight: np.ndarray, q: int) -> tuple[np.ndarray, np.ndarray]:
    """Loadings (f, q) and variances of noise (f,) of a factor analysis of complete rows of mean 0, (n, f)."""
    f = X.shape[1]
    second = (X * (weight / weight.sum())[:, None]).T @ X
    values, vectors = np.linalg.eigh(second)
    q = min(q, f)
    loading = vectors[:, -q:] * np.sqrt(np.maximum(values[-q:], 1e-6))
    noise = np.maximum(np.diag(second) - (loading**2).sum(axis=1), FIXED.first_noise)
    for _ in range(FIXED.complete_passes):
        slopes, covariance = _posterior(loading, noise)
        cross = second @ slopes
        loading = cross @ np.linalg.inv(slopes.T @ cross + covariance)
        noise = np.maximum(np.diag(second) - (loading * cross).sum(axis=1), FIXED.least_factor_noise)
    return loading, noise


def _posterior(loading: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the factors given a row x: the slopes (f, q) of their means x @ slopes, and their covariance (q, q)."""
    scaled = loading / noise[:, None]
    covariance = np.linalg.inv(loading.T @ scaled + np.eye(loading.shape[1]))
    return scaled @ covariance, covariance


def draw_factors(X: np.ndarray, loading: np.ndarray, noise: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A draw of the factors of each row, (n, q)."""
    slopes, covariance = _posterior(loading, noise)
    return np.asarray(X @ slopes + rng.standard_normal((len(X), len(covariance))) @ np.linalg.cholesky(covariance).T)


@of_finite
def _shares_of_states(X: np.ndarray, place: np.ndarray, noise: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Probability of each state given a row, (n, H), by normals around the places (H, f) of the states."""
    scale = 1.0 / np.sqrt(np.maximum(noise, FIXED.least_noise_of_levels))
    Y, P = X * scale, place * scale
    log = np.log(share) + Y @ P.T - 0.5 * (P**2).sum(axis=1)
    log -= log.max(axis=1, keepdims=True)
    near = np.exp(log)
    return np.asarray(near / near.sum(axis=1, keepdims=True))


def smoothed_columns(table: CodeTable, refined: tuple[Refined, ...]) -> tuple[CodeColumn, ...]:
    """The columns, where parts of a code have their shares of its rows: the rows of a part alone would be too few."""
    columns = list(code_columns(table))
    for j, of in enumerate(refined):
        if table.is_ordered[j]:
            count = np.bincount(table.codes[:, j], table.weight, len(of.code) + 1) + 0.0
            count[:-1] = np.bincount(of.code, count[:-1])[of.code] * of.share
            columns[j] = code_column(count, True, None)
    return tuple(columns)


class Axis(NamedTuple):
    """Where the codes of a number lie, of mean 0 and variance 1.

    edge : float64 array (K + 1,). Ends of the codes' intervals, from -inf to inf.
    place : float64 array (K,)
    inside : float. Mean variance inside the codes.
    """

    edge: np.ndarray
    place: np.ndarray
    inside: float


def axis_of(column: CodeColumn, scale: Scale) -> Axis:
    """The axis on which the noise of a number is normal: the mean of its normal score and its value."""
    # Normal scores alone lose gaps between groups of values, and values alone are not normal where they are skewed.
    # Values are in units of half the distance between the quantiles at one standard deviation, and not beyond four.
    _, center, variance = scale.moments
    share = column.marginal
    low, middle, high = np.interp(_SIGMAS, np.cumsum(share) - 0.5 * share, center)
    unit = 0.5 * (high - low) if high > low else 1.0

    def value(x: np.ndarray) -> np.ndarray:
        return np.clip((x - middle) / unit, -4.0, 4.0)

    ends = scale.hi[np.searchsorted(scale.code, np.arange(1, scale.n_codes)) - 1]  # segments ascend, and so do codes
    edge = np.concatenate([[-np.inf], 0.5 * (column.edge[1:-1] + value(ends)), [np.inf]])
    place = 0.5 * (column.score + value(center))
    inside = 0.25 * (np.sqrt(spread_inside(column)) + np.minimum(np.sqrt(variance) / unit, 1.0)) ** 2
    mean = share @ place
    spread = np.sqrt(share @ (place - mean) ** 2)
    spread = spread if spread > 0.0 else 1.0
    return Axis((edge - mean) / spread, (place - mean) / spread, float(share @ inside) / spread**2)


def number_masses(axis: Axis, place: np.ndarray, noise: float, marginal: np.ndarray) -> np.ndarray:
    """Masses of the codes of a number in each state, (H, K): differences of normal CDFs at the edges of the codes."""
    # ``place`` (H,) is the mean in each state, and ``noise`` the variance, to which codes add what lies inside them.
    z = (axis.edge - place[:, None]) / np.sqrt(noise + axis.inside)
    # a second, wider normal has the odd cells near the others: a share of the marginal would put them anywhere
    below = (1.0 - FIXED.wider_share) * ndtr(z) + FIXED.wider_share * ndtr(z / FIXED.wider_times)
    mass = np.diff(below, axis=1) * (marginal > 0.0)
    mass /= np.maximum(mass.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray((1.0 - FIXED.odd_numbers) * mass + FIXED.odd_numbers * marginal)
