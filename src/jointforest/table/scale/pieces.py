"""The segments of a numeric column: pieces over runs of places, points among them, tails beyond. Lengths in places."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .bins import Bins
from .points import point_rows
from .runs import Runs, runs_of
from .segments import decay_of_mean, log_part
from .tails import upper_tail
from .tally import Tally, mirrored

GAP_ROWS = 0.01
"""Least rows that an interval without any row counts for."""
STEEPEST = 30.0
"""Most decay of a piece from end to end, in nats: a heap at its end does not make numbers beside it impossible."""
SKEW = 3.0
"""Standard deviations by which the mean of a piece's rows differs from its middle before it is not uniform."""


class Segments(NamedTuple):
    """Segments in places, with their weight in rows."""

    lo: np.ndarray
    hi: np.ndarray
    rate: np.ndarray
    code: np.ndarray
    rows: np.ndarray

    def ordered(self) -> Segments:
        """Ascending."""
        order = np.lexsort((self.hi, self.lo))
        return Segments(*(field[order] for field in self))


def segments_of(tally: Tally, bins: Bins) -> Segments:
    """All segments of a column, from -inf to inf."""
    runs = runs_of(tally, bins)
    return _with_tails(tally, bins, _inside(tally, bins, runs, point_rows(tally, bins, runs)))


def _inside(tally: Tally, bins: Bins, runs: Runs, point: np.ndarray) -> Segments:
    """Segments between the outermost places: points, and pieces that fill what is between them."""
    pieces = _pieces(tally, bins, runs, tally.weight - point)
    at = np.flatnonzero(point > 0)
    place = tally.place[at]
    if tally.half > 0:
        return _split_cells(pieces, place, bins.of_place[at], point[at])
    edges = np.union1d(np.union1d(pieces.lo, pieces.hi), place)
    if len(edges) > 1 and np.isinf(_width(edges[0], edges[-1])):
        edges = np.union1d(edges, [0.0])
    flat = np.zeros(len(at))
    points = Segments(place, place, flat, bins.of_place[at], point[at])
    whole = _shared_out(pieces, edges)
    return Segments(*(np.concatenate(both) for both in zip(whole, points, strict=True))).ordered()


def _pieces(tally: Tally, bins: Bins, runs: Runs, spread: np.ndarray) -> Segments:
    """A piece for every run, with the rows that are spread over it."""
    begins, lo, hi = runs.begins, runs.lo, runs.hi
    rows = np.maximum(np.add.reduceat(spread, begins), GAP_ROWS)
    rate = np.where(bins.is_heavy[begins], 0.0, _slopes(tally.place, spread, runs))
    keep = lo < hi
    return Segments(lo[keep], hi[keep], rate[keep], bins.of_place[begins][keep], rows[keep])


def _slopes(place: np.ndarray, spread: np.ndarray, runs: Runs) -> np.ndarray:
    """Rates of pieces whose rows are clearly nearer to one end: the rate that gives the piece the mean of its rows."""
    rows = np.add.reduceat(spread, runs.begins)
    width = _width(runs.lo, runs.hi)
    usable = (rows > 0) & (width > 1e-290) & np.isfinite(width)
    with np.errstate(all="ignore"):
        fraction = np.where(usable[runs.of_place], (place - runs.lo[runs.of_place]) / width[runs.of_place], 0.5)
        mean = np.add.reduceat(np.clip(fraction, 0.0, 1.0) * spread, runs.begins) / rows
        skewed = np.flatnonzero(usable & (np.abs(mean - 0.5) * np.sqrt(12 * rows) > SKEW))
    rate = np.zeros(len(rows))
    rate[skewed] = np.clip(decay_of_mean(mean[skewed]), -STEEPEST, STEEPEST) / width[skewed]
    return rate


def _width(lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(hi - lo)


def _shared_out(pieces: Segments, edges: np.ndarray) -> Segments:
    """Pieces cut at the edges, each part with its share of the rows."""
    lo, hi = edges[:-1], edges[1:]
    of = np.searchsorted(pieces.lo, lo, side="right") - 1
    inside = (of >= 0) & (hi <= pieces.hi[of]) if len(pieces.lo) else np.zeros(len(lo), dtype=bool)
    lo, hi, of = lo[inside], hi[inside], of[inside]
    part = np.exp(log_part(pieces.lo[of], pieces.hi[of], pieces.rate[of], lo, hi))
    return Segments(lo, hi, pieces.rate[of], pieces.code[of], pieces.rows[of] * np.maximum(part, 1e-300))


def _split_cells(pieces: Segments, cell: np.ndarray, code: np.ndarray, rows: np.ndarray) -> Segments:
    """Pieces on a grid cut around cells with rows of their own; a cell's segment has both masses."""
    around = np.union1d(cell - 0.5, cell + 0.5)
    parts = _shared_out(pieces, np.union1d(np.union1d(pieces.lo, pieces.hi), around))
    alone = ~np.isin(cell - 0.5, parts.lo)
    added = np.zeros(len(parts.lo))
    added[np.searchsorted(parts.lo, cell[~alone] - 0.5)] = rows[~alone]
    n = int(alone.sum())
    cells = Segments(cell[alone] - 0.5, cell[alone] + 0.5, np.zeros(n), code[alone], rows[alone])
    parts = parts._replace(rows=parts.rows + added)
    return Segments(*(np.concatenate(both) for both in zip(parts, cells, strict=True))).ordered()


def _with_tails(tally: Tally, bins: Bins, inner: Segments) -> Segments:
    """The segments, with open tails before and after them."""
    n_codes = int(bins.of_place[-1]) + 1
    bin_rows = np.bincount(inner.code, inner.rows, n_codes)
    ends, rate, rows = upper_tail(tally, float(inner.hi[-1]), float(bin_rows[-1]))
    above = Segments(ends[:-1], ends[1:], rate, np.full(len(rate), n_codes - 1), rows)
    ends, rate, rows = upper_tail(mirrored(tally), -float(inner.lo[0]), float(bin_rows[0]))
    below = Segments(-ends[:0:-1], -ends[-2::-1], -rate[::-1], np.zeros(len(rate), dtype=np.int32), rows[::-1])
    return Segments(*(np.concatenate(all_three) for all_three in zip(below, inner, above, strict=True)))
