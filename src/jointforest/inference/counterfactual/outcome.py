"""What is wanted: an outcome of a column, or of a trained model, evaluated for many rows at once."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ...data.conditions import AllOf, AnyOf, Interval, Not, PerRow, check_hard, normal
from ...data.evidence import Evidence, intersect
from ...data.frames import decode
from ...data.meaning import contains, refuse_pair
from ...data.schema import Schema, near
from ...models.base import Distribution
from ...query_language.render import conditions_text


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
