"""Truths of a row whose cells may be wrong, by enumeration of all truths."""

from __future__ import annotations

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
