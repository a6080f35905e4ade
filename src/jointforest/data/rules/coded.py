"""A table as codes of its values, and a random sample of its rows that refutes most candidates of rules."""

from __future__ import annotations

import numpy as np

from ..schema import Schema
from .contradictions import numbers_of_distinct, ranked

SAMPLE = 20_000
"""Rows of the sample."""
CHANCE = 1e-3
"""Most rules that are expected to be found by chance, of each kind, in a whole table."""
MOST_EXCEPTION_SHARE = 1e-3
"""Largest share of exceptions of a rule that is named."""


class CodedTable:
    """A table of n rows and d columns. The codes of a whole column are computed when they are first asked for.

    X : float64 array (n, d). Numbers and level codes, NaN where missing.
    rows : int64 array (m,). The sampled rows, ascending.
    sample : int32 array (m, d), by columns. Number of each sampled cell's value in its column; -1 where missing.
    sizes : int64 array (d,). Values of each column in the sample.
    """

    def __init__(self, schema: Schema, X: np.ndarray) -> None:
        self.schema, self.X = schema, X
        n, d = X.shape
        m = min(n, SAMPLE)
        self.rows = np.sort(np.random.default_rng(0).permutation(n)[:m]) if m < n else np.arange(n)
        self._codes: dict[int, np.ndarray] = {}
        self.sample = np.empty((d, m), np.int32).T
        for j in range(d):
            self.sample[:, j] = self.codes(j) if m == n else self._numbered(j, X[self.rows, j])
        self.sizes = self.sample.max(axis=0, initial=-1).astype(np.int64) + 1

    @property
    def n(self) -> int:
        return len(self.X)

    @property
    def d(self) -> int:
        return self.X.shape[1]

    def codes(self, j: int) -> np.ndarray:
        """The number of each cell's value among the distinct ones of column j, ascending, int64 (n,); -1: missing."""
        if j not in self._codes:
            self._codes[j] = self._numbered(j, self.X[:, j])
        return self._codes[j]

    def _numbered(self, j: int, x: np.ndarray) -> np.ndarray:
        """The number of each of some cells of column j among their distinct values, ascending; -1: missing."""
        column = self.schema.columns[j]
        step = 1.0 if column.is_categorical else column.step
        return _on_grid(x, step) if step > 0.0 else ranked(x)

    def size(self, j: int) -> int:
        """Number of distinct values of column j."""
        return int(self.codes(j).max(initial=-1)) + 1


def _on_grid(x: np.ndarray, step: float) -> np.ndarray:
    """`ranked` of numbers on a grid, the same for numbers of one cell."""
    known = ~np.isnan(x)
    if not known.any():
        return np.full(len(x), -1)
    low = x[known].min()
    out = np.full(len(x), -1)
    cell = np.rint((x[known] - low) / step)
    out[known] = numbers_of_distinct(cell.astype(np.int64)) if cell.max() < 2**53 else ranked(cell)
    return out
