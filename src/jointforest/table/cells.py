"""Columns of any frame as plain arrays: what backends make of a frame, and what inference and encoding read."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .schema import Frame


@dataclass(frozen=True)
class ColumnCells:
    """The cells of one column.

    Attributes
    ----------
    sort : str
        ``number``, ``integer`` or ``boolean`` (numbers 0 and 1), ``datetime``, ``levels``, or ``empty`` (all missing).
    dtype : str
        How the frame stores the column.
    values : float64 array (n,), or int64 if ``datetime``
        Numbers, NaN where missing; ticks since 1970-01-01 if ``datetime``; unused for levels.
    missing : bool array (n,)
    codes : integer array (n,), None unless ``levels``
        Place in ``labels``; -1 where missing.
    labels : list
        Distinct values; each label may or may not be in use.
    declared : bool
        Whether the frame's type lists the labels in an order of its own.
    ordered : bool
        Whether the frame's type says that this order has a meaning.
    per_second : float
        Ticks in a second, if ``datetime``.
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


@dataclass(frozen=True)
class FrameReader:
    """A frame of n rows, read column by column.

    Attributes
    ----------
    frame : {"pandas", "polars", "pyarrow", "numpy"}
        The library it came from.
    names : list of str
    n : int
    cells : function
        Reads the column of a name.
    number_names : set of str
        Those of the names that are whole numbers in the frame.
    """

    frame: Frame
    names: list[str]
    n: int
    cells: Callable[[str], ColumnCells]
    number_names: Set[str] = frozenset()


def numbers(sort: str, dtype: str, values: np.ndarray) -> ColumnCells:
    """Cells of a column of numbers (float64 array, NaN where missing)."""
    return ColumnCells(sort, dtype, values, np.isnan(values))


def empty(dtype: str, n: int) -> ColumnCells:
    """Cells of a column in which nothing is known."""
    return ColumnCells("empty", dtype, np.full(n, np.nan), np.ones(n, dtype=bool))


def absent(value: Any) -> bool:
    """Whether a Python object stands for a missing cell: None, NaN, NaT or NA."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def coded(
    dtype: str, codes: np.ndarray, labels: Sequence[Any], declared: bool = False, ordered: bool = False
) -> ColumnCells:
    """Cells of a column of labels; a label that is None or NaN counts as missing."""
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    gone = [k for k, label in enumerate(labels) if absent(label)]
    if gone:
        kept = np.ones(len(labels) + 1, dtype=bool)
        kept[gone] = kept[-1] = False
        codes = np.where(kept, np.cumsum(kept) - 1, -1)[codes]
        labels = [label for k, label in enumerate(labels) if kept[k]]
    missing = codes < 0
    if missing.all() and not declared:
        return empty(dtype, len(codes))
    return ColumnCells("levels", dtype, np.empty(0), missing, codes, labels, declared, ordered)


def ticks(dtype: str, values: np.ndarray, missing: np.ndarray, per_second: float) -> ColumnCells:
    """Cells of a column of moments: int64 ticks since 1970-01-01 (UTC if there is a time zone)."""
    return ColumnCells("datetime", dtype, values, missing, per_second=per_second)


def taken(cells: ColumnCells, rows: np.ndarray) -> ColumnCells:
    """Some rows (numbers, (m,)) of a column."""
    codes = None if cells.codes is None else cells.codes[rows]
    values = cells.values if cells.codes is not None else cells.values[rows]
    return replace(cells, values=values, missing=cells.missing[rows], codes=codes)


def _gaps(like: ColumnCells, missing: np.ndarray) -> ColumnCells:
    """Missing cells of the sort of another column."""
    n = len(missing)
    values = np.full(n, 0 if like.sort == "datetime" else np.nan, like.values.dtype)
    values = values if like.codes is None else np.empty(0)
    return replace(like, values=values, missing=missing, codes=None if like.codes is None else np.full(n, -1))


def joined(name: str, a: ColumnCells, b: ColumnCells) -> ColumnCells:
    """The cells of a column in two parts of a table, those of a first.

    Raises
    ------
    ValueError
        If they are of sorts that no column holds together.
    """
    a, b = (_gaps(b, a.missing) if a.missing.all() else a), (_gaps(a, b.missing) if b.missing.all() else b)
    missing = np.concatenate([a.missing, b.missing])
    if a.sort != b.sort and not {a.sort, b.sort} <= {"number", "integer"}:
        raise ValueError(f"column {name!r}: cells of sort {a.sort} in one part of the table, {b.sort} in another")
    if a.codes is not None and b.codes is not None:
        place = {label: k for k, label in enumerate(a.labels)}
        of_b = np.array([place.setdefault(label, len(place)) for label in b.labels] + [-1])
        return replace(a, missing=missing, codes=np.concatenate([a.codes, of_b[b.codes]]), labels=list(place))
    if a.sort == "datetime":
        per_second = max(a.per_second, b.per_second)
        ticks = [part.values * round(per_second / part.per_second) for part in (a, b)]
        return replace(a, values=np.concatenate(ticks), missing=missing, per_second=per_second)
    return replace(a if a.sort == "number" else b, values=np.concatenate([a.values, b.values]), missing=missing)


_HINTS = {
    "timedelta": "durations are taken as numbers: series.dt.total_seconds()",
    "period": "periods are taken as dates: series.dt.to_timestamp()",
    "interval": "intervals are taken as categories: pandas.cut makes them, and so does astype('category')",
    "time": "times of day are taken as numbers, such as hours since midnight",
    "datetime": "use pandas.to_datetime(series), with utc=True if time zones differ",
    "complex": "make two columns of it: its real and its imaginary part",
}


def hint_for(kind: str, otherwise: str) -> str:
    """What to do with values of a type that no column can have, by its name in small letters."""
    return _HINTS.get(kind, otherwise)


def unsupported(name: str, what: str, hint: str) -> TypeError:
    """Error for a column that cannot be read."""
    return TypeError(f"column {name!r}: {what} is not supported; {hint}")


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
