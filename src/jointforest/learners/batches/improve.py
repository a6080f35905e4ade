"""The last pass of hidden trees over a table in batches: a step of expectation maximisation over all rows."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...data.discretization.discretizer import code_table
from ...models.hidden_tree.hidden_trees import HiddenTrees
from ...runtime.threads import one_blas_thread, workers
from ..hidden_tree.em import Smoothing
from ..hidden_tree.first_joint import fill_in
from ..hidden_tree.totals import Totals, add_rows, add_totals, improved, no_rows, scaled
from .sample import FoldBatches, Pass, Weights, batch_cells, check_row_count


class Expected(NamedTuple):
    """Expected counts over so many rows."""

    totals: Totals
    n: int


def empty(hidden: HiddenTrees) -> Expected:
    """Expected counts over no rows."""
    return Expected(no_rows(hidden), 0)


def add_batch(
    hidden: HiddenTrees, member: np.ndarray, weights: Weights | None, expected: Expected, batch: Any
) -> Expected:
    """Add the rows of a batch; trees of one of the members, int64 (T,), share each row out."""
    rows = batch_cells(hidden.schema, batch, weights.name if weights else None)
    reader, X = rows.reader, rows.X
    if rows.ranges is not None:  # a draw given the rest of its row, which is right on average
        X = np.where(rows.ranges.number >= 0, fill_in(hidden, X, rows.keys(0), rows.ranges), X)
    codes = code_table(hidden.scales, X)
    with one_blas_thread(in_kernels=True), workers() as run:
        add_rows(expected.totals, hidden, member, codes, run, weights.shares(reader) if weights else None)
    return Expected(expected.totals, expected.n + len(X))


def merge(expected: Expected, other: Expected) -> Expected:
    """Add the counts over other rows."""
    add_totals(expected.totals, other.totals)
    return Expected(expected.totals, expected.n + other.n)


def improve(
    fold: FoldBatches, n: int, first: HiddenTrees, n_members: int, smoothing: Smoothing, weights: Weights | None = None
) -> HiddenTrees:
    """The trees of ``n_members``, one after the other, with the tables of all rows of a table of n."""
    # every member's trees weigh one in all
    before = np.concatenate([[0.0], np.cumsum(np.exp(first.log_weight))[:-1]])
    member = np.minimum(np.floor(before * n_members + 1e-9), n_members - 1).astype(np.int64)
    expected = fold(Pass(partial(empty, first), partial(add_batch, first, member, weights), merge, "counting rows"), n)
    check_row_count(n, expected.n)
    is_ordered = np.array([not column.is_categorical for column in first.schema.columns])
    totals = expected.totals if weights is None else scaled(expected.totals, n * n_members / expected.totals.mass.sum())
    return improved(first, member, totals, is_ordered, smoothing)
