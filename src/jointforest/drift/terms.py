"""Tests of terms: whether the share of new rows differs between the codes of a column, or the cells of a pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaincc, xlogy

_STEPS = 100
"""Most steps of iterative proportional fitting."""
_CLOSE = 1e-3
"""Change of a cell, in rows, below which the fit ends."""


class Term:
    """A test whether new rows fall into C cells as expected, by the numbers of new rows in them.

    Its p-value is the least one of three statistics, times their number: the sum of squares over all cells, that of a
    trend, and the cell that deviates most.

    rows : float64 array (C,). Rows of both tables in each cell.
    p : float64 array (C,). Expected share of new rows in each cell.
    main : float64 array (C, k). What the expected shares were fitted by; one of its combinations is constant.
    trend : float64 array (C, m), optional. Contrasts that are more probable than others, such as a column's ranks.
    """

    def __init__(self, rows: np.ndarray, p: np.ndarray, main: np.ndarray, trend: np.ndarray | None = None) -> None:
        self.rows, self.p = rows, p
        variance = rows * p * (1.0 - p)
        used = variance > 1e-9
        scale = np.sqrt(np.where(used, variance, 0.0))
        self._inverse = np.where(used, 1.0 / np.where(used, scale, 1.0), 0.0)
        excess = np.where(used, 1.0 / np.where(used, variance, 1.0) - 6.0 / np.maximum(rows, 1.0), 0.0)
        wide = scale[:, None] * main
        self._main = _basis(wide, wide)
        self._gammas = [_gamma(used - np.square(self._main).sum(1), excess)]
        self._trend = None
        if trend is not None:
            wide = scale[:, None] * trend
            basis = _basis(wide - self._main @ (self._main.T @ wide), wide)
            if basis.shape[1]:
                self._trend = basis
                self._gammas.append(_gamma(np.square(basis).sum(1), excess))

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the sum over all cells."""
        return self._gammas[0][0]

    def p_values(self, new: np.ndarray) -> np.ndarray:
        """p-values of all cells, of the most deviating cell, and of the trend if any, (3 or 2, n); new is (n, C)."""
        # Sums of squares have about a gamma distribution with the mean and variance of those of binomial numbers. A
        # cell has Chernoff's bound, times the number of cells, which also holds without replacement.
        z = (new - self.rows * self.p) * self._inverse
        along = np.square(z @ self._main).sum(1)
        sums = [np.square(z).sum(1) - along]
        if self._trend is not None:
            sums.append(np.square(z @ self._trend).sum(1))
        tails = [_tail(total, *gamma) for total, gamma in zip(sums, self._gammas, strict=True)]
        most = deviance(self.rows, self.p, new).max(1)
        return np.stack([tails[0], np.minimum(2.0 * np.count_nonzero(self.rows) * np.exp(-most), 1.0), *tails[1:]])

    def p_value(self, new: np.ndarray) -> np.ndarray:
        """The least p-value of the statistics, times their number, (n,)."""
        found = self.p_values(new)
        return np.minimum(len(found) * found.min(0), 1.0)


def deviance(rows: np.ndarray, p: np.ndarray, new: np.ndarray) -> np.ndarray:
    """rows KL(new/rows | p) of cells, in nats: the log-likelihood of the observed shares over that of p."""
    old = rows - new
    with np.errstate(divide="ignore", invalid="ignore"):
        by_share = xlogy(new, new / rows) + xlogy(old, old / rows)
        return np.asarray(np.where(rows > 0, by_share - xlogy(new, p) - xlogy(old, 1.0 - p), 0.0))


def fitted(rows: np.ndarray, new: np.ndarray, margins: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Shares of new rows in each cell, if the log-odds are a sum of a term of each margin (tuples of axes)."""
    # Iterative proportional fitting: the model has the observed numbers of new rows of each margin.
    both = np.stack([new, rows - new])
    fit = np.stack([0.5 * rows, 0.5 * rows])
    for _ in range(_STEPS):
        before = fit
        for margin in margins:
            others = tuple(axis + 1 for axis in range(rows.ndim) if axis not in margin)
            fit = fit * _ratio(both.sum(others, keepdims=True), fit.sum(others, keepdims=True))
            fit = fit * _ratio(rows, fit.sum(0))
        if np.abs(fit - before).max() < _CLOSE:
            break
    return np.clip(_ratio(fit[0], rows), 0.0, 1.0)


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, which is 0 where b is."""
    return np.asarray(np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > 0))


def _basis(columns: np.ndarray, of: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the span of columns, without what is rounding beside the columns ``of``."""
    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, size > 1e-6 * np.linalg.norm(of)])


def _gamma(diagonal: np.ndarray, excess: np.ndarray) -> tuple[float, float]:
    """Mean and variance of a sum of squares of a projection, whose diagonal is given, of standardised numbers."""
    mean = float(np.maximum(diagonal, 0.0).sum())
    return mean, 2.0 * mean + float(np.square(diagonal) @ excess)


def _tail(total: np.ndarray, mean: float, variance: float) -> np.ndarray:
    """Probability that a gamma distribution exceeds a total; 1 where there is no freedom."""
    if mean < 1e-6 or variance < 1e-6 * mean:
        return np.ones(len(total))
    return np.asarray(gammaincc(mean * mean / variance, np.maximum(total, 0.0) * mean / variance))
