"""Arrow tables read into arrays and rebuilt. Imported only when Arrow data are at hand."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import cells
from ..cells import ColumnCells, FrameReader, check_names, coded, empty_cells, numbers, ticks, unsupported
from ..schema import Column, Schema
from ..times import PER_SECOND, is_span, unit_of, zone_of


def read(table: pa.Table) -> FrameReader:
    """Take a table apart."""
    names = check_names(table.column_names, "rename the columns")
    return FrameReader(
        "pyarrow", names, table.num_rows, lambda name: arrow_cells(table[name], name, str(table[name].type))
    )


def chunked(array: Any) -> pa.ChunkedArray:
    """An array-like that holds Arrow data as a chunked array."""
    data = pa.array(array)
    return data if isinstance(data, pa.ChunkedArray) else pa.chunked_array([data])


def arrow_cells(data: pa.ChunkedArray, name: str, dtype: str) -> ColumnCells:
    """Cells of one Arrow column."""
    kind = data.type
    if pa.types.is_null(kind):
        return empty_cells(dtype, len(data))
    if pa.types.is_string_view(kind):
        data, kind = data.cast(pa.string()), pa.string()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        data, kind = data.dictionary_encode(), None
    if kind is None or pa.types.is_dictionary(kind):
        joined = data.unify_dictionaries().combine_chunks()
        joined = joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
        codes = pc.fill_null(joined.indices.cast(pa.int32()), -1).to_numpy(zero_copy_only=False)
        labels = joined.dictionary.to_pylist() if kind is not None else joined.dictionary.to_numpy(False).tolist()
        return coded(dtype, codes, labels, kind is not None, kind is not None and kind.ordered)
    if pa.types.is_boolean(kind):
        return numbers("boolean", dtype, _arrow_floats(data.cast(pa.uint8())))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return numbers("integer" if pa.types.is_integer(kind) else "number", dtype, _arrow_floats(data))
    if pa.types.is_date32(kind):
        return _arrow_ticks(data.cast(pa.int32()), dtype, 1 / 86400)
    if pa.types.is_date64(kind):
        return _arrow_ticks(data, dtype, 1000)
    if pa.types.is_timestamp(kind):
        return _arrow_ticks(data, dtype, PER_SECOND[kind.unit])
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        whole = data.cast(pa.int32()) if pa.types.is_time32(kind) else data.cast(pa.int64())
        return numbers("number", dtype, _arrow_floats(whole) / PER_SECOND[kind.unit])
    raise unsupported(name, str(kind), "turn it into numbers, text or a dictionary")


def _arrow_floats(data: pa.ChunkedArray) -> np.ndarray:
    values = np.asarray(pc.cast(data, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    # the cast from decimals does not always give the nearest float
    return np.round(values, data.type.scale) if pa.types.is_decimal(data.type) and data.type.scale < 16 else values


def _arrow_ticks(data: pa.ChunkedArray, dtype: str, per_second: float) -> ColumnCells:
    missing = pc.is_null(data).to_numpy()
    return ticks(dtype, pc.fill_null(data.cast(pa.int64()), 0).to_numpy(), missing, per_second)


def build(schema: Schema, X: np.ndarray) -> pa.Table:
    """Table with the schema's columns from numbers and codes (n, d)."""
    arrays = [array(column, X[:, j], column.dtype) for j, column in enumerate(schema.columns)]
    return pa.Table.from_arrays(arrays, names=list(schema.names))


def array(column: Column, x: np.ndarray, dtype: str) -> pa.Array:
    """One column as an Arrow array of a type."""
    kind = arrow_type(dtype)
    if pa.types.is_null(kind):
        return pa.nulls(len(x))
    if column.kind == "datetime":
        return _stamped(column, x, kind)
    if is_span(dtype):
        ticks = cells.spans(column, x, PER_SECOND[kind.unit])
        missing = np.isnan(x)
        whole = pa.array(np.where(missing, 0, ticks), mask=missing)
        return (whole.cast(pa.int32()) if pa.types.is_time32(kind) else whole).cast(kind)
    labels = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(labels) or pa.types.is_large_string(labels) or pa.types.is_string_view(labels):
        return _labelled(column, x, kind, labels)
    if pa.types.is_dictionary(kind) and column.is_categorical:
        return _labelled(column, x, kind, labels)
    values, missing = cells.values(column, x)
    if pa.types.is_decimal(labels):
        # a decimal type has room for so many digits only
        limit = 10.0 ** min(labels.precision - labels.scale, 15) - 10.0**-labels.scale
        return pa.array(np.clip(values, -limit, limit), mask=missing).cast(labels)
    plain = cells.cast(np.where(missing, 0.0, values), np.dtype(labels.to_pandas_dtype()))
    return pa.array(plain, type=labels, mask=missing)


def _labelled(column: Column, x: np.ndarray, kind: pa.DataType, labels: pa.DataType) -> pa.Array:
    levels = pa.array(list(column.levels), type=labels)
    codes = cells.codes(x)
    index = kind.index_type if pa.types.is_dictionary(kind) else pa.int32()
    indices = pa.array(np.maximum(codes, 0), mask=codes < 0).cast(index)
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(indices, levels, ordered=kind.ordered)
    if pa.types.is_string_view(labels):
        return levels.cast(pa.string()).take(indices).cast(labels)
    return levels.take(indices)


def _stamped(column: Column, x: np.ndarray, kind: pa.DataType) -> pa.Array:
    stamps = cells.stamps(column, x)
    missing = np.isnat(stamps)
    if pa.types.is_date(kind):
        days = stamps.astype("datetime64[D]").view(np.int64)
        milliseconds = np.where(missing, 0, days) * 86_400_000
        return pa.array(milliseconds, mask=missing).cast(pa.date64()).cast(kind)
    return pa.array(np.where(missing, 0, stamps.view(np.int64)), mask=missing).cast(kind)


def arrow_type(name: str) -> pa.DataType:
    """Arrow type of its written form, such as ``timestamp[us, tz=UTC]``."""
    dictionary = re.fullmatch(r"dictionary<values=(.+), indices=(u?int\d+), ordered=([01])>", name)
    if dictionary:
        values, indices, ordered = dictionary.groups()
        return pa.dictionary(arrow_type(indices), arrow_type(values), ordered == "1")
    decimal = re.fullmatch(r"decimal(32|64|128|256)\((\d+), (-?\d+)\)", name)
    if decimal:
        bits, precision, scale = (int(part) for part in decimal.groups())
        return getattr(pa, f"decimal{bits}")(precision, scale)
    if name.startswith("duration["):
        return pa.duration(unit_of(name))
    if name.startswith("timestamp["):
        return pa.timestamp(unit_of(name), zone_of(name))
    return pa.type_for_alias(name)
