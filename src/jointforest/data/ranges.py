"""Cells of which only a range is known: their texts, columns of flags, and imputed values of interval-censored cells.

A cell that is a range is missing, and has the number of its `Interval`. Learners that need a value get a draw from the
maximum likelihood estimate of the column's distribution (Turnbull 1976; `complete_column`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from .cells import ColumnCells, ranged
from .conditions import Censored, Interval
from .meaning import Region, meaning_of
from .schema import Column, Schema, snapped


class Ranges(NamedTuple):
    """Cells of a table that are ranges.

    number : int32 array (n, d). Which interval a cell has; -1 of cells that are no range.
    """

    number: np.ndarray
    intervals: tuple[Interval, ...]

    def take(self, rows: np.ndarray) -> Ranges:
        """Those of some rows."""
        return self._replace(number=self.number[rows])

    def select(self, columns: Sequence[int]) -> Ranges | None:
        """Those of some columns (-1: a column without ranges), in this order; None if there is none."""
        number = np.column_stack([self.number, np.full(len(self.number), -1, np.int32)])[:, list(columns)]
        return self._replace(number=number) if (number >= 0).any() else None

    def without_values(self, schema: Schema, X: np.ndarray) -> tuple[np.ndarray, Ranges | None]:
        """Numbers X (n, d) with the values of ranges that hold one value of a grid, and the other ranges, if any."""
        X, number = X.copy(), self.number.copy()
        for j in np.flatnonzero((number >= 0).any(axis=0)).tolist():
            rows, place, regions = self.of_column(j, schema.columns[j])
            lo, hi = np.array([_ends_of_region(schema.columns[j], region) for region in regions])[place].T
            is_value = hi - lo < 1.5 * schema.columns[j].step
            X[rows[is_value], j] = 0.5 * (lo + hi)[is_value]
            number[rows[is_value], j] = -1
        return X, self._replace(number=number) if (number >= 0).any() else None

    def of_column(self, j: int, column: Column) -> tuple[np.ndarray, np.ndarray, list[Region]]:
        """Rows with a range in column j, which of its R regions each has, and these."""
        rows = np.flatnonzero(self.number[:, j] >= 0)
        used, place = np.unique(self.number[rows, j], return_inverse=True)
        return rows, place.reshape(-1), [cast(Region, meaning_of(column, self.intervals[k])) for k in used.tolist()]


# ---- A flag column: whether the numbers of another column are exact.


def with_flag(cells: ColumnCells, flag: ColumnCells, name: str, of: Censored) -> ColumnCells:
    """The cells of a column; those that its flag marks are ranges."""
    if cells.codes is not None or cells.sort == "datetime":
        got = "dates" if cells.sort == "datetime" else "text"
        raise ValueError(f"column {name!r}: jf.censored expects numbers, got {got}; give durations in place of dates")
    truth = flag.values if flag.codes is None else np.append([_flag_value(x) for x in flag.labels], np.nan)[flag.codes]
    if flag.sort == "datetime" or (~np.isnan(truth) & (truth != 0.0) & (truth != 1.0)).any():
        raise ValueError(f"column {of.flag!r}: expected true and false, or 1 and 0, to say which {name!r} are exact")
    n = int(np.count_nonzero(flag.missing & ~cells.missing))
    if n:
        raise ValueError(
            f"column {of.flag!r}: {n:,} missing cells beside numbers of {name!r}; it must say which are exact"
        )
    is_range = ~cells.missing & (truth == (0.0 if of.event else 1.0))
    ends = cells.values[is_range].tolist()
    return ranged(
        cells, is_range, [Interval(x, None, "neither") if of.event else Interval(None, x, "neither") for x in ends]
    )


def _flag_value(label: Any) -> float:
    """A label as 0 or 1; 2 if it is neither."""
    truth = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0}
    return truth.get(str(label).strip().casefold(), 2.0)


# ---- Imputed values of interval-censored cells, by nonparametric maximum likelihood (Turnbull 1976).

_MOST_STEPS, _CLOSE = 500, 1e-7
_KNOTS = 200
"""Quantiles of exact values that show the shape of the distribution."""
_FEWEST = 5
"""Exact values between two ends whose quantiles are taken; fewer are knots of the curve."""
_ROWS_TO_TELL = 4_000
"""Rows from which on the straightest scale is taken. In fewer it may be chance, and a wrong scale is far off: below a
limit another scale than the normal one must be straighter by the root of the ratio. In 60 columns of 500 rows with 30 %
below a limit, means are off by .035 standard deviations in place of .040."""
_NEAR = 1.0
"""Standard normal units of the values beside an end from which the distribution beyond it is extrapolated."""


def complete_column(
    column: Column, x: np.ndarray, rows: np.ndarray, place: np.ndarray, regions: Sequence[Region]
) -> np.ndarray:
    """Numbers x (n,) with imputed values of interval-censored cells: ``rows`` have the regions ``place``."""
    # The masses between the ends of all ranges maximise the likelihood (Turnbull 1976). Between two ends lie quantiles
    # of the exact values there. Where there are next to none, values are those of a curve through the ends of known
    # mass. Beyond the outermost it goes on as before: a line of numbers, roots or logarithms by normal scores, or a
    # power.
    out, exact = x.copy(), np.sort(x[~np.isnan(x)])
    ends = np.array([_ends_of_region(column, region) for region in regions])
    limits = np.unique(ends[np.isfinite(ends)])
    bins = np.searchsorted(limits, exact)  # bin b lies above limit b - 1, up to limit b
    first = np.where(np.isinf(ends[:, 0]), 0, np.searchsorted(limits, ends[:, 0]) + 1)
    last = np.where(np.isinf(ends[:, 1]), len(limits), np.searchsorted(limits, ends[:, 1]))
    last = np.maximum(last, first)
    counts = np.bincount(place, minlength=len(regions)).astype(float)
    mass = _turnbull(np.bincount(bins, minlength=len(limits) + 1).astype(float), first, last, counts)
    below = np.concatenate([[0.0], np.cumsum(mass)])
    order = np.lexsort((rows, ends[place, 1], ends[place, 0]))
    own = place[order]
    # evenly spread for equal ranges, as for others
    share = np.modf(0.5 + np.arange(len(order)) * 0.6180339887498949)[0]
    at = below[first[own]] + share * (below[last[own] + 1] - below[first[own]])
    bin_of = np.clip(np.searchsorted(below, at, side="right") - 1, first[own], last[own])
    inside = (at - below[bin_of]) / np.where(mass[bin_of] > 0.0, mass[bin_of], 1.0)
    values = np.interp(at, *_curve(exact, limits, below, len(x)))
    start, size = np.searchsorted(bins, bin_of), np.bincount(bins, minlength=len(limits) + 1)[bin_of]
    some = np.flatnonzero(size >= _FEWEST)
    place_in = np.clip(np.clip(inside[some], 0.0, 1.0) * size[some] - 0.5, 0.0, size[some] - 1.0)
    left = start[some] + np.floor(place_in).astype(int)
    right = np.minimum(left + 1, start[some] + size[some] - 1)
    values[some] = exact[left] + (place_in - np.floor(place_in)) * (exact[right] - exact[left])
    out[rows[order]] = _values_inside(column, values, ends[own])
    return out


def _ends_of_region(column: Column, region: Region) -> tuple[float, float]:
    """Where a region begins and ends; atoms that are its ends lie inside."""
    held = [atom for k, atom in enumerate(column.atoms) if region.atoms >> k & 1]
    lows, highs = [lo for lo, _ in region.runs], [hi for _, hi in region.runs]
    if column.step == 0.0:
        lows, highs = lows + [math.nextafter(atom, -math.inf) for atom in held], highs + held
    if not lows:
        raise ValueError(f"column {column.name!r}: a range holds none of the values that the column can have")
    return min(lows), max(highs)


def _turnbull(known: np.ndarray, first: np.ndarray, last: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Mass of each of m bins that hold so many exact values, and of ranges from bin ``first`` to bin ``last``."""
    m = len(known)

    def spread(weight: np.ndarray) -> np.ndarray:
        return np.cumsum(np.bincount(first, weight, m + 1) - np.bincount(last + 1, weight, m + 1))[:m]

    mass = known + np.maximum(spread(counts / (last - first + 1)), 0.0)
    mass /= mass.sum()
    for _ in range(_MOST_STEPS):
        below = np.concatenate([[0.0], np.cumsum(mass)])
        inside = np.maximum(below[last + 1] - below[first], 1e-300)
        new = known + mass * np.maximum(spread(counts / inside), 0.0)
        new /= new.sum()
        step, mass = np.abs(new - mass).max(), new
        if step < _CLOSE:
            break
    return mass


def _curve(exact: np.ndarray, limits: np.ndarray, below: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Knots of the quantile function: shares, ascending, and the numbers with such a share of the column below them."""
    from scipy.special import ndtr, ndtri

    some = exact[np.linspace(0, len(exact) - 1, min(len(exact), _KNOTS)).astype(int)] if len(exact) else exact
    knots = np.union1d(limits, some)
    # the share below a knot, by the limits on either side of it and the exact values between them
    bin_of = np.searchsorted(limits, knots)
    count = np.searchsorted(exact, knots, side="right")
    first = np.searchsorted(exact, np.append(-np.inf, limits), side="right")
    total = np.diff(np.append(first, len(exact)))
    within = np.where(total[bin_of] > 0, (count - first[bin_of] - 0.5) / np.maximum(total[bin_of], 1), 1.0)
    is_limit = np.isin(knots, limits)
    share = below[bin_of] + np.where(is_limit, 1.0, np.clip(within, 0.0, 1.0)) * np.diff(below)[bin_of]
    share = np.maximum.accumulate(np.clip(share, 0.25 / n, 1.0 - 0.25 / n))
    kept = np.append(np.diff(share) > 1e-12, True)
    knots, share = knots[kept], share[kept]
    z = ndtri(share)
    shares, values = [], []
    for side, reach in ((0, -8.0), (-1, 8.0)):
        beside = np.abs(z[1 if side == 0 else max(len(z) - 2, 0)] - z[side]) if len(z) > 1 else 0.0
        near = np.abs(z - z[side]) <= beside + _NEAR  # beyond a point mass at the end
        if np.count_nonzero(near) < 3:
            near = np.argsort(np.abs(z - z[side]))[:3]
        of, to, back = _straightest(share[near], knots[near], n, knots[0] > 0.0, side == 0)
        du, dy = of(share[near]) - of(share[side]), to(knots[near]) - to(knots[side])
        slope = float(du @ dy / max(du @ du, 1e-300)) or float(abs(to(knots[side])) or 1.0)
        beyond = z[side] + np.linspace(0.0, 1.0, 400)[1:] * reach
        more = back(to(knots[side]) + slope * (of(ndtr(beyond)) - of(share[side])))
        if side:  # no heavier than a tail of constant hazard
            rate = (more[0] - knots[side]) / -np.log(ndtr(-beyond[0]) / ndtr(-z[side]))
            more = np.minimum(more, knots[side] - rate * np.log(ndtr(-beyond) / ndtr(-z[side])))
        of_more = ndtr(beyond)
        if side == 0 and knots[0] > 0.0:  # above 0 the curve is that of a distribution without what is not
            nothing = ndtr(np.interp(0.0, more[::-1], beyond[::-1]))
            of_more = share[0] * np.maximum(of_more - nothing, 0.0) / max(share[0] - nothing, 1e-300)
            more = np.maximum(more, 0.0)
        shares.append(of_more)
        values.append(more)
    # between knots a line by normal scores, or beside an end where nothing lies beyond by shares
    place, at = np.arange(len(z)), np.linspace(0.0, len(z) - 1.0, 20 * len(z))
    is_end = ((at < 1.0) & (share[0] < 0.3 / n)) | ((at > len(z) - 2.0) & (share[-1] > 1.0 - 0.3 / n))
    inner = np.where(is_end, np.interp(at, place, share), ndtr(np.interp(at, place, z)))
    values.insert(1, np.interp(at, place, knots))
    return np.concatenate([shares[0][::-1], inner, shares[1]]), np.concatenate([values[0][::-1], *values[1:]])


def _straightest(share: np.ndarray, x: np.ndarray, n: int, is_above_zero: bool, is_low: bool) -> tuple[Any, Any, Any]:
    """Functions of shares and of numbers by which these lie most on a line, and the inverse of the latter."""
    # They are those of a column of n rows.
    from scipy.special import ndtri

    choices: list[tuple[Any, Any, Any]] = [(ndtri, np.asarray, np.asarray)]
    if is_above_zero:
        choices += [(ndtri, np.sqrt, lambda y: np.sign(y) * y**2), (ndtri, np.log, _exp)]
        choices += [(np.log, np.log, _exp)] if is_low else []  # a power of the numbers
    if len(x) < 3 or np.ptp(share) == 0.0:
        return choices[0]
    bend = [1.0 - float(np.corrcoef(of(share), to(x))[0, 1]) for of, to, _ in choices]
    bend[0] *= min(n / _ROWS_TO_TELL, 1.0) ** 0.5 if is_low else 1.0
    return choices[int(np.argmin(bend))]


def _exp(y: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(y, 700.0))


def _values_inside(column: Column, values: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Values that the column can have, inside their ranges (lo, hi]."""
    lo, hi = ends.T
    half = 0.5 * column.step
    low, high = (lo + half, hi - half) if half > 0.0 else (np.nextafter(lo, np.inf), hi)
    with np.errstate(invalid="ignore"):
        return np.clip(snapped(column, np.clip(values, low, high)), low, high)


def complete_table(schema: Schema, X: np.ndarray, ranges: Ranges) -> np.ndarray:
    """Numbers X (n, d) with imputed values of interval-censored cells, column by column."""
    X = X.copy()
    for j in np.flatnonzero((ranges.number >= 0).any(axis=0)).tolist():
        X[:, j] = complete_column(schema.columns[j], X[:, j], *ranges.of_column(j, schema.columns[j]))
    return X
