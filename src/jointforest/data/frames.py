"""Frames to arrays and back, by a schema: columns by name, in any order, from any library."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from ..runtime.warnings import UnseenLevelWarning, warn
from .cells import ColumnCells, FrameReader, absent, ranges_refused
from .conditions import Interval
from .csv_files import SPREADSHEET_ERRORS, is_number, numbered
from .range_texts import range_text
from .ranges import Ranges, with_flag
from .schema import Column, Schema, is_number_name, near, snapped
from .text_columns import read_cells
from .times import is_span, seconds, span_of, unit_of, zone_of
from .written_forms import WrittenForm

# ---- Which library a frame is of: frames read and rebuilt by its backend, imported only then.


def read(frame: Any) -> FrameReader:
    """The columns of a pandas, polars or pyarrow table, a 2-D numpy array, or another eager frame of narwhals."""
    if isinstance(frame, FrameReader):
        return frame
    frame = with_names(frame)
    if isinstance(frame, np.ndarray):
        from .backends import numpy as _numpy

        return _numpy.read(frame)
    if nw.dependencies.is_pandas_dataframe(frame):
        from .backends import pandas as _pandas

        return _pandas.read(frame)
    if nw.dependencies.is_polars_dataframe(frame):
        from .backends import polars as _polars

        return _polars.read(frame)
    if not nw.dependencies.is_pyarrow_table(frame):
        frame = _through_narwhals(frame)
    from .backends import arrow as _arrow

    return _arrow.read(frame)


def with_names(frame: Any, doubt: bool = True) -> Any:
    """The frame, with numbers behind names that other columns have already: polars alone has no such frames."""
    is_pandas = nw.dependencies.is_pandas_dataframe(frame)
    if not is_pandas and not nw.dependencies.is_pyarrow_table(frame):
        return frame
    names = list(frame.columns) if is_pandas else frame.column_names
    if len(set(names)) == len(names):
        return frame
    if not all(isinstance(name, str) or is_number_name(name) for name in names):
        return frame  # which is refused
    texts = list(map(str, names))
    new = [
        old if text == renamed else renamed
        for old, text, renamed in zip(names, texts, numbered(texts, "", doubt), strict=True)
    ]
    return frame.set_axis(new, axis=1) if is_pandas else frame.rename_columns(new)


def with_column(frame: Any, name: str, column: Any) -> FrameReader:
    """A frame, and behind its columns the single one of another frame, under this name."""
    reader, other = read(frame), read(column)
    return replace(
        reader,
        names=[*reader.names, name],
        cells=lambda one: other.cells(other.names[0]) if one == name else reader.cells(one),
    )


def _build(schema: Schema, X: np.ndarray) -> Any:
    """Frame of the library that the schema came from, of numbers and codes (n, d), best with contiguous columns."""
    if schema.frame == "pandas":
        from .backends import pandas as _pandas

        return _pandas.build(schema, X)
    if schema.frame == "polars":
        from .backends import polars as _polars

        return _polars.build(schema, X)
    if schema.frame in ("pyarrow", "file"):
        from .backends import arrow as _arrow

        table, library = _arrow.build(schema, X), library_of(schema)
        if library == "pandas":
            return table.to_pandas(date_as_object=False)
        return importlib.import_module("polars").from_arrow(table) if library == "polars" else table
    from .backends import numpy as _numpy

    return _numpy.build(schema, X)


def from_cells(columns: Mapping[str, Any], library: str, types: Mapping[str, type]) -> Any:
    """A frame of a library with columns of text, but for those whose type is int or float."""
    # For NumPy an array of objects.
    if library == "numpy":
        return np.array(list(zip(*columns.values(), strict=True)), dtype=object).reshape(-1, len(columns))
    kinds = {int: nw.Int64, float: nw.Float64}
    schema = nw.Schema({name: kinds.get(types.get(name, str), nw.String) for name in columns})
    backend: Any = library
    return nw.from_dict({name: list(cells) for name, cells in columns.items()}, schema, backend=backend).to_native()


def library_of(schema: Schema) -> str:
    """The library of answers: that of the table, or for a table from a file the first of those that are installed."""
    if schema.frame != "file":
        return schema.frame
    return next(name for name in ("pandas", "polars", "pyarrow") if importlib.util.find_spec(name) is not None)


def _through_narwhals(frame: Any) -> Any:
    library = type(frame).__module__.partition(".")[0]
    what = type(frame).__name__ if library == "builtins" else f"{library}.{type(frame).__name__}"
    if nw.dependencies.is_polars_lazyframe(frame):
        raise TypeError("got a polars LazyFrame; call .collect() first")
    try:
        return nw.from_native(frame, eager_only=True).to_arrow()
    except TypeError:
        hint = "a dict or list of rows can be wrapped by pandas.DataFrame(...)"
        if isinstance(frame, str | os.PathLike):
            hint = "read the file first, such as by pandas.read_csv; fit_batches takes files"
        elif nw.dependencies.is_into_series(frame):
            hint = "a series becomes a table of one column by .to_frame(), of one row by .to_frame().T"
        raise TypeError(
            f"expected a pandas, polars or pyarrow table or a 2-D numpy array, got {what}; {hint}"
        ) from None


def encode(schema: Schema, frame: Any, ignored: Collection[str] | None = ()) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and level codes (n, d), NaN where missing, and which cells have a level that learning did not see."""
    # Columns are matched by name (numpy arrays: by position); absent ones count as missing. Extra columns named in
    # ``ignored`` are left out, all of them if it is None. Errors name the column and the value.
    return encode_cells(schema, read(frame), ignored)


def encode_cells(
    schema: Schema, reader: FrameReader, ignored: Collection[str] | None = ()
) -> tuple[np.ndarray, np.ndarray]:
    """`encode` of a frame that is read already."""
    X, unseen, ranges = encode_reader(schema, reader, ignored)
    if ranges is not None:
        refuse_ranges(schema, ranges.number)
    return X, unseen


def ranges_in_words(schema: Schema, ranges: Ranges | None) -> dict[str, str]:
    """Names of the columns with cells that are ranges, and how many of them there are, in words."""
    n_each = np.zeros(len(schema.names), int) if ranges is None else np.count_nonzero(ranges.number >= 0, axis=0)
    return {
        name: "has 1 cell that is a range" if n == 1 else f"has {n:,} cells that are ranges"
        for name, n in zip(schema.names, n_each.tolist(), strict=True)
        if n
    }


def refuse_ranges(schema: Schema, number: np.ndarray) -> None:
    """Raise ValueError if there are cells (n, d) with the number of a range, and not -1."""
    n_each = np.count_nonzero(number >= 0, axis=0)
    if n_each.any():
        j = int(n_each.argmax())
        raise ValueError(ranges_refused(schema.names[j], int(n_each[j]), "which are not taken here"))


def encode_ranges(
    schema: Schema, frame: Any, ignored: Collection[str] | None = ()
) -> tuple[np.ndarray, np.ndarray, Ranges | None]:
    """`encode` of a frame some of whose cells may be ranges, NaN in X; None if there are none."""
    return encode_reader(schema, read(frame), ignored)


def encode_reader(
    schema: Schema, reader: FrameReader, ignored: Collection[str] | None = ()
) -> tuple[np.ndarray, np.ndarray, Ranges | None]:
    """`encode_ranges` of a frame that is read already."""
    X = np.full((reader.n, len(schema.columns)), np.nan)
    unseen = np.zeros(X.shape, dtype=bool)
    number, intervals = None, list[Interval]()
    for j, name in _matched(schema, reader, ignored):
        column = schema.columns[j]
        cells = reader.cells(name)
        if column.written is not None:
            cells = read_cells(column.written, cells, name, column.dtype)
        elif not column.is_categorical and cells.codes is not None and _are_ranges(cells):
            cells = read_cells(WrittenForm("number", cells.dtype), cells, name, column.dtype)
        if column.censored is not None and column.censored.flag in reader.names:
            flag = reader.cells(column.censored.flag)
            if not flag.missing.all():  # drawn rows have no flag
                cells = with_flag(cells, flag, name, column.censored)
        if cells.range_of is not None and (cells.range_of >= 0).any():
            number = np.full(X.shape, -1, np.int32) if number is None else number
            number[:, j] = np.where(cells.range_of >= 0, cells.range_of + len(intervals), -1)
            intervals += cells.intervals
            if column.is_categorical:
                n = int(np.count_nonzero(cells.range_of >= 0))
                raise ValueError(ranges_refused(name, n, f"which a {column.kind} column does not have"))
        if cells.sort == "empty" or cells.missing.all():
            continue
        if column.is_categorical:
            X[:, j], unseen[:, j] = _level_codes(column, cells)
        elif column.kind == "datetime":
            X[:, j] = _column_seconds(column, cells)
        else:
            X[:, j] = _column_values(column, cells)
    return X, unseen, None if number is None else Ranges(number, tuple(intervals))


def _are_ranges(cells: ColumnCells) -> bool:
    """Whether some texts of a column of numbers are ranges."""
    return any(isinstance(label, str) and range_text(label) is not None for label in cells.labels)


def decode(schema: Schema, X: np.ndarray, first_new: int | None = None) -> Any:
    """Frame of the schema's library and types, from X (n, d); grid columns get the nearest cell centre."""
    # Values outside a type's range are clipped. Identifiers of drawn rows are new ones, numbered from ``first_new`` on.
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != len(schema.columns):
        raise ValueError(f"expected an array of shape (n, {len(schema.columns)}), got {X.shape}")
    if first_new == 0:
        _tell_empty(schema)
    if schema.unknown:
        known, X = X, np.full((len(X), len(schema.all_columns.columns)), np.nan)
        X[:, schema.places] = known
    full, X = _with_texts(schema.all_columns, _columnwise(X))
    return _build(*(_with_identifiers(full, X, first_new) if schema.unknown and first_new is not None else (full, X)))


def _tell_empty(schema: Schema) -> None:
    """Warn of columns that drawn rows leave empty though they have cells in the table."""
    empty = [f"{c.name!r} {c.aside.in_words}" for _, c in schema.unknown if c.aside and c.aside.is_left_empty]
    if empty:
        shown = "; ".join(empty[:3]) + (f"; and {len(empty) - 3} more" if len(empty) > 3 else "")
        warn(f"drawn rows have no value in columns that are set aside: {shown}", UserWarning)


def _with_texts(schema: Schema, X: np.ndarray) -> tuple[Schema, np.ndarray]:
    """The columns that write numbers as text as columns of these texts, and codes in place of their numbers."""
    columns = list(schema.columns)
    for j, column in enumerate(columns):
        if column.written is None:
            continue
        if column.written.sort == "tick":
            columns[j] = _of_ticks(column, column.written)
            ticked = 0.0 if column.written.prefix else 1.0
            X[:, j] = np.where(X[:, j] == 1.0, ticked, np.nan)
            continue
        known = ~np.isnan(X[:, j])
        numbers, codes = np.unique(snapped(column, X[known, j]) + column.zero, return_inverse=True)
        place: dict[Any, int] = {}
        code_of = [place.setdefault(column.written.cell(number), len(place)) for number in numbers.tolist()]
        X[known, j] = np.array(code_of, dtype=np.float64)[codes]
        columns[j] = replace(column, kind="categorical", dtype=column.written.dtype, levels=tuple(place) or ("",))
    return replace(schema, columns=tuple(columns)), X


def _of_ticks(column: Column, form: WrittenForm) -> Column:
    """A tick box as the column of its marks, of which there is a text, True or 1."""
    if form.prefix:
        return replace(column, kind="categorical", dtype=form.dtype, levels=(form.prefix,))
    if "bool" in form.dtype.lower():
        return replace(column, dtype=form.dtype)
    return replace(column, kind="integer", dtype=form.dtype, levels=(), step=1.0)


def _with_identifiers(schema: Schema, X: np.ndarray, first: int) -> tuple[Schema, np.ndarray]:
    """New identifiers for drawn rows, of which the first has this number."""
    columns = list(schema.columns)
    for j, column in enumerate(columns):
        if column.aside is None or column.aside.reason != "identifier":
            continue
        if not column.is_categorical:
            X[:, j] = column.aside.first + first + np.arange(len(X))
            continue
        levels = tuple(column.aside.new(first + k) for k in range(len(X)))
        X[:, j] = np.arange(len(X))
        columns[j] = replace(column, levels=levels or ("",))
    return replace(schema, columns=tuple(columns)), X


def _columnwise(X: np.ndarray) -> np.ndarray:
    """A copy with contiguous columns, turned block by block, which the processor's cache likes."""
    out = np.empty(X.shape, order="F")
    for start in range(0, len(X), 4096):
        out[start : start + 4096] = X[start : start + 4096]
    return out


def _matched(schema: Schema, reader: FrameReader, ignored: Collection[str] | None) -> list[tuple[int, str]]:
    """Pairs of a column's number and its name in the frame."""
    if reader.frame == "numpy":
        if len(reader.names) != len(schema.all_columns.columns):
            raise ValueError(
                f"the array has {len(reader.names)} columns, the model {len(schema.all_columns.columns)}; "
                "the columns of an array are matched by position: use NaN for what is not known"
            )
        return [(j, reader.names[place]) for j, place in enumerate(schema.places)]
    known = {column.name for column in schema.all_columns.columns}
    extra = [name for name in reader.names if name not in known and name not in (ignored or ())]
    if extra and ignored is not None:
        shown = ", ".join(f"{name!r} ({near(name, schema.names)})" for name in extra[:3])
        more = f" and {len(extra) - 3} more" if len(extra) > 3 else ""
        raise ValueError(f"columns that the model does not have: {shown}{more}; rename or drop them")
    given = set(reader.names)
    return [(j, name) for j, name in enumerate(schema.names) if name in given]


def _level_codes(column: Column, cells: ColumnCells) -> tuple[np.ndarray, np.ndarray]:
    if cells.codes is None:
        if cells.sort == "datetime":
            raise ValueError(f"column {column.name!r}: expected one of its levels, got dates")
        labels, codes = np.unique(cells.values, return_inverse=True)
        used: list[Any] = labels.tolist()
        if np.isnan(used[-1]):
            codes[cells.missing], used = -1, used[:-1]
    else:
        codes, used = cells.codes, list(cells.labels)
    _same_sort(column, used, codes)
    place = np.array([column.code(label) for label in used] + [None], dtype=np.float64)
    is_gone = np.array([label in SPREADSHEET_ERRORS and label not in column.codes for label in used] + [True])
    X = place[codes]
    return X, np.isnan(X) & ~cells.missing & ~is_gone[codes]


def _same_sort(column: Column, labels: list[Any], codes: np.ndarray) -> None:
    """Numbers in a column of text levels, or the other way round, are a mistake rather than a level never seen."""
    is_text = any(isinstance(level, str) for level in column.levels)
    is_number = any(not isinstance(level, str) for level in column.levels)
    for code, label in enumerate(labels):
        if not (is_text if isinstance(label, str) else is_number) and np.any(codes == code):
            raise ValueError(
                f"column {column.name!r}: expected one of its levels such as {column.levels[0]!r}, "
                f"got {label!r} ({'text' if isinstance(label, str) else 'a number'})"
            )
        if column.kind == "boolean" and label not in column.codes and np.any(codes == code):
            raise ValueError(f"column {column.name!r}: expected True or False, got {label!r}")


def _got_text(texts: list[str], n_labels: int) -> str:
    """What stands in a column of numbers, and what to do; of texts, one that is no number is named."""
    odd = [text for text in texts if not is_number(text)]
    if not odd or (len(odd) == len(texts) == n_labels):
        return f"got the text {texts[0]!r}; turn the column into numbers, with NaN for what is not known"
    others = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
    return (
        f"got the text {odd[0]!r}{others}; if it means missing, make such cells missing (on the command line: "
        f"--na {shlex.quote(odd[0])}), and turn the column into numbers"
    )


def _column_values(column: Column, cells: ColumnCells) -> np.ndarray:
    values = cells.values
    if cells.sort == "datetime":
        raise ValueError(f"column {column.name!r} ({column.kind}): expected numbers, got dates")
    if cells.codes is not None:
        used = np.unique(cells.codes[~cells.missing]).tolist()
        labels = [span_of(label) for label in cells.labels] if is_span(column.dtype) else cells.labels
        texts = [cells.labels[code] for code in used if isinstance(labels[code], str)]
        if texts:
            raise ValueError(f"column {column.name!r} ({column.kind}): expected numbers, {_got_text(texts, len(used))}")
        numbers = [np.nan if isinstance(label, str) else float(label) for label in labels]
        values = np.array([*numbers, np.nan])[cells.codes]
    elif is_span(cells.dtype) != is_span(column.dtype):
        wanted, got = ("durations", "numbers") if is_span(column.dtype) else ("numbers", "durations")
        how = "pandas.to_timedelta(column, unit='s')" if wanted == "durations" else "column.dt.total_seconds()"
        what = f"column {column.name!r}: expected {wanted}, got {got}"
        raise ValueError(f"{what}; the unit of the numbers is not known; if it is seconds, use {how}")
    infinite = int(np.count_nonzero(np.isinf(values)))
    if infinite:
        raise ValueError(
            f"column {column.name!r}: {infinite} infinite value{'s' if infinite > 1 else ''}; "
            "expected finite numbers, NaN for what is not known (on the command line: --na inf)"
        )
    return values


def _no_moment(labels: Sequence[Any]) -> Any:
    """The first of the labels that is no date or time, else the first."""
    for label in labels:
        try:
            seconds(label, 0.0, "UTC")
        except (ValueError, TypeError, OverflowError):
            return label
    return labels[0]


def _column_seconds(column: Column, cells: ColumnCells) -> np.ndarray:
    if cells.sort != "datetime":
        got = repr(_no_moment(cells.labels)) if cells.codes is not None else "numbers"
        raise ValueError(f"column {column.name!r}: expected dates or times, got {got}; parse the column as dates first")
    if (zone_of(cells.dtype) is None) != (zone_of(column.dtype) is None):
        has, lacks = ("model", "frame") if zone_of(column.dtype) else ("frame", "model")
        raise ValueError(
            f"column {column.name!r}: the {has}'s times have a time zone, the {lacks}'s have none; "
            "localize them, or take the zone away"
        )
    ticks = np.where(cells.missing, 0, cells.values.astype(np.int64, copy=False))
    if cells.per_second < 1:
        return np.where(cells.missing, np.nan, ticks / cells.per_second - column.origin)
    full_seconds = ticks // int(cells.per_second)
    # whole seconds are subtracted as integers, so that nothing of the fraction is lost
    fraction = (ticks - full_seconds * int(cells.per_second)) / cells.per_second
    return np.where(cells.missing, np.nan, (full_seconds - int(column.origin)) + fraction)


# ---- Rows of a frame: those that are picked by number, and how much rows count.


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Some rows (numbers, (m,)) of a frame or array."""
    return X[rows] if isinstance(X, np.ndarray) else nw.from_native(with_names(X), eager_only=True)[rows].to_native()


def check_weights(given: Any, n: int) -> np.ndarray:
    """Weights of n rows, float64 (n,): 1 each by default."""
    if given is None:
        return np.ones(n)
    try:
        weight = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight: expected {n} numbers, one weight a row; {error}") from None
    if weight.shape != (n,):
        raise ValueError(f"sample_weight: expected shape ({n},), one weight a row, got {weight.shape}")
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))
    if len(wrong):
        raise ValueError(
            f"sample_weight: expected finite weights of at least 0, got {weight[wrong[0]]} in row {wrong[0]}"
        )
    if not weight.any():
        raise ValueError("sample_weight: every weight is zero; give some rows more")
    return weight


def row_weights(given: Any, n: int) -> np.ndarray:
    """`check_weights`, with a mean of 1 over the rows that have any."""
    weight = check_weights(given, n)
    weight = weight / weight.max()
    return np.asarray(weight * (np.count_nonzero(weight) / weight.sum()))


# ---- An imputed table in which every known cell is what it was.


def fill(
    schema: Schema, frame: Any, X: np.ndarray, unseen: np.ndarray, filled: np.ndarray, exact: np.ndarray | None = None
) -> Any:
    """The frame with its known cells as given and the others from ``filled`` (n, d), in the types of learning."""
    # A known cell that these types cannot hold (a new level, a whole number beyond 2**53) makes its column wider.
    frame, out = with_names(frame, doubt=False), decode(schema, filled)
    filled_of = np.empty((len(schema.columns), 0)) if exact is None else exact.T
    flags = {c.censored.flag for c, own in zip(schema.columns, filled_of, strict=True) if c.censored and own.any()}
    changed = (~np.isnan(X) & (encode(schema, out)[0] != X)) | unseen
    for j in _of_other_texts(schema, frame):
        changed[:, j] |= ~np.isnan(X[:, j])
    columns = np.flatnonzero(changed.any(axis=0)).tolist()
    if isinstance(out, np.ndarray):
        for j in columns:
            known = out[:, schema.places[j]].tolist()
            cells = _restored(schema.columns[j], cells_of(frame, schema, j), X[:, j], changed[:, j], known)
            out = _with_cells(out, int(schema.places[j]), cells)
        for place, column in schema.unknown if isinstance(frame, np.ndarray) else ():
            if column.name not in flags:
                out = _with_cells(out, place, frame[:, place].tolist())
        if isinstance(frame, np.ndarray) and frame.dtype == out.dtype:
            for j in _past_floats(schema, X):
                known, place = ~np.isnan(X[:, j]), schema.places[j]
                out[known, place] = frame[known, place]
        return out
    labels = [column.label for column in schema.all_columns.columns]
    if nw.dependencies.is_pandas_dataframe(out):  # narwhals has text for names
        out.columns = list(schema.all_columns.names)
    if nw.dependencies.is_pandas_dataframe(frame):
        frame = frame.rename(columns=str)
    wide = nw.from_native(out, eager_only=True)
    wide, same = _as_given(wide, frame, [schema.names[j] for j in _past_floats(schema, X)])
    for j in columns:
        column = schema.columns[j]
        if column.name in same:
            continue
        cells = _restored(column, cells_of(frame, schema, j), X[:, j], changed[:, j], wide[column.name].to_list())
        wide = wide.with_columns(nw.new_series(column.name, cells, backend=wide.implementation))
    for name, cells in _unasked(schema, frame).items():
        if name not in flags:
            wide = wide.with_columns(nw.new_series(name, cells, backend=wide.implementation))
    out = wide.to_native()
    if nw.dependencies.is_pandas_dataframe(out):
        out.columns = labels
        if nw.dependencies.is_pandas_dataframe(frame):
            out.index = frame.index
    return out


def _of_other_texts(schema: Schema, frame: Any) -> list[int]:
    """Columns whose known cells may be other texts than those that stand for their values."""
    reader = read(frame)
    numbers = []
    for j, name in _matched(schema, reader, None):
        column, labels = schema.columns[j], reader.cells(name).labels
        levels, form = set(column.levels or ("",)), column.written
        if form is not None and form.sort == "tick":
            levels = {form.prefix}
        if any(isinstance(level, str) for level in levels) and not levels.issuperset(labels):
            numbers.append(j)
    return numbers


def _past_floats(schema: Schema, X: np.ndarray) -> list[int]:
    """Columns with known cells that float64 may not hold."""
    finer = [
        "decimal" in column.dtype.lower() or (column.kind == "datetime" and unit_of(column.dtype) == "ns")
        for column in schema.columns
    ]
    is_number = np.array([not column.is_categorical and column.kind != "datetime" for column in schema.columns])
    large = (np.abs(X) >= 2.0**53).any(axis=0) & is_number
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


def cells_of(frame: Any, schema: Schema, j: int) -> list[Any]:
    """Cells of the column of a frame that is column j of the schema."""
    if isinstance(frame, np.ndarray):
        return list(frame[:, schema.places[j]].tolist())
    return list(nw.from_native(frame, eager_only=True)[schema.names[j]].to_list())


def _unasked(schema: Schema, frame: Any) -> dict[str, list[Any]]:
    """Columns with known cells of which nothing was known at learning."""
    if isinstance(frame, np.ndarray):
        return {}
    given = nw.from_native(frame, eager_only=True)
    columns = {
        column.name: given[column.name].to_list() for _, column in schema.unknown if column.name in given.columns
    }
    return {name: cells for name, cells in columns.items() if not all(map(absent, cells))}


def _restored(column: Column, known: list[Any], x: np.ndarray, changed: np.ndarray, cells: list[Any]) -> list[Any]:
    """The column's cells, those that changed as they were: known cells, or for numbers x; a range is no number x."""
    if not column.is_categorical and any(changed & np.isnan(x)):
        return [known[i] if changed[i] else cell for i, cell in enumerate(cells)]
    if column.written is not None:
        is_mixed = "[mixed" in column.written.dtype
        return [
            known[i] if changed[i] and (is_mixed or isinstance(known[i], str)) else cell for i, cell in enumerate(cells)
        ]
    if not column.is_categorical and column.kind != "datetime" and not is_span(column.dtype):
        numbers = [np.nan if cell is None else float(cell) for cell in cells]
        return list(np.where(changed, x, numbers).tolist())
    return [known[i] if changed[i] else cell for i, cell in enumerate(cells)]


def _with_cells(out: np.ndarray, j: int, cells: list[Any]) -> np.ndarray:
    """The array with another column j, its type widened if need be."""
    is_text = any(isinstance(cell, str) for cell in cells)
    wide = out.astype(object if is_text or out.dtype.kind == "O" else np.result_type(out, np.asarray(cells)))
    wide[:, j] = cells
    return wide


# ---- A warning of levels that were never seen at learning.


def labels_at(cells: ColumnCells, rows: np.ndarray) -> list[Any]:
    """What the frame holds in these rows of a column, of which no cell is missing."""
    return cells.values[rows].tolist() if cells.codes is None else [cells.labels[k] for k in cells.codes[rows]]


def warn_unseen(schema: Schema, frame: Any, unseen: np.ndarray) -> None:
    """One warning that names the columns and the levels; ``unseen`` (n, d) as `data.frames.encode` marks them."""
    # Another one if there are cells in columns of which nothing was known at learning.
    if not unseen.any() and not schema.unknown:
        return
    reader = read(frame)
    _warn_unknown(schema, reader)
    if not unseen.any():
        return
    parts = []
    for j in np.flatnonzero(unseen.any(axis=0)):
        name = f"x{schema.places[j]}" if reader.frame == "numpy" else schema.names[j]
        cells = reader.cells(name)
        rows = unseen[:, j]
        levels = list(dict.fromkeys(labels_at(cells, rows)))
        shown = ", ".join(repr(level) for level in levels[:5]) + (", ..." if len(levels) > 5 else "")
        parts.append(f"{schema.names[j]!r}: {shown} ({int(rows.sum())} cells)")
    warn(UnseenLevelWarning("levels never seen at learning count as missing: " + "; ".join(parts)))


def _warn_unknown(schema: Schema, reader: FrameReader) -> None:
    """Warn of columns that have known cells, but had none at learning."""
    names = [
        (f"x{place}" if reader.frame == "numpy" else column.name, column.name)
        for place, column in schema.unknown
        if column.aside is None
    ]
    present = [(in_frame, name) for in_frame, name in names if in_frame in reader.names]
    known = [name for in_frame, name in present if not reader.cells(in_frame).missing.all()]
    if known:
        shown = ", ".join(map(repr, known[:5])) + (f" and {len(known) - 5} more" if len(known) > 5 else "")
        warn(UnseenLevelWarning(f"all cells were missing at learning, so that these say nothing: {shown}"))
