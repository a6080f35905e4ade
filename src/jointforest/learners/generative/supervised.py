"""Forests grown to predict a column: their trees, the choice of their settings, and conformal sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...data.evidence import Evidence, build
from ...models.box_forest.posterior import oob_log_density, tree_answers
from ...models.box_forest.structure import Forest, Trees, leaf_nodes, tree_boxes
from ...runtime.threads import chunks, map_ordered
from ..base import draw_bootstrap
from ..growing.grow import GrowthSettings, RankTree, grow, rank
from ..growing.grow_kernels import ENTROPY, VARIANCE
from ..leaf_fitting import densities
from ..leaf_fitting.densities import AssignedRows, assign_rows
from ..leaf_fitting.fit import LeafSums, Settings, background, fit_tree, leaf_sums
from ..leaf_fitting.quantile import choose_slots, misfit_slots, small_enough
from ..leaf_fitting.statistics_kernels import log_density_by_slot
from .constants import FIXED
from .targets import Training, know_features


class GrowSettings(NamedTuple):
    """How a forest is grown, as of `GenerativeForestClassifier`. A bootstrap draws ``n_draws`` rows."""

    n_estimators: int
    tree: GrowthSettings
    bootstrap: bool
    n_draws: int


def grow_forest(training: Training, weight: np.ndarray, settings: GrowSettings, seed: int) -> AssignedRows:
    """Grow trees that predict the target from the features; a bootstrap draws rows by their weights."""
    n, d = len(training.X), training.X.shape[1] - 1
    features = training.schema.columns[:-1]
    ranks = rank(training.columns, training.filled)
    of_features = ranks._replace(codes=np.ascontiguousarray(ranks.codes[:d]), n_codes=ranks.n_codes[:d])
    is_categorical = np.array([c.is_categorical for c in features], dtype=np.uint8)
    is_ordered = np.array([c.kind == "ordered" for c in features], dtype=np.uint8)
    target = training.schema.columns[-1]
    y = training.X[:, -1].astype(np.int32) if target.is_categorical else training.X[:, -1].copy()
    n_classes = max(len(target.levels), 2)

    def one(t: int) -> tuple[RankTree, np.ndarray, np.ndarray]:
        drawn = weight * draw_bootstrap(n, settings.n_draws, True, seed, t) if settings.bootstrap else weight.copy()
        how = {"seed": seed, "number": t}
        tree, node = grow(of_features, is_categorical, is_ordered, y, n_classes, drawn, settings.tree, **how)
        return tree, node, drawn

    grown = list(map_ordered(one, [(t,) for t in range(settings.n_estimators)], "growing trees"))
    return assign_rows(training.columns, ranks, *zip(*grown, strict=True))


# ---- Importance of each feature for the target.


def feature_importances(training: Training, assigned: AssignedRows, criterion: int) -> np.ndarray:
    """Share of each feature in the decrease of the target's impurity, (d,): the mean over trees."""
    # As in scikit-learn, of the rows that the trees count: what a split takes off the impurity, times the weight of its
    # node. Trees without a split do not count; all 0 if none has one.
    trees, d = assigned.trees, training.X.shape[1] - 1
    y = training.X[:, -1]
    target = training.schema.columns[-1]
    n_classes = len(target.levels) if target.is_categorical else 0
    levels = _nodes_by_depth(trees)
    ends = np.append(trees.root, len(trees.feature))
    node_of_leaf = leaf_nodes(trees.leaf)
    total = np.zeros(d)
    for t in range(len(trees.root)):
        first, end = int(ends[t]), int(ends[t + 1])
        rows = np.flatnonzero((assigned.weight[t] > 0.0) & (assigned.leaf_of[t] >= 0))
        node = node_of_leaf[assigned.leaf_of[t, rows]] - first
        sums = _node_sums(node, y[rows], assigned.weight[t, rows], end - first, n_classes)
        for level in levels[::-1]:
            inner = level[(level >= first) & (level < end)]
            inner = inner[trees.feature[inner] >= 0]
            sums[inner - first] = sums[trees.left[inner] - first] + sums[trees.right[inner] - first]
        impurity = _impurity(sums, criterion)
        inner = first + np.flatnonzero(trees.feature[first:end] >= 0)
        fall = impurity[inner - first] - impurity[trees.left[inner] - first] - impurity[trees.right[inner] - first]
        decrease = np.bincount(trees.feature[inner], np.maximum(fall, 0.0), d)
        total += decrease / decrease.sum() if decrease.sum() > 0.0 else 0.0
    return np.asarray(total / total.sum() if total.sum() > 0.0 else total)


def _nodes_by_depth(trees: Trees) -> list[np.ndarray]:
    """Nodes by their depth."""
    levels = [trees.root.astype(np.int64)]
    while len(levels[-1]):
        inner = levels[-1][trees.feature[levels[-1]] >= 0]
        levels.append(np.concatenate([trees.left[inner], trees.right[inner]]).astype(np.int64))
    return levels[:-1]


def _node_sums(node: np.ndarray, y: np.ndarray, weight: np.ndarray, n_nodes: int, n_classes: int) -> np.ndarray:
    """By node the weight of each class, or weight, sum and sum of squares of numbers, which are centred before."""
    if n_classes:
        flat = np.bincount(node * n_classes + y.astype(np.int64), weight, n_nodes * n_classes)
        return np.asarray(flat.reshape(n_nodes, n_classes))
    centred = y - np.average(y, weights=weight)
    return np.column_stack([np.bincount(node, weight * centred**k, n_nodes) for k in range(3)])


def _impurity(sums: np.ndarray, criterion: int) -> np.ndarray:
    """Impurity of each node times its weight."""
    if criterion == VARIANCE:
        return np.asarray(sums[:, 2] - sums[:, 1] ** 2 / np.maximum(sums[:, 0], 1e-300))
    weight = sums.sum(axis=1, keepdims=True)
    p = sums / np.maximum(weight, 1e-300)
    if criterion == ENTROPY:
        return np.asarray(-weight[:, 0] * (p * np.log(np.where(p > 0.0, p, 1.0))).sum(axis=1))
    return np.asarray(weight[:, 0] * (1.0 - (p * p).sum(axis=1)))


# ---- Conformal intervals and sets of a bagged forest: jackknife+ after bootstrap, at any pattern of missing cells.

# The mathematics and its sources: docs/concepts/conformal-prediction.md.


class Calibration(NamedTuple):
    """Training rows that some trees were grown without.

    X : float64 array (c, d). Features, encoded; NaN where missing. In random order.
    y : float64 array (c,). Target: a number, or the code of a class.
    out_of_bag : bool array (c, T). Trees that were grown without the row.
    n : int. Rows of the table.
    """

    X: np.ndarray
    y: np.ndarray
    out_of_bag: np.ndarray
    n: int


class CalibrationPairs(NamedTuple):
    """Of c rows that calibrate, and m that are asked about: the predictions of both by the trees grown without the
    former.

    calibrating : float64 array (c, K). Of the row that calibrates.
    y : float64 array (c,). Its target.
    asked : float64 array (c, m, K). Of the row that is asked about.
    """

    calibrating: np.ndarray
    y: np.ndarray
    asked: np.ndarray


def calibration_rows(training: Training, assigned: AssignedRows, seed: int) -> Calibration:
    """What is kept at learning. Raises ValueError if every tree was grown on every row."""
    rows = np.flatnonzero((assigned.weight == 0).any(axis=0))
    if not len(rows):
        n = assigned.weight.shape[1]
        raise ValueError(
            f"conformal=True needs rows out of bag, and every tree was grown on all rows (n_samples = {n}): "
            "bootstrap=True, and more than a few rows"
        )
    rows = np.random.default_rng([seed, 2]).permutation(rows)[: FIXED.kept_rows]
    out_of_bag = np.ascontiguousarray((assigned.weight[:, rows] == 0).T)
    return Calibration(training.X[rows, :-1], training.X[rows, -1], out_of_bag, training.X.shape[0])


def pairs_by_pattern(
    forest: Forest, kept: Calibration, X: np.ndarray, beta: float, centre: float | None
) -> Iterator[tuple[np.ndarray, CalibrationPairs]]:
    """Rows of X (n, d; encoded, NaN where missing) with one pattern of missing cells, and their `CalibrationPairs`."""

    def ask(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        evidence = know_features(forest.schema, cells)
        log_tree, answer = tree_answers(forest, evidence, cells.shape[1], centre)
        return beta * np.maximum(log_tree, -1e300), answer

    patterns, which = np.unique(np.isnan(X), axis=0, return_inverse=True)
    gaps = np.isnan(kept.X)
    for k, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.ravel() == k)
        within = np.flatnonzero(~(gaps & ~pattern).any(axis=1))[: FIXED.pattern_rows]
        if len(within) >= min(FIXED.pattern_fewest_rows, len(kept.y)):
            out = kept.out_of_bag[within]
            calibrating = own_average(*ask(np.where(pattern, np.nan, kept.X[within])), out)
            for start in range(0, len(rows), FIXED.pattern_rows):
                block = rows[start : start + FIXED.pattern_rows]
                yield block, CalibrationPairs(calibrating, kept.y[within], left_out_averages(*ask(X[block]), out))
            continue
        unions, of_row = np.unique(gaps[: FIXED.union_rows] | pattern, axis=0, return_inverse=True)
        of_row, out, y = of_row.ravel(), kept.out_of_bag[: len(of_row)], kept.y[: len(of_row)]
        calibrating = own_average(*ask(np.where(unions[of_row], np.nan, kept.X[: len(of_row)])), out)
        for start in range(0, len(rows), FIXED.calibration_chunk):
            block = rows[start : start + FIXED.calibration_chunk]
            cells = np.where(unions[:, None], np.nan, X[block]).reshape(-1, X.shape[1])
            log_weight, answer = (each.reshape(len(unions), len(block), *each.shape[1:]) for each in ask(cells))
            asked = np.empty((len(of_row), len(block), answer.shape[-1]))
            for u in range(len(unions)):
                asked[of_row == u] = left_out_averages(log_weight[u], answer[u], out[of_row == u])
            yield block, CalibrationPairs(calibrating, y, asked)


def own_average(log_weight: np.ndarray, answer: np.ndarray, out_of_bag: np.ndarray) -> np.ndarray:
    """Answers (c, T, K) averaged over each row's trees out of bag (c, T), with weights exp(``log_weight``): (c, K)."""
    weight = np.where(out_of_bag, log_weight, -np.inf)
    weight = np.exp(weight - weight.max(axis=1, keepdims=True))
    return np.asarray(np.einsum("ct,ctk->ck", weight / weight.sum(axis=1, keepdims=True), answer))


def left_out_averages(log_weight: np.ndarray, answer: np.ndarray, out_of_bag: np.ndarray) -> np.ndarray:
    """Answers (m, T, K) averaged over the trees out of bag of each of c rows (c, T): (c, m, K)."""
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    out = out_of_bag.astype(np.float64)
    total = out @ weight.T
    with np.errstate(divide="ignore", invalid="ignore"):
        averages = np.stack([out @ (weight * answer[:, :, k]).T / total for k in range(answer.shape[2])], axis=-1)
    for i, r in np.argwhere(total < 1e-200):  # all of these trees weigh nothing beside others: among themselves
        averages[i, r] = own_average(log_weight[r : r + 1], answer[r : r + 1], out_of_bag[i : i + 1])[0]
    return averages


def interval(pairs: CalibrationPairs, level: float, centre: float, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends (m,) of jackknife+ intervals of scores |y - mean| / standard deviation; ``least``: smallest deviation."""
    spread = _standard_deviation(pairs.calibrating, centre, least)
    score = np.abs(pairs.y - pairs.calibrating[:, 0]) / spread
    reach = _standard_deviation(pairs.asked, centre, least) * score[:, None]
    mean = pairs.asked[:, :, 0]
    high = kth_smallest(mean + reach, level)
    low = -kth_smallest(reach - mean, level)
    return np.minimum(low, high), np.maximum(low, high)


def label_set(pairs: CalibrationPairs, level: float) -> np.ndarray:
    """Which classes are in the set of each row, bool (m, K): fewer than level (c + 1) rows fit theirs better."""
    probability = pairs.calibrating[np.arange(len(pairs.y)), pairs.y.astype(np.intp)]
    fits_better = (probability[:, None, None] > pairs.asked).sum(axis=0)
    return np.asarray(fits_better < level * (len(probability) + 1) - 1e-9)


def kth_smallest(values: np.ndarray, level: float) -> np.ndarray:
    """The ceil(level (c + 1))-th smallest of c values (c, m), (m,); inf if there are not so many."""
    c = len(values)
    k = max(int(np.ceil(level * (c + 1) - 1e-9)), 1)
    return np.partition(values, k - 1, axis=0)[k - 1] if k <= c else np.full(values.shape[1], np.inf)


def _standard_deviation(moments: np.ndarray, centre: float, least: float) -> np.ndarray:
    """Standard deviation of mean and mean squared distance from the centre (..., 2)."""
    return np.asarray(np.sqrt(np.maximum(moments[..., 1] - (moments[..., 0] - centre) ** 2, least**2)))


# ---- What a generative forest chooses out of bag: sizes of leaves, pseudo-rows, and how it combines its trees.


def choose_leaf_size(
    training: Training, weight: np.ndarray, grow: GrowSettings, settings: Settings, seed: int
) -> GrowSettings:
    """The settings with the ``min_samples_leaf`` whose out-of-bag loss is smallest; without such rows, the smallest."""
    if not grow.bootstrap:
        return grow
    losses = []
    for size in FIXED.leaf_sizes:
        tree = grow.tree._replace(min_samples_leaf=size)
        few = grow._replace(n_estimators=min(FIXED.pilot_trees, grow.n_estimators), tree=tree)
        assigned = grow_forest(training, weight, few, seed)
        loss = _pilot_loss(training, assigned, settings, seed)
        losses.append(loss.mean() if len(loss) else np.nan)
    best = 0 if np.isnan(losses).all() else int(np.nanargmin(losses))
    return grow._replace(tree=grow.tree._replace(min_samples_leaf=FIXED.leaf_sizes[best]))


def _pilot_loss(training: Training, assigned: densities.AssignedRows, settings: Settings, seed: int) -> np.ndarray:
    """Losses of out-of-bag rows, as of `choose_beta`, by leaf densities with these settings."""
    rows = training.schema, training.columns, training.table, assigned
    return choose_beta(
        densities.learn_densities(*rows, settings, FIXED.pilot_epsilon, densities.TARGET), training, assigned, seed
    )[1]


def choose_smoothing(training: Training, assigned: densities.AssignedRows, settings: Settings, seed: int) -> Settings:
    """The settings with the pseudo-rows of levels and atoms that predict out-of-bag rows best; if equal, the fewest."""
    few = densities.first_trees(assigned, FIXED.pilot_trees)
    features = training.schema.columns[:-1]
    candidates = [settings._replace(smoothing=rows) for rows in FIXED.smoothings]
    if not any(column.levels or column.atoms for column in features) or (few.weight > 0).all():
        return candidates[0]
    best, least = candidates[0], np.empty(0)
    for candidate in candidates:
        loss = _pilot_loss(training, few, candidate, seed)
        if len(least) == 0 or (least - loss).mean() > FIXED.smoothing_sigmas * (least - loss).std() / np.sqrt(
            len(loss)
        ):
            best, least = candidate, loss
    return best


def choose_beta(
    model: Forest, training: Training, assigned: densities.AssignedRows, seed: int
) -> tuple[float, np.ndarray]:
    """The exponent that predicts out-of-bag rows best if some cells are hidden, and the loss of each row (n,)."""
    d = training.X.shape[1] - 1
    rng = judges_of(seed)
    rows = judging_rows(assigned, rng)
    if not len(rows):
        return 0.0, np.empty(0)
    cells = training.X[rows]
    truth = cells[:, -1].copy()
    cells[:, :d][rng.random((len(rows), d)) < FIXED.beta_missing] = np.nan
    cells[:, -1] = np.nan
    left_out = (assigned.weight[:, rows] == 0).T
    few = max(1, FIXED.answers_at_once // (left_out.shape[1] * max(1, len(training.schema.columns[d].levels))))
    losses = np.hstack([
        _losses(model, build(training.schema, cells[block]), truth[block], left_out[block])
        for block in (slice(*ends) for ends in chunks(len(rows), few))
    ])  # fmt: skip
    best = int(np.argmin([loss.mean() for loss in losses]))
    return FIXED.betas[best], losses[best]


def _losses(model: Forest, evidence: Evidence, truth: np.ndarray, left_out: np.ndarray) -> np.ndarray:
    """Of each of `Constants.betas`, of each row (n,) by the trees that left it out, bool (n, T)."""
    log_tree, answer = tree_answers(model, evidence, len(model.schema.columns) - 1)
    log_tree = np.maximum(log_tree, -1e300)
    return np.stack([_loss(own_average(beta * log_tree, answer, left_out), truth) for beta in FIXED.betas])


def judges_of(seed: int) -> np.random.Generator:
    """What draws the rows to be scored, and which of their cells are hidden."""
    return np.random.default_rng([seed, 1, 0])


def judging_rows(assigned: densities.AssignedRows, rng: np.random.Generator) -> np.ndarray:
    """Training rows, rising, that some tree was grown without: `Constants.beta_rows` of them at most."""
    judges = np.flatnonzero((assigned.weight == 0).any(axis=0))
    return np.sort(rng.permutation(judges)[: FIXED.beta_rows])


def _loss(answer: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Of rows (n,): squared error of means (n, 1); of class probabilities (n, K) wrong or not + half Brier's score."""
    # The share of wrong classes is what counts, but its steps are coarse; Brier's score settles what is nearly equal.
    if answer.shape[1] == 1:
        return np.asarray((answer[:, 0] - truth) ** 2)
    wanted = np.eye(answer.shape[1])[truth.astype(int)]
    return np.asarray((answer.argmax(axis=1) != truth) + 0.5 * ((answer - wanted) ** 2).sum(axis=1))


# ---- How wide the leaves of a generative forest are at least, as out-of-bag rows have it.


def choose_spreads(training: Training, assigned: densities.AssignedRows, settings: Settings) -> np.ndarray:
    """Smallest spreads (p,) with which out-of-bag cells are most probable in their leaves."""
    columns, table = training.columns, training.table
    n_trees = min(FIXED.spread_trees, len(assigned.trees.root))
    first = densities.first_leaves(assigned.trees)
    numeric = np.flatnonzero(columns.is_categorical == 0).astype(np.int64)
    marginal = densities.join_leaves(columns, [background(columns, table)])
    known = np.ascontiguousarray(training.X.T)  # drawn cells are not scored
    atoms = np.where(np.isnan(known), np.int32(-1), table.codes)

    def judge(t: int) -> list[np.ndarray]:
        box = tree_boxes(assigned.trees, columns, t)
        drawn = assigned.weight[t]
        leaf = (assigned.leaf_of[t] - first[t]).astype(np.int32)
        sums = _sums(training, assigned, first, t, numeric.tolist())
        out_of_bag = np.flatnonzero(drawn == 0)

        def score(spread: float) -> np.ndarray:
            fitted = fit_tree(columns, table, sums, *box, settings._replace(min_spread=spread), numeric.tolist())
            leaves = densities.join_leaves(columns, [fitted])
            return log_density_by_slot(columns, leaves, marginal, known, atoms, leaf, out_of_bag, numeric)

        return [score(spread) for spread in FIXED.spreads]

    scores = np.array(list(map_ordered(judge, [(t,) for t in range(n_trees)]))).sum(axis=0)
    best = np.array(FIXED.spreads)[scores.argmax(axis=0)]
    return np.where((scores == 0).all(axis=0), FIXED.usual_spread, best)


def choose_target_spread(training: Training, assigned: densities.AssignedRows) -> float:
    """Smallest spread of the target with which out-of-bag targets are most probable under the average of the trees."""
    columns, table = training.columns, training.table
    slot, last = columns.slot[-1], len(columns.slot) - 1
    first = densities.first_leaves(assigned.trees)
    rows = np.flatnonzero((assigned.weight == 0).any(axis=0))
    if not len(rows):
        return FIXED.usual_spread
    rows = rows[:: -(-len(rows) // FIXED.target_rows)]  # from all over the table, which may be sorted

    def one(t: int) -> np.ndarray:
        box = tree_boxes(assigned.trees, columns, t)
        sums = _sums(training, assigned, first, t, [last])
        fitted = fit_tree(columns, table, sums, *box, densities.TARGET._replace(min_spread=FIXED.spreads[0]), [last])
        leaf = assigned.leaf_of[t, rows] - first[t]
        return np.stack([fitted.a[leaf, slot], fitted.b[leaf, slot]])

    mean, spread = np.stack(list(map_ordered(one, [(t,) for t in range(len(assigned.trees.root))])), axis=1)
    y, unit = training.X[rows, -1], table.spread[slot]
    out_of_bag = assigned.weight[:, rows] == 0
    scores = []
    for smallest in FIXED.target_spreads:
        b = np.maximum(spread / unit, smallest)
        log_density = np.where(out_of_bag, -0.5 * ((y - mean) / unit / b) ** 2 - np.log(b), -np.inf)
        scores.append((np.logaddexp.reduce(log_density, axis=0) - np.log(out_of_bag.sum(axis=0))).mean())
    return FIXED.target_spreads[int(np.argmax(scores))]


def _sums(training: Training, assigned: densities.AssignedRows, first: np.ndarray, t: int, only: list[int]) -> LeafSums:
    """Sums of the rows in the leaves of tree t, of some columns."""
    table, rows = training.table, densities.rows_in_leaves(assigned, first, t)
    cells = table.values, table.codes
    return leaf_sums(training.columns, cells, table.spread, *rows, assigned.weight[t], only, table.drawn)


# ---- Which features of a generative forest get quantile leaves: rows that are out of bag are the validation rows.


def quantile_slots(
    training: Training, assigned: densities.AssignedRows, settings: Settings, target: Settings, seed: int
) -> np.ndarray:
    """Slots of features with quantile leaves, bool (p,): all misfit ones, or none if out-of-bag rows are against it."""
    columns = training.columns
    none = np.zeros(len(columns.step), bool)
    few = densities.first_trees(assigned, FIXED.pilot_trees)
    rows = judging_rows(few, judges_of(seed))
    if not len(rows) or not (columns.is_categorical[:-1] == 0).any():
        return none
    evidence, drawn = build(training.schema, training.X[rows]), few.weight[:, rows] > 0

    def learned(trees: densities.AssignedRows, slots: np.ndarray) -> Forest:
        table = training.table
        return densities.learn_densities(
            training.schema, columns, table, trees, settings, FIXED.pilot_epsilon, target, quantile=slots
        )

    def fits(slots: np.ndarray) -> bool:
        one = learned(densities.first_trees(assigned, 1), slots)
        return small_enough(len(one.leaves.pieces.log_weight), len(assigned.trees.root))

    def gains(slots: np.ndarray) -> list[np.ndarray]:
        forests = normal, learned(few, slots)
        before, after = (oob_log_density(forest, evidence, drawn) for forest in forests)
        losses = [choose_beta(forest, training, few, seed)[1] for forest in forests]
        return [after - before, losses[0] - losses[1]]

    normal = learned(few, none)
    misfit = misfit_slots(normal, training.X, few.weight.sum(axis=0))
    if not columns.is_categorical[-1]:
        misfit[columns.slot[-1]] = False
    return choose_slots(misfit, fits, gains)
