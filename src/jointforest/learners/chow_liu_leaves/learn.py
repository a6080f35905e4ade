"""A forest with Chow-Liu trees on codes in its leaves, learned as a mixture of hidden trees whose states are codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...data.discretization.dependence import coarse, mutual_information, spanning_tree
from ...data.discretization.discretizer import Scale, code_table
from ...data.discretization.learn import learn_scale
from ...data.schema import Column, Columns, Schema, kernel_columns
from ...models.box_forest.structure import Trees, add_stump, leaf_boxes, with_weights
from ...models.hidden_tree.hidden_tree import ChowLiuForest
from ...models.hidden_tree.hidden_trees import Grown, HiddenTrees, TreeTables, value_trees
from ...runtime.arrays import divided
from ...runtime.threads import map_ordered, one_blas_thread
from ..batches.fill import Route, routed
from ..batches.sample import FoldBatches, Pass, Sampled, check_row_count
from ..hidden_tree.rake import with_marginal
from ..leaf_fitting.densities import AssignedRows, first_leaves
from ..rows import TableRows
from .constants import FIXED

# ---- Tables of Chow-Liu trees on codes: pairs of columns in the whole table, and in a leaf, where rows are few.


class Edges(NamedTuple):
    """A tree over d columns, with the tables of all rows.

    order : int32 array (d,). Column of each node, parents before children.
    parent : int32 array (d,). Node of the parent; -1 of the root.
    is_ordered : list of d bool. Whether each node's codes have an order.
    marginal : list of d arrays (K_k,). Shares of each node's codes, above 0.
    pair : list of d arrays (K_parent, K_k). Joint shares of the parent's codes and the node's; of the root (1, K).
    missing_share : list of d float. Shares of missing cells.
    """

    order: np.ndarray
    parent: np.ndarray
    is_ordered: list[bool]
    marginal: list[np.ndarray]
    pair: list[np.ndarray]
    missing_share: list[float]


def table_edges(
    codes: np.ndarray,
    n_codes: np.ndarray,
    is_ordered: np.ndarray,
    missing_share: np.ndarray,
    order: np.ndarray,
    parent: np.ndarray,
) -> Edges:
    """The tables of a tree over the columns, from codes (n, d); code ``n_codes[j]`` is missing."""
    columns, above = order.tolist(), parent.tolist()
    ordered = is_ordered[order].tolist()
    marginal, pair = [], []
    for j in columns:
        count = np.bincount(codes[:, j], minlength=n_codes[j] + 1)[: n_codes[j]] + 0.0
        count[count == 0.0] = 0.5
        marginal.append(count / count.sum())
    for k, j in enumerate(columns):
        if above[k] < 0:
            pair.append(marginal[k][None])
            continue
        up = above[k]
        of = [_pair_counts(codes[half::2, columns[up]], codes[half::2, j], len(marginal[up]), len(marginal[k]))
              for half in (0, 1)]  # fmt: skip
        moves = neighbours(marginal[up], FIXED.pair_width) if ordered[up] else np.eye(len(marginal[up]))
        near = neighbours(marginal[k], FIXED.pair_width) if ordered[k] else np.eye(len(marginal[k]))
        both = [(count, moves.T @ count @ near + FIXED.floor_rows * marginal[k]) for count in (*of, of[0] + of[1])]
        gain = [
            sum(float((of[1 - i] * np.log(_given(*both[i], rows))).sum()) for i in (0, 1)) for rows in FIXED.table_rows
        ]
        pair.append(marginal[up][:, None] * _given(*both[2], FIXED.table_rows[int(np.argmax(gain))]))
    return Edges(order, parent, ordered, marginal, pair, missing_share[order].tolist())


def _given(count: np.ndarray, smooth: np.ndarray, rows: float) -> np.ndarray:
    """p(code of the child | code of the parent): counts, and some rows of smoothed ones, (K, H)."""
    given = count + rows * smooth / smooth.sum(axis=1, keepdims=True)
    return np.asarray(given / given.sum(axis=1, keepdims=True))


def neighbours(marginal: np.ndarray, width: float) -> np.ndarray:
    """Where the rows of each ordered code go when they are smoothed, (K, K): rows sum to 1."""
    # A normal kernel on the column's normal scores: a common value is far from its neighbours, and so are the few rows
    # of a tail, which lie far apart.
    from scipy.special import ndtri

    at = ndtri(np.clip((np.cumsum(marginal) - 0.5 * marginal) / marginal.sum(), 1e-12, 1.0 - 1e-12))
    kernel = np.exp(-0.5 * ((at[:, None] - at) / width) ** 2) * marginal
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


def _pair_counts(a: np.ndarray, b: np.ndarray, K: int, H: int) -> np.ndarray:
    """Number of the rows with each two codes, (K, H); codes K and H are missing."""
    return np.bincount(a * (H + 1) + b, minlength=(K + 1) * (H + 1)).reshape(K + 1, H + 1)[:K, :H].astype(np.float64)


def leaf_pair_counts(
    a: np.ndarray, b: np.ndarray, leaf: np.ndarray, n_leaves: int, K: int, H: int, weight: np.ndarray
) -> np.ndarray:
    """Weight of the rows with each two codes in each leaf, (L, K + 1, H + 1); codes K and H are missing cells."""
    count = np.bincount((leaf * (K + 1) + a) * (H + 1) + b, weight, n_leaves * (K + 1) * (H + 1))
    return count.reshape(n_leaves, K + 1, H + 1)


def in_boxes(edges: Edges, allowed: list[np.ndarray]) -> list[np.ndarray]:
    """Shares of each node's codes, d arrays (L, K_k), by the table's tree given the codes ``allowed`` in each box."""
    given = [pair / pair.sum(axis=1, keepdims=True) for pair in edges.pair]
    inside = [of * 1.0 for of in allowed]
    up: list[np.ndarray] = [np.empty(0)] * len(inside)
    for k in range(len(inside) - 1, 0, -1):
        up[k] = _rows_to_one(inside[k] @ given[k].T)
        inside[edges.parent[k]] = _rows_to_one(inside[edges.parent[k]] * up[k])
    found = [_rows_to_one(inside[0] * edges.marginal[0])]
    for k in range(1, len(inside)):
        above = divided(found[edges.parent[k]], up[k])
        found.append(_rows_to_one(inside[k] * (above @ given[k])))
    return found


def _rows_to_one(shares: np.ndarray) -> np.ndarray:
    """Rows (L, K) that sum to 1; a row of zeros stays as it is."""
    total = shares.sum(axis=1, keepdims=True)
    return divided(shares, total)


def leaf_marginals(
    count: np.ndarray, allowed: np.ndarray, prior: np.ndarray, marginal: np.ndarray, is_ordered: bool
) -> np.ndarray:
    """Shares of a column's codes in each leaf, (L, K): counts, smoothed, and some rows of the ``prior`` (L, K)."""
    if is_ordered:
        count = count @ neighbours(marginal, FIXED.leaf_width)
    share = count * allowed + FIXED.marginal_rows * prior
    return np.asarray(share / share.sum(axis=1, keepdims=True))


class Boxes(NamedTuple):
    """The leaves of a forest of T trees.

    allowed : list of d bool arrays (L, K_j). Codes of each column inside each leaf's box.
    first : int64 array (T + 1,). Leaves of tree t are ``first[t]..first[t + 1] - 1``.
    share : float64 array (L,). Share of each leaf in its tree.
    """

    allowed: list[np.ndarray]
    first: np.ndarray
    share: np.ndarray


class PairCounts(NamedTuple):
    """Weight of the rows in some leaves l, by node.

    pairs : list of d arrays (l, K_parent + 1, K + 1). Of those with each two codes; the last code is for missing cells.
    missing : list of d arrays (l,). Of those whose cell is missing, or was and is filled.
    """

    pairs: list[np.ndarray]
    missing: list[np.ndarray]


Counted = Callable[[int, int, int], PairCounts]
"""What is counted in leaves a..b - 1 of tree t."""


def chow_liu_tree(codes: np.ndarray, n_codes: np.ndarray, is_ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order and parents, int32 (d,), of the tree of greatest mutual information in codes (n, d)."""
    return spanning_tree(mutual_information(*coarse(codes, n_codes, is_ordered)))


def edges_of(codes: np.ndarray, n_codes: np.ndarray, is_ordered: np.ndarray, missing_share: np.ndarray) -> Edges:
    """The `chow_liu_tree` of a table of codes (n, d), and its tables."""
    return table_edges(codes, n_codes, is_ordered, missing_share, *chow_liu_tree(codes, n_codes, is_ordered))


def counted_rows(
    edges: Edges, codes: np.ndarray, missing: np.ndarray, leaf_of: np.ndarray, weight: np.ndarray
) -> Counted:
    """Weighted counts of rows of codes (n, d) in leaves ``leaf_of`` (T, n); ``missing`` (n, d) are missing cells."""
    columns, sizes = edges.order.tolist(), [len(marginal) for marginal in edges.marginal]

    def counted(t: int, a: int, b: int) -> PairCounts:
        rows = np.flatnonzero((weight[t] > 0) & (leaf_of[t] >= a) & (leaf_of[t] < b))
        leaf, weight_here, counts = leaf_of[t, rows] - a, weight[t, rows], []
        lost = [np.bincount(leaf, weight_here * missing[rows, j], b - a) for j in columns]
        for j, K, up in zip(columns, sizes, edges.parent.tolist(), strict=True):
            above, H = (codes[rows, columns[up]], sizes[up]) if up >= 0 else (np.zeros_like(rows), 0)
            counts.append(leaf_pair_counts(above, codes[rows, j], leaf, b - a, H, K, weight_here))
        return PairCounts(counts, lost)

    return counted


def learn_leaves(
    edges: Edges, boxes: Boxes, counted: Counted, epsilon: float
) -> tuple[tuple[TreeTables, ...], np.ndarray]:
    """One hidden tree a leaf, and one of the table as background, of weight ``epsilon``; their log weights."""
    T = len(boxes.first) - 1
    pieces = []
    for t in range(T):
        first, last = boxes.first[t : t + 2].tolist()
        ends = np.linspace(first, last, -(-(last - first) // FIXED.leaves_at_once) + 1).astype(int).tolist()
        pieces += [(t, a, b) for a, b in pairwise(ends)]
    emissions = _Emissions(edges)

    def work(t: int, a: int, b: int) -> list[TreeTables]:
        return _leaf_trees(edges, counted(t, a, b), [inside[a:b] for inside in boxes.allowed], emissions)

    with one_blas_thread():
        trees = [tree for piece in map_ordered(work, pieces) for tree in piece]
    weight = (1.0 - epsilon) * boxes.share / T
    keep = np.flatnonzero(weight > 0.0)
    trees, weight = [trees[i] for i in keep], weight[keep]
    if epsilon > 0.0:
        trees.append(_table_tree(edges, emissions))
        weight = np.append(weight, epsilon)
    return tuple(trees), np.log(weight / weight.sum())


class _Emissions:
    """Tables of ones that pick codes, one for all leaves that have the same codes of a node."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        self._made: dict[tuple[int, bytes], np.ndarray] = {}

    def pick(self, k: int, codes: np.ndarray) -> np.ndarray:
        """(H, K): state h is code ``codes[h]`` of node k."""
        key = (k, codes.tobytes())
        if key not in self._made:
            table = np.zeros((len(codes), len(self._edges.marginal[k])), np.float32)
            table[np.arange(len(codes)), codes] = 1.0
            self._made.setdefault(key, table)
        return self._made[key]


def _table_tree(edges: Edges, emissions: _Emissions) -> TreeTables:
    """The Chow-Liu tree of all rows."""
    transition = [(pair / pair.sum(axis=1, keepdims=True)).astype(np.float32) for pair in edges.pair]
    sizes = [len(marginal) for marginal in edges.marginal]
    return TreeTables(
        edges.order,
        edges.parent,
        tuple(transition),
        tuple(emissions.pick(k, np.arange(K)) for k, K in enumerate(sizes)),
        tuple(
            np.full(K, missing_share, np.float32) for K, missing_share in zip(sizes, edges.missing_share, strict=True)
        ),
    )


def _leaf_trees(edges: Edges, counts: PairCounts, allowed: list[np.ndarray], emissions: _Emissions) -> list[TreeTables]:
    """The trees of some leaves, from the counts of their rows by node, and the codes of each column in their boxes."""
    # Missing cells are filled before, so that each leaf has as many codes of a column as rows, or none.
    columns, parent = edges.order.tolist(), edges.parent.tolist()
    rows = counts.pairs[0].sum(axis=(1, 2))
    weight = float(rows.sum()) or 1.0
    leaves, nodes = range(len(rows)), range(len(columns))
    states, share, transition, emission, missing = [], [], [], [], []
    prior = in_boxes(edges, [allowed[j] for j in columns])
    for k, j in enumerate(columns):
        count, missing_share = counts.pairs[k].sum(axis=1)[:, :-1], edges.missing_share[k]
        smoothed = leaf_marginals(count, allowed[j], prior[k], edges.marginal[k], edges.is_ordered[k])
        # as many of each code as the leaves have rows with it; a code without a row is rare, but possible
        total = smoothed.any(axis=0) * (count.sum(axis=0) + FIXED.least_share * weight * edges.marginal[k])
        share.append(with_marginal(smoothed, rows / weight, total / total.sum()))
        states.append([np.flatnonzero(inside) for inside in allowed[j]])
        emission.append([emissions.pick(k, chosen) for chosen in states[k]])
        lost = (counts.missing[k] + FIXED.missing_rows * missing_share) / (rows + FIXED.missing_rows)
        missing.append([np.full(len(states[k][i]), lost[i], np.float32) for i in leaves])
        if parent[k] < 0:
            transition.append([share[k][i : i + 1, states[k][i]].astype(np.float32) for i in leaves])
            continue
        up, pairs = states[parent[k]], counts.pairs[k][:, :-1, :-1]
        inside = [(up[i], states[k][i]) for i in leaves]
        transition.append(
            [
                leaf_pair(pairs[i][np.ix_(a, b)], edges.pair[k][np.ix_(a, b)], share[parent[k]][i, a], share[k][i, b])
                for i, (a, b) in enumerate(inside)
            ]
        )
    return [
        TreeTables(
            edges.order,
            edges.parent,
            tuple(transition[k][i] for k in nodes),
            tuple(emission[k][i] for k in nodes),
            tuple(missing[k][i] for k in nodes),
        )
        for i in leaves
    ]


def leaf_pair(count: np.ndarray, pair: np.ndarray, above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """p(code of child | code of parent) in a leaf, float32 (K, H): counts and pseudo-rows, fitted to marginals."""
    return with_marginal(count + FIXED.pair_rows * _rows_to_one(pair), above, below).astype(np.float32)


# ---- Forests on codes, with Chow-Liu trees in their leaves: what the learners with ``leaf="chow_liu"`` share.


class CodedRows(NamedTuple):
    """A table to learn from, and the same table as codes, on which the trees are grown.

    schema : Schema. Of the table.
    codes : int32 array (n, d). Of filled cells; the number of codes where missing.
    rows : Rows. The codes as a table of whole numbers, so that splits lie between codes.
    """

    schema: Schema
    scales: tuple[Scale, ...]
    codes: np.ndarray
    rows: TableRows


def on_own_scales(rows: TableRows, weight: np.ndarray | None = None) -> CodedRows:
    """The rows on each column's own scale; their weights (n,) count in it."""
    scales = tuple(
        learn_scale(c, rows.X[:, j], weight, FIXED.codes, FIXED.fine_ends) for j, c in enumerate(rows.schema.columns)
    )
    codes = code_table(scales, rows.filled)
    columns = tuple(_code_column(c, scale) for c, scale in zip(rows.schema.columns, scales, strict=True))
    schema = Schema(columns, rows.schema.frame)
    filled = np.where(codes == [scale.n_codes for scale in scales], np.nan, codes)
    X = np.where(np.isnan(rows.X), np.nan, filled)
    return CodedRows(rows.schema, scales, codes, TableRows(schema, kernel_columns(schema), X, filled, rows.first))


def _code_column(column: Column, scale: Scale) -> Column:
    """The column of a column's codes."""
    if not column.is_categorical:
        return Column(column.name, "integer", "int64", 1.0, minimum=0.0, maximum=scale.n_codes - 1.0)
    if scale.n_codes == len(column.levels):
        return column
    return replace(column, kind="categorical", dtype="int64", levels=tuple(range(scale.n_codes)))  # levels that share


def chow_liu_part(table: CodedRows, assigned: AssignedRows, epsilon: float) -> ChowLiuForest:
    """The distribution of a forest that was grown on codes: a Chow-Liu tree in each leaf, and one as background."""
    edges = _chow_liu_edges(table)
    counted = counted_rows(edges, table.codes, np.isnan(table.rows.X), assigned.leaf_of, assigned.weight)
    return _counted_trees(table, assigned.trees, edges, counted, epsilon)


def trees_of_values(table: CodedRows, trees: Trees) -> Trees:
    """Trees that were grown on codes, as trees that split the table's own columns."""
    return value_trees(trees, table.scales, kernel_columns(table.schema), table.rows.columns)


def fill_chow_liu(sampled: Sampled, table: CodedRows, trees: Trees, seed: int, epsilon: float) -> ChowLiuForest:
    """`chow_liu_part` of a table in batches, by a pass over it, with the trees, codes and links of a sample."""
    edges, n = _chow_liu_edges(table), sampled.sample.n
    of_values = trees_of_values(table, trees)
    route = Route(table.schema, kernel_columns(table.schema), of_values, seed, sampled.weights, table.rows.first)
    counts = count_pairs(sampled.fold, n, CodePairs(route, table.scales, edges.order, edges.parent))
    size = counts[0].sum(axis=(1, 2))
    unit = n / float(size[: first_leaves(trees)[1]].sum())  # weights have a mean of 1

    def counted(t: int, a: int, b: int) -> PairCounts:
        pairs = [of[a:b] * unit for of in counts]
        return PairCounts(pairs, [of[..., -1].sum(axis=1) for of in pairs])

    return _counted_trees(table, with_weights(trees, size * unit), edges, counted, epsilon)


def _chow_liu_edges(table: CodedRows) -> Edges:
    """The Chow-Liu tree of the rows."""
    n_codes = np.array([scale.n_codes for scale in table.scales])
    is_ordered = np.array([not column.is_categorical for column in table.schema.columns])
    return edges_of(table.codes, n_codes, is_ordered, np.isnan(table.rows.X).mean(axis=0))


def _counted_trees(table: CodedRows, trees: Trees, edges: Edges, counted: Counted, epsilon: float) -> ChowLiuForest:
    """The distribution of trees on codes, from what is counted in their leaves."""
    n_codes = np.array([scale.n_codes for scale in table.scales])
    share = np.empty(int(trees.leaf.max()) + 1)
    share[trees.leaf[trees.leaf >= 0]] = trees.weight[trees.leaf >= 0]
    allowed = _allowed_codes(table.rows.columns, n_codes, *leaf_boxes(trees, table.rows.columns))
    tree, log_weight = learn_leaves(edges, Boxes(allowed, first_leaves(trees), share), counted, epsilon)
    of_values, leaf = trees_of_values(table, trees), np.flatnonzero(share > 0.0)
    if epsilon > 0.0:
        of_values, leaf = add_stump(of_values), np.append(leaf, len(share))
    grown = Grown(of_values, leaf.astype(np.int32), epsilon > 0.0)
    return ChowLiuForest(HiddenTrees(table.schema, table.scales, tree, log_weight, grown))


def _allowed_codes(
    columns: Columns, n_codes: np.ndarray, lo: np.ndarray, hi: np.ndarray, allowed: np.ndarray
) -> list[np.ndarray]:
    """Codes of each column inside each leaf's box, d bool arrays (L, K_j)."""
    by_column = []
    for j, K in enumerate(n_codes.tolist()):
        slot = columns.slot[j]
        if columns.is_categorical[j]:
            by_column.append(allowed[:, columns.levels_of(slot)])
        else:
            code = np.arange(K)
            by_column.append((lo[:, slot, None] < code) & (code <= hi[:, slot, None]))
    return by_column


# ---- The last pass over a table in batches where leaves are Chow-Liu trees: rows of each leaf by two linked codes.


class CodePairs(NamedTuple):
    """Trees with L leaves, and the codes that are counted in them.

    route : Route
    scales : tuple of d Scale
    order, parent : int32 arrays (d,). Links between columns: see `learners.chow_liu_leaves.learn.Edges`.
    """

    route: Route
    scales: tuple[Scale, ...]
    order: np.ndarray
    parent: np.ndarray


class BatchCounts(NamedTuple):
    """So many rows, and what they count for, by node, int64 (L, K_parent + 1, K + 1), of the root (L, 1, K + 1)."""

    n: int
    counts: list[np.ndarray]


def count_pairs(fold: FoldBatches, n: int, pairs: CodePairs) -> list[np.ndarray]:
    """The counts of a table of n rows, by a pass over it; ValueError if the batches have other rows than before."""
    sums = fold(Pass(partial(empty, pairs), partial(add_batch, pairs), merge, "counting rows"), n)
    check_row_count(n, sums.n)
    return list(sums.counts)


def empty(pairs: CodePairs) -> BatchCounts:
    """Counts of no rows."""
    n_leaves = int(first_leaves(pairs.route.trees)[-1])
    size = [pairs.scales[j].n_codes + 1 for j in pairs.order.tolist()]
    above = [size[up] if up >= 0 else 1 for up in pairs.parent.tolist()]
    return BatchCounts(0, [np.zeros((n_leaves, H, K), np.int64) for H, K in zip(above, size, strict=True)])


def add_batch(pairs: CodePairs, sums: BatchCounts, batch: Any) -> BatchCounts:
    """Add the rows of a batch."""
    rows, first = routed(pairs.route, batch), first_leaves(pairs.route.trees)
    codes = code_table(pairs.scales, rows.values.T).T.astype(np.int64)
    leaves = list(map_ordered(rows.leaf_of, [(t,) for t in range(len(first) - 1)]))

    def one(k: int) -> None:
        _, H, K = sums.counts[k].shape
        codes_of_column, up = codes[pairs.order[k]], int(pairs.parent[k])
        two = codes[pairs.order[up]] * K + codes_of_column if up >= 0 else codes_of_column
        for t, leaf in enumerate(leaves):
            np.add.at(sums.counts[k].reshape(-1), (leaf + first[t]) * (H * K) + two, rows.times)

    list(map_ordered(one, [(k,) for k in range(len(sums.counts))]))
    return BatchCounts(sums.n + len(rows.times), sums.counts)


def merge(sums: BatchCounts, other: BatchCounts) -> BatchCounts:
    """Add the counts of other rows to the first."""
    for counts, more in zip(sums.counts, other.counts, strict=True):
        counts += more
    return BatchCounts(sums.n + other.n, sums.counts)
