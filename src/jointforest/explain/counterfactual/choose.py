"""From many rows that will do a few near ones that differ from each other."""

from __future__ import annotations

import numpy as np

from .distance import gower
from .problem import Problem, unlike, within

STEPS = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
"""Places on the way from a row's number to another that are tried, the nearest first."""
LOST = 1.0
"""Nats of log-density that a row may lose when its numbers come nearer."""


def choose(p: Problem, X: np.ndarray, n: int) -> np.ndarray:
    """At most n of the rows X (m, d), fewest changes first, then nearest, then most probable.

    Needless changes are taken back, and numbers brought nearer. First one row for each set of columns that holds no
    other, then others that are not alike.
    """
    if not len(X):
        return X
    X = X[_ranked(p, X)]
    X = X[unlike(p, X)]
    mask = p.changed(X)
    of_set = {tuple(np.flatnonzero(one)): 0 for one in mask}
    some = []
    for i, one in enumerate(mask):  # the best of each set
        key = tuple(np.flatnonzero(one))
        of_set[key] += 1
        if of_set[key] <= n:
            some.append(i)
    X = _simpler(p, X[some[: 10 * n]])
    X = np.vstack([_nearer(p, X), X])  # what comes near may be alike; then those as they were drawn make the number up
    X = X[_ranked(p, X)]
    X = X[unlike(p, X)]
    sets = [frozenset(np.flatnonzero(one).tolist()) for one in p.changed(X)]
    first: list[int] = []
    for i, one in enumerate(sets):
        if not any(sets[k] <= one for k in first):
            first.append(i)
    rest = [i for i in range(len(X)) if i not in set(first) and sets[i] in {sets[k] for k in first}]
    chosen = X[[*first, *rest][:n]]
    return chosen[_ranked(p, chosen)]


def _ranked(p: Problem, X: np.ndarray) -> np.ndarray:
    """Order of rows (m, d): by changes, distance, log-density; (m,)."""
    return np.lexsort([-p.log_density(X), gower(p.columns, X, p.row).round(12), p.changed(X).sum(axis=1)])


def _simpler(p: Problem, X: np.ndarray) -> np.ndarray:
    """Rows with each change taken back that is not needed."""
    X = X.copy()
    for j in p.free:
        trial = X.copy()
        trial[:, j] = p.row[j]
        mine = np.flatnonzero(p.changed(X)[:, j] & p.changed(trial).any(axis=1))
        if len(mine):
            fits = mine[p.plausible(trial[mine])[0] & p.outcome.judge(trial[mine]).valid]
            X[fits] = trial[fits]
    return X


def _nearer(p: Problem, X: np.ndarray) -> np.ndarray:
    """Rows whose numbers are as near to the row's as one of `STEPS` on the way, at about the same density."""
    X, least = X.copy(), np.maximum(p.log_density(X) - LOST, p.log_floor)
    for j in p.free:
        mine = np.flatnonzero(X[:, j] != p.row[j])
        if p.columns[j].is_categorical or not len(mine):
            continue
        trial = np.repeat(X[mine], len(STEPS), axis=0)
        way = p.row[j] + np.tile(STEPS, len(mine)) * (trial[:, j] - p.row[j])
        trial[:, j] = within((p.columns[j],), way[:, None])[:, 0]
        fits = (trial[:, j] != p.row[j]) & (p.log_density(trial) >= np.repeat(least[mine], len(STEPS)))
        fits[fits] = p.outcome.judge(trial[fits]).valid if fits.any() else False
        for i, one in enumerate(fits.reshape(len(mine), len(STEPS))):
            if one.any():
                X[mine[i], j] = trial[i * len(STEPS) + int(one.argmax()), j]
    return X
