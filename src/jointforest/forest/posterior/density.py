"""log p(evidence)."""

from __future__ import annotations

import numpy as np

from ...ground.threads import chunks, map_ordered
from ...table.distinct_rows import distinct_rows
from ...table.evidence import Evidence
from ..forest import Forest
from .weight_kernels import LOG_EVIDENCE, posterior_rows, row_scratch

_ROWS = 2048


def log_density(forest: Forest, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """Log-density of each row of evidence; cells of which nothing is known are marginalised.

    The log of ``sum_l w_l prod_j D_lj(evidence_j)`` over the leaves that the evidence meets, by a log-sum in fixed
    order. Values count with their density (grids: mass of the cell over the step), atoms and levels with their
    mass, regions with their mass.

    Parameters
    ----------
    forest : Forest
    evidence : Evidence
        n rows.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    float64 array (n,)
        Natural logarithm, ``evidence.log_penalty`` added; -inf where the forest gives probability 0.
    """

    rows, place = distinct_rows(evidence)

    def work(first: int, stop: int) -> np.ndarray:
        scratch = row_scratch(forest)
        return posterior_rows(forest.columns, forest.trees, forest.leaves, rows, first, stop, LOG_EVIDENCE, scratch)[3]

    parts = list(map_ordered(work, chunks(len(rows.value), _ROWS), n_jobs))
    return np.concatenate([np.empty(0), *parts])[place] + evidence.log_penalty
