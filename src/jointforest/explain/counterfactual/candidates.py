"""Rows to try for a set of columns to change: all of them where these are few, else draws."""

from __future__ import annotations

import itertools

import numpy as np

from ...queries.rows.sampling import sample
from ...table.evidence import Evidence
from ...table.schema import Column
from .problem import Problem, within

Columns = tuple[int, ...]

FEW_VALUES = 64
"""A column of more cells between its least and greatest number is not tried value by value."""
DRAWS = 32
"""Draws for a set of several columns; for one column twice as many."""
BEST = 2
"""Values of a column that are combined with those of other columns."""
LARGEST_PRODUCT = 64
"""Combinations of values that are all tried for a set in any case."""


def every_value(column: Column, own: float) -> np.ndarray | None:
    """All values that a cell may change to, (k,); None if they are too many."""
    if column.is_categorical:
        values = np.arange(len(column.levels), dtype=np.float64)
    elif column.step == 0.0 or (column.maximum - column.minimum) / column.step >= FEW_VALUES:
        return None
    else:
        n = round((column.maximum - column.minimum) / column.step) + 1
        values = within((column,), (column.minimum + column.step * np.arange(n))[:, None])[:, 0]
    return values[values != own]


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
    drawn = sample(p.model, p.outcome.given(Evidence.of_values(known)), n, seed, n_jobs=p.n_jobs)
    return np.where(np.repeat(free, n, axis=0), drawn, p.row)


def rows_for(
    p: Problem, sets: list[Columns], values: dict[int, np.ndarray | None], best: dict[int, list[float]], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to try (n, d), and the number of the set that each belongs to, (n,).

    ``values`` are all values of a column, or None; ``best`` the values that were nearest to the wanted outcome alone.
    """
    few = [_product(columns, values) <= LARGEST_PRODUCT for columns in sets]
    many = [i for i, is_few in enumerate(few) if not is_few]
    n = DRAWS if len(sets[0]) > 1 else 2 * DRAWS
    rows, owner = [], []
    if many:
        rows.append(drawn_rows(p, [sets[i] for i in many], n, seed))
        owner.append(np.repeat(many, n))
    for i, columns in enumerate(sets):
        if few[i]:
            found = all_rows(p, columns, [_known(values[j]) for j in columns])
        else:
            found = pooled_rows(p, columns, n)
            chosen = [np.array(best.get(j, [])) for j in columns]
            if 1 < len(columns) <= 4:
                found = np.vstack([found, all_rows(p, columns, chosen)])
        rows.append(found)
        owner.append(np.full(len(found), i))
    return np.vstack(rows), np.concatenate(owner)


def every_row(p: Problem, sets: list[Columns], values: dict[int, np.ndarray | None], most: int) -> list[np.ndarray]:
    """All rows of each set; none at all if a set has too many values, or all sets more than ``most`` rows."""
    if sum(_product(columns, values) for columns in sets) > most:
        return []
    return [all_rows(p, columns, [_known(values[j]) for j in columns]) for columns in sets]


def _product(columns: Columns, values: dict[int, np.ndarray | None]) -> float:
    """Number of combinations of a set's values; infinite if one column has too many."""
    return float(np.prod([np.inf if (found := values[j]) is None else float(len(found)) for j in columns]))


def _known(values: np.ndarray | None) -> np.ndarray:
    assert values is not None
    return values
