"""The best point inside each code."""

from __future__ import annotations

import numpy as np

from .codes import codes_of
from .scale import Scale


def peaks(scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """A point of greatest base density in each code, and the log of that, each (K,); NaN, -inf where nothing is left.

    Intervals are open below, so where the density is greatest at the lower end the point is the next number above it.

    Examples
    --------
    >>> from jointforest.table.schema import Column
    >>> from jointforest.table.scale.learn import learn_scale
    >>> scale = learn_scale(Column("age", "integer", "int64", step=1.0), np.repeat([30.0, 31.0], 50), None, 8)
    >>> peaks(scale)[0]
    array([30., 31.])
    """
    value, log_peak = np.full(scale.n_codes, np.nan), np.full(scale.n_codes, -np.inf)
    if not len(scale.code):
        return value, log_peak
    at = np.where(scale.is_point, scale.lo, _on_grid(scale) if scale.step > 0.0 else _off_grid(scale))
    log_density = codes_of(scale, at)[1]
    order = np.lexsort(
        (-np.arange(len(at)), log_density, scale.code)
    )  # the last of a code is the best, the first of equals
    last = order[np.append(np.flatnonzero(np.diff(scale.code[order])), len(order) - 1)]
    value[scale.code[last]], log_peak[scale.code[last]] = at[last], log_density[last]
    return value, log_peak


def _off_grid(scale: Scale) -> np.ndarray:
    """Best point of each interval: its end of greatest density, its middle if it is flat."""
    with np.errstate(over="ignore", invalid="ignore"):
        middle = 0.5 * scale.lo + 0.5 * scale.hi
    ends = np.where(scale.rate > 0, np.nextafter(scale.lo, np.inf), scale.hi)
    return np.where(scale.rate == 0, middle, ends)


def _on_grid(scale: Scale) -> np.ndarray:
    """Centre of the best cell of each interval."""
    with np.errstate(over="ignore", invalid="ignore"):
        first = np.rint((scale.lo - scale.origin) / scale.step + 0.5)
        last = np.rint((scale.hi - scale.origin) / scale.step - 0.5)
        cell = np.where(scale.rate > 0, first, np.where(scale.rate < 0, last, first + np.floor(0.5 * (last - first))))
    return np.asarray(scale.origin + cell * scale.step)
