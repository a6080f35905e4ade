"""What the rows of each leaf of a tree add up to: all that leaf densities of independent columns are made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...table.columns import Columns
from ..levels.wide import Layout, layout
from .statistics_kernels import level_counts, numeric_statistics, wide_level_counts


class Listed(NamedTuple):
    """Levels of one column that occur in leaves, by leaf, then by level, and the weight of their rows; arrays (k,)."""

    leaf: np.ndarray
    level: np.ndarray
    weight: np.ndarray


class LeafSums(NamedTuple):
    """Sums over the rows in each of the l leaves of a tree, each row by its weight.

    Attributes
    ----------
    size : float64 array (l,)
        Weight of the rows.
    missing : float64 array (l, d)
        Of those whose cell is missing.
    atoms : float64 array (l, A)
        Of those on each atom.
    rest : float64 array (p, l, 5)
        Of the other numbers of each numeric slot: weight, mean, sum of squared deviations over the slot's ``unit``
        squared, smallest, largest.
    unit : float64 array (p,)
    levels : float64 array (l, S')
        Weight of the rows with each level, of columns that are not wide, as in ``Leaves.level_mass``.
    wide : tuple of Listed
        Levels of the wide columns.
    """

    size: np.ndarray
    missing: np.ndarray
    atoms: np.ndarray
    rest: np.ndarray
    unit: np.ndarray
    levels: np.ndarray
    wide: tuple[Listed, ...]


NONE = Listed(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def leaf_sums(
    columns: Columns,
    cells: tuple[np.ndarray, np.ndarray],
    unit: np.ndarray,
    rows: np.ndarray,
    start: np.ndarray,
    weight: np.ndarray,
    only: Sequence[int] | None = None,
) -> LeafSums:
    """Sums of rows at hand.

    Parameters
    ----------
    cells : float64 and int32 arrays (d, n)
        `prepare.Table`'s values and codes.
    unit : float64 array (p,)
        What deviations are measured in.
    rows : int32 array (m,), start : int64 array (l + 1,)
        The rows of leaf k are ``rows[start[k]:start[k + 1]]``, see `statistics_kernels.rows_by_leaf`.
    weight : float64 array (n,)
        How much each row of the table counts; positive for ``rows``.
    only : sequence of int, optional
        Columns that are asked for.
    """
    values, codes = cells
    n_leaves, d, p = len(start) - 1, len(columns.slot), len(columns.step)
    where = layout(columns)
    weight = np.ascontiguousarray(weight)  # the kernels are compiled for one layout
    missing, atoms = np.zeros((n_leaves, d)), np.zeros((n_leaves, len(columns.atom_value)))
    rest, levels = np.zeros((p, n_leaves, 5)), np.zeros((n_leaves, len(where.narrow)))
    wide = [NONE] * len(where.slots)
    for j in range(d) if only is None else only:
        slot, absent = columns.slot[j], np.zeros(n_leaves)
        if not columns.is_categorical[j]:
            at = slice(columns.atom_start[slot], columns.atom_start[slot + 1])
            on = np.zeros((n_leaves, at.stop - at.start))
            numeric_statistics(values[j], codes[j], rows, start, weight, unit[slot], on, rest[slot], absent)
            atoms[:, at] = on
        elif where.place[slot] < 0:
            wide[-1 - where.place[slot]] = _listed(codes[j], rows, start, weight, size_of(columns, slot), absent)
        else:
            counts = np.zeros((n_leaves, size_of(columns, slot)))
            level_counts(codes[j], rows, start, weight, counts, absent)
            levels[:, narrow_at(columns, where, slot)] = counts
        missing[:, j] = absent
    size = np.bincount(np.repeat(np.arange(n_leaves), np.diff(start)), weight[rows], minlength=n_leaves)
    return LeafSums(size, missing, atoms, rest, unit, levels, tuple(wide))


def size_of(columns: Columns, slot: int) -> int:
    """Number of levels of a categorical slot."""
    return int(columns.level_start[slot + 1] - columns.level_start[slot])


def narrow_at(columns: Columns, where: Layout, slot: int) -> slice:
    """Place of a column's levels among those of the columns that are not wide."""
    return slice(int(where.place[slot]), int(where.place[slot]) + size_of(columns, slot))


def _listed(
    codes: np.ndarray, rows: np.ndarray, start: np.ndarray, weight: np.ndarray, n_levels: int, missing: np.ndarray
) -> Listed:
    """Levels of one column of many levels; weights of missing cells (l,) are written."""
    found = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64), np.empty(len(rows))
    n = wide_level_counts(codes, rows, start, weight, np.zeros(n_levels), found, missing)
    return Listed(*(x[:n].copy() for x in found))
