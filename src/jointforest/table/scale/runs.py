"""Runs of places within bins: what a piece of density covers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .bins import Bins
from .tally import Tally

RUN = 64
"""Places in a run."""


class Runs(NamedTuple):
    """R runs of m places.

    Attributes
    ----------
    begins : int array (R,)
        The first place of each run.
    of_place : int array (m,)
        Run of each place.
    lo, hi : float64 array (R,)
        What the run covers; together all from the first place to the last but points. A heavy place, alone in its
        run, leaves what lies between it and the next heavy one, and that may be nothing (lo >= hi).
    """

    begins: np.ndarray
    of_place: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


def runs_of(tally: Tally, bins: Bins) -> Runs:
    """Each bin cut into runs of about RUN places, and as many places each as can be."""
    m = len(tally.place)
    first, last = _ends(tally)
    edge = np.concatenate([[first], bins.edge, [last]])
    new_bin = np.concatenate([[True], np.diff(bins.of_place) != 0])
    start = np.flatnonzero(new_bin)
    size = np.diff(np.append(start, m))
    n_runs = np.maximum(np.rint(size / RUN), 1)
    rank = np.arange(m) - np.repeat(start, size)
    run = np.floor(rank * np.repeat(n_runs / size, size) + 1e-9)
    is_first = new_bin | np.concatenate([[True], np.diff(run) != 0])
    begins = np.flatnonzero(is_first)
    lo, hi = edge[begins], np.append(edge[begins[1:]], last)
    lo = np.where(bins.is_heavy[begins], tally.place[begins] + tally.half, lo)
    return Runs(begins, np.cumsum(is_first) - 1, lo, hi)


def _ends(tally: Tally) -> tuple[float, float]:
    """Where the pieces begin and end; a single value without mass gets an interval around it."""
    first, last = float(tally.place[0]) - tally.half, float(tally.place[-1]) + tally.half
    if tally.half > 0:
        return first, last
    if len(tally.place) == 1 and not tally.is_atom[0]:
        reach = max(0.5, float(np.spacing(abs(first))) * 2.0**20)
        return first - reach, last + reach
    return first if tally.is_atom[0] else float(np.nextafter(first, -np.inf)), last
