"""What an ensemble answers row by row, as the library that trained it does; and its trees as trees of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..data.cells import ColumnCells, FrameReader
from ..data.frames import read
from ..data.schema import Columns
from ..models.box_forest.leaves.levels import bits
from ..models.box_forest.structure import Trees, keep_leaves, leaf_boxes, with_weights
from ..runtime.random_kernels import stream_state
from ..runtime.records import record
from ..runtime.threads import chunks, map_ordered
from .evaluate_kernels import block_rows, leaf_rows, raw_rows, route_by_draws
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


# ---- Trees grown by another library on float32 values, as a node table that routes float64 values just the same.

_MOST_CELLS = 2.0**51  # beyond it half a cell is no longer exact in float64
_BEYOND_FLOAT32 = 2.0**128  # what would follow the largest float32


class SplitTree(NamedTuple):
    """One binary tree: a value goes left if, rounded to float32, it is at most the threshold.

    feature : int array (N,). Feature of the split, in the library's numbering. Not read at leaves.
    threshold : float64 array (N,). Not read at leaves.
    left, right : int array (N,). Children, after their parent; -1 at leaves.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray


@record
class RouteScratch(NamedTuple):
    """Where the rows of one tree's nodes are while they go down.

    first : int. First node of the tree, which has N.
    begin, end : int64 arrays (N,). The rows of node k of the tree are ``rows[begin[k]:end[k]]``; known of the root.
    rows, spare : int32 arrays (n,). Numbers of rows; scratch.
    """

    first: int
    begin: np.ndarray
    end: np.ndarray
    rows: np.ndarray
    spare: np.ndarray


def to_trees(
    columns: Columns, trees: Sequence[SplitTree], feature_column: np.ndarray, level_number: np.ndarray
) -> tuple[Trees, np.ndarray]:
    """The node table of trees on the columns ``feature_column``, and the original node of each leaf, int32 (L,)."""
    # Every float64 value keeps its side, and in a column with a grid every cell's centre does. A split that sends its
    # whole box to one side is replaced by that child, because a box may not be empty.
    joined = _joined_trees(columns, trees, feature_column, level_number)
    own_number = np.concatenate([np.arange(len(tree.left)) for tree in trees])
    table, leaf, _ = keep_leaves(joined, ~_is_empty(columns, joined))
    return with_weights(table, np.ones(len(leaf))), own_number[joined.leaf >= 0][leaf].astype(np.int32)


def _joined_trees(
    columns: Columns, trees: Sequence[SplitTree], feature_column: np.ndarray, level_number: np.ndarray
) -> Trees:
    """The node table of the trees with all their splits; no weights yet."""
    node_at = np.cumsum([0] + [len(tree.left) for tree in trees])

    def links(children: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate([np.where(c >= 0, c + at, -1) for c, at in zip(children, node_at[:-1], strict=True)])

    left = links([tree.left for tree in trees]).astype(np.int32)
    is_leaf = left < 0
    asked = np.concatenate([tree.feature for tree in trees])
    feature = np.where(is_leaf, -1, feature_column[np.where(is_leaf, 0, asked)]).astype(np.int32)
    given = np.concatenate([tree.threshold for tree in trees])
    threshold = np.zeros(len(feature))
    levels_at = np.full(len(feature), -1, dtype=np.int32)
    words = [np.empty(0, dtype=np.uint64)]
    for j in np.unique(feature[~is_leaf]):
        here = feature == j
        slot = columns.slot[j]
        if columns.is_categorical[j]:
            numbers = level_number[columns.levels_of(slot)]
            sets, place = level_sets(numbers, given[here])
            levels_at[here] = sum(len(w) for w in words) + place * sets.shape[1]
            words.append(sets.ravel())
        else:
            exact = float64_thresholds(given[here])
            step, origin = columns.step[slot], columns.origin[slot]
            threshold[here] = exact if step == 0 else cell_edges(exact, step, origin)
    return Trees(
        feature=feature,
        threshold=threshold,
        levels_at=levels_at,
        left_levels=np.concatenate(words),
        left=left,
        right=links([tree.right for tree in trees]).astype(np.int32),
        leaf=np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32),
        weight=np.zeros(len(feature)),
        root=node_at[:-1].astype(np.int32),
    )


def float64_thresholds(threshold: np.ndarray) -> np.ndarray:
    """The largest float64 numbers (m,) that round to float32 numbers of at most the given ones."""
    # They lie halfway between two float32 neighbours; the middle itself rounds to the one whose last bit is 0.
    with np.errstate(over="ignore"):
        below = threshold.astype(np.float32)
        below = np.where(below > threshold, np.nextafter(below, np.float32(-np.inf)), below)
        above = np.nextafter(below, np.float32(np.inf))
    middle = (_within(below) + _within(above)) / 2
    is_even = below.view(np.uint32) & 1 == 0
    middle = np.where(is_even, middle, np.nextafter(middle, -np.inf))
    return np.where(below == np.inf, np.inf, middle)


def _within(x: np.ndarray) -> np.ndarray:
    """float32 numbers as float64; rounding treats the infinite ones as if they were next to the largest."""
    return np.clip(x.astype(np.float64), -_BEYOND_FLOAT32, _BEYOND_FLOAT32)


def cell_edges(threshold: np.ndarray, step: float, origin: float) -> np.ndarray:
    """Upper edge of the last grid cell whose centre is at most each threshold; infinite beyond 2^51 cells."""
    cell = np.clip(np.floor((threshold - origin) / step), -2 * _MOST_CELLS, 2 * _MOST_CELLS)
    cell = np.where(_cell_centre(cell, step, origin) > threshold, cell - 1, cell)
    cell = np.where(_cell_centre(cell + 1, step, origin) <= threshold, cell + 1, cell)
    edge = origin + step * (cell + 0.5)
    return np.where(np.abs(cell) > _MOST_CELLS, np.copysign(np.inf, cell), edge)


def _cell_centre(cell: np.ndarray, step: float, origin: float) -> np.ndarray:
    """Centre of a grid cell as the float64 number that a table holds: the nearest to the decimal."""
    per_unit = round(1 / step) if step <= 1 else 0
    # dividing whole numbers gives the nearest float, multiplying by the step may miss it
    return cell / per_unit if origin == 0 and per_unit * step == 1 else origin + step * cell


def level_sets(level_number: np.ndarray, threshold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct sets of levels with numbers (K,) of at most a threshold (m,); the set of each threshold, (m,)."""
    number = level_number.astype(np.float32)
    count, place = np.unique(np.searchsorted(np.sort(number), threshold, side="right"), return_inverse=True)
    rank = np.empty(len(number), dtype=np.int64)
    rank[np.argsort(number)] = np.arange(len(number))
    return bits(rank < count[:, None]), place


def _is_empty(columns: Columns, trees: Trees) -> np.ndarray:
    """Whether the box of each leaf holds nothing; bool (L,)."""
    lo, hi, allowed = leaf_boxes(trees, columns)
    empty = (lo >= hi).any(axis=1)
    for first, end in pairwise(columns.level_start):
        empty |= ~allowed[:, first:end].any(axis=1)
    return np.asarray(empty)


def find_leaf(trees: Trees, X: np.ndarray, weight: np.ndarray, seed: int) -> np.ndarray:
    """Leaf of each row of X (n, d) in each tree, int32 (T, n); missing values draw a side by ``weight``."""
    values = np.array(X.T, dtype=np.float64, order="C")
    out = np.empty((len(trees.root), len(X)), dtype=np.int32)
    bounds = np.append(trees.root, len(trees.feature))

    def one(t: int) -> None:
        n_nodes = bounds[t + 1] - bounds[t]
        begin, end = np.zeros((2, n_nodes), dtype=np.int64)
        end[0] = len(X)
        rows = np.arange(len(X), dtype=np.int32)
        scratch = RouteScratch(int(bounds[t]), begin, end, rows, np.empty_like(rows))
        route_by_draws(trees, values, weight[t], stream_state(seed, t), scratch, out[t])

    list(map_ordered(one, [(t,) for t in range(len(out))]))
    return out
