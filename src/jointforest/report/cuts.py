"""How the page cuts each column: the bins of its histogram, cut finer where components of the joint have ends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.discretization import base_density
from ..data.discretization.discretizer import Scale, distance, point_at
from ..data.schema import Column
from ..explorer.shown import ShownBins, ShownJoint, centers_of_cuts

MOST_CUTS, ALL_CUTS = 4_000, 12_000
"""Most cuts of a column, and of all columns together."""
EVEN = 200
"""Cuts of a column at the least, where there is room."""
MOST_ENTRIES = 6_000_000
"""Most numbers of the tables that the page makes of a forest: parameter rows times cuts of all columns."""
CURVED = 2e-4
"""Share of a code by which a cut may be wrong where an interval ends in it: the page spreads a cut's mass evenly."""
SHARE = 1e-9
"""A smaller share of a code is not written."""


class ColumnCuts(NamedTuple):
    """The cuts of one column; of a column of levels each level is one, and the arrays of ends are empty.

    bins : Bins. Whose ``cuts`` and ``first`` are of the finer cuts.
    centers : float64 array (C,). Mean within each cut, without evidence.
    points : int array. The cuts that hold one point mass of a column without a grid, and next to nothing else.
    n : int. Number of cuts, or of levels.
    """

    bins: ShownBins
    centers: np.ndarray
    points: np.ndarray
    n: int


def page_cuts(shown: ShownJoint) -> list[ColumnCuts]:
    """The cuts of every column."""
    components = shown.joint.distribution.components
    hidden = [found for found in (component.hidden_trees() for component in components) if found is not None]
    n_rows = sum(len(c.forest_for("a report").leaves.tree) for c in components if c.is_forest)
    most = ALL_CUTS if not n_rows else min(ALL_CUTS, MOST_ENTRIES // n_rows)
    scales = [[trees.scales[j] for trees in hidden] for j in range(len(shown.columns))]
    wanted = [_cuts_wanted(*each) for each in zip(shown.columns, shown.bins, scales, strict=True)]
    return [
        _cuts_of(column, bins, scales[j], room, shown, j)
        for j, (column, bins, room) in enumerate(zip(shown.columns, shown.bins, _rooms(wanted, most), strict=True))
    ]


def _cuts_wanted(column: Column, bins: ShownBins, scales: list[Scale]) -> int:
    """How many cuts would represent a column exactly, at most `MOST_CUTS`."""
    if column.is_categorical:
        return 0
    n = max(len(bins.cuts) + sum(int((1 + _n_pieces(scale)).sum()) for scale in scales), EVEN)
    if column.step > 0.0:
        n = min(n, round((bins.cuts[-1] - bins.cuts[0]) / column.step) + 1)
    return min(n, MOST_CUTS)


def _rooms(wanted: list[int], most: int) -> list[int]:
    """How many cuts each column gets, at most ``most`` in all: who wants less than an equal share leaves the rest."""
    rooms, waiting = [0] * len(wanted), sum(n > 0 for n in wanted)
    for j in sorted(range(len(wanted)), key=lambda j: wanted[j]):
        if wanted[j]:
            rooms[j] = min(wanted[j], most // waiting)
            most, waiting = most - rooms[j], waiting - 1
    return rooms


def _cuts_of(column: Column, bins: ShownBins, scales: list[Scale], most: int, shown: ShownJoint, j: int) -> ColumnCuts:
    if column.is_categorical:
        return ColumnCuts(bins, np.empty(0), np.empty(0, int), len(column.levels))
    cuts = _finer(column, bins.cuts, scales, most)
    first = np.searchsorted(cuts, bins.edges[:-1] - 0.25 * column.step)
    first[0] = 0
    fine = bins._replace(cuts=cuts, first=first)
    points = np.empty(0, int) if column.step > 0.0 else _cuts_of_points(column, cuts)
    return ColumnCuts(fine, centers_of_cuts(shown, j, cuts), points, len(cuts) - 1)


def _cuts_of_points(column: Column, cuts: np.ndarray) -> np.ndarray:
    """Numbers of the cuts that end at a point mass and begin just below it."""
    atoms = np.array(column.atoms)
    place = np.clip(np.searchsorted(cuts, atoms), 1, len(cuts) - 1)
    return np.unique(place[(cuts[place] == atoms) & (cuts[place - 1] == np.nextafter(atoms, -np.inf))] - 1)


def _finer(column: Column, cuts: np.ndarray, scales: list[Scale], most: int) -> np.ndarray:
    """About ``most`` more cuts: cells of a grid, or ends of codes, point masses, heavy segments, even steps."""
    n_cells = round((cuts[-1] - cuts[0]) / column.step) if column.step > 0.0 else most + 1
    if n_cells <= most:
        return _merged_cuts(column, cuts, cuts[0] + column.step * np.arange(1, n_cells))
    place, weight = [np.empty(0)], [np.empty(0)]
    for scale in scales:
        inner, share = _inner_places(scale)
        if column.step > 0.0:
            inner = cuts[0] + np.rint((inner - cuts[0]) / column.step) * column.step
        place.append(np.concatenate([scale.lo, scale.hi, inner]))
        weight.append(np.where(_is_end(scale), np.inf, np.concatenate([scale.share, scale.share])))
        weight.append(share)
    if column.step == 0.0:
        place.append(np.concatenate([np.nextafter(column.atoms, -np.inf), np.array(column.atoms)]))
        weight.append(np.full(2 * len(column.atoms), np.inf))
    heaviest = _heaviest_places(np.concatenate(place), np.concatenate(weight), cuts, max(most - len(cuts), 0))
    found = _merged_cuts(column, cuts, heaviest)
    if len(found) >= min(EVEN, most):
        return found
    even = np.linspace(cuts[0], cuts[-1], min(EVEN, most))[1:-1]
    if column.step > 0.0:
        even = np.unique(cuts[0] + np.rint((even - cuts[0]) / column.step) * column.step)
    return _merged_cuts(column, found, even[: most - len(found)])


def _n_pieces(scale: Scale) -> np.ndarray:
    """Pieces of each segment whose masses may be spread evenly with an error of at most `CURVED` of its code, (S,)."""
    decay = np.nan_to_num(np.abs(scale.rate) * distance(scale.hi, scale.lo))
    return np.maximum(np.ceil(np.sqrt(scale.share * np.tanh(0.25 * decay) / (2.0 * CURVED))), 1.0).astype(int)


def _inner_places(scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """Places where `_n_pieces` of segments meet, and the share of a piece: quantiles of the density's square root."""
    # The error of an even spread over a width h is h^2/8 times the slope of the density, which is proportional to
    # exp(-rate x): it is the same in all pieces if h is proportional to exp(rate x / 2).
    n = _n_pieces(scale)
    segment = np.repeat(np.arange(len(n)), n - 1)
    part = np.concatenate([np.arange(1, m) / m for m in n.tolist()]) if len(n) else np.empty(0)
    place = point_at(scale.lo[segment], scale.hi[segment], 0.5 * scale.rate[segment], part)
    return place, scale.share[segment] / n[segment]


def _heaviest_places(place: np.ndarray, weight: np.ndarray, cuts: np.ndarray, n: int) -> np.ndarray:
    """At most n different places inside the cuts, those of the greatest weights."""
    inside = (place > cuts[0]) & (place < cuts[-1])
    place, weight = place[inside], weight[inside]
    order = np.lexsort((-weight, place))
    place, first = np.unique(place[order], return_index=True)
    return place[np.argsort(-weight[order][first], kind="stable")[:n]]


def _merged_cuts(column: Column, cuts: np.ndarray, more: np.ndarray) -> np.ndarray:
    """All of these ascending; ends of cells that are equal but for rounding are one."""
    near = np.searchsorted(cuts, more)
    gap = np.minimum(more - cuts[np.maximum(near - 1, 0)], cuts[np.minimum(near, len(cuts) - 1)] - more)
    found = np.unique(np.concatenate([cuts, more[np.abs(gap) > 0.25 * column.step]]))
    return found[np.diff(found, prepend=-np.inf) > 0.25 * column.step]


def _is_end(scale: Scale) -> np.ndarray:
    """Which ends of segments are ends of codes, bool (2 S,): the least and the greatest of each."""
    found = np.zeros((2, len(scale.code)), bool)
    for code in range(scale.n_codes):
        mine = np.flatnonzero(scale.code == code)
        if len(mine):
            found[0, mine[scale.lo[mine].argmin()]] = found[1, mine[scale.hi[mine].argmax()]] = True
    return found.ravel()


def code_shares(scale: Scale, column: Column, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut, code and share of the code's mass that lies in the cut, by rising cut; shares of a code sum to 1."""
    # What lies beyond the cuts is in the outermost ones. Of a column of levels the cuts are its levels.
    table = cut_shares(scale, column, cuts)
    table[table < SHARE] = 0.0
    table /= np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
    cut, code = np.nonzero(table.T)
    return cut, code, table[code, cut]


def cut_shares(scale: Scale, column: Column, cuts: np.ndarray) -> np.ndarray:
    """Share of each code's mass in each cut, or level, (K, C); what lies beyond the cuts is in the outermost."""
    if column.is_categorical:
        return base_density.levels(scale, np.eye(scale.n_codes), len(column.levels))
    below = base_density.cdf(scale, cuts[1:-1])
    return np.diff(np.vstack([np.zeros(scale.n_codes), below, np.ones(scale.n_codes)]), axis=0).T
