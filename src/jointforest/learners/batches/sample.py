"""First passes over a table in batches: its schema, and rows that stand for it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from ...data import infer_schema, sample_rows
from ...data.batches import batches_of, known_rows
from ...data.cells import ColumnCells, FrameReader, is_text, taken, without
from ...data.csv_files import is_number
from ...data.frames import encode_reader, read, row_weights, take_rows
from ...data.observe_table import Look, WantedValues, add_table_counts, count, look, merge_looks, mix_all_bits
from ...data.range_texts import range_text
from ...data.ranges import Ranges
from ...data.schema import Schema, kernel_columns, near, snap
from ...data.text_columns import number_dtype, read_cells
from ...data.written_forms import WrittenForm
from ...runtime.progress import bar
from ..hidden_tree.codes import training_cells

# ---- Passes over the rows of a table: sums of batches, made one after the other, or by an engine on many machines.


class Pass(NamedTuple):
    """What is done to all rows of a table once: a sum over its batches, in any order. It can be sent to other machines.

    start : callable () -> sums. Sums of no rows.
    add : callable (sums, batch) -> sums. With the rows of a batch, a frame; it may change the sums that it is given.
    merge : callable (sums, other) -> sums. With the sums of other rows; it may change the first.
    what : str. What is done, for progress bars.
    """

    start: Callable[[], Any]
    add: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]
    what: str

    def over(self, batches: Iterable[Any]) -> Any:
        """The sums of some batches."""
        sums = self.start()
        for batch in batches:
            sums = self.add(sums, batch)
        return sums

    def together(self, parts: Iterable[Any]) -> Any:
        """Sums of parts of a table as one; the parts' own stay as they are."""
        sums = self.start()
        for part in parts:
            sums = self.merge(sums, part)
        return sums


FoldBatches = Callable[[Pass, int | None], Any]
"""Makes a pass over all rows of a table, of which it may have so many: gives their sums."""


def has_own_passes(source: Any) -> bool:
    """Whether a source is an engine that makes passes itself, by a method ``fold``."""
    # of its class: a frame may have a column of that name; frames of polars have a method that folds columns
    return callable(getattr(type(source), "fold", None)) and not nw.dependencies.is_into_dataframe(source)


def fold_of(source: Any) -> FoldBatches:
    """How passes over a source, as of `data.batches.batches_of`, are made: by its own method ``fold``, or here."""
    if has_own_passes(source):
        return source.fold
    batches, total = batches_of(source), known_rows(source)

    def fold(one: Pass, n: int | None = None) -> Any:
        with bar(n or total or 0, one.what) as step:

            def counted_batches() -> Iterable[Any]:
                for batch in batches():
                    yield batch
                    step(len(batch))

            return one.over(counted_batches())

    return fold


MOST_ROWS = 200_000
"""Rows of the sample, unless the learner asks for another number."""


class _Seen(NamedTuple):
    """What one pass over some batches sees: mergeable, by `merge_seen`, in any order."""

    look: Look
    rows: sample_rows.RowSample


class _Counted(NamedTuple):
    """What a second pass counts: mergeable, by `merge_counted`, in any order."""

    values: dict[str, np.ndarray]
    rows: sample_rows.CommonRows


class Sample(NamedTuple):
    """Rows that stand for a table.

    n : int. Rows of the table.
    X : float64 array (m, d). Cells and level codes of rows, by keys, in proportion to the table; ranges drawn from.
    ranges : Ranges or None. Which cells are ranges.
    """

    schema: Schema
    n: int
    X: np.ndarray
    ranges: Ranges | None = None

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows of the table."""
        return self.n == len(self.X)


_LABELS = 1000
"""Texts of a column in a batch among which ranges are looked for."""


def held(reader: FrameReader) -> FrameReader:
    """The same, each column read once and kept."""
    cells = {name: reader.cells(name) for name in reader.names}
    return replace(reader, cells=cells.__getitem__)


def prepared(batch: Any, kinds: Mapping[str, Any]) -> FrameReader:
    """A batch, numbers and ranges read from texts according to ``kinds``; columns to be ignored may be of any type."""
    reader = without(read(batch), {name for name, kind in kinds.items() if kind == "ignored"})
    of_ranges = {name for name, kind in infer_schema.checked_kinds(reader.names, kinds).items() if kind == "ranges"}

    def cells(name: str) -> ColumnCells:
        as_stored = reader.cells(name)
        if name not in of_ranges or as_stored.declared:
            return as_stored
        return read_cells(WrittenForm("number", as_stored.dtype), as_stored, name, as_stored.dtype)

    return held(infer_schema.with_flags(replace(reader, cells=cells), infer_schema.flags_of(kinds)))


def see(batch: Any, seed: int, n_rows: int, kinds: Mapping[str, Any]) -> _Seen:
    """Look at one batch, and sample at most so many of its rows."""
    reader = prepared(batch, kinds)
    for name in reader.names:
        labels = reader.cells(name).labels[:_LABELS]
        texts = [label for label in labels if isinstance(label, str)]
        if any(text.startswith("Interval(lo=") for text in texts):
            raise ValueError(
                f"column {name!r}: ranges have become texts; write them as '<5' or '10 to 20' and say "
                f"kinds={{{name!r}: 'ranges'}}, or keep Dask from it: dask.config.set({{'dataframe.convert-string': "
                "False})"
            )
        if name not in kinds and sum(map(is_number, texts)) > 0.5 * len(labels):
            odd = next((text for text in texts if range_text(text)), None)
            if odd is not None:
                raise ValueError(
                    f"column {name!r}: texts such as {odd!r} may be ranges of numbers; to learn them as such, say "
                    f"kinds={{{name!r}: 'ranges'}} (--kinds {shlex.quote(name + '=ranges')}), or else 'categorical'"
                )
    return _Seen(look(reader), sample_rows.sample_rows(reader, seed, sample_rows.sample_size(n_rows)))


def merge_seen(a: _Seen, b: _Seen, n_rows: int) -> _Seen:
    """What was seen of two parts of a table as one."""
    return _Seen(
        merge_looks(a.look, b.look), sample_rows.merge_samples(a.rows, b.rows, sample_rows.sample_size(n_rows))
    )


def count_again(
    batch: Any, wanted: Mapping[str, WantedValues], keys: np.ndarray, seed: int, kinds: Mapping[str, Any]
) -> _Counted:
    """Count in one batch what the first pass left open: values that may be atoms, rows that may be common."""
    reader = prepared(batch, kinds)
    return _Counted(count(reader, wanted), sample_rows.count_common(reader, keys, seed))


def merge_counted(a: _Counted, b: _Counted) -> _Counted:
    """What was counted in two parts of a table as one."""
    return _Counted(add_table_counts(a.values, b.values), sample_rows.merge_common(a.rows, b.rows))


def take_sample(
    fold: FoldBatches, kinds: Mapping[str, Any] | None, n_rows: int, seed: int, target: tuple[str, str] | None = None
) -> Sample:
    """The schema of a table, and at most so many of its rows, in one or two passes; a ``target`` has name and kind."""
    look_at = partial(see, seed=seed, n_rows=n_rows, kinds=kinds or {})
    merge = partial(merge_seen, n_rows=n_rows)
    seen = fold(_sampling_pass(look_at, merge), None)
    if seen is None:
        raise ValueError("the source gave no batch of rows; at least one row is needed")
    asked = {
        name: kind for name, kind in infer_schema.checked_kinds(seen.look.names, kinds).items() if kind != "ranges"
    }
    if target is not None:
        name, kind = target
        if name not in seen.look.names:
            raise ValueError(f"target: there is no column {name!r}; {near(name, seen.look.names)}")
        asked = {name: kind} | asked
    few = FrameReader("pandas", list(seen.rows.cells), len(seen.rows.tally.keys), seen.rows.cells.__getitem__)
    seen = seen._replace(look=infer_schema.with_ends_of_ranges(seen.look, few))
    wanted, keys = (
        infer_schema.to_count(seen.look, asked),
        sample_rows.common_keys(seen.rows, sample_rows.sample_size(n_rows)),
    )
    counted = None
    if wanted or len(keys):
        again = partial(count_again, wanted=wanted, keys=keys, seed=seed, kinds=kinds or {})
        counted = fold(_sampling_pass(again, merge_counted), seen.look.n)
    return sample_of(seen, counted, kinds or {}, asked, n_rows, seed)


def _sampling_pass(look_at: Callable[[Any], Any], merge: Callable[[Any, Any], Any]) -> Pass:
    """A pass that examines each batch, and merges what it finds; None if there is no batch."""
    return Pass(_nothing, partial(_look_and_merge, look_at, merge), partial(_merged_sums, merge), "looking at rows")


def _nothing() -> None:
    return None


def _look_and_merge(look_at: Callable[[Any], Any], merge: Callable[[Any, Any], Any], sums: Any, batch: Any) -> Any:
    return _merged_sums(merge, sums, look_at(batch))


def _merged_sums(merge: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else merge(a, b)


def sample_of(
    seen: _Seen, counted: _Counted | None, kinds: Mapping[str, Any], asked: Mapping[str, str], n_rows: int, seed: int
) -> Sample:
    """The sample of a table, from what was seen of all of it and counted; kinds as given, and ``asked`` of schemas."""
    schema = infer_schema.schema_of(seen.look, {} if counted is None else counted.values, asked)
    infer_schema.doubt_values(schema, seen.look)
    cells, weight = sample_rows.weighed_rows(seen.rows, None if counted is None else counted.rows)
    n = seen.look.n
    if n <= n_rows:
        at = np.repeat(np.arange(len(weight)), np.rint(weight).astype(np.int64))
    else:
        points = (np.arange(n_rows) + np.random.default_rng([seed, 5]).random()) * (weight.sum() / n_rows)
        at = np.minimum(np.searchsorted(np.cumsum(weight), points, side="right"), len(weight) - 1)
    reader = FrameReader(schema.frame, list(seen.look.names), len(at), lambda name: taken(cells[name], at))
    schema = infer_schema.with_ranges(schema, reader, infer_schema.flags_of(kinds))
    of_ranges = {name for name, kind in kinds.items() if kind == "ranges"}
    infer_schema.check_ranges(schema, of_ranges)
    forms = {c.name: WrittenForm("number", c.dtype) for c in schema.columns if c.name in of_ranges and is_text(c.dtype)}
    columns = tuple(
        replace(column, dtype=number_dtype(schema.frame, form), written=form)
        if (form := forms.get(column.name))
        else column
        for column in schema.columns
    )
    schema = replace(schema, columns=columns)
    X, _, ranges = encode_reader(schema, reader)
    schema, X, ranges = training_cells(schema, X, ranges)
    return Sample(schema, n, X, ranges)


# ---- Weights of the rows of a table in batches: a column of weights.

_BITS = 52
"""Bits of the largest weight: those of a float64 number, so that no weight loses any."""


class Weights(NamedTuple):
    """The column of weights.

    largest : float. Largest weight in the table.
    bits : int. The largest weight counts as 2^bits rows: sums are whole numbers of 62 bits, the same in any order.
    """

    name: str
    largest: float
    bits: int

    def shares(self, reader: FrameReader) -> np.ndarray:
        """Weights of rows over the largest one, float64 (n,)."""
        return np.asarray(reader.cells(self.name).values / self.largest)

    def counts(self, reader: FrameReader) -> np.ndarray:
        """How many rows each row counts as, int64 (n,), at least 1."""
        return np.maximum(np.rint(np.ldexp(self.shares(reader), self.bits)), 1.0).astype(np.int64)


class Sampled(NamedTuple):
    """Rows that stand for a table, and how later passes over it are made.

    fold : Fold. Over the rows that have a weight.
    sample : Sample. Without the column of weights.
    weight : float64 array (m,) or None. Weights of the sample's rows, of mean 1; None: all alike.
    weights : Weights or None. Of all rows; None: all alike.
    """

    fold: FoldBatches
    sample: Sample
    weight: np.ndarray | None
    weights: Weights | None


def take_weighed(
    fold: FoldBatches,
    kinds: Mapping[str, Any] | None,
    n_rows: int,
    seed: int,
    name: Any,
    target: tuple[str, str] | None = None,
) -> Sampled:
    """`take_sample` of a table whose column ``name`` holds the weights of its rows; None: all are equal."""
    if name is None:
        return Sampled(fold, take_sample(fold, kinds, n_rows, seed, target), None, None)
    if not isinstance(name, str):
        what = type(name).__name__
        raise TypeError(f"sample_weight: in batches weights stand in a column, expected its name, got {what}")
    if target is not None and target[0] == name:
        raise ValueError(f"sample_weight: {name!r} is the target; name another column")
    fold = _with_weight(fold, name)
    try:
        sample = take_sample(fold, {**(kinds or {}), name: "continuous"}, n_rows, seed, target)
    except infer_schema.NoRows:
        raise ValueError(f"sample_weight: column {name!r}: every weight is zero; give some rows more") from None
    schema = sample.schema
    j = schema.index(name)
    if len(schema.columns) < 2:
        raise ValueError(f"sample_weight: there is no other column than {name!r}")
    weight = row_weights(sample.X[:, j], len(sample.X))
    weights = Weights(name, schema.columns[j].maximum, min(_BITS, 62 - sample.n.bit_length()))
    others = [k for k in range(len(schema.columns)) if k != j]
    ranges = None if sample.ranges is None else sample.ranges.select(others)
    sample = Sample(schema.without(j), sample.n, sample.X[:, others], ranges)
    return Sampled(fold, sample, weight if np.ptp(weight) > 0.0 else None, weights)


def _with_weight(fold: FoldBatches, name: str) -> FoldBatches:
    """Passes over the rows whose weight is not 0."""

    def some(one: Pass, n: int | None = None) -> Any:
        return fold(one._replace(add=partial(_add_some, one.add, name)), n)

    return some


def _add_some(add: Callable[[Any, Any], Any], name: str, sums: Any, batch: Any) -> Any:
    """Add the rows of a batch that have a weight."""
    weight = _weights_in(read(batch), name)
    return add(sums, batch if weight.all() else take_rows(batch, np.flatnonzero(weight)))


def _weights_in(reader: FrameReader, name: str) -> np.ndarray:
    """The weights of a batch's rows, float64 (n,); ValueError if they are no finite numbers at least 0."""
    if name not in reader.names:
        raise ValueError(f"sample_weight: there is no column {name!r}; {near(name, reader.names)}")
    cells = reader.cells(name)
    if cells.missing.any():
        lost = int(np.count_nonzero(cells.missing))
        raise ValueError(f"sample_weight: column {name!r}: {lost} missing cells; give every row a weight, 0 for none")
    if reader.n and cells.sort not in ("number", "integer"):
        raise ValueError(f"sample_weight: column {name!r}: expected numbers, got cells of type {cells.dtype}")
    weight = np.asarray(cells.values, np.float64) if reader.n else np.empty(0)
    wrong = weight[~(np.isfinite(weight) & (weight >= 0.0))]
    if len(wrong):
        raise ValueError(f"sample_weight: column {name!r}: expected finite numbers >= 0, got {wrong[0]:g}")
    return weight


# ---- Rows of a batch, once the schema of the table is known.


class BatchRows(NamedTuple):
    """Rows of a batch: as they were read, and their cells, float64 (n, d), grid columns snapped; NaN of ranges."""

    reader: FrameReader
    X: np.ndarray
    ranges: Ranges | None

    def keys(self, seed: int) -> np.ndarray:
        """Keys of the draws of each row, uint64 (n,), by its content: equal rows differ if they have ranges."""
        keys = sample_rows.row_keys(
            ((name, self.reader.cells(name)) for name in self.reader.names), self.reader.n, seed
        )
        if self.ranges is None:
            return keys
        some = np.flatnonzero((self.ranges.number >= 0).any(axis=1))
        order = some[np.argsort(keys[some], kind="stable")]
        first = np.maximum.accumulate(
            np.where(np.append(True, keys[order[1:]] != keys[order[:-1]])[: len(order)], np.arange(len(order)), 0)
        )
        keys[order] += mix_all_bits((np.arange(len(order)) - first).astype(np.uint64))
        return keys


def batch_cells(schema: Schema, batch: Any, ignored: str | None = None) -> BatchRows:
    """The rows of a batch, which may have one column more; ValueError if it has levels unseen by the first pass."""
    left_out = {column.name for _, column in schema.unknown if column.aside and column.aside.reason == "ignored"}
    reader = held(without(read(batch), left_out))
    X, unseen, ranges = encode_reader(schema, reader, () if ignored is None else (ignored,))
    if unseen.any():
        name = schema.names[int(np.argmax(unseen.any(axis=0)))]
        raise ValueError(
            f"column {name!r} has a level that it did not have when the table was looked at; "
            "the source must give the same rows at each call"
        )
    X, ranges = (X, None) if ranges is None else ranges.without_values(schema, X)
    return BatchRows(reader, snap(kernel_columns(schema), X), ranges)


def check_row_count(n: int, n_now: int) -> None:
    """Raise ValueError if a source gave other rows than before."""
    if n_now != n:
        raise ValueError(
            f"the source gave {n} rows at first and {n_now} later; it must give the same rows at each call"
        )


def refuse_unseen_ranges(schema: Schema, ranges: Ranges) -> None:
    """Raise ValueError about ranges in a batch, of which the sample of the table has none."""
    j = int((ranges.number >= 0).any(axis=0).argmax())
    raise ValueError(
        f"column {schema.names[j]!r} has so few cells that are ranges that the sample of the table has none of them; "
        "make these cells missing, or learn a HiddenTreeForest"
    )
