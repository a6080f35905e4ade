"""Reads messy CSV files with other libraries; run by messy_csv.py in an environment of its own."""

from __future__ import annotations

import base64
import io
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import babel.numbers
import clevercsv
import dateparser
import duckdb
import numpy as np
import pandas as pd
import pyarrow.csv
import skrub


def by_pandas(content: bytes) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(content), sep=None, engine="python")


def by_pyarrow(content: bytes) -> pd.DataFrame:
    return pyarrow.csv.read_csv(io.BytesIO(content)).to_pandas(date_as_object=False)


def by_duckdb(content: bytes) -> pd.DataFrame:
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(content)
        file.flush()
        return duckdb.sql(f"select * from read_csv('{file.name}')").df()


def by_clevercsv(content: bytes) -> pd.DataFrame:
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(content)
        file.flush()
        return clevercsv.read_dataframe(file.name)


def by_skrub(content: bytes) -> pd.DataFrame:
    return skrub.Cleaner(drop_null_fraction=None, parse_numbers=True).fit_transform(by_pandas(content))


def by_dateparser(content: bytes) -> pd.DataFrame:
    return each_text(by_pandas(content), dateparser.parse)


def by_babel(content: bytes) -> pd.DataFrame:
    def number(locale: str) -> Callable[[str], float]:
        return lambda text: float(babel.numbers.parse_decimal(text, locale=locale, strict=True))

    return each_text(each_text(by_pandas(content), number("en_US")), number("de_DE"))


def each_text(frame: pd.DataFrame, parse: Callable[[str], Any]) -> pd.DataFrame:
    """The frame with those columns of text parsed of which every known cell can be."""
    for name in frame:
        if not pd.api.types.is_string_dtype(frame[name].dropna()):
            continue
        try:
            cells = [None if pd.isna(text) else parse(text) for text in frame[name]]
        except ValueError:
            continue
        if not any(cell is None and not pd.isna(text) for cell, text in zip(cells, frame[name], strict=True)):
            frame[name] = pd.Series(cells)
    return frame


def is_as_expected(column: pd.Series, kind: str, cells: list[Any]) -> bool:
    """Whether a column has the kind and the cells that the file stands for."""
    if len(column) != len(cells):
        return False
    if kind == "date":
        if not pd.api.types.is_datetime64_any_dtype(column):
            return False
        return [str(moment) for moment in column] == [str(pd.Timestamp(cell)) for cell in cells]
    if kind == "text":
        return [None if pd.isna(cell) else str(cell).strip() for cell in column] == cells and not (
            pd.api.types.is_numeric_dtype(column)
        )
    if pd.api.types.is_timedelta64_dtype(column) or not pd.api.types.is_numeric_dtype(column):
        return False
    expected = np.array([np.nan if cell is None else cell for cell in cells], dtype=float)
    return bool(np.allclose(column.astype(float), expected, rtol=1e-6, equal_nan=True))


READERS = {
    "pandas": by_pandas,
    "pyarrow": by_pyarrow,
    "DuckDB": by_duckdb,
    "clevercsv, then pandas": by_clevercsv,
    "pandas, then skrub": by_skrub,
    "pandas, then dateparser": by_dateparser,
    "pandas, then babel": by_babel,
}


def main() -> None:
    warnings.simplefilter("ignore")
    cases = json.load(open(sys.argv[1]))  # noqa: SIM115
    found: dict[str, Any] = {}
    for name, read in READERS.items():
        start, right = time.monotonic(), {}
        for case in cases:
            try:
                frame = read(base64.b64decode(case["content"]))
            except Exception:  # each library has errors of its own
                frame = pd.DataFrame()
            right[case["name"]] = {
                column: column in frame and is_as_expected(frame[column], kind, cells)
                for column, (kind, cells) in case["columns"].items()
            }
        found[name] = {"seconds": round(time.monotonic() - start, 2), "right": right}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
