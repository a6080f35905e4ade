"""Steps of scikit-learn's pipelines that change columns one by one, as functions of one column of the table each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from ..data.cells import absent

Rising = Callable[[np.ndarray], np.ndarray]
"""A function of float64 numbers (n,) that never falls."""
_RISING = {
    np.exp, np.exp2, np.expm1, np.log, np.log10, np.log1p, np.log2, np.sqrt, np.cbrt, np.arcsinh, np.arctan, np.tanh,
}  # fmt: skip


class StepColumn(NamedTuple):
    """One column as some steps leave it: a function of one column of the table.

    Attributes
    ----------
    source : int
        The column of the table.
    function : function or None
        What a number is now; None: as it was.
    levels : tuple or None
        Labels that an encoder knows; None of numbers, and of columns that no step has changed.
    closed : bool
        Whether the encoder refuses other labels.
    value : float64 array (n_levels,)
        What each level is now.
    other : float
        What other labels are now; NaN if the encoder refuses them.
    missing : Any
        What a missing cell is now; NaN while it is missing.
    """

    source: int
    function: Rising | None = None
    levels: tuple[Any, ...] | None = None
    closed: bool = False
    value: np.ndarray = np.empty(0)
    other: float = np.nan
    missing: Any = np.nan

    @property
    def is_bare(self) -> bool:
        """Whether cells, but for missing ones, are what they are in the table."""
        return self.function is None and self.levels is None


def after_step(step: Any, columns: list[StepColumn]) -> list[StepColumn]:
    """The columns behind a fitted step.

    Raises ValueError if an output of the step is no function of one column, or its function is not known here.
    """
    if step is None or step == "passthrough":
        return columns
    known = _STEPS.get(type(step))
    if known is None:
        raise ValueError(
            f"the step {type(step).__name__} is not known to change columns one by one and in order: expected steps of "
            f"{', '.join(sorted(kind.__name__ for kind in _STEPS))}; "
            "jf.shapley(model.predict, joint, X) explains any model, by draws"
        )
    return known(step, columns)


def leaves_sparse(step: Any) -> bool:
    """Whether a fitted step's outputs are a sparse table."""
    if isinstance(step, Pipeline):
        return leaves_sparse(step.steps[-1][1])
    if isinstance(step, ColumnTransformer):
        return bool(step.sparse_output_)
    return isinstance(step, OneHotEncoder) and bool(step.sparse_output)


def _pipeline(step: Pipeline, columns: list[StepColumn]) -> list[StepColumn]:
    return after_steps([inner for _, inner in step.steps], columns)


def after_steps(steps: Sequence[Any], columns: list[StepColumn]) -> list[StepColumn]:
    """The columns behind fitted steps, one after the other.

    Raises
    ------
    ValueError
        As `after_step`, and if a step comes behind one that leaves a sparse table.
    """
    before = None
    for step in steps:
        if step is None or step == "passthrough":
            continue
        if leaves_sparse(before):
            raise ValueError(
                f"the step {type(step).__name__} comes behind {type(before).__name__}, which leaves a sparse table, "
                "and scikit-learn rounds otherwise there: fit with sparse_output=False, or sparse_threshold=0"
            )
        columns, before = after_step(step, columns), step
    return columns


def _column_transformer(step: ColumnTransformer, columns: list[StepColumn]) -> list[StepColumn]:
    if step.transformer_weights:
        raise ValueError("ColumnTransformer with transformer_weights is not supported; fit it without")
    out: list[StepColumn] = []
    for name, inner, _ in step.transformers_:
        inputs = [columns[j] for j in step._transformer_to_input_indices[name]]
        if inputs and not (isinstance(inner, str) and inner == "drop"):
            out += after_step(inner, inputs)
    return out


# -- numbers


def _mapped(columns: list[StepColumn], functions: Sequence[Rising]) -> list[StepColumn]:
    """Each column through a function of its own."""
    return [_through(column, function) for column, function in zip(columns, functions, strict=True)]


def _through(column: StepColumn, function: Rising) -> StepColumn:
    before = column.function
    if column.levels is None:
        column = column._replace(function=function if before is None else partial(_chained, before, function))
    return column._replace(
        value=function(column.value), other=_at(function, column.other), missing=_at(function, column.missing)
    )


def _chained(first: Rising, then: Rising, x: np.ndarray) -> np.ndarray:
    return then(first(x))


def _at(function: Rising, x: Any) -> float:
    return np.nan if absent(x) else float(function(np.array([x], dtype=np.float64))[0])


def _standard(step: StandardScaler, columns: list[StepColumn]) -> list[StepColumn]:
    return _mapped(columns, _shifted(len(columns), step.with_mean and step.mean_, step.with_std and step.scale_))


def _robust(step: RobustScaler, columns: list[StepColumn]) -> list[StepColumn]:
    return _mapped(columns, _shifted(len(columns), step.with_centering and step.center_, step.scale_))


def _shifted(n: int, centre: Any, scale: Any) -> list[Rising]:
    """(x - centre) / scale of each of n columns, rounded after each; False and None stand for nothing to do."""
    centres = np.zeros(n) if centre is None or centre is False else centre
    scales = np.ones(n) if scale is None or scale is False else scale
    return [partial(_standardised, c, s) for c, s in zip(centres, scales, strict=True)]


def _standardised(centre: float, scale: float, x: np.ndarray) -> np.ndarray:
    return (x - centre) / scale


def _min_max(step: MinMaxScaler, columns: list[StepColumn]) -> list[StepColumn]:
    ends = step.feature_range if step.clip else (-np.inf, np.inf)
    return _mapped(columns, [partial(_scaled, s, m, ends) for s, m in zip(step.scale_, step.min_, strict=True)])


def _scaled(scale: float, least: float, ends: tuple[float, float], x: np.ndarray) -> np.ndarray:
    return np.clip(x * scale + least, *ends)


def _max_abs(step: MaxAbsScaler, columns: list[StepColumn]) -> list[StepColumn]:
    end = 1.0 if getattr(step, "clip", False) else np.inf
    return _mapped(columns, [partial(_divided, s, end) for s in step.scale_])


def _divided(scale: float, end: float, x: np.ndarray) -> np.ndarray:
    return np.clip(x / scale, -end, end)


def _binarizer(step: Binarizer, columns: list[StepColumn]) -> list[StepColumn]:
    return _mapped(columns, [partial(_above, step.threshold)] * len(columns))


def _above(threshold: float, x: np.ndarray) -> np.ndarray:
    return np.where(x > threshold, 1.0, 0.0)


def _bins(step: KBinsDiscretizer, columns: list[StepColumn]) -> list[StepColumn]:
    if step.encode != "ordinal":
        raise ValueError(f"KBinsDiscretizer with encode={step.encode!r} is not supported; fit with encode='ordinal'")
    return _mapped(columns, [partial(_bin, edges[1:-1]) for edges in step.bin_edges_])


def _bin(edges: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.searchsorted(edges, x, side="right").astype(np.float64)


def _function(step: FunctionTransformer, columns: list[StepColumn]) -> list[StepColumn]:
    if step.func is None:
        return columns
    if step.kw_args or step.func not in _RISING:
        name = getattr(step.func, "__name__", step.func)
        raise ValueError(
            f"FunctionTransformer of {name} is not supported: expected one of NumPy's rising functions, "
            f"{', '.join(sorted(f.__name__ for f in _RISING))}"
        )

    return _mapped(columns, [partial(_defined, step.func)] * len(columns))


def _defined(function: Rising, x: np.ndarray) -> np.ndarray:
    """The function, -inf below where a logarithm or a root is defined."""
    y = function(x)
    return np.where(np.isnan(y) & ~np.isnan(x), -np.inf, y)


# -- missing cells and levels


def _imputer(step: SimpleImputer, columns: list[StepColumn]) -> list[StepColumn]:
    if not absent(step.missing_values):
        raise ValueError(
            f"SimpleImputer with missing_values={step.missing_values!r} is not supported; make these cells missing"
        )
    out = [_filled(c, fill) for c, fill in zip(columns, step.statistics_.tolist(), strict=True) if not absent(fill)]
    if step.indicator_ is not None:
        out += [_indicator(columns[j]) for j in step.indicator_.features_]
    return out


def _filled(column: StepColumn, fill: Any) -> StepColumn:
    missing = fill if absent(column.missing) else column.missing
    if column.levels is None:
        return column._replace(missing=missing)
    other = fill if np.isnan(column.other) else column.other
    return column._replace(value=np.where(np.isnan(column.value), fill, column.value), other=other, missing=missing)


def _indicator(column: StepColumn) -> StepColumn:
    """1 where the column is missing, else 0."""
    return column._replace(
        function=np.zeros_like if column.levels is None else None,
        value=np.isnan(column.value).astype(np.float64),
        other=float(np.isnan(column.other)),
        missing=float(absent(column.missing)),
    )


def _encoder(step: OneHotEncoder | OrdinalEncoder, columns: list[StepColumn]) -> list[StepColumn]:
    for column in columns:
        if not column.is_bare:
            raise ValueError(f"{type(step).__name__} of a column that another step has changed is not supported")
    out: list[StepColumn] = []
    for j, column in enumerate(columns):
        out += _encoded(step, j, column, len(out))
    return out


def _encoded(step: Any, j: int, column: StepColumn, first: int) -> list[StepColumn]:
    """What an encoder makes of its j-th column, its outputs from ``first`` on, for each label."""
    labels = step.categories_[j].tolist()
    levels = tuple(label for label in labels if not absent(label))
    closed = step.handle_unknown == "error"
    gone = [label for label in labels if absent(label)]
    filled = None if absent(column.missing) else column.missing
    unknown = "".join(map(str, levels)) + "?"
    asked = [*levels, *gone[:1], *([] if closed else [unknown])]
    encoded = _transformed(step, j, asked)[:, first : first + _width(step, j)]
    nothing = np.full(encoded.shape[1], np.nan)
    other = nothing if closed else encoded[-1]
    if filled is None:
        missing = encoded[len(levels)] if gone else other
    else:
        missing = encoded[levels.index(filled)] if filled in levels else other
    return [
        StepColumn(column.source, None, levels, closed, encoded[: len(levels), k], float(other[k]), float(missing[k]))
        for k in range(encoded.shape[1])
    ]


def _width(step: Any, j: int) -> int:
    """How many outputs an encoder has of its j-th column."""
    if isinstance(step, OrdinalEncoder):
        return 1
    rare = getattr(step, "infrequent_categories_", [None] * (j + 1))[j]
    dropped = step.drop_idx_ is not None and step.drop_idx_[j] is not None
    return len(step.categories_[j]) - max(0, len(rare) - 1 if rare is not None else 0) - dropped


def _transformed(step: Any, j: int, cells: list[Any]) -> np.ndarray:
    """What an encoder makes of rows that have these cells in column j, and its first labels in the others."""
    X = np.empty((len(cells), len(step.categories_)), dtype=object)
    X[:] = [held[0] for held in step.categories_]
    X[:, j] = cells
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an array has no names, and a label is not known on purpose
        out = step.transform(X)
    out = out.toarray() if issparse(out) else out
    return np.asarray(out, dtype=np.float64)


_STEPS: dict[type, Callable[[Any, list[StepColumn]], list[StepColumn]]] = {
    Pipeline: _pipeline,
    ColumnTransformer: _column_transformer,
    StandardScaler: _standard,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    RobustScaler: _robust,
    Binarizer: _binarizer,
    KBinsDiscretizer: _bins,
    FunctionTransformer: _function,
    SimpleImputer: _imputer,
    OneHotEncoder: _encoder,
    OrdinalEncoder: _encoder,
}
