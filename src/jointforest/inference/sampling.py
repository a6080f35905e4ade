"""Draws of whole rows, given evidence; no row is rejected."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..data.evidence import Evidence
from ..models.base import Distribution
from ..runtime.progress import bar
from ..runtime.threads import chunks

DRAWS_AT_ONCE = 262_144
"""Draws of a row of evidence under one seed, and rows of a table to be filled; more come in blocks."""


def sample(model: Distribution, evidence: Evidence, m: int, seed: int, missing: bool = False) -> np.ndarray:
    """m rows for each row of evidence, (n * m, d); those of a row are contiguous, NaN where it has probability 0."""
    # Cells with a value keep it. With ``missing``, cells of which nothing is known are missing as often as at learning.
    n, d = evidence.value.shape
    if m <= DRAWS_AT_ONCE:
        return model.sample(evidence, m, seed, missing)
    out, done = np.empty((n, m, d)), 0
    with bar(m, "drawing rows") as step:
        for rows in sample_blocks(model, evidence, m, seed, missing):
            k = len(rows) // max(n, 1)
            out[:, done : done + k] = rows.reshape(n, k, d)
            done += k
            step(k)
    return out.reshape(n * m, d)


def sample_and_weigh(
    model: Distribution, evidence: Evidence, m: int, seed: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """`sample`, and `background_share` (n,) of the evidence where it is found on the way, else None."""
    if 0 < m <= DRAWS_AT_ONCE:
        return model.sample_and_weigh(evidence, m, seed, False)
    return sample(model, evidence, m, seed), None


def sample_blocks(
    model: Distribution, evidence: Evidence, m: int, seed: int, missing: bool = False
) -> Iterator[np.ndarray]:
    """The draws of `sample`, `DRAWS_AT_ONCE` draws of each row at a time: arrays (n * k, d)."""
    for block, (first, stop) in enumerate(chunks(m, DRAWS_AT_ONCE)):
        yield sample_block(model, evidence, stop - first, seed, block, missing)


def sample_block(
    model: Distribution, evidence: Evidence, m: int, seed: int, block: int, missing: bool = False
) -> np.ndarray:
    """The first m draws of each row of evidence in one block of those of `sample`, from 0 on: an array (n * m, d)."""
    return model.sample(evidence, m, seed_of_block(seed, block), missing)


def seed_of_block(seed: int, block: int) -> int:
    """The seed itself for the first block, so that few draws are the first of many."""
    return seed if block == 0 else int(np.random.SeedSequence([seed, block]).generate_state(1, np.uint64)[0] >> 2)


def impute_by_draws(model: Distribution, evidence: Evidence, m: int, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Each row's cells filled by m joint draws, float64 (n * m, d), and `background_share` (n,) where it is known."""
    # Every `sampling.BLOCK` rows have a seed of their own, so a table is filled alike as a whole and block by block.
    n = len(evidence.value)
    if n <= DRAWS_AT_ONCE:
        return sample_and_weigh(model, evidence, m, seed)
    drawn, shares = [], []
    for b, rows in enumerate(chunks(n, DRAWS_AT_ONCE)):
        block, own_seed = evidence.take(np.arange(*rows)), seed_of_block(seed, b)
        of_block, share = sample_and_weigh(model, block, m, own_seed)
        drawn.append(of_block)
        shares += [] if share is None else [share]
    return np.concatenate(drawn), np.concatenate(shares) if shares else None
