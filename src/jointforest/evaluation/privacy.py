"""Do synthetic rows repeat the table's own? Exact copies, and the distance to the closest row, beside held-out rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..runtime.threads import chunks
from .columns_and_pairs import TableCells, some

MOST_TABLE_ROWS = 50_000
"""Rows of the table among which the closest is looked for."""
COPY_ROWS = 500
"""Rows whose closest is looked for."""


@dataclass(frozen=True)
class Copies:
    """How close rows come to those of a table, and how close held-out rows come, which is what chance gives.

    share : float. Share of the rows that equal a row of the table in every cell.
    distance : (float, float). Median and 5 % quantile of the distance to the closest row of the table, of at most 500
        rows. Between two rows it is the mean over columns of: numbers the difference of their ranks in the table, as
        shares of it; levels 0 if equal, else 1; missing cells are a level.
    share_held_out : float or None. Of held-out rows; None if there are none.
    distance_held_out : (float, float) or None
    """

    share: float
    distance: tuple[float, float]
    share_held_out: float | None
    distance_held_out: tuple[float, float] | None


def count_copies(
    real: TableCells, rows: TableCells, held_out: TableCells | None, random: np.random.Generator
) -> Copies:
    """Copies among rows, and among held-out rows."""
    known = set(_as_bytes(real.X))
    near = RankedTable(real.take(some(len(real.X), MOST_TABLE_ROWS, random)))
    share, distance = [], []
    for table in [rows] if held_out is None else [rows, held_out]:
        share.append(float(np.mean([row in known for row in _as_bytes(table.X)])))
        nearest = near.closest(table.take(some(len(table.X), COPY_ROWS, random)).X)
        distance.append((float(np.median(nearest)), float(np.quantile(nearest, 0.05))))
    return Copies(share[0], distance[0], *((None, None) if held_out is None else (share[1], distance[1])))


def _as_bytes(X: np.ndarray) -> list[bytes]:
    """Each row of numbers (n, d) as bytes, equal where the rows are: one NaN, one zero."""
    X = np.where(np.isnan(X), np.nan, X + 0.0)
    return [row.tobytes() for row in X]


class RankedTable:
    """A table of n rows whose numbers are ranks, to find the row closest to another; or other ``rows`` ranked in it."""

    def __init__(self, real: TableCells, rows: TableCells | None = None) -> None:
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
        asked, nearest = self._placed(X), np.empty(len(X))
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
            nearest[start:stop] = total.min(axis=1)
        return nearest / max(1, len(self._places))


# ---- Do synthetic rows, or a joint, give away who was in the table? Two simple attacks beside held-out rows.

MEMBERSHIP_ROWS = 1_000
"""Rows of each group that are attacked."""


@dataclass(frozen=True)
class Membership:
    """How well simple attacks tell rows of the table from held-out rows; 0 is chance, 1 is always.

    The attacker is shown one row of the table and one held-out row, and has to name the learned one: the one
    closer to a synthetic row (distance), or the one of greater density under the joint (density). The advantage is
    P(right) - P(wrong), which is 2 AUC - 1; ties count one half.

    advantage, standard_error : float. Of the attack by distance: that of `Copies`, by ranks among the synthetic rows.
    density_advantage, density_error : float or None. Of the attack by density; None of rows without a joint.
    nearer, nearer_error : float. Share of synthetic rows that are closer to the table than to as many held-out rows,
        ties by half, and its standard error: 0.5 is chance.
    n_rows : int. Rows asked about, at most, of each group.
    """

    advantage: float
    standard_error: float
    density_advantage: float | None
    density_error: float | None
    nearer: float
    nearer_error: float
    n_rows: int


def membership(
    real: TableCells,
    rows: TableCells,
    new: TableCells,
    density: tuple[np.ndarray, np.ndarray] | None,
    random: np.random.Generator,
) -> Membership:
    """Attacks by synthetic rows on the table and held-out rows."""
    # ``density`` are log-densities of rows of the table and of held-out rows, (a,) and (b,), where there is a joint.
    near = RankedTable(rows.take(some(len(rows.X), MOST_TABLE_ROWS, random)))
    inside, outside = (near.closest(table.take(some(len(table.X), MEMBERSHIP_ROWS, random)).X) for table in (real, new))
    gained, error = advantage(-inside, -outside)
    by_density = (None, None) if density is None else advantage(*density)
    same = min(len(real.X), len(new.X), MOST_TABLE_ROWS)
    asked = rows.take(some(len(rows.X), MEMBERSHIP_ROWS, random)).X
    to_table, to_new = (
        RankedTable(real, table.take(some(len(table.X), same, random))).closest(asked) for table in (real, new)
    )
    nearer = (to_table < to_new) + 0.5 * (to_table == to_new)
    return Membership(
        advantage=gained,
        standard_error=error,
        density_advantage=by_density[0],
        density_error=by_density[1],
        nearer=float(nearer.mean()),
        nearer_error=float(nearer.std() / np.sqrt(len(nearer))),
        n_rows=max(len(inside), len(outside), len(asked)),
    )


def advantage(inside: np.ndarray, outside: np.ndarray) -> tuple[float, float]:
    """2 AUC - 1 of scores (a,) above scores (b,), ties by half, and its standard error (DeLong et al. 1988)."""
    above, below = _share_below(outside, inside), 1.0 - _share_below(inside, outside)
    value = 2.0 * float(above.mean()) - 1.0
    spread = sum(float(part.var(ddof=1)) / len(part) for part in (above, below) if len(part) > 1)
    return value, 2.0 * float(np.sqrt(spread))


def _share_below(scores: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Share of scores (a,) below each number (b,), ties by half, (b,)."""
    order = np.sort(scores)
    return (np.searchsorted(order, at, "left") + np.searchsorted(order, at, "right")) / (2.0 * len(order))
