"""Budgets: how much work a choice may take, and the candidates that it allows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...data.ranges import Ranges
from ...data.schema import Schema, kernel_columns
from ...models.base import Distribution
from ...models.hidden_tree.hidden_tree import HiddenTree
from ...runtime.parameters import Number, check
from ..adversarial.adversarial_forest import AdversarialForest
from ..hidden_tree.constants import FIXED as HIDDEN
from ..hidden_tree.hidden_tree_forest import HiddenTreeForest
from ..joint_tree.joint_tree import JointTree
from ..rows import TableRows
from .constants import FIXED

Learner = AdversarialForest | HiddenTreeForest | JointTree


class Budget(NamedTuple):
    """How much work a choice may take.

    seconds : float. Expected time on two cores for 32,561 rows of 15 columns; with ``is_clock``, the limit.
    is_clock : bool. Whether the clock decides what is left out. Named budgets decide by the size of the table alone:
        the same on any machine.
    n_states, n_members, n_passes : int. Most states of hidden trees; how many trees; most passes over the rows.
    n_trees, n_chow_liu : int. Trees of an adversarial forest, and of one with Chow-Liu leaves, which take long to ask;
        0: none.
    rows : int. Most rows on which candidates are compared.
    held_rows : int. Validation rows that a small table needs: so many of its five folds are held out, one after the
        other.
    chooses_settings : bool. Whether there is time to choose settings. If so, learners are also compared on large
        tables. Hidden trees of small tables start in two ways. Those of larger tables choose their passes, states and
        number of trees.
    """

    seconds: float
    is_clock: bool
    n_states: int
    n_members: int
    n_passes: int
    n_trees: int
    n_chow_liu: int
    rows: int
    held_rows: int
    chooses_settings: bool


_FAST = Budget(
    seconds=5.0,
    is_clock=False,
    n_states=128,
    n_members=1,
    n_passes=3,
    n_trees=10,
    n_chow_liu=0,
    rows=3_000,
    held_rows=300,
    chooses_settings=False,
)
_DEFAULT = Budget(
    seconds=40.0,
    is_clock=False,
    n_states=256,
    n_members=1,
    n_passes=8,
    n_trees=30,
    n_chow_liu=10,
    rows=12_000,
    held_rows=3_000,
    chooses_settings=True,
)
_BEST = Budget(
    seconds=400.0,
    is_clock=False,
    n_states=256,
    n_members=4,
    n_passes=8,
    n_trees=100,
    n_chow_liu=30,
    rows=12_000,
    held_rows=3_000,
    chooses_settings=True,
)
_NAMED = {"fast": _FAST, "default": _DEFAULT, "best": _BEST}


def budget_of(given: Any) -> Budget:
    """The budget of a name, or of a number of seconds: the largest named budget that fits, limited by the clock.

    Raises ValueError if it is neither a name nor a number above 0.

    Examples
    --------
    >>> budget_of("fast").n_states, budget_of(60).n_states, budget_of(60).is_clock
    (128, 256, True)
    """
    check("budget", given, (*_NAMED, Number(0, without="low", text="a number of seconds above 0")))
    if isinstance(given, str):
        return _NAMED[given]
    seconds = float(given)
    below = [budget for budget in _NAMED.values() if budget.seconds <= seconds]
    return max(below, default=_FAST, key=lambda budget: budget.seconds)._replace(seconds=seconds, is_clock=True)


# ---- What `jf.fit` chooses among, the cheapest first, and what each takes.


class Candidate(NamedTuple):
    """A learner that is not fitted.

    name : str
    learner : learner
    seconds_per_row : float. Estimate of the time to learn from a row, on two cores of 2020 or later.
    is_for_draws : bool. Whether its draws keep more dependence than its log-density tells.
    """

    name: str
    learner: Learner
    seconds_per_row: float
    is_for_draws: bool = False


def candidates(
    budget: Budget, n: int, d: int, objective: str = "draws", known: float = 1.0, numbers: float = 0.0
) -> list[Candidate]:
    """Learners for n rows and d columns, of whose cells a share is known.

    ``numbers`` is the share of columns that are numbers.

    The fast budget has one candidate for tables of many cells or columns, where comparing takes longer than learning.
    """
    hidden = _hidden(budget, n, d, objective, known)
    is_large = n >= HIDDEN.many_rows or n * d >= FIXED.many_cells or d >= HIDDEN.wide
    if is_large and not budget.chooses_settings and not budget.is_clock:
        return hidden
    least = min(2, max(n // 2, 1))  # of next to no rows, a leaf's must be found in every fold
    row = FIXED.forest_seconds * d
    is_quick = FIXED.most_trees * n * row <= FIXED.little_share * budget.seconds
    trees = FIXED.most_trees if is_quick else budget.n_trees
    listed = [Candidate("adversarial forest", AdversarialForest(trees, min_samples_leaf=least), row * trees)]
    if d <= FIXED.columns_of_joint_tree or budget.chooses_settings:
        listed.append(Candidate("joint tree", JointTree(), FIXED.joint_tree_seconds * d))
    if budget.n_chow_liu:
        learner = AdversarialForest(budget.n_chow_liu, min_samples_leaf=least, leaf="chow_liu")
        listed.append(Candidate("forest with Chow-Liu leaves", learner, 2 * row * budget.n_chow_liu))
    listed += hidden
    if n < FIXED.few_rows and objective == "draws" and numbers >= FIXED.numbers_of_factors:
        factors = HiddenTreeForest(2, start="factors")
        seconds = 2 * FIXED.state_seconds * d * HIDDEN.states_of_factors
        listed.append(Candidate("2 hidden trees of factors", factors, seconds, True))
    return listed


def _hidden(budget: Budget, n: int, d: int, objective: str, known: float) -> list[Candidate]:
    """Hidden trees: of many rows as they are by default but for size, of few with settings that are given."""
    passes = min(budget.n_passes, HiddenTreeForest()._passes(n))
    members, states = _members_and_states(budget, n, d, passes, known)
    is_large = n >= HIDDEN.many_rows or (n >= FIXED.few_rows and budget.chooses_settings)
    is_up_to = is_large and objective == "likelihood" and states == HIDDEN.states
    seconds = members * _hidden_seconds(d, states, passes)
    if is_up_to:  # a tree of each number of states is learned, of which the likeliest is chosen
        seconds += sum(_hidden_seconds(d, tried, passes) for tried in HIDDEN.states_tried)
    name = f"{members} hidden tree{'s' * (members > 1)} of {'up to ' * is_up_to}{states} states"
    given: dict[str, Any] = {"n_states": "auto" if is_up_to else states, "objective": objective}
    if is_large:
        given["max_iter"] = "auto" if budget.chooses_settings else passes
        return [Candidate(name, HiddenTreeForest(members, **given), seconds)]
    given["smoothing"] = FIXED.smoothing
    starts = {"shared": "", "local": ", local start"} if budget.chooses_settings else {"shared": ""}
    return [
        Candidate(name + more, HiddenTreeForest(members, start=start, **given), seconds)
        for start, more in starts.items()
    ]


def _members_and_states(budget: Budget, n: int, d: int, passes: int, known: float) -> tuple[int, int]:
    """Hidden trees and their states: more trees than the budget says where there is time, fewer states for few rows.

    Rows count by their known cells.

    What there is no time for by the clock are first the further trees, then states.
    """
    members, states = budget.n_members, budget.n_states
    if n < HIDDEN.many_rows:
        small = HIDDEN.small_members if n < HIDDEN.rows_of_more_members else HIDDEN.more_members
        members = max(members, small)
    while states > FIXED.fewest_states and states * FIXED.rows_a_state > n * known:
        states //= 2
    row = _hidden_seconds(d, states, passes)
    if budget.chooses_settings:
        fit = (FIXED.final_share_of_folds if n < FIXED.few_rows else FIXED.final_share) * budget.seconds / (n * row)
        members = int(np.clip(fit, members, max(members, FIXED.most_members)))
    if budget.is_clock and members * n * row > FIXED.final_share * budget.seconds:
        members = 1
        while (
            states > FIXED.fewest_states and n * _hidden_seconds(d, states, passes) > FIXED.final_share * budget.seconds
        ):
            states //= 2
    return members, states


def _hidden_seconds(d: int, states: int, passes: int) -> float:
    """Seconds for a row of one hidden tree: matrix products, and what does not depend on states.

    About half as many passes over all rows follow, hence the 1.5.
    """
    return 1.5 * d * passes * (FIXED.cell_seconds + FIXED.product_seconds * states**2)


def learn(
    learner: Learner,
    schema: Schema,
    cells: np.ndarray,
    seed: int,
    ranges: Ranges | None = None,
    rows: TableRows | None = None,
) -> Distribution:
    """The model of encoded and snapped rows, cells (n, d), under a schema that more rows than these may have made.

    ``rows`` are the same rows with missing cells drawn, where the caller has them.

    Hidden trees of few rows choose their settings when the learner is first used; those of many rows each time, as
    some of the rows do not tell how many leaves all of them want.
    """
    learner._check()
    if isinstance(learner, HiddenTreeForest):
        settings = getattr(learner, "settings_", None) if len(cells) < HIDDEN.many_rows else None
        return HiddenTree(learner._learn(schema, cells, None, seed, settings, ranges))
    rows = rows or TableRows(schema, kernel_columns(schema), cells, cells, ranges=ranges).completed(None, seed)
    if isinstance(learner, JointTree):  # which chooses its leaves by what it would lose
        return learner._learn_and_compare(rows, None, seed)[0]
    return learner._learn(rows, None, seed)
