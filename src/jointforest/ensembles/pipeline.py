"""Pipelines of scikit-learn that end in an ensemble: its splits pushed back to the columns of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..models.box_forest.leaves.levels import bits
from .column_steps import Rising, StepColumn, after_steps, leaves_sparse
from .evaluate import level_codes
from .levels import ClosedLevels
from .read import read_ensemble
from .table import Ensemble


def read(model: Any) -> Ensemble:
    """A fitted pipeline, as splits of the columns that it was fitted on; columns that its steps drop are no features.

    Its steps change columns one by one (`column_steps`), and its last one is any supported model. A threshold on a
    scaled column becomes the largest float64 number that the step sends to its left side. A split of what an encoder
    makes of levels becomes the set of levels that go left, and a missing cell goes where its filling does.

    Refused are other steps, one column as numbers and as levels, and sparse zeros, which XGBoost takes for missing
    cells.
    """
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
    levels = _levels(inner, columns, names, library)
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


def _levels(
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
            missing_left[nodes] = [_goes_left(inner, int(node), [column.missing])[0] for node in nodes]
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
            *known, other_left[node], missing_left[node] = _goes_left(
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


def _goes_left(ensemble: Ensemble, node: int, cells: list[Any]) -> list[bool]:
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
    """The largest float64 number at which a rising function is at most each threshold (m,), by bisection.

    It is -inf where no finite number is, and inf where all are.
    """
    lo, hi = _place(np.full((2, len(threshold)), [[-np.inf], [np.inf]]))
    with np.errstate(all="ignore"):
        while (gap := lo + 1 < hi).any():
            middle = (lo & hi) + ((lo ^ hi) >> 1)  # half the sum, which might overflow
            is_low = function(_number(middle)) <= threshold
            lo, hi = np.where(gap & is_low, middle, lo), np.where(gap & ~is_low, middle, hi)
    largest = np.finfo(np.float64).max
    last = _number(lo)
    return np.where(last == largest, np.inf, last)


def _place(x: np.ndarray) -> np.ndarray:
    """Where float64 numbers stand among all of them, int64; neighbours differ by 1."""
    bits = x.view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _number(place: np.ndarray) -> np.ndarray:
    """The float64 number at a place."""
    return np.where(place < 0, np.int64(-(2**63)) - place, place).view(np.float64)
