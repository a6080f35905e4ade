"""The rows of a table by subject and time: which rows belong together, and in which order."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from .batches import batches_of
from .cells import ColumnCells, FrameReader
from .frames import encode_cells, read
from .infer_schema import infer_schema
from .sample_rows import row_keys
from .schema import Column, Schema, near, shortened


@dataclass(frozen=True)
class HistoryRows:
    """N rows of n subjects.

    labels : list. What the frame calls each subject, in the order of their first rows.
    start : int64 array (n + 1,). Rows ``place[start[i]:start[i + 1]]`` of the frame are those of subject i, by time.
    place : int64 array (N,)
    time : float64 array (N,) or None. Times of these rows, as numbers of the time column.
    """

    labels: list[Any]
    start: np.ndarray
    place: np.ndarray
    time: np.ndarray | None

    @property
    def length(self) -> np.ndarray:
        """Number of rows of each subject, int64 (n,)."""
        return np.diff(self.start)


def check_history_names(reader: FrameReader, group: Any, order: Any) -> tuple[str, str | None]:
    """Names of the columns of subjects and of time, which the frame must have."""
    if reader.frame == "numpy":
        raise ValueError("group names a column: give a pandas, polars or pyarrow table, not an array")
    for what, name in (("group", group), ("order", order)):
        if name is None and what == "order":
            continue
        if str(name) not in reader.names:
            raise ValueError(f"{what}: there is no column {name!r}; {near(str(name), reader.names)}")
    if order is not None and str(order) == str(group):
        raise ValueError(f"group and order are the same column {group!r}; order is the column of times, or None")
    return str(group), None if order is None else str(order)


def split_columns(frame: Any, names: Collection[str]) -> tuple[Any, Any]:
    """The columns of a frame with these names, which may be whole numbers in the frame, and its other columns."""
    whole = nw.from_native(frame, eager_only=True)
    chosen = [j for j, name in enumerate(whole.columns) if str(name) in names]
    others = [j for j, name in enumerate(whole.columns) if str(name) not in names]
    return whole[:, chosen].to_native(), whole[:, others].to_native()


def some_columns(reader: FrameReader, names: Collection[str]) -> FrameReader:
    """The columns of these names alone, in the order of the frame."""
    return replace(reader, names=[name for name in reader.names if name in names])


def order_column(reader: FrameReader, order: str) -> Column:
    """What is known of the column of times."""
    one = some_columns(reader, [order])
    sort = reader.cells(order).sort
    try:
        schema = infer_schema(one, {order: "integer"} if sort == "integer" else None)
        column = schema.columns[0] if schema.columns else None
    except ValueError:
        if reader.cells(order).codes is None:
            raise
        column = None  # texts that are no dates
    if column is None or column.is_categorical:
        labels = reader.cells(order).labels
        raise ValueError(
            f"order: column {order!r}: expected numbers or dates, got {shortened(labels[0]) if len(labels) else sort}; "
            "turn it into numbers or dates, or leave out order if the rows stand in their order"
        )
    return column


def group_rows(reader: FrameReader, group: str, order: Column | None) -> HistoryRows:
    """Rows by subject, each subject's in the order of time, and in that of the table if times are equal or absent."""
    if reader.n == 0:
        raise ValueError("the table has no rows; at least one is needed")
    subject, labels = _subjects(reader.cells(group), group)
    time = None
    if order is not None:
        time = encode_cells(Schema((order,), reader.frame), some_columns(reader, [order.name]))[0][:, 0]
        lost = np.flatnonzero(np.isnan(time))
        if len(lost):
            raise ValueError(
                f"order: column {order.name!r} is missing in {_some_of(lost, reader.n)}; drop these rows, or fill in "
                "their times"
            )
    place = np.argsort(subject, kind="stable") if time is None else np.lexsort((time, subject))
    subject = subject[place]
    start = np.searchsorted(subject, np.arange(len(labels) + 1))
    time = None if time is None else time[place]
    return HistoryRows(labels, start.astype(np.int64), place.astype(np.int64), time)


def check_subjects(cells: ColumnCells, group: str) -> None:
    """Raise ValueError if a row has no subject."""
    lost = np.flatnonzero(cells.missing)
    if len(lost):
        raise ValueError(
            f"group: column {group!r} is missing in {_some_of(lost, len(cells.missing))}; drop these rows, or name "
            "their subjects"
        )


def _some_of(rows: np.ndarray, n: int) -> str:
    """How many of n rows these are, and the first of them."""
    return f"{len(rows)} of {n} rows, first in row {rows[0]} (counted from 0)"


def _subjects(cells: ColumnCells, group: str) -> tuple[np.ndarray, list[Any]]:
    """Number of the subject of each row, by first appearance, and what the frame calls them."""
    check_subjects(cells, group)
    key = cells.values if cells.codes is None else cells.codes
    distinct, first, number = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(distinct), dtype=np.int64)
    by_first = np.argsort(first)
    rank[by_first] = np.arange(len(distinct))
    names = [cells.labels[k] for k in distinct.tolist()] if cells.codes is not None else distinct.tolist()
    if cells.sort == "integer":
        names = [int(name) for name in names]
    return rank[number], [names[k] for k in by_first.tolist()]


# ---- Tables larger than memory.


def whole_subjects(source: Any, group: str, n_rows: int) -> Iterator[Any]:
    """Frames of whole subjects, of at most ``n_rows`` rows each; in the batches each subject's rows are adjacent."""
    seen = np.empty(0, np.uint64)
    waiting: list[Any] = []
    for batch in batches_of(source)():
        waiting.append(nw.from_native(batch, eager_only=True))
        if sum(len(part) for part in waiting) <= n_rows:
            continue
        table, start, keys = _subject_starts(waiting, group)
        seen = _check_apart(table, group, start[:-1], keys[:-1], seen)
        yield from _histories_between(table, start, n_rows)
        waiting = [table[int(start[-1]) :]]
    if waiting:
        table, start, keys = _subject_starts(waiting, group)
        _check_apart(table, group, start, keys, seen)
        yield from _histories_between(table, np.append(start, len(table)), n_rows)


def _subject_starts(parts: list[Any], group: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Parts of a table as one, the first row of each subject in it, ascending, and the subjects' keys, uint64."""
    table = parts[0]
    if len(parts) > 1:
        table = nw.concat([nw.maybe_reset_index(part) for part in parts], how="vertical")
    if len(table) == 0:
        return table, np.zeros(1, int), np.empty(0, np.uint64)
    reader = read(table.to_native())
    check_history_names(reader, group, None)
    cells = reader.cells(group)
    check_subjects(cells, group)
    key = row_keys([(group, cells)], reader.n, 0)
    start = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    return table, start, key[start]


def _check_apart(table: Any, group: str, start: np.ndarray, keys: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Keys seen before and these, ascending; an error if one is among them twice. Subjects begin at rows ``start``."""
    together = np.unique(np.append(seen, keys))
    if len(together) < len(seen) + len(keys):
        again = next(k for k, key in enumerate(keys) if key in seen or key in keys[:k])
        who = table[int(start[again]) : int(start[again]) + 1].to_native()
        name = _subjects(read(who).cells(group), group)[1][0]
        raise ValueError(
            f"group: the rows of subject {name!r} stand apart; sort the table by {group!r}, so that the rows of each "
            "subject stand together"
        )
    return together


def _histories_between(table: Any, start: np.ndarray, n_rows: int) -> Iterator[Any]:
    """Frames of the subjects whose rows begin at ``start``, up to the last entry, with at most so many rows each."""
    at = 0
    while at < len(start) - 1:
        end = max(at + 1, int(np.searchsorted(start, start[at] + n_rows, side="right")) - 1)
        yield table[int(start[at]) : int(start[end])].to_native()
        at = end
