"""Mass of bins of a numeric column: what histograms are made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.threads import chunks, map_ordered
from ...table.evidence import Evidence
from ..forest import Forest
from ..posterior.posterior import LeafPosterior, OneRow, by_chunks
from .bin_kernels import bin_rows
from .moments import numeric_slot

CHUNK = 4096
"""Parameter rows of one row of evidence that a thread takes at a time."""
_NEAR = 1e-6  # steps


class Bins(NamedTuple):
    """Disjoint, ascending bins ``(lo, hi]``.

    Attributes
    ----------
    lo, hi : float64 array (B,), C-contiguous
        Without NaN; of a grid edges of cells.
    """

    lo: np.ndarray
    hi: np.ndarray


def bins_between(forest: Forest, j: int, cuts: np.ndarray) -> Bins:
    """The bins of column j between ascending cuts, and those below the first and above the last: all numbers."""
    step, origin = (float(field[numeric_slot(forest, j)]) for field in (forest.columns.step, forest.columns.origin))
    hi = np.append(cuts, np.inf)
    if step > 0.0:  # as `slot_kernels.cell_end`
        inner = np.isfinite(hi)
        hi[inner] = origin + (np.floor((hi[inner] - origin) / step + _NEAR) + 0.5) * step
    return Bins(np.concatenate([[-np.inf], hi])[:-1], hi)


def bin_mass(
    forest: Forest, evidence: Evidence, j: int, bins: Bins, n_jobs: int | None = -1, known: OneRow | None = None
) -> np.ndarray:
    """P(column j in bin | evidence) of a numeric column, (n, B); NaN where the evidence has probability 0."""
    numeric_slot(forest, j)
    if known is not None:
        return _mass_in_row(forest, evidence, j, known.posterior(j), bins, n_jobs)

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        return mass_in_rows(forest, rows, j, post, first, bins)

    return by_chunks(forest, evidence, read, n_jobs, j)


def _mass_in_row(
    forest: Forest, evidence: Evidence, j: int, post: LeafPosterior, bins: Bins, n_jobs: int | None
) -> np.ndarray:
    """P(column j in bin) of a posterior of one row, (1, B): its leaves are shared among threads."""

    def work(first: int, stop: int) -> np.ndarray:
        ends = np.array([0, stop - first], dtype=np.int64)
        part = LeafPosterior(ends, post.leaf[first:stop], post.log_weight[first:stop], post.log_evidence)
        return mass_in_rows(forest, evidence, j, part, 0, bins)

    if np.isfinite(evidence.value[0, j]):
        return mass_in_rows(forest, evidence, j, post, 0, bins)
    return np.sum([*map_ordered(work, chunks(len(post.leaf), CHUNK) or [(0, 0)], n_jobs)], axis=0)


def mass_in_rows(forest: Forest, evidence: Evidence, j: int, post: LeafPosterior, first: int, bins: Bins) -> np.ndarray:
    """P(column j in bin) in each row of a posterior of column j (of the rows first.. of evidence), (rows, B)."""
    return np.asarray(bin_rows(forest.columns, forest.leaves, evidence, j, post, first, bins.lo, bins.hi))


def mass_in_leaves(forest: Forest, evidence: Evidence, j: int, leaf: np.ndarray, bins: Bins) -> np.ndarray:
    """P(column j in bin | evidence on column j) in each of m parameter rows, (m, B); of evidence row i for the i-th."""
    m = len(leaf)
    post = LeafPosterior(np.arange(m + 1, dtype=np.int64), leaf.astype(np.int32), np.zeros(m), np.zeros(m))
    return mass_in_rows(forest, evidence, j, post, 0, bins)
