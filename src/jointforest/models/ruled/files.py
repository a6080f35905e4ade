"""Ruled distributions as plain data and named arrays, and back: what a model file holds of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...data.rules.rule import finite_number, rules_from_list
from ...data.schema import Column, Schema
from ...data.schema_check import schema_from_dict
from ...runtime.parameters import need
from ..base import Distribution
from .coordinates import Absence, Coordinates, Source, Term

KIND = "ruled"
RULED_NAMES = frozenset({"ruled.table", "ruled.table_start"})
"""Names of the arrays beside those of the coordinates' distribution."""
_MOST = 100_000


def ruled_to_arrays(coordinates: Coordinates, inner: Distribution) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Metadata and arrays of a ruled distribution; terms name the compounds' values in ``ruled.table`` by number."""
    check_coordinates(coordinates)
    tables: list[np.ndarray] = []

    def term(one: Term) -> list[Any]:
        if one.table is None:
            return [one.at, one.coefficient, -1]
        tables.append(np.asarray(one.table, np.float64))
        return [one.at, one.coefficient, len(tables) - 1]

    of_column = {at: j for j, at in coordinates.plain.items()}
    made = tuple(column for at, column in enumerate(coordinates.inner.columns) if at not in of_column)
    about, arrays = inner.to_arrays()
    return {
        "kind": KIND,
        "inner": about,
        "columns": [of_column.get(at, -1) for at in range(len(coordinates.inner.columns))],
        "made": Schema(made, coordinates.schema.frame).to_dict()["columns"],
        "sources": [
            {"terms": [term(one) for one in of.terms], "constant": of.constant, "tolerance": of.tolerance}
            for of in coordinates.sources
        ],
        "absences": [
            one._asdict() | {"values": list(one.values)} for one in coordinates.absences
        ],
        "rules": [rule.to_dict() for rule in coordinates.enforced],
    }, arrays | {
        "ruled.table": np.concatenate([np.empty(0), *tables]),
        "ruled.table_start": np.cumsum([0, *map(len, tables)]).astype(np.int64),
    }  # fmt: skip


def ruled_from_arrays(
    schema: Schema,
    about: dict[str, Any],
    arrays: dict[str, np.ndarray],
    component: Callable[[Schema, Any, dict[str, np.ndarray]], Distribution],
) -> tuple[Coordinates, Distribution]:
    """The coordinates and their distribution, which ``component`` makes; raises ValueError if a field is not valid."""
    if set(about) != {"kind", "inner", "columns", "made", "sources", "absences", "rules"}:
        raise ValueError("rules: metadata missing or unknown")
    table, start = arrays["ruled.table"], arrays["ruled.table_start"]
    if table.dtype != np.float64 or table.ndim != 1 or start.dtype != np.int64 or start.ndim != 1 or not len(start):
        raise ValueError("rules: tables must be float64, and where they start int64")
    if start[0] != 0 or start[-1] != len(table) or (np.diff(start) <= 0).any():
        raise ValueError("rules: tables must start at 0, rise, and fill the array")
    d = len(schema.columns)
    inner = _inner(schema, about["columns"], about["made"])
    need(isinstance(about["sources"], list) and len(about["sources"]) == d, f"rules: expected {d} sources")
    need(isinstance(about["absences"], list) and len(about["absences"]) == d, f"rules: expected {d} absences")
    sources = tuple(_source(one, table, start) for one in about["sources"])
    absences = tuple(_absence(one) for one in about["absences"])
    enforced = rules_from_list(about["rules"], schema.names)
    coordinates = Coordinates(schema, inner, sources, absences, enforced)
    check_coordinates(coordinates)
    of_inner = {name: array for name, array in arrays.items() if name not in RULED_NAMES}
    return coordinates, component(inner, about["inner"], of_inner)


def _inner(schema: Schema, numbers: Any, made: Any) -> Schema:
    """The schema of the coordinates."""
    need(isinstance(numbers, list) and 0 < len(numbers) <= _MOST, "rules.columns: expected a list of numbers")
    need(isinstance(made, list), "rules.made: expected a list of columns")
    others = list(schema_from_dict({"frame": schema.frame, "columns": made}).columns) if made else []
    need(numbers.count(-1) == len(others), f"rules.made: expected {numbers.count(-1)} columns, got {len(others)}")
    columns: list[Column] = []
    for number in numbers:
        if type(number) is not int or not -1 <= number < len(schema.columns):
            raise ValueError(f"rules.columns: expected a column's number, got {number!r:.80}")
        columns.append(others.pop(0) if number < 0 else schema.columns[number])
    need(len({column.name for column in columns}) == len(columns), "rules.columns: a coordinate is there twice")
    return Schema(tuple(columns), schema.frame, (), schema.n_rows)


def _source(entry: Any, table: np.ndarray, start: np.ndarray) -> Source:
    if not isinstance(entry, dict) or set(entry) != {"terms", "constant", "tolerance"}:
        raise ValueError("rules.sources: expected terms, a constant and a tolerance")
    need(isinstance(entry["terms"], list), "rules.sources: expected a list of terms")
    terms = []
    for term in entry["terms"]:
        if not isinstance(term, list) or len(term) != 3 or type(term[0]) is not int or type(term[2]) is not int:
            raise ValueError("rules.sources: a term has a coordinate, a coefficient and a table")
        at, coefficient, number = term
        need(-1 <= number < len(start) - 1, f"rules.sources: there is no table {number}")
        of = None if number < 0 else np.ascontiguousarray(table[start[number] : start[number + 1]])
        terms.append(Term(at, finite_number(coefficient, "rules.sources"), of))
    tolerance = finite_number(entry["tolerance"], "rules.sources")
    need(tolerance >= 0.0, f"rules.sources: expected a tolerance >= 0, got {tolerance}")
    return Source(tuple(terms), finite_number(entry["constant"], "rules.sources"), tolerance)


def _absence(entry: Any) -> Absence:
    if not isinstance(entry, dict) or set(entry) != set(Absence._fields):
        raise ValueError(f"rules.absences: expected {', '.join(Absence._fields)}")
    if {type(entry[name]) for name in ("like", "where", "besides")} != {int} or type(entry["by_rule"]) is not bool:
        raise ValueError("rules.absences: like, where and besides are whole numbers, by_rule is true or false")
    if not isinstance(entry["values"], list) or len(entry["values"]) > _MOST:
        raise ValueError("rules.absences: expected a list of values")
    values = tuple(finite_number(x, "rules.absences") for x in entry["values"])
    return Absence(**entry | {"values": values})


def check_coordinates(coordinates: Coordinates) -> None:
    """Raise ValueError, which names the column, unless columns can be made of the coordinates."""
    inner = coordinates.inner.columns
    for column, source, absence in zip(
        coordinates.schema.columns, coordinates.sources, coordinates.absences, strict=True
    ):
        what = f"rules: column {column.name!r}"
        need(source.terms and math.isfinite(source.constant), f"{what} is made of nothing")
        for term in source.terms:
            if not 0 <= term.at < len(inner) or not (math.isfinite(term.coefficient) and term.coefficient):
                raise ValueError(f"{what}: a term is of no coordinate, or its coefficient is 0")
            _check_table(column, source, term, inner[term.at], what)
        if source.is_plain and column.name == inner[source.terms[0].at].name and inner[source.terms[0].at] != column:
            raise ValueError(f"{what}: expected the coordinate to be the column itself")
        if source.is_plain and (column.is_categorical, column.levels) != (
            inner[source.terms[0].at].is_categorical,
            inner[source.terms[0].at].levels,
        ):
            raise ValueError(f"{what}: expected a coordinate of the same levels, or of numbers for numbers")
        need(source.is_one or not column.is_categorical, f"{what}: a sum has numbers, the column has levels")
        if not all(-1 <= at < len(inner) for at in (absence.like, absence.where, absence.besides)):
            raise ValueError(f"{what} is missing with no coordinate that there is")
        if (absence.where >= 0) != bool(absence.values) or (absence.by_rule and absence.where < 0):
            raise ValueError(f"{what}: values at which cells are missing go with a coordinate")
        if absence.besides >= 0 and (inner[absence.besides].kind != "boolean" or not absence.by_rule):
            raise ValueError(f"{what}: besides a rule, a boolean coordinate says where cells are missing")
        if absence.where >= 0 and not _are_values(inner[absence.where], np.array(absence.values)):
            raise ValueError(f"{what} is missing at values that the coordinate cannot have")


def _check_table(column: Column, source: Source, term: Term, inner: Column, what: str) -> None:
    if term.table is None:
        need(source.is_one or not inner.is_categorical, f"{what}: a sum has a term that is no number")
        return
    if not inner.is_categorical or term.table.shape != (len(inner.levels),) or not np.isfinite(term.table).all():
        raise ValueError(f"{what}: expected a value for each level of the coordinate")
    if source.is_one and not _are_values(column, term.table):
        raise ValueError(f"{what}: a level of the coordinate has a value that the column cannot have")


def _are_values(column: Column, x: np.ndarray) -> bool:
    """Whether numbers are values, or level codes, of a column."""
    if not column.is_categorical:
        return bool(np.isfinite(x).all())
    return bool(((x >= 0) & (x < len(column.levels)) & (x == np.floor(x))).all())
