"""The most probable rows of a model of any known parts, and where a column is most dense."""

from __future__ import annotations

import numpy as np

from ..data.evidence import Evidence, build
from ..data.schema import Column, snapped
from ..models.base import Distribution, PosteriorState
from ..models.box_forest.modes import BUDGET, ModePoints, modes, refuse_soft


def model_modes(model: Distribution, evidence: Evidence, k: int, budget: int = BUDGET) -> ModePoints:
    """The k best rows that a search finds under one row of evidence, and a bound of the greatest log density."""
    # A mixture is nowhere greater than the weighted sum of its components' bounds; its rows are the best of theirs.
    if model.is_forest:
        return modes(model.forest_for("mode"), evidence, k, budget)
    refuse_soft(model.schema, evidence)
    if model.log_density(evidence)[0] == -np.inf:
        raise ValueError("the evidence has probability 0; drop or widen one of its conditions")
    if model.observe(evidence).knowing(range(len(model.schema.columns))).log_probability()[0] == -np.inf:
        raise ValueError(
            "mode: no row that agrees with the evidence has a value in every column, as rules make cells missing; "
            "ask joint.select(...) of fewer columns"
        )
    X, log_bound = model.modes(evidence, k, budget)
    X = np.unique(X, axis=0)
    density = model.log_density(build(model.schema, X))
    order = np.argsort(-density, kind="stable")[:k]
    return ModePoints(X[order], density[order], max(log_bound, float(density[order[0]])))


# ---- Where a numeric column is most dense.


_CELLS = 16_384
"""Most cells of a grid that are compared one by one."""
_TAIL = 1e-6
"""Probability that may lie beyond these cells, on each side."""
_POINTS = 1_024
"""Quantiles that are compared where there are no cells, or too many."""
_ROUNDS, _BETWEEN = 8, 17
"""Refinements of the best quantile, and points of each: the last bracket has 8^-8 of the first width."""


def peak(model: Distribution, evidence: Evidence, j: int) -> np.ndarray:
    """The value of greatest `pdf` of a numeric column given each of n rows of evidence, (n,); NaN where impossible."""
    # A grid of at most 16,384 cells is compared cell by cell. Otherwise the best of 1,024 quantiles and the atoms is
    # refined between its neighbours, so a peak that holds less than a 1,024th may be missed.
    out = np.full(len(evidence.value), np.nan)
    for i in range(len(out)):
        row = evidence.take(np.array([i]))
        state = model.observe(row)
        x = _values_compared(state, model.schema.columns[j], j)
        if not len(x) or np.isnan(x).any():
            continue
        height = state.pdf(j, x)[0]
        best = int(height.argmax())
        if model.schema.columns[j].step == 0.0 and not np.isinf(height[best]):
            out[i] = _refined(state, model.schema.columns[j], j, x, best, height[best])
        else:
            out[i] = snapped(model.schema.columns[j], x[[best]])[0]
    return out


def _values_compared(state: PosteriorState, column: Column, j: int) -> np.ndarray:
    """Values at which the density is compared, ascending; none of impossible evidence."""
    if not np.isnan(state.evidence.value[0, j]):
        return state.quantile(j, np.array([0.5]))[0]
    if np.isneginf(state.distribution.log_density(state.evidence)[0]):
        return np.empty(0)
    if column.step > 0.0:
        low, high = state.quantile_points(j, np.array([_TAIL, 1.0 - _TAIL]))[[0, -1]]
        first, last = np.rint((np.array([low, high]) - column.center) / column.step)
        if last - first < _CELLS:
            return np.asarray(column.center + np.arange(first, last + 1.0) * column.step)
    points = state.quantile_points(j, (np.arange(_POINTS) + 0.5) / _POINTS)
    return np.unique(np.concatenate([points, column.atoms])) if column.step == 0.0 and len(points) else points


def _refined(state: PosteriorState, column: Column, j: int, x: np.ndarray, best: int, height: float) -> float:
    """The best point found between the neighbours of the best candidate, closing in on it."""
    low, high, at = x[max(best - 1, 0)], x[min(best + 1, len(x) - 1)], x[best]
    if np.isin(at, column.atoms):
        return float(at)
    for _ in range(_ROUNDS):
        points = np.linspace(low, high, _BETWEEN)
        heights = state.pdf(j, points)[0]
        k = int(heights.argmax())
        if heights[k] > height:
            at, height = points[k], heights[k]
        width = (high - low) / (_BETWEEN - 1)
        low, high = max(at - width, low), min(at + width, high)
    return float(at)
