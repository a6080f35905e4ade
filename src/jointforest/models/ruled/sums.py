"""The distribution of a sum of coordinates given evidence: added up over grids, and otherwise that of draws."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...data.schema import Column, snapped
from ..base import Distribution, PosteriorState
from ..points import Points, SumDistribution, inverted
from .coordinates import CoordinateCells, Coordinates, Term
from .translate import supports

_MOST_ROWS = 1 << 17
"""Most rows that the distribution of a sum is added up from."""
_DRAWS = 1 << 14
"""Draws that stand for the distribution of a sum that is not added up."""
_PAIRS = 1 << 22
"""Most pairs of a row and a grid cell, or a point, that are examined at once."""
_MOST_SHIFTED = 1 << 12
"""Most rows of a sum whose last part has no grid, or a long one."""
_MANY_POINTS = 100
"""Points from which on a distribution function is added up from a histogram, which costs less."""
_LEAST_WEIGHT = 1e-12
"""Rows of less weight than this, of the heaviest one, are left out: float32 tables are rounded by more."""


@dataclass(frozen=True)
class Shifted(SumDistribution):
    """A mixture over rows of known numbers plus a multiple of one coordinate, whose distribution is asked for.

    j : int. The column that is the sum.
    state : PosteriorState. Of R rows.
    known : float64 array (R,)
    weight : float64 array (R,). Sums to 1.
    guess : Points. A distribution near it, where quantiles are sought first.
    """

    coordinates: Coordinates
    j: int
    state: PosteriorState
    last: Term
    known: np.ndarray
    weight: np.ndarray
    guess: Points

    @property
    def column(self) -> Column:
        return self.coordinates.schema.columns[self.j]

    def cdf(self, x: np.ndarray) -> np.ndarray:
        c = self.last.coefficient
        if self.column.step > 0.0:  # the upper edge of the cell of x, or of the one below it
            x = np.array([self.coordinates.border(self.j, one) for one in x.tolist()])
        size = max(_PAIRS // len(self.known) ** 2, 1)
        out = np.empty(len(x))
        for first in range(0, len(x), size):
            back = (x[first : first + size] - self.known[:, None]) / c
            points, place = np.unique(back if c > 0.0 else np.nextafter(back, -np.inf), return_inverse=True)
            if len(points) < _MANY_POINTS:
                each = self.state.cdf(self.last.at, points)
            else:
                each = np.cumsum(self.state.histogram(self.last.at, points)[:, :-1], axis=1)
            below = np.take_along_axis(each, place.reshape(back.shape), axis=1)
            out[first : first + size] = self.weight @ (below if c > 0.0 else 1.0 - below)
        return np.clip(out, 0.0, 1.0)

    def pdf(self, x: np.ndarray) -> np.ndarray:
        column, c = self.column, self.last.coefficient
        if column.step > 0.0:
            at = snapped(column, x)
            ends = self.cdf(np.concatenate([at - column.step, at]))
            return np.maximum(ends[len(x) :] - ends[: len(x)], 0.0) / column.step
        back = (x - self.known[:, None]) / c
        points, place = np.unique(back, return_inverse=True)
        each = np.take_along_axis(self.state.pdf(self.last.at, points), place.reshape(back.shape), axis=1)
        return np.asarray(self.weight @ each / abs(c))

    def quantile(self, q: np.ndarray) -> np.ndarray:
        low, high = (self.guess.quantile(np.clip(q + apart, 1e-4, 1.0 - 1e-4)) for apart in (-0.02, 0.02))
        high = np.maximum(high, low + (self.column.step or 1e-9 * np.maximum(np.abs(low), 1.0)))
        while (beyond := (self.cdf(low) >= q) & np.isfinite(low)).any():
            low, high = np.where(beyond, low - 2.0 * (high - low), low), np.where(beyond, low, high)
        while (short := (self.cdf(high) < q) & np.isfinite(high)).any():
            low, high = np.where(short, high, low), np.where(short, high + 2.0 * (high - low), high)
        return inverted(self.cdf, q, low, high, self.column)


def distribution_of_sum(
    coordinates: Coordinates, inner: Distribution, j: int, cells: CoordinateCells, log_weight: np.ndarray
) -> SumDistribution:
    """The distribution of the sum j in rows about the coordinates that have weights (R,)."""
    terms, constant, _ = coordinates.sources[j]
    some = np.flatnonzero(log_weight > log_weight.max() + np.log(_LEAST_WEIGHT))
    cells, log_weight = cells.take(some), log_weight[some]
    columns, first = inner.schema.columns, inner.observe(cells.evidence())
    open_ = [t for t, term in enumerate(terms) if np.isnan(term.values(cells.value)).any()]
    grids = {t: _support(first, columns[terms[t].at], terms[t].at) for t in open_}
    size = {t: np.inf if grid is None else len(grid) for t, grid in grids.items()}
    open_ = sorted(open_, key=size.__getitem__)
    for t in open_[:-1]:
        grid = grids[t]
        if grid is None or len(grid) * len(cells.owner) > _MOST_ROWS:
            return _drawn(coordinates, inner, j, cells, log_weight)
        cells, log_weight = _with_grid_values(inner, cells, terms[t].at, grid)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    values = [term.coefficient * term.values(cells.value) for t, term in enumerate(terms) if t not in open_[-1:]]
    known = np.broadcast_to(constant + sum(values), weight.shape)
    if not open_:
        return grouped(coordinates, j, known, weight)
    last, grid = terms[open_[-1]], grids[open_[-1]]
    state = inner.observe(cells.evidence())
    if grid is not None and len(grid) * len(weight) <= 4 * _PAIRS:
        return _with_last(coordinates, j, state, last, grid, known, weight)
    drawn = _drawn(coordinates, inner, j, cells, log_weight)
    if last.table is None and len(weight) <= _MOST_SHIFTED:
        return Shifted(coordinates, j, state, last, known, weight, drawn)
    return drawn


def _support(state: PosteriorState, column: Column, at: int) -> np.ndarray | None:
    """Values of a coordinate in any of the rows, ascending; None of one without grid."""
    values = np.unique(supports(state, column, at)[1])
    return values if len(values) else None


def _with_grid_values(
    inner: Distribution, cells: CoordinateCells, at: int, grid: np.ndarray
) -> tuple[CoordinateCells, np.ndarray]:
    """Rows with each value of a grid for a coordinate, and their weights, without those of next to no weight."""
    n = len(cells.owner)
    cells = cells.take(np.repeat(np.arange(n), len(grid)))
    cells.assign(at, np.tile(grid, n))
    log_weight = inner.log_density(cells.evidence()) + cells.log_weight
    some = np.flatnonzero(log_weight > log_weight.max() + np.log(_LEAST_WEIGHT))
    return cells.take(some), log_weight[some]


def _with_last(
    coordinates: Coordinates,
    j: int,
    state: PosteriorState,
    last: Term,
    grid: np.ndarray,
    known: np.ndarray,
    weight: np.ndarray,
) -> Points:
    """The distribution of ``known`` plus the last term, over its grid."""
    inner = state.distribution.schema.columns[last.at]
    if inner.is_categorical:
        assert last.table is not None
        value, p = last.table[grid.astype(np.int64)], state.level_probabilities(last.at)[:, grid.astype(np.int64)]
    else:
        value, p = grid, state.histogram(last.at, grid[:-1] + 0.5 * inner.step)
    size = max(_PAIRS // len(value), 1)
    totals, masses = [], []
    for first in range(0, len(known), size):
        part = slice(first, first + size)
        total = (known[part, None] + last.coefficient * value).ravel()
        one = grouped(coordinates, j, total, (weight[part, None] * p[part]).ravel())
        totals.append(one.value)
        masses.append(one.p)
    return grouped(coordinates, j, np.concatenate(totals), np.concatenate(masses))


def grouped(coordinates: Coordinates, j: int, total: np.ndarray, mass: np.ndarray) -> Points:
    """Sums as a distribution on values of column j."""
    column = coordinates.schema.columns[j]
    total = coordinates.made(j, total) if column.step > 0.0 else np.round(total, 9)
    if (total[1:] > total[:-1]).all():  # as on a lattice, where sorting would take most of the time
        return Points(column, total, mass)
    distinct, place = np.unique(total, return_inverse=True)
    return Points(column, distinct, np.bincount(place.reshape(-1), mass))


def _drawn(
    coordinates: Coordinates, inner: Distribution, j: int, cells: CoordinateCells, log_weight: np.ndarray
) -> Points:
    """The distribution in draws, which weigh alike."""
    terms, constant, _ = coordinates.sources[j]
    share = np.exp(log_weight - log_weight.max())
    chosen = np.zeros(1, np.int64)
    if len(share) > 1:
        chosen = np.sort(np.random.default_rng(0).choice(len(share), _DRAWS, p=share / share.sum()))
    Z = inner.sample(cells.take(chosen).evidence(), _DRAWS // len(chosen), 0, False)
    total = constant + np.sum([term.coefficient * term.values(Z) for term in terms], axis=0)
    return replace(grouped(coordinates, j, total, np.full(len(Z), 1.0 / len(Z))), draws=len(Z))
