"""2-D numpy arrays read into arrays and rebuilt; column j has the name ``xj``."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import numpy as np

from .. import cells, times
from ..schema import Schema
from ..times import PER_SECOND


def read(array: np.ndarray) -> cells.FrameReader:
    """Take an array apart."""
    if array.dtype.names is not None:
        raise TypeError("structured numpy arrays are not supported; use pandas.DataFrame(array)")
    if array.ndim != 2:
        raise TypeError(f"expected a 2-D array, got shape {array.shape}; use array.reshape(1, -1) for one row")
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("masked arrays are not supported; use array.filled(numpy.nan)")
    names = [f"x{j}" for j in range(array.shape[1])]
    return cells.FrameReader("numpy", names, len(array), lambda name: _numpy_cells(array[:, int(name[1:])], name))


def _numpy_cells(column: np.ndarray, name: str) -> cells.ColumnCells:
    dtype, kind = str(column.dtype), column.dtype.kind
    if kind in "iufb":
        sort = {"b": "boolean", "f": "number"}.get(kind, "integer")
        return cells.numbers(sort, dtype, column.astype(np.float64))
    if kind == "M":
        unit = np.datetime_data(column.dtype)[0]
        if unit == "D":
            return cells.ticks(dtype, column.astype(np.int64), np.isnat(column), 1 / 86400)
        if unit not in PER_SECOND:
            raise cells.unsupported(name, dtype, "use array.astype('datetime64[us]')")
        return cells.ticks(dtype, column.astype(np.int64), np.isnat(column), PER_SECOND[unit])
    if kind in "UT":
        labels, codes = np.unique(column, return_inverse=True)
        return cells.coded("<U" if kind == "U" else dtype, codes, [str(label) for label in labels])
    if kind == "O":
        return _numpy_objects(column, name)
    if kind == "m" and np.datetime_data(column.dtype)[0] in ("D", "h", "m", *PER_SECOND):
        return cells.numbers("number", dtype, column / np.timedelta64(1, "s"))
    raise cells.unsupported(name, f"a numpy array of type {dtype}", "use numbers, text, booleans or datetime64")


def _numpy_objects(column: np.ndarray, name: str) -> cells.ColumnCells:
    missing = np.array([cells.absent(value) for value in column], dtype=bool)
    known = column[~missing].tolist()
    if not known:
        return cells.empty_cells("object[str]", len(column))
    nan = "" if not missing.any() or column[int(missing.argmax())] is None else "|nan"
    is_text = all(isinstance(value, str) for value in known)
    is_range = np.array([not is_text and cells.is_interval(value) for value in column], dtype=bool)
    if is_range.any():
        others = _numpy_objects(np.where(is_range, np.nan, column), name)
        return cells.with_intervals(others, column, is_range)
    if is_text or cells.is_mixed(known):
        place = {label: code for code, label in enumerate(dict.fromkeys(known))}
        codes = np.array([-1 if gone else place[v] for v, gone in zip(column, missing, strict=True)])
        return cells.coded(f"object[{'str' if is_text else 'mixed'}{nan}]", codes, list(place))
    if all(isinstance(value, dt.time) for value in known):
        return cells.numbers(
            "number",
            f"object[time{nan}]",
            np.array([times.span_of(np.nan if gone else v) for v, gone in zip(column, missing, strict=True)]),
        )
    for types, sort, described in (
        ((bool, np.bool_), "boolean", "bool"),
        ((int, np.integer), "integer", "int"),
        ((int, float, np.integer, np.floating), "number", "float"),
    ):
        if all(isinstance(v, types) and (sort == "boolean" or not isinstance(v, bool)) for v in known):
            return cells.numbers(sort, f"object[{described}{nan}]", cells.floats(column, missing))
    kinds = Counter(type(v).__name__ for v in known)
    shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(4))
    lone = next(iter(kinds)).lower() if len(kinds) == 1 else ""
    hint = "use array.astype('datetime64[us]'), or pandas.DataFrame(array)" if lone in ("datetime", "date") else ""
    hint = hint or cells.hint_for(lone, "make all its values text or all numbers")
    raise cells.unsupported(name, f"a column of objects that holds {shown}", hint)


def build(schema: Schema, X: np.ndarray) -> np.ndarray:
    """Array (n, d) of the type that came in; integers with missing cells become float64, booleans objects."""
    columns = schema.columns
    dtypes = {column.dtype for column in columns}
    first = columns[0].dtype
    if any(column.dtype.startswith(("object", "<U", "StringDType")) for column in columns):
        out = np.empty(X.shape, dtype=object)
        for j, column in enumerate(columns):
            out[:, j] = cells.objects(column, X[:, j], np.nan if column.dtype.endswith("|nan]") else None)
        missing = np.isnan(X).any()
        return out.astype(str) if dtypes == {"<U"} and not missing else out
    if first.startswith("datetime64"):
        return np.column_stack([cells.stamps(c, X[:, j]) for j, c in enumerate(columns)]).astype(first)
    if first.startswith("timedelta64"):
        per_second = float(np.timedelta64(1, "s") / np.ones((), first))
        return np.column_stack([cells.spans(c, X[:, j], per_second) for j, c in enumerate(columns)]).view(first)
    missing = np.isnan(X).any()
    if first == "bool" and missing:
        return np.column_stack([cells.objects(c, X[:, j], None) for j, c in enumerate(columns)])
    values = np.column_stack([cells.values(c, X[:, j])[0] for j, c in enumerate(columns)])
    return values if missing and not first.startswith("float") else cells.cast(values, np.dtype(first))
