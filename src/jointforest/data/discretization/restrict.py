"""A scale cut to a region of evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...runtime.arrays import ranges
from .discretizer import Scale, log_part


def restrict(
    scale: Scale, run_lo: np.ndarray, run_hi: np.ndarray, atoms: int | np.uint64, column_atoms: tuple[float, ...]
) -> Scale:
    """The scale in the region of runs (lo, hi] and atom bits; `Scale.log_code` is the log share of each code."""
    # The runs are disjoint and ascending, on cell edges of a grid; level k is in a run if lo < k <= hi.
    run_lo, run_hi = np.asarray(run_lo, dtype=np.float64), np.asarray(run_hi, dtype=np.float64)
    if scale.step > 0:
        run_lo, run_hi = cell_edge(scale, run_lo), cell_edge(scale, run_hi)
    points = scale.points[_has_points(scale, run_lo, run_hi, int(atoms), column_atoms)]
    lo, hi = scale.lo[scale.intervals], scale.hi[scale.intervals]
    first = np.searchsorted(hi, run_lo, side="right")
    last = np.searchsorted(lo, run_hi, side="left")
    n = np.maximum(last - first, 0)
    run = np.repeat(np.arange(len(n)), n)
    place = ranges(first, n)
    segment = scale.intervals[place]
    cut_lo, cut_hi = np.maximum(lo[place], run_lo[run]), np.minimum(hi[place], run_hi[run])
    log_part_ = log_part(lo[place], hi[place], scale.rate[segment], cut_lo, cut_hi)
    cut_lo, cut_hi = np.append(cut_lo, scale.lo[points]), np.append(cut_hi, scale.hi[points])
    segment, log_mass = np.append(segment, points), np.append(log_part_, np.zeros(len(points)))
    order = np.lexsort((cut_hi, cut_lo))
    segment = segment[order]
    return replace(
        scale,
        lo=cut_lo[order],
        hi=cut_hi[order],
        rate=scale.rate[segment],
        code=scale.code[segment],
        log_mass=scale.log_mass[segment] + log_mass[order],
    )


def cell_edge(scale: Scale, x: np.ndarray) -> np.ndarray:
    """The edge of the grid that is nearest to a point, as the scale's own segments have it."""
    with np.errstate(invalid="ignore", over="ignore"):
        cells = np.rint((x - scale.origin) / scale.step - 0.5) + 0.5
        return np.where(np.isfinite(cells), scale.origin + cells * scale.step, x)


def _has_points(
    scale: Scale, run_lo: np.ndarray, run_hi: np.ndarray, atoms: int, column_atoms: tuple[float, ...]
) -> np.ndarray:
    """Which of the scale's points lie in a region: atoms by their bits, levels by the runs."""
    at = scale.lo[scale.points]
    run = np.searchsorted(run_lo, at, side="left") - 1
    inside = np.append(run_hi, -np.inf)[run] >= at if len(run_lo) else np.zeros(len(at), dtype=bool)
    inside &= run >= 0
    if not column_atoms or len(at) == 0:
        return np.asarray(inside)
    bits = np.array([bool(atoms >> k & 1) for k in range(len(column_atoms))])
    place = np.minimum(np.searchsorted(column_atoms, at), len(column_atoms) - 1)
    return np.where(np.array(column_atoms)[place] == at, bits[place], inside)
