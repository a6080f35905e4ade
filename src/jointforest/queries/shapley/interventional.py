"""The value of a coalition as the mean answer with the coalition's cells put into rows of a background."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .game import Asked, Value

_CELLS = 4_000_000
"""Most cells of the rows that are made at once."""

Background = tuple[np.ndarray, np.ndarray]
"""R complete rows: float64 and bool array (R, f)."""

Answer = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""``answer(X, other)``: the model's answers (n, K) to complete rows (n, f)."""


def interventional(
    X: np.ndarray, other: np.ndarray, column: np.ndarray, background: Background, answer: Answer
) -> Value:
    """v(S) = mean over background rows b of f(x_S, b_rest).

    Parameters
    ----------
    X, other : float64 and bool array (n, f)
        Rows as the model sees them.
    column : int array (f,)
        The joint's column of each of these.
    background : Background
        R rows, as X and other; complete.
    answer : Answer
    """
    X_there, other_there = background
    R, f = X_there.shape

    def value(row: np.ndarray, known: np.ndarray) -> Asked:
        each, size = [], max(1, _CELLS // (R * max(f, 1)))
        for first in range(0, len(row), size):
            here = slice(first, first + size)
            seen = known[here][:, None, column]
            cells = np.where(seen, X[row[here]][:, None], X_there)
            unknown = np.where(seen, other[row[here]][:, None], other_there)
            each.append(answer(cells.reshape(-1, f), unknown.reshape(-1, f)).reshape(len(cells), R, -1))
        replicates = np.concatenate(each)
        mean = replicates.mean(axis=1)
        return Asked(mean, np.zeros_like(mean), replicates)

    return value
