"""A table of features and one more column, the target: schema and numbers of both."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from sklearn.utils.validation import check_array, column_or_1d

from ...data.cells import absent, is_interval
from ...data.evidence import Evidence, build
from ...data.frames import encode_ranges, read, take_rows, warn_unseen, with_column
from ...data.infer_schema import infer_schema
from ...data.ranges import Ranges
from ...data.schema import Column, Columns, Schema, edges, kernel_columns
from ...models.hidden_tree.hidden_trees import HiddenTrees
from ..base import as_frame
from ..batches.sample import Sample
from ..chow_liu_leaves.learn import CodedRows, on_own_scales
from ..leaf_fitting.fit import Table, prepare_table
from ..rows import TableRows, check_cells, read_training_rows


class Training(NamedTuple):
    """Features and target, encoded.

    schema : Schema. The features' columns, then the target's.
    X : float64 array (n, d + 1). Cells and level codes, grid columns snapped, the target last; NaN where missing.
    filled : float64 array (n, d + 1). The same, each missing cell drawn given the known ones of its row; or X itself.
    table : Table. The filled cells, ready for leaf densities.
    label_dtype : numpy dtype. Of the target's entries as they came.
    coded : CodedRows or None. The table as codes, if X has the features' codes: see `coded_training`.
    first : HiddenTrees or None. What the draws are from; None: nothing is drawn.
    ranges : Ranges or None. Which cells are ranges; X has draws from these.
    """

    schema: Schema
    columns: Columns
    X: np.ndarray
    filled: np.ndarray
    table: Table
    label_dtype: np.dtype
    coded: CodedRows | None = None
    first: HiddenTrees | None = None
    ranges: Ranges | None = None

    def completed(self, weight: np.ndarray, seed: int) -> Training:
        """The same rows, which have weights (n,), with missing cells drawn, unless they are drawn already."""
        if self.filled is not self.X:
            return self
        even = weight / weight.mean() if np.ptp(weight) > 0.0 else None
        rows = TableRows(self.schema, self.columns, self.X, self.X, ranges=self.ranges).completed(even, seed)
        if rows.first is None:
            return self
        return self._replace(X=rows.X, filled=rows.filled, table=rows.cells, first=rows.first)


def read_training(
    X: Any, y: Any, kind: str, kinds: dict[str, str] | None = None, rows: np.ndarray | None = None
) -> Training:
    """Schema and numbers of a frame X (n, d) and a target y (n,); ``rows``: those to be read, default all."""
    table, cells = read(X), target_cells(y)
    name, n = target_name(y, table.names), table.n
    if len(cells) != n:
        raise ValueError(f"X has {n} rows and y has {len(cells)} entries; expected as many of both")
    if rows is not None:
        X, cells = take_rows(X, rows), cells[rows]
    if kind == "categorical":
        _check_labels(cells)
    of_rows = read_training_rows(with_column(X, name, column_like(X, name, cells)), {name: kind} | (kinds or {}))
    schema, columns, cells_of, *_ = of_rows
    if len(schema.columns) < 2:
        infer_schema(X, kinds)  # whose error says why no feature can be learned
    _check_target(schema.columns[-1], kind, cells)
    prepared = prepare_table(columns, cells_of, None, edges(schema))
    return Training(schema, columns, cells_of, cells_of, prepared, cells.dtype, ranges=of_rows.ranges)


def sampled_training(sample: Sample, target: str, kind: str) -> Training:
    """A sample of a table, whose column ``target``, of this kind, becomes the last one."""
    schema = sample.schema
    if schema.frame == "numpy":
        raise ValueError("arrays have no names of columns; give frames")
    j = schema.index(target)
    column = schema.columns[j]
    if column.n_observed < sample.n:
        lost = sample.n - column.n_observed
        raise ValueError(f"column {target!r}: {lost} missing cells in the target; leave these rows out")
    if column.is_categorical != (kind == "categorical") or column.kind == "datetime":
        wanted = "labels of classes" if kind == "categorical" else "numbers"
        raise ValueError(f"column {target!r}: a target of kind {column.kind!r}, expected {wanted}")
    if len(schema.columns) < 2:
        raise ValueError(f"there is no other column than the target {target!r}")
    others = schema.without(j)
    schema = replace(others, columns=(*others.columns, column))
    order = [*(k for k in range(len(schema.columns)) if k != j), j]
    X, ranges = sample.X[:, order], None if sample.ranges is None else sample.ranges.select(order)
    check_cells(schema.names, X)
    columns = kernel_columns(schema)
    prepared = prepare_table(columns, X, None, edges(schema))
    return Training(schema, columns, X, X, prepared, np.array(column.levels).dtype, ranges=ranges)


def as_table(X: Any) -> Any:
    """`as_frame`, where a frame whose columns have no text for names is an array, too."""
    nameless = nw.dependencies.is_pandas_dataframe(X) and not any(isinstance(name, str) for name in X.columns)
    if nameless and X.shape[1]:
        return check_array(X, dtype=None, ensure_all_finite=False, ensure_min_samples=0)
    return as_frame(X)


def _check_labels(cells: np.ndarray) -> None:
    """Refuse numbers that are no labels of classes."""
    if cells.dtype.kind == "f" and (wrong := cells[np.isfinite(cells) & (cells != np.rint(cells))]).size:
        raise ValueError(
            f"Unknown label type: continuous. y holds numbers such as {wrong[0]:g}, expected labels of classes; use "
            "JointRegressor or GenerativeForestRegressor for numbers, or turn y into text or whole numbers"
        )


def _check_target(column: Column, kind: str, cells: np.ndarray) -> None:
    """Refuse a target column that is not of this kind, or whose labels are equal as float64 numbers."""
    if column.censored is not None:
        raise ValueError(
            f"column {column.name!r}: give JointRegressor.fit a frame of {column.name!r} and {column.censored.flag!r} "
            "as y, in place of jf.censored"
        )
    if column.is_categorical != (kind == "categorical"):
        wanted = "labels of classes" if kind == "categorical" else "numbers"
        raise ValueError(
            f"column {column.name!r}: a target of kind {column.kind!r}, expected {wanted}; "
            "give y as such, and leave the target out of kinds"
        )
    labels = np.unique(cells) if column.is_categorical else cells[:0]
    if len(labels) not in (0, len(column.levels)):
        odd = next((label for label in labels.tolist() if label not in column.levels), None)
        if isinstance(odd, str):
            why = f"{odd!r} and {column.levels[int(column.codes[odd.strip()])]!r} differ by white space only"
            raise ValueError(f"column {column.name!r}: the labels {why}; write them alike, such as y.str.strip()")
        raise ValueError(
            f"column {column.name!r}: {len(labels)} labels make {len(column.levels)} levels; "
            "turn y into text (whole numbers above 2**53 cannot be told apart), and leave the target out of kinds"
        )


def column_like(X: Any, name: str, cells: np.ndarray) -> Any:
    """A frame of this one column, of the library of X."""
    if isinstance(X, np.ndarray):
        return cells[:, None]
    backend = nw.from_native(X, eager_only=True).implementation
    return nw.new_series(name, cells.tolist(), backend=backend).to_frame().to_native()


def target_name(y: Any, others: Collection[str] = ()) -> str:
    """Name of a pandas, polars or pyarrow series, or "y" if it has none; with "_" behind it if a column is named so."""
    name = getattr(y, "name", None)
    name = name if isinstance(name, str) and name else "y"
    while name in others:
        name += "_"
    return name


def target_cells(y: Any) -> np.ndarray:
    """Entries of a target as an array (n,): numbers, booleans, or objects that are text or intervals."""
    # A 2-D array of one column is taken with a DataConversionWarning.
    if not isinstance(y, np.ndarray) and nw.dependencies.is_into_series(y):
        cells = np.asarray(y)
        if cells.dtype.kind not in "biufUM":
            cells = np.array(nw.from_native(y, series_only=True).to_list(), dtype=object)
    else:
        cells = np.asarray(y)
    if cells.ndim == 2:
        cells = column_or_1d(cells, warn=True)
    if cells.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {cells.shape} instead")
    missing = np.array([absent(cell) for cell in cells]) if cells.dtype.kind in "OUT" else cells != cells
    if np.any(missing):
        texts = [cell for cell in cells[missing].tolist() if isinstance(cell, str)]
        such = f", such as {texts[0]!r}" if texts else ""
        raise ValueError(
            f"Input y contains NaN: {int(np.sum(missing))} of {len(cells)} targets are missing{such}; "
            "leave those rows out"
        )
    if cells.dtype == object and any(map(is_interval, cells)):
        return cells
    if cells.dtype == object:
        odd = [cell for cell in cells if not isinstance(cell, str)]
        if len(odd) == len(cells):
            cells = np.array(cells.tolist())
    else:
        odd = cells.tolist()
    if cells.ndim != 1 or (cells.dtype.kind not in "biufU" and odd):
        raise ValueError(
            f"y: expected text, or numbers, or booleans, got {odd[0]!r} of type {type(odd[0]).__name__}"
            f"{' among text' if len(odd) < len(cells) else ''}; turn all of y into numbers, or all into text"
        )
    return cells


# ---- Features on the scales of their columns, for trees whose leaves are Chow-Liu trees on codes.


def coded_training(training: Training, weight: np.ndarray) -> Training:
    """The features as codes, between which trees split; the target, which is not split, as it is."""
    even = weight if np.ptp(weight) > 0.0 else None
    table = on_own_scales(TableRows(training.schema, training.columns, training.X, training.filled), even)
    schema = training.schema
    columns_of_codes = (*table.rows.schema.columns[:-1], schema.columns[-1])
    schema = Schema(columns_of_codes, schema.frame, n_rows=schema.n_rows)
    columns = kernel_columns(schema)
    X, filled = (np.column_stack([of[:, :-1], training.X[:, -1]]) for of in (table.rows.X, table.rows.filled))
    cells = prepare_table(columns, filled, table.rows.drawn, edges(schema))
    return Training(schema, columns, X, filled, cells, training.label_dtype, table, training.first)


# ---- Evidence of features alone: the first columns of a joint, whose target comes after them and is not known.


def feature_schema(schema: Schema, d: int) -> Schema:
    """The first d columns."""
    return replace(schema, columns=schema.columns[:d])


def read_features(schema: Schema, d: int, X: Any) -> Evidence:
    """Evidence of the rows of a frame or array X of the first d columns; warns of levels never seen at learning."""
    return _read_evidence(schema, feature_schema(schema, d), [d] * (len(schema.columns) - d), X, ())


def read_others(schema: Schema, target: int, X: Any, extra: str = "refuse") -> Evidence:
    """`read_features` of all columns but one, which is missing; unknown columns are refused, or ignored if so asked."""
    ignored = None if extra == "ignore" else (schema.names[target],)
    return _read_evidence(schema, schema.without(target), [target], X, ignored)


def _read_evidence(
    schema: Schema, others: Schema, unknown: list[int], X: Any, ignored: Collection[str] | None
) -> Evidence:
    """Evidence of the rows of a frame X of other columns than those to be inserted at places ``unknown`` of theirs."""
    cells, unseen, ranges = encode_ranges(others, X, ignored)
    warn_unseen(others, X, unseen)
    if ranges is not None:
        ranges = ranges._replace(number=np.insert(ranges.number, unknown, -1, axis=1))
    cells, unseen = np.insert(cells, unknown, np.nan, axis=1), np.insert(unseen, unknown, False, axis=1)
    return build(schema, cells, unseen, ranges=ranges)


def know_features(schema: Schema, cells: np.ndarray) -> Evidence:
    """Evidence of encoded features (n, d)."""
    others = ((0, 0), (0, len(schema.columns) - cells.shape[1]))
    return build(schema, np.pad(cells, others, constant_values=np.nan))
