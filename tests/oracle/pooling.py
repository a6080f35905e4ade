"""Pools of predictions as their formulas say, row by row, with penalties written out."""

from __future__ import annotations

import math

import numpy as np


def weight_at(knots: np.ndarray, values: np.ndarray, share: float) -> float:
    """A piecewise linear function at ``share``, by the two knots beside it."""
    for left in range(len(knots) - 1):
        if knots[left] <= share <= knots[left + 1]:
            part = (share - knots[left]) / (knots[left + 1] - knots[left])
            return float((1 - part) * values[left] + part * values[left + 1])
    raise ValueError(share)


def pooled_classes(p: np.ndarray, share: float, knots: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> list[float]:
    """Probabilities of one row from those of the members, p (M, K): a weighted geometric mean times exp of a bias."""
    M, K = p.shape
    raw = []
    for k in range(K):
        product = math.exp(weight_at(knots, bias[:, k], share))
        for m in range(M):
            product *= p[m, k] ** weight_at(knots, weight[:, m], share)
        raw.append(product)
    return [x / sum(raw) for x in raw]


def pooled_mean(mean: np.ndarray, share: float, knots: np.ndarray, weight: np.ndarray, centre: float) -> float:
    """The mean of one row from those of the members, (M,)."""
    return centre + sum(weight_at(knots, weight[:, m], share) * (mean[m] - centre) for m in range(len(mean)))


def roughness(weight: np.ndarray, equal: float, smooth: float) -> float:
    """The penalty of weights (B, M)."""
    B, M = weight.shape
    total = 0.0
    for b in range(B):
        for m in range(M):
            total += equal * (weight[b, m] - 1 / M) ** 2
            if b:
                total += smooth * (weight[b, m] - weight[b - 1, m]) ** 2
    return total


def class_loss(
    p: np.ndarray,
    y: np.ndarray,
    share: np.ndarray,
    knots: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray,
    penalties: tuple[float, float, float],
) -> float:
    """Mean log-loss of rows with the members' probabilities p (n, M, K), with penalties of weights and biases."""
    rows = [pooled_classes(p[i], share[i], knots, weight, bias)[int(y[i])] for i in range(len(y))]
    equal, smooth, unbiased = penalties
    return -sum(map(math.log, rows)) / len(rows) + roughness(weight, equal, smooth) + unbiased * float((bias**2).sum())


def crps_of_sample(draws: np.ndarray, y: float) -> float:
    """E|Y - y| - E|Y - Y'| / 2 of a distribution that has these values, all equally probable."""
    away = sum(abs(x - y) for x in draws) / len(draws)
    apart = sum(abs(a - b) for a in draws for b in draws) / len(draws) ** 2
    return away - apart / 2
