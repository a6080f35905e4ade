"""Coordinates of the rows of a table that obeys rules: fewer columns, from which every column of the table is made.

A column of the table is one of three things:

- *plain*: a coordinate as it is;
- a *member* of a compound: the coordinate is categorical, and each of its levels has one value of the column. The
  levels are the combinations of values that rows may have;
- a *sum* of coordinates of numbers and of values of compounds, rounded to the column's grid. An order ``a <= b`` is the
  sum b = a + gap, with a coordinate of its own for the gap.

So a row of coordinates is a row of the table that obeys all rules, and no rule has to be enforced.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...data.rules.contradictions import NEAR
from ...data.rules.rule import Order, Rule
from ...data.schema import Column, Schema, snapped

_WHOLE = 1e-6
"""By how much a quotient of steps may miss a whole number."""
_DECIMALS = 6
"""Decimals, in steps, to which a sum is rounded before it is compared with the middle of two values."""
_ASIDE = 1e-5
"""Distance, in steps, of a bound from the middle of two values."""


class Term(NamedTuple):
    """One addend of a column.

    at : int. Number of the coordinate.
    table : float64 array (K,) or None. Number, or level code, of each level of a compound; None of other coordinates.
    """

    at: int
    coefficient: float = 1.0
    table: np.ndarray | None = None

    def values(self, Z: np.ndarray) -> np.ndarray:
        """What the coordinate stands for, without the coefficient, of coordinates Z (n, m): (n,), NaN where missing."""
        z = Z[:, self.at]
        if self.table is None:
            return z
        known = ~np.isnan(z)
        return np.where(known, self.table[np.where(known, z, 0.0).astype(np.int64)], np.nan)


class Source(NamedTuple):
    """How a column is made: constant + sum of coefficient * value over the terms.

    tolerance : float. Half-width of the uniform error of known cells, beyond half a step; drawn cells have none.
    """

    terms: tuple[Term, ...]
    constant: float = 0.0
    tolerance: float = 0.0

    @property
    def is_one(self) -> bool:
        """Whether the column is what one coordinate stands for, as it is."""
        return len(self.terms) == 1 and self.terms[0].coefficient == 1.0 and self.constant == 0.0

    @property
    def is_plain(self) -> bool:
        """Whether the column has the numbers, or levels, of one coordinate."""
        return self.is_one and self.terms[0].table is None

    @property
    def is_member(self) -> bool:
        """Whether the column is a member of a compound."""
        return self.is_one and self.terms[0].table is not None


class Absence(NamedTuple):
    """When cells of a column are missing.

    like : int. The coordinate whose cells are missing with them; -1: none.
    where : int. The coordinate at some of whose values they are missing; -1: none.
    values : tuple of float. These values, numbers or level codes.
    by_rule : bool. Whether such a cell has no value at all, by a rule; otherwise it has one that is not seen.
    besides : int. The boolean coordinate that is true where other rows' cells are missing but have a value; -1: none.
    """

    like: int = -1
    where: int = -1
    values: tuple[float, ...] = ()
    by_rule: bool = False
    besides: int = -1

    @property
    def coordinates(self) -> set[int]:
        """The coordinates that determine whether a cell is missing."""
        return {at for at in (self.like, self.where, self.besides) if at >= 0}


NEVER = Absence()
"""Of a column whose cells are never missing."""


def on_grid(column: Column, total: np.ndarray) -> np.ndarray:
    """Values of a column from sums: on its grid, those in the middle between two values at the even one."""
    if column.step > 0.0:
        total = column.center + np.rint(np.round((total - column.center) / column.step, _DECIMALS)) * column.step
    return snapped(column, total)


def lies_on_grid(column: Column, constant: float, addends: Iterable[tuple[float, np.ndarray]]) -> bool:
    """Whether all sums of a constant and multiples of values are values of a column, without rounding."""
    if column.step == 0.0:
        return True
    least, apart = constant - column.center, [np.zeros(0)]
    for coefficient, values in addends:
        least += coefficient * values[0]
        apart.append(coefficient * (values - values[0]))
    cells = np.append(np.concatenate(apart), least) / column.step
    return bool((np.abs(cells - np.rint(cells)) < _WHOLE).all())  # which NaN is not


def values_of(column: Column) -> np.ndarray:
    """Two neighbours on a column's grid; NaN without a grid."""
    return column.center + np.array([0.0, column.step or np.nan])


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The columns of a table as functions of coordinates.

    schema : Schema. Of the table, d columns.
    inner : Schema. Of the m coordinates.
    enforced : tuple of Rule. The rules that hold in every row.
    warned : set of str. Columns about whose range a warning was given: each column once. No part of equality.
    """

    schema: Schema
    inner: Schema
    sources: tuple[Source, ...]
    absences: tuple[Absence, ...]
    enforced: tuple[Rule, ...]
    warned: set[str] = field(default_factory=set, compare=False, repr=False)

    @cached_property
    def plain(self) -> dict[int, int]:
        """The coordinate of each plain column, by numbers; a column that equals a plain one is a sum of one term."""
        names = self.inner.names
        return {
            j: source.terms[0].at
            for j, source in enumerate(self.sources)
            if source.is_plain and names[source.terms[0].at] == self.schema.columns[j].name
        }

    @cached_property
    def compounds(self) -> dict[int, tuple[int, ...]]:
        """The members of each compound, by the number of its coordinate."""
        found: dict[int, list[int]] = {}
        for j, source in enumerate(self.sources):
            if source.is_member:
                found.setdefault(source.terms[0].at, []).append(j)
        return {at: tuple(members) for at, members in found.items()}

    @cached_property
    def merged(self) -> set[int]:
        """The compounds with levels that no member distinguishes, as others of its columns were left out."""
        made = {term.at for source in self.sources for term in source.terms if term.table is not None}
        each = {at: np.array([self.table(j) for j in self.compounds.get(at, ())]) for at in made}
        return {at for at, of in each.items() if not of.size or np.unique(of, axis=1).shape[1] < of.shape[1]}

    @cached_property
    def sums(self) -> tuple[int, ...]:
        """Numbers of the columns that are sums, those of fewest terms first."""
        found = [j for j, source in enumerate(self.sources) if j not in self.plain and not source.is_member]
        return tuple(sorted(found, key=lambda j: (len(self.sources[j].terms), j)))

    @cached_property
    def within(self) -> dict[int, list[tuple[int, float, np.ndarray]]]:
        """The sums without rounding that are a part of each sum, largest first: number, factor, and their terms."""
        exact = [k for k in self.sums if self.schema.columns[k].step > 0.0 and self._is_plain_sum(k)]
        found: dict[int, list[tuple[int, float, np.ndarray]]] = {}
        for j in self.sums:
            terms = self.sources[j].terms
            for k in reversed(exact):
                of_k = {term.at: term.coefficient for term in self.sources[k].terms}
                ratio = {term.coefficient / of_k[term.at] for term in terms if term.at in of_k and term.table is None}
                is_theirs = np.array([term.at in of_k and term.table is None for term in terms])
                if j != k and len(of_k) > 1 and is_theirs.sum() == len(of_k) and len(ratio) == 1:
                    found.setdefault(j, []).append((k, ratio.pop(), is_theirs))
        return found

    def equal_sums(self, j: int) -> list[int]:
        """Numbers of the other sums that have the same terms as sum j, so that they differ from it by a constant."""
        of_j = self.within.get(j, [])
        return [k for k, ratio, is_theirs in of_j if ratio == 1.0 and is_theirs.all() and self._is_plain_sum(j)]

    @property
    def adds_numbers(self) -> bool:
        """Whether a column is a sum of two or more coordinates of numbers."""
        return any(sum(term.table is None for term in source.terms) > 1 for source in self.sources)

    @cached_property
    def rounded(self) -> frozenset[int]:
        """Numbers of the sums that are made by rounding to the column's grid, which not all sums lie on."""
        return frozenset(j for j in self.sums if not self._is_on_grid(j))

    def _is_on_grid(self, j: int) -> bool:
        """Whether all sums that make column j are values of it, without rounding."""
        column, source = self.schema.columns[j], self.sources[j]
        inner = [self.inner.columns[term.at] for term in source.terms]
        addends = [
            (term.coefficient, values_of(of) if term.table is None else term.table)
            for term, of in zip(source.terms, inner, strict=True)
        ]
        return lies_on_grid(column, source.constant, addends)

    def made(self, j: int, total: np.ndarray) -> np.ndarray:
        """Values of column j from sums."""
        return on_grid(self.schema.columns[j], total)

    def border(self, j: int, x: float) -> float:
        """The bound of sums that become values of column j up to x; on a grid no sum lies on it."""
        column = self.schema.columns[j]
        if not math.isfinite(x) or column.step == 0.0:
            return x
        cell = math.floor((x - column.center) / column.step + 1e-9)
        return column.center + (cell + 0.5 + (_ASIDE if cell % 2 == 0 else -_ASIDE)) * column.step

    @cached_property
    def gaps(self) -> dict[int, int]:
        """The coordinate of the gap of each column that an order makes of another column, by numbers."""
        taken = {*self.plain.values(), *self.compounds, *(at for of in self.absences for at in (of.where, of.besides))}
        ordered = {name for rule in self.enforced if isinstance(rule, Order) for name in rule.columns}
        found: dict[int, int] = {}
        # A column of an order comes before those that are only equal to it, or to a sum of it, in some rows.
        for j in sorted(self.sums, key=lambda j: self.schema.columns[j].name not in ordered):
            own = [term.at for term in self.sources[j].terms if term.at not in taken]
            if own:
                found[j] = own[-1]
                taken.update(own)
        return found

    def is_outside(self, j: int, x: np.ndarray) -> np.ndarray:
        """Which numbers lie outside the observed range of column j, bool (n,)."""
        column = self.schema.columns[j]
        near = NEAR * column.step
        with np.errstate(invalid="ignore"):
            return (x < column.minimum - near) | (x > column.maximum + near)

    def move_gaps(self, j: int, Z: np.ndarray, rows: np.ndarray, low: float, high: float) -> None:
        """Change the gap of column j in some rows of coordinates Z, so that the column is between low and high."""
        # As far as its order with the other column allows.
        at = self.gaps[j]
        gap, name = self.inner.columns[at], self.schema.columns[j].name
        (c,) = (term.coefficient for term in self.sources[j].terms if term.at == at)
        orders = [rule for rule in self.enforced if isinstance(rule, Order) and name in rule.columns]
        least = float(gap.step > 0.0 and any(rule.is_strict for rule in orders))
        x = self.column(j, Z[rows])
        Z[rows, at] = np.maximum(snapped(gap, Z[rows, at] + (np.clip(x, low, high) - x) / c), least)

    @cached_property
    def untouched(self) -> dict[int, int]:
        """The coordinate of each plain column of which nothing else is made, by numbers."""
        uses = [term.at for source in self.sources for term in source.terms]
        uses += [absence.where for absence in self.absences if absence.by_rule]
        by_rule = {j for j, absence in enumerate(self.absences) if absence.by_rule}
        return {j: at for j, at in self.plain.items() if uses.count(at) == 1 and j not in by_rule}

    def table(self, j: int) -> np.ndarray:
        """Number, or level code, of a member in each level of its compound, (K,)."""
        found = self.sources[j].terms[0].table
        assert found is not None
        return found

    def rows(self, Z: np.ndarray) -> np.ndarray:
        """Rows of the table (n, d) from rows of coordinates (n, m); NaN where one that is needed is missing."""
        return np.column_stack([self.column(j, Z) for j in range(len(self.sources))])

    def column(self, j: int, Z: np.ndarray) -> np.ndarray:
        """One column of the table from rows of coordinates, (n,)."""
        source = self.sources[j]
        if source.is_one:
            return source.terms[0].values(Z)
        total = np.full(len(Z), source.constant)
        for term in source.terms:
            total += term.coefficient * term.values(Z)
        return self.made(j, total)

    def combined(self, columns: Iterable[int], coefficients: Iterable[float]) -> tuple[dict[int, float], float] | None:
        """A sum of columns as coefficients of coordinates and a constant; None if it is not the same in every row."""
        total: dict[int, float] = {}
        constant = 0.0
        for j, c in zip(columns, coefficients, strict=True):
            if self.absences[j].by_rule or not self._is_plain_sum(j):
                return None
            constant += c * self.sources[j].constant
            for term in self.sources[j].terms:
                total[term.at] = total.get(term.at, 0.0) + c * term.coefficient
        largest = max((abs(c) for c in coefficients), default=0.0)
        return {at: c for at, c in total.items() if abs(c) > NEAR * largest}, constant

    def _is_plain_sum(self, j: int) -> bool:
        """Whether column j is the sum of its terms, all of them coordinates, without rounding."""
        source = self.sources[j]
        if source.tolerance > 0.0 or any(term.table is not None for term in source.terms):
            return False
        return source.is_plain or self._is_on_grid(j)

    def unit(self, j: int) -> float:
        """What a known cell adds to the log-density of its mass: -log of the width in which the sum may lie."""
        half = self.half_width(j)
        return -float(np.log(2.0 * half)) if half > 0.0 else 0.0

    def half_width(self, j: int) -> float:
        """By how much a value of column j may miss what it is made of: half a step or more, 0 without a grid."""
        column = self.schema.columns[j]
        return 0.0 if column.is_categorical else max(0.5 * column.step, self.sources[j].tolerance)

    def needed(self, columns: Iterable[int]) -> list[int]:
        """Coordinates that some columns are made of, ascending."""
        found: set[int] = set()
        for j in columns:
            found |= {term.at for term in self.sources[j].terms}
            found |= self.absences[j].coordinates
        return sorted(found)

    def select(self, columns: list[int]) -> tuple[Coordinates, list[int]]:
        """The coordinates of some columns, and their numbers before."""
        kept = self.needed(columns)
        place = {at: i for i, at in enumerate(kept)} | {-1: -1}
        sources = tuple(
            source._replace(terms=tuple(term._replace(at=place[term.at]) for term in source.terms))
            for source in (self.sources[j] for j in columns)
        )
        absences = tuple(
            absence._replace(like=place[absence.like], where=place[absence.where], besides=place[absence.besides])
            for absence in (self.absences[j] for j in columns)
        )
        table = tuple(self.schema.columns[j] for j in columns)
        schema = Schema(table, self.schema.frame, (), self.schema.n_rows, self.schema.rules_among(table))
        inner = Schema(tuple(self.inner.columns[at] for at in kept), self.inner.frame, (), self.inner.n_rows)
        names = set(schema.names)
        enforced = tuple(rule for rule in self.enforced if names.issuperset(rule.columns))
        return Coordinates(schema, inner, sources, absences, enforced, self.warned), kept

    def pinned(self, inner: Schema) -> Coordinates:
        """The same for coordinates that evidence has changed: plain columns follow them."""
        columns: list[Column] = list(self.schema.columns)
        for j, at in self.plain.items():
            columns[j] = inner.columns[at]
        schema = Schema(tuple(columns), self.schema.frame, self.schema.unknown, inner.n_rows, self.schema.rules)
        return replace(self, schema=schema, inner=inner)
