"""The choice: candidates compared on a part of the rows, the chosen learned from all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from ...face.fit_report import Judged
from ...model.model import Model
from ...queries.reshape.mix import mix
from ...table.schema import Schema
from ..hidden_tree_forest import MANY_ROWS
from .budget import Budget
from .candidates import FEW_ROWS, Candidate, candidates, learn
from .compare import Compared, Split, compare
from .decide import Decision, decide
from .folds import cut, some_rows

_HELD_SHARE = 0.2
_FOLDS = 5
_FIRST = 0.1  # share of the clock's seconds for the first candidate
_SHARE_TO_MIX = 0.5  # of the rows: weights that fit what fewer rows teach would give forests of boxes too much
_WORTH = 0.25  # share of the rows that a candidate must have time to learn from
_CAREFUL = 0.8  # share of the time left that is planned for
_FEWEST_ROWS = 50  # on which candidates are compared however little time there is


class Task(NamedTuple):
    """A table to learn the joint distribution of.

    Attributes
    ----------
    schema : Schema
    cells : float64 array (n, d)
        Encoded and snapped.
    holdout : float64 array (m, d), optional
        Rows to judge by.
    budget : Budget
    seed : int
    n_jobs : int or None
    start : float
        When the clock was started, in seconds of `time.monotonic`.
    tell : callable
        Is told what happens, a line each.
    """

    schema: Schema
    cells: np.ndarray
    holdout: np.ndarray | None
    budget: Budget
    seed: int
    n_jobs: int | None
    start: float
    tell: Callable[[str], None]

    def left(self) -> float:
        """Seconds that the clock leaves."""
        return self.budget.seconds - (time.monotonic() - self.start)

    def fits(self, seconds: float) -> bool:
        """Whether the clock leaves so much time; a named budget does not look at it."""
        return not self.budget.is_clock or seconds <= self.left()

    def seed_of_learners(self) -> int:
        """The seed that a learner draws for itself, given this one: so each learns what it learns by hand."""
        return int(check_random_state(self.seed % 2**32).randint(2**31 - 1))


class Chosen(NamedTuple):
    """The model, and what a `FitReport` says of it."""

    model: Model
    candidates: tuple[Judged, ...]
    weight: dict[str, float]
    held_out: str
    why: str
    left_out: tuple[str, ...]


def choose(task: Task) -> Chosen:
    """Compare, decide, learn from all rows."""
    known = candidates(task.budget, len(task.cells), len(task.schema.columns), task.n_jobs)
    if len(known) == 1:
        why = f"for {task.budget.seconds:.0f} seconds tables of {MANY_ROWS:,} rows or more have this candidate alone"
        return _without_choice(task, known[0], "no rows", why)
    splits, held_out = _splits(task)
    if not splits:
        return _without_choice(task, known[0], held_out, "no row can be held out")
    compared, left_out = _compare_all(task, splits)
    may_mix = len(splits[0].learn) >= _SHARE_TO_MIX * len(task.cells)
    decision = decide(compared, len(task.schema.columns), task.seed, may_mix)
    judged = [Judged(one.candidate.name, one.mean, one.seconds, one.told_apart) for one in compared]
    if not np.isnan(decision.mixture):
        judged.append(Judged("mixture", decision.mixture, 0.0))
    ending = _in_time(task, compared, decision, splits)
    why = decision.why if not ending.left_out else "the best for which there is time"
    used = np.flatnonzero(ending.weight)
    models, seed = [], task.seed_of_learners()
    for one in (compared[k] for k in used.tolist()):
        if len(ending.rows):
            task.tell(f"{one.candidate.name}: learning from {len(ending.rows):,} rows")
            models.append(learn(one.candidate.learner, task.schema, task.cells[ending.rows], seed))
        else:
            models.append(one.model)
    model = models[0] if len(models) == 1 else mix(models, ending.weight[used])
    named = {compared[k].candidate.name: float(ending.weight[k]) for k in used.tolist()}
    return Chosen(model, tuple(judged), named, held_out, why, (*left_out, *ending.left_out))


def _without_choice(task: Task, first: Candidate, held_out: str, why: str) -> Chosen:
    """The first candidate, learned from all rows."""
    model = learn(first.learner, task.schema, task.cells, task.seed_of_learners())
    return Chosen(model, (), {first.name: 1.0}, held_out, why, ())


def _splits(task: Task) -> tuple[list[Split], str]:
    """Rows to learn from and to judge by, and in words which; no split if all rows are equal."""
    cells, budget = task.cells, task.budget
    n, d = cells.shape
    folds = _FOLDS if n < FEW_ROWS else 1
    rows = budget.rows
    if budget.is_clock:
        first = candidates(budget, n, d, task.n_jobs)[0]
        rows = min(rows, max(_FEWEST_ROWS, int(_FIRST * budget.seconds / first.seconds)))
        folds = 1 if folds * n > rows else folds
    if task.holdout is not None:
        some = some_rows(cells, rows, task.seed)
        return [Split(cells[some], task.holdout)], f"the {len(task.holdout):,} rows of holdout"
    found = [Split(cells[fold.learn], cells[fold.held]) for fold in cut(cells, rows, folds, _HELD_SHARE, task.seed)]
    if not found:
        return [], "no rows: all are equal"
    if len(found) > 1:
        return found, f"{n:,} rows, each held out once in {len(found)} folds"
    return found, f"{len(found[0].held):,} held-out rows, learned from {len(found[0].learn):,}"


def _compare_all(task: Task, splits: list[Split]) -> tuple[list[Compared], list[str]]:
    """Candidates compared, and the names of those for which the clock leaves no time."""
    n, d = task.cells.shape
    rows = sum(len(split.learn) for split in splits)
    budget, speed = task.budget, 1.0
    compared: list[Compared] = []
    left_out: list[str] = []
    for k in range(len(candidates(budget, n, d, task.n_jobs))):
        candidate = candidates(budget._replace(seconds=budget.seconds / speed), n, d, task.n_jobs)[k]
        if compared and not task.fits(speed * candidate.seconds * (rows + _WORTH * n)):
            left_out.append(candidate.name)
            continue
        if budget.is_clock:
            _compile(candidate)
        one = compare(candidate, task.schema, splits, task.seed_of_learners(), task.n_jobs)
        if budget.is_clock:
            speed = one.seconds / (rows * candidate.seconds)
        compared.append(one)
        task.tell(f"{candidate.name}: held-out log-density {one.mean:.4f}, {one.seconds:.1f} s")
    return compared, left_out


def _compile(candidate: Candidate) -> None:
    """Learn next to nothing, so that the time of what comes next is not that of compilation."""
    clone(candidate.learner).fit(np.random.default_rng(0).standard_normal((20, 2)))


class _Ending(NamedTuple):
    """Weights of the compared, the rows to learn them from (none: as they are), and what there is no time for."""

    weight: np.ndarray
    rows: np.ndarray
    left_out: list[str]


def _in_time(task: Task, compared: list[Compared], decision: Decision, splits: list[Split]) -> _Ending:
    """What the clock leaves time for: the decision, else the best candidate, else that from a share of the rows.

    Where there is time for no more rows than it has seen, it is as it was learned from those.
    """
    n, seen, weight, best = len(task.cells), len(splits[0].learn), decision.weight, decision.best
    everything = np.arange(n)
    if len(splits) == 1 and seen == n:
        return _Ending(weight, everything[:0], [])
    seconds = np.array([one.seconds for one in compared]) * n / sum(len(split.learn) for split in splits)
    if task.fits(float(seconds[weight > 0].sum())):
        return _Ending(weight, everything, [])
    alone = np.eye(len(compared))[best]
    if task.fits(float(seconds[best])):
        wanted = " + ".join(one.candidate.name for one, w in zip(compared, weight, strict=True) if w > 0)
        return _Ending(alone, everything, [wanted])
    rows = int(n * _CAREFUL * task.left() / seconds[best])
    if rows <= seen:
        return _Ending(alone, everything[:0], [f"{n - seen:,} of {n:,} rows"])
    some = some_rows(task.cells, rows, task.seed)
    return _Ending(alone, some, [f"{n - rows:,} of {n:,} rows"])
