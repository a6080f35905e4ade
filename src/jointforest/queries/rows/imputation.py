"""Missing cells filled in."""

from __future__ import annotations

import numpy as np

from ...ground.threads import chunks
from ...model.model import Model
from ...table.evidence import Evidence
from ..column.levels import level_probability
from ..column.moments import mean_variance
from ..posterior.weighed import background_share
from . import sampling


def impute(model: Model, evidence: Evidence, n_jobs: int | None = -1) -> tuple[np.ndarray, np.ndarray]:
    """Fill each cell without a value: numbers by posterior mean, categorical cells by the most probable level.

    On a grid the mean goes to the nearest cell centre. A mean may lie between the parts of a region; among levels of
    the same probability the first is taken.

    Parameters
    ----------
    model : Model
    evidence : Evidence
        n rows.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    X : float64 array (n, d)
        ``evidence.value`` with its NaNs replaced; they stay where the row's evidence has probability 0.
    background : float64 array (n,)
        Share of the backgrounds in each row's posterior, see `background_share`.
    """
    if len(model.parts) == 1:
        return model.parts[0].impute(evidence, n_jobs)
    X = evidence.value.copy()
    for j, column in enumerate(model.schema.columns):
        free = np.flatnonzero(np.isnan(X[:, j]))
        if not len(free):
            continue
        rows = evidence.take(free)
        if column.is_categorical:
            share = level_probability(model, rows, j, n_jobs)
            X[free, j] = np.where(np.isnan(share[:, 0]), np.nan, share.argmax(axis=1))
            continue
        mean = mean_variance(model, rows, j, n_jobs)[0]
        if column.step > 0.0:
            mean = column.center + np.rint((mean - column.center) / column.step) * column.step
        X[free, j] = mean
    return X, background_share(model, evidence, n_jobs)


def impute_by_draws(
    model: Model, evidence: Evidence, m: int, seed: int, n_jobs: int | None = -1
) -> tuple[np.ndarray, np.ndarray | None]:
    """Fill each row's cells without a value by m joint draws, float64 (n * m, d), as `sampling.sample` gives them.

    Beside them `background_share` (n,) of the evidence where it is found on the way, else None.

    Every `sampling.BLOCK` rows have a seed of their own (`sampling.seed_of_block`), so that a table is filled alike as
    a whole and block by block.
    """
    n = len(evidence.value)
    if n <= sampling.BLOCK:
        return sampling.sample_and_weigh(model, evidence, m, seed, False, n_jobs)
    drawn, shares = [], []
    for b, rows in enumerate(chunks(n, sampling.BLOCK)):
        block, own_seed = evidence.take(np.arange(*rows)), sampling.seed_of_block(seed, b)
        of_block, share = sampling.sample_and_weigh(model, block, m, own_seed, False, n_jobs)
        drawn.append(of_block)
        shares += [] if share is None else [share]
    return np.concatenate(drawn), np.concatenate(shares) if shares else None
