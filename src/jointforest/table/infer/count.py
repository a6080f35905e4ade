"""How often some values of columns occur, counted exactly: sums of batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..cells import FrameReader


class Wanted(NamedTuple):
    """Values to count, float64 (k,), ascending; on a grid of this step (0: none) each stands for its cell."""

    values: np.ndarray
    step: float


def count(reader: FrameReader, wanted: Mapping[str, Wanted]) -> dict[str, np.ndarray]:
    """Counts, int64 (k,), of the wanted values of columns in a table, or a batch of its rows."""
    return {name: _count(reader.cells(name).values, *what) for name, what in wanted.items()}


def add_counts(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The counts of two parts of a table as one."""
    return {name: a[name] + b[name] for name in a}


def _count(cells: np.ndarray, values: np.ndarray, step: float) -> np.ndarray:
    if step > 0:
        cells, values = np.rint(cells / step), np.rint(values / step)
    place = np.minimum(np.searchsorted(values, cells), len(values) - 1)
    return np.bincount(place[values[place] == cells], minlength=len(values)).astype(np.int64)
