"""Tables larger than memory, for the command line: read from Parquet files and written batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from . import batches
from .csv_files import CsvForm, write_csv
from .table_files import PLAIN, check_schema, form_of_output, format_of, format_to_write, read_table, write_whole

if TYPE_CHECKING:
    import pyarrow as pa


def is_parquet_file(path: str, form: str | None = None) -> bool:
    """Whether the path is that of a file, no pipe, whose ending or ``form`` says Parquet."""
    return path != "-" and Path(path).is_file() and format_of(path, form) == "parquet"


def count_rows(files: Iterable[str]) -> int:
    """Rows of Parquet files, from what stands at their ends."""
    return sum(_opened(file).metadata.num_rows for file in files)


def read_batches(
    files: list[str], form: str | None = None, csv: CsvForm = PLAIN, text: Iterable[str] = ()
) -> Iterator[tuple[str, pa.Table]]:
    """Pairs of a file and its rows, in order: Parquet `batches.BATCH` rows at a time, CSV a file at a time."""
    known: tuple[str, pa.Schema] | None = None
    has_rows = False
    for file in files:
        for table in _tables_of(file, form, csv, text):
            known = known or (file, table.schema)
            check_schema(known[1], table.schema, known[0], file)
            if table.num_rows or (file == files[-1] and not has_rows):
                has_rows = True
                yield file, table


def _tables_of(file: str, form: str | None, csv: CsvForm, text: Iterable[str]) -> Iterator[pa.Table]:
    """The rows of one file in some tables, at least one."""
    if format_of(file, form) != "parquet":
        sure = tuple(word for word in csv.na if word not in csv.kept)  # in all files alike
        yield read_table(file, form, csv._replace(sure=sure), text)
        return
    opened = _opened(file)
    if opened.metadata.num_rows == 0:
        yield opened.schema_arrow.empty_table()
        return
    yield from batches.batches_of(file)()


def in_blocks(parts: Iterable[tuple[str, pa.Table]], n_rows: int) -> Iterator[tuple[str, pa.Table]]:
    """The rows of `read_batches`, so many at a time but the last; with the file that a block ends in."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    file, rows, has_rows = "", 0, False
    for file, part in parts:
        wide = _wider(waiting[0].schema, part.schema) if waiting else part.schema
        waiting = [of if of.schema.equals(wide) else of.cast(wide) for of in [*waiting, part]]
        rows += part.num_rows
        while rows >= n_rows:
            table = pa.concat_tables(waiting)
            yield file, table.slice(0, n_rows)
            waiting, rows, has_rows = [table.slice(n_rows)], rows - n_rows, True
    if rows or not has_rows:
        yield file, pa.concat_tables(waiting)


def write_batches(
    tables: Callable[[], Generator[pa.Table]], path: str, form: str | None = None, csv: CsvForm = PLAIN
) -> None:
    """Write tables one below the other, as one file that appears only when it is complete."""
    # ``tables`` is called again if a type of the first ones turns out too narrow for a later one.
    if format_to_write(path, form) == "parquet":
        write_whole(path, lambda file: _write_parquet(tables, file))
    else:
        write_whole(path, lambda file: _write_csv(tables, file, form_of_output(path, csv)))


def _opened(file: str) -> Any:
    from pyarrow import parquet

    os.stat(file)  # its errors have the file's name
    try:
        return parquet.ParquetFile(file)
    except (ValueError, OSError) as error:
        raise ValueError(f"{file} is not a parquet table: {error}") from None


def _write_csv(tables: Callable[[], Generator[pa.Table]], file: BinaryIO, form: CsvForm) -> None:
    """Write CSV, the names of the columns once."""
    with closing(tables()) as parts:
        for k, table in enumerate(parts):
            write_csv(table, file, form, with_names=k == 0)


def _write_parquet(tables: Callable[[], Generator[pa.Table]], file: BinaryIO) -> None:
    """Write Parquet, anew with a wider schema where a table does not fit."""
    schema = None
    while True:
        with closing(tables()) as parts:
            schema = _write_rows(parts, file, schema)
        if schema is None:
            return
        file.seek(0)
        file.truncate()


def _write_rows(tables: Iterable[pa.Table], file: BinaryIO, schema: pa.Schema | None) -> pa.Schema | None:
    """Write with a schema (None: the first table's); a wider one as soon as a table does not fit it, else None."""
    from pyarrow import parquet

    writer = wider = None
    try:
        for table in tables:
            schema = schema or table.schema
            if not table.schema.equals(schema):
                wider = _wider(schema, table.schema)
                if not wider.equals(schema):
                    break
                table = table.cast(wider)
            writer = writer or parquet.ParquetWriter(file, schema)
            writer.write_table(table)
        else:
            wider = None
        if writer is not None:
            writer.close()
        return wider
    except BaseException:
        if writer is not None:
            with suppress(Exception):  # else it would try again when it is collected
                writer.close()
        raise


def _wider(a: pa.Schema, b: pa.Schema) -> pa.Schema:
    """The narrowest schema that holds what both hold; types that differ lose their levels."""
    import pyarrow as pa

    same = {f.name for f in a if b.field(f.name).type == f.type}
    plain = [_plain(s).remove_metadata() for s in (a, b)]
    wide = pa.unify_schemas(plain, promote_options="permissive")
    return pa.schema([a.field(f.name) if f.name in same else f for f in wide])


def _plain(schema: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    kinds = [f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in schema]
    return pa.schema([f.with_type(kind) for f, kind in zip(schema, kinds, strict=True)])
