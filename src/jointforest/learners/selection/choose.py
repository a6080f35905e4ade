"""The choice: candidates compared on validation rows, the chosen one learned from all rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from ...api.fit_report import CandidateReport, FitReport
from ...data.discretization.learn import has_far_values
from ...data.evidence import build
from ...data.ranges import Ranges
from ...data.schema import Schema, kernel_columns
from ...evaluation.columns_and_pairs import some, table_cells
from ...evaluation.statements import Statements
from ...evaluation.two_sample_test import told_apart
from ...inference.sampling import sample
from ...models.base import Distribution
from ...models.mixture import mixture_of
from ...runtime import progress
from ..hidden_tree.hidden_tree_forest import HiddenTreeForest
from ..hidden_tree.missing_cells import columns_explain
from ..rows import TableRows
from ..rules import Reduced
from .answers import Answers, Pairs, answers, joined, pairs_of, score
from .budget import Budget, Candidate, Learner, candidates, learn
from .constants import FIXED
from .folds import Fold, known_levels, pick_rows, split_folds
from .matching import is_nearer, matched_distances, matching_costs, spreads

_BAR = 1_000
"""Steps of a progress bar for each second that is expected: a bar needs two steps at least."""


# ---- What is chosen for, and what a choice is.


class Task(NamedTuple):
    """A table to learn the joint distribution of.

    cells : float64 array (n, d). Encoded and snapped.
    holdout : float64 array (m, d), optional. Validation rows.
    start : float. When the clock was started, in seconds of `time.monotonic`.
    tell : callable. Called with each line of progress.
    reduced : Reduced, optional. The table without what its rules determine, which is what is learned.
    folds : tuple of Fold. Those to compare in, whose models are wanted too; empty: they are cut here.
    objective : {"draws", "likelihood"}. As `HiddenTreeForest` has it; with "likelihood" no candidate is dropped for its
        draws.
    with_forests : bool. Whether forests and joint trees are candidates beside hidden trees.
    ranges : Ranges, optional. Which cells are ranges; candidates are compared on draws from these.
    with_factors : bool. Whether hidden trees of factors may be candidates.
    """

    schema: Schema
    cells: np.ndarray
    holdout: np.ndarray | None
    budget: Budget
    seed: int
    start: float
    tell: Callable[[str], None]
    reduced: Reduced | None = None
    folds: tuple[Fold, ...] = ()
    objective: str = "draws"
    with_forests: bool = True
    ranges: Ranges | None = None
    with_factors: bool = True

    def candidates(self, budget: Budget) -> list[Candidate]:
        """The candidates of a budget."""
        n, d = self.cells.shape
        known = 1.0 - float(np.isnan(self.cells).mean())
        numbers = float(np.mean([not column.is_categorical for column in self.schema.columns]))
        listed = candidates(budget, n, d, self.objective, known, numbers)
        return [
            one
            for one in listed
            if (self.with_forests or isinstance(one.learner, HiddenTreeForest))
            and (self.with_factors or getattr(one.learner, "start", "") != "factors")
        ]

    def learn(
        self, learner: Learner, cells: np.ndarray, ranges: Ranges | None = None, rows: TableRows | None = None
    ) -> Distribution:
        """The model of rows of the table (n, d), which obey its rules; ``rows`` as `budget.learn` takes them."""
        seed, reduced = self.seed_of_learners(), self.reduced
        if reduced is None:
            return learn(learner, self.schema, cells, seed, ranges, rows)
        ranges = reduced.ranges_of(self.schema, ranges)
        return reduced.ruled(learn(learner, reduced.schema, reduced.of_rows(cells), seed, ranges, rows))

    def completed(self, split: Split) -> Split:
        """The split with its rows completed, once for all forests and joint trees among the candidates."""
        if all(isinstance(one.learner, HiddenTreeForest) for one in self.candidates(self.budget)):
            return split
        schema, cells = self.schema, split.learn
        if self.reduced is not None:
            schema, cells = self.reduced.schema, self.reduced.of_rows(cells)
        rows = TableRows(schema, kernel_columns(schema), cells, cells)
        return split._replace(rows=rows.completed(None, self.seed_of_learners()))

    def known_cells(self, learn: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Held-out cells, missing where no row to learn from has the level, or has the cells of a compound together."""
        held = known_levels(learn, held, np.array([column.is_categorical for column in self.schema.columns]))
        if self.reduced is not None:
            of_learn, of_held = self.reduced.of_rows(learn), self.reduced.of_rows(held)
            for at, members in self.reduced.coordinates.compounds.items():
                is_new = ~np.isnan(of_held[:, at]) & ~np.isin(of_held[:, at], of_learn[:, at])
                held[np.ix_(is_new, np.array(members, np.int64))] = np.nan
        return held

    def asked(self) -> list[int]:
        """The columns that candidates are asked about: not sums, as answers about many of them would take long."""
        if self.reduced is None:
            return list(range(len(self.schema.columns)))
        return [j for j, source in enumerate(self.reduced.coordinates.sources) if source.is_one]

    def pairs(self) -> Pairs | None:
        """What candidates are asked about validation rows; None of one column, or where only the likelihood counts."""
        asked = self.asked()
        if self.objective != "draws" or len(asked) < 2:
            return None
        columns = tuple(self.schema.columns[j] for j in asked)
        return pairs_of(replace(self.schema, columns=columns), self.cells[:, asked], self.seed)

    def without_unfit_learners(self) -> Task:
        """The task without learners that would not keep which cells are missing, or a value far from all others."""
        schema, cells = self.schema, self.cells
        if self.reduced is not None:
            schema, cells = self.reduced.schema, self.reduced.of_rows(cells)
        numbers = ((column, cells[:, j]) for j, column in enumerate(schema.columns) if not column.is_categorical)
        far = next((column.name for column, x in numbers if has_far_values(column, x)), None)
        if far is not None:  # a leaf spreads it over all of its rows, and factors give it to rows of the highest values
            self.tell(
                f"forests, joint trees and trees of factors are excluded: a value of {far!r} lies far from all others"
            )
            return self._replace(with_forests=False, with_factors=False)
        if self.with_forests and self.ranges is None and columns_explain(schema, cells):
            self.tell("forests and joint trees are excluded: they would not keep which cells are missing")
            return self._replace(with_forests=False)
        return self

    def left(self) -> float:
        """Seconds that the clock leaves."""
        return self.budget.seconds - (time.monotonic() - self.start)

    def fits(self, seconds: float) -> bool:
        """Whether the clock leaves so much time; a named budget does not look at it."""
        return not self.budget.is_clock or seconds <= self.left()

    def seed_of_learners(self) -> int:
        """The seed that a learner draws for itself, given this one: so each learns what it learns by hand."""
        return int(check_random_state(self.seed % 2**32).randint(2**31 - 1))


class Recipe(NamedTuple):
    """How the chosen model is learned, so that other rows of its table can be learned from in the same way.

    weight : float64 array (K,). Of each in the mixture.
    """

    learners: tuple[Learner, ...]
    weight: np.ndarray

    def learn(self, schema: Schema, cells: np.ndarray, seed: int) -> Distribution:
        """The model of encoded and snapped rows (n, d); every column has a known cell."""
        return _mixed([learn(learner, schema, cells, seed) for learner in self.learners], self.weight)


class Chosen(NamedTuple):
    """The model, how it was learned, the contents of its `FitReport`, and the same learned in each of `Task.folds`.
    There are no models of folds where nothing was compared."""

    model: Distribution
    recipe: Recipe
    candidates: tuple[CandidateReport, ...]
    weight: dict[str, float]
    held_out: str
    why: str
    left_out: tuple[str, ...]
    of_folds: tuple[Distribution, ...] = ()

    def report(self, budget: str | float, seconds: float, found: Statements | None = None) -> FitReport:
        """The report of a choice that took so many seconds in all, and of the statements of its joint."""
        return FitReport(budget, self.candidates, self.weight, self.held_out, self.why, self.left_out, seconds, found)


# ---- The choice: compare, decide, and learn what was decided in the time that is left.


def choose(task: Task) -> Chosen:
    """Compare, decide, learn from all rows."""
    known = task.candidates(task.budget)
    if len(known) > 1:
        task = task.without_unfit_learners()
        known = task.candidates(task.budget)
    if len(known) == 1:
        why = "the only candidate"
        if task.with_forests:
            why = "no other learner was tried, to save time on a large table; "
            why += "budget='default' (--budget default) tries them"
        return _without_choice(task, known[0], "no rows", why)
    splits, held_out = _splits(task)
    if not splits:
        return _without_choice(task, known[0], held_out, "no row can be held out")
    # in seconds that are expected: each candidate learns from the rows of the splits, and one of them from all rows
    rows = sum(len(split.learn) for split in splits)
    each_row = [one.seconds_per_row for one in known]
    work = rows * sum(each_row) + len(task.cells) * max(each_row)
    with progress.bar(max(_BAR * work, 2.0), "learning"):
        return _choice(task, splits, held_out)


def _choice(task: Task, splits: list[Split], held_out: str) -> Chosen:
    """The best of all candidates, learned from all rows."""
    compared, left_out = _compare_all(task, [task.completed(split) for split in splits])
    may_mix = len(splits[0].learn) >= FIXED.share_to_mix * len(task.cells)
    decision = decide(compared, len(task.schema.columns), task.seed, may_mix)
    reports = [
        CandidateReport(one.candidate.name, one.mean, one.seconds, one.told_apart, one.answered) for one in compared
    ]
    if not np.isnan(decision.mixture):
        reports.append(CandidateReport("mixture", decision.mixture, 0.0))
    ending = _in_time(task, compared, decision, splits)
    why = decision.why if not ending.left_out else "the best for which there is time"
    used = np.flatnonzero(ending.weight)
    models = []
    for one in (compared[k] for k in used.tolist()):
        if ending.rows is not None:
            task.tell(f"{one.candidate.name}: learning from {len(ending.rows):,} rows")
            with progress.part(_BAR * one.candidate.seconds_per_row * len(ending.rows)):
                ranges = None if task.ranges is None else task.ranges.take(ending.rows)
                models.append(task.learn(one.candidate.learner, task.cells[ending.rows], ranges))
        else:
            models.append(one.models[0])
    weight = ending.weight[used]
    named = {compared[k].candidate.name: float(ending.weight[k]) for k in used.tolist()}
    recipe = Recipe(tuple(compared[k].candidate.learner for k in used.tolist()), weight)
    each_fold = zip(*(compared[k].models for k in used.tolist()), strict=True)
    of_folds = tuple(_mixed(found, weight) for found in each_fold) if task.folds else ()
    left_out += ending.left_out
    return Chosen(_mixed(models, weight), recipe, tuple(reports), named, held_out, why, tuple(left_out), of_folds)


def _without_choice(task: Task, first: Candidate, held_out: str, why: str) -> Chosen:
    """The first candidate, learned from all rows."""
    model = task.learn(first.learner, task.cells, task.ranges)
    return Chosen(model, Recipe((first.learner,), np.ones(1)), (), {first.name: 1.0}, held_out, why, ())


def _mixed(models: Sequence[Distribution], weight: np.ndarray) -> Distribution:
    """The mixture; of one model, the model itself."""
    return models[0] if len(models) == 1 else mixture_of(models, weight)


# ---- Rows to learn from and validation rows.


class Split(NamedTuple):
    """Rows to learn from and validation rows, encoded: (n, d) and (m, d); and the first ones as `Task.learn` takes
    them."""

    learn: np.ndarray
    held: np.ndarray
    rows: TableRows | None = None


def _splits(task: Task) -> tuple[list[Split], str]:
    """Rows to learn from and validation rows, and in words which; no split if all rows are equal."""
    cells, budget = task.cells, task.budget
    n, rows = len(cells), budget.rows
    if task.folds:
        return _in_folds(cells, list(task.folds))
    if budget.is_clock:
        first = task.candidates(budget)[0]
        rows = min(rows, max(FIXED.fewest_rows, int(FIXED.first_share * budget.seconds / first.seconds_per_row)))
    if task.holdout is not None:
        chosen = pick_rows(cells, rows, task.seed)
        return [Split(cells[chosen], task.holdout)], f"the {len(task.holdout):,} rows of holdout"
    wanted = int(np.ceil(budget.held_rows / (FIXED.held_share * n)))
    is_in_folds = n < FIXED.few_rows and wanted > 1 and FIXED.folds * n <= rows
    folds = split_folds(cells, rows, FIXED.folds if is_in_folds else 1, FIXED.held_share, task.seed)[: max(wanted, 1)]
    if not folds:
        return [], "no rows: all are equal"
    return _in_folds(cells, folds)


def _in_folds(cells: np.ndarray, folds: list[Fold]) -> tuple[list[Split], str]:
    n, held = len(cells), sum(len(fold.held) for fold in folds)
    splits = [Split(cells[fold.learn], cells[fold.held]) for fold in folds]
    if len(folds) == 1:
        return splits, f"{held:,} held-out rows, learned from {len(splits[0].learn):,}"
    part = "" if held == n else f"{held:,} of "
    return splits, f"{part}{n:,} rows, each held out once in {len(folds)} folds"


# ---- Candidates learned from some rows, compared on the others, and by a classifier of their draws and the rows.


class Compared(NamedTuple):
    """A candidate's results on the validation rows.

    log_density : float64 array (m,). Of the validation rows of all splits, one after the other.
    told_apart : float. Score of its draws beside the rows that it learned from (1: cannot be told); NaN in several
        splits or few rows, and where the objective is likelihood.
    seconds : float. To learn in all splits, and to compute log-densities, answers and distances of draws.
    models : tuple of Distribution. Of each split, where `Task.folds` asks for them; else of the first alone, as models
        take memory.
    costs : tuple of arrays. Of each split, distances of draws to held-out rows (`matching_costs`), where a candidate is
        chosen by them.
    answers : Answers, optional. About some of the validation rows.
    """

    candidate: Candidate
    log_density: np.ndarray
    told_apart: float
    seconds: float
    models: tuple[Distribution, ...]
    costs: tuple[np.ndarray, ...] = ()
    answers: Answers | None = None

    @property
    def mean(self) -> float:
        return float(self.log_density.mean())

    @property
    def answered(self) -> float:
        """Score of its answers; NaN where none were asked for."""
        return np.nan if self.answers is None else score([self.answers], np.ones(1))


def _compare_all(task: Task, splits: list[Split]) -> tuple[list[Compared], list[str]]:
    """Candidates compared, and the names of those for which the clock leaves no time."""
    n = len(task.cells)
    rows = sum(len(split.learn) for split in splits)
    budget, speed = task.budget, 1.0
    compared: list[Compared] = []
    left_out: list[str] = []
    pairs = task.pairs()
    for k in range(len(task.candidates(budget))):
        # a slower machine has smaller candidates, as many and in the same order
        candidate = task.candidates(budget._replace(seconds=budget.seconds / speed))[k]
        if compared and not task.fits(speed * candidate.seconds_per_row * (rows + FIXED.worth * n)):
            left_out.append(candidate.name)
            continue
        if budget.is_clock:
            _compile(candidate)
        with progress.part(_BAR * candidate.seconds_per_row * rows):
            one = compare_candidate(candidate, task, splits, pairs)
        if budget.is_clock:
            speed = one.seconds / (rows * candidate.seconds_per_row)
        compared.append(one)
        task.tell(f"{candidate.name}: validation log-density {one.mean:.4f}, {one.seconds:.1f} s")
    return compared, left_out


def _compile(candidate: Candidate) -> None:
    """Learn next to nothing, so that the time of what comes next is not that of compilation."""
    clone(candidate.learner).fit(np.random.default_rng(0).standard_normal((20, 2)))


def compare_candidate(candidate: Candidate, task: Task, splits: list[Split], pairs: Pairs | None) -> Compared:
    """Learn a candidate from each split, and validate it."""
    start = time.monotonic()
    schema, seed = task.schema, task.seed_of_learners()
    models: list[Distribution] = []
    log_densities, costs = [], []
    is_matched = any(one.is_for_draws for one in task.candidates(task.budget))
    spread = spreads(schema, task.cells)
    asked, each_answers = task.asked(), []
    for split in splits:
        model = task.learn(candidate.learner, split.learn, rows=split.rows)
        if task.folds or not models:
            models.append(model)
        held = task.known_cells(split.learn, split.held)
        log_densities.append(model.log_density(build(schema, held)))
        if pairs is not None:
            rows = held[some(len(held), FIXED.answered_rows // len(splits), np.random.default_rng(seed))]
            each_answers.append(answers(model.marginalize(asked), pairs, rows[:, asked]))
        if is_matched:
            drawn = sample(model, build(model.schema, n=1), FIXED.matched_rows, seed, False)
            costs.append(matching_costs(schema, drawn, split.held, spread))
    seconds = time.monotonic() - start
    is_scored = len(splits) == 1 and task.objective == "draws"
    told = _told_apart_score(models[0], splits[0].learn, seed) if is_scored else np.nan
    found = joined(each_answers) if each_answers else None
    return Compared(candidate, np.concatenate(log_densities), told, seconds, tuple(models), tuple(costs), found)


def _told_apart_score(model: Distribution, learned: np.ndarray, seed: int) -> float:
    """Told-apart score of as many draws as rows, by scikit-learn: the choice must not depend on what is installed."""
    n, d = learned.shape
    if n < FIXED.told_apart_rows:
        return np.nan
    rows = learned[some(n, max(FIXED.told_apart_cells // d, FIXED.told_apart_rows), np.random.default_rng(seed))]
    drawn = sample(model, build(model.schema, n=1), len(rows), seed, True)
    unseen = np.zeros(rows.shape, bool)
    real, synthetic = (table_cells(model.schema, X, unseen) for X in (rows, drawn))
    return told_apart(real, synthetic, seed, may_xgboost=False).score


# ---- One candidate, or a mixture of some: by validation rows, among those whose draws are good.


class Decision(NamedTuple):
    """Which candidates are used.

    weight : float64 array (K,). Of each candidate.
    best : int. Number of the best one alone.
    mixture : float. Mean log-density of the best mixture; NaN where none was tried.
    """

    weight: np.ndarray
    best: int
    mixture: float
    why: str


def validation_score(compared: Sequence[Compared], weight: np.ndarray, d: int) -> float:
    """Validation score of a mixture of candidates with weight (K,): log-likelihood a row of d columns over d, and the
    score of answers about pairs of columns, where these are asked for."""
    table = np.column_stack([one.log_density for one in compared])
    found = [one.answers for one in compared if one.answers is not None]
    of_answers = score(found, weight) if len(found) == len(compared) else 0.0
    return float(members_log_density(table, weight).mean()) / d + of_answers


def decide(compared: list[Compared], d: int, seed: int, may_mix: bool = True) -> Decision:
    """The weights of candidates for a table of d columns, the last of which may be one for draws."""
    # It gets the weight of the highest score with which draws are nearer to held-out rows, if the score does not fall.
    # The others keep the shares of `decide_by_score` in the rest.
    if not compared[-1].candidate.is_for_draws or len(compared) == 1:
        return decide_by_score(compared, d, may_mix)
    decision = decide_by_score(compared[:-1], d, may_mix)
    without = decision._replace(weight=np.append(decision.weight, 0.0))
    if not may_mix:
        return without

    def distance(weight: np.ndarray) -> np.ndarray:
        each = zip(*(one.costs for one in compared), strict=True)
        return np.concatenate([matched_distances(costs, weight, seed) for costs in each])

    least, before = validation_score(compared, without.weight, d), distance(without.weight)
    tried = [np.append((1.0 - share) * decision.weight, share) for share in FIXED.shares]
    # from the highest score down, so that the distance, which takes longer, is computed as seldom as possible
    for now, weight in sorted(((validation_score(compared, one, d), one) for one in tried), key=lambda one: -one[0]):
        if now >= least and is_nearer(after := distance(weight), before):
            nearer = 1.0 - after.mean() / before.mean()
            why = f"draws {nearer:.1%} nearer to validation rows; the score changes by {now - least:+.3f}"
            return Decision(weight, decision.best, _mean_log_density(compared, weight), why)
    return without


def decide_by_score(compared: list[Compared], d: int, may_mix: bool = True) -> Decision:
    """The weights of candidates for a table of d columns: one has all, or a mixture is better by enough."""
    # A candidate whose draws a classifier tells from the rows more easily has weight 0, whatever its score: a forest in
    # a mixture may raise the likelihood and weaken the dependence of the columns.
    has_draws, has_answers = have_good_draws(compared), have_good_answers(compared)
    is_good = has_draws & has_answers if (has_draws & has_answers).any() else has_draws
    each = np.eye(len(compared))
    alone = np.array([validation_score(compared, weight, d) for weight in each])
    best = int(np.where(is_good, alone, -np.inf).argmax())
    if len(compared) == 1:
        return Decision(each[0], 0, np.nan, "the only candidate")
    used = np.flatnonzero(is_good).tolist()
    if len(used) == 1:
        what = "answers are" if has_draws.all() else "draws and answers are both"
        why = f"the only candidate whose {what} nearly as good as the best"
        if np.count_nonzero(has_draws) == 1:
            other = max(one.told_apart for one in compared[:best] + compared[best + 1 :])
            scores = f"score {compared[best].told_apart:.2f}; next {other:.2f}"
            why = f"rows drawn are the hardest to tell from the table's ({scores})"
        return Decision(each[best], best, np.nan, why)
    gap = alone[best] - max(alone[k] for k in used if k != best)
    better = f"validation score better by {gap:.3f} than the next"
    if not has_answers.all() and (has_draws & has_answers).any():
        better += " that was not excluded for its answers"
    if not has_draws.all():
        better += f" whose draws are as hard to tell from the table's (score {compared[best].told_apart:.2f})"
    if not may_mix or len(compared[0].log_density) < FIXED.fewest_to_mix:
        return Decision(each[best], best, np.nan, better)
    weight, now, mixture = each[best], alone[best], np.nan
    while True:  # the share of one more candidate, or a larger one, that is best
        tried = [(1.0 - share) * weight + share * each[k] for k in used for share in FIXED.shares]
        found = np.array([validation_score(compared, one, d) for one in tried])
        top = int(found.argmax())
        if np.isnan(mixture):
            mixture = _mean_log_density(compared, tried[top])
        if not found[top] > now + FIXED.mixture_gain:
            break
        weight, now = tried[top], found[top]
    if np.count_nonzero(weight) > 1:
        why = f"validation score better by {now - alone[best]:.3f} than that of the best alone"
        return Decision(weight, best, _mean_log_density(compared, weight), why)
    return Decision(weight, best, mixture, f"{better}; a mixture would add less than {FIXED.mixture_gain}")


def _mean_log_density(compared: Sequence[Compared], weight: np.ndarray) -> float:
    """Mean validation log-density of a mixture."""
    return float(members_log_density(np.column_stack([one.log_density for one in compared]), weight).mean())


def have_good_draws(compared: Sequence[Compared]) -> np.ndarray:
    """Which candidates' told-apart scores (K,) are as good as the best, but for noise; all if one is not known."""
    found = np.array([one.told_apart for one in compared])
    if np.isnan(found).any():
        return np.ones(len(found), bool)
    is_good: np.ndarray = found >= found.max() - FIXED.told_apart_tolerance
    return is_good


def have_good_answers(compared: Sequence[Compared]) -> np.ndarray:
    """Which candidates' answers (K,) about partners drawn at random are as good as the best, but for noise."""
    # a tree may have learned the strongest dependence only
    found = np.array([0.0 if one.answers is None else score([one.answers], np.ones(1), True) for one in compared])
    is_good: np.ndarray = found >= found.max() - FIXED.answers_tolerance
    return is_good


# ---- What the clock leaves time for.


class _Ending(NamedTuple):
    """What there is time for.

    weight : float64 array (K,). Of each candidate.
    rows : integer array or None. The rows to learn them from; None: the models of the comparison are kept.
    left_out : list of str. What there is no time for.
    """

    weight: np.ndarray
    rows: np.ndarray | None
    left_out: list[str]


def _in_time(task: Task, compared: list[Compared], decision: Decision, splits: list[Split]) -> _Ending:
    """What the clock leaves time for: the decision, else the best candidate, else that from a share of the rows."""
    # Where there is time for no more rows than it has seen, it is as it was learned from those.
    n, seen, weight, best = len(task.cells), len(splits[0].learn), decision.weight, decision.best
    everything = np.arange(n)
    if len(splits) == 1 and seen == n:
        return _Ending(weight, None, [])
    seconds = np.array([one.seconds for one in compared]) * n / sum(len(split.learn) for split in splits)
    if task.fits(float(seconds[weight > 0].sum())):
        return _Ending(weight, everything, [])
    alone = np.eye(len(compared))[best]
    if task.fits(float(seconds[best])):
        wanted = " + ".join(one.candidate.name for one, w in zip(compared, weight, strict=True) if w > 0)
        return _Ending(alone, everything, [wanted])
    rows = int(n * FIXED.careful * task.left() / seconds[best])
    if rows <= seen:
        return _Ending(alone, None, [f"{n - seen:,} of {n:,} rows"])
    chosen = pick_rows(task.cells, rows, task.seed)
    return _Ending(alone, chosen, [f"{n - rows:,} of {n:,} rows"])


# ---- Log-density of a mixture of models.


def members_log_density(log_density: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Log-density (n,) of the mixture; -inf where all members say so. Members of weight 0 do not count."""
    used = weight > 0
    with np.errstate(divide="ignore"):
        log_mixture: np.ndarray = np.logaddexp.reduce(log_density[:, used] + np.log(weight[used]), axis=1)
    return log_mixture
