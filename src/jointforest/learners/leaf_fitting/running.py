"""Sums over the rows of leaves in batches: the same whatever the batches, and the order in which they come. What is
counted is counted in whole numbers; what is added up is added with twice the precision of float64."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...data.schema import Columns
from ...models.box_forest.leaves.levels import layout
from ...runtime.arrays import sums_by_key
from .fit import LeafSums, ListedLevels
from .quantile import Marks, add_marks, add_values
from .running_kernels import add_numbers, add_pairs, count_levels, moments_of

_WAITING = 2_000_000
"""Levels of a wide column that wait to be counted, which bounds memory."""


class Running(NamedTuple):
    """Sums over the rows in each of the l leaves of a tree, to which rows can be added.

    rows : int64 array (). Rows in all.
    size : int64 array (l,). What rows count for in all, as everything below: 1 each, or whole numbers by their weights.
    atoms : list of p int64 arrays (l, n_atoms)
    cells : int64 array (p, l, 2). Rows whose number is missing, and whose number lies on no atom.
    ends : float64 array (p, l, 2). Smallest and largest of the latter.
    total, squares : float64 arrays (p, l, 2). Sums of their distances from ``centre`` over ``unit``, and of the
        squares, as pairs: see `running_kernels`.
    absent : int64 array (c, l). Rows whose level is missing.
    levels : list of int64 arrays (l, K). Rows with each level, of the columns that are not wide.
    wide : list of lists of (keys, counts). Of each wide column: leaf times number of levels plus level, ascending, and
        how many rows, each int64 (k,); the counts are those of all of the list.
    centre, unit : float64 arrays (p,)
    marks : dict of slot to Marks. Rows at and between marks, of columns with quantile leaves.
    """

    rows: np.ndarray
    size: np.ndarray
    atoms: list[np.ndarray]
    cells: np.ndarray
    ends: np.ndarray
    total: np.ndarray
    squares: np.ndarray
    absent: np.ndarray
    levels: list[np.ndarray]
    wide: list[list[tuple[np.ndarray, np.ndarray]]]
    centre: np.ndarray
    unit: np.ndarray
    marks: Mapping[int, Marks]


def no_leaf_rows(
    columns: Columns, n_leaves: int, centre: np.ndarray, unit: np.ndarray, marks: Mapping[int, Marks]
) -> Running:
    """Sums without any row."""
    p, where = len(columns.step), layout(columns)
    sizes = np.diff(columns.level_start)
    return Running(
        rows=np.zeros((), np.int64),
        size=np.zeros(n_leaves, np.int64),
        atoms=[np.zeros((n_leaves, n_atoms), np.int64) for n_atoms in np.diff(columns.atom_start)],
        cells=np.zeros((p, n_leaves, 2), np.int64),
        ends=np.broadcast_to([np.inf, -np.inf], (p, n_leaves, 2)).copy(),
        total=np.zeros((p, n_leaves, 2)),
        squares=np.zeros((p, n_leaves, 2)),
        absent=np.zeros((len(sizes), n_leaves), np.int64),
        levels=[np.zeros((n_leaves, K), np.int64) for K in sizes[where.place >= 0]],
        wide=[[] for _ in where.slots],
        centre=centre,
        unit=unit,
        marks=marks,
    )


def add_leaf_rows(
    sums: Running, columns: Columns, values: np.ndarray, codes: np.ndarray, leaf_of: np.ndarray, count: np.ndarray
) -> None:
    """Add rows, as in `fit.Table` (d, n), that end in these leaves, int32 (n,), so many times each, int64 (n,)."""
    place = layout(columns).place
    sums.rows[...] += len(leaf_of)
    np.add.at(sums.size, leaf_of, count)
    narrow = iter(sums.levels)
    for j, slot in enumerate(columns.slot.tolist()):
        if not columns.is_categorical[j]:
            scale = np.array([sums.centre[slot], sums.unit[slot]])
            into = sums.atoms[slot], sums.cells[slot], sums.ends[slot], sums.total[slot], sums.squares[slot]
            add_numbers(values[j], codes[j], leaf_of, count, scale, *into)
            if slot in sums.marks:
                add_values(sums.marks[slot], values[j], codes[j], leaf_of, count)
        elif place[slot] >= 0:
            count_levels(codes[j], leaf_of, count, next(narrow), sums.absent[slot])
        else:
            known = codes[j] >= 0
            np.add.at(sums.absent[slot], leaf_of[~known], count[~known])
            keys = leaf_of[known].astype(np.int64) * columns.n_levels(slot) + codes[j][known]
            _add_wide(sums.wide[-1 - place[slot]], *sums_by_key(keys, count[known]))


def add_sums(sums: Running, other: Running) -> None:
    """Add the sums over other rows to the sums."""
    for field in ("rows", "size", "cells", "absent"):
        getattr(sums, field)[...] += getattr(other, field)
    for sums_here, more in zip(sums.atoms + sums.levels, other.atoms + other.levels, strict=True):
        sums_here += more
    np.minimum(sums.ends[..., 0], other.ends[..., 0], out=sums.ends[..., 0])
    np.maximum(sums.ends[..., 1], other.ends[..., 1], out=sums.ends[..., 1])
    for slot in range(len(sums.total)):
        add_pairs(sums.total[slot], other.total[slot])
        add_pairs(sums.squares[slot], other.squares[slot])
    for slot, marks in sums.marks.items():
        add_marks(marks, other.marks[slot])
    for counted, parts in zip(sums.wide, other.wide, strict=True):
        for part in parts:
            _add_wide(counted, *part)


def leaf_sums_of(columns: Columns, sums: Running, unit: float = 1.0) -> LeafSums:
    """The sums as leaf densities are made from them; what counts 1 there counts ``unit`` rows here."""
    p, n_leaves = sums.cells.shape[:2]
    off_atoms = np.zeros((p, n_leaves, 5))
    for slot in range(p):
        mean, deviations, count = np.empty(n_leaves), np.empty(n_leaves), sums.cells[slot, :, 1].copy()
        moments_of(count, sums.total[slot], sums.squares[slot], mean, deviations)
        known = count > 0
        # a mean lies between the ends, and rounding does not take it beyond
        mean = np.clip(sums.centre[slot] + sums.unit[slot] * mean, *sums.ends[slot].T)
        off_atoms[slot, known] = np.column_stack([count * unit, mean, deviations * unit, sums.ends[slot]])[known]
    missing = np.empty((n_leaves, len(columns.slot)))
    is_level = columns.is_categorical == 1
    missing[:, ~is_level], missing[:, is_level] = sums.cells[:, :, 0].T, sums.absent.T
    wide = []
    for slot, parts in zip(layout(columns).slots.tolist(), sums.wide, strict=True):
        keys, counts = _counted(parts)
        wide.append(ListedLevels(*np.divmod(keys, columns.n_levels(slot)), counts * unit))
    atoms, levels = (np.concatenate([np.empty((n_leaves, 0)), *of], axis=1) for of in (sums.atoms, sums.levels))
    return LeafSums(sums.size * unit, missing * unit, atoms * unit, off_atoms, sums.unit, levels * unit, tuple(wide))


def one_leaf(columns: Columns, sums: Running) -> Running:
    """The sums of all leaves as those of a single one."""
    wide = []
    for parts, slot in zip(sums.wide, layout(columns).slots.tolist(), strict=True):
        keys, counts = _counted(parts)
        wide.append([sums_by_key(keys % columns.n_levels(slot), counts)])
    return sums._replace(
        size=sums.size.sum(keepdims=True),
        atoms=[of.sum(axis=0, keepdims=True) for of in sums.atoms],
        cells=sums.cells.sum(axis=1, keepdims=True),
        ends=np.stack([sums.ends[..., 0].min(axis=1), sums.ends[..., 1].max(axis=1)], axis=1)[:, None],
        total=_pair_of_all(sums.total),
        squares=_pair_of_all(sums.squares),
        marks={},
        absent=sums.absent.sum(axis=1, keepdims=True),
        levels=[of.sum(axis=0, keepdims=True) for of in sums.levels],
        wide=wide,
    )


def _pair_of_all(pairs: np.ndarray) -> np.ndarray:
    """The sums (p, 1, 2) of pairs (p, l, 2), as pairs."""
    sums = np.empty((len(pairs), 1, 2))
    for slot, of in enumerate(pairs):
        high = math.fsum(of.ravel())
        sums[slot, 0] = high, math.fsum([-high, *of.ravel()])
    return sums


def _add_wide(parts: list[tuple[np.ndarray, np.ndarray]], keys: np.ndarray, counts: np.ndarray) -> None:
    """Add counts of keys; many that wait are counted together."""
    parts.append((keys, counts))
    if sum(len(part) for part, _ in parts[1:]) > max(_WAITING, len(parts[0][0])):
        parts[:] = [_counted(parts)]


def _counted(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """All keys, ascending, and their counts."""
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return sums_by_key(*(np.concatenate(each) for each in zip(*parts, strict=True)))
