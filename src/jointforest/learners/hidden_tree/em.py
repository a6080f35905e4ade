"""Stepwise expectation maximisation: running counts, moved by each batch towards what its rows say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...models.hidden_tree.hidden_trees import HiddenTrees
from ...models.hidden_tree.messages import down, log_probability, up
from ...models.hidden_tree.tables import TreeTables
from ...runtime.threads import Run, chunks, of_finite, one_by_one
from .constants import FIXED
from .smoothing import Counts, Smoothing, normals_of, tree_of
from .structure import CodeColumn, code_column


def own_messages(tree: TreeTables, codes: np.ndarray) -> list[np.ndarray]:
    """p(cell | state) of each node, m arrays (n, H_k): of its code and that it is known, or of its being missing (K).

    That a cell is missing counts in learning alone: so states know which cells are missing together.
    """
    return [table[codes[:, j]] for table, j in zip(tree.by_cell, tree.column.tolist(), strict=True)]


@of_finite
def sent_messages(tree: TreeTables, codes: np.ndarray) -> dict[int, np.ndarray]:
    """p(cell | state of the parent), (n, H_parent), of nodes without children and with fewer cells than rows.

    A table over the cells is a smaller product than that of the rows, and many rows have the same cell.
    """
    ends = [k for k, own in enumerate(tree.by_cell) if k and not tree.children[k] and len(own) <= len(codes)]
    return {k: tree.sent_by_cell(k)[codes[:, tree.column[k]]] for k in ends}


@of_finite
def expected_counts(tree: TreeTables, codes: np.ndarray, weight: np.ndarray | None) -> tuple[Counts, float]:
    """Expected counts of states and codes over rows of codes (n, d), and the sum of their log-probabilities."""
    n = len(codes)
    sent = sent_messages(tree, codes)
    upward = up(tree, own_messages(tree, codes), n, sent)
    downward = down(tree, upward, None, sent)
    ones = np.ones(n, tree.dtype) if weight is None else weight.astype(tree.dtype)
    transition, emission, blank = [], [], []
    for k, j in enumerate(tree.column.tolist()):
        K = tree.emission[k].shape[1]
        above = downward.above[k] if k else np.ones((n, 1), tree.dtype)
        if k in sent:  # sums over rows of what depends on their cells are sums over cells
            of_cell = _sums(codes[:, j], K + 1, ones / _row_sums(above * sent[k]), above)
            transition.append(tree.transition[k] * (of_cell.T @ tree.by_cell[k]))
            cells = tree.by_cell[k] * (of_cell @ tree.transition[k])
        else:
            both = downward.outside[k] * upward.inside[k]
            share = ones / _row_sums(both)
            transition.append(tree.transition[k] * ((above * share[:, None]).T @ upward.inside[k]))
            cells = _sums(codes[:, j], K + 1, share, both)
        emission.append(np.ascontiguousarray(cells[:K].T))
        blank.append(cells[K])
    found = upward.log_probability if weight is None else weight * upward.log_probability
    return Counts(transition, emission, blank), float(found.sum())


def _row_sums(x: np.ndarray) -> np.ndarray:
    """Sums of the rows of x (n, H), (n,): NumPy's own take four times as long."""
    return x @ np.ones(x.shape[1], x.dtype)


def _sums(code: np.ndarray, K: int, weight: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Sums of the rows of x (n, H) with each code, by their weights (n,): (K, H)."""
    n = len(code)
    if n * K <= FIXED.dense_entries:
        return np.where(np.arange(K)[:, None] == code, weight, np.zeros((), x.dtype)) @ x
    from scipy.sparse import csc_array

    return csc_array((weight, code, np.arange(n + 1)), shape=(K, n)) @ x


def improve(
    tree: TreeTables,
    counts: Counts,
    codes: np.ndarray,
    weight: np.ndarray | None,
    columns: tuple[CodeColumn, ...],
    smoothing: Smoothing,
    shares: np.ndarray,
    rng: np.random.Generator,
    run: Run,
) -> tuple[TreeTables, Counts]:
    """One pass over the rows in random order; ``shares`` (batches,) are those of each batch in the running counts.

    The counts that are given are changed in place.
    """
    n = len(codes)
    places = np.array_split(rng.permutation(n), len(shares))
    total = float(n if weight is None else weight.sum())
    side_by_side = run if int(tree.n_states.max()) >= FIXED.table_threads_from_states else one_by_one
    normals = None
    for i, (rows, share) in enumerate(zip(places, shares.tolist(), strict=True)):
        w = None if weight is None else weight[rows]
        found = batch_counts(tree, codes[rows], w, run)
        gain = share * total / max(float(len(rows) if w is None else w.sum()), 1e-12)
        _move(counts, found, share, gain)
        if i % FIXED.batches_of_normals == 0:
            normals = normals_of(counts, tree.column, tree.parent, columns, smoothing)
        tree = tree_of(counts, tree.column, tree.parent, columns, smoothing, normals, side_by_side)
    return tree, counts


def mean_log_probability(
    tree: TreeTables, codes: np.ndarray, weight: np.ndarray | None, run: Run = one_by_one
) -> float:
    """Mean log-probability of rows of codes."""

    def one(a: int, b: int) -> np.ndarray:
        return log_probability(tree, own_messages(tree, codes[a:b]), b - a, sent_messages(tree, codes[a:b]))

    return float(np.average(np.concatenate(run(one, chunks(len(codes), _rows_at_once(tree)))), weights=weight))


def _move(counts: Counts, found: Counts, share: float, gain: float) -> None:
    """Running counts towards those of a batch, in place."""
    for olds, news in zip(counts, found, strict=True):
        for old, new in zip(olds, news, strict=True):
            old *= np.float32(1 - share)
            new *= np.float32(gain)
            old += new


def batch_counts(tree: TreeTables, codes: np.ndarray, weight: np.ndarray | None, run: Run) -> Counts:
    """Expected counts over rows of codes, at least one, piece by piece."""

    def one(a: int, b: int) -> Counts:
        return expected_counts(tree, codes[a:b], None if weight is None else weight[a:b])[0]

    run = run if int(tree.n_states.max()) >= FIXED.threads_from_states else one_by_one
    at_once = _rows_at_once(tree) * (1 if len(codes) <= FIXED.long_batch else 4)
    total: Counts | None = None
    for first in range(0, len(codes), FIXED.waiting_pieces * at_once):
        pieces = chunks(min(len(codes) - first, FIXED.waiting_pieces * at_once), at_once)
        for found in run(one, [(first + a, first + b) for a, b in pieces]):
            if total is None:
                total = found
            else:
                for olds, news in zip(total, found, strict=True):
                    for old, new in zip(olds, news, strict=True):
                        old += new
    assert total is not None
    return total


def _rows_at_once(tree: TreeTables) -> int:
    rows = int(np.clip(FIXED.piece_entries // int(tree.n_states.max()), FIXED.piece_fewest_rows, FIXED.piece_most_rows))
    return int(np.clip(FIXED.piece_floats // max(int(tree.n_states.sum()), 1), 32, rows))


# ---- One step of expectation maximisation over a table in batches: expected counts of all rows, then new tables.


class Totals(NamedTuple):
    """Expected counts over rows.

    Attributes
    ----------
    mass : float64 array (T,)
        Rows of each tree.
    counts : list of T Counts, float64
    """

    mass: np.ndarray
    counts: list[Counts]


def no_rows(hidden: HiddenTrees) -> Totals:
    """Totals over no rows."""

    def zeros(tables: list[np.ndarray]) -> list[np.ndarray]:
        return [np.zeros(table.shape) for table in tables]

    def of(tree: TreeTables) -> Counts:
        blank = [np.zeros(int(n)) for n in tree.n_states]
        return Counts(zeros(list(tree.transition)), zeros(list(tree.emission)), blank)

    return Totals(np.zeros(len(hidden.trees)), [of(tree) for tree in hidden.trees])


def add_rows(
    totals: Totals,
    hidden: HiddenTrees,
    member: np.ndarray,
    codes: np.ndarray,
    run: Run,
    weight: np.ndarray | None = None,
) -> None:
    """Add rows of codes (n, d), with weights (n,) if there are any, to the totals.

    The trees of one member of a mixture, whose number ``member`` (T,) tells, share each row out; each member has every
    row.
    """
    for start in range(0, len(codes), FIXED.shared_at_once):
        some = codes[start : start + FIXED.shared_at_once]
        share = _shares(hidden, member, some)
        if weight is not None:
            share *= weight[start : start + FIXED.shared_at_once, None]
        totals.mass[:] += share.sum(axis=0)
        for t, tree in enumerate(hidden.trees):
            rows = np.flatnonzero(share[:, t] > (FIXED.negligible_share if weight is None else 0.0))
            if len(rows):
                _add(totals.counts[t], batch_counts(tree, some[rows], share[rows, t], run))


def add_totals(totals: Totals, other: Totals) -> None:
    """Add the totals over other rows."""
    totals.mass[:] += other.mass
    for mine, its in zip(totals.counts, other.counts, strict=True):
        _add(mine, its)


def scaled(totals: Totals, factor: float) -> Totals:
    """The totals, each times a factor."""
    counts = [Counts(*([table * factor for table in tables] for tables in of)) for of in totals.counts]
    return Totals(totals.mass * factor, counts)


def improved(
    hidden: HiddenTrees, member: np.ndarray, totals: Totals, is_ordered: np.ndarray, smoothing: Smoothing
) -> HiddenTrees:
    """The hidden trees whose tables are those of all rows in the totals."""
    trees = []
    for t, (tree, counts) in enumerate(zip(hidden.trees, totals.counts, strict=True)):
        if totals.mass[t] <= 0.0:
            trees.append(tree)
            continue
        columns: dict[int, CodeColumn] = {}
        for k, j in enumerate(tree.column.tolist()):
            can_be = np.asarray(tree.emission[k].any(axis=0))
            columns[j] = code_column(np.where(can_be, counts.emission[k].sum(axis=0), 0.0), is_ordered[j], can_be)
        found = Counts(*([table.astype(np.float32) for table in tables] for tables in counts))
        trees.append(tree_of(found, tree.column, tree.parent, tuple(columns[j] for j in sorted(columns)), smoothing))
    n_members = int(member.max()) + 1
    of_member = np.bincount(member, totals.mass)
    with np.errstate(divide="ignore"):
        log_weight = np.log(totals.mass / of_member[member] / n_members)
    return HiddenTrees(hidden.schema, hidden.scales, tuple(trees), log_weight)


def _can_be(hidden: HiddenTrees, codes: np.ndarray) -> np.ndarray:
    """Whether rows of codes (n, d) may come from each tree, bool (n, T)."""
    can_be = np.ones((len(codes), len(hidden.trees)), bool)
    for j, support in enumerate(hidden.support or ()):
        can_be &= np.vstack([support, np.ones((1, support.shape[1]), bool)])[codes[:, j]]
    return can_be


def _add(totals: Counts, more: Counts) -> None:
    for olds, news in zip(totals, more, strict=True):
        for old, new in zip(olds, news, strict=True):
            old += new


def _shares(hidden: HiddenTrees, member: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """How much of each row is each tree's, float64 (n, T): within a member p(tree | row)."""
    can_be = _can_be(hidden, codes)
    share = can_be.astype(np.float64)
    for m in range(int(member.max()) + 1):
        own = np.flatnonzero(member == m)
        many = np.flatnonzero(can_be[:, own].sum(axis=1) > 1)
        if len(own) < 2 or not len(many):
            continue
        log_share = np.full((len(many), len(own)), -np.inf)
        for k, t in enumerate(own.tolist()):
            some = np.flatnonzero(can_be[many, t])
            rows, tree = codes[many[some]], hidden.trees[t]
            log_share[some, k] = hidden.log_weight[t] + log_probability(tree, own_messages(tree, rows), len(rows))
        top = log_share.max(axis=1, keepdims=True)
        found = np.exp(log_share - np.where(np.isfinite(top), top, 0.0))
        share[np.ix_(many, own)] = found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300)
    return share
