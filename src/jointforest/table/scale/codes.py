"""Values to codes, and their base density."""

from __future__ import annotations

import numpy as np

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
    segment, log_base = _on_grid(scale, at) if scale.step > 0 else _off_grid(scale, at)
    nowhere = (segment < 0) & ~missing
    code = scale.code[segment] if len(scale.code) else np.zeros(len(x), dtype=np.int32)
    code = np.where(missing, scale.n_codes, np.where(nowhere, 0, code))
    return code.astype(np.int32), np.where(missing, 0.0, np.where(nowhere, -np.inf, log_base))


def _found(scale: Scale, among: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Number of the interval with x in it, of those whose numbers are given; -1 if none."""
    if len(among) == 0:
        return np.full(len(x), -1)
    place = np.minimum(np.searchsorted(scale.hi[among], x), len(among) - 1)
    segment = among[place]
    return np.where((scale.lo[segment] < x) & (x <= scale.hi[segment]), segment, -1)


def _on_grid(scale: Scale, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Segments of the cells of values, and the log of the cell's share over the step."""
    cell = cell_number(x, scale.step, scale.origin)
    segment = _found(scale, scale.intervals, scale.origin + cell * scale.step)
    if len(scale.lo) == 0:
        return segment, np.zeros(len(x))
    first, last = first_cell(scale, scale.lo[segment]), last_cell(scale, scale.hi[segment])
    rate = scale.rate[segment] * scale.step
    cells = distance(last, first) + 1
    with np.errstate(over="ignore", invalid="ignore"):
        fall = np.where(rate == 0, 0.0, np.abs(rate) * np.where(rate >= 0, cell - first, last - cell))
    # one cell's integral over that of all cells, both in cells from the anchor
    log_cell = log_norm(rate, np.ones(len(x))) - fall - log_norm(rate, cells)
    log_cell = np.where(cells == 1, 0.0, np.maximum(log_cell, LEAST_LOG))
    return segment, scale.log_mass[segment] + log_cell - np.log(scale.step)


def first_cell(scale: Scale, lo: np.ndarray) -> np.ndarray:
    """Number of the first grid cell above an edge."""
    return np.asarray(np.rint((lo - scale.origin) / scale.step + 0.5))


def last_cell(scale: Scale, hi: np.ndarray) -> np.ndarray:
    """Number of the last grid cell below an edge."""
    return np.asarray(np.rint((hi - scale.origin) / scale.step - 0.5))


def _off_grid(scale: Scale, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Segments of values, points before intervals, and log of share (points) or of density."""
    segment = _found(scale, scale.intervals, x)
    log_base = np.zeros(len(x))
    inside = np.flatnonzero(segment >= 0)
    s = segment[inside]
    log_base[inside] = scale.log_mass[s] + log_density(scale.lo[s], scale.hi[s], scale.rate[s], x[inside])
    if len(scale.points):
        place = np.minimum(np.searchsorted(scale.lo[scale.points], x), len(scale.points) - 1)
        point = scale.points[place]
        hit = scale.lo[point] == x
        segment, log_base = np.where(hit, point, segment), np.where(hit, scale.log_mass[point], log_base)
    return segment, log_base
