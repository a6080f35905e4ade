"""The value of a coalition as the mean of any function over rows drawn given the coalition's cells."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...model.model import Model
from ...table.evidence import Evidence
from ..rows.sampling import sample
from .distinct import distinct
from .game import Asked, Value

_ROWS = 200_000
"""Most rows that the function gets at once."""

Function = Callable[[np.ndarray], np.ndarray]
"""Answers (n, K) to complete rows of the joint (n, d); of all NaN rows NaN."""


def by_function(
    function: Function, model: Model, X: np.ndarray, needed: np.ndarray, m: int, seed: int, n_jobs: int | None
) -> Value:
    """v(S) = E[f(X) | X_S = x_S] as the mean of f over m draws given the coalition's cells.

    Coalitions that know all that f needs have its own answer.

    Parameters
    ----------
    function : Function
    model : Model
    X : float64 array (n, d)
        Rows as the joint sees them.
    needed : bool array (d,)
        Columns that the function reads.
    m : int
        At least 2.
    seed : int
    n_jobs : int or None
    """
    calls = np.random.SeedSequence(seed)

    def value(row: np.ndarray, known: np.ndarray) -> Asked:
        first, place = distinct(np.where(known, X[row], np.nan))
        cells = np.where(known[first], X[row[first]], np.nan)
        whole = known[first][:, needed].all(axis=1)
        parts, size = [], max(1, _ROWS // m)
        out: np.ndarray | None = None
        for chosen, draws in ((np.flatnonzero(whole), 1), (np.flatnonzero(~whole), m)):
            for start in range(0, len(chosen), size if draws > 1 else _ROWS):
                mine = chosen[start : start + (size if draws > 1 else _ROWS)]
                rows = cells[mine]
                if draws > 1:
                    own = int(calls.spawn(1)[0].generate_state(1, np.uint64)[0] >> 2)
                    rows = sample(model, Evidence.of_values(rows), draws, own, False, n_jobs)
                parts.append((mine, _moments(function(rows), len(mine), draws)))
        for mine, found in parts:
            out = np.empty((2, len(first), found.shape[2])) if out is None else out
            out[:, mine] = found
        assert out is not None
        return Asked(out[0][place], out[1][place])

    return value


def _moments(answer: np.ndarray, n: int, m: int) -> np.ndarray:
    """Means and their variances (2, n, K) of the answers (n * m, K) to m draws for each of n rows."""
    each = answer.reshape(n, m, -1)
    mean = each.mean(axis=1)
    return np.stack([mean, each.var(axis=1, ddof=1) / m if m > 1 else np.zeros_like(mean)])
