"""The distribution of one column given one row of evidence: its interface, few values, and quantiles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..data.schema import Column, snapped


class SumDistribution(ABC):
    """The distribution of a column given one row of evidence.

    draws : float. Number of draws from which it is estimated; inf if it is exact.
    """

    draws: float = np.inf

    @abstractmethod
    def cdf(self, x: np.ndarray) -> np.ndarray:
        """P(column <= x) at q points, (q,)."""

    @abstractmethod
    def pdf(self, x: np.ndarray) -> np.ndarray:
        """Density at q points, (q,): on a grid, the mass of the cell over the step; else the mass of a value."""

    @abstractmethod
    def quantile(self, q: np.ndarray) -> np.ndarray:
        """inf{x: P(column <= x) >= q}, (k,)."""


@dataclass(frozen=True)
class Points(SumDistribution):
    """A distribution on k values: ascending values and their probabilities, each (k,)."""

    column: Column
    value: np.ndarray
    p: np.ndarray
    draws: float = np.inf

    def cdf(self, x: np.ndarray) -> np.ndarray:
        below = np.append(0.0, np.cumsum(self.p))
        near = 1e-9 * np.maximum(np.abs(x), self.column.step)
        return np.minimum(below[np.searchsorted(self.value, x + near, side="right")], 1.0)

    def pdf(self, x: np.ndarray) -> np.ndarray:
        at = snapped(self.column, x)
        place = np.minimum(np.searchsorted(self.value, at - 1e-9 * np.abs(at)), len(self.value) - 1)
        is_one = np.isclose(self.value[place], at, rtol=1e-9, atol=1e-12)
        return np.where(is_one, self.p[place], 0.0) / (self.column.step or 1.0)

    def quantile(self, q: np.ndarray) -> np.ndarray:
        below = np.cumsum(self.p)
        return self.value[np.minimum(np.searchsorted(below, q - 1e-12), len(below) - 1)]


_FRACTIONS = np.arange(1, 8) / 8
"""Points that divide an interval in the search; one call of a CDF costs little more for seven points than for one."""


def inverted(
    below: Callable[[np.ndarray], np.ndarray], q: np.ndarray, low: np.ndarray, high: np.ndarray, column: Column
) -> np.ndarray:
    """For each q, the smallest x in [low, high] with below(x) >= q, ``below`` being a vectorised CDF."""
    low, high = low.copy(), np.where(below(low) >= q, low, high)
    for atom in column.atoms:  # the search below would reach a jump of the CDF only in the limit
        at, before = below(np.array([atom, np.nextafter(atom, -np.inf)]))
        inside = (low < atom) & (atom < high)
        high = np.where(inside & (at >= q), atom, high)
        low = np.where(inside & (before < q if column.step == 0.0 else at < q), np.minimum(atom, high), low)
    while True:
        points = low[:, None] + (high - low)[:, None] * _FRACTIONS
        if column.step > 0.0:
            points = column.center + np.floor((points - column.center) / column.step + 1e-6) * column.step
        if not np.any((low[:, None] < points) & (points < high[:, None])):
            return high
        enough = below(points.ravel()).reshape(points.shape) >= q[:, None]
        first = np.where(enough.any(axis=1), enough.argmax(axis=1), len(_FRACTIONS))
        ends = np.column_stack([low, points, high])
        low, high = np.maximum(low, ends[np.arange(len(q)), first]), ends[np.arange(len(q)), first + 1]
