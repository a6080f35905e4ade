"""Frames to arrays and back, by a schema: columns by name, in any order, from any library."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from .cells import ColumnCells, FrameReader
from .libraries import build, read
from .schema import Column, Schema, near
from .times import seconds, zone_of


def encode(schema: Schema, frame: Any, ignored: Collection[str] | None = ()) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and level codes of a frame.

    Columns are matched by name (numpy arrays: by position), absent ones count as missing, those of which nothing was
    known at learning are left aside, and the frame may be of another library than the schema's. A label that is no
    level of its column is NaN in ``X`` and marked in ``unseen``.

    Parameters
    ----------
    schema : Schema
    frame : pandas, polars or pyarrow table, or 2-D numpy array
        n rows.
    ignored : names of columns
        That are left aside, though the schema does not have them; None: all that it does not have.

    Returns
    -------
    X : float64 array (n, d), C-contiguous
        NaN where missing or unseen.
    unseen : bool array (n, d)

    Raises
    ------
    ValueError
        Columns that the schema does not have, two columns of one name, infinite numbers, text in a column of numbers
        and the like; the message names column and value.
    TypeError
        A column of a type that is not supported.

    Examples
    --------
    >>> from jointforest.table.infer.infer_schema import infer_schema
    >>> schema = infer_schema(np.array([["a", 1], ["b", 2]], dtype=object))
    >>> encode(schema, np.array([["b", 1], ["c", None]], dtype=object))[0]
    array([[ 1.,  1.],
           [nan, nan]])
    """
    return encode_cells(schema, read(frame), ignored)


def encode_cells(
    schema: Schema, reader: FrameReader, ignored: Collection[str] | None = ()
) -> tuple[np.ndarray, np.ndarray]:
    """`encode` of a frame that is read already."""
    X = np.full((reader.n, len(schema.columns)), np.nan)
    unseen = np.zeros(X.shape, dtype=bool)
    for j, name in _matched(schema, reader, ignored):
        column = schema.columns[j]
        cells = reader.cells(name)
        if cells.sort == "empty" or cells.missing.all():
            continue
        if column.is_categorical:
            X[:, j], unseen[:, j] = _codes(column, cells)
        elif column.kind == "datetime":
            X[:, j] = _seconds(column, cells)
        else:
            X[:, j] = _numbers(column, cells)
    return X, unseen


def decode(schema: Schema, X: np.ndarray) -> Any:
    """Frame of the kind the schema came from, with its dtypes, levels, decimals, dates and time zones.

    Grid columns are moved to the nearest cell centre. As in the library itself, missing cells turn an ``int64`` pandas
    or numpy column into ``float64`` and a ``bool`` one into objects; all other types have a missing cell of their own.
    Numbers outside a type's range are clipped to it, dates to the years 1 to 9999 (1678 to 2261 in nanoseconds).

    Parameters
    ----------
    schema : Schema
    X : float64 array (n, d)
        As `encode` gives it.

    Returns
    -------
    pandas, polars or pyarrow table, or 2-D numpy array
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != len(schema.columns):
        raise ValueError(f"expected an array of shape (n, {len(schema.columns)}), got {X.shape}")
    if schema.unknown:
        known, X = X, np.full((len(X), len(schema.whole.columns)), np.nan)
        X[:, schema.places] = known
    return build(schema.whole, _columnwise(X))


def _columnwise(X: np.ndarray) -> np.ndarray:
    """A copy with contiguous columns, turned block by block, which the processor's cache likes."""
    out = np.empty(X.shape, order="F")
    for start in range(0, len(X), 4096):
        out[start : start + 4096] = X[start : start + 4096]
    return out


def _matched(schema: Schema, reader: FrameReader, ignored: Collection[str] | None) -> list[tuple[int, str]]:
    """Pairs of a column's number and its name in the frame."""
    if reader.frame == "numpy":
        if len(reader.names) != len(schema.whole.columns):
            raise ValueError(
                f"the array has {len(reader.names)} columns, the model {len(schema.whole.columns)}; "
                "the columns of an array are matched by position: use NaN for what is not known"
            )
        return [(j, reader.names[place]) for j, place in enumerate(schema.places)]
    known = {column.name for column in schema.whole.columns}
    extra = [name for name in reader.names if name not in known and name not in (ignored or ())]
    if extra and ignored is not None:
        shown = ", ".join(f"{name!r} ({near(name, schema.names)})" for name in extra[:3])
        more = f" and {len(extra) - 3} more" if len(extra) > 3 else ""
        raise ValueError(f"columns that the model does not have: {shown}{more}; rename or drop them")
    given = set(reader.names)
    return [(j, name) for j, name in enumerate(schema.names) if name in given]


def _codes(column: Column, cells: ColumnCells) -> tuple[np.ndarray, np.ndarray]:
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
    place = np.array([column.codes.get(label, np.nan) for label in used] + [np.nan])
    X = place[codes]
    return X, np.isnan(X) & ~cells.missing


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


def _numbers(column: Column, cells: ColumnCells) -> np.ndarray:
    values = cells.values
    if cells.sort == "datetime":
        raise ValueError(f"column {column.name!r} ({column.kind}): expected numbers, got dates")
    if cells.codes is not None:
        for code, label in enumerate(cells.labels):
            if isinstance(label, str) and np.any(cells.codes == code):
                raise ValueError(
                    f"column {column.name!r} ({column.kind}): expected numbers, got the text {label!r}; "
                    "turn the column into numbers, with NaN for what is not known"
                )
        numbers = [np.nan if isinstance(label, str) else float(label) for label in cells.labels]
        values = np.array([*numbers, np.nan])[cells.codes]
    infinite = int(np.count_nonzero(np.isinf(values)))
    if infinite:
        raise ValueError(
            f"column {column.name!r}: {infinite} infinite value{'s' if infinite > 1 else ''}; "
            "expected finite numbers, NaN for what is not known"
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


def _seconds(column: Column, cells: ColumnCells) -> np.ndarray:
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
    whole = ticks // int(cells.per_second)
    # whole seconds are subtracted as integers, so that nothing of the fraction is lost
    fraction = (ticks - whole * int(cells.per_second)) / cells.per_second
    return np.where(cells.missing, np.nan, (whole - int(column.origin)) + fraction)
