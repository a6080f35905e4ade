"""The last pass over a table in batches: rows are counted in the leaves of trees that a sample of them made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...data.schema import Columns, Schema, edges
from ...models.box_forest.descent_kernels import route_by_key
from ...models.box_forest.leaves.levels import layout
from ...models.box_forest.structure import Forest, Trees, tree_boxes, with_weights
from ...models.hidden_tree.hidden_trees import HiddenTrees
from ...runtime.arrays import sums_by_key
from ...runtime.threads import map_ordered
from ..hidden_tree.first_joint import fill_in
from ..leaf_fitting import densities, quantile
from ..leaf_fitting.fit import LeafSums, ListedLevels, Settings, Table, TreeLeaves, kernel_codes, marginals
from ..leaf_fitting.running_kernels import add_numbers, add_pairs, count_levels, moments_of
from .sample import FoldBatches, Pass, Weights, batch_cells, check_row_count, refuse_unseen_ranges

# ---- Assigns the rows of a batch to the leaves of trees that were grown on a sample, and counts them.

Sizes = Callable[[Trees], np.ndarray]
"""Rows of a whole table that end in each leaf of trees, int64 (L,)."""


class Route(NamedTuple):
    """Trees, and everything that assigns rows to their leaves.

    seed : int. Of the keys of rows.
    weights : Weights or None. None: rows count alike.
    first : HiddenTrees or None. Draws missing cells; None: rows take a side of a split by chance.
    """

    schema: Schema
    columns: Columns
    trees: Trees
    seed: int
    weights: Weights | None
    first: HiddenTrees | None


class Routed(NamedTuple):
    """Rows of a batch, float64 and int32 (d, n) as in `fit.Table`, and where they end. ``times``, int64 (n,), is how
    many rows each counts as; ``leaf_of(t)`` gives the leaves in tree t, int32 (n,), numbered within the tree."""

    values: np.ndarray
    codes: np.ndarray
    times: np.ndarray
    leaf_of: Callable[[int], np.ndarray]


def routed(route: Route, batch: Any) -> Routed:
    """The rows of a batch, a frame, and where they end."""
    weights = route.weights
    rows = batch_cells(route.schema, batch, weights.name if weights else None)
    reader, X, ranges = rows.reader, rows.X, rows.ranges
    first, keys, filled = densities.first_leaves(route.trees), np.zeros(len(X), np.uint64), X
    if ranges is not None and route.first is None:
        refuse_unseen_ranges(route.schema, ranges)
    if np.isnan(X).any():
        keys = rows.keys(route.seed)
        if route.first is not None:
            filled = fill_in(route.first, X, keys, ranges)
    X = X if ranges is None else np.where(ranges.number >= 0, filled, X)
    values, filled = np.ascontiguousarray(X.T), np.ascontiguousarray(filled.T)

    def leaf_of(t: int) -> np.ndarray:
        out = np.empty(len(X), np.int32)
        route_by_key(route.trees, filled, keys, t, int(first[t]), out)
        return out

    times = weights.counts(reader) if weights else np.ones(len(X), np.int64)
    return Routed(values, kernel_codes(route.columns, values), times, leaf_of)


def leaf_sizes(
    fold: FoldBatches,
    n: int,
    schema: Schema,
    columns: Columns,
    seed: int,
    weights: Weights | None,
    first_joint: HiddenTrees | None,
    trees: Trees,
) -> np.ndarray:
    """Rows of a table of n that end in each leaf, int64 (L,), whatever their weights, by a pass over it."""
    route = Route(schema, columns, trees, seed, weights, first_joint)
    first = densities.first_leaves(trees)
    sizes: np.ndarray = fold(
        Pass(partial(np.zeros, first[-1], np.int64), partial(_count_rows, route), np.add, "looking at rows"), n
    )
    check_row_count(n, int(sizes[: first[1]].sum()))
    return sizes


def _count_rows(route: Route, sizes: np.ndarray, batch: Any) -> np.ndarray:
    """Count the rows of a batch."""
    first, rows = densities.first_leaves(route.trees), routed(route, batch)

    def one(t: int) -> np.ndarray:
        return np.bincount(rows.leaf_of(t), minlength=int(first[t + 1] - first[t]))

    return sizes + np.concatenate(list(map_ordered(one, [(t,) for t in range(len(first) - 1)])))


class Structure(NamedTuple):
    """Trees that were grown on a sample of rows, and how their leaves are to be filled.

    cells : Table. The sample.
    assigned : AssignedRows. The trees, and where the sample ends in them.
    quantile : bool array (p,) or None. Numeric slots with quantile leaves: see `densities.learn_densities`.
    seed : int. Of the keys of rows.
    target : Settings or None. How leaves are filled with the last column, where it is the target of the trees.
    weights : Weights or None. Of the rows; None: they count alike.
    first : HiddenTrees or None. What draws missing cells: see `Route`.
    """

    schema: Schema
    columns: Columns
    cells: Table
    assigned: densities.AssignedRows
    settings: Settings
    quantile: np.ndarray | None
    seed: int
    target: Settings | None = None
    weights: Weights | None = None
    first: HiddenTrees | None = None


class Filling(NamedTuple):
    """What a batch of rows needs to be counted in leaves: a structure without its rows.

    centre, spread : float64 arrays (p,). Scale of the sums: see `fit.Table`.
    marks : list of dicts of slot to Marks. Of each tree: where rows of quantile leaves are counted.
    """

    route: Route
    centre: np.ndarray
    spread: np.ndarray
    marks: list[dict[int, quantile.Marks]]


def filling_of(structure: Structure) -> Filling:
    """What batches need of a structure."""
    assigned, table = structure.assigned, structure.cells
    first = densities.first_leaves(assigned.trees)
    slots, n_trees = densities.slots_and_columns(structure.columns, _modelled(structure)), len(first) - 1
    placed = [densities.rows_in_leaves(assigned, first, t) for t in range(n_trees if slots else 0)]

    def one(t: int, j: int) -> quantile.Marks:
        return quantile.marks_of(
            quantile.values_of_rows(table.values[j], table.codes[j], *placed[t], assigned.weight[t])
        )

    made = map_ordered(one, [(t, j) for t in range(n_trees) for _, j in slots])
    marks = [{slot: next(made) for slot, _ in slots} for _ in range(n_trees)]
    about = structure.seed, structure.weights, structure.first
    route = Route(structure.schema, structure.columns, assigned.trees, *about)
    return Filling(route, table.centre, table.spread, marks)


def empty(filling: Filling) -> list[Running]:
    """Sums of no rows, one for each tree."""
    columns, trees = filling.route.columns, filling.route.trees
    sizes = np.diff(densities.first_leaves(trees)).tolist()
    no_counts_of_trees = [{slot: quantile.no_counts(marks) for slot, marks in of.items()} for of in filling.marks]
    return [
        no_leaf_rows(columns, n, filling.centre, filling.spread, marks)
        for n, marks in zip(sizes, no_counts_of_trees, strict=True)
    ]


def add_batch(filling: Filling, sums: list[Running], batch: Any) -> list[Running]:
    """Add the rows of a batch to the sums."""
    rows = routed(filling.route, batch)

    def one(t: int) -> None:
        add_leaf_rows(sums[t], filling.route.columns, rows.values, rows.codes, rows.leaf_of(t), rows.times)

    list(map_ordered(one, [(t,) for t in range(len(sums))]))
    return sums


def merge(sums: list[Running], other: list[Running]) -> list[Running]:
    """Add the sums over other rows to the sums."""
    for of_tree, more in zip(sums, other, strict=True):
        add_sums(of_tree, more)
    return sums


def finish(structure: Structure, sums: list[Running], epsilon: float) -> Forest:
    """The forest whose leaf densities are those of all rows that were added."""
    columns = structure.columns
    # what is counted in parts of the largest weight, in rows: weights have a mean of 1
    unit = 1.0 if structure.weights is None else int(sums[0].rows) / float(sums[0].size.sum())
    marginal = marginals(columns, leaf_sums_of(columns, one_leaf(columns, sums[0]), unit), edges(structure.schema))
    table = marginal._replace(values=structure.cells.values, codes=structure.cells.codes)
    trees = with_weights(structure.assigned.trees, np.concatenate([of.size * unit for of in sums]))

    def one(t: int) -> TreeLeaves:
        box, of_leaves = tree_boxes(trees, columns, t), leaf_sums_of(columns, sums[t], unit)
        leaves = densities.fit_leaves(columns, table, of_leaves, box, structure.settings, structure.target)
        if not sums[t].marks:
            return leaves

        def of_slot(slot: int, marks: quantile.Marks) -> quantile.LeafCdfs:
            values = quantile.values_of_marks(marks, of_leaves, slot, float(columns.step[slot]), unit)
            return quantile.leaf_cdfs(columns, table, slot, values, box[:2], structure.settings.quantile_epsilon)

        cdfs = map_ordered(of_slot, list(sums[t].marks.items()))
        return quantile.with_cdfs(leaves, dict(zip(sums[t].marks, cdfs, strict=True)))

    fitted = list(map_ordered(one, [(t,) for t in range(len(sums))], "fitting leaves"))
    return densities.as_forest(structure.schema, columns, table, trees, fitted, epsilon)


def _modelled(structure: Structure) -> np.ndarray:
    """Numeric slots with quantile leaves, bool (p,)."""
    has_target = structure.target is not None
    return densities.quantile_leaves(structure.columns, structure.settings, structure.quantile, has_target)


def fill_leaves(fold: FoldBatches, n: int, structure: Structure, epsilon: float) -> Forest:
    """The forest of a table of n rows, by a pass over it; ValueError if the batches have other rows than before."""
    filling = filling_of(structure)
    sums = fold(Pass(partial(empty, filling), partial(add_batch, filling), merge, "counting rows"), n)
    check_row_count(n, int(sums[0].rows))
    return finish(structure, sums, epsilon)


# ---- Sums over the rows of leaves in batches: the same whatever the batches, and the order in which they come.
# ---- What is counted is counted in whole numbers; what is added up is added with twice the precision of float64.


_WAITING = 2_000_000
"""Levels of a wide column that wait to be counted, which bounds memory."""


class Running(NamedTuple):
    """Sums over the rows in each of the l leaves of a tree, to which rows can be added.

    rows : int64 array (). Rows in all.
    size : int64 array (l,). What rows count for in all, as everything below: 1 each, or whole numbers by their weights.
    atoms : list of p int64 arrays (l, n_atoms)
    cells : int64 array (p, l, 2). Rows whose number is missing, and whose number lies on no atom.
    ends : float64 array (p, l, 2). Smallest and largest of the latter.
    total, squares : float64 arrays (p, l, 2). Sums of their distances from ``centre`` over ``unit``, and of the
        squares, as pairs: see `running_kernels`.
    absent : int64 array (c, l). Rows whose level is missing.
    levels : list of int64 arrays (l, K). Rows with each level, of the columns that are not wide.
    wide : list of lists of (keys, counts). Of each wide column: leaf times number of levels plus level, ascending, and
        how many rows, each int64 (k,); the counts are those of all of the list.
    centre, unit : float64 arrays (p,)
    marks : dict of slot to Marks. Rows at and between marks, of columns with quantile leaves.
    """

    rows: np.ndarray
    size: np.ndarray
    atoms: list[np.ndarray]
    cells: np.ndarray
    ends: np.ndarray
    total: np.ndarray
    squares: np.ndarray
    absent: np.ndarray
    levels: list[np.ndarray]
    wide: list[list[tuple[np.ndarray, np.ndarray]]]
    centre: np.ndarray
    unit: np.ndarray
    marks: Mapping[int, quantile.Marks]


def no_leaf_rows(
    columns: Columns, n_leaves: int, centre: np.ndarray, unit: np.ndarray, marks: Mapping[int, quantile.Marks]
) -> Running:
    """Sums without any row."""
    p, where = len(columns.step), layout(columns)
    sizes = np.diff(columns.level_start)
    return Running(
        rows=np.zeros((), np.int64),
        size=np.zeros(n_leaves, np.int64),
        atoms=[np.zeros((n_leaves, n_atoms), np.int64) for n_atoms in np.diff(columns.atom_start)],
        cells=np.zeros((p, n_leaves, 2), np.int64),
        ends=np.broadcast_to([np.inf, -np.inf], (p, n_leaves, 2)).copy(),
        total=np.zeros((p, n_leaves, 2)),
        squares=np.zeros((p, n_leaves, 2)),
        absent=np.zeros((len(sizes), n_leaves), np.int64),
        levels=[np.zeros((n_leaves, K), np.int64) for K in sizes[where.place >= 0]],
        wide=[[] for _ in where.slots],
        centre=centre,
        unit=unit,
        marks=marks,
    )


def add_leaf_rows(
    sums: Running, columns: Columns, values: np.ndarray, codes: np.ndarray, leaf_of: np.ndarray, count: np.ndarray
) -> None:
    """Add rows, as in `fit.Table` (d, n), that end in these leaves, int32 (n,), so many times each, int64 (n,)."""
    place = layout(columns).place
    sums.rows[...] += len(leaf_of)
    np.add.at(sums.size, leaf_of, count)
    narrow = iter(sums.levels)
    for j, slot in enumerate(columns.slot.tolist()):
        if not columns.is_categorical[j]:
            scale = np.array([sums.centre[slot], sums.unit[slot]])
            into = sums.atoms[slot], sums.cells[slot], sums.ends[slot], sums.total[slot], sums.squares[slot]
            add_numbers(values[j], codes[j], leaf_of, count, scale, *into)
            if slot in sums.marks:
                quantile.add_values(sums.marks[slot], values[j], codes[j], leaf_of, count)
        elif place[slot] >= 0:
            count_levels(codes[j], leaf_of, count, next(narrow), sums.absent[slot])
        else:
            known = codes[j] >= 0
            np.add.at(sums.absent[slot], leaf_of[~known], count[~known])
            keys = leaf_of[known].astype(np.int64) * columns.n_levels(slot) + codes[j][known]
            _add_wide(sums.wide[-1 - place[slot]], *sums_by_key(keys, count[known]))


def add_sums(sums: Running, other: Running) -> None:
    """Add the sums over other rows to the sums."""
    for field in ("rows", "size", "cells", "absent"):
        getattr(sums, field)[...] += getattr(other, field)
    for sums_here, more in zip(sums.atoms + sums.levels, other.atoms + other.levels, strict=True):
        sums_here += more
    np.minimum(sums.ends[..., 0], other.ends[..., 0], out=sums.ends[..., 0])
    np.maximum(sums.ends[..., 1], other.ends[..., 1], out=sums.ends[..., 1])
    for slot in range(len(sums.total)):
        add_pairs(sums.total[slot], other.total[slot])
        add_pairs(sums.squares[slot], other.squares[slot])
    for slot, marks in sums.marks.items():
        quantile.add_marks(marks, other.marks[slot])
    for counted, parts in zip(sums.wide, other.wide, strict=True):
        for part in parts:
            _add_wide(counted, *part)


def leaf_sums_of(columns: Columns, sums: Running, unit: float = 1.0) -> LeafSums:
    """The sums as leaf densities are made from them; what counts 1 there counts ``unit`` rows here."""
    p, n_leaves = sums.cells.shape[:2]
    off_atoms = np.zeros((p, n_leaves, 5))
    for slot in range(p):
        mean, deviations, count = np.empty(n_leaves), np.empty(n_leaves), sums.cells[slot, :, 1].copy()
        moments_of(count, sums.total[slot], sums.squares[slot], mean, deviations)
        known = count > 0
        # a mean lies between the ends, and rounding does not take it beyond
        mean = np.clip(sums.centre[slot] + sums.unit[slot] * mean, *sums.ends[slot].T)
        off_atoms[slot, known] = np.column_stack([count * unit, mean, deviations * unit, sums.ends[slot]])[known]
    missing = np.empty((n_leaves, len(columns.slot)))
    is_level = columns.is_categorical == 1
    missing[:, ~is_level], missing[:, is_level] = sums.cells[:, :, 0].T, sums.absent.T
    wide = []
    for slot, parts in zip(layout(columns).slots.tolist(), sums.wide, strict=True):
        keys, counts = _counted(parts)
        wide.append(ListedLevels(*np.divmod(keys, columns.n_levels(slot)), counts * unit))
    atoms, levels = (np.concatenate([np.empty((n_leaves, 0)), *of], axis=1) for of in (sums.atoms, sums.levels))
    return LeafSums(sums.size * unit, missing * unit, atoms * unit, off_atoms, sums.unit, levels * unit, tuple(wide))


def one_leaf(columns: Columns, sums: Running) -> Running:
    """The sums of all leaves as those of a single one."""
    wide = []
    for parts, slot in zip(sums.wide, layout(columns).slots.tolist(), strict=True):
        keys, counts = _counted(parts)
        wide.append([sums_by_key(keys % columns.n_levels(slot), counts)])
    return sums._replace(
        size=sums.size.sum(keepdims=True),
        atoms=[of.sum(axis=0, keepdims=True) for of in sums.atoms],
        cells=sums.cells.sum(axis=1, keepdims=True),
        ends=np.stack([sums.ends[..., 0].min(axis=1), sums.ends[..., 1].max(axis=1)], axis=1)[:, None],
        total=_pair_of_all(sums.total),
        squares=_pair_of_all(sums.squares),
        marks={},
        absent=sums.absent.sum(axis=1, keepdims=True),
        levels=[of.sum(axis=0, keepdims=True) for of in sums.levels],
        wide=wide,
    )


def _pair_of_all(pairs: np.ndarray) -> np.ndarray:
    """The sums (p, 1, 2) of pairs (p, l, 2), as pairs."""
    sums = np.empty((len(pairs), 1, 2))
    for slot, of in enumerate(pairs):
        high = math.fsum(of.ravel())
        sums[slot, 0] = high, math.fsum([-high, *of.ravel()])
    return sums


def _add_wide(parts: list[tuple[np.ndarray, np.ndarray]], keys: np.ndarray, counts: np.ndarray) -> None:
    """Add counts of keys; many that wait are counted together."""
    parts.append((keys, counts))
    if sum(len(part) for part, _ in parts[1:]) > max(_WAITING, len(parts[0][0])):
        parts[:] = [_counted(parts)]


def _counted(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """All keys, ascending, and their counts."""
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return sums_by_key(*(np.concatenate(each) for each in zip(*parts, strict=True)))
