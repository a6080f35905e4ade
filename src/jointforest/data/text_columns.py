"""Text columns that stand for numbers, dates and times: which form a column has, and its cells read by that form."""

# `find_forms` compares the distinct texts of a column with the forms below. A form is taken only if every known cell
# has it; in columns of 100 cells or more, one cell in 100 may differ and counts as missing. Other columns stay text.

from __future__ import annotations

import heapq
import itertools
import math
import re
import shlex
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..runtime.warnings import warn
from .cells import ColumnCells, FrameReader, numbers, ranged
from .conditions import Interval
from .csv_files import is_number
from .range_texts import interval_of, order_if_disjoint, range_text
from .schema import CATEGORICAL_KINDS, NO_KINDS
from .times import is_date, span_of
from .written_forms import CLOCK, MOST_EXCEPTIONS, WrittenForm, date_regex, is_missing_word, is_solid

_SYMBOLS = ("$", "€", "£", "¥", "₹", "₽", "₩", "₪", "₺", "₫", "฿", "US$", "A$", "C$", "R$", "NT$", "HK$", "kr", "Kr")
_CODES = ("USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "CAD", "AUD", "NZD", "SEK", "NOK", "DKK", "PLN", "CZK")
_OTHERS = ("HUF", "BRL", "MXN", "ZAR", "KRW", "SGD", "HKD", "TRY", "RUB", "zł", "Rs", "Rs.", "Fr.")
_CURRENCIES = frozenset((*_SYMBOLS, *_CODES, *_OTHERS))
_SIZES = ("kg", "g", "mg", "t", "lb", "lbs", "oz", "km", "m", "cm", "mm", "mi", "ft", "in", "yd", "l", "ml", "cl", "px")
_TIMES = ("h", "hr", "hrs", "min", "s", "sec", "ms", "Hz", "kHz", "MHz", "GHz", "rpm", "mph", "kmh", "km/h")
_BYTES = ("kB", "KB", "MB", "GB", "TB", "kb", "mb", "gb", "x", "pt", "pcs", "bps", "bp")
_THOUSANDS = ("k", "K", "M", "m", "mn", "mln", "bn", "Bn", "B", "Mio", "Mio.", "Mrd", "Mrd.")
_POWERS = ("W", "kW", "kWh", "MW", "V", "mV", "hp", "bhp", "kmpl", "mpg", "°C", "°F", "°")
_UNITS = frozenset((*_SIZES, *_TIMES, *_BYTES, *_THOUSANDS, *_POWERS))
"""Units that may follow a number without a space."""
_SQUARES = frozenset(f"{unit}{power}" for unit in ("m", "cm", "km", "mm", "ft") for power in "23")
"""Units of areas and volumes, such as m2, whose digit belongs to the unit."""
_OUT_OF = re.compile(r"\s*/\s*[1-9]\d{0,2}")
"""What follows points out of a maximum. At most three digits, because four may be a year."""
_PER = re.compile(r"[^\W\d_]+/\S*\d\S*")
"""Units that contain a number, such as l/100km; a space must stand before them."""
_DIGITS = re.compile(r"^[+\-−]?\d[\d.,]*")
"""A number before a unit that contains digits."""
_NUMBER = re.compile(
    r"(?P<open>\()?\s*(?P<before>[+\-−]?)\s*"
    r"(?P<prefix>[^\d\s.,()+\-−]{0,3}[^\W\d_]\.?|[^\d\s.,()+\-−]{0,4})\s*(?P<after>[+\-−]?)\s*"
    r"(?P<body>\d[\d.,'’\u00a0\u202f ]*\d|\d|[.,]\d+)(?P<power>[eE][+\-]?\d{1,3})?"
    r"(?P<gap>\s*)(?P<suffix>[^\d()\s+\-−][^\d()+\-−]{0,14}?)?(?P<last>-)?\s*(?P<close>\))?"
)
_SEPARATORS: tuple[tuple[str, str], ...] = (("", "."), (",", "."), (".", ","), ("", ","), (" ", "."), (" ", ","))
_SEPARATORS += (("\u00a0", "."), ("\u00a0", ","), ("\u202f", "."), ("\u202f", ","), ("'", "."), ("’", "."))
"""Signs between thousands and before decimals."""
_DAYS = [f"{a}{s}{b}{s}{c}" for s in "/.- " for a, b, c in (("%Y", "%m", "%d"), ("%d", "%m", "%Y"), ("%m", "%d", "%Y"))]
_DAYS += [f"{a}{s}{b}{s}%y" for s in "/.-" for a, b in (("%d", "%m"), ("%m", "%d"))]
_DAYS += [f"%d{s}%{month}{s}%{year}" for s in (" ", "-", "/", ".", "") for month in "bB" for year in "Yy"]
_DAYS += ["%y-%m-%d", "%Y%m%d", "%d%m%Y", "%m%d%Y"]
_DAYS += [f"{a}{s}{b}" for s in "/-." for a, b in (("%m", "%Y"), ("%Y", "%m"))]
_DAYS += [f"%{month}{s}%Y" for month in "bB" for s in " -/"] + ["%b-%y", "%b/%y"]
_DAYS += [f"%{month} %d{comma} %{year}" for month in "bB" for comma in (",", "") for year in "Yy"]
_CLOCKS: tuple[str, ...] = (
    "",
    " %H:%M",
    " %H:%M:%S",
    "T%H:%M",
    "T%H:%M:%S",
    ", %H:%M",
    " %I:%M %p",
    " %I:%M:%S %p",
    " %I:%M%p",
)
_CLOCKS += ("T%H:%MZ", "T%H:%M:%SZ", " %H:%M:%SZ", " %H:%M:%S UTC", "T%H:%M:%S+00:00", " %H:%M:%S+00:00")
_CLOCKS += (*(f"{t}%H:%M:%S.%f{z}" for t in " T" for z in ("", "Z", "+00:00", " UTC")), " %H:%M:%S,%f")
_DURATION_PART = re.compile(r"(?<![\d.])(\d+(?:\.(\d+))?)([^\S\n]*[a-z]+)")
"""A number and its unit in a duration such as 1h 20m."""
_SAMPLE = 60
"""Texts of a column that are examined first."""
_MOST_UNITS = 5
"""Units of numbers among them; more are words that follow a number."""
_FEWEST_DAYS = 5
"""Distinct texts of eight digits that may be dates; fewer may be so by chance."""
_YEARS = (-70 * 365.2425 * 86400.0, 131 * 365.2425 * 86400.0)
"""Seconds since 1970 between which such dates lie: the years 1900 to 2100."""
_WIDER = 3.0
"""A reading of dates is ruled out if they span so many times the span of another reading."""
_PLAIN_BESIDE_DASHES = 0.1
"""Least share of cells that are numbers in a column where a dash means a range."""
_TELEPHONE = 6
"""Digits of telephone numbers, with or without a dash, of which all have equally many."""
_MOST_BRACKETS = 100
"""Most brackets that are levels in order."""
_LIKELY = 0.9
"""Least share of them that have a form which is tried on all texts."""


def read_cells(form: WrittenForm, cells: ColumnCells, name: str, dtype: str) -> ColumnCells:
    """Cells of text as numbers, moments or ticks, stored as this dtype; cells that are no text stay as they are."""
    if form.sort == "tick":
        return _ticks(form, cells, name, dtype)
    if cells.codes is None or not any(isinstance(label, str) for label in cells.labels):
        return cells
    used = np.bincount(cells.codes[cells.codes >= 0], minlength=len(cells.labels)) > 0
    table = np.append(form.parse_all([label if isinstance(label, str) else "" for label in cells.labels]), np.nan)
    intervals: dict[int, Interval] = {}
    for code in np.flatnonzero(used & np.isnan(table[:-1])).tolist():
        label = cells.labels[code]
        if not isinstance(label, str):
            table[code] = float(label)
        elif form.is_missing(label):
            continue
        elif (interval := _interval_of_text(form, label, name)) is not None:
            intervals[code] = interval
        else:
            raise ValueError(
                f"column {name!r}: expected {form.in_words} such as {form.example!r}, got the text {label!r}; "
                f"make it missing (on the command line: --na {shlex.quote(label)}), or write it in the same form"
            )
    values = table[cells.codes]
    missing = np.isnan(values)
    if form.sort == "date":
        per_second = 1 / 86400 if is_date(dtype) else 1e6 if "%f" in form.pattern else 1.0
        whole = np.rint(values * per_second) if per_second > 1.0 else np.floor(values * per_second)
        ticks = np.where(missing, 0.0, whole).astype(np.int64)
        return ColumnCells("datetime", dtype, ticks, missing, per_second=per_second)
    known = values[~missing]
    sort = "integer" if (known == np.rint(known)).all() else "number"
    read = ColumnCells(sort, dtype, values, missing, range_of=cells.range_of, intervals=cells.intervals)
    if not intervals:
        return read
    is_range = np.isin(cells.codes, list(intervals))
    return ranged(read, is_range, [intervals[code] for code in cells.codes[is_range].tolist()])


def _interval_of_text(form: WrittenForm, text: str, name: str, must: bool = False) -> Interval | None:
    """The interval that a text is, whose ends have the form of a column's numbers; None if it is none."""
    found = range_text(text) if form.sort == "number" else None
    if found is None:
        return None
    ends = dict(zip(found.ends, form.parse_all(found.ends).tolist(), strict=True))
    interval = interval_of(found, ends)
    if interval is None and not any(map(math.isnan, ends.values())) and (must or not found.has_dash):
        fault = "ends below its start; exchange its ends" if len(ends) > 1 else "has equal ends; write one number"
        raise ValueError(f"column {name!r}: the range {text!r} {fault}")
    return interval


def _ticks(form: WrittenForm, cells: ColumnCells, name: str, dtype: str) -> ColumnCells:
    """Cells of a tick box as booleans: missing ones are False."""
    if cells.codes is None:
        ticked = np.where(cells.missing, 0.0, np.nan if cells.sort == "datetime" else cells.values)
    else:
        of_labels = [form.parse(x) if isinstance(x, str) else float(x) for x in cells.labels]
        ticked = np.array([*(np.nan if one is None else one for one in of_labels), 0.0])[cells.codes]
    odd = np.flatnonzero((ticked != 0.0) & (ticked != 1.0))
    if len(odd):
        got = cells.values[odd[0]] if cells.codes is None else cells.labels[cells.codes[odd[0]]]
        raise ValueError(
            f"column {name!r}: expected {form.example!r} or a missing cell, got {got!r}; the column was learned as a "
            f"tick box; learn it as levels: kinds={{{name!r}: 'categorical'}}, or --kinds {name}=categorical"
        )
    return numbers("boolean", dtype, ticked)


class _Texts(NamedTuple):
    """The n distinct texts of a column, stripped, with the number of cells of each, (n,)."""

    texts: list[str]
    counts: np.ndarray
    dtype: str


class _Family(NamedTuple):
    """Forms of one type that a column may have, the preferred one first.

    what : str. In words.
    fits : bool array (n,). Texts that have one of the forms, or may have one of this type.
    forms : tuple of WrittenForm. Those that all of these texts have; none if they are written in several ways.
    may_differ : float. Largest share of cells of another form.
    """

    what: str
    fits: np.ndarray
    forms: tuple[WrittenForm, ...]
    may_differ: float = 0.01


class Found(NamedTuple):
    """The forms of the text columns of a table, by their names.

    forms : dict of WrittenForm. Of columns that hold numbers, dates or times.
    why_text : dict of str. Why a column stays text that seems to hold them.
    cells : dict of ColumnCells. The texts of the columns with a form, and those of columns of brackets.
    brackets : dict of list of str. Ordered levels of columns whose cells are all brackets such as 18-24 and 65+.
    """

    forms: dict[str, WrittenForm]
    why_text: dict[str, str]
    cells: dict[str, ColumnCells]
    brackets: dict[str, list[str]]


def find_forms(reader: FrameReader, kinds: Mapping[str, str]) -> Found:
    """The forms of a table's text columns that hold numbers, dates or times."""
    # A column with two readings, such as 03/04/2022, takes the one that other columns prove, else a convention, with a
    # warning. Columns that ``kinds`` names as categorical or ignored stay text.
    choices: dict[str, tuple[WrittenForm, ...]] = {}
    found = Found({}, {}, {}, {})
    for name in reader.names:
        if kinds.get(name) in (*CATEGORICAL_KINDS, *NO_KINDS):
            continue
        cells = reader.cells(name)
        texts = _texts_and_numbers(cells)
        if texts is None:
            continue
        forms, brackets, why_text = _forms_with_ranges(name, texts, must=kinds.get(name, "datetime") != "datetime")
        if brackets:
            found.brackets[name], found.cells[name] = brackets, cells
        elif not forms and not why_text:
            forms, why_text = _forms_of(texts, must=name in kinds or "[mixed" in texts.dtype)
        if forms:
            choices[name], found.cells[name] = forms, cells
        elif why_text:
            found.why_text[name] = why_text
            warn(f"column {name!r} {why_text}", UserWarning)
    sure = [forms[0] for forms in choices.values() if len(forms) == 1]
    for name, forms in choices.items():
        form = found.forms[name] = forms[0] if len(forms) == 1 else _decided(name, forms, sure)
        if form.exceptions:
            warn(
                f"column {name!r} is read as {form.in_words}; missing, as of another form: {_such(form.exceptions)}; "
                f"correct them, or keep the column as text: kinds={{{name!r}: 'categorical'}} (on the command line: "
                f"--kinds {shlex.quote(name + '=categorical')})",
                UserWarning,
            )
        if "%y" in form.pattern:
            _doubt_years(name, form, found.cells[name])
    return found


def _forms_with_ranges(name: str, column: _Texts, must: bool) -> tuple[tuple[WrittenForm, ...], list[str], str]:
    """The forms of a column of numbers and ranges; if all cells are brackets, these in order; why it stays text."""
    # Dashes are ranges only between ascending numbers without leading zeros, and if a tenth of the cells are numbers.
    sample = [text for text in _sample_of(column.texts) if not is_missing_word(text)]
    n_likely = sum(_number_match(text) is not None or range_text(text) is not None for text in sample)
    if n_likely < _LIKELY * len(sample):
        return (), [], ""
    split = {text: found for text in column.texts if (found := range_text(text)) is not None}
    if not split:
        return (), [], ""
    is_plain = np.array([text not in split and not is_missing_word(text) for text in column.texts])
    has_dash = any(found.has_dash for found in split.values())
    n_plain, n = int(column.counts[is_plain].sum()), int(column.counts.sum())
    ends = [end for found in split.values() for end in found.ends]
    if has_dash and any(re.match(r"\D*0\d", end) for end in ends):
        return (), [], ""
    n_digits = {sum(map(str.isdigit, text)) for text in column.texts}
    if has_dash and len(n_digits) == 1 and min(n_digits) >= _TELEPHONE and not must:
        return (), [], ""
    texts = list(dict.fromkeys([*itertools.compress(column.texts, is_plain), *ends]))
    forms, _ = _forms_of(_Texts(texts, np.ones(len(texts), np.int64), column.dtype), must=True)
    forms = forms[:1] if forms and forms[0].sort == "number" and not set(forms[0].exceptions).intersection(ends) else ()
    if must and not forms and all(map(is_number, texts)):  # a limit alone may be the only number
        forms = (WrittenForm("number", column.dtype),)
    if forms and forms[0].negative == "after" and any(text.endswith("+") for text in split):
        return (), [], ""  # of grades such as 2- and 2+, which are no negative numbers
    intervals = [_interval_of_text(forms[0], text, name, must) for text in split] if forms else []
    odd = [text for text, interval in zip(split, intervals, strict=False) if interval is None]
    if odd or not forms:
        # a column with ranges such as <5 has measurements, so that a warning of its other texts is useful
        is_sure = n_plain > 0 and not all(found.has_dash for found in split.values())
        if not is_sure or not (odd or all(_number_match(text) is not None for text in texts)):
            return (), [], ""
        share = 1.0 - float(column.counts[np.isin(column.texts, odd)].sum()) / n
        return (), [], _why_text(_Family("numbers and ranges", is_plain, ()), odd, share)
    if must or (n_plain and not (has_dash and n_plain < _PLAIN_BESIDE_DASHES * n)):
        return forms, [], ""
    is_all = len(split) == len(column.texts) == len(set(column.texts)) and 1 < len(split) <= _MOST_BRACKETS
    order = order_if_disjoint([interval for interval in intervals if interval is not None]) if is_all else None
    if order is None:
        return (), [], ""
    warn(
        f"column {name!r}: its brackets, such as {column.texts[order[0]]!r}, are learned as ordered levels; to learn "
        f"numbers of which the ranges are known, say kinds={{{name!r}: 'ranges'}}, or --kinds "
        f"{shlex.quote(name + '=ranges')}",
        UserWarning,
    )
    return (), [column.texts[k] for k in order.tolist()], ""


def _doubt_years(name: str, form: WrittenForm, cells: ColumnCells) -> None:
    """Warn of years of two digits that other programs take for the next century."""
    texts = [str(label) for label in cells.labels]
    first = -12 if form.sort == "month" else -365 * 86400.0  # 1969, from where on all programs agree
    early = form.parse_all(texts) < first
    if early.any():
        warn(
            f"column {name!r}: years from 30 on are read as 1930 to 1999, such as in {texts[int(early.argmax())]!r}; "
            "if that is wrong, write years of four digits",
            UserWarning,
        )


def _such(texts: Sequence[str]) -> str:
    return ", ".join(map(repr, texts[:3])) + (", ..." if len(texts) > 3 else "")


def number_dtype(frame: str, form: WrittenForm) -> str:
    """How a frame of this library would store the values of a form."""
    if form.sort != "date":
        return {"polars": "Float64", "pyarrow": "double"}.get(frame, "float64")
    if "%H" in form.pattern or "%I" in form.pattern:
        return {"polars": "datetime[us]", "pyarrow": "timestamp[s]"}.get(frame, "datetime64[s]")
    return {"polars": "date", "pyarrow": "date32[day]", "numpy": "datetime64[D]"}.get(frame, "datetime64[s]")


def with_forms(reader: FrameReader, found: Found) -> FrameReader:
    """The table with texts read by their forms."""
    read = {
        name: read_cells(form, found.cells.pop(name), name, number_dtype(reader.frame, form))
        for name, form in found.forms.items()
    }
    for name, brackets in found.brackets.items():
        cells = found.cells.pop(name)
        place = {text: k for k, text in enumerate(brackets)}
        labels = {place[str(label).strip()]: label for label in cells.labels if str(label).strip() in place}
        code = np.array([place.get(str(label).strip(), -1) for label in cells.labels] + [-1])
        read[name] = replace(
            cells,
            codes=code[cells.codes],
            labels=[labels[k] for k in range(len(brackets))],
            declared=True,
            ordered=True,
        )
    return replace(reader, cells=lambda name: read[name] if name in read else reader.cells(name))


def _texts_and_numbers(cells: ColumnCells) -> _Texts | None:
    """The texts of a column, and those of numbers among them; None if it holds anything else."""
    if cells.codes is None or cells.declared or not any(isinstance(label, str) for label in cells.labels):
        return None
    counts = np.bincount(cells.codes[cells.codes >= 0], minlength=len(cells.labels))
    texts = [str(label).strip() for label, n in zip(cells.labels, counts.tolist(), strict=True) if n]
    return _Texts(texts, counts[counts > 0], cells.dtype) if texts else None


def _forms_of(column: _Texts, must: bool) -> tuple[tuple[WrittenForm, ...], str]:
    """The forms that all texts but a few have, the preferred one first; if too many differ, none, and the reason."""
    is_word = np.array([is_missing_word(text) for text in column.texts])
    texts = list(itertools.compress(column.texts, ~is_word))
    counts, n = column.counts[~is_word], int(column.counts.sum())
    sample = _sample_of(texts)
    if not any(character.isdigit() for text in sample for character in text):
        return (), ""
    why_text = ""
    for find in (_clock, _dates, _numbers, _durations):
        family = find(texts, sample, column.dtype, must or bool(is_word.any()))
        if family is None:
            continue
        odd = sorted(set(itertools.compress(texts, ~family.fits)))
        n_odd = int(counts[~family.fits].sum())
        if family.forms and n_odd <= n * family.may_differ and len(odd) <= MOST_EXCEPTIONS:
            return tuple(replace(form, exceptions=tuple(odd)) for form in family.forms), ""
        if not why_text and 5 * n_odd <= n and len(odd) <= MOST_EXCEPTIONS:
            others = [text for text in odd if range_text(text) is None] or odd  # without these ranges are read
            n_others = int(counts[np.isin(texts, others)].sum())
            why_text = _why_text(family, others, 1.0 - n_others / n)
    return (), why_text


def _sample_of(texts: Sequence[str]) -> list[str]:
    """Some of the texts, without an order: the same whatever the order of rows."""
    return heapq.nsmallest(_SAMPLE, set(texts), key=lambda text: (zlib.crc32(text.encode(errors="replace")), text))


def _why_text(family: _Family, odd: Sequence[str], share: float) -> str:
    """Why a column stays text of which most cells seem to be numbers, dates or times."""
    if not odd:
        return (
            f"stays text: its cells seem to be {family.what}, but they are written in different forms; write all "
            "in one form, such as with one unit, to have them read"
        )
    which = f"{_such(odd)} {'is' if len(odd) == 1 else 'are'} not"
    hint = f"to make such cells missing on the command line, say --na {shlex.quote(odd[0])}"
    if any(map(str.isdigit, odd[0])):  # rather a value, written in another way
        hint = f"write them as the others, or make them missing (on the command line: --na {shlex.quote(odd[0])})"
    most = f"{share:.0%}" if share < 0.995 else "nearly all"
    return f"stays text: {most} of its cells seem to be {family.what}, but {which}; {hint}"


def _clock(texts: Sequence[str], sample: Sequence[str], dtype: str, must: bool) -> _Family | None:
    """Times of day or durations."""
    form = WrittenForm("duration", dtype, unit="seconds")
    if np.isfinite(form.parse_all(sample)).mean() < _LIKELY:
        return None
    fits = np.isfinite(form.parse_all(texts))
    found = [match for text in itertools.compress(texts, fits) if (match := CLOCK.fullmatch(text))]
    halves = {bool(match["half"]) for match in found}
    with_seconds = {match["s"] is not None for match in found}
    if len(halves) > 1 or len(with_seconds) > 1:
        return _Family("times", fits, ())
    is_time = all(int(match["h"]) < 24 for match in found)
    padded = all(len(match["h"]) > 1 for match in found)
    unit = "seconds" if any(float(match["s"] or 0) for match in found) else "minutes"
    decimals = max(len((match["s"] or "").partition(".")[2]) for match in found) or -1
    half = " p" if any((match["half"] or "").startswith(" ") for match in found) else "p"
    pattern = "h:mm" + (":ss" if True in with_seconds else "") + (half if True in halves else "")
    sort = "time" if is_time else "duration"
    form = WrittenForm(sort, dtype, pattern=pattern, padded=padded, unit=unit, decimals=decimals)
    return _Family("times", fits, (form,))


def _durations(texts: Sequence[str], sample: Sequence[str], dtype: str, must: bool) -> _Family | None:
    """Durations in several units, such as 1.2s beside 350ms, or 1h 20m."""
    if sum(_DURATION_PART.match(text) is not None for text in sample) < _LIKELY * len(sample):
        return None
    is_span = np.array([text == text.lower() and not isinstance(span_of(text), str) for text in texts], dtype=bool)
    found = [_DURATION_PART.findall(text) for text in itertools.compress(texts, is_span)]
    units: dict[float, tuple[str, int]] = {}  # the name of each unit, and the number of decimals
    for _, fraction, name in itertools.chain.from_iterable(found):
        size = float(span_of("1" + name))
        units[size] = name, min(max(len(fraction), units.get(size, ("", 0))[1]), 9)
    is_joined, lines = any(len(amounts) > 1 for amounts in found), "\n".join(itertools.compress(texts, is_span))
    if len(units) < 2 or ":" in lines:
        return None
    between = re.search(r"[a-z](,?[^\S\n]+)\d", lines)
    first, *others = [f"%.{units[size][1]}f{units[size][0]}" for size in sorted(units, reverse=True)]
    if is_joined and re.search(r"(?<![\d.])0\d", lines):
        others = [one.replace("%", "%02") for one in others]
    pattern = (f"&{between[1] if between else ''}" if is_joined else "|").join([first, *others])
    return _Family("durations", is_span, (WrittenForm("duration", dtype, pattern=pattern, unit="seconds"),))


def _dates(texts: Sequence[str], sample: Sequence[str], dtype: str, must: bool) -> _Family | None:
    """Dates, with or without time of day."""
    lines = "\n".join(sample)
    clocks = [clock for clock in _CLOCKS if {" ", *lines}.issuperset(re.sub("%.", "", clock))]
    patterns = [day + clock for day in _DAYS for clock in clocks]
    patterns = [pattern for pattern in patterns if date_regex(pattern).search(lines)]
    day, month = WrittenForm("date", dtype), WrittenForm("month", dtype, unit="months")
    candidates = [replace(day if "%d" in pattern else month, pattern=pattern) for pattern in patterns]
    of_sample = [np.isfinite(form.parse_all(sample)) for form in candidates]
    if not candidates or np.any(of_sample, axis=0).mean() < _LIKELY:
        return None
    most = max(fit.sum() for fit in of_sample)
    if most >= _LIKELY * len(sample):  # else there are several forms
        candidates = [form for form, fit in zip(candidates, of_sample, strict=True) if fit.sum() == most]
    each = [np.isfinite(form.parse_all(texts)) for form in candidates]
    fits = np.any(each, axis=0)
    fitting = "\n".join(itertools.compress(texts, fits))
    padded = not re.search(r"(?<!\d)(?<!:\d\d[.,])\d(?!\d)", fitting)
    fractions = re.findall(r":\d\d[.,](\d+)", fitting)
    decimals = len(fractions[0]) if len(set(map(len, fractions))) == 1 else -1
    spelled = _in_capitals if fitting.isupper() else str
    forms = [
        replace(form, padded=padded, pattern=spelled(form.pattern), decimals=decimals)
        for form, mine in zip(candidates, each, strict=True)
        if (mine == fits).all()
    ]
    if forms and not (forms := [form for form in forms if _is_sure(form, fitting.split("\n"), len(forms))]):
        return None
    if len({_order(form) == "year" for form in forms}) > 1:  # read the wrong way round, days are years
        spans = [np.ptp(form.parse_all(fitting.split("\n"))) for form in forms]
        forms = [form for form, span in zip(forms, spans, strict=True) if span <= _WIDER * min(spans)]
    if len({_order(form) for form in forms}) < 2:
        return _Family("dates", fits, tuple(forms[:1]))
    # points and hyphens are written with the day first, slashes with the month first
    preferred = "month" if "/" in forms[0].pattern else "day"
    return _Family("dates", fits, tuple(sorted(forms, key=lambda form: _order(form) != preferred)))


def _is_sure(form: WrittenForm, texts: Sequence[str], n_forms: int) -> bool:
    """Whether texts of a form are dates or months, and no codes of eight digits or versions such as 1.10.22."""
    if is_solid(form.pattern) or form.sort == "month":
        if form.pattern in ("%Y-%m", "%Y/%m") and all((int(text[:4]) + 1 - int(text[5:])) % 100 == 0 for text in texts):
            return False  # seasons, such as 2010-11
        moments = form.parse_all(texts) * (365.2425 / 12.0 * 86400.0 if form.sort == "month" else 1.0)
        return len(texts) >= _FEWEST_DAYS and bool((moments >= _YEARS[0]).all() and (moments < _YEARS[1]).all())
    if form.padded or not re.match(r"%[dmy][.-]%[dmy][.-]%[dmy]", form.pattern):
        return True
    return n_forms == 1 and form.pattern.startswith("%d.")


def _in_capitals(pattern: str) -> str:
    """The pattern of a date with its months in capitals."""
    return re.sub("%([bB])", r"%^\1", pattern)


def _numbers(texts: Sequence[str], sample: Sequence[str], dtype: str, must: bool) -> _Family | None:
    """Numbers with thousands separators, decimal commas, currencies, units or parentheses."""
    # Plain digits were stored as text on purpose: they are numbers only if they ``must`` be.
    found = [match for text in sample if (match := _number_match(text)) is not None]
    unit = _unit_with_digits(sample) if len(found) < _LIKELY * len(sample) else ""
    if len(found) < _LIKELY * len(sample) and not unit:
        return None
    around = Counter({("", unit): 1} if unit else ((match["prefix"], match["suffix"] or "") for match in found))
    if len(around) > _MOST_UNITS:
        return None  # such as the streets of 12 Main St and 7 Park Road
    (prefix, suffix), _ = min(around.items(), key=lambda one: (-one[1], one[0]))
    best, lines = np.zeros(len(texts), dtype=bool), "\n".join(texts)
    forms: list[WrittenForm] = []
    for k, (thousands, decimal) in enumerate((*_SEPARATORS, (",", "."))):
        if thousands not in lines:
            continue
        form = WrittenForm("number", dtype, prefix, suffix, thousands, decimal, lakh=k == len(_SEPARATORS))
        if np.isfinite(form.parse_all(sample)).mean() < 0.5:  # units may differ
            continue
        fits = np.isfinite(form.parse_all(texts))
        if fits.sum() > best.sum():
            best, forms = fits, []
        if (fits == best).all():
            forms.append(form)
    if len(around) > 1 and not best.all():
        is_number = np.array([_number_match(text) is not None for text in texts])
        return _Family("numbers", is_number, ())
    lines = "\n".join(itertools.compress(texts, best))
    if not forms or _is_coded(forms[0], lines, int(best.sum()), must or not bool(best.all())):
        return None
    forms = [_spaced(form, lines) for form in forms]
    commas = tuple(form for form in forms[1:] if form.decimal == ",")
    may_be_codes = lines.replace("\n", "").isdigit() and len(set(map(len, lines.split("\n")))) == 1
    readings = (forms[0], *commas[:1]) if forms[0].thousands == "," else (forms[0],)
    return _Family("numbers", best, readings, 0.001 if may_be_codes else 0.01)


def _unit_with_digits(sample: Sequence[str]) -> str:
    """The unit that most texts end with if it has digits, as in 85/100, 6.5 l/100km and 30 m2; else empty."""
    end, n = Counter(re.sub(_DIGITS, "", text) for text in sample).most_common(1)[0]
    unit, numbers = end.strip(), [text.removesuffix(end) for text in sample if text.endswith(end)]
    is_unit = unit in _SQUARES or (end[:1].isspace() and _PER.fullmatch(unit))
    if _OUT_OF.fullmatch(unit):
        is_unit = not all(number.isdigit() and int(number) <= 12 for number in numbers)  # rather months of a year
    return unit if n > 2 and n >= _LIKELY * len(sample) and is_unit else ""


def _number_match(text: str) -> re.Match[str] | None:
    """A text that may be a number with a currency or a unit, alone of its column."""
    match = _NUMBER.fullmatch(text)
    fits = match is not None and (match["open"] is None) == (match["close"] is None) and _is_unit(match)
    return match if fits else None


def _is_coded(form: WrittenForm, lines: str, n: int, must: bool) -> bool:
    """Whether n texts that could be numbers of a form are rather codes, levels or telephone numbers."""
    if re.search(r"^[^\d\n.,]*0\d", lines, re.MULTILINE) or ("(" in lines and "-\n" in lines + "\n"):
        return True
    if form.suffix.strip("%‰") and form.suffix not in _CURRENCIES and n < 3:
        return True  # few levels, such as 2 doors and 4 doors
    if form.prefix or form.suffix or "(" in lines or "-\n" in lines + "\n":
        return False
    if lines.replace("\n", "").isdigit():
        return not (must and n > 2)
    return form.thousands == " " and len(set(map(len, lines.split("\n")))) == 1


def _is_unit(match: re.Match[str]) -> bool:
    """Whether what stands around a number is a currency or a unit, and not part of a code."""
    prefix, suffix = match["prefix"], match["suffix"]
    if prefix and prefix not in _CURRENCIES:
        return False
    if not suffix or suffix in "%‰" or suffix in _CURRENCIES or suffix in _UNITS:
        return True
    return bool(match["gap"] and re.fullmatch(r"[^\W\d_]+[.²³/]?[^\W\d_]*|[^\W\d_ ]+ [^\W\d_ ]+", suffix))


def _spaced(form: WrittenForm, lines: str) -> WrittenForm:
    """The form with the signs, the spaces and the number of decimals that most lines have."""
    n = lines.count("\n") + 1
    prefix, suffix = form.prefix, form.suffix
    if suffix:
        suffix = ("" if 2 * len(re.findall(rf"[\d.,]{re.escape(suffix)}", lines)) >= n else " ") + suffix
    if prefix:
        spaced = len(re.findall(rf"{re.escape(prefix)}[+\-−]?[^\S\n]", lines))
        prefix += " " if 2 * spaced > n else ""
    fractions = re.findall(rf"{re.escape(form.decimal)}(\d*)", lines)
    decimals = set(map(len, fractions)) | ({0} if len(fractions) < n else set())
    is_exact = len(decimals) == 1 and not re.search(r"\d[eE][+\-]?\d", lines)
    negative = "()" if "(" in lines else "after" if "-\n" in lines + "\n" else "-"
    if "+" in lines and not re.search(r"^[^+\-−]*[1-9]", lines, re.MULTILINE):
        negative = "+"
    decimals_said = decimals.pop() if is_exact else -1
    has_zeros, has_none = (re.search(rf"(?<!\d){zero}{re.escape(form.decimal)}\d", lines) for zero in ("0", ""))
    padded = bool(has_zeros or not has_none)
    return replace(form, prefix=prefix, suffix=suffix, decimals=decimals_said, negative=negative, padded=padded)


def _decided(name: str, forms: Sequence[WrittenForm], sure: Sequence[WrittenForm]) -> WrittenForm:
    """The form of a column with two readings: as other columns prove, else by convention and with a warning."""
    is_date = forms[0].sort == "date"
    reading = _order if is_date else _decimal_sign
    proofs = ({reading(form) for form in sure} - {""}) & {reading(form) for form in forms}
    if len(proofs) == 1:
        return next(form for form in forms if reading(form) in proofs)
    if is_date:
        what, *others = dict.fromkeys(f"the {_order(form)} first" for form in forms)
        other = " or ".join(others)
        hint = "write the dates as year-month-day"
    else:
        what, other = "commas between thousands", "decimal commas"
        hint = "say --decimal , or turn the column into numbers"
    warn(
        f"column {name!r} is read with {what}, such as {forms[0].example!r}; it may also have {other}; if so, {hint}",
        UserWarning,
    )
    return forms[0]


def _order(form: WrittenForm) -> str:
    """Whether the day or the month comes first in a numeric date; "" if neither is in doubt."""
    day, month = form.pattern.find("%d"), form.pattern.find("%m")
    if form.sort != "date" or month < 0 or form.pattern.startswith("%Y"):
        return ""
    return "year" if form.pattern.startswith("%y") else "day" if day < month else "month"


def _decimal_sign(form: WrittenForm) -> str:
    """The decimal sign that a form of numbers proves; "" if it proves none."""
    return form.decimal if form.thousands in (",", ".") or form.decimal == "," else ""
