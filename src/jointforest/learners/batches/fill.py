"""The last pass over a table in batches: rows are counted in the leaves of trees that a sample of them made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...data.schema import Columns, Schema, edges
from ...models.box_forest.descent_kernels import route_by_key
from ...models.box_forest.structure import Forest, Trees, tree_boxes, with_weights
from ...models.hidden_tree.hidden_trees import HiddenTrees
from ...runtime.threads import map_ordered
from ..hidden_tree.first_joint import fill_in
from ..leaf_fitting.densities import (
    AssignedRows,
    as_forest,
    first_leaves,
    fit_leaves,
    quantile_leaves,
    rows_in_leaves,
    slots_and_columns,
)
from ..leaf_fitting.fit import Settings, Table, TreeLeaves, kernel_codes, marginals
from ..leaf_fitting.quantile import (
    LeafCdfs,
    Marks,
    leaf_cdfs,
    marks_of,
    no_counts,
    values_of_marks,
    values_of_rows,
    with_cdfs,
)
from ..leaf_fitting.running import Running, add_leaf_rows, add_sums, leaf_sums_of, no_leaf_rows, one_leaf
from .passes import FoldBatches, Pass
from .sample import Weights, batch_cells, check_row_count, refuse_unseen_ranges

# ---- Assigns the rows of a batch to the leaves of trees that were grown on a sample, and counts them.

Sizes = Callable[[Trees], np.ndarray]
"""Rows of a whole table that end in each leaf of trees, int64 (L,)."""


class Route(NamedTuple):
    """Trees, and all that rows need to be sent down.

    seed : int. Of the keys of rows.
    weights : Weights or None. None: rows count alike.
    first : HiddenTrees or None. What draws missing cells, so that rows without a split's value take a side; None: the
        trees do.
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
    first, keys, filled = first_leaves(route.trees), np.zeros(len(X), np.uint64), X
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
    """Rows of a table of n that end in each leaf, int64 (L,), whatever their weights, by a pass over it. Raises
    ValueError if the batches have other rows than they had before."""
    route = Route(schema, columns, trees, seed, weights, first_joint)
    first = first_leaves(trees)
    sizes: np.ndarray = fold(
        Pass(partial(np.zeros, first[-1], np.int64), partial(_count, route), np.add, "looking at rows"), n
    )
    check_row_count(n, int(sizes[: first[1]].sum()))
    return sizes


def _count(route: Route, sizes: np.ndarray, batch: Any) -> np.ndarray:
    """Count the rows of a batch."""
    first, rows = first_leaves(route.trees), routed(route, batch)

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
    assigned: AssignedRows
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
    marks: list[dict[int, Marks]]


def filling_of(structure: Structure) -> Filling:
    """What batches need of a structure."""
    assigned, table = structure.assigned, structure.cells
    first = first_leaves(assigned.trees)
    slots, n_trees = slots_and_columns(structure.columns, _modelled(structure)), len(first) - 1
    placed = [rows_in_leaves(assigned, first, t) for t in range(n_trees if slots else 0)]

    def one(t: int, j: int) -> Marks:
        return marks_of(values_of_rows(table.values[j], table.codes[j], *placed[t], assigned.weight[t]))

    made = map_ordered(one, [(t, j) for t in range(n_trees) for _, j in slots])
    marks = [{slot: next(made) for slot, _ in slots} for _ in range(n_trees)]
    about = structure.seed, structure.weights, structure.first
    route = Route(structure.schema, structure.columns, assigned.trees, *about)
    return Filling(route, table.centre, table.spread, marks)


def empty(filling: Filling) -> list[Running]:
    """Sums of no rows, one for each tree."""
    columns, trees = filling.route.columns, filling.route.trees
    sizes = np.diff(first_leaves(trees)).tolist()
    no_counts_of_trees = [{slot: no_counts(marks) for slot, marks in of.items()} for of in filling.marks]
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
        leaves = fit_leaves(columns, table, of_leaves, box, structure.settings, structure.target)
        if not sums[t].marks:
            return leaves

        def of_slot(slot: int, marks: Marks) -> LeafCdfs:
            values = values_of_marks(marks, of_leaves, slot, float(columns.step[slot]), unit)
            return leaf_cdfs(columns, table, slot, values, box[:2], structure.settings.quantile_epsilon)

        cdfs = map_ordered(of_slot, list(sums[t].marks.items()))
        return with_cdfs(leaves, dict(zip(sums[t].marks, cdfs, strict=True)))

    fitted = list(map_ordered(one, [(t,) for t in range(len(sums))], "fitting leaves"))
    return as_forest(structure.schema, columns, table, trees, fitted, epsilon)


def _modelled(structure: Structure) -> np.ndarray:
    """Numeric slots with quantile leaves, bool (p,)."""
    has_target = structure.target is not None
    return quantile_leaves(structure.columns, structure.settings, structure.quantile, has_target)


def fill_leaves(fold: FoldBatches, n: int, structure: Structure, epsilon: float) -> Forest:
    """The forest of a table of n rows, by a pass over it. Raises ValueError if the batches have other rows than they
    had before."""
    filling = filling_of(structure)
    sums = fold(Pass(partial(empty, filling), partial(add_batch, filling), merge, "counting rows"), n)
    check_row_count(n, int(sums[0].rows))
    return finish(structure, sums, epsilon)
