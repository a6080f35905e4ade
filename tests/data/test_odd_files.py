"""Files of unusual forms are read as a person reads them, or the user hears what is wrong and what to do."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from jointforest.data.csv_files import CsvForm
from jointforest.data.frames import encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.reading import reading_of
from jointforest.data.table_files import find_form, format_of, read_table

from .odd_columns import odd_columns
from .odd_files import OddFile, odd_files
from .test_messy_csv import same_cells

FILES = [*odd_files(), *odd_columns()]


def test_there_are_enough_files() -> None:
    assert len(FILES) >= 120 and len({one.name for one in FILES}) == len(FILES)


@pytest.mark.parametrize("one", FILES, ids=lambda one: one.name)
def test_files_are_read_or_doubted(tmp_path: Path, one: OddFile) -> None:
    if one.file.endswith(".xlsx"):
        pytest.importorskip("python_calamine")
    path = str(tmp_path / one.file)
    Path(path).write_bytes(one.content)
    form = CsvForm(separator="")._replace(**one.said)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            table = read_table(path, csv=find_form(path, form) if format_of(path, None) == "csv" else form)
            schema = infer_schema(table)
        except ValueError as error:
            assert not one.columns and re.search(one.words, str(error)), error
            return
    said = "\n".join(str(warning.message) for warning in told)
    assert re.search(one.words, f"{said}\n{reading_of(schema).notice}") if one.words else not said, said
    if not one.columns:  # which is doubted, and read as it stands
        return
    X, unseen = encode(schema, table)
    assert not unseen.any() and list(schema.names) == list(one.columns)
    assert [c.name for _, c in schema.unknown if c.aside and c.aside.reason == "identifier"] == list(one.aside)
    for name, (kind, cells) in one.columns.items():
        assert same_cells(schema[name], X[:, schema.index(name)], kind, cells)


@pytest.mark.parametrize("name", ["table", "a.p", "a.xls", "a.joint"])
def test_names_that_say_no_format_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected a"):
        format_of(name, None)
