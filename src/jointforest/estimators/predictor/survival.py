"""Survival curves of rows: the joint's, and those of regressions of the hazard, averaged.

The mathematics is in docs/concepts/predictors.md. Each regression of scikit-learn with weights and a Poisson loss
learns rates of events on the cumulative hazard of all rows (Nelson 1969; Laird and Olivier 1981).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import PoissonRegressor

from ...data.conditions import censored
from ...data.evidence import Evidence, build
from ...data.frames import read, with_column
from ...data.schema import Schema
from ...learners.generative.targets import column_like
from ...learners.hidden_tree.hidden_tree_forest import HiddenTreeForest
from ...learners.rows import read_training_rows
from ...models.base import Distribution
from ...runtime.threads import n_threads
from .learn import cut_folds

LINEAR, ADDITIVE, FOREST, BOOSTING = "linear hazard", "additive hazard", "forest of hazards", "boosted hazard"
JOINT = "joint"
_PENALTY = {LINEAR: 10.0, ADDITIVE: 30.0}
"""Events' worth of shrinkage of coefficients: their penalty is this over the number of events."""
_TREES, _LEAF_ROWS, _TREE_ROWS = 200, 10, 4_000
"""Trees of the forest, fewest rows of a leaf (of boosting, too), and most rows of a tree."""
_ITERATIONS, _LEAVES = 60, 4
"""Trees of boosting, and their leaves."""
_KNOTS = (0.2, 0.4, 0.6, 0.8)
"""Quantiles of a number at which its additive effect may bend."""
_FARTHEST = 4.0
"""Standard deviations at which numbers are cut off: effects are not extrapolated."""
_DRAWS, _LEARNED_DRAWS = 20, 3
"""Draws of missing cells for each predicted row, and for each learned one."""
_LAST_PAIRS = 0.95
"""Quantile of the times at which pairs of the C-index end."""
_CELLS, _CELL_EVENTS = 20, 10
"""Most intervals of time in which members are compared, and fewest events in each."""
_LEAST = 1e-12
"""Least likelihood of a row: a member that excludes a row once is not excluded itself."""
_EM_STEPS = 1_000
"""Most steps of EM for the weights of members. The mean is concave, so the bound only ends rounding noise."""


class Clock(NamedTuple):
    """The cumulative hazard of all rows: times of events (k,), ascending, and its value from each on."""

    time: np.ndarray
    hazard: np.ndarray

    def at(self, t: np.ndarray) -> np.ndarray:
        """The cumulative hazard at times t."""
        return np.append(0.0, self.hazard)[np.searchsorted(self.time, t, side="right")]


def clock_of(time: np.ndarray, event: np.ndarray) -> Clock:
    """The clock of rows, at least one of them with an event."""
    at, events = np.unique(time[event], return_counts=True)
    at_risk = len(time) - np.searchsorted(np.sort(time), at)
    return Clock(at, np.cumsum(events / at_risk))


class Design(NamedTuple):
    """Features as regressions take them: indicators of levels, and standardised numbers.

    n_levels : list of int. Of each feature; 0 of numbers.
    center, scale : float64 arrays (p,)
    knots : list of float64 arrays. Of each regressor; empty of indicators.
    """

    n_levels: list[int]
    center: np.ndarray
    scale: np.ndarray
    knots: list[np.ndarray]

    def plain(self, X: np.ndarray) -> np.ndarray:
        """Regressors (n, p) of rows (n, d) of numbers and codes; a missing cell has the mean."""
        cells = (_indicators(self.n_levels, X) - self.center) / self.scale
        return np.clip(np.nan_to_num(cells), -_FARTHEST, _FARTHEST)

    def with_hinges(self, Z: np.ndarray) -> np.ndarray:
        """Regressors (n, p) and the part of each above its knots."""
        return np.hstack([Z, *(np.maximum(Z[:, [j]] - knots, 0.0) for j, knots in enumerate(self.knots) if len(knots))])


def design_of(schema: Schema, X: np.ndarray) -> Design:
    """The design of rows (n, d) of the first d columns."""
    n_levels = [len(column.levels) for column in schema.columns[: X.shape[1]]]
    cells = _indicators(n_levels, X)
    spread = cells.std(axis=0)
    design = Design(n_levels, np.nan_to_num(cells.mean(axis=0)), np.where(spread > 0.0, spread, 1.0), [])
    Z, is_number = design.plain(X), np.repeat(np.array(n_levels) == 0, np.maximum(n_levels, 1))
    knots = [
        np.unique(np.quantile(z, _KNOTS)) if number else np.empty(0) for z, number in zip(Z.T, is_number, strict=True)
    ]
    return design._replace(knots=knots)


def _indicators(n_levels: list[int], X: np.ndarray) -> np.ndarray:
    """Numbers as they are, and an indicator of each level; NaN of missing cells."""
    parts = []
    for j, n in enumerate(n_levels):
        x = X[:, [j]]
        parts.append(np.where(np.isnan(x), np.nan, x == np.arange(n)) if n else x)
    return np.hstack(parts)


class Regressions(NamedTuple):
    """Fitted regressions of the hazard, by name, on one clock."""

    clock: Clock
    design: Design
    models: dict[str, Any]

    def curves(self, X: np.ndarray, t: np.ndarray) -> dict[str, np.ndarray]:
        """Survival (n, q) of complete rows (n, d) at times t, by name."""
        Z, H = self.design.plain(X), self.clock.at(t)
        inputs = {ADDITIVE: self.design.with_hinges(Z)}
        return {name: np.exp(-np.outer(model.predict(inputs.get(name, Z)), H)) for name, model in self.models.items()}


def learn_regressions(
    schema: Schema, X: np.ndarray, of_row: np.ndarray, time: np.ndarray, event: np.ndarray, seed: int
) -> Regressions:
    """Regressions of completed rows (m, d) without missing cells, which stand for the rows ``of_row`` of times (n,)."""
    clock, design = clock_of(time, event), design_of(schema, X)
    exposure = clock.at(time)
    use = exposure[of_row] > 0.0
    i, n_events = of_row[use], float(event.sum())
    Z, weight, rate = design.plain(X[use]), (exposure / np.bincount(of_row))[i], event[i] / exposure[i]
    models: dict[str, Any] = {
        name: PoissonRegressor(alpha=penalty / n_events, max_iter=300) for name, penalty in _PENALTY.items()
    }
    some = min(_TREE_ROWS, len(weight))
    trees: dict[str, Any] = {"min_samples_leaf": _LEAF_ROWS, "max_features": 1 / 3, "random_state": seed}
    models[FOREST] = RandomForestRegressor(_TREES, criterion="poisson", max_samples=some, n_jobs=n_threads(), **trees)
    models[BOOSTING] = HistGradientBoostingRegressor(
        loss="poisson", learning_rate=0.05, max_iter=_ITERATIONS, max_leaf_nodes=_LEAVES, early_stopping=False, **trees
    )
    for name, model in models.items():
        model.fit(design.with_hinges(Z) if name == ADDITIVE else Z, rate, sample_weight=weight)
    models[FOREST].set_params(n_jobs=1)  # several threads add up the trees' answers in any order
    return Regressions(clock, design, models)


@dataclass(frozen=True)
class StepFunction:
    """A survival function, 1 at first, that falls at times ``x`` to the probabilities ``y``.

    Beyond ``last``, the last time that was observed at learning, it is NaN: nothing is learned there.
    """

    x: np.ndarray
    y: np.ndarray
    last: float

    def __call__(self, t: Any) -> Any:
        """The probability that the event has not happened by t, or by each of several times."""
        at = np.asarray(t, dtype=np.float64)
        found = np.append(1.0, self.y)[np.searchsorted(self.x, at, side="right")]
        found = np.where(at <= self.last, found, np.nan)
        return float(found) if at.ndim == 0 else found


class SurvivalModel(NamedTuple):
    """Members and their weights.

    joint : Distribution. Its last column is the time.
    weight : dict of str to float. By the names of members.
    last : float. The last time that was observed.
    seed : int. Of draws.
    """

    joint: Distribution
    regressions: Regressions
    weight: dict[str, float]
    last: float
    seed: int

    @property
    def times(self) -> np.ndarray:
        """Times of events at learning, where curves fall."""
        return self.regressions.clock.time

    def curves(self, evidence: Evidence, t: np.ndarray) -> np.ndarray:
        """Survival (n, q) given evidence of features, at times t."""
        found = member_curves(self.joint, self.regressions, evidence, t, self.seed)
        return np.asarray(sum(weight * found[name] for name, weight in self.weight.items()))

    def restricted_means(self, evidence: Evidence) -> np.ndarray:
        """Mean times up to the last event (n,): the areas under the curves."""
        S = self.curves(evidence, self.times)
        return np.asarray(np.pad(S[:, :-1], ((0, 0), (1, 0)), constant_values=1.0) @ np.diff(self.times, prepend=0.0))

    def quantiles(self, evidence: Evidence, q: np.ndarray) -> np.ndarray:
        """Quantiles (n, k), times of events; infinite beyond the last one."""
        S = self.curves(evidence, self.times)
        return np.append(self.times, np.inf)[(S[:, None, :] > 1.0 - q[:, None] + 1e-12).sum(axis=2)]


def member_curves(
    joint: Distribution, regressions: Regressions, evidence: Evidence, t: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    """Survival (n, q) by each member given evidence of features."""
    last = len(joint.schema.columns) - 1
    rows, of_row = completed(joint, evidence, _DRAWS, seed)
    first = np.flatnonzero(np.diff(of_row, prepend=-1))
    count = np.diff(np.append(first, len(of_row)))[:, None]
    found = {
        name: np.add.reduceat(curves, first) / count for name, curves in regressions.curves(rows[:, :last], t).items()
    } if len(rows) else dict.fromkeys(regressions.models, np.empty((0, len(t))))  # fmt: skip
    return found | {JOINT: 1.0 - joint.observe(evidence).cdf(last, t)}


def completed(joint: Distribution, evidence: Evidence, n_draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose missing features are drawn given what is known of them, and the number of the row of each."""
    last = len(joint.schema.columns) - 1
    count = np.where(np.isnan(evidence.value[:, :last]).any(axis=1), n_draws, 1)
    of_row = np.repeat(np.arange(len(count)), count)
    known, rows = evidence.value[of_row], evidence.value[of_row]
    holed = np.flatnonzero(count > 1)
    if len(holed):
        rows[count[of_row] > 1] = joint.observe(evidence.take(holed)).completions(count[holed], seed)
    return np.where(np.isnan(known), rows, known), of_row


class Times(NamedTuple):
    """A target: its name, that of the column that says whether the event has happened, and the cells of both (n,)."""

    name: str
    flag: str
    time: np.ndarray
    event: np.ndarray


def target_of(y: Any) -> Times | None:
    """Times to an event of a structured array or of a frame of an indicator and a time; None of another y."""
    if isinstance(y, np.ndarray) and y.dtype.names:
        cells = {name: y[name] for name in y.dtype.names}
    elif nw.dependencies.is_into_dataframe(y) and len(nw.from_native(y, eager_only=True).columns) > 1:
        cells = {str(name): column.to_numpy() for name, column in nw.from_native(y, eager_only=True).to_dict().items()}
    else:
        return None
    flags = [name for name, of in cells.items() if of.dtype == bool]
    numbers = [name for name, of in cells.items() if of.dtype.kind in "iuf"]
    flags = flags or [name for name in numbers if np.isin(cells[name], (0, 1)).all()]
    times = [name for name in numbers if name not in flags]
    if len(cells) != 2 or len(flags) != 1 or len(times) != 1:
        kinds = ", ".join(f"{name!r} of {of.dtype}" for name, of in cells.items())
        raise ValueError(
            "y: expected one column of booleans or of 0 and 1, whether the event has happened, and one of times, got "
            f"{kinds}"
        )
    time, event = cells[times[0]].astype(np.float64), cells[flags[0]].astype(bool)
    wrong = np.flatnonzero(~((time >= 0.0) & (time < np.inf)))
    if len(wrong):
        raise ValueError(
            f"y: column {times[0]!r}: expected times of 0 or more, got {time[wrong[0]]} in row {wrong[0]}; "
            "leave such rows out"
        )
    if not event.any():
        raise ValueError(
            f"y: column {flags[0]!r} is false in all rows: no event has happened, and nothing can be learned"
        )
    return Times(times[0], flags[0], time, event)


def concordance(target: Times, expected: np.ndarray, weight: np.ndarray) -> float:
    """C-index of expected times (n,) of rows with weights (n,), by IPCW (Uno et al. 2011)."""
    # It is the share of pairs of rows, one of which has an event before the other, that are in the expected order;
    # equal expectations count a half. Pairs count by how improbable it is that both times are observed so long. They
    # end at the 95 % quantile of all times, beyond which these weights are large.
    _, _, time, event = target
    ends, lost = np.unique(time[~event], return_counts=True)
    at_risk = np.array([np.sum((time > t) | ((time == t) & ~event)) for t in ends])  # events come first
    observed = np.append(1.0, np.cumprod(1.0 - lost / at_risk))
    right = total = 0.0
    for i in np.flatnonzero(event & (time <= np.quantile(time, _LAST_PAIRS))):
        later = (time > time[i]) | ((time == time[i]) & ~event)
        each = later * weight * weight[i] / observed[np.searchsorted(ends, time[i])] ** 2
        right += each @ ((expected > expected[i]) + 0.5 * (expected == expected[i]))
        total += each.sum()
    if total == 0.0:
        raise ValueError("y: the event has happened in no row before the time of another one; give more rows")
    return float(right / total)


def fit_survival(X: Any, target: Times, kinds: dict[str, str] | None, seed: int) -> SurvivalModel:
    """The model of a table of features and times to an event."""
    names = read(X).names
    if len(target.time) != read(X).n:
        raise ValueError(f"X has {read(X).n} rows and y has {len(target.time)} entries; expected as many of both")
    flag, name = (_unlike(names, one) for one in (target.flag, target.name))
    frame = with_column(X, flag, column_like(X, flag, target.event))
    frame = with_column(frame, name, column_like(X, name, target.time))
    rows = read_training_rows(frame, {**(kinds or {}), name: censored(event=flag)})
    if isinstance(X, np.ndarray):  # answers are about the features and the time alone
        *features, last = rows.schema.columns
        columns = (*features, replace(last, censored=None))
        unknown = tuple(one for one in rows.schema.unknown if one[1].name != flag)
        rows = rows._replace(schema=replace(rows.schema, columns=columns, unknown=unknown))
    known = build(rows.schema, rows.X, ranges=rows.ranges)
    learner = HiddenTreeForest(rules="off", random_state=seed)

    def learn_joint(some: np.ndarray) -> Distribution:
        part = rows.take(some)
        return learner._learn_ruled(part.schema, part.X, None, seed, part.ranges)

    return learn_survival(known, target.time, target.event, learn_joint, seed)


def _unlike(names: Sequence[str], name: str) -> str:
    """A name with "_" behind it as often as a column is named so."""
    while name in names:
        name += "_"
    return name


LearnJoint = Callable[[np.ndarray], Distribution]
"""The joint of rows of these numbers."""


def learn_survival(
    known: Evidence, time: np.ndarray, event: np.ndarray, learn_joint: LearnJoint, seed: int
) -> SurvivalModel:
    """The members, learned from all rows, and their weights, by validation rows; ``known`` is the rows' evidence."""
    every, last = np.arange(len(time)), known.value.shape[1] - 1

    def learned(rows: np.ndarray) -> tuple[Distribution, Regressions]:
        joint = learn_joint(rows)
        X, of_row = completed(joint, known.take(rows), _LEARNED_DRAWS, seed)
        return joint, learn_regressions(joint.schema, X[:, :last], of_row, time[rows], event[rows], seed)

    n_cells = int(np.clip(event.sum() // _CELL_EVENTS, 2, _CELLS))
    cuts = np.unique(np.quantile(time[event], np.linspace(0.0, 1.0, n_cells + 1)[1:-1]))
    likelihoods: list[dict[str, np.ndarray]] = []
    for fold in cut_folds(np.column_stack([known.value[:, :last], time]), 0, seed):
        joint, regressions = learned(fold.learn)
        held = known.take(fold.held).without(last)
        t = np.unique(np.append(cuts, time[fold.held]))
        curves = member_curves(joint, regressions, held, t, seed)
        likelihoods.append(
            {name: _log_like(S, t, cuts, time[fold.held], event[fold.held]) for name, S in curves.items()}
        )
    joint, regressions = learned(every)
    names = [*regressions.models, JOINT]
    weight = np.full(len(names), 1.0 / len(names))
    if likelihoods:
        each = np.column_stack([np.concatenate([one[name] for one in likelihoods]) for name in names])
        weight = mixture_weights(np.log(np.maximum(each, _LEAST)))
    return SurvivalModel(joint, regressions, dict(zip(names, weight.tolist(), strict=True)), float(time.max()), seed)


def mixture_weights(log_density: np.ndarray) -> np.ndarray:
    """Weights (K,) that maximise the mean of log sum_k weight[k] exp(log_density[:, k]), log_density: (n, K)."""
    # The mean is concave in the weights, so EM from equal ones ends at its maximum. Rows that are impossible to all
    # members have no information.
    top = log_density.max(axis=1)
    known = np.isfinite(top)
    density = np.exp(log_density[known] - top[known, None])
    weight = np.full(log_density.shape[1], 1.0 / log_density.shape[1])
    for _ in range(_EM_STEPS if len(density) else 0):
        share = density * weight
        new = (share / share.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(new - weight).max() < 1e-9:
            return new
        weight = new
    return weight


def _log_like(S: np.ndarray, t: np.ndarray, cuts: np.ndarray, time: np.ndarray, event: np.ndarray) -> np.ndarray:
    """Likelihood (n,) of rows with curves S (n, q) at times t: of the cell between ``cuts`` with the event, or of S."""
    i, place = np.arange(len(time)), np.searchsorted(cuts, time)
    at_cuts = np.pad(S[:, np.searchsorted(t, cuts)], ((0, 0), (1, 0)), constant_values=1.0)
    at_cuts = np.pad(at_cuts, ((0, 0), (0, 1)))
    own = S[i, np.searchsorted(t, time)]
    return np.where(event, at_cuts[i, place] - at_cuts[i, place + 1], own)
