"""How often keys occur, in bounded memory: some of them with exact counts, and candidates for the common ones.

Kept are the smallest keys, at most ``most`` of them. A key that is among these in the end was so all along, so its
count is exact, and what is kept does not depend on the order of the batches. Of more keys the kept ones are a sample,
and the largest of them says how many there are (bottom-k sketches, Bar-Yossef et al. 2002). The candidates, none of
whose counts is exact, are those of Misra and Gries (1982): every key of more than a ``1 / n_common``-th of the counts
is among them, whatever the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from .cells import ColumnCells, FrameReader


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


# ---- How often some values of columns occur, counted exactly: sums of batches.


class Wanted(NamedTuple):
    """Values to count, float64 (k,), ascending; on a grid of this step (0: none) each stands for its cell."""

    values: np.ndarray
    step: float


def count(reader: FrameReader, wanted: Mapping[str, Wanted]) -> dict[str, np.ndarray]:
    """Counts, int64 (k,), of the wanted values of columns in a table, or a batch of its rows."""
    return {name: _count(reader.cells(name).values, *what) for name, what in wanted.items()}


def add_counts(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The counts of two parts of a table as one."""
    return {name: a[name] + b[name] for name in a}


def _count(cells: np.ndarray, values: np.ndarray, step: float) -> np.ndarray:
    if step > 0:
        cells, values = np.rint(cells / step), np.rint(values / step)
    place = np.minimum(np.searchsorted(values, cells), len(values) - 1)
    return np.bincount(place[values[place] == cells], minlength=len(values)).astype(np.int64)


# ---- 64-bit keys of cells and rows, by their content alone: what is sampled does not depend on where a row stands.

_MISSING = np.uint64(0x9E3779B97F4A7C15)


def mixed(bits: np.ndarray) -> np.ndarray:
    """Scrambled 64-bit numbers, one to one (the finaliser of SplitMix64, Steele et al. 2014)."""
    z = np.asarray(bits, dtype=np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def unmixed(keys: np.ndarray) -> np.ndarray:
    """The 64-bit numbers whose `mixed` these are."""
    z = np.asarray(keys, dtype=np.uint64)
    z = (z ^ (z >> np.uint64(31)) ^ (z >> np.uint64(62))) * np.uint64(pow(0x94D049BB133111EB, -1, 2**64))
    z = (z ^ (z >> np.uint64(27)) ^ (z >> np.uint64(54))) * np.uint64(pow(0xBF58476D1CE4E5B9, -1, 2**64))
    return np.asarray(z ^ (z >> np.uint64(30)) ^ (z >> np.uint64(60)))


def number_keys(values: np.ndarray) -> np.ndarray:
    """Key of each float64 number; -0 is 0."""
    return mixed((np.ascontiguousarray(values, dtype=np.float64) + 0.0).view(np.uint64))


def numbers_of(keys: np.ndarray) -> np.ndarray:
    """The float64 numbers whose `number_keys` these are."""
    return unmixed(keys).view(np.float64)


def label_key(label: Any) -> int:
    """Key of a level: of equal levels the same, whatever the process."""
    text = f"{'text' if isinstance(label, str) else 'number'}:{label if isinstance(label, str) else float(label)!r}"
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def cell_keys(cells: ColumnCells) -> np.ndarray:
    """Key of each cell of a column, uint64 (n,); a moment's does not depend on the unit it is stored in."""
    if cells.sort == "levels" and cells.codes is not None:
        of_label = np.array([label_key(label) for label in cells.labels] + [0], dtype=np.uint64)
        keys = of_label[cells.codes]
    elif cells.sort == "datetime":
        ticks = np.where(cells.missing, 0, cells.values)
        per_second = round(cells.per_second) if cells.per_second >= 1 else 1
        whole = ticks // per_second
        keys = number_keys(whole * round(max(1.0, 1 / cells.per_second))) ^ number_keys(
            (ticks - whole * per_second) / per_second
        )
    else:
        keys = number_keys(np.where(cells.missing, 0.0, cells.values))
    return np.where(cells.missing, _MISSING, keys)


def row_keys(columns: Iterable[tuple[str, ColumnCells]], n: int, seed: int) -> np.ndarray:
    """Key of each of n rows, uint64 (n,): of equal cells in columns of equal names, in whatever order, the same."""
    total = np.zeros(n, dtype=np.uint64)
    for name, cells in columns:
        total += mixed(cell_keys(cells) ^ np.uint64(label_key(name)))
    return mixed(total ^ mixed(np.full(1, seed, dtype=np.uint64)))


# ---- The distinct values of a column of numbers, and how often each occurs: see `tally`.

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
