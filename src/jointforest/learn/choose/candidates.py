"""What `jf.fit` chooses among, the cheapest first, and what each takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...hidden.part import HiddenPart
from ...model.model import Model, of_forest
from ...table.schema import Schema, kernel_columns
from ..adversarial.adversarial import AdversarialForest
from ..base import Rows
from ..hidden_tree_forest import HiddenTreeForest
from .budget import Budget

_FEWEST_STATES = 16
_FINAL = 0.65  # share of the budget for learning from all rows
_MEMBERS = 4  # hidden trees where they cost next to nothing


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
    states = _states(budget, n, d)
    seconds = _hidden_seconds(d, states)
    members = _MEMBERS if _MEMBERS * n * seconds <= 0.1 * budget.seconds else budget.n_members
    hidden = HiddenTreeForest(members, n_states=states, n_jobs=n_jobs)
    forest = AdversarialForest(budget.n_trees, n_jobs=n_jobs)
    return [
        Candidate("adversarial forest", forest, 2.5e-7 * d * budget.n_trees),
        Candidate(f"{members} hidden tree{'s' * (members > 1)} of {states} states", hidden, members * seconds),
    ]


def _states(budget: Budget, n: int, d: int) -> int:
    """Most states whose learning from all rows is within the budget's share for it; fewer for few rows."""
    states = budget.n_states
    while states > _FEWEST_STATES and (
        budget.n_members * n * _hidden_seconds(d, states) > _FINAL * budget.seconds or states * 16 > n
    ):
        states //= 2
    return states


def _hidden_seconds(d: int, states: int) -> float:
    """What a row takes of one hidden tree: passes of matrix products, and what does not depend on states."""
    return d * (5e-6 + 3e-10 * states**2)


def learn(learner: AdversarialForest | HiddenTreeForest, schema: Schema, cells: np.ndarray, seed: int) -> Model:
    """The model of encoded and snapped rows, cells (n, d), under a schema that more rows than these may have made."""
    learner._check()
    learner.n_features_in_ = len(schema.columns)
    if isinstance(learner, HiddenTreeForest):
        return Model(schema, (HiddenPart(learner._learn(schema, cells, None, seed)),), np.zeros(1))
    return of_forest(learner._learn(Rows(schema, kernel_columns(schema), cells), None, seed))
