"""Draws of whole rows, given evidence; no row is rejected."""

from __future__ import annotations

import numpy as np

from ...data.evidence import Evidence
from ...runtime.threads import chunks, map_ordered
from .column import moments_table
from .forest import Forest
from .posterior import LeafPosterior, background_share, by_chunks, chunk_posterior, row_chunks
from .sampling_kernels import Draws, draw_rows, draw_scratch, impute_rows

_DRAWS = 12_288  # a chunk: of fewer few share a leaf, with more the last one keeps threads waiting
_ROWS = 128


def sample(
    forest: Forest, evidence: Evidence, m: int, seed: int, missing: bool = False, n_jobs: int | None = -1
) -> np.ndarray:
    """The draws of `sample_and_weigh`."""
    return sample_and_weigh(forest, evidence, m, seed, missing, n_jobs)[0]


def sample_and_weigh(
    forest: Forest, evidence: Evidence, m: int, seed: int, missing: bool = False, n_jobs: int | None = -1
) -> tuple[np.ndarray, np.ndarray]:
    """m rows for each row of evidence (n * m, d), and background weights (n,): a leaf by the posterior, then columns.

    Draw k of row i uses the random stream of number ``i*m + k``, so the answer depends on the seed alone.
    """
    n, d = evidence.value.shape
    out, share = np.empty((n * m, d)), np.full(n, np.nan)

    def work(rows: tuple[int, int], draws: tuple[int, int]) -> None:
        post = chunk_posterior(forest, evidence, *rows)
        scratch = draw_scratch(forest.leaves, int(np.diff(post.start).max(initial=0)), draws[1] - draws[0])
        wanted = Draws(m, *draws, seed, missing)
        draw_rows(forest.columns, forest.leaves, evidence, post, rows[0], wanted, scratch, out)
        if draws[0] == 0:
            share[slice(*rows)] = background_share(forest, post)

    some_rows = row_chunks(forest, evidence, max(1, min(_ROWS, _DRAWS // max(m, 1))))
    items = [(rows, draws) for rows in some_rows for draws in chunks(m, _DRAWS)]
    for _ in map_ordered(work, items, n_jobs, "draws"):
        pass
    return out, share


# ---- Missing cells filled in.


def impute(forest: Forest, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """Fill each cell without a value: numbers by posterior mean, categorical cells by the most probable level.

    On a grid the mean goes to the nearest cell centre. A mean may lie between the parts of a region; among levels of
    the same probability the first is taken.
    """
    return impute_and_weigh(forest, evidence, n_jobs)[0]


def impute_and_weigh(forest: Forest, evidence: Evidence, n_jobs: int | None = -1) -> tuple[np.ndarray, np.ndarray]:
    """`impute`, and the posterior weight of the background in each row (n,), in one pass."""
    means = _means(forest, evidence, n_jobs)

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        filled = impute_rows(forest.columns, forest.leaves, rows, post, first, means)
        return np.column_stack([filled, background_share(forest, post)])

    both = by_chunks(forest, evidence, read, n_jobs)
    return np.ascontiguousarray(both[:, :-1]), both[:, -1]


def _means(forest: Forest, evidence: Evidence, n_jobs: int | None) -> np.ndarray:
    """Means of the numeric slots in every parameter row, (R, p), where a cell wants one; (0, 0) for few rows."""
    numeric = np.flatnonzero(forest.columns.is_categorical == 0)
    tables = {
        int(forest.columns.slot[j]): moments_table(forest, evidence, int(forest.columns.slot[j]), n_jobs)
        for j in numeric
        if np.isnan(evidence.value[:, j]).any()
    }
    if not any(len(table) for table in tables.values()):
        return np.empty((0, 0))
    means = np.full((len(forest.leaves.tree), len(numeric)), np.nan)
    for slot, table in tables.items():
        means[:, slot] = table[:, 0]
    return means
