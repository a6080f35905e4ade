"""Which features of a generative forest get quantile leaves: those that normals bend, where out-of-bag rows agree."""

from __future__ import annotations

import numpy as np

from ...forest.forest import Forest
from ...leaves.fit.fit import Settings
from ...table.build_evidence import build
from ..arrival import Arrival, first_trees
from ..bent_columns import bent_slots, fits, not_worse
from ..densities import learn_densities
from ..out_of_bag import oob_log_density
from .targets import Training
from .tuning import EPSILON, PILOT_TREES, choose_beta, judges_of, judging_rows


def quantile_slots(
    training: Training, arrival: Arrival, settings: Settings, target: Settings, seed: int, n_jobs: int | None
) -> np.ndarray:
    """Numeric slots of features that normal leaves bend and that had better have quantile leaves: bool (p,).

    All that are bent, or none: where out-of-bag rows are less probable then, or their targets predicted worse, by more
    than a standard error; where no row is out of bag; where tables would be larger than `MOST_BYTES`.
    """
    columns = training.columns
    none = np.zeros(len(columns.step), bool)
    few = first_trees(arrival, PILOT_TREES)
    rows = judging_rows(few, judges_of(seed))
    if not len(rows) or not (columns.is_categorical[:-1] == 0).any():
        return none

    def learned(part: Arrival, slots: np.ndarray) -> Forest:
        table = training.table
        return learn_densities(training.schema, columns, table, part, settings, EPSILON, n_jobs, target, quantile=slots)

    normal = learned(few, none)
    bent = bent_slots(normal, training.X, few.weight.sum(axis=0), n_jobs)
    if not columns.is_categorical[-1]:
        bent[columns.slot[-1]] = False
    if not bent.any():
        return none
    one = learned(first_trees(arrival, 1), bent)
    if not fits(columns, len(one.leaves.tree), len(arrival.trees.root)):
        return none
    quantile = learned(few, bent)
    evidence, drawn = build(training.schema, training.X[rows]), few.weight[:, rows] > 0
    before, after = (oob_log_density(forest, evidence, drawn, n_jobs) for forest in (normal, quantile))
    losses = [choose_beta(forest, training, few, seed, n_jobs)[1] for forest in (normal, quantile)]
    return bent if not_worse(after - before) and not_worse(losses[0] - losses[1]) else none
