"""The last pass of hidden trees over a table in batches: a step of expectation maximisation over all rows."""

from __future__ import annotations

import numpy as np

from ...ground.progress import bar
from ...ground.threads import one_blas_thread, workers
from ...hidden.hidden_trees import HiddenTrees
from ...hidden.learn.tables import Smoothing
from ...hidden.learn.totals import add_rows, improved, no_rows
from ...io.batches import Batches
from ...table.scale.codes import codes_of
from .rows import cells_of, check_number


def improve(
    batches: Batches, n: int, first: HiddenTrees, n_members: int, smoothing: Smoothing, n_jobs: int | None
) -> HiddenTrees:
    """The trees with the tables of all rows of a table of n; they are those of ``n_members``, one after the other.

    Raises
    ------
    ValueError
        If the batches have other rows than they had before.
    """
    # every member's trees weigh one in all
    before = np.concatenate([[0.0], np.cumsum(np.exp(first.log_weight))[:-1]])
    member = np.minimum(np.floor(before * n_members + 1e-9), n_members - 1).astype(np.int64)
    totals, found = no_rows(first), 0
    with one_blas_thread(), workers(n_jobs) as run, bar(n, "rows counted") as step:
        for batch in batches():
            X = cells_of(first.schema, batch).X
            codes = np.column_stack([codes_of(scale, X[:, j])[0] for j, scale in enumerate(first.scales)])
            add_rows(totals, first, member, codes, run)
            found += len(X)
            step(len(X))
    check_number(n, found)
    is_ordered = np.array([not column.is_categorical for column in first.schema.columns])
    return improved(first, member, totals, is_ordered, smoothing)
