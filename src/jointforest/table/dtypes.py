"""The written dtypes that a column of each kind of frame can have."""

from __future__ import annotations

import re

from . import times
from .schema import CATEGORICAL_KINDS, Column

_NUMBER = r"(u?int(8|16|32|64)|float(16|32|64)|bool)"
_MOMENT = r"(s|ms|us|ns)(, (tz=)?[A-Za-z0-9_+\-/:]+)?"
_ARROW_TEXT = r"(string|large_string|string_view)"
_ARROW_NUMBER = r"(u?int(8|16|32|64)|halffloat|float|double|bool|decimal(32|64|128|256)\(\d{1,2}, -?\d{1,2}\))"
_ARROW = (
    rf"({_ARROW_TEXT}|{_ARROW_NUMBER}|date32\[day\]|date64\[ms\]|timestamp\[{_MOMENT}\]"
    rf"|dictionary<values=({_ARROW_TEXT}|{_ARROW_NUMBER}), indices=u?int(8|16|32|64), ordered=[01]>)"
)
_OBJECT = r"object\[(str|bool|int|float|decimal|date)(\|nan)?\]"
_NULLABLE = r"(U?Int(8|16|32|64)|Float(32|64)|boolean)"
_PANDAS_TEXT = r"(str|string):(python|pyarrow)"

_KNOWN = {
    "pandas": rf"{_NUMBER}|{_NULLABLE}|{_PANDAS_TEXT}|{_OBJECT}|datetime64\[{_MOMENT}\]|{_ARROW}\[pyarrow\]"
    rf"|category\[(str|string|object|{_NUMBER}|{_NULLABLE}|{_ARROW}\[pyarrow\])(, ordered)?\]",
    "pyarrow": _ARROW,
    "polars": r"String|Categorical|Enum|Boolean|U?Int(8|16|32|64|128)|Float(16|32|64)|Decimal\(\d{1,2}, \d{1,2}\)"
    rf"|date|datetime\[{_MOMENT}\]",
    "numpy": rf"{_NUMBER}|<U|StringDType\([^)]*\)|{_OBJECT}|datetime64\[(D|s|ms|us|ns)\]",
}
_EMPTY = {"pandas": ("null[pyarrow]",), "pyarrow": ("null",), "polars": ("Null",), "numpy": ()}
"""Types of columns without any known cell."""
_IS_TEXT = re.compile(rf"{_PANDAS_TEXT}|object\[str.*|({_ARROW_TEXT}|dictionary<values={_ARROW_TEXT}.*)(\[pyarrow\])?")
_IS_CATEGORY = re.compile(r"(category\[|dictionary<).*")
_IS_MOMENT = re.compile(r"(datetime64|datetime|timestamp|date32|date64)\[.*|date|object\[date.*")


def of_numbers(dtype: str) -> str:
    """The dtype of a column of numbers that came as categories of this dtype; other dtypes as they are.

    Examples
    --------
    >>> of_numbers("category[int64, ordered]"), of_numbers("float64")
    ('int64', 'float64')
    """
    dictionary = re.fullmatch(r"dictionary<values=(.+), indices=\w+, ordered=[01]>((?:\[pyarrow\])?)", dtype)
    if dictionary:
        return dictionary.group(1) + dictionary.group(2)
    category = re.fullmatch(r"category\[(.+?)(, ordered)?\]", dtype)
    if category:
        return "float64" if category.group(1) == "object" else category.group(1)
    return dtype


def check(frame: str, column: Column) -> None:
    """Check that a frame can hold such a column.

    Raises
    ------
    ValueError
        If the dtype is unknown, or does not go with the kind of the column.
    """
    dtype = column.dtype
    if column.n_observed == 0 and dtype in _EMPTY[frame]:
        return
    if not re.fullmatch(_KNOWN[frame], dtype):
        raise ValueError(f"unknown type {dtype!r:.80} of a {frame} column")
    is_text = (
        _IS_TEXT.fullmatch(dtype) or dtype in ("String", "Categorical", "Enum", "<U") or dtype.startswith("String")
    )
    if (is_text or _IS_CATEGORY.fullmatch(dtype)) and column.kind not in CATEGORICAL_KINDS:
        raise ValueError(f"a {column.kind} column cannot have the type {dtype!r}")
    if is_text and not all(isinstance(level, str) for level in column.levels):
        raise ValueError(f"levels that are not text cannot have the type {dtype!r}")
    if (_IS_MOMENT.fullmatch(dtype) is not None) != (column.kind == "datetime"):
        raise ValueError(f"a {column.kind} column cannot have the type {dtype!r}")
    name = times.zone_of(dtype)
    if column.kind == "datetime" and name is not None:
        times.zone(name)
