"""Dates as people write them: a text is a period, such as a year, a month, a day or a minute."""

from __future__ import annotations

import calendar
import datetime as dt
import math
import re
from typing import Any, NamedTuple

from ..data import times
from ..data.conditions import Interval
from ..data.schema import Column, shortened

_DAY = dt.timedelta(days=1)


class Period(NamedTuple):
    """From ``start`` on, before ``stop``.

    Attributes
    ----------
    start : datetime
        With a time zone only if the text has one.
    stop : datetime or None
        None after the year 9999.
    is_relative : bool
        Whether it is counted from today.
    """

    start: dt.datetime
    stop: dt.datetime | None
    is_relative: bool = False


class TwoDates(ValueError):
    """A text that is one date to some and another to others."""


_MONTHS = [name.lower() for name in calendar.month_name]
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)([a-z]*)\.?"
_GAP = r"[ \-/.]"
_TIME = re.compile(r"(.+?)(?:t| +(?:at )?)(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?\s*(z|[+-]\d\d:?\d\d)?")
_SPANS = {"day": 1, "week": 7}
_FORMS = [
    (re.compile(r"(?P<y>\d{4})"), ""),
    (re.compile(r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})"), ""),
    (re.compile(r"(?P<m>\d{1,2})[-/.](?P<y>\d{4})"), ""),
    (re.compile(r"(?P<y>\d{4})[ -]?q(?P<q>[1-4])|q(?P<q2>[1-4])[ -]?(?P<y2>\d{4})"), ""),
    (re.compile(rf"{_MONTH}{_GAP}(?P<y>\d{{4}})|(?P<y2>\d{{4}}){_GAP}{_MONTH}"), "name"),
    (re.compile(r"(?P<y>\d{4})(?P<g>[-/.])(?P<m>\d{1,2})(?P=g)(?P<d>\d{1,2})"), ""),
    (re.compile(rf"(?P<d>\d{{1,2}}){_GAP}{_MONTH}{_GAP}(?P<y>\d{{4}})"), "name"),
    (re.compile(rf"{_MONTH}{_GAP}(?P<d>\d{{1,2}}){_GAP}(?P<y>\d{{4}})"), "name"),
    (re.compile(rf"(?P<y>\d{{4}}){_GAP}{_MONTH}{_GAP}(?P<d>\d{{1,2}})"), "name"),
]
_SLASHED = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})")


def today_of(column: Column) -> dt.date:
    """The present day, in the time zone of the column if it has one."""
    name = times.zone_of(column.dtype)
    return dt.datetime.now(None if name is None else times.zone(name)).date()


def period(text: str, today: dt.date) -> Period | None:
    """The period that a text names; None if it names none.

    Raises TwoDates if day and month could be either way round.
    """
    word = " ".join(text.strip().strip("'\"").lower().replace(",", " ").split())
    word = re.sub(r"\b(\d{1,2})(?:st|nd|rd|th)\b", r"\1", word)
    try:
        return _relative(word, today) or _of_calendar(word) or _of_clock(word)
    except (ValueError, OverflowError) as error:
        if isinstance(error, TwoDates):
            raise
        return None  # such as 2024-02-30


def _of_calendar(word: str) -> Period | None:
    """A year, quarter, month or day."""
    for pattern, sort in _FORMS:
        match = pattern.fullmatch(word)
        if not match:
            continue
        part = {name[0]: int(x) for name, x in match.groupdict().items() if x is not None and name != "g"}
        if sort:
            month = _month_named(*next((a, b) for a, b in _pairs(match, pattern) if a))
            if month is None:
                return None
            part["m"] = month
        return _from_parts(part)
    if match := _SLASHED.fullmatch(word):
        a, b, year = int(match[1]), int(match[3]), int(match[4])
        if a <= 12 and b <= 12 and a != b:
            first, second = dt.date(year, b, a), dt.date(year, a, b)
            raise TwoDates(f"{shortened(word)} may be {_long(first)} or {_long(second)}; write {first} or {second}")
        return _from_parts({"y": year, "m": a, "d": b} if b > 12 else {"y": year, "m": b, "d": a})
    return None


def _pairs(match: re.Match[str], pattern: re.Pattern[str]) -> list[tuple[str | None, str]]:
    """The groups without a name, two by two: the beginnings of months' names and their rests."""
    named = set(pattern.groupindex.values())
    plain = [match[k] for k in range(1, pattern.groups + 1) if k not in named]
    return list(zip(plain[::2], plain[1::2], strict=True))


def _month_named(begin: str, ending: str) -> int | None:
    word = begin + ending
    fits = [k for k in range(1, 13) if _MONTHS[k].startswith(word)]
    return 9 if word == "sept" else fits[0] if fits else None


def _from_parts(part: dict[str, int]) -> Period:
    if "q" in part:
        return _months(part["y"], 3 * part["q"] - 2, 3)
    if "d" in part:
        return _days(dt.date(part["y"], part["m"], part["d"]), 1)
    return _months(part["y"], part["m"], 1) if "m" in part else _months(part["y"], 1, 12)


def _months(year: int, month: int, n: int) -> Period:
    """n months from the first day of a month on."""
    return Period(_first(year, month), None if year == 9999 and month + n > 12 else _first(year, month + n))


def _first(year: int, month: int) -> dt.datetime:
    """The first moment of a month; months below 1 and above 12 are of other years."""
    return dt.datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)


def _days(day: dt.date, n: int) -> Period:
    start = dt.datetime(day.year, day.month, day.day)
    return Period(start, None if start > dt.datetime.max - n * _DAY else start + n * _DAY)


def _of_clock(word: str) -> Period | None:
    """A minute or a second, or a moment where there are decimals."""
    match = _TIME.fullmatch(word)
    day = _of_calendar(match[1].strip()) if match else None
    if match is None or day is None or day.stop is None or day.stop - day.start != _DAY:
        return None
    micro = int((match[5] or "").ljust(6, "0"))
    start = day.start.replace(hour=int(match[2]), minute=int(match[3]), second=int(match[4] or 0), microsecond=micro)
    if match[6]:
        start = start.replace(tzinfo=dt.UTC if match[6] == "z" else times.zone(match[6]))
    length = dt.timedelta(seconds=0 if match[5] else 1 if match[4] else 60)
    return Period(start, start + length)


_NAMED = re.compile(r"(this|current|last|previous|next) (day|week|month|quarter|year)")
_LAST = re.compile(r"(?:the )?(?:last|past|previous) (\d{1,5}) (day|week|month|quarter|year)s?")


def _relative(word: str, today: dt.date) -> Period | None:
    """A period that is counted from today."""
    days = {"today": 0, "yesterday": -1, "tomorrow": 1}
    if word in days:
        return _days(today + days[word] * _DAY, 1)._replace(is_relative=True)
    if match := _LAST.fullmatch(word):
        return _last(int(match[1]), match[2], today)
    match = _NAMED.fullmatch(word)
    if not match:
        return None
    by = {"last": -1, "previous": -1, "next": 1}.get(match[1], 0)
    y, m = today.year, today.month
    if match[2] in _SPANS:
        n = _SPANS[match[2]]
        first = today - (today.weekday() if n == 7 else 0) * _DAY  # weeks begin on Mondays
        return _days(first + by * n * _DAY, n)._replace(is_relative=True)
    n = {"month": 1, "quarter": 3, "year": 12}[match[2]]
    start = (m - 1) // n * n + 1 + by * n
    return Period(_first(y, start), _first(y, start + n), True)


def _last(n: int, unit: str, today: dt.date) -> Period | None:
    """n days, weeks, months or years that end with today."""
    stop = _days(today + _DAY, 1).start
    if unit in _SPANS:
        return Period(stop - n * _SPANS[unit] * _DAY, stop, True) if n else None
    months = n * {"month": 1, "quarter": 3, "year": 12}[unit]
    first = _first(stop.year, stop.month - months)
    last_day = calendar.monthrange(first.year, first.month)[1]
    return Period(first.replace(day=min(stop.day, last_day)), stop, True) if n else None


# ---- Periods as conditions on a column.


def within_period(column: Column, period: Period) -> Any:
    """The condition that a moment lies in a period; of at most one cell of the column's grid, the cell."""
    length = math.inf if period.stop is None else (period.stop - period.start).total_seconds()
    if length < times.TIME_STEPS[0] <= column.step:  # a time of day in a column of days
        return _text(period.start.replace(tzinfo=None).date())
    is_cell = length <= column.step and column.step in times.TIME_STEPS
    return _text(period.start) if is_cell else between_periods(column, period, period, True, True)


def between_periods(column: Column, low: Period | None, high: Period | None, low_in: bool, high_in: bool) -> Interval:
    """The moments from one period to another; without an end, those after the one or before the other."""
    lo = None if low is None else _text(low.start) if low_in else _stop(column, low)
    hi = None if high is None else _stop(column, high) if high_in else _text(high.start)
    is_moment = [side is not None and side.start == side.stop for side in (low, high)]
    if low is not None and not low_in and lo is None:
        raise ValueError(f"column {column.name!r}: there are no dates after the year 9999")
    closed_low = lo is not None and (low_in or not is_moment[0])
    closed_high = high_in and is_moment[1]
    if closed_low:
        return Interval(lo, hi, "both" if closed_high else "left")
    return Interval(lo, hi, "right" if closed_high else "neither")


def _stop(column: Column, period: Period) -> Any:
    """The end of a period as the column reads it."""
    if period.stop is None:
        return None
    length = (period.stop - period.start).total_seconds()
    if length >= times.TIME_STEPS[0]:
        return _text(period.stop)
    # counted from the start: clocks may show the end twice, or never
    return column.scalar(column.to_number(_text(period.start)) + length)


def _text(moment: dt.date) -> str:
    """A moment as ISO text, a midnight without a zone as its day."""
    is_day = not isinstance(moment, dt.datetime)
    if isinstance(moment, dt.datetime) and moment.tzinfo is None and moment.time() == dt.time():
        return moment.date().isoformat()
    return moment.isoformat() if is_day else str(moment)


def note(column: Column, text: str, period: Period, today: dt.date) -> str:
    """How a text that is counted from today was read."""
    first = period.start.date()
    last = first if period.stop is None else (period.stop - _DAY).date()
    span = f"{first}" if first == last else f"{first} to {last}"
    said = f"{text!r} is {span}, counted from today ({today})."
    ends = [column.scalar(x) for x in (column.minimum, column.maximum) if math.isfinite(x)]
    if len(ends) == 2:
        low, high = (end.date() if isinstance(end, dt.datetime) else end for end in ends)
        if last < low or first > high:
            said += f" The dates of the table are {low} to {high}."
    return said


def _long(day: dt.date) -> str:
    return f"{day.day} {calendar.month_name[day.month]}"
