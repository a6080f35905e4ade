"""Means and covariances of columns of numbers, mixed over the parts of a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data.evidence import Evidence
from ..models.base import Distribution
from ..models.mixture import Mixture
from .posterior import shares, weighted


def mean_and_covariance(
    model: Mixture, evidence: Evidence, columns: Sequence[int], n_jobs: int | None = -1
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means (n, q) and covariances (n, q, q) of q columns of numbers, or booleans (True counts 1).

    Of several parts with the shares s_k covariances are ``sum_k s_k (cov_k + (a_k - a)(b_k - b))``.

    Parameters
    ----------
    model : Mixture
    evidence : Evidence
        n rows.
    columns : sequence of int
        Each numeric, or boolean.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    mean, covariance : float64 arrays (n, q), (n, q, q)
        In the columns' units and their products (date-times: seconds since the column's origin); NaN where the evidence
        has probability 0.

    Raises
    ------
    ValueError
        If a column has neither numbers nor booleans.
    """
    for j in columns:
        column = model.schema.columns[j]
        if column.is_categorical and column.kind != "boolean":
            raise ValueError(
                f"column {column.name!r} is {column.kind}: covariance needs numbers; see mutual_information"
            )
    each = [_of_part(part, evidence, columns, n_jobs) for part in model.parts]
    if len(each) == 1:
        return each[0]
    share = shares(model, evidence, n_jobs)
    mean = weighted(share, [m for m, _ in each])
    apart = [m - mean for m, _ in each]
    return mean, weighted(share, [c + d[:, :, None] * d[:, None, :] for (_, c), d in zip(each, apart, strict=True)])


def _of_part(
    part: Distribution, evidence: Evidence, columns: Sequence[int], n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    n, q = len(evidence.value), len(columns)
    state = part.observe(evidence)
    mean, covariance = np.empty((n, q)), np.empty((n, q, q))
    for i, j in enumerate(columns):
        column = part.schema.columns[j]
        if column.is_categorical:
            levels = np.array([float(level) for level in column.levels])
            p = state.level_probabilities(j, n_jobs) @ levels
            mean[:, i], covariance[:, i, i] = p, p * (1.0 - p)
        else:
            mean[:, i], covariance[:, i, i] = state.moments(j, n_jobs)
        for k in range(i):
            covariance[:, i, k] = covariance[:, k, i] = state.covariance(columns[k], j)
    return mean, covariance
