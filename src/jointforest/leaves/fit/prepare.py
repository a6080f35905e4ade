"""A table prepared for learning leaf densities, and what is known of each of its columns as a whole."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...table.columns import Columns
from ..levels.wide import layout
from .sums import LeafSums, narrow_at

NARROWEST = 1e-140  # smallest standard deviation of a column: the variance of its leaves is a float64 number


class Table(NamedTuple):
    """The rows to learn from, prepared once for all trees.

    Attributes
    ----------
    values : float64 array (d, n)
        Cells, grid columns snapped to cell centres; NaN where missing.
    codes : int32 array (d, n)
        Level codes of categorical columns, number of the atom of numeric ones; -1 where missing or on no atom.
    centre, spread, low, high : float64 arrays (p,)
        Mean, standard deviation (never 0), smallest and largest of each numeric slot's values that are on no atom.
    atom_share : float64 array (A,)
        Share of the column's rows on each atom.
    level_share : float64 array (S,)
        Smoothed marginal of each level, positive.
    missing : float64 array (d,)
        Share of missing cells.
    """

    values: np.ndarray
    codes: np.ndarray
    centre: np.ndarray
    spread: np.ndarray
    low: np.ndarray
    high: np.ndarray
    atom_share: np.ndarray
    level_share: np.ndarray
    missing: np.ndarray


def prepare(columns: Columns, X: np.ndarray) -> Table:
    """`Table` of X (n, d), whose grid columns are snapped (see `trees.ranks.snap`)."""
    values = np.ascontiguousarray(X.T)
    codes = codes_of(columns, values)
    own, atom_share = _no_scale(columns), np.zeros(int(columns.atom_start[-1]))
    level_share = np.zeros(int(columns.level_start[-1]))
    for j in range(len(values)):
        known = ~np.isnan(values[j])
        slot = columns.slot[j]
        if columns.is_categorical[j]:
            at = slice(columns.level_start[slot], columns.level_start[slot + 1])
            level_share[at] = _level_share(np.bincount(codes[j, known], minlength=at.stop - at.start))
            continue
        at = slice(columns.atom_start[slot], columns.atom_start[slot + 1])
        on = codes[j, codes[j] >= 0]
        atom_share[at] = np.bincount(on, minlength=at.stop - at.start) / max(known.sum(), 1)
        rest = values[j, known & (codes[j] < 0)]
        if len(rest) == 0:  # a column of atoms only: the rest is where they are
            rest = values[j, known]
        if len(rest) == 0:
            continue
        low, high = rest.min(), rest.max()
        unit = max(high - low, np.finfo(float).tiny)
        centre = low + unit * np.mean((rest - low) / unit)
        own.put(columns, slot, centre, unit * np.std((rest - centre) / unit), low, high)
    return Table(values, codes, *own, atom_share, level_share, np.isnan(values).mean(axis=1))


def marginals(columns: Columns, sums: LeafSums) -> Table:
    """`Table`, without its cells, of the rows that add up to the sums of a single leaf."""
    own, share = _no_scale(columns), np.zeros(int(columns.atom_start[-1]))
    n, level_share, where = float(sums.size[0]), np.zeros(int(columns.level_start[-1])), layout(columns)
    for j, slot in enumerate(columns.slot.tolist()):
        if columns.is_categorical[j]:
            at = slice(columns.level_start[slot], columns.level_start[slot + 1])
            if where.place[slot] >= 0:
                count = sums.levels[0, narrow_at(columns, where, slot)]
            else:
                listed = sums.wide[-1 - where.place[slot]]
                count = np.bincount(listed.level, listed.weight, at.stop - at.start)
            level_share[at] = _level_share(count)
            continue
        at = slice(columns.atom_start[slot], columns.atom_start[slot + 1])
        atoms, (weight, mean, deviations, low, high) = sums.atoms[0, at], sums.rest[slot, 0]
        share[at] = atoms / max(n - sums.missing[0, j], 1.0)
        if weight > 0:
            own.put(columns, slot, mean, sums.unit[slot] * np.sqrt(deviations / weight), low, high)
        elif atoms.sum() > 0:
            value = columns.atom_value[at]
            mean = np.average(value, weights=atoms)
            spread = np.sqrt(np.average((value - mean) ** 2, weights=atoms))
            own.put(columns, slot, mean, spread, value[atoms > 0].min(), value[atoms > 0].max())
    no_cells = np.empty((len(columns.slot), 0)), np.empty((len(columns.slot), 0), np.int32)
    return Table(*no_cells, *own, share, level_share, sums.missing[0] / n)


class _Scale(NamedTuple):
    """`Table`'s centre, spread, low and high."""

    centre: np.ndarray
    spread: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def put(self, columns: Columns, slot: int, centre: float, spread: float, low: float, high: float) -> None:
        """Set those of one slot; a spread of 0 becomes a small one."""
        if not spread > 0:
            spread = columns.step[slot] if columns.step[slot] > 0 else max(abs(centre) * 1e-3, 1e-3)
        self.centre[slot], self.spread[slot] = centre, max(spread, NARROWEST)
        self.low[slot], self.high[slot] = low, high


def _no_scale(columns: Columns) -> _Scale:
    p = len(columns.step)
    return _Scale(np.zeros(p), np.ones(p), np.zeros(p), np.zeros(p))


def _level_share(count: np.ndarray) -> np.ndarray:
    """Smoothed marginal of a column's levels (K,), positive."""
    return np.asarray((count + 1 / len(count)) / (count.sum() + 1))


def codes_of(columns: Columns, values: np.ndarray) -> np.ndarray:
    """`Table`'s codes of cells (d, n)."""
    codes = np.full(values.shape, -1, dtype=np.int32)
    for j, slot in enumerate(columns.slot.tolist()):
        if columns.is_categorical[j]:
            known = ~np.isnan(values[j])
            codes[j, known] = values[j, known].astype(np.int32)
            continue
        atoms = columns.atom_value[columns.atom_start[slot] : columns.atom_start[slot + 1]]
        for k, atom in enumerate(atoms):
            codes[j, np.abs(values[j] - atom) <= columns.step[slot] / 4] = k  # equal, or in the same cell of a grid
    return codes
