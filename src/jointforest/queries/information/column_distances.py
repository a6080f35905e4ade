"""How far apart two models are in each column: CDFs of numbers, probabilities of levels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.threads import chunks, map_ordered
from ...table.build_evidence import build
from ..column.distribution import cdf, quantile
from ..column.levels import level_probability
from .integral import cell_range, ends
from .projection import View

SUP, AREA = 1e-3, 1e-3
"""Largest errors: of the sup-distance, and of the area between CDFs as a share of the column's spread."""
_POINTS = 64


class ColumnDistance(NamedTuple):
    """How far apart two distributions of a column are.

    Attributes
    ----------
    distance : float
        0 to 1. Of numbers the largest distance of the CDFs (Kolmogorov), at most 1e-3 too small and mostly far
        closer; of levels the total variation.
    wasserstein : float or None
        Area between the CDFs of numbers, which is how far mass has to move on average, in the column's units
        (date-times: seconds), to a thousandth of the column's spread; None of levels.
    """

    distance: float
    wasserstein: float | None


def column_distance(p: View, q: View, k: int, n_jobs: int | None = -1) -> ColumnDistance:
    """Distance of the distributions of column k of two views."""
    if not p.columns[k].is_categorical:
        return _of_numbers(p, q, k, n_jobs)
    mine, theirs = (level_probability(v.model, build(v.model.schema), v.number[k], n_jobs)[0] for v in (p, q))
    code = q.code[k]
    assert code is not None
    return ColumnDistance(0.5 * float(np.abs(mine - theirs[code]).sum()), None)


def _of_numbers(p: View, q: View, k: int, n_jobs: int | None) -> ColumnDistance:
    """Both distances by bounds: between two points F - G lies between its ends' F_0 - G_1 and F_1 - G_0.

    Intervals are halved until these bounds are tight. On a grid both are constant from one centre to the next.
    """
    both = (p, q)
    column, step = p.columns[k], p.columns[k].step
    x, spread = _start(both, k), _spread(both, k)
    F = _cdfs(both, k, x, n_jobs)
    while True:  # ends when nothing is open: no interval is halved below a float, or a cell
        gap, width, rise = np.abs(F[0] - F[1]), np.diff(x), np.diff(F, axis=1)
        middle = x[:-1] + 0.5 * width
        if step > 0.0:
            middle = column.center + np.floor((middle - column.center) / step + 0.25) * step
        is_open = (middle > x[:-1] + 0.5 * step) & (middle < x[1:])
        sup, wide = gap.max(), AREA * max(spread, _deviation(width, F))
        highest = np.maximum(F[0, 1:] - F[1, :-1], F[1, 1:] - F[0, :-1])
        error = np.where(is_open, 0.5 * width * rise.sum(axis=0), 0.0)
        coarse = error > wide / len(x) if error.sum() > wide else np.zeros(len(error), bool)
        split = is_open & (coarse | (highest > sup + SUP))
        if not split.any():
            break
        new = middle[split]
        at = np.searchsorted(x, new)
        x, F = np.insert(x, at, new), np.insert(F, at, _cdfs(both, k, new, n_jobs), axis=1)
    mean = np.where(is_open, 0.5 * (gap[:-1] + gap[1:]), gap[:-1])
    return ColumnDistance(float(sup), float(width @ mean))


def _deviation(width: np.ndarray, F: np.ndarray) -> float:
    """Mean distance from the median, of the model where it is larger, from below: no heavy tail is beyond reach."""
    least = np.where(F[:, 1:] <= 0.5, F[:, :-1], np.where(F[:, :-1] >= 0.5, 1.0 - F[:, 1:], 0.0))
    return float((least @ width).max())


def _cdfs(both: tuple[View, View], k: int, x: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """The two CDFs at points, (2, q)."""

    def work(v: View, first: int, stop: int) -> np.ndarray:
        return cdf(v.model, build(v.model.schema), v.number[k], x[first:stop] + v.shift[k], 1)[0]

    parts = list(map_ordered(work, [(v, *part) for v in both for part in chunks(len(x), _POINTS)], n_jobs))
    return np.concatenate(parts).reshape(2, -1)


def _start(both: tuple[View, View], k: int) -> np.ndarray:
    """First points: the ends and some quantiles of both; atoms, and what is just below them."""
    column = both[0].columns[k]
    if column.step > 0.0:
        first, last = cell_range(both, k)
        at = np.unique(np.linspace(first - 1, last + 1, min(last - first + 3, 33)).round())
        return np.asarray(column.center + at * column.step)
    atoms = np.unique(np.concatenate([v.columns[k].atoms for v in both]))
    points = [ends(v, k) for v in both] + [_quantiles(v, k) for v in both]
    low, high = min(x.min() for x in points), max(x.max() for x in points)
    atoms = atoms[(atoms >= low) & (atoms <= high)]
    return np.unique(np.concatenate([*points, atoms, np.nextafter(atoms, -np.inf), [np.nextafter(low, -np.inf)]]))


def _quantiles(v: View, k: int) -> np.ndarray:
    tail = 10.0 ** -np.arange(2, 10)  # in wide tails few points would do badly
    q = np.concatenate([np.arange(1, 32) / 32, tail, 1.0 - tail, [0.05, 0.95]])
    return quantile(v.model, build(v.model.schema), v.number[k], q, 1)[0] - v.shift[k]


def _spread(both: tuple[View, View], k: int) -> float:
    """How far apart the 5 % quantiles on either side are, over both; the whole range if that is nothing."""
    points = np.concatenate([_quantiles(v, k)[-2:] for v in both])
    if np.ptp(points) == 0.0:
        points = np.concatenate([ends(v, k) for v in both])
    return float(np.ptp(points))
