"""Tables in CSV and Parquet files and pipes, and in Excel workbooks and JSON lines, for the command line."""

from __future__ import annotations

import csv
import datetime as dt
import errno
import io
import json
import math
import os
import secrets
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..runtime.warnings import warn
from .csv_files import HEAD_BYTES, CsvForm, found_form, is_unicode, numbered, read_csv, write_csv, write_csv_texts

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from .schema import Column


PLAIN = CsvForm()


def read_table(
    path: str, form: str | None = None, csv: CsvForm = PLAIN, text: Iterable[str] = (), doubt: bool = True
) -> pa.Table:
    """The table of a file (``-``: standard input) in CSV or Parquet; columns in ``text`` are read as text."""
    return read_with_texts(path, form, csv, text, False, doubt)[0]


def read_with_texts(
    path: str, form: str | None, csv: CsvForm, text: Iterable[str], texts: bool = True, doubt: bool = True
) -> tuple[pa.Table, pa.Table | None]:
    """`read_table`, and of CSV (if ``texts``) the same cells as they are written, null where missing."""
    import pyarrow as pa
    from pyarrow import parquet

    form = format_of(path, form)
    name = "standard input" if path == "-" else path
    if form in ("xlsx", "jsonl"):
        source = pa.BufferReader(as_csv(path, form, doubt))
        csv = csv._replace(separator=",", encoding="utf-8", decimal=".", comment="")
    else:
        source = _arrow_source(path)
    if form != "parquet":
        table = read_csv(source, name, csv, text, doubt)
        return table, read_csv(source, name, csv, table.column_names, doubt=False) if texts else None
    try:
        table = parquet.read_table(source)
        return table.rename_columns(numbered(table.column_names, name)), None
    except pa.ArrowException as error:
        raise ValueError(f"{name} is not a parquet table: {error}") from None


def find_form(path: str, csv: CsvForm, known: CsvForm = PLAIN, names: Iterable[str] = (), form: str = "csv") -> CsvForm:
    """The form of a CSV file, or of a workbook as CSV, with the facts that its first bytes show."""
    # ``csv`` holds the user's options. The separator and skipped lines of ``known``, the form of an earlier table,
    # apply where they lead to more of the column ``names``; its encoding applies where the file is not UTF-8.
    as_known = csv._replace(separator=csv.separator or known.separator, skip=csv.skip or known.skip)
    if not os.path.isfile(path):
        return as_known._replace(skip=csv.skip)
    with open(path, "rb") if form == "csv" else io.BytesIO(as_csv(path, form, False)) as file:
        if not csv.encoding and known.encoding not in ("", "utf-8-sig") and not is_unicode(file):
            csv, as_known = csv._replace(encoding=known.encoding), as_known._replace(encoding=known.encoding)
        file.seek(0)
        head = file.read(HEAD_BYTES)
    found = [found_form(head, form, known.separator) for form in (csv, as_known)]
    return max(found, key=lambda one: len(set(names).intersection(one[1])))[0]


def write_table(table: pa.Table, path: str, form: str | None = None, csv: CsvForm = PLAIN) -> None:
    """Write a table as `read_table` reads it; a file appears whole or not at all, and replaces what was there."""
    # ``-`` is standard output. A file that ends in .tsv or .tab has tabs.
    form = format_to_write(path, form)
    write_whole(path, lambda file: _write(table, file, form, form_of_output(path, csv)))


def write_texts(table: pa.Table, path: str, csv: CsvForm) -> None:
    """Write a table of texts as CSV, each text as it is; a file appears whole or not at all."""
    write_whole(path, lambda file: write_csv_texts(table, file, form_of_output(path, csv)))


def form_of_output(path: str, csv: CsvForm) -> CsvForm:
    """The form in which a CSV file is written: that given, with tabs if its name ends in .tsv or .tab."""
    return csv._replace(separator="\t") if Path(path).suffix.lower() in (".tsv", ".tab") else csv


def write_whole(path: str, write: Callable[[BinaryIO], None]) -> None:
    """Write standard output, or a file beside the one at the path that then takes its place."""
    if path == "-":
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(beside, "xb") as file:
            write(file)
        os.replace(beside, target)
    except OSError as error:
        error.filename = path  # what the user named, not the file beside it
        raise
    finally:
        beside.unlink(missing_ok=True)


def check_writable(path: str) -> None:
    """Raise OSError if a file at this path could not be written: to be known before long work, not after it."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target.parent))
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target.parent))


def format_of(path: str, form: str | None) -> str:
    """``csv``, ``parquet``, ``xlsx`` or ``jsonl``: as given, or by the file's ending."""
    if form is not None:
        return form
    ending = Path(path).suffix.lower()
    if path == "-" or ending in (".csv", ".tsv", ".tab", ".txt", ".dat", ".data"):
        return "csv"
    for known, endings in (("parquet", (".pq",)), ("xlsx", (".xlsm",)), ("jsonl", (".ndjson", ".json"))):
        if ending == f".{known}" or ending in endings:
            return known
    if str(path).endswith(".joint"):
        raise ValueError(f"{path}: expected a table (.csv or .parquet), got a learned joint; give the table it is of")
    raise ValueError(f"{path}: expected a name that ends in .csv, .parquet, .xlsx or .jsonl, or say --format")


def format_to_write(path: str, form: str | None) -> str:
    """`format_of` an answer, which is CSV or Parquet."""
    form = format_of(path, form)
    if form not in ("csv", "parquet"):
        raise ValueError(f"{path}: answers are written as .csv or .parquet")
    return form


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


def _arrow_source(path: str) -> Any:
    """What Arrow can read: a mapped file, or the bytes of a pipe, which cannot be mapped."""
    import pyarrow as pa

    if path == "-":
        return pa.BufferReader(sys.stdin.buffer.read())
    with open(path, "rb") as file:
        if not Path(path).is_file():
            return pa.BufferReader(file.read())
    return pa.memory_map(path)


def _write(table: pa.Table, file: BinaryIO, form: str, csv: CsvForm) -> None:
    from pyarrow import parquet

    if form == "parquet":
        parquet.write_table(table, file)
    else:
        write_csv(table, file, csv)


# ---- Whether files can be put together to one table.


def check_schema(first: pa.Schema, schema: pa.Schema, first_file: str, file: str) -> None:
    """A ValueError if a file has other columns than the first one, or a column of another type."""
    for name in first.names:
        if name not in schema.names:
            raise ValueError(f"{file}: there is no column {name!r}, which {first_file} has")
    for name in schema.names:
        if name not in first.names:
            raise ValueError(f"{file}: column {name!r} is not in {first_file}; all files need the same columns")
        expected, given = first.field(name).type, schema.field(name).type
        if len({_sort(expected), _sort(given)} - {"empty"}) > 1:
            raise ValueError(f"{file}: column {name!r} is of type {given}, in {first_file} it is {expected}")


def _sort(kind: pa.DataType) -> str:
    """What a column of this type holds, so far as columns of several types can be put together."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _sort(kind.value_type)
    if pa.types.is_null(kind):
        return "empty"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    return str(kind)


# ---- Answers and columns as lines of text, and as plain data for JSON.


def about_column(column: dict[str, Any]) -> str:
    """One line on a column's values, from `Joint.info`."""
    if "levels" in column:
        levels = [str(level) for level in column["levels"]]
        few_levels = ", ".join(levels[:6]) + (", ..." if len(levels) > 6 else "")
        return f"{len(levels)} level{'s' if len(levels) != 1 else ''}: {few_levels}"
    decimals = -math.log10(column["step"] or 1.0)
    step = f", step {column['step']:g}" if column["step"] else ""
    step = f", {decimals:.0f} decimals" if decimals > 3.5 and abs(decimals - round(decimals)) < 1e-9 else step
    atoms = ", ".join(f"{atom:g}" for atom in column["atoms"][:6]) + (", ..." if len(column["atoms"]) > 6 else "")
    return f"{shown(column['minimum'])} to {shown(column['maximum'])}{step}{f', point masses {atoms}' if atoms else ''}"


def shown(value: Any) -> str:
    """A number with six digits, anything else as it writes itself."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def plain(value: Any) -> Any:
    """Ready for JSON: text keys, dates as text, durations in seconds, None for what is not a finite number."""
    if isinstance(value, dt.timedelta):
        value = value.total_seconds()
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key if isinstance(key, str) else json.dumps(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def means_as_cells(column: Column, means: np.ndarray) -> pa.Array:
    """Means of a column, or levels, (n,), in the form of its cells; means of whole numbers keep their decimals."""
    import numpy as np
    import pyarrow as pa

    from .times import zone_of

    form = column.written
    if form is not None and form.sort == "tick":
        return pa.array([form.example if ticked else None for ticked in means.tolist()], pa.string())
    if column.is_categorical:
        return pa.array(means.tolist(), from_pandas=True)
    if column.kind == "datetime":
        means = column.numbers_of_moments(means)
        unit = next((unit for unit in (86_400.0, 60.0, 1.0) if column.step % unit == 0.0), 1e-6)
        means = np.round((means + column.origin) / unit) * unit - column.origin
    elif column.step > 0.0 and column.decimals:
        means = np.round(means, column.decimals)
    if form is not None:
        form = replace(form, decimals=form.decimals or -1)
        return pa.array([None if x != x else form.write(x) for x in (means + column.zero).tolist()], pa.string())
    if column.kind != "datetime":
        return pa.array(means, from_pandas=True)
    zone, is_day = zone_of(column.dtype), column.step % 86_400 == 0
    moments = pa.array(column.moments(means)).cast(pa.timestamp("s" if column.step >= 1.0 else "us", zone))
    return moments.cast(pa.date32()) if is_day and zone is None else moments


# ---- Excel workbooks and JSON lines as the bytes of a CSV file, which then is read like any other.


def as_csv(path: str, form: str, doubt: bool = True) -> bytes:
    """A workbook (the first sheet) or JSON lines as CSV in UTF-8; raises ValueError, which names the file."""
    rows = _of_workbook(path, doubt) if form == "xlsx" else _of_json(path)
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows([_csv_cell(cell) for cell in row] for row in rows)
    return out.getvalue().encode()


def _of_workbook(path: str, doubt: bool) -> list[list[Any]]:
    """The rows of the first sheet of a workbook, the names of the columns among them."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise ImportError(f"{path}: Excel workbooks need: pip install 'jointforest[excel]'") from None
    with open(path, "rb") as file:
        try:
            book = CalamineWorkbook.from_filelike(file)
            rows = book.get_sheet_by_index(0).to_python()
        except (CalamineError, IndexError) as error:
            raise ValueError(f"{path} is not an Excel workbook: {error}") from None
    if doubt and len(book.sheet_names) > 1:
        names = ", ".join(map(repr, book.sheet_names[1:4])) + (", ..." if len(book.sheet_names) > 4 else "")
        warn(f"{path}: the first sheet {book.sheet_names[0]!r} is read, and no other: {names}", UserWarning)
    return rows


def _of_json(path: str) -> Iterable[list[Any]]:
    """The rows of a file with an object on each line, or of an array of objects, and above them their keys."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeError as error:
        raise ValueError(f"{path}: its text is not UTF-8 ({error}); JSON is") from None
    if text.lstrip().startswith("["):
        objects = [(1, text)]
    else:
        objects = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    rows: list[Any] = []
    for number, line in objects:
        try:
            found = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number} is not JSON: {error}") from None
        rows += found if isinstance(found, list) else [found]
    if not all(isinstance(row, dict) for row in rows) or (
        len(rows) == 1 and all(isinstance(cell, dict) for cell in rows[0].values())
    ):
        raise ValueError(f"{path}: expected an object for each row; pandas writes them by orient='records'")
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [names, *([row.get(name) for name in names] for row in rows)]


def _csv_cell(cell: Any) -> str:
    """A cell as CSV writes it."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, dt.datetime):
        return str(cell.date() if cell.time() == dt.time() else cell)
    if isinstance(cell, dt.timedelta):
        seconds = cell.total_seconds()
        minutes, second = divmod(abs(seconds), 60)
        whole = f"{int(minutes) // 60}:{int(minutes) % 60:02d}:{int(second):02d}"
        return ("-" if seconds < 0 else "") + whole + (f"{second % 1:.6f}".rstrip("0")[1:] if second % 1 else "")
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | dict) else str(cell)
