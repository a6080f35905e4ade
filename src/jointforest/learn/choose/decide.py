"""One candidate, or a mixture of some: by held-out rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .compare import Compared
from .weights import judge_mixture, sparse_weights

_GAIN = 0.01
"""Nats a column by which a mixture must be better: it takes longer to ask, and its rows are told apart more easily."""


class Decision(NamedTuple):
    """Weights (K,) of the candidates, the mixture's mean log-density (NaN where there is none), and why."""

    weight: np.ndarray
    mixture: float
    why: str


def decide(compared: list[Compared], d: int, seed: int, may_mix: bool = True) -> Decision:
    """The weights of candidates for a table of d columns: one has all, or a mixture is better by enough."""
    means = np.array([one.mean for one in compared])
    best = int(means.argmax())
    alone = np.eye(len(means))[best]
    if len(means) == 1:
        return Decision(alone, np.nan, "the only candidate")
    table = np.column_stack([one.log_density for one in compared])
    better = f"better by {means[best] - np.delete(means, best).max():.3f} nats than the next"
    if not may_mix or len(table) < 4:
        return Decision(alone, np.nan, better)
    mixture = float(judge_mixture(table, seed).mean())
    gain = mixture - means[best]
    if gain > _GAIN * d:
        weight = sparse_weights(table)
        if np.count_nonzero(weight) > 1:
            return Decision(weight, mixture, f"a mixture is better by {gain:.3f} nats than the best alone")
    return Decision(alone, mixture, f"{better}; a mixture would gain less than {_GAIN * d:.2f}")
