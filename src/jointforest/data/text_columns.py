"""Text columns that stand for numbers, dates and times: which form a column has, and its cells read by that form.

A column of text such as ``$1,200.00``, ``15 %``, ``26/11/2022`` or ``09:30`` holds numbers. `find_forms` compares its
distinct texts with the forms below. A form is taken only if *every* known cell has it; in columns of 1,000 cells or
more, one cell in 1,000 may differ and counts as missing. Everything else stays text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from ..runtime.warnings import warn
from .cells import ColumnCells, FrameReader
from .schema import CATEGORICAL_KINDS
from .times import is_date
from .written_forms import CLOCK, MISSING_WORDS, MOST_EXCEPTIONS, SPREADSHEET_ERRORS, WrittenForm, date_regex

_CURRENCIES: tuple[str, ...] = (
    "$",
    "€",
    "£",
    "¥",
    "₹",
    "₽",
    "₩",
    "₪",
    "₺",
    "₫",
    "฿",
    "US$",
    "A$",
    "C$",
    "R$",
    "NT$",
    "HK$",
    "kr",
    "Kr",
    "zł",
)
_CURRENCIES += ("USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "CAD", "AUD", "NZD", "SEK", "NOK", "DKK", "PLN", "CZK")
_CURRENCIES += ("HUF", "BRL", "MXN", "ZAR", "KRW", "SGD", "HKD", "TRY", "RUB", "Rs", "Rs.", "Fr.")
_UNITS = frozenset(
    [
        "kg",
        "g",
        "mg",
        "t",
        "lb",
        "lbs",
        "oz",
        "km",
        "m",
        "cm",
        "mm",
        "mi",
        "ft",
        "in",
        "yd",
        "l",
        "ml",
        "cl",
        "h",
        "hr",
        "hrs",
        "min",
        "s",
        "sec",
        "ms",
        "kB",
        "KB",
        "MB",
        "GB",
        "TB",
        "kb",
        "mb",
        "gb",
    ]
)
_UNITS |= frozenset(
    [
        "Hz",
        "kHz",
        "MHz",
        "GHz",
        "W",
        "kW",
        "kWh",
        "MW",
        "V",
        "mV",
        "hp",
        "bhp",
        "rpm",
        "mph",
        "kmh",
        "km/h",
        "kmpl",
        "mpg",
        "°C",
        "°F",
        "°",
        "px",
        "pt",
        "pcs",
        "bps",
        "bp",
        "x",
    ]
)
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


class _Choice(NamedTuple):
    """Forms that all cells of a column have, the preferred one first, and what distinguishes them."""

    forms: tuple[WrittenForm, ...]
    doubt: Literal["", "decimal", "day"]


def find_forms(reader: FrameReader, kinds: Mapping[str, str], apart: Collection[str] = ()) -> dict[str, WrittenForm]:
    """The forms of a table's text columns that hold numbers, dates or times.

    A column with two readings, such as ``03/04/2022``, takes the one that other columns of the table prove. Without
    such a column the reading is a convention, and a warning says which.

    Parameters
    ----------
    reader : FrameReader
    kinds : mapping of str to str
        Kinds of columns that the user gave; those to be categorical stay text.
    apart : names of columns
        That are not looked at.

    Warns
    -----
    UserWarning
        If a column has two readings, or some of its cells have another form.
    """
    choices: dict[str, _Choice] = {}
    for name in reader.names:
        if name in apart or kinds.get(name) in CATEGORICAL_KINDS:
            continue
        texts = _texts_of(reader.cells(name))
        choice = _choice_of(texts, must=name in kinds) if texts else None
        if choice is not None:
            choices[name] = choice
    sure = [choice.forms[0] for choice in choices.values() if not choice.doubt]
    found = {}
    for name, choice in choices.items():
        found[name] = _decided(name, choice, sure) if choice.doubt else choice.forms[0]
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
    used = [(str(label).strip(), int(n)) for label, n in zip(cells.labels, counts, strict=True) if n]
    if not used:
        return None
    return _Texts([text for text, _ in used], [n for _, n in used], cells.dtype, int(counts.sum()))


def _choice_of(column: _Texts, must: bool) -> _Choice | None:
    """The forms that all texts have but words for missing cells and rare exceptions."""
    texts = [text for text in column.texts if text not in MISSING_WORDS]
    has_words = len(texts) < len(column.texts)
    if not texts:
        return None
    if not any(map(str.isdigit, texts[0])):
        return None
    sample = texts[:: max(len(texts) // 50, 1)][:60]
    for find in (_as_clock, _as_dates, _as_numbers):
        if sum(find([text], column.dtype, False, True) is not None for text in sample) < 0.9 * len(sample):
            continue
        fit = [text for text in texts if find([text], column.dtype, False, True) is not None]
        odd = set(texts) - set(fit)
        n_odd = sum(n for text, n in zip(column.texts, column.counts, strict=True) if text in odd)
        if n_odd > column.n / 1000 or len(odd) > MOST_EXCEPTIONS:
            continue
        choice = find(fit, column.dtype, has_words or bool(odd), must)
        if choice is not None:
            exceptions = tuple(sorted(odd))
            return choice._replace(forms=tuple(replace(form, exceptions=exceptions) for form in choice.forms))
    return None


def _as_clock(texts: Sequence[str], dtype: str, has_gaps: bool, must: bool) -> _Choice | None:
    """Times of day or durations."""
    matches = [CLOCK.fullmatch(text) for text in texts]
    if any(match is None for match in matches):
        return None
    found = [match for match in matches if match is not None]
    halves = {bool(match["half"]) for match in found}
    with_seconds = {match["s"] is not None for match in found}
    if len(halves) > 1 or len(with_seconds) > 1:
        return None
    is_time = all(int(match["h"]) < 24 for match in found)
    padded = all(len(match["h"]) > 1 for match in found)
    unit = "seconds" if any(int(match["s"] or 0) for match in found) else "minutes"
    half = " p" if any((match["half"] or "").startswith(" ") for match in found) else "p"
    pattern = "h:mm" + (":ss" if True in with_seconds else "") + (half if True in halves else "")
    form = WrittenForm("time" if is_time else "duration", dtype, pattern=pattern, padded=padded, unit=unit)
    return _Choice((form,), "") if all(form.parse(text) is not None for text in texts) else None


def _as_dates(texts: Sequence[str], dtype: str, has_gaps: bool, must: bool) -> _Choice | None:
    """Dates, with or without time of day."""
    first = [day + clock for day in _DAYS for clock in _CLOCKS if date_regex(day + clock).fullmatch(texts[0])]
    forms = []
    for pattern in first:
        padded = not any(re.search(r"(?<!\d)\d(?!\d)", text) for text in texts)
        if "%y" in pattern and not padded:
            continue
        form = WrittenForm("date", dtype, pattern=pattern, padded=padded)
        if all(form.parse(text) is not None for text in texts):
            forms.append(form)
    if not forms:
        return None
    orders = {
        "d" if form.pattern.find("%d") < form.pattern.find("%m") else "m" for form in forms if "%m" in form.pattern
    }
    if len(orders) < 2:
        return _Choice((forms[0],), "")
    # points and hyphens are written with the day first, slashes with the month first
    is_day_first = "/" not in forms[0].pattern
    forms.sort(key=lambda form: (form.pattern.find("%d") < form.pattern.find("%m")) != is_day_first)
    return _Choice(tuple(forms), "day")


def _as_numbers(texts: Sequence[str], dtype: str, has_gaps: bool, must: bool) -> _Choice | None:
    """Numbers with signs between thousands, decimal commas, currencies, units or parentheses."""
    found = []
    for text in texts:
        match = _NUMBER.fullmatch(text)
        if match is None or (match["open"] is None) != (match["close"] is None):
            return None
        found.append(match)
    around = {(match["prefix"], match["suffix"] or "") for match in found}
    if len(around) != 1:
        return None
    prefix, suffix = around.pop()
    alone = len(texts) == 1 and must  # a single text of many
    if not _is_unit(prefix, suffix, found, alone):
        return None
    bodies = [match["body"] for match in found]
    if any(re.match(r"0\d", body) for body in bodies):
        return None  # codes
    signs = {"()" for match in found if match["open"]} | {"after" for match in found if match["last"]}
    if len(signs) > 1:
        return None
    forms = []
    for thousands, decimal in _SEPARATORS:
        form = WrittenForm("number", dtype, prefix, suffix, thousands, decimal, negative=next(iter(signs), "-"))
        if all(form.parse(text) is not None for text in texts) and any(thousands in body for body in bodies):
            forms.append(_spaced(form, found, texts))
    if not forms or (alone and not forms):
        return None
    best = forms[0]
    is_plain = not (prefix or suffix or best.thousands or signs or best.decimal == ",")
    if is_plain and all(body.isdigit() for body in bodies) and not (must or (has_gaps and len(set(bodies)) > 2)):
        return None  # digits alone were stored as text on purpose
    if best.thousands == " " and not (prefix or suffix) and len(set(map(len, bodies))) == 1 and not alone:
        return None  # such as telephone numbers
    commas = [form for form in forms if form.decimal == ","]
    if best.thousands == "," and commas:
        return _Choice((best, commas[0]), "decimal")
    return _Choice((best,), "")


def _is_unit(prefix: str, suffix: str, found: Sequence[re.Match[str]], alone: bool) -> bool:
    """Whether what stands around all numbers is a currency or a unit, and not part of a code."""
    if prefix and prefix not in _CURRENCIES:
        return False
    if not suffix or suffix in "%‰" or suffix in _CURRENCIES:
        return True
    if not re.fullmatch(r"[^\W\d_]+[.²³/]?[^\W\d_]*|°[CF]?|[^\W\d_ ]+( [^\W\d_ ]+)?", suffix):
        return False
    is_apart = all(match["gap"] for match in found)
    return (suffix in _UNITS or is_apart) and (alone or len({match["body"] for match in found}) > 2)


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


def _decided(name: str, choice: _Choice, sure: Sequence[WrittenForm]) -> WrittenForm:
    """The form of a column with two readings: as other columns prove, else by convention and with a warning."""
    if choice.doubt == "decimal":
        proofs = {form.decimal for form in sure if form.thousands in (",", ".") or form.decimal == ","}
    else:
        proofs = {_order(form) for form in sure if form.sort == "date"} - {""}
    if len(proofs) == 1:
        proof = proofs.pop()
        return next(
            (form for form in choice.forms if proof in (form.decimal if choice.doubt == "decimal" else _order(form))),
            choice.forms[0],
        )
    form = choice.forms[0]
    what = "commas between thousands" if choice.doubt == "decimal" else f"the {_order(form)} first"
    other = "decimal commas" if choice.doubt == "decimal" else f"the {_order(choice.forms[1])} first"
    hint = "; if so, say --decimal , or turn the column into numbers" if choice.doubt == "decimal" else ""
    hint = hint or "; if so, write the dates as year-month-day"
    warn(f"column {name!r} is read with {what}, such as {form.example!r}; it may also have {other}{hint}", UserWarning)
    return form


def _order(form: WrittenForm) -> str:
    """Whether the day or the month comes first in a numeric date; "" if neither is in doubt."""
    day, month = form.pattern.find("%d"), form.pattern.find("%m")
    if form.sort != "date" or month < 0 or form.pattern.startswith("%Y"):
        return ""
    return "day" if day < month else "month"
