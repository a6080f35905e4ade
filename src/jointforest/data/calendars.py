"""Columns whose cells are some days only, or whole numbers that stand for dates and times of day.

Firsts of months, working days, ``20230415``, ``202304`` and ``1745`` are no grid of one step. The numbers between them
are numbers to the model; what is drawn or imputed there is moved to a value of the column. It is spread evenly over the
values of the same month, week or hour, so that none of them becomes more common than its neighbours.
"""

from __future__ import annotations

import math

import numpy as np

OF_DAYS = ("month starts", "weekdays")
"""Calendars of date-times, in days."""
OF_NUMBERS = ("yyyymmdd", "yyyymm", "hhmm")
"""Calendars of whole numbers."""
CALENDARS = OF_DAYS + OF_NUMBERS
IN_WORDS = {"yyyymmdd": "dates", "yyyymm": "months", "hhmm": "times of day"}
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
    return _first(OF_DAYS, odd, n, [n_distinct * -math.log(share) for share in shares])


def calendar_of_numbers(odd: np.ndarray, n: int, values: np.ndarray) -> str:
    """The calendar of n numbers, of which so many are in none of `OF_NUMBERS`, by some of their distinct values."""
    # Numbers on a coarse grid, such as multiples of 50, have minutes below 60 by chance more often.
    valid = values[(values >= 100) & (values <= 2400)].astype(np.int64)
    step = math.gcd(int(np.gcd.reduce(valid)), 100) if len(valid) else 100
    minutes = np.arange(0, 100, step)
    is_clock = len(valid) > 0 and valid.max() >= 1300
    nats = [len(values) * -math.log(0.04), len(values) * -math.log(0.12)]
    nats += [len(valid) * -math.log((minutes < 60).mean()) if is_clock else 0.0]
    return _first(OF_NUMBERS, odd, n, nats)


def _first(names: tuple[str, ...], odd: np.ndarray, n: int, nats: list[float]) -> str:
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
