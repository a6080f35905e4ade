"""Rows that learners read: a table encoded, checked, and completed. It needs no scikit-learn, which loads slowly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..data.frames import encode_ranges, with_names
from ..data.infer_schema import infer_schema
from ..data.ranges import Ranges
from ..data.schema import Columns, Schema, edges, kernel_columns
from ..models.hidden_tree.hidden_trees import HiddenTrees
from .hidden_tree.codes import training_cells
from .hidden_tree.first_joint import fill_in, first_joint, keys_of
from .leaf_fitting.fit import NARROWEST, Table, prepare_table

LARGEST = 1e150
"""Largest number that can be learned: its square, and so every variance, is a float64 number."""


class TableRows(NamedTuple):
    """A table of n rows to learn from.

    X : float64 array (n, d). Cells and level codes, grid columns snapped, ranges drawn from; NaN where missing.
    filled : float64 array (n, d). The same, each missing cell drawn given the known ones of its row; or X itself.
    first : HiddenTrees or None. What the draws are from; None: nothing is drawn.
    ranges : Ranges or None. Which cells are ranges.
    """

    schema: Schema
    columns: Columns
    X: np.ndarray
    filled: np.ndarray
    first: HiddenTrees | None = None
    ranges: Ranges | None = None

    @property
    def drawn(self) -> np.ndarray:
        """Which cells are missing, but filled: bool (n, d)."""
        return np.isnan(self.X) & ~np.isnan(self.filled)

    @property
    def cells(self) -> Table:
        """The filled cells, ready for leaf densities."""
        return prepare_table(self.columns, self.filled, self.drawn, edges(self.schema))

    def take(self, rows: np.ndarray) -> TableRows:
        """Some of the rows."""
        ranges = None if self.ranges is None else self.ranges.take(rows)
        return self._replace(X=self.X[rows], filled=self.filled[rows], ranges=ranges)

    def completed(self, weight: np.ndarray | None, seed: int) -> TableRows:
        """The rows, which have weights (n,) or None, with missing cells drawn within the span of the known ones."""
        # Cells that are ranges are drawn within these, and count as known.
        X = np.asfortranarray(self.X)  # read by columns; leaves are filled without another copy
        if self.ranges is None and not np.isnan(X).any():
            return self._replace(X=X, filled=X)
        first = first_joint(self.schema, X, weight, seed, self.ranges)
        filled = fill_in(first, X, keys_of(len(X), seed), self.ranges)
        if self.ranges is not None:
            X = np.where(self.ranges.number >= 0, filled, X)
        return self._replace(X=X, filled=np.clip(filled, np.fmin.reduce(X), np.fmax.reduce(X), out=filled), first=first)


def read_training_rows(frame: Any, kinds: Mapping[str, Any] | None) -> TableRows:
    """A frame as learners take it, without draws of missing cells; ValueError if it cannot be used."""
    frame = with_names(frame)
    schema = infer_schema(frame, kinds)
    X, _, ranges = encode_ranges(schema, frame)
    schema, X, ranges = training_cells(schema, X, ranges)
    check_cells(schema.names, X)
    return TableRows(schema, kernel_columns(schema), X, X, ranges=ranges)


def check_cells(names: Sequence[str], cells: np.ndarray) -> None:
    """Raise ValueError if the squares of a column's numbers, or of their distances, leave float64; cells: (n, d)."""
    for name, column in zip(names, cells.T, strict=True):
        known = column[~np.isnan(column)]
        large = known[np.abs(known) > LARGEST]
        if len(large):
            raise ValueError(
                f"column {name!r}: {large[0]:g} is too large, expected numbers of at most {LARGEST:g}; "
                "divide the column by a power of ten, or make such cells missing (NaN)"
            )
        span = np.ptp(known)
        if 0 < span < NARROWEST:
            raise ValueError(
                f"column {name!r}: its values span {span:g}, expected 0 or at least {NARROWEST:g}; "
                "multiply the column by a power of ten"
            )
