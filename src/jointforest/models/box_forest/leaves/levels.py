"""Level masses as dense arrays, and level masses weighed by likelihoods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....data.schema import Columns
from ....runtime.numeric_kernels import mix_rows
from ....runtime.records import record
from .level_kernels import fill_wide, mix_wide, sum_shares

if TYPE_CHECKING:
    Leaves = Any


# ---- Level masses of columns of many levels: what leaves share, and what is each one's own.

MANY_LEVELS = 64
"""Columns of more levels than this are wide: their level masses are `WideLevels`, those of others dense."""


@record
class WideLevels(NamedTuple):
    """Level masses of the w wide columns (W levels in all) in R parameter rows.

    A leaf's mass of a level is (its rows with the level + pseudo-rows * the column's share) / total, so most levels
    have the column's share times one factor of the leaf. The mass of level k of wide column t in row r is

        scale[r, t] * share[share_row[r, t], start[t] + k] * [k in set] + own

    where ``own`` is 0 but for the few levels that the row lists.

    place : int32 array (c,). First column of each slot in ``Leaves.level_mass``, or -1 - t if it is wide; derived.
    start : int32 array (w + 1,). Levels of wide column t are ``start[t]:start[t + 1]`` of a row of ``share``; derived.
    share : float64 array (G, W). What rows share, of any sum.
    share_row : int32 array (R, w)
    scale : float64 array (R, w)
    words : uint64 array (B,). Sets of levels: level k is bit ``k % 64`` of word ``k // 64`` of the set.
    set_at : int32 array (R, w). First word of the row's set.
    own_start : int64 array (R w + 1,). Row r lists ``own_start[r w + t]:own_start[r w + t + 1]`` of wide column t.
    own_level : int32 array (E,). Rising in each list.
    own_mass : float64 array (E,)
    """

    place: np.ndarray
    start: np.ndarray
    share: np.ndarray
    share_row: np.ndarray
    scale: np.ndarray
    words: np.ndarray
    set_at: np.ndarray
    own_start: np.ndarray
    own_level: np.ndarray
    own_mass: np.ndarray


class Layout(NamedTuple):
    """Where level masses are.

    place, start : int32 arrays (c,), (w + 1,). As in `WideLevels`.
    slots : int64 array (w,). Categorical slot of each wide column.
    narrow : int64 array. The levels of the other columns among all S: the columns of ``Leaves.level_mass``.
    """

    place: np.ndarray
    start: np.ndarray
    slots: np.ndarray
    narrow: np.ndarray


def layout(columns: Columns) -> Layout:
    """Where level masses of these columns are."""
    size = np.diff(columns.level_start)
    is_wide = size > MANY_LEVELS
    before = np.cumsum(np.where(is_wide, 0, size)) - np.where(is_wide, 0, size)
    place = np.where(is_wide, 0 - np.cumsum(is_wide), before).astype(np.int32)
    start = np.concatenate([[0], np.cumsum(size[is_wide])]).astype(np.int32)
    return Layout(place, start, np.flatnonzero(is_wide), np.flatnonzero(np.repeat(~is_wide, size)))


def words_of(size: Any) -> Any:
    """Words that a set of so many levels takes; an int, or an array of ints."""
    return (size + 63) // 64


def bits(member: np.ndarray) -> np.ndarray:
    """Sets of levels, bool (..., K), as words, uint64 (..., words): see `level_kernels.has_level`."""
    *shape, size = member.shape
    padded = np.zeros((*shape, 64 * words_of(size)), bool)
    padded[..., :size] = member
    return np.packbits(padded, axis=-1, bitorder="little").view("<u8").astype(np.uint64)


def members(words: np.ndarray, size: int) -> np.ndarray:
    """Which of so many levels are in the set that begins with the first word, bool (size,)."""
    return np.unpackbits(words[: words_of(size)].astype("<u8").view(np.uint8), bitorder="little")[:size].astype(bool)


def one_column(
    scale: np.ndarray, share: np.ndarray, member: np.ndarray, row: np.ndarray, level: np.ndarray, mass: np.ndarray
) -> WideLevels:
    """Masses of one wide column in R rows, from factors (R,), shares (K,), sets, and the rows' own levels."""
    sets, number = np.unique(bits(member), axis=0, return_inverse=True)
    n = len(scale)
    number = np.broadcast_to(number.reshape(-1, 1), (n, 1))
    return WideLevels(
        place=np.full(1, -1, np.int32),
        start=np.array([0, len(share)], np.int32),
        share=share.reshape(1, -1),
        share_row=np.zeros((n, 1), np.int32),
        scale=scale.reshape(-1, 1),
        words=sets.ravel(),
        set_at=(number * sets.shape[1]).astype(np.int32),
        own_start=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]),
        own_level=level.astype(np.int32),
        own_mass=mass,
    )


def side_by_side(where: Layout, columns: Sequence[WideLevels], n: int) -> WideLevels:
    """Wide columns, given one by one, as one table of n rows."""
    if not columns:
        return _empty(where.place, n)
    w = len(columns)
    share = np.zeros((max(len(column.share) for column in columns), int(where.start[-1])))
    for t, column in enumerate(columns):
        share[: len(column.share), where.start[t] : where.start[t + 1]] = column.share
    before = np.cumsum([0] + [len(column.words) for column in columns])
    key = np.concatenate(
        [np.repeat(np.arange(n) * w + t, np.diff(column.own_start)) for t, column in enumerate(columns)]
    )
    order = np.argsort(key, kind="stable")
    return WideLevels(
        place=where.place,
        start=where.start,
        share=share,
        share_row=np.concatenate([column.share_row for column in columns], axis=1),
        scale=np.concatenate([column.scale for column in columns], axis=1),
        words=np.concatenate([column.words for column in columns]),
        set_at=np.concatenate(
            [column.set_at + k for column, k in zip(columns, before[:-1], strict=True)], axis=1
        ).astype(np.int32),
        own_start=np.concatenate([[0], np.cumsum(np.bincount(key, minlength=n * w))]),
        own_level=np.concatenate([column.own_level for column in columns])[order],
        own_mass=np.concatenate([column.own_mass for column in columns])[order],
    )


def apart(wide: WideLevels, t: int, rows: np.ndarray | None = None) -> WideLevels:
    """Wide column t alone, of these rows (default: all), with no share or set that none of them needs."""
    R, w = wide.scale.shape
    rows = np.arange(R) if rows is None else rows
    begin, end = wide.own_start[rows * w + t], wide.own_start[rows * w + t + 1]
    size = int(wide.start[t + 1] - wide.start[t])
    used, share_row = np.unique(wide.share_row[rows, t], return_inverse=True)
    at, number = np.unique(wide.set_at[rows, t], return_inverse=True)
    n_words = words_of(size)
    listed = np.repeat(begin - np.concatenate([[0], np.cumsum(end - begin)[:-1]]), end - begin)
    listed += np.arange(len(listed))
    return WideLevels(
        place=np.full(1, -1, np.int32),
        start=np.array([0, size], np.int32),
        share=wide.share[used, wide.start[t] : wide.start[t + 1]],
        share_row=share_row.reshape(-1, 1).astype(np.int32),
        scale=wide.scale[rows, t : t + 1],
        words=wide.words[(at[:, None] + np.arange(n_words)).ravel()],
        set_at=(number.reshape(-1, 1) * n_words).astype(np.int32),
        own_start=np.concatenate([[0], np.cumsum(end - begin)]),
        own_level=wide.own_level[listed],
        own_mass=wide.own_mass[listed],
    )


def take_levels(where: Layout, wide: WideLevels, rows: np.ndarray, columns: Sequence[int] | None = None) -> WideLevels:
    """These rows, and these wide columns (default: all), which ``where`` has; without unneeded parts."""
    numbers = range(wide.scale.shape[1]) if columns is None else columns
    return side_by_side(where, [apart(wide, t, rows) for t in numbers], len(rows))


def stacked(parts: Sequence[WideLevels]) -> WideLevels:
    """Tables of the same columns, one below the other; equal shares are kept once."""
    first = np.cumsum([0] + [len(part.share) for part in parts])
    if not parts[0].scale.shape[1]:
        return _empty(parts[0].place, sum(len(part.scale) for part in parts))
    share, number = np.unique(np.concatenate([part.share for part in parts]), axis=0, return_inverse=True)
    number = number.ravel().astype(np.int32)
    before = np.cumsum([0] + [len(part.words) for part in parts])
    listed = np.cumsum([0] + [len(part.own_level) for part in parts])
    return WideLevels(
        place=parts[0].place,
        start=parts[0].start,
        share=share,
        share_row=np.concatenate([number[p.share_row + k] for p, k in zip(parts, first[:-1], strict=True)]),
        scale=np.concatenate([part.scale for part in parts]),
        words=np.concatenate([part.words for part in parts]),
        set_at=np.concatenate([p.set_at + k for p, k in zip(parts, before[:-1], strict=True)]).astype(np.int32),
        own_start=np.concatenate(
            [[0], *(part.own_start[1:] + k for part, k in zip(parts, listed[:-1], strict=True))]
        ).astype(np.int64),
        own_level=np.concatenate([part.own_level for part in parts]),
        own_mass=np.concatenate([part.own_mass for part in parts]),
    )


def no_wide(where: Layout, n: int) -> WideLevels:
    """The table of n rows where no column is wide."""
    return _empty(where.place, n)


def _empty(place: np.ndarray, n: int) -> WideLevels:
    number = np.zeros((n, 0), np.int32)
    return WideLevels(
        place=place,
        start=np.zeros(1, np.int32),
        share=np.zeros((1, 0)),
        share_row=number,
        scale=np.zeros((n, 0)),
        words=np.zeros(0, np.uint64),
        set_at=number,
        own_start=np.zeros(1, np.int64),
        own_level=np.zeros(0, np.int32),
        own_mass=np.zeros(0),
    )


def dense_levels(columns: Columns, leaves: Leaves, slot: int, rows: np.ndarray | None = None) -> np.ndarray:
    """Level masses of a categorical slot in parameter rows (default: all), float64 (m, K)."""
    place, size = int(leaves.wide.place[slot]), columns.n_levels(slot)
    if place >= 0:
        dense: np.ndarray = leaves.level_mass[:, place : place + size]
        return dense if rows is None else dense[rows]
    rows = np.arange(len(leaves.tree)) if rows is None else rows.astype(np.int64)
    out = np.zeros((len(rows), size))
    fill_wide(leaves.wide, -1 - place, rows, out)
    return out


def mixed_level_masses(columns: Columns, leaves: Leaves, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Level masses of all categorical slots in the mixture of parameter rows (m,), int32, by weight (m,); (S,)."""
    where = layout(columns)
    narrow = np.zeros(leaves.level_mass.shape[1])
    mix_rows(leaves.level_mass, rows, weight, narrow)
    if not len(where.slots):
        return narrow
    out = np.zeros(int(columns.level_start[-1]))
    out[where.narrow] = narrow
    for t, slot in enumerate(where.slots.tolist()):
        mix_wide(leaves.wide, t, rows, weight, out[columns.levels_of(slot)])
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
    listed = mass.own_mass * likelihood[mass.own_level]
    return np.asarray(mass.scale[:, 0] * shared[kind] + np.bincount(_row_of_entry(mass), listed, len(mass.scale)))


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


def weighed_levels(column: WideLevels, likelihood: np.ndarray) -> WideLevels:
    """The masses of one wide column given likelihoods (K,) of its levels; a row that has none of these stays."""
    row = _row_of_entry(column)
    share, listed = column.share * likelihood, column.own_mass * likelihood[column.own_level]
    total = weighed_sums(column, likelihood)
    is_possible = total > 0
    divisor = np.where(is_possible, total, 1.0)
    return column._replace(
        share=np.concatenate([column.share, share]),
        share_row=np.where(is_possible[:, None], column.share_row + len(share), column.share_row).astype(np.int32),
        scale=column.scale / divisor[:, None],
        own_mass=np.where(is_possible[row], listed / divisor[row], column.own_mass),
    )
