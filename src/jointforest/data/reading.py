"""How a table was read: kinds of columns, what was converted or set aside and why, what looks wrong, and rules."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ..cards import Html, number_writer, round_ticks, table_html, view_html, words
from . import batches, table_files
from .csv_files import CsvForm, write_csv
from .rules.rule import Rule, enough_rows
from .schema import Column, Schema
from .times import is_clock, is_span

_CODE_NAME = re.compile(r"(^|[^a-z])(zip|zipcode|postcode|postal|plz|fips|naics|sic|icd|isbn|ean|code)([^a-z]|$)")
_LISTED = 3
"""Levels that a note names."""


@dataclass(frozen=True)
class ColumnReading:
    """How one column was read.

    kind : str. One of `data.schema.KINDS`; ``set aside`` if the column takes no part in the model.
    about : str. Its levels or its range.
    notes : tuple of str. What was converted or set aside and why, and what looks wrong; most columns have none.
    """

    name: str
    kind: str
    about: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """How a table was read; prints as a table, and has an HTML view in notebooks.

    columns : tuple of ColumnReading. In the order of the table.
    rules : tuple of Rule. Rules between columns that all rows obey, or nearly all.

    Examples
    --------
    >>> joint.reading.columns[0].kind, joint.reading.notice
    ('categorical', '')
    """

    columns: tuple[ColumnReading, ...]
    rules: tuple[Rule, ...] = ()

    @property
    def notice(self) -> str:
        """The notes and the rules, a line each; empty if every column was taken as it is and there is no rule."""
        notes = [f"column {column.name!r}: {note}" for column in self.columns for note in column.notes]
        return "\n".join([*notes, *(f"rule: {in_words(rule)}" for rule in self.rules)])

    def __str__(self) -> str:
        names = [_visible(column.name) for column in self.columns]
        width = max(map(len, names), default=0)
        lines = []
        for name, column in zip(names, self.columns, strict=True):
            lines.append(f"{name:<{width}}  {column.kind:<11}  {column.about}".rstrip())
            lines += [f"{'':<{width}}  {'':<11}  note: {note}" for note in column.notes]
        lines += [f"rule: {in_words(rule)}" for rule in self.rules]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (c.name, c.kind, Html("<br>".join([words(c.about), *(f"<i>{words(note)}</i>" for note in c.notes)])))
            for c in self.columns
        ]
        n = sum(len(c.notes) for c in self.columns)
        note = f", {n} {'note' if n == 1 else 'notes'}" if n else ""
        title = f"How the table was read: {len(self.columns)} columns{note}"
        tables = [table_html(rows, ("column", "kind", "levels or range"), wraps=True)]
        if self.rules:
            told = [(str(rule), f"{rule.rows:,}", said_of(rule)) for rule in self.rules]
            tables.append(table_html(told, ("rule between columns", "rows", ""), wraps=True))
        return view_html(title, [], tables)


def reading_of(schema: Schema) -> Reading:
    """How the table of a schema was read."""
    columns = tuple(_reading(column, schema.reasons_aside.get(column.name)) for column in schema.all_columns.columns)
    return Reading(columns, schema.rules)


def in_words(rule: Rule) -> str:
    """A rule, how many rows support it, and whether it is enforced."""
    return f"{rule} ({rule.rows:,} rows; {said_of(rule)})"


def said_of(rule: Rule) -> str:
    """Whether a rule is enforced, and if not why."""
    if rule.exceptions:
        return f"{rule.exceptions:,} {'exception' if rule.exceptions == 1 else 'exceptions'}, not enforced"
    if not rule.is_enforced and rule.rows < enough_rows(rule):
        return "few rows, not enforced"
    return "enforced" if rule.is_enforced else "not enforced"


def _reading(column: Column, why: str | None) -> ColumnReading:
    if why is not None:
        notes = (f"set aside, because it {why}", *([column.why_text] if column.why_text else []))
        return ColumnReading(column.name, "set aside", "", notes)
    return ColumnReading(column.name, column.kind, _levels_or_range(column), tuple(_notes(column)))


def _levels_or_range(column: Column) -> str:
    """The levels or the range of a column, in the form in which the table writes it."""
    if column.is_categorical:
        return table_files.about_column({"levels": list(column.levels)})
    ends = (column.minimum, column.maximum)
    if column.written is not None:
        return " to ".join(column.written.write(end + column.zero) for end in ends)
    if column.text(column.minimum):
        return " to ".join(map(column.text, ends))
    if column.kind == "datetime":
        return " to ".join(str(column.from_number(end)) for end in ends)
    low, high = map(column.from_number, ends)
    return table_files.about_column({"step": column.step, "atoms": list(column.atoms), "minimum": low, "maximum": high})


def _notes(column: Column) -> Iterator[str]:
    """What a user should know of how a column was read."""
    if is_span(column.dtype):
        yield f"{'times of day' if is_clock(column.dtype) else 'durations'}, counted in seconds"
    if column.dtype.startswith("period"):
        yield "periods, read as their first moments"
    if column.written is not None and column.written.sort == "tick":
        yield (
            f"{column.written.in_words}; if missing cells are unknown, say "
            f"kinds={{{column.name!r}: 'categorical'}}, or --kinds {column.name}=categorical"
        )
    elif column.written is not None:
        such = f", such as {column.written.example!r}" if column.n_ranges < column.n_observed else ""  # a cell has
        yield f"text read as {column.written.in_words}{such}"
        if column.written.exceptions:
            yield f"missing, as of another form: {_texts_named(column.written.exceptions)}"
    if column.n_ranges:
        flag = f", by column {column.censored.flag!r}" if column.censored else ""
        yield f"{column.n_ranges:,} of {column.n_observed:,} known cells are ranges{flag}"
    yield from filter(None, (column.why_text, column.remark))
    texts = [level for level in column.levels if isinstance(level, str)]
    folded = Counter(" ".join(text.split()).casefold() for text in texts)
    alike = [text for text in texts if folded[" ".join(text.split()).casefold()] > 1]
    if alike:
        yield f"levels that differ by case or spaces only: {_texts_named(alike)}"
    if column.n_observed > 1 and (len(column.levels) == 1 or column.minimum == column.maximum):
        yield "every known cell has the same value; the column stays in the model, and says nothing of others"
    if column.kind == "integer" and _CODE_NAME.search(column.name.lower()):
        yield (
            "whole numbers, which may be codes by the name; to learn them as levels, say "
            f"kinds={{{column.name!r}: 'categorical'}}, or --kinds {column.name}=categorical"
        )


def _visible(name: str) -> str:
    """The name of a column; in quotes if it is empty or has spaces at its ends, which would be invisible."""
    return name if name and name == name.strip() else repr(name)


def _texts_named(texts: tuple[str, ...] | list[str]) -> str:
    return ", ".join(map(repr, texts[:_LISTED])) + (f" and {len(texts) - _LISTED} more" if len(texts) > _LISTED else "")


# ---- Tables larger than memory, for the command line: read from Parquet files and written batch by batch.


if TYPE_CHECKING:
    import pyarrow as pa


def is_parquet_file(path: str, form: str | None = None) -> bool:
    """Whether the path is that of a file, no pipe, whose ending or ``form`` says Parquet."""
    return path != "-" and Path(path).is_file() and table_files.format_of(path, form) == "parquet"


def count_rows(files: Iterable[str]) -> int:
    """Rows of Parquet files, from what stands at their ends."""
    return sum(_opened(file).metadata.num_rows for file in files)


def read_batches(
    files: list[str], form: str | None = None, csv: CsvForm = table_files.PLAIN, text: Iterable[str] = ()
) -> Iterator[tuple[str, pa.Table]]:
    """Pairs of a file and its rows, in order: Parquet `batches.BATCH` rows at a time, CSV a file at a time."""
    known: tuple[str, pa.Schema] | None = None
    has_rows = False
    for file in files:
        for table in _tables_of(file, form, csv, text):
            known = known or (file, table.schema)
            table_files.check_schema(known[1], table.schema, known[0], file)
            if table.num_rows or (file == files[-1] and not has_rows):
                has_rows = True
                yield file, table


def _tables_of(file: str, form: str | None, csv: CsvForm, text: Iterable[str]) -> Iterator[pa.Table]:
    """The rows of one file in some tables, at least one."""
    if table_files.format_of(file, form) != "parquet":
        sure = tuple(word for word in csv.na if word not in csv.kept)  # in all files alike
        yield table_files.read_table(file, form, csv._replace(sure=sure), text)
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
    tables: Callable[[], Generator[pa.Table]], path: str, form: str | None = None, csv: CsvForm = table_files.PLAIN
) -> None:
    """Write tables one below the other, as one file that appears only when it is complete."""
    # ``tables`` is called again if a type of the first ones turns out too narrow for a later one.
    if table_files.format_to_write(path, form) == "parquet":
        table_files.write_whole(path, lambda file: _write_parquet(tables, file))
    else:
        table_files.write_whole(path, lambda file: _write_csv(tables, file, table_files.form_of_output(path, csv)))


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
    plain = [_plain_schema(s).remove_metadata() for s in (a, b)]
    wide = pa.unify_schemas(plain, promote_options="permissive")
    return pa.schema([a.field(f.name) if f.name in same else f for f in wide])


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    kinds = [f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in schema]
    return pa.schema([f.with_type(kind) for f, kind in zip(schema, kinds, strict=True)])


# ---- Numbers and dates of a column as cards write them, and the round ones that stand below an axis.

MOST_TICKS = 6
"""So many cells of a grid have all a tick."""
_DAY = 86_400.0
"""Seconds."""


def number_text(column: Column, number: float, low: float, high: float, of_means: bool = False) -> str:
    """A number of a column that ranges from low to high, or a date: the nearest of its grid."""
    if column.written is not None and column.written.sort == "month":
        return column.text(number)
    if not math.isfinite(number):
        return "–"
    if column.kind == "datetime":
        return _moment_text(column, number, high - low)
    if not (math.isfinite(low) and math.isfinite(high)):
        low = high = number
    return number_writer(low, high, column.step, of_means)(number)


def cell_in_words(column: Column, number: float) -> str | None:
    """A cell as cards write it: a level, a number or a date; None where missing."""
    if math.isnan(number):
        return None
    if column.is_categorical:
        return str(column.levels[int(number)])
    return number_text(column, number, column.minimum, column.maximum)


def interval_in_words(low: str, high: str, about: str = "") -> str:
    """The interval that holds 90 % of the values, by its ends as they are written."""
    return f"at least 90% at {low}" if low == high else f"90% of values: {about}{low} to {high}"


def _moment_text(column: Column, number: float, span: float) -> str:
    """The day of a column of days; else also the time of day, with seconds where the column spans less than 2 hours."""
    step = max(column.step, 1.0)
    local = _on_the_clock(column, column.center + round((number - column.center) / step) * step)
    if isinstance(local, str):
        return local
    if step >= _DAY:
        return local.date().isoformat()
    return local.isoformat(" ", "minutes" if span >= _DAY / 12 else "seconds")


def date_text(column: Column, number: float) -> str:
    """The shortest text that the column reads as this moment."""
    local = _on_the_clock(column, number)
    if isinstance(local, str):
        return local
    for text in (local.date().isoformat(), local.isoformat(" ", "minutes"), local.isoformat(" ")):
        try:
            if abs(column.to_number(text) - number) < 1e-6:
                return text
        except ValueError:
            continue
    return str(column.scalar(number).isoformat(" "))


def _on_the_clock(column: Column, number: float) -> datetime | str:
    """The local time of a moment, without its zone; a text of days and of periods, and where no calendar has it."""
    if column.text(number):
        return column.text(number)
    moment = column.scalar(number)
    if not hasattr(moment, "hour"):
        return str(moment.isoformat()) if hasattr(moment, "isoformat") else str(moment)
    local: datetime = moment.replace(tzinfo=None, fold=0)
    return local


def axis_ticks(column: Column, low: float, high: float) -> list[tuple[float, str]]:
    """Where on an axis from low to high, 0 to 1, which numbers stand; of dates the ends."""
    if column.kind == "datetime":
        return [(at, number_text(column, x, low, high)[:10]) for at, x in ((0.0, low), (1.0, high))]
    if column.step > 0.0 and high - low < (MOST_TICKS + 0.5) * column.step:  # of few cells all
        ticks = (np.arange(low, high - 0.25 * column.step, column.step) + 0.5 * column.step).tolist()
    else:
        ticks = round_ticks(low, high, column.step > 0.0 and float(column.step).is_integer())
    return [((x - low) / (high - low), number_text(column, x, low, high)) for x in ticks]
