"""What the codes are like as distributions: shares, means and variances, distribution function, density.

Of a scale cut to a region all but `code_log_mass` is given the region.
"""

from __future__ import annotations

import numpy as np

from .codes import codes_of
from .scale import Scale
from .segments import part_below


def code_log_mass(scale: Scale) -> np.ndarray:
    """Log of the share of each code that the scale has, (K,): 0 in a whole scale, -inf where a region leaves nothing.

    Examples
    --------
    >>> from jointforest.table.schema import Column
    >>> from jointforest.table.scale.learn import learn_scale
    >>> code_log_mass(learn_scale(Column("s", "categorical", "str", levels=("f", "m")), np.zeros(9), None, 8))
    array([0., 0.])
    """
    return scale.log_code


def cdf(scale: Scale, x: np.ndarray) -> np.ndarray:
    """Share of each code of a numeric column at or below points: x (q,), result (q, K), NaN where x is.

    Examples
    --------
    >>> from jointforest.table.schema import Column
    >>> from jointforest.table.scale.learn import learn_scale
    >>> scale = learn_scale(Column("x", "continuous", "float64"), np.linspace(0.0, 1.0, 101), None, 2)
    >>> cdf(scale, np.array([0.255, 2.0])).round(2)
    array([[0.52, 0.  ],
           [1.  , 1.  ]])
    """
    x = np.asarray(x, dtype=np.float64)
    missing = np.isnan(x)
    at = np.where(missing, 0.0, x)
    if scale.step > 0:
        at = _cell_end(scale, at)
    out = np.zeros((len(x), scale.n_codes))
    if len(scale.code):
        end = np.searchsorted(scale.hi, at, side="right")  # segments wholly at or below
        next_one = np.minimum(end, len(scale.code) - 1)
        code = scale.code[next_one]
        part = np.where(scale.lo[next_one] < at, _part(scale, next_one, at), 0.0)
        share = scale.share_before[next_one] + part * scale.share[next_one]
        out[:] = np.arange(scale.n_codes) < code[:, None]
        out[np.arange(len(x)), code] = np.where(end == len(scale.code), 1.0, np.minimum(share, 1.0))
    out[missing] = np.nan
    return out


def _cell_end(scale: Scale, x: np.ndarray) -> np.ndarray:
    """Upper edge of the last cell with a centre <= x."""
    with np.errstate(over="ignore", invalid="ignore"):
        cells = (x - scale.origin) / scale.step
        end = scale.origin + (np.floor(cells + 1e-6 + 4e-16 * np.abs(cells)) + 0.5) * scale.step
    return np.where(np.isfinite(end), end, x)


def _part(scale: Scale, segment: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Share of segments at or below points, which may lie outside them."""
    lo, hi = scale.lo[segment], scale.hi[segment]
    return part_below(lo, hi, scale.rate[segment], np.clip(x, lo, hi))


def pdf(scale: Scale, x: np.ndarray) -> np.ndarray:
    """Density of each code at points: x (q,), result (q, K), NaN where x is.

    On a grid the cell's mass over the step; at an atom or a level its mass. 0 for codes that the point is not in.
    """
    code, log_base = codes_of(scale, x)
    out = np.zeros((len(code), scale.n_codes + 1))
    log_code = np.append(scale.log_code, 0.0)[code]
    with np.errstate(over="ignore", invalid="ignore"):
        density = np.exp(log_base - np.where(np.isfinite(log_code), log_code, 0.0))
    out[np.arange(len(code)), code] = density
    out[code == scale.n_codes] = np.nan
    return out[:, :-1]
