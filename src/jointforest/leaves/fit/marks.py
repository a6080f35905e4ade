"""What quantile leaves are learned from where rows come in batches: how many lie at, and between, a sample's values.

The distribution function of a leaf's rows is known at each value of the sample's rows in it, and at their smallest and
largest; between two of these, rows are taken to lie evenly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .marks_kernels import count_at
from .sums import LeafSums
from .values import LeafValues

_MOST = 8  # points for the rows between two marks


class Marks(NamedTuple):
    """Values of one numeric column in the l leaves of a tree, and the rows that lie at and between them.

    Attributes
    ----------
    x : float64 array (m,)
        The marks of leaf k are ``x[start[k]:start[k + 1]]``, ascending.
    start : int64 array (l + 1,)
    at : int64 array (m,)
        Rows whose number is the mark.
    above : int64 array (m + l,)
        Rows between one mark and the next; first, in each leaf, those before all.
    """

    x: np.ndarray
    start: np.ndarray
    at: np.ndarray
    above: np.ndarray


def marks_of(values: LeafValues) -> Marks:
    """Marks at the different values of a sample's rows, nothing counted."""
    n_leaves = len(values.start) - 1
    leaf = np.repeat(np.arange(n_leaves), np.diff(values.start))
    is_new = np.ones(len(leaf), bool)
    is_new[1:] = (np.diff(leaf) > 0) | (values.x[1:] != values.x[:-1])
    start = np.concatenate([[0], np.cumsum(np.bincount(leaf[is_new], minlength=n_leaves))]).astype(np.int64)
    x = values.x[is_new]
    return Marks(x, start, np.zeros(len(x), np.int64), np.zeros(len(x) + n_leaves, np.int64))


def no_counts(marks: Marks) -> Marks:
    """The same marks, nothing counted."""
    return marks._replace(at=np.zeros_like(marks.at), above=np.zeros_like(marks.above))


def add_values(marks: Marks, x: np.ndarray, atom: np.ndarray, leaf_of: np.ndarray, count: np.ndarray) -> None:
    """Count cells ``x`` (n,) that lie on no ``atom`` (n,; -1), ``count`` (n,) times each, of rows in leaves (n,)."""
    # ascending, values find their marks beside those before: few steps, and memory that is at hand
    count_at(x, atom, leaf_of, count, np.argsort(x), marks.start[:-1].copy(), *marks)


def add_marks(marks: Marks, other: Marks) -> None:
    """Add the counts of other rows."""
    marks.at[...] += other.at
    marks.above[...] += other.above


def values_of_marks(marks: Marks, sums: LeafSums, slot: int, step: float, unit: float = 1.0) -> LeafValues:
    """The numbers of a slot's column as far as marks and sums tell; on a grid of ``step``, 0 for none.

    What counts 1 at marks is ``unit`` rows.
    """
    at, above = marks.at * unit, marks.above * unit
    count, mean, deviations, lowest, highest = sums.rest[slot].T
    n_leaves, m = len(count), len(marks.x)
    leaf = np.repeat(np.arange(n_leaves), np.diff(marks.start) + 1)  # of each gap between marks
    is_first, is_last = np.ones(len(leaf), bool), np.ones(len(leaf), bool)
    is_first[1:], is_last[:-1] = np.diff(leaf) > 0, np.diff(leaf) > 0
    before = np.arange(len(leaf)) - leaf - 1  # the mark where the gap begins
    low = np.where(is_first, lowest[leaf], marks.x[np.maximum(before, 0)] if m else 0.0)
    high = np.where(is_last, highest[leaf], marks.x[np.minimum(before + 1, m - 1)] if m else 0.0)
    # the ends of a leaf that are no marks are rows of the gap
    has_low, has_high = is_first & (above > 0), is_last & (above > 0)
    has_high &= ~has_low | (high > low)
    end = np.minimum(above / np.maximum(has_low.astype(float) + has_high, 1.0), 1.0)  # rows with weights may be less
    inside = above - end * has_low - end * has_high
    gap = np.flatnonzero(inside > 0)
    cells = np.rint((high - low)[gap] / step) - 1 if step > 0 else np.full(len(gap), np.inf)
    n_points = np.maximum(np.minimum(np.minimum(inside[gap], _MOST), cells), 1).astype(np.int64)
    of = np.repeat(np.arange(len(gap)), n_points)
    part = (np.arange(len(of)) - np.repeat(np.cumsum(n_points) - n_points, n_points) + 1.0) / (n_points[of] + 1)
    a, b = low[gap[of]], high[gap[of]]
    between = a + np.rint(part * (b - a) / step) * step if step > 0 else (1.0 - part) * a + part * b
    x = np.concatenate([marks.x, low[has_low], high[has_high], between])
    weight = np.concatenate([at, end[has_low], end[has_high], (inside[gap] / n_points)[of]])
    owner = np.repeat(np.arange(n_leaves), np.diff(marks.start))
    owner = np.concatenate([owner, leaf[has_low], leaf[has_high], leaf[gap[of]]])
    kept = weight > 0
    x, weight, owner = x[kept], weight[kept], owner[kept]
    order = np.lexsort((x, owner))
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_leaves))]).astype(np.int64)
    with np.errstate(over="ignore"):  # of the largest floats
        var = deviations / np.maximum(count, 1.0) * (sums.unit[slot] * sums.unit[slot])
    return LeafValues(x[order], weight[order], start, count, mean, var)
