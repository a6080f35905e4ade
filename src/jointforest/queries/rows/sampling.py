"""Draws of whole rows, given evidence; no row is rejected."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...ground.progress import bar
from ...ground.threads import chunks
from ...model.model import Model
from ...table.evidence import Evidence
from ..posterior.mixing import shares

BLOCK = 262_144
"""Draws of a row of evidence under one seed, and rows of a table to be filled; more come in blocks, each with a seed of
its own."""


def sample(
    model: Model, evidence: Evidence, m: int, seed: int, missing: bool = False, n_jobs: int | None = -1
) -> np.ndarray:
    """Draw m rows for each row of evidence: a part by how well the evidence fits it, then a row of that part.

    Parameters
    ----------
    model : Model
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
    model: Model, evidence: Evidence, m: int, seed: int, missing: bool = False, n_jobs: int | None = -1
) -> tuple[np.ndarray, np.ndarray | None]:
    """`sample`, and `background_share` (n,) of the evidence where it is found on the way, else None."""
    if len(model.parts) == 1 and 0 < m <= BLOCK:
        return model.parts[0].sample_and_weigh(evidence, m, seed, missing, n_jobs)
    return sample(model, evidence, m, seed, missing, n_jobs), None


def sample_blocks(
    model: Model, evidence: Evidence, m: int, seed: int, missing: bool = False, n_jobs: int | None = -1
) -> Iterator[np.ndarray]:
    """The draws of `sample`, `BLOCK` draws of each row at a time: arrays (n * k, d)."""
    for block, (first, stop) in enumerate(chunks(m, BLOCK)):
        yield sample_block(model, evidence, stop - first, seed, block, missing, n_jobs)


def sample_block(
    model: Model, evidence: Evidence, m: int, seed: int, block: int, missing: bool = False, n_jobs: int | None = -1
) -> np.ndarray:
    """The first m draws of each row of evidence in one block of those of `sample`, from 0 on: an array (n * m, d)."""
    return _draw(model, evidence, m, seed_of_block(seed, block), missing, n_jobs)


def seed_of_block(seed: int, block: int) -> int:
    """The seed itself for the first block, so that few draws are the first of many."""
    return seed if block == 0 else int(np.random.SeedSequence([seed, block]).generate_state(1, np.uint64)[0] >> 2)


def _draw(model: Model, evidence: Evidence, m: int, seed: int, missing: bool, n_jobs: int | None) -> np.ndarray:
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
