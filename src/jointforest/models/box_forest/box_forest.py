"""`BoxForest`: a forest of boxes as a distribution, and its posterior state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ...data.evidence import Evidence, within_ends
from ...data.schema import Schema
from ...runtime.numeric_kernels import mix_rows
from ..base import Distribution, Parts, PosteriorState
from . import posterior
from .box_trees import ForestTrees, box_trees
from .condition import condition, given_missing, marginalize
from .files import forest_to_arrays
from .histogram import Bins, BinTables, bins_between, free_levels, from_table, mass_in_row, table_of_many
from .histogram_kernels import bin_rows, mixed_table_rows
from .leaves.derived import make_leaves
from .leaves.levels import layout, stacked, take_levels
from .leaves.table import ParameterTables, pieces_of_slot, stacked_pieces, taken_pieces
from .modes import modes
from .posterior_kernels import cdf_rows, level_rows, mean_variance_rows, pdf_rows
from .quantile_kernels import quantile_rows
from .structure import Forest, Trees, add_stump, mix_leaves

# ---- What answers are mixed from: the moments of columns in leaves.


def moments_in_leaves(forest: Forest, evidence: Evidence, j: int, of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances in n leaves, of a column or of the indicators of its levels, each (n, L)."""
    n = len(of)
    each = posterior.LeafPosterior(np.arange(n + 1, dtype=np.int64), of, np.zeros(n), np.zeros(n))
    rows = evidence.repeat(n)
    if forest.columns.is_categorical[j]:
        share = level_rows(forest.columns, forest.leaves, rows, j, each, 0)
        return share, share * (1.0 - share)
    both = mean_variance_rows(forest.columns, forest.leaves, rows, j, each, 0, np.empty((0, 2)))
    return both[:, :1], both[:, 1:]


# ---- Covariance of two columns of numbers, exact: columns of a leaf are independent.


def _covary(forest: Forest, rows: Evidence, post: posterior.LeafPosterior, first: int, a: int, b: int) -> np.ndarray:
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
        return posterior.log_density(self.forest, evidence)

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
        return within_ends(self.schema, evidence, m, posterior.sample(self.forest, evidence, m, seed, missing))

    def sample_and_weigh(self, evidence: Evidence, m: int, seed: int, missing: bool) -> tuple[np.ndarray, np.ndarray]:
        drawn, background = posterior.weighed_draws(self.forest, evidence, m, seed, missing)
        return within_ends(self.schema, evidence, m, drawn), background

    def completions(self, evidence: Evidence, count: np.ndarray, seed: int) -> np.ndarray:
        return posterior.leaf_completions(self.forest, evidence, count, seed)

    def impute(self, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        return posterior.impute_and_weigh(self.forest, evidence)

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
    def row(self) -> posterior.OneRow | None:
        """The leaves that a single row of evidence reaches; None of several rows, which are answered in chunks."""
        if len(self.evidence.value) != 1 or self.beta != 1.0:
            return None
        return posterior.OneRow(self.forest, self.evidence)

    @cached_property
    def log_evidence(self) -> float:
        if self.row is None:
            return super().log_evidence
        return float(self.row.posterior.log_evidence[0])

    def _read(self, kernel: Callable[..., np.ndarray], j: int, *more: np.ndarray) -> np.ndarray:
        """What a kernel on the leaves of each row answers about column j, (n, ...)."""
        forest = self.forest

        def read(rows: Evidence, post: posterior.LeafPosterior, first: int) -> np.ndarray:
            return kernel(forest.columns, forest.leaves, rows, j, post, first, *more)

        return posterior.by_chunks(forest, self.evidence, read, j, self.beta, self.row)

    def background_weight(self) -> np.ndarray:
        # All zero in a forest without background; there rows of probability 0 are NaN too.
        share = partial(posterior.background_share, self.forest)
        return posterior.by_chunks(self.forest, self.evidence, lambda rows, post, first: share(post), known=self.row)

    def level_probabilities(self, j: int) -> np.ndarray:
        if not self.forest.columns.is_categorical[j]:
            column = self.forest.schema.columns[j]
            raise ValueError(
                f"column {column.name!r} is {column.kind}: it has no levels; ask for mean, cdf or quantile"
            )
        return np.minimum(self._read(level_rows, j), 1.0)  # sums of many weights may end a rounding error above 1

    def levels_and_log_probability(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        if self.row is not None or self.beta != 1.0:
            return super().levels_and_log_probability(j)
        forest = self.forest

        def read(rows: Evidence, post: posterior.LeafPosterior, first: int) -> np.ndarray:
            levels = level_rows(forest.columns, forest.leaves, rows, j, post, first)
            return np.column_stack([post.log_evidence, np.minimum(levels, 1.0)])

        both = posterior.by_chunks(forest, self.evidence, read, j)
        return both[:, 1:].copy(), both[:, 0] + self.evidence.log_penalty

    def moments(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        # Cells of a grid count with their centres.
        table = posterior.moments_table(self.forest, self.evidence, posterior.numeric_slot(self.forest, j))
        both = self._read(mean_variance_rows, j, table)
        return both[:, 0].copy(), both[:, 1].copy()

    def cdf(self, j: int, x: np.ndarray) -> np.ndarray:
        posterior.numeric_slot(self.forest, j)
        points = np.ascontiguousarray(x, dtype=np.float64)
        return np.minimum(self._read(cdf_rows, j, points), 1.0)  # which sums of many weights may exceed

    def pdf(self, j: int, x: np.ndarray) -> np.ndarray:
        # Mass over step on a grid, the mass at an atom.
        posterior.numeric_slot(self.forest, j)
        return self._read(pdf_rows, j, np.ascontiguousarray(x, dtype=np.float64))

    def quantile(self, j: int, q: np.ndarray) -> np.ndarray:
        # inf{x: F(x) >= q}, by a bracketed search on the mixture's CDF. Cell centres on grids, atoms exactly, other
        # numbers to 1e-10 of the posterior's standard deviation.
        posterior.numeric_slot(self.forest, j)
        levels = np.ascontiguousarray(q, dtype=np.float64)
        bad = levels[~((levels > 0.0) & (levels < 1.0))]
        if len(bad):
            name = self.forest.schema.columns[j].name
            raise ValueError(f"quantile of column {name!r}: q must be above 0 and below 1, got {bad[0]}")
        quantiles = self._read(quantile_rows, j, levels)
        rising = np.argsort(levels, kind="stable")  # each q has its own search: keep their order within its tolerance
        quantiles[:, rising] = np.maximum.accumulate(quantiles[:, rising], axis=1)
        return quantiles

    def _table_of_rows(self, j: int, bins: Bins) -> np.ndarray | None:
        return table_of_many(self.forest, self.distribution.bin_tables, self.evidence, j, bins)

    def histogram(self, j: int, cuts: np.ndarray) -> np.ndarray:
        forest, row = self.forest, self.row
        if forest.columns.is_categorical[j]:
            shares = None if row is None else free_levels(forest, self.evidence, j, row)
            return self.level_probabilities(j) if shares is None else shares
        bins = bins_between(forest, j, cuts)
        if row is not None:
            is_free = bool(np.isnan(self.evidence.value[0, j]))
            tables = self.distribution.bin_tables
            by_table = from_table(forest, tables, self.evidence, j, bins, row) if is_free else None
            return mass_in_row(forest, self.evidence, j, row.posterior, bins) if by_table is None else by_table[None]
        table = self._table_of_rows(j, bins)
        if table is None:
            return self._read(bin_rows, j, bins.lo, bins.hi)
        return posterior.by_chunks(
            forest, self.evidence, lambda rows, post, first: mixed_table_rows(table, post), j, self.beta
        )

    def mean_and_histogram(self, j: int, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # Many rows of evidence are weighed once for both.
        forest, bins = self.forest, bins_between(self.forest, j, cuts)
        table = self._table_of_rows(j, bins)
        if table is None:
            return self.moments(j)[0], self._read(bin_rows, j, bins.lo, bins.hi)
        moments = posterior.moments_table(forest, self.evidence, posterior.numeric_slot(forest, j))

        def read(rows: Evidence, post: posterior.LeafPosterior, first: int) -> np.ndarray:
            mean = mean_variance_rows(forest.columns, forest.leaves, rows, j, post, first, moments)[:, :1]
            return np.hstack([mean, mixed_table_rows(table, post)])

        both = posterior.by_chunks(forest, self.evidence, read, j, self.beta)
        return both[:, 0].copy(), both[:, 1:].copy()

    def parts(self, j: int) -> Parts:
        first, log_weight = self.evidence.take(np.array([0])), self.forest.leaves.log_weight
        leaf, share = (self.row or posterior.OneRow(self.forest, first)).mixture
        moments = moments_in_leaves(self.forest, first, j, leaf)
        weight, *each = np.zeros(len(log_weight)), *(np.zeros((len(log_weight), x.shape[1])) for x in moments)
        for of_all, of_reached in zip((weight, *each), (share, *moments), strict=True):
            of_all[leaf] = of_reached
        return Parts(np.exp(log_weight), weight, *each)

    def covariance(self, a: int, b: int) -> np.ndarray:
        # NaN where the evidence has probability 0. With c the mixture's means, a leaf adds w (m_a - c_a)(m_b - c_b).
        forest = self.forest
        return posterior.by_chunks(
            forest, self.evidence, lambda rows, post, first: _covary(forest, rows, post, first, a, b), known=self.row
        )

    def missing_shares(self, columns: Sequence[int]) -> np.ndarray:
        if self.row is None:
            return super().missing_shares(columns)
        rates = self.forest.leaves.missing_rate
        probabilities = np.zeros(rates.shape[1])
        mix_rows(rates, *self.row.mixture, probabilities)
        return probabilities[list(columns)]


# ---- Several forests over one schema as one forest: their weighted sum.


def merge_forests(forests: Sequence[Forest], log_weight: np.ndarray) -> Forest:
    """The forest of all trees, with P(x) = sum_i exp(log_weight[i]) P_i(x), exact."""
    # Backgrounds become one: a tree without splits that mixes them.
    own = [len(forest.leaves.log_weight) - forest.n_background for forest in forests]
    ends = [slice(n, len(forest.leaves.log_weight)) for forest, n in zip(forests, own, strict=True)]
    taken = [
        *zip(forests, [slice(0, n) for n in own], log_weight, strict=True),
        *zip(forests, ends, log_weight, strict=True),
    ]
    of_leaf = np.concatenate([forest.leaves.log_weight[leaf] + weight for forest, leaf, weight in taken])
    of_leaf -= np.logaddexp.reduce(of_leaf)
    trees, n_own = _stacked([_without_background(forest) for forest in forests]), sum(own)
    n_trees = len(trees.root)
    tree = np.repeat(np.arange(n_trees), np.diff(np.append(_first_leaves(trees), n_own)))
    if len(of_leaf) > n_own:
        share = np.exp(of_leaf[n_own:] - np.logaddexp.reduce(of_leaf[n_own:]))
        leaf = np.minimum(np.arange(len(of_leaf)), n_own)
        trees = mix_leaves(add_stump(trees), leaf, np.concatenate([np.ones(n_own), share]))
        tree = np.append(tree, np.full(len(share), n_trees))
    fields = ("family", "a", "b", "lo", "hi", "atom_mass", "level_mass", "missing_rate")
    table = {name: [getattr(forest.leaves, name)[leaf].copy() for forest, leaf, _ in taken] for name in fields}
    own_pieces = [
        taken_pieces(forest.leaves.pieces, *of)
        for (forest, *_), *of in zip(taken, table["family"], table["a"], table["b"], strict=True)
    ]
    pieces = stacked_pieces(own_pieces, table["family"], table["a"])
    wide = stacked([forest.leaves.wide for forest in forests])
    before = np.cumsum([0] + [len(forest.leaves.tree) for forest in forests[:-1]])
    rows = [
        np.arange(len(forest.leaves.tree))[leaf] + at
        for (forest, leaf, _), at in zip(taken, [*before, *before], strict=True)
    ]
    return Forest(
        schema=forests[0].schema,
        columns=forests[0].columns,
        trees=trees,
        leaves=make_leaves(
            forests[0].columns,
            ParameterTables(
                tree=tree,
                log_weight=of_leaf,
                **{name: np.concatenate(parts) for name, parts in table.items()},
                wide=take_levels(layout(forests[0].columns), wide, np.concatenate(rows)),
                pieces=pieces,
            ),
        ),
        has_background=len(of_leaf) > n_own,
    )


def _without_background(forest: Forest) -> Trees:
    """The node table less the background, which is its last tree."""
    if not forest.has_background:
        return forest.trees
    trees, end = forest.trees, int(forest.trees.root[-1])
    own = {name: field[:end] for name, field in trees._asdict().items() if name not in ("root", "left_levels")}
    return trees._replace(**own, root=trees.root[:-1])


def _stacked(parts: list[Trees]) -> Trees:
    """The trees of all node tables, numbered through."""

    def through(name: str, counted: str) -> np.ndarray:
        """A field of numbers, each table's behind those of the tables before; -1 stays."""
        fields, before = [], 0
        for trees in parts:
            field = getattr(trees, name)
            fields.append(np.where(field >= 0, field + before, -1).astype(np.int32))
            before += int(trees.leaf.max()) + 1 if counted == "leaf" else len(getattr(trees, counted))
        return np.concatenate(fields)

    def plain(name: str) -> np.ndarray:
        return np.concatenate([getattr(trees, name) for trees in parts])

    return Trees(
        feature=plain("feature"),
        threshold=plain("threshold"),
        levels_at=through("levels_at", "left_levels"),
        left_levels=plain("left_levels"),
        left=through("left", "feature"),
        right=through("right", "feature"),
        leaf=through("leaf", "leaf"),
        weight=plain("weight"),
        root=through("root", "feature"),
    )


def _first_leaves(trees: Trees) -> np.ndarray:
    """Number of the first leaf of each tree; a tree's nodes, and its leaves, are contiguous."""
    number = np.where(trees.leaf >= 0, trees.leaf, np.iinfo(np.int32).max)
    return np.minimum.reduceat(number, trees.root)
