"""At most K ordered bins of a numeric column: heavy places alone, the others cut at equal mass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .tally import Tally

FEW_ROWS = 10
"""Rows below which a place has no bin of its own: they may have met there by chance."""


class Bins(NamedTuple):
    """Bins of m places.

    Attributes
    ----------
    of_place : int32 array (m,)
        Bin of each place, ascending from 0.
    is_heavy : bool array (m,)
        Whether the place is alone in its bin.
    edge : float64 array (m - 1,)
        Where place i ends and place i + 1 begins, in places; the space between heavy places belongs to the lower one.
    """

    of_place: np.ndarray
    is_heavy: np.ndarray
    edge: np.ndarray


def cut(tally: Tally, n_codes: int, fine_ends: float = 0.0) -> Bins:
    """At most ``n_codes`` bins.

    On a grid and for atoms a place that holds 1/K of the weight and 10 rows is alone in its bin (where there are no
    more than K places, 10 rows are enough). The rest is cut between places at equal weight, or at a mean of that and of
    equal steps of arcsin(root(share)), which counts ``fine_ends`` (0 to 1): then the outermost bins are narrower.
    """
    heavy = (tally.is_atom | (tally.half > 0)) & (tally.rows >= FEW_ROWS)
    if len(tally.place) > n_codes:
        heavy &= tally.weight >= tally.weight.sum() / n_codes
    heavy = _affordable(tally.weight, heavy, n_codes)
    bins = _number(tally.weight, heavy, n_codes, fine_ends)
    return Bins(bins, heavy, _edges(tally, heavy))


def _affordable(weight: np.ndarray, heavy: np.ndarray, n_codes: int) -> np.ndarray:
    """The heaviest of the heavy places, as many as leave a bin for every stretch of light places between them."""
    ranked = np.flatnonzero(heavy)
    ranked = ranked[np.argsort(-weight[ranked], kind="stable")]
    for n in range(min(len(ranked), n_codes), 0, -1):
        heavy = np.zeros(len(weight), dtype=bool)
        heavy[ranked[:n]] = True
        if n + _starts(heavy).sum() <= n_codes:
            return heavy
    return np.zeros(len(weight), dtype=bool)


def _starts(heavy: np.ndarray) -> np.ndarray:
    """Whether a stretch of light places begins at a place."""
    return ~heavy & np.concatenate([[True], heavy[:-1]])


def _number(weight: np.ndarray, heavy: np.ndarray, n_codes: int, fine_ends: float) -> np.ndarray:
    """Bin of each place: stretches of light places share the bins left by heavy ones in proportion to their weight."""
    starts = _starts(heavy)
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
    return (np.cumsum(begins_bin) - 1).astype(np.int32)


def _edges(tally: Tally, heavy: np.ndarray) -> np.ndarray:
    """Edges between neighbouring places: tight around heavy ones, half-way between light ones."""
    low, high = tally.place[:-1], tally.place[1:]
    edge = np.where(heavy[:-1], low + tally.half, halfway(low, high, tally.half))
    return np.asarray(np.where(heavy[1:], high - tally.half, edge))


def halfway(low: np.ndarray, high: np.ndarray, half: float) -> np.ndarray:
    """Points low <= e < high half-way between places, on a grid between two cells."""
    if half > 0:
        return np.asarray(np.floor(0.5 * (low + high)) + half)
    with np.errstate(over="ignore"):
        gap = high - low
    middle = np.where(np.isinf(gap), 0.5 * low + 0.5 * high, low + 0.5 * gap)
    return np.asarray(np.where(middle >= high, low, middle))
