"""Choice of quantile leaves: for columns that normals misfit, unless the validation log-likelihood falls."""

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
from ..leaf_fitting.quantile_columns import fits, misfit_slots, not_worse
from .constants import FIXED


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
    """Numeric slots that get quantile leaves in a ``forest`` of ``plain`` trees with normal leaves, bool (p,).

    These are all slots that normals misfit, unless that lowers the validation log-likelihood by more than a standard
    error. The validation rows are held out from the leaves of the same trees. If it is lower, each slot is tried alone,
    and those that raise it are taken. None are taken if the first tree shows that tables would exceed `MOST_BYTES`.
    """
    misfit = misfit_slots(forest, rows.X, weight, n_jobs)

    def with_quantile(part: Arrival, fitted: Sequence[FittedTree], slots: np.ndarray) -> list[FittedTree]:
        return quantile_trees(rows.columns, cells, part, fitted, slots, settings.quantile_epsilon, n_jobs)

    def joined(part: Arrival, fitted: Sequence[FittedTree]) -> Forest:
        return as_forest(rows.schema, rows.columns, cells, part.trees, fitted, FIXED.trial_epsilon)

    if misfit.any():
        [(leaves, learned)] = with_quantile(first_trees(arrival, 1), plain[:1], misfit)
        n_rows = len(leaves.rows) + (0 if learned is None else len(learned[1].rows))
        misfit = misfit & fits(rows.columns, n_rows, len(arrival.trees.root))
    held = np.random.default_rng([seed, 4]).permutation(len(rows.X))[: int(FIXED.trial_share * len(rows.X))]
    if not misfit.any() or len(held) < FIXED.trial_fewest_rows:
        return misfit
    few = first_trees(arrival, FIXED.trial_few_trees if len(rows.X) >= FIXED.trial_many_rows else FIXED.trial_trees)
    part = np.broadcast_to(few.weight, few.leaf_of.shape).copy()
    part[:, held] = 0.0
    few = few._replace(weight=part)
    asked = held[: FIXED.trial_rows]
    tested = build(rows.schema, rows.X[asked])
    fitted = fit_trees(rows.columns, cells, few, settings, n_jobs, quantile=np.zeros_like(misfit))
    normal = log_density(joined(few, fitted), tested, n_jobs)
    judged_by = None if weight is None else weight[asked]

    def gain(slots: np.ndarray) -> np.ndarray:
        return log_density(joined(few, with_quantile(few, fitted, slots)), tested, n_jobs) - normal

    if not_worse(gain(misfit), judged_by):
        return misfit
    better = np.zeros_like(misfit)
    slots = np.flatnonzero(misfit)
    if len(slots) == 1:
        return better  # the trial of all columns was that of this one
    for few_slots in np.array_split(slots, min(len(slots), FIXED.trial_groups)):
        alone = np.isin(np.arange(len(misfit)), few_slots)
        better |= alone & (np.average(gain(alone), weights=judged_by) > 0.0)
    return better
