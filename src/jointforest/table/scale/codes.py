"""Values to codes, and their base density."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ground.threads import map_ordered
from .scale import Scale
from .segments import LEAST_LOG, distance, log_density, log_norm
from .tally import cell_number


def codes_of(scale: Scale, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes of values, and the log of their base density within the code.

    On a grid a value counts as its cell, and the density is the cell's share of the code over the step. At an atom or
    a level it is its share of the code. log p(x) = log p(code) + base density.

    Parameters
    ----------
    scale : Scale
    x : float64 array (n,)
        Numbers or level codes, NaN where missing.

    Returns
    -------
    code : int32 array (n,)
        K where missing.
    log_base : float64 array (n,)
        0 where missing; -inf (with code 0) where the scale, cut to a region, has nothing, never in a whole one.

    Examples
    --------
    >>> from jointforest.table.schema import Column
    >>> from jointforest.table.scale.learn import learn_scale
    >>> age = learn_scale(Column("age", "integer", "int64", step=1.0), np.repeat([30.0, 31.0], 50), None, 8)
    >>> codes_of(age, np.array([30.0, 31.0, np.nan]))[0]
    array([0, 1, 2], dtype=int32)
    """
    x = np.asarray(x, dtype=np.float64)
    missing = np.isnan(x)
    at = np.where(missing, scale.origin, x)
    segment = _segments(scale, at)
    log_base = _on_grid(scale, at, segment) if scale.step > 0 else _off_grid(scale, at, segment)
    nowhere = (segment < 0) & ~missing
    return _codes(scale, segment, missing), np.where(missing, 0.0, np.where(nowhere, -np.inf, log_base))


def code_table(scales: Sequence[Scale], X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """The codes of all columns of X (n, d), int32 (n, d), as `codes_of` has them."""

    def one(j: int) -> np.ndarray:
        missing = np.isnan(X[:, j])
        return _codes(scales[j], _segments(scales[j], np.where(missing, scales[j].origin, X[:, j])), missing)

    return np.column_stack(list(map_ordered(one, [(j,) for j in range(len(scales))], n_jobs)))


def _codes(scale: Scale, segment: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Codes of segments, int32; 0 where there is none (-1), K where missing."""
    code = scale.code[segment] if len(scale.code) else np.zeros(len(segment), dtype=np.int32)
    return np.where(missing, scale.n_codes, np.where(segment < 0, 0, code)).astype(np.int32)


def _segments(scale: Scale, x: np.ndarray) -> np.ndarray:
    """Numbers of the segments of values; of points before intervals; -1 if none."""
    if scale.step > 0:
        return _found(scale, scale.intervals, scale.origin + cell_number(x, scale.step, scale.origin) * scale.step)
    segment = _found(scale, scale.intervals, x)
    if len(scale.points):
        place = np.minimum(np.searchsorted(scale.lo[scale.points], x), len(scale.points) - 1)
        point = scale.points[place]
        segment = np.where(scale.lo[point] == x, point, segment)
    return segment


def _found(scale: Scale, among: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Number of the interval with x in it, of those whose numbers are given; -1 if none."""
    if len(among) == 0:
        return np.full(len(x), -1)
    place = np.minimum(np.searchsorted(scale.hi[among], x), len(among) - 1)
    segment = among[place]
    return np.where((scale.lo[segment] < x) & (x <= scale.hi[segment]), segment, -1)


def _on_grid(scale: Scale, x: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """Log of the share of the values' cells in their segments over the step."""
    if len(scale.lo) == 0:
        return np.zeros(len(x))
    cell = cell_number(x, scale.step, scale.origin)
    first, last = first_cell(scale, scale.lo[segment]), last_cell(scale, scale.hi[segment])
    rate = scale.rate[segment] * scale.step
    cells = distance(last, first) + 1
    with np.errstate(over="ignore", invalid="ignore"):
        fall = np.where(rate == 0, 0.0, np.abs(rate) * np.where(rate >= 0, cell - first, last - cell))
    # one cell's integral over that of all cells, both in cells from the anchor
    log_cell = log_norm(rate, np.ones(len(x))) - fall - log_norm(rate, cells)
    log_cell = np.where(cells == 1, 0.0, np.maximum(log_cell, LEAST_LOG))
    return np.asarray(scale.log_mass[segment] + log_cell - np.log(scale.step))


def first_cell(scale: Scale, lo: np.ndarray) -> np.ndarray:
    """Number of the first grid cell above an edge."""
    return np.asarray(np.rint((lo - scale.origin) / scale.step + 0.5))


def last_cell(scale: Scale, hi: np.ndarray) -> np.ndarray:
    """Number of the last grid cell below an edge."""
    return np.asarray(np.rint((hi - scale.origin) / scale.step - 0.5))


def _off_grid(scale: Scale, x: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """Log of share (points) or of density, of values in segments."""
    log_base = np.zeros(len(x))
    found = np.flatnonzero(segment >= 0)
    log_base[found] = scale.log_mass[segment[found]]
    inside = found[scale.lo[segment[found]] < scale.hi[segment[found]]]
    s = segment[inside]
    log_base[inside] += log_density(scale.lo[s], scale.hi[s], scale.rate[s], x[inside])
    return log_base
