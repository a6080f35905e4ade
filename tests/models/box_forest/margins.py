"""How small the margin of a prediction can become when every parameter is contaminated by a given epsilon."""

from __future__ import annotations

import math

import numpy as np

from jointforest.data.evidence import Evidence
from jointforest.models.box_forest import robustness_kernels
from jointforest.models.box_forest.box_forest import BoxForest
from jointforest.models.box_forest.posterior import log_density
from jointforest.models.box_forest.robustness import _make_scratch, make_problem, without_target
from jointforest.models.box_forest.structure import Forest

from ...compiled import compiled

average_value = compiled(robustness_kernels.average_value)
mixture_value = compiled(robustness_kernels.mixture_value)
start_row = compiled(robustness_kernels._start_row)


def worst_margin(
    model: Forest, evidence: Evidence, j: int, epsilon: float, *, beta: float = 1.0, c: float = 1.0, shift: str = "leaf"
) -> np.ndarray:
    """The greatest p(class) - p(predicted class) of each row and class (n, K) that contamination by epsilon allows.

    With beta 1 in units of p(evidence), below 1 that of the average of conditionals. The prediction is robust where
    all others are negative; NaN where the evidence has probability 0.
    """
    evidence = without_target(model, evidence, j)
    problem = make_problem(model, j, beta, c, shift)
    p = BoxForest(model).observe_by_trees(evidence, beta).level_probabilities(j)
    log_evidence = log_density(model, evidence) - evidence.log_penalty
    out = np.full(p.shape, math.nan)
    for i in np.flatnonzero(~np.isnan(p[:, 0])).tolist():
        reached, worst = _make_scratch(problem)
        y = int(p[i].argmax())
        start_row(problem, evidence, i, y, 1 if y == 0 else 0, reached, worst)
        for z in range(problem.n_classes):
            if z == y:
                out[i, z] = 0.0
            elif beta < 1.0:
                out[i, z] = average_value(problem, reached, worst, y, z, epsilon)
            else:
                value, _, top = mixture_value(problem, reached, worst, y, z, epsilon)
                out[i, z] = value * math.exp(top - log_evidence[i]) if value != 0.0 else 0.0
    return out
