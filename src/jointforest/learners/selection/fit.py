"""`jf.fit`: the joint distribution of a table, by the learner with the highest validation score."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, overload

import narwhals as nw
import numpy as np

from ...api.history_joint import HistoryJoint
from ...api.joint import Joint
from ...data.ranges import Ranges
from ...data.rules.find import with_rules
from ...evaluation.columns_and_pairs import read_rows
from ...evaluation.fidelity import fidelity
from ...evaluation.statements import Statements, statements, warn_lost
from ...models.base import Distribution
from ...runtime.parameters import check, seed_of
from ...runtime.progress import be_quiet, write_line
from ...runtime.threads import threaded
from ...runtime.warnings import warn
from ..hidden_tree.hidden_tree_forest import HiddenTreeForest, compound_trial
from ..history.history_forest import HistoryForest
from ..rows import TableRows, read_training_rows
from ..rules import Reduced, reduce_table, wanted_rules
from .budget import budget_of
from .choose import Task, choose

_CHECKS = 4
"""Most checks of a table that may have wrong cells."""


@overload
def fit(
    frame: Any,
    *,
    budget: str | float = "default",
    holdout: Any = None,
    kinds: Mapping[str, Any] | None = None,
    rules: Any = "auto",
    objective: str = "draws",
    errors: bool = False,
    random_state: Any = None,
    n_jobs: int | None = -1,
    verbose: bool = False,
) -> Joint: ...


@overload
def fit(
    frame: Any,
    *,
    group: str,
    order: str | None = None,
    kinds: Mapping[str, Any] | None = None,
    random_state: Any = None,
    n_jobs: int | None = -1,
    verbose: bool = False,
) -> HistoryJoint: ...


@threaded
def fit(
    frame: Any,
    *,
    group: str | None = None,
    order: str | None = None,
    budget: str | float = "default",
    holdout: Any = None,
    kinds: Mapping[str, Any] | None = None,
    rules: Any = "auto",
    objective: str = "draws",
    errors: bool = False,
    random_state: Any = None,
    n_jobs: int | None = -1,
    verbose: bool = False,
) -> Joint | HistoryJoint:
    """Learn the joint distribution of a table with the learner that has the highest validation score.

    The candidates are an adversarial forest, a joint tree, a forest with Chow-Liu leaves, hidden trees, and mixtures of
    these. The score of a candidate is its validation log-likelihood for each column, plus a score of its answers: the
    mean and the standard deviation of numbers, and the probability of levels, given another column. The validation rows
    are a fifth of the table; in small tables several fifths, each in its turn. Equal rows are held out together, and
    large tables are compared on a part of their rows. A candidate is dropped if its answers about pairs of columns
    drawn at random are worse than the best candidate's. With one set of validation rows and 2,000 rows to learn
    from, it is also dropped if a classifier tells its draws from the rows more easily. A mixture must be better by more
    than 0.01.

    In tables of fewer than 3,000 rows, mostly of numbers, hidden trees of factors are mixed in if this brings draws
    nearer to held-out rows and the score does not fall. With the fast budget, tables of 5,000 rows, of
    40,000 cells or of 200 columns get hidden trees without a comparison. The winner learns from all rows.

    With ``group`` the table has several rows for each subject, and the joint is one of whole histories: see
    `HistoryForest`, which learns it.

    Parameters
    ----------
    frame : frame of n rows
        pandas, polars, pyarrow, or a 2-D numpy array; cells may be missing.
    group : str, optional
        The column that names the subject of each row. Budget and holdout do not go with it.
    order : str, optional
        The column of times within a subject, numbers or dates. Rows of a subject with the same time keep their order in
        the table. Without ``order``, all rows do.
    budget : "fast", "default", "best" or float
        How much work: with 32,561 rows of 15 columns and two cores about five seconds, about one minute, or about
        five; larger tables take longer. It sets the number of hidden trees and states. A number is of seconds, held
        against the clock: what there is no time for is left out with a warning, and the answer then depends on the
        machine.
    holdout : frame of m rows, optional
        Validation rows of the same source, instead of a share of ``frame``.
    kinds : dict or None
        Kinds of columns by name, where the inferred ones are not wanted, e.g. ``{"age": "continuous"}``. A column of
        kind ``"identifier"`` or ``"ignored"`` takes no part in the model. With ``"ranges"`` brackets are numbers, and
        `jf.censored` names a column that says which numbers are exact: see ``docs/how-to/ranges.md``.
    rules : "auto", "all", "off" or list
        Rules between columns that are enforced: rows that contradict them have probability 0, and are never drawn.
        "auto": found rules about missing cells, found conversions and sums, and found functions and combinations of
        few values, and functions of many where a trial gains (none of these with ``objective="likelihood"``); "all":
        all that are found; "off" or False: none. A list has rules of `jf.rule`, or their texts, and "auto" or "all" if
        found rules are wanted beside them. See
        ``docs/how-to/rules.md``.
    objective : "draws" or "likelihood"
        What the joint is for. "draws": rows that resemble those of the table. "likelihood": a high log-density of new
        rows. Candidates are then not judged by their draws and answers, and values of one row may have a point mass.
        From 5,000 rows on (3,000 with "default" and "best"), hidden trees also choose their smoothing, and those of 256
        states their number. Smaller tables have the states and smoothing of "draws". An attacker can often tell more
        easily which rows were learned (on two of three tables, see ``docs/experiments/population.md``).
    errors : bool
        Whether cells of the table may be wrong. Then cells that `Joint.check` finds probably wrong count as missing;
        ``joint.fitted_by`` says how many these are. It does not go with ``group``, nor with cells that are ranges, and
        ``holdout`` is taken as it is. See ``docs/how-to/check-a-table.md``.
    random_state : None, int, Generator or RandomState
        The same seed gives the same joint for a named budget, whatever ``n_jobs``.
    n_jobs : int or None
        Threads (-1: all cores).
    verbose : bool
        Whether to tell what was compared and chosen, and how true the joint is, on standard error.

    Returns
    -------
    Joint
        ``joint.fitted_by`` is a `FitReport`: what was compared, what was chosen and why, and how exact answers of the
        joint compare with counts of rows.
    HistoryJoint
        With ``group``.

    Raises
    ------
    ValueError
        If an argument is out of its range, or the table cannot be used (each message names the column).

    Warns
    -----
    UserWarning
        If a number of seconds was too few; the warning names what was left out.
    LostDependenceWarning
        If columns that depend on each other in the table do so less in the joint; it names them.

    Notes
    -----
    When to choose what by hand: ``docs/how-to/choose-a-learner.md``.

    Examples
    --------
    >>> joint = jf.fit(jf.datasets.load_penguins(), budget="fast", random_state=0)
    >>> joint.given(island="Torgersen").proba("species")["Adelie"] > 0.9
    True
    >>> "adversarial forest" in [one.name for one in joint.fitted_by.candidates]
    True
    """
    check("objective", objective, ("draws", "likelihood"))
    if not isinstance(errors, bool):
        raise TypeError(f"errors: expected True or False, got {errors!r}")
    if group is not None:
        if objective != "draws":
            raise ValueError("objective does not go with group: there is one learner of histories")
        if budget != "default" or holdout is not None:
            raise ValueError("budget and holdout do not go with group: there is one learner of histories")
        if rules not in ("auto", "off", False):
            raise ValueError("rules do not go with group: they are not enforced in histories")
        if errors:
            raise ValueError("errors=True does not go with group: wrong cells of histories are not found")
        learner = HistoryForest(
            kinds=None if kinds is None else dict(kinds), random_state=random_state, verbose=verbose
        )
        return learner.fit(frame, group=group, order=order).joint_
    if order is not None:
        raise ValueError(f"order={order!r} goes with group, the column that names the subject of each row")
    start = time.monotonic()
    allowed = budget_of(budget)
    seed = seed_of(random_state)
    wrong = Counter[str]()
    if errors:
        table, wrong = _read_without_errors(frame, kinds, seed)
    else:
        table = read_training_rows(frame, kinds)
    wanted = wanted_rules(rules, table.schema, table.X, objective, table.ranges)
    reduced = reduce_table(wanted, table.X, compound_trial(wanted.schema, table.X, seed))
    schema = wanted.schema if reduced is None else reduced.coordinates.schema
    others = None
    if holdout is not None:
        X, unseen = read_rows(schema, holdout, "holdout")
        others = np.where(unseen, np.nan, X)
    tell = write_line if verbose else be_quiet
    # forests answer questions about a sum by thousands of rows, which differ in the values of its parts
    with_forests = reduced is None or not reduced.adds_numbers
    task = Task(schema, table.X, others, allowed, seed, start, tell, reduced, (), objective, with_forests, table.ranges)
    chosen = choose(task)
    counted, of = (table.X, f"the {len(table.X):,} rows learned") if others is None else (others, "the rows of holdout")
    judged, counted = _asked(chosen.model, counted, reduced, table.ranges)
    found = statements(judged, counted, of)
    if others is None:
        _warn_of(found, rules, wanted.is_auto and objective == "draws")
    report = replace(chosen.report(budget, time.monotonic() - start, found), wrong=dict(wrong))
    if report.left_out:
        left_out = ", ".join(report.left_out)
        warn(
            f"budget={budget!r} was too short: left out {left_out}; give more seconds, or budget='default' "
            "(--budget default), which takes the time that it needs",
            UserWarning,
        )
    joint = Joint(chosen.model.with_schema(replace(chosen.model.schema, checked=found.in_words)), report)
    if verbose:
        if joint.reading.notice:
            write_line(joint.reading.notice)
        write_line(str(report))
        only = ["statements", "told_apart"]
        write_line(fidelity(joint, frame, holdout, only=only, random_state=random_state).headline)
    return joint


def _asked(
    model: Distribution, counted: np.ndarray, reduced: Reduced | None, ranges: Ranges | None
) -> tuple[Distribution, np.ndarray]:
    """The columns of a model, and of rows (n, d), about which the self-check asks.

    Imputed values of ranges are no counts. Answers about long sums take a while, so that it asks about their parts.
    """
    left_out = set() if reduced is None else set(reduced.long_sums)
    if ranges is not None:
        left_out |= set(np.flatnonzero((ranges.number >= 0).any(axis=0)).tolist())
    some = [j for j in range(counted.shape[1]) if j not in left_out]
    if not left_out:
        return model, counted
    return (model.marginalize(some), counted[:, some]) if some else (model, counted[:0])


def _warn_of(found: Statements, rules: Any, is_auto: bool) -> None:
    """Warn of dependence that is lost, and of rules that are not enforced and broken by many draws."""
    warn_lost(found.lost, "budget='default' or budget='best' (--budget), which learn more hidden states")
    if is_auto:
        hint = "rules='all' (--rules all), which may slow answers"
        warn_lost(found.broken, hint, "draws break rules that all rows obey")
    elif isinstance(rules, str) and rules == "all":
        warn_lost(
            found.broken,
            "rules=[...] (--rule) with these rules, which are then enforced, or an error says why not",
            "found rules that do not go with the others, or would make impossible values, are not enforced",
        )


def _read_without_errors(frame: Any, kinds: Mapping[str, Any] | None, seed: int) -> tuple[TableRows, Counter[str]]:
    """A frame as learners take it, in which probably wrong cells are missing; and how many these are in each column."""
    # Hidden trees that learned wrong cells expect some of them, so trees of the repaired table check it again.
    given = None if kinds is None else dict(kinds)
    learner = HiddenTreeForest(rules="off", kinds=given, random_state=seed % 2**32)
    found: dict[tuple[int, str], bool] = {}  # whether the cell was there at all: repairs fill empty ones, too
    for _ in range(_CHECKS):
        frame, changes = learner.fit(frame).joint_.check(frame).repair(0.0)
        rows = changes if isinstance(changes, np.ndarray) else nw.from_native(changes, eager_only=True).rows()
        new = {
            (row, name): isinstance(value, str) and value != ""
            for row, name, value, *_ in rows
            if (row, name) not in found
        }
        found |= new
        if not any(new.values()):
            break
    table = read_training_rows(frame, kinds)  # so that no wrong value is a level, or an end of a column
    place = {name: j for j, name in enumerate(table.schema.names)}
    for row, name in found:
        if name in place:
            table.X[row, place[name]] = np.nan
    # rules of cells that are known
    return table._replace(schema=with_rules(table.schema, table.X)), Counter(
        name for (_, name), is_cell in sorted(found.items()) if is_cell
    )
