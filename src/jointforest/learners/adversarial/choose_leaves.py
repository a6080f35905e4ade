"""Which columns of numbers get quantile leaves: those that normals bend, where held-out rows do not mind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...data.build_evidence import build
from ...models.box_forest.forest import Forest
from ...models.box_forest.posterior import log_density
from ..base import Rows
from ..leaf_fitting.assign_rows import Arrival, first_trees
from ..leaf_fitting.densities import FittedTree, as_forest, fit_trees, quantile_trees
from ..leaf_fitting.fit import Settings, Table
from ..leaf_fitting.quantile_columns import bent_slots, fits, not_worse

_HELD_OUT = 0.25  # of the rows
_TESTED = 2_000  # most of them that are asked
_TREES, _MANY_ROWS, _FEWER_TREES = 10, 10_000, 3  # that they ask: ten, three of tables of many rows
_EPSILON = 1e-3  # weight of their background
_FEWEST = 20  # held-out rows that can say anything
_GROUPS = 16  # of columns that are asked about together: one each, but in wide tables


def quantile_slots(
    rows: Rows,
    cells: Table,
    arrival: Arrival,
    settings: Settings,
    plain: Sequence[FittedTree],
    forest: Forest,
    weight: np.ndarray | None,
    seed: int,
    n_jobs: int | None,
) -> np.ndarray:
    """Numeric slots of a ``forest`` of ``plain`` trees, with normal leaves, that had better have quantile leaves.

    Bool (p,).
    All that it bends, unless held-out rows like normals better by more than a standard error: in leaves of the same
    trees, learned from the other rows. Then each is asked about alone, and only those count that they like better so.
    None where tables would be larger than `MOST_BYTES`, by the first tree.
    """
    bent = bent_slots(forest, rows.X, weight, n_jobs)

    def with_quantile(part: Arrival, fitted: Sequence[FittedTree], slots: np.ndarray) -> list[FittedTree]:
        return quantile_trees(rows.columns, cells, part, fitted, slots, settings.quantile_epsilon, n_jobs)

    def joined(part: Arrival, fitted: Sequence[FittedTree]) -> Forest:
        return as_forest(rows.schema, rows.columns, cells, part.trees, fitted, _EPSILON)

    if bent.any():
        [(leaves, learned)] = with_quantile(first_trees(arrival, 1), plain[:1], bent)
        n_rows = len(leaves.rows) + (0 if learned is None else len(learned[1].rows))
        bent = bent & fits(rows.columns, n_rows, len(arrival.trees.root))
    held = np.random.default_rng([seed, 4]).permutation(len(rows.X))[: int(_HELD_OUT * len(rows.X))]
    if not bent.any() or len(held) < _FEWEST:
        return bent
    few = first_trees(arrival, _FEWER_TREES if len(rows.X) >= _MANY_ROWS else _TREES)
    part = np.broadcast_to(few.weight, few.leaf_of.shape).copy()
    part[:, held] = 0.0
    few = few._replace(weight=part)
    asked = held[:_TESTED]
    tested = build(rows.schema, rows.X[asked])
    fitted = fit_trees(rows.columns, cells, few, settings, n_jobs, quantile=np.zeros_like(bent))
    normal = log_density(joined(few, fitted), tested, n_jobs)
    judged_by = None if weight is None else weight[asked]

    def gain(slots: np.ndarray) -> np.ndarray:
        return log_density(joined(few, with_quantile(few, fitted, slots)), tested, n_jobs) - normal

    if not_worse(gain(bent), judged_by):
        return bent
    liked = np.zeros_like(bent)
    slots = np.flatnonzero(bent)
    if len(slots) == 1:
        return liked  # it was asked about alone
    for few_slots in np.array_split(slots, min(len(slots), _GROUPS)):
        alone = np.isin(np.arange(len(bent)), few_slots)
        liked |= alone & (np.average(gain(alone), weights=judged_by) > 0.0)
    return liked
