"""Information about "old or new" by counting rows, and by logistic regression on the cells of a table of counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np


def information(values: Sequence[Hashable], is_new: Sequence[bool]) -> float:
    """I(values; new) of the rows, in nats."""
    n = len(values)
    both, one, new = Counter(zip(values, is_new, strict=True)), Counter(values), Counter(is_new)
    return sum(k / n * math.log(k * n / (one[value] * new[side])) for (value, side), k in both.items())


def log_odds(rows: np.ndarray, new: np.ndarray, design: np.ndarray) -> np.ndarray:
    """Shares of new rows in cells (C,) by logistic regression on a design (C, k), with Newton's method."""
    beta = np.zeros(design.shape[1])
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-design @ beta))
        hessian = design.T @ (design * (rows * p * (1.0 - p))[:, None])
        beta = beta + np.linalg.lstsq(hessian, design.T @ (new - rows * p), rcond=1e-12)[0]
    return np.asarray(1.0 / (1.0 + np.exp(-design @ beta)))


def beyond(first: Sequence[Hashable], second: Sequence[Hashable], is_new: Sequence[bool]) -> float:
    """Information of two columns about "new" that no sum of log-odds of each has, in nats."""
    a, b = sorted(set(first), key=str), sorted(set(second), key=str)
    cells = sorted(set(zip(first, second, strict=True)), key=str)
    rows, news = (
        Counter(zip(first, second, strict=True)),
        Counter((x, y) for x, y, side in zip(first, second, is_new, strict=True) if side),
    )
    design = np.array([[x == k for k in a] + [y == k for k in b] for x, y in cells], float)
    n, new = np.array([rows[c] for c in cells], float), np.array([news[c] for c in cells], float)
    p = log_odds(n, new, design)
    total = 0.0
    for k, m, q in zip(new, n, p, strict=True):
        total += k * math.log(k / (m * q)) if k else 0.0
        total += (m - k) * math.log((m - k) / (m * (1.0 - q))) if m > k else 0.0
    return total / len(first)
