"""Columns that are a function of another column in all rows of a table, such as the state of a zip code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .cells import ColumnCells, FrameReader, taken
from .schema import Schema

_SAMPLE = 500
"""Rows on which most pairs of columns are already seen to be no function of each other."""
_CELLS = 5e7
"""Most cells of the sample that are compared, over all pairs of columns; wide tables have a smaller sample."""
_CHANCE = 1e-3
"""Most columns that are expected to be called a function of another by chance, in a whole table."""


def determined_columns(reader: FrameReader, schema: Schema) -> dict[str, str]:
    """For each column that is a function of another one: the name of that other column.

    Column b is a function of a if all rows with the same value of a have the same value of b; rows in which either is
    missing do not count. The rows that repeat a value of a are the evidence. They must be half of the rows, and so many
    that rows of independent columns would not agree by chance. Of several columns a, the one with the fewest values is
    taken. Of two columns that are functions of each other, only the later one is named.
    """
    names = schema.names
    n_rows = max(min(_SAMPLE, int(_CELLS / len(names) ** 2)), 100)
    rows = np.unique(np.linspace(0, reader.n - 1, n_rows).astype(np.int64))
    sample = np.column_stack([_codes(taken(reader.cells(name), rows)) for name in names])
    kept: dict[str, np.ndarray] = {}

    def codes(name: str) -> np.ndarray:
        if name not in kept:
            kept[name] = _codes(reader.cells(name))
        return kept[name]

    found: dict[str, str] = {}
    for b, a in _pairs(sample, reader.n, names, codes):
        if found.get(a) != b:
            found.setdefault(b, a)
    return found


def _pairs(
    sample: np.ndarray, n: int, names: tuple[str, ...], codes: Callable[[str], np.ndarray]
) -> list[tuple[str, str]]:
    """All pairs (b, a) of columns of which b is a function of a; those of a with few values first."""
    d = len(names)
    found = []
    for a in range(d):
        likely = [b for b in np.flatnonzero(_may_follow(sample, a)) if b != a]
        for b in likely:
            if len(sample) == n:
                x, y = sample[:, a], sample[:, b]
            else:
                x, y = codes(names[a]), codes(names[b])
            if _is_function(x, y, np.log(d * d / _CHANCE)):
                found.append((int(x.max()), b, a))
    return [(names[b], names[a]) for _, b, a in sorted(found, key=lambda one: (one[0], -one[1], one[2]))]


def _codes(cells: ColumnCells) -> np.ndarray:
    """The number of each cell's value among the distinct ones, int64 (n,); -1 where missing."""
    values = cells.values if cells.codes is None else cells.codes
    out = np.full(len(cells.missing), -1)
    if cells.missing.all():
        return out
    out[~cells.missing] = np.unique(values[~cells.missing], return_inverse=True)[1].ravel()
    return out


def _may_follow(sample: np.ndarray, a: int) -> np.ndarray:
    """Columns that are constant among the rows of equal values of column a, which has such rows, bool (d,)."""
    known = np.flatnonzero(sample[:, a] >= 0)
    order = known[np.argsort(sample[known, a], kind="stable")]
    starts = np.flatnonzero(np.diff(sample[order, a], prepend=-1))
    if not len(order) or len(starts) in (1, len(order)):
        return np.zeros(sample.shape[1], bool)
    rows = sample[order]
    highest = np.maximum.reduceat(rows, starts)
    lowest = np.minimum.reduceat(np.where(rows < 0, len(sample), rows), starts)
    return np.asarray((highest <= lowest).all(axis=0) & (rows.max(axis=0) > 0))


def _is_function(x: np.ndarray, y: np.ndarray, needed: float) -> bool:
    """Whether y is a function of x, with more nats of evidence than needed."""
    known = (x >= 0) & (y >= 0)
    x, y = x[known], y[known]
    if not len(x) or y.min() == y.max():
        return False
    value = np.zeros(x.max() + 1, dtype=np.int64)
    value[x] = y
    repeats = len(x) - len(np.unique(x))
    most_common = np.bincount(y).max() / len(y)
    # a column that differs in most rows determines others by chance, and explains nothing
    return bool((value[x] == y).all() and 2 * repeats >= len(x) and -np.log(most_common) * repeats > needed)
