"""What is observed of a table's columns: of one batch of rows, and merged, of two parts of a table."""

# Merging does not depend on the order of the parts, so the schema does not depend on how a table is cut.

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..runtime.arrays import sums_by_key
from .cells import ColumnCells, FrameReader, check_orders
from .schema import MAX_ATOMS, MOST_DIGITS, Frame, digit_power
from .times import PER_SECOND, TIME_STEPS, is_date, odd_days, odd_numbers, unit_of, zone_of

# ---- How often keys occur, in bounded memory: some keys with exact counts, and candidates for the common keys.
#
# Kept are the smallest keys, at most ``most`` of them. A key that is among these in the end was so all along, so its
# count is exact, and what is kept does not depend on the order of the batches. The kept keys are a sample of all keys,
# and the largest of them says how many there are (bottom-k sketches, Bar-Yossef et al. 2002). The candidates, none of
# whose counts is exact, are those of Misra and Gries (1982): every key of more than a ``1 / n_common``-th of the counts
# is among them, whatever the order.


class Size(NamedTuple):
    """How many keys are kept, and how many candidates."""

    most: int
    n_common: int


class Common(NamedTuple):
    """Candidates for common keys: those that are not here occur ``missed`` times at most.

    keys : uint64 array (k,), ascending
    counts : int64 array (k,). At least so often does each occur, and ``missed`` times more at most.
    """

    keys: np.ndarray
    counts: np.ndarray
    missed: int


class Tally(NamedTuple):
    """Keys and their counts.

    keys : uint64 array (k,), ascending
    counts : int64 array (k,)
    n : int. What was counted, keys that are not kept among it.
    common : Common or None. None if all keys are kept.
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
    return _bounded(Tally(*sums_by_key(keys, counts), int(counts.sum())), size)


def merge_tallies(a: Tally, b: Tally, size: Size) -> Tally:
    """The tallies of two parts as one."""
    common = None
    if a.common is not None or b.common is not None:
        first, second = _common_of(a, size), _common_of(b, size)
        both = sums_by_key(np.concatenate([first.keys, second.keys]), np.concatenate([first.counts, second.counts]))
        common = _fewer_candidates(Common(*both, first.missed + second.missed), size)
    added = sums_by_key(np.concatenate([a.keys, b.keys]), np.concatenate([a.counts, b.counts]))
    return _bounded(Tally(*added, a.n + b.n, common), size)


def _bounded(tally: Tally, size: Size) -> Tally:
    """The smallest keys alone."""
    if len(tally.keys) <= size.most:
        return tally
    return Tally(tally.keys[: size.most], tally.counts[: size.most], tally.n, _common_of(tally, size))


def _common_of(tally: Tally, size: Size) -> Common:
    """Candidates for the common keys."""
    return tally.common or _fewer_candidates(Common(tally.keys, tally.counts, 0), size)


def _fewer_candidates(common: Common, size: Size) -> Common:
    """At most ``n_common`` candidates: all lose the counts of the next (Agarwal et al. 2013, Mergeable Summaries)."""
    if len(common.keys) <= size.n_common:
        return common
    place = len(common.counts) - size.n_common - 1
    taken = int(np.partition(common.counts, place)[place])
    kept = common.counts > taken
    return Common(common.keys[kept], common.counts[kept] - taken, common.missed + taken)


# ---- How often some values of columns occur, counted exactly: sums of batches.


class WantedValues(NamedTuple):
    """Values to count, float64 (k,), ascending; on a grid of this step (0: none) each stands for its cell."""

    values: np.ndarray
    step: float


def count(reader: FrameReader, wanted: Mapping[str, WantedValues]) -> dict[str, np.ndarray]:
    """Counts, int64 (k,), of the wanted values of columns in a table, or a batch of its rows."""
    return {name: _count_values(reader.cells(name).values, *what) for name, what in wanted.items()}


def add_table_counts(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The counts of two parts of a table as one."""
    return {name: a[name] + b[name] for name in a}


def _count_values(cells: np.ndarray, values: np.ndarray, step: float) -> np.ndarray:
    if step > 0:
        cells, values = np.rint(cells / step), np.rint(values / step)
    place = np.minimum(np.searchsorted(values, cells), len(values) - 1)
    return np.bincount(place[values[place] == cells], minlength=len(values)).astype(np.int64)


# ---- 64-bit keys of numbers.


def mix_all_bits(bits: np.ndarray) -> np.ndarray:
    """Scrambled 64-bit numbers, one to one (the finaliser of SplitMix64, Steele et al. 2014)."""
    z = np.asarray(bits, dtype=np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def unmixed(keys: np.ndarray) -> np.ndarray:
    """The 64-bit numbers whose `mix_all_bits` these are."""
    z = np.asarray(keys, dtype=np.uint64)
    z = (z ^ (z >> np.uint64(31)) ^ (z >> np.uint64(62))) * np.uint64(pow(0x94D049BB133111EB, -1, 2**64))
    z = (z ^ (z >> np.uint64(27)) ^ (z >> np.uint64(54))) * np.uint64(pow(0xBF58476D1CE4E5B9, -1, 2**64))
    return np.asarray(z ^ (z >> np.uint64(30)) ^ (z >> np.uint64(60)))


def number_keys(values: np.ndarray) -> np.ndarray:
    """Key of each float64 number; -0 is 0."""
    return mix_all_bits((np.ascontiguousarray(values, dtype=np.float64) + 0.0).view(np.uint64))


def numbers_of(keys: np.ndarray) -> np.ndarray:
    """The float64 numbers whose `number_keys` these are."""
    return unmixed(keys).view(np.float64)


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


def _values_of(distinct: np.ndarray, counts: np.ndarray) -> Values:
    """Finite values, float64 (k,), that occur so often each, int64 (k,)."""
    return Values(tally_of(number_keys(distinct), counts, SIZE))


def merge_values(a: Values, b: Values) -> Values:
    """Values of two parts of a column as one."""
    return Values(merge_tallies(a.tally, b.tally, SIZE))


# ---- Whether a column of numbers lies on a grid, and which of its values have a mass of their own.

MAX_CELLS = 2.0**51
"""Largest cell number on a grid: beyond it half a cell is no longer exact in float64."""
MAX_DECIMALS = 9
_FEW = 20


class OnGrids(NamedTuple):
    """Which decimal grids some numbers lie on.

    power : bool array (10,). Whether all are multiples of 10^-k, as closely as they are stored.
    divisor : int64 array (10,). Their greatest common divisor in units of 10^-k; 0 if all are 0, 1 if too large.
    """

    power: np.ndarray
    divisor: np.ndarray


_FEW_VALUES = 1000  # the first ones mostly tell that there is no grid


def on_grids(distinct: np.ndarray, eps: float) -> OnGrids:
    """`OnGrids` of finite values, float64 (k,), stored with the relative precision ``eps``."""
    power = np.array([_is_on(distinct, k, eps) for k in range(MAX_DECIMALS + 1)])
    divisor = np.ones(MAX_DECIMALS + 1, np.int64)
    largest = float(np.abs(distinct).max(initial=0.0))
    for k in np.flatnonzero(power).tolist():
        if largest * 10.0**k < 2.0**62:
            divisor[k] = np.gcd.reduce(np.rint(distinct * 10.0**k).astype(np.int64))
    return OnGrids(power, divisor)


def _is_on(distinct: np.ndarray, k: int, eps: float) -> bool:
    """Whether all values are multiples of 10^-k, as closely as they are stored."""
    for values in (distinct[:_FEW_VALUES], distinct):
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = values * 10.0**k
            if not np.all(np.abs(scaled - np.rint(scaled)) <= np.minimum(4 * eps * np.abs(scaled), 0.03)):
                return False
    return True


def grid_step(grids: OnGrids, n_distinct: int, largest: float, eps: float) -> float:
    """Coarsest step that divides all values: 10^-k (k <= 9), or a multiple of it (`sure_multiple`); 0 if none."""
    for k in range(MAX_DECIMALS + 1):
        if largest * 10.0**k > min(2.0**45, 0.01 / eps) and not (k == 0 and largest <= MAX_CELLS):
            return 0.0
        if grids.power[k]:
            return sure_multiple(int(grids.divisor[k]), n_distinct) / 10.0**k
    return 0.0


def sure_multiple(divisor: int, n_distinct: int, usual_of: int = 10**6) -> int:
    """The largest part of a common divisor that chance would give to less than one of a thousand columns."""
    # Divisors of 1,000,000 (2, 25, 100) are steps that people choose, so each distinct value counts as evidence. Any
    # other step was chosen after the values were seen, so two fewer count.
    if n_distinct < 2:
        return 1
    usual = math.gcd(divisor, usual_of)
    usual = usual if n_distinct * math.log(usual) > _SURE else 1
    return divisor if (n_distinct - 2) * math.log(divisor / usual) > _SURE else usual


_SURE = math.log(1000.0)


def is_tied(n: int, n_distinct: int) -> bool:
    """Whether values repeat clearly: at least a twentieth of the n observed cells (and 2) repeat an earlier one."""
    return n - n_distinct >= max(2.0, 0.05 * n)


FEWEST_DIGITS = 4
"""Fewer significant digits are left to grids."""


def digits_of(distinct: np.ndarray, step: float, eps: float) -> int:
    """Significant digits, 4 to 9, of distinct values (k,) on a grid of this step (0: none); 0 if they have more."""
    # The digits count only if chance would put so many values on the coarser grids of their own sizes in less than one
    # of a thousand columns.
    values = distinct[distinct != 0.0]
    for digits in range(1, MOST_DIGITS + 1):
        if _have_digits(values[:_FEW_VALUES], digits, eps) and _have_digits(values, digits, eps):
            worth = 10.0 ** digit_power(values, digits)
            finest = step if step > 0.0 else 0.1 * worth.min(initial=1.0)
            nats = float(np.log(np.maximum(worth / finest, 1.0)).sum())
            return digits if digits >= FEWEST_DIGITS and nats > _SURE and len(values) > _FEW else 0
    return 0


def _have_digits(values: np.ndarray, digits: int, eps: float) -> bool:
    """Whether values have at most so many significant digits, as closely as they are stored."""
    if 0.01 / eps < 10.0**digits:
        return False
    scaled = values * 10.0 ** -digit_power(values, digits)
    return bool(np.all(np.abs(scaled - np.rint(scaled)) <= np.minimum(4 * eps * np.abs(scaled), 0.03)))


def find_atoms(values: np.ndarray, counts: np.ndarray, step: float, n: int, n_distinct: int) -> tuple[float, ...]:
    """The point masses: values that hold clearly more of the column than a smooth density would give them."""
    # At least 5 % of the n cells and 5 of them. Without a grid, where a density never repeats a value: 0.2 % and 20. On
    # a grid of more than 20 distinct values, a local maximum needs 0.5 %, 5 cells, twice the mean of its 4 nearest
    # cells, and four standard deviations above it: 40 hours a week is an atom, a bell of narrow cells is not. A column
    # of one value that occurs twice has it as its atom. ``values`` (k,) are distinct, ascending, with the column's
    # ends.
    if n_distinct == 1:
        return (float(values[0]),) if n >= 2 else ()
    common = counts >= max(5.0, 0.05 * n)
    if step == 0:
        common |= counts >= max(20.0, 0.002 * n)
    elif n_distinct > _FEW:
        cells = np.rint((values - values[0]) / step)
        around, near = np.zeros(len(cells)), np.zeros(len(cells))
        for shift in (-2, -1, 1, 2):
            near += (cells + shift >= cells[0]) & (cells + shift <= cells[-1])
            at = np.minimum(np.searchsorted(cells, cells + shift), len(cells) - 1)
            around += np.where(cells[at] == cells + shift, counts[at], 0)
        common = counts >= max(5.0, 0.005 * n)
        expected = around / near
        common &= counts > np.maximum(2 * expected, expected + 4 * np.sqrt(expected))
    most = np.flatnonzero(common)
    most = most[np.argsort(-counts[most], kind="stable")[:MAX_ATOMS]]
    return tuple(values[np.sort(most)].tolist())


def time_step(apart: int, n_distinct: int) -> float:
    """Seconds of the coarsest step that divides distances of so many moments, whose greatest common divisor this is."""
    # A day, hour, minute, second, ms or us; or a multiple such as 15 minutes, by the evidence of `sure_multiple`.
    for seconds in TIME_STEPS:
        unit = round(seconds * MICRO)
        if apart % unit == 0:
            return unit * sure_multiple(apart // unit, n_distinct, 1) / MICRO
    raise AssertionError("every distance is a number of microseconds")


MICRO = 10**6
"""Microseconds in a second: the ticks of what is seen of moments."""


def in_micro(ticks: np.ndarray, per_second: float) -> np.ndarray:
    """Ticks, int64 (n,), as microseconds; finer ones count as the nearest."""
    if per_second > MICRO:
        size = round(per_second / MICRO)
        return np.asarray((ticks + size // 2) // size)
    size = round(MICRO / per_second)
    most = (2**63 - 1) // size
    return np.asarray(np.clip(ticks, -most, most) * size)


class Outermost(NamedTuple):
    """The distinct values nearest to either end of a column, 64 or less, and how often each occurs.

    values : float64 or int64 array (k,), ascending
    counts : int64 array (k,)
    """

    values: np.ndarray
    counts: np.ndarray


N_OUTERMOST = 64


def outermost(values: np.ndarray, counts: np.ndarray) -> Outermost:
    """`Outermost` of values (k,), which may be there twice, with counts."""
    distinct, total = sums_by_key(values, counts)
    if len(distinct) > 2 * N_OUTERMOST:
        distinct, total = (np.concatenate([x[:N_OUTERMOST], x[-N_OUTERMOST:]]) for x in (distinct, total))
    return Outermost(distinct, total)


def merge_outermost(a: Outermost, b: Outermost) -> Outermost:
    """Those of two parts of a column as one; counts stay exact."""
    return outermost(*(np.concatenate(both) for both in zip(a, b, strict=True)))


MOST_LABELS = 1_000_000
"""Labels of a column that are remembered; many more than a column may have."""


@dataclass(frozen=True)
class Numbers:
    """What was seen of a column's known numbers.

    values : Values. The finite ones.
    low, high : float. Smallest and largest of them; infinite if there is none.
    odd : int64 array (3,). `odd_numbers` of the finite ones.
    """

    values: Values
    low: float
    high: float
    grids: OnGrids
    n_infinite: int
    outermost: Outermost
    odd: np.ndarray


@dataclass(frozen=True)
class Moments:
    """What was seen of a column's known moments, in microseconds since 1970-01-01.

    apart : int. Greatest common divisor of the distances from the first one; 0 of a single moment.
    odd : int64 array (2,). `odd_days` of them.
    """

    first: int
    last: int
    apart: int
    outermost: Outermost
    odd: np.ndarray


@dataclass(frozen=True)
class Labels:
    """What was seen of a column's labels.

    labels : tuple. Those of the column's type, in its order, or those that were seen.
    counts : int64 array (k,). How often each was seen.
    declared, ordered : bool. As in `ColumnCells`.
    """

    labels: tuple[Any, ...]
    counts: np.ndarray
    declared: bool
    ordered: bool


@dataclass(frozen=True)
class Seen:
    """What was seen of one column.

    sort, dtype : str. As in `ColumnCells`.
    n_known : int. Cells that are not missing.
    what : Numbers, Moments or Labels. Of a column without any known cell: None, or the labels that its type lists.
    n_ranges : int. Cells that are ranges, and not known.
    """

    sort: str
    dtype: str
    n_known: int
    what: Numbers | Moments | Labels | None
    n_ranges: int = 0


@dataclass(frozen=True)
class Look:
    """What was seen of a table.

    frame : {"pandas", "polars", "pyarrow", "numpy"}. The library that the batches came in.
    number_names : frozenset of str. Those of the names that are whole numbers in the frame.
    n : int. Rows.
    """

    frame: Frame
    names: tuple[str, ...]
    number_names: frozenset[str]
    n: int
    columns: tuple[Seen, ...]


def look(reader: FrameReader) -> Look:
    """Look at a table, or a batch of its rows. Raises TypeError if a column has a type that is not supported."""
    columns = tuple(look_at(reader.cells(name)) for name in reader.names)
    return Look(reader.frame, tuple(reader.names), frozenset(reader.number_names), reader.n, columns)


def look_at(cells: ColumnCells) -> Seen:
    """Look at some cells of a column."""
    known = ~cells.missing
    n_known = int(np.count_nonzero(known))
    n_ranges = 0 if cells.range_of is None else int(np.count_nonzero(cells.range_of >= 0))
    if cells.codes is not None:
        counts = np.bincount(cells.codes[known], minlength=len(cells.labels))
        labels = Labels(tuple(cells.labels), counts.astype(np.int64), cells.declared, cells.ordered)
        return Seen(cells.sort, cells.dtype, n_known, labels, n_ranges)
    if n_known == 0:
        return Seen(cells.sort, cells.dtype, 0, None, n_ranges)
    values = cells.values[known]
    if cells.sort == "datetime":
        return Seen(cells.sort, cells.dtype, n_known, moments_seen(in_micro(values, cells.per_second)), n_ranges)
    return Seen(cells.sort, cells.dtype, n_known, numbers_seen(values, cells.dtype), n_ranges)


def moments_seen(micro: np.ndarray) -> Moments:
    """Look at known moments, int64 (n,)."""
    distinct, counts = np.unique(micro, return_counts=True)
    first = int(distinct[0])
    apart = int(np.gcd.reduce(distinct - first))
    return Moments(first, int(distinct[-1]), apart, outermost(distinct, counts), odd_days(distinct, counts))


def numbers_seen(values: np.ndarray, dtype: str) -> Numbers:
    """Look at known numbers, float64 (n,), that were stored in this dtype."""
    return counted_numbers(*np.unique(values, return_counts=True), dtype)


def counted_numbers(distinct: np.ndarray, counts: np.ndarray, dtype: str) -> Numbers:
    """Look at distinct numbers, float64 (k,), ascending, that occur so often each, int64 (k,)."""
    is_finite = np.isfinite(distinct)
    n_infinite = int(counts[~is_finite].sum())
    distinct, counts = distinct[is_finite], counts[is_finite].astype(np.int64)
    ends = (float(distinct[0]), float(distinct[-1])) if len(distinct) else (np.inf, -np.inf)
    grids, outer = on_grids(distinct, precision(dtype)), outermost(distinct, counts)
    return Numbers(_values_of(distinct, counts), *ends, grids, n_infinite, outer, odd_numbers(distinct, counts))


def precision(dtype: str) -> float:
    """Relative precision of the numbers that a dtype stores."""
    return 1.2e-7 if "loat32" in dtype or dtype in ("float", "float[pyarrow]") else 2.3e-16


def merge_looks(a: Look, b: Look) -> Look:
    """The observations of two parts of a table, merged."""
    check_alike(a.names, b.names)
    if a.frame != b.frame:
        raise ValueError(f"a part of the table is of {b.frame}, another of {a.frame}; give parts of one library")
    of_b = dict(zip(b.names, b.columns, strict=True))
    columns = tuple(_merged_looks(name, seen, of_b[name]) for name, seen in zip(a.names, a.columns, strict=True))
    return Look(a.frame, a.names, a.number_names | b.number_names, a.n + b.n, columns)


def check_alike(a: Collection[str], b: Collection[str]) -> None:
    """Raise ValueError if two parts of a table have columns of different names."""
    if set(a) != set(b):
        lost, more = sorted(set(a) - set(b)), sorted(set(b) - set(a))
        said = [f"{how} {', '.join(map(repr, names[:3]))}" for how, names in (("lacks", lost), ("has", more)) if names]
        raise ValueError(f"a part of the table {' and '.join(said)}, unlike another part; every part needs all columns")


def _merged_looks(name: str, a: Seen, b: Seen) -> Seen:
    """Two observations of one column, merged."""
    if a.sort != b.sort and (a.what is None or b.what is None):  # nothing is known of a part, whatever its type
        return replace(b if a.what is None else a, n_ranges=a.n_ranges + b.n_ranges)
    is_number = {a.sort, b.sort} <= {"number", "integer"}
    if a.sort != b.sort and not is_number:
        raise ValueError(
            f"column {name!r}: {_seen_in_words(a)} in one part of the table, {_seen_in_words(b)} in another; "
            "write all parts with one type, or give the column's type when reading them"
        )
    if a.what is None or b.what is None:
        what = b.what if a.what is None else a.what
    elif isinstance(a.what, Numbers):
        what = _merge_numbers(a.what, b.what)
    elif isinstance(a.what, Moments):
        what = _merge_moments(a.what, b.what)
    else:
        what = _merge_labels(name, a.what, b.what)
    sort = a.sort if a.sort == b.sort else "number"
    return Seen(sort, _wider_dtype(name, a, b), a.n_known + b.n_known, what, a.n_ranges + b.n_ranges)


def _merge_numbers(a: Numbers, b: Any) -> Numbers:
    grids = OnGrids(a.grids.power & b.grids.power, np.gcd(a.grids.divisor, b.grids.divisor))
    ends = min(a.low, b.low), max(a.high, b.high)
    outer = merge_outermost(a.outermost, b.outermost)
    return Numbers(merge_values(a.values, b.values), *ends, grids, a.n_infinite + b.n_infinite, outer, a.odd + b.odd)


def _merge_moments(a: Moments, b: Any) -> Moments:
    apart = math.gcd(a.apart, b.apart, a.first - b.first)
    outer = merge_outermost(a.outermost, b.outermost)
    return Moments(min(a.first, b.first), max(a.last, b.last), apart, outer, a.odd + b.odd)


def _merge_labels(name: str, a: Labels, b: Any) -> Labels:
    """An order that both parts' types declare stays; labels of types that list others are sorted later."""
    if a.labels == b.labels:
        return Labels(a.labels, a.counts + b.counts, a.declared and b.declared, a.ordered and b.ordered)
    check_orders(name, a, b)
    counts = dict(zip(a.labels, a.counts.tolist(), strict=True))
    for label, count in zip(b.labels, b.counts.tolist(), strict=True):
        counts[label] = counts.get(label, 0) + count
    if len(counts) > MOST_LABELS:
        raise ValueError(
            f"column {name!r}: more than {MOST_LABELS} levels; drop the column if it names the rows, "
            "or join rare levels"
        )
    return Labels(tuple(counts), np.fromiter(counts.values(), np.int64, len(counts)), False, False)


def _wider_dtype(name: str, a: Seen, b: Seen) -> str:
    """The dtype that holds the cells of both parts."""
    if a.dtype == b.dtype:
        return a.dtype
    if isinstance(a.what, Moments) and isinstance(b.what, Moments):
        if zone_of(a.dtype) != zone_of(b.dtype):
            raise ValueError(
                f"column {name!r}: times of type {a.dtype} in one part, {b.dtype} in another; use one zone"
            )
        return max((PER_SECOND[unit_of(part.dtype)], not is_date(part.dtype), part.dtype) for part in (a, b))[2]
    wide = max(
        (a, b), key=lambda part: ("[mixed" in part.dtype, part.sort == "number", _bits_of_type(part.dtype), part.dtype)
    )
    return wide.dtype


def _bits_of_type(dtype: str) -> int:
    """How wide a type of numbers is."""
    digits = re.search(r"\d+", dtype)
    return int(digits.group()) if digits else 64 if "double" in dtype else 32


def _seen_in_words(seen: Seen) -> str:
    return {"levels": "text", "datetime": "dates", "boolean": "booleans"}.get(seen.sort, "numbers")
