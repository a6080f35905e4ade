"""Budgets: how much work a choice may take."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...runtime.parameters import Number, check


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
