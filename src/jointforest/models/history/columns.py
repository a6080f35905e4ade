"""The variables of histories: which are constant within a subject, which vary, and how their cells become codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ...data.csv_files import numbered
from ...data.discretization.base_density import quantiles
from ...data.discretization.discretizer import Scale, codes_of
from ...data.frames import decode
from ...data.schema import Column, Schema
from .contexts import MAX_CODES
from .records import Histories, HistoryLayout

# ---- How the cells of a column become codes: 0 for a missing cell, 1, 2, ... for the bins or levels of its scale.


UNKNOWN = -1
"""Code of a cell of which nothing is known, not even whether it is missing."""
PRESENT = -2
"""Code of an unknown cell that is not missing."""


@dataclass(frozen=True, eq=False)
class Coding:
    """The codes of one variable of a history.

    scale : Scale. Of its values.
    change : Scale or None. Of the changes from its last known value, where these are predicted.
    change_column : Column or None. The changes as a column.
    has_missing : bool. Whether cells were missing at learning, so that a missing cell is an observed code.
    repeat : float64 array (K,). Probability, by code, that a cell with the code of the cell before has its value, too.
    """

    column: Column
    scale: Scale
    change: Scale | None
    change_column: Column | None
    has_missing: bool
    repeat: np.ndarray

    @property
    def n_codes(self) -> int:
        """Codes of values, that of missing cells included."""
        return self.scale.n_codes + 1

    @property
    def n_targets(self) -> int:
        """Codes that are predicted in later rows."""
        return self.n_codes if self.change is None else self.change.n_codes + 1

    @cached_property
    def is_single(self) -> np.ndarray:
        """Which codes of the scale hold a single value, bool (K,)."""
        return single_values(self.scale)


def single_values(scale: Scale) -> np.ndarray:
    """Which codes hold one value: a point, or one cell of a grid."""
    pieces = np.bincount(scale.code, minlength=scale.n_codes)
    width = np.zeros(scale.n_codes)
    np.maximum.at(width, scale.code, np.where(np.isfinite(scale.hi - scale.lo), scale.hi - scale.lo, np.inf))
    alone = width <= scale.step * 1.000001 if scale.step > 0 else width == 0.0
    return np.asarray((pieces == 1) & alone)


# ---- The variables of a table of histories.

START = -1
"""Source of the variable that is the time of a subject's first row."""
GAP = -2
"""Source of the variable that is the time since the row before."""
LENGTH_COLUMN = -3
"""Source of the variable that is the number of rows."""


@dataclass(frozen=True, eq=False)
class Variable:
    """One variable of a history.

    source : int. Number of its column in the schema, or `START`, `GAP`, `LENGTH_COLUMN`.
    """

    source: int
    coding: Coding


class Expectations(NamedTuple):
    """Trees of the expected code of columns of a row, given the columns before it: see `HistoryLayout`."""

    root: np.ndarray
    kind: np.ndarray
    column: np.ndarray
    threshold: np.ndarray
    child: np.ndarray


def no_expectations(d: int) -> Expectations:
    """Expectations of d columns of which none has a tree."""
    none = np.empty(0, dtype=np.int16)
    return Expectations(np.full(d, -1, dtype=np.int64), none, none, none, np.empty(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class HistoryColumns:
    """The columns of a table of histories.

    schema : Schema. Of all columns but those of the subject and of time.
    names : tuple of str. Names of all columns of the frame, in order.
    group : Column. The column that names the subjects.
    step : float. Time between any two rows; NaN if it varies or there is no time.
    begin : float. Time of every first row; NaN if it varies or there is no time.
    head : tuple of Variable. Variables constant within a subject, in drawing order; `LENGTH_COLUMN`, if any, is last.
    rows : tuple of Variable. Variables of a row, in the order in which they are drawn.
    """

    schema: Schema
    names: tuple[str, ...]
    group: Column
    time: Column | None
    step: float
    begin: float
    head: tuple[Variable, ...]
    rows: tuple[Variable, ...]
    expectations: Expectations

    @property
    def has_length(self) -> bool:
        """Whether the number of rows is modelled."""
        return bool(self.head) and self.head[-1].source == LENGTH_COLUMN

    @property
    def least_gap(self) -> float:
        """Least time between two drawn rows; 0 if rows of a learned subject had the same time."""
        if self.time is None or any(v.source == GAP and v.coding.column.minimum == 0.0 for v in self.rows):
            return 0.0
        return self.time.step if self.time.step > 0 else 1e-9

    @cached_property
    def frame_schema(self) -> Schema:
        """Schema of whole frames, the columns of subjects and of time among the others; subjects without levels."""
        known = {column.name: column for column in self.schema.columns} | {self.group.name: self.group}
        if self.time is not None:
            known[self.time.name] = self.time
        aside = {column.name: column for _, column in self.schema.unknown}
        unknown = tuple((place, aside[name]) for place, name in enumerate(self.names) if name in aside)
        columns = tuple(known[name] for name in self.names if name in known)
        return Schema(columns, self.schema.frame, unknown, self.schema.n_rows)

    @cached_property
    def changes(self) -> tuple[int, ...]:
        """Numbers of the row variables whose changes are predicted."""
        return tuple(j for j, v in enumerate(self.rows) if v.coding.change is not None)

    @cached_property
    def repeats(self) -> tuple[int, ...]:
        """Numbers of the row variables that repeat values."""
        return tuple(j for j, v in enumerate(self.rows) if v.coding.repeat.any())

    @cached_property
    def layout(self) -> HistoryLayout:
        """The columns as kernels read them."""
        codings = [v.coding for v in self.rows]
        change = np.full(len(codings), -1, dtype=np.int64)
        change[list(self.changes)] = np.arange(len(self.changes))
        repeat_at, repeat = np.full(len(codings), -1, dtype=np.int64), np.zeros((len(self.repeats), MAX_CODES + 1))
        repeat_at[list(self.repeats)] = np.arange(len(self.repeats))
        for q, j in enumerate(self.repeats):
            repeat[q, 1 : codings[j].n_codes] = codings[j].repeat
        of_changes = [codings[j] for j in self.changes]
        edges = [upper_ends(c.scale) for c in of_changes]
        scales = [c.scale for c in of_changes]
        by_change = [c.change for c in of_changes if c.change is not None]
        both = [*scales, *by_change]
        starts = _starts_of_parts([scale.by_code for scale in both])
        segments = [(starts[i] + scale.code_start[:-1], scale) for i, scale in enumerate(both)]
        medians = [quantiles(scale, np.eye(scale.n_codes), np.array([0.5]))[:, 0] for scale in both]
        return HistoryLayout(
            n_head=len(self.head),
            has_length=int(self.has_length),
            n_codes=np.array([c.n_codes for c in codings], dtype=np.int64),
            is_number=np.array([not c.column.is_categorical for c in codings], dtype=np.uint8),
            change=change,
            repeat_at=repeat_at,
            repeat=repeat,
            edge_start=_starts_of_parts(edges),
            edge=_concatenated(edges),
            change_start=sum(map(len, edges)) + _starts_of_parts(medians[len(scales) :]),
            middle=_concatenated(medians),
            seg_start=_concatenated([*(first for first, _ in segments), starts[-1:]], np.int64),
            seg_lo=_concatenated([scale.lo for scale in both]),
            seg_hi=_concatenated([scale.hi for scale in both]),
            seg_rate=_concatenated([scale.rate for scale in both]),
            seg_share=_concatenated([scale.share for scale in both]),
            seg_code=_concatenated([scale.code for scale in both], np.int64),
            step=np.array([c.column.step for c in of_changes], dtype=np.float64),
            origin=np.array([c.scale.origin for c in of_changes], dtype=np.float64),
            low=np.array([c.column.minimum for c in of_changes], dtype=np.float64),
            high=np.array([c.column.maximum for c in of_changes], dtype=np.float64),
            spread=np.array([max(np.median(np.abs(of)), 1e-300) for of in medians[len(scales) :]], dtype=np.float64),
            **{f"expect_{name}": array for name, array in self.expectations._asdict().items()},
        )


def _starts_of_parts(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


def _concatenated(parts: Sequence[np.ndarray], dtype: Any = np.float64) -> np.ndarray:
    return np.concatenate([*parts, np.empty(0)]).astype(dtype)


def upper_ends(scale: Scale) -> np.ndarray:
    """Upper end of each code of a numeric scale, ascending, the last one infinite."""
    end = np.full(scale.n_codes, -np.inf)
    np.maximum.at(end, scale.code, scale.hi)
    first = np.full(scale.n_codes, np.inf)
    np.minimum.at(first, scale.code, scale.lo)
    points = np.zeros(scale.n_codes, dtype=bool)
    points[scale.code[scale.is_point]] = True
    # an interval that ends at the point of the next code does not hold it
    before_point = np.append(points[1:] & (end[:-1] == first[1:]), False) & (end > first)
    return np.where(before_point, np.nextafter(end, -np.inf), end)


# ---- Values to codes.


@dataclass(frozen=True, eq=False)
class CodedCells:
    """Histories as codes, and what the codes leave out.

    head_value : float64 array (n, h). Values of head variables; NaN where unknown or missing.
    row_value : float64 array (N, d). Values of row variables.
    head_base : float64 array (n, h). Log of the density of each value inside its code; 0 where missing or unknown.
    row_base : float64 array (N, d)
    """

    histories: Histories
    head_value: np.ndarray
    row_value: np.ndarray
    head_base: np.ndarray
    row_base: np.ndarray


def code_histories(
    columns: HistoryColumns,
    start: np.ndarray,
    X: np.ndarray,
    time: np.ndarray | None,
    length: np.ndarray,
    empty_is_unknown: bool = False,
    unseen: np.ndarray | None = None,
) -> CodedCells:
    """Codes of the rows X (N, columns) of n subjects, in the order of ``time``; subject i has start[i]:start[i + 1]."""
    # ``length`` (n,) is the number of rows of the whole history, -1 where it may go on. ``unseen`` cells are unknown.
    n, N = len(start) - 1, len(X)
    first = start[:-1]
    head_value = np.full((n, len(columns.head)), np.nan)
    head, head_base = np.zeros((n, len(columns.head)), dtype=np.int16), np.zeros((n, len(columns.head)))
    for v, variable in enumerate(columns.head):
        if variable.source == LENGTH_COLUMN:
            value = np.where(length < 0, np.nan, length).astype(np.float64)
        elif variable.source == START:
            value = np.full(n, np.nan) if time is None else time[first]
        else:
            value = first_known(start, X[:, variable.source])
        head_value[:, v] = value
        head[:, v], head_base[:, v] = _codes_and_logs(variable.coding, value, empty_is_unknown)
    row_value = np.full((N, len(columns.rows)), np.nan)
    code, row_base = np.zeros((N, len(columns.rows)), dtype=np.int16), np.zeros((N, len(columns.rows)))
    change = np.zeros((N, len(columns.changes)), dtype=np.int16)
    fresh, again = np.ones((N, len(columns.repeats))), np.zeros((N, len(columns.repeats)))
    is_first = np.zeros(N, dtype=bool)
    is_first[first[start[1:] > first]] = True
    for j, variable in enumerate(columns.rows):
        if variable.source == GAP:
            value = np.full(N, np.nan) if time is None else np.where(is_first, np.nan, np.diff(time, prepend=0.0))
        else:
            value = X[:, variable.source]
        row_value[:, j] = value
        code[:, j], row_base[:, j] = _codes_and_logs(variable.coding, value, empty_is_unknown)
        if unseen is not None and variable.source >= 0:
            code[unseen[:, variable.source], j] = UNKNOWN
        if variable.source == GAP:
            code[is_first, j] = 0
        if variable.coding.change is not None:
            k = columns.changes.index(j)
            change[:, k] = _code_changes(variable.coding, value, is_first, row_base[:, j])
        elif j in columns.repeats:
            q = columns.repeats.index(j)
            fresh[:, q], again[:, q] = _add_repeats(variable.coding, value, code[:, j], is_first, row_base[:, j])
    histories = Histories(
        start=start.astype(np.int64),
        head=head,
        length=length.astype(np.int64),
        code=code,
        change=change,
        value=np.ascontiguousarray(row_value[:, list(columns.changes)]),
        base=np.ascontiguousarray(row_base[:, list(columns.changes)]),
        fresh=fresh,
        again=again,
    )
    return CodedCells(histories, head_value, row_value, head_base, row_base)


def _codes_and_logs(coding: Coding, value: np.ndarray, empty_is_unknown: bool) -> tuple[np.ndarray, np.ndarray]:
    """Codes of values, with those of empty cells, and the log of their base density."""
    found, log_base = codes_of(coding.scale, value)
    empty = 0 if coding.has_missing and not empty_is_unknown else UNKNOWN
    return np.where(found == coding.scale.n_codes, empty, found + 1).astype(np.int16), log_base


def first_known(start: np.ndarray, x: np.ndarray) -> np.ndarray:
    """First known value of each subject, (n,); NaN if there is none."""
    known = np.flatnonzero(~np.isnan(x))
    place = np.searchsorted(known, start[:-1])
    at = known[np.minimum(place, len(known) - 1)] if len(known) else np.zeros(len(start) - 1, dtype=np.int64)
    has = (place < len(known)) & (at < start[1:]) if len(known) else np.zeros(len(start) - 1, dtype=bool)
    return np.where(has, x[at] if len(x) else np.nan, np.nan)


def last_known(value: np.ndarray, is_first: np.ndarray) -> np.ndarray:
    """Last known value before each row within its subject, (N,); NaN if there is none."""
    row = np.arange(len(value))
    begin = np.maximum.accumulate(np.where(is_first, row, 0))
    latest = np.maximum.accumulate(np.where(np.isnan(value), -1, row)) if len(value) else row
    before = np.concatenate([[-1], latest[:-1]])
    return np.where(before >= begin, value[np.maximum(before, 0)], np.nan)


def _code_changes(coding: Coding, value: np.ndarray, is_first: np.ndarray, log_base: np.ndarray) -> np.ndarray:
    """Codes of changes, 0 where there is none; ``log_base`` receives the density of the changes inside their codes."""
    assert coding.change is not None
    step = value - last_known(value, is_first)
    code, base = codes_of(coding.change, step)
    known = ~np.isnan(step)
    log_base[known] = base[known]
    return np.where(known, code + 1, 0).astype(np.int16)


def repeated_density(coding: Coding, x: np.ndarray) -> np.ndarray:
    """Density (N,) that a repetition has at its value; infinite where it is a mass beside a density."""
    if coding.column.step > 0.0:
        return np.full(len(x), 1.0 / coding.column.step)
    is_point = np.isin(x, coding.scale.lo[coding.scale.points])
    return np.where(is_point, 1.0, np.inf)


def _add_repeats(
    coding: Coding, value: np.ndarray, code: np.ndarray, is_first: np.ndarray, log_base: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Add to the log base density that a cell with the code of the cell before may have its value, too."""
    # What `Histories` calls ``fresh`` and ``again`` of each cell, two arrays (N,).
    same = (code > 0) & np.concatenate([[False], code[1:] == code[:-1]]) & ~is_first
    repeat = np.where(code > 0, coding.repeat[np.maximum(code - 1, 0)], 0.0)
    # rows between the last known value and the cell must be unknown: a missing cell ends the repetition
    gone = last_known(np.where(code == 0, np.inf, np.where(code > 0, value, np.nan)), is_first)
    is_equal = (repeat > 0.0) & (value == gone)
    unit = repeated_density(coding, value)
    # without a grid a repeated value has a mass, and any other value a density
    is_mass = is_equal & np.isinf(unit)
    fresh = np.where(is_mass, 0.0, np.exp(log_base))
    again = np.where(is_mass, 1.0, np.where(is_equal, unit, 0.0))
    at = np.flatnonzero(same & (repeat > 0.0))
    log_base[at] = np.log((1.0 - repeat[at]) * fresh[at] + repeat[at] * again[at])
    scale = np.exp(-log_base)
    return np.where(code > 0, fresh * scale, 1.0), np.where(code > 0, again * scale, 0.0)


# ---- Frames like the table of histories that was learned from.


def frame_of(
    columns: HistoryColumns,
    group: Column,
    subject: np.ndarray,
    time: np.ndarray | None,
    X: np.ndarray,
    counts: Mapping[str, np.ndarray] = MappingProxyType({}),
    first_new: int | None = None,
) -> Any:
    """A frame like the table of histories, behind columns of counts; ``subject`` holds cells of the column group."""
    schema = columns.frame_schema
    cells = {group.name: subject} | {name: X[:, j] for j, name in enumerate(columns.schema.names)}
    if columns.time is not None and time is not None:
        cells[columns.time.name] = time
    names = numbered([*schema.all_columns.names, *counts], doubt=False)[len(schema.all_columns.names) :]
    whole = "Int64" if schema.frame == "polars" else "int64"
    of_counts = tuple(Column(name, "integer", whole, 1.0) for name in names)
    of_frame = tuple(group if column.name == group.name else column for column in schema.columns)
    unknown = tuple((at + len(counts), column) for at, column in schema.unknown)
    return decode(
        replace(schema, columns=(*of_counts, *of_frame), unknown=unknown),
        np.column_stack([*counts.values(), *(cells[name] for name in schema.names)]),
        first_new,
    )
