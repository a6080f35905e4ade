"""Forests on codes, with Chow-Liu trees in their leaves: what the learners with ``leaf="chow_liu"`` share."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...data.discretization.discretizer import Scale, code_table
from ...data.discretization.learn import learn_scale
from ...data.schema import Column, Columns, Schema, kernel_columns
from ...models.box_forest.structure import Trees, add_stump, leaf_boxes, with_weights
from ...models.hidden_tree.hidden_tree import ChowLiuForest
from ...models.hidden_tree.hidden_trees import Grown, HiddenTrees, value_trees
from ...runtime.threads import map_ordered
from ..base import TableRows
from ..batches.fill import Route, routed
from ..batches.sample import FoldBatches, Pass, Sampled, check_row_count
from ..leaf_fitting.densities import AssignedRows, first_leaves
from .constants import FIXED
from .learn import Boxes, Counted, Edges, PairCounts, counted_rows, edges_of, learn_leaves


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

    Attributes
    ----------
    route : Route
    scales : tuple of d Scale
    order, parent : int32 arrays (d,)
        Links between columns: see `learners.chow_liu_leaves.learn.Edges`.
    """

    route: Route
    scales: tuple[Scale, ...]
    order: np.ndarray
    parent: np.ndarray


class PairSums(NamedTuple):
    """So many rows, and what they count for, by node, int64 (L, K_parent + 1, K + 1), of the root (L, 1, K + 1)."""

    n: int
    counts: list[np.ndarray]


def count_pairs(fold: FoldBatches, n: int, pairs: CodePairs) -> list[np.ndarray]:
    """The counts of a table of n rows, by a pass over it; ValueError if the batches have other rows than before."""
    sums = fold(Pass(partial(empty, pairs), partial(add_batch, pairs), merge, "counting rows"), n)
    check_row_count(n, sums.n)
    return list(sums.counts)


def empty(pairs: CodePairs) -> PairSums:
    """Counts of no rows."""
    n_leaves = int(first_leaves(pairs.route.trees)[-1])
    size = [pairs.scales[j].n_codes + 1 for j in pairs.order.tolist()]
    above = [size[up] if up >= 0 else 1 for up in pairs.parent.tolist()]
    return PairSums(0, [np.zeros((n_leaves, H, K), np.int64) for H, K in zip(above, size, strict=True)])


def add_batch(pairs: CodePairs, sums: PairSums, batch: Any) -> PairSums:
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
    return PairSums(sums.n + len(rows.times), sums.counts)


def merge(sums: PairSums, other: PairSums) -> PairSums:
    """Add the counts of other rows to the first."""
    for counts, more in zip(sums.counts, other.counts, strict=True):
        counts += more
    return PairSums(sums.n + other.n, sums.counts)
