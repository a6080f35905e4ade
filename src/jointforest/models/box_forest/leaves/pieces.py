"""Tables of pieces of densities (`Pieces`): make, read, join and select them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....runtime.arrays import ranges
from .table import PIECES, Leaves, Pieces


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
    """The m pieces of a numeric slot in n leaves: for each, the index into ``leaf`` and its number in the table.

    A density without pieces gives one entry, with the number -1.
    """
    cut = leaves.family[leaf, slot] == PIECES
    count = np.where(cut, leaves.b[leaf, slot], 1.0).astype(np.int64)
    first = np.where(cut, leaves.a[leaf, slot], -1.0).astype(np.int64)
    return np.repeat(np.arange(len(leaf)), count), ranges(first, count)


def stacked_pieces(parts: Sequence[Pieces], family: Sequence[np.ndarray], a: Sequence[np.ndarray]) -> Pieces:
    """The joined table of the pieces of several tables of leaves.

    Where ``family`` is PIECES, ``a`` is the number of the first piece. It is changed in place to the new number.
    """
    before = 0
    for part, of, first in zip(parts, family, a, strict=True):
        first[of == PIECES] += before
        before += len(part.log_weight)
    return pieces_of(*(np.concatenate(fields) for fields in zip(*(part[:6] for part in parts), strict=True)))


def taken_pieces(pieces: Pieces, family: np.ndarray, a: np.ndarray, b: np.ndarray) -> Pieces:
    """The table of only those pieces that leaves refer to by ``family``, ``a`` and ``b``, (l, p).

    Where ``family`` is PIECES, ``a`` is the number of the first piece. It is changed in place to the new number.
    """
    cut = family == PIECES
    first, count = a[cut].astype(np.int64), b[cut].astype(np.int64)
    start = np.cumsum(count) - count
    a[cut] = start
    taken = np.repeat(first - start, count) + np.arange(count.sum())
    return pieces_of(*(field[taken] for field in pieces[:6]))
