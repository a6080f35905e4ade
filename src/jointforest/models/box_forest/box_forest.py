"""`BoxForest`: a forest of boxes as a distribution, and its posterior state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...data.evidence import Evidence, within_ends
from ...data.schema import Schema
from ...runtime.numeric_kernels import mix_rows
from ..base import Distribution, Parts, PosteriorState
from .box_trees import ForestTrees, box_trees
from .condition import condition, given_missing, marginalize
from .files import forest_to_arrays
from .histogram import BinTables, histogram, mean_and_histogram
from .leaves.table import pieces_of_slot
from .modes import modes
from .posterior import (
    LeafPosterior,
    OneRow,
    background_weight,
    by_chunks,
    cdf,
    completions,
    impute_and_weigh,
    level_probability,
    levels_and_log_density,
    log_density,
    mean_variance,
    pdf,
    quantile,
    sample,
    sample_and_weigh,
)
from .posterior_kernels import level_rows, mean_variance_rows
from .structure import Forest

# ---- What answers are mixed from: the moments of columns in leaves.


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
    """Posterior covariance of two numeric or boolean columns (True counts 1) given each of n rows of evidence, (n,)."""
    # NaN where the evidence has probability 0. With c the mixture's means, a leaf adds w (m_a - c_a)(m_b - c_b).

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
    """Mean of a column in the leaf of each of M pairs of a row and a leaf, (M,); 0 in rows that know the column."""
    # Rows with the same evidence on the column share the means of their leaves.
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


# ---- The distribution, and its posterior state.


@dataclass(frozen=True)
class BoxForest(Distribution):
    """A mixture of trees whose leaves are boxes: see `structure.Forest` for its arrays and its formula."""

    forest: Forest
    kind: str = "forest"

    @property
    def schema(self) -> Schema:
        return self.forest.schema

    def with_schema(self, schema: Schema) -> BoxForest:
        return BoxForest(replace(self.forest, schema=schema), self.kind)

    @cached_property
    def bin_tables(self) -> BinTables:
        """Mass of the bins of histograms in every leaf."""
        return BinTables(self.forest)

    def log_density(self, evidence: Evidence) -> np.ndarray:
        return log_density(self.forest, evidence)

    def observe(self, evidence: Evidence) -> BoxForestPosterior:
        return BoxForestPosterior(self, evidence)

    def observe_by_trees(self, evidence: Evidence, beta: float) -> BoxForestPosterior:
        return BoxForestPosterior(self, evidence, beta)

    @property
    def is_forest(self) -> bool:
        return True

    def forest_for(self, question: str) -> Forest:
        return self.forest

    def box_trees(self) -> ForestTrees:
        return box_trees(self.forest)

    def sample(self, evidence: Evidence, m: int, seed: int, missing: bool) -> np.ndarray:
        return within_ends(self.schema, evidence, m, sample(self.forest, evidence, m, seed, missing))

    def sample_and_weigh(self, evidence: Evidence, m: int, seed: int, missing: bool) -> tuple[np.ndarray, np.ndarray]:
        drawn, background = sample_and_weigh(self.forest, evidence, m, seed, missing)
        return within_ends(self.schema, evidence, m, drawn), background

    def completions(self, evidence: Evidence, count: np.ndarray, seed: int) -> np.ndarray:
        return completions(self.forest, evidence, count, seed)

    def impute(self, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        return impute_and_weigh(self.forest, evidence)

    def condition(self, evidence: Evidence) -> BoxForest:
        return BoxForest(condition(self.forest, evidence))

    def marginalize(self, columns: list[int]) -> BoxForest:
        return BoxForest(marginalize(self.forest, columns))

    def given_missing(self, j: int, is_missing: bool) -> tuple[BoxForest | None, float]:
        forest, log_probability = given_missing(self.forest, j, is_missing)
        return None if forest is None else BoxForest(forest), log_probability

    def modes(self, evidence: Evidence, k: int, budget: int) -> tuple[np.ndarray, float]:
        best = modes(self.forest, evidence, k, budget)
        return best.X, best.log_bound

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return forest_to_arrays(self.forest)

    def size(self) -> dict[str, int]:
        trees, leaves = len(self.forest.trees.root), len(self.forest.leaves.log_weight)
        return {"trees": trees - self.forest.has_background, "leaves": leaves - self.forest.n_background}

    def density_breaks(self, j: int) -> list[np.ndarray]:
        leaves, slot = self.forest.leaves, int(self.forest.columns.slot[j])
        _, number = pieces_of_slot(leaves, slot, np.arange(len(leaves.tree)))
        number = number[number >= 0]
        return [leaves.lo[:, slot], leaves.hi[:, slot], leaves.pieces.lo[number, 0], leaves.pieces.hi[number, 0]]

    def density_cost(self) -> float:
        return float(len(self.forest.leaves.tree) + len(self.forest.leaves.pieces.log_weight))


@dataclass(eq=False)
class BoxForestPosterior(PosteriorState):
    """The posterior of a forest of boxes. The leaves that a single row of evidence reaches are computed once."""

    distribution: BoxForest
    beta: float = 1.0
    """How trees are weighted: see `posterior.chunk_posterior`."""

    @property
    def forest(self) -> Forest:
        return self.distribution.forest

    @cached_property
    def row(self) -> OneRow | None:
        """The leaves that a single row of evidence reaches; None of several rows, which are answered in chunks."""
        if len(self.evidence.value) != 1 or self.beta != 1.0:
            return None
        return OneRow(self.forest, self.evidence)

    @cached_property
    def log_evidence(self) -> float:
        if self.row is None:
            return super().log_evidence
        return float(self.row.posterior.log_evidence[0])

    def background_weight(self) -> np.ndarray:
        return background_weight(self.forest, self.evidence, self.row)

    def level_probabilities(self, j: int) -> np.ndarray:
        return level_probability(self.forest, self.evidence, j, self.beta, self.row)

    def levels_and_log_probability(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        if self.row is not None or self.beta != 1.0:
            return super().levels_and_log_probability(j)
        return levels_and_log_density(self.forest, self.evidence, j)

    def moments(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        return mean_variance(self.forest, self.evidence, j, self.beta, self.row)

    def cdf(self, j: int, x: np.ndarray) -> np.ndarray:
        return cdf(self.forest, self.evidence, j, x, self.beta, self.row)

    def pdf(self, j: int, x: np.ndarray) -> np.ndarray:
        return pdf(self.forest, self.evidence, j, x, self.beta, self.row)

    def histogram(self, j: int, cuts: np.ndarray) -> np.ndarray:
        return histogram(self.forest, self.distribution.bin_tables, self.evidence, j, cuts, self.beta, self.row)

    def mean_and_histogram(self, j: int, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tables = self.distribution.bin_tables
        return mean_and_histogram(self.forest, tables, self.evidence, j, cuts, self.beta)

    def quantile(self, j: int, q: np.ndarray) -> np.ndarray:
        return quantile(self.forest, self.evidence, j, q, self.beta, self.row)

    def parts(self, j: int) -> Parts:
        first = self.evidence.take(np.array([0]))
        return parts(self.forest, first, j, self.row or OneRow(self.forest, first))

    def covariance(self, a: int, b: int) -> np.ndarray:
        return covariance(self.forest, self.evidence, a, b, self.row)

    def missing_shares(self, columns: Sequence[int]) -> np.ndarray:
        if self.row is None:
            return super().missing_shares(columns)
        rates = self.forest.leaves.missing_rate
        probabilities = np.zeros(rates.shape[1])
        mix_rows(rates, *self.row.mixture, probabilities)
        return probabilities[list(columns)]
