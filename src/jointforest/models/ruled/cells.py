"""Evidence on a table as evidence on its coordinates, sum by sum."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...data.conditions import AnyOf, Not
from ...data.evidence import Evidence, RegionTable
from ...data.meaning import NOWHERE, Region, intersected, log_likelihoods, meaning_of, region_log_likelihood, weighed
from ...data.rules.contradictions import NEAR, ROUNDED, combined, number_span, ranked
from ...data.rules.rule import Combinations, Function
from ...data.schema import Column, snapped
from .coordinates import Coordinates, Term


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
                a, b = (_edge(inner, x, c > 0.0) for x in (a, b))
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


def _edge(inner: Column, x: float, is_open: bool) -> float:
    """The edge between cells at a bound of sums: cells whose centre is on the bound lie below it, if it is open."""
    if math.isinf(x):
        return x
    cells = (x - inner.center) / inner.step
    last = math.floor(cells + 1e-9) if is_open else math.ceil(cells - 1e-9) - 1
    return inner.center + (last + 0.5) * inner.step
