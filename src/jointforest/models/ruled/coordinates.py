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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...data.conditions import AnyOf, Not
from ...data.evidence import Evidence, RegionTable
from ...data.meaning import NOWHERE, Region, intersected, log_likelihoods, meaning_of, region_log_likelihood, weighed
from ...data.rules.contradictions import NEAR, ROUNDED, combined, number_span, ranked
from ...data.rules.rule import Combinations, Function, Order, Rule
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


# ---- Evidence on a table as evidence on its coordinates, sum by sum.


class CoordinateCells:
    """n rows of evidence on the coordinates, worked out sum by sum.

    said : float64 array (n, d), said_region : int32 array (n, d). Values and numbers of regions of the table's cells.
    value : float64 array (n, m), region : int32 array (n, m). The same of the coordinates.
    log_weight : float64 array (n,)
    pending : bool array (n, s). Whether the evidence on the k-th sum is still to be applied.
    owner : int64 array (n,)
    is_new : bool array (n,). Whether no level of a compound has the values of the row: a penalty instead of evidence.
    """

    def __init__(self, coordinates: Coordinates, table: RegionTable, fields: dict[str, np.ndarray]) -> None:
        self.coordinates, self.table = coordinates, table
        self.said, self.said_region = fields["said"], fields["said_region"]
        self.value, self.region = fields["value"], fields["region"]
        self.log_weight, self.pending, self.owner = fields["log_weight"], fields["pending"], fields["owner"]
        self.is_new = fields["is_new"]

    @staticmethod
    def of(coordinates: Coordinates, evidence: Evidence) -> CoordinateCells:
        """The evidence on plain columns and compounds; sums are pending."""
        n, m = len(evidence.value), len(coordinates.inner.columns)
        said, said_region = evidence.value, evidence.cell_regions()
        sums = list(coordinates.sums)
        is_said = ~np.isnan(said) | (said_region >= 0)
        fields = {
            "said": said,
            "said_region": said_region,
            "value": np.full((n, m), np.nan),
            "region": np.full((n, m), -1, np.int32),
            "log_weight": evidence.log_penalty.copy(),
            "pending": is_said[:, sums],
            "owner": np.arange(n),
            "is_new": np.zeros(n, bool),
        }
        cells = CoordinateCells(coordinates, RegionTable(evidence), fields)
        for j, at in coordinates.plain.items():
            cells.value[:, at], cells.region[:, at] = said[:, j], said_region[:, j]
        for at, members in coordinates.compounds.items():
            cells._say_of_compound(at, members)
        for j, absence in enumerate(coordinates.absences):
            if absence.by_rule:
                cells.exclude(np.flatnonzero(is_said[:, j]), absence.where, absence.values)
        return cells

    _FIELDS = ("said", "said_region", "value", "region", "log_weight", "pending", "owner", "is_new")

    def take(self, rows: np.ndarray) -> CoordinateCells:
        """Some of the rows, by their numbers."""
        return CoordinateCells(self.coordinates, self.table, {name: getattr(self, name)[rows] for name in self._FIELDS})

    def alone(self, rows: np.ndarray) -> CoordinateCells:
        """Some of the rows, which are the owners of themselves."""
        found = self.take(rows)
        found.owner = np.arange(len(rows))
        return found

    def without_parts(self, j: int) -> CoordinateCells:
        """The rows without their evidence on the unknown parts of a sum."""
        found = self.take(np.arange(len(self.owner)))
        for term in self.coordinates.sources[j].terms:
            found.region[np.isnan(found.value[:, term.at]), term.at] = -1
        return found

    @staticmethod
    def joined(parts: list[CoordinateCells]) -> CoordinateCells:
        """The rows of several parts, which have one table of regions."""
        fields = {name: np.concatenate([getattr(part, name) for part in parts]) for name in CoordinateCells._FIELDS}
        return CoordinateCells(parts[0].coordinates, parts[0].table, fields)

    def evidence(self) -> Evidence:
        """The rows as evidence about the coordinates, without penalties."""
        return self.table.evidence(self.value, self.region, np.zeros(len(self.value)))

    # ---- compounds

    def _say_of_compound(self, at: int, members: tuple[int, ...]) -> None:
        """The evidence of a compound's members on its level."""
        columns = self.coordinates.schema.columns
        is_said = ~np.isnan(self.said[:, members]) | (self.said_region[:, members] >= 0)
        rows = np.flatnonzero(is_said.any(axis=1))
        if not len(rows):
            return
        keys = [ranked(self.said[rows, j]) + 1 for j in members] + [self.said_region[rows, j] + 1 for j in members]
        pattern = combined(keys)
        first = np.zeros(int(pattern.max()) + 1, np.int64)
        first[pattern] = rows
        value, region = np.full(len(first), np.nan), np.full(len(first), -1, np.int32)
        log_weight, is_new = np.zeros(len(first)), np.zeros(len(first), bool)
        for k, i in enumerate(first.tolist()):
            log_like = np.zeros(len(self.coordinates.inner.columns[at].levels))
            for j in members:
                log_like += self._log_like(columns[j], self.coordinates.table(j), i, j)
            value[k], number, log_weight[k] = self._compound(at, members, i, log_like)
            region[k] = number
            is_new[k] = not np.isfinite(log_like).any()
        self.value[rows, at], self.region[rows, at] = value[pattern], region[pattern]
        self.log_weight[rows] += log_weight[pattern]
        self.is_new[rows] |= is_new[pattern]
        for j in members:
            self.log_weight[rows] += np.where(np.isnan(self.said[rows, j]), 0.0, self.coordinates.unit(j))

    def _log_like(self, column: Column, values: np.ndarray, i: int, j: int) -> np.ndarray:
        """Log-likelihood of numbers under the evidence of row i on column j (K,)."""
        x, number = float(self.said[i, j]), int(self.said_region[i, j])
        if not math.isnan(x):
            near = NEAR * column.step if not column.is_categorical else 0.0
            return np.where(np.abs(values - x) <= near, 0.0, -np.inf)
        if number < 0:
            return np.zeros(len(values))
        distinct, place = np.unique(values, return_inverse=True)
        return log_likelihoods(column, self.table.regions[number], distinct)[place.reshape(-1)]

    def _compound(self, at: int, members: tuple[int, ...], i: int, log_like: np.ndarray) -> tuple[float, int, float]:
        """Value and region of a compound in row i, by the log-likelihood of its levels; and a log-weight."""
        possible = np.flatnonzero(log_like > -np.inf)
        if len(possible) == 1:
            return float(possible[0]), -1, float(log_like[possible[0]])
        if len(possible) == len(log_like) and not log_like.any():
            return math.nan, -1, 0.0
        if len(possible):
            return math.nan, self.table.number(levels_region(log_like)), 0.0
        if (self.said_region[i, list(members)] >= 0).any():
            return math.nan, self.table.number(NOWHERE), -math.inf
        if self._is_contradicted(members, i):
            return math.nan, self.table.number(NOWHERE), -math.inf
        # a combination that was never seen: the levels that have most of its values, at the penalty of an unseen level
        penalty, columns = self.coordinates.inner.columns[at].log_unseen, self.coordinates.schema.columns
        fits = [self._log_like(columns[j], self.coordinates.table(j), i, j) > -np.inf for j in members]
        count = np.sum(fits, axis=0)
        if count.max() == count.min():
            return math.nan, -1, penalty
        nearest = np.flatnonzero(count == count.max())
        if len(nearest) == 1:
            return float(nearest[0]), -1, penalty
        return math.nan, self.table.number(levels_region(np.where(count == count.max(), 0.0, -np.inf))), penalty

    def _is_contradicted(self, members: tuple[int, ...], i: int) -> bool:
        """Whether the values of a compound's members in row i contradict a rule."""
        schema = self.coordinates.schema
        index = {schema.columns[j].name: j for j in members}

        def levels(names: tuple[str, ...]) -> np.ndarray:
            """Which levels have the row's values of some members, bool (K,)."""
            fits = [self._log_like(schema[name], self.coordinates.table(index[name]), i, index[name]) for name in names]
            return np.sum(fits, axis=0) > -np.inf

        for rule in self.coordinates.enforced:
            known = tuple(name for name in rule.columns if name in index and not math.isnan(self.said[i, index[name]]))
            # one value that no row has is like a level that was never seen
            counts = len(known) == len(rule.columns) or all(levels((name,)).any() for name in known)
            if isinstance(rule, Combinations) and counts and not levels(known).any():
                return True
            if isinstance(rule, Function) and len(known) == len(rule.columns):
                seen = levels(rule.of).any() or (rule.is_mutual and levels((rule.column,)).any())
                if seen and not levels(rule.columns).any():
                    return True
        return False

    # ---- cells that do not exist

    def exclude(self, rows: np.ndarray, at: int, values: tuple[float, ...]) -> None:
        """Take up that a coordinate has none of some values, in some rows."""
        column = self.coordinates.inner.columns[at]
        others = meaning_of(column, Not(AnyOf(*(column.from_number(x) for x in values))))
        assert isinstance(others, Region)
        is_value = np.isin(self.value[rows, at], values)
        self.log_weight[rows[is_value]] = -np.inf
        self.narrow(rows[np.isnan(self.value[rows, at])], at, lambda _: others)

    def narrow(self, rows: np.ndarray, at: int, region_of: Callable[[int], Region]) -> None:
        """Take up that a coordinate without a value lies in a region, of each of some rows."""
        made: dict[tuple[int, Region], int] = {}
        for i in rows.tolist():
            new, old = region_of(i), int(self.region[i, at])
            key = (old, new)
            if key not in made:
                both = new if old < 0 else intersected(self.table.regions[old], new)
                made[key] = self.table.number(both)
            self.region[i, at] = made[key]

    # ---- sums

    def solve(self) -> None:
        """Apply the evidence on sums, as far as at most one part of each is unknown."""
        while self.pending.any():
            before = int(self.pending.sum())
            for k, j in enumerate(self.coordinates.sums):
                rows = np.flatnonzero(self.pending[:, k])
                if len(rows):
                    self.pending[self._solve(j, rows), k] = False
            if int(self.pending.sum()) == before:
                return

    def _solve(self, j: int, rows: np.ndarray) -> np.ndarray:
        """Apply the evidence of rows on sum j; returns the rows for which this was possible."""
        source = self.coordinates.sources[j]
        values = np.column_stack([term.values(self.value[rows]) for term in source.terms])
        unknown = np.isnan(values)
        added = np.where(unknown, 0.0, values) * np.array([term.coefficient for term in source.terms])
        rest = source.constant + self._known_within(j, rows, unknown, added) + added.sum(axis=1)
        none = np.flatnonzero(~unknown.any(axis=1))
        if len(none):
            self._compare(j, rows[none], rest[none])
        done = [rows[none]]
        for t, term in enumerate(source.terms):
            only = np.flatnonzero((unknown.sum(axis=1) == 1) & unknown[:, t])
            if len(only):
                solve = self._solve_levels if term.table is not None else self._solve_number
                solve(j, term, rows[only], rest[only])
                done.append(rows[only])
        return np.concatenate(done)

    def _known_within(self, j: int, rows: np.ndarray, unknown: np.ndarray, added: np.ndarray) -> np.ndarray:
        """What known sums add to sum j (n,), if their terms are all terms of j; changes ``unknown``, ``added``."""
        # A sum is used only while its own evidence is pending. So if two sums are parts of each other, only one uses
        # the other, and nothing counts twice.
        out, is_told = np.zeros(len(rows)), np.zeros(unknown.shape, bool)
        for k, ratio, is_theirs in self.coordinates.within.get(j, ()):
            is_pending = self.pending[rows, self.coordinates.sums.index(k)]
            told = is_pending & ~np.isnan(self.said[rows, k]) & ~is_told[:, is_theirs].any(axis=1)
            rest = np.nan_to_num(self.said[rows, k]) - self.coordinates.sources[k].constant
            out += np.where(told, ratio * rest, 0.0)
            is_told |= told[:, None] & is_theirs
        unknown[is_told], added[is_told] = False, 0.0
        return out

    def tolerance(self, j: int) -> float:
        """By how much a known value may miss the sum j, before it is rounded to a grid."""
        column, source = self.coordinates.schema.columns[j], self.coordinates.sources[j]
        half = self.coordinates.half_width(j)
        if half > 0.0:
            return half + NEAR * column.step
        inner = self.coordinates.inner.columns
        ranges = [
            abs(term.coefficient) * (number_span(inner[term.at]) if term.table is None else float(np.ptp(term.table)))
            for term in source.terms
        ]
        return ROUNDED * (number_span(column) + sum(ranges))

    def fits(self, j: int, total: np.ndarray, said: np.ndarray | float) -> np.ndarray:
        """Whether sums are known values of column j, bool (n,)."""
        step = self.coordinates.schema.columns[j].step
        with np.errstate(invalid="ignore"):
            if step > 0.0 and not self.coordinates.sources[j].tolerance:
                return np.abs(self.coordinates.made(j, total) - said) <= NEAR * step
            return np.abs(total - said) <= self.tolerance(j)

    def _compare(self, j: int, rows: np.ndarray, total: np.ndarray) -> None:
        """Apply the evidence of rows on a sum of which all parts are known."""
        column, said = self.coordinates.schema.columns[j], self.said[rows, j]
        is_value = ~np.isnan(said)
        fits = self.fits(j, total, said)
        self.log_weight[rows[is_value]] += np.where(fits[is_value], self.coordinates.unit(j), -np.inf)
        total = self.coordinates.made(j, total)
        for i, x in zip(rows[~is_value].tolist(), total[~is_value].tolist(), strict=True):
            self.log_weight[i] += region_log_likelihood(column, self.table.regions[int(self.said_region[i, j])], x)

    def _solve_levels(self, j: int, term: Term, rows: np.ndarray, rest: np.ndarray) -> None:
        """Apply the evidence of rows on a sum of which the level of a compound is unknown."""
        column, table = self.coordinates.schema.columns[j], term.table
        assert table is not None

        def region_of(i: int, of: float) -> Region:
            totals, x = of + term.coefficient * table, float(self.said[i, j])
            if math.isnan(x):
                return levels_region(self._log_like(column, self.coordinates.made(j, totals), i, j))
            return levels_region(np.where(self.fits(j, totals, x), 0.0, -np.inf))

        self._narrow_each(j, term, rows, rest, region_of)
        self.log_weight[rows] += np.where(np.isnan(self.said[rows, j]), 0.0, self.coordinates.unit(j))

    def _solve_number(self, j: int, term: Term, rows: np.ndarray, rest: np.ndarray) -> None:
        """Apply the evidence of rows on a sum of which one number is unknown."""
        column = self.coordinates.schema.columns[j]
        said, half = self.said[rows, j], self.coordinates.half_width(j)
        is_value = ~np.isnan(said)
        is_one = j not in self.coordinates.rounded and not self.coordinates.sources[j].tolerance
        if is_one and is_value.any():  # one number goes with a value
            some = np.flatnonzero(is_value)
            self._set(j, term, rows[some], rest[some], said[some])
            rows, rest, is_value = rows[~is_value], rest[~is_value], is_value[~is_value]
        self.log_weight[rows[is_value]] += self.coordinates.unit(j)

        def region_of(i: int, of: float) -> Region:
            x = float(self.said[i, j])
            atoms = sum(1 << k for k, atom in enumerate(column.atoms) if abs(atom - x) <= half)
            is_region = math.isnan(x)
            asked = self.table.regions[self.said_region[i, j]] if is_region else Region(((x - half, x + half),), atoms)
            return self._turned(j, asked, term, of)

        self._narrow_each(j, term, rows, rest, region_of)

    def _narrow_each(
        self, j: int, term: Term, rows: np.ndarray, rest: np.ndarray, region_of: Callable[[int, float], Region]
    ) -> None:
        """Narrow a coordinate of each row to a region of the row and its rest, once for rows with the same sum j."""
        kept: dict[tuple[float, float, int], Region] = {}
        said = np.nan_to_num(self.said[rows, j]).tolist(), self.said_region[rows, j].tolist()
        of_row = dict(zip(rows.tolist(), zip(rest.tolist(), *said, strict=True), strict=True))

        def region(i: int) -> Region:
            key = of_row[i]
            if key not in kept:
                kept[key] = region_of(i, key[0])
            return kept[key]

        self.narrow(rows, term.at, region)

    def _turned(self, j: int, asked: Region, term: Term, rest: float) -> Region:
        """Where a coordinate has to be for column j, made of rest + c * coordinate, to lie in a region."""
        inner, c = self.coordinates.inner.columns[term.at], term.coefficient
        tolerance = self.coordinates.sources[j].tolerance
        runs = []
        for ends, weight in zip(asked.runs, asked.run_weights(), strict=True):
            lo, hi = ends if tolerance else (self.coordinates.border(j, x) for x in ends)
            a, b = sorted(((lo - rest) / c, (hi - rest) / c))
            if inner.step > 0.0:
                a, b = (_edge_at_bound(inner, x, c > 0.0) for x in (a, b))
            if a < b:
                runs.append(((a, b), weight))
        of_atoms = [self._atom_likelihood(j, asked, rest + c * atom) for atom in inner.atoms]
        held = sum(1 << k for k, x in enumerate(of_atoms) if x > -math.inf)
        return weighed(sorted(runs), held, [x if x > -math.inf else 0.0 for x in of_atoms])

    def _atom_likelihood(self, j: int, asked: Region, total: float) -> float:
        """Log-likelihood that a region gives to a sum, which its atoms, or its runs, hold."""
        column = self.coordinates.schema.columns[j]
        value = float(self.coordinates.made(j, np.array([total]))[0])
        if column.step == 0.0:
            close = [atom for atom in column.atoms if math.isclose(atom, value, rel_tol=1e-9, abs_tol=1e-12)]
            value = close[0] if close else value
        return region_log_likelihood(column, asked, value)

    def pattern(self, rows: np.ndarray) -> np.ndarray:
        """The number of the pattern of some rows: which sums are pending or known, and which parts are, int64 (n,)."""
        sums = list(self.coordinates.sums)
        parts = sorted({term.at for j in sums for term in self.coordinates.sources[j].terms})
        known = [~np.isnan(self.said[rows][:, sums]), ~np.isnan(self.value[rows][:, parts])]
        what = np.hstack([self.pending[rows], *known])
        return np.unique(what, axis=0, return_inverse=True)[1].reshape(-1)

    def unknown(self) -> list[int]:
        """Coordinates of the unknown parts of the first sum that is pending, which is the same in all rows."""
        k = int(np.argmax(self.pending[0]))
        terms = self.coordinates.sources[self.coordinates.sums[k]].terms
        return [term.at for term in terms if math.isnan(self.value[0, term.at])]

    def assign(self, at: int, values: np.ndarray) -> None:
        """Give a coordinate one value in each row, besides its evidence."""
        column = self.coordinates.inner.columns[at]
        for number in np.unique(self.region[:, at]).tolist():
            rows = np.flatnonzero(self.region[:, at] == number)
            if number >= 0:
                distinct, place = np.unique(values[rows], return_inverse=True)
                fits = log_likelihoods(column, self.table.regions[number], distinct)
                self.log_weight[rows] += fits[place.reshape(-1)]
        self.value[:, at], self.region[:, at] = values, -1

    def _set(self, j: int, term: Term, rows: np.ndarray, rest: np.ndarray, said: np.ndarray) -> None:
        """Give a coordinate the value that makes the sum j that of the evidence."""
        inner = self.coordinates.inner.columns[term.at]
        x = snapped(inner, (said - rest) / term.coefficient)
        for atom in inner.atoms if inner.step == 0.0 else ():
            x = np.where(np.isclose(x, atom, rtol=1e-12, atol=1e-12), atom, x)
        fits = self.fits(j, rest + term.coefficient * x, said)
        if inner.step > 0.0:  # the mass of the cell
            extra = np.full(len(rows), math.log(inner.step) + self.coordinates.unit(j))
        else:
            extra = np.where(np.isin(x, inner.atoms), 0.0, -math.log(abs(term.coefficient)))
        some = self.take(rows)
        some.assign(term.at, x)
        self.value[rows, term.at], self.region[rows, term.at] = x, -1
        self.log_weight[rows] = some.log_weight
        self.log_weight[rows] += np.where(fits, extra, -np.inf)


def levels_region(log_like: np.ndarray) -> Region:
    """The region of the levels that have a log-likelihood above -inf, at most 0, (K,)."""
    runs = [((k - 0.5, k + 0.5), float(x)) for k, x in enumerate(log_like.tolist()) if x > -np.inf]
    return weighed(runs, 0, ())


def _edge_at_bound(inner: Column, x: float, is_open: bool) -> float:
    """The edge between cells at a bound of sums: cells whose centre is on the bound lie below it, if it is open."""
    if math.isinf(x):
        return x
    cells = (x - inner.center) / inner.step
    last = math.floor(cells + 1e-9) if is_open else math.ceil(cells - 1e-9) - 1
    return inner.center + (last + 0.5) * inner.step
