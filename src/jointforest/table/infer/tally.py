"""How often keys occur, in bounded memory: some of them with exact counts, and candidates for the common ones.

Kept are the smallest keys, at most ``most`` of them. A key that is among these in the end was so all along, so its
count is exact, and what is kept does not depend on the order of the batches. Of more keys the kept ones are a sample,
and the largest of them says how many there are (bottom-k sketches, Bar-Yossef et al. 2002). The candidates, none of
whose counts is exact, are those of Misra and Gries (1982): every key of more than a ``1 / n_common``-th of the counts
is among them, whatever the order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Size(NamedTuple):
    """How many keys are kept, and how many candidates."""

    most: int
    n_common: int


class Common(NamedTuple):
    """Candidates for common keys: those that are not here occur ``missed`` times at most.

    Attributes
    ----------
    keys : uint64 array (k,), ascending
    counts : int64 array (k,)
        At least so often does each occur, and ``missed`` times more at most.
    missed : int
    """

    keys: np.ndarray
    counts: np.ndarray
    missed: int


class Tally(NamedTuple):
    """Keys and their counts.

    Attributes
    ----------
    keys : uint64 array (k,), ascending
    counts : int64 array (k,)
    n : int
        What was counted, keys that are not kept among it.
    common : Common or None
        None if all keys are kept.
    """

    keys: np.ndarray
    counts: np.ndarray
    n: int
    common: Common | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all keys are kept."""
        return self.common is None

    @property
    def n_distinct(self) -> int:
        """Number of different keys, estimated if not all are kept."""
        return len(self.keys) if self.is_whole else round((len(self.keys) - 1) / (float(self.keys[-1]) / 2.0**64))

    def frequent(self, share: float) -> np.ndarray:
        """Keys that are not kept alone: all that occur in this share of what was counted, and few others."""
        if self.common is None:
            return np.empty(0, np.uint64)
        return np.asarray(self.common.keys[self.common.counts + self.common.missed >= share * self.n])


def tally_of(keys: np.ndarray, counts: np.ndarray, size: Size) -> Tally:
    """Tally of keys, uint64 (n,), that occur so often each, int64 (n,); a key may be there twice."""
    return _bounded(Tally(*_added(keys, counts), int(counts.sum())), size)


def merge_tallies(a: Tally, b: Tally, size: Size) -> Tally:
    """The tallies of two parts as one."""
    common = None
    if a.common is not None or b.common is not None:
        first, second = _common_of(a, size), _common_of(b, size)
        both = _added(np.concatenate([first.keys, second.keys]), np.concatenate([first.counts, second.counts]))
        common = _fewer(Common(*both, first.missed + second.missed), size)
    added = _added(np.concatenate([a.keys, b.keys]), np.concatenate([a.counts, b.counts]))
    return _bounded(Tally(*added, a.n + b.n, common), size)


def _bounded(tally: Tally, size: Size) -> Tally:
    """The smallest keys alone."""
    if len(tally.keys) <= size.most:
        return tally
    return Tally(tally.keys[: size.most], tally.counts[: size.most], tally.n, _common_of(tally, size))


def _common_of(tally: Tally, size: Size) -> Common:
    """Candidates for the common keys."""
    return tally.common or _fewer(Common(tally.keys, tally.counts, 0), size)


def _fewer(common: Common, size: Size) -> Common:
    """At most ``n_common`` candidates: all lose the counts of the next (Agarwal et al. 2013, Mergeable Summaries)."""
    if len(common.keys) <= size.n_common:
        return common
    place = len(common.counts) - size.n_common - 1
    taken = int(np.partition(common.counts, place)[place])
    kept = common.counts > taken
    return Common(common.keys[kept], common.counts[kept] - taken, common.missed + taken)


def _added(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Different keys, ascending, and the sums of their counts."""
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])
    return keys[first], np.add.reduceat(counts, first) if len(first) else counts
