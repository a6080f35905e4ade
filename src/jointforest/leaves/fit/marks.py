"""What quantile leaves are learned from where rows come in batches: how many lie at, and between, a sample's values.

The distribution function of a leaf's rows is known at each value of the sample's rows in it, and at their smallest and
largest; between two of these, rows are taken to lie evenly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .marks_kernels import MOST, count_at, numbers_at
from .sums import LeafSums
from .values import LeafValues


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
    count, mean, deviations, lowest, highest = sums.rest[slot].T
    n_leaves, n_gaps = len(count), len(marks.above)
    x, weight = np.empty((2, len(marks.x) + n_gaps * MOST + 2 * n_leaves))
    start = np.empty(n_leaves + 1, np.int64)
    ends = np.ascontiguousarray(lowest), np.ascontiguousarray(highest)
    numbers_at(marks.x, marks.start, marks.at * unit, marks.above * unit, *ends, step, x, weight, start)
    with np.errstate(over="ignore"):  # of the largest floats
        var = deviations / np.maximum(count, 1.0) * (sums.unit[slot] * sums.unit[slot])
    return LeafValues(x[: start[-1]].copy(), weight[: start[-1]].copy(), start, count, mean, var)
