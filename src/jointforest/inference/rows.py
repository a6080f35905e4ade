"""Draws of whole rows, given evidence; no row is rejected."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..data.evidence import Evidence
from ..models.mixture import Mixture
from ..runtime.progress import bar
from ..runtime.threads import chunks
from .column import level_probability, mean_variance
from .posterior import background_share, shares

BLOCK = 262_144
"""Draws of a row of evidence under one seed, and rows of a table to be filled; more come in blocks, each with a seed of
its own."""


def sample(
    model: Mixture, evidence: Evidence, m: int, seed: int, missing: bool = False, n_jobs: int | None = -1
) -> np.ndarray:
    """Draw m rows for each row of evidence: a part by how well the evidence fits it, then a row of that part.

    Parameters
    ----------
    model : Mixture
    evidence : Evidence
        n rows. Cells with a value keep it.
    m : int
        Draws for each row.
    seed : int
        Not negative; the answer depends on it alone.
    missing : bool
        Blank cells of which nothing is known as often as they were missing at learning.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    float64 array (n * m, d)
        The draws of a row are contiguous; all NaN where the evidence has probability 0.
    """
    n, d = evidence.value.shape
    if m <= BLOCK:
        return _draw(model, evidence, m, seed, missing, n_jobs)
    out, done = np.empty((n, m, d)), 0
    with bar(m, "draws") as step:
        for rows in sample_blocks(model, evidence, m, seed, missing, n_jobs):
            k = len(rows) // max(n, 1)
            out[:, done : done + k] = rows.reshape(n, k, d)
            done += k
            step(k)
    return out.reshape(n * m, d)


def sample_and_weigh(
    model: Mixture, evidence: Evidence, m: int, seed: int, missing: bool = False, n_jobs: int | None = -1
) -> tuple[np.ndarray, np.ndarray | None]:
    """`sample`, and `background_share` (n,) of the evidence where it is found on the way, else None."""
    if len(model.parts) == 1 and 0 < m <= BLOCK:
        return model.parts[0].sample_and_weigh(evidence, m, seed, missing, n_jobs)
    return sample(model, evidence, m, seed, missing, n_jobs), None


def sample_blocks(
    model: Mixture, evidence: Evidence, m: int, seed: int, missing: bool = False, n_jobs: int | None = -1
) -> Iterator[np.ndarray]:
    """The draws of `sample`, `BLOCK` draws of each row at a time: arrays (n * k, d)."""
    for block, (first, stop) in enumerate(chunks(m, BLOCK)):
        yield sample_block(model, evidence, stop - first, seed, block, missing, n_jobs)


def sample_block(
    model: Mixture, evidence: Evidence, m: int, seed: int, block: int, missing: bool = False, n_jobs: int | None = -1
) -> np.ndarray:
    """The first m draws of each row of evidence in one block of those of `sample`, from 0 on: an array (n * m, d)."""
    return _draw(model, evidence, m, seed_of_block(seed, block), missing, n_jobs)


def seed_of_block(seed: int, block: int) -> int:
    """The seed itself for the first block, so that few draws are the first of many."""
    return seed if block == 0 else int(np.random.SeedSequence([seed, block]).generate_state(1, np.uint64)[0] >> 2)


def _draw(model: Mixture, evidence: Evidence, m: int, seed: int, missing: bool, n_jobs: int | None) -> np.ndarray:
    """`sample` under one seed."""
    if len(model.parts) == 1:
        return model.parts[0].sample(evidence, m, seed, missing, n_jobs)
    n, d = evidence.value.shape
    out = np.full((n * m, d), np.nan)
    last = np.cumsum(shares(model, evidence, n_jobs), axis=1)
    chosen = (np.random.default_rng(seed).random((n, m, 1)) >= last[:, None, :-1]).sum(axis=2).ravel()
    chosen[np.repeat(np.isnan(last[:, 0]), m)] = -1
    for k, part in enumerate(model.parts):
        mine = np.flatnonzero(chosen == k)
        out[mine] = part.sample(evidence.take(mine // max(m, 1)), 1, seed + k + 1, missing, n_jobs)
    return out


# ---- Missing cells filled in.


def impute(model: Mixture, evidence: Evidence, n_jobs: int | None = -1) -> tuple[np.ndarray, np.ndarray]:
    """Fill each cell without a value: numbers by posterior mean, categorical cells by the most probable level.

    On a grid the mean goes to the nearest cell centre. A mean may lie between the parts of a region; among levels of
    the same probability the first is taken.

    Parameters
    ----------
    model : Mixture
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
    model: Mixture, evidence: Evidence, m: int, seed: int, n_jobs: int | None = -1
) -> tuple[np.ndarray, np.ndarray | None]:
    """Fill each row's cells without a value by m joint draws, float64 (n * m, d), as `sampling.sample` gives them.

    Beside them `background_share` (n,) of the evidence where it is found on the way, else None.

    Every `sampling.BLOCK` rows have a seed of their own (`sampling.seed_of_block`), so that a table is filled alike as
    a whole and block by block.
    """
    n = len(evidence.value)
    if n <= BLOCK:
        return sample_and_weigh(model, evidence, m, seed, False, n_jobs)
    drawn, shares = [], []
    for b, rows in enumerate(chunks(n, BLOCK)):
        block, own_seed = evidence.take(np.arange(*rows)), seed_of_block(seed, b)
        of_block, share = sample_and_weigh(model, block, m, own_seed, False, n_jobs)
        drawn.append(of_block)
        shares += [] if share is None else [share]
    return np.concatenate(drawn), np.concatenate(shares) if shares else None


# ---- Which cells make a row unlikely: log p(cell | the other cells).


def attribution(model: Mixture, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """Log-probability of each known cell, given everything else that is known of its row.

    By the chain rule log p(x_j | x_others) = log p(x_o) - log p(x_o without j), both exact: in hidden trees by one pass
    up and one down for all columns, in other parts by one pass over the rows for each column.

    Parameters
    ----------
    model : Mixture
    evidence : Evidence
        n rows.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    float64 array (n, d)
        Measured as in `density.log_density`; NaN where nothing is known of the cell, and where the rest of the row has
        probability 0.
    """
    known = ~np.isnan(evidence.value) | (evidence.cell_regions() >= 0)
    whole = np.logaddexp.reduce(
        [part.log_density(evidence, n_jobs) + w for part, w in zip(model.parts, model.log_weight, strict=True)], axis=0
    )
    rest = np.logaddexp.reduce(
        [
            part.log_density_without_each(evidence, known, n_jobs) + w
            for part, w in zip(model.parts, model.log_weight, strict=True)
        ],
        axis=0,
    )
    with np.errstate(invalid="ignore"):  # -inf - -inf
        return np.where(known, whole[:, None] - rest, np.nan)
