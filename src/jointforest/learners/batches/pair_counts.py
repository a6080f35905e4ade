"""The last pass over a table in batches where leaves are Chow-Liu trees: rows of each leaf by two linked codes."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...data.discretization.discretizer import Scale, code_table
from ...runtime.threads import map_ordered
from ..leaf_fitting.densities import first_leaves
from .fill import Route, routed
from .passes import FoldBatches, Pass
from .sample import check_row_count


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
    """The counts of a table of n rows, by a pass over it.

    Raises ValueError if the batches have other rows than they had before.
    """
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
