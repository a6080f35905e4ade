"""Parameters of leaves: each table has one row per leaf, and there is one table per kind of column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....runtime.arrays import ranges
from ....runtime.records import record
from .levels import WideLevels

NORMAL = np.uint8(0)
"""Family code: normal(a = mean, b = standard deviation of the untruncated parent) truncated to (lo, hi]."""
UNIFORM = np.uint8(1)
"""Family code: uniform on (lo, hi], both finite; a and b unused (0)."""
STUDENT = np.uint8(2)
"""Family code: Student t with 4 degrees of freedom, a = location, b = scale, truncated to (lo, hi]."""


class Density(NamedTuple):
    """The continuous part of one numeric slot in one parameter row; fields as in `Leaves`. Kernels make it with
    `density_kernels.density_of`. It is passed by value, so that it stays in registers."""

    family: Any
    a: Any
    b: Any
    lo: Any
    hi: Any
    log_norm: Any


PIECES = np.uint8(255)
"""Family code: the density is cut into the b pieces of `Pieces` from number a on."""


@record
class Pieces(NamedTuple):
    """P densities, each a piece of the continuous part of one numeric slot in one leaf.

    The pieces of one slot in one leaf are neighbours in the table, disjoint and ascending.

    Quantile leaves consist of uniform pieces. Conditioning on several intervals makes pieces of any family.

    family : uint8 array (P, 1)
    a, b, lo, hi : float64 arrays (P, 1). As in `Leaves`, of a table of one slot.
    log_weight : float64 array (P,). Log of the share of the slot's continuous part that is in the piece.
    log_norm : float64 array (P, 1). As in `Leaves`; derived.
    below : float64 array (P,). Sum of the shares of the slot's pieces before this one; derived.
    """

    family: np.ndarray
    a: np.ndarray
    b: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    log_weight: np.ndarray
    log_norm: np.ndarray
    below: np.ndarray


class ParameterTables(NamedTuple):
    """The fields of `Leaves` that define the leaves; `derived.make_leaves` computes the other fields.

    tree, log_weight, family, a, b, lo, hi, atom_mass, level_mass, missing_rate : array-like. As in `Leaves`.
    wide : WideLevels, optional. As in `Leaves`; None where no column is wide.
    pieces : Pieces, optional. As in `Leaves`; None where there are none. Its derived fields are computed anew.
    """

    tree: Any
    log_weight: Any
    family: Any
    a: Any
    b: Any
    lo: Any
    hi: Any
    atom_mass: Any
    level_mass: Any
    missing_rate: Any
    wide: WideLevels | None = None
    pieces: Pieces | None = None


@record
class Leaves(NamedTuple):
    """Parameters of L leaves of T trees, over p numeric and c categorical slots with A atoms and S levels in total.

    Row l is leaf l: a product, over columns, of one distribution each. A numeric slot s has mass ``atom_mass[l, k]`` on
    each of its atoms k; the rest has a truncated density of family ``family[l, s]``, or several, its `Pieces`.

    tree : int32 array (L,). Tree of the leaf.
    log_weight : float64 array (L,). log of pi_t * w_tl; ``exp`` of it sums to 1 over all leaves of all trees.
    family : uint8 array (L, p)
    a, b : float64 array (L, p). Parameters of the family; b > 0 where it is a scale.
    lo, hi : float64 array (L, p). Support of the continuous part, lo < hi, may be infinite; on a grid cell edges.
    log_norm : float64 array (L, p). log of the mass that the untruncated parent gives to (lo, hi]; derived, not saved.
    atom_mass : float64 array (L, A)
    log_rest : float64 array (L, p). log of 1 - the slot's atom masses (-inf if nothing is left); derived.
    level_mass : float64 array (L, S'). Masses of the S' levels of columns that are not in ``wide``; 0 outside the box.
    log_level : float64 array (L, S'). log of ``level_mass``; derived.
    wide : WideLevels. Level masses of the columns of many levels. `level_kernels` reads both forms.
    missing_rate : float64 array (L, d). Share of the leaf's rows in which the column is missing.
    pieces : Pieces. The pieces of all slots of family PIECES.
    """

    tree: np.ndarray
    log_weight: np.ndarray
    family: np.ndarray
    a: np.ndarray
    b: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    log_norm: np.ndarray
    atom_mass: np.ndarray
    log_rest: np.ndarray
    level_mass: np.ndarray
    log_level: np.ndarray
    wide: WideLevels
    missing_rate: np.ndarray
    pieces: Pieces


# ---- Tables of pieces of densities (`Pieces`): make, read, join and select them.


def no_pieces() -> Pieces:
    """The empty table of pieces."""
    column = np.empty((0, 1))
    return Pieces(column.astype(np.uint8), column, column, column, column, column[:, 0], column, column[:, 0])


def pieces_of(*fields: np.ndarray) -> Pieces:
    """The table of P pieces from their family, a, b, lo, hi and log weight, each (P,) or (P, 1); no derived fields."""
    *densities, log_weight = fields
    named = dict(zip(("family", "a", "b", "lo", "hi"), (np.reshape(of, (-1, 1)) for of in densities), strict=True))
    return no_pieces()._replace(**named, log_weight=log_weight)


def pieces_of_slot(leaves: Leaves, slot: int, leaf: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The m pieces of a numeric slot in n leaves: for each, the index into ``leaf`` and its number in the table."""
    # A density without pieces gives one entry, with the number -1.
    cut = leaves.family[leaf, slot] == PIECES
    count = np.where(cut, leaves.b[leaf, slot], 1.0).astype(np.int64)
    first = np.where(cut, leaves.a[leaf, slot], -1.0).astype(np.int64)
    return np.repeat(np.arange(len(leaf)), count), ranges(first, count)


def stacked_pieces(parts: Sequence[Pieces], family: Sequence[np.ndarray], a: Sequence[np.ndarray]) -> Pieces:
    """The joined table of the pieces of several tables of leaves."""
    # Where ``family`` is PIECES, ``a`` is the number of the first piece. It is changed in place to the new number.
    before = 0
    for part, of, first in zip(parts, family, a, strict=True):
        first[of == PIECES] += before
        before += len(part.log_weight)
    return pieces_of(*(np.concatenate(fields) for fields in zip(*(part[:6] for part in parts), strict=True)))


def taken_pieces(pieces: Pieces, family: np.ndarray, a: np.ndarray, b: np.ndarray) -> Pieces:
    """The table of only those pieces that leaves refer to by ``family``, ``a`` and ``b``, (l, p)."""
    # Where ``family`` is PIECES, ``a`` is the number of the first piece. It is changed in place to the new number.
    cut = family == PIECES
    first, count = a[cut].astype(np.int64), b[cut].astype(np.int64)
    start = np.cumsum(count) - count
    a[cut] = start
    taken = np.repeat(first - start, count) + np.arange(count.sum())
    return pieces_of(*(field[taken] for field in pieces[:6]))
