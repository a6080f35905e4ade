"""`LinkedSum`: a sum of two or three columns on one lattice, and the likelihood of its total in one row of evidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_MOST_PIECES = 64
"""Two parts are treated by their codes if the totals form at most this many runs of equal likelihood."""


class LinkedSum(NamedTuple):
    """A sum of two or three columns, whose values are on one lattice, and the likelihood of its total.

    The *total* is the value of the sum. Its likelihood comes from one row of evidence.

    columns : tuple of int. The columns of the sum (its parts). The one with the most values is last.
    values : tuple of float64 arrays (S_i,). All possible values of each part, or codes of its levels, ascending.
    log_like : tuple of float64 arrays (S_i,). Log-likelihood of each of these values in the evidence.
    places : tuple of int64 arrays (S_i,). Each value in steps of the lattice above the least value of the part; the
        places of the parts add up.
    first : int. Place of the first total in ``likelihood``.
    likelihood : float64 array (L,). Likelihood of the totals from ``first`` on; that of all other totals is 0.
    """

    columns: tuple[int, ...]
    values: tuple[np.ndarray, ...]
    log_like: tuple[np.ndarray, ...]
    places: tuple[np.ndarray, ...]
    first: int
    likelihood: np.ndarray

    @property
    def size(self) -> int:
        """Number of places of totals on the lattice, between the least and the greatest total."""
        return sum(int(x.max()) for x in self.places) + 1

    @property
    def has_few_totals(self) -> bool:
        """Whether at most four totals are possible, so that they are treated one by one."""
        return int(np.count_nonzero(self.likelihood)) <= 4

    @property
    def is_by_codes(self) -> bool:
        """Whether values are grouped by their codes: few totals are possible, or there are two parts and few pieces."""
        return self.has_few_totals or (len(self.columns) == 2 and self.n_pieces <= _MOST_PIECES)

    @property
    def n_pieces(self) -> int:
        """Number of pieces: runs of neighbouring totals with the same positive likelihood."""
        starts = np.diff(self.likelihood, prepend=0.0) != 0.0
        return int(np.count_nonzero(starts & (self.likelihood > 0.0)))

    def all_totals(self) -> np.ndarray:
        """Likelihood of every total on the lattice, (size,)."""
        out = np.zeros(self.size)
        out[self.first : self.first + len(self.likelihood)] = self.likelihood
        return out
