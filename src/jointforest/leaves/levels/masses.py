"""Level masses as dense arrays, and level masses weighed by likelihoods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...ground.mixture_kernels import mix_rows
from ...table.columns import Columns
from .level_kernels import fill_wide, mix_wide, sum_shares
from .wide import WideLevels, apart, layout

if TYPE_CHECKING:
    Leaves = Any  # of the room below: this one knows a few fields of it


def dense_levels(columns: Columns, leaves: Leaves, slot: int, rows: np.ndarray | None = None) -> np.ndarray:
    """Level masses of a categorical slot in parameter rows (default: all), float64 (m, K)."""
    place, size = int(leaves.wide.place[slot]), int(columns.level_start[slot + 1] - columns.level_start[slot])
    if place >= 0:
        found: np.ndarray = leaves.level_mass[:, place : place + size]
        return found if rows is None else found[rows]
    rows = np.arange(len(leaves.tree)) if rows is None else rows.astype(np.int64)
    out = np.zeros((len(rows), size))
    fill_wide(leaves.wide, -1 - place, rows, out)
    return out


def mixed_levels(columns: Columns, leaves: Leaves, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Level masses of all categorical slots in the mixture of parameter rows (m,), int32, by weight (m,); (S,)."""
    where = layout(columns)
    narrow = np.zeros(leaves.level_mass.shape[1])
    mix_rows(leaves.level_mass, rows, weight, narrow)
    if not len(where.slots):
        return narrow
    out = np.zeros(int(columns.level_start[-1]))
    out[where.narrow] = narrow
    for t, slot in enumerate(where.slots.tolist()):
        mix_wide(leaves.wide, t, rows, weight, out[columns.level_start[slot] : columns.level_start[slot + 1]])
    return out


def levels_of_slot(columns: Columns, leaves: Leaves, slot: int, rows: np.ndarray) -> np.ndarray | WideLevels:
    """Level masses of a categorical slot in parameter rows (m,): float64 (m, K), or of many levels the wide column."""
    place = int(leaves.wide.place[slot])
    return dense_levels(columns, leaves, slot, rows) if place >= 0 else apart(leaves.wide, -1 - place, rows)


def mixed_over_rows(mass: np.ndarray | WideLevels, weight: np.ndarray) -> np.ndarray:
    """Level masses of one slot in the mixture of its m rows by weight (m,), float64 (K,)."""
    if isinstance(mass, np.ndarray):
        return np.asarray(weight @ mass)
    kinds, kind = _kinds(mass)
    out = np.bincount(mass.own_level, weight[_row_of_entry(mass)] * mass.own_mass, mass.share.shape[1])
    total = np.bincount(kind, weight * mass.scale[:, 0], len(kinds.scale))
    mix_wide(kinds, 0, np.arange(len(total), dtype=np.int32), total, out)
    return out


def weighed_sums(mass: np.ndarray | WideLevels, likelihood: np.ndarray) -> np.ndarray:
    """Sums of the level masses of one slot, weighed by likelihoods (K,), in each of its m rows; float64 (m,)."""
    if isinstance(mass, np.ndarray):
        return np.asarray(mass @ likelihood)
    kinds, kind = _kinds(mass)
    shared = np.empty(len(kinds.scale))
    sum_shares(kinds._replace(share=kinds.share * likelihood), 0, shared)
    own = mass.own_mass * likelihood[mass.own_level]
    return np.asarray(mass.scale[:, 0] * shared[kind] + np.bincount(_row_of_entry(mass), own, len(mass.scale)))


def _kinds(column: WideLevels) -> tuple[WideLevels, np.ndarray]:
    """The different shares and sets that rows of one wide column have, as rows of scale 1; which each row (m,) has."""
    pairs = column.share_row[:, 0].astype(np.int64) * (len(column.words) + 1) + column.set_at[:, 0]
    _, first, kind = np.unique(pairs, return_index=True, return_inverse=True)
    kinds = column._replace(
        share_row=column.share_row[first],
        scale=np.ones((len(first), 1)),
        set_at=column.set_at[first],
        own_start=np.zeros(len(first) + 1, np.int64),
    )
    return kinds, kind.ravel()


def _row_of_entry(column: WideLevels) -> np.ndarray:
    """The row that each listed level of one wide column is of, (E,)."""
    return np.repeat(np.arange(len(column.scale)), np.diff(column.own_start))


def weighed(column: WideLevels, likelihood: np.ndarray) -> WideLevels:
    """The masses of one wide column given likelihoods (K,) of its levels; a row that has none of these stays."""
    row = _row_of_entry(column)
    share, own = column.share * likelihood, column.own_mass * likelihood[column.own_level]
    total = weighed_sums(column, likelihood)
    some = total > 0
    divisor = np.where(some, total, 1.0)
    return column._replace(
        share=np.concatenate([column.share, share]),
        share_row=np.where(some[:, None], column.share_row + len(share), column.share_row).astype(np.int32),
        scale=column.scale / divisor[:, None],
        own_mass=np.where(some[row], own / divisor[row], column.own_mass),
    )
