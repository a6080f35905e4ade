"""One segment: density proportional to exp(-rate x) on (lo, hi]; shares, inverse, moments. All vectorised.

Distances are measured from the end where the density is highest, the *anchor*: lo if rate >= 0, else hi. With
a = abs(rate) and L = hi - lo the density at distance s is a exp(-a s) / (1 - exp(-a L)), or 1 / L if a L is next to 0.
"""

from __future__ import annotations

import numpy as np

FLAT = 1e-14
"""A segment with a L below this is uniform to the last digit."""
SHORT = 0.5
"""Below this a L moments are taken from series."""
LEAST_LOG = -1e300
"""Logs of densities further out than this are this, so that sums of them stay finite."""


def distance(far: np.ndarray, near: np.ndarray) -> np.ndarray:
    """far - near, at most the largest float, where both are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        gap = far - near
    return np.where(np.isinf(gap) & np.isfinite(far) & np.isfinite(near), np.finfo(float).max, gap)


def log_norm(rate: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Log of the integral of exp(-abs(rate) s) over a segment of this length."""
    a = np.abs(rate)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        decay = a * length
        flat = np.log(length) - 0.5 * decay
        return np.asarray(np.where(decay < FLAT, flat, np.log(-np.expm1(-decay)) - np.log(a)))


def log_density(lo: np.ndarray, hi: np.ndarray, rate: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Log of the density of segments at points x inside them."""
    s = np.where(rate >= 0, distance(x, lo), distance(hi, x))
    with np.errstate(over="ignore", invalid="ignore"):
        fall = np.where(rate == 0, 0.0, np.abs(rate) * s)
    return np.asarray(np.maximum(-fall - log_norm(rate, distance(hi, lo)), LEAST_LOG))


def log_part(lo: np.ndarray, hi: np.ndarray, rate: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Log of the share of segments that lies in (a, b], lo <= a < b <= hi."""
    start = np.where(rate >= 0, distance(a, lo), distance(hi, b))
    with np.errstate(over="ignore", invalid="ignore"):
        fall = np.where(rate == 0, 0.0, np.abs(rate) * start)
    log_share = -fall + log_norm(rate, distance(b, a)) - log_norm(rate, distance(hi, lo))
    return np.asarray(np.where((a == lo) & (b == hi), 0.0, np.clip(log_share, LEAST_LOG, 0.0)))


def part_below(lo: np.ndarray, hi: np.ndarray, rate: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Share of segments at or below x, lo <= x <= hi."""
    length, below = distance(hi, lo), distance(x, lo)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        decay = np.abs(rate) * length
        flat = below / length
        falling = np.expm1(-rate * below) / np.expm1(-decay)
        rising = 1.0 - np.expm1(rate * distance(hi, x)) / np.expm1(-decay)
        # in a lower tail the share is that of the distance from hi, without a difference of ones
        open_low = np.exp(rate * distance(hi, x))
    share = np.where(rate >= 0, falling, np.where(np.isinf(lo), open_low, rising))
    return np.clip(np.where(decay < FLAT, flat, share), 0.0, 1.0)


def from_anchor(rate: np.ndarray, length: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Distance from the anchor of the point of segments with this share (0..1) at or below it.

    The inverse of `part_below`. The anchor is lo if rate >= 0, else hi.
    """
    a = np.abs(rate)
    near = np.where(rate >= 0, share, 1.0 - share)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        decay = a * length
        # of a lower tail: exp(-a s) = share
        s = np.where((rate < 0) & np.isinf(length), -np.log(share), -np.log1p(near * np.expm1(-decay))) / a
        return np.where(decay < FLAT, near * length, s)


def point_at(lo: np.ndarray, hi: np.ndarray, rate: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The point of segments with this share (0..1) at or below it."""
    s = from_anchor(rate, distance(hi, lo), share)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.clip(np.where(rate >= 0, lo + s, hi - s), lo, hi)


def decay_of_mean(fraction: np.ndarray) -> np.ndarray:
    """rate (hi - lo) of segments whose mean lies at a fraction (0..1) of their length: positive below 1/2."""
    near = np.clip(np.minimum(fraction, 1.0 - fraction), 1e-6, 0.5)
    low, high = np.full(len(near), 1e-3), np.full(len(near), 2e6)
    for _ in range(60):  # bisection: the mean 1/t - 1/(exp(t) - 1) falls with t
        t = np.sqrt(low * high)
        mean, _ = _moments(t, np.ones(len(t)))
        low, high = np.where(mean > near, t, low), np.where(mean > near, high, t)
    return np.where(fraction < 0.5, low, -low)


def mean_variance(lo: np.ndarray, hi: np.ndarray, rate: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of segments; on a grid (step > 0) those of the cells' centres."""
    length = distance(hi, lo)
    a = np.abs(rate)
    if step > 0:
        cells = np.rint(np.where(np.isinf(length), np.inf, length) / step)
        number, square = _cell_moments(a * step, cells)
        mean, var = (number + 0.5) * step, square * step * step
    else:
        mean, var = _moments(a, length)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(rate >= 0, lo + mean, hi - mean), np.maximum(var, 0.0)


def _moments(a: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the distance from the anchor."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        t = a * length
        near = np.where(t < SHORT, t, 0.0)
        span = np.minimum(length, np.finfo(float).max)
        mean = np.where(t < SHORT, length * (0.5 - _excess(near)), 1 / a - span * _ratio(t))
        var = np.where(t < SHORT, -(length**2) * _dip(near), (1 / a) ** 2 - (span * _half_csch(t)) ** 2)
    return mean, var


def _cell_moments(t: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the number, 0..m-1, of a cell with probability proportional to exp(-t number)."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        all_cells = t * cells
        far = all_cells >= SHORT
        little, near = np.where(far, 0.0, t), np.where(far, 0.0, all_cells)
        cells = np.minimum(cells, np.finfo(float).max)
        mean = np.where(
            far, 1 / np.expm1(t) - cells * _ratio(all_cells), (cells - 1) / 2 + _excess(little) - cells * _excess(near)
        )
        far_var = _half_csch(t) ** 2 - (cells * _half_csch(all_cells)) ** 2
        var = np.where(far, far_var, (cells - 1) * (cells + 1) / 12 + _bend(little) - cells**2 * _bend(near))
    return mean, var


def _ratio(t: np.ndarray) -> np.ndarray:
    """1 / (exp(t) - 1)."""
    return np.where(t < 700.0, 1 / np.expm1(np.minimum(t, 700.0)), 0.0)


def _half_csch(t: np.ndarray) -> np.ndarray:
    """1 / (2 sinh(t/2))."""
    return np.where(t < 1400.0, 0.5 / np.sinh(np.minimum(t, 1400.0) / 2), 0.0)


def _excess(t: np.ndarray) -> np.ndarray:
    """1 / (exp(t) - 1) - 1/t + 1/2 for 0 <= t < 1/2: its Bernoulli series, to the last digit."""
    y = t * t
    return t * (1 / 12 - y * (1 / 720 - y * (1 / 30240 - y * (1 / 1209600 - y * (1 / 47900160 - y * _LAST)))))


def _dip(t: np.ndarray) -> np.ndarray:
    """1 / (4 sinh(t/2)^2) - 1/t^2 for 0 <= t < 1/2: minus the derivative of `_excess`."""
    return _bend(t) - 1 / 12


def _bend(t: np.ndarray) -> np.ndarray:
    """1 / (4 sinh(t/2)^2) - 1/t^2 + 1/12 for 0 <= t < 1/2."""
    y = t * t
    return y * (3 / 720 - y * (5 / 30240 - y * (7 / 1209600 - y * (9 / 47900160 - y * 11 * _LAST))))


_LAST = 691 / 1307674368000
"""Sixth coefficient of the Bernoulli series."""
