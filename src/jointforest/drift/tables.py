"""Two tables as the codes of one table, with which rows are new; columns that cannot be compared are left out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..data.cells import ColumnCells, FrameReader, joined, numbers
from ..data.csv_files import is_number
from ..data.discretization.dependence import coarse
from ..data.discretization.discretizer import code_table
from ..data.discretization.learn import learn_scale
from ..data.frames import encode_reader, read
from ..data.infer_schema import infer_schema
from ..data.schema import Schema

BINS = 16
"""Most bins of a column of numbers alone."""
_ROWS_OF_BIN = 8
"""Rows of both tables that a bin of a pair of columns has on average, at least; this sets the number of bins."""
_MOST_BINS = 8
_HELD = {"number": "numbers", "integer": "numbers", "boolean": "booleans", "datetime": "dates", "levels": "levels"}


class Coded(NamedTuple):
    """Columns as codes 0, 1, ...; missing cells have the last code.

    codes : int64 array (n, d)
    size : int64 array (d,). Number of codes of each column.
    """

    codes: np.ndarray
    size: np.ndarray


class TwoTables(NamedTuple):
    """The rows of an old and of a new table, one below the other, read by one schema.

    schema : Schema. The d columns that are compared.
    left_out : dict of str to str. The other columns, and why they are left out.
    n_old : int. Rows of the old table, which come first.
    X : float64 array (n, d). Numbers and codes of levels, NaN where missing.
    fine, few : Coded. The columns alone, and with few bins each, as pairs of columns use them.
    """

    schema: Schema
    left_out: dict[str, str]
    n_old: int
    X: np.ndarray
    fine: Coded
    few: Coded


def read_two(old: Any, new: Any) -> TwoTables:
    """Read two tables; neither their order nor which row is of which table changes the codes."""
    readers = [read(frame) for frame in (old, new)]
    for reader, name in zip(readers, ("old", "new"), strict=True):
        if not reader.n:
            raise ValueError(f"the {name} table has no rows; at least one is needed")
    first, second = readers
    left_out = {name: "is not in the new table" for name in first.names if name not in second.names}
    left_out |= {name: "is not in the old table" for name in second.names if name not in first.names}
    cells = {}
    for name in first.names:
        if name in second.names:
            pair = first.cells(name), second.cells(name)
            try:  # levels whose declared orders differ are refused, too
                cells[name] = joined(name, *pair)
            except ValueError:
                held = [_held_in_words(one) for one in pair]
                held = ["levels of one order", "levels of another"] if held[0] == held[1] else held
                left_out[name] = f"holds {held[0]} in the old table, and {held[1]} in the new one"
    both = FrameReader(first.frame, list(cells), first.n + second.n, cells.__getitem__, first.number_names)
    alone = _schema(FrameReader(first.frame, list(cells), first.n, first.cells, first.number_names))
    # A column that is an identifier in the old table may have each of its values twice in both.
    aside = {column.name: column.aside.in_words for _, column in alone.unknown if column.aside}
    schema = _schema(both, dict.fromkeys(aside, "ignored"))
    left_out |= schema.reasons_aside | aside
    schema, X, with_ranges = encode_exact(schema, both)
    left_out |= with_ranges
    if not schema.columns:
        raise ValueError(f"no column can be compared: {in_words(left_out) or 'the tables have none'}")
    scales = [learn_scale(column, X[:, j], None, BINS) for j, column in enumerate(schema.columns)]
    n_codes = np.array([scale.n_codes for scale in scales])
    codes = code_table(scales, X)
    most = int(np.clip(np.sqrt(len(X) / _ROWS_OF_BIN), 2, _MOST_BINS))
    few, n_few = coarse(codes, n_codes, np.array([c.is_ordered for c in schema.columns]), most)
    few = np.where(few < 0, n_few, few).astype(np.int64)
    return TwoTables(schema, left_out, first.n, X, Coded(codes.astype(np.int64), n_codes + 1), Coded(few, n_few + 1))


def in_words(left_out: Mapping[str, str]) -> str:
    """Columns, and why they are left out."""
    return "; ".join(f"{name!r} {why}" for name, why in left_out.items())


def encode_exact(schema: Schema, reader: FrameReader) -> tuple[Schema, np.ndarray, dict[str, str]]:
    """The columns that have no cell that is a range, their numbers and codes (n, d), and why others are left out."""
    X, _, ranges = encode_reader(schema, reader, None)
    some = [] if ranges is None else np.flatnonzero((ranges.number >= 0).any(axis=0)).tolist()
    aside = {schema.names[j]: (int(schema.places[j]), schema.columns[j]) for j in some}
    kept = tuple(column for column in schema.columns if column.name not in aside)
    unknown = tuple(sorted((*schema.unknown, *aside.values()), key=lambda of: of[0]))
    schema = replace(schema, columns=kept, unknown=unknown, rules=schema.rules_among(kept))
    return schema, np.delete(X, some, axis=1), dict.fromkeys(aside, "has cells that are ranges")


def _held_in_words(cells: ColumnCells) -> str:
    """What a column holds, with the first text that is no number."""
    texts = [label for label in cells.labels if isinstance(label, str)]
    if cells.sort != "levels" or not texts:
        return _HELD[cells.sort]
    return f"text such as {next((text for text in texts if not is_number(text)), texts[0])!r}"


def _schema(reader: FrameReader, kinds: Mapping[str, str] | None = None) -> Schema:
    """The schema of a table, of no column if all are set aside or unknown."""
    some = "\0"  # a column that is never set aside: infer_schema refuses tables of other columns only
    constant = numbers("number", "float64", np.zeros(reader.n))
    names = [*reader.names, some]
    wider = replace(reader, names=names, cells=lambda name: constant if name == some else reader.cells(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema = infer_schema(wider, kinds, doubt=False)
    return schema.without(schema.index(some))
