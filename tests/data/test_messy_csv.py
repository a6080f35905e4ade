"""Messy CSV files are read as a person reads them: each cell is compared with what it stands for."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointforest.data.csv_files import CsvForm
from jointforest.data.frames import decode, encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import Column
from jointforest.data.table_files import find_form, read_table

from .messy_csv import Case, cases

CASES = list(cases())


def test_there_are_enough_files() -> None:
    assert len(CASES) >= 60 and len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_are_read_as_expected(tmp_path: Path, case: Case) -> None:
    path = tmp_path / "messy.csv"
    path.write_bytes(case.content)
    table = read_table(str(path), csv=find_form(str(path), CsvForm(separator="")))
    schema = infer_schema(table)
    X, unseen = encode(schema, table)
    assert not unseen.any()
    assert list(schema.names) == list(case.columns)
    for name, (kind, cells) in case.columns.items():
        assert same_cells(schema[name], X[:, schema.index(name)], kind, cells)
    again, _ = encode(schema, decode(schema, X))
    np.testing.assert_array_equal(again, X)


def same_cells(column: Column, x: np.ndarray, kind: str, cells: list[Any]) -> bool:
    """Whether a column has the kind, and numbers x that stand for the cells."""
    if column.is_categorical != (kind == "text") or (column.kind == "datetime") != (kind == "date"):
        return False
    read = [column.from_number(number) for number in x.tolist()]
    if kind == "date":
        read, cells = list(map(_moment, read)), list(map(_moment, cells))
    if kind in ("number", "integer"):
        cells = [None if cell is None else pytest.approx(cell) for cell in cells]
    return read == cells


def _moment(day: dt.date | None) -> dt.datetime | None:
    return day if day is None or isinstance(day, dt.datetime) else dt.datetime.combine(day, dt.time())
