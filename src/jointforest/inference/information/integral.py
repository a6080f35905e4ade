"""Sums and integrals of densities over a few columns, after all others are summed out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ... import cards
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
        return cards.view_html(f"{self.value:.6g}{error}", [self.method] if self.method == "exact" else [], [])


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


# ---- Sums and integrals of models' densities over a few columns: levels, cells, atoms, and one column of numbers.

# the rule of Gauss and Kronrod with 15 points, and the 7 points of Gauss inside (Piessens et al., QUADPACK, 1983)
_HALF_NODE = [
    0.991455371120812639206854697526329, 0.949107912342758524526189684047851, 0.864864423359769072789712788640926,
    0.741531185599394439863864773280788, 0.586087235467691130294144691258330, 0.405845151377397166906606412076961,
    0.207784955007898467600689403773245,
]  # fmt: skip
_HALF_KRONROD = [
    0.022935322010529224963732008058970, 0.063092092629978553290700663189204, 0.104790010322250183839876322541518,
    0.140653259715525918745189590510238, 0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
    0.204432940075298892414161999234649,
]  # fmt: skip
_HALF_GAUSS = [
    0.0, 0.129484966168869693270611432679082, 0.0, 0.279705391489276667901467771423780,
    0.0, 0.381830050505118944950369775488975, 0.0,
]  # fmt: skip
_NODE = np.array([-x for x in _HALF_NODE] + [0.0] + _HALF_NODE[::-1])
_KRONROD = np.array([*_HALF_KRONROD, 0.209482141084727828012999174891714, *_HALF_KRONROD[::-1]])
_GAUSS = np.array([*_HALF_GAUSS, 0.417959183673469387755102040816327, *_HALF_GAUSS[::-1]])

BEYOND = 1e-10
"""Mass of each model on either side that numbers are not followed beyond."""
_TOLERANCE = 1e-9
"""Largest error of an interval, by the two rules and the known masses; most are far smaller."""
WORK = 5e7
"""Most points times leaves to visit: a second or two."""
_ROWS = 100_000
"""Rows at once."""

_Function = Callable[..., np.ndarray]
"""Of the log-densities (n,) of every view: what is summed, (n,)."""


class _Combinations(NamedTuple):
    """All rows (m, k) of values of the columns that are summed, and the measure (m,) of each; other columns stay 0."""

    rows: np.ndarray
    weight: np.ndarray


def integral(views: tuple[ModelView, ...], of: Columns, function: _Function) -> float | None:
    """Integral of a function of densities over some columns, to about 1e-6; None if too slow, or estimated."""
    # As in `Joint.log_density` levels and atoms count 1, cells of a grid their width, numbers their length.
    if not all(v.model.has_exact_density([v.number[k] for k in of]) for v in views):
        return None
    columns = views[0].columns
    free = [k for k in of if not columns[k].is_categorical and columns[k].step == 0.0]
    budget = WORK / sum(max(v.model.density_cost(), 1.0) for v in views)
    combinations = _all_combinations(views, tuple(k for k in of if k not in free), len(columns), budget)
    if len(free) > 1 or combinations is None:
        return None

    def at(X: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """The function, and each density, of rows."""
        logs = [v.log_density(X, of) for v in views]
        return function(*logs), [np.exp(x) for x in logs]

    if not free:
        parts = [slice(i, i + _ROWS) for i in range(0, len(combinations.rows), _ROWS)]
        return float(sum(np.dot(combinations.weight[part], at(combinations.rows[part])[0]) for part in parts))
    k, n, weight = free[0], len(combinations.rows), combinations.weight

    def on_line(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The function, (q,), and the densities, (views, q), at points of the free column, summed over the others."""
        rows = np.tile(combinations.rows, (len(x), 1))
        rows[:, k] = np.repeat(x, n)
        values, densities = at(rows)
        return values.reshape(-1, n) @ weight, np.array([p.reshape(-1, n) @ weight for p in densities])

    return _line(views, k, on_line, budget / n, max(_ROWS // (15 * n), 1))


def _all_combinations(views: tuple[ModelView, ...], of: Columns, width: int, budget: float) -> _Combinations | None:
    """All combinations of levels and cells of these columns; None if they are more than ``budget``."""
    axes, weight, size = [], 1.0, 1
    for k in of:
        column = views[0].columns[k]
        if column.is_categorical:
            first, last = 0, len(column.levels) - 1
        else:
            first, last = cell_range(views, k)
            weight *= column.step
        size *= last - first + 1
        if size > budget:
            return None
        at = np.arange(first, last + 1, dtype=np.float64)
        axes.append(at if column.is_categorical else column.center + at * column.step)
    rows = np.zeros((size, width))
    for k, grid in zip(of, np.meshgrid(*axes, indexing="ij"), strict=True):
        rows[:, k] = grid.ravel()
    return _Combinations(rows, np.full(size, weight))


def cell_range(views: tuple[ModelView, ...], k: int) -> tuple[int, int]:
    """Numbers of the first and the last cell of a grid that any of the models needs."""
    column, all_ends = views[0].columns[k], np.array([ends(v, k) for v in views])
    first, last = ((x - column.center) / column.step for x in (all_ends.min(), all_ends.max()))
    return round(float(first)), round(float(last))


def ends(v: ModelView, k: int) -> np.ndarray:
    """The quantiles that all but `BEYOND` on either side lies between, in the reference's numbers."""
    q = np.array([BEYOND, 1.0 - BEYOND])
    return v.marginals.quantile(v.number[k], q)[0] - v.shift[k]


def breaks(views: tuple[ModelView, ...], k: int) -> np.ndarray:
    """Points of a column between which densities are smooth: ends of supports, atoms; and some quantiles."""
    both = np.array([ends(v, k) for v in views])
    ends_and_atoms = [both.ravel()]
    for v in views:
        ends_and_atoms += [*v.model.density_breaks(v.number[k]), np.array(v.columns[k].atoms)]
        ends_and_atoms.append(v.marginals.quantile(v.number[k], np.arange(1, 16) / 16)[0])
    points = np.unique(np.concatenate(ends_and_atoms))
    return points[(points >= both.min()) & (points <= both.max())]


def _line(views: tuple[ModelView, ...], k: int, on_line: Callable, budget: float, at_once: int) -> float | None:
    """The integral along the free column: its atoms, and intervals between the breaks, halved until they are exact."""
    atoms = np.unique(np.concatenate([v.columns[k].atoms for v in views]))
    total = float(on_line(atoms)[0].sum()) if len(atoms) else 0.0
    points = breaks(views, k)
    lo, hi = points[:-1], points[1:]
    while len(lo):
        budget -= len(_NODE) * len(lo)
        if budget < 0:
            return None
        parts = [slice(i, i + at_once) for i in range(0, len(lo), at_once)]
        sums = [_kronrod(lo[part], hi[part], on_line) for part in parts]
        value, error = (np.concatenate([f[i] for f in sums]) for i in (0, 1))
        if np.isinf(total + value.sum()):
            return np.inf
        # a narrow peak between the points of both rules shows in the mass of its interval
        mass = np.concatenate([f[2] for f in sums], axis=1)
        error = error + sum(np.abs(m - _mass(v, k, lo, hi)) for v, m in zip(views, mass, strict=True))
        middle = 0.5 * (lo + hi)
        done = (error <= _TOLERANCE) | (middle <= lo) | (middle >= hi)
        total += float(value[done].sum())
        lo, middle, hi = lo[~done], middle[~done], hi[~done]
        lo, hi = np.concatenate([lo, middle]), np.concatenate([middle, hi])
    return total


def _kronrod(lo: np.ndarray, hi: np.ndarray, on_line: Callable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integrals (m,) over intervals, the distance (m,) from Gauss's rule, and the masses (views, m)."""
    half = 0.5 * (hi - lo)
    values, densities = on_line((0.5 * (lo + hi)[:, None] + half[:, None] * _NODE).ravel())
    values = values.reshape(len(lo), -1)
    value = half * (values @ _KRONROD)
    with np.errstate(invalid="ignore"):  # infinite values are answered before their errors are read
        error = np.abs(value - half * (values @ _GAUSS))
    return value, error, half * (densities.reshape(len(densities), len(lo), -1) @ _KRONROD)


def _mass(v: ModelView, k: int, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """P(lo < column < hi) of a view's column without grid, (m,)."""
    inside = np.concatenate([lo, np.nextafter(hi, -np.inf)])
    below = v.marginals.cdf(v.number[k], inside)[0]
    return np.asarray(below[len(lo) :] - below[: len(lo)])
