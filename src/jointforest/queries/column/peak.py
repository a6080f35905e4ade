"""Where a numeric column is most dense."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...model.model import Model
from ...table.evidence import Evidence
from ..posterior.density import log_density
from .distribution import pdf, quantile

_TAIL = 1e-6
_CELLS = 16_384
_POINTS = 1_024
_ROUNDS, _BETWEEN = 8, 17


def peak(model: Model, evidence: Evidence, j: int, n_jobs: int | None = -1) -> np.ndarray:
    """The value of greatest `pdf` of a numeric column given each of n rows of evidence, the first of equals, (n,).

    On a grid of at most 16,384 cells that hold all but 2e-6 each cell is compared, on others 1,024 quantiles. Without
    grid the best of 1,024 quantiles and the atoms is refined between its neighbours. A peak between quantiles that
    holds less than a 1,024th may be missed. NaN where the evidence has probability 0.
    """
    out = np.full(len(evidence.value), np.nan)
    for i in range(len(out)):
        row = evidence.take(np.array([i]))
        known = tuple(part.weigh(row) for part in model.parts)
        x = _candidates(model, row, j, n_jobs, known)
        if not len(x) or np.isnan(x).any():
            continue
        height = pdf(model, row, j, x, n_jobs, known)[0]
        best = int(height.argmax())
        if model.schema.columns[j].step == 0.0 and not np.isinf(height[best]):
            out[i] = _refined(model, row, j, x, best, height[best], n_jobs, known)
        else:
            out[i] = x[best]
    return out


def _candidates(model: Model, row: Evidence, j: int, n_jobs: int | None, known: Any) -> np.ndarray:
    column = model.schema.columns[j]
    if not np.isnan(row.value[0, j]):
        return quantile(model, row, j, np.array([0.5]), n_jobs, known=known)[0]
    if np.isneginf(log_density(model, row)[0]):
        return np.empty(0)
    if column.step > 0.0:
        low, high = _of_parts(model, row, j, np.array([_TAIL, 1.0 - _TAIL]), known)[[0, -1]]
        first, last = np.rint((np.array([low, high]) - column.center) / column.step)
        if last - first < _CELLS:
            return np.asarray(column.center + np.arange(first, last + 1.0) * column.step)
    q = (np.arange(_POINTS) + 0.5) / _POINTS
    found = _of_parts(model, row, j, q, known)
    return np.unique(np.concatenate([found, column.atoms])) if column.step == 0.0 and len(found) else found


def _of_parts(model: Model, row: Evidence, j: int, q: np.ndarray, known: Any) -> np.ndarray:
    """The quantiles of all parts together, ascending; of a mixture's own there is no need."""
    each = [part.quantile(row, j, q, 1, k)[0] for part, k in zip(model.parts, known, strict=True)]
    found = np.unique(np.concatenate(each))
    return found[~np.isnan(found)]


def _refined(
    model: Model, row: Evidence, j: int, x: np.ndarray, best: int, height: float, n_jobs: int | None, known: Any
) -> float:
    """The best point found between the neighbours of the best candidate, closing in on it."""
    low, high, at = x[max(best - 1, 0)], x[min(best + 1, len(x) - 1)], x[best]
    if np.isin(at, model.schema.columns[j].atoms):
        return float(at)
    for _ in range(_ROUNDS):
        points = np.linspace(low, high, _BETWEEN)
        heights = pdf(model, row, j, points, n_jobs, known)[0]
        k = int(heights.argmax())
        if heights[k] > height:
            at, height = points[k], heights[k]
        width = (high - low) / (_BETWEEN - 1)
        low, high = max(at - width, low), min(at + width, high)
    return float(at)
