"""Covariance of two columns of numbers, exact: columns of a leaf without circuit are independent."""

from __future__ import annotations

import numpy as np

from ...data.evidence import Evidence
from .leaves.circuit_structure_kernels import parents
from .leaves.table import FACTORS, PRODUCT, Leaves
from .posterior import LeafPosterior, OneRow, by_chunks
from .posterior_kernels import level_rows, mean_variance_rows
from .structure import Forest


def covariance(forest: Forest, evidence: Evidence, a: int, b: int, known: OneRow | None = None) -> np.ndarray:
    """Posterior covariance of two numeric or boolean columns (True counts 1) given each of n rows of evidence, (n,).

    NaN where the evidence has probability 0. With c the mixture's means, a leaf's product of columns adds
    w (m_a - c_a)(m_b - c_b); in a circuit the columns part at a PRODUCT, where their means given that it takes part
    multiply, or stay together in a FACTORS node.
    """
    n = len(evidence.value)
    if n > 1 and not len(forest.leaves.node_kind):
        return by_chunks(forest, evidence, lambda rows, post, first: _of_products(forest, rows, post, first, a, b))
    rows = [evidence] if n == 1 else [evidence.take(np.array([i])) for i in range(n)]
    return np.array([_of_one(forest, row, a, b, known or OneRow(forest, row)) for row in rows])


def _of_products(forest: Forest, rows: Evidence, post: LeafPosterior, first: int, a: int, b: int) -> np.ndarray:
    """Covariances given the rows first.. whose posterior this is, of a forest without circuits."""
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
    for number in np.unique(region[~is_known]).tolist():
        pairs = np.flatnonzero(((region == number) & ~is_known)[row])
        leaves, place = np.unique(leaf[pairs], return_inverse=True)
        one = rows.take(np.flatnonzero((region == number) & ~is_known)[:1])
        mean[pairs] = _means(forest, one, j, leaves)[place]
    return mean


def _of_one(forest: Forest, row: Evidence, a: int, b: int, known: OneRow) -> float:
    post = known.posterior(None)
    if not np.isfinite(post.log_evidence[0]):
        return float("nan")
    if not np.isnan(row.value[0, [a, b]]).all():
        return 0.0
    leaves = forest.leaves
    weight = np.exp(post.log_weight - post.log_evidence[0])
    plain = leaves.node_start[post.leaf + 1] == leaves.node_start[post.leaf]
    share = _node_shares(leaves, post, known)
    parts = [_Rows(forest, row, j, post.leaf[plain], share) for j in (a, b)]
    first, second = parts
    center = [float(weight[plain] @ of.plain + of.in_node @ share) for of in parts]
    total = float(weight[plain] @ ((first.plain - center[0]) * (second.plain - center[1])))
    if not len(share):
        return total
    return total + _in_circuits(leaves, share, first, second, center)


def _node_shares(leaves: Leaves, post: LeafPosterior, known: OneRow) -> np.ndarray:
    """p(node takes part | evidence) of every node of a circuit, (Q,); 0 of leaves that the evidence does not meet."""
    share = np.zeros(len(leaves.node_kind))
    for leaf in post.leaf.tolist():
        nodes = slice(leaves.node_start[leaf], leaves.node_start[leaf + 1])
        share[nodes] = np.exp(known.log_share[nodes] - post.log_evidence[0])
    return share


class _Rows:
    """Means of one column in the plain leaves that the evidence meets, and in the nodes that describe it."""

    def __init__(self, forest: Forest, row: Evidence, j: int, plain: np.ndarray, share: np.ndarray) -> None:
        leaves = forest.leaves
        self.has = np.zeros(len(share), bool)
        self.has[leaves.node_scope >= 0] = leaves.scope[leaves.node_scope[leaves.node_scope >= 0], j] == 1
        nodes = np.flatnonzero(self.has & (share > 0.0))
        means = _means(forest, row, j, np.concatenate([plain, leaves.node_row[nodes]]).astype(np.int32))
        self.plain = means[: len(plain)]
        self.in_node = np.zeros(len(share))
        self.in_node[nodes] = means[len(plain) :]


def _means(forest: Forest, row: Evidence, j: int, of: np.ndarray) -> np.ndarray:
    """Mean of a column in each of n parameter rows, given the column's evidence, (n,)."""
    n = len(of)
    each = LeafPosterior(np.arange(n + 1, dtype=np.int64), of, np.zeros(n), np.zeros(n))
    nowhere = np.empty((0, 2))
    rows = row.repeat(n)
    if forest.columns.is_categorical[j]:
        levels = forest.schema.columns[j].levels
        return level_rows(forest.columns, forest.leaves, rows, j, each, 0) @ np.array(
            [float(level) for level in levels]
        )
    return mean_variance_rows(forest.columns, forest.leaves, rows, j, each, 0, nowhere)[:, 0].copy()


def _in_circuits(leaves: Leaves, share: np.ndarray, a: _Rows, b: _Rows, center: list[float]) -> float:
    """What the leaves with circuits add: at the node where the columns part, the product of their sums below it."""
    held = share * a.has * (a.in_node - center[0]), share * b.has * (b.in_node - center[1])
    both = (leaves.node_kind == FACTORS) & a.has & b.has & (share > 0.0)
    total = float((share * (a.in_node - center[0]) * (b.in_node - center[1]))[both].sum())
    end, q = leaves.node_end, np.arange(len(share))
    count = [np.concatenate([[0], np.cumsum(of.has)]) for of in (a, b)]
    in_a, in_b = (of[end] > of[q] for of in count)
    parent = parents(leaves.node_end)
    together = in_a & in_b
    passed_on = np.zeros(len(share), bool)  # a child holds both columns
    passed_on[parent[together & (parent >= 0)]] = True
    parting = np.flatnonzero((leaves.node_kind == PRODUCT) & together & ~passed_on & (share > 0.0))
    for node in parting.tolist():
        below = slice(node, end[node])
        total += float(held[0][below].sum() * held[1][below].sum() / share[node])
    return total
