"""A column's scale, learned from its values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..schema import PILE, Column
from .counts import ABSENT, PlaceTally, count_places, mirrored
from .discretizer import Scale, codes_of, decay_of_mean, log_part, mean_variance

# ---- At most K ordered bins of a numeric column: heavy places alone, the others cut at equal mass.

FEW_ROWS = 10
"""Rows below which a place has no bin of its own: they may coincide there by chance."""


NO_LIMITS = np.empty(0)


class _Bins(NamedTuple):
    """Bins of m places.

    of_place : int32 array (m,). Bin of each place, ascending from 0.
    is_heavy : bool array (m,). Whether the place is alone in its bin.
    ends, begins : float64 arrays (m - 1,). Where place i ends and place i + 1 begins, in places: not the same where a
        gap lies between them. The space between heavy places belongs to the lower one.
    """

    of_place: np.ndarray
    is_heavy: np.ndarray
    ends: np.ndarray
    begins: np.ndarray


def cut_places(
    tally: PlaceTally, n_codes: int, fine_ends: float = 0.0, limits: np.ndarray = NO_LIMITS, at_spaces: bool = False
) -> _Bins:
    """The last place of each of at most ``n_codes`` bins: heavy places alone, the others cut at equal weight."""
    # With ``fine_ends`` (0 to 1) the outermost bins are narrower: the cuts are at a mean of equal weight and of equal
    # steps of arcsin(sqrt(share)). With ``at_spaces`` they move to wide spaces near them. No bin lies on both sides of
    # a gap (`_gaps`) or of a limit.
    heavy = (tally.is_atom | (tally.half > 0)) & (tally.rows >= FEW_ROWS)
    if len(tally.place) > n_codes:
        heavy &= tally.weight >= tally.weight.sum() / n_codes
    if tally.half > 0:
        heavy |= tally.is_atom
    gap = _gaps(tally, n_codes // 4)
    at = np.searchsorted(tally.place, limits, side="right") - 1  # the last place up to a limit
    limits, at = (x[(at >= 0) & (at < len(gap))] for x in (limits, at))
    apart = gap.copy()
    apart[at] = True
    heavy = _affordable(tally.weight, heavy, apart, n_codes)
    is_light = ~heavy[:-1] & ~heavy[1:]
    gap, apart, is_cut = gap & is_light, apart & is_light, is_light[at]
    starts = _starts(heavy, apart)
    is_first = _is_first(tally.weight, heavy, starts, n_codes, fine_ends)
    if at_spaces:
        is_first = _at_wide_spaces(is_first, heavy | starts, tally.place)
    bins = (np.cumsum(is_first) - 1).astype(np.int32)
    ends, begins = _edges(tally, heavy, gap)
    ends[at[is_cut]] = begins[at[is_cut]] = limits[is_cut]
    return _Bins(bins, heavy, ends, begins)


AROUND = (3, 5, 10, 20)
"""Places on each side of a space that tell whether it is a gap."""
_SURE = 8.0
"""Log of the odds against chance that a gap needs, beside twice the log of the number of rows."""


def _gaps(tally: PlaceTally, most: int) -> np.ndarray:
    """Whether place i + 1 lies beyond a gap, bool (m - 1,): the clearest, at most so many."""
    # Of a + b places spread evenly over two stretches and the space g between them, none lies in that space with
    # probability (1 + g / (length of the stretches))^-(a + b - 2). A gap is a space where this is very small.
    place, m = tally.place, len(tally.place)
    score = np.zeros(max(m - 1, 0))
    with np.errstate(all="ignore"):
        space = np.diff(place) - 2.0 * tally.half
        for a in AROUND:
            for b in AROUND:
                i = np.arange(a - 1, m - b)  # the last place before the space
                length = place[i] - place[i - a + 1] + place[i + b] - place[i + 1]
                score[i] = np.fmax(score[i], (a + b - 2) * np.log1p(space[i] / length))
    clear = np.flatnonzero(score > _SURE + 2.0 * np.log(tally.n))
    gap = np.zeros(len(score), dtype=bool)
    gap[clear[np.argsort(-score[clear], kind="stable")[:most]]] = True
    return gap


def gaps_and_far_codes(
    column: Column, scale: Scale, values: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Gaps that lie below each code of the column, int64 (K,), and which codes hold far values alone, bool (K,)."""
    tally = count_places(column, values, weight)
    code, K = codes_of(scale, _values(column, tally.place))[0], scale.n_codes
    beyond = np.flatnonzero(_gaps(tally, K // 4)) + 1
    places, far = np.bincount(code, minlength=K), np.bincount(code, _is_far(tally), K)
    return np.cumsum(np.bincount(code[beyond], minlength=K)), (far > 0) & (far == places)


def _values(column: Column, place: np.ndarray) -> np.ndarray:
    """Places of a column as values."""
    return place * column.step + column.center if column.step > 0 else place


def _affordable(weight: np.ndarray, heavy: np.ndarray, gap: np.ndarray, n_codes: int) -> np.ndarray:
    """The heaviest of the heavy places, as many as leave a bin for every stretch of light places between them."""
    ranked = np.flatnonzero(heavy)
    ranked = ranked[np.argsort(-weight[ranked], kind="stable")]
    for n in range(min(len(ranked), n_codes), 0, -1):
        heavy = np.zeros(len(weight), dtype=bool)
        heavy[ranked[:n]] = True
        if n + _starts(heavy, gap).sum() <= n_codes:
            return heavy
    return np.zeros(len(weight), dtype=bool)


def _starts(heavy: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Whether a stretch of light places begins at a place: after a heavy one, and beyond a gap."""
    return ~heavy & np.concatenate([[True], heavy[:-1] | gap])


def _is_first(weight: np.ndarray, heavy: np.ndarray, starts: np.ndarray, n_codes: int, fine_ends: float) -> np.ndarray:
    """Whether a bin begins at each place: stretches of light places share the bins left by heavy ones by weight."""
    light = ~heavy
    begins_bin = heavy.copy()
    if light.any():
        stretch = np.cumsum(starts) - 1
        n_stretches = int(starts.sum())
        total = np.bincount(stretch[light], weight[light], n_stretches)
        spare = n_codes - int(heavy.sum()) - n_stretches
        wanted = spare * total / total.sum()
        n_bins = np.floor(wanted)
        most = np.argsort(n_bins - wanted, kind="stable")[: spare - int(n_bins.sum())]
        n_bins[most] += 1
        n_bins += 1
        cumulative = np.cumsum(np.where(light, weight, 0.0))
        before = np.concatenate([[0.0], np.cumsum(total)])[:-1]
        middle = cumulative[light] - 0.5 * weight[light] - before[stretch[light]]
        own = stretch[light]
        share = np.clip(middle / total[own], 0.0, 1.0)
        if fine_ends > 0.0:
            share = (1.0 - fine_ends) * share + fine_ends * np.arcsin(np.sqrt(share)) / (0.5 * np.pi)
        part = np.floor(share * n_bins[own])
        begins_bin[light] = starts[light] | (np.diff(part, prepend=-1.0) != 0)
    return begins_bin


def _at_wide_spaces(is_first: np.ndarray, fixed: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Where bins begin if each cut that is not fixed moves to a wide space near it, by at most half a bin."""
    # The farther a cut moves, the wider the space has to be. Between two groups of values rows are rare, and no bin
    # then has rows of both.
    space = np.diff(place, prepend=place[0])
    first = np.append(np.flatnonzero(is_first), len(place))
    moved = first.copy()
    for k in np.flatnonzero(~fixed[first[:-1]]).tolist():
        low = max(first[k] - (first[k] - first[k - 1]) // 2, moved[k - 1] + 1)
        near = np.arange(low, min(first[k] + (first[k + 1] - first[k]) // 2, len(place) - 1) + 1)
        steps = np.abs(near - first[k])
        moved[k] = near[np.argmax(space[near] * (1.0 - steps / (steps.max() + 1.0)))]
    is_first = np.zeros(len(place), bool)
    is_first[moved[:-1]] = True
    return is_first


def _edges(tally: PlaceTally, heavy: np.ndarray, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where places end and the next ones begin: tight around heavy ones, half-way between light ones."""
    # At a gap, and beside a heavy place, light ones reach as far as their rows lie apart there.
    low, high = tally.place[:-1], tally.place[1:]
    edge = np.where(heavy[:-1], low + tally.half, halfway(low, high, tally.half))
    edge = np.where(heavy[1:], high - tally.half, edge)
    begins, ends, least, last = edge.copy(), edge.copy(), min(AROUND), len(tally.place) - 1
    for i in np.flatnonzero(gap | (heavy[:-1] != heavy[1:])).tolist():
        if not heavy[i] and i >= least - 1 and not heavy[i - least + 1 : i].any():
            ends[i] = min(low[i] + _reach(tally, i - least + 1, i), edge[i])
        if not heavy[i + 1] and i + least <= last and not heavy[i + 2 : i + least + 1].any():
            begins[i] = max(high[i] - _reach(tally, i + 1, i + least), edge[i])
    return ends, begins


def _reach(tally: PlaceTally, first: int, last: int) -> float:
    """How far some places reach beyond the outermost of them: as far as their rows lie apart."""
    rows = max(float(tally.rows[first : last + 1].sum()), 2.0)
    apart = float(tally.place[last] - tally.place[first]) / (rows - 1.0)
    return np.floor(apart) + tally.half if tally.half > 0 else apart


def halfway(low: np.ndarray, high: np.ndarray, half: float) -> np.ndarray:
    """Points low <= e < high half-way between places, on a grid between two cells."""
    if half > 0:
        return np.asarray(np.floor(0.5 * (low + high)) + half)
    with np.errstate(over="ignore"):
        gap = high - low
    middle = np.where(np.isinf(gap), 0.5 * low + 0.5 * high, low + 0.5 * gap)
    return np.asarray(np.where(middle >= high, low, middle))


# ---- Open tails beyond the ends of what was observed: how much lies there, and how far it reaches.

HARD_ROWS = 1e-6
"""Rows beyond a hard end."""
TAIL_VARIANCE = 0.04
"""Most that a tail adds to the variance of the column, as a share of it."""
_MOST = 0.2 * float(np.finfo(float).max)


def _upper_tail(tally: PlaceTally, start: float, bin_rows: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The 1 or 2 segments (t) beyond the greatest place, from ``start`` to inf: ends (t + 1,), rates, rows (t,)."""
    # Beyond a hard end of the column is next to nothing. ``bin_rows`` are the rows of the outermost bin.
    rows = _rows(tally, bin_rows)
    rate = 1.0 / min(_scale(tally), _longest(tally, rows))
    end = tally.upper + tally.half  # the end itself may be reached
    with np.errstate(over="ignore", invalid="ignore"):
        reaches = tally.place[-1] < tally.upper and start < end and rows * np.exp(-rate * (end - start)) > HARD_ROWS
    if reaches:
        return np.array([start, end, np.inf]), np.array([rate, rate]), np.array([rows, HARD_ROWS])
    return np.array([start, np.inf]), np.array([rate]), np.array([rows])


def is_hard(tally: PlaceTally) -> bool:
    """Whether the column ends hard at its greatest place: at its end, at an atom, or where rows should lie beyond."""
    # Should lie: as many as in the last place, less by the factor by which that has fewer than the one before.
    last = float(tally.rows[-1])
    before = float(tally.rows[-2]) if len(tally.rows) > 1 else 0.0
    is_end = tally.place[-1] >= tally.upper or tally.is_atom[-1]
    return bool(is_end) or last * last > PILE * max(last, before)


def _rows(tally: PlaceTally, bin_rows: float) -> float:
    """Rows that the tail counts for in its bin."""
    # A new row lies beyond the greatest of n with probability 1 / (n + 1). Half of that is taken, as if the greatest
    # row were spread to both sides of its place; at most as much as the bin itself.
    if is_hard(tally):
        return HARD_ROWS
    share = min(0.5, 0.5 * tally.n / (tally.n + 1) / bin_rows)
    return bin_rows * share / (1 - share)


def _longest(tally: PlaceTally, rows: float) -> float:
    """Mean distance of so many rows beyond the end that adds `TAIL_VARIANCE` to the variance of the column."""
    weight, place = tally.weight / tally.weight.sum(), 0.25 * tally.place
    with np.errstate(over="ignore", invalid="ignore"):
        below = place[-1] - float(weight @ place)
        added = TAIL_VARIANCE * float(weight @ (place[-1] - below - place) ** 2) * tally.n / rows
        length = 2.0 * (np.sqrt(below**2 + 2.0 * added) - below)
    return float(length) if 0.0 < length < _MOST else _MOST


def _scale(tally: PlaceTally) -> float:
    """Mean distance, in places, of what lies beyond the end: the mean excess of the outermost sqrt(n) rows."""
    # Where they do not differ: the column's spread over sqrt(n), else one unit.
    place, weight = tally.place, tally.weight
    beyond = np.cumsum(weight[::-1])[::-1]
    first = max(int(np.searchsorted(-beyond, -np.sqrt(weight.sum()), side="right")) - 1, 0)
    # quarters, because the distance of two floats may be too large for one
    excess = 0.25 * place[first:] - 0.25 * place[max(first - 1, 0)]
    mean = 4 * min(float(excess @ (weight[first:] / weight[first:].sum())), _MOST)
    spread = 4 * min(float(0.25 * place[-1] - 0.25 * place[0]) / float(np.sqrt(weight.sum())), _MOST)
    least = 1.0 if tally.half > 0 else 1e-300
    return max(mean if mean > least else spread if spread > least else 1.0, least)


# ---- Runs of places within bins: what a piece of density covers.

_RUN = 64
"""Places in a run."""
GAIN, FEWEST = 6.0, 5.0
"""Gain in log-likelihood from which on a run is cut in two, and the rows that each part then has."""
GAIN_AT_ENDS, FEWEST_AT_ENDS = 2.0, 1.0
"""The same of the outermost runs, which are the widest of a skewed column."""


class PlaceRuns(NamedTuple):
    """R runs of m places.

    begins : int array (R,). The first place of each run.
    of_place : int array (m,). Run of each place.
    lo, hi : float64 array (R,). What the run covers; together all from the first place to the last but points. A heavy
        place, alone in its run, leaves what lies between it and the next heavy one, and that may be nothing (lo >= hi).
    """

    begins: np.ndarray
    of_place: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


def runs_of(tally: PlaceTally, bins: _Bins) -> PlaceRuns:
    """Each bin cut into runs of about RUN places, as many places each as can be; and where the density changes."""
    m = len(tally.place)
    first, last = _ends(tally)
    begin, end = np.concatenate([[first], bins.begins]), np.append(bins.ends, last)
    new_bin = np.concatenate([[True], np.diff(bins.of_place) != 0])
    start = np.flatnonzero(new_bin)
    size = np.diff(np.append(start, m))
    n_runs = np.maximum(np.rint(size / _RUN), 1)
    rank = np.arange(m) - np.repeat(start, size)
    run = np.floor(rank * np.repeat(n_runs / size, size) + 1e-9)
    begins = _cut_by_density(
        tally.weight, begin, end, np.flatnonzero(new_bin | np.concatenate([[True], np.diff(run) != 0]))
    )
    of_place = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, m)))
    lo, hi = begin[begins], end[np.append(begins[1:], m) - 1]
    lo = np.where(bins.is_heavy[begins], tally.place[begins] + tally.half, lo)
    return PlaceRuns(begins, of_place, lo, hi)


def _cut_by_density(weight: np.ndarray, begin: np.ndarray, end: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """The first places of runs, which are cut where two uniform densities are likelier than one, ascending."""
    m, before = len(weight), np.concatenate([[0.0], np.cumsum(weight)])
    found: list[int] = []
    waiting = list(zip(begins.tolist(), np.append(begins[1:], m).tolist(), strict=True))
    while waiting:
        a, b = waiting.pop()
        gain, fewest = (GAIN_AT_ENDS, FEWEST_AT_ENDS) if a == 0 or b == m else (GAIN, FEWEST)
        k = np.arange(a + 1, b)
        rows = np.array([before[k] - before[a], before[b] - before[k]])
        width = np.array([_width(begin[a], begin[k]), _width(begin[k], end[b - 1])])
        with np.errstate(all="ignore"):
            more = (rows * np.log(rows / rows.sum(axis=0) * width.sum(axis=0) / width)).sum(axis=0)
        more[(rows < fewest).any(axis=0) | ~np.isfinite(more)] = 0.0
        if len(k) and more.max() > gain:
            middle = int(k[more.argmax()])
            waiting += [(a, middle), (middle, b)]
        else:
            found.append(a)
    return np.sort(np.array(found))


def _ends(tally: PlaceTally) -> tuple[float, float]:
    """Where the pieces begin and end; a single value without mass gets an interval around it."""
    first, last = float(tally.place[0]) - tally.half, float(tally.place[-1]) + tally.half
    if tally.half > 0:
        return first, last
    if len(tally.place) == 1 and not tally.is_atom[0]:
        reach = max(0.5, float(np.spacing(abs(first))) * 2.0**20)
        return first - reach, last + reach
    return first if tally.is_atom[0] else float(np.nextafter(first, -np.inf)), last


# ---- How many of the rows at a place are a mass of its own, and how many belong to the density around it.

MAX_POINTS = 8192
"""Cells of a grid that have a mass of their own inside bins."""
MAX_SINGLE_POINTS = 32_768
"""The same where values of one row may have one, too: there are several times as many."""
DISCOUNTS = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0)
"""Rows taken off each value that are tried beside the Good-Turing discount."""
DISCOUNTS_OF_SINGLES = (0.0, 0.25, 0.5, 0.75)
"""Those that leave something of a single row, tried before the others where that is wanted."""
_FACTORS = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Shares of what is left that are tried."""
LEAST = 0.01


def point_rows(tally: PlaceTally, bins: _Bins, runs: PlaceRuns, singles: bool = False) -> np.ndarray:
    """Rows at each place that are a point of their own, (m,); the others are spread over the place's run."""
    # On a grid a value of c rows keeps c - D of them if it is heavy, with D = n1 / (n1 + 2 n2), else factor (c - D). D
    # and the factor maximise the likelihood of each row given the others: preferred values lead to a small D and a
    # factor of 1, chance ties of a smooth column to the contrary.
    if tally.half == 0:
        return np.where(tally.is_atom, tally.weight, 0.0)
    once, twice = float((tally.rows == 1).sum()), float((tally.rows == 2).sum())
    turing = once / (once + 2 * twice) if once else 0.0
    heavy = tally.weight * (1 - turing / np.maximum(tally.rows, 2.0))
    light = ~bins.is_heavy
    kept = np.zeros(len(tally.rows))
    kept[light] = _most_likely(tally.rows[light], runs.of_place[light], runs.hi - runs.lo, turing, singles)
    most = MAX_SINGLE_POINTS if singles else MAX_POINTS
    if np.count_nonzero(kept) > most:
        kept[np.argsort(-kept, kind="stable")[most:]] = 0.0
    return np.where(bins.is_heavy, heavy, kept * tally.weight / tally.rows)


def _most_likely(rows: np.ndarray, run: np.ndarray, cells: np.ndarray, turing: float, singles: bool) -> np.ndarray:
    """Rows that stay at places of runs, by the discount and factor of greatest leave-one-out likelihood."""
    # rows, run (m,): rows of the places, and their runs; cells (R,): cells of the runs.
    in_run = np.bincount(run, rows, len(cells))[run]
    n_cells = np.maximum(cells, 1.0)[run]
    fewest = 1.0 if singles else 2.0
    best, found = -np.inf, np.zeros(len(rows))
    for discount in (turing, *(DISCOUNTS_OF_SINGLES if singles else ()), *DISCOUNTS):
        point = _left(rows, discount, fewest)
        fewer = _left(rows - 1, discount, fewest)
        points = np.bincount(run, point, len(cells))[run]
        for factor in _FACTORS:
            spread = in_run - 1 - factor * (points - point + fewer)
            share = factor * fewer + np.maximum(spread, LEAST) / n_cells
            fit = float(rows @ np.log(share / np.maximum(in_run - 1, LEAST)))
            if fit > best:
                best, found = fit, factor * point
    return found


def _left(rows: np.ndarray, discount: float, fewest: float) -> np.ndarray:
    """Rows left after the discount at places that share at least so many."""
    return np.where(rows >= fewest, np.maximum(rows - discount, 0.0), 0.0)


# ---- The segments of a numeric column: pieces over runs of places, points among them, tails beyond. Lengths in places.

GAP_ROWS = 0.01
"""Least rows that an interval without any row counts for."""
STEEPEST = 30.0
"""Most decay of a piece from end to end, in nats: a point mass at an end leaves the numbers beside it possible."""
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


def segments_of(tally: PlaceTally, bins: _Bins, singles: bool = False) -> Segments:
    """All segments of a column, from -inf to inf."""
    runs = runs_of(tally, bins)
    inner = _inside(tally, bins, runs, point_rows(tally, bins, runs, singles))
    segments = _with_tails(tally, bins, inner)
    return segments if singles else _with_moments(tally, bins, segments)


def _inside(tally: PlaceTally, bins: _Bins, runs: PlaceRuns, point: np.ndarray) -> Segments:
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


def _pieces(tally: PlaceTally, bins: _Bins, runs: PlaceRuns, spread: np.ndarray) -> Segments:
    """A piece for every run, with the rows that are spread over it, and one with hardly any for every gap."""
    begins, lo, hi = runs.begins, runs.lo, runs.hi
    rows = np.maximum(np.add.reduceat(spread, begins), GAP_ROWS)
    rate = np.where(bins.is_heavy[begins], 0.0, _slopes(tally.place, spread, runs))
    keep, gap = lo < hi, np.flatnonzero(bins.ends < bins.begins)
    runs_alone = Segments(lo[keep], hi[keep], rate[keep], bins.of_place[begins][keep], rows[keep])
    few = np.full(len(gap), GAP_ROWS)
    gaps = Segments(bins.ends[gap], bins.begins[gap], np.zeros(len(gap)), bins.of_place[gap], few)
    return Segments(*(np.concatenate(both) for both in zip(runs_alone, gaps, strict=True))).ordered()


def _slopes(place: np.ndarray, spread: np.ndarray, runs: PlaceRuns) -> np.ndarray:
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


def _with_tails(tally: PlaceTally, bins: _Bins, inner: Segments) -> Segments:
    """The segments, with open tails before and after them."""
    n_codes = int(bins.of_place[-1]) + 1
    bin_rows = np.bincount(inner.code, inner.rows, n_codes)
    ends, rate, rows = _upper_tail(tally, float(inner.hi[-1]), float(bin_rows[-1]))
    above = Segments(ends[:-1], ends[1:], rate, np.full(len(rate), n_codes - 1), rows)
    ends, rate, rows = _upper_tail(mirrored(tally), -float(inner.lo[0]), float(bin_rows[0]))
    below = Segments(-ends[:0:-1], -ends[-2::-1], -rate[::-1], np.zeros(len(rate), dtype=np.int32), rows[::-1])
    return Segments(*(np.concatenate(all_three) for all_three in zip(below, inner, above, strict=True)))


# ---- One or two values far above or below all others have codes of their own, beyond the tail of the others.

_MOST_FAR = 2
"""Most values on one side that are found to be far."""
_TOO_FAR = 8.0
"""Values are far if the tail of the others reaches them with a probability below exp(-8)."""
_TIMES = 3.0
"""They are also so many times as far from the median as the next value: with ties, Hill's estimate is too large."""


def _far_above(tally: PlaceTally) -> int:
    """How many of the greatest places lie so far from the others that no tail of these explains it."""
    # In a Pareto tail with the index that Hill's estimate gives the other rows, the b greatest rows lie r times as far
    # from the median as the next one with probability r^-(index b).
    place, rows, up_to = tally.place, tally.rows, np.cumsum(tally.rows)
    with np.errstate(all="ignore"):
        distance = place - place[int(np.searchsorted(up_to, 0.5 * up_to[-1]))]
        for b in range(1, _MOST_FAR + 1):
            rest = len(place) - b
            n = up_to[rest - 1] if rest > 2 else 0.0
            first = min(int(np.searchsorted(up_to, n - max(np.sqrt(n), 2.0), side="right")), rest - 2)
            if first < 1 or not 0.0 < distance[first - 1] < distance[-1] < np.inf or tally.is_atom[rest:].any():
                continue
            top = rows[first:rest]
            index = top.sum() / float(top @ np.log(distance[first:rest] / distance[first - 1]))
            times = distance[rest] / distance[rest - 1]
            if times > _TIMES and index * b * np.log(times) > _TOO_FAR:
                return b
    return 0


def _is_far(tally: PlaceTally) -> np.ndarray:
    """Which places lie too far from the others for the tail of these, bool (m,): one or two on each side, or none."""
    number = np.arange(len(tally.place))
    return (number < _far_above(mirrored(tally))) | (number[::-1] < _far_above(tally))


def has_far_values(column: Column, values: np.ndarray) -> bool:
    """Whether some of the values (n,) lie too far from the others for the tail of these."""
    return bool(_is_far(count_places(column, values, None)).any())


def _beyond(tally: PlaceTally, segments: Segments, far: int, reach: float) -> Segments:
    """The segments of the other places, cut where the first far place begins, and those of the far places above."""
    # One row at a far place is spread over the length ``reach``, that of all others. Several rows on a grid have the
    # cell itself. Each far place has a code of its own. Beyond the last one is half a row, or next to nothing at a hard
    # end.
    if not far:
        return segments
    half = tally.half
    hi = tally.place[-far:] + half
    lo = hi - np.where(tally.rows[-far:] > 1, 2.0 * half, np.floor(reach) + 1.0) if half > 0 else hi - reach
    lo = np.maximum(lo, np.append(segments.lo[-1], hi[:-1]))
    inner = Segments(*(field[segments.lo < lo[0]] for field in segments))
    inner = inner._replace(hi=np.minimum(inner.hi, lo[0]))
    code = segments.code[-1] + 1 + np.arange(far)
    own = Segments(lo, hi, np.zeros(far), code, tally.weight[-far:])
    between = Segments(hi[:-1], lo[1:], np.zeros(far - 1), code[:-1], np.full(far - 1, HARD_ROWS))
    between = Segments(*(field[between.lo < between.hi] for field in between))
    rows = HARD_ROWS if tally.place[-1] >= tally.upper else 0.5
    tail = Segments(hi[-1:], np.array([np.inf]), np.array([1.0 / reach]), code[-1:], np.array([rows]))
    return Segments(*(np.concatenate(fields) for fields in zip(inner, own, between, tail, strict=True))).ordered()


def _part(tally: PlaceTally, first: int, last: int) -> PlaceTally:
    """The tally of some places."""
    place, rows, weight, is_atom = (field[first:last] for field in tally[:4])
    return tally._replace(place=place, rows=rows, weight=weight, is_atom=is_atom)


def _turned(segments: Segments) -> Segments:
    """The segments of the column's negative."""
    lo, hi, rate, code, rows = (field[::-1] for field in segments)
    return Segments(-hi, -lo, -rate, segments.code[-1] - code, rows)


# ---- The mean and the variance of the column are those of its rows.

MOMENT_STEPS = 20
"""Most steps of Newton's method."""
_CLOSE = 1e-6
"""Error of the mean, in standard deviations, and of the variance, as a share of it, at which these end."""
SINGULAR = 1e9
"""Condition number from which on the two numbers cannot be distinguished."""
STEEPER = 3.0
"""Most that a piece becomes steeper from end to end, in nats: likelihood matters more than the last digit."""


def _with_moments(tally: PlaceTally, bins: _Bins, segments: Segments) -> Segments:
    """The segments with other rates, so that the column has the mean and the variance of its rows."""
    # Each piece is multiplied by exp(-(a + b m) x), where m is the distance of its middle from the mean. All pieces
    # share a and b, so no piece follows its own rows more closely. Newton's method leaves out the third moments of the
    # pieces.
    weight, n_codes = tally.weight / tally.weight.sum(), int(bins.of_place[-1]) + 1
    with np.errstate(over="ignore", invalid="ignore"):
        middle_place = tally.place[len(tally.place) // 2]
        mean = middle_place + float(weight @ (tally.place - middle_place))
        variance = float(weight @ (tally.place - mean) ** 2)
        is_usual = segments.lo[-1] - segments.hi[0] < 1e75 and 1e-150 < variance < 1e150
    if not is_usual:  # products of four numbers would leave the range of floats
        return segments
    of_code = np.bincount(bins.of_place, weight, n_codes) / np.bincount(segments.code, segments.rows, n_codes)
    share = segments.rows * of_code[segments.code]
    lo, hi, step = segments.lo - mean, segments.hi - mean, float(tally.half > 0)
    free = np.flatnonzero((hi - lo > step) & np.isfinite(hi - lo))
    middle, width = 0.5 * (lo + hi)[free], (hi - lo)[free]
    limit, steepest = STEEPER / width, STEEPEST / width
    best, error, tilt, is_moving = segments.rate, np.inf, np.zeros(2), np.ones(len(free), bool)
    rate = segments.rate.copy()
    for _ in range(MOMENT_STEPS):
        m, v = mean_variance(lo, hi, rate, step)
        m, v = np.where(lo == hi, lo, m), np.where(lo == hi, 0.0, v)
        off = np.array([share @ m, share @ (v + m**2) - variance])
        now = max(abs(off[0]) / np.sqrt(variance), abs(off[1]) / variance)
        if now < error:
            best, error = rate.copy(), now
        change = (share * v)[free] * is_moving
        slope = np.array([[change.sum(), change @ middle], [2 * change @ m[free], 2 * change @ (m[free] * middle)]])
        units = np.outer([1.0, np.sqrt(variance)], [1.0, np.sqrt(variance)])
        if now < _CLOSE or not np.linalg.cond(slope / units) < SINGULAR:
            break
        tilt += np.linalg.solve(slope, off)
        steeper = tilt[0] + tilt[1] * middle
        wanted = segments.rate[free] + np.clip(steeper, -limit, limit)
        rate[free] = np.clip(wanted, -steepest, steepest)
        is_moving = (np.abs(steeper) < limit) & (np.abs(wanted) < steepest)
    return segments._replace(rate=best)


MAX_LEVEL_CODES = 1024
"""Levels of a categorical column beyond this number share codes."""


def learn_scale(
    column: Column,
    values: np.ndarray,
    weight: np.ndarray | None,
    n_codes: int,
    fine_ends: float = 0.0,
    singles: bool = False,
    limits: np.ndarray = NO_LIMITS,
    at_spaces: bool = False,
) -> Scale:
    """The scale of a column with these values (n,), as `frames.encode` gives them: no number or level has density 0.

    Numbers get at most ``n_codes`` ordered bins: a place (cell of a grid, or atom) that holds 1/K of the weight (and
    10 rows) is alone in its bin, the others are cut at equal weight. Inside a bin lie

    - points: atoms, and cells of a grid that several rows share, with some rows taken off each (`point_rows`);
    - pieces over runs of about 64 distinct values, with the rows taken off and those of all other values: uniform, or
      exponential with the mean of the rows where these are clearly nearer to one end, but falling by e^30 at most;
    - in the outermost bins, open exponential tails with about half a row.

    Rates of pieces are such that the mean and the variance of the column are those of its rows, as far as possible;
    not with ``singles``, where likelihood matters more: values of one row may then be points, too. With ``fine_ends``
    up to 1 the outermost bins are narrower, and with ``at_spaces`` cuts move to wide spaces near them. Bins also end at
    the ``limits``, on a grid edges of cells. One or two values on each side that lie too far out for the tail of the
    others have further codes.

    Levels of categorical columns are codes, but of more than 1,024 the rarest share codes.

    Examples
    --------
    >>> age = Column("age", "integer", "int64", step=1.0)
    >>> scale = learn_scale(age, np.repeat([30.0, 31.0, 40.0], [50, 49, 1]), None, 8)
    >>> scale.n_codes, scale.lo.tolist()
    (3, [-inf, 29.5, 30.5, 31.5, 40.5])
    """
    if column.is_categorical:
        return _of_levels(len(column.levels), values, weight, column.parts)
    tally = count_places(column, values, weight)
    if column.step > 0:
        limits = np.rint((limits - column.center) / column.step - 0.5) + 0.5
    # where there are few codes, none is spent on them
    below, above = (_far_above(mirrored(tally)), _far_above(tally)) if n_codes > 4 * _MOST_FAR else (0, 0)
    usual = _part(tally, below, len(tally.place) - above)
    segments = segments_of(usual, cut_places(usual, n_codes, fine_ends, limits, at_spaces), singles)
    reach = float(usual.place[-1] - usual.place[0])
    segments = _beyond(tally, segments, above, reach)
    segments = _turned(_beyond(mirrored(tally), _turned(segments), below, reach))
    lo, hi, rate = segments.lo, segments.hi, segments.rate
    if column.step > 0:
        lo, hi = column.center + lo * column.step, column.center + hi * column.step
        rate = rate / column.step
    n = int(segments.code[-1]) + 1
    rows = np.bincount(segments.code, segments.rows, n)
    log_mass = np.log(segments.rows) - np.log(rows)[segments.code]
    return Scale(n, column.step, column.center, lo, hi, rate, segments.code.astype(np.int32), log_mass)


def _of_levels(
    n_levels: int, values: np.ndarray, weight: np.ndarray | None, parts: tuple[tuple[bool, tuple[float, ...]], ...] = ()
) -> Scale:
    """Levels as codes; of more than MAX_LEVEL_CODES the rarest share codes, dealt out in turn."""
    # Where levels have parts, those share codes that agree in all parts but the one of most values.
    used = ~np.isnan(values)
    rows = np.bincount(values[used].astype(np.intp), None if weight is None else weight[used], n_levels) + ABSENT
    code = np.arange(n_levels)
    if n_levels > MAX_LEVEL_CODES:
        own = MAX_LEVEL_CODES // 2
        rank = np.empty(n_levels, dtype=np.intp)
        rank[np.argsort(-rows, kind="stable")] = np.arange(n_levels)
        shared = own + (rank - own) % (MAX_LEVEL_CODES - own)
        if parts:
            finest = max(range(len(parts)), key=lambda k: len(set(parts[k][1])))
            rest = [parts[k][1] for k in range(len(parts)) if k != finest]
            group = np.unique(np.column_stack([np.zeros(n_levels), *rest]), axis=0, return_inverse=True)[1].reshape(-1)
            shared = own + _dealt(group, rows, rank, rank >= own, MAX_LEVEL_CODES - own)
        code = np.where(rank < own, rank, shared)
    n_codes = int(code.max()) + 1
    log_mass = np.log(rows) - np.log(np.bincount(code, rows, n_codes))[code]
    place, flat = np.arange(float(n_levels)), np.zeros(n_levels)
    return Scale(n_codes, 0.0, 0.0, place, place.copy(), flat, code.astype(np.int32), log_mass)


def _dealt(group: np.ndarray, rows: np.ndarray, rank: np.ndarray, rare: np.ndarray, n_codes: int) -> np.ndarray:
    """Codes of rare levels, (K,): each group has as many as its share of the rows, one at least, dealt out in turn."""
    # Where there are more groups than codes, the rarest groups share codes.
    names, of_level = np.unique(group[rare], return_inverse=True)
    of_level = of_level.reshape(-1)
    mass = np.bincount(of_level, rows[rare], len(names))
    if len(names) > n_codes:
        order = np.empty(len(names), np.intp)
        order[np.argsort(-mass, kind="stable")] = np.arange(len(names))
        of_level = np.minimum(order, n_codes - 1)[of_level]
        mass = np.bincount(of_level, rows[rare], n_codes)
    size = np.bincount(of_level)
    n_each = np.minimum(1 + np.floor((n_codes - len(size)) * mass / mass.sum()).astype(np.intp), size)
    start = np.cumsum(n_each) - n_each
    by_group = np.lexsort((rank[rare], of_level))
    turn = np.empty(len(of_level), np.intp)
    turn[by_group] = np.arange(len(of_level)) - (np.cumsum(size) - size)[of_level[by_group]]
    out = np.zeros(len(group), np.intp)
    out[rare] = start[of_level] + turn % n_each[of_level]
    return out
