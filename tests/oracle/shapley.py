"""Shapley values from the definition: the mean, over all orders of the players, of what each adds when it comes."""

from __future__ import annotations

import itertools
import math

import numpy as np


def shapley(p, value):
    """Values (p,) of a game; ``value`` of a frozenset of players is a number, or an array."""
    known = {frozenset(s): value(frozenset(s)) for k in range(p + 1) for s in itertools.combinations(range(p), k)}
    total = [0.0] * p
    for order in itertools.permutations(range(p)):
        before = frozenset()
        for player in order:
            total[player] = total[player] + known[before | {player}] - known[before]
            before = before | {player}
    return np.array(total) / math.factorial(p)


def conditional_value(table, probability, answers, row, groups):
    """S -> E[answers | the columns of S are as in the row], by summing over all rows of a table.

    ``row`` maps names of known columns to their values; ``groups`` are tuples of names.
    """

    def value(players):
        agrees = np.ones(len(table), bool)
        for player in players:
            for name in groups[player]:
                if name in row:
                    agrees &= np.asarray(table[name]) == row[name]
        weight = probability * agrees
        return weight @ answers / weight.sum()

    return value


def interventional_value(function, background, row, groups):
    """S -> the mean of function over rows of a frame with the row's cells of S put in."""

    def value(players):
        changed = background.copy()
        for player in players:
            for name in groups[player]:
                if name in row:
                    changed[name] = row[name]
        return np.mean(function(changed), axis=0)

    return value


def linear_normal(beta, mean, covariance, x):
    """Values (p,) of f(x) = beta'x of correlated normals: E[X_rest | x_S] by the normal equations."""
    p = len(beta)

    def value(players):
        inside = sorted(players)
        rest = [j for j in range(p) if j not in players]
        expected = np.array(mean, dtype=float)
        expected[inside] = x[inside]
        if inside and rest:
            slope = covariance[np.ix_(rest, inside)] @ np.linalg.inv(covariance[np.ix_(inside, inside)])
            expected[rest] = mean[rest] + slope @ (x[inside] - mean[inside])
        return beta @ expected

    return value
