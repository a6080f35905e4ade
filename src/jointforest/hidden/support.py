"""Which evidence lies so far out that only the tails of a column's scale answer for it."""

from __future__ import annotations

import numpy as np

from ..table.evidence import Evidence
from ..table.scale.distribution import cdf
from ..table.scale.scale import Scale
from ..table.schema import Column
from .hidden_trees import HiddenTrees

_ROWS = 1e-3  # rows of the table that learned, expected as far out or farther


def is_far(hidden: HiddenTrees, evidence: Evidence) -> np.ndarray:
    """Whether a cell says that its column lies beyond all that was observed, where not even a 1,000th of a row is.

    That is taken of a number that the bins at the ends hold 1 / K of the rows each. Result bool (n,).
    """
    far = np.zeros(len(evidence.value), bool)
    regions = evidence.cell_regions() if evidence.has_regions else None
    for j, (column, scale) in enumerate(zip(hidden.schema.columns, hidden.scales, strict=True)):
        if column.is_categorical:
            continue
        value = evidence.value[:, j]
        far |= _beyond(column, scale, value - 0.5 * column.step, value + 0.5 * column.step)
        if regions is not None:
            rows = np.flatnonzero(regions[:, j] >= 0)
            number, place = np.unique(regions[rows, j], return_inverse=True)
            far[rows] |= _beyond(column, scale, *_ends(column, evidence, number))[place.reshape(-1)]
    return far


def _ends(column: Column, evidence: Evidence, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest number of regions, each (r,); NaN of an empty one."""
    lo, hi = np.full(len(number), np.nan), np.full(len(number), np.nan)
    first, end = evidence.run_start[number], evidence.run_start[number + 1]
    some = first < end
    lo[some], hi[some] = evidence.run_lo[first[some]], evidence.run_hi[end[some] - 1]
    for r, bits in enumerate(evidence.atoms[number].tolist()):
        held = [atom for k, atom in enumerate(column.atoms) if bits >> k & 1]
        if held:
            lo[r], hi[r] = np.fmin(lo[r], held[0]), np.fmax(hi[r], held[-1])
    return lo, hi


def _beyond(column: Column, scale: Scale, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Whether intervals lie beyond the observed range and the scale has next to nothing as far out, (n,)."""
    far = np.zeros(len(lo), bool)
    least = _ROWS * scale.n_codes / max(column.n_observed, 1)
    above, below = np.flatnonzero(lo > column.maximum), np.flatnonzero(hi < column.minimum)
    if len(above):
        far[above] = 1.0 - cdf(scale, lo[above])[:, -1] < least
    if len(below):
        far[below] = cdf(scale, hi[below])[:, 0] < least
    return far
