"""How wide the leaves of a generative forest are at least, as out-of-bag rows have it."""

from __future__ import annotations

import numpy as np

from ...ground.threads import map_ordered
from ...leaves.fit.fit import Settings, background, fit_tree
from ...leaves.fit.sums import LeafSums, leaf_sums
from ...leaves.join import join
from ...trees.boxes import tree_boxes
from ..arrival import Arrival, first_leaves, rows_in_leaves
from ..densities import TARGET
from .spread_kernels import log_density_by_slot
from .targets import Training

SPREADS = (0.01, 0.03, 0.1, 0.2, 0.4, 0.8)
"""Candidates for the smallest spread in a leaf, in units of the column's."""
SPREAD_TREES = 8
"""Trees whose out-of-bag rows judge the spreads."""
TARGET_SPREADS = (0.01, 0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.3, 0.45)
"""Candidates for the smallest spread of a number as target."""
TARGET_ROWS = 2000
"""Training rows that judge it."""


def choose_spreads(training: Training, arrival: Arrival, settings: Settings, n_jobs: int | None) -> np.ndarray:
    """The smallest spread (p,) of each numeric slot that makes out-of-bag cells most probable in their leaves.

    Given its leaf a row's cells are independent, so the columns can be judged one by one. A cell's probability is
    averaged with its marginal: a row that lands in a leaf far from it is for the other trees to explain, and says
    little of how wide leaves should be. 0.1 where no row is out of bag.
    """
    columns, table = training.columns, training.table
    n_trees = min(SPREAD_TREES, len(arrival.trees.root))
    first = first_leaves(arrival.trees)
    numeric = np.flatnonzero(columns.is_categorical == 0).astype(np.int64)
    marginal = join(columns, [background(columns, table)])

    def judge(t: int) -> list[np.ndarray]:
        box = tree_boxes(arrival.trees, columns, t)
        drawn = arrival.weight[t]
        leaf = (arrival.leaf_of[t] - first[t]).astype(np.int32)
        sums = _sums(training, arrival, first, t, numeric.tolist())
        out_of_bag = np.flatnonzero(drawn == 0)

        def score(spread: float) -> np.ndarray:
            fitted = fit_tree(columns, table, sums, *box, settings._replace(min_spread=spread), numeric.tolist())
            leaves = join(columns, [fitted])
            return log_density_by_slot(columns, leaves, marginal, table.values, table.codes, leaf, out_of_bag, numeric)

        return [score(spread) for spread in SPREADS]

    scores = np.array(list(map_ordered(judge, [(t,) for t in range(n_trees)], n_jobs))).sum(axis=0)
    best = np.array(SPREADS)[scores.argmax(axis=0)]
    return np.where((scores == 0).all(axis=0), 0.1, best)


def choose_target_spread(training: Training, arrival: Arrival, n_jobs: int | None) -> float:
    """The smallest spread of the target in a leaf, in units of its own, that makes out-of-bag targets most probable.

    Unlike features, which are judged leaf by leaf, the target is judged under the average of the trees' leaves: their
    means differ, which is most of the predictive spread. 0.1 where no row is out of bag.
    """
    columns, table = training.columns, training.table
    slot, last = columns.slot[-1], len(columns.slot) - 1
    first = first_leaves(arrival.trees)
    rows = np.flatnonzero((arrival.weight == 0).any(axis=0))
    if not len(rows):
        return 0.1
    rows = rows[:: -(-len(rows) // TARGET_ROWS)]  # from all over the table, which may be sorted

    def one(t: int) -> np.ndarray:
        box = tree_boxes(arrival.trees, columns, t)
        sums = _sums(training, arrival, first, t, [last])
        fitted = fit_tree(columns, table, sums, *box, TARGET._replace(min_spread=SPREADS[0]), [last])
        leaf = arrival.leaf_of[t, rows] - first[t]
        return np.stack([fitted.a[leaf, slot], fitted.b[leaf, slot]])

    mean, spread = np.stack(list(map_ordered(one, [(t,) for t in range(len(arrival.trees.root))], n_jobs)), axis=1)
    y, unit = training.X[rows, -1], table.spread[slot]
    out_of_bag = arrival.weight[:, rows] == 0
    scores = []
    for smallest in TARGET_SPREADS:
        b = np.maximum(spread / unit, smallest)
        log_density = np.where(out_of_bag, -0.5 * ((y - mean) / unit / b) ** 2 - np.log(b), -np.inf)
        scores.append((np.logaddexp.reduce(log_density, axis=0) - np.log(out_of_bag.sum(axis=0))).mean())
    return TARGET_SPREADS[int(np.argmax(scores))]


def _sums(training: Training, arrival: Arrival, first: np.ndarray, t: int, only: list[int]) -> LeafSums:
    """Sums of the rows in the leaves of tree t, of some columns."""
    table, rows = training.table, rows_in_leaves(arrival, first, t)
    return leaf_sums(training.columns, (table.values, table.codes), table.spread, *rows, arrival.weight[t], only)
