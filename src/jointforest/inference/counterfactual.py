"""What would have to be different: the outcome that is asked for, the search, and the rows that it may change."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import narwhals as nw
import numpy as np

from .. import cards
from ..cards import Html
from ..data.conditions import AllOf, AnyOf, Interval, Not, PerRow, check_hard, normal
from ..data.evidence import Evidence, intersect
from ..data.frames import decode, encode
from ..data.meaning import contains, refuse_pair
from ..data.schema import Column, Schema, near, snapped
from ..models.base import Distribution
from ..query_language.render import conditions_text
from ..runtime.parameters import check_number, seed_of
from .sampling import sample


class Judged(NamedTuple):
    """Of n rows: whether the outcome is as wanted, and how near it is.

    valid : bool array (n,)
    score : float64 array (n,). The greater the nearer; a probability of the wanted outcome where there is one.
    """

    valid: np.ndarray
    score: np.ndarray


class Outcome(Protocol):
    """What is predicted of rows, and what of it is wanted."""

    @property
    def text(self) -> str:
        """What is wanted, in words."""
        ...

    @property
    def target(self) -> int | None:
        """Number of the column that it is an outcome of; None of models."""
        ...

    @property
    def looks_at(self) -> np.ndarray:
        """Which columns matter, bool (d,)."""
        ...

    @property
    def has_probability(self) -> bool:
        """Whether scores are probabilities."""
        ...

    def judge(self, X: np.ndarray) -> Judged:
        """Rows (n, d) of numbers and codes, judged."""
        ...

    def shown(self, X: np.ndarray) -> np.ndarray:
        """What is predicted of rows (n, d), as users read it, (n,)."""
        ...

    def given(self, evidence: Evidence) -> Evidence:
        """The evidence and, where it is one of a column, the wanted outcome."""
        ...

    def filled(self, X: np.ndarray) -> np.ndarray:
        """Rows (n, d), with the wanted outcome in the target's cell where it is a column."""
        ...


class ColumnOutcome:
    """A column of the joint: its distribution given the other cells of the row. One level is as wanted where no other
    is more probable; several levels, or an interval, where they are more probable than not."""

    has_probability = True

    def __init__(self, model: Distribution, name: Any, wanted: Any) -> None:
        self._model = model
        self.target = model.schema.index(name)
        self._column = column = model.schema.columns[self.target]
        refuse_pair(column, wanted)
        wanted = normal(wanted)
        if wanted is None:
            raise ValueError(f"column {column.name!r}: wanted is None, which says nothing; give a level or an interval")
        check_hard({column.name: wanted})
        self._event = {column.name: AnyOf(wanted)}
        self.text = conditions_text({column.name: wanted})
        self.looks_at = np.ones(len(model.schema.columns), bool)
        self.looks_at[self.target] = False
        nothing = Evidence.nothing(len(self.looks_at))
        if np.isneginf(model.log_density(self.given(nothing))[0]):
            hint = "give a level that it had" if column.is_categorical else "give an interval: between(low, high)"
            raise ValueError(f"column {column.name!r}: the wanted outcome has probability 0: {self.text}; {hint}")
        codes = range(len(column.levels))
        self._codes = np.array([k for k in codes if contains(column, AnyOf(wanted), float(k))], dtype=np.int64)

    def judge(self, X: np.ndarray) -> Judged:
        evidence = self._others(X)
        if not self._column.is_categorical:
            with np.errstate(invalid="ignore"):
                log_share = self._model.log_density(self.given(evidence))
                share = np.exp(log_share - self._model.log_density(evidence))
            return Judged(share > 0.5, share)
        each = self._model.observe(evidence).level_probabilities(self.target)
        share = each[:, self._codes].sum(axis=1)
        if len(self._codes) > 1:
            return Judged(share > 0.5, share)
        return Judged(np.where(np.isnan(each), -1.0, each).argmax(axis=1) == self._codes[0], share)

    def shown(self, X: np.ndarray) -> np.ndarray:
        evidence = self._others(X)
        if self._column.is_categorical:
            number = self._model.observe(evidence).level_probabilities(self.target).argmax(axis=1).astype(float)
        else:
            number = self._model.observe(evidence).moments(self.target)[0]
        return self._column.values(number)

    def given(self, evidence: Evidence) -> Evidence:
        return intersect(self._model.schema, evidence, self._event)

    def filled(self, X: np.ndarray) -> np.ndarray:
        evidence, out = self._others(X), X.copy()
        if self._column.is_categorical:
            each = self._model.observe(evidence).level_probabilities(self.target)
            out[:, self.target] = self._codes[each[:, self._codes].argmax(axis=1)]
        else:
            middle = self._model.observe(self.given(evidence)).quantile(self.target, np.array([0.5]))
            out[:, self.target] = middle[:, 0]
        return out

    def _others(self, X: np.ndarray) -> Evidence:
        return Evidence.of_values(np.ascontiguousarray(X)).without(self.target)


# ---- A trained model, or a function that predicts, as an outcome.


class ModelOutcome:
    """Predictions of a model: a class, or a number in an interval.

    schema : Schema. Of the joint.
    model : object with ``predict``, or a function of a frame. With ``classes_``, ``predict_proba`` is used.
    """

    target = None

    def __init__(self, schema: Schema, model: Any, wanted: Any) -> None:
        self._model = model
        self._features, self._numbers = _features(schema, model)
        self.looks_at = np.isin(np.arange(len(schema.columns)), self._numbers)
        self.has_probability = hasattr(model, "classes_") and hasattr(model, "predict_proba")
        self._wanted = _wanted(wanted)
        if self.has_probability:
            if isinstance(self._wanted, Interval):
                hint = "for an interval of its probabilities give a function: lambda X: model.predict_proba(X)[:, 1]"
                raise ValueError(f"wanted: the model predicts classes, got {self._wanted!r}; {hint}")
            known = np.asarray(model.classes_).tolist()
            strange = [label for label in self._wanted if label not in known]
            if strange:
                raise ValueError(f"wanted: {strange[0]!r} is none of the model's classes; {near(strange[0], known)}")
            self._is_wanted = np.array([label in self._wanted for label in known])
        self.text = f"prediction {_wanted_in_words(self._wanted)}"

    def judge(self, X: np.ndarray) -> Judged:
        if self.has_probability:
            each = self._asked(self._model.predict_proba, X, 2)
            return Judged(self._is_wanted[each.argmax(axis=1)], each[:, self._is_wanted].sum(axis=1))
        got = self._predicted(X)
        if not isinstance(self._wanted, Interval):
            valid = np.array([label in self._wanted for label in got.tolist()], dtype=bool)
            return Judged(valid, valid.astype(np.float64))
        try:
            y = got.astype(np.float64)
        except ValueError:
            raise ValueError(
                f"wanted: {self._wanted!r} is an interval, but the model predicts {got[0]!r}; give a class"
            ) from None
        lo = -np.inf if self._wanted.lo is None else float(self._wanted.lo)
        hi = np.inf if self._wanted.hi is None else float(self._wanted.hi)
        above = y >= lo if self._wanted.closed in ("both", "left") else y > lo
        below = y <= hi if self._wanted.closed in ("both", "right") else y < hi
        return Judged(above & below, -np.maximum(np.maximum(lo - y, y - hi), 0.0))

    def shown(self, X: np.ndarray) -> np.ndarray:
        if not self.has_probability:
            return self._predicted(X)
        return np.asarray(self._model.classes_)[self._asked(self._model.predict_proba, X, 2).argmax(axis=1)]

    def given(self, evidence: Evidence) -> Evidence:
        return evidence

    def filled(self, X: np.ndarray) -> np.ndarray:
        return X

    def _predicted(self, X: np.ndarray) -> np.ndarray:
        return self._asked(getattr(self._model, "predict", self._model), X, 1)

    def _asked(self, function: Any, X: np.ndarray, ndim: int) -> np.ndarray:
        """The model's answer on rows (n, d), as a frame of its features; its shape is checked."""
        frame = decode(self._features, np.ascontiguousarray(X[:, self._numbers]))
        if getattr(self._model, "feature_names_in_", None) is None and hasattr(self._model, "n_features_in_"):
            frame = np.asarray(frame)
        got = np.asarray(function(frame))
        if ndim == 1 and got.ndim == 2 and got.shape[1] == 1:
            got = got[:, 0]
        if got.dtype.kind == "f" and np.isnan(got).any():
            gone = int(np.isnan(got.reshape(len(got), -1)).any(axis=1).sum())
            raise ValueError(
                f"the model: it predicts NaN of {gone} of {len(got)} rows; give a model, or a function, that has an "
                "answer for every row"
            )
        if got.ndim != ndim or len(got) != len(X):
            raise ValueError(
                f"the model: expected {'one prediction' if ndim == 1 else 'probabilities'} a row, of {len(X)} rows; "
                f"got an array of shape {got.shape}"
            )
        return got


def _features(schema: Schema, model: Any) -> tuple[Schema, list[int]]:
    """The columns that the model is shown, as a schema and as numbers; functions and predictors are shown all."""
    if not callable(model) and not hasattr(model, "predict"):
        raise TypeError(
            "model_or_target: expected the name of a column, a model with predict, or a function of a frame, "
            f"got {type(model).__name__}"
        )
    if isinstance(model, type):
        raise TypeError(f"model_or_target: got the class {model.__name__} itself; give a fitted model")
    names, n = getattr(model, "feature_names_in_", None), getattr(model, "n_features_in_", None)
    if names is not None and not hasattr(model, "joint"):
        wanted = [str(name) for name in np.asarray(names).tolist()]
    elif n is not None and names is None:
        wanted = list(schema.all_columns.names[: int(n)])
    else:
        return schema, list(range(len(schema.columns)))
    # columns without a known cell at learning are shown to the model with missing cells
    empty = {column.name: column for _, column in schema.unknown if column.aside is None}
    unknown = tuple((place, empty[name]) for place, name in enumerate(wanted) if name in empty)
    numbers = [schema.index(name) for name in wanted if name not in empty]
    return Schema(tuple(schema.columns[j] for j in numbers), schema.frame, unknown), numbers


def _wanted(wanted: Any) -> Interval | tuple[Any, ...]:
    """An interval, or the classes that are wanted."""
    if isinstance(wanted, tuple) and len(wanted) == 2 and all(isinstance(end, int | float) for end in wanted):
        raise ValueError(
            f"wanted: the pair {wanted!r} may be an interval or two classes; did you mean between{wanted!r} or "
            f"{list(wanted)!r}?"
        )
    wanted = normal(wanted)
    if wanted is None:
        raise ValueError("wanted: None says nothing; give a class, or an interval such as between(0.5, None)")
    if isinstance(wanted, AllOf | Not | PerRow):
        raise TypeError(f"wanted: of a model give a class, a list of classes or an interval, got {wanted!r}")
    if isinstance(wanted, AnyOf):
        if any(isinstance(one, Interval | AllOf | Not | AnyOf) for one in wanted.conditions):
            raise TypeError(f"wanted: of a model give a class, a list of classes or one interval, got {wanted!r}")
        return wanted.conditions
    return wanted if isinstance(wanted, Interval) else (wanted,)


def _wanted_in_words(wanted: Interval | tuple[Any, ...]) -> str:
    if isinstance(wanted, tuple):
        return " or ".join(map(repr, wanted))
    lo = [f"{'at least' if wanted.closed in ('both', 'left') else 'more than'} {wanted.lo}"] * (wanted.lo is not None)
    hi = [f"{'at most' if wanted.closed in ('both', 'right') else 'less than'} {wanted.hi}"] * (wanted.hi is not None)
    return " and ".join(lo + hi)


# ---- What counterfactuals are: rows, and what changed in each.


@dataclass(frozen=True, repr=False)
class Counterfactuals:
    """Rows near one row of which another outcome is predicted; made by `Joint.counterfactual`.

    Attributes
    ----------
    rows : frame of m rows
        Of all columns, as at learning; m is less than asked for if no more were found. Cells that were missing still
        are. A column that is the target has the wanted outcome.
    changed : tuple of m dicts
        By column the cell before and after.
    distance : float64 array (m,)
        Gower's distance to the row: the mean over its known cells, the target's left out, of the change as a share of
        the range that learning saw, of levels 0 or 1.
    log_density : float64 array (m,)
        ``Joint.log_density`` of the row without the target's cell.
    outcome : array (m,)
        What is predicted of each row: a level, class or number (of a column of numbers its mean).
    validity : float64 array (m,)
        Probability of the wanted outcome, as the joint or the model gives it; 1 of models that give none.
    log_floor : float
        Least log-density that rows might have; -inf: any but impossible ones.
    is_fewest : bool
        Whether it is certain that no row that will do has fewer changes than the first.
    text : str
        As ``print`` shows it.
    """

    rows: Any
    changed: tuple[dict[Any, tuple[Any, Any]], ...]
    distance: np.ndarray
    log_density: np.ndarray
    outcome: np.ndarray
    validity: np.ndarray
    log_floor: float
    is_fewest: bool
    text: str

    def __len__(self) -> int:
        return len(self.changed)

    def __str__(self) -> str:
        lines = [self.text]
        table = self._table()
        widths = [max(len(line[k]) for line in table) for k in range(4)]
        for line in table if len(self) else []:
            cells = [cell.rjust(width) for cell, width in zip(line[:4], widths, strict=True)]
            lines.append("  ".join(["", *cells, line[4]]))
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = []
        for k, changes in enumerate(self.changed):
            said = (
                f"{cards.words(str(name))}: {cards.words(_brief(old))} &rarr; <b>{cards.words(_brief(new))}</b>"
                for name, (old, new) in changes.items()
            )
            share = float(self.validity[k])
            row = [_brief(self.outcome[k]), cards.percent(share), Html(cards.bar_svg(share)), f"{self.distance[k]:.3f}"]
            rows.append([*row, f"{self.log_density[k]:.1f}", Html("<br>".join(said))])
        header = ("outcome", "validity", "", "distance", "log-density", "changes")
        return cards.view_html(self.text, [], [cards.table_html(rows, header)] if rows else [])

    def _table(self) -> list[tuple[str, ...]]:
        """Titles, and a line a row."""
        lines: list[tuple[str, ...]] = [("outcome", "validity", "distance", "log-density", "changes")]
        for k, changes in enumerate(self.changed):
            shown = self.outcome[k]
            said = "; ".join(f"{name}: {_brief(old)} -> {_brief(new)}" for name, (old, new) in changes.items())
            numbers = f"{self.validity[k]:.2f}", f"{self.distance[k]:.3f}", f"{self.log_density[k]:.1f}"
            lines.append((_brief(shown), *numbers, said))
        return lines


def _brief(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) and value != round(value) else str(value)


# ---- From many rows that will do a few near ones that differ from each other.

_STEPS = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
"""Places on the way from a row's number to another that are tried, the nearest first."""
_LOST = 1.0
"""Nats of log-density that a row may lose when its numbers come nearer."""


def _choose(p: Problem, X: np.ndarray, n: int) -> np.ndarray:
    """At most n of the rows X (m, d): fewest changes first, then nearest, then most probable."""
    # Needless changes are undone, and numbers moved nearer. Rows whose changed columns contain those of no other come
    # first.
    if not len(X):
        return X
    X = X[_ranked(p, X)]
    X = X[unlike(p, X)]
    mask = p.changed(X)
    of_set = {tuple(np.flatnonzero(one)): 0 for one in mask}
    diverse = []
    for i, one in enumerate(mask):  # the best of each set
        key = tuple(np.flatnonzero(one))
        of_set[key] += 1
        if of_set[key] <= n:
            diverse.append(i)
    X = _simpler(p, X[diverse[: 10 * n]])
    X = np.vstack([_nearer(p, X), X])  # what comes near may be alike; then those as they were drawn make the number up
    X = X[_ranked(p, X)]
    X = X[unlike(p, X)]
    sets = [frozenset(np.flatnonzero(one).tolist()) for one in p.changed(X)]
    first: list[int] = []
    for i, one in enumerate(sets):
        if not any(sets[k] <= one for k in first):
            first.append(i)
    others = [i for i in range(len(X)) if i not in set(first) and sets[i] in {sets[k] for k in first}]
    chosen = X[[*first, *others][:n]]
    return chosen[_ranked(p, chosen)]


def _ranked(p: Problem, X: np.ndarray) -> np.ndarray:
    """Order of rows (m, d): by changes, distance, log-density; (m,)."""
    return np.lexsort([-p.log_density(X), gower(p.columns, X, p.row).round(12), p.changed(X).sum(axis=1)])


def _simpler(p: Problem, X: np.ndarray) -> np.ndarray:
    """Rows with each change taken back that is not needed."""
    X = X.copy()
    for j in p.free:
        trial = X.copy()
        trial[:, j] = p.row[j]
        rows = np.flatnonzero(p.changed(X)[:, j] & p.changed(trial).any(axis=1))
        if len(rows):
            fits = rows[p.plausible(trial[rows])[0] & p.outcome.judge(trial[rows]).valid]
            X[fits] = trial[fits]
    return X


def _nearer(p: Problem, X: np.ndarray) -> np.ndarray:
    """Rows whose numbers are as near to the row's as one of `_STEPS` on the way, at about the same density."""
    X, least = X.copy(), np.maximum(p.log_density(X) - _LOST, p.log_floor)
    for j in p.free:
        rows = np.flatnonzero(X[:, j] != p.row[j])
        if p.columns[j].is_categorical or not len(rows):
            continue
        trial = np.repeat(X[rows], len(_STEPS), axis=0)
        way = p.row[j] + np.tile(_STEPS, len(rows)) * (trial[:, j] - p.row[j])
        trial[:, j] = within_range((p.columns[j],), way[:, None])[:, 0]
        fits = (trial[:, j] != p.row[j]) & (p.log_density(trial) >= np.repeat(least[rows], len(_STEPS)))
        fits[fits] = p.outcome.judge(trial[fits]).valid if fits.any() else False
        for i, one in enumerate(fits.reshape(len(rows), len(_STEPS))):
            if one.any():
                X[rows[i], j] = trial[i * len(_STEPS) + int(one.argmax()), j]
    return X


# ---- Search over sets of columns to change, small sets first.

_MOST_SETS = 96
"""Sets of one size that are tried, the most promising first, where not all rows can be."""
_MOST_ROWS = 20_000
"""Rows of one size that are all tried."""
MORE = 1
"""How many changes more than the least rows may have."""


class _FoundRows(NamedTuple):
    """Plausible rows with the wanted outcome.

    X : float64 array (n, d)
    is_fewest : bool. Whether all rows with fewer changes than the first were tried, so that none of these will do.
    """

    X: np.ndarray
    is_fewest: bool


def _search_rows(p: Problem, n: int, seed: int) -> _FoundRows:
    """Rows with few changes: sets of columns of size 1, 2, ... until n sets without a needless column are known."""
    # Supersets of a successful set are not tried. Where a size has too many rows, sets are ranked by how near their
    # best subset came to the wanted outcome.
    values = {j: every_value(p.columns[j], float(p.row[j])) for j in p.free}
    free = tuple(j for j in p.free if (candidates := values[j]) is None or len(candidates))  # not constant ones
    score: dict[Columns, float] = {}
    minimal: list[frozenset[int]] = []
    best: dict[int, list[float]] = {}
    hits: list[np.ndarray] = []
    complete = is_fewest = True
    for size in range(1, len(free) + 1):
        if len(minimal) >= n or (minimal and size > min(map(len, minimal)) + MORE and _n_unlike(p, hits) >= n):
            break
        sets, all_sets = _sets(free, size, minimal, score)
        if not sets:
            break
        rows = every_row(p, sets, values, _MOST_ROWS) if all_sets else []
        if rows:
            X, owner = np.vstack(rows), np.repeat(np.arange(len(sets)), [len(one) for one in rows])
        else:
            sets = _most_promising(sets, score)
            X, owner = rows_for(p, sets, values, best, seed + size)
        valid, plausible, nearness = _tried(p, X)
        for i in np.unique(owner[plausible]).tolist():
            score[sets[i]] = float(nearness[plausible & (owner == i)].max())
        if size == 1:
            best = {
                columns[0]: _best_values(X[owner == i, columns[0]], nearness[owner == i])
                for i, columns in enumerate(sets)
            }
        hits.append(X[valid])
        if valid.any() and not minimal:
            is_fewest = complete or bool((p.changed(X[valid]).sum(axis=1) == 1).any())
        minimal = _minimal([*minimal, *(frozenset(np.flatnonzero(one).tolist()) for one in p.changed(X[valid]))])
        complete = complete and bool(rows)
    return _FoundRows(np.vstack(hits) if hits else np.empty((0, len(p.row))), is_fewest and bool(minimal))


def _n_unlike(p: Problem, hits: list[np.ndarray]) -> int:
    """How many of the rows found are unlike each other."""
    return len(unlike(p, np.vstack(hits)))


def _tried(p: Problem, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which rows (n, d) will do, which are plausible and changed, and how near each is to the outcome, each (n,)."""
    valid, score = np.zeros(len(X), bool), np.full(len(X), -np.inf)
    cells = ~p.changed(X) | (within_range(p.columns, X) == X)  # draws of tails beyond the range, cells that lack a draw
    X_once, place = np.unique(X, axis=0, return_inverse=True)
    ok = p.plausible(X_once)[0][place.ravel()] & cells.all(axis=1) & p.changed(X).any(axis=1)
    accepted = np.flatnonzero(ok)
    if len(accepted):
        judged = p.outcome.judge(X[accepted])
        valid[accepted], score[accepted] = judged.valid, judged.score
    return valid, ok, score


def _sets(
    free: tuple[int, ...], size: int, minimal: list[frozenset[int]], score: dict[Columns, float]
) -> tuple[list[Columns], bool]:
    """Sets of a size that hold none of the minimal ones, and whether these are all; else those above sets tried."""
    few = size == 1 or math.comb(len(free), size) <= _MOST_ROWS
    sets: Iterable[Columns] = itertools.combinations(free, size) if few else ()
    if not few:
        sets = {tuple(sorted({*s, j})) for s in score if len(s) == size - 1 for j in free if j not in s}
    return sorted(s for s in sets if not any(m <= set(s) for m in minimal)), few


def _most_promising(sets: list[Columns], score: dict[Columns, float]) -> list[Columns]:
    """At most `_MOST_SETS` of them: by the best of the subsets tried that lack one column, then by the other's own."""

    def promise(columns: Columns) -> tuple[float, float]:
        subsets = [(score.get(tuple(k for k in columns if k != j), -np.inf), j) for j in columns]
        top, j = max(subsets)
        return top, score.get((j,), -np.inf)

    return sets if len(sets) <= _MOST_SETS else sorted(sets, key=promise, reverse=True)[:_MOST_SETS]


def _best_values(values: np.ndarray, nearness: np.ndarray) -> list[float]:
    """The values (k,) of a column that come nearest to the wanted outcome alone."""
    order = np.argsort(-nearness, kind="stable")
    order = order[nearness[order] > -np.inf]
    return list(dict.fromkeys(values[order].tolist()))[:BEST]


def _minimal(sets: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Those that hold no other."""
    out: list[frozenset[int]] = []
    for one in sorted(set(sets), key=lambda s: (len(s), sorted(s))):
        if one and not any(other <= one for other in out):
            out.append(one)
    return out


def counterfactual(
    model: Distribution,
    row: Any,
    model_or_target: Any,
    wanted: Any,
    fixed: Sequence[str],
    n: int,
    unlikely: float,
    random_state: Any,
) -> Counterfactuals:
    """See `Joint.counterfactual`."""
    check_number("n", n, 1, whole=True, text="a positive integer")
    check_number("unlikely", unlikely, 0, 100, without="high", text="a percentage, at least 0 and less than 100")
    schema, seed = model.schema, seed_of(random_state)
    x = _row(schema, row)
    outcome: Outcome
    if isinstance(model_or_target, str | int):
        outcome = ColumnOutcome(model, model_or_target, wanted)
        x[outcome.target] = np.nan
    else:
        outcome = ModelOutcome(schema, model_or_target, wanted)
    is_fixed = _fixed(schema, fixed, outcome)
    known = ~np.isnan(x)
    free = known & ~is_fixed
    if not (free & outcome.looks_at).any():
        raise ValueError(
            f"no cell may change: {int(known.sum())} of {len(x)} cells of the row are known, and these are fixed or of "
            "columns that the outcome does not depend on; fix fewer"
        )
    if bool(outcome.judge(x[None]).valid[0]):
        raise ValueError(f"the outcome of the row is as wanted already: {outcome.text}; ask for another one")
    _check_possible(model, outcome, x, is_fixed & known)
    pool = drawn_pool(model, outcome, x, is_fixed & known, seed)
    log_floor = floor_of(model, x, pool, float(unlikely))
    problem = Problem(model, outcome, x, tuple(np.flatnonzero(free).tolist()), pool, log_floor)
    rows = _search_rows(problem, int(n), seed)
    return _result(problem, _choose(problem, rows.X, int(n)), rows.is_fewest)


def _row(schema: Schema, row: Any) -> np.ndarray:
    """Numbers and codes of one row (d,): a frame of one row, a dict of cells by column, or a pandas Series."""
    if nw.dependencies.is_pandas_series(row):
        row = row.to_dict()
    if isinstance(row, Mapping):
        out = np.full(len(schema.columns), np.nan)
        for name, cell in row.items():
            j = schema.index(name)
            missing = cell is None or cell != cell or type(cell).__name__ in ("NAType", "NaTType")
            out[j] = np.nan if missing else schema.columns[j].to_number(cell)
        return out
    X, unseen = encode(schema, row)
    if len(X) != 1:
        raise ValueError(f"row: expected one row, got {len(X)}; pick one: frame[i : i + 1]")
    if unseen.any():
        names = [schema.names[j] for j in np.flatnonzero(unseen[0])]
        raise ValueError(
            f"row: column {names[0]!r} has a level never seen at learning; leave the cell out, or name another"
        )
    return X[0]


def _fixed(schema: Schema, fixed: Sequence[str], outcome: Outcome) -> np.ndarray:
    """Which columns are fixed, bool (d,)."""
    if isinstance(fixed, str):
        raise TypeError(f"fixed: expected a list of columns, got the text {fixed!r}; write [{fixed!r}]")
    out = np.zeros(len(schema.columns), bool)
    for name in fixed:
        out[schema.index(name)] = True
    if outcome.target is not None and out[outcome.target]:
        raise ValueError(
            f"fixed: column {schema.names[outcome.target]!r} is the target, whose outcome shall be another"
        )
    return out


def _check_possible(model: Distribution, outcome: Outcome, x: np.ndarray, fixed: np.ndarray) -> None:
    """A ValueError if the row's fixed cells, with the wanted outcome, have probability 0."""
    evidence = Evidence.of_values(np.where(fixed, x, np.nan)[None])
    if np.isneginf(model.log_density(outcome.given(evidence))[0]):
        names = ", ".join(repr(model.schema.names[j]) for j in np.flatnonzero(fixed))
        raise ValueError(
            f"the wanted outcome has probability 0 given the fixed cells ({names}): {outcome.text}; fix fewer"
        )


def _result(p: Problem, X: np.ndarray, is_fewest: bool) -> Counterfactuals:
    """Rows with all their results."""
    m, mask, schema = len(X), p.changed(X), p.model.schema
    cells = schema.columns
    changed = tuple(
        {
            cells[j].label: (cells[j].from_number(p.row[j]), cells[j].from_number(X[i, j]))
            for j in np.flatnonzero(mask[i])
        }
        for i in range(m)
    )
    score = p.outcome.judge(X).score if m else np.empty(0)
    fewest = int(mask[0].sum()) if m else 0
    return Counterfactuals(
        rows=decode(schema, np.ascontiguousarray(p.outcome.filled(X) if m else X)),
        changed=changed,
        distance=gower(cells, X, p.row),
        log_density=p.log_density(X) if m else np.empty(0),
        outcome=p.outcome.shown(X) if m else np.empty(0, dtype=object),
        validity=score if p.outcome.has_probability else np.ones(m),
        log_floor=p.log_floor,
        is_fewest=is_fewest and m > 0,
        text=_outcome_in_words(p.outcome.text, m, fewest, is_fewest),
    )


def _outcome_in_words(wanted: str, m: int, fewest: int, is_fewest: bool) -> str:
    if not m:
        return f"wanted: {wanted}. No plausible row was found; fix fewer columns, or admit unlikely rows: unlikely=0"
    rows = f"{m} row{'' if m == 1 else 's'}, {fewest} change{'' if fewest == 1 else 's'} or more"
    return f"wanted: {wanted}. {rows}" + ("; fewer will not do" if is_fewest and fewest > 1 else "")


# ---- One row, what may change in it, and which changed rows will do.


POOL = 1000
"""Rows drawn given the fixed cells and the wanted outcome."""
_BINS = 10
"""Rows that agree in all levels and in these parts of the ranges are alike."""


class Problem(NamedTuple):
    """The question.

    model : Distribution
    outcome : Outcome
    row : float64 array (d,). Numbers and codes; NaN where nothing is known, and in the target's cell.
    free : tuple of int. Columns that may change: known and not fixed.
    pool : float64 array (m, d). Rows of the joint given the fixed cells and the wanted outcome.
    log_floor : float. Least log-density of a row's known cells; -inf: all rows that are not impossible.
    """

    model: Distribution
    outcome: Outcome
    row: np.ndarray
    free: tuple[int, ...]
    pool: np.ndarray
    log_floor: float

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.model.schema.columns

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """log p(known cells) of rows (n, d), the target's cell left out, (n,)."""
        return self.model.log_density(Evidence.of_values(np.ascontiguousarray(X)))

    def plausible(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which rows (n, d) are possible and at least as dense as the floor, and their log-densities."""
        log_density = self.log_density(X)
        return (log_density > -np.inf) & (log_density >= self.log_floor), log_density

    def changed(self, X: np.ndarray) -> np.ndarray:
        """Which cells of rows (n, d) are not the row's, bool (n, d)."""
        return (self.row != X) & ~np.isnan(self.row)


def drawn_pool(model: Distribution, outcome: Outcome, row: np.ndarray, fixed: np.ndarray, seed: int) -> np.ndarray:
    """Rows (m, d) of the joint given the fixed cells (a mask) and the wanted outcome, where rows have it."""
    # What a model predicts cannot be evidence: then they are the draws of which it is predicted, or all if these are
    # few.
    evidence = outcome.given(Evidence.of_values(np.where(fixed, row, np.nan)[None]))
    X = sample(model, evidence, POOL, seed)
    X = X[~np.isnan(X).all(axis=1)]
    if outcome.target is None and len(X):
        X = np.where(fixed, row, within_range(model.schema.columns, X))
        valid = outcome.judge(np.where(np.isnan(row), np.nan, X)).valid
        X = X[valid] if valid.sum() >= 50 else X
    return X


def floor_of(model: Distribution, row: np.ndarray, pool: np.ndarray, unlikely: float) -> float:
    """The row's own log-density, or that of all but ``unlikely`` percent of the pool, whichever is less."""
    if unlikely == 0.0:
        return -np.inf
    X = np.vstack([row, np.where(np.isnan(row), np.nan, pool)])
    log_density = model.log_density(Evidence.of_values(X))
    return float(min(log_density[0], np.quantile(log_density[1:], unlikely / 100.0)))


def within_range(columns: tuple[Column, ...], X: np.ndarray) -> np.ndarray:
    """Rows (n, d) with numbers on their grids and within the range that learning saw."""
    out = X.copy()
    for j, column in enumerate(columns):
        if not column.is_categorical:
            out[:, j] = snapped(column, np.clip(X[:, j], column.minimum, column.maximum))
    return out


def unlike(p: Problem, X: np.ndarray) -> np.ndarray:
    """Numbers of the rows (m, d) that are unlike all before them, ascending."""
    key = X.copy()
    for j, column in enumerate(p.columns):
        if not column.is_categorical and column.maximum > column.minimum:
            part = np.floor((X[:, j] - column.minimum) / (column.maximum - column.minimum) * _BINS)
            key[:, j] = np.where(X[:, j] == p.row[j], -1.0, part)
    return np.sort(np.unique(np.nan_to_num(key, nan=-2.0), axis=0, return_index=True)[1])


# ---- Rows to try for a set of columns to change: all of them where these are few, else draws.

Columns = tuple[int, ...]

FEW_VALUES = 64
"""A column of more cells between its least and greatest number is not tried value by value."""
_DRAWS = 32
"""Draws for a set of several columns; for one column twice as many."""
BEST = 2
"""Values of a column that are combined with those of other columns."""
LARGEST_PRODUCT = 64
"""Combinations of values that are all tried for a set in any case."""


def every_value(column: Column, value: float) -> np.ndarray | None:
    """All values that a cell may change to, (k,); None if they are too many."""
    if column.is_categorical:
        values = np.arange(len(column.levels), dtype=np.float64)
    elif column.step == 0.0 or (column.maximum - column.minimum) / column.step >= FEW_VALUES:
        return None
    else:
        n = round((column.maximum - column.minimum) / column.step) + 1
        values = within_range((column,), (column.minimum + column.step * np.arange(n))[:, None])[:, 0]
    return values[values != value]


def all_rows(p: Problem, columns: Columns, values: list[np.ndarray]) -> np.ndarray:
    """The row with all combinations of values (k_1,), (k_2,), ... in these columns, (k_1 k_2 ..., d)."""
    cells = np.array(list(itertools.product(*values))).reshape(-1, len(columns))
    out = np.tile(p.row, (len(cells), 1))
    out[:, columns] = cells
    return out


def pooled_rows(p: Problem, columns: Columns, n: int) -> np.ndarray:
    """The row with the cells that these columns have in the pool, at most n of them, evenly spread in their order."""
    cells = np.unique(p.pool[:, columns], axis=0)
    cells = cells[np.unique(np.linspace(0, len(cells) - 1, n).round().astype(int))] if len(cells) else cells
    out = np.tile(p.row, (len(cells), 1))
    out[:, columns] = cells
    return out


def drawn_rows(p: Problem, sets: list[Columns], n: int, seed: int) -> np.ndarray:
    """n draws of each of k sets of columns given the rest of the row and the wanted outcome, contiguous, (k * n, d)."""
    known = np.tile(p.row, (len(sets), 1))
    free = np.zeros(known.shape, bool)
    for i, columns in enumerate(sets):
        free[i, columns] = True
    known[free] = np.nan
    drawn = sample(p.model, p.outcome.given(Evidence.of_values(known)), n, seed)
    return np.where(np.repeat(free, n, axis=0), drawn, p.row)


def rows_for(
    p: Problem, sets: list[Columns], values: dict[int, np.ndarray | None], best: dict[int, list[float]], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to try (n, d), and the number of the set that each belongs to, (n,)."""
    # ``values`` are all values of a column, or None; ``best`` the values that were nearest to the wanted outcome alone.
    few = [_n_combinations(columns, values) <= LARGEST_PRODUCT for columns in sets]
    many = [i for i, is_few in enumerate(few) if not is_few]
    n = _DRAWS if len(sets[0]) > 1 else 2 * _DRAWS
    rows, owner = [], []
    if many:
        rows.append(drawn_rows(p, [sets[i] for i in many], n, seed))
        owner.append(np.repeat(many, n))
    for i, columns in enumerate(sets):
        if few[i]:
            candidates = all_rows(p, columns, [_known(values[j]) for j in columns])
        else:
            candidates = pooled_rows(p, columns, n)
            chosen = [np.array(best.get(j, [])) for j in columns]
            if 1 < len(columns) <= 4:
                candidates = np.vstack([candidates, all_rows(p, columns, chosen)])
        rows.append(candidates)
        owner.append(np.full(len(candidates), i))
    return np.vstack(rows), np.concatenate(owner)


def every_row(p: Problem, sets: list[Columns], values: dict[int, np.ndarray | None], most: int) -> list[np.ndarray]:
    """All rows of each set; none at all if a set has too many values, or all sets more than ``most`` rows."""
    if sum(_n_combinations(columns, values) for columns in sets) > most:
        return []
    return [all_rows(p, columns, [_known(values[j]) for j in columns]) for columns in sets]


def _n_combinations(columns: Columns, values: dict[int, np.ndarray | None]) -> float:
    """Number of combinations of a set's values; infinite if one column has too many."""
    return float(np.prod([np.inf if (candidates := values[j]) is None else float(len(candidates)) for j in columns]))


def _known(values: np.ndarray | None) -> np.ndarray:
    assert values is not None
    return values


# ---- Gower's distance of rows to one row, by the ranges of a joint's columns.


def gower(columns: tuple[Column, ...], X: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Gower distance of rows (n, d) to a row (d,), 0 to 1, over the row's known cells, (n,)."""
    known = np.flatnonzero(~np.isnan(row)).tolist()
    total = np.zeros(len(X))
    for j in known:
        gap = np.abs(X[:, j] - row[j])
        if columns[j].is_categorical and columns[j].kind != "ordered":
            total += gap > 0.0
            continue
        width = len(columns[j].levels) - 1.0 if columns[j].is_categorical else columns[j].maximum - columns[j].minimum
        total += np.minimum(gap / width, 1.0) if width > 0.0 else gap > 0.0
    return total / max(len(known), 1)
