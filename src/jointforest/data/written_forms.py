"""How text columns write numbers, dates and times: how a text is read, and how a number is written."""

from __future__ import annotations

import calendar
import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, cached_property
from typing import Any

import numpy as np

from .csv_files import SPREADSHEET_ERRORS
from .times import span_of

SORTS = ("number", "date", "month", "time", "duration", "tick")
_SHORT = ("na", "n/a", "n.a.", "n.a", "<na>", "nan", "null", "none", "nil", "\\n", "n/d", "tbd")
_LONG = ("missing", "unknown", "not known", "not available", "not applicable", "no data", "unspecified", "undefined")
_MISSING_WORDS = frozenset((*_SHORT, *_LONG))

MOST_EXCEPTIONS = 20
"""Distinct texts of a column that may differ from its form."""


def is_missing_word(text: str) -> bool:
    """Whether a text means a missing cell where all other cells are numbers, dates or times."""
    if text[-1:].isdigit():
        return False
    word = text.strip()
    has_letters = any(map(str.isalnum, word))  # *** and -- have none
    return not has_letters or word.casefold() in _MISSING_WORDS or word in SPREADSHEET_ERRORS


def line_regex(pattern: str) -> re.Pattern[str]:
    """What a whole line looks like, but for spaces at its ends; no match goes beyond the line."""
    return re.compile(rf"^\s*(?:{pattern})\s*$".replace(r"\s", r"[^\S\n]"), re.MULTILINE)


CLOCK = line_regex(r"(?P<h>\d{1,4}):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d(?:\.\d{1,6})?))?(?P<half> ?[AaPp][Mm])?")
_DATE_PART = re.compile(r"(%\^?[a-zA-Z])")
"""A part of a date's pattern; ``%^b`` is a month in capitals."""
_PARTS = {
    "%Y": r"(?P<Y>\d{4})",
    "%y": r"(?P<y>\d{2})",
    "%m": r"(?P<m>\d{1,2})",
    "%d": r"(?P<d>\d{1,2})",
    "%H": r"(?P<H>\d{1,2})",
    "%I": r"(?P<I>\d{1,2})",
    "%M": r"(?P<M>\d{2})",
    "%S": r"(?P<S>\d{2})",
    "%f": r"(?P<f>\d{1,6})",
    "%p": r"(?P<p>[AaPp][Mm])",
    "%b": r"(?P<b>[A-Za-z]{3})",
    "%^b": r"(?P<b>[A-Za-z]{3})",
    "%B": r"(?P<b>[A-Za-z]{3,9})",
    "%^B": r"(?P<b>[A-Za-z]{3,9})",
}
_EPOCH = dt.datetime(1970, 1, 1)
_MONTHS = {name.lower(): k for names in (calendar.month_abbr, calendar.month_name) for k, name in enumerate(names) if k}


@dataclass(frozen=True)
class WrittenForm:
    """How the cells of one column are written.

    sort : {"number", "date", "month", "time", "duration", "tick"}. Months are counted from January 1970.
    dtype : str. How the frame stores the texts, or the ticks.
    prefix, suffix : str. Currency or unit around each number; of ticks the text that means True, if they are texts.
    thousands, decimal : str. Signs between thousands (or none) and before decimals.
    decimals : int. Number of decimals of each cell, or of its seconds; -1 where it differs between cells.
    negative : {"-", "()", "after", "+"}. Form of numbers below zero; "+": as "-", and numbers above zero have a plus.
    pattern : str. Of dates as for ``strptime``; of times ``h:mm`` or ``h:mm:ss``, with ``p`` for AM or PM; of durations
        with units as `duration_text` has it.
    padded : bool. Whether days, months and hours have two digits, and 0.5 has its zero.
    unit : {"", "months", "minutes", "seconds"}. What months, times and durations are counted in.
    exceptions : tuple of str. Texts that have another form and count as missing.
    lakh : bool. Whether numbers are grouped as in 1,20,000.
    """

    sort: str
    dtype: str
    prefix: str = ""
    suffix: str = ""
    thousands: str = ""
    decimal: str = "."
    decimals: int = -1
    negative: str = "-"
    pattern: str = ""
    padded: bool = True
    unit: str = ""
    exceptions: tuple[str, ...] = ()
    lakh: bool = False

    @property
    def in_words(self) -> str:
        """The form in words, for messages."""
        if self.sort == "date":
            named = {"Y": "year", "y": "year", "m": "month", "d": "day", "b": "month", "B": "month"}
            named |= {"H": "hour", "I": "hour", "M": "minute", "S": "second"}
            parts = [part[-1] for part in _DATE_PART.findall(self.pattern)]
            return "dates: " + ", ".join(named[part] for part in parts if part in named)
        if self.sort == "tick":
            return f"a tick box: {self.example!r} is True, and a missing cell is False"
        if self.sort != "number":
            what = {"time": "times of day", "month": "months"}.get(self.sort, "durations")
            return f"{what}, counted in {self.unit}{' from January 1970' if self.sort == 'month' else ''}"
        said = {",": "commas", ".": "points", "'": "apostrophes", "’": "apostrophes"}.get(self.thousands, "spaces")
        parts = [f"unit {(self.prefix or self.suffix).strip()}"] if self.prefix or self.suffix else []
        parts += [f"{said} between {'lakhs' if self.lakh else 'thousands'}"] if self.thousands else []
        parts += ["decimal commas"] if self.decimal == "," else []
        parts += ["parentheses below zero"] if self.negative == "()" else []
        return "numbers" + (": " + ", ".join(parts) if parts else "")

    @property
    def example(self) -> str:
        """What a cell looks like."""
        if self.sort == "tick":
            return self.prefix or ("True" if "bool" in self.dtype.lower() else "1")
        if self.sort == "number":
            return self.write(123456.5 if self.lakh else 1234.5 if self.thousands else 12.5)
        return self.write(1.6695e9 if self.sort == "date" else 570.0)  # 26 November 2022; half past nine

    def parse(self, text: str) -> float | None:
        """The number, or seconds since 1970, that a text stands for; None if it has another form."""
        # A day alone is its first moment, also in a form with a time of day.
        if self.sort == "tick":
            return 1.0 if text.strip() == self.example.strip() else None
        value = float(self.parse_all([text])[0])
        if not math.isnan(value):
            return value
        day = re.split(r"[ T,]+%[HI]", self.pattern)[0] if self.sort == "date" else self.pattern
        return replace(self, pattern=day).parse(text) if day != self.pattern else None

    def parse_all(self, texts: Sequence[str]) -> np.ndarray:
        """`parse` of n texts, (n,): NaN where one has another form."""
        if self.sort == "duration" and "%" in self.pattern:
            return np.array([np.nan if isinstance(of := span_of(text), str) else of for text in texts], dtype=float)
        # Texts are joined to lines, which regular expressions take apart at once: a million texts take a second.
        lines = "\n".join(texts)
        one_line = self._regex
        found = one_line.findall(lines)
        if len(found) == len(texts) == lines.count("\n") + 1:
            return self._values(lines, found)
        out = np.full(len(texts), np.nan)
        fits = np.array([one_line.fullmatch(text) is not None and "\n" not in text for text in texts], dtype=bool)
        if fits.any():
            lines = "\n".join(text for text, fit in zip(texts, fits.tolist(), strict=True) if fit)
            out[fits] = self._values(lines, one_line.findall(lines))
        return out

    def _values(self, lines: str, found: Sequence[Any]) -> np.ndarray:
        """The numbers of lines that all have the form, and the groups of each."""
        if self.sort == "number":
            return self._numbers(lines)
        of = dict(zip(self._regex.groupindex, zip(*found, strict=True), strict=True))
        if self.sort == "month":
            days = _seconds_of_parts(of | {"d": ["1"] * len(found)}) / 86400.0
            whole = np.where(np.isnan(days), 0.0, days).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
            return np.where(np.isnan(days), np.nan, whole)
        return _seconds_of_parts(of) if self.sort == "date" else self._clocks(of)

    def is_missing(self, text: str) -> bool:
        """Whether a text stands for a missing cell in a column of this form."""
        return is_missing_word(text) or text in self.exceptions

    def write(self, number: float) -> str:
        """The text of a number."""
        if self.sort == "month":
            month = round(min(max(number, -23628), 96359))  # of the years 1 to 9999
            number = float(np.datetime64(month, "M").astype("datetime64[s]").astype(np.int64))
        if self.sort in ("date", "month"):
            return _date_text(number, self)
        if "%" in self.pattern:
            return duration_text(number, self.pattern)
        if self.sort != "number":
            return self._clock_text(number)
        size = abs(float(number))  # a NumPy number writes itself with its type
        digits = f"{size:.{self.decimals}f}" if self.decimals >= 0 else _plain_number(size)
        whole, _, fraction = digits.partition(".")
        if self.thousands:
            ends = r"\B(?=(\d\d)*\d{3}$)" if self.lakh else r"\B(?=(\d{3})+$)"
            whole = re.sub(ends, self.thousands, whole)
        whole = "" if whole == "0" and fraction and not self.padded else whole
        body = f"{self.prefix}{whole}{self.decimal + fraction if fraction else ''}{self.suffix}"
        if number < 0 and float(digits) != 0:
            return {"()": f"({body})", "after": f"{body}-"}.get(self.negative, f"-{body}")
        if self.negative == "+" and float(digits) != 0:
            return f"+{body}"
        return body

    def cell(self, number: float) -> str | float:
        """What a cell holds: the text of a number, or the number itself in a column of plain numbers among texts."""
        usual = WrittenForm(self.sort, self.dtype, decimals=self.decimals, exceptions=self.exceptions)
        if "[mixed" not in self.dtype or self.sort != "number" or self != usual:
            return self.write(number)
        return int(number) if float(number).is_integer() else float(number)

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        """What a line with a text of this form looks like; numbers have at most one sign and no group."""
        if self.sort in ("date", "month"):
            return date_regex(self.pattern)
        if self.sort != "number":
            return CLOCK
        thousands, decimal = re.escape(self.thousands), re.escape(self.decimal)
        prefix, suffix = (re.escape(unit.strip()) for unit in (self.prefix, self.suffix))
        prefix, suffix = (rf"(?:{unit})?\s*" if unit else "" for unit in (prefix, suffix))
        # no group before thousands begins with 0: 0,562 is less than 1
        groups = rf"[1-9]\d?(?:{thousands}\d\d)*" if self.lakh else rf"[1-9]\d{{0,2}}(?:{thousands}\d{{3}})*"
        whole = rf"(?:{groups}{thousands}\d{{3}}|\d+)" if self.thousands else r"\d+"
        body = rf"(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][+\-]?\d{{1,3}})?\s*{suffix}"
        signed = rf"[+\-−]?\s*{prefix}{body}|{prefix}[+\-−]\s*{body}|{prefix}{body}-"
        return line_regex(rf"\(\s*{prefix}{body}\)|{signed}")

    def _numbers(self, lines: str) -> np.ndarray:
        suffix = self.suffix.strip()
        if suffix:  # at the ends of lines only, because the unit e is not an exponent
            lines = re.sub(re.escape(suffix) + r"(?=[^\S\n]*[)-]?[^\S\n]*$)", "", lines, flags=re.MULTILINE)
        for mark in (self.prefix.strip(), self.thousands):
            lines = lines.replace(mark, "") if mark else lines
        lines = lines.replace(self.decimal, ".").replace("−", "-")
        lines = re.sub(r"[^\S\n]+", "", lines)
        lines = re.sub(r"^\((.*)\)$", r"-\1", lines, flags=re.MULTILINE) if "(" in lines else lines
        lines = re.sub(r"^(.*)-$", r"-\1", lines, flags=re.MULTILINE)
        values = np.array(list(map(float, lines.split("\n"))))
        values[~np.isfinite(values)] = np.nan
        return values

    def _clocks(self, of: Mapping[str, Sequence[str]]) -> np.ndarray:
        """Minutes or seconds, from the texts of the parts of each."""
        hour, minute = (np.array([int(text) for text in of[part]]) for part in "hm")
        second = np.array([float(text or 0) for text in of["s"]])
        hour, is_wrong = _of_halves(hour, of["half"])
        if self.sort == "time":
            is_wrong |= hour > 23
        seconds = np.where(is_wrong, np.nan, 3600.0 * hour + 60.0 * minute + second)
        return seconds / 60.0 if self.unit == "minutes" else seconds

    def _clock_text(self, number: float) -> str:
        places = max(self.decimals, 0)
        seconds = max(round(float(number) * (60 if self.unit == "minutes" else 1), places), 0.0)
        hour, rest = int(seconds // 3600), seconds % 3600
        if self.sort == "time":
            hour = min(hour, 23) if hour < 24 else 23
            rest = rest if seconds < 86400 else 3599
        half = ""
        if "p" in self.pattern:
            half = (" " if " p" in self.pattern else "") + ("AM" if hour < 12 else "PM")
            hour = (hour - 1) % 12 + 1
        text = f"{hour:02d}" if self.padded else f"{hour}"
        text += f":{int(rest // 60):02d}"
        return text + (f":{rest % 60:0{places + 3 if places else 2}.{places}f}" if "ss" in self.pattern else "") + half


def _plain_number(size: float) -> str:
    """A number without exponent and without zeros at its end."""
    text = format(Decimal(repr(size)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


@cache
def date_regex(pattern: str) -> re.Pattern[str]:
    """What lines with dates in a pattern look like."""
    parts = _DATE_PART.split(pattern)
    regex = "".join(_PARTS.get(part, re.escape(part).replace(r"\ ", r"\s")) for part in parts)
    return line_regex(regex.replace("{1,2}", "{2}", 2) if is_solid(pattern) else regex)


def is_solid(pattern: str) -> bool:
    """Whether nothing stands between the numbers of a date, so that all have all of their digits."""
    return re.match("(%[Ymd]){3}", pattern) is not None


def _seconds_of_parts(of: Mapping[str, Sequence[str]]) -> np.ndarray:
    """Seconds since 1970, from the texts of the parts of each; NaN of a day or an hour that does not exist."""
    n = len(of["d"])

    def part(name: str) -> np.ndarray:
        return np.array(list(map(int, of[name]))) if name in of else np.zeros(n, np.int64)

    month = np.array([_MONTHS.get(text.lower(), 0) for text in of["b"]]) if "b" in of else part("m")
    short, day, hour, minute, second = map(part, "ydHMS")
    micro = np.array([int(text.ljust(6, "0")) for text in of["f"]]) if "f" in of else 0
    year = part("Y") if "Y" in of else short + np.where(short >= 30, 1900, 2000)  # 1930 to 2029, as in spreadsheets
    is_wrong = (year < 1) | (month < 1) | (month > 12) | (day < 1) | (hour > 23) | (minute > 59) | (second > 59)
    if "I" in of:
        hour, wrong_half = _of_halves(part("I"), of["p"])
        is_wrong |= wrong_half
    months = np.array(12 * (year - 1970) + np.clip(month, 1, 12) - 1, "datetime64[M]")
    days = months.astype("datetime64[D]").astype(np.int64) + day - 1
    is_wrong |= days >= (months + 1).astype("datetime64[D]").astype(np.int64)
    return np.where(is_wrong, np.nan, 86400.0 * days + 3600.0 * hour + 60.0 * minute + second + micro / 1e6)


def _of_halves(hour: np.ndarray, half: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Hours of the day of n hours that AM or PM may follow, and which of them no clock shows."""
    has_half = np.array([bool(text) for text in half], dtype=bool)
    is_pm = np.array([text.strip().lower() == "pm" for text in half], dtype=bool)
    return np.where(has_half, hour % 12 + 12 * is_pm, hour), has_half & ((hour < 1) | (hour > 12))


def _date_text(seconds: float, form: WrittenForm) -> str:
    """A moment in a form, with English names of months."""
    moment = _EPOCH + dt.timedelta(seconds=min(max(seconds, -62135596800.0), 253402300799.0))
    two, micro = "{:02d}" if form.padded else "{}", f"{moment.microsecond:06d}"
    parts = {
        "%Y": f"{moment.year:04d}",
        "%y": f"{moment.year % 100:02d}",
        "%m": two.format(moment.month),
        "%d": two.format(moment.day),
        "%H": two.format(moment.hour),
        "%I": two.format((moment.hour - 1) % 12 + 1),
        "%M": f"{moment.minute:02d}",
        "%S": f"{moment.second:02d}",
        "%f": micro[: form.decimals] if form.decimals > 0 else micro.rstrip("0") or "0",
        "%p": "AM" if moment.hour < 12 else "PM",
        "%b": calendar.month_abbr[moment.month],
        "%^b": calendar.month_abbr[moment.month].upper(),
        "%B": calendar.month_name[moment.month],
        "%^B": calendar.month_name[moment.month].upper(),
    }
    return "".join(parts.get(part, part) for part in _DATE_PART.split(form.pattern))


DURATION_PATTERN = re.compile(r"%(02)?\.\df\s*[a-z]+([|&],?\s*%(02)?\.\df\s*[a-z]+)+")
"""Patterns of durations with units."""


def duration_text(seconds: float, pattern: str) -> str:
    """A duration in a pattern of units, largest first: ``%.1fs|%.0fms`` has one of them, ``%.0fh& %.0fm`` all."""
    rest, parts = abs(float(seconds)), re.split("[|&]", pattern)
    units = [float(span_of("1" + part[part.index("f") + 1 :])) for part in parts]
    sign, last = "-" if seconds < 0 else "", len(parts) - 1
    if "&" not in pattern:
        k = next((k for k, unit in enumerate(units) if rest >= unit), last)
        return sign + parts[k] % (rest / units[k])
    text, places = "", int(parts[last].split("f")[0][-1])
    rest = round(rest / units[last], places)  # in the smallest unit, of which the others are multiples
    for k, part in enumerate(parts):
        size = units[k] / units[last]
        amount = rest if k == last else rest // size
        rest -= amount * size
        text += part % amount if amount or (k == last and not text) else ""
    return sign + text.lstrip(", ")
