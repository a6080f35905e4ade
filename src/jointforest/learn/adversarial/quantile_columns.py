"""Which columns of numbers get quantile leaves: those that normals bend, where held-out rows do not mind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...forest.forest import Forest
from ...forest.posterior.density import log_density
from ...leaves.fit.fit import Settings
from ...leaves.fit.prepare import Table
from ...table.build_evidence import build
from ..arrival import Arrival, first_trees
from ..base import Rows
from ..bent_columns import bent_slots, fits, not_worse
from ..densities import FittedTree, as_forest, fit_trees, quantile_trees

_HELD_OUT = 0.25  # of the rows
_TESTED = 2_000  # most of them that are asked
_TREES, _MANY_ROWS, _FEWER_TREES = 10, 10_000, 3  # that they ask: ten, three of tables of many rows
_EPSILON = 1e-3  # weight of their background
_FEWEST = 20  # held-out rows that can say anything


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
    All that it bends, but none where held-out rows like normals better by more than a standard error: in leaves of the
    same trees, learned from the other rows; and none where tables would be larger than `MOST_BYTES`, by the first tree.
    """
    bent = bent_slots(forest, rows.X, weight, n_jobs)

    def with_quantile(part: Arrival, fitted: Sequence[FittedTree]) -> list[FittedTree]:
        return quantile_trees(rows.columns, cells, part, fitted, bent, settings.quantile_epsilon, n_jobs)

    def joined(part: Arrival, fitted: Sequence[FittedTree]) -> Forest:
        return as_forest(rows.schema, rows.columns, cells, part.trees, fitted, _EPSILON)

    if bent.any():
        [(leaves, learned)] = with_quantile(first_trees(arrival, 1), plain[:1])
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
    both = joined(few, with_quantile(few, fitted)), joined(few, fitted)
    quantile, normal = (log_density(forest, tested, n_jobs) for forest in both)
    gain = quantile - normal
    return bent if not_worse(gain, None if weight is None else weight[asked]) else np.zeros_like(bent)
