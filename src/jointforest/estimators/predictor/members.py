"""The members of a predictor: who is asked about the target, and how each learns from some rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ...data.evidence import Evidence, build, distinct_rows
from ...data.schema import Schema
from ...learners.generative.classifier import GenerativeForestClassifier
from ...learners.generative.regressor import GenerativeForestRegressor
from ...learners.generative.targets import Training
from ...learners.leaf_fitting.densities import first_leaves, first_trees
from ...learners.leaf_fitting.fit import prepare_table
from ...models.base import Distribution, PosteriorState
from ...runtime.threads import chunks
from .additive import Additive
from .boosting import Boosted, Labelled
from .constants import FIXED
from .pooling import LEVELS, Answer, half_cell, joined_stacks, point_masses

FOREST, JOINT, ADDITIVE = "generative forest", "joint", "expected additive model"
EXPECTED, MASKED, NATIVE = "expected boosting", "boosting on masked copies", "boosting"
COMPLETED = "expected boosting on completed rows"
"""Names of the members."""


class Member(Protocol):
    """Somebody who can be asked about the target of rows with any cells missing."""

    def needs_draws(self, evidence: Evidence) -> np.ndarray:
        """Rows of which it needs completions to answer, bool (n,)."""

    def answer(self, known: PosteriorState, completed: np.ndarray, with_spread: bool = True) -> Answer:
        """Answers for n rows, given the posterior ``known`` of the joint and draws ``completed`` (n, m, d) from it."""

    def with_schema(self, schema: Schema) -> Member:
        """The same member of columns that are described otherwise: another frame."""


@dataclass(frozen=True)
class Conditional:
    """The conditional distribution of the last column in a joint, whose trees weigh as p_t(evidence)^beta.

    beta : float. 1 for the joint itself; others need a forest.
    grid : float64 array (g,). Of a number, ascending values at which its CDF is read; empty of classes.
    """

    distribution: Distribution
    beta: float
    grid: np.ndarray

    def needs_draws(self, evidence: Evidence) -> np.ndarray:
        return np.zeros(len(evidence.value), bool)

    def answer(self, known: PosteriorState, completed: np.ndarray, with_spread: bool = True) -> Answer:
        is_joint = self.distribution is known.distribution and self.beta == 1.0
        state = known if is_joint else self.distribution.observe_by_trees(known.evidence, self.beta)
        target = len(self.distribution.schema.columns) - 1
        if not len(self.grid):
            return Answer(state.level_probabilities(target))
        if not with_spread:
            return Answer(state.moments(target)[0][:, None])
        mean, mass = state.mean_and_histogram(target, self.grid[1:-1])
        quantiles = quantiles_of(mass[:, :-1].cumsum(axis=1), self.grid)
        return Answer(mean[:, None], quantiles)

    def with_schema(self, schema: Schema) -> Conditional:
        return replace(self, distribution=self.distribution.with_schema(schema))


@dataclass(frozen=True)
class ExpectedBoosting:
    """Boosted trees, answered in expectation over what is missing, under a joint."""

    trees: Boosted
    joint: Distribution

    def with_schema(self, schema: Schema) -> ExpectedBoosting:
        return replace(self, joint=self.joint.with_schema(schema))

    def needs_draws(self, evidence: Evidence) -> np.ndarray:
        return self.trees.needs_draws(evidence)

    def answer(self, known: PosteriorState, completed: np.ndarray, with_spread: bool = True) -> Answer:
        return Answer(self.trees.expected(known.evidence, self.joint, completed))


@dataclass(frozen=True)
class ExpectedAdditive:
    """An additive model, answered in expectation over what is missing, under a joint.

    is_level : bool array (d,). Which columns have levels.
    """

    model: Additive
    is_level: np.ndarray

    def with_schema(self, schema: Schema) -> ExpectedAdditive:
        return self

    def needs_draws(self, evidence: Evidence) -> np.ndarray:
        return np.asarray(np.isnan(evidence.value[:, :-1]).any(axis=1))

    def answer(self, known: PosteriorState, completed: np.ndarray, with_spread: bool = True) -> Answer:
        return Answer(self.model.expected(known.evidence.value[:, :-1], self.is_level, completed))


@dataclass(frozen=True)
class NativeBoosting:
    """Boosted trees that have seen rows with missing cells, and take missing cells themselves. Of ranges they answer
    the mean over draws within them."""

    trees: Boosted

    def with_schema(self, schema: Schema) -> NativeBoosting:
        return self

    def needs_draws(self, evidence: Evidence) -> np.ndarray:
        return np.asarray((evidence.cell_regions() >= 0).any(axis=1))

    def answer(self, known: PosteriorState, completed: np.ndarray, with_spread: bool = True) -> Answer:
        value, is_range = known.evidence.value, known.evidence.cell_regions() >= 0
        if not is_range.any():
            return Answer(self.trees.native(known.evidence))
        rows = np.where(is_range[:, None], completed, value[:, None])
        n, m, d = rows.shape
        each = self.trees.native(Evidence.of_values(rows.reshape(n * m, d)))
        return Answer(each.reshape(n, m, -1).mean(axis=1))


def ask_members(
    members: Mapping[str, Member], joint: Distribution, evidence: Evidence, seed: int, with_spread: bool = True
) -> dict[str, Answer]:
    """The members' answers for rows, by name; all of them answer over the same completions, drawn from the joint."""
    rows, place = distinct_rows(evidence)
    needs = np.any([member.needs_draws(rows) for member in members.values()], axis=0)
    m, d = FIXED.draws, rows.value.shape[1]
    plain, holed = np.flatnonzero(~needs), np.flatnonzero(needs)
    pieces = [holed[slice(*ends)] for ends in chunks(len(holed), max(1, FIXED.drawn_at_once // m))]
    pieces = [plain, *pieces] if len(plain) or not pieces else pieces
    parts = []
    for piece in pieces:
        known, nothing = joint.observe(rows.take(piece)), np.empty((len(piece), 0, d))
        # the joint first: draws need again what it weighs for its answer
        said = {JOINT: members[JOINT].answer(known, nothing, with_spread)} if JOINT in members else {}
        completed = nothing
        if piece is not plain:
            completed = known.completions(np.full(len(piece), m), seed).reshape(len(piece), m, d)
        others = {name: member for name, member in members.items() if name != JOINT}
        said |= {name: member.answer(known, completed, with_spread) for name, member in others.items()}
        parts.append(said)
    back = np.argsort(np.concatenate(pieces))[place]
    return {name: joined_stacks([part[name] for part in parts]).take(back) for name in members}


def quantiles_of(cdf: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Quantiles (n, q) at `LEVELS`, from the CDF (n, g - 2) at the inner points of an ascending grid (g,); linear."""
    rising = np.maximum.accumulate(np.clip(cdf, 0.0, 1.0), axis=1)
    whole = np.pad(rising, ((0, 0), (1, 1)), constant_values=((0, 0), (0.0, 1.0)))
    found = np.empty((len(cdf), len(LEVELS)))
    for i, row in enumerate(whole):
        found[i] = np.interp(LEVELS, row, grid)
    return found


# ---- Learning of the generative members.


def grid_of(y: np.ndarray, step: float) -> np.ndarray:
    """Where CDFs of a target on a grid of this step (or 0) are read: between cells, at quantiles and point masses."""
    inner = np.quantile(y, np.linspace(0.0, 1.0, FIXED.grid + 2)[1:-1], method="closest_observation")
    half, point = half_cell(y, step), point_masses(y)
    cuts = np.unique(np.concatenate([inner + half, point - half, point + half]))
    beyond = max(1e-9 * float(y.max() - y.min()), half)
    return np.concatenate([[min(y.min(), cuts[0]) - beyond], cuts, [max(y.max(), cuts[-1]) + beyond]])


def take_training(training: Training, rows: np.ndarray, completed: Labelled | None) -> Training:
    """The rows of these numbers, as a table to learn from; ``completed`` are the same with missing cells drawn."""
    X, ranges = training.X[rows], None if training.ranges is None else training.ranges.take(rows)
    filled = X if completed is None else np.column_stack([completed.X, completed.y])
    if ranges is not None or np.isnan(filled).any():  # the forest draws within ranges, and what the joint cannot draw
        filled = X
    drawn = np.isnan(X) & ~np.isnan(filled)
    table = prepare_table(training.columns, filled, drawn, training.table.edges)
    return training._replace(X=X, filled=filled, ranges=ranges, table=table)


def learn_forest(training: Training, seed: int, like: Any = None) -> Any:
    """A generative forest of a table, with the settings of ``like`` if given, else within `Constants.leaf_cells`."""
    n, d = training.X.shape
    is_class = bool(training.columns.is_categorical[-1])
    n_trees = FIXED.trees if n < FIXED.few_rows else FIXED.large_trees
    forest = (GenerativeForestClassifier if is_class else GenerativeForestRegressor)(n_trees)
    # two thirds of the rows are in a tree's bootstrap, and leaves are about half as large again as they must be
    least = FIXED.fewest_trees * d * n / (2.0 * FIXED.leaf_cells)
    if like is not None:
        forest.set_params(
            n_estimators=like.n_estimators,
            min_samples_leaf=min(like.min_samples_leaf_, n),
            beta=like.beta_,
            smoothing=like._smoothing,
        )
    elif least > FIXED.large_leaf:
        forest.set_params(min_samples_leaf=int(least))
    if least > FIXED.large_leaf:
        forest.set_params(n_estimators=FIXED.fewest_trees)
    forest._check()
    if like is not None:
        forest.min_spread = like.min_spread_
    if is_class:
        forest.classes_ = np.arange(len(training.schema.columns[-1].levels))
    grown, assigned = forest._grow(training, np.ones(n), seed)
    most = FIXED.leaf_cells * forest.n_estimators / (first_leaves(assigned.trees)[-1] * d)
    if most < FIXED.fewest_trees and like is None and least <= FIXED.large_leaf:  # the chosen leaves are too small
        larger = int(forest.min_samples_leaf_ * FIXED.fewest_trees / most) + 1
        forest.set_params(min_samples_leaf=larger, n_estimators=FIXED.fewest_trees)
        grown, assigned = forest._grow(training, np.ones(n), seed)
    return forest._learn(grown, first_trees(assigned, max(int(most), FIXED.fewest_trees)), seed)


def evidence_of(training: Training, rows: np.ndarray, mask: np.ndarray) -> Evidence:
    """Rows of these numbers (m,) without the cells of ``mask`` (m, d) and without their targets."""
    cells = training.X[rows].copy()
    cells[:, :-1][mask] = np.nan
    cells[:, -1] = np.nan
    ranges = None if training.ranges is None else training.ranges.take(rows)
    if ranges is not None:
        ranges.number[np.isnan(cells)] = -1
    return build(training.schema, cells, ranges=ranges)
