"""CDF, density and quantiles of numeric columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..data.evidence import Evidence
from ..data.schema import Column, Schema
from ..data.values import numbers
from ..models.box_forest import column as forest_distribution
from ..models.mixture import Mixture
from ..runtime.parameters import check_number
from .posterior import States, WeighedEvidence, log_density, mixed, observe, shares, weighted

# ---- Which questions a column can be asked: numbers or levels.


def need_numbers(schema: Schema, j: int) -> None:
    """A ValueError if column j is not numeric."""
    column = schema.columns[j]
    if column.is_categorical:
        raise ValueError(f"column {column.name!r} is {column.kind}: this question needs numbers; ask for its levels")


def need_levels(schema: Schema, j: int) -> None:
    """A ValueError if column j is not categorical."""
    column = schema.columns[j]
    if not column.is_categorical:
        raise ValueError(f"column {column.name!r} is {column.kind}: it has no levels; ask for mean, cdf or quantile")


_STEPS = 200


def cdf(
    model: Mixture,
    evidence: Evidence,
    j: int,
    x: np.ndarray,
    n_jobs: int | None = -1,
    states: States | None = None,
) -> np.ndarray:
    """P(column j <= x | evidence) of a numeric column.

    Parameters
    ----------
    model : Mixture
    evidence : Evidence
        n rows. A cell with a value has all its mass there.
    j : int
        Number of a numeric column.
    x : array-like (q,)
        Points, the same for all rows.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    states : tuple of PosteriorState, optional
        `WeighedEvidence.states` of this evidence.

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
    return mixed(model, evidence, lambda state: state.cdf(j, x, n_jobs), n_jobs, states)


def pdf(
    model: Mixture,
    evidence: Evidence,
    j: int,
    x: np.ndarray,
    n_jobs: int | None = -1,
    states: States | None = None,
) -> np.ndarray:
    """Density of a numeric column at x, given the evidence.

    On a grid the mass of x's cell over the step; at an atom of a mixed column the atom's mass (its density against a
    counting measure). A cell with a value has 1/step on its grid cell, 1 on an atom, and infinity elsewhere.

    Parameters
    ----------
    model : Mixture
    evidence : Evidence
        n rows.
    j : int
        Number of a numeric column.
    x : array-like (q,)
        Points, the same for all rows.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    states : tuple of PosteriorState, optional
        `WeighedEvidence.states` of this evidence.

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
    return mixed(model, evidence, lambda state: state.pdf(j, x, n_jobs), n_jobs, states)


def quantile(
    model: Mixture,
    evidence: Evidence,
    j: int,
    q: np.ndarray,
    n_jobs: int | None = -1,
    beta: float = 1.0,
    states: States | None = None,
) -> np.ndarray:
    """Quantiles inf{x: F(x) >= q} of a numeric column, given the evidence.

    Those of several parts lie between the parts' own, where bisection of the mixture's CDF finds them.

    Parameters
    ----------
    model : Mixture
    evidence : Evidence
        n rows. A cell with a value has that value (on a grid its cell's centre) as every quantile.
    j : int
        Number of a numeric column.
    q : array-like (k,)
        Probabilities, above 0 and below 1.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    beta : float
        How the trees of a forest are weighed, see `models.box_forest.posterior.chunk_posterior`; 1 is the joint itself.
    states : tuple of PosteriorState, optional
        `WeighedEvidence.states` of this evidence.

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
    each = [state.quantile(j, q, n_jobs) for state in states or observe(model, evidence)]
    if len(each) == 1:
        return each[0]
    return _between(model, evidence, j, np.asarray(q, dtype=np.float64), each, n_jobs)


def _between(
    model: Mixture, evidence: Evidence, j: int, q: np.ndarray, each: list[np.ndarray], n_jobs: int | None
) -> np.ndarray:
    """Quantiles of a mixture from those of its parts, (n, k): one row of evidence after the other."""
    share = shares(model, evidence, n_jobs)
    out = np.full(each[0].shape, np.nan)
    for i in np.flatnonzero(~np.isnan(share[:, 0])).tolist():
        row = evidence.take(np.array([i]))
        states = observe(model, row)
        counts = np.flatnonzero(share[i] > 0.0).tolist()

        def below(x: np.ndarray, states: States = states, i: int = i) -> np.ndarray:
            """P(column <= x) at the k points x."""
            return weighted(share[[i]], [state.cdf(j, x, 1) for state in states])[0]

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


# ---- Histograms: the probability of each bin of a column, the same bins whatever the evidence.

MOST_BINS = 10_000


def histogram(weighed: WeighedEvidence, j: int, edges: np.ndarray, n_jobs: int | None = -1) -> np.ndarray:
    """Probability of the bins of column j given evidence, (n, B), or of its levels.

    Parameters
    ----------
    weighed : WeighedEvidence
        n rows.
    j : int
    edges : float64 array (B + 1,)
        Of `bin_edges`; nothing of a column of levels.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    float64 array
        Rows sum to 1: what lies beyond the edges is in the first and the last bin. NaN where the evidence has
        probability 0.
    """
    mass = weighed.mixed(lambda state: state.histogram(j, edges[1:-1], n_jobs))
    if weighed.model.schema.columns[j].is_categorical:
        return mass
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def bin_edges(column: Column, bins: Any) -> np.ndarray:
    """Edges of a column's bins, float64 (B + 1,) ascending: those given, or of at most so many bins; none of levels.

    Raises
    ------
    ValueError
        If ``bins`` is neither a number of bins nor ascending edges, or edges of a column of levels.
    """
    if np.ndim(bins) == 0 or column.is_categorical:
        check_number("bins", bins, 1, MOST_BINS, whole=True, text=_expected(column))
        return np.empty(0) if column.is_categorical else _even(column, int(bins))
    edges = numbers(column, bins)
    if edges.ndim != 1 or len(edges) < 2 or not (edges[:-1] < edges[1:]).all():
        raise ValueError(f"column {column.name!r}: edges of bins must ascend, at least two of them, got {bins!r:.80}")
    return edges


def _expected(column: Column) -> str:
    most = f"an integer of 1 to {MOST_BINS}"
    return f"{most} (column {column.name!r} is {column.kind}: each level is a bin)" if column.is_categorical else most


def _even(column: Column, bins: int) -> np.ndarray:
    """Edges of at most so many bins, equally wide, over the range seen at learning; on a grid of whole cells each."""
    low, high = column.minimum, column.maximum
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"column {column.name!r}: no range was seen at learning; give the edges of the bins")
    if column.step > 0.0:
        first, last = (round((x - column.center) / column.step) for x in (low, high))
        width = -(-(last - first + 1) // bins)
        cells = first + width * np.arange(-(-(last - first + 1) // width) + 1)
        return column.center + (cells - 0.5) * column.step
    if low == high:
        low, high = low - 0.5, high + 0.5
    part = np.linspace(0.0, 1.0, bins + 1)
    return np.unique(low * (1.0 - part) + high * part)


# ---- Probabilities of the levels of categorical columns.


def level_probability(
    model: Mixture,
    evidence: Evidence,
    j: int,
    n_jobs: int | None = -1,
    beta: float = 1.0,
    states: States | None = None,
) -> np.ndarray:
    """Posterior probability of each level of a categorical column, given each row of evidence.

    Parameters
    ----------
    model : Mixture
    evidence : Evidence
        n rows. A cell with a value gives that level probability 1; a region leaves 0 to the levels outside it.
    j : int
        Number of a categorical column with K levels.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    beta : float
        How the trees of a forest are weighed, see `models.box_forest.posterior.chunk_posterior`; 1 is the joint itself.
    states : tuple of PosteriorState, optional
        `WeighedEvidence.states` of this evidence.

    Returns
    -------
    float64 array (n, K)
        Rows sum to 1; NaN where the evidence has probability 0.

    Raises
    ------
    ValueError
        If column j is not categorical, or ``beta`` is not 1 and the model is no single forest.
    """
    need_levels(model.schema, j)
    if beta != 1.0:
        return forest_distribution.level_probability(
            model.forest_for("weighing trees by beta"), evidence, j, n_jobs, beta
        )
    return mixed(model, evidence, lambda state: state.level_probabilities(j, n_jobs), n_jobs, states)


# ---- Means and variances of numeric columns.


def mean_variance(
    model: Mixture,
    evidence: Evidence,
    j: int,
    n_jobs: int | None = -1,
    beta: float = 1.0,
    states: States | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and variance of a numeric column, given each row of evidence.

    The parts' means mix by their shares s_k, and the variance is ``sum_k s_k (v_k + (m_k - mean)^2)``.

    Parameters
    ----------
    model : Mixture
    evidence : Evidence
        n rows. A cell with a value has it (on a grid its cell's centre) as mean, and variance 0.
    j : int
        Number of a numeric column.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    beta : float
        How the trees of a forest are weighed, see `models.box_forest.posterior.chunk_posterior`; 1 is the joint itself.
    states : tuple of PosteriorState, optional
        `WeighedEvidence.states` of this evidence.

    Returns
    -------
    mean, variance : float64 arrays (n,)
        In the column's units and their square (date-times: seconds); NaN where the evidence has probability 0. Grids
        count with their cell centres, so no variance within a cell is added.

    Raises
    ------
    ValueError
        If column j is not numeric, or ``beta`` is not 1 and the model is no single forest.
    """
    need_numbers(model.schema, j)
    if beta != 1.0:
        return forest_distribution.mean_variance(model.forest_for("weighing trees by beta"), evidence, j, n_jobs, beta)
    each = [state.moments(j, n_jobs) for state in states or observe(model, evidence)]
    if len(each) == 1:
        return each[0]
    share = shares(model, evidence, n_jobs)
    mean = weighted(share, [m for m, _ in each])
    return mean, weighted(share, [v + (m - mean) ** 2 for m, v in each])


# ---- Where a numeric column is most dense.

_TAIL = 1e-6
_CELLS = 16_384
_POINTS = 1_024
_ROUNDS, _BETWEEN = 8, 17


def peak(model: Mixture, evidence: Evidence, j: int, n_jobs: int | None = -1) -> np.ndarray:
    """The value of greatest `pdf` of a numeric column given each of n rows of evidence, the first of equals, (n,).

    On a grid of at most 16,384 cells that hold all but 2e-6 each cell is compared, on others 1,024 quantiles. Without
    grid the best of 1,024 quantiles and the atoms is refined between its neighbours. A peak between quantiles that
    holds less than a 1,024th may be missed. NaN where the evidence has probability 0.
    """
    out = np.full(len(evidence.value), np.nan)
    for i in range(len(out)):
        row = evidence.take(np.array([i]))
        states = observe(model, row)
        x = _candidates(model, row, j, n_jobs, states)
        if not len(x) or np.isnan(x).any():
            continue
        height = pdf(model, row, j, x, n_jobs, states)[0]
        best = int(height.argmax())
        if model.schema.columns[j].step == 0.0 and not np.isinf(height[best]):
            out[i] = _refined(model, row, j, x, best, height[best], n_jobs, states)
        else:
            out[i] = x[best]
    return out


def _candidates(model: Mixture, row: Evidence, j: int, n_jobs: int | None, states: States) -> np.ndarray:
    column = model.schema.columns[j]
    if not np.isnan(row.value[0, j]):
        return quantile(model, row, j, np.array([0.5]), n_jobs, states=states)[0]
    if np.isneginf(log_density(model, row)[0]):
        return np.empty(0)
    if column.step > 0.0:
        low, high = _quantiles(states, j, np.array([_TAIL, 1.0 - _TAIL]))[[0, -1]]
        first, last = np.rint((np.array([low, high]) - column.center) / column.step)
        if last - first < _CELLS:
            return np.asarray(column.center + np.arange(first, last + 1.0) * column.step)
    q = (np.arange(_POINTS) + 0.5) / _POINTS
    found = _quantiles(states, j, q)
    return np.unique(np.concatenate([found, column.atoms])) if column.step == 0.0 and len(found) else found


def _quantiles(states: States, j: int, q: np.ndarray) -> np.ndarray:
    """The quantiles of all components together, ascending."""
    each = [state.quantile(j, q, 1)[0] for state in states]
    found = np.unique(np.concatenate(each))
    return found[~np.isnan(found)]


def _refined(
    model: Mixture, row: Evidence, j: int, x: np.ndarray, best: int, height: float, n_jobs: int | None, states: States
) -> float:
    """The best point found between the neighbours of the best candidate, closing in on it."""
    low, high, at = x[max(best - 1, 0)], x[min(best + 1, len(x) - 1)], x[best]
    if np.isin(at, model.schema.columns[j].atoms):
        return float(at)
    for _ in range(_ROUNDS):
        points = np.linspace(low, high, _BETWEEN)
        heights = pdf(model, row, j, points, n_jobs, states)[0]
        k = int(heights.argmax())
        if heights[k] > height:
            at, height = points[k], heights[k]
        width = (high - low) / (_BETWEEN - 1)
        low, high = max(at - width, low), min(at + width, high)
    return float(at)
