"""Conditions as people write them about one column: ``20-30``, ``40+``, ``< 5``, ``last year``, ``not Male``.

This is what the explorer's cards take. A text means one condition, or it is refused: where two meanings are possible,
the error names both. `FORMS` says which forms there are, and `short_dates` which dates.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from ..data.conditions import AnyOf, Interval, Missing, Not
from ..data.schema import Column, near, shortened
from ..data.texts import column_text
from . import short_dates
from .parser import QuerySyntaxError, parse_conditions
from .short_dates import Period

FORMS = {
    "number": "40, 20-30, 40+, < 5, several as in 20, 30-40, not 40, or missing",
    "date": "2023, March 2023, 2023-03-01, 2023-03-01 to 2023-04-15, since 2023, last year, last 30 days, several with "
    "commas, or missing",
    "levels": "a level or its beginning, several with commas, not and a level, or missing",
    "ordered": "a level or its beginning, >= and a level, a level to a level, several with commas, or missing",
}
"""What a card takes, by what its column holds."""


class ReadCondition(NamedTuple):
    """The condition that a text stands for.

    Attributes
    ----------
    condition : condition or None
        None: nothing.
    note : str
        What the reader should know of how it was read; empty if there is nothing.
    """

    condition: Any
    note: str = ""


class _Ambiguous(ValueError):
    """A text that has two meanings; the message names them."""


def read_short(column: Column, text: str, today: dt.date | None = None) -> ReadCondition:
    """The condition that a short text says of a column.

    Parameters
    ----------
    column : Column
    text : str
        One of `FORMS`, or a condition of the query language on this column, whose name may be left out before
        ``about``, ``between``, ``in``, ``is`` and ``likely``.
    today : date, optional
        What "last year" is counted from; by default the present day, in the time zone of the column if it has one.

    Returns
    -------
    Reading

    Raises
    ------
    ValueError
        If the text is not understood, or has two meanings. The message says what can be written.

    Examples
    --------
    >>> age = Column("age", "integer", "int64", step=1.0)
    >>> read_short(age, "20-30").condition
    Interval(lo=20, hi=30, closed='both')
    >>> read_short(age, "40+").condition
    Interval(lo=40, hi=None, closed='left')
    >>> day = Column("day", "datetime", "datetime64[s]", step=86400.0)
    >>> read_short(day, "last year", dt.date(2026, 3, 1)).note
    "'last year' is 2025-01-01 to 2025-12-31, counted from today (2026-03-01)."
    """
    words = " ".join(text.split())
    try:
        if column.is_categorical:
            read = _Levels(column).read(words)
        elif column.kind == "datetime":
            read = _Dates(column, today).read(words)
        else:
            read = _Numbers(column).read(words)
    except _Ambiguous as error:
        raise ValueError(f"column {column.name!r}: {error}") from None
    return read


# ---- What numbers, dates and levels have in common: lists, "not", comparisons and ranges.

_SIGN = r"<=|>=|=<|=>|≤|≥|<|>|=="
_SIGNS = {"=<": "<=", "=>": ">=", "≤": "<=", "≥": ">=", "==": "="}
_BEFORE = {
    ">=": "at least|no less than|not less than|since|from",
    ">": "more than|greater than|later than|older than|over|above|after",
    "<=": "at most|no more than|not more than|up to|until|till",
    "<": "less than|fewer than|earlier than|younger than|under|below|before",
}
_AFTER = {
    ">=": r"(?:or|and) (?:more|over|above|older|later|after|higher|greater|up)|onwards?|and up",
    "<=": r"(?:or|and) (?:less|fewer|under|below|younger|earlier|before|lower)",
}
_COMPARED = re.compile(rf"({_SIGN}|=)\s*(.+)")
_TWO = re.compile(rf"((?:{_SIGN})\s*[^<>=≤≥]+?)(\s*,\s*|\s+and\s+|\s*&\s*|\s+)((?:{_SIGN})\s*[^<>=≤≥]+)")
_PHRASE_BEFORE = [(op, re.compile(rf"(?:{words})\s+(.+)", re.I)) for op, words in _BEFORE.items()]
_PHRASE_AFTER = [(op, re.compile(rf"(.+?)\s+(?:{words})", re.I)) for op, words in _AFTER.items()]
_PLUS = re.compile(r"(.*[\w)'\"])\s?\+")
_BETWEEN = re.compile(r"(?:between|from)\s+(.+?)\s+(?:and|to|until|through)\s+(.+)", re.I)
_BRACKETS = re.compile(r"([\[(])\s*([^,;]+?)\s*[,;]\s*([^,;]+?)\s*([\])])")
_RANGE = re.compile(r"\s+(?:to|through|until)\s+|\s*(?:\.{2,}|…|–|—)\s*", re.I)
_DASH = re.compile(r"\s*[-−]\s*")
_NOT = re.compile(r"(?:not\s+|!=\s*|<>\s*|≠\s*|except\s+|anything but\s+)(.+)", re.I)
_LIST = re.compile(r"\s*[,;]\s*(?:or\s+)?|\s+or\s+", re.I)
_LANGUAGE = re.compile(r"(?:not\s+)?(?:in|between|about|likely|is)\b|=|!=", re.I)
_ANYTHING = {"", "any", "anything", "all", "*"}
_MISSING = {"missing": Missing(), "is missing": Missing(), "empty": Missing()}
_KNOWN = {"not missing": Not(Missing()), "is not missing": Not(Missing()), "not empty": Not(Missing())}
_MOST_PIECES = 400


class _Reader:
    """Reads a text about one column; subclasses define what a single value is."""

    forms = "number"
    compares = True
    """Whether values have an order."""
    most_commas = 0
    """Most commas in one value."""
    apart = "write one of them"
    """What makes a list clear."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.notes: list[str] = []

    def value(self, text: str) -> Any:
        """The value that a text is, as `interval` takes it; None if it is none."""
        raise NotImplementedError

    def interval(self, low: Any, high: Any, low_in: bool, high_in: bool) -> Any:
        """The condition of two ends, either of them None."""
        raise NotImplementedError

    def equal(self, value: Any) -> Any:
        """The condition of one value."""
        return value

    def prepared(self, text: str) -> str:
        """The text before it is cut into pieces."""
        return text

    def second_chance(self, left: str, right: str) -> Any:
        """The value of the lower end of a range that is not a value by itself."""
        return None

    def problem(self, text: str) -> str:
        """The error message for a text that is not understood."""
        return f"cannot read {shortened(text)}"

    def read(self, text: str) -> ReadCondition:
        """The condition of a text."""
        word = text.lower()
        if word in _ANYTHING:
            return ReadCondition(None)
        if word in _MISSING or word in _KNOWN:
            return ReadCondition((_MISSING | _KNOWN)[word])
        condition = self.alternatives(self.prepared(text))
        if condition is None:
            condition = self.in_language(text)
        if condition is None:
            raise ValueError(f"column {self.column.name!r}: {self.problem(text)}; write {FORMS[self.forms]}")
        return ReadCondition(condition, " ".join(dict.fromkeys(self.notes)))

    def alternatives(self, text: str) -> Any:
        """What is read whole, or as a list of which any may hold; None if neither."""
        condition = self.one(text)
        if condition is not None:
            return condition
        ways = self.ways(text)
        denied = _NOT.fullmatch(text)
        if denied:  # "not" before a list is meant of all of it
            inner = self.one(denied[1])
            if inner is not None:
                return Not(inner)
            ways += [["not", *way] for way in self.ways(re.sub(r"([,;]|\bor\b)\s*(?:not\s|!=)", r"\1 ", denied[1]))]
        if len(ways) > 1:
            first, second = (", ".join(map(repr, way)).replace("'not', ", "not ", 1) for way in ways[:2])
            raise _Ambiguous(f"{shortened(text)} may be {first}, or {second}; {self.apart}")
        if not ways:
            return None
        is_denied = ways[0][0] == "not" and denied is not None
        condition = AnyOf(*_flat(self.one(piece) for piece in ways[0][is_denied:]))
        return Not(condition) if is_denied else condition

    def ways(self, text: str) -> list[list[str]]:
        """Ways to cut a text at commas and "or" into pieces that are read; at most two, of different meanings."""
        cuts = [m.span() for m in _LIST.finditer(text) if text[: m.start()].strip()]
        if not cuts or len(cuts) > _MOST_PIECES:
            return []
        starts, ends = [0, *(stop for _, stop in cuts)], [*(start for start, _ in cuts), len(text)]
        n = len(starts)
        after: list[dict[frozenset[str], list[str]]] = [{} for _ in range(n)] + [{frozenset(): []}]
        for i in reversed(range(n)):
            for j in range(i, min(i + self.most_commas + 1, n - (i == 0))):
                piece = text[starts[i] : ends[j]]
                condition = self.one(piece) if after[j + 1] and len(after[i]) < 2 else None
                if condition is not None:
                    for key, later in after[j + 1].items():
                        after[i].setdefault(key | {repr(part) for part in _flat([condition])}, [piece, *later])
        return list(after[0].values())[:2]

    def one(self, text: str) -> Any:
        """A value, a comparison or a range; None if it is none of them."""
        value = self.value(text)
        if value is not None:
            return self.equal(value)
        return self.compared(text) if self.compares else self.same(text)

    def same(self, text: str) -> Any:
        """What stands behind an equals sign."""
        sign = _COMPARED.fullmatch(text)
        value = self.value(sign[2]) if sign and sign[1] in ("=", "==") else None
        return None if value is None else self.equal(value)

    def compared(self, text: str) -> Any:
        """A comparison or a range; None if it is neither."""
        two = _TWO.fullmatch(text)
        if two and (condition := self.two_comparisons(two[1], two[3], two[2].strip() == ",")) is not None:
            return condition
        side = self.side(text)
        if side is not None:
            return self.on_side(*side)
        return self.range(text)

    def side(self, text: str) -> tuple[str, Any] | None:
        """The sign and the value of a comparison."""
        tries = []
        if sign := _COMPARED.fullmatch(text):
            tries.append((_SIGNS.get(sign[1], sign[1]), sign[2]))
        if plus := _PLUS.fullmatch(text):
            tries.append((">=", plus[1]))
        for op, pattern in _PHRASE_BEFORE + _PHRASE_AFTER:
            if phrase := pattern.fullmatch(text):
                tries.append((op, phrase[1]))
        for op, word in tries:
            value = self.value(word)
            if value is not None:
                return op, value
        return None

    def on_side(self, op: str, value: Any) -> Any:
        """The condition of a comparison."""
        if op == "=":
            return self.equal(value)
        if op[0] == "<":
            return self.interval(None, value, False, op == "<=")
        return self.interval(value, None, op == ">=", False)

    def two_comparisons(self, first: str, second: str, is_comma: bool) -> Any:
        """Both of two comparisons such as > 20 and < 30; after a comma either, where both are impossible."""
        sides = [self.side(first), self.side(second)]
        if (
            sides[0] is None
            or sides[1] is None
            or sides[0][0][0] == sides[1][0][0]
            or "=" in (s[0] for s in sides if s)
        ):
            return None
        (low_op, low), (high_op, high) = sorted((s for s in sides if s), key=lambda s: s[0][0] == "<")
        if is_comma and self.is_above(low, high):
            return None
        return self.interval(low, high, low_op == ">=", high_op == "<=")

    def is_above(self, low: Any, high: Any) -> bool:
        """Whether the lower end lies above the upper end."""
        return bool(low > high)

    def range(self, text: str) -> Any:
        """Two ends: 20-30, 20 to 30, between 20 and 30, [20, 30); None if it is none."""
        if match := _BRACKETS.fullmatch(text):
            low, high = self.value(match[2]), self.value(match[3])
            if low is not None and high is not None:
                return self.interval(low, high, match[1] == "[", match[4] == "]")
        tries = [(m[1], m[2]) for m in [_BETWEEN.fullmatch(text)] if m]
        tries += [(text[: m.start()], text[m.end() :]) for m in _RANGE.finditer(text)]
        tries += [(text[: m.start()], text[m.end() :]) for m in _DASH.finditer(text)]
        tries += [(text[: m.start()].rstrip(), text[m.end() - 1 :]) for m in _DASH.finditer(text) if m[0] == " -"]
        read = [ends for left, right in tries if (ends := self.ends(left, right)) is not None]
        distinct = list({repr(ends): ends for ends in read}.values())
        if len(distinct) > 1:
            raise _Ambiguous(f"{shortened(text)} may be a range in two ways; write 'a to b'")
        return self.interval(*distinct[0]) if distinct else None

    def ends(self, left: str, right: str) -> tuple[Any, Any, bool, bool] | None:
        """Ends of a range and whether they belong to it; a sign may stand before either, as in > 20 to < 30."""
        if not left or not right:
            return None
        low_in, high_in = True, True
        if left[0] == ">" and left[1:2] != "=":
            left, low_in = left[1:].strip(), False
        if right[0] == "<" and right[1:2] != "=":
            right, high_in = right[1:].strip(), False
        low, high = self.value(left), self.value(right)
        if low is None and high is not None:
            low = self.second_chance(left, right)
        return None if low is None or high is None else (low, high, low_in, high_in)

    def in_language(self, text: str) -> Any:
        """The same as a condition of the query language on this column; None if it is none."""
        name = column_text(self.column.name)
        kinds = {self.column.name: self.column.kind}
        is_part = _LANGUAGE.match(text) is not None
        try:
            conditions = parse_conditions(f"{name} {text}" if is_part else text, kinds)
        except QuerySyntaxError as error:
            if not re.match(r"(?:not\s+)?(?:in|between|about|likely)\b", text, re.I):
                return None
            hint = f" ({error.hint})" if error.hint else ""
            raise ValueError(
                f"column {self.column.name!r}: cannot read {shortened(text)}: {error.problem}{hint}; write "
                f"{FORMS[self.forms]}"
            ) from None
        return conditions[0][1] if len(conditions) == 1 else None


def _flat(conditions: Iterable[Any]) -> list[Any]:
    flat = [part for c in conditions for part in (c.conditions if isinstance(c, AnyOf) else (c,))]
    return list({repr(part): part for part in flat}.values())


# ---- Numbers.

_DIGITS = r"(?:(?:0|[1-9]\d*)\.?\d*|\.\d+)(?:[eE][-+−]?\d+)?"
_NUMBER = re.compile(rf"([-−+]?)({_DIGITS})\s?([kKMB]?)")
_UNITS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}  # as the axes of the explorer are written
_COMMAS = re.compile(r"(?<![\d.])\d+(?:[,\u00a0\u202f]\d+)+")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:([,\u00a0\u202f])\d{3})(?:\1\d{3})*")


class _Numbers(_Reader):
    def prepared(self, text: str) -> str:
        return text if _BRACKETS.fullmatch(text) else _COMMAS.sub(lambda m: self._no_commas(m[0]), text)

    def _no_commas(self, digits: str) -> str:
        """Digits between commas: one number, or several apart."""
        parts = re.split(r"\D", digits)
        column = self.column
        if _THOUSANDS.fullmatch(digits):
            fits = all(column.minimum <= float(x) <= column.maximum and x[0] != "0" for x in parts)
            if fits and float("".join(parts)) > column.maximum:
                raise _Ambiguous(
                    f"{digits!r} may be the number {''.join(parts)} or the values {' and '.join(parts)}; write "
                    f"{''.join(parts)}, or {', '.join(parts)} with a space after each comma"
                )
            return "".join(parts)
        is_whole = column.step > 0.0 and column.step == round(column.step)
        if len(parts) == 2 and not is_whole:
            raise _Ambiguous(
                f"{digits!r} may be the number {'.'.join(parts)} or the values {' and '.join(parts)}; write "
                f"{'.'.join(parts)}, or {', '.join(parts)} with a space after the comma"
            )
        return ", ".join(parts)

    def value(self, text: str) -> Any:
        match = _NUMBER.fullmatch(text.strip())
        if not match:
            return None
        number = float(match[2].replace("−", "-")) * _UNITS[match[3]]
        number = -number if match[1] in ("-", "−") else number
        return int(number) if number.is_integer() and abs(number) < 1e15 else number

    def interval(self, low: Any, high: Any, low_in: bool, high_in: bool) -> Any:
        return _between(low, high, low_in, high_in)


def _between(low: Any, high: Any, low_in: bool, high_in: bool) -> Interval:
    if low_in and high_in:
        return Interval(low, high, "both")
    return Interval(low, high, "left" if low_in else "right" if high_in else "neither")


# ---- Dates.


class _Dates(_Reader):
    forms = "date"
    most_commas = 4

    def __init__(self, column: Column, today: dt.date | None) -> None:
        super().__init__(column)
        self.today = short_dates.today_of(column) if today is None else today

    def value(self, text: str) -> Period | None:
        try:
            match = short_dates.period(text, self.today)
        except short_dates.TwoDates as error:
            raise _Ambiguous(str(error)) from None
        if match is not None and match.is_relative:
            self.notes.append(short_dates.note(self.column, text, match, self.today))
        return match

    def second_chance(self, left: str, right: str) -> Period | None:
        """March to May 2023, 1-5 March 2023: what the upper end has is meant of the lower end, too."""
        words = right.split()
        for k in range(1, len(words)):
            value = self.value(f"{left} {' '.join(words[k:])}")
            if value is not None:
                return value
        return None

    def equal(self, value: Period) -> Any:
        return short_dates.within_period(self.column, value)

    def interval(self, low: Period | None, high: Period | None, low_in: bool, high_in: bool) -> Any:
        return short_dates.between_periods(self.column, low, high, low_in, high_in)

    def is_above(self, low: Period, high: Period) -> bool:
        return low.start.replace(tzinfo=None) > high.start.replace(tzinfo=None)


# ---- Levels.


def _folded(text: str) -> str:
    """A text without its case and its spaces."""
    return "".join(text.lower().split())


_TRUE = {"true", "yes", "y", "t", "1"}
_FALSE = {"false", "no", "n", "f", "0"}


class _Levels(_Reader):
    apart = "put levels in quotes"

    def __init__(self, column: Column) -> None:
        super().__init__(column)
        self.compares = column.kind == "ordered"
        self.forms = "ordered" if self.compares else "levels"
        self.labels = [str(level) for level in column.levels]
        self.places = {label: k for k, label in reversed(list(enumerate(self.labels)))}
        self.folded: dict[str, list[int]] = {}
        for k, label in enumerate(self.labels):
            self.folded.setdefault(_folded(label), []).append(k)
        self.most_commas = max(len(_LIST.findall(label)) for label in self.labels)
        self.several: dict[str, list[str]] = {}

    def read(self, text: str) -> ReadCondition:
        exact = self._exact(text)
        return super().read(text) if exact is None else ReadCondition(self.column.levels[exact])

    def value(self, text: str) -> Any:
        k = self._exact(text)
        if k is None:
            k = self._by_word(text)
        if k is None:
            return self._by_star(text)
        return self.column.levels[k]

    def _exact(self, text: str) -> int | None:
        """The level that is written so; in any case, if only one is."""
        quoted = re.fullmatch(r"'((?:[^']|'')*)'|\"([^\"]*)\"", text)
        if quoted:
            inner = quoted[2] if quoted[1] is None else quoted[1].replace("''", "'")
            if inner in self.places:
                return self.places[inner]
        if text in self.places:
            return self.places[text]
        same = self.folded.get(_folded(text), [])
        if len(same) == 1:
            return same[0]
        if len(same) > 1:
            self.several[text] = [self.labels[k] for k in same]
        return self._equal_number(text)

    def _equal_number(self, text: str) -> int | None:
        """The level that is the same number, or truth value."""
        if self.column.kind == "boolean":
            word = text.lower()
            value = True if word in _TRUE else False if word in _FALSE else None
            return self.column.codes.get(value) if value is not None else None
        number = _NUMBER.fullmatch(text)
        if not number or number[3]:
            return None
        x = float(text.replace("−", "-"))
        equal = [
            k
            for k, level in enumerate(self.column.levels)
            if isinstance(level, int | float) and not isinstance(level, bool) and level == x
        ]
        return equal[0] if len(equal) == 1 else None

    def _by_word(self, text: str) -> int | None:
        """The only level that begins so, else the only one in which a word does; never a part of a number."""
        if not re.search(r"\w", text) or (self.column.kind == "boolean" and len(text) < 2):
            return None
        end = r"(?![\d]|[.,]\d)" if text[-1].isdecimal() else ""
        within = r".*(?<![\w])(?<![-−.,])" if text[0].isdecimal() else r".*(?<!\w)"
        for start, star in (("", ""), (within, "*")):
            pattern = re.compile(start + re.escape(text) + end, re.I | re.S)
            places = [k for k, label in enumerate(self.labels) if pattern.match(label)]
            if len(places) == 1:
                return places[0]
            if places:
                self.several.setdefault(f"{star}{text}*", [self.labels[k] for k in places])
                return None
        return None

    def _by_star(self, text: str) -> Any:
        """All levels that a pattern such as ``Married*`` describes."""
        if "*" not in text or not re.search(r"\w", text):
            return None
        pattern = re.sub(r"([\[?])", r"[\1]", text.lower())
        levels = [level for level, label in zip(self.column.levels, self.labels, strict=True)
                 if fnmatchcase(label.lower(), pattern)]  # fmt: skip
        return None if not levels else levels[0] if len(levels) == 1 else AnyOf(*levels)

    def interval(self, low: Any, high: Any, low_in: bool, high_in: bool) -> Any:
        if isinstance(low, AnyOf) or isinstance(high, AnyOf):
            raise _Ambiguous("an end of a range is one level")
        return _between(low, high, low_in, high_in)

    def is_above(self, low: Any, high: Any) -> bool:
        return self.column.to_number(low) > self.column.to_number(high)

    def problem(self, text: str) -> str:
        for word, labels in self.several.items():
            shown = ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")
            every = f" ({shortened(word)} is all of them)" if word[-1] == "*" else ""
            return f"{shortened(word.strip('*'))} may be {shown}{every}"
        return f"no level is, or begins with, {shortened(text)} ({near(text, self.labels)})"
