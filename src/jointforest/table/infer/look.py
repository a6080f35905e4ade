"""What was seen of a table's columns: one batch looked at, and the looks at two parts of a table as one.

Merging does not depend on the order of the parts, so that a table has one schema however it is cut.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..cells import ColumnCells, FrameReader
from ..schema import Frame
from ..times import zone_of
from .grids import OnGrids, alike, is_step, on_grids, sizes
from .values import Values, merge_values, values_of

MOST_LABELS = 1_000_000
"""Labels of a column that are remembered; many more than a column may have."""


@dataclass(frozen=True)
class Numbers:
    """What was seen of a column's known numbers.

    Attributes
    ----------
    values : Values
        The finite ones.
    low, high : float
        Smallest and largest of them; infinite if there is none.
    grids : OnGrids
    n_infinite : int
    """

    values: Values
    low: float
    high: float
    grids: OnGrids
    n_infinite: int


@dataclass(frozen=True)
class Moments:
    """What was seen of a column's known moments, in ticks since 1970-01-01.

    Attributes
    ----------
    per_second : float
        Ticks in a second.
    first, last : int
    divides : bool array (5,)
        `grids.alike` of the distances from the first one.
    """

    per_second: float
    first: int
    last: int
    divides: np.ndarray


@dataclass(frozen=True)
class Labels:
    """What was seen of a column's labels.

    Attributes
    ----------
    labels : tuple
        Those of the column's type, in its order, or those that were seen.
    counts : int64 array (k,)
        How often each was seen.
    declared, ordered : bool
        As in `ColumnCells`.
    """

    labels: tuple[Any, ...]
    counts: np.ndarray
    declared: bool
    ordered: bool


@dataclass(frozen=True)
class Seen:
    """What was seen of one column.

    Attributes
    ----------
    sort, dtype : str
        As in `ColumnCells`.
    n_known : int
        Cells that are not missing.
    what : Numbers, Moments or Labels
        Of a column without any known cell: None, or the labels that its type lists.
    """

    sort: str
    dtype: str
    n_known: int
    what: Numbers | Moments | Labels | None


@dataclass(frozen=True)
class Look:
    """What was seen of a table.

    Attributes
    ----------
    frame : {"pandas", "polars", "pyarrow", "numpy"}
        The library that the batches came in.
    names : tuple of str
    number_names : frozenset of str
        Those of the names that are whole numbers in the frame.
    n : int
        Rows.
    columns : tuple of Seen
    """

    frame: Frame
    names: tuple[str, ...]
    number_names: frozenset[str]
    n: int
    columns: tuple[Seen, ...]


def look(reader: FrameReader) -> Look:
    """Look at a table, or a batch of its rows.

    Raises
    ------
    TypeError
        If a column has a type that is not supported.
    """
    columns = tuple(look_at(reader.cells(name)) for name in reader.names)
    return Look(reader.frame, tuple(reader.names), frozenset(reader.number_names), reader.n, columns)


def look_at(cells: ColumnCells) -> Seen:
    """Look at some cells of a column."""
    known = ~cells.missing
    n_known = int(np.count_nonzero(known))
    if cells.codes is not None:
        counts = np.bincount(cells.codes[known], minlength=len(cells.labels))
        labels = Labels(tuple(cells.labels), counts.astype(np.int64), cells.declared, cells.ordered)
        return Seen(cells.sort, cells.dtype, n_known, labels)
    if n_known == 0:
        return Seen(cells.sort, cells.dtype, 0, None)
    values = cells.values[known]
    if cells.sort == "datetime":
        first, last = int(values.min()), int(values.max())
        moments = Moments(cells.per_second, first, last, alike(values - first, cells.per_second))
        return Seen(cells.sort, cells.dtype, n_known, moments)
    return Seen(cells.sort, cells.dtype, n_known, numbers_seen(values, cells.dtype))


def numbers_seen(values: np.ndarray, dtype: str) -> Numbers:
    """Look at known numbers, float64 (n,), that were stored in this dtype."""
    return counted_numbers(*np.unique(values, return_counts=True), dtype)


def counted_numbers(distinct: np.ndarray, counts: np.ndarray, dtype: str) -> Numbers:
    """Look at distinct numbers, float64 (k,), ascending, that occur so often each, int64 (k,)."""
    is_finite = np.isfinite(distinct)
    n_infinite = int(counts[~is_finite].sum())
    distinct, counts = distinct[is_finite], counts[is_finite].astype(np.int64)
    ends = (float(distinct[0]), float(distinct[-1])) if len(distinct) else (np.inf, -np.inf)
    return Numbers(values_of(distinct, counts), *ends, on_grids(distinct, precision(dtype)), n_infinite)


def precision(dtype: str) -> float:
    """Relative precision of the numbers that a dtype stores."""
    return 1.2e-7 if "loat32" in dtype or dtype in ("float", "float[pyarrow]") else 2.3e-16


def merge_looks(a: Look, b: Look) -> Look:
    """The looks at two parts of a table as one.

    Raises
    ------
    ValueError
        If they have other columns, or cells of a column are of sorts that no column can hold together.
    """
    if set(a.names) != set(b.names):
        lost, more = sorted(set(a.names) - set(b.names)), sorted(set(b.names) - set(a.names))
        said = [f"{how} {', '.join(map(repr, some[:3]))}" for how, some in (("lacks", lost), ("has", more)) if some]
        raise ValueError(f"a part of the table {' and '.join(said)}, unlike another part; every part needs all columns")
    if a.frame != b.frame:
        raise ValueError(f"a part of the table is of {b.frame}, another of {a.frame}; give parts of one library")
    of_b = dict(zip(b.names, b.columns, strict=True))
    columns = tuple(_merged(name, seen, of_b[name]) for name, seen in zip(a.names, a.columns, strict=True))
    return Look(a.frame, a.names, a.number_names | b.number_names, a.n + b.n, columns)


def _merged(name: str, a: Seen, b: Seen) -> Seen:
    """Two looks at one column as one."""
    if a.sort != b.sort and (a.what is None or b.what is None):  # nothing is known of a part, whatever its type
        return b if a.what is None else a
    is_number = {a.sort, b.sort} <= {"number", "integer"}
    if a.sort != b.sort and not is_number:
        raise ValueError(
            f"column {name!r}: {_in_words(a)} in one part of the table, {_in_words(b)} in another; "
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
    return Seen(sort, _wider(name, a, b), a.n_known + b.n_known, what)


def _merge_numbers(a: Numbers, b: Any) -> Numbers:
    grids = OnGrids(a.grids.power & b.grids.power, a.grids.multiple & b.grids.multiple)
    ends = min(a.low, b.low), max(a.high, b.high)
    return Numbers(merge_values(a.values, b.values), *ends, grids, a.n_infinite + b.n_infinite)


def _merge_moments(a: Moments, b: Any) -> Moments:
    """In the finer unit of the two."""
    per_second = max(a.per_second, b.per_second)
    a, b = (_in_ticks(part, per_second) for part in (a, b))
    apart = np.array([is_step(a.first - b.first, size) for size in sizes(per_second)])
    return Moments(per_second, min(a.first, b.first), max(a.last, b.last), a.divides & b.divides & apart)


def _in_ticks(moments: Moments, per_second: float) -> Moments:
    """The same in other, finer ticks."""
    times = round(per_second / moments.per_second)
    return replace(moments, per_second=per_second, first=moments.first * times, last=moments.last * times)


def _merge_labels(name: str, a: Labels, b: Any) -> Labels:
    """An order that both parts' types declare stays; labels of types that list others are sorted later."""
    if a.labels == b.labels:
        return Labels(a.labels, a.counts + b.counts, a.declared and b.declared, a.ordered and b.ordered)
    if a.ordered and b.ordered:
        raise ValueError(
            f"column {name!r}: an ordered category with other levels, or another order of them, in a part of the "
            "table; give all parts one type"
        )
    counts = dict(zip(a.labels, a.counts.tolist(), strict=True))
    for label, count in zip(b.labels, b.counts.tolist(), strict=True):
        counts[label] = counts.get(label, 0) + count
    if len(counts) > MOST_LABELS:
        raise ValueError(
            f"column {name!r}: more than {MOST_LABELS} levels; drop the column if it names the rows, "
            "or join rare levels"
        )
    return Labels(tuple(counts), np.fromiter(counts.values(), np.int64, len(counts)), False, False)


def _wider(name: str, a: Seen, b: Seen) -> str:
    """The dtype that holds the cells of both parts."""
    if a.dtype == b.dtype:
        return a.dtype
    if isinstance(a.what, Moments) and isinstance(b.what, Moments):
        if zone_of(a.dtype) != zone_of(b.dtype):
            raise ValueError(
                f"column {name!r}: times of type {a.dtype} in one part, {b.dtype} in another; use one zone"
            )
        return max((a.what.per_second, a.dtype), (b.what.per_second, b.dtype))[1]
    return max((a, b), key=lambda part: (part.sort == "number", _bits(part.dtype), part.dtype)).dtype


def _bits(dtype: str) -> int:
    """How wide a type of numbers is."""
    found = re.search(r"\d+", dtype)
    return int(found.group()) if found else 64 if "double" in dtype else 32


def _in_words(seen: Seen) -> str:
    return {"levels": "text", "datetime": "dates", "boolean": "booleans"}.get(seen.sort, "numbers")
