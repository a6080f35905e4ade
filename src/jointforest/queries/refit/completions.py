"""Rows as weighted complete ones: all that they may be where these are few, else a stratified sample."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...ensembles.evaluate import leaves
from ...forest.posterior.posterior import chunk_posterior, row_chunks
from ...ground.threads import map_ordered
from ..expectation.completion_kernels import complete_rows
from ..expectation.expectation import take
from ..expectation.features import filled
from ..expectation.match import MatchedEnsemble
from ..expectation.scratch import cell_scratch, row_scratch
from .completion_kernels import cell_leaves
from .sums import Sample

_DRAWN = 100_000


class Completions(NamedTuple):
    """N weighted complete rows.

    Attributes
    ----------
    leaf : int32 array (N, T)
    weight : float64 array (N,)
    target : float64 array (N, K)
        Weight times target.
    """

    leaf: np.ndarray
    weight: np.ndarray
    target: np.ndarray


def complete(matched: MatchedEnsemble, sample: Sample, m: int, seed: int, n_jobs: int | None = -1) -> Completions:
    """Rows of a sample completed: those of at most ``m`` combinations of cells to all of these, the others to m draws.

    Raises
    ------
    ValueError
        If the joint gives a row's known cells probability 0.
    """
    part = sample.part
    arrays = matched.arrays()

    def work(first: int, stop: int) -> tuple[np.ndarray, ...]:
        post = chunk_posterior(matched.model, part.evidence, first, stop)
        count, probability, leaf = cell_leaves(
            arrays, part, first, post, m, row_scratch(arrays), cell_scratch(arrays, m)
        )
        row = np.repeat(np.arange(first, stop), np.maximum(count, 0))
        if not (count < 0).any():
            return count, row, probability, leaf
        many = np.flatnonzero(count < 0)
        drawn = _draw(matched, sample, first + many, m, seed)
        return (
            count,
            np.concatenate([row, np.repeat(first + many, m)]),
            np.concatenate([probability, np.full(len(drawn), 1.0 / m)]),
            np.concatenate([leaf, drawn]),
        )

    size = max(1, min(256, _DRAWN // m))
    cut = row_chunks(matched.model, part.evidence, size) if len(sample.part_weight) else []
    parts: list[Any] = list(map_ordered(work, cut, n_jobs))
    lost = sum(int((count == 0).sum()) for count, *_ in parts)
    if lost:
        raise ValueError(
            f"{lost} of the rows with missing cells have probability 0 under the joint, so that nothing is known of "
            "their completions: leave them out, or fit the joint with a background"
        )
    row = np.concatenate([np.empty(0, dtype=np.int64), *(p[1] for p in parts)])
    share = np.concatenate([np.empty(0), *(p[2] for p in parts)])
    return Completions(
        np.concatenate([sample.leaf, *(p[3] for p in parts)]),
        np.concatenate([sample.leaf_weight, sample.part_weight[row] * share]),
        np.concatenate([sample.leaf_target, sample.part_target[row] * share[:, None]]),
    )


def _draw(matched: MatchedEnsemble, sample: Sample, row: np.ndarray, m: int, seed: int) -> np.ndarray:
    """Leaves of m completions of each of some rows, (m * rows, T)."""
    model, some = matched.model, take(sample.part, row)
    drawn = np.empty((m * len(row), some.evidence.value.shape[1]))
    post = chunk_posterior(model, some.evidence, 0, len(row))
    complete_rows(model.columns, model.leaves, some.evidence, post, m, seed, int(row[0]), drawn)
    X, other = filled(matched.features, np.repeat(some.X, m, axis=0), np.repeat(some.other, m, axis=0), drawn)
    return leaves(matched.ensemble, X, other, 1)
