"""How text columns write numbers, dates and times: how a text is read, and how a number is written."""

from __future__ import annotations

import calendar
import datetime as dt
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property

SORTS = ("number", "date", "time", "duration")
SPREADSHEET_ERRORS = frozenset(
    ("#N/A", "#N/A N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?", "#NULL!", "#SPILL!", "#CALC!")
)
"""Texts that mean a missing cell in every column."""
_BLANKS = ("", "-", "--", "---", "–", "—", ".", "..", "...", "?", "\\N", "missing", "unknown", "nil", "tbd", "TBD")
_NOTHING = ("NA", "N/A", "n/a", "n.a.", "N.A.", "na", "<NA>", "NaN", "nan", "NULL", "null", "Null", "None", "none")
MISSING_WORDS = frozenset((*SPREADSHEET_ERRORS, *_BLANKS, *_NOTHING, "NONE"))
"""Texts that mean a missing cell where all other cells are numbers, dates or times."""

MOST_EXCEPTIONS = 20
"""Distinct texts of a column that may differ from its form."""

CLOCK = re.compile(r"(?P<h>\d{1,4}):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d))?(?P<half> ?[AaPp][Mm])?")
_PARTS = {
    "%Y": r"(?P<Y>\d{4})",
    "%y": r"(?P<y>\d{2})",
    "%m": r"(?P<m>\d{1,2})",
    "%d": r"(?P<d>\d{1,2})",
    "%H": r"(?P<H>\d{1,2})",
    "%I": r"(?P<I>\d{1,2})",
    "%M": r"(?P<M>\d{2})",
    "%S": r"(?P<S>\d{2})",
    "%p": r"(?P<p>[AaPp][Mm])",
    "%b": r"(?P<b>[A-Za-z]{3})",
    "%B": r"(?P<b>[A-Za-z]{3,9})",
}
_EPOCH = dt.datetime(1970, 1, 1)
_MONTHS = {name.lower(): k for names in (calendar.month_abbr, calendar.month_name) for k, name in enumerate(names) if k}


@dataclass(frozen=True)
class WrittenForm:
    """How the cells of one column are written.

    Attributes
    ----------
    sort : {"number", "date", "time", "duration"}
    dtype : str
        How the frame stores the texts.
    prefix, suffix : str
        Currency or unit around each number.
    thousands, decimal : str
        Signs between thousands (or none) and before decimals.
    decimals : int
        Number of decimals of each cell; -1 where it differs between cells.
    negative : {"-", "()", "after"}
        How numbers below zero are written.
    pattern : str
        Of dates: the form as for ``strptime``. Of times: ``h:mm`` or ``h:mm:ss``, and ``p`` where AM or PM follows.
    padded : bool
        Whether days, months and hours have two digits.
    unit : {"", "minutes", "seconds"}
        What times and durations are counted in.
    exceptions : tuple of str
        Texts that have another form and count as missing.
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

    @property
    def in_words(self) -> str:
        """The form in words, for messages."""
        if self.sort == "date":
            named = {"%Y": "year", "%y": "year", "%m": "month", "%d": "day", "%b": "month", "%B": "month"}
            named |= {"%H": "hour", "%I": "hour", "%M": "minute", "%S": "second"}
            return "dates: " + ", ".join(named[part] for part in re.findall("%.", self.pattern) if part in named)
        if self.sort != "number":
            return f"{'times of day' if self.sort == 'time' else 'durations'}, counted in {self.unit}"
        said = {",": "commas", ".": "points", "'": "apostrophes", "’": "apostrophes"}.get(self.thousands, "spaces")
        parts = [f"unit {(self.prefix or self.suffix).strip()}"] if self.prefix or self.suffix else []
        parts += [f"{said} between thousands"] if self.thousands else []
        parts += ["decimal commas"] if self.decimal == "," else []
        parts += ["parentheses below zero"] if self.negative == "()" else []
        return "numbers" + (": " + ", ".join(parts) if parts else "")

    @property
    def example(self) -> str:
        """What a cell looks like."""
        if self.sort == "number":
            return self.write(1234.5 if self.thousands else 12.5)
        return self.write(1.6695e9 if self.sort == "date" else 570.0)  # 26 November 2022; half past nine

    def parse(self, text: str) -> float | None:
        """The number, or seconds since 1970, that a text stands for; None if it has another form."""
        text = text.strip()
        match = self._regex.fullmatch(text)
        if match is None:
            return None
        if self.sort == "number":
            return self._number(match)
        return self._moment(match) if self.sort == "date" else self._clock(match)

    def is_missing(self, text: str) -> bool:
        """Whether a text stands for a missing cell in a column of this form."""
        return text.strip() in MISSING_WORDS or text in self.exceptions

    def write(self, number: float) -> str:
        """The text of a number."""
        if self.sort == "date":
            return _date_text(number, self.pattern, self.padded)
        if self.sort != "number":
            return self._clock_text(number)
        size = abs(float(number))  # a NumPy number writes itself with its type
        digits = f"{size:.{self.decimals}f}" if self.decimals >= 0 else _plain(size)
        whole, _, fraction = digits.partition(".")
        if self.thousands:
            whole = f"{int(whole):,}".replace(",", self.thousands)
        body = f"{self.prefix}{whole}{self.decimal + fraction if fraction else ''}{self.suffix}"
        if number < 0 and float(digits) != 0:
            return {"-": f"-{body}", "()": f"({body})", "after": f"{body}-"}[self.negative]
        return body

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        if self.sort == "date":
            return date_regex(self.pattern)
        if self.sort != "number":
            return CLOCK
        thousands, decimal = re.escape(self.thousands), re.escape(self.decimal)
        whole = rf"\d{{1,3}}(?:{thousands}\d{{3}})+|\d+" if self.thousands else r"\d+"
        prefix, suffix = re.escape(self.prefix.strip()), re.escape(self.suffix.strip())
        prefix, suffix = (f"(?:{prefix})" if prefix else ""), (f"(?:{suffix})" if suffix else "")
        return re.compile(
            rf"(?P<open>\()?\s*(?P<a>[+\-−]?)\s*{prefix}\s*(?P<b>[+\-−]?)\s*(?P<whole>{whole})?"
            rf"(?:{decimal}(?P<fraction>\d*))?(?P<power>[eE][+\-]?\d{{1,3}})?\s*{suffix}\s*(?P<c>-?)\s*(?P<close>\))?"
        )

    def _number(self, match: re.Match[str]) -> float | None:
        whole, fraction = match["whole"] or "", match["fraction"] or ""
        if not (whole or fraction) or (match["open"] is None) != (match["close"] is None):
            return None
        signs = [sign for sign in (match["a"], match["b"], match["c"], match["open"]) if sign]
        if len(signs) > 1:
            return None
        digits = whole.replace(self.thousands, "") if self.thousands else whole
        size = float(f"{digits or 0}.{fraction or 0}{match['power'] or ''}")
        if not math.isfinite(size):
            return None
        return -size if signs and signs[0] != "+" else size

    def _moment(self, match: re.Match[str]) -> float | None:
        part = match.groupdict()
        month = _MONTHS.get(part["b"].lower()) if part.get("b") else int(part["m"])
        if month is None:
            return None
        year = int(part["Y"]) if part.get("Y") else _century(int(part["y"]))
        hour = int(part.get("H") or part.get("I") or 0)
        if part.get("I"):
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + (12 if part["p"].lower() == "pm" else 0)
        try:
            moment = dt.datetime(year, month, int(part["d"]), hour, int(part.get("M") or 0), int(part.get("S") or 0))
        except ValueError:
            return None
        return (moment - _EPOCH).total_seconds()

    def _clock(self, match: re.Match[str]) -> float | None:
        hour, half = int(match["h"]), match["half"]
        if half:
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + (12 if half.strip().lower() == "pm" else 0)
        if self.sort == "time" and hour > 23:
            return None
        seconds = 3600 * hour + 60 * int(match["m"]) + int(match["s"] or 0)
        return seconds / 60 if self.unit == "minutes" else float(seconds)

    def _clock_text(self, number: float) -> str:
        seconds = max(round(number * (60 if self.unit == "minutes" else 1)), 0)
        hour, rest = divmod(seconds, 3600)
        if self.sort == "time":
            hour = min(hour, 23) if hour < 24 else 23
            rest = rest if seconds < 86400 else 3599
        half = ""
        if "p" in self.pattern:
            half = (" " if " p" in self.pattern else "") + ("AM" if hour < 12 else "PM")
            hour = (hour - 1) % 12 + 1
        text = f"{hour:02d}" if self.padded else f"{hour}"
        text += f":{rest // 60:02d}"
        return text + (f":{rest % 60:02d}" if "ss" in self.pattern else "") + half


def _plain(size: float) -> str:
    """A number without exponent and without zeros at its end."""
    text = format(Decimal(repr(size)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _century(year: int) -> int:
    """The year that two digits mean: 1969 to 2068."""
    return year + (1900 if year >= 69 else 2000)


@cache
def date_regex(pattern: str) -> re.Pattern[str]:
    """What texts of dates in a pattern look like."""
    parts = re.split("(%.)", pattern)
    return re.compile("".join(_PARTS.get(part, re.escape(part).replace(r"\ ", r"\s")) for part in parts))


def _date_text(seconds: float, pattern: str, padded: bool) -> str:
    """A moment in a pattern, with English names of months."""
    moment = _EPOCH + dt.timedelta(seconds=min(max(seconds, -62135596800.0), 253402300799.0))
    two = "{:02d}" if padded else "{}"
    parts = {
        "%Y": f"{moment.year:04d}",
        "%y": f"{moment.year % 100:02d}",
        "%m": two.format(moment.month),
        "%d": two.format(moment.day),
        "%H": two.format(moment.hour),
        "%I": two.format((moment.hour - 1) % 12 + 1),
        "%M": f"{moment.minute:02d}",
        "%S": f"{moment.second:02d}",
        "%p": "AM" if moment.hour < 12 else "PM",
        "%b": calendar.month_abbr[moment.month],
        "%B": calendar.month_name[moment.month],
    }
    return "".join(parts.get(part, part) for part in re.split("(%.)", pattern))
