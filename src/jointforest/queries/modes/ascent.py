"""Rows made better, one column at a time, until none gets better."""

from __future__ import annotations

import numpy as np

from ...forest.forest import Forest
from ...forest.posterior.weight_kernels import posterior_rows, row_scratch
from .ascent_kernels import best_level, best_number, tried_scratch
from .box import Box
from .problem import Problem

_GAIN = 1e-12
_SWEEPS = 100


def ascend(forest: Forest, problem: Problem, box: Box, x: np.ndarray) -> np.ndarray:
    """A row at least as probable as x, of which no single column can be changed for the better (as far as tried).

    Given the other columns a column's density is a mixture of leaves: of levels the best is taken, of numbers the best
    of the leaves' peaks, ends of support and atoms, made better by golden sections towards its neighbours.

    Parameters
    ----------
    forest : Forest
    problem : Problem
        Of the model; the regions of its evidence are kept to.
    box : Box
        From `box.whole`: the levels that agree with the evidence.
    x : float64 array (d,)
        A complete row that agrees with the evidence, of positive density.

    Returns
    -------
    float64 array (d,)
    """
    columns, leaves, evidence = forest.columns, forest.leaves, problem.evidence
    free = np.flatnonzero(np.isnan(evidence.value[0]))
    nowhere = np.full((1, len(x)), -1, np.int32)
    value = np.array(x, ndmin=2)
    known = evidence._replace(value=value, region=nowhere if evidence.has_regions else evidence.region)
    scratch, tried = row_scratch(forest), tried_scratch()
    last, at_last = -np.inf, -1
    for step in range(_SWEEPS * len(free)):
        j = int(free[step % len(free)])
        before, value[0, j] = value[0, j], np.nan
        _, row, log_weight, _ = posterior_rows(columns, forest.trees, leaves, known, 0, 1, j, scratch)
        if columns.is_categorical[j]:
            value[0, j], density = best_level(problem, box, j, row, log_weight, before)
        else:
            value[0, j], density = best_number(problem, box, j, row, log_weight, tried, before)
        if density > last + _GAIN:
            last, at_last = density, step
        elif step - at_last >= len(free):
            break
    return value[0].copy()
