"""What a generative forest chooses out of bag: sizes of leaves, pseudo-rows, and how it combines its trees."""

from __future__ import annotations

import numpy as np

from ...data.evidence import Evidence, build
from ...models.box_forest.posterior import oob_log_density, tree_answers
from ...models.box_forest.structure import Forest, tree_boxes
from ...runtime.threads import chunks, map_ordered
from ..leaf_fitting import densities
from ..leaf_fitting.fit import LeafSums, Settings, background, fit_tree, leaf_sums
from ..leaf_fitting.quantile import choose_slots, misfit_slots, small_enough
from ..leaf_fitting.statistics_kernels import log_density_by_slot
from .conformal import own_average
from .constants import FIXED
from .supervised import GrowSettings, grow_forest
from .targets import Training


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
