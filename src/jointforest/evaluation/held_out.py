"""Held-out rows: their log-density, what intervals cover of them, and whether draws repeat learned rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.evidence import build
from ..data.schema import Schema
from ..models.base import Distribution
from ..runtime.threads import chunks
from .columns_and_pairs import TableCells, some

_MOST_ROWS = 20_000
"""Rows whose log-density is taken."""
_MOST_CELLS = 500
"""Cells of a column with more distinct values whose density alone is taken."""
COVERED_ROWS = 300
"""Rows whose cells are held against their intervals."""
_MOST_COLUMNS = 50
"""Columns whose intervals are asked for."""
_LEVEL = 0.9
"""Probability of the intervals."""


@dataclass(frozen=True)
class HeldOut:
    """How probable a joint finds rows that it has not seen.

    log_density : float. Mean log-density of a row, in nats: of numbers on a grid, levels and atoms their mass.
    independent : float. The same if all columns were independent, each distributed as in the joint.
    impossible : float. Share of rows with density 0 (only in a joint without background); the mean is then minus
        infinity.
    n_rows : int
    """

    log_density: float
    independent: float
    impossible: float
    n_rows: int


@dataclass(frozen=True)
class Coverage:
    """Share of cells within the joint's 90 % intervals of equal tails, given the other cells of their rows.

    share : dict of column to float. 0.9 or a little more is right: numbers on a coarse grid, or with atoms, are covered
        more often. Those farthest from it first, too few before too many. Columns without a known cell are left out.
    n_rows : int. Rows asked, of which cells that are missing are left out.
    """

    share: dict[str, float]
    n_rows: int


def held_out(model: Distribution, X: np.ndarray, unseen: np.ndarray, random: np.random.Generator) -> HeldOut:
    """Log-density of rows, X (n, d) and unseen (n, d) as `data.frames.encode` gives them, beside independence."""
    rows = some(len(X), _MOST_ROWS, random)
    X, unseen = X[rows], unseen[rows]
    log_density = model.log_density(build(model.schema, X, unseen))
    alone = sum(_independent_log_density(model, j, X[:, j], unseen[:, j], random) for j in range(X.shape[1]))
    return HeldOut(float(log_density.mean()), float(alone), float(np.mean(log_density == -np.inf)), len(X))


def log_densities(
    model: Distribution, X: np.ndarray, unseen: np.ndarray, most: int, random: np.random.Generator
) -> np.ndarray:
    """Log-densities of at most ``most`` rows, drawn by chance, of X (n, d) and unseen (n, d)."""
    rows = some(len(X), most, random)
    return model.log_density(build(model.schema, X[rows], unseen[rows]))


def _independent_log_density(
    model: Distribution, j: int, x: np.ndarray, unseen: np.ndarray, random: np.random.Generator
) -> float:
    """Mean over rows of log p(x_j), cells (n,); missing ones count 0, levels never seen their penalty."""
    known = x[~np.isnan(x)]
    total = float(unseen.mean()) * model.schema.columns[j].log_unseen
    if not len(known):
        return total
    value, count = np.unique(known, return_counts=True)
    if len(value) > _MOST_CELLS:
        value, count = known[some(len(known), _MOST_CELLS, random)], np.ones(_MOST_CELLS, dtype=count.dtype)
    cells = np.full((len(value), len(model.schema.columns)), np.nan)
    cells[:, j] = value
    mean = np.average(model.log_density(build(model.schema, cells)), weights=count)
    return total + float(mean) * len(known) / len(x)


def coverage(model: Distribution, X: np.ndarray, unseen: np.ndarray, random: np.random.Generator) -> Coverage:
    """What the 90 % intervals of columns of numbers cover, rows X (n, d) and unseen (n, d)."""
    rows = some(len(X), COVERED_ROWS, random)
    numeric = np.array(numeric_columns(model.schema), dtype=np.int64)
    tails = np.array([(1.0 - _LEVEL) / 2.0, (1.0 + _LEVEL) / 2.0])
    share = {}
    for j in numeric[some(len(numeric), _MOST_COLUMNS, random)].tolist():
        known = rows[~np.isnan(X[rows, j])]
        if not len(known):
            continue
        others = X[known]
        others[:, j] = np.nan
        ends = model.observe(build(model.schema, others, unseen[known])).quantile(j, tails)
        # half a cell of the grid: a number anywhere in a cell counts as the cell
        slack = model.schema.columns[j].step / 2.0
        share[model.schema.names[j]] = float(
            np.mean((ends[:, 0] - slack <= X[known, j]) & (X[known, j] <= ends[:, 1] + slack))
        )
    return Coverage(dict(sorted(share.items(), key=lambda item: _badness(item[1]), reverse=True)), len(rows))


def numeric_columns(schema: Schema) -> list[int]:
    """Numbers of the columns that hold numbers or dates."""
    return [j for j, column in enumerate(schema.columns) if not column.is_categorical]


def _badness(share: float) -> float:
    """Too few cells covered is worse than too many, by as much as the tails are smaller than the interval."""
    return (_LEVEL - share) / _LEVEL if share < _LEVEL else (share - _LEVEL) / _LEVEL * 0.1


# ---- Do synthetic rows repeat learned rows? Exact copies, and distances to the closest row.

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
