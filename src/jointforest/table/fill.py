"""An imputed table in which every known cell is what it was."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from .cells import absent
from .frames import decode, encode
from .schema import Column, Schema
from .times import unit_of


def fill(schema: Schema, frame: Any, X: np.ndarray, unseen: np.ndarray, filled: np.ndarray) -> Any:
    """Frame of the kind at learning, from imputed numbers and codes, with the known cells of the frame given.

    Cells that the schema's types cannot hold (a level never seen, a number off the grid) come back too: their column
    then has a wider type, such as float instead of int, or text instead of a category. So do cells that float64 cannot
    hold (whole numbers beyond 2**53, decimals, nanoseconds), from a frame of the library and type at learning.

    Parameters
    ----------
    schema : Schema
    frame : frame, of any kind
        n rows; some cells missing.
    X : float64 array (n, d)
    unseen : bool array (n, d)
        As `frames.encode` gives them for the frame.
    filled : float64 array (n, d)
        X with its missing cells filled in.
    """
    out = decode(schema, filled)
    changed = (~np.isnan(X) & (encode(schema, out)[0] != X)) | unseen
    columns = np.flatnonzero(changed.any(axis=0)).tolist()
    if isinstance(out, np.ndarray):
        for j in columns:
            known = out[:, schema.places[j]].tolist()
            cells = _restored(schema.columns[j], _cells(frame, schema, j), X[:, j], changed[:, j], known)
            out = _with_cells(out, int(schema.places[j]), cells)
        for place, _ in schema.unknown if isinstance(frame, np.ndarray) else ():
            out = _with_cells(out, place, frame[:, place].tolist())
        if isinstance(frame, np.ndarray) and frame.dtype == out.dtype:
            for j in _past_floats(schema, X):
                known, place = ~np.isnan(X[:, j]), schema.places[j]
                out[known, place] = frame[known, place]
        return out
    labels = [column.label for column in schema.whole.columns]
    if nw.dependencies.is_pandas_dataframe(out):  # narwhals has text for names
        out.columns = list(schema.whole.names)
    if nw.dependencies.is_pandas_dataframe(frame):
        frame = frame.rename(columns=str)
    wide = nw.from_native(out, eager_only=True)
    wide, same = _as_given(wide, frame, [schema.names[j] for j in _past_floats(schema, X)])
    for j in columns:
        column = schema.columns[j]
        if column.name in same:
            continue
        cells = _restored(column, _cells(frame, schema, j), X[:, j], changed[:, j], wide[column.name].to_list())
        wide = wide.with_columns(nw.new_series(column.name, cells, backend=wide.implementation))
    for name, cells in _unasked(schema, frame).items():
        wide = wide.with_columns(nw.new_series(name, cells, backend=wide.implementation))
    out = wide.to_native()
    if nw.dependencies.is_pandas_dataframe(out):
        out.columns = labels
        if nw.dependencies.is_pandas_dataframe(frame):
            out.index = frame.index
    return out


def _past_floats(schema: Schema, X: np.ndarray) -> list[int]:
    """Columns with known cells that float64 may not hold."""
    finer = [
        "decimal" in column.dtype.lower() or (column.kind == "datetime" and unit_of(column.dtype) == "ns")
        for column in schema.columns
    ]
    whole = np.array([not column.is_categorical and column.kind != "datetime" for column in schema.columns])
    large = (np.abs(X) >= 2.0**53).any(axis=0) & whole
    return np.flatnonzero((np.array(finer) & ~np.isnan(X).all(axis=0)) | large).tolist()


def _as_given(wide: nw.DataFrame, frame: Any, names: list[str]) -> tuple[nw.DataFrame, list[str]]:
    """The table with the known cells of some columns as the frame has them, and those that it has in the same type."""
    given = nw.maybe_reset_index(nw.from_native(frame, eager_only=True)) if names else wide
    if given.implementation is not wide.implementation:
        return wide, []
    same = [name for name in names if name in given.columns and given[name].dtype == wide[name].dtype]
    for name in same:
        kept = given[name].zip_with(~given[name].is_null(), wide[name])
        if wide.implementation.is_pandas():  # a type with a sign for missing cells, and one without
            kept = nw.from_native(kept.to_native().astype(wide[name].to_native().dtype), series_only=True)
        wide = wide.with_columns(kept.alias(name))
    return wide, same


def _cells(frame: Any, schema: Schema, j: int) -> list[Any]:
    """Cells of the column of a frame that is column j of the schema."""
    if isinstance(frame, np.ndarray):
        return list(frame[:, schema.places[j]].tolist())
    return list(nw.from_native(frame, eager_only=True)[schema.names[j]].to_list())


def _unasked(schema: Schema, frame: Any) -> dict[str, list[Any]]:
    """Columns with known cells of which nothing was known at learning."""
    if isinstance(frame, np.ndarray):
        return {}
    given = nw.from_native(frame, eager_only=True)
    found = {column.name: given[column.name].to_list() for _, column in schema.unknown if column.name in given.columns}
    return {name: cells for name, cells in found.items() if not all(map(absent, cells))}


def _restored(column: Column, known: list[Any], x: np.ndarray, changed: np.ndarray, cells: list[Any]) -> list[Any]:
    """The column's cells, those that changed as they were: known cells, or for numbers x."""
    if not column.is_categorical and column.kind != "datetime":
        numbers = [np.nan if cell is None else float(cell) for cell in cells]
        return list(np.where(changed, x, numbers).tolist())
    return [known[i] if changed[i] else cell for i, cell in enumerate(cells)]


def _with_cells(out: np.ndarray, j: int, cells: list[Any]) -> np.ndarray:
    """The array with another column j, its type widened if need be."""
    is_text = any(isinstance(cell, str) for cell in cells)
    wide = out.astype(object if is_text or out.dtype.kind == "O" else np.result_type(out, np.asarray(cells)))
    wide[:, j] = cells
    return wide
