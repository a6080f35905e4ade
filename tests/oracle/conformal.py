"""Jackknife+ after bootstrap as the papers write it, in loops over rows and trees."""

from __future__ import annotations

import math
from collections.abc import Sequence


def average(log_weight: Sequence[float], answer: Sequence[float], trees: Sequence[int]) -> float:
    """Weighted average of some trees' answers."""
    top = max(log_weight[t] for t in trees)
    weight = {t: math.exp(log_weight[t] - top) for t in trees}
    return sum(weight[t] * answer[t] for t in trees) / sum(weight.values())


def upper_quantile(values: Sequence[float], alpha: float) -> float:
    """The ceil((1 - alpha)(n + 1))-th smallest of n values (Barber et al. 2021, section 1.1); inf beyond the last."""
    k = math.ceil(round((1 - alpha) * (len(values) + 1), 9))
    return sorted(values)[k - 1] if k <= len(values) else math.inf


def lower_quantile(values: Sequence[float], alpha: float) -> float:
    """The floor(alpha (n + 1))-th smallest; -inf before the first."""
    k = math.floor(round(alpha * (len(values) + 1), 9))
    return sorted(values)[k - 1] if k >= 1 else -math.inf


def interval(
    means: Sequence[float], spreads: Sequence[float], scores: Sequence[float], alpha: float
) -> tuple[float, float]:
    """The interval of one row, of what c models without a row each say of it, and of the rows' scores."""
    low = [m - s * r for m, s, r in zip(means, spreads, scores, strict=True)]
    high = [m + s * r for m, s, r in zip(means, spreads, scores, strict=True)]
    return lower_quantile(low, alpha), upper_quantile(high, alpha)


def label_set(asked: Sequence[Sequence[float]], own: Sequence[float], alpha: float) -> list[bool]:
    """Romano, Sesia, Candes 2020, equation 11, with scores 1 - p: c models' probabilities, and of the rows' classes."""
    n, found = len(own), []
    for k in range(len(asked[0])):
        below = sum(1 - own[i] < 1 - asked[i][k] for i in range(n))
        found.append(below < round((1 - alpha) * (n + 1), 9))
    return found
