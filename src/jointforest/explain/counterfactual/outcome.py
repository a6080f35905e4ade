"""What is wanted: an outcome of a column, or of a trained model, judged for many rows at once."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ...language import conditions_text
from ...model.model import Model
from ...queries.column.distribution import quantile
from ...queries.column.levels import level_probability
from ...queries.column.moments import mean_variance
from ...queries.posterior.density import log_density
from ...table import values as answers
from ...table.build_evidence import intersect
from ...table.conditions import AnyOf, check_hard, normal
from ...table.evidence import Evidence
from ...table.meaning import contains, refuse_pair


class Judged(NamedTuple):
    """Of n rows: whether the outcome is as wanted, and how near it is.

    Attributes
    ----------
    valid : bool array (n,)
    score : float64 array (n,)
        The greater the nearer; a probability of the wanted outcome where there is one.
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
    """A column of the joint: what the joint says of it, given the other cells of the row.

    One level is as wanted where no other is more probable; several levels, or an interval, where they are more probable
    than not.
    """

    has_probability = True

    def __init__(self, model: Model, name: Any, wanted: Any, n_jobs: int | None) -> None:
        self._model, self._n_jobs = model, n_jobs
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
        nothing = Evidence.of_values(np.full((1, len(self.looks_at)), np.nan))
        if np.isneginf(log_density(model, self.given(nothing))[0]):
            hint = "give a level that it had" if column.is_categorical else "give an interval: between(low, high)"
            raise ValueError(f"column {column.name!r}: the wanted outcome has probability 0: {self.text}; {hint}")
        codes = range(len(column.levels))
        self._codes = np.array([k for k in codes if contains(column, AnyOf(wanted), float(k))], dtype=np.int64)

    def judge(self, X: np.ndarray) -> Judged:
        evidence = self._others(X)
        if not self._column.is_categorical:
            with np.errstate(invalid="ignore"):
                log_share = log_density(self._model, self.given(evidence), self._n_jobs)
                share = np.exp(log_share - log_density(self._model, evidence, self._n_jobs))
            return Judged(share > 0.5, share)
        each = level_probability(self._model, evidence, self.target, self._n_jobs)
        share = each[:, self._codes].sum(axis=1)
        if len(self._codes) > 1:
            return Judged(share > 0.5, share)
        return Judged(np.where(np.isnan(each), -1.0, each).argmax(axis=1) == self._codes[0], share)

    def shown(self, X: np.ndarray) -> np.ndarray:
        evidence = self._others(X)
        if self._column.is_categorical:
            number = level_probability(self._model, evidence, self.target, self._n_jobs).argmax(axis=1).astype(float)
        else:
            number = mean_variance(self._model, evidence, self.target, self._n_jobs)[0]
        return answers.values(self._column, number)

    def given(self, evidence: Evidence) -> Evidence:
        return intersect(self._model.schema, evidence, self._event)

    def filled(self, X: np.ndarray) -> np.ndarray:
        evidence, out = self._others(X), X.copy()
        if self._column.is_categorical:
            each = level_probability(self._model, evidence, self.target, self._n_jobs)
            out[:, self.target] = self._codes[each[:, self._codes].argmax(axis=1)]
        else:
            middle = quantile(self._model, self.given(evidence), self.target, np.array([0.5]), self._n_jobs)
            out[:, self.target] = middle[:, 0]
        return out

    def _others(self, X: np.ndarray) -> Evidence:
        return Evidence.of_values(np.ascontiguousarray(X)).without(self.target)
