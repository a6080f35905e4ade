"""Pipelines of scikit-learn that end in an ensemble: its splits pushed back to the columns of the table."""

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
from sklearn.utils.validation import check_is_fitted

from ..data.cells import absent
from ..models.box_forest.leaves.levels import bits
from ..runtime.parameters import need
from .evaluate import level_codes
from .read import read_ensemble
from .table import ClosedLevels, Ensemble

# ---- Steps of scikit-learn's pipelines that change columns one by one, as functions of one column of the table each.


Rising = Callable[[np.ndarray], np.ndarray]
"""A function of float64 numbers (n,) that never falls."""
_RISING = {
    np.exp, np.exp2, np.expm1, np.log, np.log10, np.log1p, np.log2, np.sqrt, np.cbrt, np.arcsinh, np.arctan, np.tanh,
}  # fmt: skip


class StepColumn(NamedTuple):
    """One column as some steps leave it: a function of one column of the table.

    source : int. The column of the table.
    function : function or None. What a number is now; None: as it was.
    levels : tuple or None. Labels that an encoder knows; None of numbers, and of columns that no step has changed.
    closed : bool. Whether the encoder refuses other labels.
    value : float64 array (n_levels,). What each level is now.
    other : float. What other labels are now; NaN if the encoder refuses them.
    missing : Any. What a missing cell is now; NaN while it is missing.
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
    """The columns behind a fitted step."""
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
    """The columns behind fitted steps, one after the other."""
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
    need(not step.transformer_weights, "ColumnTransformer with transformer_weights is not supported; fit it without")
    out: list[StepColumn] = []
    for name, inner, _ in step.transformers_:
        inputs = [columns[j] for j in step._transformer_to_input_indices[name]]
        if inputs and not (isinstance(inner, str) and inner == "drop"):
            out += after_step(inner, inputs)
    return out


# -- numbers


def _mapped(columns: list[StepColumn], functions: Sequence[Rising]) -> list[StepColumn]:
    """Each column through a function of its own."""
    return [_through_function(column, function) for column, function in zip(columns, functions, strict=True)]


def _through_function(column: StepColumn, function: Rising) -> StepColumn:
    before = column.function
    if column.levels is None:
        column = column._replace(function=function if before is None else partial(_chained, before, function))
    return column._replace(
        value=function(column.value), other=_call(function, column.other), missing=_call(function, column.missing)
    )


def _chained(first: Rising, then: Rising, x: np.ndarray) -> np.ndarray:
    return then(first(x))


def _call(function: Rising, x: Any) -> float:
    return np.nan if absent(x) else float(function(np.array([x], dtype=np.float64))[0])


def _standard_scaler(step: StandardScaler, columns: list[StepColumn]) -> list[StepColumn]:
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
    return _mapped(columns, [partial(_scaled_values, s, m, ends) for s, m in zip(step.scale_, step.min_, strict=True)])


def _scaled_values(scale: float, least: float, ends: tuple[float, float], x: np.ndarray) -> np.ndarray:
    return np.clip(x * scale + least, *ends)


def _max_abs(step: MaxAbsScaler, columns: list[StepColumn]) -> list[StepColumn]:
    end = 1.0 if getattr(step, "clip", False) else np.inf
    return _mapped(columns, [partial(_divided_values, s, end) for s in step.scale_])


def _divided_values(scale: float, end: float, x: np.ndarray) -> np.ndarray:
    return np.clip(x / scale, -end, end)


def _binarizer(step: Binarizer, columns: list[StepColumn]) -> list[StepColumn]:
    return _mapped(columns, [partial(_above, step.threshold)] * len(columns))


def _above(threshold: float, x: np.ndarray) -> np.ndarray:
    return np.where(x > threshold, 1.0, 0.0)


def _read_bins(step: KBinsDiscretizer, columns: list[StepColumn]) -> list[StepColumn]:
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
        need(column.is_bare, f"{type(step).__name__} of a column that another step has changed is not supported")
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
    encoded = _transformed(step, j, asked)[:, first : first + _n_outputs(step, j)]
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


def _n_outputs(step: Any, j: int) -> int:
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
    StandardScaler: _standard_scaler,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    RobustScaler: _robust,
    Binarizer: _binarizer,
    KBinsDiscretizer: _read_bins,
    FunctionTransformer: _function,
    SimpleImputer: _imputer,
    OneHotEncoder: _encoder,
    OrdinalEncoder: _encoder,
}


# ---- A pipeline of such steps and a model.


def read(model: Any) -> Ensemble:
    """A fitted pipeline as splits of its input columns. Refused: unknown steps, a column as numbers and as levels."""
    # A threshold on a scaled column becomes the largest float64 number that the step sends to the left side.
    check_is_fitted(model)
    inner = read_ensemble(model.steps[-1][1])
    steps = [step for _, step in model.steps[:-1] if step is not None and step != "passthrough"]
    first = steps[0] if steps else model.steps[-1][1]
    columns = after_steps(steps, [StepColumn(j) for j in range(first.n_features_in_)])
    library = f"sklearn {type(model).__name__} of {inner.library}"
    if len(columns) != len(inner.names):
        raise ValueError(f"{library}: its steps leave {len(columns)} columns, its model takes {len(inner.names)}")
    if inner.library.startswith("xgboost") and any(map(leaves_sparse, steps)):
        raise ValueError(
            f"{library}: XGBoost takes the zeros of a sparse table for missing cells; "
            "fit the pipeline with sparse_threshold=0, or sparse_output=False"
        )
    named = getattr(first, "feature_names_in_", None)
    names = [str(j) for j in range(first.n_features_in_)] if named is None else list(named)
    levels = _levels_of_columns(inner, columns, names, library)
    kept = range(len(names)) if named is None else sorted({column.source for column in columns})
    pushed = _with_sets(_with_thresholds(inner, columns), inner, columns)
    place = {source: k for k, source in enumerate(kept)}
    feature = np.array([place[column.source] for column in columns], dtype=np.int32)
    return pushed._replace(
        feature=np.where(inner.feature < 0, -1, feature[inner.feature]).astype(np.int32),
        names=tuple(names[source] for source in kept),
        categories=tuple(levels.get(source) for source in kept),
        library=library,
    )


def _levels_of_columns(
    inner: Ensemble, columns: list[StepColumn], names: list[str], library: str
) -> dict[int, tuple[Any, ...] | None]:
    """The levels of each column of the table, None if it is one of numbers."""
    levels_of: dict[int, tuple[Any, ...] | None] = {}
    for column, known_levels in zip(columns, inner.categories, strict=True):
        name = names[column.source]
        if column.function is not None and known_levels is not None:
            raise ValueError(f"{library}: column {name!r} is changed as numbers, and split as levels")
        levels = column.levels if column.levels is not None else known_levels
        if column.closed and levels is not None:
            levels = ClosedLevels(levels)
        before = levels_of.setdefault(column.source, levels)
        if (before is None) != (levels is None):
            raise ValueError(
                f"{library} takes column {name!r} both as numbers and as levels, which splits of one column cannot "
                "say; give it a copy of the column, under another name"
            )
        if before is not None and levels is not None:
            if tuple(before) != tuple(levels):
                raise ValueError(f"{library}: two steps know different levels of column {name!r}; give both the same")
            levels_of[column.source] = before if isinstance(before, ClosedLevels) else levels
    return levels_of


def _with_thresholds(inner: Ensemble, columns: list[StepColumn]) -> Ensemble:
    """The splits of numbers that some step has changed as splits of the table's numbers."""
    threshold, missing_left = inner.threshold.copy(), inner.missing_left.copy()
    for f, column in enumerate(columns):
        nodes = np.flatnonzero((inner.feature == f) & (inner.levels_at < 0))
        if column.levels is None and len(nodes):
            missing_left[nodes] = [_which_go_left(inner, int(node), [column.missing])[0] for node in nodes]
            if column.function is not None:
                asked, place = np.unique(threshold[nodes], return_inverse=True)
                threshold[nodes] = last_at_most(column.function, asked)[place]
    return inner._replace(threshold=threshold, missing_left=missing_left)


def _with_sets(pushed: Ensemble, inner: Ensemble, columns: list[StepColumn]) -> Ensemble:
    """The splits of what encoders made of levels as sets of levels."""
    levels_at, missing_left, other_left = (
        array.copy() for array in (inner.levels_at, pushed.missing_left, inner.other_left)
    )
    words, place = [inner.left_levels], {}
    n_words = len(inner.left_levels)
    for f, column in enumerate(columns):
        if column.levels is None:
            continue
        for node in np.flatnonzero(inner.feature == f).tolist():
            *known, other_left[node], missing_left[node] = _which_go_left(
                inner, node, [*column.value.tolist(), column.other, column.missing]
            )
            goes_left = np.array(known, dtype=bool)
            key = len(goes_left), goes_left.tobytes()
            if key not in place:
                place[key] = n_words
                words.append(bits(goes_left))
                n_words += len(words[-1])
            levels_at[node] = place[key]
    return pushed._replace(
        levels_at=levels_at,
        left_levels=np.concatenate(words),
        threshold=np.where(levels_at >= 0, 0.0, pushed.threshold),
        missing_left=missing_left,
        other_left=other_left,
    )


def _which_go_left(ensemble: Ensemble, node: int, cells: list[Any]) -> list[bool]:
    """Whether each number, or label if the node has a set, goes left; NaN is a missing cell."""
    at, f = int(ensemble.levels_at[node]), int(ensemble.feature[node])
    if at < 0:
        number = np.array(cells, dtype=np.float64)
        return np.where(np.isnan(number), ensemble.missing_left[node], number <= ensemble.threshold[node]).tolist()
    out = []
    for cell in cells:
        code = -1 if cell != cell else int(level_codes(ensemble.categories[f] or (), [cell], ensemble.names[f])[0])
        bit = int(ensemble.left_levels[at + code // 64]) >> code % 64 & 1
        otherwise = ensemble.missing_left if cell != cell else ensemble.other_left
        out.append(bool(bit) if code >= 0 else bool(otherwise[node]))
    return out


def last_at_most(function: Rising, threshold: np.ndarray) -> np.ndarray:
    """The largest float64 number at which a rising function is at most each threshold (m,), by bisection."""
    # It is -inf where no finite number is, and inf where all are.
    lo, hi = _place_of_float(np.full((2, len(threshold)), [[-np.inf], [np.inf]]))
    with np.errstate(all="ignore"):
        while (gap := lo + 1 < hi).any():
            middle = (lo & hi) + ((lo ^ hi) >> 1)  # half the sum, which might overflow
            is_low = function(_number_at(middle)) <= threshold
            lo, hi = np.where(gap & is_low, middle, lo), np.where(gap & ~is_low, middle, hi)
    largest = np.finfo(np.float64).max
    last = _number_at(lo)
    return np.where(last == largest, np.inf, last)


def _place_of_float(x: np.ndarray) -> np.ndarray:
    """Where float64 numbers stand among all of them, int64; neighbours differ by 1."""
    bits = x.view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _number_at(place: np.ndarray) -> np.ndarray:
    """The float64 number at a place."""
    return np.where(place < 0, np.int64(-(2**63)) - place, place).view(np.float64)
