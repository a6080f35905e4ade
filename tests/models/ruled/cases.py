"""A ruled distribution of a few weighted rows of coordinates, and the same rows of the table, written out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointforest.data.conditions import AnyOf, Interval, likely
from jointforest.data.evidence import Evidence, build
from jointforest.data.rules.rule import Combinations, Equation, Function, MissingWhere, Order
from jointforest.data.schema import Column, Schema
from jointforest.models.ruled.coordinates import NEVER, Absence, Coordinates, Source, Term
from jointforest.models.ruled.ruled import RuledDistribution

from ...random_cases.table_part import TableDistribution

CITIES = ("Bonn", "Lyon", "Nice", "Ulm")
COUNTRIES = ("DE", "FR")


class Case(NamedTuple):
    """The ruled distribution, and the table's own as a list of its rows."""

    ruled: RuledDistribution
    table: TableDistribution


def _integer(name: str, low: float, high: float) -> Column:
    return Column(name, "integer", "int64", step=1.0, minimum=low, maximum=high, n_observed=100)


def _levels(name: str, levels: tuple[str, ...]) -> Column:
    return Column(name, "categorical", "object[str]", levels=levels, n_observed=100)


OUTER = Schema(
    (
        _levels("city", CITIES), _levels("country", COUNTRIES), _integer("distance", 0, 9), _integer("start", 0, 6),
        _integer("end", 0, 12), _integer("later", 0, 16), _integer("a", 0, 5), _integer("b", 0, 5),
        _integer("total", 0, 30), _integer("double", 0, 10), _levels("state", ("new", "gone")), _integer("delay", 0, 4),
    ),
    "pandas",
    rules=(
        Function(of=("city",), column="country", is_enforced=True),
        Combinations(of=("city", "distance"), is_enforced=True),
        Order(low="start", high="end", is_enforced=True),
        Order(low="end", high="later", is_enforced=True),
        Equation(column="total", terms=((1.0, "a"), (2.0, "b"), (1.0, "distance")), constant=1.0, is_enforced=True),
        Equation(column="double", terms=((-2.0, "a"),), constant=10.0, is_enforced=True),
        MissingWhere(column="delay", of=("state",), values=(("gone",),), is_enforced=True),
    ),
)  # fmt: skip
CITY = np.array([0, 0, 1, 2, 2, 3])
DISTANCE = np.array([3, 7, 2, 2, 5, 0])
INNER = Schema(
    (
        Column("place", "categorical", "int64", levels=tuple(range(6)), n_observed=100), _integer("start", 0, 6),
        _integer("end - start", 0, 6), _integer("later - end", 0, 4), _integer("a", 0, 5), _integer("b", 0, 5),
        _levels("state", ("new", "gone")), _integer("delay", 0, 4),
    ),
    "pandas",
)  # fmt: skip


def _table(values: np.ndarray, at: int = 0, coefficient: float = 1.0) -> Term:
    return Term(at, coefficient, values.astype(float))


COORDINATES = Coordinates(
    OUTER,
    INNER,
    (
        Source((_table(CITY),)),
        Source((_table(np.array([0, 0, 1, 1, 1, 0])),)),
        Source((_table(DISTANCE),)),
        Source((Term(1),)),
        Source((Term(1), Term(2))),
        Source((Term(1), Term(2), Term(3))),
        Source((Term(4),)),
        Source((Term(5),)),
        Source((Term(4), Term(5, 2.0), _table(DISTANCE)), 1.0),
        Source((Term(4, -2.0),), 10.0),
        Source((Term(6),)),
        Source((Term(7),)),
    ),
    (*(NEVER,) * 11, Absence(where=6, values=(1.0,), by_rule=True)),
    OUTER.rules,
)


def written_out(Z: np.ndarray) -> np.ndarray:
    """The table's rows of some rows of coordinates, by the definitions of the columns alone."""
    place, start, gap, more, a, b, state, delay = Z.T
    k = place.astype(int)
    city, distance = CITY[k], DISTANCE[k]
    country = np.where(np.isin(city, (1, 2)), 1, 0)
    end = start + gap
    return np.column_stack([
        city, country, distance, start, end, end + more, a, b, a + 2 * b + distance + 1, 10 - 2 * a, state,
        np.where(state == 1, np.nan, delay),
    ]).astype(float)  # fmt: skip


def random_case(seed: int, n: int = 60) -> Case:
    """A case with n random rows of coordinates of random weights."""
    rng = np.random.default_rng(seed)
    sizes = [6, 7, 5, 4, 6, 6, 2, 5]
    Z = np.column_stack([rng.integers(0, size, n) for size in sizes]).astype(float)
    weight = rng.dirichlet(np.full(n, 0.7))
    return Case(
        RuledDistribution(COORDINATES, TableDistribution(INNER, Z, weight)),
        TableDistribution(OUTER, written_out(Z), weight),
    )


def random_evidence(rng: np.random.Generator, X: np.ndarray, n_said: int) -> Evidence:
    """One row of evidence that says something of some columns; near one of the rows X, so that it is often possible."""
    row = X[rng.integers(len(X))]
    conditions = {}
    for j in rng.permutation(X.shape[1])[:n_said].tolist():
        column, x = OUTER.columns[j], row[j]
        if np.isnan(x):
            continue
        sort = rng.integers(4)
        value = column.from_number(float(x))
        if sort == 0:
            conditions[column.name] = value
        elif sort == 1:
            others = [column.from_number(float(v)) for v in rng.choice(X[~np.isnan(X[:, j]), j], 3)]
            conditions[column.name] = AnyOf(value, *others)
        elif sort == 2 and not column.is_categorical:
            low, high = x - rng.integers(0, 4), x + rng.integers(0, 4)
            conditions[column.name] = Interval(low, high) if rng.random() < 0.6 else Interval(None, high)
        elif sort == 3:
            conditions[column.name] = likely({value: 0.7}, 0.2)
    return build(OUTER, conditions=conditions)
