"""Which cells are hidden from rows: at random, or a block of neighbouring columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .constants import FIXED


class Hidden(NamedTuple):
    """Rows that are there several times, each time with other cells hidden.

    Attributes
    ----------
    row : int64 array (m,)
        The number of each row in the table.
    mask : bool array (m, d)
        Which of its cells are hidden.
    rate : float64 array (m,)
        About which share of its cells that is.
    """

    row: np.ndarray
    mask: np.ndarray
    rate: np.ndarray


def hide_at_random(n: int, d: int, rate: float | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Cells hidden completely at random, bool (n, d); ``rate`` is one number, or one for each row (n,)."""
    return np.asarray(rng.random((n, d)) < np.broadcast_to(rate, n)[:, None])


def hide_blocks(n: int, d: int, rate: float | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """About this share of neighbouring columns hidden from each row, bool (n, d); the last column is beside the first.

    Columns that stand together are often missing together, such as those of one questionnaire or one device.
    """
    width = np.floor(np.broadcast_to(rate, n) * d + rng.random(n))
    first = rng.integers(0, d, n)
    return np.asarray((np.arange(d) - first[:, None]) % d < width[:, None])


def validation_rows(rows: np.ndarray, d: int, rng: np.random.Generator, most: int) -> Hidden:
    """All rows as they are, and at most so many, drawn anew, at each of the other rates.

    Of half of them the cells are hidden at random, of the others in a block.
    """
    n = min(len(rows), most)
    parts = [Hidden(rows, np.zeros((len(rows), d), dtype=bool), np.zeros(len(rows)))]
    for rate in FIXED.rates[1:]:
        parts.append(Hidden(rng.permutation(rows)[:n], _either(n, d, rate, rng), np.full(n, rate)))
    return Hidden(*map(np.concatenate, zip(*parts, strict=True)))


def hidden_copies(rows: np.ndarray, d: int, rng: np.random.Generator) -> Hidden:
    """Each row as it is, and copies of which any share is hidden."""
    n = len(rows)
    k = int(np.clip(FIXED.copied_rows // max(n, 1) - 1, 1, FIXED.copies))
    rate = np.concatenate([np.zeros(n), rng.random(n * k)])
    return Hidden(np.tile(rows, k + 1), _either(n * (k + 1), d, rate, rng), rate)


def _either(n: int, d: int, rate: float | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Cells hidden at random, or in a block, from each of n rows, bool (n, d)."""
    is_block = rng.permutation(n) % 2 == 0
    return np.where(is_block[:, None], hide_blocks(n, d, rate, rng), hide_at_random(n, d, rate, rng))
