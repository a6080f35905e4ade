"""What the codes are like as distributions: shares, means and variances, distribution function, density."""

# Of a scale that is cut to a region, everything is given that a value lies in the region.

from __future__ import annotations

import numpy as np

from .discretizer import (
    Scale,
    codes_of,
    distance,
    first_cell,
    from_anchor,
    last_cell,
    log_norm,
    mean_variance,
    part_below,
    point_at,
)


def cdf(scale: Scale, x: np.ndarray) -> np.ndarray:
    """Share of each code of a numeric column at or below points: x (q,), result (q, K), NaN where x is."""
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
    """Density of each code at points: x (q,), result (q, K), NaN where x is."""
    # On a grid the cell's mass over the step; at an atom or a level its mass. 0 for codes that the point is not in.
    code, log_base = codes_of(scale, x)
    out = np.zeros((len(code), scale.n_codes + 1))
    log_code = np.append(scale.log_code, 0.0)[code]
    with np.errstate(over="ignore", invalid="ignore"):
        density = np.exp(log_base - np.where(np.isfinite(log_code), log_code, 0.0))
    out[np.arange(len(code)), code] = density
    out[code == scale.n_codes] = np.nan
    return out[:, :-1]


# ---- From probabilities of codes back to values: quantiles, draws, levels.

_INSIDE = 2.0**-53


def quantiles(scale: Scale, weights: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Quantiles inf{x: F(x) >= q} (n, k) of a numeric column with code weights (n, K), up to a factor; NaN if all 0."""
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
    """Exact draws (n,) inside codes: each is the code's quantile at a uniform number 0 <= u < 1."""
    segment, part = _located(scale, np.asarray(code), np.asarray(u, dtype=np.float64))
    limit = np.finfo(float).max
    return np.clip(_value(scale, segment, np.clip(part, _INSIDE, 1 - _INSIDE)), -limit, limit)


def levels(scale: Scale, weights: np.ndarray, n_levels: int) -> np.ndarray:
    """Probability of each level of a categorical column: weights of codes (n, K), result (n, n_levels)."""
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


# ---- Entropy of what each code holds.


def code_entropy(scale: Scale) -> np.ndarray:
    """Entropy in nats inside each code (K,), with respect to the measure of `codes_of`; 0 for empty codes."""
    of_segment = np.where(scale.share > 0.0, _of_segments(scale) - scale.log_share, 0.0)
    return np.bincount(scale.code, scale.share * of_segment, scale.n_codes)


def _of_segments(scale: Scale) -> np.ndarray:
    """Entropy of each segment, (S,): its log density falls with the distance from its anchor."""
    length, rate = distance(scale.hi, scale.lo), scale.rate
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        anchor = np.where(rate >= 0, scale.lo, scale.hi)
        mean = np.abs(mean_variance(scale.lo, scale.hi, rate, scale.step)[0] - anchor)
        fall = np.where(rate == 0, 0.0, np.abs(rate) * (mean - 0.5 * scale.step))
        if scale.step > 0.0:
            cell = np.abs(rate) * scale.step
            cells = np.rint(np.where(np.isinf(length), np.inf, length) / scale.step)
            found = fall + log_norm(cell, cells) - log_norm(cell, np.ones(len(cell))) + np.log(scale.step)
        else:
            found = fall + log_norm(rate, length)
    return np.where(scale.is_point, 0.0, found)


# ---- The best point inside each code.


def peaks(scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """A point of greatest base density in each code, and its log density, each (K,); NaN and -inf for empty codes."""
    # Intervals are open below, so at a lower end the point is the next float above it.
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
    # An upper end that is a point of its own has no density of the interval: the number below it has.
    with np.errstate(over="ignore", invalid="ignore"):
        middle = 0.5 * scale.lo + 0.5 * scale.hi
    upper, taken = scale.hi.copy(), np.isin(scale.hi, scale.lo[scale.points])
    length = np.where(np.isinf(scale.lo[taken]), 0.0, distance(upper[taken], scale.lo[taken]))
    upper[taken] = np.minimum(np.nextafter(upper[taken], -np.inf), upper[taken] - 1e-12 * length)
    ends = np.where(scale.rate > 0, np.nextafter(scale.lo, np.inf), upper)
    return np.where(scale.rate == 0, middle, ends)


def _on_grid(scale: Scale) -> np.ndarray:
    """Centre of the best cell of each interval."""
    with np.errstate(over="ignore", invalid="ignore"):
        first = np.rint((scale.lo - scale.origin) / scale.step + 0.5)
        last = np.rint((scale.hi - scale.origin) / scale.step - 0.5)
        cell = np.where(scale.rate > 0, first, np.where(scale.rate < 0, last, first + np.floor(0.5 * (last - first))))
    return np.asarray(scale.origin + cell * scale.step)
