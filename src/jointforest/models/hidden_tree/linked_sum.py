"""`LinkedSum`: a sum of two or three columns on one lattice, and what one row of evidence says of its total."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_MOST_PIECES = 64
"""Most runs of totals of one likelihood for which two parts are taken by their codes."""


class LinkedSum(NamedTuple):
    """A sum of two or three columns, whose parts are on one lattice, and what one row of evidence says of its total.

    Attributes
    ----------
    columns : tuple of int
        The parts, that with the most values last.
    values : tuple of float64 arrays (S_i,)
        Values of each part, or codes of its levels, ascending: all that it may have.
    log_like : tuple of float64 arrays (S_i,)
        What the evidence says of each of them.
    places : tuple of int64 arrays (S_i,)
        What each adds to the total, in steps of the lattice above the least.
    first : int
        Place of the first total that is given a likelihood.
    likelihood : float64 array (L,)
        Of the totals from there on, by what is known of the total; that of all others is 0.
    """

    columns: tuple[int, ...]
    values: tuple[np.ndarray, ...]
    log_like: tuple[np.ndarray, ...]
    places: tuple[np.ndarray, ...]
    first: int
    likelihood: np.ndarray

    @property
    def size(self) -> int:
        """Number of totals on the lattice, from that of the least values on."""
        return sum(int(x.max()) for x in self.places) + 1

    @property
    def has_few_totals(self) -> bool:
        """Whether so few totals are possible that they are taken one by one."""
        return int(np.count_nonzero(self.likelihood)) <= 4

    @property
    def is_by_codes(self) -> bool:
        """Whether values are taken by their codes: the total is known, or has two parts and few pieces."""
        return self.has_few_totals or (len(self.columns) == 2 and self.n_pieces <= _MOST_PIECES)

    @property
    def n_pieces(self) -> int:
        """Number of runs of totals of one likelihood, more than 0."""
        starts = np.diff(self.likelihood, prepend=0.0) != 0.0
        return int(np.count_nonzero(starts & (self.likelihood > 0.0)))

    def all_totals(self) -> np.ndarray:
        """Likelihood of each total on the lattice."""
        out = np.zeros(self.size)
        out[self.first : self.first + len(self.likelihood)] = self.likelihood
        return out
