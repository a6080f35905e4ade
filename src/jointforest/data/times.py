"""Dates and times as seconds since an origin, and back; columns that have some days or whole numbers only."""

from __future__ import annotations

import calendar
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


_SPAN_UNITS = {"w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SPAN_NAMES = {"week": "w", "day": "d", "hr": "h", "hour": "h", "min": "m", "minute": "m", "sec": "s", "second": "s"}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+),?\s*")
_CLOCK_TEXT = re.compile(r"(.*?)([+-]?)(\d+):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?")


def span_of(value: Any) -> Any:
    """Seconds of a duration, or since midnight of a time of day; what is none of them, nor its text, as it is."""
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "s"))
    if isinstance(value, str):
        number = _span_seconds(value.strip().lower())
        return value if number is None else number
    if isinstance(value, dt.time):
        value = dt.datetime.combine(dt.date.min, value.replace(tzinfo=None)) - dt.datetime.min
    return value.total_seconds() if isinstance(value, dt.timedelta) else value


def _span_seconds(text: str) -> float | None:
    """Seconds of a text such as ``1 days 02:00``, ``-1 day, 22:00:00``, ``90 min``, ``1h 30m``; None of another one."""
    total, clock = 0.0, _CLOCK_TEXT.fullmatch(text)
    days = clock[1] if clock else text
    is_below = days.startswith("-")
    if clock:
        total = 3600.0 * int(clock[3]) + 60.0 * int(clock[4]) + float(clock[5] or 0)
        total = -total if clock[2] == "-" else total  # which is added: -1 days +22:00 is two hours below zero
    rest = days.removeprefix("-").strip()
    if not (clock or rest):
        return None
    while rest:
        amount = _AMOUNT.match(rest)
        name = amount[2] if amount else ""
        unit = _SPAN_UNITS.get(_SPAN_NAMES.get(name.rstrip("s") if len(name) > 2 else name, name))
        if amount is None or unit is None:
            return None
        total += float(amount[1]) * unit * (-1.0 if is_below else 1.0)
        rest = rest[amount.end() :]
    return total


def span_text(number: float, dtype: str) -> str:
    """A duration in seconds, or a time of day, as pandas and clocks show it."""
    days, rest = divmod(round(number, 6), 86400.0)
    minutes, seconds = divmod(rest, 60.0)
    clock = f"{int(minutes) // 60:02d}:{int(minutes) % 60:02d}:{seconds:09.6f}".rstrip("0").rstrip(".")
    return clock if is_clock(dtype) else f"{days:.0f} days {'+' if days < 0 else ''}{clock}"


_PERIOD_TYPE = re.compile(r"period\[\d*([A-Z])[A-Z]?(?:-([A-Z]{3}))?\]")
_PERIOD_TEXT = re.compile(r"(\d{4})(?:-?q([1-4])|-(\d\d))?", re.IGNORECASE)
_MONTH_NAMES, _DAY_NAMES = ([name.upper() for name in names] for names in (calendar.month_abbr, calendar.day_abbr))


def _calendar_of(dtype: str) -> tuple[str, int]:
    """The length of the periods of a column, such as Q, and by how many months their years begin before January."""
    match = _PERIOD_TYPE.fullmatch(dtype)
    length = {"A": "Y"}.get(match[1], match[1]) if match else ""
    return length, 12 - _MONTH_NAMES.index(match[2]) if match and match[2] and length in "QY" else 0


def period_start(text: str, dtype: str) -> dt.datetime | None:
    """The first moment of a year, a quarter or a month, in a column of such periods; None of other texts."""
    match, (length, before) = _PERIOD_TEXT.fullmatch(text.strip()), _calendar_of(dtype)
    if match is None or length != ("Q" if match[2] else "M" if match[3] else "Y"):
        return None
    month = 12 * int(match[1]) + (3 * int(match[2]) - 3 if match[2] else int(match[3] or 1) - 1) - before
    return dt.datetime(month // 12, month % 12 + 1, 1)


def period_text(moment: dt.datetime, dtype: str) -> str:
    """The period of a column that begins with a moment, or has it, as pandas shows it."""
    length, before = _calendar_of(dtype)
    year, month = divmod(12 * moment.year + moment.month - 1 + before, 12)
    if length in ("Y", "Q", "M"):
        return {"Y": f"{year:04d}", "Q": f"{year:04d}Q{month // 3 + 1}", "M": f"{year:04d}-{month + 1:02d}"}[length]
    if length == "W":
        last = dtype[-4:-1] if dtype[-5:-4] == "-" else "SUN"
        day = moment.date() - dt.timedelta(days=(moment.weekday() - _DAY_NAMES.index(last) - 1) % 7)
        return f"{day}/{day + dt.timedelta(days=6)}"
    return moment.date().isoformat() if length in ("D", "B") else str(moment)


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
    """Seconds from the origin to a moment (datetime, date, numpy.datetime64 or ISO text) in the column's time zone."""
    # Raises ClockError for times that the zone's clocks skip or show twice, ValueError for other bad moments.
    value, is_day = _moment_of_text(value)
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


def _moment_of_text(value: Any) -> tuple[dt.datetime, bool]:
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
        _check_text(text)
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


_DAY = re.compile(r"(\d{4}-\d\d-\d\d|\d{4}-?W\d\d(?:-?\d)?|\d{8})(.*)")
_YEAR = re.compile(r"\d{4}")


def _check_text(text: str) -> None:
    """Raise ValueError of a text that is no date, with what to write; of an offset after a date without a time."""
    # Python would read the offset in 2024-02-01+23:00 as a time of day.
    day = _DAY.fullmatch(text)
    if day is None:
        whole_year = f"; the year {text} is: between '{text}-01-01' and '{text}-12-31'" if _YEAR.fullmatch(text) else ""
        raise ValueError(f"write year-month-day, and then a space and the time{whole_year}")
    if day[2][:1] in ("+", "-", "Z", "z"):
        raise ValueError(f"an offset follows a time: write '{day[1]} 00:00{day[2]}'")
    if day[2][:1] not in ("", " ", "T", "t"):
        raise ValueError(f"a space or T, and the time, follow a date: '{day[1]} 12:30'")


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


# ---- Columns whose cells are some days only, or whole numbers that stand for dates and times of day.
# ---- Firsts of months, working days, ``20230415``, ``202304`` and ``1745`` are no grid of one step. The numbers
# ---- between them are numbers to the model; what is drawn or imputed there is moved to a value of the column. It is
# ---- spread evenly over the values of the same month, week or hour, so that none of them becomes more common than its
# ---- neighbours.


OF_DAYS = ("month starts", "weekdays")
"""Calendars of date-times, in days."""
OF_NUMBERS = ("yyyymmdd", "yyyymm", "hhmm")
"""Calendars of whole numbers."""
CALENDARS = OF_DAYS + OF_NUMBERS
IN_WORDS = {"yyyymmdd": "dates", "yyyymm": "months", "hhmm": "times of day"}
REACH = {"month starts": 31, "weekdays": 6, "yyyymmdd": 10_000, "yyyymm": 100, "hhmm": 100}
"""Largest change that `moved` makes: of days, or of whole numbers."""
_SURE = 2.0 * math.log(1000.0)
"""Nats by which chance must be ruled out before a column has a calendar."""
DAY = 86_400
_YEARS = (1800, 2200)


def odd_days(micro: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """How many of some moments, microseconds since 1970 that occur so often each, are in no calendar of days."""
    day = micro // (DAY * 10**6)
    is_day = micro == day * (DAY * 10**6)
    valid = (_month_start(day) == day, _weekday(day) == day)
    return np.array([counts[~(is_day & is_valid)].sum() for is_valid in valid])


def odd_numbers(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """How many of some finite numbers, which occur so often each, are in no calendar of whole numbers."""
    with np.errstate(invalid="ignore"):
        is_whole = (values == np.rint(values)) & (values >= 0) & (values < 1e8)
    whole = np.where(is_whole, values, 0).astype(np.int64)
    odd = []
    for name, low, high in (("yyyymmdd", 10_000, 10_000), ("yyyymm", 100, 100), ("hhmm", 0, 0)):
        is_valid = is_whole & (moved(name, whole) == whole)
        if low:
            is_valid &= (whole >= _YEARS[0] * low) & (whole < _YEARS[1] * high)
        odd.append(counts[~is_valid].sum())
    return np.array(odd)


def dates_in_numbers(values: np.ndarray) -> str:
    """How distinct whole numbers (k,) seem to write days, such as ``%m%d%Y`` of 10142018; empty if they do not."""
    # Those of `OF_NUMBERS` are no such numbers: these keep the order of the days.
    whole = values.astype(np.int64)
    first, second, year = whole // 1_000_000, whole // 10_000 % 100, whole % 10_000
    for pattern, month, day in (("%m%d%Y", first, second), ("%d%m%Y", second, first)):
        fits = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (year >= 1900) & (year <= 2100)
        if fits.all() and len(whole) * -math.log(0.0015) > _SURE:
            return pattern
    return ""


def of_days(odd: np.ndarray, n: int, n_distinct: int) -> str:
    """The calendar of so many moments, of which so many are in none of `OF_DAYS`; empty if it may be chance."""
    shares = (12.0 / 365.0, 5.0 / 7.0)
    return _name_first(OF_DAYS, odd, n, [n_distinct * -math.log(share) for share in shares])


def calendar_of_numbers(odd: np.ndarray, n: int, values: np.ndarray) -> str:
    """The calendar of n numbers, of which so many are in none of `OF_NUMBERS`, by some of their distinct values."""
    # Numbers on a coarse grid, such as multiples of 50, have minutes below 60 by chance more often.
    valid = values[(values >= 100) & (values <= 2400)].astype(np.int64)
    step = math.gcd(int(np.gcd.reduce(valid)), 100) if len(valid) else 100
    minutes = np.arange(0, 100, step)
    is_clock = len(valid) > 0 and valid.max() >= 1300
    nats = [len(values) * -math.log(0.04), len(values) * -math.log(0.12)]
    nats += [len(valid) * -math.log((minutes < 60).mean()) if is_clock else 0.0]
    return _name_first(OF_NUMBERS, odd, n, nats)


def _name_first(names: tuple[str, ...], odd: np.ndarray, n: int, nats: list[float]) -> str:
    each = zip(names, odd.tolist(), nats, strict=True)
    return next((name for name, n_odd, sure in each if n_odd <= n / 1000 and sure > _SURE), "")


def moved(name: str, whole: np.ndarray) -> np.ndarray:
    """Days since 1970, or whole numbers, int64 (n,), moved to valid values of a calendar."""
    if name == "month starts":
        return _month_start(whole)
    if name == "weekdays":
        return _weekday(whole)
    if name == "hhmm":
        hour, minute = np.divmod(np.clip(whole, 0, 2399), 100)
        return np.asarray(100 * hour + np.where(minute < 60, minute, 3 * (minute - 60) // 2))
    if name == "yyyymm":
        return np.asarray(_month(np.clip(whole, 100, 999_999)))
    year_and_month, day = np.divmod(np.clip(whole, 10_000, 99_999_999), 100)
    month = _month(year_and_month)
    months = (12 * (month // 100 - 1970) + month % 100 - 1).astype("datetime64[M]")
    days = ((months + 1).astype("datetime64[D]") - months.astype("datetime64[D]")).astype(np.int64)
    beyond = (day - days - 1) % 100
    return np.asarray(100 * month + np.where((day > 0) & (day <= days), day, 1 + beyond * days // (100 - days)))


def _month(number: np.ndarray) -> np.ndarray:
    """Year and month, of which the month exists."""
    year, month = np.divmod(number, 100)
    return np.asarray(100 * year + np.where((month > 0) & (month < 13), month, 1 + (month - 13) % 100 * 12 // 88))


def _month_start(day: np.ndarray) -> np.ndarray:
    """The nearest first of a month."""
    month = day.astype("datetime64[D]").astype("datetime64[M]")
    before, after = ((month + k).astype("datetime64[D]").astype(np.int64) for k in (0, 1))
    return np.where(day - before <= after - day, before, after)


def _weekday(day: np.ndarray) -> np.ndarray:
    """The day itself, or for a Saturday or Sunday a day of its week; each in its turn."""
    week, of_week = np.divmod(day + 3, 7)  # 1970 began on a Thursday
    return np.asarray(day - of_week + np.where(of_week < 5, of_week, (2 * week + of_week) % 5))
