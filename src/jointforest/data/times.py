"""Dates and times as seconds since an origin, and back."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

_EPOCH = dt.datetime(1970, 1, 1)
_UNIT = re.compile(r"\[([a-zA-Z]+)(?:, (?:tz=)?([^\]]+))?\]")

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Units of time stamps: how many make a second."""
TIME_STEPS = (86400.0, 3600.0, 60.0, 1.0, 1e-3, 1e-6)
"""Seconds of a day, hour, minute, second, millisecond and microsecond: the resolutions of a column."""
RANGE = (-62135510400.0, 253402214400.0)
"""Seconds since 1970-01-01 that dates can show: the years 1 to 9999, less a day for time zones."""
RANGE_NS = (-9.2e9, 9.2e9)
"""Seconds since 1970-01-01 that time stamps in nanoseconds of 64 bits can show: the years 1678 to 2261."""


def zone_of(dtype: str) -> str | None:
    """Name of the time zone in a column's dtype; None if it has none."""
    match = _UNIT.search(dtype)
    return match.group(2) if match else None


def unit_of(dtype: str) -> str:
    """Unit of the time stamps in a column's dtype: s, ms, us or ns; us if it names none."""
    match = _UNIT.search(dtype)
    return match.group(1) if match and match.group(1) in PER_SECOND else "us"


def is_date(dtype: str) -> bool:
    """Whether a column's dtype holds dates without time of day."""
    return dtype in ("date", "object[date]", "datetime64[D]") or dtype.startswith(("date32[", "date64["))


_SPAN = re.compile(r"(timedelta64|duration|time32|time64|object\[time).*|time")
_CLOCK = re.compile(r"(time32|time64|object\[time).*|time")


def is_span(dtype: str) -> bool:
    """Whether a column's dtype holds durations or times of day, which count seconds."""
    return _SPAN.fullmatch(dtype) is not None


def is_clock(dtype: str) -> bool:
    """Whether a column's dtype holds times of day."""
    return _CLOCK.fullmatch(dtype) is not None


def span_of(value: Any) -> Any:
    """Seconds of a duration, or since midnight of a time of day or its ISO text; what is none of them as it is."""
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "s"))
    if isinstance(value, str) and ":" in value:
        try:
            value = dt.time.fromisoformat(value.strip())
        except ValueError:
            return value
    if isinstance(value, dt.time):
        value = dt.datetime.combine(dt.date.min, value.replace(tzinfo=None)) - dt.datetime.min
    return value.total_seconds() if isinstance(value, dt.timedelta) else value


def zone(name: str) -> dt.tzinfo:
    """Time zone of a name (``Europe/Berlin``, ``UTC``) or an offset (``+02:00``, ``UTC+02:00``)."""
    match = re.fullmatch(r"(?:UTC)?([+-])(\d\d):?(\d\d)", name)
    if match:
        offset = dt.timedelta(hours=int(match.group(2)), minutes=int(match.group(3)))
        return dt.timezone(-offset if match.group(1) == "-" else offset)
    if name.upper() == "UTC":
        return dt.UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"unknown time zone {name!r}; expected a name such as 'Europe/Berlin' or '+02:00'") from None


class ClockError(ValueError):
    """A time of day that clocks of the time zone never show, or show twice."""


def seconds(value: Any, origin: float, zone_name: str | None) -> float:
    """Seconds from the origin to a moment given as datetime, date, numpy.datetime64 or ISO text.

    A moment without time zone is taken in the column's; one with a time zone in a column without is an error. A date
    alone is its first moment.

    Raises
    ------
    ClockError
        If clocks of the column's time zone never show such a time, or show it twice.
    ValueError
        If the value is no moment, or has a time zone that the column lacks.
    """
    value, is_day = _read(value)
    if value.tzinfo is None and zone_name is not None:
        value = value.replace(tzinfo=zone(zone_name))
        if not is_day and value.fold == 0:  # fold=1 says which reading is meant, and so does an offset
            _check_clock(value, zone_name)
    if value.tzinfo is not None:
        if zone_name is None:
            raise ValueError("the column has no time zone, so the value must have none")
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    # whole seconds and the rest apart: the difference from the origin is exact to the microsecond
    delta: dt.timedelta = value - _EPOCH
    return float(delta.days * 86400 + delta.seconds - origin) + delta.microseconds / 1e6


def _read(value: Any) -> tuple[dt.datetime, bool]:
    """A moment as a datetime, and whether it was a date alone."""
    is_day = False
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            raise ValueError("not a time")
        is_day = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
        value = value.astype("datetime64[us]").item()
    if isinstance(value, str):
        text = value.strip()
        is_day = ":" not in text and "T" not in text and " " not in text
        value = dt.datetime.fromisoformat(text)
    elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        is_day, value = True, dt.datetime(value.year, value.month, value.day)
    if not isinstance(value, dt.datetime):
        raise ValueError("not a date or time")
    if value != value:
        raise ValueError("not a time")
    if value.tzinfo is None:  # a plain datetime: those of pandas look up their zone in their own way
        value = dt.datetime.combine(value.date(), value.time())
    return value, is_day


def _check_clock(value: dt.datetime, zone_name: str) -> None:
    """Raise `ClockError` if a time with its zone is skipped, or comes twice, where clocks are changed."""
    before, after = (value.replace(fold=fold).utcoffset() for fold in (0, 1))
    if before is None or after is None or before == after:
        return
    naive = value.replace(tzinfo=None)
    first, second = (f"'{naive.replace(tzinfo=dt.timezone(offset)).isoformat(' ')}'" for offset in (before, after))
    if before > after:
        raise ClockError(f"{naive} comes twice in {zone_name}, where clocks are put back; write {first} or {second}")
    jump = after - before
    raise ClockError(
        f"{naive} does not exist in {zone_name}, where clocks are put forward; write {first}, which is {naive + jump} "
        f"there, or {second}, which is {naive - jump}"
    )


def moment(number: float, origin: float, dtype: str) -> dt.date | dt.datetime:
    """Date or datetime of a number of seconds since the origin, in the column's time zone."""
    number = min(max(number, RANGE[0] - origin), RANGE[1] - origin)
    full_seconds = math.floor(number)
    micro = round((number - full_seconds) * 1e6)
    value = _EPOCH + dt.timedelta(seconds=full_seconds + int(origin), microseconds=micro)
    name = zone_of(dtype)
    if name is not None:
        return value.replace(tzinfo=dt.UTC).astimezone(zone(name))
    return value.date() if is_date(dtype) else value
