"""A model of histories as JSON and named arrays, and back: what a file holds of it, every field checked."""

# Kernels do not check bounds: what comes from a file must be as `HistoryColumns` and `Conditionals` promise.

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...data.discretization.check import check_scale
from ...data.discretization.discretizer import Scale
from ...data.schema import Column, Schema
from ...data.schema_check import column_from_dict, schema_from_dict
from ...runtime.arrays import Field, check_arrays
from ...runtime.parameters import need
from . import contexts
from .columns import GAP, LENGTH_COLUMN, START, Coding, Expectations, HistoryColumns, Variable
from .history_model import HistoryModel
from .records import MOST_TREES, Conditionals

_FIELDS = {"names", "group", "time", "step", "begin", "head", "rows"}
"""Fields of the object ``histories`` of a file; the schema stands beside it."""
_MOST_ROWS = 10_000_000
"""Most rows of a history in a file: the model has a table of all lengths."""
_SUM_ERROR = 1e-3
"""Most that a distribution in a leaf may be off 1: entries are float32."""

_VARIABLE = {"source", "column", "n_codes", "change", "has_missing"}
_SCALE = {"lo": "f8", "hi": "f8", "rate": "f8", "code": "i4", "log_mass": "f8"}
_NODES = {
    "kind": Field("i2", "nodes"),
    "column": Field("i2", "nodes"),
    "threshold": Field("i2", "nodes"),
    "child": Field("i8", "nodes"),
}
_TREES = _NODES | {
    "tree_start": Field("i8", "starts"),
    "tree_class": Field("i8", "trees"),
    "root": Field("i8", "trees"),
    "table": Field("f4", "entries", 0.0, float(np.finfo(np.float32).max)),
}
_EXPECTATIONS = _NODES | {"root": Field("i8", "d")}
_LENGTHS = {"lengths": Field("i8", "lengths", 1, _MOST_ROWS), "length_counts": Field("i8", "lengths", 1)}

# ---- To arrays.


def history_to_arrays(model: HistoryModel) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The object ``histories`` of a file, and its arrays."""
    columns = model.columns
    arrays = {name: getattr(model, name) for name in _LENGTHS}
    arrays |= {name: getattr(model.conditionals, name) for name in _TREES}
    arrays["line_share"] = model.line_share.ravel()
    arrays |= {f"expect.{name}": getattr(columns.expectations, name) for name in _EXPECTATIONS}
    variables = []
    for k, variable in enumerate((*columns.head, *columns.rows)):
        coding = variable.coding
        arrays |= _scale_to_arrays(f"{k}.value", coding.scale) | {f"{k}.repeat": coding.repeat}
        change = None
        if coding.change is not None and coding.change_column is not None:
            arrays |= _scale_to_arrays(f"{k}.change", coding.change)
            change = {"column": coding.change_column.to_dict(), "n_codes": coding.change.n_codes}
        variables.append(
            {
                "source": variable.source,
                "column": None if variable.source >= 0 else coding.column.to_dict(),
                "n_codes": coding.scale.n_codes,
                "change": change,
                "has_missing": coding.has_missing,
            }
        )
    about = {
        "names": list(columns.names),
        "group": columns.group.to_dict(),
        "time": None if columns.time is None else columns.time.to_dict(),
        "step": _or_none(columns.step),
        "begin": _or_none(columns.begin),
        "head": variables[: len(columns.head)],
        "rows": variables[len(columns.head) :],
    }
    return about, arrays


def _or_none(x: float) -> float | None:
    return None if math.isnan(x) else x


def _scale_to_arrays(name: str, scale: Scale) -> dict[str, np.ndarray]:
    return {f"{name}.{field}": getattr(scale, field) for field in _SCALE}


# ---- From arrays.


def history_from_arrays(schema_data: Any, about: Any, arrays: dict[str, np.ndarray]) -> HistoryModel:
    """The model, from what `history_to_arrays` gave and the schema as a dict."""
    schema = schema_from_dict(schema_data)
    need(
        isinstance(about, dict) and set(about) == _FIELDS,
        f"histories: expected the fields {', '.join(sorted(_FIELDS))}",
    )
    for name in ("head", "rows"):
        need(isinstance(about[name], list), f"histories.{name}: expected a list")
    _check_arrays(arrays, about)
    frame = schema.frame
    group = column_from_dict(about["group"], "histories.group", frame)
    time = None if about["time"] is None else column_from_dict(about["time"], "histories.time", frame)
    entries = [*about["head"], *about["rows"]]
    variables = [_variable(entry, k, schema, time, arrays) for k, entry in enumerate(entries)]
    h = len(about["head"])
    columns = HistoryColumns(
        schema=schema,
        names=_checked_names(about["names"], schema, group, time),
        group=group,
        time=time,
        step=_number_or_nan(about["step"], "histories.step"),
        begin=_number_or_nan(about["begin"], "histories.begin"),
        head=tuple(variables[:h]),
        rows=tuple(variables[h:]),
        expectations=Expectations(**{name: arrays[f"expect.{name}"] for name in _EXPECTATIONS}),
    )
    _check_columns(columns)
    check_expectations(columns)
    lengths, counts = arrays["lengths"], arrays["length_counts"]
    _check_lengths(columns, lengths, counts)
    codes = [v.coding.n_codes for v in (*columns.head, *columns.rows)] + [v.coding.n_targets for v in columns.rows]
    conditionals = Conditionals(np.array(codes, dtype=np.int64), **{name: arrays[name] for name in _TREES})
    check_conditionals(conditionals, len(columns.head), columns.layout.n_codes, columns.expectations.root)
    return HistoryModel(columns, conditionals, lengths, counts, arrays["line_share"].reshape(-1, 3))


def _check_arrays(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    """The arrays that these metadata describe, each with its type and one axis."""
    d, sizes = len(about["rows"]), {}
    expected = _TREES | _LENGTHS | {"line_share": Field("f8", "3d", 0.0, 1.0)}
    of_expectations = {f"expect.{name}": of for name, of in _EXPECTATIONS.items()}
    for k, entry in enumerate((*about["head"], *about["rows"])):
        at = f"histories: variable {k}"
        need(isinstance(entry, dict) and set(entry) == _VARIABLE, f"{at}: expected {', '.join(sorted(_VARIABLE))}")
        for part in ("value",) if entry["change"] is None else ("value", "change"):
            expected |= {f"{k}.{part}.{field}": Field(kind, f"{k}.{part}") for field, kind in _SCALE.items()}
        expected[f"{k}.repeat"] = Field("f8", f"codes{k}", 0.0, np.nextafter(1.0, 0.0))
        sizes[f"codes{k}"] = entry["n_codes"]
    wrong = sorted(set(arrays) ^ set(expected | of_expectations))
    need(not wrong, f"arrays missing or unknown: {', '.join(wrong)[:200]}")
    check_arrays("", arrays, expected, **sizes, **{"3d": 3 * d})
    check_arrays("", arrays, of_expectations, d=d)


def _checked_names(data: Any, schema: Schema, group: Column, time: Column | None) -> tuple[str, ...]:
    """Names of the columns of a frame: those of the schema in their order, with those of subjects and of time."""
    aside = [group.name] if time is None else [group.name, time.name]
    of_schema = list(schema.all_columns.names)
    need(isinstance(data, list), "histories.names: expected a list")
    need(sorted(map(str, data)) == sorted(of_schema + aside), "histories.names: expected each column once")
    need([name for name in data if name not in aside] == of_schema, "histories.names: not in the order of the schema")
    return tuple(data)


def _number_or_nan(value: Any, at: str) -> float:
    if value is None:
        return math.nan
    need(isinstance(value, int | float) and not isinstance(value, bool), f"{at}: expected a number or null")
    need(math.isfinite(value), f"{at}: expected a finite number")
    return float(value)


def _variable(
    entry: dict[str, Any], k: int, schema: Schema, time: Column | None, arrays: dict[str, np.ndarray]
) -> Variable:
    """One variable; its own column is in the schema, or for time and length in the entry."""
    at = f"histories: variable {k}"
    source = entry["source"]
    need(
        type(source) is int and LENGTH_COLUMN <= source < len(schema.columns),
        f"{at}: source: expected a column's number",
    )
    need(type(entry["has_missing"]) is bool, f"{at}: has_missing: expected true or false")
    if source >= 0:
        need(entry["column"] is None, f"{at}: column: expected null")
        column = schema.columns[source]
    else:
        need(source == LENGTH_COLUMN or time is not None, f"{at}: there is no column of times")
        # columns that the model makes are stored as pandas does, whatever the frame
        column = time if source == START and time is not None else column_from_dict(entry["column"], at, "pandas")
        need(not column.is_categorical, f"{at}: expected numbers")
    scale = _checked_scale(f"{k}.value", column, entry["n_codes"], arrays)
    change = change_column = None
    if entry["change"] is not None:
        of_change = entry["change"]
        need(not column.is_categorical and source >= 0, f"{at}: only columns of numbers have changes")
        need(not entry["has_missing"], f"{at}: a column of changes has no missing cells")
        expected = {"column", "n_codes"}
        need(isinstance(of_change, dict) and set(of_change) == expected, f"{at}: change: expected column, n_codes")
        change_column = column_from_dict(of_change["column"], at, "pandas")
        need(not change_column.is_categorical and change_column.step == column.step, f"{at}: change: not its column")
        change = _checked_scale(f"{k}.change", change_column, of_change["n_codes"], arrays)
    repeat = arrays[f"{k}.repeat"]
    return Variable(source, Coding(column, scale, change, change_column, entry["has_missing"], repeat))


def _checked_scale(name: str, column: Column, n_codes: Any, arrays: dict[str, np.ndarray]) -> Scale:
    need(
        type(n_codes) is int and 1 <= n_codes <= contexts.MAX_CODES,
        f"{name}: n_codes: expected 1 to {contexts.MAX_CODES}",
    )
    grid = (0.0, 0.0) if column.is_categorical else (column.step, column.center)
    scale = Scale(n_codes, *grid, *(arrays[f"{name}.{field}"] for field in _SCALE))
    check_scale(scale, column)
    need(len(np.unique(scale.code)) == n_codes, f"{name}: a code has no segments")
    if column.is_categorical:
        need(len(scale.lo) == len(column.levels), f"{name}: expected each level once")
    return scale


def _check_columns(columns: HistoryColumns) -> None:
    """Each column of the schema is one variable; those of time and length stand where they must."""
    head, rows = ([v.source for v in part] for part in (columns.head, columns.rows))
    named = sorted(source for source in head + rows if source >= 0)
    need(named == list(range(len(columns.schema.columns))), "histories: expected each column as one variable")
    need(len(rows) > 0, "histories.rows: expected a variable at least")
    need(
        head.count(LENGTH_COLUMN) == (head[-1:] == [LENGTH_COLUMN]) and LENGTH_COLUMN not in rows,
        "histories: the length is the last head",
    )
    need(START not in rows and GAP not in head, "histories: a variable of time is in the wrong place")
    need(head.count(START) <= 1 and rows.count(GAP) <= 1, "histories: a variable of time is there twice")
    for v in columns.head:
        need(v.coding.change is None, "histories: only variables of rows have changes")
    if columns.time is not None:
        need((START in head) == math.isnan(columns.begin), "histories.begin: expected a number or a variable")
        need((GAP in rows) == math.isnan(columns.step), "histories.step: expected a number or a variable")


def _check_lengths(columns: HistoryColumns, lengths: np.ndarray, counts: np.ndarray) -> None:
    need(len(lengths) > 0 and (np.diff(lengths) > 0).all(), "lengths: expected one at least, rising")
    need(float(counts.astype(np.float64).sum()) < 2**53, "length_counts: expected fewer")
    if columns.has_length:
        column = columns.head[-1].coding.column
        ends = (float(lengths[0]), float(lengths[-1]))
        need((column.minimum, column.maximum) == ends and column.step == 1.0, "lengths: not those of their variable")


# ---- The trees.


def check_expectations(columns: HistoryColumns) -> None:
    """See that expectation trees end, look at columns that came before, and give codes of numbers."""
    trees, h = columns.expectations, len(columns.head)
    n_nodes = len(trees.child)
    having = np.flatnonzero(trees.root >= 0)
    ends = np.append(trees.root[having], n_nodes)
    need(ends[0] == 0 and (np.diff(ends) > 0).all(), "expect.root: expected to rise from 0")
    for j, first, end in zip(having.tolist(), ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        coding, child, place = columns.rows[j].coding, trees.child[first:end], np.arange(first, end)
        inner = child >= 0
        need(not coding.column.is_categorical, "expect.root: only columns of numbers have expectation trees")
        is_after = (child > place) & (child + 1 < end)
        need(is_after[inner].all(), "expect.child: expected nodes after their parents")
        code = -1 - child[~inner]
        need(((code >= 1) & (code < coding.n_codes)).all(), "expect.child: expected codes of the column")
        kind, column = trees.kind[first:end][inner], trees.column[first:end][inner]
        most = np.where(kind == contexts.HEAD, h - int(columns.has_length), np.where(kind == contexts.NOW, j, 1))
        need(
            np.isin(kind, (contexts.POSITION, contexts.HEAD, contexts.NOW)).all(),
            "expect.kind: expected the row, constants, earlier columns",
        )
        need(((column >= 0) & (column < most)).all(), "expect.column: expected one that came before")


def check_conditionals(trees: Conditionals, n_head: int, n_codes: np.ndarray, expect_root: np.ndarray) -> None:
    """Raise ValueError, which names the field, unless trees are valid; ``n_codes`` (d,) counts codes by column."""
    n_columns = len(n_codes)
    n_targets, n_trees, n_nodes = len(trees.target_codes), len(trees.root), len(trees.child)
    start = trees.tree_start
    need(len(start) == n_targets + 1 and start[0] == 0 and start[-1] == n_trees, "tree_start: not one for each target")
    need((np.diff(start) >= 1).all(), "tree_start: each target needs a tree")
    need((np.diff(start) <= MOST_TREES).all(), f"tree_start: a target has {MOST_TREES} trees at most")
    need(n_trees > 0 and trees.root[0] == 0 and (np.diff(trees.root) > 0).all(), "root: expected to rise from 0")
    need(trees.root[-1] < n_nodes, "root: expected a node")
    ends = np.append(trees.root[1:], n_nodes)
    target_of_tree = np.repeat(np.arange(n_targets), np.diff(start))
    for t in range(n_trees):
        target, sort = int(target_of_tree[t]), int(trees.tree_class[t])
        if t == start[target]:
            need(sort == contexts.VALUE, f"tree {t}: the first tree of a target gives its codes")
        else:
            need(sort in contexts.N_CLASSES and target >= n_head + n_columns, f"tree_class[{t}]: not expected there")
            has_expected = expect_root[(target - n_head) % n_columns] >= 0
            need(sort != contexts.OFFSET_USUAL or has_expected, f"tree_class[{t}]: the column has no expectation tree")
        width = int(trees.target_codes[target]) if sort == contexts.VALUE else contexts.N_CLASSES[sort]
        width = int(n_codes[target - n_head - n_columns]) if sort == contexts.CODE else width
        _check_nodes(trees, int(trees.root[t]), int(ends[t]), width, t)
        _check_contexts(trees, slice(int(trees.root[t]), int(ends[t])), target, n_head, expect_root)


def _check_nodes(trees: Conditionals, first: int, end: int, width: int, t: int) -> None:
    """Children come after their parents in the same tree, and leaves have their entries."""
    child = trees.child[first:end]
    inner = child >= 0
    place = first + np.arange(end - first)
    need(((child > place) & (child + 1 < end))[inner].all(), f"child of tree {t}: expected nodes after their parents")
    at = -1 - child[~inner]
    need(len(at) > 0 and (at <= len(trees.table) - width).all(), f"child of tree {t}: expected entries of the table")
    entries = trees.table[at[:, None] + np.arange(width)].astype(np.float64)
    if trees.tree_class[t] == contexts.VALUE:
        need((np.abs(entries.sum(axis=1) - 1.0) < _SUM_ERROR).all(), f"table: leaves of tree {t} must sum to 1")
    else:
        need((entries > 0.0).all(), f"table: leaves of tree {t} must be above 0")


def _check_contexts(trees: Conditionals, nodes: slice, target: int, n_head: int, expect_root: np.ndarray) -> None:
    """Splits look at contexts that there are, and of the same row at columns before."""
    n_columns = len(expect_root)
    inner = trees.child[nodes] >= 0
    kind, column = trees.kind[nodes][inner], trees.column[nodes][inner]
    need(((kind >= 0) & (kind <= contexts.FROM_USUAL)).all(), "kind: expected a kind of context")
    is_head, is_now = kind == contexts.HEAD, np.isin(kind, (contexts.NOW, contexts.CHANGED))
    n_known = min(target, n_head)
    n_before = (target - n_head) % n_columns if target >= n_head else 0
    most = np.where(is_head, n_known, np.where(is_now, n_before, n_columns))
    need(
        ((column >= 0) & ((column < most) | np.isin(kind, contexts.OF_ROW))).all(),
        "column: expected one that came before",
    )
    of_own = column[kind >= contexts.EXPECTED]
    is_own = (of_own == n_before) & (expect_root[n_before] >= 0)
    need(is_own.all(), "kind: only the column's own expected code is known")
    need(target >= n_head or is_head.all(), "kind: head variables look at head variables")
