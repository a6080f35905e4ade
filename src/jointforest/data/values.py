"""Numbers and codes to what users read: dates, levels, Python scalars."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..runtime.warnings import UnseenLevelWarning, warn
from . import times
from .cells import FrameReader
from .frames import read
from .schema import Column, Schema


def values(column: Column, numbers: np.ndarray) -> np.ndarray:
    """Array of a column's values for an array of numbers or level codes, in any shape.

    Numbers stay float64; date-times become datetime64[us] (UTC if the column has a time zone; NaT for NaN), levels an
    object array (None for NaN).
    """
    if column.is_categorical:
        known = ~np.isnan(numbers)
        levels = np.array([*column.levels, None], dtype=object)
        return levels[np.where(known, numbers, len(column.levels)).astype(np.int64)]
    if column.kind != "datetime":
        return numbers
    micro = np.round(numbers * 1e6)
    # Far beyond any calendar the background still has mass: such moments are shown as the last one there is.
    far = 2.0**62
    moment = np.clip(np.where(np.isnan(micro), 0.0, micro), -far, far).astype(np.int64) + int(column.origin) * 10**6
    return np.where(np.isnan(micro), np.datetime64("NaT"), moment.view("datetime64[us]"))


def scalar(column: Column, number: float) -> Any:
    """One value: a float, a date (the nearest) or datetime, a level."""
    if column.kind == "datetime":
        if math.isnan(number):
            return None
        if times.is_date(column.dtype):
            number = round(number / column.step) * column.step
        try:
            return times.moment(number, column.origin, column.dtype)
        except OverflowError:
            return values(column, np.array([number]))[0]
    return column.from_number(number) if column.is_categorical else float(number)


def spread(column: Column, numbers: np.ndarray) -> np.ndarray:
    """Distances on a column's scale: float64, or timedelta64[us] for date-times."""
    if column.kind != "datetime":
        return numbers
    micro = np.round(numbers * 1e6)
    return np.where(np.isnan(micro), np.timedelta64("NaT"), np.nan_to_num(micro).astype("timedelta64[us]"))


def numbers(column: Column, given: Any) -> np.ndarray:
    """Array of numbers or level codes for a value, or an array or list of values, in its shape.

    Raises
    ------
    ValueError
        If a value is not one of the column's.
    """
    array = np.asarray(given)
    if array.dtype.kind in "iuf" and not column.is_categorical and column.kind != "datetime":
        return array.astype(np.float64)
    flat = [column.to_number(value) for value in array.astype(object).ravel()]
    return np.array(flat, dtype=np.float64).reshape(array.shape)


# ---- A warning of levels that were never seen at learning.


def warn_unseen(schema: Schema, frame: Any, unseen: np.ndarray) -> None:
    """One warning that names the columns and the levels; ``unseen`` (n, d) as `data.frames.encode` marks them.

    Another one if there are cells in columns of which nothing was known at learning.
    """
    if not unseen.any() and not schema.unknown:
        return
    reader = read(frame)
    _warn_unknown(schema, reader)
    if not unseen.any():
        return
    parts = []
    for j in np.flatnonzero(unseen.any(axis=0)):
        name = f"x{schema.places[j]}" if reader.frame == "numpy" else schema.names[j]
        cells = reader.cells(name)
        rows = unseen[:, j]
        found = cells.values[rows].tolist() if cells.codes is None else [cells.labels[k] for k in cells.codes[rows]]
        levels = list(dict.fromkeys(found))
        shown = ", ".join(repr(level) for level in levels[:5]) + (", ..." if len(levels) > 5 else "")
        parts.append(f"{schema.names[j]!r}: {shown} ({int(rows.sum())} cells)")
    warn(UnseenLevelWarning("levels never seen at learning count as missing: " + "; ".join(parts)))


def _warn_unknown(schema: Schema, reader: FrameReader) -> None:
    """Warn of columns that have known cells, but had none at learning."""
    names = [
        (f"x{place}" if reader.frame == "numpy" else column.name, column.name)
        for place, column in schema.unknown
        if column.aside is None
    ]
    told = [name for own, name in names if own in reader.names and not reader.cells(own).missing.all()]
    if told:
        shown = ", ".join(map(repr, told[:5])) + (f" and {len(told) - 5} more" if len(told) > 5 else "")
        warn(UnseenLevelWarning(f"all cells were missing at learning, so that these say nothing: {shown}"))
