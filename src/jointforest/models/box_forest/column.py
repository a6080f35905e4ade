"""One column given evidence: level probabilities, moments, distribution functions, densities and quantiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...data.evidence import Evidence
from ...runtime.threads import chunks, map_ordered
from .column_kernels import cdf_rows, leaf_moments, level_rows, level_sums, mean_variance_rows, pdf_rows
from .forest import Forest
from .posterior import LeafPosterior, OneRow, by_chunks
from .posterior_kernels import row_scratch
from .quantile_kernels import quantile_rows
from .tree_weight_kernels import with_routed


def level_probability(
    forest: Forest,
    evidence: Evidence,
    j: int,
    n_jobs: int | None = -1,
    beta: float = 1.0,
    known: OneRow | None = None,
) -> np.ndarray:
    """Probability of each of the K levels of a categorical column, (n, K)."""
    if not forest.columns.is_categorical[j]:
        column = forest.schema.columns[j]
        raise ValueError(f"column {column.name!r} is {column.kind}: it has no levels; ask for mean, cdf or quantile")

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        # sums of many weights may end a rounding error above 1
        return np.minimum(level_rows(forest.columns, forest.leaves, rows, j, post, first), 1.0)

    return by_chunks(forest, evidence, read, n_jobs, j, beta, known)


# ---- Means and variances of numeric columns.

_FEW_ROWS = 8


def mean_variance(
    forest: Forest,
    evidence: Evidence,
    j: int,
    n_jobs: int | None = -1,
    beta: float = 1.0,
    known: OneRow | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of a numeric column, each (n,); cells of a grid count with their centres."""
    table = moments_table(forest, evidence, numeric_slot(forest, j), n_jobs)

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        return mean_variance_rows(forest.columns, forest.leaves, rows, j, post, first, table)

    both = by_chunks(forest, evidence, read, n_jobs, j, beta, known)
    return both[:, 0].copy(), both[:, 1].copy()


def moments_table(
    forest: Forest, evidence: Evidence, slot: int, n_jobs: int | None, few: int = _FEW_ROWS
) -> np.ndarray:
    """Mean and variance of a numeric slot in every parameter row, (R, 2); NaN where one lacks it.

    Shared by all rows of evidence; (0, 2) if these are no more than ``few``, too few to pay.
    """
    if len(evidence.value) <= few:
        return np.empty((0, 2))
    j = int(np.flatnonzero(forest.columns.is_categorical == 0)[slot])
    leaves = forest.leaves
    described = np.arange(len(leaves.tree)) < len(leaves.log_weight)
    described[leaves.node_row[leaves.node_scope >= 0][leaves.scope[:, j] == 1]] = True

    def work(first: int, stop: int) -> np.ndarray:
        return leaf_moments(forest.columns, leaves, evidence, j, described, first, stop)

    return np.concatenate(list(map_ordered(work, chunks(len(forest.leaves.tree), 4096), n_jobs)))


def numeric_slot(forest: Forest, j: int) -> int:
    """Slot of numeric column j; a ValueError if it is categorical."""
    if forest.columns.is_categorical[j]:
        column = forest.schema.columns[j]
        raise ValueError(f"column {column.name!r} is {column.kind}: this question needs numbers; ask for its levels")
    return int(forest.columns.slot[j])


# ---- CDF, density and quantiles of numeric columns.


def cdf(
    forest: Forest, evidence: Evidence, j: int, x: np.ndarray, n_jobs: int | None = -1, known: OneRow | None = None
) -> np.ndarray:
    """P(column j <= x) of a numeric column at q points, (n, q)."""
    # sums of many weights may end a rounding error above 1
    return np.minimum(_at_points(cdf_rows, forest, evidence, j, x, n_jobs, known), 1.0)


def pdf(
    forest: Forest, evidence: Evidence, j: int, x: np.ndarray, n_jobs: int | None = -1, known: OneRow | None = None
) -> np.ndarray:
    """Density of a numeric column at q points, (n, q).

    On a grid the mass of x's cell over the step; at an atom of a mixed column the atom's mass (its density against a
    counting measure). A cell with a value has 1/step on its grid cell, 1 on an atom, and infinity elsewhere.
    """
    return _at_points(pdf_rows, forest, evidence, j, x, n_jobs, known)


def _at_points(
    kernel: Callable[..., np.ndarray],
    forest: Forest,
    evidence: Evidence,
    j: int,
    x: np.ndarray,
    n_jobs: int | None,
    known: OneRow | None,
) -> np.ndarray:
    """What the kernel says of column j at the points x, for each row: (n, q)."""
    numeric_slot(forest, j)
    points = np.ascontiguousarray(x, dtype=np.float64)

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        return kernel(forest.columns, forest.leaves, rows, j, post, first, points)

    return by_chunks(forest, evidence, read, n_jobs, j, known=known)


def quantile(
    forest: Forest,
    evidence: Evidence,
    j: int,
    q: np.ndarray,
    n_jobs: int | None = -1,
    beta: float = 1.0,
    known: OneRow | None = None,
) -> np.ndarray:
    """inf{x: F(x) >= q} of a numeric column at k levels, (n, k), by a bracketed search on the mixture's CDF.

    Cell centres on grids, atoms exactly, other numbers to 1e-10 of the posterior's standard deviation.
    """
    numeric_slot(forest, j)
    probabilities = np.ascontiguousarray(q, dtype=np.float64)
    if not np.all((probabilities > 0.0) & (probabilities < 1.0)):
        bad = probabilities[~((probabilities > 0.0) & (probabilities < 1.0))][0]
        name = forest.schema.columns[j].name
        raise ValueError(f"quantile of column {name!r}: q must be above 0 and below 1, got {bad}")

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        return quantile_rows(forest.columns, forest.leaves, rows, j, post, first, probabilities)

    found = by_chunks(forest, evidence, read, n_jobs, j, beta, known)
    rising = np.argsort(
        probabilities, kind="stable"
    )  # each q has its own search: keep their order within its tolerance
    found[:, rising] = np.maximum.accumulate(found[:, rising], axis=1)
    return found


# ---- What each tree alone says of a column.

Sums = Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]
"""Leaves (m,), their weights and the places (m,) among n they are summed up in, to sums of what they say, (n, K)."""


def tree_answers(
    forest: Forest, evidence: Evidence, j: int, n_jobs: int | None = -1, centre: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """log p_t(evidence) of each tree (n, T), and what each tree expects of column j (n, T, K), the background left out.

    These are the probabilities of its K levels, or its mean; with a centre also its mean squared distance from there.
    A tree that gives the evidence probability 0 answers by the leaves that it can reach, see
    `posterior.chunk_posterior`.
    """
    leaves, n_trees = forest.leaves, len(forest.trees.root) - forest.has_background
    weight_of_tree = np.bincount(leaves.tree[: len(leaves.log_weight)], np.exp(leaves.log_weight))[:n_trees]
    if forest.columns.is_categorical[j]:
        sums = _level_sums(forest, j)
    else:
        sums = _moment_sums(forest, evidence, j, n_jobs, centre)

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

    both = by_chunks(forest, evidence, read, n_jobs, j)
    return both[:, :, 0] - np.log(weight_of_tree), both[:, :, 1:]


def _level_sums(forest: Forest, j: int) -> Sums:
    """Of the probabilities of column j's K levels."""
    slot = int(forest.columns.slot[j])
    size = int(forest.columns.level_start[slot + 1] - forest.columns.level_start[slot])

    def sums(leaf: np.ndarray, weight: np.ndarray, place: np.ndarray, n: int) -> np.ndarray:
        out = np.zeros((n, size))
        level_sums(forest.leaves, slot, size, leaf, weight, place, out)
        return out

    return sums


def _moment_sums(forest: Forest, evidence: Evidence, j: int, n_jobs: int | None, centre: float | None) -> Sums:
    """Of column j's means, and with a centre of its mean squared distances from there."""
    moments = moments_table(forest, evidence, numeric_slot(forest, j), n_jobs, few=0)
    of_leaf = [moments[:, 0]]
    if centre is not None:
        of_leaf.append(moments[:, 1] + (moments[:, 0] - centre) ** 2)

    def sums(leaf: np.ndarray, weight: np.ndarray, place: np.ndarray, n: int) -> np.ndarray:
        return np.column_stack([np.bincount(place, weight * values[leaf], minlength=n) for values in of_leaf])

    return sums
