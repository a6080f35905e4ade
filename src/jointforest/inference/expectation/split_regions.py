"""The regions of single columns into which the splits of an ensemble divide what reaches its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...data.schema import Columns
from ...ensembles.adopt import cell_edges
from ...ensembles.table import Ensemble
from ...models.box_forest.leaves.levels import members
from ...runtime.records import record

ZERO, ONE = 0, 1
"""Regions of mass 0 and 1 under any distribution: nothing, and everything."""


@record
class SplitRegions(NamedTuple):
    """M regions of single columns; what reaches a node is, in any column, one of them less another.

    A region of a numeric column is everything up to an edge, one of a categorical column a set of levels. The regions
    of a column are neighbours.

    column : int32 array (M,). -1 of ZERO and ONE.
    edge : float64 array (M,). Ascending within a column, finite; 0 of others than numeric regions.
    level_start : int32 array (M + 1,). A categorical region has ``level[level_start[m]:level_start[m + 1]]``.
    level : int32 array
    """

    column: np.ndarray
    edge: np.ndarray
    level_start: np.ndarray
    level: np.ndarray


@record
class Splits(NamedTuple):
    """The N nodes of an ensemble as kernels read them, with their regions.

    feature, threshold, levels_at, left_levels, other_left, left, right, leaf, root. As of `Ensemble`.
    column : int32 array (N,). The joint's column that the node splits; -1 at leaves.
    lo, mid, hi : int32 arrays (N,). Split regions: the node has ``hi`` less ``lo``, its left child ``mid`` less ``lo``.
    is_set : uint8 array (N,). Whether the node splits levels.
    """

    feature: np.ndarray
    threshold: np.ndarray
    levels_at: np.ndarray
    left_levels: np.ndarray
    other_left: np.ndarray
    left: np.ndarray
    right: np.ndarray
    leaf: np.ndarray
    root: np.ndarray
    column: np.ndarray
    lo: np.ndarray
    mid: np.ndarray
    hi: np.ndarray
    is_set: np.ndarray


def split_regions(
    ensemble: Ensemble, columns: Columns, column: np.ndarray, level_value: np.ndarray
) -> tuple[Splits, SplitRegions]:
    """The nodes of an ensemble under a joint with these columns, and their regions."""
    is_inner = ensemble.feature >= 0
    nodes = _Nodes(ensemble, np.where(is_inner, column[np.maximum(ensemble.feature, 0)], -1).astype(np.int32))
    ends = np.full((3, len(nodes.column)), ZERO, dtype=np.int32)
    of_column: list[int] = [-1, -1]
    edges: list[float] = [0.0, 0.0]
    sets: list[np.ndarray] = [np.empty(0, dtype=np.int32)] * 2
    for j in np.unique(nodes.column[is_inner]).tolist():
        slot = columns.slot[j]
        if columns.is_categorical[j]:
            values = level_value[columns.levels_of(slot)]
            new_regions, new = _level_regions(nodes, j, values, len(of_column))
            sets += new
            edges += [0.0] * len(new)
        else:
            new_regions, new_edges = _numeric_regions(
                nodes, j, columns.step[slot], columns.origin[slot], len(of_column)
            )
            edges += new_edges
            sets += [np.empty(0, dtype=np.int32)] * len(new_edges)
        of_column += [j] * (len(edges) - len(of_column))
        ends[:, nodes.splitting(j)] = new_regions
    regions = SplitRegions(
        np.array(of_column, dtype=np.int32),
        np.array(edges),
        np.cumsum([0] + [len(levels) for levels in sets]).astype(np.int32),
        np.concatenate(sets).astype(np.int32),
    )
    lo, mid, hi = (np.ascontiguousarray(end) for end in ends)
    is_set = np.where(is_inner, columns.is_categorical[nodes.column], 0).astype(np.uint8)
    same = {name: getattr(ensemble, name) for name in Splits._fields if name in Ensemble._fields}
    return Splits(**same, column=nodes.column, lo=lo, mid=mid, hi=hi, is_set=is_set), regions


class _Nodes:
    """The nodes of an ensemble with their parents; ``column`` (N,) is what each splits."""

    def __init__(self, ensemble: Ensemble, column: np.ndarray) -> None:
        self.ensemble, self.column = ensemble, column
        inner = np.flatnonzero(ensemble.left >= 0)
        left, right = ensemble.left[inner], ensemble.right[inner]
        self.parent, self.is_left = np.full(len(column), -1, dtype=np.int32), np.zeros(len(column), dtype=bool)
        self.parent[left], self.parent[right], self.is_left[left] = inner, inner, True

    def splitting(self, j: int) -> np.ndarray:
        """The nodes that split column j."""
        return np.flatnonzero(self.column == j)

    def same_splits_above(self, j: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For all nodes that split column j, step by step: the next such node above, and whether on its left."""
        child = self.splitting(j)
        place = np.arange(len(child))
        while len(place):
            above = self.parent[child]
            is_inside = above >= 0
            place, child, above = place[is_inside], child[is_inside], above[is_inside]
            is_same = self.column[above] == j
            yield place[is_same], above[is_same], self.is_left[child[is_same]]
            child = above


def _numeric_regions(
    nodes: _Nodes, j: int, step: float, origin: float, n_regions: int
) -> tuple[np.ndarray, list[float]]:
    """Regions (lo, mid, hi) of the nodes that split a numeric column, (3, nodes), and the edges of the new ones."""
    splitting, threshold = nodes.splitting(j), nodes.ensemble.threshold
    edge = np.zeros(len(threshold))
    edge[splitting] = threshold[splitting] if step == 0 else cell_edges(threshold[splitting], step, origin)
    lo, hi = np.full(len(splitting), -np.inf), np.full(len(splitting), np.inf)
    for at, above, is_left in nodes.same_splits_above(j):
        lo[at] = np.where(is_left, lo[at], np.maximum(lo[at], edge[above]))
        hi[at] = np.where(is_left, np.minimum(hi[at], edge[above]), hi[at])
    hi = np.maximum(lo, hi)
    ends = np.stack([lo, np.minimum(np.maximum(edge[splitting], lo), hi), hi])
    edges = np.unique(ends[np.isfinite(ends)])
    number = np.searchsorted(edges, ends) + n_regions
    return np.where(ends == -np.inf, ZERO, np.where(ends == np.inf, ONE, number)), edges.tolist()


def _level_regions(nodes: _Nodes, j: int, values: np.ndarray, n_regions: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Regions (lo, mid, hi) of the nodes that split a column of levels, (3, nodes), and the sets of the new ones."""
    splitting = nodes.splitting(j)
    goes_left = np.stack([levels_left(nodes.ensemble, int(node), values) for node in splitting])
    place = np.zeros(len(nodes.column), dtype=np.int32)
    place[splitting] = np.arange(len(splitting))
    reach = np.ones(goes_left.shape, dtype=np.uint8)
    for at, above, is_left in nodes.same_splits_above(j):
        reach[at] &= (goes_left[place[above]] != 0) == is_left[:, None]
    both = np.concatenate([reach & goes_left, reach])
    _, first, number = np.unique(np.packbits(both, axis=1), axis=0, return_index=True, return_inverse=True)
    sets = [np.flatnonzero(both[i]).astype(np.int32) for i in first]
    new = np.cumsum([0] + [0 < len(s) < len(values) for s in sets[:-1]]) + n_regions
    region = np.array(
        [ZERO if not len(s) else ONE if len(s) == len(values) else m for s, m in zip(sets, new, strict=True)]
    )
    mid, hi = region[number.ravel()].reshape(2, -1)
    return np.stack([np.full_like(mid, ZERO), mid, hi]), [s for s in sets if 0 < len(s) < len(values)]


def levels_left(ensemble: Ensemble, node: int, values: np.ndarray) -> np.ndarray:
    """Which of the levels with these ``values`` (see `split_regions`) go left at a node, uint8 (levels,)."""
    if ensemble.levels_at[node] < 0:
        return (values <= ensemble.threshold[node]).astype(np.uint8)
    code = np.where(np.isnan(values), 0, values).astype(np.int64)
    is_left = members(ensemble.left_levels[ensemble.levels_at[node] :], int(code.max()) + 1)[code]
    return np.where(np.isnan(values), ensemble.other_left[node], is_left).astype(np.uint8)
