"""Numbers and dates of a column as cards write them, and the round ones that stand below an axis."""

from __future__ import annotations

import math

from ..cards.format import number_writer
from ..cards.svg import round_ticks
from .schema import Column

DAY = 86_400.0
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


def _moment_text(column: Column, number: float, span: float) -> str:
    """The day of a column of days; else also the time of day, with seconds where the column spans less than 2 hours."""
    step = max(column.step, 1.0)
    moment = column.scalar(column.center + round((number - column.center) / step) * step)
    if not hasattr(moment, "isoformat"):
        return str(moment)
    if not hasattr(moment, "hour"):
        return str(moment.isoformat())
    local = moment.replace(tzinfo=None, fold=0)
    if step >= DAY:
        return str(local.date().isoformat())
    return str(local.isoformat(" ", "minutes" if span >= DAY / 12 else "seconds"))


def date_text(column: Column, number: float) -> str:
    """The shortest text that the column reads as this moment."""
    moment = column.scalar(number)
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


def axis_ticks(column: Column, low: float, high: float) -> list[tuple[float, str]]:
    """Where on an axis from low to high, 0 to 1, which numbers stand; of dates the ends."""
    if column.kind == "datetime":
        return [(at, number_text(column, x, low, high)[:10]) for at, x in ((0.0, low), (1.0, high))]
    ticks = round_ticks(low, high, column.step > 0.0 and float(column.step).is_integer())
    return [((x - low) / (high - low), number_text(column, x, low, high)) for x in ticks]
