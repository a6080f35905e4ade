"""Evidence as the kernels see it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..runtime.records import record
from . import meaning
from .conditions import Soft, factors, n_rows, of_row
from .ranges import Ranges
from .schema import Column, Schema


@record
class Evidence(NamedTuple):
    """Evidence of n rows: for each cell nothing, a value, or a region, whose parts may have likelihoods.

    Each cell has a likelihood, a function l of the column's value: of a region the weights below within it, 0
    outside. Of hard evidence all weights are 1. p(evidence) is the mean of the product of all cells' likelihoods.

    value : float64 array (n, d), C-contiguous. The cell's value or level code; NaN where no value is known.
    region : int32 array (n, d), or (0, 0) without regions. Number of the cell's region; -1 if none, or if a value.
    run_start : int32 array (R + 1,). Region r is the union, maybe empty, of runs ``run_start[r]:run_start[r + 1]``.
    run_lo, run_hi : float64 array (Q,). Half-open runs ``(lo, hi]``, disjoint, ascending, lo < hi; on cell edges where
        the column has a grid. For a categorical column level k is in a run if ``lo < k <= hi``, edges at ``k -+ 0.5``.
    atoms : uint64 array (R,). Bit k is set if the k-th atom of the region's column lies in the region.
    run_log_weight : float64 array (Q,). Log of the likelihood in each run, finite, at most 0; 0 in hard evidence.
    atom_log_weight : float64 array (R, A), or (0, 0) if no region is soft. Log of the likelihood of the region's k-th
        atom where bit k is set, else 0. On a grid it is that of the run with its cell.
    log_penalty : float64 array (n,). Added to the row's log-probability: of unseen levels
        (`data.schema.Column.log_unseen`), whose cells count as missing; and log-likelihoods of values that also have
        soft evidence.
    """

    value: np.ndarray
    region: np.ndarray
    run_start: np.ndarray
    run_lo: np.ndarray
    run_hi: np.ndarray
    atoms: np.ndarray
    run_log_weight: np.ndarray
    atom_log_weight: np.ndarray
    log_penalty: np.ndarray

    @staticmethod
    def of_values(value: np.ndarray, log_penalty: np.ndarray | None = None) -> Evidence:
        """Evidence of values alone: float64 array (n, d), NaN where nothing is known."""
        nothing = np.empty(0)
        return Evidence(
            value=value,
            region=np.empty((0, 0), dtype=np.int32),
            run_start=np.zeros(1, dtype=np.int32),
            run_lo=nothing,
            run_hi=nothing,
            atoms=np.empty(0, dtype=np.uint64),
            run_log_weight=nothing,
            atom_log_weight=np.empty((0, 0)),
            log_penalty=np.zeros(len(value)) if log_penalty is None else log_penalty,
        )

    @staticmethod
    def nothing(d: int, n: int = 1) -> Evidence:
        """Evidence of n rows of d columns, of which nothing is known."""
        return Evidence.of_values(np.full((n, d), np.nan))

    @property
    def has_regions(self) -> bool:
        """Whether any cell may have a region."""
        return self.region.size > 0

    def soft_columns(self) -> np.ndarray:
        """Which columns have soft evidence in some row, bool (d,)."""
        soft = np.zeros(len(self.atoms) + 1, bool)  # the last is that of region -1
        soft[np.repeat(np.arange(len(self.atoms)), np.diff(self.run_start))[self.run_log_weight != 0.0]] = True
        if self.atom_log_weight.size:
            soft[:-1] |= (self.atom_log_weight != 0.0).any(axis=1)
        return np.asarray(soft[self.cell_regions()].any(axis=0))

    def known_names(self, schema: Schema) -> list[str]:
        """Names of the columns on which any row has evidence."""
        is_said = (~np.isnan(self.value) | (self.cell_regions() >= 0)).any(axis=0)
        return [schema.names[j] for j in np.flatnonzero(is_said).tolist()]

    def cell_regions(self) -> np.ndarray:
        """Number of each cell's region, -1 if none: a new int32 array (n, d), whether there are regions or not."""
        return self.region.copy() if self.has_regions else np.full(self.value.shape, -1, dtype=np.int32)

    def take(self, rows: np.ndarray) -> Evidence:
        """The rows of these numbers, in this order."""
        region = self.region[rows] if self.has_regions else self.region
        return self._replace(value=self.value[rows], region=region, log_penalty=self.log_penalty[rows])

    def repeat(self, n: int) -> Evidence:
        """Each row n times, one after the other."""
        return self.take(np.repeat(np.arange(len(self.value)), n))

    def without(self, j: int) -> Evidence:
        """The evidence with nothing known of column j; penalties stay."""
        value = self.value.copy()
        value[:, j] = np.nan
        region = self.region.copy()
        if self.has_regions:
            region[:, j] = -1
        return self._replace(value=value, region=region)


# ---- Which values satisfy hard evidence.


def is_met(schema: Schema, evidence: Evidence, X: np.ndarray) -> np.ndarray:
    """Whether rows X, (..., d), satisfy the hard evidence in the only row of ``evidence``: bool (...); not if NaN."""
    found = np.ones(X.shape[:-1], dtype=bool)
    region = evidence.cell_regions()[0]
    for j in np.flatnonzero(~np.isnan(evidence.value[0]) | (region >= 0)).tolist():
        found &= is_met_by(schema.columns[j], evidence, j, X[..., j])
    return found


def within_ends(schema: Schema, evidence: Evidence, m: int, drawn: np.ndarray) -> np.ndarray:
    """Rows drawn given the evidence, m for each row of it; cells without evidence are within their ends."""
    # What lies beyond the hard ends of a column has a density, so that no row is impossible, but is not drawn.
    for j, column in enumerate(schema.columns):
        half = 0.5 * column.step
        beyond = np.flatnonzero((drawn[:, j] < column.lower - half) | (drawn[:, j] > column.upper + half))
        if len(beyond):
            given = evidence.take(beyond // m)
            free = beyond[np.isnan(given.value[:, j]) & (given.cell_regions()[:, j] < 0)]
            drawn[free, j] = np.clip(drawn[free, j], column.lower, column.upper)
    return drawn


def is_met_by(column: Column, evidence: Evidence, j: int, x: np.ndarray) -> np.ndarray:
    """Whether values x of column j satisfy the only row of hard evidence: bool, of the shape of x."""
    value, region = float(evidence.value[0, j]), int(evidence.cell_regions()[0, j])
    if region < 0:
        half = column.step / 2.0
        return np.abs(x - value) < half if half > 0.0 else x == value
    found = np.zeros(x.shape, dtype=bool)
    for low, high in region_runs(evidence, j):
        found |= (low < x) & (x <= high)
    for k, atom in enumerate(column.atoms):
        found = np.where(x == atom, bool(int(evidence.atoms[region]) >> k & 1), found)
    return found


def region_runs(evidence: Evidence, j: int) -> np.ndarray:
    """Runs (lo, hi] of the region of column j in the only row of evidence, (q, 2)."""
    region = int(evidence.cell_regions()[0, j])
    runs = slice(0, 0) if region < 0 else slice(evidence.run_start[region], evidence.run_start[region + 1])
    return np.column_stack([evidence.run_lo[runs], evidence.run_hi[runs]])


# ---- Equal rows of evidence have equal answers: each is answered once.


def distinct_rows(evidence: Evidence) -> tuple[Evidence, np.ndarray | slice]:
    """Rows of evidence without repetition, and which of them each row is; all of them if few are equal."""
    # ``answers[place]`` are the answers for all rows. The log_penalty is one of several that equal rows may have.
    everything = slice(None)
    value, region = evidence.value, evidence.region
    if len(value) < 16:
        return evidence, everything
    key = _key(value.view(np.uint64))
    if evidence.has_regions:
        key += _key(region.astype(np.uint64)) * np.uint64(3)
    in_order = np.sort(key)
    if 2 * (1 + np.count_nonzero(in_order[1:] != in_order[:-1])) > len(key):
        return evidence, everything
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    rows = evidence.take(first)
    same = np.array_equal(rows.value.view(np.uint64)[place], value.view(np.uint64))
    if not same or (evidence.has_regions and not np.array_equal(rows.region[place], region)):
        return evidence, everything  # two rows that differ have one key
    return rows, place


def _key(bits: np.ndarray) -> np.ndarray:
    """A number for each row of (n, d) words, the same for equal rows and seldom for others."""
    odd = np.random.default_rng(0).integers(2**63, size=bits.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed: np.ndarray = ((bits ^ (bits >> np.uint64(32))) * odd).sum(axis=1, dtype=np.uint64)
    return mixed


# ---- Evidence from frames and conditions: per cell nothing, a value, or a region.


def build(
    schema: Schema,
    X: np.ndarray | None = None,
    unseen: np.ndarray | None = None,
    conditions: Mapping[str, Any] | None = None,
    n: int | None = None,
    ranges: Ranges | None = None,
) -> Evidence:
    """Evidence of n rows: values X (n, d), conditions by column, ranges; raises ValueError as `meaning_of`."""
    # A cell with a value and a condition must satisfy both. ``unseen`` cells have a level that learning did not see:
    # they count as missing, with a penalty. Conditions are scalars, lists, arrays with one entry per row, or `PerRow`.
    conditions = dict(conditions or {})
    d = len(schema.columns)
    if X is None:
        lengths = {name: rows for name, condition in conditions.items() if (rows := n_rows(condition)) is not None}
        n = n if n is not None else next(iter(lengths.values()), 1)
        value = np.full((n, d), np.nan)
    else:
        value = np.array(X, dtype=np.float64, order="C", ndmin=2)
        if value.shape[1] != d or (n is not None and len(value) != n):
            raise ValueError(f"X: expected shape ({'n' if n is None else n}, {d}), got {value.shape}")
    penalty = np.zeros(len(value))
    if unseen is not None:
        if unseen.shape != value.shape:
            raise ValueError(f"unseen: expected shape {value.shape}, got {unseen.shape}")
        for j in np.flatnonzero(unseen.any(axis=0)).tolist():
            value[unseen[:, j], j] = np.nan
            penalty[unseen[:, j]] += schema.columns[j].log_unseen
    evidence = Evidence.of_values(value, penalty)
    return intersect(schema, evidence if ranges is None else _ranged(schema, evidence, ranges), conditions)


def _ranged(schema: Schema, evidence: Evidence, ranges: Ranges) -> Evidence:
    """The evidence with regions where cells are ranges."""
    table, region = RegionTable(evidence), evidence.cell_regions()
    evidence.value[ranges.number >= 0] = np.nan
    for j in np.flatnonzero((ranges.number >= 0).any(axis=0)).tolist():
        rows, place, regions = ranges.of_column(j, schema.columns[j])
        region[rows, j] = np.array([table.number(one) for one in regions], np.int32)[place]
    return table.evidence(evidence.value, region, evidence.log_penalty)


def intersect(schema: Schema, evidence: Evidence, conditions: Mapping[str, Any]) -> Evidence:
    """New evidence that satisfies the evidence and the conditions; one row is repeated for conditions of n."""
    conditions = {name: condition for name, condition in conditions.items() if _says_something(condition)}
    if not conditions:
        return evidence
    n = len(evidence.value)
    lengths = {name: rows for name, condition in conditions.items() if (rows := n_rows(condition)) is not None}
    if n == 1 and lengths:
        n = next(iter(lengths.values()))
    for name, rows in lengths.items():
        if rows != n:
            raise ValueError(f"column {name!r}: the condition speaks of {rows} rows, the evidence has {n}")
    if len(evidence.value) != n:
        evidence = evidence.repeat(n)
    value, region, penalty = evidence.value.copy(), evidence.cell_regions(), evidence.log_penalty.copy()
    known = RegionTable(evidence)
    for name, condition in conditions.items():
        j = schema.index(name)
        column = schema.columns[j]
        if name in lengths:
            for i in range(n):
                for factor in factors(of_row(condition, i)):
                    cell = float(value[i, j]), int(region[i, j])
                    value[i, j], region[i, j], fit = _Addition(column, factor, known).to(*cell)
                    penalty[i] += fit
        else:
            for factor in factors(condition):
                _add_condition(_Addition(column, factor, known), value[:, j], region[:, j], penalty)
    return known.evidence(value, region, penalty)


def _says_something(condition: Any) -> bool:
    if n_rows(condition) is not None:
        return True
    return not (condition is None or (isinstance(condition, float) and math.isnan(condition)))


class RegionTable:
    """Regions by number, each once."""

    def __init__(self, evidence: Evidence) -> None:
        bounds = list(zip(evidence.run_lo.tolist(), evidence.run_hi.tolist(), strict=True))
        start = evidence.run_start.tolist()
        runs, atoms = evidence.run_log_weight.tolist(), evidence.atom_log_weight.tolist() or [()] * len(start[1:])
        self.regions = [
            meaning.weighed(zip(bounds[a:b], runs[a:b], strict=True), int(held), weights)
            if any(runs[a:b]) or any(weights)
            else meaning.Region(tuple(bounds[a:b]), int(held))
            for a, b, held, weights in zip(start[:-1], start[1:], evidence.atoms.tolist(), atoms, strict=True)
        ]
        self._number = {region: number for number, region in enumerate(self.regions)}

    def number(self, region: meaning.Region) -> int:
        number = self._number.setdefault(region, len(self.regions))
        if number == len(self.regions):
            self.regions.append(region)
        return number

    def evidence(self, value: np.ndarray, region: np.ndarray, penalty: np.ndarray) -> Evidence:
        """Evidence with the regions that are in use."""
        used, numbers = np.unique(region, return_inverse=True)
        regions = [self.regions[number] for number in used.tolist() if number >= 0]
        if not regions:
            region = np.empty((0, 0), dtype=np.int32)
        else:
            region = np.ascontiguousarray((numbers.reshape(region.shape) - (used[0] < 0)).astype(np.int32))
        runs = [run for one in regions for run in one.runs]
        is_soft = any(one.run_log_weights or one.atom_log_weights for one in regions)
        widest = max((one.atoms.bit_length() for one in regions), default=0) if is_soft else 0
        return Evidence(
            value=value,
            region=region,
            run_start=np.cumsum([0] + [len(one.runs) for one in regions]).astype(np.int32),
            run_lo=np.array([lo for lo, _ in runs], dtype=np.float64),
            run_hi=np.array([hi for _, hi in runs], dtype=np.float64),
            atoms=np.array([one.atoms for one in regions], dtype=np.uint64),
            run_log_weight=np.array([w for one in regions for w in one.run_weights()], dtype=np.float64),
            atom_log_weight=np.array(
                [one.atom_weights() + (0.0,) * (widest - one.atoms.bit_length()) for one in regions]
                if widest
                else np.empty((0, 0)),
                dtype=np.float64,
            ),
            log_penalty=penalty,
        )


class _Addition:
    """A condition on a column, and what becomes of a cell to which it is added."""

    def __init__(self, column: Column, condition: Any, known: RegionTable) -> None:
        self.column, self.condition, self.known = column, condition, known
        self.likelihood = meaning.soft_region(column, condition) if isinstance(condition, Soft) else None
        self.meaning = self.likelihood or meaning.meaning_of(column, condition)

    def to(self, value: float, region: int) -> tuple[float, int, float]:
        """Value and region of a cell that had this value (NaN: none) and region (-1: none), and its log-penalty."""
        new = self.meaning
        if new is None:
            return value, region, 0.0
        nowhere = math.nan, self.known.number(meaning.NOWHERE), 0.0
        if not math.isnan(value):
            if self.likelihood is not None:
                fit = meaning.region_log_likelihood(self.column, self.likelihood, value)
            else:
                fit = 0.0 if meaning.contains(self.column, self.condition, value) else -math.inf
            return (value, -1, fit) if fit > -math.inf else nowhere
        old = self.known.regions[region] if region >= 0 else None
        if isinstance(new, meaning.Region):
            return math.nan, self.known.number(new if old is None else meaning.intersected(old, new)), 0.0
        fit = 0.0 if old is None else meaning.region_log_likelihood(self.column, old, new)
        return (new, -1, fit) if fit > -math.inf else nowhere


def _add_condition(addition: _Addition, value: np.ndarray, region: np.ndarray, penalty: np.ndarray) -> None:
    """Add a condition to all cells of a column, in place; equal cells at once."""
    if len(value) == 0:
        return
    place = np.unique(value, return_inverse=True)[1]
    cells = place * (int(region.max()) + 2) + region + 1
    _, first, same = np.unique(cells, return_index=True, return_inverse=True)
    added = [addition.to(float(value[i]), int(region[i])) for i in first.tolist()]
    value[:] = np.array([x for x, _, _ in added])[same]
    region[:] = np.array([number for _, number, _ in added], dtype=np.int32)[same]
    penalty += np.array([fit for _, _, fit in added])[same]


# ---- One row of evidence as many, which differ in one column.

_NEAR = 1e-6  # of a cell


def with_values(schema: Schema, evidence: Evidence, j: int, x: np.ndarray) -> Evidence:
    """n rows of evidence, in which column j has the values x (n,); the one row may have a region of it."""
    n, column = len(x), schema.columns[j]
    rows = evidence.repeat(n)
    penalty, region = rows.log_penalty.copy(), rows.cell_regions()
    if region[0, j] >= 0:
        said = RegionTable(evidence).regions[int(region[0, j])]
        penalty += [meaning.region_log_likelihood(column, said, value) for value in x.tolist()]
    region[:, j] = -1
    value = rows.value.copy()
    value[:, j] = x
    return rows._replace(value=value, log_penalty=penalty, region=region if rows.has_regions else rows.region)


def within(schema: Schema, evidence: Evidence, j: int, regions: Sequence[meaning.Region]) -> Evidence:
    """n rows of evidence, of which the i-th also has column j in ``regions[i]``."""
    table, column = RegionTable(evidence), schema.columns[j]
    value, number = evidence.value.copy(), evidence.cell_regions()
    for i, region in enumerate(regions):
        x, old = float(value[i, j]), int(number[i, j])
        if math.isnan(x):
            number[i, j] = table.number(region if old < 0 else meaning.intersected(table.regions[old], region))
        elif not meaning.region_contains(column, region, x):
            value[i, j], number[i, j] = math.nan, table.number(meaning.NOWHERE)
    return table.evidence(value, number, evidence.log_penalty.copy())


def side_of(column: Column, op: str, x: float) -> meaning.Region:
    """The region of a numeric column that stands in a relation (``< <= > >= = !=``) to a number; atoms one by one."""
    if op in ("<", "<="):
        return _up_to(column, x, op == "<=")
    if op in (">", ">="):
        return _left_over(column, _up_to(column, x, op == ">"))
    at = _place_of_number(column, x)
    return at if op == "=" else _left_over(column, at)


def _up_to(column: Column, x: float, closed: bool) -> meaning.Region:
    if column.step > 0.0:
        place = (x - column.center) / column.step
        on_center = abs(place - round(place)) < _NEAR
        last = round(place) - (not closed) if on_center else math.floor(place)
        edge = column.center + (last + 0.5) * column.step
        return meaning.Region(((-math.inf, edge),), _atom_bits([atom < edge for atom in column.atoms]))
    return meaning.Region(((-math.inf, x),), _atom_bits([atom <= x if closed else atom < x for atom in column.atoms]))


def _place_of_number(column: Column, x: float) -> meaning.Region:
    if column.step > 0.0:
        place = round((x - column.center) / column.step)
        center = column.center + place * column.step
        if abs(center - x) > _NEAR * column.step:
            return meaning.NOWHERE
        lo, hi = center - 0.5 * column.step, center + 0.5 * column.step
        return meaning.Region(((lo, hi),), _atom_bits([lo < atom <= hi for atom in column.atoms]))
    return meaning.Region((), _atom_bits([atom == x for atom in column.atoms]))


def _left_over(column: Column, region: meaning.Region) -> meaning.Region:
    """What a region of at most one run leaves over."""
    runs: meaning.Runs = ((-math.inf, math.inf),)
    if region.runs:
        ((lo, hi),) = region.runs
        runs = tuple(run for run in ((-math.inf, lo), (hi, math.inf)) if run[0] < run[1])
    return meaning.Region(runs, ~region.atoms & ((1 << len(column.atoms)) - 1))


def _atom_bits(held: list[bool]) -> int:
    """The atoms that are held, as bits."""
    return sum(1 << k for k, is_in in enumerate(held) if is_in)


# ---- Evidence that a row's numbers are near given ones: their exact values, point masses and units do not matter.


def neighbourhood(schema: Schema, known: Evidence, radius: np.ndarray) -> Evidence:
    """The evidence with every known number x replaced by the interval x - radius to x + radius; radius (d,) >= 0."""
    value, region = known.value.copy(), known.cell_regions()
    lo, hi, atoms = [], [], []
    n_regions = first_new = len(known.run_start) - 1
    for j, column in enumerate(schema.columns):
        if column.is_categorical:
            continue
        rows = np.flatnonzero(~np.isnan(value[:, j]))
        numbers, place = np.unique(value[rows, j], return_inverse=True)
        region[rows, j] = n_regions + place
        value[rows, j] = np.nan
        n_regions += len(numbers)
        start, end, held = _intervals(column, numbers, float(radius[j]))
        lo.append(start)
        hi.append(end)
        atoms.append(held)
    n_new = n_regions - first_new
    if n_new == 0:
        return known
    return known._replace(
        value=value,
        region=region,
        run_start=np.append(known.run_start, known.run_start[-1] + 1 + np.arange(n_new, dtype=np.int32)),
        run_lo=np.concatenate([known.run_lo, *lo]),
        run_hi=np.concatenate([known.run_hi, *hi]),
        atoms=np.concatenate([known.atoms, *atoms]),
        run_log_weight=np.append(known.run_log_weight, np.zeros(n_new)),
    )


def _intervals(column: Column, x: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ends of the run around each number x (m,), on cell edges of a grid, and the atoms within as bits."""
    if column.step > 0.0:
        cell = np.round((x - column.center) / column.step)
        cells = np.floor(radius / column.step)
        lo, hi = (column.center + (cell + side * (cells + 0.5)) * column.step for side in (-1.0, 1.0))
    else:
        lo, hi = np.minimum(x - radius, np.nextafter(x, -np.inf)), np.maximum(x + radius, np.nextafter(x, np.inf))
    held = np.zeros(len(x), dtype=np.uint64)
    for k, atom in enumerate(column.atoms):
        is_near = (lo < atom) & (atom < hi) if column.step > 0.0 else (lo <= atom) & (atom <= hi)
        held |= is_near.astype(np.uint64) << np.uint64(k)
    return lo, hi, held
