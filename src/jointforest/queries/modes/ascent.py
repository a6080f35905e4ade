"""Rows made better, one column at a time, until none gets better."""

from __future__ import annotations

import numpy as np

from ...forest.forest import Forest
from ...forest.posterior.weight_kernels import posterior_rows
from ...table.regions import Evidence
from .ascent_kernels import best_level, best_number
from .mode_kernels import Box

_GAIN = 1e-12
_SWEEPS = 100


def ascend(model: Forest, evidence: Evidence, box: Box, x: np.ndarray) -> np.ndarray:
    """A row at least as probable as x, of which no single column can be changed for the better (as far as tried).

    Given the other columns a column's density is a mixture of leaves: of levels the best is taken, of numbers the best
    of the leaves' peaks, ends of support and atoms, made better by golden sections towards its neighbours.

    Parameters
    ----------
    model : Forest
    evidence : Evidence
        One row; its regions are kept to.
    box : Box
        From `_mode.whole`: the levels that agree with the evidence.
    x : float64 array (d,)
        A complete row that agrees with the evidence, of positive density.

    Returns
    -------
    float64 array (d,)
    """
    columns, leaves = model.columns, model.leaves
    free = np.flatnonzero(np.isnan(evidence.value[0]))
    nowhere = np.full((1, len(x)), -1, np.int32)
    value = np.array(x, ndmin=2)
    known = evidence._replace(value=value, region=nowhere if evidence.has_regions else evidence.region)
    last, at_last = -np.inf, -1
    for step in range(_SWEEPS * len(free)):
        j = int(free[step % len(free)])
        before, value[0, j] = value[0, j], np.nan
        _, row, log_weight, _ = posterior_rows(columns, model.trees, leaves, known, 0, 1, j)
        if columns.is_categorical[j]:
            value[0, j], density = best_level(columns, leaves, box, j, row, log_weight, before)
        else:
            value[0, j], density = best_number(columns, leaves, evidence, box, j, row, log_weight, before)
        if density > last + _GAIN:
            last, at_last = density, step
        elif step - at_last >= len(free):
            break
    return value[0].copy()
