"""Do synthetic rows repeat the table's own? Exact copies, and the distance to the closest row, beside held-out rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..ground.threads import chunks
from .cells import Cells, some

MOST_TABLE_ROWS = 50_000
"""Rows of the table among which the closest is looked for."""
ASKED_ROWS = 500
"""Rows whose closest is looked for."""


@dataclass(frozen=True)
class Copies:
    """How close rows come to those of a table, and how close held-out rows come, which is what chance gives.

    Attributes
    ----------
    share : float
        Share of the rows that equal a row of the table in every cell.
    distance : (float, float)
        Median and 5 % quantile of the distance to the closest row of the table, of at most 500 rows. Between two rows
        it is the mean over columns of: numbers the difference of their ranks in the table, as shares of it; levels 0 if
        equal, else 1; missing cells are a level.
    share_held_out : float or None
        Of held-out rows; None if there are none.
    distance_held_out : (float, float) or None
    """

    share: float
    distance: tuple[float, float]
    share_held_out: float | None
    distance_held_out: tuple[float, float] | None


def copies(real: Cells, rows: Cells, held_out: Cells | None, random: np.random.Generator) -> Copies:
    """Copies among rows, and among held-out rows."""
    known = set(_as_bytes(real.X))
    near = Ranks(real.take(some(len(real.X), MOST_TABLE_ROWS, random)))
    share, distance = [], []
    for table in [rows] if held_out is None else [rows, held_out]:
        share.append(float(np.mean([row in known for row in _as_bytes(table.X)])))
        found = near.closest(table.take(some(len(table.X), ASKED_ROWS, random)).X)
        distance.append((float(np.median(found)), float(np.quantile(found, 0.05))))
    return Copies(share[0], distance[0], *((None, None) if held_out is None else (share[1], distance[1])))


def _as_bytes(X: np.ndarray) -> list[bytes]:
    """Each row of numbers (n, d) as bytes, equal where the rows are: one NaN, one zero."""
    X = np.where(np.isnan(X), np.nan, X + 0.0)
    return [row.tobytes() for row in X]


class Ranks:
    """A table of n rows whose numbers are ranks, to find the row closest to another; or other ``rows`` ranked in it."""

    def __init__(self, real: Cells, rows: Cells | None = None) -> None:
        self._real = real
        self._sorted = [np.sort(real.X[~np.isnan(real.X[:, j]), j]) for j in range(len(real.names))]
        self._places = self._placed((real if rows is None else rows).X)

    def _placed(self, X: np.ndarray) -> np.ndarray:
        """Cells (m, d) as float32 (d, m): mid-ranks as shares of the table; codes as they are."""
        out = np.empty(X.T.shape, dtype=np.float32)
        for j, known in enumerate(self._sorted):
            x = X[:, j]
            if self._real.is_numeric(j):
                ends = np.searchsorted(known, x, "left") + np.searchsorted(known, x, "right")
                x = np.where(np.isnan(x), np.nan, ends / (2.0 * max(len(known), 1)))
            out[j] = x
        return out

    def closest(self, X: np.ndarray) -> np.ndarray:
        """Distance of each row of X (m, d) to the closest row of the table, float64 (m,)."""
        asked, found = self._placed(X), np.empty(len(X))
        for start, stop in chunks(len(X), max(1, 2_000_000 // self._places.shape[1])):
            total = np.zeros((stop - start, self._places.shape[1]), dtype=np.float32)
            for j, (a, b) in enumerate(zip(asked[:, start:stop], self._places, strict=True)):
                if not self._real.is_numeric(j):
                    total += a[:, None] != b
                    continue
                gap = np.abs(a[:, None] - b)
                if np.isnan(a).any() or np.isnan(b).any():
                    gap = np.where(np.isnan(a)[:, None] & np.isnan(b), 0.0, np.where(np.isnan(gap), 1.0, gap))
                total += gap
            found[start:stop] = total.min(axis=1)
        return found / max(1, len(self._places))
