"""A schema from untrusted plain data: every field checked, because kernels do not check bounds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Set
from dataclasses import fields
from typing import Any, cast

import numpy as np

from ..runtime.parameters import need
from . import cells
from .conditions import Censored
from .csv_files import OF_ONE_FILE, PATTERN, CsvForm, check_form
from .rules.rule import rules_from_list
from .schema import (
    DIGIT_KINDS,
    FRAMES,
    GRID_KINDS,
    KINDS,
    MAX_ATOMS,
    MAX_LEVELS,
    MOST_DIGITS,
    REASONS,
    Column,
    Frame,
    Schema,
    SetAside,
    snapped,
)
from .times import DAY, OF_DAYS, OF_NUMBERS
from .written_forms import DURATION_PATTERN, MOST_EXCEPTIONS, SORTS, WrittenForm

_FIELDS = {"name", "kind", "dtype", "step", "origin", "atoms", "levels", "minimum", "maximum", "n_observed"}
_OPTIONAL = {"has_number_name", "written", "aside", "why_text", "remark", "digits", "lower", "upper", "only"}
_OPTIONAL |= {"n_ranges", "censored", "learned_until"}
MAX_UNKNOWN = 100_000


def schema_from_dict(data: Any) -> Schema:
    """Schema from the output of `Schema.to_dict`."""
    _keys(data, {"frame", "columns"}, "schema", {"unknown", "n_rows", "rules", "spelling", "checked"})
    if not isinstance(data["frame"], str) or data["frame"] not in FRAMES:
        raise ValueError(f"schema.frame: expected one of {', '.join(FRAMES)}, got {data['frame']!r:.80}")
    need(isinstance(data["columns"], list) and data["columns"], "schema.columns: expected a non-empty list")
    frame = cast(Frame, data["frame"])
    columns = tuple(column_from_dict(entry, f"schema.columns[{j}]", frame) for j, entry in enumerate(data["columns"]))
    n_rows = _finite_number(data.get("n_rows", 0.0), "schema.n_rows")
    need(n_rows >= 0.0, f"schema.n_rows: expected a number >= 0, got {n_rows}")
    rules = rules_from_list(data.get("rules", []), [column.name for column in columns])
    unknown = _unknown_columns(data.get("unknown", []), frame, len(columns))
    checked = _text(data.get("checked", ""), "schema.checked", 0, 100_000)
    schema = Schema(columns, frame, unknown, n_rows, rules, _spelling(data.get("spelling")), checked)
    names = schema.all_columns.names
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"schema.columns: the name {twice!r} is there twice")
    return schema


def _spelling(data: Any) -> CsvForm | None:
    """How the CSV file was written, if the schema has it."""
    if data is None:
        return None
    _keys(data, set(), "schema.spelling", set(CsvForm._fields).difference(OF_ONE_FILE))
    fields: dict[str, Any] = dict(data)
    for name, value in data.items():
        if name == "na":
            texts = _list(value, "schema.spelling.na", 10_000)
            fields["na"] = tuple(_text(one, f"schema.spelling.na[{k}]", 0, 10_000) for k, one in enumerate(texts))
        elif name == "patterns":
            for column, pattern in value.items() if isinstance(value, dict) else [("", value)]:
                if not isinstance(pattern, str) or not re.fullmatch(PATTERN, pattern):
                    raise ValueError(f"schema.spelling.patterns: {column!r:.80}: {pattern!r:.80} is no pattern")
        elif name == "skip":
            _whole(value, "schema.spelling.skip", 0, 2**31)
        elif name == "has_names" and type(value) is not bool:
            raise ValueError(f"schema.spelling.has_names: expected true or false, got {value!r:.80}")
        elif name not in ("has_names", "patterns", "skip"):
            _text(value, f"schema.spelling.{name}", 1, 100)
    for name, known in (("decimal", (".", ",")), ("line_end", ("\n", "\r\n"))):
        if name in data and data[name] not in known:
            raise ValueError(f"schema.spelling.{name}: expected one of {known}, got {data[name]!r:.80}")
    form = CsvForm(**fields)
    try:
        check_form(form)
    except ValueError as error:
        raise ValueError(f"schema.spelling: {error}") from None
    return form


def _unknown_columns(entries: Any, frame: Frame, d: int) -> tuple[tuple[int, Column], ...]:
    """Columns of which nothing is known, and their places among d others."""
    columns: list[tuple[int, Column]] = []
    for k, entry in enumerate(_list(entries, "schema.unknown", MAX_UNKNOWN)):
        at = f"schema.unknown[{k}]"
        _keys(entry, {*_FIELDS, "place"}, at, _OPTIONAL)
        place = _whole(entry["place"], f"{at}.place", columns[-1][0] + 1 if columns else 0, d + k)
        column = column_from_dict({key: value for key, value in entry.items() if key != "place"}, at, frame)
        if column.n_observed and column.aside is None:
            raise ValueError(f"{at}.n_observed: expected 0, got {column.n_observed}")
        columns.append((place, column))
    return tuple(columns)


def column_from_dict(entry: Any, at: str, frame: Frame) -> Column:
    """Column from the output of `Column.to_dict`, called ``at`` in errors; a ValueError names the wrong field."""
    _keys(entry, _FIELDS, at, _OPTIONAL)
    name = _text(entry["name"], f"{at}.name", 0, 10_000)
    kind = _text(entry["kind"], f"{at}.kind", 1, 20)
    need(kind in KINDS, f"{at}.kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    dtype = _text(entry["dtype"], f"{at}.dtype", 1, 500)
    n_observed = _whole(entry["n_observed"], f"{at}.n_observed", 0, 2**53)
    step = _finite_number(entry["step"], f"{at}.step")
    origin = _finite_number(entry["origin"], f"{at}.origin")
    atoms = tuple(_finite_number(v, f"{at}.atoms") for v in _list(entry["atoms"], f"{at}.atoms", MAX_ATOMS))
    levels = tuple(_level(v, f"{at}.levels") for v in _list(entry["levels"], f"{at}.levels", MAX_LEVELS))
    minimum = _finite_number(entry["minimum"], f"{at}.minimum", none=True)
    maximum = _finite_number(entry["maximum"], f"{at}.maximum", none=True)
    has_number_name = entry.get("has_number_name", False)
    if type(has_number_name) is not bool or (has_number_name and not re.fullmatch(r"0|-?[1-9][0-9]{0,18}", name)):
        raise ValueError(f"{at}.has_number_name: {name!r:.80} is no whole number")
    numbers = (step, origin, atoms, levels, minimum, maximum)
    most_digits = MOST_DIGITS if kind in DIGIT_KINDS else 0
    readers: dict[str, Callable[[Any, str], Any]] = {
        "written": lambda value, at: _written_form(value, at, frame),
        "aside": _aside,
        "censored": _censored,
        "why_text": lambda value, at: _text(value, at, 0, 10_000),
        "remark": lambda value, at: _text(value, at, 0, 10_000),
        "only": lambda value, at: _text(value, at, 0, 20),
        "digits": lambda value, at: _whole(value, at, 0, most_digits),
        "n_ranges": lambda value, at: _whole(value, at, 0, n_observed),
        "lower": _finite_number,
        "upper": _finite_number,
        "learned_until": _finite_number,
    }
    others = {name: read(entry[name], f"{at}.{name}") for name, read in readers.items() if name in entry}
    column = Column(name, kind, dtype, *numbers, n_observed, has_number_name, **others)
    _levels_and_range(column, at)
    _grid_and_atoms(column, at)
    _check_ends(column, at)
    try:
        cells.check_frame_kind(frame, column)
    except ValueError as error:
        raise ValueError(f"{at}.dtype: {error}") from None
    need(not has_number_name or frame == "pandas", f"{at}.has_number_name: expected false in a {frame} table")
    return column


def _aside(entry: Any, at: str) -> SetAside:
    """Why a column is set aside."""
    _keys(entry, {field.name for field in fields(SetAside)}, at)
    texts = {name: _text(entry[name], f"{at}.{name}", 0, 1000) for name in ("reason", "prefix", "suffix", "mask")}
    for name, low, high in (("n_distinct", 0, 2**53), ("width", 0, 20), ("first", -(2**53), 2**53)):
        _whole(entry[name], f"{at}.{name}", low, high)
    need(texts["reason"] in REASONS, f"{at}.reason: expected one of {', '.join(REASONS)}, got {texts['reason']!r}")
    need(re.fullmatch(r"(\\.|[dhHaAwW])*", texts["mask"], re.DOTALL), f"{at}.mask: {texts['mask']!r:.80} is no mask")
    return SetAside(n_distinct=entry["n_distinct"], width=entry["width"], first=entry["first"], **texts)


def _written_form(entry: Any, at: str, frame: Frame) -> WrittenForm:
    """The form of a text column's numbers."""
    _keys(entry, {field.name for field in fields(WrittenForm)}, at)
    texts = {name: _text(entry[name], f"{at}.{name}", 0, 120) for name in ("prefix", "suffix", "thousands", "pattern")}
    choices = {
        "sort": SORTS,
        "decimal": (".", ","),
        "negative": ("-", "()", "after", "+"),
        "unit": ("", "months", "minutes", "seconds"),
    }
    for name, allowed in choices.items():
        if not isinstance(entry[name], str) or entry[name] not in allowed:
            raise ValueError(f"{at}.{name}: expected one of {allowed}, got {entry[name]!r:.80}")
    _whole(entry["decimals"], f"{at}.decimals", -1, 20)
    for name in ("padded", "lakh"):
        need(type(entry[name]) is bool, f"{at}.{name}: expected true or false, got {entry[name]!r:.80}")
    if (entry["sort"] in ("month", "time", "duration")) != (entry["unit"] != ""):
        raise ValueError(f"{at}.unit: {entry['unit']!r} does not fit {entry['sort']}")
    if entry["sort"] == "duration" and "%" in entry["pattern"] and not DURATION_PATTERN.fullmatch(entry["pattern"]):
        raise ValueError(f"{at}.pattern: {entry['pattern']!r} is no pattern of durations")
    exceptions = tuple(
        _text(text, f"{at}.exceptions", 0, 10_000) for text in _list(entry["exceptions"], at, MOST_EXCEPTIONS)
    )
    dtype = _text(entry["dtype"], f"{at}.dtype", 1, 500)
    try:
        cells.check_frame_kind(frame, Column("", "categorical", dtype, levels=("",), n_observed=1))
        form = WrittenForm(
            dtype=dtype, decimals=entry["decimals"], padded=entry["padded"], lakh=entry["lakh"], exceptions=exceptions,
            **texts, **{name: entry[name] for name in choices},
        )  # fmt: skip
        need(form.parse(form.example) is not None, f"no cell can have the pattern {form.pattern!r}")
    except ValueError as error:
        raise ValueError(f"{at}: {error}") from None
    return form


def _levels_and_range(column: Column, at: str) -> None:
    if column.is_categorical:
        need(column.levels, f"{at}.levels: a {column.kind} column needs levels")
        need(len(set(column.levels)) == len(column.levels), f"{at}.levels: a level is there twice")
        if column.kind == "boolean" and [type(v) for v in column.levels] != [bool, bool]:
            raise ValueError(f"{at}.levels: a boolean column has the levels false and true")
        if column.kind == "boolean" and column.levels != (False, True):
            raise ValueError(f"{at}.levels: a boolean column has the levels false and true, in this order")
        if not (math.isnan(column.minimum) and math.isnan(column.maximum)):
            raise ValueError(f"{at}.minimum: expected null in a {column.kind} column")
        if column.lower > -math.inf or column.upper < math.inf:
            raise ValueError(f"{at}.lower: expected no ends in a {column.kind} column")
        return
    need(not column.levels, f"{at}.levels: expected none in a {column.kind} column")
    if math.isnan(column.minimum) != math.isnan(column.maximum) or column.minimum > column.maximum:
        raise ValueError(f"{at}.minimum: expected minimum <= maximum")


def _check_ends(column: Column, at: str) -> None:
    known = OF_DAYS if column.kind == "datetime" and column.step == DAY else OF_NUMBERS
    if column.only and (column.only not in known or column.kind not in ("datetime", "integer", "rounded")):
        raise ValueError(f"{at}.only: {column.only!r} does not fit a {column.kind} column of step {column.step:g}")
    half = 0.5 * column.step  # the ends are centres of cells, and numbers of 32 bits are near to one
    if not column.lower <= column.upper or column.lower - half > column.minimum or column.upper + half < column.maximum:
        raise ValueError(f"{at}.lower: expected ends around the minimum and maximum")
    for end in (column.lower, column.upper):
        if math.isfinite(end) and abs(end - snapped(column, np.array([end]))[0]) > 1e-6 * column.step + 4e-16 * abs(
            end
        ):
            raise ValueError(f"{at}.lower: {end!r} is not the centre of a grid cell")


def _grid_and_atoms(column: Column, at: str) -> None:
    if (column.step > 0) != (column.kind in GRID_KINDS) or column.step < 0:
        raise ValueError(f"{at}.step: {column.step!r} does not fit a {column.kind} column")
    if column.kind == "integer" and (column.step != 1.0 or column.origin != round(column.origin)):
        raise ValueError(f"{at}.step: an integer column has step 1 and a whole origin")
    if column.step > 0 and not 1e-9 <= column.step <= 1e9:
        raise ValueError(f"{at}.step: expected a width from 1e-9 to 1e9, got {column.step!r}")
    if column.kind == "datetime" and abs(column.step * 1e6 - round(column.step * 1e6)) > 1e-6:
        raise ValueError(f"{at}.step: expected a number of microseconds, got {column.step!r} seconds")
    if column.kind == "rounded" and abs(column.origin) > 2**52 * column.step:
        raise ValueError(f"{at}.origin: the grid is too fine for {column.origin!r}")
    if column.kind == "datetime" and (column.origin != round(column.origin) or abs(column.origin) > 1e12):
        raise ValueError(f"{at}.origin: expected whole seconds since 1970-01-01")
    need(column.step != 0.0 or column.origin == 0.0, f"{at}.origin: expected 0 in a {column.kind} column")
    if (column.kind == "mixed") != bool(column.atoms) and column.kind not in GRID_KINDS:
        raise ValueError(f"{at}.atoms: {len(column.atoms)} atoms do not fit a {column.kind} column")
    if any(low >= high for low, high in zip(column.atoms, column.atoms[1:], strict=False)):
        raise ValueError(f"{at}.atoms: expected ascending values")
    for number in (*column.atoms, column.minimum, column.maximum) if column.step > 0 else ():
        cells = (number - column.center) / column.step
        need(not abs(cells) > 2**52, f"{at}.step: the grid is too fine for {number!r}")
    cells_of = [round((atom - column.center) / column.step) for atom in column.atoms] if column.step > 0 else []
    for atom, cell in zip(column.atoms, cells_of, strict=False):
        if abs(column.center + cell * column.step - atom) > 1e-6 * column.step + 4e-16 * abs(atom):
            raise ValueError(f"{at}.atoms: {atom!r} is not the centre of a grid cell")
    need(len(set(cells_of)) == len(cells_of), f"{at}.atoms: two atoms in one grid cell")


def _keys(entry: Any, expected: set[str], at: str, optional: Set[str] = frozenset()) -> None:
    need(isinstance(entry, dict), f"{at}: expected an object, got {type(entry).__name__}")
    if set(entry) - optional != expected:
        wrong = sorted(str(key) for key in set(entry) - optional ^ expected)
        raise ValueError(f"{at}: fields missing or unknown: {', '.join(wrong)[:200]}")


def _text(value: Any, at: str, shortest: int, longest: int) -> str:
    if not isinstance(value, str) or not shortest <= len(value) <= longest:
        raise ValueError(f"{at}: expected text of {shortest} to {longest} characters, got {value!r:.80}")
    return value


def _censored(entry: Any, at: str) -> Censored:
    """Which column says whether a number is censored."""
    _keys(entry, {"event", "below"}, at)
    return Censored(**{key: _text(name, f"{at}.{key}", 0, 10_000) for key, name in entry.items()})


def _whole(value: Any, at: str, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{at}: expected a whole number from {low} to {high}, got {value!r:.80}")
    return value


def _finite_number(value: Any, at: str, none: bool = False) -> float:
    if none and value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{at}: expected a number, got {value!r:.80}")
    if abs(value) > 1.7976931348623157e308 or value != value:
        raise ValueError(f"{at}: expected a finite number, got {value!r:.80}")
    return float(value)


def _level(value: Any, at: str) -> str | bool | int | float:
    if not isinstance(value, str | bool | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"{at}: expected text, a boolean or a finite number, got {value!r:.80}")
    return value


def _list(value: Any, at: str, longest: int) -> list[Any]:
    need(isinstance(value, list) and len(value) <= longest, f"{at}: expected a list of at most {longest} entries")
    return value
