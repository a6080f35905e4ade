"""Numbers and dates of a column as cards write them, and the round ones that stand below an axis."""

from __future__ import annotations

import math
from datetime import datetime

import numpy as np

from ..cards.format import number_writer
from ..cards.svg import round_ticks
from .schema import Column

MOST_TICKS = 6
"""So many cells of a grid have all a tick."""
_DAY = 86_400.0
"""Seconds."""


def number_text(column: Column, number: float, low: float, high: float, of_means: bool = False) -> str:
    """A number of a column that ranges from low to high, or a date: the nearest of its grid."""
    if not math.isfinite(number):
        return "–"
    if column.kind == "datetime":
        return _moment_text(column, number, high - low)
    if not (math.isfinite(low) and math.isfinite(high)):
        low = high = number
    return number_writer(low, high, column.step, of_means)(number)


def cell_in_words(column: Column, number: float) -> str | None:
    """A cell as cards write it: a level, a number or a date; None where missing."""
    if math.isnan(number):
        return None
    if column.is_categorical:
        return str(column.levels[int(number)])
    return number_text(column, number, column.minimum, column.maximum)


def interval_in_words(low: str, high: str, about: str = "") -> str:
    """The interval that holds 90 % of the values, by its ends as they are written."""
    return f"at least 90% at {low}" if low == high else f"90% of values: {about}{low} to {high}"


def _moment_text(column: Column, number: float, span: float) -> str:
    """The day of a column of days; else also the time of day, with seconds where the column spans less than 2 hours."""
    step = max(column.step, 1.0)
    local = _on_the_clock(column, column.center + round((number - column.center) / step) * step)
    if isinstance(local, str):
        return local
    if step >= _DAY:
        return local.date().isoformat()
    return local.isoformat(" ", "minutes" if span >= _DAY / 12 else "seconds")


def date_text(column: Column, number: float) -> str:
    """The shortest text that the column reads as this moment."""
    local = _on_the_clock(column, number)
    if isinstance(local, str):
        return local
    for text in (local.date().isoformat(), local.isoformat(" ", "minutes"), local.isoformat(" ")):
        try:
            if abs(column.to_number(text) - number) < 1e-6:
                return text
        except ValueError:
            continue
    return str(column.scalar(number).isoformat(" "))


def _on_the_clock(column: Column, number: float) -> datetime | str:
    """The local time of a moment, without its zone; a text of days and of periods, and where no calendar has it."""
    if column.text(number):
        return column.text(number)
    moment = column.scalar(number)
    if not hasattr(moment, "hour"):
        return str(moment.isoformat()) if hasattr(moment, "isoformat") else str(moment)
    local: datetime = moment.replace(tzinfo=None, fold=0)
    return local


def axis_ticks(column: Column, low: float, high: float) -> list[tuple[float, str]]:
    """Where on an axis from low to high, 0 to 1, which numbers stand; of dates the ends."""
    if column.kind == "datetime":
        return [(at, number_text(column, x, low, high)[:10]) for at, x in ((0.0, low), (1.0, high))]
    if column.step > 0.0 and high - low < (MOST_TICKS + 0.5) * column.step:  # of few cells all
        ticks = (np.arange(low, high - 0.25 * column.step, column.step) + 0.5 * column.step).tolist()
    else:
        ticks = round_ticks(low, high, column.step > 0.0 and float(column.step).is_integer())
    return [((x - low) / (high - low), number_text(column, x, low, high)) for x in ticks]
