"""The rows of a table by subject and time: which rows belong together, and in which order."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from .cells import ColumnCells, FrameReader
from .frames import encode, read
from .infer_schema import infer_schema
from .schema import Column, Schema, near, shortened


@dataclass(frozen=True)
class HistoryRows:
    """N rows of n subjects.

    Attributes
    ----------
    labels : list
        What the frame calls each subject, in the order of their first rows.
    start : int64 array (n + 1,)
        Rows ``place[start[i]:start[i + 1]]`` of the frame are those of subject i, in the order of time.
    place : int64 array (N,)
    time : float64 array (N,) or None
        Times of these rows, as numbers of the time column.
    """

    labels: list[Any]
    start: np.ndarray
    place: np.ndarray
    time: np.ndarray | None

    @property
    def length(self) -> np.ndarray:
        """Number of rows of each subject, int64 (n,)."""
        return np.diff(self.start)


def check_names(reader: FrameReader, group: Any, order: Any) -> tuple[str, str | None]:
    """Names of the columns of subjects and of time, which the frame must have.

    Raises
    ------
    ValueError
        If there is no such column, or both are the same; the message names similar ones.
    """
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


def order_column(frame: Any, reader: FrameReader, order: str) -> Column:
    """What is known of the column of times.

    Raises
    ------
    ValueError
        If it holds neither numbers nor dates.
    """
    one, _ = split_columns(frame, [order])
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


def group_rows(frame: Any, group: str, order: Column | None) -> HistoryRows:
    """Rows by subject, each subject's in the order of time, or as they stand if there is no column of times.

    Raises
    ------
    ValueError
        If a row has no subject or no time, or a subject has two rows of one time.
    """
    reader = read(frame)
    if reader.n == 0:
        raise ValueError("the table has no rows; at least one is needed")
    subject, labels = _subjects(reader.cells(group), group)
    time = None
    if order is not None:
        one, _ = split_columns(frame, [order.name])
        time = encode(Schema((order,), reader.frame), one)[0][:, 0]
        lost = np.flatnonzero(np.isnan(time))
        if len(lost):
            raise ValueError(
                f"order: column {order.name!r} is missing in {len(lost)} rows, the first of them row {lost[0]}; "
                "drop these rows, or fill in their times"
            )
    place = np.argsort(subject, kind="stable") if time is None else np.lexsort((time, subject))
    subject = subject[place]
    start = np.searchsorted(subject, np.arange(len(labels) + 1))
    if time is not None and order is not None:
        time = time[place]
        again = np.flatnonzero((np.diff(time) <= 0) & (np.diff(subject) == 0))
        if len(again):
            raise ValueError(
                f"subject {labels[subject[again[0]]]!r} has two rows with {order.name} = "
                f"{shortened(str(order.from_number(float(time[again[0]]))))}, and {len(again)} rows in all repeat a "
                f"time of their subject; keep one of them, or leave out order if the rows stand in their order"
            )
    return HistoryRows(labels, start.astype(np.int64), place.astype(np.int64), time)


def _subjects(cells: ColumnCells, group: str) -> tuple[np.ndarray, list[Any]]:
    """Number of the subject of each row, by first appearance, and what the frame calls them."""
    lost = np.flatnonzero(cells.missing)
    if len(lost):
        raise ValueError(
            f"group: column {group!r} is missing in {len(lost)} rows, the first of them row {lost[0]}; "
            "drop these rows, or name their subjects"
        )
    key = cells.values if cells.codes is None else cells.codes
    distinct, first, number = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(distinct), dtype=np.int64)
    by_first = np.argsort(first)
    rank[by_first] = np.arange(len(distinct))
    names = [cells.labels[k] for k in distinct.tolist()] if cells.codes is not None else distinct.tolist()
    if cells.sort == "integer":
        names = [int(name) for name in names]
    return rank[number], [names[k] for k in by_first.tolist()]
