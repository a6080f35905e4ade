"""What an ensemble answers, row by row, just as the library that trained it: frame -> codes -> sums -> predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..data.cells import ColumnCells, FrameReader
from ..data.frames import read
from ..runtime.records import record
from ..runtime.threads import chunks, map_ordered
from .evaluate_kernels import block_rows, leaf_rows, raw_rows
from .table import ClosedLevels, Ensemble, HashedLevels

_CHUNK = 1024


@record
class Routing(NamedTuple):
    """The fields of an `Ensemble` that kernels read; its docstring describes them."""

    feature: np.ndarray
    threshold: np.ndarray
    levels_at: np.ndarray
    left_levels: np.ndarray
    missing_left: np.ndarray
    other_left: np.ndarray
    left: np.ndarray
    right: np.ndarray
    leaf: np.ndarray
    root: np.ndarray
    value: np.ndarray
    base: np.ndarray


def routing(ensemble: Ensemble) -> Routing:
    """The arrays of an ensemble, for kernels."""
    return Routing(*(getattr(ensemble, name) for name in Routing._fields))


def by_position(ensemble: Ensemble) -> bool:
    """Whether the model has no names of its own, so that its features go by their places."""
    return ensemble.names == tuple(str(j) for j in range(len(ensemble.names)))


def encode_features(ensemble: Ensemble, frame: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and the model's level codes (n, n_features), NaN where missing; and which cells have unknown levels."""
    # Columns are matched by name, or by position if the frame is an array or the model has no names.
    table = read(frame)
    X = np.full((table.n, len(ensemble.names)), np.nan)
    other = np.zeros(X.shape, dtype=bool)
    for j, name in _matched_features(ensemble, table):
        cells = table.cells(name)
        levels = ensemble.categories[j]
        if cells.sort == "empty" or cells.missing.all():
            continue
        if levels is None:
            X[:, j] = _feature_numbers(cells, name)
        else:
            X[:, j], other[:, j] = _feature_codes(cells, levels, name)
    return X, other


def _matched_features(ensemble: Ensemble, table: FrameReader) -> list[tuple[int, str]]:
    """Pairs of a feature's number and its column's name in the table."""
    if table.frame == "numpy" or (by_position(ensemble) and not set(table.names) <= set(ensemble.names)):
        if len(table.names) != len(ensemble.names):
            raise ValueError(
                f"the table has {len(table.names)} columns, the {ensemble.library} was trained on "
                f"{len(ensemble.names)}, and its features go by position: give these columns, with NaN for what is "
                "not known"
            )
        return list(enumerate(table.names))
    present = set(table.names)
    return [(j, name) for j, name in enumerate(ensemble.names) if name in present]


def _feature_numbers(cells: ColumnCells, name: str) -> np.ndarray:
    values = cells.values
    if cells.sort == "datetime":
        raise ValueError(f"column {name!r}: the model splits it as numbers, got dates; give the model's own numbers")
    if cells.codes is not None:
        text = [x for code, x in enumerate(cells.labels) if isinstance(x, str) and np.any(cells.codes == code)]
        if text:
            raise ValueError(
                f"column {name!r}: the model splits it as numbers, got the text {text[0]!r}; give the numbers that "
                "the model was trained on"
            )
        values = np.array([*(np.nan if isinstance(x, str) else float(x) for x in cells.labels), np.nan])[cells.codes]
    if np.isinf(values).any():
        raise ValueError(f"column {name!r}: infinite values; expected finite numbers, NaN for what is not known")
    return values


def _feature_codes(cells: ColumnCells, levels: tuple[Any, ...], name: str) -> tuple[np.ndarray, np.ndarray]:
    if cells.sort == "datetime":
        raise ValueError(f"column {name!r}: expected one of the model's levels, got dates")
    if cells.codes is None:
        labels, codes = np.unique(np.where(cells.missing, 0.0, cells.values), return_inverse=True)
        used: list[Any] = [label == 1 for label in labels] if cells.sort == "boolean" else labels.tolist()
        codes = np.where(cells.missing, -1, codes)
    else:
        codes, used = cells.codes, list(cells.labels)
    held = np.bincount(codes[codes >= 0], minlength=len(used)) > 0
    place = np.full(len(used) + 1, -1)
    place[:-1][held] = level_codes(levels, [label for label, is_held in zip(used, held, strict=True) if is_held], name)
    code = place[codes]
    return np.where(code < 0, np.nan, code), (code < 0) & (codes >= 0)


def level_codes(levels: tuple[Any, ...], labels: Sequence[Any], name: str) -> np.ndarray:
    """The model's number of each label, int64 (n,), -1 if unknown; raises ValueError for labels of another type."""
    numbers = [label for label in labels if not isinstance(label, str)]
    text = [label for label in labels if isinstance(label, str)]
    is_hashed = isinstance(levels, HashedLevels)
    has_text = is_hashed or any(isinstance(level, str) for level in levels)
    has_numbers = is_hashed or any(not isinstance(level, str) for level in levels)
    is_whole = is_hashed or all(isinstance(level, str) or float(level).is_integer() for level in levels)
    wrong = [*(text if not has_text else ()), *(x for x in numbers if not has_numbers or (is_whole and x % 1))]
    if levels and wrong:
        kind = "text" if isinstance(wrong[0], str) else "number"
        such = "" if is_hashed else f" such as {levels[0]!r}"
        raise ValueError(f"column {name!r}: expected one of the model's levels{such}, got the {kind} {wrong[0]!r}")
    if isinstance(levels, HashedLevels):
        return levels.codes(labels)
    place = {level: code for code, level in enumerate(levels)}
    unknown = [label for label in labels if label not in place] if isinstance(levels, ClosedLevels) else []
    if unknown:
        raise ValueError(
            f"column {name!r}: the model's encoder refuses the level {unknown[0]!r}, which it has not seen; "
            "fit it with handle_unknown='ignore', or 'use_encoded_value'"
        )
    return np.array([place.get(label, -1) for label in labels], dtype=np.int64)


def leaves(ensemble: Ensemble, X: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Leaf that each row reaches in each tree, int32 (n, T). Missing values take the library's default directions."""
    out = np.empty((len(X), len(ensemble.root)), dtype=np.int32)
    _run(leaf_rows, ensemble, X, other, out)
    return out


def raw(ensemble: Ensemble, X: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Sums before the link, (n, K), of encoded rows. Missing values take the library's default directions."""
    out = np.empty((len(X), len(ensemble.base)))
    _run(raw_rows, ensemble, X, other, out)
    return out


def raw_blocks(ensemble: Ensemble, X: np.ndarray, other: np.ndarray, same: np.ndarray) -> np.ndarray:
    """`raw` of B blocks of m rows on one thread; a block goes down each tree together until it must be divided."""
    # Features that are the ``same`` in all rows of a block, bool (B, n_features), are compared once.
    out = np.empty((len(X), len(ensemble.base)))
    if len(X):
        m = len(X) // len(same)
        index, spare = np.empty((2, m), dtype=np.int64)
        stack = np.empty((3, len(ensemble.feature)), dtype=np.int64)
        block_rows(routing(ensemble), X, other, np.ascontiguousarray(same), index, spare, stack, out)
    return out


def _run(kernel: Any, ensemble: Ensemble, X: np.ndarray, other: np.ndarray, out: np.ndarray) -> None:
    arrays = routing(ensemble)
    X, other = np.ascontiguousarray(X, dtype=np.float64), np.ascontiguousarray(other)

    def one(start: int, stop: int) -> None:
        kernel(arrays, X, other, start, stop, out)

    list(map_ordered(one, chunks(len(X), _CHUNK)))


def apply_link(link: str, raw: np.ndarray) -> np.ndarray:
    """Predictions (n, K) from sums (n, K): numbers, probabilities of classes, or of the second class ("logistic")."""
    if link == "identity":
        return raw
    if link == "exp":
        return np.exp(raw)
    if link == "logistic":
        small = np.exp(-np.abs(raw))  # never overflows
        return np.where(raw >= 0, 1.0, small) / (1.0 + small)
    if link == "softmax":
        shares = np.exp(raw - raw.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)
    raise ValueError(f"link {link!r}: expected 'identity', 'logistic', 'softmax' or 'exp'")
