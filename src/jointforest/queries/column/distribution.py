"""CDF, density and quantiles of numeric columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...forest.column import distribution as forest_distribution
from ...model.model import Model
from ...table.evidence import Evidence
from ...table.schema import Column
from ..posterior.mixing import mixed, shares, weighted
from .sorts import need_numbers

_STEPS = 200


def cdf(
    model: Model,
    evidence: Evidence,
    j: int,
    x: np.ndarray,
    n_jobs: int | None = -1,
    known: tuple[Any, ...] | None = None,
) -> np.ndarray:
    """P(column j <= x | evidence) of a numeric column.

    Parameters
    ----------
    model : Model
    evidence : Evidence
        n rows. A cell with a value has all its mass there.
    j : int
        Number of a numeric column.
    x : array-like (q,)
        Points, the same for all rows.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    known : tuple, optional
        `WeighedEvidence.known` of this evidence.

    Returns
    -------
    float64 array (n, q)
        NaN where the evidence has probability 0, or x is NaN.

    Raises
    ------
    ValueError
        If column j is not numeric.
    """
    need_numbers(model.schema, j)
    return mixed(model, evidence, lambda part, k: part.cdf(evidence, j, x, n_jobs, k), n_jobs, known)


def pdf(
    model: Model,
    evidence: Evidence,
    j: int,
    x: np.ndarray,
    n_jobs: int | None = -1,
    known: tuple[Any, ...] | None = None,
) -> np.ndarray:
    """Density of a numeric column at x, given the evidence.

    On a grid the mass of x's cell over the step; at an atom of a mixed column the atom's mass (its density against a
    counting measure). A cell with a value has 1/step on its grid cell, 1 on an atom, and infinity elsewhere.

    Parameters
    ----------
    model : Model
    evidence : Evidence
        n rows.
    j : int
        Number of a numeric column.
    x : array-like (q,)
        Points, the same for all rows.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    known : tuple, optional
        `WeighedEvidence.known` of this evidence.

    Returns
    -------
    float64 array (n, q)
        NaN where the evidence has probability 0, or x is NaN.

    Raises
    ------
    ValueError
        If column j is not numeric.
    """
    need_numbers(model.schema, j)
    return mixed(model, evidence, lambda part, k: part.pdf(evidence, j, x, n_jobs, k), n_jobs, known)


def quantile(
    model: Model,
    evidence: Evidence,
    j: int,
    q: np.ndarray,
    n_jobs: int | None = -1,
    beta: float = 1.0,
    known: tuple[Any, ...] | None = None,
) -> np.ndarray:
    """Quantiles inf{x: F(x) >= q} of a numeric column, given the evidence.

    Those of several parts lie between the parts' own, where bisection of the mixture's CDF finds them.

    Parameters
    ----------
    model : Model
    evidence : Evidence
        n rows. A cell with a value has that value (on a grid its cell's centre) as every quantile.
    j : int
        Number of a numeric column.
    q : array-like (k,)
        Probabilities, above 0 and below 1.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    beta : float
        How the trees of a forest are weighed, see `forest.posterior.posterior.chunk_posterior`; 1 is the joint itself.
    known : tuple, optional
        `WeighedEvidence.known` of this evidence.

    Returns
    -------
    float64 array (n, k)
        Cell centres on grids, atoms exactly, other numbers to 1e-10 of the posterior's standard deviation; NaN where
        the evidence has probability 0.

    Raises
    ------
    ValueError
        If column j is not numeric, a q is not between 0 and 1, or ``beta`` is not 1 and the model is no single forest.
    """
    need_numbers(model.schema, j)
    if beta != 1.0:
        return forest_distribution.quantile(model.forest_for("weighing trees by beta"), evidence, j, q, n_jobs, beta)
    each = [part.quantile(evidence, j, q, n_jobs, known and known[k]) for k, part in enumerate(model.parts)]
    if len(each) == 1:
        return each[0]
    return _between(model, evidence, j, np.asarray(q, dtype=np.float64), each, n_jobs)


def _between(
    model: Model, evidence: Evidence, j: int, q: np.ndarray, each: list[np.ndarray], n_jobs: int | None
) -> np.ndarray:
    """Quantiles of a mixture from those of its parts, (n, k): one row of evidence after the other."""
    share = shares(model, evidence, n_jobs)
    out = np.full(each[0].shape, np.nan)
    for i in np.flatnonzero(~np.isnan(share[:, 0])).tolist():
        row = evidence.take(np.array([i]))
        known = [part.weigh(row) for part in model.parts]
        counts = np.flatnonzero(share[i] > 0.0).tolist()

        def below(x: np.ndarray, row: Evidence = row, known: list[Any] = known, i: int = i) -> np.ndarray:
            """P(column <= x) at the k points x."""
            said = [part.cdf(row, j, x, 1, known[k]) for k, part in enumerate(model.parts)]
            return weighted(share[[i]], said)[0]

        ends = np.array([each[k][i] for k in counts])
        out[i] = _bisect(below, q, ends.min(axis=0), ends.max(axis=0), model.schema.columns[j])
    return out


def _bisect(below: Any, q: np.ndarray, low: np.ndarray, high: np.ndarray, column: Column) -> np.ndarray:
    """Smallest x of [low, high] with below(x) >= q for each q: an atom, a cell's centre, or to the last digit.

    ``below`` gives the CDF at as many points as there are q.
    """
    low, high = low.copy(), np.where(below(low) >= q, low, high)
    for atom in column.atoms:  # a jump of the CDF is met by bisection only in the limit
        at, before = np.full(len(q), atom), np.full(len(q), np.nextafter(atom, -np.inf))
        enough, short = below(at) >= q, below(before) < q
        inside = (low < at) & (at < high)
        high = np.where(inside & enough, at, high)
        low = np.where(inside & (short if column.step == 0.0 else ~enough), np.minimum(at, high), low)
    for _ in range(_STEPS):
        middle = low + 0.5 * (high - low)
        if column.step > 0.0:
            middle = column.center + np.floor((middle - column.center) / column.step + 1e-6) * column.step
        if not np.any((low < middle) & (middle < high)):
            break
        enough = below(middle) >= q
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return high
