"""pandas frames read into arrays and rebuilt. Imported only when a pandas frame is at hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from .. import cells, times
from ..schema import Column, Schema, is_number_name
from ..times import PER_SECOND, is_date, unit_of
from . import arrow as _arrow


def read(frame: pd.DataFrame) -> cells.FrameReader:
    """Take a frame apart; its index is ignored."""
    labels = [str(label) if is_number_name(label) else label for label in frame.columns]
    names = cells.check_names(labels, "use df.columns = df.columns.map(str)")
    label_of = dict(zip(names, frame.columns, strict=True))
    numbered = frozenset(name for name in names if not isinstance(label_of[name], str))
    return cells.FrameReader("pandas", names, len(frame), lambda name: _read_as(frame[label_of[name]], name), numbered)


def _read_as(series: pd.Series, name: str) -> cells.ColumnCells:
    dtype = series.dtype
    text = str(dtype)
    if isinstance(dtype, pd.CategoricalDtype):
        labels, inner = list(dtype.categories), str(dtype.categories.dtype)
        if isinstance(dtype.categories.dtype, pd.IntervalDtype):  # of pandas.cut: levels are their text, in their order
            labels = [str(label) for label in labels]
        described = f"category[{inner}{', ordered' if dtype.ordered else ''}]"
        return cells.coded(described, series.cat.codes.to_numpy(), labels, True, bool(dtype.ordered))
    if isinstance(dtype, pd.ArrowDtype):
        return _arrow.arrow_cells(_arrow.chunked(series.array), name, f"{dtype.pyarrow_dtype}[pyarrow]")
    if isinstance(dtype, pd.StringDtype):
        codes, labels = pd.factorize(series)
        missing_is_nan = getattr(dtype, "na_value", pd.NA) is not pd.NA
        return cells.coded(f"{'str' if missing_is_nan else 'string'}:{dtype.storage}", codes, list(labels))
    if isinstance(dtype, pd.SparseDtype):
        raise cells.unsupported(name, text, "use series.sparse.to_dense()")
    if isinstance(dtype, pd.PeriodDtype):
        stamps = series.dt.start_time.to_numpy(dtype="datetime64[us]")
        return cells.ticks(text, stamps.view(np.int64), np.isnat(stamps), PER_SECOND["us"])
    if dtype.kind == "m":
        return cells.numbers("number", text, series.to_numpy() / np.timedelta64(1, "s"))
    if isinstance(dtype, pd.IntervalDtype) and dtype.subtype.kind in "iufM":
        nothing = cells.empty_cells("float64", len(series))
        return cells.with_intervals(nothing, series.to_numpy(dtype=object), series.notna().to_numpy())
    if isinstance(dtype, pd.IntervalDtype) or dtype.kind in "cV":
        kind = text.partition("[")[0].rstrip("0123456789")
        raise cells.unsupported(name, text, cells.hint_for(kind, "turn it into numbers, or into text (astype(str))"))
    if dtype.kind == "M":
        unit = np.datetime_data(dtype)[0] if isinstance(dtype, np.dtype) else dtype.unit
        stamps = series.to_numpy(dtype=f"datetime64[{unit}]")
        return cells.ticks(text, stamps.view(np.int64), np.isnat(stamps), PER_SECOND[unit])
    if dtype.kind in "iufb":
        sort = {"b": "boolean", "f": "number"}.get(dtype.kind, "integer")
        if isinstance(dtype, np.dtype):
            return cells.numbers(sort, text, series.to_numpy().astype(np.float64))
        return cells.numbers(sort, text, series.to_numpy(dtype=np.float64, na_value=np.nan))
    if dtype.kind == "O":
        return _objects(series, name)
    raise cells.unsupported(name, text, "turn it into numbers, text or a category")


def _objects(series: pd.Series, name: str) -> cells.ColumnCells:
    inferred = pd.api.types.infer_dtype(series, skipna=True)
    missing = series.isna().to_numpy()
    # the first missing cell shows whether the column writes None or NaN
    nan = "" if not missing.any() or series.iloc[int(missing.argmax())] is None else "|nan"
    if missing.all():
        return cells.empty_cells(f"object[str{nan}]", len(series))
    if inferred == "string":
        codes, labels = pd.factorize(series)
        return cells.coded(f"object[str{nan}]", codes, list(labels))
    sorts = {
        "boolean": ("boolean", "bool"),
        "integer": ("integer", "int"),
        "floating": ("number", "float"),
        "mixed-integer-float": ("number", "float"),
        "decimal": ("number", "decimal"),
    }
    if inferred in sorts:
        sort, described = sorts[inferred]
        described += _most_decimals(series[~missing]) if inferred == "decimal" else ""
        return cells.numbers(sort, f"object[{described}{nan}]", cells.floats(series.to_numpy(), missing))
    if inferred == "date":
        days = series.where(~missing, None).to_numpy().astype("datetime64[D]")
        return cells.ticks("object[date]", days.view(np.int64), missing, 1 / 86400)
    if inferred.startswith("datetime"):
        return _datetimes(series, name)
    if inferred in ("timedelta", "period"):  # that is how they come back
        return _read_as(pd.to_timedelta(series) if inferred == "timedelta" else pd.Series(pd.PeriodIndex(series)), name)
    if inferred == "time":
        return cells.numbers(
            "number", f"object[time{nan}]", np.array([times.span_of(cell) for cell in series.where(~missing, np.nan)])
        )
    is_range = np.array([cells.is_interval(value) for value in series], dtype=bool)
    if is_range.any():
        return cells.with_intervals(_objects(series.mask(is_range), name), series.to_numpy(), is_range)
    if cells.is_mixed(series[~missing]):
        codes, labels = pd.factorize(series)
        return cells.coded(f"object[mixed{nan}]", codes, list(labels))
    kinds = Counter(type(value).__name__ for value in series[~missing])
    shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(4))
    hint = cells.hint_for(
        next(iter(kinds)).lower() if len(kinds) == 1 else "", "make all its values text or all numbers"
    )
    raise cells.unsupported(name, f"an object column that holds {shown}", hint)


def _most_decimals(decimals: pd.Series) -> str:
    """The most decimals of some decimal numbers, in brackets; empty if a float does not hold so many."""
    exponents = [cell.as_tuple().exponent for cell in decimals]
    most = max(-exponent if isinstance(exponent, int) else 0 for exponent in exponents)
    return f"({max(most, 0)})" if most <= 15 else ""


def _datetimes(series: pd.Series, name: str) -> cells.ColumnCells:
    """Cells of objects that are datetimes, as those of a column of datetimes: that is how they come back."""
    try:
        moments = pd.to_datetime(series)
    except (ValueError, TypeError):
        raise cells.unsupported(
            name, "an object column of datetimes with several time zones, or with none", cells.hint_for("datetime", "")
        ) from None
    if moments.dtype.kind != "M":
        raise cells.unsupported(
            name, "an object column of datetimes with several time zones", cells.hint_for("datetime", "")
        )
    return _read_as(moments, name)


def build(schema: Schema, X: np.ndarray) -> pd.DataFrame:
    """Frame with the schema's columns from numbers and codes (n, d)."""
    data = {column.label: _pandas_array(column, X[:, j]) for j, column in enumerate(schema.columns)}
    return pd.DataFrame(data, index=pd.RangeIndex(len(X)), copy=False)


def _pandas_array(column: Column, x: np.ndarray) -> Any:
    dtype = column.dtype
    if dtype.endswith("[pyarrow]"):
        arrow = _arrow.array(column, x, dtype.removesuffix("[pyarrow]"))
        return pd.arrays.ArrowExtensionArray(arrow)
    if dtype.startswith("category["):
        is_ordered = dtype.endswith(", ordered]")
        inner = _index_dtype(dtype[9:-1].removesuffix(", ordered"))
        if isinstance(inner, pd.IntervalDtype):
            categories = pd.IntervalIndex([_pandas_interval(str(level), inner) for level in column.levels], dtype=inner)
        else:
            categories = pd.Index(list(column.levels), dtype=inner)
        kind = pd.CategoricalDtype(categories, is_ordered)
        return pd.Categorical.from_codes(cells.codes(x), dtype=kind, validate=False)
    return _plain_array(column, x, dtype)


def _pandas_interval(text: str, dtype: pd.IntervalDtype) -> pd.Interval:
    """The interval that pandas writes as this text."""
    left, _, right = text[1:-1].partition(", ")
    to_end = {"M": pd.Timestamp, "m": pd.Timedelta}.get(dtype.subtype.kind, dtype.subtype.type)
    try:
        return pd.Interval(to_end(left), to_end(right), closed=dtype.closed)
    except ValueError:
        raise ValueError(f"level {text!r} is no {dtype}; the model file is damaged") from None


def _index_dtype(name: str) -> Any:
    try:
        return pd.api.types.pandas_dtype(name)
    except TypeError:
        raise ValueError(f"unknown dtype {name!r} of categories") from None


def _plain_array(column: Column, x: np.ndarray, dtype: str) -> Any:
    if dtype.startswith(("str:", "string:")) or dtype in ("str", "string"):
        kind, _, storage = dtype.partition(":")
        string = pd.StringDtype(storage or None, na_value=np.nan) if kind == "str" else pd.StringDtype(storage or None)
        return pd.array(list(column.levels), dtype=string).take(cells.codes(x), allow_fill=True)
    if dtype.startswith("object"):
        return pd.Series(cells.objects(column, x, np.nan if dtype.endswith("|nan]") else None), dtype=object)
    if dtype.startswith("timedelta64"):
        return cells.spans(column, x, PER_SECOND[unit_of(dtype)]).view(dtype)
    if column.kind == "datetime":
        stamps = cells.stamps(column, x)
        kind = _index_dtype(dtype)
        if isinstance(kind, pd.PeriodDtype):
            return pd.PeriodIndex(stamps, freq=kind.freq)
        if isinstance(kind, pd.DatetimeTZDtype):
            return pd.DatetimeIndex(stamps).tz_localize("UTC").tz_convert(kind.tz).as_unit(kind.unit)
        return stamps.astype("datetime64[D]") if is_date(dtype) else stamps
    values, missing = cells.values(column, x)
    kind = _index_dtype(dtype)
    if isinstance(kind, np.dtype):
        if kind.kind in "iu" and missing.any():
            return values  # as pandas does: integers with missing cells are float64
        if kind.kind == "b" and missing.any():
            return pd.Series(cells.objects(column, x, np.nan), dtype=object)
        return cells.cast(values, kind)
    masked = cells.cast(np.where(missing, 0.0, values), kind.numpy_dtype)
    masks = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
    return masks.get(kind.kind, pd.arrays.IntegerArray)(masked, missing)
