"""What `jf.fit` chooses among, the cheapest first, and what each takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...hidden.part import HiddenPart
from ...model.model import Model
from ...table.schema import Schema, kernel_columns
from ..adversarial.adversarial import AdversarialForest
from ..base import Rows
from ..hidden_tree_forest import MANY_ROWS, HiddenTreeForest
from .budget import Budget

FEW_ROWS = 3_000
"""Rows of a small table: candidates are judged by all of its rows, each held out once."""
_FEWEST_STATES, _ROWS_A_STATE = 16, 8
_FINAL = 0.65  # share of the budget for learning from all rows
_LITTLE = 0.02  # share of the budget that is next to nothing
_TREES, _MEMBERS = 100, 4  # trees of forests, and hidden trees, where they cost so little


class Candidate(NamedTuple):
    """A learner that is not fitted.

    Attributes
    ----------
    name : str
    learner : learner
    seconds : float
        Estimate of what a row takes, on two cores of 2020 or later.
    """

    name: str
    learner: AdversarialForest | HiddenTreeForest
    seconds: float


def candidates(budget: Budget, n: int, d: int, n_jobs: int | None) -> list[Candidate]:
    """Learners for a table of n rows and d columns, the cheapest first."""
    row = 2.5e-7 * d  # of one tree
    trees = _TREES if _TREES * n * row <= _LITTLE * budget.seconds else budget.n_trees
    found = [Candidate("adversarial forest", AdversarialForest(trees, n_jobs=n_jobs), row * trees)]
    if budget.n_chow_liu:
        learner = AdversarialForest(budget.n_chow_liu, leaf="chow_liu", n_jobs=n_jobs)
        found.append(Candidate("forest with Chow-Liu leaves", learner, 2 * row * budget.n_chow_liu))
    return [*found, *_hidden(budget, n, d, n_jobs)]


def _hidden(budget: Budget, n: int, d: int, n_jobs: int | None) -> list[Candidate]:
    """Hidden trees: in a small table, or for little work, with settings that are given; else they choose their own."""
    states = _states(budget, n, d)
    seconds = _hidden_seconds(d, states, budget.n_passes)
    is_little = budget.chooses_settings and _MEMBERS * n * seconds <= 4 * _LITTLE * budget.seconds
    members = _MEMBERS if is_little else budget.n_members
    name = f"{members} hidden tree{'s' * (members > 1)} of {states} states"
    if n >= FEW_ROWS and budget.chooses_settings:
        learner = HiddenTreeForest(members, n_states=states, n_jobs=n_jobs)
        return [Candidate(name, learner, members * seconds)]
    given: dict[str, Any] = {
        "n_states": states,
        "max_leaf_nodes": 1,
        "max_iter": budget.n_passes,
        "smoothing": 100.0 if n < FEW_ROWS else 30.0,
    }
    starts = {"shared": "", "local": ", local start"} if budget.chooses_settings else {"shared": ""}
    return [
        Candidate(name + more, HiddenTreeForest(members, start=start, n_jobs=n_jobs, **given), members * seconds)
        for start, more in starts.items()
    ]


def _states(budget: Budget, n: int, d: int) -> int:
    """Most states with which learning from all rows takes no more than its share of the budget; fewer for few rows.

    A named budget takes no less than half of its states, and as long as that needs.
    """
    states = budget.n_states
    fewest = _FEWEST_STATES if budget.is_clock else states // 2
    while (
        states > fewest and budget.n_members * n * _hidden_seconds(d, states, budget.n_passes) > _FINAL * budget.seconds
    ):
        states //= 2
    while states > _FEWEST_STATES and states * _ROWS_A_STATE > n:
        states //= 2
    return states


def _hidden_seconds(d: int, states: int, passes: int) -> float:
    """What a row takes of one hidden tree: passes of matrix products, and what does not depend on states."""
    return d * passes * (1.2e-6 + 4.5e-11 * states**2)


def learn(learner: AdversarialForest | HiddenTreeForest, schema: Schema, cells: np.ndarray, seed: int) -> Model:
    """The model of encoded and snapped rows, cells (n, d), under a schema that more rows than these may have made.

    Hidden trees of few rows choose their settings when the learner is first used; those of many rows each time, as
    some of the rows do not tell how many leaves all of them want.
    """
    learner._check()
    learner.n_features_in_ = len(schema.columns)
    if isinstance(learner, HiddenTreeForest):
        settings = getattr(learner, "settings_", None) if len(cells) < MANY_ROWS else None
        return Model(schema, (HiddenPart(learner._learn(schema, cells, None, seed, settings)),), np.zeros(1))
    return learner._learn(Rows(schema, kernel_columns(schema), cells), None, seed)
