"""polars frames read into arrays and rebuilt. Imported only when a polars frame is at hand."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from .. import cells
from ..cells import ColumnCells, FrameReader, coded, empty_cells, numbers, ticks, unsupported
from ..schema import Column, Schema
from ..times import PER_SECOND, is_span, unit_of, zone_of


def read(frame: pl.DataFrame) -> FrameReader:
    """Take a frame apart."""
    return FrameReader("polars", list(frame.columns), frame.height, lambda name: _polars_cells(frame[name], name))


def _polars_cells(series: pl.Series, name: str) -> ColumnCells:
    dtype = series.dtype
    if dtype == pl.Null:
        return empty_cells("Null", len(series))
    if isinstance(dtype, pl.Enum):
        codes = series.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        return coded("Enum", codes, dtype.categories.to_list(), True, True)
    if dtype == pl.String or dtype == pl.Categorical:
        series = series.cast(pl.String)
        labels = series.drop_nulls().unique(maintain_order=True)
        codes = series.cast(pl.Enum(labels)).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        return coded("String" if dtype == pl.String else "Categorical", codes, labels.to_list())
    if dtype == pl.Boolean:
        return numbers("boolean", "Boolean", _floats(series))
    if dtype.is_integer():
        return numbers("integer", str(dtype), _floats(series))
    if dtype.is_float():
        return numbers("number", str(dtype), _floats(series))
    if isinstance(dtype, pl.Decimal):
        precision = dtype.precision or 38  # None, in older releases, is the most there is
        return numbers("number", f"Decimal({precision}, {dtype.scale})", np.round(_floats(series), dtype.scale))
    missing = series.is_null().to_numpy()
    if dtype == pl.Date:
        return ticks("date", series.to_physical().cast(pl.Int64).fill_null(0).to_numpy(), missing, 1 / 86400)
    if isinstance(dtype, pl.Datetime):
        described = f"datetime[{dtype.time_unit}{f', {dtype.time_zone}' if dtype.time_zone else ''}]"
        return ticks(described, series.to_physical().fill_null(0).to_numpy(), missing, PER_SECOND[dtype.time_unit])
    if isinstance(dtype, pl.Duration):
        return numbers(
            "number", f"duration[{dtype.time_unit}]", _floats(series.to_physical()) / PER_SECOND[dtype.time_unit]
        )
    if dtype == pl.Time:
        return numbers("number", "time", _floats(series.to_physical()) / 1e9)
    raise unsupported(name, str(dtype), "turn it into numbers or text")


def _floats(series: pl.Series) -> np.ndarray:
    return series.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def build(schema: Schema, X: np.ndarray) -> pl.DataFrame:
    """Frame with the schema's columns from numbers and codes (n, d)."""
    return pl.DataFrame([_series(column, X[:, j]).alias(column.name) for j, column in enumerate(schema.columns)])


def _series(column: Column, x: np.ndarray) -> pl.Series:
    dtype = column.dtype
    if dtype == "Null":
        return pl.Series([None] * len(x), dtype=pl.Null)
    if dtype in ("String", "Categorical", "Enum"):
        levels = pl.Series(list(column.levels), dtype=pl.String)
        codes = cells.codes(x)
        index = _masked(np.maximum(codes, 0), codes < 0)
        kinds = {"Enum": pl.Enum(levels), "Categorical": pl.Categorical()}
        return levels.cast(kinds.get(dtype, pl.String())).gather(index)
    if column.kind == "datetime":
        stamps = cells.stamps(column, x)
        missing = np.isnat(stamps)
        moments = _masked(np.where(missing, 0, stamps.view(np.int64)), missing)
        if dtype == "date":
            return moments.cast(pl.Datetime("us")).cast(pl.Date)
        naive = moments.cast(pl.Datetime(unit_of(dtype)))  # type: ignore[arg-type] # ns, us and ms are what polars has
        zone = zone_of(dtype)
        return naive if zone is None else naive.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    if is_span(dtype):
        unit = "ns" if dtype == "time" else unit_of(dtype)
        missing = np.isnan(x)
        whole = _masked(np.where(missing, 0, cells.spans(column, x, PER_SECOND[unit])), missing)
        return whole.cast(pl.Time if dtype == "time" else pl.Duration(unit))  # type: ignore[arg-type] # as above
    values, missing = cells.values(column, x)
    decimal = re.fullmatch(r"Decimal\((\d+), (\d+)\)", dtype)
    if decimal:
        precision, scale = int(decimal.group(1)), int(decimal.group(2))
        limit = 10.0 ** min(precision - scale, 15) - 10.0**-scale
        return _masked(np.clip(values, -limit, limit), missing).cast(pl.Decimal(precision, scale))
    if dtype == "Boolean":
        return _masked(np.nan_to_num(values) != 0, missing)
    kind = getattr(pl, dtype, None) if re.fullmatch(r"(U?Int|Float)\d+", dtype) else None
    if kind is None:
        raise ValueError(f"column {column.name!r}: unknown dtype {dtype!r} of a polars frame")
    if dtype.startswith("Float"):
        return _masked(values, missing).cast(kind)
    if dtype.endswith("128"):
        return _masked(np.where(missing, 0.0, np.rint(values)), missing).cast(kind)
    return _masked(cells.cast(np.where(missing, 0.0, values), np.dtype(dtype.lower())), missing)


def _masked(values: np.ndarray, missing: np.ndarray) -> pl.Series:
    series = pl.Series(values)
    return series.set(pl.Series(missing), None) if missing.any() else series
