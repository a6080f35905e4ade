"""Text columns that stand for numbers, dates and times: which form a column has, and its cells read by that form.

A column of text such as ``$1,200.00``, ``15 %``, ``26/11/2022`` or ``09:30`` holds numbers. `find_forms` compares its
distinct texts with the forms below. A form is taken only if *every* known cell has it; in columns of 1,000 cells or
more, one cell in 1,000 may differ and counts as missing. Everything else stays text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..runtime.warnings import warn
from .cells import ColumnCells, FrameReader
from .identifiers import NO_KINDS
from .schema import CATEGORICAL_KINDS
from .times import is_date
from .written_forms import CLOCK, MISSING_WORDS, MOST_EXCEPTIONS, SPREADSHEET_ERRORS, WrittenForm, date_regex

_SYMBOLS = ("$", "€", "£", "¥", "₹", "₽", "₩", "₪", "₺", "₫", "฿", "US$", "A$", "C$", "R$", "NT$", "HK$", "kr", "Kr")
_CODES = ("USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "CAD", "AUD", "NZD", "SEK", "NOK", "DKK", "PLN", "CZK")
_OTHERS = ("HUF", "BRL", "MXN", "ZAR", "KRW", "SGD", "HKD", "TRY", "RUB", "zł", "Rs", "Rs.", "Fr.")
_CURRENCIES = frozenset((*_SYMBOLS, *_CODES, *_OTHERS))
_SIZES = ("kg", "g", "mg", "t", "lb", "lbs", "oz", "km", "m", "cm", "mm", "mi", "ft", "in", "yd", "l", "ml", "cl", "px")
_TIMES = ("h", "hr", "hrs", "min", "s", "sec", "ms", "Hz", "kHz", "MHz", "GHz", "rpm", "mph", "kmh", "km/h")
_BYTES = ("kB", "KB", "MB", "GB", "TB", "kb", "mb", "gb", "x", "pt", "pcs", "bps", "bp")
_POWERS = ("W", "kW", "kWh", "MW", "V", "mV", "hp", "bhp", "kmpl", "mpg", "°C", "°F", "°")
_UNITS = frozenset((*_SIZES, *_TIMES, *_BYTES, *_POWERS))
"""Units that may follow a number without a space."""
_NUMBER = re.compile(
    r"(?P<open>\()?\s*(?P<before>[+\-−]?)\s*(?P<prefix>[^\d\s.,()+\-−]{0,4}\.?)\s*(?P<after>[+\-−]?)\s*"
    r"(?P<body>\d[\d.,'’\u00a0\u202f ]*\d|\d|[.,]\d+)(?P<power>[eE][+\-]?\d{1,3})?"
    r"(?P<gap>\s*)(?P<suffix>[^\d()\s+\-−][^\d()+\-−]{0,14}?)?(?P<last>-)?\s*(?P<close>\))?"
)
_SEPARATORS: tuple[tuple[str, str], ...] = (("", "."), (",", "."), (".", ","), ("", ","), (" ", "."), (" ", ","))
_SEPARATORS += (("\u00a0", "."), ("\u00a0", ","), ("\u202f", "."), ("\u202f", ","), ("'", "."), ("’", "."))
"""Signs between thousands and before decimals."""
_DAYS = [f"{a}{s}{b}{s}{c}" for s in "/.- " for a, b, c in (("%Y", "%m", "%d"), ("%d", "%m", "%Y"), ("%m", "%d", "%Y"))]
_DAYS += [f"{a}{s}{b}{s}%y" for s in "/." for a, b in (("%d", "%m"), ("%m", "%d"))]
_DAYS += [f"%d{s}%{month}{s}%Y" for s in " -/." for month in "bB"]
_DAYS += [f"%{month} %d{comma} %Y" for month in "bB" for comma in (",", "")]
_CLOCKS = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", ", %H:%M", " %I:%M %p", " %I:%M:%S %p", " %I:%M%p")
_PATTERNS = [day + clock for day in _DAYS for clock in _CLOCKS]
_SAMPLE = 60
"""Texts of a column that are looked at first."""
_LIKELY = 0.9
"""Least share of them that have a form which is tried on all texts."""


def read_cells(form: WrittenForm, cells: ColumnCells, name: str, dtype: str) -> ColumnCells:
    """Cells of text as numbers or moments, stored as this dtype; cells that are no text stay as they are.

    Raises
    ------
    ValueError
        If a text has another form and is no word for a missing cell.
    """
    if cells.codes is None or not any(isinstance(label, str) for label in cells.labels):
        return cells
    used = np.bincount(cells.codes[cells.codes >= 0], minlength=len(cells.labels)) > 0
    table = np.full(len(cells.labels) + 1, np.nan)
    for code in np.flatnonzero(used).tolist():
        label = cells.labels[code]
        number = form.parse(label) if isinstance(label, str) else float(label)
        if number is None and not form.is_missing(label):
            raise ValueError(
                f"column {name!r}: expected {form.in_words} such as {form.example!r}, got the text {label!r}; "
                "make it missing, or write it in the same form"
            )
        table[code] = np.nan if number is None else number
    values = table[cells.codes]
    missing = np.isnan(values)
    if form.sort == "date":
        per_second = 1 / 86400 if is_date(dtype) else 1.0
        ticks = np.where(missing, 0.0, np.floor(values * per_second)).astype(np.int64)
        return ColumnCells("datetime", dtype, ticks, missing, per_second=per_second)
    known = values[~missing]
    sort = "integer" if (known == np.rint(known)).all() else "number"
    return ColumnCells(sort, dtype, values, missing)


class _Texts(NamedTuple):
    """The distinct texts of a column, stripped, with their counts."""

    texts: list[str]
    counts: list[int]
    dtype: str
    n: int


def find_forms(reader: FrameReader, kinds: Mapping[str, str]) -> dict[str, WrittenForm]:
    """The forms of a table's text columns that hold numbers, dates or times.

    A column with two readings, such as ``03/04/2022``, takes the one that other columns of the table prove. Without
    such a column the reading is a convention, and a warning says which.

    Parameters
    ----------
    reader : FrameReader
    kinds : mapping of str to str
        Kinds of columns that the user gave; those to be categorical, or to take no part in the model, stay text.

    Warns
    -----
    UserWarning
        If a column has two readings, or some of its cells have another form.
    """
    choices: dict[str, tuple[WrittenForm, ...]] = {}
    for name in reader.names:
        if kinds.get(name) in (*CATEGORICAL_KINDS, *NO_KINDS):
            continue
        texts = _texts_of(reader.cells(name))
        forms = _forms_of(texts, must=name in kinds) if texts else ()
        if forms:
            choices[name] = forms
    sure = [forms[0] for forms in choices.values() if len(forms) == 1]
    found = {}
    for name, forms in choices.items():
        found[name] = forms[0] if len(forms) == 1 else _decided(name, forms, sure)
        exceptions = found[name].exceptions
        if exceptions:
            shown = ", ".join(map(repr, exceptions[:3])) + (", ..." if len(exceptions) > 3 else "")
            warn(
                f"column {name!r} is read as {found[name].in_words}; missing, as of another form: {shown}", UserWarning
            )
    return found


def number_dtype(frame: str, form: WrittenForm) -> str:
    """How a frame of this library would store the values of a form."""
    if form.sort != "date":
        return {"polars": "Float64", "pyarrow": "double"}.get(frame, "float64")
    if "%H" in form.pattern or "%I" in form.pattern:
        return {"polars": "datetime[us]", "pyarrow": "timestamp[s]"}.get(frame, "datetime64[s]")
    return {"polars": "date", "pyarrow": "date32[day]", "numpy": "datetime64[D]"}.get(frame, "datetime64[s]")


def with_forms(reader: FrameReader, forms: Mapping[str, WrittenForm]) -> FrameReader:
    """The table with texts read by their forms, and other texts without spaces at their ends."""
    kept: dict[str, ColumnCells] = {}

    def cells(name: str) -> ColumnCells:
        if name not in forms:
            return trimmed(reader.cells(name))
        if name not in kept:
            kept[name] = read_cells(forms[name], reader.cells(name), name, number_dtype(reader.frame, forms[name]))
        return kept[name]

    return replace(reader, cells=cells)


def trimmed(cells: ColumnCells) -> ColumnCells:
    """Cells of text without spaces at their ends and errors of spreadsheets; declared categories stay as they are."""
    if cells.codes is None or cells.declared:
        return cells
    labels = [label.strip() if isinstance(label, str) else label for label in cells.labels]
    if labels == list(cells.labels) and not SPREADSHEET_ERRORS.intersection(
        label for label in labels if isinstance(label, str)
    ):
        return cells
    place: dict[Any, int] = {}
    to = [-1 if label in SPREADSHEET_ERRORS else place.setdefault(label, len(place)) for label in labels]
    codes = np.array([*to, -1])[cells.codes]
    return replace(cells, codes=codes, missing=codes < 0, labels=list(place))


def _texts_of(cells: ColumnCells) -> _Texts | None:
    """The texts of a column; None if it holds anything else."""
    if cells.codes is None or cells.declared or not all(isinstance(label, str) for label in cells.labels):
        return None
    counts = np.bincount(cells.codes[cells.codes >= 0], minlength=len(cells.labels))
    used = sorted((str(label).strip(), int(n)) for label, n in zip(cells.labels, counts, strict=True) if n)
    if not used:
        return None
    return _Texts([text for text, _ in used], [n for _, n in used], cells.dtype, int(counts.sum()))


def _forms_of(column: _Texts, must: bool) -> tuple[WrittenForm, ...]:
    """The forms that all texts have but words for missing cells and rare exceptions, the preferred one first.

    ``must`` says that the user wants numbers or dates.
    """
    texts = [text for text in column.texts if text not in MISSING_WORDS]
    sample = texts[:: len(texts) // _SAMPLE + 1]
    if not any(character.isdigit() for text in sample for character in text):
        return ()
    count = dict(zip(column.texts, column.counts, strict=True))
    patterns = [p for p in _PATTERNS if any(date_regex(p).fullmatch(text) for text in sample)]
    dates = [WrittenForm("date", column.dtype, pattern=pattern) for pattern in patterns]
    clock = WrittenForm("duration", column.dtype, unit="seconds")

    def is_date_text(text: str) -> bool:
        return any(form.parse(text) is not None for form in dates)

    def is_clock_text(text: str) -> bool:
        return clock.parse(text) is not None

    def as_numbers(fit: Sequence[str], dtype: str) -> tuple[WrittenForm, ...]:
        return _as_numbers(fit, dtype, must or len(fit) < len(column.texts))

    for fits, find in ((is_clock_text, _as_clock), (is_date_text, _as_dates), (_is_number_text, as_numbers)):
        if sum(map(fits, sample)) < _LIKELY * len(sample):
            continue
        fit = [text for text in texts if fits(text)]
        odd = tuple(sorted(set(texts).difference(fit)))
        if sum(count[text] for text in odd) > column.n / 1000 or len(odd) > MOST_EXCEPTIONS:
            continue
        forms = find(fit, column.dtype)
        if forms:
            return tuple(replace(form, exceptions=odd) for form in forms)
    return ()


def _as_clock(texts: Sequence[str], dtype: str) -> tuple[WrittenForm, ...]:
    """Times of day or durations."""
    found = [match for text in texts if (match := CLOCK.fullmatch(text)) is not None]
    halves = {bool(match["half"]) for match in found}
    with_seconds = {match["s"] is not None for match in found}
    if len(halves) > 1 or len(with_seconds) > 1:
        return ()
    is_time = all(int(match["h"]) < 24 for match in found)
    padded = all(len(match["h"]) > 1 for match in found)
    unit = "seconds" if any(int(match["s"] or 0) for match in found) else "minutes"
    half = " p" if any((match["half"] or "").startswith(" ") for match in found) else "p"
    pattern = "h:mm" + (":ss" if True in with_seconds else "") + (half if True in halves else "")
    return (WrittenForm("time" if is_time else "duration", dtype, pattern=pattern, padded=padded, unit=unit),)


def _as_dates(texts: Sequence[str], dtype: str) -> tuple[WrittenForm, ...]:
    """Dates, with or without time of day."""
    padded = not any(re.search(r"(?<!\d)\d(?!\d)", text) for text in texts)
    forms = []
    for pattern in _PATTERNS:
        if not date_regex(pattern).fullmatch(texts[0]) or ("%y" in pattern and not padded):
            continue
        form = WrittenForm("date", dtype, pattern=pattern, padded=padded)
        if all(form.parse(text) is not None for text in texts):
            forms.append(form)
    if len({_order(form) for form in forms}) < 2:
        return tuple(forms[:1])
    # points and hyphens are written with the day first, slashes with the month first
    preferred = "month" if "/" in forms[0].pattern else "day"
    return tuple(sorted(forms, key=lambda form: _order(form) != preferred))


def _is_number_text(text: str) -> bool:
    """Whether a text may be a number with a currency or a unit, alone of its column."""
    match = _NUMBER.fullmatch(text)
    return match is not None and (match["open"] is None) == (match["close"] is None) and _is_unit(match)


def _as_numbers(texts: Sequence[str], dtype: str, must: bool) -> tuple[WrittenForm, ...]:
    """Numbers with signs between thousands, decimal commas, currencies, units or parentheses.

    Digits alone were stored as text on purpose: they are numbers only if they ``must`` be, by the user's word or as
    other cells are words for missing numbers.
    """
    found = [match for text in texts if (match := _NUMBER.fullmatch(text)) is not None]
    around = {(match["prefix"], match["suffix"] or "") for match in found}
    bodies = {match["body"] for match in found}
    is_coded = any(re.match(r"0\d", body) for body in bodies)
    signs = {"()" for match in found if match["open"]} | {"after" for match in found if match["last"]}
    if len(around) > 1 or is_coded or len(signs) > 1:
        return ()
    prefix, suffix = around.pop()
    if suffix.strip("%‰") and suffix not in _CURRENCIES and len(bodies) < 3:
        return ()  # few levels, such as 2 doors and 4 doors
    forms = []
    for thousands, decimal in _SEPARATORS:
        form = WrittenForm("number", dtype, prefix, suffix, thousands, decimal, negative=next(iter(signs), "-"))
        if any(thousands in body for body in bodies) and all(form.parse(text) is not None for text in texts):
            forms.append(_spaced(form, found, texts))
    if not forms:
        return ()
    best = forms[0]
    is_bare = not (prefix or suffix or signs)
    if is_bare and all(body.isdigit() for body in bodies) and not (must and len(bodies) > 2):
        return ()
    if is_bare and best.thousands == " " and len(set(map(len, bodies))) == 1:
        return ()  # such as telephone numbers
    commas = tuple(form for form in forms[1:] if form.decimal == ",")
    return (best, *commas[:1]) if best.thousands == "," else (best,)


def _is_unit(match: re.Match[str]) -> bool:
    """Whether what stands around a number is a currency or a unit, and not part of a code."""
    prefix, suffix = match["prefix"], match["suffix"]
    if prefix and prefix not in _CURRENCIES:
        return False
    if not suffix or suffix in "%‰" or suffix in _CURRENCIES or suffix in _UNITS:
        return True
    return bool(match["gap"] and re.fullmatch(r"[^\W\d_]+[.²³/]?[^\W\d_]*|[^\W\d_ ]+ [^\W\d_ ]+", suffix))


def _spaced(form: WrittenForm, found: Sequence[re.Match[str]], texts: Sequence[str]) -> WrittenForm:
    """The form with the spaces and the number of decimals that most cells have."""
    suffix = ("" if 2 * sum(not match["gap"] for match in found) >= len(found) else " ") + form.suffix
    prefix = form.prefix
    if prefix:
        spaced = sum(bool(re.search(re.escape(prefix) + r"[+\-−]?\s", text)) for text in texts)
        prefix += " " if 2 * spaced > len(texts) else ""
    decimals = {
        len(match["body"].rpartition(form.decimal)[2]) if form.decimal in match["body"] else 0 for match in found
    }
    exact = decimals.pop() if len(decimals) == 1 and not any(match["power"] for match in found) else -1
    return replace(form, prefix=prefix, suffix=suffix if form.suffix else "", decimals=exact)


def _decided(name: str, forms: Sequence[WrittenForm], sure: Sequence[WrittenForm]) -> WrittenForm:
    """The form of a column with two readings: as other columns prove, else by convention and with a warning."""
    is_date = forms[0].sort == "date"
    reading = _order if is_date else _decimal_sign
    proofs = {reading(form) for form in sure} - {""}
    if len(proofs) == 1:
        return next(form for form in forms if reading(form) in proofs)
    if is_date:
        what, other = (f"the {_order(form)} first" for form in forms)
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
    return "day" if day < month else "month"


def _decimal_sign(form: WrittenForm) -> str:
    """The decimal sign that a form of numbers proves; "" if it proves none."""
    return form.decimal if form.thousands in (",", ".") or form.decimal == "," else ""
