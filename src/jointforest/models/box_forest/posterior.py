"""The posterior over leaves: which boxes the evidence reaches, and with which weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...data.evidence import Evidence, distinct_rows
from ...runtime.records import record
from ...runtime.threads import chunks, map_ordered
from .descent_kernels import routed_rows
from .leaves.levels import mixed_level_masses
from .posterior_kernels import leaf_moments, level_sums, posterior_rows, row_scratch, weigh_trees, with_routed
from .sampling_kernels import Draws, complete_rows, draw_rows, draw_scratch, impute_rows
from .structure import Forest
from .structure_kernels import MIXED

_ENTRIES = 2_000_000
"""Most pairs of a row and a leaf in a chunk: some 50 MB."""
_ROUTED_ROWS = 2048
"""Rows of a chunk for a thread, where trees route rows to few leaves."""


@record
class LeafPosterior(NamedTuple):
    """Leaves of n rows of evidence, sparse: row i has the entries ``start[i]:start[i + 1]``.

    start : int64 array (n + 1,)
    leaf : int32 array (M,). Leaves that give the evidence a probability above 0.
    log_weight : float64 array (M,). log p(leaf, evidence): not normalised, without the penalty for unseen levels.
    log_evidence : float64 array (n,). log p(evidence), the log-sum of the row's entries; -inf if it has none.
    """

    start: np.ndarray
    leaf: np.ndarray
    log_weight: np.ndarray
    log_evidence: np.ndarray


def posterior(forest: Forest, evidence: Evidence) -> LeafPosterior:
    """Leaves that each row of evidence reaches, with log p(leaf, evidence); for many rows use `by_chunks`."""

    def work(first: int, stop: int) -> LeafPosterior:
        return chunk_posterior(forest, evidence, first, stop)

    parts = list(map_ordered(work, row_chunks(forest, evidence)))
    ends = np.cumsum([0] + [len(part.leaf) for part in parts])
    return LeafPosterior(
        np.concatenate([np.zeros(1, np.int64), *(p.start[1:] + end for p, end in zip(parts, ends[:-1], strict=True))]),
        np.concatenate([part.leaf for part in parts]),
        np.concatenate([part.log_weight for part in parts]),
        np.concatenate([part.log_evidence for part in parts]),
    )


class OneRow:
    """One row of evidence, weighed once for the questions about all columns; `by_chunks` reads it.

    evidence : Evidence. One row.
    """

    def __init__(self, forest: Forest, evidence: Evidence) -> None:
        self._columns, self._leaves = forest.columns, forest.leaves
        self._mixture: tuple[np.ndarray, np.ndarray] | None = None
        self._levels: np.ndarray | None = None
        self._post = LeafPosterior(
            *posterior_rows(forest.columns, forest.trees, forest.leaves, evidence, 0, 1, True, row_scratch(forest))
        )

    @property
    def posterior(self) -> LeafPosterior:
        """`chunk_posterior` of the row."""
        return self._post

    @property
    def mixture(self) -> tuple[np.ndarray, np.ndarray]:
        """Leaves of `posterior`, int32 (m,), and their weights, (m,), which sum to 1; none of impossible evidence."""
        if self._mixture is None:
            post = self._post
            self._mixture = post.leaf, np.exp(post.log_weight - post.log_evidence[0])
        return self._mixture

    @property
    def level_shares(self) -> np.ndarray | None:
        """Level shares of all columns in `mixture`, (S,); None of impossible evidence."""
        if self._levels is None and len(self._post.leaf):
            self._levels = mixed_level_masses(self._columns, self._leaves, *self.mixture)
        return self._levels


def background_share(forest: Forest, post: LeafPosterior) -> np.ndarray:
    """Weight of the background in each row of a posterior over leaves, (n,); NaN where that has probability 0."""
    entry = np.flatnonzero(post.leaf >= len(forest.leaves.log_weight) - forest.n_background)
    row = np.searchsorted(post.start, entry, side="right") - 1
    share = np.bincount(row, np.exp(post.log_weight[entry] - post.log_evidence[row]), minlength=len(post.log_evidence))
    return np.where(post.log_evidence > -np.inf, share, np.nan)


def by_chunks(
    forest: Forest,
    evidence: Evidence,
    read: Callable[[Evidence, LeafPosterior, int], np.ndarray],
    column: int | None = None,
    beta: float = 1.0,
    known: OneRow | None = None,
) -> np.ndarray:
    """Answers of all rows: ``read(rows, their posterior, first row)`` for chunks of the distinct rows."""
    # Readers of one column name it (`LeafPosterior`); ``beta`` is that of `chunk_posterior`; ``known`` is the evidence
    # if it is one row whose posterior is kept.
    if known is not None:
        return read(evidence, known.posterior, 0)
    rows, place = distinct_rows(evidence)
    is_routed = beta == 0.0 and _knows_splits(forest, rows)

    def work(first: int, stop: int) -> np.ndarray:
        if is_routed:
            return read(rows, _routed(forest, rows, first, stop), first)
        return read(rows, chunk_posterior(forest, rows, first, stop, column, beta), first)

    cut = chunks(len(rows.value), _ROUTED_ROWS) if is_routed else row_chunks(forest, rows)
    return np.concatenate(list(map_ordered(work, cut)))[place]


def _knows_splits(forest: Forest, evidence: Evidence) -> bool:
    """Whether every row ends in one leaf of each tree, so that no densities are needed to find it."""
    feature = forest.trees.feature
    if not len(evidence.value) or evidence.has_regions or bool((feature == MIXED).any()):
        return False
    return not np.isnan(evidence.value[:, np.unique(feature[feature >= 0])]).any()


def _routed(forest: Forest, evidence: Evidence, first: int, stop: int) -> LeafPosterior:
    """`chunk_posterior` with ``beta`` 0 of rows that end in one leaf of each tree."""
    n_trees = len(forest.trees.root) - forest.has_background
    leaf = routed_rows(forest.trees, evidence.value, first, stop, n_trees)
    start = n_trees * np.arange(stop - first + 1, dtype=np.int64)
    return LeafPosterior(start, leaf, np.full(len(leaf), -np.log(n_trees)), np.zeros(stop - first))


def chunk_posterior(
    forest: Forest, evidence: Evidence, first: int, stop: int, column: int | None = None, beta: float = 1.0
) -> LeafPosterior:
    """The posterior of the rows first..stop-1, for a question about a column if one is given."""
    # With ``beta`` below 1 tree t counts (pi_t p_t(evidence))^beta: 0 averages the trees' conditionals, 1 is the
    # mixture (GeF and GeF+ of Correia et al. 2020, section 4). A tree that gives the evidence probability 0 counts only
    # for beta 0, or where all trees do so: it answers by the leaves that the evidence can reach. The background does
    # not count.
    scratch = row_scratch(forest)
    post = LeafPosterior(
        *posterior_rows(forest.columns, forest.trees, forest.leaves, evidence, first, stop, True, scratch)
    )
    if beta == 1.0:
        return post
    n_trees = len(forest.trees.root) - forest.has_background
    j = -1 if column is None else int(column)
    start, leaf, log_weight, fallen = with_routed(
        forest.columns, forest.trees, forest.leaves, evidence, first, post, j, n_trees, scratch
    )
    return LeafPosterior(start, leaf, *weigh_trees(start, log_weight, fallen, forest.leaves.tree[leaf], n_trees, beta))


def row_chunks(forest: Forest, evidence: Evidence, most: int = 1024) -> list[tuple[int, int]]:
    """So few rows a chunk that rows without any evidence, which reach every leaf, fit into some 50 MB."""
    rows = max(1, min(most, _ENTRIES // len(forest.leaves.log_weight)))
    return chunks(len(evidence.value), rows) or [(0, 0)]


# ---- log p(evidence).

_DENSITY_ROWS = 2048
"""Rows of a chunk for a thread; they keep no posterior."""


def log_density(forest: Forest, evidence: Evidence) -> np.ndarray:
    """log p(evidence) of each row with the evidence's penalty, (n,); -inf where it is impossible."""
    # log sum_l w_l prod_j D_lj(evidence_j), in fixed order. Values count with their density, atoms and levels with
    # their mass, regions with their mass.

    rows, place = distinct_rows(evidence)

    def work(first: int, stop: int) -> np.ndarray:
        scratch = row_scratch(forest)
        return posterior_rows(forest.columns, forest.trees, forest.leaves, rows, first, stop, False, scratch)[3]

    parts = list(map_ordered(work, chunks(len(rows.value), _DENSITY_ROWS)))
    return np.concatenate([np.empty(0), *parts])[place] + evidence.log_penalty


# ---- The evidence in each tree alone.


def tree_log_density(forest: Forest, evidence: Evidence) -> np.ndarray:
    """log(pi_t p_t(evidence)) of each tree, (n, T); -inf where a tree gives the evidence probability 0."""
    n_trees = len(forest.trees.root)

    def read(rows: Evidence, leaves: LeafPosterior, first: int) -> np.ndarray:
        n = len(leaves.log_evidence)
        row = np.repeat(np.arange(n), np.diff(leaves.start))
        cell = row * n_trees + forest.leaves.tree[leaves.leaf]
        highest = np.full(n * n_trees, -np.inf)
        np.maximum.at(highest, cell, leaves.log_weight)
        with np.errstate(divide="ignore"):
            total = np.log(np.bincount(cell, np.exp(leaves.log_weight - highest[cell]), minlength=n * n_trees))
        return np.where(highest > -np.inf, highest + total, -np.inf).reshape(n, n_trees)

    return by_chunks(forest, evidence, read) + evidence.log_penalty[:, None]


# ---- Means and variances of numeric columns.

_FEW_ROWS = 8
"""Rows up to which no table of the moments of all leaves is made: it would take longer than the rows."""


def moments_table(forest: Forest, evidence: Evidence, slot: int, few: int = _FEW_ROWS) -> np.ndarray:
    """Mean and variance of a numeric slot in every leaf, (L, 2)."""
    # Shared by all rows of evidence; (0, 2) if these are no more than ``few``, too few to pay.
    if len(evidence.value) <= few:
        return np.empty((0, 2))
    j = int(np.flatnonzero(forest.columns.is_categorical == 0)[slot])

    def work(first: int, stop: int) -> np.ndarray:
        return leaf_moments(forest.columns, forest.leaves, evidence, j, first, stop)

    return np.concatenate(list(map_ordered(work, chunks(len(forest.leaves.tree), 4096))))


def numeric_slot(forest: Forest, j: int) -> int:
    """Slot of numeric column j; a ValueError if it is categorical."""
    if forest.columns.is_categorical[j]:
        column = forest.schema.columns[j]
        raise ValueError(f"column {column.name!r} is {column.kind}: this question needs numbers; ask for its levels")
    return int(forest.columns.slot[j])


# ---- The distribution of a column in each tree alone.

Sums = Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]
"""Leaves (m,), their weights and the places (m,) among n they are summed up in, to sums of their answers, (n, K)."""


def tree_answers(
    forest: Forest, evidence: Evidence, j: int, centre: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """log p_t(evidence) of each tree (n, T), and its level probabilities or mean of column j (n, T, K)."""
    # With a centre also the mean squared distance from it. Trees that exclude the evidence: see `chunk_posterior`.
    leaves, n_trees = forest.leaves, len(forest.trees.root) - forest.has_background
    weight_of_tree = np.bincount(leaves.tree, np.exp(leaves.log_weight))[:n_trees]
    sums = _level_sums(forest, j) if forest.columns.is_categorical[j] else _moment_sums(forest, evidence, j, centre)

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        n = len(post.log_evidence)
        scratch = row_scratch(forest)
        start, leaf, log_weight, fallen = with_routed(
            forest.columns, forest.trees, leaves, rows, first, post, int(j), n_trees, scratch
        )
        row, tree = np.repeat(np.arange(n), np.diff(start)), leaves.tree[leaf]
        kept = tree < n_trees
        cell = row[kept] * n_trees + tree[kept]
        leaf, log_weight = leaf[kept], log_weight[kept]
        top = np.full(n * n_trees, -np.inf)
        np.maximum.at(top, cell, log_weight)
        weight = np.exp(log_weight - top[cell])
        total = np.bincount(cell, weight, minlength=n * n_trees)
        answer = sums(leaf, weight, cell, n * n_trees) / total[:, None]
        log_tree = top + np.log(total)
        log_tree[cell[fallen[kept]]] = -np.inf
        return np.column_stack([log_tree, answer]).reshape(n, n_trees, -1)

    both = by_chunks(forest, evidence, read, j)
    return both[:, :, 0] - np.log(weight_of_tree), both[:, :, 1:]


def _level_sums(forest: Forest, j: int) -> Sums:
    """Of the probabilities of column j's K levels."""
    slot = int(forest.columns.slot[j])
    size = forest.columns.n_levels(slot)

    def sums(leaf: np.ndarray, weight: np.ndarray, place: np.ndarray, n: int) -> np.ndarray:
        out = np.zeros((n, size))
        level_sums(forest.leaves, slot, size, leaf, weight, place, out)
        return out

    return sums


def _moment_sums(forest: Forest, evidence: Evidence, j: int, centre: float | None) -> Sums:
    """Of column j's means, and with a centre of its mean squared distances from there."""
    moments = moments_table(forest, evidence, numeric_slot(forest, j), few=0)
    of_leaf = [moments[:, 0]]
    if centre is not None:
        of_leaf.append(moments[:, 1] + (moments[:, 0] - centre) ** 2)

    def sums(leaf: np.ndarray, weight: np.ndarray, place: np.ndarray, n: int) -> np.ndarray:
        return np.column_stack([np.bincount(place, weight * values[leaf], minlength=n) for values in of_leaf])

    return sums


# ---- Draws of whole rows given evidence, and missing cells filled in; no row is rejected.

_DRAWS = 12_288
"""Draws of a chunk for a thread: of fewer few share a leaf, and with more the last chunk keeps threads waiting."""
_DRAW_ROWS = 128
"""Most rows of a chunk for a thread."""


def sample(forest: Forest, evidence: Evidence, m: int, seed: int, missing: bool = False) -> np.ndarray:
    """The draws of `weighed_draws`."""
    return weighed_draws(forest, evidence, m, seed, missing)[0]


def weighed_draws(
    forest: Forest, evidence: Evidence, m: int, seed: int, missing: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """m rows for each row of evidence (n * m, d), and background weights (n,): a leaf, then its columns."""
    # Draw k of row i uses the random stream of number i*m + k, so the answer depends on the seed alone.
    n, d = evidence.value.shape
    out, share = np.empty((n * m, d)), np.full(n, np.nan)

    def work(rows: tuple[int, int], draws: tuple[int, int]) -> None:
        post = chunk_posterior(forest, evidence, *rows)
        scratch = draw_scratch(int(np.diff(post.start).max(initial=0)), draws[1] - draws[0])
        wanted = Draws(m, *draws, seed, missing)
        draw_rows(forest.columns, forest.leaves, evidence, post, rows[0], wanted, scratch, out)
        if draws[0] == 0:
            share[slice(*rows)] = background_share(forest, post)

    some_rows = row_chunks(forest, evidence, max(1, min(_DRAW_ROWS, _DRAWS // max(m, 1))))
    items = [(rows, draws) for rows in some_rows for draws in chunks(m, _DRAWS)]
    for _ in map_ordered(work, items, "drawing rows"):
        pass
    return out, share


def leaf_completions(forest: Forest, evidence: Evidence, count: np.ndarray, seed: int) -> np.ndarray:
    """count (n,) rows for each row of evidence, contiguous, from random streams that all rows share."""
    # The leaves of a row are drawn by systematic sampling, with an offset that all rows share.
    start = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    out = np.empty((int(start[-1]), evidence.value.shape[1]))

    def work(first: int, stop: int) -> None:
        scratch = draw_scratch(0, 0)
        post = chunk_posterior(forest, evidence, first, stop)
        complete_rows(forest.columns, forest.leaves, evidence, post, first, start, seed, scratch, out)

    most = max(1, min(_DRAW_ROWS, _DRAWS // max(int(count.max(initial=1)), 1)))
    for _ in map_ordered(work, row_chunks(forest, evidence, most), "drawing rows"):
        pass
    return out


# ---- Missing cells filled in.


def impute_and_weigh(forest: Forest, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """`impute`, and the posterior weight of the background in each row (n,), in one pass."""
    means = _means(forest, evidence)

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        filled = impute_rows(forest.columns, forest.leaves, rows, post, first, means)
        return np.column_stack([filled, background_share(forest, post)])

    both = by_chunks(forest, evidence, read)
    return np.ascontiguousarray(both[:, :-1]), both[:, -1]


def _means(forest: Forest, evidence: Evidence) -> np.ndarray:
    """Means of the numeric slots in every parameter row, (R, p), where a cell wants one; (0, 0) for few rows."""
    numeric = np.flatnonzero(forest.columns.is_categorical == 0)
    tables = {
        int(forest.columns.slot[j]): moments_table(forest, evidence, int(forest.columns.slot[j]))
        for j in numeric
        if np.isnan(evidence.value[:, j]).any()
    }
    if not any(len(table) for table in tables.values()):
        return np.empty((0, 0))
    means = np.full((len(forest.leaves.tree), len(numeric)), np.nan)
    for slot, table in tables.items():
        means[:, slot] = table[:, 0]
    return means


# ---- Log-densities of training rows by the trees that were grown without them.


def oob_log_density(model: Forest, evidence: Evidence, drawn: np.ndarray) -> np.ndarray:
    """Log-density (n,) of each row by the background and the trees that did not draw it (``drawn``, bool (T, n))."""
    by_tree = tree_log_density(model, evidence)
    n_trees = len(drawn)
    out_of_bag = ~drawn.T
    number = out_of_bag.sum(axis=1)
    trees = np.where(out_of_bag, by_tree[:, :n_trees], -np.inf)
    rescale = np.log(n_trees) - np.log(np.maximum(number, 1))
    density = np.logaddexp.reduce(np.column_stack([trees + rescale[:, None], by_tree[:, n_trees:]]), axis=1)
    return np.where(number > 0, density, np.nan)
