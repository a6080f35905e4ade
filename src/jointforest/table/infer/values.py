"""The distinct values of a column of numbers in bounded memory: some of them, with exact counts, and the common ones.

Kept are the values of the smallest keys (`keys.number_keys`), at most `MOST` of them. A value that is among these in
the end was so all along, so its count is exact, and what is kept does not depend on the order of the batches. Of a
column of more values the kept ones are a sample, whose largest key says how many there are (bottom-k sketches,
Bar-Yossef et al. 2002); and its common values, of which no count is exact, are those of Misra and Gries (1982): every
value of more than a ``1 / COMMON``-th of the cells is there, whatever the order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .keys import number_keys

MOST = 2**16
"""Values that are kept with exact counts."""
COMMON = 2**12
"""Counters for common values."""


class Common(NamedTuple):
    """Candidates for common values: those that are not here occur ``missed`` times at most.

    Attributes
    ----------
    values : float64 array (k,), ascending
    counts : int64 array (k,)
        At least so often does each occur, and ``missed`` times more at most.
    missed : int
    """

    values: np.ndarray
    counts: np.ndarray
    missed: int


class Values(NamedTuple):
    """Distinct values and their counts.

    Attributes
    ----------
    values : float64 array (k,), ascending
    counts : int64 array (k,)
    n : int
        Cells that were counted, those of values that are not kept among them.
    common : Common or None
        None if all values are kept.
    """

    values: np.ndarray
    counts: np.ndarray
    n: int
    common: Common | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all distinct values are kept."""
        return self.common is None

    @property
    def n_distinct(self) -> int:
        """Number of distinct values, estimated if not all are kept."""
        if self.is_whole:
            return len(self.values)
        return round((len(self.values) - 1) / (float(number_keys(self.values).max()) / 2.0**64))


def values_of(cells: np.ndarray) -> Values:
    """The distinct values of known cells, float64 (n,)."""
    distinct, counts = np.unique(cells, return_counts=True)
    return _bounded(Values(distinct, counts.astype(np.int64), len(cells)))


def merge_values(a: Values, b: Values) -> Values:
    """Values of two parts of a column as one."""
    common = None
    if a.common is not None or b.common is not None:
        common = _merge_common(_common_of(a), _common_of(b))
    both = _added(np.concatenate([a.values, b.values]), np.concatenate([a.counts, b.counts]))
    return _bounded(Values(*both, a.n + b.n, common))


def _bounded(found: Values) -> Values:
    """The values of the smallest keys."""
    if len(found.values) <= MOST:
        return found
    keys = number_keys(found.values)
    kept = keys <= np.partition(keys, MOST - 1)[MOST - 1]
    return Values(found.values[kept], found.counts[kept], found.n, _common_of(found))


def _common_of(found: Values) -> Common:
    """Candidates for the common values."""
    return found.common or _fewer(Common(found.values, found.counts, 0))


def _merge_common(a: Common, b: Common) -> Common:
    both = _added(np.concatenate([a.values, b.values]), np.concatenate([a.counts, b.counts]))
    return _fewer(Common(*both, a.missed + b.missed))


def _fewer(common: Common) -> Common:
    """At most `COMMON` candidates: all lose the counts of the next one (Agarwal et al. 2013, Mergeable Summaries)."""
    if len(common.values) <= COMMON:
        return common
    place = len(common.counts) - COMMON - 1
    taken = int(np.partition(common.counts, place)[place])
    kept = common.counts > taken
    return Common(common.values[kept], common.counts[kept] - taken, common.missed + taken)


def _added(values: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values, ascending, and the sums of their counts."""
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])[: len(values)])
    return values[first], np.add.reduceat(counts, first) if len(first) else counts
