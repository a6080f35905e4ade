"""A trained ensemble bound to a joint: its features found among the columns, its nodes' regions as marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...ensembles.evaluate import by_position, level_codes
from ...ensembles.hashed_levels import HashedLevels
from ...ensembles.table import Ensemble
from ...forest.forest import Forest
from ...ground.records import record
from ...table.schema import Column, near
from ...trees.adopt.adopt import cell_edges
from .region_kernels import (
    ONE,
    ZERO,
    Components,
    Marks,
    Masses,
    components_of,
    fill_levels,
    level_regions,
    numeric_regions,
    parents,
)


@record
class Splits(NamedTuple):
    """An ensemble's nodes as kernels read them, see `Ensemble`, and their regions.

    Attributes
    ----------
    feature, threshold, levels_at, left_levels, other_left, left, right, leaf, root
        As of `Ensemble`.
    column : int32 array (N,)
        The joint's column that the node splits; -1 at leaves.
    lo, mid, hi : int32 arrays (N,)
        Marks of the split column: what reaches the node has mass ``hi - lo`` (the other columns left aside), what goes
        on to the left ``mid - lo``.
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


@dataclass(frozen=True)
class Bound:
    """An ensemble and what it takes to compute its expectations under a joint.

    Attributes
    ----------
    ensemble : Ensemble
    column : int32 array (n_features,)
        The joint's column of each feature.
    level_value : float64 array (S,)
        What each level of the joint is to the model: a code, or a number; NaN if the model does not know the level (or
        has no such column).
    splits : Splits
    marks : Marks
    components : Components
    middle, half : float64 arrays (N, K)
        Middle, and half the width, of the range of the values below each node.
    depth : int
        Most splits on the way to a leaf.
    masses : Masses
        Without a table, see `expectation.with_table`.
    model : Forest
    """

    ensemble: Ensemble
    column: np.ndarray
    level_value: np.ndarray
    splits: Splits
    marks: Marks
    components: Components
    middle: np.ndarray
    half: np.ndarray
    depth: int
    masses: Masses
    model: Forest


def bind(ensemble: Ensemble, model: Forest) -> Bound:
    """Match an ensemble's features with the columns of a joint, by name, and find its nodes' regions.

    Parameters
    ----------
    ensemble : Ensemble
    model : Forest
        It may have more columns. Features without names are the first columns.

    Returns
    -------
    Bound

    Raises
    ------
    ValueError
        A feature without a column; numbers where the other has levels, levels of which the model knows none, dates.
    """
    column = _columns(ensemble, model)
    level_value = np.full(int(model.columns.level_start[-1]), np.nan)
    for f, j in enumerate(column.tolist()):
        values = _level_values(ensemble, f, model.schema.columns[j])
        first = model.columns.level_start[model.columns.slot[j]] if len(values) else 0
        level_value[first : first + len(values)] = values
    splits, marks = _regions(ensemble, model, column, level_value)
    components = Components(*components_of(model.leaves, len(model.schema.columns)))
    masses = Masses(_level_masses(model, components), np.empty((0, 0)), np.full(len(marks.column), -1, dtype=np.int32))
    depth = int(_depths(ensemble).max())
    return Bound(ensemble, column, level_value, splits, marks, components, *_ranges(ensemble), depth, masses, model)


def _level_masses(model: Forest, components: Components) -> np.ndarray:
    """Mass of each level in each component, (C, S)."""
    if not len(model.leaves.node_kind):
        return model.leaves.level_mass
    out = np.empty((len(components.leaf), model.leaves.level_mass.shape[1]))
    fill_levels(model.leaves, model.columns, components, 0, len(out), out)
    return out


def _columns(ensemble: Ensemble, model: Forest) -> np.ndarray:
    """The joint's column of each feature."""
    names, d = model.schema.names, len(model.schema.names)
    if by_position(ensemble) and not set(ensemble.names) <= set(names):
        if len(ensemble.names) > d:
            raise ValueError(
                f"the {ensemble.library} has {len(ensemble.names)} features without names, the joint only {d} columns; "
                "fit the model on a frame with the joint's names"
            )
        return np.arange(len(ensemble.names), dtype=np.int32)
    absent = [name for name in ensemble.names if name not in names]
    if absent:
        shown = ", ".join(f"{name!r} ({near(name, names)})" for name in absent[:3])
        more = f" and {len(absent) - 3} more" if len(absent) > 3 else ""
        raise ValueError(
            f"the {ensemble.library} takes columns that the joint does not have: {shown}{more}; "
            "fit the joint on a table with the model's columns"
        )
    return np.array([model.schema.index(name) for name in ensemble.names], dtype=np.int32)


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


def _regions(ensemble: Ensemble, model: Forest, column: np.ndarray, level_value: np.ndarray) -> tuple[Splits, Marks]:
    is_inner = ensemble.feature >= 0
    at = np.where(is_inner, column[np.maximum(ensemble.feature, 0)], -1).astype(np.int32)
    parent, is_left = parents(ensemble.left, ensemble.right)
    ends = np.full((3, len(at)), ZERO, dtype=np.int32)
    of_column: list[int] = [-1, -1]
    edges: list[float] = [0.0, 0.0]
    sets: list[np.ndarray] = [np.empty(0, dtype=np.int32)] * 2
    for j in np.unique(at[is_inner]).tolist():
        nodes = np.flatnonzero(at == j).astype(np.int32)
        if model.columns.is_categorical[j]:
            slot = model.columns.slot[j]
            values = level_value[model.columns.level_start[slot] : model.columns.level_start[slot + 1]]
            found, new = _set_marks(ensemble, at, j, nodes, parent, is_left, values, len(of_column))
            sets += new
            edges += [0.0] * len(new)
        else:
            found, new_edges = _edge_marks(ensemble, model, at, j, nodes, parent, is_left, len(of_column))
            edges += new_edges
            sets += [np.empty(0, dtype=np.int32)] * len(new_edges)
        of_column += [j] * (len(edges) - len(of_column))
        ends[:, nodes] = found
    marks = Marks(
        np.array(of_column, dtype=np.int32),
        np.array(edges),
        np.cumsum([0] + [len(levels) for levels in sets]).astype(np.int32),
        np.concatenate(sets).astype(np.int32),
    )
    lo, mid, hi = (np.ascontiguousarray(end) for end in ends)
    splits = Splits(
        feature=ensemble.feature,
        threshold=ensemble.threshold,
        levels_at=ensemble.levels_at,
        left_levels=ensemble.left_levels,
        other_left=ensemble.other_left,
        left=ensemble.left,
        right=ensemble.right,
        leaf=ensemble.leaf,
        root=ensemble.root,
        column=at,
        lo=lo,
        mid=mid,
        hi=hi,
        is_set=np.where(is_inner, model.columns.is_categorical[at], 0).astype(np.uint8),
    )
    return splits, marks


def _edge_marks(
    ensemble: Ensemble,
    model: Forest,
    at: np.ndarray,
    j: int,
    nodes: np.ndarray,
    parent: np.ndarray,
    is_left: np.ndarray,
    n_marks: int,
) -> tuple[np.ndarray, list[float]]:
    """Marks (lo, mid, hi) of the nodes of a numeric column, (3, nodes), and the edges of new ones."""
    slot = model.columns.slot[j]
    step, origin = model.columns.step[slot], model.columns.origin[slot]
    edge = np.zeros(len(at))
    edge[nodes] = ensemble.threshold[nodes] if step == 0 else cell_edges(ensemble.threshold[nodes], step, origin)
    regions = numeric_regions(parent, is_left, at, j, nodes, edge)
    edges = np.unique(regions[np.isfinite(regions)])
    place = np.searchsorted(edges, regions) + n_marks
    return np.where(regions == -np.inf, ZERO, np.where(regions == np.inf, ONE, place)), edges.tolist()


def _set_marks(
    ensemble: Ensemble,
    at: np.ndarray,
    j: int,
    nodes: np.ndarray,
    parent: np.ndarray,
    is_left: np.ndarray,
    values: np.ndarray,
    n_marks: int,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Marks (lo, mid, hi) of the nodes of a column of levels, (3, nodes), and the sets of new ones."""
    goes_left = np.stack([levels_left(ensemble, int(node), values) for node in nodes])
    place = np.zeros(len(at), dtype=np.int32)
    place[nodes] = np.arange(len(nodes))
    reach = level_regions(parent, is_left, at, j, nodes, place, goes_left)
    both = np.concatenate([reach & goes_left, reach])
    _, first, number = np.unique(np.packbits(both, axis=1), axis=0, return_index=True, return_inverse=True)
    sets = [np.flatnonzero(both[i]).astype(np.int32) for i in first]
    own = np.cumsum([0] + [0 < len(s) < len(values) for s in sets[:-1]]) + n_marks
    mark = np.array(
        [ZERO if not len(s) else ONE if len(s) == len(values) else m for s, m in zip(sets, own, strict=True)]
    )
    mid, hi = mark[number.ravel()].reshape(2, -1)
    return np.stack([np.full_like(mid, ZERO), mid, hi]), [s for s in sets if 0 < len(s) < len(values)]


def levels_left(ensemble: Ensemble, node: int, values: np.ndarray) -> np.ndarray:
    """Which of the levels with these ``values`` (see `Bound.level_value`) go left at a node, uint8 (levels,)."""
    if ensemble.levels_at[node] < 0:
        return (values <= ensemble.threshold[node]).astype(np.uint8)
    code = np.where(np.isnan(values), 0, values).astype(np.int64)
    words = ensemble.left_levels[ensemble.levels_at[node] + (code >> 6)]
    bit = (words >> (code & 63).astype(np.uint64)) & np.uint64(1)
    return np.where(np.isnan(values), ensemble.other_left[node], bit).astype(np.uint8)


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
