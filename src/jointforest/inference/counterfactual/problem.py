"""One row, what may change in it, and which changed rows will do."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from ...data.evidence import Evidence
from ...data.schema import Column, snapped
from ...models.base import Distribution
from ..sampling import sample
from .outcome import Outcome

POOL = 1000
"""Rows drawn given the fixed cells and the wanted outcome."""
_BINS = 10
"""Rows that agree in all levels and in these parts of the ranges are alike."""


class Problem(NamedTuple):
    """What is asked for.

    model : Distribution
    outcome : Outcome
    row : float64 array (d,). Numbers and codes; NaN where nothing is known, and in the target's cell.
    free : tuple of int. Columns that may change: known and not fixed; those that a model does not look at too, if
        others need it.
    pool : float64 array (m, d). Rows of the joint given the fixed cells and the wanted outcome.
    log_floor : float. Log-density that a row must have at least, its known cells counted; -inf: any but impossible
        ones.
    """

    model: Distribution
    outcome: Outcome
    row: np.ndarray
    free: tuple[int, ...]
    pool: np.ndarray
    log_floor: float

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.model.schema.columns

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """log p(known cells) of rows (n, d), the target's cell left out, (n,)."""
        return self.model.log_density(Evidence.of_values(np.ascontiguousarray(X)))

    def plausible(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which rows (n, d) are possible and at least as dense as the floor, and their log-densities."""
        log_density = self.log_density(X)
        return (log_density > -np.inf) & (log_density >= self.log_floor), log_density

    def changed(self, X: np.ndarray) -> np.ndarray:
        """Which cells of rows (n, d) are not the row's, bool (n, d)."""
        return (self.row != X) & ~np.isnan(self.row)


def drawn_pool(model: Distribution, outcome: Outcome, row: np.ndarray, fixed: np.ndarray, seed: int) -> np.ndarray:
    """Rows (m, d) of the joint given the fixed cells (a mask) and the wanted outcome, where rows have it."""
    # What a model predicts cannot be evidence: then they are the draws of which it is predicted, or all if these are
    # few.
    evidence = outcome.given(Evidence.of_values(np.where(fixed, row, np.nan)[None]))
    X = sample(model, evidence, POOL, seed)
    X = X[~np.isnan(X).all(axis=1)]
    if outcome.target is None and len(X):
        X = np.where(fixed, row, within_range(model.schema.columns, X))
        valid = outcome.judge(np.where(np.isnan(row), np.nan, X)).valid
        X = X[valid] if valid.sum() >= 50 else X
    return X


def floor_of(model: Distribution, row: np.ndarray, pool: np.ndarray, unlikely: float) -> float:
    """The row's own log-density, or that of all but ``unlikely`` percent of the pool, whichever is less."""
    if unlikely == 0.0:
        return -np.inf
    X = np.vstack([row, np.where(np.isnan(row), np.nan, pool)])
    log_density = model.log_density(Evidence.of_values(X))
    return float(min(log_density[0], np.quantile(log_density[1:], unlikely / 100.0)))


def within_range(columns: tuple[Column, ...], X: np.ndarray) -> np.ndarray:
    """Rows (n, d) with numbers on their grids and within the range that learning saw."""
    out = X.copy()
    for j, column in enumerate(columns):
        if not column.is_categorical:
            out[:, j] = snapped(column, np.clip(X[:, j], column.minimum, column.maximum))
    return out


def unlike(p: Problem, X: np.ndarray) -> np.ndarray:
    """Numbers of the rows (m, d) that are unlike all before them, ascending."""
    key = X.copy()
    for j, column in enumerate(p.columns):
        if not column.is_categorical and column.maximum > column.minimum:
            part = np.floor((X[:, j] - column.minimum) / (column.maximum - column.minimum) * _BINS)
            key[:, j] = np.where(X[:, j] == p.row[j], -1.0, part)
    return np.sort(np.unique(np.nan_to_num(key, nan=-2.0), axis=0, return_index=True)[1])


# ---- Rows to try for a set of columns to change: all of them where these are few, else draws.

Columns = tuple[int, ...]

FEW_VALUES = 64
"""A column of more cells between its least and greatest number is not tried value by value."""
_DRAWS = 32
"""Draws for a set of several columns; for one column twice as many."""
BEST = 2
"""Values of a column that are combined with those of other columns."""
LARGEST_PRODUCT = 64
"""Combinations of values that are all tried for a set in any case."""


def every_value(column: Column, value: float) -> np.ndarray | None:
    """All values that a cell may change to, (k,); None if they are too many."""
    if column.is_categorical:
        values = np.arange(len(column.levels), dtype=np.float64)
    elif column.step == 0.0 or (column.maximum - column.minimum) / column.step >= FEW_VALUES:
        return None
    else:
        n = round((column.maximum - column.minimum) / column.step) + 1
        values = within_range((column,), (column.minimum + column.step * np.arange(n))[:, None])[:, 0]
    return values[values != value]


def all_rows(p: Problem, columns: Columns, values: list[np.ndarray]) -> np.ndarray:
    """The row with all combinations of values (k_1,), (k_2,), ... in these columns, (k_1 k_2 ..., d)."""
    cells = np.array(list(itertools.product(*values))).reshape(-1, len(columns))
    out = np.tile(p.row, (len(cells), 1))
    out[:, columns] = cells
    return out


def pooled_rows(p: Problem, columns: Columns, n: int) -> np.ndarray:
    """The row with the cells that these columns have in the pool, at most n of them, evenly spread in their order."""
    cells = np.unique(p.pool[:, columns], axis=0)
    cells = cells[np.unique(np.linspace(0, len(cells) - 1, n).round().astype(int))] if len(cells) else cells
    out = np.tile(p.row, (len(cells), 1))
    out[:, columns] = cells
    return out


def drawn_rows(p: Problem, sets: list[Columns], n: int, seed: int) -> np.ndarray:
    """n draws of each of k sets of columns given the rest of the row and the wanted outcome, contiguous, (k * n, d)."""
    known = np.tile(p.row, (len(sets), 1))
    free = np.zeros(known.shape, bool)
    for i, columns in enumerate(sets):
        free[i, columns] = True
    known[free] = np.nan
    drawn = sample(p.model, p.outcome.given(Evidence.of_values(known)), n, seed)
    return np.where(np.repeat(free, n, axis=0), drawn, p.row)


def rows_for(
    p: Problem, sets: list[Columns], values: dict[int, np.ndarray | None], best: dict[int, list[float]], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to try (n, d), and the number of the set that each belongs to, (n,)."""
    # ``values`` are all values of a column, or None; ``best`` the values that were nearest to the wanted outcome alone.
    few = [_product(columns, values) <= LARGEST_PRODUCT for columns in sets]
    many = [i for i, is_few in enumerate(few) if not is_few]
    n = _DRAWS if len(sets[0]) > 1 else 2 * _DRAWS
    rows, owner = [], []
    if many:
        rows.append(drawn_rows(p, [sets[i] for i in many], n, seed))
        owner.append(np.repeat(many, n))
    for i, columns in enumerate(sets):
        if few[i]:
            candidates = all_rows(p, columns, [_known(values[j]) for j in columns])
        else:
            candidates = pooled_rows(p, columns, n)
            chosen = [np.array(best.get(j, [])) for j in columns]
            if 1 < len(columns) <= 4:
                candidates = np.vstack([candidates, all_rows(p, columns, chosen)])
        rows.append(candidates)
        owner.append(np.full(len(candidates), i))
    return np.vstack(rows), np.concatenate(owner)


def every_row(p: Problem, sets: list[Columns], values: dict[int, np.ndarray | None], most: int) -> list[np.ndarray]:
    """All rows of each set; none at all if a set has too many values, or all sets more than ``most`` rows."""
    if sum(_product(columns, values) for columns in sets) > most:
        return []
    return [all_rows(p, columns, [_known(values[j]) for j in columns]) for columns in sets]


def _product(columns: Columns, values: dict[int, np.ndarray | None]) -> float:
    """Number of combinations of a set's values; infinite if one column has too many."""
    return float(np.prod([np.inf if (candidates := values[j]) is None else float(len(candidates)) for j in columns]))


def _known(values: np.ndarray | None) -> np.ndarray:
    assert values is not None
    return values


# ---- Gower's distance of rows to one row, by the ranges of a joint's columns.


def gower(columns: tuple[Column, ...], X: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Gower distance of rows (n, d) to a row (d,), 0 to 1, over the row's known cells, (n,)."""
    known = np.flatnonzero(~np.isnan(row)).tolist()
    total = np.zeros(len(X))
    for j in known:
        gap = np.abs(X[:, j] - row[j])
        if columns[j].is_categorical and columns[j].kind != "ordered":
            total += gap > 0.0
            continue
        width = len(columns[j].levels) - 1.0 if columns[j].is_categorical else columns[j].maximum - columns[j].minimum
        total += np.minimum(gap / width, 1.0) if width > 0.0 else gap > 0.0
    return total / max(len(known), 1)
