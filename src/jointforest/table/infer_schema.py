"""The kinds of a table's columns, inferred once at learning; every one can be overridden."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..ground.warnings import warn
from .cells import ColumnCells
from .dtypes import of_numbers
from .grids import MAX_CELLS, decimal_step, find_atoms, is_tied, time_step
from .libraries import read
from .restore import snapped
from .schema import CATEGORICAL_KINDS, KINDS, MAX_LEVELS, Column, Level, Schema, is_number_name, near
from .times import zone, zone_of


def infer_schema(frame: Any, kinds: Mapping[str, str] | None = None) -> Schema:
    """Schema of a frame: the kind, grid, atoms and levels of each column.

    Parameters
    ----------
    frame : pandas, polars or pyarrow table, or 2-D numpy array
        Missing cells (None, NaN, NA, NaT, null) are welcome.
    kinds : dict of column name to kind, optional
        Overrides. ``continuous`` is a plain density (no grid, no atoms); ``integer`` and ``rounded`` check the values;
        ``categorical`` and ``ordered`` make levels of the distinct values of a column of numbers.

    Returns
    -------
    Schema

    Raises
    ------
    ValueError
        No rows or columns, two columns of one name, no known cell at all, infinite numbers, an unknown column or kind
        in ``kinds``, values that do not fit the kind asked for, more than 10,000 levels.
    TypeError
        A column of a type that is not supported.

    Warns
    -----
    UserWarning
        Columns without any known cell; a column of text that differs in nearly every row; integers too large to be
        told apart as float64.

    Examples
    --------
    >>> import numpy as np
    >>> [column.kind for column in infer_schema(np.array([[1.0, 0.12345678], [2.0, 0.87654321]])).columns]
    ['integer', 'continuous']
    """
    reader = read(frame)
    kinds = {str(name) if is_number_name(name) else name: kind for name, kind in (kinds or {}).items()}
    if not reader.names:
        raise ValueError("the table has no columns")
    for name, kind in kinds.items():
        if name not in reader.names:
            raise ValueError(f"kinds: there is no column {name!r}; {near(name, reader.names)}")
        if kind not in KINDS:
            raise ValueError(f"kinds: column {name!r}: {kind!r} is no kind of column; one of {', '.join(KINDS)}")
    if reader.n == 0:
        raise ValueError("the table has no rows; at least one is needed")
    columns, unknown = [], []
    for place, name in enumerate(reader.names):
        cells, has_number_name = reader.cells(name), name in reader.number_names
        if cells.missing.all():
            unknown.append((place, replace(_unknown(name, cells), has_number_name=has_number_name)))
        else:
            columns.append(replace(_column(name, cells, kinds.get(name)), has_number_name=has_number_name))
    _tell_unknown([column.name for _, column in unknown], len(columns))
    return Schema(tuple(columns), reader.frame, tuple(unknown))


def _unknown(name: str, cells: ColumnCells) -> Column:
    """A column without any known cell, of a kind that its type can have."""
    if cells.sort == "datetime":
        return Column(name, "datetime", cells.dtype, step=1.0)
    if cells.codes is not None or cells.sort == "empty":
        column = Column(name, "categorical", cells.dtype)
        return replace(column, levels=_labels(column, cells)[:MAX_LEVELS] or ("",))
    return Column(name, "continuous", cells.dtype)


def _tell_unknown(names: list[str], n_known: int) -> None:
    """Warn of columns without any known cell; an error if there is no other."""
    shown = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    which = f"column{'s' if len(names) > 1 else ''} {shown}: all cells are missing"
    if names and not n_known:
        raise ValueError(f"{which}, and there is no other column; nothing can be learned")
    if names:
        warn(
            f"{which}, so that nothing is known of {'them' if len(names) > 1 else 'it'}; drop what is of no use",
            UserWarning,
        )


def _column(name: str, cells: ColumnCells, kind: str | None) -> Column:
    n_observed = int(len(cells.missing) - np.count_nonzero(cells.missing))
    column = Column(name, kind or "", cells.dtype, n_observed=n_observed)
    if cells.sort == "datetime":
        return _datetime(column, cells)
    if kind in CATEGORICAL_KINDS or (kind is None and cells.sort in ("levels", "boolean")):
        return _categorical(column, cells)
    return _numeric(column, cells)


def _datetime(column: Column, cells: ColumnCells) -> Column:
    if column.kind not in ("", "datetime"):
        raise ValueError(
            f"column {column.name!r}: dates and times are of kind 'datetime', not {column.kind!r}; "
            "turn them into numbers or text first for another kind"
        )
    zone_name = zone_of(cells.dtype)
    if zone_name is not None:
        try:
            zone(zone_name)
        except ValueError as error:
            raise ValueError(
                f"column {column.name!r}: {error}; convert it, such as with .dt.tz_convert('UTC')"
            ) from None
    known = cells.values[~cells.missing]
    first = int(known.min())
    whole = max(round(cells.per_second), 1)
    # the number 0 is the first moment, down to a whole second so that it is exact
    origin = first // whole * whole if cells.per_second >= 1 else first
    relative = known - origin
    constant = first == int(known.max())
    step = time_step(known if constant else relative - (first - origin), cells.per_second)
    if first != origin:
        step = min(step, time_step(relative, cells.per_second))
    return replace(
        column,
        kind="datetime",
        step=step,
        origin=float(round(origin / cells.per_second)),
        minimum=float(relative.min() / cells.per_second),
        maximum=float(relative.max() / cells.per_second),
    )


def _categorical(column: Column, cells: ColumnCells) -> Column:
    kind = column.kind or ("boolean" if cells.sort == "boolean" else "ordered" if cells.ordered else "categorical")
    levels: tuple[Level, ...]
    if cells.codes is None:
        distinct = np.unique(_finite(column, cells.values[~cells.missing]))
        if kind == "boolean":
            wrong = distinct[(distinct != 0) & (distinct != 1)]
            if len(wrong):
                raise ValueError(f"column {column.name!r}: a boolean column holds 0 and 1 only, got {wrong[0]:g}")
            levels = (False, True)
        elif cells.sort == "boolean":
            levels = tuple(bool(value) for value in distinct)
        else:
            levels = tuple(_whole(value) for value in distinct.tolist())
    else:
        levels = _labels(column, cells)
        if kind == "boolean":
            if not all(isinstance(level, bool) for level in levels):
                raise ValueError(
                    f"column {column.name!r}: a boolean column holds True and False, got {levels[0]!r}; "
                    "leave it categorical, or turn it into booleans"
                )
            levels = (False, True)
        elif len(levels) == 2 and set(map(type, levels)) == {bool} and not column.kind:
            kind, levels = "boolean", (False, True)
    if len(levels) > MAX_LEVELS:
        raise ValueError(
            f"column {column.name!r}: {len(levels)} levels, at most {MAX_LEVELS} are supported; "
            "drop the column if it names the rows, or join its rare levels"
        )
    if cells.sort == "levels" and column.n_observed > 100 and len(levels) > 0.9 * column.n_observed:
        warn(
            f"column {column.name!r}: {len(levels)} different texts in {column.n_observed} rows; "
            "a column that names the rows tells nothing of others: consider dropping it",
            UserWarning,
        )
    return replace(column, kind=kind, levels=levels)


def _labels(column: Column, cells: ColumnCells) -> tuple[Level, ...]:
    """Levels of a column of labels: in the declared order, else sorted."""
    for label in cells.labels:
        if not isinstance(label, str | bool | int | float) or (isinstance(label, float) and math.isinf(label)):
            hint = (
                "take the category away, such as with astype('datetime64[us]')"
                if isinstance(label, dt.date)
                else "use astype(str)"
            )
            raise TypeError(
                f"column {column.name!r}: levels must be text, booleans or finite numbers, "
                f"got {label!r} of type {type(label).__name__}; {hint}"
            )
    if len(set(cells.labels)) != len(cells.labels):
        twice = next(label for k, label in enumerate(cells.labels) if label in cells.labels[:k])
        raise ValueError(f"column {column.name!r}: two of its levels equal {twice!r}; turn them into text, each once")
    return tuple(cells.labels) if cells.declared else tuple(sorted(cells.labels))


def _numeric(column: Column, cells: ColumnCells) -> Column:
    if cells.codes is None:
        values = cells.values[~cells.missing]
    else:
        wrong = [label for label in cells.labels if isinstance(label, str)]
        if wrong or column.kind == "datetime":
            hint = "turn the text into dates first" if column.kind == "datetime" else "turn the text into numbers first"
            shown = (wrong or list(cells.labels))[0]
            raise ValueError(f"column {column.name!r}: got {shown!r} in a column to be {column.kind}; {hint}")
        values = np.array([float(v) for v in cells.labels])[cells.codes[~cells.missing]]
    if column.kind == "datetime":
        raise ValueError(f"column {column.name!r}: got numbers in a column to be datetime; turn them into dates first")
    values = _finite(column, values)
    dtype = of_numbers(column.dtype)
    column = replace(column, dtype=dtype, minimum=float(values.min()), maximum=float(values.max()))
    if column.kind == "continuous":
        return column
    distinct, counts = np.unique(values, return_counts=True)
    step = 0.0 if column.kind == "mixed" else _step(column, cells, distinct, counts)
    if step > 0:
        # values of 32 bits, or the outcomes of sums, are near their cell's centre only: count cells
        numbers, place = np.unique(np.rint(distinct / step), return_inverse=True)
        distinct, counts = snapped(replace(column, step=step), numbers * step), np.bincount(place, counts)
    atoms = find_atoms(distinct, counts, step)
    if step > 0:
        kind = column.kind or ("integer" if step == 1.0 else "rounded")
    elif column.kind == "mixed" and not atoms:
        raise ValueError(
            f"column {column.name!r}: no value is common enough to have a mass of its own (5 % of the cells, or 0.2 % "
            "and 20 of them); use the kind 'continuous'"
        )
    else:
        kind = "mixed" if atoms else "continuous"
    return replace(column, kind=kind, step=step, atoms=atoms)


def _step(column: Column, cells: ColumnCells, distinct: np.ndarray, counts: np.ndarray) -> float:
    """Width of the grid's cells; 0 for no grid."""
    eps = 1.2e-7 if "loat32" in column.dtype or column.dtype in ("float", "float[pyarrow]") else 2.3e-16
    largest = float(np.abs(distinct).max())
    if cells.sort == "integer" and largest > MAX_CELLS and column.kind == "":
        warn(
            f"column {column.name!r}: integers beyond 2**51 (such as {largest:.0f}) are kept as floating-point "
            "numbers, to about 16 digits; drop the column if it names the rows",
            UserWarning,
        )
        return 0.0
    step = decimal_step(distinct, eps)
    if column.kind == "integer":
        if step != 1.0:
            wrong = distinct[(distinct != np.rint(distinct)) | (np.abs(distinct) > MAX_CELLS)]
            shown = f"{wrong[0]!r}" if len(wrong) else f"{largest!r}"
            raise ValueError(f"column {column.name!r}: an integer column holds whole numbers below 2**51, got {shown}")
        return 1.0
    if column.kind == "rounded":
        if step == 0.0:
            raise ValueError(
                f"column {column.name!r}: its values are not on a grid of up to 9 decimals, so it cannot be rounded; "
                "use the kind 'continuous'"
            )
        return step
    return step if step == 1.0 or is_tied(counts) else 0.0


def _finite(column: Column, values: np.ndarray) -> np.ndarray:
    infinite = int(np.count_nonzero(np.isinf(values)))
    if infinite:
        raise ValueError(
            f"column {column.name!r}: {infinite} infinite value{'s' if infinite > 1 else ''}; "
            "expected finite numbers, make them missing (NaN) or large and finite"
        )
    return values


def _whole(value: float) -> int | float:
    return int(value) if value == round(value) and abs(value) < 2**53 else value
