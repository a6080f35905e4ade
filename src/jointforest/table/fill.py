"""An imputed table in which every known cell is what it was."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from .frames import decode, encode
from .schema import Column, Schema


def fill(schema: Schema, frame: Any, X: np.ndarray, unseen: np.ndarray, filled: np.ndarray) -> Any:
    """Frame of the kind at learning, from imputed numbers and codes, with the known cells of the frame given.

    Cells that the schema's types cannot hold (a level never seen, a number off the grid) come back too: their column
    then has a wider type, such as float instead of int, or text instead of a category.

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
            out = _with_cells(out, j, _restored(schema.columns[j], frame, j, X, changed[:, j], out[:, j].tolist()))
        return out
    numbered = any(column.has_number_name for column in schema.columns)
    if len(columns):
        if numbered:  # narwhals has text for names
            out.columns = list(schema.names)
        if nw.dependencies.is_pandas_dataframe(frame):
            frame = frame.rename(columns=str)
        wide = nw.from_native(out, eager_only=True)
        for j in columns:
            name = schema.names[j]
            cells = _restored(schema.columns[j], frame, j, X, changed[:, j], wide[name].to_list())
            wide = wide.with_columns(nw.new_series(name, cells, backend=wide.implementation))
        out = wide.to_native()
        if numbered:
            out.columns = [column.label for column in schema.columns]
    if nw.dependencies.is_pandas_dataframe(out) and nw.dependencies.is_pandas_dataframe(frame):
        out.index = frame.index
    return out


def _restored(column: Column, frame: Any, j: int, X: np.ndarray, changed: np.ndarray, cells: list[Any]) -> list[Any]:
    """The column's cells, those that changed as they were."""
    if not column.is_categorical and column.kind != "datetime":
        numbers = [np.nan if cell is None else float(cell) for cell in cells]
        return list(np.where(changed, X[:, j], numbers).tolist())
    if isinstance(frame, np.ndarray):
        known = frame[:, j].tolist()
    else:
        known = nw.from_native(frame, eager_only=True)[column.name].to_list()
    return [known[i] if changed[i] else cell for i, cell in enumerate(cells)]


def _with_cells(out: np.ndarray, j: int, cells: list[Any]) -> np.ndarray:
    """The array with another column j, its type widened if need be."""
    is_text = any(isinstance(cell, str) for cell in cells)
    wide = out.astype(object if is_text or out.dtype.kind == "O" else np.result_type(out, np.asarray(cells)))
    wide[:, j] = cells
    return wide
