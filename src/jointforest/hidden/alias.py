"""Draws from many discrete distributions at once, each in constant time (Walker's alias method)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Alias(NamedTuple):
    """R distributions over C outcomes.

    Attributes
    ----------
    keep : float32 array (R, C)
        Probability that a draw that falls on an outcome stays there.
    other : int32 array (R, C)
        Where it goes otherwise.
    """

    keep: np.ndarray
    other: np.ndarray

    def draw(self, row: np.ndarray, u: np.ndarray) -> np.ndarray:
        """One outcome for each entry of ``row`` (n,), from uniform numbers u (n,), 0 <= u < 1."""
        C = self.keep.shape[1]
        place = u * C
        column = np.minimum(place.astype(np.int64), C - 1)
        at = row * C + column
        return np.where(place - column < self.keep.ravel()[at], column, self.other.ravel()[at])


NOTHING = Alias(np.empty((0, 0), np.float32), np.empty((0, 0), np.int32))
"""No distributions."""


def alias_of(table: np.ndarray) -> Alias:
    """Alias tables of the rows of a table (R, C) of shares that sum to 1 by row.

    Outcomes go by rising probability: one with too little is filled up by the richest, which may become poor itself
    and is then filled up by the next richest.
    """
    R, C = table.shape
    share = table.astype(np.float64) * C / table.sum(axis=1, dtype=np.float64, keepdims=True)
    order = np.argsort(share, axis=1)
    left = np.take_along_axis(share, order, axis=1)
    keep, other = np.ones((R, C)), order.copy()
    every = np.arange(R)
    small, rich = np.zeros(R, np.int64), np.full(R, C - 1)
    poor = small.copy()  # the outcome to fill up: the next small one, or a rich one that has given too much
    for _ in range(C - 1):
        go = (poor != rich) & (left[every, poor] < 1.0)
        keep[every[go], poor[go]] = left[every[go], poor[go]]
        other[every[go], poor[go]] = order[every[go], rich[go]]
        left[every[go], rich[go]] -= 1.0 - left[every[go], poor[go]]
        small = np.where(go & (poor == small), small + 1, small)
        drained = go & (left[every, rich] < 1.0) & (rich > small)
        poor = np.where(drained, rich, small)
        rich = np.where(drained, rich - 1, rich)
    place = np.argsort(order, axis=1)
    return Alias(
        np.take_along_axis(keep, place, axis=1).astype(np.float32),
        np.take_along_axis(other, place, axis=1).astype(np.int32),
    )
