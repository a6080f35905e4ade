"""The distinct values of a column of numbers, and how often each occurs: see `tally`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .keys import number_keys, numbers_of
from .tally import Size, Tally, merge_tallies, tally_of

SIZE = Size(most=2**16, n_common=2**12)
"""Values that are kept with exact counts, and counters for common ones."""


class Values(NamedTuple):
    """Distinct values, by their `number_keys`."""

    tally: Tally

    def counted(self) -> tuple[np.ndarray, np.ndarray]:
        """The values that are kept, float64 (k,), ascending, and their counts, int64 (k,)."""
        values = numbers_of(self.tally.keys)
        order = np.argsort(values)
        return values[order], self.tally.counts[order]

    def frequent(self, share: float) -> np.ndarray:
        """Values that hold this share of the cells, all of them, and few others, ascending; not if all are kept."""
        return np.sort(numbers_of(self.tally.frequent(share)))


def values_of(distinct: np.ndarray, counts: np.ndarray) -> Values:
    """Finite values, float64 (k,), that occur so often each, int64 (k,)."""
    return Values(tally_of(number_keys(distinct), counts, SIZE))


def merge_values(a: Values, b: Values) -> Values:
    """Values of two parts of a column as one."""
    return Values(merge_tallies(a.tally, b.tally, SIZE))
