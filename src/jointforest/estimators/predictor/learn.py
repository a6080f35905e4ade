"""How a predictor learns: the members from all rows and from folds, the pool from validation rows with cells hidden."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from ...data.evidence import build
from ...inference.sampling import sample
from ...learners.generative.targets import Training
from ...learners.selection.budget import Budget
from ...learners.selection.choose import Chosen, Task, choose
from ...learners.selection.folds import Fold
from ...models.base import Distribution
from ...runtime.threads import n_threads
from .additive import Additive, AdditiveLearner
from .boosting import Boosted, Boosting, BoostingSettings, Labelled, LabelledPair, boosting_table
from .constants import FIXED
from .members import (
    ADDITIVE,
    COMPLETED,
    EXPECTED,
    FOREST,
    JOINT,
    MASKED,
    NATIVE,
    Conditional,
    ExpectedAdditive,
    ExpectedBoosting,
    Member,
    NativeBoosting,
    ask_members,
    evidence_of,
    grid_of,
    learn_forest,
    take_training,
)
from .pooling import Answer, ClassGoal, Goal, NumberGoal, Pool, ValidationRows, joined_stacks, stack

# ---- Which cells are hidden from rows: at random, or a block of neighbouring columns.


class Hidden(NamedTuple):
    """Rows that are there several times, each time with other cells hidden.

    row : int64 array (m,). The number of each row in the table.
    mask : bool array (m, d). Which of its cells are hidden.
    rate : float64 array (m,). About which share of its cells that is.
    """

    row: np.ndarray
    mask: np.ndarray
    rate: np.ndarray


def hide_at_random(n: int, d: int, rate: float | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Cells hidden completely at random, bool (n, d); ``rate`` is one number, or one for each row (n,)."""
    return np.asarray(rng.random((n, d)) < np.broadcast_to(rate, n)[:, None])


def hide_blocks(n: int, d: int, rate: float | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """About this share of neighbouring columns hidden from each row, bool (n, d), cyclically."""
    # Columns that stand together are often missing together, such as those of one questionnaire.
    width = np.floor(np.broadcast_to(rate, n) * d + rng.random(n))
    first = rng.integers(0, d, n)
    return np.asarray((np.arange(d) - first[:, None]) % d < width[:, None])


def validation_rows(rows: np.ndarray, d: int, rng: np.random.Generator, most: int) -> Hidden:
    """All rows as they are, and at most so many at each other rate, half with random cells hidden, half with blocks."""
    n = min(len(rows), most)
    parts = [Hidden(rows, np.zeros((len(rows), d), dtype=bool), np.zeros(len(rows)))]
    for rate in FIXED.rates[1:]:
        parts.append(Hidden(rng.permutation(rows)[:n], _hidden_cells(n, d, rate, rng), np.full(n, rate)))
    return Hidden(*map(np.concatenate, zip(*parts, strict=True)))


def hidden_copies(rows: np.ndarray, d: int, rng: np.random.Generator) -> Hidden:
    """Each row as it is, and copies of which any share is hidden."""
    n = len(rows)
    k = int(np.clip(FIXED.copied_rows // max(n, 1) - 1, 1, FIXED.copies))
    rate = np.concatenate([np.zeros(n), rng.random(n * k)])
    return Hidden(np.tile(rows, k + 1), _hidden_cells(n * (k + 1), d, rate, rng), rate)


def _hidden_cells(n: int, d: int, rate: float | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Cells hidden at random, or in a block, from each of n rows, bool (n, d)."""
    is_block = rng.permutation(n) % 2 == 0
    return np.where(is_block[:, None], hide_blocks(n, d, rate, rng), hide_at_random(n, d, rate, rng))


# ---- What a predictor learns from, and what it finds.


class PredictorProblem(NamedTuple):
    """What a predictor learns from, and how.

    training : Training. The table; its last column is the target.
    n_classes : int. 0 if the target is a number.
    fitted : Boosted or None. Trained trees, which alone answer rows without missing cells.
    tell : callable. Gets each line of progress.
    """

    training: Training
    n_classes: int
    boosting: Boosting
    fitted: Boosted | None
    budget: Budget
    seed: int
    tell: Callable[[str], None]

    def labelled(self, rows: np.ndarray) -> Labelled:
        """The rows of these numbers, as boosted trees learn from them."""
        X = self.training.X[rows]
        return Labelled(X[:, :-1], X[:, -1])

    def hidden(self, these: Hidden) -> Labelled:
        """Rows with cells hidden, as boosted trees learn from them."""
        X = self.training.X[these.row]
        return Labelled(np.where(these.mask, np.nan, X[:, :-1]), X[:, -1])

    def grid(self) -> np.ndarray:
        """Where CDFs of the target are read; empty of classes."""
        return np.empty(0) if self.n_classes else grid_of(self.training.X[:, -1], self.training.schema.columns[-1].step)

    def known(self) -> np.ndarray:
        """How often each feature is known at learning, (d,)."""
        return np.asarray((~np.isnan(self.training.X[:, :-1])).mean(axis=0))

    def misses_cells(self) -> bool:
        """Whether so many cells are missing that completed rows differ from the rows as they are."""
        known = self.known()
        return bool((1.0 - known[known > 0.0]).mean() >= FIXED.least_missing)

    def goal(self) -> Goal:
        """What is predicted."""
        y = self.training.X[:, -1]
        step = self.training.schema.columns[-1].step
        return ClassGoal(y, self.n_classes) if self.n_classes else NumberGoal(y, step)


class MemberLoss(NamedTuple):
    """Validation results of a member.

    loss : float64 array (rates,). Mean log-loss, or root mean squared error, at each of `Constants.rates`; or NaN.
    weight : float64 array (B,). Its weight at the pool's knots: zeros if the member is not kept.
    """

    name: str
    loss: np.ndarray
    weight: np.ndarray


class _Comparison(NamedTuple):
    """The pool, the names of the members that are kept, in its order, and validation results.

    members : tuple of MemberLoss. All members, those that are not kept, too.
    pool_loss : float64 array (rates,). Loss of the pool, as `MemberLoss` has it.
    """

    pool: Pool
    kept: list[str]
    members: tuple[MemberLoss, ...]
    pool_loss: np.ndarray


class LearnedMembers(NamedTuple):
    """Members that are kept, in the order of the pool; the joint, and what was compared.

    chosen : Chosen. The joint, and how it was chosen.
    n_held, n_folds : int. Number of validation rows, and of folds.
    settings : dict of str to Settings. Of boosted trees.
    penalty : float or None. Of the additive model.
    seconds : dict of str to float. What each stage took.
    """

    members: dict[str, Member]
    chosen: Chosen
    comparison: _Comparison
    n_held: int
    n_folds: int
    settings: dict[str, BoostingSettings]
    penalty: float | None
    seconds: dict[str, float]


# ---- Folds.


def cut_folds(X: np.ndarray, n_classes: int, seed: int) -> list[Fold]:
    """Folds of a table (n, d + 1), the target last; of larger tables only some rows are held out."""
    # A known cell of every column, and two rows of each class, are never held out. No fold if no row is left.
    n = len(X)
    rng = np.random.default_rng([seed, 1])
    place = rng.permutation(n)
    if n_classes:  # the rows of a class lie as far apart as they can
        place[np.lexsort((place, X[:, -1]))] = np.arange(n)
    rows, folds = np.arange(n), FIXED.folds if n < FIXED.few_rows else round(1.0 / FIXED.held_share)
    fold = place % folds
    fold[_needed(X, n_classes)] = -1
    if n < FIXED.few_rows:
        found = [Fold(rows[fold != k], rows[fold == k]) for k in range(folds)]
        return [one for one in found if len(one.held)]
    held = np.sort(rng.permutation(rows[fold == 0])[: FIXED.most_held])
    return [Fold(np.setdiff1d(rows, held), held)]


def _needed(X: np.ndarray, n_classes: int) -> list[int]:
    """Rows that are never held out."""
    needed = (~np.isnan(X)).argmax(axis=0).tolist()
    for k in range(n_classes):
        needed += np.flatnonzero(X[:, -1] == k)[:2].tolist()
    return sorted(set(needed))


# ---- Learning.


def learn_predictor(problem: PredictorProblem) -> LearnedMembers:
    """The members, learned from all rows, and their pool, by validation rows."""
    threads = n_threads() if problem.training.X.size >= FIXED.thread_cells else 1
    with threadpool_limits(limits=threads, user_api="openmp"):
        return _learn_stages(problem)


def _learn_stages(problem: PredictorProblem) -> LearnedMembers:
    """The stages one after the other; the random numbers of hidden cells are drawn in this order."""
    training, seed, clock = problem.training, problem.seed, _Clock(problem.tell)
    d, rng = training.X.shape[1] - 1, np.random.default_rng([seed, 2])
    folds = cut_folds(training.X, problem.n_classes, seed)
    # a single small fold is left out in the end, too: the models that it validates are then the final ones
    are_final = len(folds) == 1 and len(folds[0].held) <= FIXED.few_held * len(training.X)
    rows = folds[0].learn if are_final else np.arange(len(training.X))

    chosen = _choose_joint(problem, folds, rows)
    clock.stop("joint")
    n_hidden = min(FIXED.most_hidden, int(FIXED.hidden_share * len(training.X)))
    hidden = [validation_rows(fold.held, d, rng, -(-n_hidden // len(folds))) for fold in folds]
    completed = _completed_rows(problem, chosen.model, rows)
    draws_alone = problem.misses_cells()  # many cells are drawn from a smaller joint, as by a forest alone
    forest = learn_forest(take_training(training, rows, None if draws_alone else completed), seed)
    clock.stop("generative forest")
    joints = [chosen.model] if are_final else _joints_of_folds(problem, chosen, folds)
    clock.stop("joints of the folds")
    pairs = [
        (completed if are_final else _completed_rows(problem, joint, fold.learn), problem.labelled(fold.held))
        for joint, fold in zip(joints, folds, strict=True)
    ]
    learned_from, trees = _cross_fit(problem, completed, pairs, folds, hidden, rng)
    clock.stop("boosted trees of the folds")
    additive = AdditiveLearner(boosting_table(training.schema), problem.n_classes, seed)
    sums, penalty = additive.cross_fit(pairs)
    clock.stop("additive models of the folds")
    answers = []
    for k, fold in enumerate(folds):
        drawn = None if draws_alone else pairs[k][0]
        own = forest if are_final else learn_forest(take_training(training, fold.learn, drawn), seed, forest)
        team = _trained(own, joints[k], {name: found[k] for name, (found, _) in trees.items()}, sums[k], problem.grid())
        evidence = evidence_of(training, hidden[k].row, hidden[k].mask)
        answers.append(ask_members(team, joints[k], evidence, seed))
    clock.stop("validation")

    comparison = _compare(problem, list(trees), answers, hidden)
    kept = comparison.kept
    final = _learn_again(problem, kept, learned_from, trees, are_final)
    clock.stop("boosted trees")
    total = sums[0] if are_final or ADDITIVE not in kept else additive.learn(completed, penalty)
    clock.stop("additive model")
    members = _trained(forest, chosen.model, final, total, problem.grid())
    return LearnedMembers(
        {name: members[name] for name in kept},
        chosen,
        comparison,
        sum(len(fold.held) for fold in folds),
        len(folds),
        {name: settings for name, (_, settings) in trees.items() if name in kept},
        penalty,
        clock.seconds,
    )


def _choose_joint(problem: PredictorProblem, folds: list[Fold], rows: np.ndarray) -> Chosen:
    """The joint of these rows; candidates are compared in the folds, so that the joints of folds are learned once."""
    # Forests are no candidates: a generative forest is a member already, and a second one takes long to answer. Nor
    # are trees of factors: learning and comparing them takes a third of the time of small tables and gains nothing.
    training, start = problem.training, time.monotonic()
    task = Task(
        training.schema, training.X[rows], None, problem.budget, problem.seed, start, problem.tell,
        with_forests=False, with_factors=False, ranges=None if training.ranges is None else training.ranges.take(rows),
    )  # fmt: skip
    if len(folds) > 1 and not problem.budget.is_clock:
        task = task._replace(folds=tuple(folds))
    return choose(task)


_Trees = dict[str, tuple[list[Boosted], BoostingSettings]]
"""By the names of members: boosted trees of each fold, and what was chosen."""


def _joints_of_folds(problem: PredictorProblem, chosen: Chosen, folds: list[Fold]) -> list[Distribution]:
    """The joint of each fold, which has not seen the rows that are held out."""
    if chosen.of_folds:
        return list(chosen.of_folds)
    schema, X = problem.training.schema, problem.training.X
    return [chosen.recipe.learn(schema, X[fold.learn], problem.seed) for fold in folds]


def _completed_rows(problem: PredictorProblem, joint: Distribution, rows: np.ndarray) -> Labelled:
    """The rows of these numbers, whose missing cells are draws given the row and its target."""
    X = problem.training.X[rows]
    holed = np.flatnonzero(np.isnan(X).any(axis=1))
    drawn = sample(joint, build(problem.training.schema, X[holed]), 1, problem.seed, False)
    X[holed] = np.where(np.isnan(drawn), X[holed], drawn)  # rows of which the joint has no draw keep what is known
    return Labelled(X[:, :-1], X[:, -1])


def _cross_fit(
    problem: PredictorProblem,
    completed: Labelled,
    completed_pairs: list[LabelledPair],
    folds: list[Fold],
    hidden: list[Hidden],
    rng: np.random.Generator,
) -> tuple[dict[str, Labelled], _Trees]:
    """Rows that boosted trees learn from in the end and in the folds: as they are, and copies with hidden cells."""
    # The joint of their fold completes ``completed_pairs``: else validation rows would have a part in what trees learn.
    # Where cells are missing at learning, trees also answer by their own rule, with the iterations that suit such rows.
    # An estimator that refuses missing cells learns from completed rows, and from no copies.
    every, d = np.arange(len(problem.training.X)), problem.training.X.shape[1] - 1
    rows, trees = {EXPECTED: problem.labelled(every), MASKED: problem.hidden(hidden_copies(every, d, rng))}, {}

    pairs = [(problem.labelled(fold.learn), problem.labelled(fold.held)) for fold in folds]
    trees[EXPECTED], native = problem.boosting.cross_fit_twice(pairs)
    if folds and not trees[EXPECTED][0]:
        rows[EXPECTED] = completed
        trees[EXPECTED] = problem.boosting.cross_fit(completed_pairs)
    elif np.isnan(rows[EXPECTED].X).any() or not problem.boosting.learns:
        rows[NATIVE], trees[NATIVE] = rows[EXPECTED], native
    if not problem.boosting.learns:
        return rows, trees
    of_copies = [
        (problem.hidden(hidden_copies(fold.learn, d, rng)), problem.hidden(these))
        for fold, these in zip(folds, hidden, strict=True)
    ]
    masked = problem.boosting.cross_fit(of_copies, trees[EXPECTED][1])
    if masked[0] or not folds:
        trees[MASKED] = masked
    if NATIVE in trees and problem.misses_cells():
        rows[COMPLETED], settings = completed, trees[EXPECTED][1]
        trees[COMPLETED] = [problem.boosting.learn(part, settings) for part, _ in completed_pairs], settings
    return rows, trees


def _learn_again(
    problem: PredictorProblem, kept: list[str], learned_from: dict[str, Labelled], trees: _Trees, are_final: bool
) -> dict[str, Boosted]:
    """Boosted trees of the kept members, learned from all rows; those of the same rows and settings only once."""
    as_given = {} if problem.fitted is None else {EXPECTED: problem.fitted, NATIVE: problem.fitted}
    found: dict[str, Boosted] = {}
    for name in kept:
        if name not in trees or name in as_given:
            continue
        of_folds, settings = trees[name]
        twins = [one for one in found if learned_from[one] is learned_from[name] and trees[one][1] == settings]
        if twins:
            found[name] = found[twins[0]]
        else:
            found[name] = of_folds[0] if are_final else problem.boosting.learn(learned_from[name], settings)
    return as_given | found


# ---- The pool, and the members that are kept.


def _compare(
    problem: PredictorProblem, boosted: list[str], answers: list[dict[str, Answer]], hidden: list[Hidden]
) -> _Comparison:
    """The pool by the answers of each fold, the members that are kept, and the validation results of each."""
    goal, names = problem.goal(), [FOREST, JOINT, *boosted, ADDITIVE]
    anchor = None if problem.fitted is None else EXPECTED
    if not answers:
        pool = goal.equal(len(names), len((FOREST, JOINT)), names.index(anchor) if anchor else None)
        nothing = np.full(len(FIXED.rates), np.nan)
        losses = tuple(MemberLoss(name, nothing, pool.weight[:, k]) for k, name in enumerate(names))
        return _Comparison(pool, names, losses, nothing)
    validation = _validation(problem, hidden)
    each = {name: joined_stacks([found[name] for found in answers]) for name in names}
    rate = np.searchsorted(FIXED.rates, np.concatenate([h.rate for h in hidden]))

    def at_rates(loss: np.ndarray) -> np.ndarray:
        return np.bincount(rate, loss) / np.bincount(rate)

    def fit(kept: list[str]) -> tuple[Pool, float]:
        stacked = stack([each[name] for name in kept])
        pool = goal.fit(stacked, validation, kept.index(anchor) if anchor else None)
        return pool, goal.total(at_rates(pool.criterion(stacked, validation)))

    least_gain = FIXED.least_gain_with_missing if problem.misses_cells() else FIXED.least_gain
    kept, (pool, total) = list(names), fit(names)
    for name in [FOREST, *boosted, ADDITIVE, JOINT]:  # the slowest to be asked first
        others = [one for one in kept if one != name]
        knows_spread = problem.n_classes > 0 or FOREST in others or JOINT in others
        if others and knows_spread and name != anchor:
            without, its_total = fit(others)
            if its_total < total + least_gain:
                kept, pool, total = others, without, its_total

    members = []
    for name in names:
        loss = goal.shown(at_rates(goal.losses(stack([each[name]]), validation)))
        weight = pool.weight[:, kept.index(name)] if name in kept else np.zeros(len(FIXED.knots))
        members.append(MemberLoss(name, loss, weight))
    pool_loss = goal.shown(at_rates(pool.losses(stack([each[name] for name in kept]), validation)))
    return _Comparison(pool, kept, tuple(members), pool_loss)


def _validation(problem: PredictorProblem, hidden: list[Hidden]) -> ValidationRows:
    """The validation rows of all folds, one after the other."""
    X = problem.training.X
    rows, mask = np.concatenate([h.row for h in hidden]), np.vstack([h.mask for h in hidden])
    share = missing_share(np.where(mask, np.nan, X[rows, :-1]), problem.known())
    return ValidationRows(X[rows, -1], share, len(np.unique(rows)))


def _trained(
    forest: Any, joint: Distribution, trees: dict[str, Boosted], additive: Additive, grid: np.ndarray
) -> dict[str, Member]:
    """Members by name; those of boosted trees as far as there are any."""
    found: dict[str, Member] = {
        FOREST: Conditional(forest.joint_.distribution, forest._query_beta, grid),
        JOINT: Conditional(joint, 1.0, grid),
        ADDITIVE: ExpectedAdditive(additive, boosting_table(joint.schema).is_level),
    }
    for name in (EXPECTED, COMPLETED):
        if name in trees:
            found[name] = ExpectedBoosting(trees[name], joint)
    for name in (MASKED, NATIVE):
        if name in trees:
            found[name] = NativeBoosting(trees[name])
    return found


def missing_share(cells: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The share of each row (n, d) that is missing, (n,); a column counts as much as it is known at learning (d,)."""
    total = float(known.sum())
    return np.asarray(np.isnan(cells) @ known / total) if total else np.zeros(len(cells))


class _Clock:
    """What stages of the work took."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._tell, self._last = tell, time.monotonic()

    def stop(self, stage: str) -> None:
        """End a stage."""
        now = time.monotonic()
        self.seconds[stage] = now - self._last
        self._last = now
        self._tell(f"{stage}: {self.seconds[stage]:.1f} s")
