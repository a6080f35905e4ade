"""One candidate, or a mixture of some: by held-out rows, among those whose draws are true to the rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .compare import Compared
from .weights import judge_mixture, sparse_weights

_GAIN = 0.01
"""Nats a column by which a mixture must be better: it takes longer to ask, and its rows are told apart more easily."""
_BLUNT = 0.05
"""Told-apart score by which a candidate may be worse than the best: three standard errors of 2,400 rows' score."""


class Decision(NamedTuple):
    """Weights (K,) of the candidates, the number of the best one alone, the mixture's mean log-density (NaN where there
    is none), and why."""

    weight: np.ndarray
    best: int
    mixture: float
    why: str


def decide(compared: list[Compared], d: int, seed: int, may_mix: bool = True) -> Decision:
    """The weights of candidates for a table of d columns: one has all, or a mixture is better by enough.

    Candidates whose draws are told from the rows more easily have none, however probable they find held-out rows: a
    forest in a mixture may gain log-density and blunt all that columns say of each other.
    """
    means = np.array([one.mean for one in compared])
    is_true = true_ones(np.array([one.told_apart for one in compared]))
    best = int(np.where(is_true, means, -np.inf).argmax())
    alone = np.eye(len(means))[best]
    if len(means) == 1:
        return Decision(alone, best, np.nan, "the only candidate")
    used = np.flatnonzero(is_true)
    if len(used) == 1:
        other = max((one.told_apart, one.candidate.name) for one in compared[:best] + compared[best + 1 :])
        why = f"rows drawn are told from the table's least (score {compared[best].told_apart:.2f}; next {other[0]:.2f})"
        return Decision(alone, best, np.nan, why)
    table = np.column_stack([compared[k].log_density for k in used.tolist()])
    better = f"better by {means[best] - np.delete(means[used], used.searchsorted(best)).max():.3f} nats than the next"
    if len(used) < len(means):
        better += f" whose draws are told apart as little (score {compared[best].told_apart:.2f})"
    if not may_mix or len(table) < 4:
        return Decision(alone, best, np.nan, better)
    mixture = float(judge_mixture(table, seed).mean())
    gain = mixture - means[best]
    if gain > _GAIN * d:
        weight = np.zeros(len(means))
        weight[used] = sparse_weights(table)
        if np.count_nonzero(weight) > 1:
            return Decision(weight, best, mixture, f"a mixture is better by {gain:.3f} nats than the best alone")
    return Decision(alone, best, mixture, f"{better}; a mixture would gain less than {_GAIN * d:.2f}")


def true_ones(score: np.ndarray) -> np.ndarray:
    """Which candidates' told-apart scores (K,) are as good as the best, but for noise; all where any is not known."""
    if np.isnan(score).any():
        return np.ones(len(score), bool)
    found: np.ndarray = score >= score.max() - _BLUNT
    return found
