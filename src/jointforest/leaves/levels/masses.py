"""Level masses as dense arrays, and level masses weighed by likelihoods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...table.columns import Columns
from .level_kernels import add_shared, fill_wide, mix_wide
from .wide import WideLevels, layout

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


def mixed_levels(columns: Columns, leaves: Leaves, weight: np.ndarray) -> np.ndarray:
    """Level masses of all categorical slots in the mixture of the parameter rows by weight (R,), float64 (S,)."""
    where = layout(columns)
    if not len(where.slots):
        return np.asarray(weight @ leaves.level_mass)
    out = np.zeros(int(columns.level_start[-1]))
    out[where.narrow] = weight @ leaves.level_mass
    for t, slot in enumerate(where.slots.tolist()):
        mix_wide(leaves.wide, t, weight, out[columns.level_start[slot] : columns.level_start[slot + 1]])
    return out


def weighed(column: WideLevels, likelihood: np.ndarray) -> WideLevels:
    """The masses of one wide column given likelihoods (K,) of its levels; a row that has none of these stays."""
    n, row = len(column.scale), np.repeat(np.arange(len(column.scale)), np.diff(column.own_start))
    share, own = column.share * likelihood, column.own_mass * likelihood[column.own_level]
    total = np.bincount(row, own, n).astype(np.float64)
    add_shared(column._replace(share=share), 0, total)
    some = total > 0
    divisor = np.where(some, total, 1.0)
    return column._replace(
        share=np.concatenate([column.share, share]),
        share_row=np.where(some[:, None], column.share_row + len(share), column.share_row).astype(np.int32),
        scale=column.scale / divisor[:, None],
        own_mass=np.where(some[row], own / divisor[row], column.own_mass),
    )
