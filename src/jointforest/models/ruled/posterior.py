"""The posterior of a ruled distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from ...data.conditions import AnyOf, PerRow
from ...data.evidence import Evidence, intersect
from ...data.schema import snapped
from ...runtime.warnings import warn_of_draws
from ..base import Distribution, PosteriorState, of_known
from ..hidden_tree.hidden_tree import LinkedPosterior
from ..points import Points, SumDistribution, inverted
from .coordinates import CoordinateCells, Coordinates, Term, levels_region
from .linked import Linker
from .sums import distribution_of_sum, grouped
from .translate import TAIL, CoordinateRows, spread_out

_LEFT_OUT = 1e-9
"""Posterior probability of the rows that are left out, of those that stand for one row; tables are in float32."""
_LEAST_KNOWN = 1e-7
"""Probability below which a column has no value given the evidence: rounding leaves as much of an impossible row."""
_TIE = 1e-13
"""Added to the level 1 - q if the conversion reverses the order, so that a tie gives the larger value."""
_MOST_CELLS = 1 << 10
"""Cells of a grid from which on rounding to it is left out of moments: it would add about 1e-6 of the variance."""


class RuledPosterior(PosteriorState):
    """Answers about the table from those about its coordinates, mixed over the rows that stand for each row."""

    def __init__(
        self,
        distribution: Distribution,
        of_inner: Distribution,
        evidence: Evidence,
        rows: CoordinateRows,
        linker: Linker | None,
    ) -> None:
        super().__init__(distribution, evidence)
        self.of_inner, self.rows, self.linker = of_inner, rows, linker
        self._kept: dict[int, list[SumDistribution | None]] = {}
        self._kept_ends: dict[int, tuple[float, float]] = {}

    @property
    def coordinates(self) -> Coordinates:
        return self.rows.cells.coordinates

    @cached_property
    def inner(self) -> PosteriorState:
        """The posterior of the coordinates for all rows."""
        if self.rows.sums is not None:
            assert self.linker is not None
            return self.linker.observe(self.rows.evidence, self.rows.sums)
        return self.of_inner.observe(self.rows.evidence)

    @cached_property
    def log_rows(self) -> np.ndarray:
        """Log-density of each row about the coordinates, with its weight, (R,)."""
        if self.rows.sums is not None:
            return self.rows.log_weight + self.inner.log_probability()
        if len(self.rows.owner) == 1:
            return self.rows.log_weight + self.inner.log_evidence
        return self.rows.log_weight + self.of_inner.log_density(self.rows.evidence)

    @cached_property
    def share(self) -> np.ndarray:
        """Posterior probability of each row among those of its owner, (R,); NaN where the evidence is impossible."""
        if self.rows.is_one_each:
            return np.where(self.log_rows == -np.inf, np.nan, 1.0)
        with np.errstate(invalid="ignore"):
            return np.exp(self.log_rows - self.rows.log_sum(self.log_rows)[self.rows.owner])

    @property
    def effective_draws(self) -> np.ndarray:
        if self.rows.is_exact.all():
            return np.full(len(self.rows.is_exact), np.inf)
        return self.rows.effective_draws(self.log_rows)

    def prepare(self, columns: Sequence[int]) -> None:
        asked: dict[int, tuple[RuledPosterior, set[int]]] = {}
        for j in columns:
            state = self.knowing([j])
            asked.setdefault(id(state), (state, set()))[1].update(t.at for t in self.coordinates.sources[j].terms)
        for state, needed in asked.values():
            state.inner.prepare(sorted(needed))

    def mixed(self, answers: np.ndarray) -> np.ndarray:
        """Answers of the rows (R, ...) weighed by their shares, (n, ...)."""
        if self.rows.is_one_each and self.rows.sums is None:
            # shares take a pass; without them, answers are NaN where the coordinates' distribution finds no probability
            impossible = (self.rows.log_weight == -np.inf).reshape(-1, *[1] * (answers.ndim - 1))
            return np.where(impossible, np.nan, answers)
        weight = self.share.reshape(-1, *[1] * (answers.ndim - 1))
        if self.rows.is_one_each:
            return answers * weight
        each = np.where(weight == 0.0, 0.0, weight * answers)  # rows of share 0 do not count, whatever they answer
        return np.asarray(np.add.reduceat(each, self.rows.start, axis=0))

    def log_probability(self) -> np.ndarray:
        return self.rows.log_sum(self.log_rows)

    @cached_property
    def log_evidence(self) -> float:
        return float(self.rows.log_sum(self.log_rows)[0]) - float(self.evidence.log_penalty[0])

    def background_weight(self) -> np.ndarray:
        weight = self.mixed(self.inner.background_weight())
        # a combination of values that no row has is evidence of nothing
        return np.where(self.distribution.is_seen(self.evidence) | np.isnan(weight), weight, 1.0)

    def with_cells(self, cells: CoordinateCells) -> RuledPosterior:
        """The posterior of rows with other evidence on the coordinates."""
        rows = CoordinateRows(cells, self.rows.is_exact)
        if self.rows.sums is not None:
            column, linker = self.rows.column, self.linker
            assert linker is not None
            rows = CoordinateRows(cells, self.rows.is_exact, linker.again(cells, column), column)
        return RuledPosterior(self.distribution, self.of_inner, self.evidence, rows, self.linker)

    @cached_property
    def spread_out(self) -> RuledPosterior:
        """The same with rows for all values of the parts of a linked sum."""
        if self.rows.sums is None:
            return self
        rows = spread_out(self.coordinates, self.of_inner, self.evidence)
        state = RuledPosterior(self.distribution, self.of_inner, self.evidence, rows, self.linker)
        return state._without(self._excluded)

    # ---- rows in which columns have values at all

    _excluded: frozenset[tuple[int, tuple[float, ...]]] = frozenset()
    """Coordinates, and values of them that are excluded, besides what the evidence excludes."""

    @cached_property
    def _restricted(self) -> dict[frozenset[tuple[int, tuple[float, ...]]], RuledPosterior]:
        return {}

    def knowing(self, columns: Sequence[int]) -> RuledPosterior:
        absences = [self.coordinates.absences[j] for j in columns]
        return self._without(frozenset((of.where, of.values) for of in absences if of.by_rule) - self._excluded)

    def _without(self, excluded: frozenset[tuple[int, tuple[float, ...]]]) -> RuledPosterior:
        """The posterior given also that coordinates have none of some values."""
        if not excluded:
            return self
        if excluded not in self._restricted:
            cells = self.rows.cells.take(np.arange(len(self.rows.owner)))
            for at, values in sorted(excluded):
                cells.exclude(np.arange(len(cells.owner)), at, values)
            state = self.with_cells(cells)
            state._excluded = self._excluded | excluded
            is_lost = state.log_probability() < self.log_probability() + np.log(_LEAST_KNOWN)
            cells.log_weight[is_lost[state.rows.owner]] = -np.inf
            state.log_rows = np.where(cells.log_weight == -np.inf, -np.inf, state.log_rows)
            self._restricted[excluded] = state
        return self._restricted[excluded]

    # ---- answers about a column

    @of_known
    def level_probabilities(self, j: int) -> np.ndarray:
        (term,) = self.coordinates.sources[j].terms
        p = self.inner.level_probabilities(term.at)
        if term.table is not None:
            p = p @ (term.table[:, None] == np.arange(len(self.distribution.schema.columns[j].levels)))
        return self.mixed(p)

    @of_known
    def moments(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        if self._is_rounded(j) or (self.rows.sums is not None and j == self.rows.column):
            value, p = self._law(j)
            center = (p * value).sum(axis=1)
            return center, (p * (value - center[:, None]) ** 2).sum(axis=1)
        terms = self.coordinates.sources[j].terms
        each = [self._of_term(term) for term in terms]
        mean = np.full(len(self.rows.owner), self.coordinates.sources[j].constant)
        variance = np.zeros(len(self.rows.owner))
        for term, (m, v) in zip(terms, each, strict=True):
            mean += term.coefficient * m
            variance += term.coefficient**2 * v
        for i, first in enumerate(terms):
            for second in terms[:i]:
                both = self._term_covariance(first, second)
                variance = variance + 2.0 * first.coefficient * second.coefficient * both
        center = self.mixed(mean)
        apart = (mean - center[self.rows.owner]) ** 2
        return self._known(j, center), self._known(j, self.mixed(np.maximum(variance, 0.0) + apart), spread=True)

    def _known(self, j: int, answers: np.ndarray, spread: bool = False) -> np.ndarray:
        """The answers (n,), but known values where there are any (or their spread, 0)."""
        value = self.evidence.value[:, j]
        is_known = ~np.isnan(value) & ~np.isnan(answers)
        column = self.distribution.schema.columns[j]
        return np.where(is_known, 0.0 if spread else snapped(column, value), answers)

    @of_known
    def cdf(self, j: int, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=np.float64)
        if j in self.coordinates.plain:
            return self.mixed(self.inner.cdf(self.coordinates.plain[j], x))
        if (term := self._converted(j)) is not None:
            return self.mixed(self._converted_cdf(j, term, x))
        out = self._by_sums(j, lambda found: found.cdf(x), len(x))
        out[:, np.isnan(x)] = np.nan
        return out

    @of_known
    def pdf(self, j: int, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=np.float64)
        if j in self.coordinates.plain:
            return self.mixed(self.inner.pdf(self.coordinates.plain[j], x))
        column = self.distribution.schema.columns[j]
        at = snapped(column, x)
        if (term := self._converted(j)) is not None:
            if column.step > 0.0:
                ends = np.concatenate([at - 0.5 * column.step, at + 0.5 * column.step])
                low, high = np.split(self._converted_cdf(j, term, ends), 2, axis=1)
                return self.mixed((high - low) / column.step)
            back = (x - self.coordinates.sources[j].constant) / term.coefficient
            return self.mixed(self.inner.pdf(term.at, back) / abs(term.coefficient))
        out = self._by_sums(j, lambda found: found.pdf(x), len(x))
        out[:, np.isnan(x)] = np.nan
        return out

    @of_known
    def histogram(self, j: int, cuts: np.ndarray) -> np.ndarray:
        if j in self.coordinates.plain:
            return self.mixed(self.inner.histogram(self.coordinates.plain[j], cuts))
        return super().histogram(j, cuts)

    @of_known
    def quantile(self, j: int, q: np.ndarray) -> np.ndarray:
        q = np.asarray(q, dtype=np.float64)
        if (term := self._converted(j)) is not None and self.rows.is_one_each:
            back = self.inner.quantile(term.at, q if term.coefficient > 0.0 else np.minimum(1.0 - q + _TIE, 1.0))
            found = self.coordinates.made(j, self.coordinates.sources[j].constant + term.coefficient * back)
            return np.where(np.isnan(self.share)[:, None], np.nan, found)
        if j not in self.coordinates.plain:
            return self._by_sums(j, lambda found: found.quantile(q), len(q))
        each = self.inner.quantile(self.coordinates.plain[j], q)
        if self.rows.is_one_each:
            return np.where(np.isnan(self.share)[:, None], np.nan, each)
        return np.stack([self._of_mixed(j, i, q, each) for i in range(len(self.evidence.value))])

    def _of_mixed(self, j: int, i: int, q: np.ndarray, each: np.ndarray) -> np.ndarray:
        """Quantiles of a plain column in row i of the table (k,), from those in the rows that stand for it, (R, k)."""
        mine = np.flatnonzero((self.rows.owner == i) & (np.nan_to_num(self.share) > 0.0))
        if not len(mine):
            return np.full(len(q), np.nan)
        state, at, share = self.of_inner.observe(self.rows.take(mine)), self.coordinates.plain[j], self.share[mine]
        column, each = self.distribution.schema.columns[j], each[mine]
        return inverted(lambda x: share @ state.cdf(at, x), q, each.min(axis=0), each.max(axis=0), column)

    # ---- columns in other units

    def _converted(self, j: int) -> Term | None:
        """The term of a column that is another column in another unit (both with a grid, or the other without one)."""
        terms = self.coordinates.sources[j].terms
        if len(terms) != 1 or terms[0].table is not None:
            return None
        inner = self.coordinates.inner.columns[terms[0].at]
        has_grids = self.distribution.schema.columns[j].step > 0.0 and not inner.is_categorical
        return terms[0] if inner.step == 0.0 or (has_grids and self.rows.sums is None) else None

    def _converted_cdf(self, j: int, term: Term, x: np.ndarray) -> np.ndarray:
        """P(column j <= x) at q points, in each row, (R, q)."""
        column, inner = self.distribution.schema.columns[j], self.coordinates.inner.columns[term.at]
        if column.step > 0.0:  # the upper edge of the cell of x, or of the one below it
            x = np.array([self.coordinates.border(j, one) for one in x.tolist()])
        back = (x - self.coordinates.sources[j].constant) / term.coefficient
        if inner.step > 0.0:  # the greatest grid value below the bound; no grid value is on it
            back = inner.center + np.floor((back - inner.center) / inner.step) * inner.step
        if term.coefficient > 0.0:
            return self.inner.cdf(term.at, back)
        return 1.0 - self.inner.cdf(term.at, back if inner.step > 0.0 else np.nextafter(back, -np.inf))

    # ---- means, variances and covariances of what columns are made of

    def _of_term(self, term: Term) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of what a coordinate stands for, in each row, (R,)."""
        if term.table is None:
            return self.inner.moments(term.at)
        p = self.inner.level_probabilities(term.at)
        mean = p @ term.table
        return mean, (p * (term.table - mean[:, None]) ** 2).sum(axis=1)

    def _term_covariance(self, a: Term, b: Term) -> np.ndarray:
        """Covariance of what two coordinates stand for, in each row, (R,)."""
        if a.table is None and b.table is None:
            if a.at == b.at:
                return self.inner.moments(a.at)[1]
            return self.inner.covariance(a.at, b.at)
        if a.table is None:
            a, b = b, a
        assert a.table is not None
        p = self.inner.level_probabilities(a.at)
        mean = p @ a.table
        if a.at == b.at:
            assert b.table is not None
            return (p * (a.table - mean[:, None]) * (b.table - (p @ b.table)[:, None])).sum(axis=1)
        return self._tilted(a, p, mean, b)

    def _tilted(self, a: Term, p: np.ndarray, mean: np.ndarray, b: Term) -> np.ndarray:
        """Covariance of a compound's values and a coordinate, from its means under the excess and the shortfall."""
        # With m the mean of a, Cov(a, b) = s (E[b | weights (a - m)+] - E[b | weights (a - m)-]), s = E (a - m)+.
        assert a.table is not None
        cells = self.rows.cells
        excess = a.table - mean[:, None]
        size = np.nansum(p * np.maximum(excess, 0.0), axis=1)
        # what rounding leaves of the spread of a column with one value is none
        free = np.flatnonzero((size > 1e-12 * np.abs(a.table).max()) & np.isnan(cells.value[:, a.at]))
        out = np.zeros(len(mean))
        if not len(free):
            return np.where(np.isnan(mean), np.nan, out)
        sides = []
        for sign in (1.0, -1.0):
            part = cells.take(free)
            with np.errstate(divide="ignore"):
                weight = np.log(np.maximum(sign * excess[free], 0.0))
            weight -= weight.max(axis=1, keepdims=True)
            part.narrow(np.arange(len(free)), a.at, [levels_region(row) for row in weight].__getitem__)
            sides.append(self.with_cells(part)._of_term(b)[0])
        out[free] = size[free] * (sides[0] - sides[1])
        return np.where(np.isnan(mean), np.nan, out)

    @of_known
    def covariance(self, a: int, b: int) -> np.ndarray:
        if self._is_rounded(b):
            a, b = b, a
        if self._is_rounded(a):
            return self.moments(a)[1] if a == b else self._covariance_by_values(a, b)
        first, second = (self.coordinates.sources[j].terms for j in (a, b))
        both = np.zeros(len(self.rows.owner))
        for one in first:
            for other in second:
                covariance = self._term_covariance(self._number(a, one), self._number(b, other))
                both += one.coefficient * other.coefficient * covariance
        centers = [self._means(j) for j in (a, b)]
        apart = [mean - self.mixed(mean)[self.rows.owner] for mean in centers]
        found = self.mixed(both + apart[0] * apart[1])
        known = ~np.isnan(self.evidence.value[:, a]) | ~np.isnan(self.evidence.value[:, b])
        return np.where(known & ~np.isnan(found), 0.0, found)

    def _covariance_by_values(self, a: int, b: int) -> np.ndarray:
        """Covariance of a column with few values and another one: from the means of b given each value of a."""
        schema, (value, p) = self.distribution.schema, self._law(a)
        column = schema.columns[a]
        cells = PerRow(tuple(AnyOf(column.from_number(x)) for x in value.tolist()))
        out = np.full(len(p), np.nan)
        for i in np.flatnonzero(p.sum(axis=1) > 0.0).tolist():  # others are impossible: NaN, or no value
            rows = intersect(schema, self.evidence.take(np.array([i])), {column.name: cells})
            state = self.distribution.observe(rows).knowing([a, b])
            warn_of_draws(float(state.effective_draws.min(initial=np.inf)))
            mean = state.center(b)
            some = (p[i] > 0.0) & ~np.isnan(mean)  # a share of rounding error may be of a value that no row has
            share, x = p[i, some] / p[i, some].sum(), value[some]
            out[i] = share @ ((x - share @ x) * (mean[some] - share @ mean[some]))
        return out

    def _number(self, j: int, term: Term) -> Term:
        """A term of column j that stands for numbers: of a boolean column 0 or 1."""
        column = self.distribution.schema.columns[j]
        if not column.is_categorical:
            return term
        numbers = np.array([float(level) for level in column.levels])
        return term._replace(table=numbers if term.table is None else numbers[term.table.astype(np.int64)])

    def _means(self, j: int) -> np.ndarray:
        """Mean of a column of numbers, P(True) of a boolean one, in each row, (R,)."""
        source = self.coordinates.sources[j]
        terms = [self._number(j, term) for term in source.terms]
        return np.asarray(source.constant + sum(t.coefficient * self._of_term(t)[0] for t in terms))

    # ---- columns that have few values, or are added up

    def _law(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Values of a column with a grid (q,), and their probabilities in each row of the table (n, q)."""
        column = self.distribution.schema.columns[j]
        if self._converted(j) is None:
            self._by_sums(j, lambda law: law.quantile(np.array([0.5])), 1)  # keeps the distributions
            points = [law for law in self._kept[j] if isinstance(law, Points)]
            if len(points) == sum(law is not None for law in self._kept[j]):
                value = np.unique(np.concatenate([np.empty(0), *(law.value for law in points)]))
                return value, self.pdf(j, value) * column.step
        first, last = self._end_cells(j)
        value = column.center + np.arange(first, last + 1.0) * column.step
        below = self.cdf(j, value)
        return value, np.diff(below, axis=1, prepend=0.0)

    def _end_cells(self, j: int) -> tuple[float, float]:
        """Numbers of the first and the last cell of a column's grid that matter in any row; they are kept."""
        if j not in self._kept_ends:
            column = self.distribution.schema.columns[j]
            ends = self.quantile(j, np.array([TAIL, 1.0 - TAIL]))
            ends = np.rint((ends[~np.isnan(ends[:, 0])] - column.center) / column.step)
            self._kept_ends[j] = (float(ends.min()), float(ends.max())) if ends.size else (0.0, 0.0)
        return self._kept_ends[j]

    def _is_rounded(self, j: int) -> bool:
        """Whether rounding to the grid of column j matters: over many cells it changes no mean or variance."""
        if j not in self.coordinates.rounded:
            return False
        first, last = self._end_cells(j)
        return last - first < _MOST_CELLS

    def _by_sums(self, j: int, read: Callable[[SumDistribution], np.ndarray], q: int) -> np.ndarray:
        """The results of ``read`` for column j in each row of the table, (n, q); NaN where impossible."""
        if j not in self._kept:
            self._kept[j] = self._sums(j)
            warn_of_draws(min((found.draws for found in self._kept[j] if found is not None), default=np.inf))
        out = np.full((len(self.evidence.value), q), np.nan)
        for i, found in enumerate(self._kept[j]):
            if found is not None:
                out[i] = read(found)
        return out

    def _sums(self, j: int) -> list[SumDistribution | None]:
        """The distribution of a column that is no coordinate, in each row of the table; None where impossible."""
        column, source = self.distribution.schema.columns[j], self.coordinates.sources[j]
        found: list[SumDistribution | None] = []
        if source.is_member:
            (term,) = source.terms
            assert term.table is not None
            value, place = np.unique(term.table, return_inverse=True)
            for row in self.mixed(self.inner.level_probabilities(term.at)):
                mass = np.bincount(place.reshape(-1), np.nan_to_num(row), len(value))
                found.append(Points(column, value, mass) if mass.sum() > 0.0 else None)
            return found
        if self.rows.sums is not None and j not in (self.rows.column, *self.coordinates.equal_sums(self.rows.column)):
            return self.spread_out._sums(j)
        for i, x in enumerate(self.evidence.value[:, j].tolist()):
            mine = np.flatnonzero((self.rows.owner == i) & (np.nan_to_num(self.share) > 0.0))
            if not len(mine):
                found.append(None)
            elif not np.isnan(x):
                found.append(Points(column, snapped(column, np.array([x])), np.ones(1)))
            elif (law := self._total(int(mine[0]), j) if len(mine) == 1 else None) is not None:
                found.append(law)
            else:
                cells, log_weight = self.rows.cells.take(mine), self.log_rows[mine]
                found.append(distribution_of_sum(self.coordinates, self.of_inner, j, cells, log_weight))
        return found

    def _total(self, i: int, j: int) -> Points | None:
        """The distribution of a sum in row i about the coordinates, if it is its owner's only one and is linked."""
        linker, cells = self.linker, self.rows.cells.take(np.array([i]))
        if linker is None:
            return None
        if self.rows.sums is not None:
            one, state, k = self.rows.sums[i], self.inner, i
            assert isinstance(state, LinkedPosterior)
        else:
            (found,) = linker.sums(cells, j)
            if found is None:
                return None
            one, k = found, 0
            state = linker.observe(cells.without_parts(j).evidence(), [one])
        p = state.totals[k]
        return None if np.isnan(p[0]) else grouped(self.coordinates, j, linker.totals(cells, j, one), p)

    # ---- rows filled, and missing cells

    def without_tails(self) -> RuledPosterior:
        """The same without the least probable rows, of those that stand for one row of the table."""
        if self.rows.is_one_each:
            return self
        owner, share = self.rows.owner, np.nan_to_num(self.share)
        order = np.lexsort((-share, owner))
        sums = np.cumsum(share[order])
        before = sums - share[order]
        before -= before[self.rows.start][owner]  # rows of an owner stay together in this order
        kept = np.sort(order[(before < 1.0 - _LEFT_OUT) & ((share[order] > 0.0) | (before == 0.0))])
        rows = CoordinateRows(self.rows.cells.take(kept), self.rows.is_exact)
        state = RuledPosterior(self.distribution, self.of_inner, self.evidence, rows, self.linker)
        state.log_rows = self.log_rows[kept]
        return state

    def filled(self) -> np.ndarray:
        """Rows with means and most probable levels of coordinates in their free cells, (n, d); rules hold in them."""
        if self.rows.is_one_each and self.rows.sums is None:
            Z = self.of_inner.impute(self.rows.evidence)[0]
        else:
            columns = range(len(self.coordinates.inner.columns))
            self.inner.prepare(columns)
            Z = np.column_stack([self._filled_coordinate(at) for at in columns])
        self._restore_sums(Z)
        self._keep_to_ranges(Z)
        X = self.coordinates.rows(Z)
        for j, absence in enumerate(self.coordinates.absences):
            if absence.by_rule:
                X[np.isin(Z[:, absence.where], absence.values), j] = np.nan
        X = np.where(np.isnan(self.evidence.value), X, self.evidence.value)
        impossible = np.isneginf(self.log_probability())
        X[impossible] = self.evidence.value[impossible]
        return X

    def _filled_coordinate(self, at: int) -> np.ndarray:
        column = self.coordinates.inner.columns[at]
        if column.is_categorical:
            p = self.mixed(self.inner.level_probabilities(at))
            return np.where(np.isnan(p[:, 0]), np.nan, p.argmax(axis=1))
        return snapped(column, self.mixed(self.inner.moments(at)[0]))

    def _restore_sums(self, Z: np.ndarray) -> None:
        """Change the last part of sums that are known, where means were rounded, so that the parts add up."""
        for j in self.coordinates.sums:
            terms = [term for term in self.coordinates.sources[j].terms if term.table is None]
            said = self.evidence.value[:, j]
            rest = said - self.coordinates.column(j, Z)
            off = np.flatnonzero(~np.isnan(said) & (np.abs(rest) > self.rows.cells.tolerance(j)))
            for term in reversed(terms):
                column = self.coordinates.inner.columns[term.at]
                free = [i for i in off.tolist() if self._is_free(term.at, i)]
                Z[free, term.at] = snapped(column, Z[free, term.at] + rest[free] / term.coefficient)
                off = np.setdiff1d(off, free)

    def _keep_to_ranges(self, Z: np.ndarray) -> None:
        """Change gaps where a column that an order makes of another one would leave its observed range."""
        for j, at in self.coordinates.gaps.items():
            column = self.coordinates.schema.columns[j]
            of_gap = [k for k in self.coordinates.sums if at in {term.at for term in self.coordinates.sources[k].terms}]
            is_free = np.isnan(self.evidence.value[:, of_gap]).all(axis=1)
            is_outside = self.coordinates.is_outside(j, self.coordinates.column(j, Z))
            self.coordinates.move_gaps(j, Z, np.flatnonzero(is_outside & is_free), column.minimum, column.maximum)

    def _is_free(self, at: int, i: int) -> bool:
        """Whether nothing in row i of the table determines a coordinate."""
        return all(np.isnan(self.evidence.value[i, j]) for j, k in self.coordinates.plain.items() if k == at)

    def missing_shares(self, columns: Sequence[int]) -> np.ndarray:
        found = np.zeros(len(columns))
        mine = np.flatnonzero((self.rows.owner == 0) & (np.nan_to_num(self.share) > 0.0))
        for r in mine.tolist():
            state = self._of_row(r)
            found += self.share[r] * np.array([self._missing(r, state, j) for j in columns])
        return found

    def _of_row(self, r: int) -> PosteriorState:
        """The posterior of the coordinates for one row about them."""
        return self.inner if len(self.rows.owner) == 1 else self.of_inner.observe(self.rows.take(np.array([r])))

    def _missing(self, r: int, state: PosteriorState, j: int) -> float:
        """P(cell j is missing | row r about the coordinates)."""
        absence = self.coordinates.absences[j]
        if absence.like >= 0:
            return float(state.missing_probabilities([absence.like])[0])
        if absence.where < 0:
            return 0.0
        column = self.coordinates.inner.columns[absence.where]
        if column.is_categorical:
            p = float(state.level_probabilities(absence.where)[0][np.array(absence.values, np.int64)].sum())
        else:
            p = float(state.pdf(absence.where, np.array(absence.values))[0].sum() * (column.step or 1.0))
        if absence.besides < 0 or p >= 1.0:
            return p
        others = self._without(frozenset({(absence.where, absence.values)}))._of_row(r)
        return p + (1.0 - p) * float(others.level_probabilities(absence.besides)[0, 1])


class GroupedPosterior(PosteriorState):
    """The posterior of rows that belong to groups, each with a posterior of its own."""

    def __init__(
        self, distribution: Distribution, evidence: Evidence, groups: list[tuple[np.ndarray, RuledPosterior]]
    ) -> None:
        super().__init__(distribution, evidence)
        self.groups = groups

    def knowing(self, columns: Sequence[int]) -> GroupedPosterior:
        groups = [(rows, state.knowing(columns)) for rows, state in self.groups]
        if all(state is before for (_, state), (_, before) in zip(groups, self.groups, strict=True)):
            return self
        return GroupedPosterior(self.distribution, self.evidence, groups)

    def prepare(self, columns: Sequence[int]) -> None:
        for _, state in self.groups:
            state.prepare(columns)

    def _of_each(self, ask: Callable[[RuledPosterior], np.ndarray]) -> np.ndarray:
        """The answers of all groups, (n, ...)."""
        each = [ask(state) for _, state in self.groups]
        out = np.empty((len(self.evidence.value), *each[0].shape[1:]))
        for (rows, _), answers in zip(self.groups, each, strict=True):
            out[rows] = answers
        return out

    @property
    def effective_draws(self) -> np.ndarray:
        return self._of_each(lambda state: state.effective_draws)

    def log_probability(self) -> np.ndarray:
        return self._of_each(lambda state: state.log_probability())

    def background_weight(self) -> np.ndarray:
        return self._of_each(lambda state: state.background_weight())

    def level_probabilities(self, j: int) -> np.ndarray:
        return self._of_each(lambda state: state.level_probabilities(j))

    def moments(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        both = self._of_each(lambda state: np.column_stack(state.moments(j)))
        return both[:, 0], both[:, 1]

    def cdf(self, j: int, x: np.ndarray) -> np.ndarray:
        return self._of_each(lambda state: state.cdf(j, x))

    def pdf(self, j: int, x: np.ndarray) -> np.ndarray:
        return self._of_each(lambda state: state.pdf(j, x))

    def quantile(self, j: int, q: np.ndarray) -> np.ndarray:
        return self._of_each(lambda state: state.quantile(j, q))

    def covariance(self, a: int, b: int) -> np.ndarray:
        return self._of_each(lambda state: state.covariance(a, b))

    def missing_shares(self, columns: Sequence[int]) -> np.ndarray:
        return next(state for rows, state in self.groups if rows[0] == 0).missing_shares(columns)
