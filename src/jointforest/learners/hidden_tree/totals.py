"""One step of expectation maximisation over a table in batches: expected counts of all rows, then new tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...models.hidden_tree.hidden_trees import HiddenTrees
from ...runtime.threads import Run
from .constants import FIXED
from .em import (
    Maximisation,
    Nodes,
    Smoothing,
    Tables,
    add_counts,
    expected_counts,
    from_tree,
    log_probabilities,
    split_tables,
    to_tree,
)
from .missing_cells import columns_alone, may_be_of, with_nodes_of
from .rake import raked
from .structure import CodeColumn, code_column


class Totals(NamedTuple):
    """Expected counts over rows.

    mass : float64 array (T,). Rows of each tree.
    counts : list of T Tables, float64
    """

    mass: np.ndarray
    counts: list[Tables]


def no_rows(hidden: HiddenTrees) -> Totals:
    """Totals over no rows."""
    flat = [from_tree(columns_alone(tree))[1] for tree in hidden.trees]
    return Totals(np.zeros(len(flat)), [Tables(*(np.zeros(len(table)) for table in tables)) for tables in flat])


def add_rows(
    totals: Totals,
    hidden: HiddenTrees,
    member: np.ndarray,
    codes: np.ndarray,
    run: Run,
    weight: np.ndarray | None = None,
) -> None:
    """Add rows of codes (n, d), with weights (n,) if there are any, to the totals."""
    # The trees of one member of a mixture, whose number ``member`` (T,) tells, share each row out; each member has
    # every row.
    flat = [from_tree(columns_alone(tree)) for tree in hidden.trees]
    least = FIXED.negligible_share if weight is None else 0.0
    for start in range(0, len(codes), FIXED.shared_at_once):
        rows = slice(start, start + FIXED.shared_at_once)
        by_column = np.ascontiguousarray(codes[rows].T, dtype=np.int32)
        share = _shares(hidden, flat, member, codes[rows], by_column)
        if weight is not None:
            share *= weight[rows, None]
        share[share <= least] = 0.0
        totals.mass[:] += share.sum(axis=0)
        for t, (nodes, tables) in enumerate(flat):
            own = np.flatnonzero(share[:, t])
            if len(own):
                news = expected_counts(nodes, tables, by_column, own, share[:, t].astype(np.float32), run)
                add_counts(totals.counts[t], news)


def add_totals(totals: Totals, other: Totals) -> None:
    """Add the totals over other rows."""
    totals.mass[:] += other.mass
    for mine, its in zip(totals.counts, other.counts, strict=True):
        add_counts(mine, its)


def scaled(totals: Totals, factor: float) -> Totals:
    """The totals, each times a factor."""
    return Totals(totals.mass * factor, [Tables(*(table * factor for table in tables)) for tables in totals.counts])


def improved(
    hidden: HiddenTrees, member: np.ndarray, totals: Totals, is_ordered: np.ndarray, smoothing: Smoothing
) -> HiddenTrees:
    """The hidden trees whose tables are those of all rows in the totals."""
    trees = []
    for t, (tree, counts) in enumerate(zip(hidden.trees, totals.counts, strict=True)):
        if totals.mass[t] <= 0.0:
            trees.append(tree)
            continue
        alone = columns_alone(tree)
        nodes, _ = from_tree(alone)
        columns = _columns(alone.emission, nodes, counts, is_ordered)
        counts = Tables(*(table.astype(np.float32) for table in counts))
        step = Maximisation(nodes, columns, smoothing)
        step.fit_normals(counts, smoothing)
        learned = raked(to_tree(nodes, step.tables(counts, smoothing), columns), nodes, counts)
        trees.append(with_nodes_of(learned, tree))
    n_members = int(member.max()) + 1
    of_member = np.bincount(member, totals.mass)
    with np.errstate(divide="ignore"):
        log_weight = np.log(totals.mass / of_member[member] / n_members)
    return HiddenTrees(hidden.schema, hidden.scales, tuple(trees), log_weight)


def _columns(
    emission: tuple[np.ndarray, ...], nodes: Nodes, counts: Tables, is_ordered: np.ndarray
) -> tuple[CodeColumn, ...]:
    """The columns as the counts have them; codes to which the tree gives no probability stay impossible."""
    columns: list[CodeColumn] = [None] * len(emission)  # type: ignore[list-item] # all are set below
    for k, (j, cells) in enumerate(zip(nodes.column.tolist(), split_tables(nodes, counts)[1], strict=True)):
        can_be = np.asarray(emission[k].any(axis=0))
        count = np.where(np.append(can_be, True), cells.sum(axis=1), 0.0)
        columns[j] = code_column(count, bool(is_ordered[j]), can_be)
    return tuple(columns)


def _shares(
    hidden: HiddenTrees, flat: list[tuple[Nodes, Tables]], member: np.ndarray, codes: np.ndarray, by_column: np.ndarray
) -> np.ndarray:
    """How much of each row is each tree's, float64 (n, T): within a member p(tree | row)."""
    can_be = may_be_of(hidden, codes)
    share = can_be.astype(np.float64)
    for m in range(int(member.max()) + 1):
        own = np.flatnonzero(member == m)
        many = np.flatnonzero(can_be[:, own].sum(axis=1) > 1)
        if len(own) < 2 or not len(many):
            continue
        log_share = np.full((len(many), len(own)), -np.inf)
        for k, t in enumerate(own.tolist()):
            possible = np.flatnonzero(can_be[many, t])
            rows = np.ascontiguousarray(by_column[:, many[possible]])
            log_share[possible, k] = hidden.log_weight[t] + log_probabilities(*flat[t], rows)
        top = log_share.max(axis=1, keepdims=True)
        weight = np.exp(log_share - np.where(np.isfinite(top), top, 0.0))
        share[np.ix_(many, own)] = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    return share
