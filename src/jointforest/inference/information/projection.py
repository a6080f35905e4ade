"""Some columns of a model in the numbers of another model's schema: so that both can be asked of the same rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...cards import html
from ...data.evidence import Evidence, build
from ...data.schema import Column, Schema, near
from ...models.base import Distribution, PosteriorState
from ...models.box_forest.structure import Forest
from ..sampling import sample

Columns = tuple[int, ...]
"""Numbers of a view's columns."""


@dataclass(frozen=True)
class ModelView:
    """k columns of a model, in the numbers of a reference schema (its own, or another model's).

    number : tuple of int. Number in the model of each of the k columns.
    code : tuple of int64 arrays or None. Of a column of levels: the model's code of each of the reference's.
    shift : tuple of float. Of a numeric column: what to add to the reference's numbers (date-times have origins).
    foreign : tuple of float64 arrays. Atoms of the other model alone: their probability is 0.
    """

    model: Distribution
    number: tuple[int, ...]
    code: tuple[np.ndarray | None, ...]
    shift: tuple[float, ...]
    foreign: tuple[np.ndarray, ...]

    @property
    def forest(self) -> Forest:
        """The model's forest; a ValueError if it is not one."""
        return self.model.forest_for("a closed form")

    @property
    def columns(self) -> list[Column]:
        """The model's own k columns."""
        return [self.model.schema.columns[j] for j in self.number]

    @cached_property
    def marginals(self) -> PosteriorState:
        """The model given nothing, whose answers about single columns share what they have in common."""
        return self.model.observe(build(self.model.schema))

    def evidence(self, X: np.ndarray, of: Columns) -> Evidence:
        """Some of the k columns of rows (n, k) in the reference's numbers, as evidence for the model."""
        cells = np.full((len(X), len(self.model.schema.columns)), np.nan)
        for k in of:
            code = self.code[k]
            cells[:, self.number[k]] = X[:, k] + self.shift[k] if code is None else code[X[:, k].astype(np.int64)]
        return build(self.model.schema, cells)

    def log_density(self, X: np.ndarray, of: Columns) -> np.ndarray:
        """Log-density (n,) of some of the k columns of rows (n, k) in the reference's numbers."""
        evidence = self.evidence(X, of)
        log_density = np.where(self.model.is_seen(evidence), self.model.log_density(evidence), -np.inf)
        for k in of:
            if len(self.foreign[k]):
                log_density = np.where(np.isin(X[:, k], self.foreign[k]), -np.inf, log_density)
        return log_density

    def draw(self, n: int, seed: int) -> np.ndarray:
        """n rows drawn from the model, float64 (n, k), in the reference's numbers."""
        whole_rows = sample(self.model, build(self.model.schema), n, seed)
        drawn = np.empty((n, len(self.number)))
        for k, (j, code) in enumerate(zip(self.number, self.code, strict=True)):
            drawn[:, k] = (
                whole_rows[:, j] - self.shift[k]
                if code is None
                else np.argsort(code)[whole_rows[:, j].astype(np.int64)]
            )
        return drawn


def view(model: Distribution, number: tuple[int, ...]) -> ModelView:
    """Columns of a model, by number, in its own numbers."""
    k = len(number)
    return ModelView(model, number, (None,) * k, (0.0,) * k, (np.empty(0),) * k)


def views(model: Distribution, other: Distribution, number: tuple[int, ...]) -> tuple[ModelView, ModelView]:
    """Columns, by number in the first model, of two models, both in the first one's numbers."""
    columns = [model.schema.columns[j] for j in number]
    twins = [_twin(column, other.schema) for column in columns]
    for column, twin in zip(columns, twins, strict=True):
        _check_same_values(column, twin)
    code = tuple(
        np.array([twin.codes[level] for level in column.levels]) if column.is_categorical else None
        for column, twin in zip(columns, twins, strict=True)
    )
    shift = tuple(
        column.origin - twin.origin if column.kind == "datetime" else 0.0
        for column, twin in zip(columns, twins, strict=True)
    )
    pairs = list(zip(columns, twins, strict=True))
    ours = replace(view(model, number), foreign=tuple(_foreign(column, twin) for column, twin in pairs))
    theirs = tuple(other.schema.index(column.name) for column in columns)
    foreign = tuple(_foreign(twin, column) for column, twin in pairs)
    return ours, ModelView(other, theirs, code, shift, foreign)


def _twin(column: Column, schema: Schema) -> Column:
    if column.name not in schema.names:
        hint = near(column.name, schema.names)
        raise ValueError(f"the other model has no column {column.name!r}; {hint}; name the columns that both have")
    return schema[column.name]


def _check_same_values(column: Column, twin: Column) -> None:
    """A ValueError unless values of one column can be values of the other."""
    of = f"column {column.name!r}"
    hint = "learn both models with the same kinds"
    if column.is_categorical != twin.is_categorical or (column.kind == "datetime") != (twin.kind == "datetime"):
        raise ValueError(f"{of}: {column.kind} in one model, {twin.kind} in the other; {hint}")
    if column.is_categorical:
        odd = sorted(set(column.levels) ^ set(twin.levels), key=str)
        if odd:
            shown = ", ".join(repr(level) for level in odd[:5]) + (", ..." if len(odd) > 5 else "")
            hint = "learn both models with the same levels, such as those of a pandas Categorical"
            raise ValueError(f"{of}: levels of one model that the other does not know: {shown}; {hint}")
        return
    origin = column.origin - twin.origin
    aligned = column.step == 0.0 or abs(origin / column.step - round(origin / column.step)) < 1e-6
    if column.step == twin.step and not aligned:
        raise ValueError(
            f"{of}: on grids of {column.step:g} ({column.kind}) in both models, but the cells of one lie between those "
            f"of the other; {hint}, from values on the same grid"
        )
    if column.step != twin.step:
        grids = [
            f"on a grid of {c.step:g} ({c.kind})" if c.step else f"without grid ({c.kind})" for c in (column, twin)
        ]
        raise ValueError(f"{of}: {grids[0]} in one model, {grids[1]} in the other; {hint}")


def _foreign(column: Column, twin: Column) -> np.ndarray:
    """Atoms of the twin that the column has not; on grids atoms are cells, which both have."""
    if column.is_categorical or column.step > 0.0:
        return np.empty(0)
    return np.setdiff1d(twin.atoms, column.atoms)


# ---- A number that is exact, or the mean over draws with its standard error.


class Estimate(NamedTuple):
    """A number, and how well it is known.

    Attributes
    ----------
    value : float
        Natural logarithms: nats.
    standard_error : float
        Of the mean over the draws; 0 if the answer is exact, NaN if it is infinite.
    method : str
        ``"exact"`` (to about 1e-6) or ``"sampling"``.
    """

    value: float
    standard_error: float
    method: str

    def _repr_html_(self) -> str:
        error = "" if self.method == "exact" else f" ± {self.standard_error:.2g} (standard error of draws)"
        return html.view_html(f"{self.value:.6g}{error}", [self.method] if self.method == "exact" else [], [])


def exact(value: float) -> Estimate:
    """An answer without sampling."""
    return Estimate(float(value), 0.0 if np.isfinite(value) else np.nan, "exact")


def averaged(*draws: np.ndarray) -> Estimate:
    """The mean over strata of equal weight of the means of their draws, with its standard error."""
    value = float(np.mean([x.mean() for x in draws]))
    if not np.isfinite(value):
        return Estimate(value, np.nan, "sampling")
    variance = sum(x.var(ddof=1) / len(x) for x in draws) / len(draws) ** 2
    return Estimate(value, float(np.sqrt(variance)), "sampling")
