"""A trained ensemble matched with a joint: its features by column, and the regions of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...data.schema import Column, Columns, Schema, kernel_columns, near
from ...ensembles.evaluate import by_position, cell_edges, level_codes
from ...ensembles.table import Ensemble, HashedLevels
from ...models.box_forest.leaves.levels import members
from ...models.box_forest.leaves.table import Leaves
from ...models.box_forest.structure import Forest
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


# ---- The features of a trained ensemble as columns of a joint.


class Features(NamedTuple):
    """An ensemble, and what its features are among the columns of a joint.

    ensemble : Ensemble. Without those features that it never splits and that the joint does not have.
    column : int32 array (n_features,). The joint's column of each feature.
    given : int64 array (n_features,). The number of each feature among the ``n_given`` features of the model.
    level_value : float64 array (S,). Code or number in the model of each level of the joint; NaN if it has none.
    columns : Columns. Of the joint.
    """

    ensemble: Ensemble
    column: np.ndarray
    given: np.ndarray
    n_given: int
    level_value: np.ndarray
    columns: Columns


def match_features(ensemble: Ensemble, schema: Schema) -> Features:
    """Match an ensemble's features with the columns of a joint, by name; raises ValueError where they do not fit."""
    n_given = len(ensemble.names)
    (column, wanted), columns = _columns_of_features(ensemble, schema), kernel_columns(schema)
    given = np.flatnonzero(column >= 0)
    if len(given) < n_given:
        number = np.append(np.cumsum(column >= 0) - 1, -1).astype(np.int32)  # the last one is that of leaves
        ensemble = ensemble._replace(
            feature=number[ensemble.feature],
            names=tuple(wanted[f] for f in given),
            categories=tuple(ensemble.categories[f] for f in given),
        )
        column = column[given]
    level_value = np.full(int(columns.level_start[-1]), np.nan)
    for f, j in enumerate(column.tolist()):
        values = _level_values(ensemble, f, schema.columns[j])
        first = columns.level_start[columns.slot[j]] if len(values) else 0
        level_value[first : first + len(values)] = values
    return Features(ensemble, column, given, n_given, level_value, columns)


def split_features(features: Features) -> np.ndarray:
    """Numbers of the features that the ensemble splits, ascending."""
    feature = features.ensemble.feature
    return np.unique(feature[feature >= 0])


def filled(features: Features, X: np.ndarray, other: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X and other with the missing cells from rows of the joint, ``drawn`` (n, d); both are changed in place."""
    columns = features.columns
    for f, j in enumerate(features.column.tolist()):
        lacks = np.flatnonzero(np.isnan(X[:, f]) & ~other[:, f])
        cells = drawn[lacks, j]
        if columns.is_categorical[j]:
            first = columns.level_start[columns.slot[j]]
            known = ~np.isnan(cells)
            value = features.level_value[first + np.where(known, cells, 0).astype(np.int64)]
            other[lacks, f] = known & np.isnan(value)
            cells = np.where(known, value, np.nan)
        X[lacks, f] = cells
    return X, other


def _columns_of_features(ensemble: Ensemble, schema: Schema) -> tuple[np.ndarray, tuple[str, ...]]:
    """The joint's column of each feature, -1 of one that is never split and that the joint lacks, and its name."""
    names, all_names = schema.names, schema.all_columns.names
    if by_position(ensemble) and not set(ensemble.names) <= set(all_names):
        if len(ensemble.names) > len(all_names):
            raise ValueError(
                f"the {ensemble.library} has {len(ensemble.names)} features without names, the joint only "
                f"{len(all_names)} columns; fit the model on a frame with the joint's names"
            )
        wanted = all_names[: len(ensemble.names)]
    else:
        wanted = ensemble.names
    number = {name: j for j, name in enumerate(names)}
    column = np.array([number.get(name, -1) for name in wanted], dtype=np.int32)
    is_split = np.isin(np.arange(len(column)), ensemble.feature)
    absent = [wanted[f] for f in np.flatnonzero((column < 0) & is_split)]
    aside = next((name for name in absent if name in schema.reasons_aside), None)
    if aside is not None:
        raise ValueError(
            f"the {ensemble.library} takes column {aside!r}, which {schema.reasons_aside[aside]} and takes no part in "
            f"the joint; learn the joint with kinds={{{aside!r}: ...}}, or the model without the column"
        )
    if absent:
        shown = ", ".join(f"{name!r} ({near(name, names)})" for name in absent[:3])
        more = f" and {len(absent) - 3} more" if len(absent) > 3 else ""
        raise ValueError(
            f"the {ensemble.library} takes columns that the joint does not have: {shown}{more}; "
            "fit the joint on a table with the model's columns"
        )
    return column, wanted


def _level_values(ensemble: Ensemble, f: int, column: Column) -> np.ndarray:
    """What each level of a column is to feature f; empty of a column of numbers."""
    levels = ensemble.categories[f]
    what = f"column {column.name!r}: the {ensemble.library} takes "
    if column.kind == "datetime":
        raise ValueError(f"{what}{'numbers' if levels is None else 'levels'}, the joint has dates; make them numbers")
    if not column.is_categorical:
        if levels is None:
            return np.empty(0)
        hint = f"fit the joint with kinds={{{column.name!r}: 'categorical'}}"
        raise ValueError(f"{what}levels{_such_as(levels)}, in the joint it is {column.kind}; {hint}")
    if levels is None:
        text = [level for level in column.levels if isinstance(level, str)]
        if text:
            raise ValueError(
                f"{what}numbers, the joint has levels such as {text[0]!r}; fit both on the same column, either as "
                "numbers or as categories that the model knows itself"
            )
        return np.array([float(level) for level in column.levels])
    code = level_codes(levels, column.levels, column.name)
    # a model that lists only the levels that it splits by may know others all the same
    if len(levels) and not isinstance(levels, HashedLevels) and len(code) and (code < 0).all():
        raise ValueError(
            f"{what}levels such as {levels[0]!r}, and knows none of the joint's, such as {column.levels[0]!r}"
        )
    return np.where(code < 0, np.nan, code)


def _such_as(levels: tuple) -> str:
    """An example for a message, if there is one that a user knows."""
    return f" such as {levels[0]!r}" if len(levels) and not isinstance(levels, HashedLevels) else ""


@record
class RegionMasses(NamedTuple):
    """Masses of some of the numeric split regions in the joint's L leaves, computed before any row.

    table : float64 array (L, m)
    place : int32 array (M,). Where a split region is in the table; -1 if it is not.
    """

    table: np.ndarray
    place: np.ndarray


@record
class MatchedArrays(NamedTuple):
    """What kernels need before any row: fields of `MatchedEnsemble`, and of its model.

    columns, leaves, regions, splits, masses
    middle, half : float64 arrays (N, K)
    half_most : float64 array (N,). The largest half of a node's outputs.
    """

    columns: Columns
    leaves: Leaves
    regions: SplitRegions
    splits: Splits
    masses: RegionMasses
    middle: np.ndarray
    half: np.ndarray
    half_most: np.ndarray
    depth: int


@dataclass(frozen=True)
class MatchedEnsemble:
    """An ensemble and what it takes to compute its expectations under a joint.

    middle, half : float64 arrays (N, K). Middle, and half the width, of the range of the values below each node.
    depth : int. Most splits on the way to a leaf.
    masses : RegionMasses. Without a table, see `expectation.with_table`.
    """

    features: Features
    splits: Splits
    regions: SplitRegions
    middle: np.ndarray
    half: np.ndarray
    depth: int
    masses: RegionMasses
    model: Forest

    @property
    def ensemble(self) -> Ensemble:
        return self.features.ensemble

    def arrays(self) -> MatchedArrays:
        """What kernels read."""
        return MatchedArrays(
            self.model.columns, self.model.leaves, self.regions, self.splits, self.masses,
            self.middle, self.half, self.half.max(axis=1), self.depth,
        )  # fmt: skip


def match_ensemble(ensemble: Ensemble, model: Forest) -> MatchedEnsemble:
    """The ensemble with its features matched to the columns of a joint by name, and its nodes' regions."""
    features = match_features(ensemble, model.schema)
    ensemble, column, level_value = features.ensemble, features.column, features.level_value
    splits, regions = split_regions(ensemble, model.columns, column, level_value)
    no_place = np.full(len(regions.column), -1, dtype=np.int32)
    middle, half = _ranges(ensemble)
    return MatchedEnsemble(
        features=features,
        splits=splits,
        regions=regions,
        middle=middle,
        half=half,
        depth=int(_depths(ensemble).max()),
        masses=RegionMasses(np.empty((0, 0)), no_place),
        model=model,
    )


def _ranges(ensemble: Ensemble) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half width of the range of values below each node, (N, K)."""
    low = np.full((len(ensemble.feature), ensemble.value.shape[1]), np.inf)
    is_leaf = ensemble.leaf >= 0
    low[is_leaf] = ensemble.value[ensemble.leaf[is_leaf]]
    high = np.where(is_leaf[:, None], low, -np.inf)
    depth = _depths(ensemble)
    for level in range(int(depth.max()), 0, -1):
        nodes = np.flatnonzero((depth == level - 1) & ~is_leaf)
        left, right = ensemble.left[nodes], ensemble.right[nodes]
        low[nodes], high[nodes] = np.minimum(low[left], low[right]), np.maximum(high[left], high[right])
    return (low + high) / 2, (high - low) / 2


def _depths(ensemble: Ensemble) -> np.ndarray:
    depth = np.zeros(len(ensemble.feature), dtype=np.int64)
    level = ensemble.root.astype(np.int64)
    number = 0
    while len(level):
        depth[level] = number
        inner = level[ensemble.leaf[level] < 0]
        level = np.concatenate([ensemble.left[inner], ensemble.right[inner]])
        number += 1
    return depth
