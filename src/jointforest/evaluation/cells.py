"""Rows of a frame as the measures of fidelity read them: numbers, and codes in which missing is a level of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..table.frames import encode
from ..table.libraries import read
from ..table.restore import snapped
from ..table.schema import Column, Schema, near


class Cells(NamedTuple):
    """The cells of n rows.

    Attributes
    ----------
    names : tuple of d str
    n_levels : int64 array (d,)
        0 in a column of numbers or dates; else one more than the greatest code.
    X : float64 array (n, d)
        Numbers, NaN where missing, on a column's grid without rounding (0.1 + 0.2 is 0.3); codes of levels, never
        NaN: after the levels of the schema come one for all levels that it does not have, and one for missing cells.
    """

    names: tuple[str, ...]
    n_levels: np.ndarray
    X: np.ndarray

    def take(self, rows: np.ndarray) -> Cells:
        """The rows of these numbers, in this order."""
        return self._replace(X=self.X[rows])

    def is_numeric(self, j: int) -> bool:
        """Whether column j holds numbers or dates."""
        return not self.n_levels[j]


def cells_of(schema: Schema, X: np.ndarray, unseen: np.ndarray) -> Cells:
    """Cells of encoded rows: X (n, d) and unseen (n, d) as `table.frames.encode` gives them."""
    counts = np.array([len(column.levels) + 2 if column.is_categorical else 0 for column in schema.columns])
    coded = np.where(unseen, counts - 2.0, np.where(np.isnan(X), counts - 1.0, X))
    numbers = np.column_stack([_on_grid(column, X[:, j]) for j, column in enumerate(schema.columns)])
    return Cells(schema.names, counts, np.where(counts > 0, coded, numbers))


def _on_grid(column: Column, x: np.ndarray) -> np.ndarray:
    """Numbers (n,), those on the column's grid but for rounding as rows drawn have them."""
    near_x = snapped(column, x)
    return np.where(np.abs(x - near_x) <= 1e-6 * column.step + 4e-16 * np.abs(x), near_x, x)


def read_rows(schema: Schema, frame: Any, what: str) -> tuple[np.ndarray, np.ndarray]:
    """A frame with all of the schema's columns, encoded: X (n, d) and unseen (n, d).

    Raises
    ------
    ValueError
        If it has other columns, or no rows; ``what`` names it in the message.
    """
    reader = read(frame)
    if reader.frame != "numpy":
        absent = [name for name in schema.names if name not in reader.names]
        if absent:
            hint = near(absent[0], reader.names)
            raise ValueError(f"{what}: there is no column {absent[0]!r}; {hint}; all columns are compared")
    if reader.n == 0:
        raise ValueError(f"{what}: the table has no rows; at least one is needed")
    return encode(schema, frame)


def read_cells(schema: Schema, frame: Any, what: str) -> Cells:
    """Cells of a frame with all of the schema's columns; errors as of `read_rows`."""
    return cells_of(schema, *read_rows(schema, frame, what))


def some(n: int, most: int, random: np.random.Generator) -> np.ndarray:
    """Numbers of at most ``most`` of n rows, drawn without replacement, ascending; all of them if there are no more."""
    return np.arange(n) if n <= most else np.sort(random.choice(n, most, replace=False))
