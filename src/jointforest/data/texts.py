"""Columns, values and sums as texts of the query language."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

KEYWORDS = {"and", "or", "not", "in", "between"}
"""Words, in any case, that are neither names nor values unless quoted."""
MISSING = {"na", "nan", "null", "none"}
"""Words that tables write in place of a value: no values here."""
_TAKEN = KEYWORDS | MISSING | {"true", "false"}
"""Words that are something else than a column where a value may stand."""


def is_word_character(character: str) -> bool:
    """Whether a bare word may hold this character: letters, digits, the underscore, and accents."""
    return character.isalnum() or ("a" + character).isidentifier()


def column_text(name: str) -> str:
    """A column's name, in backticks if it needs them."""
    bare = name and all(map(is_word_character, name)) and not name[0].isdecimal() and name.lower() not in _TAKEN
    return name if bare else "`" + name.replace("`", "``") + "`"


def plain_number(x: float) -> str:
    """A number, whole ones without a point."""
    return str(int(x)) if x.is_integer() and abs(x) < 1e9 else repr(x)


_MOST_DIGITS = 12
"""Digits of a number that is written in full; one of more is what floats make of a shorter one, or has no grid."""
_SHORT = 6
"""Digits that are shown of a number without grid."""


def shown_number(x: float) -> str:
    """A number as people read it: without the digits that floats add, and with few digits if it has many."""
    if _digits(repr(x)) <= _MOST_DIGITS or not math.isfinite(x):
        return repr(x)
    rounded = repr(float(f"{x:.{_MOST_DIGITS}g}"))
    if _digits(rounded) < _MOST_DIGITS - 1:
        return rounded
    return f"{x:.{max(_SHORT, len(str(int(abs(x)))))}g}" if abs(x) < 1e12 else f"{x:.{_SHORT}g}"


def _digits(number: str) -> int:
    """Number of significant digits of a number."""
    return len(number.partition("e")[0].replace(".", "").lstrip("-0").rstrip("0"))


def value_text(value: Any) -> str:
    """A value as conditions write it: text in single quotes."""
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"


def sum_text(terms: Sequence[tuple[float, str]], constant: float) -> str:
    """A sum of columns, such as ``a + 1.5 * b - c / 3 + 4``."""
    parts = [(c, _times(abs(c), column_text(name))) for c, name in terms]
    if constant or not parts:
        parts.append((constant, plain_number(abs(constant))))
    text = "".join(f" {'-' if c < 0 else '+'} {part}" for c, part in parts)
    return text[3:] if text.startswith(" + ") else "-" + text[3:]


_LONG = 8
"""Characters; a coefficient of more is written as a quotient."""


def _times(factor: float, column: str) -> str:
    """A column times a positive number, or divided by a whole one where that is shorter, as for a third."""
    if factor == 1.0:
        return column
    divisor = round(1.0 / factor) if factor > 1e-6 else 0
    if divisor > 1 and 1.0 / divisor == factor and len(repr(factor)) > _LONG:
        return f"{column} / {divisor}"
    return f"{plain_number(factor)} * {column}"
