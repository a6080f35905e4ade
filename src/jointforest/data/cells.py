"""Columns of any frame as plain arrays: what backends make of a frame, and what inference and encoding read."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from . import times
from .conditions import Interval
from .csv_files import SPREADSHEET_ERRORS
from .schema import CATEGORICAL_KINDS, Column, Frame, snapped
from .times import PER_SECOND, unit_of


@dataclass(frozen=True)
class ColumnCells:
    """The cells of one column.

    sort : str. ``number``, ``integer``, ``boolean`` (0 and 1), ``datetime``, ``levels``, or ``empty`` (all missing).
    dtype : str. How the frame stores the column.
    values : float64 array (n,). Numbers, NaN where missing; if ``datetime`` int64 ticks since 1970-01-01.
    missing : bool array (n,)
    codes : integer array (n,), None unless ``levels``. Place in ``labels``; -1 where missing.
    labels : list. Distinct values; some may not occur.
    declared : bool. Whether the frame's type lists the labels in an order of its own.
    ordered : bool. Whether the frame's type says that this order has a meaning.
    per_second : float. Ticks in a second, if ``datetime``.
    range_of : int32 array (n,) or None. Place in ``intervals`` of a cell that is a range and counts as missing; or -1.
    """

    sort: str
    dtype: str
    values: np.ndarray
    missing: np.ndarray
    codes: np.ndarray | None = None
    labels: Sequence[Any] = ()
    declared: bool = False
    ordered: bool = False
    per_second: float = 1.0
    range_of: np.ndarray | None = None
    intervals: tuple[Interval, ...] = ()

    @property
    def is_absent(self) -> np.ndarray:
        """Cells of which nothing is known, not even a range: bool (n,)."""
        return self.missing if self.range_of is None else self.missing & (self.range_of < 0)


@dataclass(frozen=True)
class FrameReader:
    """A frame of n rows, read column by column.

    frame : {"pandas", "polars", "pyarrow", "numpy"}. The library it came from.
    cells : function. Reads the column of a name.
    number_names : set of str. Those of the names that are whole numbers in the frame.
    """

    frame: Frame
    names: list[str]
    n: int
    cells: Callable[[str], ColumnCells]
    number_names: Set[str] = frozenset()


def numbers(sort: str, dtype: str, values: np.ndarray) -> ColumnCells:
    """Cells of a column of numbers (float64 array, NaN where missing)."""
    return ColumnCells(sort, dtype, values, np.isnan(values))


def empty_cells(dtype: str, n: int) -> ColumnCells:
    """Cells of a column in which nothing is known."""
    return ColumnCells("empty", dtype, np.full(n, np.nan), np.ones(n, dtype=bool))


def absent(value: Any) -> bool:
    """Whether a Python object stands for a missing cell: None, NaN, NaT, NA, or an error of a spreadsheet."""
    if isinstance(value, str):
        return "#" in value and value.strip() in SPREADSHEET_ERRORS
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def is_mixed(known: Iterable[Any]) -> bool:
    """Whether cells are texts among numbers or booleans, each of which may be a level."""
    # Booleans among numbers are not, because True equals 1.
    kinds = {type(value) for value in known}
    are_numbers = all(
        issubclass(kind, int | float | np.number) and not issubclass(kind, bool) for kind in kinds - {str}
    )
    return str in kinds and (are_numbers or kinds - {str} <= {bool, np.bool_})


def coded(
    dtype: str, codes: np.ndarray, labels: Sequence[Any], declared: bool = False, ordered: bool = False
) -> ColumnCells:
    """Cells of a column of labels; one that is `absent` counts as missing, of declared ones no text is."""
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    gone = [k for k, label in enumerate(labels) if absent(label) and not (declared and isinstance(label, str))]
    if gone:
        kept = np.ones(len(labels) + 1, dtype=bool)
        kept[gone] = kept[-1] = False
        codes = np.where(kept, np.cumsum(kept) - 1, -1)[codes]
        labels = [label for k, label in enumerate(labels) if kept[k]]
    missing = codes < 0
    if missing.all() and not declared:
        return empty_cells(dtype, len(codes))
    return ColumnCells("levels", dtype, np.empty(0), missing, codes, labels, declared, ordered)


def ticks(dtype: str, values: np.ndarray, missing: np.ndarray, per_second: float) -> ColumnCells:
    """Cells of a column of moments: int64 ticks since 1970-01-01 (UTC if there is a time zone)."""
    return ColumnCells("datetime", dtype, values, missing, per_second=per_second)


OPEN = (None, -math.inf, math.inf)


def ranged(cells: ColumnCells, is_range: np.ndarray, intervals: Sequence[Interval]) -> ColumnCells:
    """The cells, of which those (n,) are ranges; (-inf, inf) is a missing cell, and a single point a number."""
    number = np.full(len(is_range), -1, np.int32) if cells.range_of is None else cells.range_of.copy()
    place = {interval: k for k, interval in enumerate(cells.intervals)}
    is_number, values = cells.codes is None and cells.sort != "datetime", cells.values
    is_point = [is_number and x.lo is not None and x.lo == x.hi for x in intervals]
    number[is_range] = [
        -1 if point or (x.lo in OPEN and x.hi in OPEN) else place.setdefault(x, len(place))
        for x, point in zip(intervals, is_point, strict=True)
    ]
    missing = cells.missing | is_range
    if is_number:
        values = values.copy()
        values[is_range] = [x.lo if point else np.nan for x, point in zip(intervals, is_point, strict=True)]
        missing = np.isnan(values)
    return replace(cells, values=values, missing=missing, range_of=number, intervals=tuple(place))


def is_interval(value: Any) -> bool:
    """Whether a Python object is an interval: `between`, or one of pandas."""
    return isinstance(value, Interval) or (type(value).__name__ == "Interval" and hasattr(value, "closed_left"))


def with_intervals(cells: ColumnCells, objects: np.ndarray, is_range: np.ndarray) -> ColumnCells:
    """Cells of a column of objects of which some are intervals and the others were read; numbers become floats."""
    found = [x if isinstance(x, Interval) else Interval(x.left, x.right, x.closed) for x in objects[is_range]]
    if cells.sort == "empty":
        dates = [end for x in found[:1] for end in (x.lo, x.hi) if hasattr(end, "year")]
        n, gone = len(objects), np.ones(len(objects), bool)
        zone = next((f", {end.tzinfo}" for end in dates if getattr(end, "tzinfo", None) is not None), "")
        dated = ticks(f"datetime64[us{zone}]", np.zeros(n, np.int64), gone, 1e6)
        cells = dated if dates else numbers("number", "float64", np.full(n, np.nan))
    return ranged(replace(cells, dtype="float64") if cells.sort in ("number", "integer") else cells, is_range, found)


def ranges_refused(name: str, n: int, why: str) -> str:
    """Message of an error about n cells of a column that are ranges."""
    return (
        f"column {name!r} has {n:,} {'cell that is a range' if n == 1 else 'cells that are ranges'}, {why}; fill them "
        'first by joint.impute(frame, "sample", ranges="fill") of a HiddenTreeForest, on the command line by '
        "jointforest impute --method sample --ranges fill, or make them missing"
    )


def taken(cells: ColumnCells, rows: np.ndarray) -> ColumnCells:
    """Some rows (numbers, (m,)) of a column."""
    codes = None if cells.codes is None else cells.codes[rows]
    values = cells.values if cells.codes is not None else cells.values[rows]
    few = replace(cells, values=values, missing=cells.missing[rows], codes=codes)
    if cells.range_of is None:
        return few
    used, number = np.unique(np.append(cells.range_of[rows], -1), return_inverse=True)  # the first is -1
    intervals = tuple(cells.intervals[k] for k in used[1:].tolist())
    return replace(few, range_of=(number[:-1] - 1).astype(np.int32), intervals=intervals)


def _blank(like: ColumnCells, missing: np.ndarray) -> ColumnCells:
    """Missing cells of the type of another column."""
    n = len(missing)
    values = np.full(n, 0 if like.sort == "datetime" else np.nan, like.values.dtype)
    values = values if like.codes is None else np.empty(0)
    codes = None if like.codes is None else np.full(n, -1)
    return replace(like, values=values, missing=missing, codes=codes, range_of=None, intervals=())


def check_orders(name: str, a: Any, b: Any) -> None:
    """Raise ValueError if labels of two parts of a table are ordered, and not the same."""
    if a.ordered and b.ordered and tuple(a.labels) != tuple(b.labels):
        raise ValueError(
            f"column {name!r}: an ordered category with other levels, or another order of them, in a part of the "
            "table; give all parts one type"
        )


def joined_cells(name: str, a: ColumnCells, b: ColumnCells) -> ColumnCells:
    """The cells of a column in two parts of a table; raises ValueError if their types do not go together."""
    if a.range_of is not None or b.range_of is not None:
        numbers = [np.full(len(x.missing), -1, np.int32) if x.range_of is None else x.range_of for x in (a, b)]
        at = {interval: k for k, interval in enumerate(a.intervals)}
        of_b = np.array([*(at.setdefault(interval, len(at)) for interval in b.intervals), -1], np.int32)
        exact = joined_cells(name, *(replace(x, range_of=None, intervals=()) for x in (a, b)))
        return replace(exact, range_of=np.concatenate([numbers[0], of_b[numbers[1]]]), intervals=tuple(at))
    a, b = (_blank(b, a.missing) if a.missing.all() else a), (_blank(a, b.missing) if b.missing.all() else b)
    missing = np.concatenate([a.missing, b.missing])
    if a.sort != b.sort and not {a.sort, b.sort} <= {"number", "integer"}:
        raise ValueError(f"column {name!r}: cells of sort {a.sort} in one part of the table, {b.sort} in another")
    if any(bool(of(a.dtype)) != bool(of(b.dtype)) for of in (times.is_span, times.zone_of)):
        raise ValueError(f"column {name!r}: cells of type {a.dtype} in one part of the table, {b.dtype} in another")
    if a.codes is not None and b.codes is not None:
        check_orders(name, a, b)
        place = {label: k for k, label in enumerate(a.labels)}
        of_b = np.array([place.setdefault(label, len(place)) for label in b.labels] + [-1])
        codes, is_same = np.concatenate([a.codes, of_b[b.codes]]), list(a.labels) == list(b.labels)
        declared, ordered = is_same and a.declared and b.declared, is_same and a.ordered and b.ordered
        return replace(a, missing=missing, codes=codes, labels=list(place), declared=declared, ordered=ordered)
    if a.sort == "datetime":
        per_second = max(a.per_second, b.per_second)
        ticks = [part.values * round(per_second / part.per_second) for part in (a, b)]
        return replace(a, values=np.concatenate(ticks), missing=missing, per_second=per_second)
    return replace(a if a.sort == "number" else b, values=np.concatenate([a.values, b.values]), missing=missing)


_HINTS = {
    "interval": "intervals are taken as categories: pandas.cut makes them, and so does astype('category')",
    "datetime": "use pandas.to_datetime(series), with utc=True if time zones differ",
    "complex": "make two columns of it: its real and its imaginary part",
}


def hint_for(kind: str, otherwise: str) -> str:
    """What to do with values of a type that no column can have, by its name in small letters."""
    return _HINTS.get(kind, otherwise)


def unsupported(name: str, what: str, hint: str) -> TypeError:
    """Error for a column that cannot be read."""
    leave = "to leave the column out, drop it from the table; a learner also accepts"
    how = f"kinds={{{name!r}: 'ignored'}}, or --drop {shlex.quote(name)}"
    return TypeError(f"column {name!r}: {what} is not supported; {hint}; {leave} {how}")


def without(reader: FrameReader, names: Set[str]) -> FrameReader:
    """The frame with nothing known in these columns if they cannot be read."""

    def cells(name: str) -> ColumnCells:
        try:
            return reader.cells(name)
        except TypeError:
            if name not in names:
                raise
        return empty_cells((*_EMPTY[reader.frame], "object[str]")[0], reader.n)

    return replace(reader, cells=cells)


def check_names(names: Sequence[Any], hint: str) -> list[str]:
    """The names as a list; an error if one is not text or is there twice."""
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"column names must be text, got {name!r} of type {type(name).__name__}; {hint}")
        if name in seen:
            raise ValueError(f"two columns have the name {name!r}; rename one of them")
        seen.add(name)
    return list(names)


# ---- The written dtypes that a column of each kind of frame can have.

_NUMBER = r"(u?int(8|16|32|64)|float(16|32|64)|bool)"
_UNIT = r"\[(s|ms|us|ns)\]"
_MOMENT = r"(s|ms|us|ns)(, (tz=)?[A-Za-z0-9_+\-/:]+)?"
_ARROW_TEXT = r"(string|large_string|string_view)"
_ARROW_NUMBER = r"(u?int(8|16|32|64)|halffloat|float|double|bool|decimal(32|64|128|256)\(\d{1,2}, -?\d{1,2}\))"
_ARROW = (
    rf"({_ARROW_TEXT}|{_ARROW_NUMBER}|date32\[day\]|date64\[ms\]|timestamp\[{_MOMENT}\]|(duration|time32|time64){_UNIT}"
    rf"|dictionary<values=({_ARROW_TEXT}|{_ARROW_NUMBER}), indices=u?int(8|16|32|64), ordered=[01]>)"
)
_OBJECT = r"object\[(str|bool|int|float|mixed|decimal(\(\d{1,2}\))?|date|time)(\|nan)?\]"
_NULLABLE = r"(U?Int(8|16|32|64)|Float(32|64)|boolean)"
_PANDAS_TEXT = r"(str|string):(python|pyarrow)"
_INTERVALS = rf"interval\[({_NUMBER}|datetime64\[{_MOMENT}\]|timedelta64{_UNIT}), (left|right|both|neither)\]"

_KNOWN = {
    "pandas": rf"{_NUMBER}|{_NULLABLE}|{_PANDAS_TEXT}|{_OBJECT}|datetime64\[{_MOMENT}\]|{_ARROW}\[pyarrow\]"
    rf"|timedelta64{_UNIT}|period\[[A-Za-z0-9-]+\]"
    rf"|category\[(str|string|object|{_NUMBER}|{_NULLABLE}|{_ARROW}\[pyarrow\]|{_INTERVALS})(, ordered)?\]",
    "pyarrow": _ARROW,
    "polars": r"String|Categorical|Enum|Boolean|U?Int(8|16|32|64|128)|Float(16|32|64)|Decimal\(\d{1,2}, \d{1,2}\)"
    rf"|date|time|duration{_UNIT}|datetime\[{_MOMENT}\]",
    "numpy": rf"{_NUMBER}|timedelta64\[(D|h|m|s|ms|us|ns)\]|<U|StringDType\([^)]*\)|{_OBJECT}"
    r"|datetime64\[(D|s|ms|us|ns)\]",
}
_KNOWN["file"] = _KNOWN["pyarrow"]
_EMPTY = {
    "pandas": ("object[str]", "null[pyarrow]"),
    "pyarrow": ("null",),
    "polars": ("Null",),
    "numpy": (),
    "file": ("null",),
}
"""Types of columns without any known cell."""
_IS_TEXT = re.compile(rf"{_PANDAS_TEXT}|object\[str.*|({_ARROW_TEXT}|dictionary<values={_ARROW_TEXT}.*)(\[pyarrow\])?")
_IS_CATEGORY = re.compile(r"(category\[|dictionary<).*")
_IS_MOMENT = re.compile(r"(datetime64|datetime|timestamp|date32|date64|period)\[.*|date|object\[date.*")


def is_text(dtype: str) -> bool:
    """Whether a dtype is one of texts."""
    return _IS_TEXT.fullmatch(dtype) is not None or dtype in ("Categorical", "Enum", "<U") or dtype.startswith("String")


def of_numbers(dtype: str) -> str:
    """The dtype of the numbers in categories of this dtype; other dtypes as they are."""
    dictionary = re.fullmatch(r"dictionary<values=(.+), indices=\w+, ordered=[01]>((?:\[pyarrow\])?)", dtype)
    if dictionary:
        return dictionary.group(1) + dictionary.group(2)
    category = re.fullmatch(r"category\[(.+?)(, ordered)?\]", dtype)
    if category:
        return "float64" if re.fullmatch(f"object|{_INTERVALS}", category.group(1)) else category.group(1)
    return dtype


def check_frame_kind(frame: str, column: Column) -> None:
    """Check that a frame can hold such a column."""
    dtype = column.dtype
    if column.n_observed == 0 and dtype in _EMPTY[frame]:
        return
    if not re.fullmatch(_KNOWN[frame], dtype):
        raise ValueError(f"unknown type {dtype!r:.80} of a {frame} column")
    if "[mixed" in dtype and not column.is_categorical:
        raise ValueError(f"a {column.kind} column cannot have the type {dtype!r}")
    if (is_text(dtype) or _IS_CATEGORY.fullmatch(dtype)) and column.kind not in CATEGORICAL_KINDS:
        raise ValueError(f"a {column.kind} column cannot have the type {dtype!r}")
    if is_text(dtype) and not all(isinstance(level, str) for level in column.levels):
        raise ValueError(f"levels that are not text cannot have the type {dtype!r}")
    if (_IS_MOMENT.fullmatch(dtype) is not None) != (column.kind == "datetime"):
        raise ValueError(f"a {column.kind} column cannot have the type {dtype!r}")
    name = times.zone_of(dtype)
    if column.kind == "datetime" and name is not None:
        times.zone(name)


def floats(objects: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Python numbers (int, float, bool, Decimal) as float64, NaN where missing."""
    return np.array([np.nan if gone else float(v) for v, gone in zip(objects, missing, strict=True)], dtype=np.float64)


# ---- Numbers and codes back to values as a frame stores them: steps shared by all kinds of frames.


def codes(x: np.ndarray) -> np.ndarray:
    """Level codes as int32, -1 where missing."""
    out: np.ndarray = np.where(np.isnan(x), -1.0, x).astype(np.int32)
    return out


def values(column: Column, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (of levels: their values as float) and the mask of missing cells."""
    missing = np.isnan(x)
    if not column.is_categorical:
        return snapped(column, x), missing
    try:
        table = np.array([float(level) for level in column.levels] + [np.nan])
    except ValueError:
        raise ValueError(f"column {column.name!r}: text levels cannot be stored as {column.dtype}") from None
    return np.asarray(table[codes(x)]), missing


def cast(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers as a numpy type: rounded if it holds integers, clipped to its range rather than wrapped around."""
    if dtype.kind == "f" and dtype.itemsize < 8:
        limit = float(np.finfo(dtype).max)
        numbers = np.clip(numbers, -limit, limit)
    if dtype.kind not in "iu":
        return np.asarray(numbers, dtype=dtype)
    limits = np.iinfo(dtype)
    rounded = np.rint(numbers)
    out: np.ndarray = np.clip(rounded, float(limits.min), np.nextafter(float(limits.max), 0.0)).astype(dtype)
    if dtype.itemsize < 8:
        out[rounded >= limits.max] = limits.max
    return out


def stamps(column: Column, x: np.ndarray) -> np.ndarray:
    """Moments as datetime64 in the unit of the column's dtype (UTC if there is a time zone), NaT where missing."""
    if column.only:
        x = snapped(column, x)
    unit = unit_of(column.dtype)
    per_second = PER_SECOND[unit]
    low, high = times.RANGE_NS if unit == "ns" else times.RANGE
    steps = np.rint(np.clip(x, low - column.origin, high - column.origin) / column.step)
    missing = np.isnan(x)
    steps[missing] = 0.0
    # whole grid steps first, so that the arithmetic on ticks stays in integers
    micro = round(column.step * 1e6)
    total = steps.astype(np.int64) * micro
    low = total // 10**6
    ticks = (low + int(column.origin)) * per_second + (total - low * 10**6) * per_second // 10**6
    ticks[missing] = np.iinfo(np.int64).min
    out: np.ndarray = ticks.view(f"datetime64[{unit}]")
    return out


def spans(column: Column, x: np.ndarray, per_second: float) -> np.ndarray:
    """Durations, or times of day, as whole ticks, int64; those of NaT where missing."""
    seconds, missing = values(column, x)
    if times.is_clock(column.dtype):
        seconds = np.clip(seconds, 0.0, 86400.0 - 1.0 / per_second)
    out = np.maximum(cast(np.where(missing, 0.0, seconds * per_second), np.dtype(np.int64)), np.iinfo(np.int64).min + 1)
    out[missing] = np.iinfo(np.int64).min
    return out


def objects(column: Column, x: np.ndarray, absent: Any) -> np.ndarray:
    """Python objects (text, numbers, dates, decimals) with a given sign for missing cells."""
    if column.is_categorical:
        table = np.empty(len(column.levels) + 1, dtype=object)
        table[:-1] = _typed(column, list(column.levels))
        table[-1] = absent
        return np.asarray(table[codes(x)])
    missing = np.isnan(x)
    out = np.empty(len(x), dtype=object)
    if column.dtype.startswith("object[time"):
        micro = np.where(missing, 0, spans(column, x, 1e6))
        out[:] = [moment.time() for moment in micro.astype("datetime64[us]").tolist()]
    elif column.kind == "datetime":
        out[:] = stamps(column, x).astype("datetime64[D]").astype(object)
    else:
        centres = snapped(column, x)
        out[:] = _typed(column, np.where(missing, 0.0, centres).tolist())
    out[missing] = absent
    return out


def _typed(column: Column, items: list[Any]) -> list[Any]:
    if column.dtype.startswith("object[int"):
        return [round(item) for item in items]
    if column.dtype.startswith("object[decimal"):
        scale = re.search(r"\((\d+)\)", column.dtype)
        return [Decimal(f"{item:.{scale[1]}f}" if scale else str(item)) for item in items]
    return items
