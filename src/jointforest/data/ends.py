"""Where a column of numbers ends: at its hard ends nothing lies beyond, its open ends have a tail.

An end is hard where rows pile up, where they stop sharply, and in columns of few whole numbers.
"""

from __future__ import annotations

import math

import numpy as np

PILE = 5.0
"""Rows that should lie beyond a pile, and do not."""
_FEW_CELLS = 10
"""Whole numbers from end to end, of columns that have no others, ..."""
ROWS_EACH = 5
"""... with so many rows for each."""
OUTERMOST = (64, 32, 16)
"""Rows from an end within which it is seen whether they stop sharply."""
ROWS_A_CELL = 2.0
"""Outermost rows for each cell of the grid: of fewer, or without a grid, the last row is not the end."""
_SURE = math.log(1000.0)
"""Log-likelihood of a sharp stop over that of a tail, among the most of them; among the fewest it is not below 0."""


def ends_of(
    values: np.ndarray, counts: np.ndarray, n: int, step: float, ends: tuple[float, float], has_zero: bool = True
) -> tuple[float, float]:
    """The lower and upper end of a column, infinite where it is open."""
    # ``values`` (k,) are ascending distinct numbers with their counts: the 64 nearest to either end, or all if fewer.
    # ``has_zero``: whether 0 means more to the column than another number; it does not for dates.
    low, high = ends
    is_narrow = step == 1.0 and high - low < _FEW_CELLS and n >= ROWS_EACH * (high - low + 1.0)
    has_low = is_narrow or _stops(-values[::-1], counts[::-1], n, step)
    has_high = is_narrow or _stops(values, counts, n, step)
    lower, upper = low if has_low else -math.inf, high if has_high else math.inf
    if has_zero and low >= 0.0:
        lower = max(lower, 0.0 if low == 0.0 or step in (0.0, 1.0) else step)
    if has_zero and high <= 0.0:
        upper = min(upper, 0.0 if high == 0.0 or step in (0.0, 1.0) else -step)
    return float(lower), float(upper)


def _stops(values: np.ndarray, counts: np.ndarray, n: int, step: float) -> bool:
    """Whether the numbers pile up, or stop sharply, at the greatest of them."""
    values, counts = values[-OUTERMOST[0] :], counts[-OUTERMOST[0] :]
    last, before = float(counts[-1]), float(counts[-2]) if len(counts) > 1 else 0.0
    if last * last > PILE * max(last, before):  # as many again, less by the factor by which the last ones are fewer
        return True
    beyond = np.cumsum(counts[::-1])[::-1]  # rows from each value on
    most = next((k for k in OUTERMOST[:-1] if n >= 2 * k), 0)
    first = int(np.flatnonzero(beyond >= most)[-1]) if most else -1
    if first < 0 or beyond[first] * step < ROWS_A_CELL * (values[-1] - values[first] + step) or step == 0.0:
        return False
    likelihoods = [_sharpness(values, counts, beyond, step, k) for k in OUTERMOST if k <= most]
    return likelihoods[0] > _SURE and min(likelihoods) > 0.0


def _sharpness(values: np.ndarray, counts: np.ndarray, beyond: np.ndarray, step: float, k: int) -> float:
    """Log-likelihood of the k outermost rows if they are uniform up to the last, over that of an exponential tail."""
    first = int(np.flatnonzero(beyond >= k)[-1])
    start = values[first] - 0.5 * step
    excess = values[first:] - start
    width, n = excess[-1] + 0.5 * step, float(beyond[first])
    mean = float(excess @ (counts[first:] / n))
    return n * (math.log(mean / width) + 1.0) if width > 0.0 and mean > 0.0 else 0.0
