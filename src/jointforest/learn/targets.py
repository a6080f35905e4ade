"""A table of features and one more column, the target: schema and numbers of both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from ..leaves.fit import Table, prepare
from ..table.cells import read
from ..table.columns import Columns
from ..table.frames import encode
from ..table.infer import infer_schema
from ..table.schema import Schema, kernel_columns
from ..trees.ranks import snap
from .checks import check_cells


class Training(NamedTuple):
    """Features and target, encoded.

    Attributes
    ----------
    schema : Schema
        The features' columns, then the target's.
    columns : Columns
    X : float64 array (n, d + 1)
        Cells and level codes, grid columns snapped; the target is the last column. NaN where missing.
    table : Table
        The same, ready for leaf densities.
    """

    schema: Schema
    columns: Columns
    X: np.ndarray
    table: Table


def read_training(X: Any, y: Any, kind: str, kinds: dict[str, str] | None) -> Training:
    """Schema and numbers of a frame X (n, d) and a target y (n,) of this kind ("categorical" or "continuous").

    The target is named as y is, or "y"; it may not have the name of a feature.

    Raises
    ------
    ValueError
        If lengths differ, y has missing cells, or a column cannot be used.
    """
    kinds = dict(kinds or {})
    name = target_name(y)
    cells = target_cells(y)
    table = read(X)
    if len(cells) != table.n:
        raise ValueError(f"X has {table.n} rows and y has {len(cells)} entries; expected as many of both")
    while name in table.names:
        name += "_"
    features = infer_schema(X, {k: v for k, v in kinds.items() if k != name})
    frame = _column_like(X, name, cells)
    column = infer_schema(frame, {"x0" if isinstance(frame, np.ndarray) else name: kinds.get(name, kind)})
    both = np.column_stack([encode(features, X)[0], encode(column, frame)[0]])
    schema = Schema((*features.columns, replace(column.columns[0], name=name)), features.frame)
    check_cells(schema.names, both)
    columns = kernel_columns(schema)
    cells = snap(columns, both)
    return Training(schema, columns, cells, prepare(columns, cells))


def _column_like(X: Any, name: str, cells: np.ndarray) -> Any:
    """A frame of this one column, of the library of X."""
    if isinstance(X, np.ndarray):
        return cells[:, None]
    backend = nw.from_native(X, eager_only=True).implementation
    return nw.new_series(name, cells.tolist(), backend=backend).to_frame().to_native()


def target_name(y: Any) -> str:
    """Name of a pandas, polars or pyarrow series; "y" if it has none."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else "y"


def target_cells(y: Any) -> np.ndarray:
    """Entries of a target as an array (n,).

    Raises
    ------
    ValueError
        If it is not one column, or an entry is missing.
    """
    if not isinstance(y, np.ndarray) and nw.dependencies.is_into_series(y):
        cells = np.asarray(nw.from_native(y, series_only=True).to_list(), dtype=object)
        plain = np.asarray(y)
        cells = plain if plain.dtype.kind in "biufU" else cells
    else:
        cells = np.asarray(y)
    if cells.ndim == 2 and cells.shape[1] == 1:
        cells = cells[:, 0]
    if cells.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {cells.shape} instead")
    absent = cells == None if cells.dtype == object else np.zeros(len(cells), dtype=bool)  # noqa: E711
    if cells.dtype.kind == "f" or cells.dtype == object:
        absent = absent | (cells != cells)
    if absent.any():
        raise ValueError(
            f"Input y contains NaN: {int(absent.sum())} of {len(cells)} targets are missing; leave those rows out"
        )
    return cells


def check_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Row weights as float64 (n,), 1 each by default.

    Raises
    ------
    ValueError
        If there is not one a row, one is negative or not finite, or all are 0.
    """
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight: expected shape ({n},), one weight a row, got {weight.shape}")
    wrong = weight[~(weight >= 0) | np.isinf(weight)]
    if len(wrong):
        raise ValueError(f"sample_weight: expected finite weights of at least 0, got {wrong[0]}")
    if not weight.any():
        raise ValueError("sample_weight: all weights are 0; at least one row must count")
    return weight
