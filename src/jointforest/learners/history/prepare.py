"""A frame as histories: its subjects, their rows in time, and the codes of every column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...data.cells import FrameReader
from ...data.discretization.discretizer import Scale, codes_of
from ...data.discretization.learn import learn_scale
from ...data.history_rows import HistoryRows, check_history_names, group_rows, order_column, some_columns
from ...data.ranges import Ranges
from ...data.schema import Column, Schema, shortened
from ...models.history.columns import (
    GAP,
    LENGTH_COLUMN,
    START,
    Coding,
    HistoryColumns,
    Variable,
    first_known,
    last_known,
    no_expectations,
    single_values,
)
from ...runtime.warnings import warn
from ..hidden_tree.codes import match_ranges
from ..rows import read_training_rows
from .constants import FIXED


class Prepared(NamedTuple):
    """Histories to learn from.

    X : float64 array (N, number of schema columns). Cells, subject after subject in the order of time.
    """

    columns: HistoryColumns
    rows: HistoryRows
    X: np.ndarray


def prepare_histories(
    reader: FrameReader, group: Any, order: Any, kinds: Mapping[str, str] | None, ends: bool
) -> Prepared:
    """The histories of a frame with several rows for each subject. Raises ValueError if a column is not there, a
    subject or time is missing, no subject has two rows, all rows of each subject have one time, or there is no other
    column that varies within subjects."""
    group, order = check_history_names(reader, group, order)
    time = None if order is None else order_column(reader, order)
    rows = group_rows(reader, group, time)
    if int(rows.length.max()) < 2:
        raise ValueError(
            f"every subject has a single row; histories need subjects with several rows. Is {group!r} the column of "
            "subjects? Without several rows a subject, fit the table without group"
        )
    if time is not None:
        _check_times(rows, time)
    drop = [group] if order is None else [group, order]
    if len(reader.names) == len(drop):
        raise ValueError(f"there is no column beside {' and '.join(drop)}")
    schema, _, X, *_, ranges = read_training_rows(some_columns(reader, set(reader.names) - set(drop)), kinds)
    X = np.ascontiguousarray(X[rows.place])
    if ranges is not None:
        X = _matched_ranges(schema, X, ranges.take(rows.place), rows.start)
    columns = _history_columns(schema, tuple(reader.names), _group_column(reader, group), time, rows, X, ends)
    if not columns.rows:
        raise ValueError(
            "every column is constant within subjects, so a history says no more than one of its rows; "
            f"keep one row for each {group!r} and fit the table without group"
        )
    return Prepared(columns, rows, X)


def _matched_ranges(schema: Schema, X: np.ndarray, ranges: Ranges, start: np.ndarray) -> np.ndarray:
    """Cells (N, d) whose values of ranges suit the other cells of their row, and those of the rows beside it."""
    beside = []
    for off, end in ((1, start[:-1]), (-1, start[1:] - 1)):
        cells, number = np.roll(X, off, axis=0), np.roll(ranges.number, off, axis=0)
        cells[end], number[end] = np.nan, -1
        beside.append((cells, number))
    wide = Ranges(np.hstack([ranges.number, *(number for _, number in beside)]), ranges.intervals)
    columns = replace(schema, columns=schema.columns * 3)
    return match_ranges(columns, np.hstack([X, *(cells for cells, _ in beside)]), wide)[:, : X.shape[1]].copy()


def _check_times(rows: HistoryRows, time: Column) -> None:
    """Warn of rows that have the time of another row of their subject; refuse a table in which all of them do."""
    assert rows.time is not None
    same = np.diff(rows.time) == 0
    same[rows.start[1:-1] - 1] = False
    n, at = int(same.sum()), int(same.argmax())
    if n == 0:
        return
    if n == len(rows.time) - len(rows.labels):
        raise ValueError(
            f"order: the rows of each subject have one {time.name!r}, which does not order them; leave out order if "
            "they stand in their order"
        )
    subject = rows.labels[int(np.searchsorted(rows.start, at, side="right")) - 1]
    first = shortened(str(time.from_number(float(rows.time[at]))))
    warn(
        f"order: {n} {'row has' if n == 1 else 'rows have'} the {time.name!r} of the row before, such as of subject "
        f"{subject!r} at {first}; rows of one time are taken in the order of the table"
    )


def _group_column(reader: FrameReader, group: str) -> Column:
    """The column of subjects: its name and type; new subjects are numbered."""
    cells = reader.cells(group)
    kind = "integer" if cells.sort == "integer" else "continuous" if cells.sort == "number" else "categorical"
    levels = ("1",) if kind == "categorical" else ()
    return Column(group, kind, cells.dtype, 1.0 if kind == "integer" else 0.0, levels=levels,
                  has_number_name=group in reader.number_names, n_observed=reader.n)  # fmt: skip


def _history_columns(
    schema: Schema,
    names: tuple[str, ...],
    group: Column,
    time: Column | None,
    rows: HistoryRows,
    X: np.ndarray,
    ends: bool,
) -> HistoryColumns:
    """The variables of the histories, those of a row in the order of the schema."""
    start, N = rows.start, len(X)
    is_first = np.zeros(N, dtype=bool)
    is_first[start[:-1]] = True
    head, varying = [], []
    for j, column in enumerate(schema.columns):
        if is_constant(start, X[:, j]):
            head.append(Variable(j, _coding_of(column, first_known(start, X[:, j]))))
        else:
            varying.append(Variable(j, _coding_of(column, X[:, j], is_first)))
    step = begin = np.nan
    if time is not None and rows.time is not None:
        gap = np.where(is_first, np.nan, np.diff(rows.time, prepend=0.0))
        step, begin = _single(gap), _single(rows.time[start[:-1]])
        if np.isnan(begin):
            head.insert(0, Variable(START, _coding_of(time, rows.time[start[:-1]])))
        if np.isnan(step):
            varying.insert(0, Variable(GAP, _coding_of(_gap_column(time, gap), gap, is_first)))
    if ends:
        length = rows.length.astype(np.float64)
        head.append(Variable(LENGTH_COLUMN, _coding_of(_length_column(length), length)))
    variables = in_order_of_likeness([*head, *varying], X)
    return HistoryColumns(schema, names, group, time, step, begin, tuple(variables[: len(head)]),
                          tuple(variables[len(head) :]), no_expectations(len(varying)))  # fmt: skip


# ---- Codes of levels in an order in which neighbours are alike: splits then divide them better.


def in_order_of_likeness(variables: list[Variable], X: np.ndarray) -> list[Variable]:
    """The variables, with codes of levels without order in that of the first axis of correspondence analysis."""
    # Levels are compared by their counts with the codes of all other columns (Greenacre, "Theory and applications of
    # correspondence analysis", 1984).
    of_schema = [k for k, variable in enumerate(variables) if variable.source >= 0]
    rows = slice(None, None, max(1, len(X) // FIXED.likeness_rows))
    codes = {
        k: codes_of(variables[k].coding.scale, X[rows, variables[k].source])[0].astype(np.int64) for k in of_schema
    }
    found = list(variables)
    for k in of_schema:
        coding = variables[k].coding
        if coding.column.kind == "categorical" and coding.scale.n_codes > 2 and len(of_schema) > 1:
            rank = _likeness([codes[k], *(codes[i] for i in of_schema if i != k)], coding.scale.n_codes)
            scale = replace(coding.scale, code=rank[coding.scale.code].astype(np.int32))
            repeat = np.empty_like(coding.repeat)
            repeat[rank] = coding.repeat
            found[k] = replace(variables[k], coding=replace(coding, scale=scale, repeat=repeat))
    return found


def _likeness(codes: list[np.ndarray], n: int) -> np.ndarray:
    """Rank of each of the n codes of the first column on the first axis."""
    known = codes[0] < n
    tables = [
        np.histogram2d(codes[0][known], one[known], [np.arange(n + 1), np.arange(one.max() + 2)])[0]
        for one in codes[1:]
    ]
    counts = np.hstack(tables)
    total, row, column = counts.sum(), counts.sum(axis=1, keepdims=True), counts.sum(axis=0, keepdims=True)
    expected = row * column / total
    scaled = np.where(expected > 0, (counts - expected) / np.sqrt(np.maximum(expected, 1e-300)), 0.0)
    axis = np.linalg.svd(scaled, full_matrices=False)[0][:, 0] / np.sqrt(np.maximum(row[:, 0], 1e-300))
    axis *= np.sign(axis[np.argmax(row[:, 0])]) or 1.0
    return np.argsort(np.argsort(np.where(row[:, 0] > 0, axis, np.inf), kind="stable"))


def _single(x: np.ndarray) -> float:
    """The value that all known numbers have; NaN if they differ."""
    known = x[~np.isnan(x)]
    return float(known[0]) if len(known) and np.ptp(known) <= 1e-9 * abs(known[0]) else np.nan


def _gap_column(time: Column, gap: np.ndarray) -> Column:
    """The time between rows as a column of numbers."""
    known = gap[~np.isnan(gap)]
    kind = "integer" if time.kind == "integer" else "rounded" if time.step > 0 else "continuous"
    return Column("time since the row before", kind, "float64", time.step, 0.0, minimum=float(known.min()),
                  maximum=float(known.max()), n_observed=len(known))  # fmt: skip


def _length_column(length: np.ndarray) -> Column:
    return Column("number of rows", "integer", "int64", 1.0, 0.0, minimum=float(length.min()),
                  maximum=float(length.max()), n_observed=len(length))  # fmt: skip


def is_constant(start: np.ndarray, x: np.ndarray) -> bool:
    """Whether a column has one value within nearly every subject, and is not missing in some of its rows only."""
    known = ~np.isnan(x)
    first = np.repeat(first_known(start, x), np.diff(start))
    subject = np.repeat(np.arange(len(start) - 1), np.diff(start))
    differs = (known & (x != first)) | (~known & ~np.isnan(first))
    share = 1.0 - len(np.unique(subject[differs])) / (len(start) - 1)
    return bool(share >= FIXED.constant_share)


def _coding_of(column: Column, x: np.ndarray, is_first: np.ndarray | None = None) -> Coding:
    """Codes of a variable with these values; of a variable of rows, with the probabilities of repeated values."""
    scale = _few_levels(column, x) if column.is_categorical else learn_scale(column, x, None, FIXED.codes)
    repeat = np.zeros(scale.n_codes)
    if is_first is not None:
        repeat = repeats(scale, x, is_first)
    return Coding(column, scale, None, None, bool(np.isnan(x).any()), repeat)


def _few_levels(column: Column, x: np.ndarray) -> Scale:
    """Levels as codes; of more than 63 the rarest share the last 16 codes, dealt out in turn."""
    n = len(column.levels)
    counts = np.bincount(x[~np.isnan(x)].astype(np.intp), minlength=n) + 0.1
    code = np.arange(n)
    if n > FIXED.codes:
        rank = np.empty(n, dtype=np.intp)
        rank[np.argsort(-counts, kind="stable")] = np.arange(n)
        own = FIXED.own_levels
        code = np.where(rank < own, rank, own + (rank - own) % (FIXED.codes - own))
    n_codes = min(n, FIXED.codes)
    log_mass = np.log(counts) - np.log(np.bincount(code, counts, n_codes))[code]
    place = np.arange(float(n))
    return Scale(n_codes, 0.0, 0.0, place, place.copy(), np.zeros(n), code.astype(np.int32), log_mass)


def repeats(scale: Scale, x: np.ndarray, is_first: np.ndarray) -> np.ndarray:
    """For each code, the probability that a value repeats where its code does, beyond chance; 0 for single values."""
    code, log_base = codes_of(scale, x)
    same = (np.concatenate([[False], code[1:] == code[:-1]]) & ~is_first) & (code < scale.n_codes)
    equal = same & np.concatenate([[False], x[1:] == x[:-1]])
    unit = scale.step if scale.step > 0 else 0.0
    by_chance = np.where(same, np.exp(log_base) * (unit if scale.step > 0 else float(scale.is_point.all())), 0.0)
    n = np.bincount(code[same], minlength=scale.n_codes).astype(np.float64)
    met = np.bincount(code[equal], minlength=scale.n_codes)
    chance = np.bincount(code[same], by_chance[same], scale.n_codes)
    overall = _excess_repeats(met.sum(), chance.sum(), n.sum())
    found = _excess_repeats(met + overall, chance, n + 1.0)
    # a code with nearly all of its mass at one value repeats by chance
    none = single_values(scale) | (chance >= 0.9 * n) | (found < 0.01)
    return np.where(none, 0.0, found)


def _excess_repeats(met: Any, chance: Any, n: Any) -> Any:
    """Share of repeats beyond those by chance, between 0 and 0.999."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (met - chance) / (n - chance)
    return np.clip(np.where(np.isfinite(found), found, 0.0), 0.0, 0.999)


# ---- Changes instead of values.


def change_column(column: Column, step: np.ndarray) -> Column:
    """The changes of a column of numbers as a column."""
    known = step[~np.isnan(step)]
    kind = "integer" if column.kind == "integer" else "rounded" if column.step > 0 else "continuous"
    return Column(f"change of {column.name}", kind, "float64", column.step, 0.0,
                  minimum=float(known.min()), maximum=float(known.max()), n_observed=len(known))  # fmt: skip


def with_changes(variable: Variable, x: np.ndarray, is_first: np.ndarray) -> Variable:
    """The variable with its changes predicted."""
    step = x - last_known(x, is_first)
    column = change_column(variable.coding.column, step)
    scale = learn_scale(column, step, None, FIXED.codes)
    no_repeat = np.zeros(variable.coding.scale.n_codes)
    coding = replace(variable.coding, change=scale, change_column=column, repeat=no_repeat)
    return replace(variable, coding=coding)
