"""First passes over a table in batches: its schema, and rows that stand for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...table.cells import FrameReader
from ...table.frames import encode_cells
from ...table.infer.count import Wanted, add_counts, count
from ...table.infer.infer_schema import check_kinds, schema_of, to_count
from ...table.infer.look import Look, look, merge_looks
from ...table.infer.sample import (
    CommonRows,
    RowSample,
    common_keys,
    count_common,
    merge_common,
    merge_samples,
    sample_rows,
    size_of,
    weighed_rows,
)
from ...table.libraries import read
from ...table.schema import Schema, kernel_columns, near
from ...trees.ranks import snap
from .passes import Fold, Pass

MOST_ROWS = 200_000
"""Rows of the sample where the learner has no say in it."""


class Seen(NamedTuple):
    """What one pass over some batches sees: mergeable, by `merge_seen`, in any order."""

    look: Look
    rows: RowSample


class Counted(NamedTuple):
    """What a second pass counts: mergeable, by `merge_counted`, in any order."""

    values: dict[str, np.ndarray]
    rows: CommonRows


class Sample(NamedTuple):
    """Rows that stand for a table.

    Attributes
    ----------
    schema : Schema
    n : int
        Rows of the table.
    X : float64 array (m, d)
        Cells and level codes of some rows, by their keys, each as often as the table has it, or in proportion.
    """

    schema: Schema
    n: int
    X: np.ndarray

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows of the table."""
        return self.n == len(self.X)


def held(reader: FrameReader) -> FrameReader:
    """The same, each column read once and kept."""
    cells = {name: reader.cells(name) for name in reader.names}
    return replace(reader, cells=cells.__getitem__)


def see(batch: Any, seed: int, n_rows: int) -> Seen:
    """Look at one batch, and sample at most so many of its rows."""
    reader = held(read(batch))
    return Seen(look(reader), sample_rows(reader, seed, size_of(n_rows)))


def merge_seen(a: Seen, b: Seen, n_rows: int) -> Seen:
    """What was seen of two parts of a table as one."""
    return Seen(merge_looks(a.look, b.look), merge_samples(a.rows, b.rows, size_of(n_rows)))


def count_again(batch: Any, wanted: Mapping[str, Wanted], keys: np.ndarray, seed: int) -> Counted:
    """Count in one batch what the first pass left open: values that may be atoms, rows that may be common."""
    reader = held(read(batch))
    return Counted(count(reader, wanted), count_common(reader, keys, seed))


def merge_counted(a: Counted, b: Counted) -> Counted:
    """What was counted in two parts of a table as one."""
    return Counted(add_counts(a.values, b.values), merge_common(a.rows, b.rows))


def take_sample(
    fold: Fold, kinds: Mapping[str, str] | None, n_rows: int, seed: int, target: tuple[str, str] | None = None
) -> Sample:
    """The schema of a table, and at most so many rows of it, in one or two passes; a ``target`` has a name and a kind.

    Raises
    ------
    ValueError
        If there is no row, or the table cannot be used (each message names the column).
    """
    look_at, merge = partial(see, seed=seed, n_rows=n_rows), partial(merge_seen, n_rows=n_rows)
    seen = fold(_pass(look_at, merge), None)
    if seen is None:
        raise ValueError("the source gave no batch of rows; at least one row is needed")
    kinds = check_kinds(seen.look.names, kinds)
    if target is not None:
        name, kind = target
        if name not in seen.look.names:
            raise ValueError(f"target: there is no column {name!r}; {near(name, seen.look.names)}")
        kinds = {name: kind} | kinds
    wanted, keys = to_count(seen.look, kinds), common_keys(seen.rows, size_of(n_rows))
    counted = None
    if wanted or len(keys):
        again = partial(count_again, wanted=wanted, keys=keys, seed=seed)
        counted = fold(_pass(again, merge_counted), seen.look.n)
    return sample_of(seen, counted, kinds, n_rows, seed)


def _pass(look_at: Callable[[Any], Any], merge: Callable[[Any, Any], Any]) -> Pass:
    """A pass that looks at each batch, and merges what it finds; None if there is no batch."""
    return Pass(_nothing, partial(_add, look_at, merge), partial(_merge, merge), "rows seen")


def _nothing() -> None:
    return None


def _add(look_at: Callable[[Any], Any], merge: Callable[[Any, Any], Any], found: Any, batch: Any, _: int | None) -> Any:
    return _merge(merge, found, look_at(batch))


def _merge(merge: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else merge(a, b)


def sample_of(seen: Seen, counted: Counted | None, kinds: Mapping[str, str], n_rows: int, seed: int) -> Sample:
    """The sample of a table, from what was seen of all of it and counted."""
    schema = schema_of(seen.look, {} if counted is None else counted.values, kinds)
    cells, weight = weighed_rows(seen.rows, None if counted is None else counted.rows)
    reader = FrameReader(schema.frame, list(seen.look.names), len(weight), cells.__getitem__)
    X = snap(kernel_columns(schema), encode_cells(schema, reader)[0])
    n = seen.look.n
    if n <= n_rows:
        return Sample(schema, n, np.repeat(X, np.rint(weight).astype(np.int64), axis=0))
    at = (np.arange(n_rows) + np.random.default_rng([seed, 5]).random()) * (weight.sum() / n_rows)
    drawn = np.minimum(np.searchsorted(np.cumsum(weight), at, side="right"), len(weight) - 1)
    return Sample(schema, n, X[drawn])
