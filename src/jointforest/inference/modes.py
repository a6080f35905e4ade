"""The most probable rows of a model of any known parts, and a bound."""

from __future__ import annotations

import numpy as np

from ..data.evidence import Evidence, build
from ..models.base import Distribution
from ..models.box_forest.modes import BUDGET, ModePoints, modes, refuse_soft


def model_modes(model: Distribution, evidence: Evidence, k: int, budget: int = BUDGET) -> ModePoints:
    """The k best rows that were found under one row of evidence, by the density of the distribution, and a bound.

    A mixture is nowhere greater than the weighted sum of its components' bounds; its rows are the best of its
    components' rows.
    """
    if model.is_forest:
        return modes(model.forest_for("mode"), evidence, k, budget)
    refuse_soft(model.schema, evidence)
    if model.log_density(evidence)[0] == -np.inf:
        raise ValueError("the evidence has probability 0; drop or widen one of its conditions")
    if model.observe(evidence).knowing(range(len(model.schema.columns))).log_probability()[0] == -np.inf:
        raise ValueError(
            "mode: no row that agrees with the evidence has a value in every column, as rules make cells missing; "
            "ask joint.select(...) of fewer columns"
        )
    X, log_bound = model.modes(evidence, k, budget)
    X = np.unique(X, axis=0)
    density = model.log_density(build(model.schema, X))
    order = np.argsort(-density, kind="stable")[:k]
    return ModePoints(X[order], density[order], max(log_bound, float(density[order[0]])))
