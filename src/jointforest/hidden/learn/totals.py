"""One step of expectation maximisation over a table in batches: expected counts of all rows, then new tables.

Sums of batches are kept in float64, those within a batch are float32: where a table is cut in another way, the last
digits of float32 differ.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.threads import Run
from ..hidden_trees import HiddenTrees
from ..messages import log_probability
from ..tree import HiddenTree
from .columns import CodeColumn, code_column
from .em import batch_counts, own_messages
from .tables import Counts, Smoothing, tree_of

_NOTHING = 1e-6  # share of a row below which a tree does without it
_AT_ONCE = 8_192  # rows that trees share out at once


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

    def of(tree: HiddenTree) -> Counts:
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
    for start in range(0, len(codes), _AT_ONCE):
        some = codes[start : start + _AT_ONCE]
        share = _shares(hidden, member, some)
        if weight is not None:
            share *= weight[start : start + _AT_ONCE, None]
        totals.mass[:] += share.sum(axis=0)
        for t, tree in enumerate(hidden.trees):
            rows = np.flatnonzero(share[:, t] > (_NOTHING if weight is None else 0.0))
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
