"""Additive models, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Sequence


def effect_at(points: Sequence[float], effects: Sequence[float], x: float) -> float:
    """The piecewise linear function through the points; constant beyond the ends."""
    if math.isnan(x):
        return 0.0
    if x <= points[0]:
        return effects[0]
    for left, right, low, high in zip(points, points[1:], effects, effects[1:], strict=False):
        if left <= x < right:
            return low + (high - low) * (x - left) / (right - left)
    return effects[-1]


def total_of(
    base: Sequence[float], columns: Sequence[tuple[Sequence[float], Sequence[Sequence[float]]]], row: Sequence[float]
) -> list[float]:
    """base_k + sum_j f_jk(x_j) of one row; each column has its points, and for each the effects on all outputs."""
    out = []
    for k, start in enumerate(base):
        parts = [
            effect_at(points, [effect[k] for effect in effects], x)
            for (points, effects), x in zip(columns, row, strict=True)
        ]
        out.append(start + sum(parts))
    return out


def probabilities(total: Sequence[float]) -> list[float]:
    """exp(F_k), divided by their sum."""
    odds = [math.exp(score) for score in total]
    return [one / sum(odds) for one in odds]
