"""From a table and its rules to coordinates that cannot break them, and the table in these coordinates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import rel_entr

from ..data.conditions import AnyOf, Interval, Not
from ..data.discretization.dependence import CLASSES, mutual_information
from ..data.discretization.learn import MAX_LEVEL_CODES
from ..data.evidence import build
from ..data.infer_schema import infer_schema
from ..data.ranges import Ranges
from ..data.rules.contradictions import (
    NEAR,
    combined,
    contradicted,
    equation_total,
    gap,
    number_span,
    ranked,
    tolerance,
    with_tolerance,
)
from ..data.rules.orders import apartness
from ..data.rules.rule import (
    Combinations,
    Equation,
    Function,
    MissingTogether,
    MissingWhere,
    Order,
    Rule,
    enough_rows,
)
from ..data.schema import MAX_LEVELS, Column, Schema, cell_places, snapped
from ..models.base import Distribution
from ..models.mixture import mixture_of
from ..models.ruled.coordinates import NEVER, Absence, Coordinates, Source, Term, lies_on_grid, on_grid, values_of
from ..models.ruled.ruled import ruled
from ..models.ruled.translate import known_values
from ..query_language.rules import rule as parse_rule

_LOST = 0.05
"""Largest share of rows of which a rule's coordinates may lose a known cell, because others are missing beside it."""
UNLIKE = 1e-3
"""Largest share of rows in which two patterns of missing cells that count as one may differ."""
ROWS_A_LEVEL = 4
"""Fewest rows for each combination of values of columns that become one."""
MORE_LEVELS = 1.25
"""Most combinations, for each level of the column that has most, where levels have to share codes."""
ENOUGH_NATS = 10.0
"""Log-likelihood ratio from which on cells are missing more or less often in some rows than in others."""
FEWEST_TRIED_ROWS = 2_000
"""Rows below which no compound is tried: a classifier would learn too little of draws."""
AUTO_LEVELS = 64
"""Most combinations of columns that become one by default, unless one of them is categorical with as many levels."""
MOST_IN_RANGE = 4096
"""Most values of a range of numbers in which a rule makes cells missing: each one is a case of the joint."""
AUTO_KINDS = (Function, Combinations, MissingTogether, MissingWhere)
"""Kinds of found rules that are enforced by default, beside equations and orders."""
AUTO_PLACES = {2: ((1 << 15, 1 << 15), (1 << 19, 1 << 17), (1 << 21, 1 << 14)), 3: ((1 << 15, 1 << 16),)}
"""Limits of sums that are enforced by default, by their number of parts: most steps of the finest grid from the least
to the largest value of the sum and of its parts, and most combinations of such steps of all parts but the longest.
Within one of the limits hidden trees answer exactly, and most questions take less than a second."""
LONG = 1 << 17
"""The self-check of `jf.fit` asks about a sum of more steps by its parts alone, to save time. Orders of columns
with more steps are not enforced by default, as a check of 300 rows takes 40 seconds."""
AUTO_APART = 0.1
"""Most `apartness` of columns for their order to be enforced by default. Without it many draws of such columns are
impossible; where they are farther apart, draws are less like rows (see the experiment on orders)."""

AS_POSSIBLE = 0.002
"""Two ways to make an order hold are equally good if their shares of rows with impossible values differ by less."""
MOST_IMPOSSIBLE = 0.01
"""Largest share of rows with impossible values for which a found order is enforced, as answers include these rows."""
TIE_ROWS = 5_000
"""Rows in which columns that are often equal are sought."""
TIE_FIRST = 200
"""Rows that show for most pairs of columns that they are not often equal."""
TIE_LEAST = 20
"""Fewest of these rows in which the columns are equal."""
TIE_SHARE = 0.5
"""Least share of equal rows for which a column is added that says whether two columns are equal. It doubles the time of
answers; below this share the loss of equal rows is hardly seen."""
TIE_CHANCE = 0.05
"""Largest share of rows in which the columns would be equal if they were independent. Columns of few values have more,
and hidden trees keep them equal without help."""
MOST_EVENTS = 2
"""Most coordinates that split a joint into cases; each doubles the time of an answer."""


class Reduced(NamedTuple):
    """A table in coordinates, and the columns of the table that are sums by equations beside them.

    These columns are learned too, and then marginalised: their hidden states carry what the sum tells of other columns.
    Sums of a column and a gap are not, as draws of wine are then less like its rows (see the experiment on rules).

    schema : Schema. Of the columns that are learned: m coordinates, and k columns of the table.
    X : float64 array (n, m + k). NaN where missing.
    beside : list of int. Numbers of the k columns in the table.
    low : dict of str to float. Least values that some coordinates may have, by their names.
    indicators : set of str. Names of the coordinates that say whether a cell is missing.
    cases : tuple of Case. Rows in which some columns are sums.
    """

    coordinates: Coordinates
    schema: Schema
    X: np.ndarray
    beside: list[int]
    low: dict[str, float]
    indicators: set[str]
    cases: tuple[Case, ...] = ()

    @property
    def adds_numbers(self) -> bool:
        """Whether a column is a sum of two or more coordinates of numbers, if only in some rows."""
        return self.coordinates.adds_numbers or any(len(case.source.terms) > 1 for case in self.cases)

    @property
    def long_sums(self) -> frozenset[int]:
        """Numbers of the columns that are sums of many steps, so that each answer about them takes a while."""
        columns = self.coordinates.schema.columns
        sums = (j for j in self.coordinates.sums if len(self.coordinates.sources[j].terms) > 1)
        return frozenset(j for j in sums if number_span(columns[j]) > LONG * (columns[j].step or 1.0))

    def of_rows(self, X: np.ndarray) -> np.ndarray:
        """Other rows of the table (n, d) as X has them, (n, m + k); of rows that contradict a rule what is known."""
        Z = _with_cases(self.coordinates, self.cases, _in_coordinates(self.coordinates, X), X)
        Z = _with_skipped(self.coordinates, Z, X)
        for j, absence in enumerate(self.coordinates.absences):
            if absence.where >= 0 and self.coordinates.inner.columns[absence.where].name in self.indicators:
                Z[:, absence.where] = np.isnan(X[:, j])
            if absence.besides >= 0:
                Z[:, absence.besides] = _besides(absence, Z, X[:, j])
        return np.hstack([Z, X[:, self.beside]])

    def ranges_of(self, schema: Schema, ranges: Ranges | None) -> Ranges | None:
        """Which cells of the columns that are learned are ranges, by those of the table; no rule is about these."""
        place = {name: j for j, name in enumerate(schema.names)}
        return None if ranges is None else ranges.select([place.get(name, -1) for name in self.schema.names])

    def ruled(self, inner: Distribution) -> Distribution:
        """The distribution of the table's rows, from one of the columns that are learned."""
        parts = [(self.coordinates, inner.marginalize(list(range(len(self.coordinates.inner.columns)))), 0.0)]
        for event in dict.fromkeys((case.at, case.values) for case in self.cases):
            cases = [case for case in self.cases if (case.at, case.values) == event]
            parts = [piece for part in parts for piece in _divided(cases, *part)]
        each = [self._pinned(coordinates, of_part) for coordinates, of_part, _ in parts]
        return each[0] if len(each) == 1 else mixture_of(each, np.exp([log_p for _, _, log_p in parts]))

    def _pinned(self, coordinates: Coordinates, inner: Distribution) -> Distribution:
        """The distribution of rows, from that of coordinates, whose least values are enforced."""
        if self.cases:  # in each case other coordinates are needed
            needed, kept = coordinates.select(list(range(len(coordinates.sources))))
            coordinates = replace(needed, schema=coordinates.schema, enforced=coordinates.enforced)
            inner = inner.marginalize(kept)
        said = {name: Interval(low, None) for name, low in self.low.items() if name in coordinates.inner.names}
        if said:
            inner = inner.condition(build(coordinates.inner, conditions=said)).with_schema(inner.schema)
        return ruled(coordinates, inner)


class Case(NamedTuple):
    """Rows in which a column is a sum of coordinates; in all others it is a coordinate of its own.

    at : int. The coordinate that tells which rows these are.
    values : tuple of float. Values of that coordinate in the other rows.
    made : int. Number of the column.
    source : Source. What the column is made of.
    gap : int. The coordinate of the gap, if the sum is an order; -1 if the column equals another one in these rows.
    """

    at: int
    values: tuple[float, ...]
    made: int
    source: Source
    gap: int = -1

    def of(self, coordinates: Coordinates) -> Coordinates:
        """The coordinates of a table in these rows."""
        sources = list(coordinates.sources)
        sources[self.made] = self.source
        return replace(coordinates, sources=tuple(sources))


def _with_cases(coordinates: Coordinates, cases: Sequence[Case], Z: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Coordinates Z (n, m) of rows X (n, d), with the gaps of the cases and whether columns are equal filled in."""
    Z = Z.copy()
    for case in cases:
        if case.gap >= 0:
            Z[:, case.gap] = _in_coordinates(case.of(coordinates), X)[:, case.gap]
        else:
            apart = X[:, case.made] - case.of(coordinates).column(case.made, Z)
            near = NEAR * coordinates.schema.columns[case.made].step
            Z[:, case.at] = np.where(np.isnan(apart), np.nan, np.abs(apart) <= near)
    return Z


def _divided(
    cases: Sequence[Case], coordinates: Coordinates, inner: Distribution, log_p: float
) -> Iterator[tuple[Coordinates, Distribution, float]]:
    """The rows in which some columns are sums, and all others: coordinates, their distribution, log-probability."""
    column = coordinates.inner.columns[cases[0].at]
    values = AnyOf(*(column.from_number(x) for x in cases[0].values))
    made = coordinates
    for case in cases:
        made = case.of(made)
    for said, of_rows in ((Not(values), made), (values, coordinates)):
        evidence = build(coordinates.inner, conditions={column.name: said})
        log_share = float(inner.log_density(evidence)[0])
        if log_share > -np.inf:
            yield of_rows, inner.condition(evidence).with_schema(inner.schema), log_p + log_share


def reduce_table(
    wanted: WantedRules, X: np.ndarray, is_better: Callable[[Reduced | None, Reduced], bool] | None = None
) -> Reduced | None:
    """Coordinates in which as many of the rules hold as do together; None if none of them can be enforced. Compounds of
    many levels, and of functions with exceptions, are made if ``is_better`` says so, one after another. Raises
    ValueError if a declared rule cannot be enforced; it says why."""
    best, tried = _reduced(wanted, X, ()), list[Function]()
    for rule in wanted.tried:
        if is_better is not None:
            other = _reduced(wanted, X, (*tried, rule))
            if other is not None and _n_columns(other, X) < _n_columns(best, X) and is_better(best, other):
                best, tried = other, [*tried, rule]
    return best


def _n_columns(reduced: Reduced | None, X: np.ndarray) -> int:
    return X.shape[1] if reduced is None else len(reduced.coordinates.inner.columns)


def _reduced(wanted: WantedRules, X: np.ndarray, compounds: Sequence[Function]) -> Reduced | None:
    """`reduce_table` with some of the functions that are tried as compounds."""
    made = _Maker(wanted, X)
    mine, found = wanted.rules[: wanted.n_declared], wanted.rules[wanted.n_declared :]
    made.add(mine)  # what is declared comes before what is found
    made.is_found = True
    for function in compounds:
        made.add_block(function)
    made.is_auto = wanted.is_auto
    made.add(found)
    for a, b in wanted.ties:
        made.add_tie(a, b)
    # Those of which either column determines the other come first: then known cells determine more of a compound.
    for function in sorted(wanted.soft, key=lambda one: not one.is_mutual):
        made.add_block(function, is_soft=True)
    reduced = made.finished()
    for rule in mine:
        if rule not in made.enforced:
            why = made.why.get(rule, "another rule already determines its columns")
            raise ValueError(f"rules: {rule}: it cannot be enforced, because {why}; leave out this rule or the others")
    return reduced


class _Maker:
    """Coordinates in the making. Until the end, coordinate j < d is column j, and others are numbered from d on."""

    def __init__(self, wanted: WantedRules, X: np.ndarray) -> None:
        self.schema, self.X = wanted.schema, X
        self.about_missing = [one for one in wanted.rules if isinstance(one, MissingTogether | MissingWhere)]
        self.d = len(self.schema.columns)
        self.sources = [Source((Term(j),)) for j in range(self.d)]
        self.blocks: list[set[int]] = []
        self.gaps: list[tuple[Column, float]] = []  # coordinate d + k, and its least value
        self.gap_after: list[int] = []
        # Orders of a column that a rule makes missing: the rule, both columns, and what the second one is made of in
        # the rows where the first one is there.
        self.in_cases: list[tuple[Order, int, int, Source]] = []
        # Columns that are often equal: the base, the other one, and what that one is made of where they are equal.
        self.ties: list[tuple[int, int, Source]] = []
        self.rounded: set[int] = set()  # columns that are sums only after rounding
        self.pinned: dict[int, float] = {}  # columns, and least values that make orders hold
        self.made_by: dict[int, Rule] = {}  # the equation or order that makes a column of others
        self.turned: dict[Equation, Equation] = {}  # several equations of one column, and what they are solved for
        self.enforced: list[Rule] = []
        self.indicators: set[str] = set()
        self.is_auto = False  # whether blocks and orders that are made now have to be small
        # Whether rules are found ones. Combinations of a number or date of many values have to share codes, which then
        # do not keep its order, nor what it tells of other columns. Only declared rules make such combinations.
        self.is_found = False
        self.has_soft = False  # whether a compound is made of a function that is not enforced
        self.why: dict[Rule, str] = {}  # rules that are not enforced, and the reason

    def add(self, rules: Sequence[Rule]) -> None:
        """Take up rules about values, as far as they go with those before: equations first, orders last."""
        self.turned |= self._turned_for_one_column([rule for rule in rules if isinstance(rule, Equation)])
        for rule in rules:
            if isinstance(rule, Equation):
                self.add_equation(rule)
        for kind in (Function, Combinations):
            for rule in rules:
                if isinstance(rule, kind):
                    self.add_block(rule)
        for rule in rules:
            if isinstance(rule, MissingWhere) and len(rule.of) > 1:
                self.add_pair(rule)
        for rule in rules:
            if isinstance(rule, Order):
                self.add_order(rule)

    # ---- equations

    def add_equation(self, rule: Equation) -> None:
        """Make a column the sum of others, if it is not made of anything yet; best one that needs no rounding."""
        said, rule = rule, self._solved(rule)
        y = self.schema.index(rule.column)
        columns = [self.schema.index(name) for _, name in rule.terms]
        if any(self.schema.columns[j].is_categorical for j in (y, *columns)):
            return
        if self._is_implied(rule, y, columns):
            self.enforced.append(said)
            return
        if not self._is_free(y):
            self.why[said] = f"{self._maker_of(y)} already determines {said.column!r}"
            return
        known = ~np.isnan(self.X[:, [y, *columns]]).any(axis=1)
        step = self.schema.columns[y].step
        is_exact = not rule.tolerance and self._is_on_grid(rule)
        sums = on_grid(self.schema.columns[y], equation_total(rule, self.schema, self.X)[known])
        if not is_exact and not rule.tolerance and np.any(np.abs(sums - self.X[known, y]) > NEAR * step):
            self.why[said] = (
                f"some of its sums lie in the middle between two values of {rule.column!r}, and are not always rounded "
                "to the even one"
            )
            return
        others = [j for j in range(self.d) if j != y and any(term.at == y for term in self.sources[j].terms)]
        if self._would_contradict(rule, is_exact, columns, others):
            has_tolerance = rule.tolerance or any(self.sources[j].tolerance for j in (*columns, *others))
            self.why[said] = (
                "a sum of sums that hold within a tolerance is not kept" if has_tolerance else
                "its columns are sums of others only after rounding"
            )  # fmt: skip
            return
        if self._lost_share(rule, most=1 if is_exact else 0) > _LOST:
            self.why[said] = f"too many rows have {rule.column!r} and miss what it is the sum of"
            return
        zero = self.schema.columns[y].zero
        terms: list[Term] = []
        constant, tolerance = rule.constant - zero, rule.tolerance
        for (c, _), j in zip(rule.terms, columns, strict=True):
            constant += c * (self.schema.columns[j].zero + self.sources[j].constant)
            tolerance += abs(c) * self.sources[j].tolerance
            terms += [term._replace(coefficient=c * term.coefficient) for term in self.sources[j].terms]
        source = Source(_each_once(terms), constant, tolerance)
        if any(term.at == y for term in source.terms) or not source.terms:
            of_y = [j for j in columns if any(term.at == y for term in self.sources[j].terms)]
            self.why[said] = f"with {self._maker_of((of_y or [y])[0])} it would make {rule.column!r} a sum of itself"
            return
        self.sources[y], self.made_by[y] = source, said
        if not rule.tolerance and with_tolerance(rule, self.schema).tolerance:
            self._forget_digits(y, *columns)
        if not is_exact and not tolerance:
            self.rounded.add(y)
        for j in others:
            self._substitute(j, y, source)
        self.enforced.append(said)

    def _turned_for_one_column(self, rules: Sequence[Equation]) -> dict[Equation, Equation]:
        """Equations of the same column, each solved for the column that has the fewest impossible values then."""
        # ``gross = net + tax`` and ``gross = paid + open``: ``paid = gross - open`` would be negative in some rows.
        found: dict[Equation, Equation] = {}
        for column in dict.fromkeys(rule.column for rule in rules):
            same = [rule for rule in rules if rule.column == column]
            of_numbers = not any(self.schema[name].is_categorical for one in same for name in one.columns)
            if len(same) == 1 or not of_numbers or not self._is_free(self.schema.index(column)):
                continue
            if not all(len(one.terms) > 1 and not one.tolerance and self._is_on_grid(one) for one in same):
                continue
            solutions = [[rule, *self._solutions(rule, rules)] for rule in same]
            share = {one: self._impossible_share(one) for of_rule in solutions for one in of_rule}
            # One solution may give the column itself. The others then are sums of its parts, which takes longer.
            choices = [
                (max(share[one] for one in choice), sum(one.column == column for one in choice), choice)
                for choice in itertools.product(*solutions)
            ]
            if self.is_auto:
                choices = [
                    (worst, n_own, choice) for worst, n_own, choice in choices
                    if n_own == 0 and all(_is_default(one, self.schema) for one in choice)
                ]  # fmt: skip
            choices = [
                (worst, n_own, choice) for worst, n_own, choice in choices
                if n_own <= 1 and (worst <= MOST_IMPOSSIBLE or not self.is_found)
            ]  # fmt: skip
            least = min((worst for worst, *_ in choices), default=0.0)
            good = [(n_own, choice) for worst, n_own, choice in choices if worst <= least + AS_POSSIBLE]
            if good:
                found |= dict(zip(same, min(good, key=lambda of: of[0])[1], strict=True))
        return found

    def _solutions(self, rule: Equation, rules: Sequence[Equation]) -> Iterator[Equation]:
        """The equation solved for each of its terms that no other equation is about, where that needs no rounding."""
        for c, name in rule.terms:
            solved, is_own = _turned(rule, c, name), all(name not in other.columns for other in rules if other != rule)
            is_free = is_own and self._is_free(self.schema.index(name))
            if is_free and self._is_on_grid(solved) and self._lost_share(solved, most=1) <= _LOST:
                yield solved

    def _lost_share(self, rule: Equation, most: int) -> float:
        """Share of rows that know the equation's column, and miss more than ``most`` of its terms."""
        missing = np.isnan(self.X[:, [self.schema.index(name) for _, name in rule.terms]]).sum(axis=1)
        return float(np.mean(~np.isnan(self.X[:, self.schema.index(rule.column)]) & (missing > most)))

    def _impossible_share(self, rule: Equation) -> float:
        """Estimated share of rows in which its terms make impossible values of the equation's column."""
        _, base = max(rule.terms, key=lambda term: (term[0] > 0.0, number_span(self.schema[term[1]])))
        columns = [self.schema.index(name) for name in (base, rule.column)]
        return _impossible_share([self.schema.columns[j] for j in columns], self.X[:, columns])

    def _solved(self, rule: Equation) -> Equation:
        """The equation, or if its sums have to be rounded, or another equation makes its column, the same for a column
        of which neither is true."""
        if rule in self.turned:
            return self.turned[rule]
        rest = np.abs(equation_total(rule, self.schema, self.X) - self.X[:, self.schema.index(rule.column)])
        is_rounded = np.nanmax(rest, initial=0.0) > NEAR * self.schema[rule.column].step
        is_made = isinstance(self.made_by.get(self.schema.index(rule.column)), Equation)
        if rule.tolerance or is_rounded or (self._is_on_grid(rule) and not is_made):
            return rule
        for c, name in rule.terms:
            other = _turned(rule, c, name)
            is_possible = self._is_free(self.schema.index(name)) and self._is_on_grid(other)
            if is_made and self.is_auto:
                is_possible &= self._is_short_sum(other) and self._impossible_share(other) <= MOST_IMPOSSIBLE
            if is_possible:
                return other
        return rule

    def _is_short_sum(self, rule: Equation) -> bool:
        """Whether answers about a sum stay exact, by the parts of its terms that are sums themselves."""
        names = [name for _, name in rule.terms]
        parts = {term.at for name in names for term in self.sources[self.schema.index(name)].terms}
        if not all(at < self.d for at in parts):
            return False
        columns = [self.schema.columns[at] for at in parts]
        step = min(column.step for column in (*columns, self.schema[rule.column]))
        return _is_short(sorted(map(number_span, columns)), number_span(self.schema[rule.column]), step)

    def _is_on_grid(self, rule: Equation) -> bool:
        """Whether all sums of values on their grids are values of the equation's column."""
        columns = [self.schema[name] for _, name in rule.terms]
        constant = rule.constant - self.schema[rule.column].zero + sum(
            c * of.zero for (c, _), of in zip(rule.terms, columns, strict=True)
        )  # fmt: skip
        addends = [(c, values_of(of)) for (c, _), of in zip(rule.terms, columns, strict=True)]
        return lies_on_grid(self.schema[rule.column], constant, addends)

    def _forget_digits(self, *columns: int) -> None:
        """Leave the cells of some columns unrounded, since rounding them would contradict a rule."""
        made = list(self.schema.columns)
        for j in columns:
            made[j] = replace(made[j], digits=0)
        self.schema = replace(self.schema, columns=tuple(made))

    def _would_contradict(self, rule: Equation, is_exact: bool, columns: Sequence[int], others: Sequence[int]) -> bool:
        """Whether what rounding does to parts, or to sums of this sum, would contradict the rule or another one."""
        if self.rounded.intersection(columns):
            return True
        if rule.tolerance:
            return not all(self.sources[j].tolerance for j in others)
        if any(self.sources[j].tolerance for j in columns):
            return True
        return not is_exact and (bool(others) or not all(self.sources[j].is_plain for j in columns))

    def _is_implied(self, rule: Equation, y: int, columns: Sequence[int]) -> bool:
        """Whether a sum holds already, by what its columns are made of."""
        sides = [(-1.0, y), *((c, j) for (c, _), j in zip(rule.terms, columns, strict=True))]
        if self.rounded.intersection(j for _, j in sides):
            return False
        terms = [t._replace(coefficient=c * t.coefficient) for c, j in sides for t in self.sources[j].terms]
        constants = [c * (self.schema.columns[j].zero + self.sources[j].constant) for c, j in sides]
        near = NEAR * max(self.schema.columns[y].step, 1e-6 * sum(map(abs, constants)))
        return not _each_once(terms) and abs(rule.constant + sum(constants)) <= near

    def _maker_of(self, j: int) -> str:
        """The rule that determines a column already, or makes it one with others, in words."""
        name = self.schema.columns[j].name
        blocks = (rule for rule in self.enforced if isinstance(rule, Function | Combinations) and name in rule.columns)
        made_by = self.made_by.get(j) or next(blocks, None)
        return "another rule" if made_by is None else repr(str(made_by))

    def _is_free(self, j: int) -> bool:
        """Whether a column is still a coordinate, in no block, and no order needs its least value."""
        is_own = self.sources[j].is_plain and self.sources[j].terms[0].at == j
        in_case = any(j in (base, made) for *_, base, made, _ in (*self.in_cases, *self.ties))
        return is_own and not in_case and j not in self.pinned and not any(j in b for b in self.blocks)

    def _substitute(self, j: int, y: int, source: Source) -> None:
        """Put what column y is made of in its place, in column j."""
        terms: list[Term] = []
        _, constant, tolerance = self.sources[j]
        for term in self.sources[j].terms:
            if term.at != y:
                terms.append(term)
                continue
            constant += term.coefficient * source.constant
            tolerance += abs(term.coefficient) * source.tolerance
            terms += [part._replace(coefficient=term.coefficient * part.coefficient) for part in source.terms]
        self.sources[j] = Source(_each_once(terms), constant, tolerance)

    # ---- functions and combinations

    def add_block(self, rule: Function | Combinations, is_soft: bool = False) -> None:
        """Make the columns of a rule one compound, together with those that they are one with already. ``is_soft``
        means that new rows may have other combinations, so the rule is not enforced."""
        why = self._join({self.schema.index(name) for name in rule.columns})
        if why:
            self.why[rule] = why
        elif is_soft or rule.exceptions:
            self.has_soft = True
        else:
            self.enforced.append(rule)

    def add_pair(self, rule: MissingWhere) -> None:
        """Make the columns one compound that say together where another is missing."""
        self._join({self.schema.index(name) for name in rule.of})

    def _join(self, columns: set[int]) -> str:
        """Make some columns one block; empty, or why they cannot be one."""
        # Columns that equations make are in a block with all of their parts, as its combinations obey the equations.
        columns = self._with_parts(columns)
        touched = [block for block in self.blocks if block & columns]
        joined = columns.union(*touched)
        if any(base in joined for base, *_ in self.ties):
            return "one of its columns is often equal to another column"
        sums = {j for j in columns if self._is_made_by_equation(j)}
        for j in joined - sums:
            if not self._is_free(j) and not any(j in block for block in touched):
                return f"{self._maker_of(j)} makes {self.schema.columns[j].name!r} a sum"
        if touched and joined == touched[0]:
            return ""
        cells = self.X[:, sorted(joined)]
        known = ~np.isnan(cells).any(axis=1)
        if not known.any():
            return "no row has all of its columns"
        key = combined([ranked(x) for x in cells[known].T])
        n_levels = int(key.max()) + 1
        if n_levels > min(MAX_LEVELS, known.sum() / ROWS_A_LEVEL):
            return f"its columns have {n_levels:,} combinations of values in {known.sum():,} rows, which are too many"
        alone = [len(np.unique(self.X[known, j])) for j in joined if self.schema.columns[j].is_categorical]
        widest = max(alone, default=0) if self.is_found else max(int(ranked(x).max()) + 1 for x in cells.T)
        if n_levels > max(MAX_LEVEL_CODES, MORE_LEVELS * widest):
            return f"its columns have {n_levels:,} combinations of values, which are too many"
        if self.is_auto and n_levels > max(AUTO_LEVELS, *alone, 0):
            return f"its columns have {n_levels:,} combinations of values, which are many"
        if _undetermined(cells) > _LOST * len(cells):
            return "too many rows miss some of its columns, which the known ones do not determine"
        for x in cells.T:  # every value is in some combination
            if np.mean(~np.isnan(x) & ~np.isin(x, x[known])) > UNLIKE:
                return "too many values occur only where others of its columns are missing"
        self.blocks = [block for block in self.blocks if not block & columns] + [joined]
        for j in sums:
            self.sources[j] = Source((Term(j),))
            del self.made_by[j]
        self.rounded -= sums
        return ""

    def _with_parts(self, columns: set[int]) -> set[int]:
        """Some columns, and all columns of the equations that make any of them."""
        found, waiting = set(), list(columns)
        while waiting:
            j = waiting.pop()
            if j not in found and self._is_made_by_equation(j):
                waiting += [self.schema.index(name) for name in self.made_by[j].columns]
            found.add(j)
        return found

    def _is_made_by_equation(self, j: int) -> bool:
        """Whether an equation that holds without a tolerance makes a column."""
        return isinstance(self.made_by.get(j), Equation) and not self.sources[j].tolerance

    # ---- orders

    def add_order(self, rule: Order) -> None:
        """Make one column the other one plus or minus a gap: the one whose gap tells less of the other one."""
        low, high = self.schema.index(rule.low), self.schema.index(rule.high)
        if any({low, high} <= block for block in self.blocks):
            self.enforced.append(rule)  # by the combinations that there are
            return
        columns = self.schema.columns
        if self._is_implied_order(rule, low, high):
            self.enforced.append(rule)
            return
        ways = [(base, made) for base, made in ((low, high), (high, low)) if self._may_be_made(base, made)]
        ways += [(base, made) for base, made in ((low, high), (high, low)) if self._may_be_made_in_case(base, made)]
        if not ways or any(columns[j].is_categorical for j in (low, high)):
            makers = [self.made_by[j] for j in (low, high) if j in self.made_by]
            self.why[rule] = (
                f"{str(makers[0])!r} already determines one of its columns" if makers else
                "other rules determine its columns, or these have grids that do not go together"
            )  # fmt: skip
            return
        apart, unit = gap(rule, self.schema, self.X), _unit(columns[low], columns[high])
        if unit > 0.0:
            apart = np.rint(apart / unit)
        wrong = [_impossible_share([columns[j] for j in way], self.X[:, way]) for way in ways]
        possible = [way for way, x in zip(ways, wrong, strict=True) if x <= min(wrong) + AS_POSSIBLE]
        base, made = min(possible, key=lambda way: _dependence(self.X[:, way[0]], apart))
        if self.is_found and min(wrong) > MOST_IMPOSSIBLE:
            self.why[rule] = f"too many rows would have impossible values of {columns[made].name!r}"
            return
        if rule.is_strict or columns[low].digits != columns[high].digits:
            self._forget_digits(low, high)
        known = apart[~np.isnan(apart)]
        name = self._new_name(f"{columns[high].name} - {columns[low].name}")
        dtype = _dtype(self.schema.frame, "integer" if unit > 0.0 else "number")
        gap_column = replace(
            infer_schema(known[:, None], doubt=False).columns[0], name=name, dtype=dtype, n_observed=len(known)
        )
        at = self.d + len(self.gaps)
        self.gaps.append((gap_column, 1.0 if rule.is_strict and unit > 0.0 else 0.0))
        self.gap_after.append(made)
        source = self.sources[base]
        term = Term(at, (unit or 1.0) if made == high else -(unit or 1.0))
        source = Source((*source.terms, term), source.constant + columns[base].zero - columns[made].zero)
        self.enforced.append(rule)
        if self._may_be_made_in_case(base, made):
            self.in_cases.append((rule, base, made, source))
            return
        others = [j for j in range(self.d) if j != made and any(term.at == made for term in self.sources[j].terms)]
        self.sources[made], self.made_by[made] = source, rule
        for j in others:
            self._substitute(j, made, source)

    def _may_be_made_in_case(self, base: int, made: int) -> bool:
        """Whether a column can be another one plus or minus a gap where a rule does not make that one missing."""
        # The column has values in other rows, where it is a coordinate of its own.
        by_rule = [one for one in self.about_missing if isinstance(one, MissingWhere) and one.is_mutual]
        rule = next((one for one in by_rule if one.column == self.schema.columns[base].name), None)
        if rule is None or self.schema.columns[made].name in rule.of or self.is_auto:
            return False
        if not (self.sources[base].is_plain and self._is_free(base) and self._is_in_no_sum(made)):
            return False
        is_there = ~np.isnan(self.X[:, base])
        return self._may_be_made(base, made, is_there) and not self._may_be_made(base, made)

    def add_tie(self, a: int, b: int) -> None:
        """Let a column be another one in the rows in which they are equal, as an indicator will tell."""
        columns = self.schema.columns
        for base, made in ((a, b), (b, a)):
            source, apart = self.sources[base], columns[base].zero - columns[made].zero
            if (
                len(self.ties) < MOST_EVENTS
                and self._is_free(made)
                and self._is_in_no_sum(made)
                and self._may_be_base(base)
                and not any(self._is_about_missing(j) for j in (a, b))
                and lies_on_grid(columns[made], apart, [(1.0, values_of(columns[base]))])
            ):
                self.ties.append((base, made, source._replace(constant=source.constant + apart)))
                return

    def _may_be_base(self, j: int) -> bool:
        """Whether another column may be computed from column j in the rows where both are equal."""
        # column j must be an exact sum of the same coordinates in all rows
        is_made_in_case = any(j == made for *_, made, _ in (*self.in_cases, *self.ties))
        is_exact = j not in self.rounded and not self.sources[j].tolerance
        parts = [term.at for term in self.sources[j].terms]
        of_rule = any(self._is_about_missing(at) for at in parts if at < self.d)
        return is_exact and not (is_made_in_case or of_rule or any(j in block for block in self.blocks))

    def _is_about_missing(self, j: int) -> bool:
        """Whether a rule about missing cells is about column j."""
        return any(self.schema.columns[j].name in rule.columns for rule in self.about_missing)

    def _is_implied_order(self, rule: Order, low: int, high: int) -> bool:
        """Whether high less low is a sum of gaps and of columns that are at least 0, or may be pinned to be so. So
        ``start <= end`` where ``end = start + 60 * minutes`` holds for minutes that are not negative."""
        columns = self.schema.columns
        sides = self.sources[high].terms, [t._replace(coefficient=-t.coefficient) for t in self.sources[low].terms]
        parts = _each_once([term for side in sides for term in side])
        least = self.sources[high].constant + columns[high].zero - self.sources[low].constant - columns[low].zero
        is_rounded = any(j in self.rounded or self.sources[j].tolerance for j in (low, high))
        if is_rounded and (columns[high].step, columns[high].digits) != (columns[low].step, columns[low].digits):
            return False  # rounding to one grid keeps an order, to two it may not
        if not parts or any(term.coefficient < 0.0 or any(term.at in block for block in self.blocks) for term in parts):
            return False
        near = NEAR * max(columns[low].step, columns[high].step)
        for pins in self._pins(parts):
            at_least = least + sum(term.coefficient * pins[term.at] for term in parts)
            if (at_least > near and not is_rounded) if rule.is_strict else at_least >= -near:
                for at in pins.keys() & range(self.d):
                    self.pinned[at] = max(pins[at], self.pinned.get(at, pins[at]))
                return True
        return False

    def _pins(self, parts: Sequence[Term]) -> Iterator[dict[int, float]]:
        """Least values of coordinates: of gaps what they are, of columns 0 if none is below, or the observed ones."""
        for is_zero in (True, False):
            pins = {}
            for at in (term.at for term in parts):
                if at >= self.d:
                    pins[at] = self.gaps[at - self.d][1]
                    continue
                column = self.schema.columns[at]
                pins[at] = 0.0 if is_zero and column.zero == 0.0 <= column.minimum else column.minimum
            yield pins

    def _may_be_made(self, base: int, made: int, rows: np.ndarray | slice = slice(None)) -> bool:
        """Whether a column can be another one plus or minus a gap, in some of the rows."""
        if not self._is_free(made) or base in self.rounded or any(term.at == made for term in self.sources[base].terms):
            return False
        if self.is_auto and not (self.sources[base].is_plain and self._is_in_no_sum(made)):
            return False  # sums of three parts are slow
        if self.sources[base].tolerance:
            return False  # rows whose columns are equal may have a sum above the other column
        steps = [self.schema.columns[j].step for j in (base, made)]
        if steps[1] > steps[0] or (steps[1] > 0.0 and _unit(*(self.schema.columns[j] for j in (base, made))) == 0.0):
            return False  # sums would lie beside the grid
        return bool(np.mean(np.isnan(self.X[rows, base]) & ~np.isnan(self.X[rows, made])) <= _LOST)

    def _is_in_no_sum(self, j: int) -> bool:
        """Whether no other column is a sum of column j."""
        return all(k == j or all(term.at != j for term in source.terms) for k, source in enumerate(self.sources))

    def _new_name(self, name: str) -> str:
        taken = {column.name for column in self.schema.all_columns.columns} | {column.name for column, _ in self.gaps}
        while name in taken:
            name += "'"
        return name

    # ---- the end

    def finished(self) -> Reduced | None:
        """The coordinates, and the table in them."""
        about_missing = self.about_missing
        if not self.enforced and not self.has_soft and not about_missing and not self.ties:
            return None
        order: list[tuple[str, int]] = []  # sorts of coordinates in the order of the table
        for j in range(self.d):
            block = next((k for k, block in enumerate(self.blocks) if j in block), None)
            if block is not None:
                if ("block", block) not in order:
                    order.append(("block", block))
            elif self.sources[j].is_plain and self.sources[j].terms[0].at == j:
                order.append(("column", j))
            order += [("gap", k) for k, high in enumerate(self.gap_after) if high == j]
        place = {what: at for at, what in enumerate(order)}
        tables: dict[int, np.ndarray] = {}
        columns: list[Column] = []
        for sort, k in order:
            if sort == "block":
                column, of_members = self._compound(sorted(self.blocks[k]))
                columns.append(column)
                tables |= of_members
            else:
                columns.append(self.schema.columns[k] if sort == "column" else self.gaps[k][0])
        sources = tuple(self._placed(j, self.sources[j], place, tables) for j in range(self.d))
        inner = Schema(tuple(columns), self.schema.frame, (), self.schema.n_rows)
        coordinates = Coordinates(self.schema, inner, sources, (NEVER,) * self.d, ())
        Z = _in_coordinates(coordinates, self.X)
        in_cases = []
        for rule, base, other, source in self.in_cases:
            source = self._placed(other, source, place, tables)
            in_cases.append((rule, base, Case(-1, (), other, source, gap=source.terms[-1].at)))
        Z = _with_cases(coordinates, [case for _, _, case in in_cases], Z, self.X)
        of_gaps = {place["gap", k] for k in range(len(self.gaps))}
        low = {column.name: least for column, least in self.gaps}
        low |= {self.schema.columns[j].name: least for j, least in self.pinned.items()}
        coordinates, Z = self._with_absences(coordinates, Z, about_missing)
        cases = tuple(self._cases(coordinates, in_cases))
        coordinates, Z, equal = self._with_indicators(coordinates, Z, place, tables)
        if not self.enforced and not self.has_soft and not equal:
            return None
        rules_with_flags = [replace(rule, is_enforced=rule in self.enforced) for rule in self.schema.rules]
        schema = replace(self.schema, rules=tuple(rules_with_flags))
        enforced = tuple(rule for rule in rules_with_flags if rule.is_enforced)
        coordinates = replace(coordinates, schema=schema, enforced=enforced)
        beside = [
            j
            for j, source in enumerate(coordinates.sources)
            if j in coordinates.sums and not any(term.at in of_gaps for term in source.terms)
        ]
        made = tuple(self.schema.columns[j] for j in beside)
        learned = replace(coordinates.inner, columns=(*coordinates.inner.columns, *made))
        return Reduced(
            coordinates, learned, np.hstack([Z, self.X[:, beside]]), beside, low, self.indicators, (*cases, *equal)
        )

    def _with_indicators(
        self, coordinates: Coordinates, Z: np.ndarray, place: dict[tuple[str, int], int], tables: dict[int, np.ndarray]
    ) -> tuple[Coordinates, np.ndarray, list[Case]]:
        """The coordinates with one for each two columns that are often equal, which says whether they are."""
        columns, cases = list(coordinates.inner.columns), list[Case]()
        dtype = _dtype(self.schema.frame, "boolean")
        for base, made, source in self.ties:
            name = self._new_name(f"{self.schema.columns[made].name} = {self.schema.columns[base].name}")
            cases.append(Case(len(columns), (0.0,), made, self._placed(made, source, place, tables)))
            columns.append(Column(name, "boolean", dtype, levels=(False, True), n_observed=len(self.X)))
        coordinates = replace(coordinates, inner=replace(coordinates.inner, columns=tuple(columns)))
        Z = np.hstack([Z, np.full((len(Z), len(cases)), np.nan)])
        return coordinates, _with_cases(coordinates, cases, Z, self.X), cases

    def _cases(self, coordinates: Coordinates, in_cases: Sequence[tuple[Order, int, Case]]) -> Iterator[Case]:
        """The cases of orders that can be enforced. Other orders are dropped, and the reason is recorded."""
        events: set[tuple[int, tuple[float, ...]]] = set()
        for rule, base, case in in_cases:
            absence = coordinates.absences[base]
            if (
                absence.by_rule
                and absence.besides < 0
                and len(events | {(absence.where, absence.values)}) <= MOST_EVENTS
            ):
                events.add((absence.where, absence.values))
                yield case._replace(at=absence.where, values=absence.values)
            else:
                self.enforced.remove(rule)
                self.why[rule] = f"other rules determine where {self.schema.columns[base].name!r} is missing"

    def _placed(
        self, j: int, source: Source, place: dict[tuple[str, int], int], tables: dict[int, np.ndarray]
    ) -> Source:
        """A source of column j with the final numbers of the coordinates, each once."""
        # A sum of members of one compound alone is a member itself.
        terms: list[Term] = []
        of_block: dict[int, np.ndarray] = {}
        column = self.schema.columns[j]
        for term in source.terms:
            block = next((k for k, block in enumerate(self.blocks) if term.at in block), None)
            if term.at >= self.d:
                terms.append(term._replace(at=place["gap", term.at - self.d]))
            elif block is not None:
                at, values = place["block", block], term.coefficient * tables[term.at]
                of_block[at] = of_block[at] + values if at in of_block else values
            else:
                terms.append(term._replace(at=place["column", term.at]))
        if not terms and len(of_block) == 1 and not source.tolerance and (column.is_categorical or column.step > 0.0):
            ((at, values),) = of_block.items()
            values = values if column.is_categorical else on_grid(column, source.constant + values)
            return Source((Term(at, 1.0, values),))
        return source._replace(terms=(*terms, *(Term(at, 1.0, values) for at, values in of_block.items())))

    def _compound(self, members: list[int]) -> tuple[Column, dict[int, np.ndarray]]:
        """The categorical coordinate of some columns, and the value of each member in each of its levels."""
        # Levels follow the member of numbers that has the most values, if there is one.
        cells = self.X[:, members]
        cells = cells[~np.isnan(cells).any(axis=1)]
        sizes = [len(np.unique(x)) for x in cells.T]
        numbers = [k for k, j in enumerate(members) if not self.schema.columns[j].is_categorical]
        first = max(numbers, key=lambda k: sizes[k]) if numbers else int(np.argmax(sizes))
        distinct = np.unique(np.column_stack([cells[:, first], np.delete(cells, first, axis=1)]), axis=0)
        back = [first, *(k for k in range(len(members)) if k != first)]
        tables = {members[k]: np.ascontiguousarray(distinct[:, i]) for i, k in enumerate(back)}
        parts = tuple((not self.schema.columns[j].is_categorical, tuple(tables[j].tolist())) for j in members)
        name = self._new_name(", ".join(self.schema.columns[j].name for j in members))
        column = Column(
            name, "categorical", _dtype(self.schema.frame, "integer"), levels=tuple(range(len(distinct))),
            n_observed=len(cells), parts=parts,
        )  # fmt: skip
        return column, tables

    # ---- missing cells

    def _with_absences(
        self, coordinates: Coordinates, Z: np.ndarray, rules: Sequence[MissingTogether | MissingWhere]
    ) -> tuple[Coordinates, np.ndarray]:
        """The coordinates with what makes cells of each column missing: rules, other cells, or an indicator."""
        index = self.schema.index
        absences: dict[int, Absence] = {}
        inner_columns, parts = list(coordinates.inner.columns), [Z]
        for rule in _in_turn([rule for rule in rules if isinstance(rule, MissingWhere)]):
            found = self._where(coordinates, rule)
            columns = [index(rule.column), *self._made_of(coordinates, index(rule.column))]
            if found is None:
                self.why[rule] = "other rules make the columns that tell where it is missing sums, or several"
                if rule.ends is not None:
                    self.why[rule] += f", or they have no grid, or more than {MOST_IN_RANGE:,} values"
            elif any(absences.get(j, found)._replace(besides=-1) != found for j in columns):
                self.why[rule] = f"another rule makes {rule.column!r}, or a sum of it, missing"
            elif not np.isnan(self.X[np.isnan(self.X[:, columns[0]])][:, columns]).all():
                self.why[rule] = f"a sum of {rule.column!r} is known where it is missing"
            elif not rule.is_mutual and len(columns) > 1:
                self.why[rule] = f"other rules make {rule.column!r} a part of a sum"
            elif rule.is_mutual and self._is_missing_beside(rule, found, absences, parts[0]):
                self.why[rule] = f"where {rule.of[0]!r} is missing, {rule.column!r} is missing more or less often"
            else:  # a sum of what is missing is missing
                if not rule.is_mutual:
                    found = found._replace(besides=self._indicator(rule.column, inner_columns))
                    parts.append(_besides(found, Z, self.X[:, columns[0]])[:, None])
                absences |= dict.fromkeys(columns, found)
                until_now = tuple(absences.get(j, NEVER) for j in range(self.d))
                parts[0] = _with_skipped(replace(coordinates, absences=until_now), parts[0], self.X)
                self.enforced.append(rule)
        together = [rule for rule in rules if isinstance(rule, MissingTogether)]
        leader = {index(name): index(one.of[0]) for one in together for name in one.of}
        for one in together:
            by_rule = [absences[index(name)] for name in one.of if index(name) in absences]
            if by_rule:
                absences |= {index(name): by_rule[0] for name in one.of}
            self.enforced.append(one)
        for j in sorted(range(self.d), key=lambda j: leader.get(j, j) != j):
            if j in absences:
                continue
            if leader.get(j, j) != j:
                absences[j] = absences[leader[j]]
                continue
            absences[j] = self._like(coordinates, np.hstack(parts), j)
            if absences[j].where == -2:
                is_missing = np.isnan(self.X[:, j])
                parts.append(is_missing.astype(np.float64)[:, None])
                absences[j] = Absence(where=self._indicator(self.schema.columns[j].name, inner_columns), values=(1.0,))
        inner = replace(coordinates.inner, columns=tuple(inner_columns))
        of_all = tuple(absences[j] for j in range(self.d))
        return replace(coordinates, inner=inner, absences=of_all), np.hstack(parts)

    def _is_missing_beside(
        self, rule: MissingWhere, found: Absence, absences: dict[int, Absence], Z: np.ndarray
    ) -> bool:
        """Whether cells are missing more or less often in rows that do not know the columns of a rule about them."""
        # A rule may make these columns missing: then the cells are missing in all of these rows, or in as many.
        lost, is_unknown = np.isnan(self.X[:, self.schema.index(rule.column)]), np.isnan(Z[:, found.where])
        before = absences.get(self.schema.index(rule.of[0]), NEVER)
        skipped = is_unknown & _is_absent(before, Z)
        if lost[skipped].all():
            is_unknown &= ~skipped
        n, k, share = is_unknown.sum(), lost[is_unknown].sum(), lost[~np.isnan(Z[:, found.where])].mean()
        return bool(n and rel_entr([k, n - k], [n * share, n * (1.0 - share)]).sum() > ENOUGH_NATS)

    def _indicator(self, name: str, inner_columns: list[Column]) -> int:
        """The number of a new coordinate, which says whether cells of a column are missing."""
        name = self._new_name(f"{name} is missing")
        self.indicators.add(name)
        dtype = _dtype(self.schema.frame, "boolean")
        inner_columns.append(Column(name, "boolean", dtype, levels=(False, True), n_observed=len(self.X)))
        return len(inner_columns) - 1

    def _made_of(self, coordinates: Coordinates, j: int) -> list[int]:
        """Numbers of the other columns that a plain column is a part of."""
        if j not in coordinates.plain:
            return []
        at = coordinates.plain[j]
        return [k for k in coordinates.sums if any(term.at == at for term in coordinates.sources[k].terms)]

    def _where(self, coordinates: Coordinates, rule: MissingWhere) -> Absence | None:
        """The values of one coordinate at which a rule makes cells missing; None if they are not those of one."""
        of = [self.schema.index(name) for name in rule.of]
        columns = [self.schema.columns[j] for j in of]
        if rule.ends is not None:
            # the first one is farthest from numbers beyond the range: see `_with_skipped`
            numbers = [[x] for x in values_in_range(columns[0], *rule.ends)[:: 1 if math.isinf(rule.ends[0]) else -1]]
            if not 0 < len(numbers) <= MOST_IN_RANGE:
                return None
        else:
            numbers = [[c.to_number(x) for c, x in zip(columns, values, strict=True)] for values in rule.values]
        sources = [coordinates.sources[j] for j in of]
        if not all(source.is_one for source in sources) or len({source.terms[0].at for source in sources}) > 1:
            return None
        at = sources[0].terms[0].at
        if sources[0].is_plain:
            return Absence(where=at, values=tuple(values[0] for values in numbers), by_rule=True)
        if at in {term.at for term in coordinates.sources[self.schema.index(rule.column)].terms}:
            return None
        levels = np.column_stack([coordinates.table(j) for j in of])
        fits = np.any([(levels == values).all(axis=1) for values in numbers], axis=0)
        return Absence(where=at, values=tuple(np.flatnonzero(fits).astype(float).tolist()), by_rule=True)

    def _like(self, coordinates: Coordinates, Z: np.ndarray, j: int) -> Absence:
        """The coordinate that is missing where column j is; ``where`` is -2 if there is none."""
        missing = np.isnan(self.X[:, j])
        if not missing.any():
            return NEVER
        own = [term.at for term in coordinates.sources[j].terms]
        for at in (*own, *(at for at in range(len(coordinates.inner.columns)) if at not in own)):
            differ = np.count_nonzero(np.isnan(Z[:, at]) != missing)
            if differ <= min(UNLIKE * len(missing), 0.1 * missing.sum()):
                return Absence(like=at)
        return Absence(where=-2)


def values_in_range(column: Column, low: float, high: float) -> list[float]:
    """The values of a column's grid between two ends, as far beyond its observed range as draws may lie, up to one more
    than are taken."""
    beyond = 0.5 * (column.maximum - column.minimum)
    ends = np.array([max(low, column.minimum - beyond), min(high, column.maximum + beyond)])
    first, last = cell_places(column, ends) if column.step > 0.0 else (1.0, 0.0)
    places = first + np.arange(min(max(last - first + 1.0, 0.0), MOST_IN_RANGE + 1))
    return snapped(column, column.center + places * column.step).tolist()


def _undetermined(cells: np.ndarray) -> int:
    """Number of rows whose known cells (n, m), at least one, belong to several or none of the complete rows."""
    missing = np.isnan(cells)
    complete, found = np.unique(cells[~missing.any(axis=1)], axis=0), 0
    for pattern in np.unique(missing, axis=0):
        if pattern.any() and not pattern.all():
            rows = cells[(missing == pattern).all(axis=1)]
            group = combined([ranked(x) for x in np.concatenate([complete, rows])[:, ~pattern].T])
            count = np.bincount(group[: len(complete)], minlength=group.max() + 1)
            found += int(np.count_nonzero(count[group[len(complete) :]] != 1))
    return found


def _in_coordinates(coordinates: Coordinates, X: np.ndarray) -> np.ndarray:
    """Rows of a table in coordinates; of rounded conversions the nearest value of what they are of."""
    Z = known_values(coordinates, X)
    for j in coordinates.sums:
        terms = coordinates.sources[j].terms
        if len(terms) == 1 and terms[0].table is None:
            at, c = terms[0].at, terms[0].coefficient
            rows = np.flatnonzero(np.isnan(Z[:, at]) & ~np.isnan(X[:, j]))
            Z[rows, at] = snapped(coordinates.inner.columns[at], (X[rows, j] - coordinates.sources[j].constant) / c)
    return Z


def _in_turn(rules: list[MissingWhere]) -> Iterator[MissingWhere]:
    """Rules about missing cells, each after those about the columns that it speaks of."""
    left = list(rules)
    while left:
        made = {rule.column for rule in left}
        rule = next((rule for rule in left if made.isdisjoint(rule.of)), left[0])
        left.remove(rule)
        yield rule


def _is_absent(absence: Absence, Z: np.ndarray) -> np.ndarray:
    """Rows of coordinates in which a rule makes the cells of a column missing."""
    is_by_rule = absence.by_rule and absence.where >= 0
    return np.isin(Z[:, absence.where], absence.values) if is_by_rule else np.zeros(len(Z), bool)


def _with_skipped(coordinates: Coordinates, Z: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Coordinates in which columns that a rule makes missing have a value that makes others missing in their turn."""
    # A question that is not asked because another one was not asked has no answer. The value is not seen, as the column
    # is missing there.
    Z, column = Z.copy(), {at: j for j, at in coordinates.plain.items()}
    for _ in coordinates.absences:  # as many as a chain can have
        before = int(np.isnan(Z).sum())
        for j, absence in enumerate(coordinates.absences):
            if absence.by_rule and absence.where in column:
                skipped = np.isnan(Z[:, absence.where]) & _is_absent(coordinates.absences[column[absence.where]], Z)
                rows, at = np.flatnonzero(skipped & np.isnan(X[:, j])), absence.where
                values = Z[np.isin(Z[:, at], absence.values), at]  # as often as each is seen
                if not len(values) or not coordinates.inner.columns[at].is_categorical:
                    # of numbers the value that is farthest from those where the question is asked
                    values = np.array([next((x for x in absence.values if x in values), absence.values[0])])
                Z[rows, at] = np.random.default_rng(0).choice(values, len(rows))
        if int(np.isnan(Z).sum()) == before:
            break
    return Z


def _besides(absence: Absence, Z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Whether cells x (n,) of a column are missing without the rule; NaN where the rule makes them missing."""
    return np.where(np.isin(Z[:, absence.where], absence.values), np.nan, np.isnan(x))


def _turned(rule: Equation, c: float, name: str) -> Equation:
    """The equation solved for one of its terms, which has the coefficient c."""
    others = tuple((-k / c, of) for k, of in rule.terms if of != name)
    return replace(rule, column=name, terms=((1.0 / c, rule.column), *others), constant=-rule.constant / c)


def _each_once(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Terms with each coordinate once."""
    found: dict[int, Term] = {}
    for term in terms:
        before = found.get(term.at)
        weight = term.coefficient + (0.0 if before is None else before.coefficient)
        found[term.at] = term._replace(coefficient=weight)
    return tuple(term for term in found.values() if abs(term.coefficient) > 1e-12)


def _dependence(x: np.ndarray, y: np.ndarray) -> float:
    """Mutual information of two columns by classes of about equal numbers, in nats."""
    known = ~(np.isnan(x) | np.isnan(y))
    cuts = np.linspace(0.0, 1.0, CLASSES + 1)[1:-1]
    classes = np.column_stack([np.searchsorted(np.unique(np.quantile(v, cuts)), v) for v in (x[known], y[known])])
    return float(mutual_information(classes, np.array([CLASSES, CLASSES]))[0, 1])


def _unit(low: Column, high: Column) -> float:
    """The step of the grid of differences of two columns; 0 if they have none."""
    if low.step == 0.0 or high.step == 0.0:
        return 0.0
    step, wide = sorted((low.step, high.step))
    apart = low.center + low.zero - high.center - high.zero
    is_whole = all(abs(x / step - round(x / step)) < 1e-6 for x in (wide, apart))
    return step if is_whole else 0.0


def _impossible_share(columns: Sequence[Column], X: np.ndarray) -> float:
    """Estimated share of rows (n, 2) in which the first column and a gap make impossible values of the second one."""
    # Impossible values have a sign that the column does not have, or lie beyond an end of its range that is a point
    # mass. Gaps are permuted within quarters of the rows by the first column, as states of trees do not distinguish
    # all values.
    X, made, rng = X[~np.isnan(X).any(axis=1)], columns[1], np.random.default_rng(0)
    found = [X[:0, 0]]
    for rows in np.array_split(X[np.argsort(X[:, 0], kind="stable")], 4):
        found.append(rows[:, 0] + rng.permutation(rows[:, 1] - rows[:, 0]))
    total = np.concatenate(found)
    low = made.minimum if made.minimum in made.atoms else -np.inf
    high = made.maximum if made.maximum in made.atoms else np.inf
    if made.kind != "datetime":
        low = max(low, -made.zero) if made.minimum + made.zero >= 0.0 else low
        high = min(high, -made.zero) if made.maximum + made.zero <= 0.0 else high
    near = NEAR * max(made.step, abs(made.minimum), abs(made.maximum))
    return float(np.mean((total < low - near) | (total > high + near))) if len(total) else 0.0


_DTYPES = {
    "pandas": {"integer": "int64", "number": "float64", "boolean": "bool"},
    "numpy": {"integer": "int64", "number": "float64", "boolean": "bool"},
    "polars": {"integer": "Int64", "number": "Float64", "boolean": "Boolean"},
    "pyarrow": {"integer": "int64", "number": "double", "boolean": "bool"},
    "file": {"integer": "int64", "number": "double", "boolean": "bool"},
}


def _dtype(frame: str, sort: str) -> str:
    return _DTYPES[frame][sort]


# ---- Which rules a learner is to enforce.


class WantedRules(NamedTuple):
    """Rules that a learner is to enforce.

    schema : Schema. With all rules, found and declared.
    rules : tuple of Rule. Those to enforce, declared ones first.
    n_declared : int. How many of these the user declared.
    is_auto : bool. Whether the others are enforced only if columns that become one have few combinations of values, and
        orders are of close columns.
    tried : tuple of Function. Found functions whose columns may become one although they have many combinations of
        values, or exceptions.
    soft : tuple of Function. Found functions that too few rows support to be enforced, and those with an exception in a
        table of too few rows for a trial. Their columns become one.
    ties : tuple of pairs of int. Numbers of two columns that are equal in many rows, but not in all.
    """

    schema: Schema
    rules: tuple[Rule, ...]
    n_declared: int = 0
    is_auto: bool = False
    tried: tuple[Function, ...] = ()
    soft: tuple[Function, ...] = ()
    ties: tuple[tuple[int, int], ...] = ()


def wanted_rules(
    given: Any, schema: Schema, X: np.ndarray, objective: str = "draws", ranges: Ranges | None = None
) -> WantedRules:
    """The rules to enforce, by what a learner's parameters ``rules`` and ``objective`` are. Raises TypeError or
    ValueError if these have other values, or a declared rule is wrong: see `declared`."""
    # A rule that was found in a sample may have exceptions in new rows, which would have density 0 if it were enforced.
    # So "auto" enforces no found rule where the objective is likelihood.
    said = [given] if isinstance(given, str) else given
    if said is False or said == ["off"]:
        return WantedRules(schema, ())
    is_list = isinstance(said, Iterable) and not isinstance(said, Rule)
    said = list(said) if is_list else []
    if "off" in [one for one in said if isinstance(one, str)]:
        raise ValueError("rules: 'off' stands alone; leave it out, or give rules='off'")
    if not is_list or (isinstance(given, str) and given not in ("auto", "all")):
        expected = "'auto', 'all', 'off', or a list such as [jf.rule('start <= end'), 'auto']"
        raise TypeError(f"rules: expected {expected}, got {given!r}")
    rules = [parse_rule(one) if isinstance(one, str) else one for one in said if one not in ("auto", "all")]
    wrong = [one for one in rules if not isinstance(one, Rule)]
    if wrong:
        raise TypeError(f"rules: expected rules, such as jf.rule('start <= end'), got {wrong[0]!r}")
    if ranges is not None:
        _refuse_ranges(rules, schema, ranges)
    mine = declared(schema, X, list(dict.fromkeys(rules)))
    texts = {str(one) for one in mine}
    others = tuple(one for one in schema.rules if str(one) not in texts)
    found = [one for one in others if "all" in said or one.rows >= enough_rows(one)]
    is_auto = "auto" in said and "all" not in said and objective == "draws"
    functions = [one for one in others if isinstance(one, Function) and is_auto]
    may_be_tried = len(X) >= FEWEST_TRIED_ROWS
    soft = tuple(one for one in functions if (not may_be_tried if one.exceptions else one not in found))
    tried = tuple(one for one in found if isinstance(one, Function)) if objective == "draws" else ()
    found = [one for one in found if not one.exceptions]
    if "all" not in said:
        found = [one for one in found if is_auto and _is_default(one, schema)] + _lone_orders(
            found if is_auto else (), schema, X
        )
        tried = tried if is_auto else ()
    schema = replace(schema, rules=(*mine, *others))
    ties = tuple(find_ties(schema, X, ranges)) if {"auto", "all"} & set(map(str, said)) and objective == "draws" else ()
    return WantedRules(schema, (*mine, *found), len(mine), "all" not in said, tried, soft, ties)


def find_ties(schema: Schema, X: np.ndarray, ranges: Ranges | None = None) -> list[tuple[int, int]]:
    """Pairs of columns on grids that are equal in many rows, the most often equal ones first."""
    rows = X[:: max(len(X) // TIE_ROWS, 1)]
    is_exact: np.ndarray = np.ones(X.shape[1], bool)
    if ranges is not None:
        is_exact = np.all(ranges.number < 0, axis=0)
    some = [j for j, column in enumerate(schema.columns) if column.step > 0.0 and is_exact[j]]
    # of columns of so few values, those that are equal in many rows are so by chance
    some = [j for j in some if len(np.unique(rows[~np.isnan(rows[:, j]), j])) >= TIE_SHARE**2 / TIE_CHANCE]
    found = []
    for is_date in (False, True):
        of_kind = [j for j in some if (schema.columns[j].kind == "datetime") == is_date]
        numbers = rows[:, of_kind] + [schema.columns[j].zero for j in of_kind]
        first = numbers[:: max(len(numbers) // TIE_FIRST, 1)]  # most pairs are so rarely equal that few rows show it
        for k, a in enumerate(of_kind):
            near = NEAR * schema.columns[a].step
            n_near = np.count_nonzero(np.abs(first[:, k + 1 :] - first[:, [k]]) <= near, axis=0)
            n_known = np.count_nonzero(~np.isnan(first[:, k + 1 :] + first[:, [k]]), axis=0)
            for m in (k + 1 + np.flatnonzero((n_near >= 0.5 * TIE_SHARE * n_known) | (n_known < TIE_LEAST))).tolist():
                known = ~np.isnan(numbers[:, k] + numbers[:, m])
                x, y = numbers[known, k], numbers[known, m]
                n, n_equal = len(x), int(np.count_nonzero(np.abs(x - y) <= near))
                if TIE_LEAST <= n_equal < n and n_equal >= TIE_SHARE * n and _equal_by_chance(x, y) <= TIE_CHANCE:
                    found.append((n_equal / n, a, of_kind[m]))
    return [(a, b) for _, a, b in sorted(found, reverse=True)]


def _equal_by_chance(x: np.ndarray, y: np.ndarray) -> float:
    """Share of rows in which two columns (n,) were equal if they were independent."""
    (values, count), (others, often) = (np.unique(of, return_counts=True) for of in (x, y))
    _, of_x, of_y = np.intersect1d(values, others, return_indices=True)
    return float(count[of_x] @ often[of_y]) / len(x) ** 2


def _refuse_ranges(rules: Sequence[Rule], schema: Schema, ranges: Ranges) -> None:
    """Raise ValueError if a declared rule is about a column with cells that are ranges."""
    for rule in rules:
        for name in set(rule.columns).intersection(schema.names):
            n = np.count_nonzero(ranges.number[:, schema.index(name)] >= 0)
            if n:
                raise ValueError(
                    f"rules: {str(rule)!r} is about column {name!r}, {n:,} cells of which are ranges; only values can "
                    "be held to a rule, so leave it out"
                )


def _lone_orders(found: Sequence[Rule], schema: Schema, X: np.ndarray) -> list[Rule]:
    """Orders of two close columns of few steps that no other order is about: else answers are slow, or not all hold."""
    orders = [one for one in found if isinstance(one, Order)]
    alone = [
        one for one in orders if not any(set(one.columns) & set(other.columns) for other in orders if other != one)
    ]
    return [one for one in alone if apartness(one, schema, X) <= AUTO_APART and _is_short_order(one, schema, X)]


def _is_short_order(rule: Order, schema: Schema, X: np.ndarray) -> bool:
    """Whether one column, as a sum of the other one and the gap, has so few steps that answers are exact and fast."""
    apart, step = gap(rule, schema, X), _unit(schema[rule.low], schema[rule.high])
    parts = sorted([float(np.nanmax(apart) - np.nanmin(apart)), number_span(schema[rule.low])])
    total = number_span(schema[rule.high])
    return max(parts[-1], total) <= LONG * step and _is_short(parts, total, step)


def _is_default(rule: Rule, schema: Schema) -> bool:
    """Whether a found rule is enforced by default: not orders, nor sums for which answers may be estimates."""
    if not isinstance(rule, Equation) or len(rule.terms) == 1:
        return isinstance(rule, (Equation, *AUTO_KINDS))
    step = min(abs(c) * schema[name].step for c, name in ((1.0, rule.column), *rule.terms))
    return _is_short(
        sorted(number_span(schema[name]) for _, name in rule.terms), number_span(schema[rule.column]), step
    )


def _is_short(parts: Sequence[float], total: float, step: float) -> bool:
    """Whether sums of parts with ascending ranges, and such a total, have so few steps that answers are exact."""
    if step == 0.0:
        return False
    longest, others = max(parts[-1], total) / step, math.prod(part / step for part in parts[:-1])
    return any(longest <= most and others <= shorter for most, shorter in AUTO_PLACES.get(len(parts), ()))


def declared(schema: Schema, X: np.ndarray, rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Rules that a user gave, checked on the table, with the number of rows that they speak of. Raises ValueError if a
    rule names an unknown column, does not go with the kinds of its columns, or a row contradicts it."""
    found = []
    for rule in rules:
        try:
            columns = [schema[name] for name in rule.columns]
            if isinstance(rule, Equation | Order):
                _check_numbers(rule, columns)
            against = np.flatnonzero(contradicted(rule, schema, X))
            if len(against) and isinstance(rule, Equation) and not rule.tolerance:
                rule = with_tolerance(rule, schema)
                against = np.flatnonzero(contradicted(rule, schema, X))
        except ValueError as error:  # of a column or a value that the table does not have
            raise ValueError(f"rules: {rule}: {error}") from None
        if len(against):
            raise ValueError(
                f"rules: {rule}: {len(against):,} of {len(X):,} rows contradict it. The first is row {against[0]} "
                f"(counted from 0): {_cells_in_words(columns, schema, X[against[0]])}; expected "
                f"{_expected(rule, schema, X, int(against[0]))}. {_other_way(rule, schema, X)}"
                "Correct or remove these rows, or leave out the rule"
            )
        known = ~np.isnan(X[:, [schema.index(name) for name in rule.columns]]).any(axis=1)
        about_missing = isinstance(rule, MissingTogether | MissingWhere)
        found.append(replace(rule, rows=len(X) if about_missing else int(known.sum()), exceptions=0))
    return tuple(found)


def _check_numbers(rule: Equation | Order, columns: Sequence[Column]) -> None:
    wrong = [column for column in columns if column.is_categorical]
    if wrong:
        sort = "an equation" if isinstance(rule, Equation) else "an order"
        raise ValueError(
            f"column {wrong[0].name!r} is {wrong[0].kind}, expected numbers or dates in {sort}; levels go with "
            "'->', '<->' or combinations(...)"
        )
    if isinstance(rule, Order) and len({column.kind == "datetime" for column in columns}) > 1:
        date, number = sorted(columns, key=lambda column: column.kind != "datetime")
        raise ValueError(
            f"column {number.name!r} is {number.kind}, expected dates as in {date.name!r}; an order is of two columns "
            "of numbers, or of two columns of dates"
        )


def _expected(rule: Rule, schema: Schema, X: np.ndarray, i: int) -> str:
    """What the rule expects of row i, which contradicts it, in words."""
    if isinstance(rule, Equation):
        column = schema[rule.column]
        expected = float(equation_total(rule, schema, X)[i])
        off = abs(expected - X[i, schema.index(rule.column)])
        allowed = f", which it misses by {off:.2g} where {tolerance(rule, schema):.2g} is allowed"
        return f"{column.name} = {_value_text(column, expected)}{'' if column.kind == 'datetime' else allowed}"
    if isinstance(rule, Order):
        return str(rule)
    if isinstance(rule, MissingTogether):
        return "all of them, or none, to be missing"
    if isinstance(rule, MissingWhere):
        is_missing = bool(np.isnan(X[i, schema.index(rule.column)]))
        return f"{rule.column} to {'have a value' if is_missing else 'be missing'}"
    assert isinstance(rule, Function)
    for of, name in ((rule.of, rule.column), ((rule.column,), rule.of[0])):
        cells, x = X[:, [schema.index(one) for one in of]], X[:, schema.index(name)]
        values, count = np.unique(x[(cells == cells[i]).all(axis=1) & ~np.isnan(x)], return_counts=True)
        most = float(values[count == count.max()][-1])  # the one that `contradicted` takes for right
        if most != x[i] or not rule.is_mutual:
            break
    return f"{name} = {_value_text(schema[name], most)} as in other rows"


def _cells_in_words(columns: Sequence[Column], schema: Schema, x: np.ndarray) -> str:
    """The cells of a row in some columns, in words."""
    cells = [(column, float(x[schema.index(column.name)])) for column in columns]
    return ", ".join(f"{column.name} = {_value_text(column, number)}" for column, number in cells)


def _value_text(column: Column, number: float) -> str:
    value = "missing" if np.isnan(number) else column.from_number(number)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _other_way(rule: Rule, schema: Schema, X: np.ndarray) -> str:
    """The hint that a rule holds in the other direction, if it does."""
    other: Rule | None = None
    if isinstance(rule, Order):
        ways = [replace(rule, is_strict=False), replace(rule, low=rule.high, high=rule.low, is_strict=False)]
        other = next((way for way in ways if not contradicted(way, schema, X).any()), None)
    elif isinstance(rule, Function) and len(rule.of) == 1:
        other = replace(rule, of=(rule.column,), column=rule.of[0], is_mutual=False)
        if rule.is_mutual and contradicted(other, schema, X).any():
            other = replace(rule, is_mutual=False)
    elif isinstance(rule, Equation):
        other = next((way for way in _other_sums(rule, schema, X) if not contradicted(way, schema, X).any()), None)
    holds = other is not None and not contradicted(other, schema, X).any()
    return f"The rule {str(other)!r} holds in all rows. " if holds else ""


_UNITS = (60.0, 3600.0, 86400.0)
_SMALL = 1e-3
"""Largest tolerance that an error proposes, as a share of the range of the column."""


def _other_sums(rule: Equation, schema: Schema, X: np.ndarray) -> Iterator[Equation]:
    """Equations that may have been meant: with another unit of time beside dates, or with a tolerance."""
    is_date = {name: schema[name].kind == "datetime" for name in rule.columns}
    if any(is_date.values()):
        for unit in _UNITS:
            own = 1.0 if is_date[rule.column] else 1.0 / unit
            terms = tuple((c * own * (1.0 if is_date[name] else unit), name) for c, name in rule.terms)
            yield replace(rule, terms=terms)
    off = float(np.nanmax(np.abs(equation_total(rule, schema, X) - X[:, schema.index(rule.column)])))
    if off <= _SMALL * number_span(schema[rule.column]):
        yield replace(rule, tolerance=float(f"{1.05 * off:.1e}"))
