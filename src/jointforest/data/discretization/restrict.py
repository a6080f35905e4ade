"""A scale cut to regions of evidence, to one or to many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import numpy as np

from ...runtime.arrays import ranges
from .discretizer import Scale, log_part


@dataclass(frozen=True, eq=False)
class CutScales(Sequence[Scale]):
    """A scale cut to each of R regions: ``cuts[r]`` is made when it is asked for.

    scale : Scale. What was cut.
    start : int array (R + 1,). ``start[r]`` to ``start[r + 1]`` are the pieces of region r.
    segment : int array (N,). Segment of the scale of each piece.
    lo, hi : float64 array (N,)
    log_mass : float64 array (N,). Log of the piece's share of its code, plus the log-likelihood of soft evidence in the
        region.
    """

    scale: Scale
    start: np.ndarray
    segment: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    log_mass: np.ndarray

    def __len__(self) -> int:
        return len(self.start) - 1

    @overload
    def __getitem__(self, r: int) -> Scale: ...
    @overload
    def __getitem__(self, r: slice) -> Sequence[Scale]: ...
    def __getitem__(self, r: int | slice) -> Scale | Sequence[Scale]:
        if isinstance(r, slice):
            return [self[k] for k in range(*r.indices(len(self)))]
        if not -len(self) <= r < len(self):
            raise IndexError(r)
        r %= len(self)
        of = slice(self.start[r], self.start[r + 1])
        segment, scale = self.segment[of], self.scale
        return replace(
            scale,
            lo=self.lo[of],
            hi=self.hi[of],
            rate=scale.rate[segment],
            code=scale.code[segment],
            log_mass=self.log_mass[of],
        )

    @cached_property
    def log_code(self) -> np.ndarray:
        """Log of the share of each code in each region, (R, K), as `Scale.log_code`."""
        K, size = self.scale.n_codes, len(self) * self.scale.n_codes
        key = np.repeat(np.arange(len(self)), np.diff(self.start)) * K + self.scale.code[self.segment]
        top = np.full(size, -np.inf)
        np.maximum.at(top, key, self.log_mass)
        finite = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            total = np.bincount(key, np.exp(self.log_mass - finite[key]), size)
            return np.asarray(finite + np.log(total)).reshape(len(self), K)


def restrict(
    scale: Scale, run_lo: np.ndarray, run_hi: np.ndarray, atoms: int | np.uint64, column_atoms: tuple[float, ...]
) -> Scale:
    """What of a scale lies in a region: segments cut, masses lessened; codes outside have nothing left.

    `Scale.log_code` of the result is the log of the region's share of each code. ``run_lo``, ``run_hi`` (Q,) are the
    runs ``(lo, hi]`` of the region, disjoint and ascending, on cell edges of a grid; level k is in a run if ``lo < k <=
    hi``. Bit k of ``atoms`` is set if the k-th of ``column_atoms`` lies in the region; on a grid the runs decide.

    Examples
    --------
    >>> from jointforest.data.schema import Column
    >>> from jointforest.data.discretization.learn import learn_scale
    >>> scale = learn_scale(Column("x", "continuous", "float64"), np.linspace(0.0, 1.0, 101), None, 4)
    >>> half = restrict(scale, np.array([-np.inf]), np.array([0.5]), 0, ())
    >>> np.exp(half.log_code).round(2)
    array([1.  , 1.  , 0.02, 0.  ])
    """
    start = np.array([0, len(run_lo)])
    return restrict_each(scale, start, run_lo, run_hi, np.array([atoms], np.uint64), column_atoms)[0]


def restrict_each(
    scale: Scale,
    run_start: np.ndarray,
    run_lo: np.ndarray,
    run_hi: np.ndarray,
    atoms: np.ndarray,
    column_atoms: tuple[float, ...],
    run_log_weight: np.ndarray | None = None,
    atom_log_weight: np.ndarray | None = None,
) -> CutScales:
    """A scale cut to each of R regions, as `restrict` cuts it to one."""
    # Region r has the runs ``run_start[r]`` to ``run_start[r + 1]`` and the atoms ``atoms[r]``; their log-likelihoods,
    # (Q,) and (R, A), are added to the masses.
    region = np.repeat(np.arange(len(run_start) - 1), np.diff(run_start))
    run_lo, run_hi = np.asarray(run_lo, dtype=np.float64), np.asarray(run_hi, dtype=np.float64)
    weight = np.zeros(len(run_lo)) if run_log_weight is None else run_log_weight
    if scale.step > 0:
        run_lo, run_hi = cell_edge(scale, run_lo), cell_edge(scale, run_hi)
    run, place = _pairs(np.searchsorted(scale.hi[scale.intervals], run_lo, side="right"),
                        np.searchsorted(scale.lo[scale.intervals], run_hi, side="left"))  # fmt: skip
    segment = scale.intervals[place]
    lo, hi = scale.lo[segment], scale.hi[segment]
    cut_lo, cut_hi = np.maximum(lo, run_lo[run]), np.minimum(hi, run_hi[run])
    log_mass = log_part(lo, hi, scale.rate[segment], cut_lo, cut_hi)
    at = scale.lo[scale.points]
    of, point = _pairs(np.searchsorted(at, run_lo, side="right"), np.searchsorted(at, run_hi, side="right"))
    points, of_point, weight_of_point = scale.points[point], region[of], weight[of]
    if column_atoms and len(at):
        by_bits, place_of_atom = np.isin(at, column_atoms), np.searchsorted(column_atoms, at)
        of_point, points, weight_of_point = (x[~by_bits[point]] for x in (of_point, points, weight_of_point))
        bit = np.minimum(place_of_atom, len(column_atoms) - 1)[by_bits].astype(np.uint64)
        held, which = np.nonzero(atoms[:, None] >> bit & np.uint64(1))
        of_point, points = np.append(of_point, held), np.append(points, scale.points[by_bits][which])
        own = np.zeros(len(held)) if atom_log_weight is None else atom_log_weight[held, bit[which].astype(np.intp)]
        weight_of_point = np.append(weight_of_point, own)
    of_all = np.append(region[run], of_point)
    segment, cut_lo, cut_hi = (
        np.append(segment, points),
        np.append(cut_lo, scale.lo[points]),
        np.append(cut_hi, scale.hi[points]),
    )
    log_mass = scale.log_mass[segment] + np.append(log_mass + weight[run], weight_of_point)
    order = np.lexsort((cut_hi, cut_lo, of_all))
    start = np.searchsorted(of_all[order], np.arange(len(run_start)))
    return CutScales(scale, start, segment[order], cut_lo[order], cut_hi[order], log_mass[order])


def _pairs(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each run with each of the places first to last - 1 that it meets."""
    n = np.maximum(last - first, 0)
    return np.repeat(np.arange(len(n)), n), ranges(first, n)


def cell_edge(scale: Scale, x: np.ndarray) -> np.ndarray:
    """The edge of the grid that is nearest to a point, as the scale's own segments have it."""
    with np.errstate(invalid="ignore", over="ignore"):
        cells = np.rint((x - scale.origin) / scale.step - 0.5) + 0.5
        return np.where(np.isfinite(cells), scale.origin + cells * scale.step, x)
