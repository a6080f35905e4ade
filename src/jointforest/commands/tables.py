"""Tables of the command line: how they are read, and answers written, large ones batch by batch."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..io.csv_tables import CsvForm

if TYPE_CHECKING:
    import pyarrow as pa

    from ..face.joint import Joint


class Input(NamedTuple):
    """How tables are read: their format, if it is said, and how CSV is written."""

    form: str | None
    csv: CsvForm


def say(text: str) -> None:
    click.echo(text, err=True)


def load(path: str) -> Joint:
    from ..face.load import load

    return load(path)


def read(path: str, source: Input, joint: Joint | None = None, text: Iterable[str] = ()) -> pa.Table:
    """A table; columns that the model knows as text are read as text."""
    from ..io.tables import read_table

    return read_table(path, source.form, source.csv, text_columns(joint) if joint else text)


def text_columns(joint: Joint) -> list[str]:
    """Columns whose levels are text."""
    return [c.name for c in joint.schema.columns if c.levels and all(isinstance(level, str) for level in c.levels)]


def write(joint: Joint, frame: Any, path: str, form: str | None) -> None:
    from ..io.tables import to_arrow, write_table

    write_table(to_arrow(frame, joint.schema.names), path, form)


def is_large(table: str, output: str, form: str | None) -> bool:
    """Whether a table is answered batch by batch: a folder, or a Parquet file of many rows answered into a file."""
    from ..io import batches, large

    if os.path.isdir(table):
        return True
    return output != "-" and large.is_parquet_file(table, form) and large.count_rows([table]) > batches.BATCH


def write_answers(
    joint: Joint,
    table: str,
    output: str,
    source: Input,
    answer: Callable[[pa.Table, int], pa.Table],
    at_once: int | None = None,
) -> None:
    """Write the answer for a table, or those for the batches of a large one, numbered from 0, one below the other.

    With ``at_once`` all batches but the last have so many rows, whatever files these lie in.
    """
    if not is_large(table, output, source.form):
        write(joint, answer(read(table, source, joint), 0), output, source.form)
        return
    from ..ground.progress import bar
    from ..io import batches, large

    files, told = batches.files_of(table), _Told()

    def answers() -> Generator[pa.Table]:
        told.start()
        with bar(large.count_rows(files), "rows") as step:
            parts = large.read_batches(files)
            for number, (file, part) in enumerate(parts if at_once is None else large.in_blocks(parts, at_once)):
                try:
                    with told:
                        found = answer(part, number)
                except ValueError as error:
                    raise ValueError(f"{file}: {error}") from None
                yield found
                step(part.num_rows)
        told.sum_up()

    large.write_batches(answers, output, source.form)


class _Told:
    """Shows the first warning of each kind, and says at the end how many batches had more of them."""

    def __init__(self) -> None:
        self.shown: set[type[Warning]] = set()

    def start(self) -> None:
        """Begin at the first batch, perhaps again."""
        self.batches: dict[type[Warning], int] = {}

    def __enter__(self) -> None:
        self._caught = warnings.catch_warnings(record=True)
        self._found = self._caught.__enter__()
        warnings.simplefilter("always", UserWarning)

    def __exit__(self, *error: Any) -> None:
        self._caught.__exit__(*error)
        for kind in dict.fromkeys(one.category for one in self._found or ()):
            if kind not in self.shown:
                self.shown.add(kind)
                warnings.warn(next(one.message for one in self._found or () if one.category is kind), stacklevel=2)
            self.batches[kind] = self.batches.get(kind, 0) + 1

    def sum_up(self) -> None:
        for n in self.batches.values():
            if n > 1:
                say(f"warning: the same of {n - 1} later batch{'es' if n > 2 else ''} of rows")
