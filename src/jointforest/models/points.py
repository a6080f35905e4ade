"""The distribution of one column in one row of evidence: what it answers, and one of a few values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..data.schema import Column, snapped


class SumDistribution(ABC):
    """The distribution of a column in one row of evidence.

    Attributes
    ----------
    draws : float
        How many draws it is estimated from; inf where it is exact.
    """

    draws: float = np.inf

    @abstractmethod
    def cdf(self, x: np.ndarray) -> np.ndarray:
        """P(column <= x) at q points, (q,)."""

    @abstractmethod
    def pdf(self, x: np.ndarray) -> np.ndarray:
        """Density at q points, (q,); on a grid the mass of the cell over the step, without grid that of a value."""

    @abstractmethod
    def quantile(self, q: np.ndarray) -> np.ndarray:
        """inf{x: P(column <= x) >= q}, (k,)."""


@dataclass(frozen=True)
class Points(SumDistribution):
    """A few values, ascending, and their probabilities, each (k,)."""

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
