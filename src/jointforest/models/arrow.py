"""Models as Arrow tables, and back: what a `.joint` file holds, for tools that read tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..runtime.parameters import need
from .base import Distribution
from .box_forest.check import LEAF_FIELDS, PIECE_FIELDS, TREE_FIELDS
from .file import checked_about, contents, json_of, model_of

_KEY = b"jointforest"
_COMPONENTS = "components"
_NAMES = {"N": "nodes", "T": "trees", "W": "left_levels", "L": "leaves", "P": "pieces"}
_TABLES = {f"trees.{name}": _NAMES[size] for name, (_, size) in TREE_FIELDS.items()}
_TABLES |= {f"leaves.{name}": _NAMES[shape[0]] for name, (_, shape) in LEAF_FIELDS.items()}
_TABLES |= {f"leaves.pieces.{name}": _NAMES[shape[0]] for name, (_, shape) in PIECE_FIELDS.items()}
"""Table of each array of a forest; any other array is a table of its own name."""


def to_arrow(model: Distribution) -> dict[str, Any]:
    """The arrays of a model as pyarrow tables by name; ``parts`` has one line for each part, and the schema as JSON."""
    import pyarrow as pa

    about, arrays = contents(model)
    text = json.dumps(about, allow_nan=False, separators=(",", ":"))
    kinds = [part["kind"] for part in about["components"]]
    columns: dict[str, dict[str, Any]] = {}
    for name, array in arrays.items():
        part, _, field = name.partition(".")
        if field:
            columns.setdefault(f"{part}.{_TABLES.get(field, field)}", {})[field] = array
    tables = {
        _COMPONENTS: pa.table({"kind": kinds, "log_weight": arrays["log_weight"]}).replace_schema_metadata({_KEY: text})
    }
    for name, fields in columns.items():
        made = [_column(field, array) for field, array in fields.items()]
        tables[name] = pa.Table.from_arrays(
            [column for _, column in made], schema=pa.schema([field for field, _ in made])
        )
    return tables


def from_arrow(tables: Mapping[str, Any]) -> Distribution:
    """The model of tables from `to_arrow`; raises ValueError if a field is not valid."""
    import pyarrow as pa

    if not isinstance(tables, Mapping) or _COMPONENTS not in tables:
        raise ValueError(f"expected a dict of tables, {_COMPONENTS!r} among them, as to_arrow gives it")
    for name, table in tables.items():
        if not isinstance(table, pa.Table):
            raise ValueError(
                f"{name}: expected a pyarrow.Table, got {type(table).__module__.partition('.')[0]}'s "
                f"{type(table).__name__}; frames lose the metadata that a joint needs: keep to_arrow's tables, or "
                "write and read them with pyarrow.parquet or pyarrow.feather"
            )
    text = (tables[_COMPONENTS].schema.metadata or {}).get(_KEY)
    if text is None:
        raise ValueError(f"the table {_COMPONENTS!r} lost its metadata 'jointforest', which hold the schema")
    about = checked_about(json_of(text, "the metadata"), {"format", "library", "components", "schema"})
    arrays = {}
    for name, table in tables.items():
        part = name.partition(".")[0]
        for field in table.schema:
            if name != _COMPONENTS:
                arrays[f"{part}.{field.name}"] = _array(f"{name}: {field.name}", field, table[field.name])
    need("log_weight" in tables[_COMPONENTS].schema.names, f"the table {_COMPONENTS!r} has no column 'log_weight'")
    arrays["log_weight"] = np.array(tables[_COMPONENTS]["log_weight"].to_numpy(), np.float64)
    return model_of(about, arrays)


def _column(name: str, array: np.ndarray) -> tuple[Any, Any]:
    """Field and column of an array (n,) or (n, w); its type is in the field's metadata, as lists of none have none."""
    import pyarrow as pa

    if array.ndim == 1:
        column = pa.array(array)
    elif array.shape[1]:
        column = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(array).ravel()), array.shape[1])
    else:
        column = pa.nulls(len(array))
    return pa.field(name, column.type, metadata={b"dtype": array.dtype.str.encode()}), column


def _array(name: str, field: Any, column: Any) -> np.ndarray:
    """The array of a column, of the type that its field names."""
    import pyarrow as pa

    dtype = (field.metadata or {}).get(b"dtype", b"").decode(errors="replace")
    need(dtype in ("<i4", "<i8", "|u1", "<u8", "<f4", "<f8"), f"{name}: no array of a model has the type {dtype!r}")
    if pa.types.is_null(field.type):
        return np.empty((len(column), 0), dtype)
    need(not column.null_count, f"{name}: has missing values")
    width = None
    if pa.types.is_fixed_size_list(field.type):
        width = field.type.list_size
        column = column.combine_chunks()
        column = (
            column.flatten() if isinstance(column, pa.Array) else pa.chunked_array([c.flatten() for c in column.chunks])
        )
        need(not column.null_count, f"{name}: has missing values")
    array = np.array(column.to_numpy(), copy=True)
    need(array.dtype == np.dtype(dtype), f"{name}: expected the type {dtype!r}, got {array.dtype.str!r}")
    return array if width is None else array.reshape(-1, width)
