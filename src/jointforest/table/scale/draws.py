"""From probabilities of codes back to values: quantiles, draws, levels."""

from __future__ import annotations

import numpy as np

from .codes import first_cell, last_cell
from .scale import Scale
from .segments import distance, from_anchor, point_at

INSIDE = 2.0**-53


def quantiles(scale: Scale, weights: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Quantiles inf{x: F(x) >= q} of a numeric column that has codes with these probabilities.

    Parameters
    ----------
    scale : Scale
        Of a numeric column; cut to a region, quantiles are given the region.
    weights : float array (n, K)
        Probability of each code in each row, up to a factor.
    q : float64 array (k,)
        Levels from 0 to 1.

    Returns
    -------
    float64 array (n, k)
        Centres of cells on a grid, atoms exactly; NaN where a row's weights are NaN or all 0.

    Examples
    --------
    >>> from jointforest.table.schema import Column
    >>> from jointforest.table.scale.learn import learn_scale
    >>> scale = learn_scale(Column("age", "integer", "int64", step=1.0), np.repeat([30.0, 31.0], 50), None, 8)
    >>> quantiles(scale, np.array([[0.7, 0.3]]), np.array([0.5, 0.9]))
    array([[30., 31.]])
    """
    share: np.ndarray = np.where(np.isneginf(scale.log_code), 0.0, np.asarray(weights, dtype=np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):
        share /= share.sum(axis=1, keepdims=True)
    known = np.asarray(np.isfinite(share).all(axis=1))
    share = np.where(known[:, None], share, np.isfinite(scale.log_code))
    up_to = np.cumsum(share, axis=1)
    up_to /= up_to[:, -1:]
    last = scale.n_codes - 1 - np.argmax(share[:, ::-1] > 0, axis=1)
    first = np.argmax(share > 0, axis=1)
    row = np.arange(len(share))
    out = np.empty((len(share), len(q)))
    for k, level in enumerate(np.asarray(q, dtype=np.float64).tolist()):
        code = np.clip((up_to < level).sum(axis=1), first, last)
        before = np.where(code > 0, up_to[row, code - 1], 0.0)
        inside = np.clip((level - before) / (up_to[row, code] - before), 0.0, 1.0)
        out[:, k] = _value(scale, *_located(scale, code, inside))
    out[~known] = np.nan
    return out


def draw(scale: Scale, code: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Exact draws inside codes.

    Parameters
    ----------
    scale : Scale
    code : int array (n,)
        Codes that the scale has something of.
    u : float64 array (n,)
        Uniform numbers, 0 <= u < 1: the draw is the code's quantile at u.

    Returns
    -------
    float64 array (n,)
        Finite numbers (cells' centres on a grid) or level codes.

    Examples
    --------
    >>> from jointforest.table.schema import Column
    >>> from jointforest.table.scale.learn import learn_scale
    >>> scale = learn_scale(Column("age", "integer", "int64", step=1.0), np.repeat([30.0, 31.0], 50), None, 8)
    >>> draw(scale, np.array([0, 1, 1]), np.array([0.5, 0.1, 0.9]))
    array([30., 31., 31.])
    """
    segment, part = _located(scale, np.asarray(code), np.asarray(u, dtype=np.float64))
    limit = np.finfo(float).max
    return np.clip(_value(scale, segment, np.clip(part, INSIDE, 1 - INSIDE)), -limit, limit)


def levels(scale: Scale, weights: np.ndarray, n_levels: int) -> np.ndarray:
    """Probability of each level of a categorical column: weights of codes (n, K), result (n, n_levels).

    Examples
    --------
    >>> from jointforest.table.schema import Column
    >>> from jointforest.table.scale.learn import learn_scale
    >>> scale = learn_scale(Column("s", "categorical", "str", levels=("f", "m")), np.zeros(9), None, 8)
    >>> levels(scale, np.array([[0.25, 0.75]]), 2)
    array([[0.25, 0.75]])
    """
    out = np.zeros((len(weights), n_levels))
    out[:, scale.lo.astype(np.intp)] = np.asarray(weights)[:, scale.code] * scale.share
    return out


def _located(scale: Scale, code: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The segment in which a code's share is reached, and the part (0..1) of the segment up to there."""
    before = scale.share_before[scale.by_code]
    low, high = scale.code_start[code], scale.code_start[code + 1] - 1
    while np.any(low < high):
        middle = (low + high + 1) // 2
        passed = before[middle] < share
        low, high = np.where(passed, middle, low), np.where(passed, high, middle - 1)
    segment = scale.by_code[low]
    size = scale.share[segment]
    part = np.clip((share - before[low]) / np.where(size > 0, size, 1.0), 0.0, 1.0)
    return segment, part


def _value(scale: Scale, segment: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Value of the point of a segment with this part of it below; the cell's centre on a grid."""
    lo, hi, rate = scale.lo[segment], scale.hi[segment], scale.rate[segment]
    if scale.step == 0:
        inside = np.clip(point_at(lo, hi, rate, part), np.nextafter(lo, np.inf), hi)
        x = np.where(part == 0.0, lo, inside)
        return np.where(lo == hi, lo, x)
    return scale.origin + _cell(scale, lo, hi, rate * scale.step, part) * scale.step


def _cell(scale: Scale, lo: np.ndarray, hi: np.ndarray, rate: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Number of the cell in which a part of a segment ends; the rate is that a cell."""
    first, last = first_cell(scale, lo), last_cell(scale, hi)
    cells = from_anchor(rate, distance(last, first) + 1.0, part)
    with np.errstate(invalid="ignore", over="ignore"):
        near = 1e-9 + 4e-16 * np.minimum(cells, 1e300)  # a part that ends on a cell's edge, but for rounding
        cell = np.where(rate >= 0, first + np.ceil(cells - near) - 1.0, last - np.floor(cells + near))
    return np.clip(cell, first, last)
