"""Which columns of numbers get quantile leaves: those that normals bend, where held-out rows do not mind."""

from __future__ import annotations

import numpy as np

from ...evaluation.marginals import kolmogorov
from ...forest.forest import Forest
from ...forest.posterior.density import log_density
from ...leaves.derived import table_bytes
from ...leaves.fit.fit import Settings
from ...leaves.fit.prepare import Table
from ...model.model import of_forest
from ...queries.rows.sampling import sample
from ...table.build_evidence import build
from ..arrival import Arrival, first_trees
from ..base import Rows
from ..densities import learn_densities

FAR = 0.01
"""Kolmogorov distance of a column's rows and draws, chance aside, beyond which it is bent."""
_CELLS = 4_000_000  # most cells drawn
_DRAWS = 4_000, 20_000  # fewest and most rows drawn
_HELD_OUT = 0.25  # of the rows
_TESTED = 2_000  # most of them that are asked
_TREES = 10  # that they ask
MOST_BYTES = 2**31
"""Size that the forest's tables may have with quantile leaves, which need a row for each piece of a CDF."""
_EPSILON = 1e-3  # weight of their background
_FEWEST = 20  # held-out rows that can say anything


def quantile_slots(
    rows: Rows,
    cells: Table,
    arrival: Arrival,
    settings: Settings,
    forest: Forest,
    weight: np.ndarray | None,
    seed: int,
    n_jobs: int | None,
) -> np.ndarray:
    """Numeric slots of a ``forest`` of normal leaves that had better have quantile leaves: bool (p,).

    All that it bends, but none where held-out rows like normals better by more than a standard error: in leaves of the
    same trees, learned from the other rows; and none where tables would be larger than `MOST_BYTES`, by the first tree.
    """
    bent = bent_slots(forest, rows, weight, n_jobs)

    def learned(part: Arrival, slots: np.ndarray) -> Forest:
        return learn_densities(rows.schema, rows.columns, cells, part, settings, _EPSILON, n_jobs, quantile=slots)

    if bent.any():
        n_rows = len(learned(first_trees(arrival, 1), bent).leaves.tree) * len(arrival.trees.root)
        bent &= table_bytes(rows.columns, n_rows) <= MOST_BYTES
    held = np.random.default_rng([seed, 4]).permutation(len(rows.X))[: int(_HELD_OUT * len(rows.X))]
    if not bent.any() or len(held) < _FEWEST:
        return bent
    few = first_trees(arrival, _TREES)
    part = np.broadcast_to(few.weight, few.leaf_of.shape).copy()
    part[:, held] = 0.0
    asked = held[:_TESTED]
    tested = build(rows.schema, rows.X[asked])
    few, none = few._replace(weight=part), np.zeros_like(bent)

    gain = log_density(learned(few, bent), tested, n_jobs) - log_density(learned(few, none), tested, n_jobs)
    mean = np.average(gain, weights=None if weight is None else weight[asked])
    return bent if mean >= -gain.std() / np.sqrt(len(gain)) else none


def bent_slots(forest: Forest, rows: Rows, weight: np.ndarray | None, n_jobs: int | None) -> np.ndarray:
    """The numeric slots whose marginal in the forest is not that of the rows, of weights (n,) or None: bool (p,)."""
    n_draws = int(np.clip(_CELLS // rows.X.shape[1], *_DRAWS))
    drawn = sample(of_forest(forest), build(rows.schema), n_draws, 0, False, n_jobs)
    most = FAR + 1.0 / np.sqrt(n_draws)
    bent = np.zeros(len(rows.columns.step), bool)
    for j in np.flatnonzero(rows.columns.is_categorical == 0):
        x, y = rows.X[:, j], drawn[:, j]
        known = ~np.isnan(x)
        far = kolmogorov(x[known], y[~np.isnan(y)], None if weight is None else weight[known])
        bent[rows.columns.slot[j]] = far > most
    return bent
