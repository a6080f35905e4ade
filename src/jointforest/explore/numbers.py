"""A column's numbers as the page has them: dates in milliseconds since 1970, everything else as it is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..table import times
from ..table import values as answers
from ..table.schema import Column

_ULPS = 8 * 2.0**-52


def to_shown(column: Column, number: float) -> float | None:
    """A number of the column as the page has it; None for NaN and infinity."""
    shown = (number + column.origin) * 1e3 if column.kind == "datetime" else number
    return float(shown) if math.isfinite(shown) else None


def all_shown(column: Column, numbers: np.ndarray) -> list[float | None]:
    """`to_shown` of an array."""
    return [to_shown(column, x) for x in numbers.tolist()]


def from_shown(column: Column, shown: float) -> float:
    """A number of the column from what the page says.

    Raises
    ------
    ValueError
        If it is not finite, or a date beyond the years 1 to 9999.
    """
    try:
        number = float(shown)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"column {column.name!r}: expected a finite number, got {str(shown)[:40]}")
    if column.kind != "datetime":
        return number
    if not times.RANGE[0] <= number / 1e3 <= times.RANGE[1]:
        raise ValueError(
            f"column {column.name!r}: expected a date of the years 1 to 9999, got {number:g} ms since 1970"
        )
    return number / 1e3 - column.origin


def rounding(column: Column, number: float) -> float:
    """How far a number may be from what was meant, by its way through `to_shown` and `from_shown`."""
    return _ULPS * (abs(number) + (abs(column.origin) if column.kind == "datetime" else 0.0))


def written(column: Column, number: float) -> Any:
    """A number of the column as people write it in conditions: 40, 1.5, '2024-03-01 12:30'."""
    if column.kind == "datetime":
        return _date_text(column, number)
    value = column.from_number(number) if column.step > 0.0 else number
    if abs(value - number) > 1e-9 * max(1.0, abs(number)):  # not the centre of a cell
        value = number
    return int(value) if value == round(value) and abs(value) < 1e15 else value


def _date_text(column: Column, number: float) -> str:
    """The shortest text that the column reads as this moment."""
    moment = answers.scalar(column, number)
    if not hasattr(moment, "isoformat"):
        return str(moment)
    if not hasattr(moment, "hour"):
        return str(moment.isoformat())
    local = moment.replace(tzinfo=None, fold=0)
    for text in (local.date().isoformat(), local.isoformat(" ", "minutes"), local.isoformat(" ")):
        try:
            if abs(column.to_number(text) - number) < 1e-6:
                return str(text)
        except ValueError:
            continue
    return str(moment.isoformat(" "))


def cell_text(column: Column, number: float, digits: int | None = None) -> str | None:
    """A cell as text, as CSV has it; None where missing. ``digits`` are those of numbers that have no grid."""
    if math.isnan(number):
        return None
    if column.kind == "datetime":
        return _date_text(column, number)
    if column.step == 0.0 and not column.is_categorical:
        return repr(number) if digits is None else f"{number:.{digits}g}"
    value = column.from_number(number)
    return str(value).lower() if isinstance(value, bool) else str(value)
