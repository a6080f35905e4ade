"""Means and covariances of columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..models.base import PosteriorState


def mean_and_covariance(state: PosteriorState, columns: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means (n, q) and covariances (n, q, q) of numeric or boolean columns, all being present."""
    # In the columns' units (date-times: seconds); NaN where the evidence has probability 0.
    state = state.knowing(columns)
    n, q = len(state.evidence.value), len(columns)
    mean, covariance = np.empty((n, q)), np.empty((n, q, q))
    for i, j in enumerate(columns):
        column = state.distribution.schema.columns[j]
        if column.kind == "boolean":
            levels = np.array([float(level) for level in column.levels])
            p = state.level_probabilities(j) @ levels
            mean[:, i], covariance[:, i, i] = p, p * (1.0 - p)
        elif column.is_categorical:
            raise ValueError(
                f"column {column.name!r} is {column.kind}: covariance needs numbers; see mutual_information"
            )
        else:
            mean[:, i], covariance[:, i, i] = state.moments(j)
        for k in range(i):
            covariance[:, i, k] = covariance[:, k, i] = state.covariance(columns[k], j)
    return mean, covariance
