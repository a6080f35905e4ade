"""What answers are mixed from: the moments of columns in leaves."""

from __future__ import annotations

import numpy as np

from ...data.evidence import Evidence
from ..base import Parts
from .posterior import LeafPosterior, OneRow, by_chunks
from .posterior_kernels import level_rows, mean_variance_rows
from .structure import Forest


def parts(forest: Forest, evidence: Evidence, j: int, known: OneRow) -> Parts:
    """The parts of one row of evidence."""
    leaf, share = known.mixture
    prior, weight = np.exp(forest.leaves.log_weight), np.zeros(len(forest.leaves.log_weight))
    weight[leaf] = share
    said = []
    for of_met in moments_in_leaves(forest, evidence, j, leaf):
        out = np.zeros((len(weight), of_met.shape[1]))
        out[leaf] = of_met
        said.append(out)
    return Parts(prior, weight, *said)


def moments_in_leaves(forest: Forest, evidence: Evidence, j: int, of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances in n leaves, of a column or of the indicators of its levels, each (n, L)."""
    n = len(of)
    each = LeafPosterior(np.arange(n + 1, dtype=np.int64), of, np.zeros(n), np.zeros(n))
    rows = evidence.repeat(n)
    if forest.columns.is_categorical[j]:
        share = level_rows(forest.columns, forest.leaves, rows, j, each, 0)
        return share, share * (1.0 - share)
    both = mean_variance_rows(forest.columns, forest.leaves, rows, j, each, 0, np.empty((0, 2)))
    return both[:, :1], both[:, 1:]


# ---- Covariance of two columns of numbers, exact: columns of a leaf are independent.


def covariance(forest: Forest, evidence: Evidence, a: int, b: int, known: OneRow | None = None) -> np.ndarray:
    """Posterior covariance of two numeric or boolean columns (True counts 1) given each of n rows of evidence, (n,).

    NaN where the evidence has probability 0. With c the mixture's means, a leaf adds w (m_a - c_a)(m_b - c_b).
    """

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        return _of_rows(forest, rows, post, first, a, b)

    return by_chunks(forest, evidence, read, known=known)


def _of_rows(forest: Forest, rows: Evidence, post: LeafPosterior, first: int, a: int, b: int) -> np.ndarray:
    """Covariances given the rows first.. whose posterior this is."""
    n = len(post.log_evidence)
    chunk = rows.take(np.arange(first, first + n))
    row = np.repeat(np.arange(n), np.diff(post.start))
    weight = np.exp(post.log_weight - post.log_evidence[row])
    apart = []
    for j in (a, b):
        mean = _leaf_means(forest, chunk, j, row, post.leaf)
        apart.append(mean - np.bincount(row, weight * mean, minlength=n)[row])
    total = np.bincount(row, weight * apart[0] * apart[1], minlength=n)
    total[~np.isnan(chunk.value[:, [a, b]]).all(axis=1)] = 0.0
    return np.where(np.isfinite(post.log_evidence), total, np.nan)


def _leaf_means(forest: Forest, rows: Evidence, j: int, row: np.ndarray, leaf: np.ndarray) -> np.ndarray:
    """Mean of a column in the leaf of each of M pairs of a row and a leaf, (M,); 0 in rows that know the column.

    Rows that say the same of the column share the means of their leaves.
    """
    region = rows.cell_regions()[:, j]
    is_known = ~np.isnan(rows.value[:, j])
    mean = np.zeros(len(leaf))
    number_of_level = np.array([float(level) for level in forest.schema.columns[j].levels] or [1.0])
    for number in np.unique(region[~is_known]).tolist():
        pairs = np.flatnonzero(((region == number) & ~is_known)[row])
        leaves, place = np.unique(leaf[pairs], return_inverse=True)
        one = rows.take(np.flatnonzero((region == number) & ~is_known)[:1])
        mean[pairs] = (moments_in_leaves(forest, one, j, leaves)[0] @ number_of_level)[place]
    return mean
