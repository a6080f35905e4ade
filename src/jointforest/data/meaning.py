"""What a condition means in a column, as the kernels see it: a value, or runs of cells and a set of atoms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from . import times
from .conditions import About, AllOf, AnyOf, Interval, Likely, Not, PerRow, Soft, is_time_span, normal, width
from .range_texts import interval_of, range_text
from .schema import NUMERIC_KINDS, Column, cell_place, cell_places, place_on_grid, snapped

# ---- Unions of half-open intervals ``(lo, hi]``: disjoint, ascending, never empty, never touching.

_Run = tuple[float, float]
Runs = tuple[_Run, ...]


def union(parts: Iterable[Runs]) -> Runs:
    """The union of regions, as ascending disjoint runs."""
    merged: list[_Run] = []
    for lo, hi in sorted(run for runs in parts for run in runs if run[0] < run[1]):
        if merged and lo <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(hi, merged[-1][1]))
        else:
            merged.append((lo, hi))
    return tuple(merged)


def intersection(a: Runs, b: Runs) -> Runs:
    """The intersection of two regions, as ascending disjoint runs."""
    return tuple(run for run, _, _ in overlaps(a, b))


def overlaps(a: Runs, b: Runs) -> list[tuple[_Run, int, int]]:
    """Each common part of a run of one region and a run of the other, with both runs' numbers; runs may touch."""
    common = []
    i = k = 0
    while i < len(a) and k < len(b):
        lo, hi = max(a[i][0], b[k][0]), min(a[i][1], b[k][1])
        if lo < hi:
            common.append(((lo, hi), i, k))
        if a[i][1] < b[k][1]:
            i += 1
        else:
            k += 1
    return common


def complement(runs: Runs, everything: _Run) -> Runs:
    """The points of the run ``everything`` that are in no run of the region."""
    edges = [everything[0], *(edge for run in runs for edge in run), everything[1]]
    return tuple((lo, hi) for lo, hi in zip(edges[::2], edges[1::2], strict=True) if lo < hi)


def inside(runs: Runs, x: float) -> bool:
    """Whether a point is in a run."""
    return any(lo < x <= hi for lo, hi in runs)


_EXACT = 1e12  # cells from the origin, within which edges of neighbouring cells are the same floats


class Region(NamedTuple):
    """Part of a column: half-open runs ``(lo, hi]`` on cell edges, and bit k of ``atoms`` for the k-th atom. In soft
    evidence the parts have likelihoods: ``run_log_weights`` has one entry a run, ``atom_log_weights`` one a bit of
    ``atoms`` (0 where it is not set). Both, or either, are () where all are 0, so that equal regions are equal."""

    runs: Runs
    atoms: int
    run_log_weights: tuple[float, ...] = ()
    atom_log_weights: tuple[float, ...] = ()

    def run_weights(self) -> tuple[float, ...]:
        """Log-likelihood of each run."""
        return self.run_log_weights or (0.0,) * len(self.runs)

    def atom_weights(self) -> tuple[float, ...]:
        """Log-likelihood of each atom up to the last one in the region."""
        return self.atom_log_weights or (0.0,) * self.atoms.bit_length()


NOWHERE = Region((), 0)


def meaning_of(column: Column, condition: Any) -> float | Region | None:
    """The meaning of a condition: a value (number or level code), a region, or None if it is no condition."""
    # Raises ValueError for unknown levels, an order of unordered levels, reversed intervals, and single values of a
    # column with a density (an event of probability 0).
    refuse_pair(column, condition)
    condition = _as_range(column, normal(condition))
    meaning = None if condition is None else _meaning(column, condition)
    return _all_moved_into(column, meaning) if column.only and isinstance(meaning, Region) else meaning


def _all_moved_into(column: Column, region: Region) -> Region:
    """All numbers that `snapped` moves into a region, of a column with a calendar."""
    # Only numbers near an end of the region may be moved to its other side. They are tested one by one.
    ends = np.array([end for run in region.runs for end in run if math.isfinite(end)])
    if len(ends) == 0:
        return region
    unit = times.DAY if column.kind == "datetime" else 1.0
    reach = np.arange(-math.ceil(times.REACH[column.only] * unit / column.step), 1)
    # places of cells: the last one below each end, and as many on both sides as numbers are moved by
    last = np.unique(np.rint((ends - column.center) / column.step - 0.5))
    near = np.unique(np.add.outer(last, np.append(reach, 1 - reach)))
    is_inside = log_likelihoods(column, region, snapped(column, column.center + near * column.step)) == 0.0
    return Region(
        union([intersection(region.runs, complement(_runs_of(column, near), _everything(column))),
               _runs_of(column, near[is_inside])]), region.atoms
    )  # fmt: skip


def _as_range(column: Column, condition: Any) -> Any:
    """The interval of a text such as '<0.5' in a column of numbers; any other condition as it is."""
    is_number = column.kind in NUMERIC_KINDS and column.kind != "datetime" and not times.is_span(column.dtype)
    found = range_text(condition) if is_number and isinstance(condition, str) else None
    if found is None or (column.written is not None and column.written.sort != "number"):
        return condition
    try:
        ends = {
            end: float(end) if column.written is None else column.to_number(end) + column.zero for end in found.ends
        }
    except ValueError:
        return condition
    return interval_of(found, ends) or condition


def refuse_pair(column: Column, condition: Any) -> None:
    """Raise ValueError for a tuple of two numbers or dates: an interval to some, two values to others."""
    if isinstance(condition, tuple) and len(condition) == 2 and column.kind in (*NUMERIC_KINDS, "ordered"):
        lo, hi = condition
        raise ValueError(
            f"column {column.name!r}: the pair ({lo!r}, {hi!r}) may be an interval or two values; "
            f"did you mean between({lo!r}, {hi!r}) or [{lo!r}, {hi!r}]?"
        )


def contains(column: Column, condition: Any, number: float) -> bool:
    """Whether a number (or level code) satisfies a condition; on a grid, whether the centre of its cell does."""
    condition = _normal_form(column, condition)
    if isinstance(condition, AnyOf):
        return any([contains(column, part, number) for part in condition.conditions])
    if isinstance(condition, AllOf):
        return all([contains(column, part, number) for part in condition.conditions])
    if isinstance(condition, Not):
        return not contains(column, condition.condition, number)
    if isinstance(condition, Interval):
        lo, hi = _ends_on_grid(column, condition)
        at = cell_place(column, number)
        above = at >= lo if condition.closed in ("both", "left") else at > lo
        below = at <= hi if condition.closed in ("both", "right") else at < hi
        return (above or lo == -math.inf) and (below or hi == math.inf)
    return cell_place(column, number) == cell_place(column, column.to_number(condition))


def region_contains(column: Column, region: Region, number: float) -> bool:
    """Whether a number lies in a region: by its atom, or the centre of its cell."""
    return region_log_likelihood(column, region, number) > -math.inf


def region_log_likelihood(column: Column, region: Region, number: float) -> float:
    """Log-likelihood that a region gives to a number, by its atom or the centre of its cell; -inf outside."""
    at = cell_place(column, number)
    for k, atom in enumerate(column.atoms):
        if cell_place(column, atom) == at:
            return region.atom_weights()[k] if region.atoms >> k & 1 else -math.inf
    x = column.center + at * column.step if column.step > 0.0 else number
    for (lo, hi), weight in zip(region.runs, region.run_weights(), strict=True):
        if lo < x <= hi:
            return weight
    return -math.inf


def log_likelihoods(column: Column, region: Region, numbers: np.ndarray) -> np.ndarray:
    """`region_log_likelihood` of many numbers, (n,)."""
    at = numbers if column.step == 0.0 else cell_places(column, numbers)
    x = at if column.step == 0.0 else column.center + at * column.step
    found = np.full(len(x), -np.inf)
    if region.runs:
        lo, hi = np.array(region.runs).T
        run = np.minimum(np.searchsorted(hi, x), len(hi) - 1)  # the first that does not end below x
        found = np.where((lo[run] < x) & (x <= hi[run]), np.array(region.run_weights())[run], -np.inf)
    for k, atom in enumerate(column.atoms):
        found[at == cell_place(column, atom)] = region.atom_weights()[k] if region.atoms >> k & 1 else -math.inf
    return found


def intersected(a: Region, b: Region) -> Region:
    """What lies in both regions of one column; likelihoods multiply."""
    atoms = a.atoms & b.atoms
    if not (a.run_log_weights or a.atom_log_weights or b.run_log_weights or b.atom_log_weights):
        return Region(intersection(a.runs, b.runs), atoms)
    of_a, of_b = a.run_weights(), b.run_weights()
    runs = [(run, of_a[i] + of_b[k]) for run, i, k in overlaps(a.runs, b.runs)]
    return weighed(runs, atoms, [x + y for x, y in zip(a.atom_weights(), b.atom_weights(), strict=False)])


def weighed(runs: Iterable[tuple[_Run, float]], atoms: int, atom_log_weights: Sequence[float]) -> Region:
    """The region of disjoint ascending runs and atoms with their log-likelihoods; equal neighbours are made one run."""
    merged: list[tuple[_Run, float]] = []
    for (lo, hi), weight in runs:
        if merged and merged[-1][0][1] == lo and merged[-1][1] == weight:
            merged[-1] = ((merged[-1][0][0], hi), weight)
        else:
            merged.append(((lo, hi), weight))
    of_runs = tuple(weight for _, weight in merged)
    of_atoms = tuple(atom_log_weights[k] if atoms >> k & 1 else 0.0 for k in range(atoms.bit_length()))
    return Region(
        tuple(run for run, _ in merged), atoms, of_runs if any(of_runs) else (), of_atoms if any(of_atoms) else ()
    )


def _meaning(column: Column, condition: Any) -> float | Region:
    if isinstance(condition, AllOf):
        parts = [_meaning(column, _normal_form(column, part)) for part in condition.conditions]
        values = [part for part in parts if not isinstance(part, Region)]
        if values:
            return values[0] if contains(column, condition, values[0]) else NOWHERE
    elif not isinstance(condition, AnyOf | Not | Interval):
        return column.to_number(_normal_form(column, condition))
    return _region(column, condition, strict=True)


def _region(column: Column, condition: Any, strict: bool) -> Region:
    condition = _normal_form(column, condition)
    if isinstance(condition, AnyOf):
        points = _region_of_values(column, condition.conditions, strict)
        if points is not None:
            return points
        if strict:
            _check_points(column, condition)
        parts = [_region(column, part, strict) for part in condition.conditions]
        return Region(union(part.runs for part in parts), reduce(int.__or__, [p.atoms for p in parts], 0))
    if isinstance(condition, AllOf):
        parts = [_region(column, part, strict=False) for part in condition.conditions]
        return reduce(intersected, parts, Region((_everything(column),), (1 << len(column.atoms)) - 1))
    if isinstance(condition, Not):
        inner = _region(column, condition.condition, strict=False)
        others = ~inner.atoms & ((1 << len(column.atoms)) - 1)
        return Region(complement(inner.runs, _everything(column)), others)
    return Region(_runs(column, condition), _atoms(column, condition))


def _region_of_values(column: Column, values: Sequence[Any], strict: bool) -> Region | None:
    """The region of plain values, all at once; None where one is something else, or is refused, or there is none."""
    if not values:
        return None
    if column.is_categorical:
        codes = [column.code(value) if isinstance(value, str | bool) else None for value in values]
        if None in codes:
            return None
        cells = np.array(codes, dtype=np.float64)
    else:
        numbers = _plain_numbers(column, values)
        if numbers is None:
            return None
        if column.step == 0.0:
            held = np.isin(column.atoms, numbers)
            is_refused = strict and not np.isin(numbers, column.atoms).all()
            return None if is_refused else Region((), sum(1 << k for k in np.flatnonzero(held).tolist()))
        cells = cell_places(column, numbers)
    on = np.isin([cell_place(column, atom) for atom in column.atoms], cells)
    return Region(_runs_of(column, np.unique(cells)), sum(1 << k for k in np.flatnonzero(on).tolist()))


def _runs_of(column: Column, cells: np.ndarray) -> Runs:
    """Runs of some cells, in ascending places."""
    first = np.flatnonzero(np.diff(cells, prepend=-np.inf) > 1.0)
    last = np.append(first[1:], len(cells))[: len(first)] - 1
    ends = zip(cells[first].tolist(), cells[last].tolist(), strict=True)
    return tuple((_edge(column, a - 0.5), _edge(column, b + 0.5)) for a, b in ends)


def _plain_numbers(column: Column, values: Sequence[Any]) -> np.ndarray | None:
    """Values of a column of numbers as an array; None unless all are finite numbers, not too far out on the grid."""
    kinds = (int, float, np.integer, np.floating)
    if column.kind == "datetime" or not all(isinstance(x, kinds) and not isinstance(x, bool) for x in values):
        return None
    try:
        numbers = np.array([float(x) for x in values])
    except OverflowError:
        return None
    is_far = not np.isfinite(numbers).all() or (column.step > 0.0 and np.abs(numbers).max() > _EXACT * column.step)
    return None if is_far else numbers


def _check_points(column: Column, condition: AnyOf) -> None:
    """Single values in a density have probability 0, which is not meant by a set of them."""
    for part in condition.conditions:
        if isinstance(part, AnyOf) or column.is_categorical or column.step > 0.0:
            continue
        value = _meaning(column, _normal_form(column, part))
        if not isinstance(value, Region) and value not in column.atoms:
            raise ValueError(
                f"column {column.name!r} has a density, in which the single value {value:g} has probability 0; "
                f"use an interval such as between({value:g} - h, {value:g} + h) in place of a set of values"
            )


def _runs(column: Column, condition: Any) -> Runs:
    """Runs of an interval or a scalar."""
    if isinstance(condition, Interval):
        lo, hi = _ends_on_grid(column, condition)
        if not column.is_categorical and column.step == 0.0:
            return ((lo, hi),) if lo < hi else ()
        first = _first_whole(lo, condition.closed in ("both", "left"))
        last = -_first_whole(-hi, condition.closed in ("both", "right"))
    else:
        number = column.to_number(condition)
        if not column.is_categorical and column.step == 0.0:
            return ()
        first = last = cell_place(column, number)
    everything = _everything(column)
    start, end = max(_edge(column, first - 0.5), everything[0]), min(_edge(column, last + 0.5), everything[1])
    return ((start, end),) if start < end else ()


def _first_whole(end: float, closed: bool) -> float:
    """First whole number from an end on."""
    if math.isinf(end):
        return end
    return float(math.ceil(end) if closed else math.floor(end) + 1)


def _edge(column: Column, cells: float) -> float:
    return cells if column.is_categorical else column.center + cells * column.step


def _everything(column: Column) -> _Run:
    return (-0.5, len(column.levels) - 0.5) if column.is_categorical else (-math.inf, math.inf)


def _atoms(column: Column, condition: Any) -> int:
    return sum(1 << k for k, atom in enumerate(column.atoms) if contains(column, condition, atom))


def _ends_on_grid(column: Column, interval: Interval) -> tuple[float, float]:
    """Ends of an interval as places on the grid (numbers where there is none, codes if ordered)."""
    if column.kind == "categorical":
        raise ValueError(
            f"column {column.name!r} has no order, so {interval!r} means nothing; "
            "list the levels that are meant, or learn the column as 'ordered'"
        )
    lo, hi = normal(interval.lo), normal(interval.hi)
    low = -math.inf if lo is None else _end(column, lo)
    high = math.inf if hi is None else _end(column, hi)
    if low > high:
        raise ValueError(f"column {column.name!r}: the interval from {lo!r} to {hi!r} is reversed")
    return place_on_grid(column, low), place_on_grid(column, high)


def _end(column: Column, value: Any) -> float:
    """End of an interval; infinite ones are no bounds."""
    if not column.is_categorical and isinstance(value, float) and math.isinf(value):
        return value
    return column.to_number(value)


def _normal_form(column: Column, condition: Any) -> Any:
    """The condition in its normal form; it must be a condition."""
    condition = _as_range(column, normal(condition))
    if condition is None:
        raise ValueError(f"column {column.name!r}: None (nothing known) cannot be part of a condition; leave it out")
    if isinstance(condition, PerRow):
        raise ValueError(f"column {column.name!r}: PerRow cannot be inside another PerRow, or a condition of one row")
    if isinstance(condition, Soft):
        raise ValueError(
            f"column {column.name!r}: {condition!r} is soft evidence, which cannot be negated or be one of several "
            "alternatives; give each alternative its likelihood: likely({...})"
        )
    return condition


# ---- What soft evidence means in a column, as the kernels see it: runs of cells and atoms with log-likelihoods.

_FAR = 8.0
"""Standard deviations of a measurement beyond which a value is ruled out: its likelihood is 1e-14 of the greatest."""
_STEPS = 160
"""Steps of a staircase, each of a tenth of a standard deviation; wider cells of a grid are taken one by one."""


def soft_region(column: Column, condition: Likely | About) -> Region:
    """The region with likelihoods of soft evidence; raises ValueError for values that the column cannot have."""
    return _of_likely(column, condition) if isinstance(condition, Likely) else _of_about(column, condition)


def _of_likely(column: Column, condition: Likely) -> Region:
    parts = [(_likely_region(column, key), key, likelihood) for key, likelihood in condition.likelihoods]
    for k, (one, key, _) in enumerate(parts):
        for other, second, _ in parts[:k]:
            both = intersected(one, other)
            if both.runs or both.atoms:
                raise ValueError(
                    f"column {column.name!r}: {second!r} and {key!r} overlap, so some value has two likelihoods; "
                    "name each value once (closed='left' or 'right' leaves an end out)"
                )
    if condition.others > 0.0:
        others = meaning_of(column, AllOf(*(Not(normal(key)) for _, key, _ in parts)))
        assert isinstance(others, Region)
        parts.append((others, "others", condition.others))
    parts = [(part, key, x) for part, key, x in parts if x > 0.0 and (part.runs or part.atoms)]
    top = max((x for _, _, x in parts), default=1.0)
    # a quotient that underflows is tiny, but not ruled out
    logs = [min(math.log(x) - math.log(top), 0.0) if x < top else 0.0 for _, _, x in parts]
    runs = sorted((run, weight) for (part, _, _), weight in zip(parts, logs, strict=True) for run in part.runs)
    atoms, of_atoms = 0, [0.0] * len(column.atoms)
    for (part, _, _), weight in zip(parts, logs, strict=True):
        atoms |= part.atoms
        for k in range(len(column.atoms)):
            if part.atoms >> k & 1:
                of_atoms[k] = weight
    return weighed(runs, atoms, of_atoms)


def _likely_region(column: Column, key: object) -> Region:
    """The region of one entry of `likely`."""
    key = normal(key)
    if key is None:
        raise ValueError(f"column {column.name!r}: likely(...) says how likely values are, not that one is missing")
    region = meaning_of(column, key if isinstance(key, AnyOf) else AnyOf(key))
    assert isinstance(region, Region)
    return region


def _of_about(column: Column, condition: About) -> Region:
    if column.is_categorical:
        raise ValueError(
            f"column {column.name!r} is {column.kind}: {condition!r} is a measurement of a number; "
            "use likely({level: likelihood, ...})"
        )
    if column.kind != "datetime" and not times.is_span(column.dtype) and is_time_span(condition.sd):
        raise ValueError(f"column {column.name!r} is {column.kind}: expected a number as sd, got {condition.sd!r}")
    mean, sd = column.to_number(condition.value), width(condition.sd)
    sharp = max(sd / 16.0, column.step)
    if not (math.isfinite(2.0 * _FAR * sd) and abs(mean) < 2.0**49 * sharp):
        raise ValueError(
            f"column {column.name!r}: {condition!r} is finer, or wider, than numbers are; "
            "give the value itself, or None"
        )
    if column.step > 0.0:
        edges, weights = _region_on_grid(column, mean, sd)
    else:
        edges, weights = mean + sd * _PLACES, _WEIGHTS
    new = np.append(True, np.diff(weights) != 0.0)  # equal neighbours are one run
    edges, weights = np.append(edges[:-1][new], edges[-1]), weights[new]
    of_atoms = [_atom_weight(column, atom, mean, sd, edges, weights) for atom in column.atoms]
    held = sum(1 << k for k, weight in enumerate(of_atoms) if weight > -math.inf)
    of_atoms = [weight if weight > -math.inf else 0.0 for weight in of_atoms[: held.bit_length()]]
    return Region(
        tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)),
        held,
        tuple(weights.tolist()) if weights.any() else (),
        tuple(of_atoms) if any(of_atoms) else (),
    )


def _atom_weight(column: Column, atom: float, mean: float, sd: float, edges: np.ndarray, weights: np.ndarray) -> float:
    """Log-likelihood of an atom, on a grid that of its cell; -inf if it is too far off."""
    if column.step > 0.0:
        k = int(np.searchsorted(edges, atom)) - 1
        return float(weights[k]) if 0 <= k < len(weights) else -math.inf
    z = (atom - mean) / sd
    return -0.5 * z * z if abs(z) <= _FAR else -math.inf


def _region_on_grid(column: Column, mean: float, sd: float) -> tuple[np.ndarray, np.ndarray]:
    """Edges (k + 1,) and log-likelihoods (k,) of cells, or if the grid is fine of steps of cells; atoms' stay alone."""
    at, spread = place_on_grid(column, mean), sd / column.step
    nearest = float(math.floor(at + 0.5))
    # likelihoods are relative to the best cell's: a precise measurement between two centres leaves both
    reach = math.hypot(_FAR * spread, nearest - at)
    first, last = min(math.ceil(at - reach), nearest), max(math.floor(at + reach), nearest)
    ends = np.floor(np.linspace(first, last + 1.0, int(min(_STEPS, last - first + 1)) + 1))
    alone = np.array([cell for atom in column.atoms if first <= (cell := cell_place(column, atom)) <= last])
    if len(alone):
        ends = np.unique(np.concatenate([ends, alone, alone + 1.0]))
    lowest = ends[:-1]  # the numbers of the first cells of the steps
    with np.errstate(over="ignore"):
        weights = 0.5 * (nearest - lowest) * (nearest + lowest - 2.0 * at) / spread / spread
    several = np.diff(ends) > 1.0
    if several.any():
        weights[several] = _step_means((ends - 0.5 - at) / spread)[several]
    kept = np.flatnonzero(weights > -0.5 * _FAR * _FAR - 1.0)  # the others are at the ends
    ends, weights = ends[kept[0] : kept[-1] + 2], np.minimum(weights[kept[0] : kept[-1] + 1], 0.0)
    return column.center + (ends - 0.5) * column.step, weights


def _step_means(z: np.ndarray) -> np.ndarray:
    """Logs of the means of exp(-z^2 / 2) over the steps between these ascending places, (k - 1,)."""
    # Simpson's rule over few parts of each step: steps are short, or cells of a fine grid
    low, high = z[:-1], z[1:]
    points = low + (high - low) * np.linspace(0.0, 1.0, 9)[:, None]
    simpson = np.array([1, 4, 2, 4, 2, 4, 2, 4, 1]) / 24.0
    return np.asarray(np.log((simpson[:, None] * np.exp(-0.5 * points * points)).sum(axis=0)))


_PLACES = np.linspace(-_FAR, _FAR, _STEPS + 1)
"""Edges of a staircase, in standard deviations from the measured value."""
_WEIGHTS = _step_means(_PLACES)
