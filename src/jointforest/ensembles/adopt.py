"""Trees grown by another library on float32 values, as a node table that routes float64 values just the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..data.schema import Columns
from ..models.box_forest.leaves.levels import bits
from ..models.box_forest.structure import Trees, keep_leaves, leaf_boxes, with_weights
from ..runtime.random_kernels import stream_state
from ..runtime.records import record
from ..runtime.threads import map_ordered
from .evaluate_kernels import route_by_draws

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
