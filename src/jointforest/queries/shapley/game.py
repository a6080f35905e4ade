"""Shapley values of rows: which coalitions are asked of which row, and in what blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .plan import Plan, make_plan
from .solve import solve

EXACT_PLAYERS = 12
"""Up to so many players all coalitions are asked, if nothing else is said."""
SAMPLED = 512
"""Coalitions of a row with more players, if nothing else is said."""
MOST_COALITIONS = 65_536
"""Most coalitions of a row; of all rows together, the most whose values are asked at once."""


class Asked(NamedTuple):
    """Values of q coalitions.

    Attributes
    ----------
    mean, variance : float64 array (q, K)
        The value, and the variance of its error; errors of different coalitions are independent.
    replicates : float64 array (q, R, K) or None
        R equally good values, of which ``mean`` is the mean, while ``variance`` is 0: replicate r of all coalitions
        has one background row in common.
    """

    mean: np.ndarray
    variance: np.ndarray
    replicates: np.ndarray | None = None


Value = Callable[[np.ndarray, np.ndarray], Asked]
"""``value(row, known)``: of q coalitions, by row numbers (q,) and the columns that are known, bool (q, d)."""


class Solved(NamedTuple):
    """Shapley values of n rows with p players and K outputs.

    Attributes
    ----------
    phi, variance : float64 array (n, p, K)
        Values, and the variance of their errors.
    base, base_variance : float64 array (K,)
        Of the empty coalition.
    """

    phi: np.ndarray
    variance: np.ndarray
    base: np.ndarray
    base_variance: np.ndarray


def shapley_values(
    value: Value,
    base: Asked,
    players: np.ndarray,
    known: np.ndarray,
    n_coalitions: int | None,
    seed: int,
    own_coalitions: bool = False,
) -> Solved:
    """Shapley values of each row's game among the players of whom the row knows something.

    Rows that lack the same cells are asked the same coalitions. A player whose cells are all missing has the value 0:
    it is in no coalition.

    Parameters
    ----------
    value : Value
    base : Asked
        Value of nothing known, q = 1.
    players : bool array (p, d)
        The columns of each player.
    known : bool array (n, d)
        Which cells the rows know.
    n_coalitions : int or None
        Most coalitions of a row; None: all up to 12 players, else 512.
    seed : int
    own_coalitions : bool
        Whether each row has coalitions of its own, so that errors of different rows are independent.

    Returns
    -------
    Solved
    """
    present = known @ players.T  # (n, p), bool
    phi, variance = np.zeros((2, *present.shape, base.mean.shape[1]))
    key = np.column_stack([present, np.arange(len(present))]) if own_coalitions else present.astype(np.int64)
    patterns, place = np.unique(key, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        who, rows = np.flatnonzero(pattern[: len(players)]), np.flatnonzero(place.ravel() == k)
        if not len(who):
            continue
        plan = make_plan(len(who), budget(len(who), n_coalitions), _seed(seed, pattern))
        columns = plan.member @ players[who]
        size = max(1, MOST_COALITIONS // (len(columns) * base.mean.shape[1]))
        for first in range(0, len(rows), size):
            mine = rows[first : first + size]
            found = _block(plan, value, base, mine, columns & known[mine][:, None])
            phi[np.ix_(mine, who)], variance[np.ix_(mine, who)] = found
    return Solved(phi, variance, base.mean[0], _total_variance(base)[0])


def budget(p: int, n_coalitions: int | None) -> int:
    """Most coalitions of a row with p players."""
    if n_coalitions is not None:
        return n_coalitions
    return 2**p if p <= EXACT_PLAYERS else max(SAMPLED, 4 * p)


def _seed(seed: int, pattern: np.ndarray) -> int:
    """A pattern's own seed, whatever other patterns there are."""
    return int(np.random.SeedSequence([seed, *pattern.tolist()]).generate_state(1, np.uint64)[0])


def _block(plan: Plan, value: Value, base: Asked, rows: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and variances (r, p, K) of r rows with one plan; ``known`` (r, m, d)."""
    r, m, d = known.shape
    asked = value(np.repeat(rows, m - 1), known[:, 1:].reshape(-1, d))
    K = base.mean.shape[1]
    mean = _with_base(base.mean, asked.mean.reshape(r, m - 1, K))
    phi, variance = solve(plan, mean, _with_base(base.variance, asked.variance.reshape(r, m - 1, K)))
    if asked.replicates is not None and base.replicates is not None:
        R = base.replicates.shape[1]
        each = _with_base(base.replicates.reshape(1, R * K), asked.replicates.reshape(r, m - 1, R * K))
        own = np.matmul(plan.weight, each).reshape(r, -1, R, K)
        variance = variance + own.var(axis=2, ddof=1) / R
    return phi, variance


def _with_base(base: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The empty coalition's answer (1, K) before those of the others (r, m - 1, K)."""
    return np.concatenate([np.broadcast_to(base, (len(others), 1, base.shape[1])), others], axis=1)


def _total_variance(asked: Asked) -> np.ndarray:
    """Variance of the values' errors, (q, K)."""
    if asked.replicates is None:
        return asked.variance
    return asked.variance + asked.replicates.var(axis=1, ddof=1) / asked.replicates.shape[1]
