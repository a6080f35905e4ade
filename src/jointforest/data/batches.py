"""Tables larger than memory, in batches of rows: from files, data sets, queries, or what a function gives."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from .table_files import check_schema

BATCH = 262_144
"""Rows of a batch, where they can be chosen; smaller batches are put together."""

Batches = Callable[[], Iterator[Any]]
"""Gives the frames that a table consists of, afresh at each call."""


def batches_of(source: Any) -> Batches:
    """The batches of a source, as `AdversarialForest.fit_batches` takes it; a frame is cut into batches of its rows."""
    paths = _paths(source)
    if paths:
        return _of_files(paths)
    if _is_of_class(source, "pyarrow", "Dataset"):
        return lambda: _batches_of_rows(source.to_batches(batch_size=BATCH))
    if _is_of_class(source, "polars", "LazyFrame"):
        return lambda: iter(source.collect_batches(chunk_size=BATCH))
    if _is_of_class(source, "duckdb", "DuckDBPyRelation") or _is_of_class(source, "_duckdb", "DuckDBPyRelation"):
        return lambda: _batches_of_rows(source.to_arrow_reader(BATCH))
    if callable(source):
        return lambda: _checked(source())
    if hasattr(source, "shape") or _is_of_class(source, "pyarrow", "Table"):
        return lambda: _slices(source)
    raise TypeError(
        f"expected files, a pyarrow data set, a polars LazyFrame, a DuckDB relation, a frame, or a function that gives "
        f"batches afresh at each call; got {type(source).__module__}.{type(source).__name__}"
    )


def known_rows(source: Any) -> int | None:
    """Rows of a source of `batches_of`; None where this is unknown before they are read."""
    files = [file for path in _paths(source) for file in files_of(path)]
    if files:
        if not all(file.endswith(".parquet") for file in files):
            return None
        from pyarrow import ArrowException, parquet

        try:
            return sum(parquet.read_metadata(file).num_rows for file in files)
        except (ArrowException, OSError):
            return None  # the error comes when it is read
    return len(source) if hasattr(source, "shape") or _is_of_class(source, "pyarrow", "Table") else None


def _paths(source: Any) -> list[Any]:
    """The paths that a source is, none if it is something else."""
    if isinstance(source, str | os.PathLike):
        return [source]
    are_paths = isinstance(source, Sequence) and all(isinstance(path, str | os.PathLike) for path in source)
    return list(source) if are_paths else []


def _is_of_class(source: Any, library: str, name: str) -> bool:
    """Whether a class of this name and library is among the object's, without importing anything."""
    return any(c.__module__.partition(".")[0] == library and c.__name__ == name for c in type(source).__mro__)


def _of_files(paths: Sequence[Any]) -> Batches:
    """Batches of Parquet or CSV files, or of folders of Parquet files."""
    import pyarrow as pa

    for path in paths:
        if not Path(path).exists():
            raise FileNotFoundError(f"no such file or folder: {path}")
    files = [file for path in paths for file in files_of(path)]
    form = "csv" if all(f.endswith((".csv", ".csv.gz")) for f in files) else "parquet"

    def read() -> Iterator[Any]:
        first = None
        for file in files:  # one by one: an error names its file
            try:
                for table in _batches_of_rows(_batches_of_file(file, form)):
                    first = first or table.schema
                    check_schema(first, table.schema, files[0], file)
                    yield table
            except (pa.ArrowException, OSError) as error:
                raise ValueError(f"{file} is not a whole {form} table: {error}") from None

    return read


def files_of(path: Any) -> list[str]:
    """The file, or the Parquet files of a folder, of which there must be one."""
    if not Path(path).is_dir():
        return [str(path)]
    files = sorted(str(file) for file in Path(path).rglob("*.parquet"))
    if not files:
        raise ValueError(f"no file *.parquet in {path}")
    return files


def _batches_of_file(file: str, form: str) -> Iterator[Any]:
    """Arrow record batches of a file, of Parquet without reading ahead, which holds many batches."""
    from pyarrow import dataset, parquet

    if form == "csv":
        yield from dataset.dataset(file, format=form).to_batches(batch_size=BATCH)
        return
    with parquet.ParquetFile(file, pre_buffer=False) as opened:
        yield from opened.iter_batches(batch_size=BATCH)


def _batches_of_rows(parts: Any) -> Iterator[Any]:
    """Arrow record batches as tables of `BATCH` rows, but the last."""
    import pyarrow as pa

    waiting: list[Any] = []
    rows = 0
    for part in parts:
        waiting.append(part)
        rows += part.num_rows
        if rows >= BATCH:
            table = pa.Table.from_batches(waiting)
            n_full = rows - rows % BATCH
            yield from (table.slice(start, BATCH) for start in range(0, n_full, BATCH))
            waiting, rows = table.slice(n_full).to_batches(), rows - n_full
    if waiting:
        yield pa.Table.from_batches(waiting)


def _checked(parts: Any) -> Iterator[Any]:
    """What a function gave, record batches put together to tables."""
    if hasattr(parts, "shape") or not hasattr(parts, "__iter__"):
        raise TypeError(f"a function that gives batches must give an iterable of frames, got {type(parts).__name__}")
    for are_records, group in groupby(parts, lambda part: _is_of_class(part, "pyarrow", "RecordBatch")):
        if are_records:
            yield from _batches_of_rows(group)
        else:
            yield from group


def _slices(frame: Any) -> Iterator[Any]:
    """A frame in memory, `BATCH` rows at a time."""
    import narwhals as nw
    import numpy as np

    for start in range(0, max(len(frame), 1), BATCH):
        if isinstance(frame, np.ndarray):
            yield frame[start : start + BATCH]
        else:
            yield nw.from_native(frame, eager_only=True)[start : start + BATCH].to_native()
