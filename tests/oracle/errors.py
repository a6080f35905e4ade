"""Truths of a row whose cells may be wrong, by enumeration of all truths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np


def truths(p: np.ndarray, likelihood: Sequence[np.ndarray]) -> list[np.ndarray]:
    """p(true value of cell j | everything seen), for each column.

    ``p`` (K_1, ..., K_d) has the probability of each row of true values, ``likelihood[j]`` (K_j,) is p(seen | truth).
    """
    out = [np.zeros(len(of)) for of in likelihood]
    for row in product(*(range(len(of)) for of in likelihood)):
        weight = p[row] * np.prod([of[k] for of, k in zip(likelihood, row, strict=True)])
        for j, k in enumerate(row):
            out[j][k] += weight
    return [of / of.sum() for of in out]


def expected_beyond(cells: list[float], value: float, step: float) -> float:
    """Expected over observed number of cells as far on its side as a value, by the median of the outermost cells."""
    ordered = sorted(cells)
    n = len(ordered)
    center = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
    side = 1.0 if value > center else -1.0
    k = max(8, n // 50)
    top = sorted((side * (cell - center) for cell in cells), reverse=True)[:k]
    inner, half = top[-1], 0.5 * step
    if side * (value - center) <= inner:
        return 1.0
    logs = sorted(math.log((d + half + inner) / (2.0 * inner - half)) for d in top)
    middle = 0.5 * (logs[(k - 1) // 2] + logs[k // 2])
    power = math.log(2.0) / max(middle, math.log(2.0) / 30.0)

    def beyond(d: float) -> float:
        return k * max((d - half + inner) / (2.0 * inner - half), 1.0) ** -power

    expected = beyond(side * (value - center))
    if value * center < 0.0 and abs(center) > inner:
        others = sum(cell * center < 0.0 and cell != value for cell in cells)
        expected *= min((others or 1.0 / n) / beyond(abs(center)), 1.0)
    return min(expected / max(cells.count(value), 1), 1.0)
