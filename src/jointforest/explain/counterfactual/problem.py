"""One row, what may change in it, and which changed rows will do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...model.model import Model
from ...queries.posterior.density import log_density
from ...queries.rows.sampling import sample
from ...table.evidence import Evidence
from ...table.restore import snapped
from ...table.schema import Column
from .outcome import Outcome

POOL = 1000
"""Rows drawn given the fixed cells and the wanted outcome."""
BINS = 10
"""Rows that agree in all levels and in these parts of the ranges are alike."""


class Problem(NamedTuple):
    """What is asked for.

    Attributes
    ----------
    model : Model
    outcome : Outcome
    row : float64 array (d,)
        Numbers and codes; NaN where nothing is known, and in the target's cell.
    free : tuple of int
        Columns that may change: known and not fixed; those that a model does not look at too, if others need it.
    pool : float64 array (m, d)
        Rows of the joint given the fixed cells and the wanted outcome.
    log_floor : float
        Log-density that a row must have at least, its known cells counted; -inf: any but impossible ones.
    n_jobs : int or None
    """

    model: Model
    outcome: Outcome
    row: np.ndarray
    free: tuple[int, ...]
    pool: np.ndarray
    log_floor: float
    n_jobs: int | None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.model.schema.columns

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """log p(known cells) of rows (n, d), the target's cell left out, (n,)."""
        return log_density(self.model, Evidence.of_values(np.ascontiguousarray(X)), self.n_jobs)

    def plausible(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which rows (n, d) are possible and at least as dense as the floor, and their log-densities."""
        found = self.log_density(X)
        return (found > -np.inf) & (found >= self.log_floor), found

    def changed(self, X: np.ndarray) -> np.ndarray:
        """Which cells of rows (n, d) are not the row's, bool (n, d)."""
        return (self.row != X) & ~np.isnan(self.row)


def drawn_pool(
    model: Model, outcome: Outcome, row: np.ndarray, fixed: np.ndarray, seed: int, n_jobs: int | None
) -> np.ndarray:
    """Rows (m, d) of the joint given the fixed cells (a mask) and the wanted outcome, where rows have it.

    What a model predicts cannot be evidence: then they are the draws of which it is predicted, or all if these are few.
    """
    evidence = outcome.given(Evidence.of_values(np.where(fixed, row, np.nan)[None]))
    X = sample(model, evidence, POOL, seed, n_jobs=n_jobs)
    X = X[~np.isnan(X).all(axis=1)]
    if outcome.target is None and len(X):
        X = np.where(fixed, row, within(model.schema.columns, X))
        valid = outcome.judge(np.where(np.isnan(row), np.nan, X)).valid
        X = X[valid] if valid.sum() >= 50 else X
    return X


def floor_of(model: Model, row: np.ndarray, pool: np.ndarray, unlikely: float, n_jobs: int | None) -> float:
    """The row's own log-density, or that of all but ``unlikely`` percent of the pool, whichever is less."""
    if unlikely == 0.0:
        return -np.inf
    X = np.vstack([row, np.where(np.isnan(row), np.nan, pool)])
    found = log_density(model, Evidence.of_values(X), n_jobs)
    return float(min(found[0], np.quantile(found[1:], unlikely / 100.0)))


def within(columns: tuple[Column, ...], X: np.ndarray) -> np.ndarray:
    """Rows (n, d) with numbers on their grids and within the range that learning saw."""
    out = X.copy()
    for j, column in enumerate(columns):
        if not column.is_categorical:
            out[:, j] = snapped(column, np.clip(X[:, j], column.minimum, column.maximum))
    return out


def unlike(p: Problem, X: np.ndarray) -> np.ndarray:
    """Numbers of the rows (m, d) that are unlike all before them, ascending."""
    key = X.copy()
    for j, column in enumerate(p.columns):
        if not column.is_categorical and column.maximum > column.minimum:
            part = np.floor((X[:, j] - column.minimum) / (column.maximum - column.minimum) * BINS)
            key[:, j] = np.where(X[:, j] == p.row[j], -1.0, part)
    return np.sort(np.unique(np.nan_to_num(key, nan=-2.0), axis=0, return_index=True)[1])
