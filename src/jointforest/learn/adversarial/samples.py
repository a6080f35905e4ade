"""Which rows an adversarial forest is grown on, and which fill its leaves."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np


class Samples(NamedTuple):
    """Rows of a table of n, by what they are for.

    Attributes
    ----------
    growing : int64 array (m,)
        Numbers of the rows that trees are grown on, ascending; twice or more where weights ask for it.
    filling : bool array (n,)
        Rows that fill the leaves.
    is_part : bool
        Whether fewer rows grow trees than could.
    """

    growing: np.ndarray
    filling: np.ndarray
    is_part: bool


def take_samples(
    n: int, weight: np.ndarray | None, honest: bool, max_samples: int | float | None, seed: int
) -> Samples:
    """Which of n rows grow trees, ``max_samples`` at most, and which fill leaves: all of them.

    Rows with weights (n,) grow trees as often as these say, evenly. ``honest``: rows that grow trees, half of all at
    most, fill no leaves.
    """
    candidates = np.arange(n)
    if honest:  # tree t draws its rows by [seed, t]
        candidates = np.sort(np.random.default_rng([seed, 0, 1]).permutation(n)[: n // 2])
    m = _at_most(max_samples, len(candidates))
    is_part = m < len(candidates)
    growing = candidates
    if is_part and weight is None:
        growing = np.sort(np.random.default_rng([seed, 0, 3]).choice(candidates, m, replace=False, shuffle=False))
    elif weight is not None:
        if is_part:  # rows at even distances of a table in order are no sample
            candidates = np.random.default_rng([seed, 0, 3]).permutation(candidates)
        growing = np.sort(candidates[_evenly(weight[candidates], m, seed)])
    filling = np.ones(n, dtype=bool)
    if honest:
        filling[growing if is_part else candidates] = False
    return Samples(growing, filling, is_part)


def _at_most(max_samples: int | float | None, n: int) -> int:
    """How many of n rows grow trees."""
    if max_samples is None:
        return n
    number: Any = max_samples
    return min(int(number), n) if isinstance(number, Integral) else max(1, round(number * n))


def _evenly(weight: np.ndarray, m: int, seed: int) -> np.ndarray:
    """Numbers of m rows, drawn at even distances along their weights (n,): each as often as its own, but for one."""
    at = (np.arange(m) + np.random.default_rng([seed, 0, 2]).random()) * (weight.sum() / m)
    return np.minimum(np.searchsorted(np.cumsum(weight), at, side="right"), len(weight) - 1)
