"""The value of a coalition as the ensemble's expected answer given the coalition's cells."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...table.evidence import Evidence
from ..expectation.expectation import Rows
from .distinct import distinct
from .game import Asked, Value

Expect = Callable[[Rows, int], tuple[np.ndarray, np.ndarray]]
"""``expect(rows, seed)``: expected answers of rows with missing cells, and their standard errors, each (n, K)."""


def known_cells(rows: Rows, column: np.ndarray) -> np.ndarray:
    """Which of the joint's columns each row knows, bool (n, d); ``column`` (n_features,) is that of each feature."""
    known = ~np.isnan(rows.evidence.value)
    for f, j in enumerate(column.tolist()):  # a level that only the model knows
        known[:, j] |= ~np.isnan(rows.X[:, f]) | rows.other[:, f]
    return known


def conditional(rows: Rows, column: np.ndarray, expect: Expect, seed: int) -> Value:
    """v(S) = E[f(X) | X_S = x_S] under the joint, for coalitions of rows.

    Parameters
    ----------
    rows : Rows
    column : int32 array (n_features,)
        The joint's column of each feature.
    expect : Expect
    seed : int
    """
    calls = np.random.SeedSequence(seed)

    def value(row: np.ndarray, known: np.ndarray) -> Asked:
        hidden = hide(rows, column, row, known)
        key = np.hstack([hidden.evidence.value, hidden.X, hidden.other])
        first, place = distinct(key)
        few = Rows(hidden.evidence.take(first), hidden.X[first], hidden.other[first])
        mean, error = expect(few, int(calls.spawn(1)[0].generate_state(1, np.uint64)[0] >> 2))
        return Asked(mean[place], error[place] ** 2)

    return value


def hide(rows: Rows, column: np.ndarray, row: np.ndarray, known: np.ndarray) -> Rows:
    """Rows of these numbers (q,) with nothing but these cells known, bool (q, d)."""
    seen = known[:, column]
    return Rows(
        Evidence.of_values(np.where(known, rows.evidence.value[row], np.nan)),
        np.where(seen, rows.X[row], np.nan),
        rows.other[row] & seen,
    )
