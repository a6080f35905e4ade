"""Pieces of densities: tables of them, put together and taken apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .table import PIECES, Leaves, Pieces


def no_pieces() -> Pieces:
    """The table of no pieces."""
    column = np.empty((0, 1))
    return Pieces(column.astype(np.uint8), column, column, column, column, column[:, 0], column, column[:, 0])


def pieces_of(*fields: np.ndarray) -> Pieces:
    """The table of P pieces of these family, a, b, lo, hi and log weight, (P,) or (P, 1); what is derived is empty."""
    *densities, log_weight = fields
    named = dict(zip(("family", "a", "b", "lo", "hi"), (np.reshape(of, (-1, 1)) for of in densities), strict=True))
    return no_pieces()._replace(**named, log_weight=log_weight)


def pieces_of_slot(leaves: Leaves, slot: int, leaf: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pieces of a numeric slot in leaves (n,): the place of each one's leaf, (m,), and its number; -1: a whole."""
    cut = leaves.family[leaf, slot] == PIECES
    count = np.where(cut, leaves.b[leaf, slot], 1.0).astype(np.int64)
    first = np.where(cut, leaves.a[leaf, slot], -1.0).astype(np.int64)
    number = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
    return np.repeat(np.arange(len(leaf)), count), number


def stacked_pieces(parts: Sequence[Pieces], family: Sequence[np.ndarray], a: Sequence[np.ndarray]) -> Pieces:
    """The pieces of several tables of leaves; where their ``family`` is PIECES, their ``a`` is changed in place."""
    before = 0
    for part, of, first in zip(parts, family, a, strict=True):
        first[of == PIECES] += before
        before += len(part.log_weight)
    return pieces_of(*(np.concatenate(fields) for fields in zip(*(part[:6] for part in parts), strict=True)))


def taken_pieces(pieces: Pieces, family: np.ndarray, a: np.ndarray, b: np.ndarray) -> Pieces:
    """The pieces that leaves in tables (l, p) need; where their ``family`` is PIECES, ``a`` is changed in place."""
    cut = family == PIECES
    first, count = a[cut].astype(np.int64), b[cut].astype(np.int64)
    start = np.cumsum(count) - count
    a[cut] = start
    taken = np.repeat(first - start, count) + np.arange(count.sum())
    return pieces_of(*(field[taken] for field in pieces[:6]))
