"""A forest given that a cell is missing, or is not: its leaves weighed anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..forest import Forest


def given_missing(forest: Forest, j: int, is_missing: bool) -> tuple[Forest | None, float]:
    """The distribution given that cell j is missing (or is known), and the log-probability of that.

    A leaf of weight w whose rows lack the cell at the rate r has w r (or w (1 - r)); in a leaf it tells nothing of the
    columns. None and -inf where no leaf is left.
    """
    leaves = forest.leaves
    rate = leaves.missing_rate[:, j] if is_missing else 1.0 - leaves.missing_rate[:, j]
    with np.errstate(divide="ignore"):
        log_weight = leaves.log_weight + np.log(rate)
    log_share = float(np.logaddexp.reduce(log_weight))
    if log_share == -np.inf:
        return None, -np.inf
    missing_rate = leaves.missing_rate.copy()
    missing_rate[:, j] = float(is_missing)
    weighed = leaves._replace(log_weight=log_weight - log_share, missing_rate=missing_rate)
    return replace(forest, leaves=weighed), log_share
