"""The last pass over a table in batches: rows are counted in the leaves of trees that a sample of them made."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...forest.forest import Forest
from ...ground.progress import bar
from ...ground.threads import map_ordered
from ...io.batches import Batches
from ...leaves.fit.fit import Settings
from ...leaves.fit.marks import marks_of, values_of_marks
from ...leaves.fit.prepare import Table, codes_of, marginals
from ...leaves.fit.quantile import quantile_circuits
from ...leaves.fit.running import Running, add_rows, leaf_sums_of, no_rows, one_leaf
from ...leaves.fit.values import values_of_rows
from ...table.columns import Columns
from ...table.infer.keys import row_keys
from ...table.schema import Schema
from ...trees.adopt.adopt import with_weights
from ...trees.boxes import tree_boxes
from ...trees.route_kernels import route_by_key
from ..arrival import Arrival, first_leaves, rows_in_leaves
from ..densities import FittedTree, as_forest, columns_of, fit_leaves, quantile_leaves
from .rows import cells_of, check_number


class Structure(NamedTuple):
    """Trees that were grown on a sample of rows, and how their leaves are to be filled.

    Attributes
    ----------
    schema : Schema
    columns : Columns
    cells : Table
        The sample.
    arrival : Arrival
        The trees, and where the sample ends in them.
    settings : Settings
    quantile : bool array (p,) or None
        Numeric slots with quantile leaves: see `densities.learn_densities`.
    seed : int
        Of the keys of rows.
    target : Settings or None
        How leaves are filled with the last column, where it is the target of the trees.
    """

    schema: Schema
    columns: Columns
    cells: Table
    arrival: Arrival
    settings: Settings
    quantile: np.ndarray | None
    seed: int
    target: Settings | None = None


def empty(structure: Structure) -> list[Running]:
    """Sums of no rows, one for each tree."""
    arrival, table = structure.arrival, structure.cells
    first = first_leaves(arrival.trees)
    slots = columns_of(structure.columns, _modelled(structure))

    def one(t: int) -> Running:
        rows, start = rows_in_leaves(arrival, first, t)
        marks = {
            slot: marks_of(values_of_rows(table.values[j], table.codes[j], rows, start, arrival.weight[t]))
            for slot, j in slots
        }
        return no_rows(structure.columns, int(first[t + 1] - first[t]), table.centre, table.spread, marks)

    return [one(t) for t in range(len(first) - 1)]


def add_batch(sums: list[Running], structure: Structure, batch: Any, n_jobs: int | None) -> int:
    """Add the rows of a batch to the sums; how many they are."""
    columns, trees = structure.columns, structure.arrival.trees
    reader, X = cells_of(structure.schema, batch)
    values = np.ascontiguousarray(X.T)
    codes, first = codes_of(columns, values), first_leaves(trees)
    keys = np.zeros(len(X), np.uint64)
    if np.isnan(X).any():
        keys = row_keys(((name, reader.cells(name)) for name in reader.names), reader.n, structure.seed)

    def one(t: int) -> None:
        leaf_of = np.empty(len(X), np.int32)
        route_by_key(trees, values, keys, t, int(first[t]), leaf_of)
        add_rows(sums[t], columns, values, codes, leaf_of)

    list(map_ordered(one, [(t,) for t in range(len(sums))], n_jobs))
    return len(X)


def finish(structure: Structure, sums: list[Running], epsilon: float, n_jobs: int | None) -> Forest:
    """The forest whose leaf densities are those of all rows that were added."""
    columns = structure.columns
    whole = marginals(columns, leaf_sums_of(columns, one_leaf(columns, sums[0])))
    table = whole._replace(values=structure.cells.values, codes=structure.cells.codes)
    trees = with_weights(structure.arrival.trees, np.concatenate([of.size for of in sums]))

    def one(t: int) -> FittedTree:
        box, of_leaves = tree_boxes(trees, columns, t), leaf_sums_of(columns, sums[t])
        leaves = fit_leaves(columns, table, of_leaves, box, structure.settings, structure.target)
        values = {
            slot: values_of_marks(marks, of_leaves, slot, float(columns.step[slot]))
            for slot, marks in sums[t].marks.items()
        }
        if not values:
            return leaves, None
        epsilon = structure.settings.quantile_epsilon
        return leaves, quantile_circuits(columns, table, values, leaves, *box[:2], epsilon)

    fitted = list(map_ordered(one, [(t,) for t in range(len(sums))], n_jobs, "leaves"))
    return as_forest(structure.schema, columns, table, trees, fitted, epsilon)


def _modelled(structure: Structure) -> np.ndarray:
    """Numeric slots with quantile leaves, bool (p,)."""
    has_target = structure.target is not None
    return quantile_leaves(structure.columns, structure.settings, structure.quantile, has_target)


def fill(batches: Batches, n: int, structure: Structure, epsilon: float, n_jobs: int | None) -> Forest:
    """The forest of a table of n rows in batches.

    Raises
    ------
    ValueError
        If the batches have other rows than they had before.
    """
    sums = empty(structure)
    found = 0
    with bar(n, "rows counted") as step:
        for batch in batches():
            found += add_batch(sums, structure, batch, n_jobs)
            step(len(batch))
    check_number(n, found)
    return finish(structure, sums, epsilon, n_jobs)
