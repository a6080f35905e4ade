"""Sums with two or three unknown parts on one lattice, for hidden trees, which know the distribution of such a sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...data.evidence import Evidence, build
from ...data.meaning import log_likelihoods
from ...data.schema import Column, snapped
from ...runtime.arrays import at_once
from ..hidden_tree.hidden_tree import HiddenTree, LinkedPosterior
from ..hidden_tree.hinge import LinkedSum
from .coordinates import CoordinateCells, Coordinates, Term

_MOST_PLACES = 1 << 16
"""Most steps of the lattice in a part."""
_MOST_OF_TWO = 1 << 22
"""The same of a sum of two parts, whose values are taken by their codes."""
_MOST_PIECES = 1 << 21
"""Most steps in the shorter of two parts, times the number of intervals that the total may lie in."""
_MOST_PAIRS = 1 << 18
"""Most pairs of places of the two shorter of three parts."""
_COPIES = 4
"""Arrays that are held at once of the size of the likelihoods of a row's totals."""
_ASIDE = 3.0
"""Steps by which the totals that are examined go beyond those that rounding may bring into a region."""
_TAIL = 1e-9
"""Share of a part's distribution beyond either end of its values; tables are in float32."""
_WHOLE = 1e-6
"""By how much a quotient of steps may miss a whole number."""


class Lattice(NamedTuple):
    """The unknown parts of a sum, that with the most values last, and the step of the lattice of their totals."""

    terms: tuple[Term, ...]
    step: float


class Linker:
    """Makes linked sums of the rows' evidence on the coordinates."""

    def __init__(self, coordinates: Coordinates, inner: HiddenTree) -> None:
        self.coordinates, self.inner = coordinates, inner
        self._ends: dict[int, tuple[float, float]] = {}
        self._lattices: dict[tuple[int, tuple[int, ...]], Lattice | None] = {}
        self._grids: dict[tuple[int, float, float], np.ndarray] = {}
        self._adds: dict[tuple[int, int, int, float], tuple[np.ndarray, float, int]] = {}
        self._nothing: dict[int, np.ndarray] = {}

    def sums(self, cells: CoordinateCells, j: int) -> list[LinkedSum | None]:
        """The sum that makes column j in each row; None where its unknown parts are not two or three short ones."""
        terms = self.coordinates.sources[j].terms
        unknown = np.column_stack([np.isnan(term.values(cells.value)) for term in terms])
        return [self._short(self._sum(cells, i, j, np.flatnonzero(row))) for i, row in enumerate(unknown)]

    def observe(self, evidence: Evidence, sums: Sequence[LinkedSum]) -> LinkedPosterior:
        """The posterior of the coordinates given a sum in each row besides."""
        return LinkedPosterior(self.inner, evidence, sums)

    def rows_at_once(self, cells: CoordinateCells) -> int:
        """How many of the rows, all of one pattern, may have their sums side by side."""
        j = self.coordinates.sums[int(np.argmax(cells.pending[0]))]
        unknown = [t for t, term in enumerate(self.coordinates.sources[j].terms) if term.at in cells.unknown()]
        one = self._sum(cells, 0, j, np.array(unknown))
        if one is None:
            return len(cells.owner)
        is_told = [bool((cells.region[:, at] >= 0).any()) for at in one.columns]
        kept = one.likelihood.nbytes + sum(x.nbytes for x, told in zip(one.log_like, is_told, strict=True) if told)
        return at_once(_COPIES * kept, share=0.25)

    def again(self, cells: CoordinateCells, j: int) -> list[LinkedSum]:
        """The same of rows that have such a sum, and of which more is known now."""
        terms = self.coordinates.sources[j].terms
        unknown = np.column_stack([np.isnan(term.values(cells.value)) for term in terms])
        found = [self._sum(cells, i, j, np.flatnonzero(row)) for i, row in enumerate(unknown)]
        return [one for one in found if one is not None]

    def _short(self, one: LinkedSum | None) -> LinkedSum | None:
        """The sum, if it takes little time, and a total that is known is not so far out that only tails reach it."""
        if one is None or not one.likelihood.any():
            return None
        sizes = [int(x.max()) + 1 for x in one.places]
        is_fast = len(sizes) == 2 and one.is_by_codes and sizes[0] * one.n_pieces <= _MOST_PIECES
        is_long = max(sizes) > (_MOST_OF_TWO if is_fast else _MOST_PLACES)
        is_long |= len(sizes) == 3 and sizes[0] * sizes[1] > _MOST_PAIRS
        return None if is_long else one

    def _sum(self, cells: CoordinateCells, i: int, j: int, unknown: np.ndarray) -> LinkedSum | None:
        lattice = self._lattice(j, tuple(unknown.tolist())) if 2 <= len(unknown) <= 3 else None
        if lattice is None:
            return None
        values = [self._values(cells, i, term.at) for term in lattice.terms]
        added = [self._added(j, term, x, lattice.step) for term, x in zip(lattice.terms, values, strict=True)]
        least = self._least(cells, i, j, lattice, values)
        size = sum(top for _, _, top in added) + 1
        first, likelihood = self._likelihood(cells, i, j, least, lattice.step, size)
        for k in self.coordinates.equal_sums(j):
            other = self._likelihood(cells, i, k, self._least(cells, i, k, lattice, values), lattice.step, size)
            first, likelihood = _both(first, likelihood, *other)
        log_like = [self._log_like(cells, i, term.at, x) for term, x in zip(lattice.terms, values, strict=True)]
        columns = tuple(term.at for term in lattice.terms)
        return LinkedSum(columns, tuple(values), tuple(log_like), tuple(x for x, _, _ in added), first, likelihood)

    def totals(self, cells: CoordinateCells, j: int, one: LinkedSum) -> np.ndarray:
        """The totals of the sum of a single row on its lattice, (L,)."""
        unknown = tuple(t for t, term in enumerate(self.coordinates.sources[j].terms) if term.at in one.columns)
        lattice = self._lattice(j, unknown)
        assert lattice is not None
        return self._least(cells, 0, j, lattice, one.values) + lattice.step * np.arange(one.size)

    def _least(self, cells: CoordinateCells, i: int, j: int, lattice: Lattice, values: Sequence[np.ndarray]) -> float:
        """The least total in row i."""
        source = self.coordinates.sources[j]
        unknown = {term.at for term in lattice.terms}
        known = [term for term in source.terms if term.at not in unknown]
        low = [self._added(j, term, x, lattice.step)[1] for term, x in zip(lattice.terms, values, strict=True)]
        return source.constant + sum(low) + sum(t.coefficient * t.values(cells.value[[i]])[0] for t in known)

    def _added(self, j: int, term: Term, values: np.ndarray, step: float) -> tuple[np.ndarray, float, int]:
        """What values of a part add to sum j: steps above the least, the least, and the most steps."""
        key = (j, term.at, id(values), step)
        if key not in self._adds:
            adds = term.coefficient * (values if term.table is None else term.table[values.astype(np.int64)])
            places = np.rint((adds - adds.min()) / step).astype(np.int64)
            self._adds[key] = places, float(adds.min()), int(places.max())
        return self._adds[key]

    def _lattice(self, j: int, unknown: tuple[int, ...]) -> Lattice | None:
        """The lattice of some terms of a sum; None if they, or the sum, have none."""
        if (j, unknown) not in self._lattices:
            terms = [self.coordinates.sources[j].terms[t] for t in unknown]
            self._lattices[j, unknown] = self._made(self.coordinates.schema.columns[j], terms)
        return self._lattices[j, unknown]

    def _made(self, column: Column, terms: Sequence[Term]) -> Lattice | None:
        columns = [self.inner.schema.columns[term.at] for term in terms]
        if column.step == 0.0 or any(of.step == 0.0 and not of.is_categorical for of in columns):
            return None
        steps, sizes = [], []
        for term, of in zip(terms, columns, strict=True):
            apart = np.array([of.step]) if term.table is None else np.diff(np.unique(term.table))
            steps.append(abs(term.coefficient) * apart)
            low, high = self.ends(term.at)
            sizes.append(len(of.levels) if of.is_categorical else (high - low) / of.step)
        every = np.concatenate(steps)
        if not len(every):
            return None
        step = float(every.min())
        if (np.abs(every / step - np.rint(every / step)) > _WHOLE).any():
            return None
        order = sorted(range(len(terms)), key=lambda t: sizes[t])
        return Lattice(tuple(terms[t] for t in order), step)

    def ends(self, at: int) -> tuple[float, float]:
        """Least and greatest number of a coordinate: those observed, and nearly all of its distribution."""
        column = self.inner.schema.columns[at]
        if at not in self._ends:
            if column.is_categorical:
                self._ends[at] = 0.0, len(column.levels) - 1.0
            else:
                law = self.inner.observe(build(self.inner.schema)).quantile(at, np.array([_TAIL, 1.0 - _TAIL]))[0]
                self._ends[at] = float(np.fmin(law[0], column.minimum)), float(np.fmax(law[1], column.maximum))
        return self._ends[at]

    def _values(self, cells: CoordinateCells, i: int, at: int) -> np.ndarray:
        """All values that a coordinate may have in row i, ascending; at least one."""
        column, (low, high) = self.inner.schema.columns[at], self.ends(at)
        runs = cells.table.regions[number].runs if (number := int(cells.region[i, at])) >= 0 else ()
        if runs and not column.is_categorical:
            first, last = runs[0][0], runs[-1][1]
            if first > column.maximum or last < column.minimum:  # where only tails are
                row = cells.take(np.array([i])).evidence()
                low, high = self.inner.observe(row).quantile(at, np.array([_TAIL, 1.0 - _TAIL]))[0].tolist()
            low, high = max(low, first), min(high, last)
        if not low <= high:
            low = high = self.ends(at)[0]
        if (at, low, high) not in self._grids:
            self._grids[at, low, high] = _grid(column, low, high)
        return self._grids[at, low, high]

    def _log_like(self, cells: CoordinateCells, i: int, at: int, values: np.ndarray) -> np.ndarray:
        """The evidence of row i on the values of a coordinate."""
        number = int(cells.region[i, at])
        if number < 0:
            if len(values) not in self._nothing:
                self._nothing[len(values)] = np.zeros(len(values))
            return self._nothing[len(values)]
        return log_likelihoods(self.inner.schema.columns[at], cells.table.regions[number], values)

    def _likelihood(
        self, cells: CoordinateCells, i: int, j: int, least: float, step: float, size: int
    ) -> tuple[int, np.ndarray]:
        """Likelihood of totals, by the evidence of row i on column j, and the place of the first of these."""
        column, said, number = self.coordinates.schema.columns[j], cells.said[i, j], int(cells.said_region[i, j])
        if math.isnan(said):
            if number < 0:
                return 0, np.ones(size)
            region = cells.table.regions[number]
            first, last = 0, size
            if region.runs and not region.atoms:  # most totals are outside of the region
                ends = (np.array([region.runs[0][0], region.runs[-1][1]]) - least) / step
                first, last = (int(np.clip(end, 0, size)) for end in (ends[0] - _ASIDE, ends[1] + _ASIDE))
            # Made values ascend with the totals, so that likelihoods change only near the ends of runs, and near atoms.
            marks = (np.array([*np.ravel(region.runs), *column.atoms]) - least) / step
            wide = math.ceil(column.step / step + _ASIDE)
            near = np.floor(marks[np.isfinite(marks)])[:, None] + np.arange(-wide, wide + 2)
            places = np.unique(np.clip(np.append(near, first), first, max(last - 1, first)))
            log_like = log_likelihoods(column, region, self.coordinates.made(j, least + step * places))
            return first, np.exp(np.repeat(log_like, np.diff(places, append=last).astype(np.int64)))
        tolerance = cells.tolerance(j)
        low, high = (np.clip((said + sign * tolerance - least) / step, 0, size) for sign in (-1.0, 1.0))
        places = np.arange(max(int(low) - 1, 0), min(int(high) + 2, size))
        return int(places[0]) if len(places) else 0, cells.fits(j, least + step * places, said).astype(float)


def _both(first: int, likelihood: np.ndarray, other_first: int, other: np.ndarray) -> tuple[int, np.ndarray]:
    """The product of two likelihoods of totals, as the place of its first total and the likelihood from there on."""
    start, stop = max(first, other_first), min(first + len(likelihood), other_first + len(other))
    if start >= stop:
        return 0, np.zeros(1)
    return start, likelihood[start - first : stop - first] * other[start - other_first : stop - other_first]


def _grid(column: Column, low: float, high: float) -> np.ndarray:
    """The values of a column from low to high, at least one."""
    if column.is_categorical:
        return np.arange(low, high + 1.0)
    first, last = (round((x - column.center) / column.step) for x in (low, high))
    if last - first > _MOST_OF_TWO:
        last = first + _MOST_OF_TWO + 1  # too many, whatever they are
    return np.asarray(snapped(column, column.center + np.arange(first, max(first, last) + 1.0) * column.step))
