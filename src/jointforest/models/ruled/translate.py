"""Evidence about a table as evidence about its coordinates.

Most rows of evidence become one row. A value, or a region, of a sum is a condition on the one part of it that is not
known. Where two parts or more are not known, the row becomes many, which differ in the values of all parts but one:
the sum over the grids of these parts, or where that is too long, weighted draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from ...data.conditions import AnyOf, Not
from ...data.evidence import Evidence, RegionTable
from ...data.meaning import NOWHERE, Region, intersected, log_likelihood, meaning_of, weighed
from ...data.rules.contradictions import NEAR, ROUNDED, combined, ranked, spread
from ...data.rules.rule import Combinations, Function
from ...data.schema import Column, snapped
from ..base import Distribution, PosteriorState
from .coordinates import Coordinates, Term

MOST_ROWS = 1 << 17
"""Most rows that the sums over grids make of all rows that are translated together: each has its share of them, so that
a row alone may be exact, and estimated among others."""
PIECE = 128
"""Rows of evidence whose sums over grids are made together."""
DRAWS = 4_096
"""Draws in place of a sum over grids, for a single row."""
_FEWEST_DRAWS = 64
_TAIL = 1e-12
"""Share of a part's distribution beyond either end of the sum over its grid."""


class Rows:
    """Rows of evidence about coordinates that stand for n rows of evidence about a table.

    Attributes
    ----------
    cells : Cells
        R rows, those of one row of the table next to each other.
    is_exact : bool array (n,)
        Whether the rows of a row of the table are all there are, and no draws.
    """

    def __init__(self, cells: Cells, is_exact: np.ndarray) -> None:
        self.cells, self.is_exact = cells, is_exact

    @cached_property
    def evidence(self) -> Evidence:
        """The rows as evidence, without penalties."""
        return self.cells.evidence()

    @property
    def owner(self) -> np.ndarray:
        """The row of the table that each row stands for, ascending, int64 (R,)."""
        return self.cells.owner

    @property
    def log_weight(self) -> np.ndarray:
        """Added to the log-density of each row, (R,); -inf where a rule is contradicted."""
        return self.cells.log_weight

    @property
    def is_one_each(self) -> bool:
        """Whether each row of the table is one row."""
        return len(self.owner) == len(self.is_exact)

    @cached_property
    def start(self) -> np.ndarray:
        """The first row of each row of the table, (n,)."""
        return np.searchsorted(self.owner, np.arange(len(self.is_exact)))

    def take(self, rows: np.ndarray) -> Evidence:
        """Some of the rows, by their numbers, as evidence."""
        return self.evidence.take(rows)

    def log_sum(self, log_p: np.ndarray) -> np.ndarray:
        """Log of the sum of exp(log_p) over the rows of each row of the table, (n,)."""
        if self.is_one_each:
            return log_p
        return np.asarray(np.logaddexp.reduceat(log_p, self.start))

    def effective_draws(self, log_rows: np.ndarray) -> np.ndarray:
        """How many draws of equal weight the rows of log-weights (R,) are worth, (n,); inf where they are no draws."""
        if self.is_exact.all():
            return np.full(len(self.is_exact), np.inf)
        total = np.logaddexp.reduceat(log_rows, self.start)
        squares = np.logaddexp.reduceat(2.0 * log_rows, self.start)
        with np.errstate(invalid="ignore"):
            worth = np.exp(2.0 * total - squares)
        return np.where(self.is_exact | np.isnan(worth), np.inf, worth)

    def said_sums(self) -> list[str]:
        """Names of the sums that the rows say something of."""
        names, cells = self.cells.coordinates.schema.names, self.cells
        is_said = (~np.isnan(cells.said) | (cells.said_region >= 0)).any(axis=0)
        return [names[j] for j in cells.coordinates.sums if is_said[j]]


def translate(coordinates: Coordinates, inner: Distribution, evidence: Evidence) -> Rows:
    """The rows about coordinates that stand for rows of evidence about the table."""
    cells = Cells.of(coordinates, evidence)
    cells.solve()
    is_exact = np.ones(len(evidence.value), bool)
    is_open = cells.pending.any(axis=1)
    if not is_open.any():
        return Rows(cells, is_exact)
    opened = np.flatnonzero(is_open)
    pattern = cells.pattern(opened)
    most = MOST_ROWS // len(opened)
    parts = [cells.take(np.flatnonzero(~is_open))]
    for k in range(int(pattern.max()) + 1):
        some = opened[pattern == k]
        together = cells.take(some)
        found = _by_grids(together, inner, most)
        if found is None:
            is_exact[some] = False
            found = _by_draws(together, inner, max(_FEWEST_DRAWS, DRAWS // len(opened)), k)
        parts.append(found)
    joined = Cells.joined(parts)
    return Rows(joined.take(np.argsort(joined.owner, kind="stable")), is_exact)


def pieces(coordinates: Coordinates, evidence: Evidence, is_open: np.ndarray | None = None) -> list[np.ndarray]:
    """Numbers of rows to translate together: those of a row each, and a few at a time of those that become many.

    So the rows that sums over grids make of one piece are not too many, however long the evidence is. ``is_open`` is
    what `open_rows` says of the evidence, where it is known.
    """
    n = len(evidence.value)
    if n <= PIECE:
        return [np.arange(n)]
    if is_open is None:
        is_open = open_rows(coordinates, evidence)
    opened = np.flatnonzero(is_open)
    parts = [np.flatnonzero(~is_open), *(opened[k : k + PIECE] for k in range(0, len(opened), PIECE))]
    return [part for part in parts if len(part)]


def representatives(evidence: Evidence, is_open: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of rows that stand for all, and the place of each row's representative among them.

    Of equal rows that become several the first one stands for all; every other row stands for itself. Rows of draws
    that say something of a few columns are often equal, and each that becomes several takes long.
    """
    n = len(evidence.value)
    key = np.arange(n)
    opened = np.flatnonzero(is_open)
    if len(opened):
        cells = [evidence.value[opened], evidence.cell_regions()[opened], evidence.log_penalty[opened, None]]
        equal = np.unique(np.nan_to_num(np.hstack(cells), nan=np.inf), axis=0, return_inverse=True)[1].reshape(-1)
        first = np.full(int(equal.max()) + 1, n)
        np.minimum.at(first, equal, opened)
        key[opened] = first[equal]
    return np.unique(key, return_inverse=True)


def open_rows(coordinates: Coordinates, evidence: Evidence) -> np.ndarray:
    """Which rows become several, as they say something of a sum of which two parts or more are unknown, bool (n,)."""
    cells = Cells.of(coordinates, evidence)
    cells.solve()
    return np.asarray(cells.pending.any(axis=1))


def known_values(coordinates: Coordinates, X: np.ndarray) -> np.ndarray:
    """Rows of coordinates (n, m) from rows of the table (n, d), as far as these determine them; NaN elsewhere."""
    cells = Cells.of(coordinates, Evidence.of_values(X))
    cells.solve()
    return cells.value


class Cells:
    """What n rows of evidence say of the coordinates, worked out sum by sum.

    Attributes
    ----------
    said : float64 array (n, d), said_region : int32 array (n, d)
        Values and numbers of regions of the table's cells.
    value : float64 array (n, m), region : int32 array (n, m)
        The same of the coordinates.
    log_weight : float64 array (n,)
    pending : bool array (n, s)
        Whether what is said of the k-th sum still has to be taken up.
    owner : int64 array (n,)
    """

    def __init__(self, coordinates: Coordinates, table: RegionTable, fields: dict[str, np.ndarray]) -> None:
        self.coordinates, self.table = coordinates, table
        self.said, self.said_region = fields["said"], fields["said_region"]
        self.value, self.region = fields["value"], fields["region"]
        self.log_weight, self.pending, self.owner = fields["log_weight"], fields["pending"], fields["owner"]

    @staticmethod
    def of(coordinates: Coordinates, evidence: Evidence) -> Cells:
        """What evidence says of plain columns and compounds; sums are pending."""
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
        }
        cells = Cells(coordinates, RegionTable(evidence), fields)
        for j, at in coordinates.plain.items():
            cells.value[:, at], cells.region[:, at] = said[:, j], said_region[:, j]
        for at, members in coordinates.compounds.items():
            cells._say_of_compound(at, members)
        for j, absence in enumerate(coordinates.absences):
            if absence.by_rule:
                cells.exclude(np.flatnonzero(is_said[:, j]), absence.where, absence.values)
        return cells

    _FIELDS = ("said", "said_region", "value", "region", "log_weight", "pending", "owner")

    def take(self, rows: np.ndarray) -> Cells:
        """Some of the rows, by their numbers."""
        return Cells(self.coordinates, self.table, {name: getattr(self, name)[rows] for name in self._FIELDS})

    @staticmethod
    def joined(parts: list[Cells]) -> Cells:
        """The rows of several parts, which have one table of regions."""
        fields = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Cells._FIELDS}
        return Cells(parts[0].coordinates, parts[0].table, fields)

    def evidence(self) -> Evidence:
        """The rows as evidence about the coordinates, without penalties."""
        return self.table.evidence(self.value, self.region, np.zeros(len(self.value)))

    # ---- compounds

    def _say_of_compound(self, at: int, members: tuple[int, ...]) -> None:
        """What the cells of a compound's members say of its level."""
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
        log_weight = np.zeros(len(first))
        for k, i in enumerate(first.tolist()):
            log_like = np.zeros(len(self.coordinates.inner.columns[at].levels))
            for j in members:
                log_like += self._log_like(columns[j], self.coordinates.table(j), i, j)
            value[k], number, log_weight[k] = self._compound(at, members, i, log_like)
            region[k] = number
        self.value[rows, at], self.region[rows, at] = value[pattern], region[pattern]
        self.log_weight[rows] += log_weight[pattern]
        for j in members:
            self.log_weight[rows] += np.where(np.isnan(self.said[rows, j]), 0.0, self.coordinates.unit(j))

    def _log_like(self, column: Column, values: np.ndarray, i: int, j: int) -> np.ndarray:
        """Log-likelihood that what row i says of column j gives to numbers (K,)."""
        x, number = float(self.said[i, j]), int(self.said_region[i, j])
        if not math.isnan(x):
            near = NEAR * column.step if not column.is_categorical else 0.0
            return np.where(np.abs(values - x) <= near, 0.0, -np.inf)
        if number < 0:
            return np.zeros(len(values))
        distinct, place = np.unique(values, return_inverse=True)
        region = self.table.regions[number]
        return np.array([log_likelihood(column, region, v) for v in distinct.tolist()])[place.reshape(-1)]

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
        # a combination that was never seen, as a level that was never seen: it says nothing, at a penalty
        return math.nan, -1, self.coordinates.inner.columns[at].log_unseen

    def _is_contradicted(self, members: tuple[int, ...], i: int) -> bool:
        """Whether the values of a compound's members in row i contradict a rule."""
        schema = self.coordinates.schema
        index = {schema.columns[j].name: j for j in members}

        def levels(names: tuple[str, ...]) -> np.ndarray:
            """Which levels have the row's values of some members, bool (K,)."""
            fits = [self._log_like(schema[name], self.coordinates.table(index[name]), i, index[name]) for name in names]
            return np.sum(fits, axis=0) > -np.inf

        for rule in self.coordinates.enforced:
            known = [name in index and not math.isnan(self.said[i, index[name]]) for name in rule.columns]
            if not isinstance(rule, Function | Combinations) or not all(known):
                continue
            if isinstance(rule, Combinations):
                if not levels(rule.of).any():
                    return True
                continue
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
        """Take up what is said of sums, as far as at most one part of each is unknown."""
        while self.pending.any():
            before = int(self.pending.sum())
            for k, j in enumerate(self.coordinates.sums):
                rows = np.flatnonzero(self.pending[:, k])
                if len(rows):
                    self.pending[self._solve(j, rows), k] = False
            if int(self.pending.sum()) == before:
                return

    def _solve(self, j: int, rows: np.ndarray) -> np.ndarray:
        """Take up what rows say of sum j; the rows for which that was possible."""
        source = self.coordinates.sources[j]
        values = np.column_stack([term.values(self.value[rows]) for term in source.terms])
        unknown = np.isnan(values)
        rest = source.constant + np.where(unknown, 0.0, values) @ np.array([term.coefficient for term in source.terms])
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

    def tolerance(self, j: int) -> float:
        """By how much a known value may miss the sum j."""
        column, source = self.coordinates.schema.columns[j], self.coordinates.sources[j]
        if column.step > 0.0:
            return column.step * (0.5 + NEAR)
        inner = self.coordinates.inner.columns
        ranges = [
            abs(term.coefficient) * (spread(inner[term.at]) if term.table is None else float(np.ptp(term.table)))
            for term in source.terms
        ]
        return ROUNDED * (spread(column) + sum(ranges))

    def _compare(self, j: int, rows: np.ndarray, total: np.ndarray) -> None:
        """Take up what rows say of a sum of which all parts are known."""
        column, said = self.coordinates.schema.columns[j], self.said[rows, j]
        is_value = ~np.isnan(said)
        with np.errstate(invalid="ignore"):
            fits = np.abs(total - said) <= self.tolerance(j)
        self.log_weight[rows[is_value]] += np.where(fits[is_value], self.coordinates.unit(j), -np.inf)
        total = snapped(column, total)
        for i, x in zip(rows[~is_value].tolist(), total[~is_value].tolist(), strict=True):
            self.log_weight[i] += log_likelihood(column, self.table.regions[int(self.said_region[i, j])], x)

    def _solve_levels(self, j: int, term: Term, rows: np.ndarray, rest: np.ndarray) -> None:
        """Take up what rows say of a sum of which the level of a compound is unknown."""
        column, table = self.coordinates.schema.columns[j], term.table
        assert table is not None
        kept: dict[tuple[float, float, int], Region] = {}

        def region_of(i: int, of: float) -> Region:
            key = (of, float(self.said[i, j]), int(self.said_region[i, j]))
            if key not in kept:
                totals = of + term.coefficient * table
                if math.isnan(key[1]):
                    log_like = self._log_like(column, snapped(column, totals), i, j)
                else:
                    log_like = np.where(np.abs(totals - key[1]) <= self.tolerance(j), 0.0, -np.inf)
                kept[key] = levels_region(log_like)
            return kept[key]

        of_row = dict(zip(rows.tolist(), rest.tolist(), strict=True))
        self.narrow(rows, term.at, lambda i: region_of(i, of_row[i]))
        self.log_weight[rows] += np.where(np.isnan(self.said[rows, j]), 0.0, self.coordinates.unit(j))

    def _solve_number(self, j: int, term: Term, rows: np.ndarray, rest: np.ndarray) -> None:
        """Take up what rows say of a sum of which one number is unknown."""
        column, inner = self.coordinates.schema.columns[j], self.coordinates.inner.columns[term.at]
        said = self.said[rows, j]
        is_value = ~np.isnan(said)
        several = inner.step * abs(term.coefficient) < column.step * (1.0 - NEAR)  # numbers round to one value
        if not several and is_value.any():
            some = np.flatnonzero(is_value)
            self._set(j, term, rows[some], rest[some], said[some])
            rows, rest, is_value = rows[~is_value], rest[~is_value], is_value[~is_value]
        self.log_weight[rows[is_value]] += self.coordinates.unit(j)
        kept: dict[tuple[float, float, int], Region] = {}

        def region_of(i: int, of: float) -> Region:
            key = (of, float(self.said[i, j]), int(self.said_region[i, j]))
            if key not in kept:
                if math.isnan(key[1]):
                    asked = self.table.regions[key[2]]
                else:
                    asked = Region(((key[1] - 0.5 * column.step, key[1] + 0.5 * column.step),), _all_atoms(column))
                kept[key] = _turned(column, asked, inner, term.coefficient, of)
            return kept[key]

        of_row = dict(zip(rows.tolist(), rest.tolist(), strict=True))
        self.narrow(rows, term.at, lambda i: region_of(i, of_row[i]))

    def pattern(self, rows: np.ndarray) -> np.ndarray:
        """The number of the pattern of some rows: which sums are pending, and what has a value, int64 (n,)."""
        is_value = ~np.isnan(self.said[rows][:, list(self.coordinates.sums)])
        what = np.hstack([self.pending[rows], is_value, ~np.isnan(self.value[rows])])
        return np.unique(what, axis=0, return_inverse=True)[1].reshape(-1)

    def unknown(self) -> list[int]:
        """Coordinates of the unknown parts of the first sum that is pending, which is the same in all rows."""
        k = int(np.argmax(self.pending[0]))
        terms = self.coordinates.sources[self.coordinates.sums[k]].terms
        return [term.at for term in terms if math.isnan(self.value[0, term.at])]

    def assign(self, at: int, values: np.ndarray) -> None:
        """Give a coordinate one value in each row, besides what is said of it."""
        column = self.coordinates.inner.columns[at]
        for number in np.unique(self.region[:, at]).tolist():
            rows = np.flatnonzero(self.region[:, at] == number)
            if number >= 0:
                distinct, place = np.unique(values[rows], return_inverse=True)
                region = self.table.regions[number]
                fits = np.array([log_likelihood(column, region, x) for x in distinct.tolist()])
                self.log_weight[rows] += fits[place.reshape(-1)]
        self.value[:, at], self.region[:, at] = values, -1

    def _set(self, j: int, term: Term, rows: np.ndarray, rest: np.ndarray, said: np.ndarray) -> None:
        """Give a coordinate the value that makes the sum j what rows say it is."""
        inner = self.coordinates.inner.columns[term.at]
        x = snapped(inner, (said - rest) / term.coefficient)
        for atom in inner.atoms if inner.step == 0.0 else ():
            x = np.where(np.isclose(x, atom, rtol=1e-12, atol=1e-12), atom, x)
        fits = np.abs(rest + term.coefficient * x - said) <= self.tolerance(j)
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


def _all_atoms(column: Column) -> int:
    return (1 << len(column.atoms)) - 1


def _turned(column: Column, asked: Region, inner: Column, c: float, rest: float) -> Region:
    """Where a coordinate has to be for rest + c * coordinate to lie in a region of a column."""
    runs = []
    for (lo, hi), weight in zip(asked.runs, asked.run_weights(), strict=True):
        a, b = sorted(((lo - rest) / c, (hi - rest) / c))
        if inner.step > 0.0:
            a, b = (_edge(inner, x, c > 0.0) for x in (a, b))
        if a < b:
            runs.append(((a, b), weight))
    of_atoms = [_atom_likelihood(column, asked, rest + c * atom) for atom in inner.atoms]
    held = sum(1 << k for k, x in enumerate(of_atoms) if x > -math.inf)
    return weighed(sorted(runs), held, [x if x > -math.inf else 0.0 for x in of_atoms])


def _edge(inner: Column, x: float, is_open: bool) -> float:
    """The edge between cells at a bound of sums: cells whose centre is on the bound lie below it, if it is open."""
    if math.isinf(x):
        return x
    cells = (x - inner.center) / inner.step
    last = math.floor(cells + 1e-9) if is_open else math.ceil(cells - 1e-9) - 1
    return inner.center + (last + 0.5) * inner.step


def _atom_likelihood(column: Column, asked: Region, x: float) -> float:
    """Log-likelihood that a region gives to a sum, which its atoms, or its runs, hold."""
    value = float(snapped(column, np.array([x]))[0])
    if column.step == 0.0:
        close = [atom for atom in column.atoms if math.isclose(atom, value, rel_tol=1e-9, abs_tol=1e-12)]
        value = close[0] if close else value
    return log_likelihood(column, asked, value)


# ---- Rows of evidence about sums with several unknown parts, as many rows in which all of them are known.
# ---- All rows of a group say something of the same sums and know the same parts, so that they take the same steps.


def _by_grids(group: Cells, inner: Distribution, most: int) -> Cells | None:
    """All rows that grids of unknown parts make of n rows; None if more than ``most`` * n, or without a grid."""
    n = len(group.owner)
    state = inner.observe(group.evidence())
    found = group
    while found.pending.any():
        choices = [(at, support(state, inner.schema.columns[at], at, most)) for at in found.unknown()]
        at, values = min(choices, key=lambda choice: math.inf if choice[1] is None else len(choice[1]))
        if values is None or len(found.owner) * len(values) > most * n:
            return None
        rows = len(found.owner)
        found = found.take(np.repeat(np.arange(rows), len(values)))
        found.assign(at, np.tile(values, rows))
        found.solve()
        found = found.take(np.flatnonzero(found.log_weight > -np.inf))
        if not len(found.owner):
            break
    return _with_impossible(group, found)


def support(state: PosteriorState, column: Column, at: int, most: int) -> np.ndarray | None:
    """Values of a coordinate that hold all but 2e-12 of its posterior in every row of evidence, ascending.

    None of a column without grid, or of too many values. All values that were observed are among them, because further
    evidence may make likely what is unlikely now.
    """
    if column.is_categorical:
        return np.flatnonzero((np.nan_to_num(state.level_probabilities(at)) > 0.0).any(axis=0)).astype(np.float64)
    if column.step == 0.0:
        return None
    ends = state.quantile(at, np.array([_TAIL, 1.0 - _TAIL]))
    ends = ends[~np.isnan(ends[:, 0])]
    if not len(ends):
        return np.empty(0)
    low, high = np.fmin(ends[:, 0].min(), column.minimum), np.fmax(ends[:, 1].max(), column.maximum)
    first, last = np.rint((low - column.center) / column.step), np.rint((high - column.center) / column.step)
    if not last - first < most:
        return None
    return np.asarray(snapped(column, column.center + np.arange(first, last + 1.0) * column.step))


def _by_draws(group: Cells, inner: Distribution, m: int, seed: int) -> Cells:
    """m rows for each of n, with drawn values of the unknown parts but the last, weighed by the inverse density."""
    rows = group.evidence()
    before = inner.log_density(rows)
    possible = np.flatnonzero(before > -np.inf)
    if not len(possible):
        return _with_impossible(group, group.take(possible))
    Z = inner.sample(rows.take(possible), m, seed, False)
    found = group.take(np.repeat(possible, m))
    drawn = _to_draw(group, inner, Z[:1])
    for at in drawn:
        found.value[:, at], found.region[:, at] = Z[:, at], -1
    found.log_weight -= inner.log_density(found.evidence()) - np.repeat(before[possible], m) + math.log(m)
    found.solve()
    return _with_impossible(group, found)


def _to_draw(group: Cells, inner: Distribution, Z: np.ndarray) -> list[int]:
    """Coordinates whose values make all pending sums solvable; Z (1, m) is any row that the first one may stand for."""
    trial, drawn = group.take(np.zeros(1, np.int64)), []
    while trial.pending.any():
        unknown = sorted(trial.unknown(), key=lambda at: _size(inner.schema.columns[at]))
        drawn.append(unknown[0])
        trial.value[:, unknown[0]], trial.region[:, unknown[0]] = Z[:, unknown[0]], -1
        trial.solve()
    return drawn


def _size(column: Column) -> float:
    """About how many values a coordinate has."""
    if column.is_categorical:
        return len(column.levels)
    return spread(column) / column.step if column.step > 0.0 else math.inf


def _with_impossible(group: Cells, found: Cells) -> Cells:
    """``found``, and one row of probability 0 for each row of the group that has none in it."""
    none = group.take(np.flatnonzero(~np.isin(group.owner, found.owner)))
    none.log_weight[:] = -np.inf
    none.pending[:] = False
    return Cells.joined([found, none]) if len(none.owner) else found
