"""What a generative forest chooses out of bag: sizes of leaves, pseudo-rows, and how it combines its trees."""

from __future__ import annotations

import numpy as np

from ...forest.column.tree_answers import tree_answers
from ...forest.forest import Forest
from ...ground.threads import chunks
from ...leaves.fit.fit import Settings
from ...table.build_evidence import build
from ...table.evidence import Evidence
from ..arrival import Arrival, first_trees
from ..densities import TARGET, learn_densities
from .supervised import GrowSettings, grow_forest
from .targets import Training

BETAS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""Candidates for the dial between the average of trees (0) and the mixture (1)."""
LEAF_SIZES = (1, 4, 12)
"""Candidates for the fewest rows in a leaf."""
SMOOTHINGS = 0.3, 2.0
"""Candidates for the pseudo-rows of levels."""
SIGMAS = 1.0
"""Standard errors of the difference that count as chance between these."""
PILOT_TREES = 20
"""Trees that judge leaf sizes and pseudo-rows."""
BETA_ROWS = 1000
"""Training rows that judge the dial."""
BETA_MISSING = 0.3
"""Share of their cells that is hidden."""
EPSILON = 1e-3
"""Weight of the background of the forests that are tried."""
_AT_ONCE = 2**22  # answers of trees, rows x trees x classes


def choose_leaf_size(
    training: Training, weight: np.ndarray, grow: GrowSettings, settings: Settings, seed: int
) -> GrowSettings:
    """The settings with the ``min_samples_leaf`` whose out-of-bag loss is smallest.

    The loss is that of `choose_beta`, with a few trees of each size; the smallest size if no row is out of bag.
    """
    if not grow.bootstrap:
        return grow
    losses = []
    for size in LEAF_SIZES:
        few = grow._replace(n_estimators=min(PILOT_TREES, grow.n_estimators), min_samples_leaf=size)
        arrival = grow_forest(training, weight, few, seed)
        model = learn_densities(
            training.schema, training.columns, training.table, arrival, settings, EPSILON, grow.n_jobs, TARGET
        )
        loss = choose_beta(model, training, arrival, seed, grow.n_jobs)[1]
        losses.append(loss.mean() if len(loss) else np.nan)
    best = 0 if np.isnan(losses).all() else int(np.nanargmin(losses))
    return grow._replace(min_samples_leaf=LEAF_SIZES[best])


def choose_smoothing(
    training: Training, arrival: Arrival, settings: Settings, seed: int, n_jobs: int | None
) -> Settings:
    """The settings with the pseudo-rows of levels (and atoms) that predict out-of-bag rows best.

    The loss is that of `choose_beta`, with a few trees. The later candidates smooth more: one takes the place of an
    earlier one only where it is better by more than `SIGMAS` standard errors. The first candidate where no row is out
    of bag, or no feature has levels or atoms.
    """
    few = first_trees(arrival, PILOT_TREES)
    features = training.schema.columns[:-1]
    candidates = [settings._replace(smoothing=rows) for rows in SMOOTHINGS]
    if not any(column.levels or column.atoms for column in features) or (few.weight > 0).all():
        return candidates[0]
    best, least = candidates[0], np.empty(0)
    for candidate in candidates:
        model = learn_densities(
            training.schema, training.columns, training.table, few, candidate, EPSILON, n_jobs, TARGET
        )
        loss = choose_beta(model, training, few, seed, n_jobs)[1]
        if len(least) == 0 or (least - loss).mean() > SIGMAS * (least - loss).std() / np.sqrt(len(loss)):
            best, least = candidate, loss
    return best


def choose_beta(
    model: Forest, training: Training, arrival: Arrival, seed: int, n_jobs: int | None
) -> tuple[float, np.ndarray]:
    """The dial that predicts out-of-bag rows best when some of their cells are hidden, and the loss of each row (n,).

    Trees answer only for rows they were not grown on. (0, no losses) if there is no such row.
    """
    d = training.X.shape[1] - 1
    rng = judges_of(seed)
    rows = judging_rows(arrival, rng)
    if not len(rows):
        return 0.0, np.empty(0)
    cells = training.X[rows]
    truth = cells[:, -1].copy()
    cells[:, :d][rng.random((len(rows), d)) < BETA_MISSING] = np.nan
    cells[:, -1] = np.nan
    left_out = (arrival.weight[:, rows] == 0).T
    few = max(1, _AT_ONCE // (left_out.shape[1] * max(1, len(training.schema.columns[d].levels))))
    losses = np.hstack([
        _losses(model, build(training.schema, cells[some]), truth[some], left_out[some], n_jobs)
        for some in (slice(*ends) for ends in chunks(len(rows), few))
    ])  # fmt: skip
    best = int(np.argmin([loss.mean() for loss in losses]))
    return BETAS[best], losses[best]


def _losses(
    model: Forest, evidence: Evidence, truth: np.ndarray, left_out: np.ndarray, n_jobs: int | None
) -> np.ndarray:
    """Of each of `BETAS`, of each row (n,) by the trees that left it out, bool (n, T)."""
    log_tree, answer = tree_answers(model, evidence, len(model.schema.columns) - 1, n_jobs)
    log_tree = np.where(left_out, np.maximum(log_tree, -1e300), -np.inf)
    return np.stack([_loss(_average(log_tree, answer, beta), truth) for beta in BETAS])


def judges_of(seed: int) -> np.random.Generator:
    """What draws the rows that judge, and which of their cells are hidden."""
    return np.random.default_rng([seed, 1, 0])


def judging_rows(arrival: Arrival, rng: np.random.Generator) -> np.ndarray:
    """Training rows, rising, that some tree was grown without: `BETA_ROWS` of them at most."""
    judges = np.flatnonzero((arrival.weight == 0).any(axis=0))
    return np.sort(rng.permutation(judges)[:BETA_ROWS])


def _loss(answer: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Of rows (n,): squared error of means (n, 1); of class probabilities (n, K) wrong or not + half Brier's score.

    The share of wrong classes is what counts, but its steps are coarse; Brier's score settles what is nearly equal.
    """
    if answer.shape[1] == 1:
        return np.asarray((answer[:, 0] - truth) ** 2)
    wanted = np.eye(answer.shape[1])[truth.astype(int)]
    return np.asarray((answer.argmax(axis=1) != truth) + 0.5 * ((answer - wanted) ** 2).sum(axis=1))


def _average(log_tree: np.ndarray, answer: np.ndarray, beta: float) -> np.ndarray:
    """Answers (n, K) of trees that count p_t^beta; those of -inf do not count."""
    met = log_tree > -np.inf
    power = np.where(met, beta * np.where(met, log_tree, 0.0), -np.inf)
    weight = np.exp(power - power.max(axis=1, keepdims=True))
    return np.einsum("nt,ntk->nk", weight / weight.sum(axis=1, keepdims=True), answer)
