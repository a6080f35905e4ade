"""Evidence about a table as evidence about its coordinates."""

# A value, or a region, of a sum is a condition on its only unknown part. If two or three parts are unknown, the sum may
# stay beside the row, for distributions that answer such questions. Otherwise the row becomes many, which differ in the
# values of all parts but one: all values, or weighted draws. The choice depends on the row alone.

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ...data.evidence import Evidence
from ...data.rules.contradictions import number_span
from ...data.schema import Column, snapped
from ...runtime.arrays import ranges
from ...runtime.threads import chunks
from ..base import Distribution, PosteriorState
from ..hidden_tree.hinge import LinkedSum
from .coordinates import CoordinateCells, Coordinates
from .linked import Linker

_MOST_ROWS = 1 << 14
"""Most rows that the sums over grids make of one row of evidence; of one that would become more, draws are made."""
DRAWS = 1 << 10
"""Draws in place of a sum over grids, for each row."""
FEW_PLACES = 512
"""Most combinations of values of the shorter parts that are rows: so many are as fast as a linked sum, or faster. A
known sum of two parts is always linked."""
_PIECE_ROWS = 1 << 12
"""Rows that sums over grids, or draws, make together: so few that their posteriors are kept for further questions."""
TAIL = 1e-12
"""Share of a part's distribution beyond either end of the sum over its grid."""


class CoordinateRows:
    """Rows of evidence about coordinates that stand for n rows of evidence about a table.

    cells : Cells. R rows, those of one row of the table next to each other.
    is_exact : bool array (n,). Whether the rows of a row of the table are all there are, and no draws.
    sums : list of R LinkedSum or None. The sum beside each row, if there is one.
    column : int. The column of the table that is this sum; -1 if there is none.
    """

    def __init__(
        self, cells: CoordinateCells, is_exact: np.ndarray, sums: list[LinkedSum] | None = None, column: int = -1
    ) -> None:
        self.cells, self.is_exact, self.sums, self.column = cells, is_exact, sums, column

    @cached_property
    def evidence(self) -> Evidence:
        """The rows as evidence, without penalties; evidence on parts of linked sums is in the sums."""
        return (self.cells if self.sums is None else self.cells.without_parts(self.column)).evidence()

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
        total = np.logaddexp.reduceat(log_rows, self.start)
        squares = np.logaddexp.reduceat(2.0 * log_rows, self.start)
        with np.errstate(invalid="ignore"):
            worth = np.exp(2.0 * total - squares)
        return np.where(self.is_exact | np.isnan(worth), np.inf, worth)

    def said_sums(self) -> list[str]:
        """Names of the sums on which the rows have evidence."""
        names, cells = self.cells.coordinates.schema.names, self.cells
        is_said = (~np.isnan(cells.said) | (cells.said_region >= 0)).any(axis=0)
        return [names[j] for j in cells.coordinates.sums if is_said[j]]


def translate(
    coordinates: Coordinates,
    inner: Distribution,
    evidence: Evidence,
    linker: Linker | None = None,
    few: int | None = None,
) -> Iterator[tuple[np.ndarray, CoordinateRows]]:
    """The rows about coordinates that stand for rows of evidence about the table: row numbers, and their evidence."""
    # With a ``linker``, known sums of two parts stay beside the rows, and so do grids of more than ``few`` rows.
    cells = CoordinateCells.of(coordinates, evidence)
    cells.solve()
    is_open = cells.pending.any(axis=1)
    closed, opened = np.flatnonzero(~is_open), np.flatnonzero(is_open)
    if len(closed) or not len(opened):
        yield closed, CoordinateRows(cells.alone(closed), np.ones(len(closed), bool))
    pattern = cells.pattern(opened) if len(opened) else opened
    for k in range(int(pattern.max(initial=-1)) + 1):
        some = opened[pattern == k]
        if linker is not None:
            left = [some[:0]]
            size = linker.rows_at_once(cells.alone(some))
            for first, stop in chunks(len(some), size):
                piece = some[first:stop]
                linked, rows = _with_sums(linker, cells.alone(piece), FEW_PLACES if few is None else few)
                if rows is not None:
                    yield piece[linked], rows
                left.append(np.delete(piece, linked))
            some = np.concatenate(left)
        size = max(_PIECE_ROWS // _rows_each(cells.alone(some[:1]), inner), 1) if len(some) else 1
        for first in range(0, len(some), size):
            piece = some[first : first + size]
            yield piece, _spread_out(cells.alone(piece), inner)


def spread_out(coordinates: Coordinates, inner: Distribution, evidence: Evidence) -> CoordinateRows:
    """The rows about coordinates that stand for all rows of evidence, without sums beside them."""
    groups = list(translate(coordinates, inner, evidence))
    is_exact = np.ones(len(evidence.value), bool)
    for numbers, rows in groups:
        rows.cells.owner = numbers[rows.cells.owner]
        is_exact[numbers] = rows.is_exact
    cells = CoordinateCells.joined([rows.cells for _, rows in groups])
    return CoordinateRows(cells.take(np.argsort(cells.owner, kind="stable")), is_exact)


def _with_sums(linker: Linker, cells: CoordinateCells, few: int) -> tuple[np.ndarray, CoordinateRows | None]:
    """Which rows, all of one pattern, have a linked sum, and these with it; None if there are none."""
    none = np.empty(0, np.int64)
    pending = [cells.coordinates.sums[k] for k in np.flatnonzero(cells.pending[0]).tolist()]
    column = pending[0]
    if not set(pending[1:]).issubset(cells.coordinates.equal_sums(column)):
        return none, None
    sums = linker.sums(cells, column)
    is_fast = [one is not None and _is_fast(one, few) for one in sums]
    sums = [one for one, is_one in zip(sums, is_fast, strict=True) if is_one]
    linked = np.flatnonzero(is_fast)
    if not len(linked):
        return none, None
    found = cells.alone(linked)
    found.log_weight += np.where(np.isnan(found.said[:, column]), 0.0, cells.coordinates.unit(column))
    return linked, CoordinateRows(found, np.ones(len(linked), bool), [one for one in sums if one is not None], column)


def _is_fast(one: LinkedSum, few: int) -> bool:
    """Whether a linked sum takes less time than its rows: a known one of two parts, or more than ``few`` rows."""
    return (len(one.columns) == 2 and one.has_few_totals) or math.prod(map(len, one.values[:-1])) > few


def _rows_each(cells: CoordinateCells, inner: Distribution) -> int:
    """About how many rows grids, or draws, make of a row."""
    sizes = sorted(min(_size(inner.schema.columns[at]), _MOST_ROWS) for at in cells.unknown())
    return int(min(max(math.prod(sizes[:-1]), DRAWS), _MOST_ROWS))


def _spread_out(cells: CoordinateCells, inner: Distribution) -> CoordinateRows:
    """Many rows for each of a few of one pattern: by the grids of parts, or draws."""
    found = _by_grids(cells, inner)
    many = np.setdiff1d(cells.owner, found.owner)
    is_exact = ~np.isin(cells.owner, many)
    if len(many):
        found = CoordinateCells.joined([found, _by_draws(cells.take(many), inner)])
    return CoordinateRows(found.take(np.argsort(found.owner, kind="stable")), is_exact)


def representatives(evidence: Evidence, is_open: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of rows that represent all, and the position of each row's representative among them."""
    # Rows of draws are often equal, and each that becomes several rows takes long.
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
    """Which rows become several, as they have evidence on a sum with two unknown parts or more, bool (n,)."""
    cells = CoordinateCells.of(coordinates, evidence)
    cells.solve()
    return np.asarray(cells.pending.any(axis=1))


def known_values(coordinates: Coordinates, X: np.ndarray) -> np.ndarray:
    """Rows of coordinates (n, m) from rows of the table (n, d), as far as these determine them; NaN elsewhere."""
    cells = CoordinateCells.of(coordinates, Evidence.of_values(X))
    cells.solve()
    return cells.value


# ---- Rows of evidence about sums with several unknown parts, as many rows in which all of them are known.
# ---- All rows of a group have evidence on the same sums and know the same parts, so they take the same steps.


def _by_grids(group: CoordinateCells, inner: Distribution) -> CoordinateCells:
    """All rows that grids of unknown parts make of n rows; none of a row without a grid, or with more than fit."""
    state = inner.observe(group.evidence())
    found, impossible = group, np.empty(0, np.int64)
    while len(found.owner) and found.pending.any():
        at = min(found.unknown(), key=lambda at: _size(inner.schema.columns[at]))
        row, values = supports(state, inner.schema.columns[at], at)
        count = np.bincount(row, minlength=len(group.owner))
        after = np.bincount(found.owner, count[found.owner], len(group.owner))
        fits = (count > 0) & (after <= _MOST_ROWS)
        found = found.take(np.flatnonzero(fits[found.owner]))
        count, start = count[found.owner], (np.cumsum(count) - count)[found.owner]
        found = found.take(np.repeat(np.arange(len(count)), count))
        found.assign(at, values[ranges(start, count)])
        found.log_weight += math.log(inner.schema.columns[at].step or 1.0)  # the mass of each cell
        found.solve()
        possible = found.log_weight > -np.inf
        impossible = np.union1d(impossible, np.setdiff1d(found.owner, found.owner[possible]))
        found = found.take(np.flatnonzero(possible))
    return CoordinateCells.joined([found, _impossible(group.take(impossible))])


def supports(state: PosteriorState, column: Column, at: int) -> tuple[np.ndarray, np.ndarray]:
    """Values of a coordinate that hold all but 2e-12 of its posterior, by row, ascending: rows, values (N,)."""
    # All observed values are included, because further evidence may make likely what is unlikely now.
    if column.is_categorical:
        row, level = np.nonzero(np.nan_to_num(state.level_probabilities(at)) > 0.0)
        return row, level.astype(np.float64)
    if column.step == 0.0:
        return np.empty(0, np.int64), np.empty(0)
    ends = state.quantile(at, np.array([TAIL, 1.0 - TAIL]))
    low, high = np.fmin(ends[:, 0], column.minimum), np.fmax(ends[:, 1], column.maximum)
    first, last = np.rint((low - column.center) / column.step), np.rint((high - column.center) / column.step)
    count = np.where(last - first < _MOST_ROWS, last - first + 1.0, 0.0).astype(np.int64)
    row = np.repeat(np.arange(len(count)), count)
    place = first[row] + ranges(np.zeros(len(count), np.int64), count)
    return row, np.asarray(snapped(column, column.center + place * column.step))


def _by_draws(group: CoordinateCells, inner: Distribution) -> CoordinateCells:
    """Rows for each of n, with drawn values of the unknown parts but the last, weighed by the inverse density."""
    # Each row has the same random numbers, so that its draws do not depend on the others.
    rows = group.evidence()
    before = inner.log_density(rows)
    possible = np.flatnonzero(before > -np.inf)
    impossible = _impossible(group.take(np.flatnonzero(before == -np.inf)))
    if not len(possible):
        return impossible
    Z = np.concatenate([inner.sample(rows.take(np.array([i])), DRAWS, 0, False) for i in possible.tolist()])
    found = group.take(np.repeat(possible, DRAWS))
    drawn = _to_draw(group.take(possible[:1]), inner, Z[:1])
    for at in drawn:
        found.value[:, at], found.region[:, at] = Z[:, at], -1
    found.log_weight -= inner.log_density(found.evidence()) - np.repeat(before[possible], DRAWS) + math.log(DRAWS)
    found.solve()
    return CoordinateCells.joined([found, impossible])


def _to_draw(group: CoordinateCells, inner: Distribution, Z: np.ndarray) -> list[int]:
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
    return number_span(column) / column.step if column.step > 0.0 else math.inf


def _impossible(rows: CoordinateCells) -> CoordinateCells:
    """The rows, of probability 0."""
    rows.log_weight[:] = -np.inf
    rows.pending[:] = False
    return rows
