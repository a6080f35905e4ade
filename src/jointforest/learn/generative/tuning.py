"""What a generative forest chooses out of bag: how wide its leaves are at least, and how it combines its trees."""

from __future__ import annotations

import math

import numpy as np

from ...forest.column.tree_answers import tree_answers
from ...forest.forest import Forest
from ...ground.compile import entry
from ...ground.threads import map_ordered
from ...leaves.fit.fit import Settings, background, fit_tree
from ...leaves.fit.statistics_kernels import rows_by_leaf
from ...leaves.join import join
from ...leaves.one_slot.slot_kernels import value_log_density
from ...table.evidence import build
from ...trees.boxes import leaf_boxes
from ..densities import TARGET, first_leaves, learn_densities
from .supervised import Arrival, GrowSettings, grow_forest
from .targets import Training

SPREADS = (0.01, 0.03, 0.1, 0.2, 0.4, 0.8)
"""Candidates for the smallest spread in a leaf, in units of the column's."""
BETAS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""Candidates for the dial between the average of trees (0) and the mixture (1)."""
LEAF_SIZES = (1, 4, 12)
"""Candidates for the fewest rows in a leaf."""
SMOOTHINGS = ((0.3, "marginal"), (1.0, "uniform"))
"""Candidates for the pseudo-rows of levels: few, shared out like the column, or one for each level."""
PILOT_TREES = 20
"""Trees that judge leaf sizes and pseudo-rows."""
SPREAD_TREES = 8
"""Trees whose out-of-bag rows judge the spreads."""
TARGET_SPREADS = (0.01, 0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.3, 0.45)
"""Candidates for the smallest spread of a number as target."""
TARGET_ROWS = 2000
"""Training rows that judge it."""
BETA_ROWS = 1000
"""Training rows that judge the dial."""
BETA_MISSING = 0.3
"""Share of their cells that is hidden."""


def choose_leaf_size(
    training: Training, weight: np.ndarray, grow: GrowSettings, settings: Settings, seed: int
) -> GrowSettings:
    """The settings with the ``min_samples_leaf`` whose out-of-bag loss (see `choose_beta`) is smallest.

    Judged with a few trees of each size; the smallest size if no row is out of bag.
    """
    if not grow.bootstrap:
        return grow
    losses = []
    for size in LEAF_SIZES:
        few = grow._replace(n_estimators=min(PILOT_TREES, grow.n_estimators), min_samples_leaf=size)
        arrival = grow_forest(training, weight, few, seed)
        model = learn_densities(
            training.schema, training.columns, training.table, arrival.trees, arrival.leaf_of, arrival.drawn, settings,
            1e-3, grow.n_jobs, TARGET,
        )  # fmt: skip
        losses.append(choose_beta(model, training, arrival, seed, grow.n_jobs)[1])
    best = 0 if np.isnan(losses).all() else int(np.nanargmin(losses))
    return grow._replace(min_samples_leaf=LEAF_SIZES[best])


def choose_smoothing(
    training: Training, arrival: Arrival, settings: Settings, seed: int, n_jobs: int | None
) -> Settings:
    """The settings with the pseudo-rows of levels (and atoms) whose out-of-bag loss (see `choose_beta`) is smallest.

    Judged with a few trees; the first candidate where no row is out of bag, or no feature has levels or atoms.
    """
    few = _first_trees(arrival, PILOT_TREES)
    features = training.schema.columns[:-1]
    candidates = [settings._replace(smoothing=rows, prior=prior) for rows, prior in SMOOTHINGS]
    if not any(column.levels or column.atoms for column in features) or (few.drawn > 0).all():
        return candidates[0]
    losses = []
    for candidate in candidates:
        model = learn_densities(
            training.schema, training.columns, training.table, few.trees, few.leaf_of, few.drawn, candidate, 1e-3,
            n_jobs, TARGET,
        )  # fmt: skip
        losses.append(choose_beta(model, training, few, seed, n_jobs)[1])
    return candidates[int(np.argmin(losses))]


def _first_trees(arrival: Arrival, n_trees: int) -> Arrival:
    """The first trees of the forest alone."""
    trees = arrival.trees
    if n_trees >= len(trees.root):
        return arrival
    end = trees.root[n_trees]
    cut = {field: getattr(trees, field)[:end] for field in trees._fields if field not in ("root", "left_levels")}
    return Arrival(trees._replace(root=trees.root[:n_trees], **cut), arrival.leaf_of[:n_trees], arrival.drawn[:n_trees])


def choose_spreads(training: Training, arrival: Arrival, settings: Settings, n_jobs: int | None) -> np.ndarray:
    """The smallest spread (p,) of each numeric slot that makes out-of-bag cells most probable in their leaves.

    Given its leaf a row's cells are independent, so the columns can be judged one by one. A cell's probability is
    averaged with its marginal: a row that lands in a leaf far from it is for the other trees to explain, and says
    little of how wide leaves should be. 0.1 where no row is out of bag.
    """
    columns, table = training.columns, training.table
    n_trees = min(SPREAD_TREES, len(arrival.trees.root))
    first = first_leaves(arrival.trees)
    lo, hi, allowed = leaf_boxes(arrival.trees, columns)
    numeric = np.flatnonzero(columns.is_categorical == 0).astype(np.int64)
    marginal = join(columns, [background(columns, table)])

    def judge(t: int, spread: float) -> np.ndarray:
        of_tree = slice(first[t], first[t + 1])
        drawn = arrival.drawn[t]
        leaf = (arrival.leaf_of[t] - first[t]).astype(np.int32)
        rows, start = rows_by_leaf(np.where(drawn > 0, leaf, -1).astype(np.int32), of_tree.stop - of_tree.start)
        wide = settings._replace(min_spread=spread)
        fitted = fit_tree(
            columns, table, rows, start, drawn, lo[of_tree], hi[of_tree], allowed[of_tree], wide, numeric.tolist()
        )
        leaves = join(columns, [fitted])
        out_of_bag = np.flatnonzero(drawn == 0)
        return _log_density_by_slot(columns, leaves, marginal, table.values, table.codes, leaf, out_of_bag, numeric)

    items = [(t, spread) for t in range(n_trees) for spread in SPREADS]
    scores = np.array(list(map_ordered(judge, items, n_jobs))).reshape(n_trees, len(SPREADS), len(numeric)).sum(axis=0)
    best = np.array(SPREADS)[scores.argmax(axis=0)]
    return np.where((scores == 0).all(axis=0), 0.1, best)


@entry
def _log_density_by_slot(columns, leaves, marginal, values, codes, leaf, rows, numeric):
    """Of each numeric column, the sum over the rows of the log of the mean of two densities: leaf's and marginal."""
    out = np.zeros(numeric.shape[0])
    for k in range(numeric.shape[0]):
        j = numeric[k]
        s = columns.slot[j]
        for i in rows:
            x = values[j, i]
            if x == x:
                in_leaf = value_log_density(columns, leaves, leaf[i], s, x, codes[j, i])
                in_all = value_log_density(columns, marginal, 0, s, x, codes[j, i])
                top = max(in_leaf, in_all)
                out[k] += top + math.log(0.5 * math.exp(in_leaf - top) + 0.5 * math.exp(in_all - top))
    return out


def choose_target_spread(training: Training, arrival: Arrival, n_jobs: int | None) -> float:
    """The smallest spread of the target in a leaf, in units of its own, that makes out-of-bag targets most probable.

    Unlike features, which are judged leaf by leaf, the target is judged under the average of the trees' leaves: their
    means differ, which is most of the predictive spread. 0.1 where no row is out of bag.
    """
    columns, table = training.columns, training.table
    slot, last = columns.slot[-1], len(columns.slot) - 1
    first = first_leaves(arrival.trees)
    rows = np.flatnonzero((arrival.drawn == 0).any(axis=0))
    if not len(rows):
        return 0.1
    rows = rows[:: -(-len(rows) // TARGET_ROWS)]  # from all over the table, which may be sorted
    lo, hi, allowed = leaf_boxes(arrival.trees, columns)

    def one(t: int) -> np.ndarray:
        of_tree = slice(first[t], first[t + 1])
        drawn = arrival.drawn[t]
        own = np.where(drawn > 0, arrival.leaf_of[t] - first[t], -1).astype(np.int32)
        in_leaf, start = rows_by_leaf(own, of_tree.stop - of_tree.start)
        narrow = TARGET._replace(min_spread=SPREADS[0])
        fitted = fit_tree(
            columns, table, in_leaf, start, drawn, lo[of_tree], hi[of_tree], allowed[of_tree], narrow, [last]
        )
        leaf = arrival.leaf_of[t, rows] - first[t]
        return np.stack([fitted.a[leaf, slot], fitted.b[leaf, slot]])

    mean, spread = np.stack(list(map_ordered(one, [(t,) for t in range(len(arrival.trees.root))], n_jobs)), axis=1)
    y, unit = training.X[rows, -1], table.spread[slot]
    out_of_bag = arrival.drawn[:, rows] == 0
    scores = []
    for smallest in TARGET_SPREADS:
        b = np.maximum(spread / unit, smallest)
        log_density = np.where(out_of_bag, -0.5 * ((y - mean) / unit / b) ** 2 - np.log(b), -np.inf)
        scores.append((np.logaddexp.reduce(log_density, axis=0) - np.log(out_of_bag.sum(axis=0))).mean())
    return TARGET_SPREADS[int(np.argmax(scores))]


def choose_beta(
    model: Forest, training: Training, arrival: Arrival, seed: int, n_jobs: int | None
) -> tuple[float, float]:
    """The dial that predicts out-of-bag rows best when some of their cells are hidden, and its loss.

    Trees answer only for rows they were not grown on. (0, nan) if there is no such row.
    """
    d = training.X.shape[1] - 1
    rng = np.random.default_rng([seed, 1, 0])
    judges = np.flatnonzero((arrival.drawn == 0).any(axis=0))
    rows = np.sort(rng.permutation(judges)[:BETA_ROWS])
    if not len(rows):
        return 0.0, float("nan")
    cells = training.X[rows]
    truth = cells[:, -1].copy()
    cells[:, :d][rng.random((len(rows), d)) < BETA_MISSING] = np.nan
    cells[:, -1] = np.nan
    evidence = build(training.schema, cells)
    log_tree, answer = tree_answers(model, evidence, d, n_jobs)
    log_tree = np.where((arrival.drawn[:, rows] == 0).T, np.maximum(log_tree, -1e300), -np.inf)
    losses = [_loss(_average(log_tree, answer, beta), truth) for beta in BETAS]
    best = int(np.argmin(losses))
    return BETAS[best], float(losses[best])


def _loss(answer: np.ndarray, truth: np.ndarray) -> float:
    """Squared error of means (n, 1); of class probabilities (n, K) the share of wrong classes + half Brier's score.

    The share of wrong classes is what counts, but its steps are coarse; Brier's score settles what is nearly equal.
    """
    n, width = answer.shape
    if width == 1:
        return float(((answer[:, 0] - truth) ** 2).mean())
    wanted = np.eye(width)[truth.astype(int)]
    return float((answer.argmax(axis=1) != truth).mean() + 0.5 * ((answer - wanted) ** 2).sum() / n)


def _average(log_tree: np.ndarray, answer: np.ndarray, beta: float) -> np.ndarray:
    """Answers (n, K) of trees that count p_t^beta; those of -inf do not count."""
    met = log_tree > -np.inf
    power = np.where(met, beta * np.where(met, log_tree, 0.0), -np.inf)
    weight = np.exp(power - power.max(axis=1, keepdims=True))
    return np.einsum("nt,ntk->nk", weight / weight.sum(axis=1, keepdims=True), answer)
