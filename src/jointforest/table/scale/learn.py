"""A column's scale, learned from its values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..schema import Column
from .bins import Bins, cut
from .scale import Scale
from .segments import decay_of_mean, log_part
from .tails import tail_rows, tail_scale
from .tally import ABSENT, Tally, count_places

MAX_LEVEL_CODES = 1024
"""Levels of a categorical column beyond this number share codes."""
MAX_POINTS = 8192
"""Cells of a grid that have a mass of their own inside bins."""
RUN = 32
"""Distinct values in a uniform piece."""
GAP_ROWS = 0.01
"""Least rows that an interval without any row counts for."""
SKEW = 3.0
"""Standard deviations by which the mean of a piece's rows differs from its middle before it is not uniform."""


def learn_scale(column: Column, values: np.ndarray, weight: np.ndarray | None, n_codes: int) -> Scale:
    """The scale of a column.

    Numbers get at most ``n_codes`` ordered bins: a place (cell of a grid, or atom) that holds 1/K of the weight is
    alone in its bin, the others are cut at equal weight. Inside a bin lie

    - points: atoms, and cells of a grid that several rows share, with Good-Turing discount (D = n1 / (n1 + 2 n2) rows
      taken off each);
    - pieces over runs of about 32 distinct values, with the discounted rows and those of all other values: uniform,
      or exponential with the mean of the rows where these are clearly nearer to one end;
    - in the outermost bins, open exponential tails with about one row.

    Levels of categorical columns are codes, but of more than 1,024 the rarest share codes.

    Parameters
    ----------
    column : Column
    values : float64 array (n,)
        As `frames.encode` gives them: numbers or level codes, NaN where missing.
    weight : float64 array (n,) or None
        Weights of the rows, at least 0; None: all 1.
    n_codes : int
        Most bins of a numeric column.

    Returns
    -------
    Scale
        No number, and no level of the column, has density 0.

    Examples
    --------
    >>> age = Column("age", "integer", "int64", step=1.0)
    >>> scale = learn_scale(age, np.repeat([30.0, 31.0, 40.0], [50, 49, 1]), None, 8)
    >>> scale.n_codes, scale.lo.tolist()
    (3, [-inf, 29.5, 30.5, 31.5, 40.5])
    """
    if column.is_categorical:
        return _of_levels(len(column.levels), values, weight)
    tally = count_places(column, values, weight)
    bins = cut(tally, n_codes)
    mass, extra = _discounted(tally, bins)
    segments = _with_tails(tally, bins, _inside(tally, bins, mass, extra))
    lo, hi, rate = segments.lo, segments.hi, segments.rate
    if column.step > 0:
        lo, hi = column.center + lo * column.step, column.center + hi * column.step
        rate = rate / column.step
    n = int(bins.of_place[-1]) + 1
    rows = np.bincount(segments.code, segments.rows, n)
    log_mass = np.log(segments.rows) - np.log(rows)[segments.code]
    return Scale(n, column.step, column.center, lo, hi, rate, segments.code.astype(np.int32), log_mass)


class _Segments(NamedTuple):
    """Segments in places, with their weight in rows."""

    lo: np.ndarray
    hi: np.ndarray
    rate: np.ndarray
    code: np.ndarray
    rows: np.ndarray

    def ordered(self) -> _Segments:
        order = np.lexsort((self.hi, self.lo))
        return _Segments(*(field[order] for field in self))


def _of_levels(n_levels: int, values: np.ndarray, weight: np.ndarray | None) -> Scale:
    """Levels as codes; of more than MAX_LEVEL_CODES the rarest share the upper half of the codes, dealt out in turn."""
    used = ~np.isnan(values)
    rows = np.bincount(values[used].astype(np.intp), None if weight is None else weight[used], n_levels) + ABSENT
    code = np.arange(n_levels)
    if n_levels > MAX_LEVEL_CODES:
        own = MAX_LEVEL_CODES // 2
        rank = np.empty(n_levels, dtype=np.intp)
        rank[np.argsort(-rows, kind="stable")] = np.arange(n_levels)
        code = np.where(rank < own, rank, own + (rank - own) % (MAX_LEVEL_CODES - own))
    n_codes = min(n_levels, MAX_LEVEL_CODES)
    log_mass = np.log(rows) - np.log(np.bincount(code, rows, n_codes))[code]
    place, flat = np.arange(float(n_levels)), np.zeros(n_levels)
    return Scale(n_codes, 0.0, 0.0, place, place.copy(), flat, code.astype(np.int32), log_mass)


def _discounted(tally: Tally, bins: Bins) -> tuple[np.ndarray, np.ndarray]:
    """Rows that stay at each place as a point, and rows that go to uniform pieces, both (m,)."""
    if tally.half == 0:
        return np.where(tally.is_atom, tally.weight, 0.0), np.where(tally.is_atom, 0.0, tally.weight)
    once, twice = float((tally.rows == 1).sum()), float((tally.rows == 2).sum())
    discount = once / (once + 2 * twice) if once else 0.0
    repeats = tally.rows >= 2
    if repeats.sum() > MAX_POINTS:
        heaviest = np.argsort(np.where(repeats, -tally.weight, 0.0), kind="stable")[:MAX_POINTS]
        repeats = np.zeros(len(repeats), dtype=bool)
        repeats[heaviest] = True
    point = np.where(repeats | bins.is_heavy, tally.weight * (1 - discount / np.maximum(tally.rows, 2.0)), 0.0)
    return point, tally.weight - point


def _inside(tally: Tally, bins: Bins, point: np.ndarray, spread: np.ndarray) -> _Segments:
    """Segments between the outermost places: points, and uniform pieces that fill what is between them."""
    pieces = _pieces(tally, bins, spread)
    at = np.flatnonzero(point > 0)
    place = tally.place[at]
    if tally.half > 0:
        return _split_cells(pieces, place, bins.of_place[at], point[at])
    edges = np.union1d(np.union1d(pieces.lo, pieces.hi), place)
    if len(edges) > 1 and np.isinf(_width(edges[0], edges[-1])):
        edges = np.union1d(edges, [0.0])
    whole = _shared_out(pieces, edges)
    flat = np.zeros(len(at))
    points = _Segments(place, place, flat, bins.of_place[at], point[at])
    return _Segments(*(np.concatenate(both) for both in zip(whole, points, strict=True))).ordered()


def _pieces(tally: Tally, bins: Bins, spread: np.ndarray) -> _Segments:
    """Uniform pieces, disjoint, that cover every bin but its points; heavy cells of a grid are left out."""
    m = len(tally.place)
    first, last = _ends(tally, bins)
    edge = np.concatenate([[first], bins.edge, [last]])
    start = np.flatnonzero(np.concatenate([[True], np.diff(bins.of_place) != 0]))
    size = np.diff(np.append(start, m))
    runs = np.maximum(np.rint(size / RUN), 1)
    rank = np.arange(m) - np.repeat(start, size)
    run = np.floor(rank * np.repeat(runs / size, size) + 1e-9)
    begins = np.flatnonzero(np.concatenate([[True], (np.diff(run) != 0) | (np.diff(bins.of_place) != 0)]))
    lo, hi = edge[begins], np.append(edge[begins[1:]], last)
    heavy = bins.is_heavy[begins]
    # a heavy place has what lies between it and the next heavy one
    lo = np.where(heavy, tally.place[begins] + tally.half, lo)
    rows = np.maximum(np.add.reduceat(spread, begins), GAP_ROWS)
    rate = np.where(heavy, 0.0, _slopes(tally.place, spread, begins, lo, hi))
    keep = lo < hi
    return _Segments(lo[keep], hi[keep], rate[keep], bins.of_place[begins][keep], rows[keep])


def _slopes(place: np.ndarray, spread: np.ndarray, begins: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Rates of pieces whose rows are clearly nearer to one end: the rate that gives the piece the mean of its rows."""
    run = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(place))))
    rows = np.add.reduceat(spread, begins)
    width = _width(lo, hi)
    usable = (rows > 0) & (width > 1e-290) & np.isfinite(width)
    with np.errstate(all="ignore"):
        fraction = np.where(usable[run], (place - lo[run]) / width[run], 0.5)
        mean = np.add.reduceat(np.clip(fraction, 0.0, 1.0) * spread, begins) / rows
        skewed = np.flatnonzero(usable & (np.abs(mean - 0.5) * np.sqrt(12 * rows) > SKEW))
    rate = np.zeros(len(begins))
    rate[skewed] = decay_of_mean(mean[skewed]) / width[skewed]
    return rate


def _ends(tally: Tally, bins: Bins) -> tuple[float, float]:
    """Where the pieces begin and end; a single value without mass gets an interval around it."""
    first, last = float(tally.place[0]) - tally.half, float(tally.place[-1]) + tally.half
    if tally.half > 0:
        return first, last
    if len(tally.place) == 1 and not tally.is_atom[0]:
        reach = max(0.5, float(np.spacing(abs(first))) * 2.0**20)
        return first - reach, last + reach
    return first if tally.is_atom[0] else float(np.nextafter(first, -np.inf)), last


def _width(lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(hi - lo)


def _shared_out(pieces: _Segments, edges: np.ndarray) -> _Segments:
    """Pieces cut at the edges, each part with its share of the rows."""
    lo, hi = edges[:-1], edges[1:]
    of = np.searchsorted(pieces.lo, lo, side="right") - 1
    inside = (of >= 0) & (hi <= pieces.hi[of]) if len(pieces.lo) else np.zeros(len(lo), dtype=bool)
    lo, hi, of = lo[inside], hi[inside], of[inside]
    part = np.exp(log_part(pieces.lo[of], pieces.hi[of], pieces.rate[of], lo, hi))
    return _Segments(lo, hi, pieces.rate[of], pieces.code[of], pieces.rows[of] * np.maximum(part, 1e-300))


def _split_cells(pieces: _Segments, cell: np.ndarray, code: np.ndarray, rows: np.ndarray) -> _Segments:
    """Pieces on a grid cut around cells with rows of their own; a cell's segment has both masses."""
    around = np.union1d(cell - 0.5, cell + 0.5)
    parts = _shared_out(pieces, np.union1d(np.union1d(pieces.lo, pieces.hi), around))
    alone = ~np.isin(cell - 0.5, parts.lo)
    added = np.zeros(len(parts.lo))
    added[np.searchsorted(parts.lo, cell[~alone] - 0.5)] = rows[~alone]
    n = int(alone.sum())
    cells = _Segments(cell[alone] - 0.5, cell[alone] + 0.5, np.zeros(n), code[alone], rows[alone])
    parts = parts._replace(rows=parts.rows + added)
    return _Segments(*(np.concatenate(both) for both in zip(parts, cells, strict=True))).ordered()


def _with_tails(tally: Tally, bins: Bins, inner: _Segments) -> _Segments:
    """The segments, with open tails before and after them."""
    n_codes = int(bins.of_place[-1]) + 1
    bin_rows = np.bincount(inner.code, inner.rows, n_codes)
    low = tail_rows(tally, 0, float(bin_rows[0]))
    high = tail_rows(tally, -1, float(bin_rows[-1]))
    below, above = 1 / tail_scale(tally, 0), 1 / tail_scale(tally, -1)
    return _Segments(
        lo=np.concatenate([[-np.inf], inner.lo, [inner.hi[-1]]]),
        hi=np.concatenate([[inner.lo[0]], inner.hi, [np.inf]]),
        rate=np.concatenate([[-below], inner.rate, [above]]),
        code=np.concatenate([[0], inner.code, [n_codes - 1]]),
        rows=np.concatenate([[low], inner.rows, [high]]),
    )
