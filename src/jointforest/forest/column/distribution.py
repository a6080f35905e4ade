"""CDF, density and quantiles of numeric columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...table.evidence import Evidence
from ..forest import Forest
from ..posterior.posterior import LeafPosterior, OneRow, by_chunks
from .distribution_kernels import cdf_rows, pdf_rows
from .moments import numeric_slot
from .quantile_kernels import quantile_rows


def cdf(
    forest: Forest, evidence: Evidence, j: int, x: np.ndarray, n_jobs: int | None = -1, known: OneRow | None = None
) -> np.ndarray:
    """P(column j <= x | evidence) of a numeric column.

    Parameters
    ----------
    forest : Forest
    evidence : Evidence
        n rows. A cell with a value has all its mass there.
    j : int
        Number of a numeric column.
    x : array-like (q,)
        Points, the same for all rows.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    known : OneRow, optional
        The evidence, if it was weighed before.

    Returns
    -------
    float64 array (n, q)
        NaN where the evidence has probability 0, or x is NaN.

    Raises
    ------
    ValueError
        If column j is not numeric.
    """
    # sums of many weights may end a rounding error above 1
    return np.minimum(_at_points(cdf_rows, forest, evidence, j, x, n_jobs, known), 1.0)


def pdf(
    forest: Forest, evidence: Evidence, j: int, x: np.ndarray, n_jobs: int | None = -1, known: OneRow | None = None
) -> np.ndarray:
    """Density of a numeric column at x, given the evidence.

    On a grid the mass of x's cell over the step; at an atom of a mixed column the atom's mass (its density against a
    counting measure). A cell with a value has 1/step on its grid cell, 1 on an atom, and infinity elsewhere.

    Parameters
    ----------
    forest : Forest
    evidence : Evidence
        n rows.
    j : int
        Number of a numeric column.
    x : array-like (q,)
        Points, the same for all rows.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    known : OneRow, optional
        The evidence, if it was weighed before.

    Returns
    -------
    float64 array (n, q)
        NaN where the evidence has probability 0, or x is NaN.

    Raises
    ------
    ValueError
        If column j is not numeric.
    """
    return _at_points(pdf_rows, forest, evidence, j, x, n_jobs, known)


def _at_points(
    kernel: Callable[..., np.ndarray],
    forest: Forest,
    evidence: Evidence,
    j: int,
    x: np.ndarray,
    n_jobs: int | None,
    known: OneRow | None,
) -> np.ndarray:
    """What the kernel says of column j at the points x, for each row: (n, q)."""
    numeric_slot(forest, j)
    points = np.ascontiguousarray(x, dtype=np.float64)

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        return kernel(forest.columns, forest.leaves, rows, j, post, first, points)

    return by_chunks(forest, evidence, read, n_jobs, j, known=known)


def quantile(
    forest: Forest,
    evidence: Evidence,
    j: int,
    q: np.ndarray,
    n_jobs: int | None = -1,
    beta: float = 1.0,
    known: OneRow | None = None,
) -> np.ndarray:
    """Quantiles inf{x: F(x) >= q} of a numeric column, given the evidence, by a bracketed search on the mixture's CDF.

    Parameters
    ----------
    forest : Forest
    evidence : Evidence
        n rows. A cell with a value has that value (on a grid its cell's centre) as every quantile.
    j : int
        Number of a numeric column.
    q : array-like (k,)
        Probabilities, above 0 and below 1.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    beta : float
        How trees are weighed, see `posterior.chunk_posterior`.
    known : OneRow, optional
        The evidence, if it was weighed before.

    Returns
    -------
    float64 array (n, k)
        Cell centres on grids, atoms exactly, other numbers to 1e-10 of the posterior's standard deviation; NaN where
        the evidence has probability 0.

    Raises
    ------
    ValueError
        If column j is not numeric, or a q is not between 0 and 1.
    """
    numeric_slot(forest, j)
    probabilities = np.ascontiguousarray(q, dtype=np.float64)
    if not np.all((probabilities > 0.0) & (probabilities < 1.0)):
        bad = probabilities[~((probabilities > 0.0) & (probabilities < 1.0))][0]
        name = forest.schema.columns[j].name
        raise ValueError(f"quantile of column {name!r}: q must be above 0 and below 1, got {bad}")

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        return quantile_rows(forest.columns, forest.leaves, rows, j, post, first, probabilities)

    found = by_chunks(forest, evidence, read, n_jobs, j, beta, known)
    rising = np.argsort(
        probabilities, kind="stable"
    )  # each q has its own search: keep their order within its tolerance
    found[:, rising] = np.maximum.accumulate(found[:, rising], axis=1)
    return found
