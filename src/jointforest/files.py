"""Tables in CSV and Parquet files and pipes, for the command line."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import pyarrow as pa

NA = ("", "NA", "NaN", "?")
"""What stands for a missing cell in CSV files."""


def read_table(path: str, form: str | None = None, na: Iterable[str] = NA, text: Iterable[str] = ()) -> pa.Table:
    """Read a table.

    Parameters
    ----------
    path : str
        ``-`` is standard input.
    form : {"csv", "parquet"}, optional
        Default: by the file's ending; CSV for standard input.
    na : iterable of str
        Spellings of missing cells in CSV.
    text : iterable of str
        Columns to be read as text from CSV, even if they look like numbers.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no such table; the message names the file.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    form = format_of(path, form)
    source: Any = pa.BufferReader(sys.stdin.buffer.read()) if path == "-" else pa.memory_map(path)
    name = "standard input" if path == "-" else path
    try:
        if form == "parquet":
            return parquet.read_table(source)
        options = csv.ConvertOptions(
            null_values=list(na),
            strings_can_be_null=True,
            quoted_strings_can_be_null="" in na,
            column_types=dict.fromkeys(text, pa.string()),
        )
        return csv.read_csv(source, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=options)
    except pa.ArrowException as error:
        raise ValueError(f"{name} is not a {form} table: {error}") from None


def write_table(table: pa.Table, path: str, form: str | None = None) -> None:
    """Write a table; a file appears whole or not at all, and replaces what was there.

    Parameters
    ----------
    table : pyarrow.Table
    path : str
        ``-`` is standard output.
    form : {"csv", "parquet"}, optional
        Default: by the file's ending; CSV for standard output.
    """
    form = format_of(path, form)
    if path == "-":
        _write(table, sys.stdout.buffer, form)
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(beside, "xb") as file:
            _write(table, file, form)
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def format_of(path: str, form: str | None) -> str:
    """``csv`` or ``parquet``: as said, or by the file's ending."""
    if form is not None:
        return form
    ending = Path(path).suffix.lower()
    if path == "-" or ending == ".csv":
        return "csv"
    if ending in (".parquet", ".pq"):
        return "parquet"
    raise ValueError(f"{path}: expected a name that ends in .csv or .parquet, or say --format")


def to_arrow(frame: Any, names: Iterable[str]) -> pa.Table:
    """Arrow table of a frame of any kind; a numpy array's columns get the names."""
    import numpy as np
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, np.ndarray):
        return pa.table({name: pa.array(frame[:, j].tolist()) for j, name in enumerate(names)})
    import narwhals as nw

    return nw.from_native(frame, eager_only=True).to_arrow()


def _write(table: pa.Table, file: BinaryIO, form: str) -> None:
    import pyarrow as pa
    from pyarrow import csv, parquet

    if form == "parquet":
        parquet.write_table(table, file)
        return
    for j, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            plain = table.column(j).cast(field.type.value_type)
            table = table.set_column(j, field.name, plain)
    csv.write_csv(table, file)
