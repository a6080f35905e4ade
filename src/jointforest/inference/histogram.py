"""Histograms: the probability of each bin of a column, with the same bins whatever the evidence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..data.schema import Column
from ..models.base import PosteriorState
from ..runtime.parameters import check_number

_MOST_BINS = 10_000
"""Most bins, so that a mistyped number does not fill the memory."""


_FEW_CELLS = 7
"""A column of at most so many cells of its grid has its share on each bar of a picture."""
INNER = np.array([0.005, 0.995])
"""Ends of what pictures show for sure: see `shown_edges`."""
_LAST_CELL = 2**52


def histogram(state: PosteriorState, j: int, edges: np.ndarray) -> np.ndarray:
    """Probability of the levels, or bins between ``edges`` (B + 1,), of column j given n rows of evidence, (n, B)."""
    # The first and the last bin also hold what lies beyond; NaN where the evidence has probability 0.
    mass = state.histogram(j, edges[1:-1])
    if state.distribution.schema.columns[j].is_categorical:
        return mass
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def divergence_bits(mass: np.ndarray, before: np.ndarray, least: float = 1e-300) -> float:
    """Kullback-Leibler divergence in bits of masses of bins from those ``before``, which are at least ``least``."""
    some = mass > 0.0
    return max(float(mass[some] @ np.log2(mass[some] / np.maximum(before[some], least))), 0.0)


def bin_edges(column: Column, bins: Any) -> np.ndarray:
    """Edges of a column's bins, float64 (B + 1,) ascending: those given, or of at most so many bins; none of levels."""
    if np.ndim(bins) == 0 or column.is_categorical:
        check_number("bins", bins, 1, _MOST_BINS, whole=True, text=_bins_expected(column))
        return np.empty(0) if column.is_categorical else _even(column, int(bins))
    edges = column.numbers(bins)
    if edges.ndim != 1 or len(edges) < 2 or not (edges[:-1] < edges[1:]).all():
        raise ValueError(f"column {column.name!r}: edges of bins must ascend, at least two of them, got {bins!r:.80}")
    return edges


def _bins_expected(column: Column) -> str:
    most = f"an integer of 1 to {_MOST_BINS}"
    return f"{most} (column {column.name!r} is {column.kind}: each level is a bin)" if column.is_categorical else most


def _even(column: Column, bins: int) -> np.ndarray:
    """Edges of at most so many bins, equally wide, over the range seen at learning; on a grid of whole cells each."""
    if not (math.isfinite(column.minimum) and math.isfinite(column.maximum)):
        raise ValueError(f"column {column.name!r}: no range was seen at learning; give the edges of the bins")
    return even_edges(column, column.minimum, column.maximum, bins)


def even_edges(column: Column, low: float, high: float, bins: int) -> np.ndarray:
    """Edges of at most so many bins of equal width from low to high; on a grid, of equally many cells."""
    if column.step > 0.0 and max(abs(low - column.center), abs(high - column.center)) <= _LAST_CELL * column.step:
        first, last = (round((x - column.center) / column.step) for x in (low, high))
        width = -(-(last - first + 1) // bins)
        cells = first + width * np.arange(-(-(last - first + 1) // width) + 1)
        return np.asarray(column.center + (cells - 0.5) * column.step)
    if low == high:
        low, high = low - 0.5, high + 0.5
    part = np.linspace(0.0, 1.0, bins + 1)
    return np.unique(low * (1.0 - part) + high * part)


def shown_edges(column: Column, inner: tuple[float, float], bins: int) -> np.ndarray:
    """Edges of the bins of pictures: the range seen at learning without outliers; none for levels."""
    # An end that is farther from ``inner``, the central 99 %, than this is wide is left out: one outlier would make all
    # other numbers one bar.
    if column.is_categorical:
        return np.empty(0)
    low, high = inner if math.isfinite(sum(inner)) else (0.0, 0.0)
    seen = [
        x if math.isfinite(x) else end for x, end in zip((column.minimum, column.maximum), (low, high), strict=True)
    ]
    return even_edges(column, max(seen[0], low - (high - low)), min(seen[1], high + (high - low)), bins)


def are_few_cells(column: Column, edges: np.ndarray) -> bool:
    """Whether each bin of a column of numbers is one cell of its grid, and these are few."""
    return column.step > 0.0 and len(edges) <= _FEW_CELLS + 1 and edges[1] - edges[0] < 1.5 * column.step


def is_beyond(column: Column, edges: np.ndarray) -> tuple[bool, bool]:
    """Whether learning saw numbers below the first and above the last of some edges."""
    half = 0.5 * column.step
    return bool(column.minimum < edges[0] - half), bool(column.maximum > edges[-1] + half)
