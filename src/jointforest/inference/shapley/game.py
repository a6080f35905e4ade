"""Shapley values of rows: which coalitions are asked of which row, and in what blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ...data.schema import Schema

# ---- Which coalitions of p players are asked, and the linear map from their values to Shapley values.


class Plan(NamedTuple):
    """m coalitions of p players, and how Shapley values follow from the game's values v (m,).

    member : bool array (m, p). Players of each coalition. The first is empty, the second has all.
    weight : float64 array (p, m). ``phi = weight @ v``. Its columns sum to -1, 1, 0, ..., 0: phi sums to v[1] - v[0].
    first_sampled : int. Number of the first drawn coalition, m if none: first k coalitions, then their k complements.
    score : float64 array (p, k). Factors of the residuals of the k drawn pairs in the error of phi (HC3); see `solve`.
    """

    member: np.ndarray
    weight: np.ndarray
    first_sampled: int
    score: np.ndarray

    @property
    def is_exact(self) -> bool:
        """Whether all coalitions are asked."""
        return self.first_sampled == len(self.member)


def least_coalitions(p: int) -> int:
    """Fewest coalitions from which the values of p players can be sampled: all of one or p - 1, and eight more."""
    return 2 * p + 10


def make_plan(p: int, m: int, seed: int) -> Plan:
    """All coalitions if they are at most m, else about m of them, paired, by the weights of KernelSHAP."""
    # The smallest and largest coalitions weigh most: all of them are asked as long as no fewer draws would be due to
    # them.
    return _all(p) if 2**p <= m else _sampled(p, m, np.random.default_rng(seed))


def _all(p: int) -> Plan:
    """Every coalition, weighed by (s - 1)! (p - s)! / p! for its s players, -s! (p - s - 1)! / p! for the others."""
    bits = np.arange(2**p)
    bits[[1, -1]] = bits[[-1, 1]]
    member = (bits[:, None] >> np.arange(p)) & 1 > 0
    size = np.arange(p + 1)
    with_player = np.array([1.0 / (p * math.comb(p - 1, s - 1)) if s else 0.0 for s in size])
    without = np.array([1.0 / (p * math.comb(p - 1, s)) if s < p else 0.0 for s in size])
    s = member.sum(axis=1)
    weight = np.where(member, with_player[s][:, None], -without[s][:, None]).T
    return Plan(member, np.ascontiguousarray(weight), len(member), np.empty((p, 0)))


def _sampled(p: int, m: int, rng: np.random.Generator) -> Plan:
    """Pairs of coalitions, and the constrained weighted least squares that they make."""
    sizes = np.arange(1, p // 2 + 1)
    half = np.where(2 * sizes == p, 0.5, 1.0)  # a pair of two halves occurs twice
    mass = half * 2.0 * (p - 1) / (sizes * (p - sizes))
    n_pairs = np.array([math.comb(p, s) for s in sizes.tolist()]) * half
    left = (m - 2) // 2
    n_complete = 0
    # the pairs of a size are listed if as many draws would be due to them; those of one player always
    while n_complete == 0 or left * mass[n_complete] / mass[n_complete:].sum() >= n_pairs[n_complete] <= left - 4:
        left -= int(n_pairs[n_complete])
        n_complete += 1
    listed = np.concatenate([_of_size(p, int(s)) for s in sizes[:n_complete]])
    listed_weight = np.repeat(mass[:n_complete] / n_pairs[:n_complete], n_pairs[:n_complete].astype(int))
    drawn = _drawn_coalitions(p, sizes[n_complete:], mass[n_complete:], left, rng)
    pairs = np.concatenate([listed, drawn])
    weight = np.append(listed_weight, np.full(left, mass[n_complete:].sum() / left))
    return _least_squares(pairs, weight, len(listed))


def _of_size(p: int, s: int) -> np.ndarray:
    """One coalition of each pair of sizes s and p - s, bool (., p)."""
    chosen = np.array(list(combinations(range(p), s)))
    if 2 * s == p:
        chosen = chosen[: len(chosen) // 2]  # those with player 0
    member = np.zeros((len(chosen), p), bool)
    member[np.arange(len(chosen))[:, None], chosen] = True
    return member


def _drawn_coalitions(p: int, sizes: np.ndarray, mass: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """k coalitions, bool (k, p): sizes by their mass, as evenly as can be; players at random."""
    at = (np.arange(k) + rng.random()) / k
    size = sizes[np.searchsorted(np.cumsum(mass)[:-1] / mass.sum(), at)]
    return rng.random((k, p)).argsort(axis=1).argsort(axis=1) < size[:, None]


def _least_squares(pairs: np.ndarray, pair_weight: np.ndarray, n_listed: int) -> Plan:
    """The least-squares Shapley values of paired coalitions, which sum to v[1] - v[0]."""
    # phi minimises sum of pair_weight ((v(S) - v(rest)) / 2 - sum_j phi_j (1[j in S] - 1/2))^2. With the orthonormal
    # basis B of what is orthogonal to ones, phi = (v[1] - v[0]) / p + B gamma is free in gamma.
    p = pairs.shape[1]
    B = np.linalg.qr(np.column_stack([np.ones(p), np.eye(p)[:, : p - 1]]))[0][:, 1:]
    c = pairs - 0.5
    D = c @ B
    inverse = np.linalg.inv((D * pair_weight[:, None]).T @ D)
    gain = B @ inverse @ (D * pair_weight[:, None]).T  # (p, k): of (v(S) - v(rest)) / 2
    leverage = pair_weight * np.einsum("ij,jk,ik->i", D, inverse, D)
    from_total = (1.0 - gain @ c.sum(axis=1)) / p
    drawn = pairs[n_listed:]
    listed, ends = pairs[:n_listed], np.array([[False], [True]]).repeat(p, 1)
    member = np.concatenate([ends, listed, ~listed, drawn, ~drawn])
    here, there = gain[:, :n_listed] / 2.0, gain[:, n_listed:] / 2.0
    weight = np.hstack([-from_total[:, None], from_total[:, None], here, -here, there, -there])
    score = gain[:, n_listed:] / (1.0 - leverage[n_listed:])
    return Plan(member, weight, 2 + 2 * n_listed, score)


# ---- Shapley values and their standard errors from the values of a plan's coalitions.


def solve(plan: Plan, value: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shapley values of n games with K outputs, and the variance of each, both (n, p, K)."""
    # Two sources: which coalitions were drawn, by the residuals of the drawn pairs (a sandwich, HC3), and the noise of
    # all other values, by the linear map.
    phi = np.matmul(plan.weight, value)
    given = slice(0, plan.first_sampled)
    spread = np.matmul(plan.weight[:, given] ** 2, variance[:, given])
    k = plan.score.shape[1]
    if k:
        drawn = plan.member[plan.first_sampled :][:k] - 0.5
        first = value[:, plan.first_sampled : plan.first_sampled + k]
        second = value[:, plan.first_sampled + k :]
        residual = (first - second) / 2.0 - np.matmul(drawn, phi)
        mean = np.matmul(plan.score, residual) / k
        squares = np.matmul(plan.score**2, residual**2)
        spread = spread + np.maximum(squares - k * mean**2, 0.0) * (k / (k - 1))
    return phi, spread


EXACT_PLAYERS = 12
"""Up to so many players all coalitions are asked, by default."""
SAMPLED = 512
"""Coalitions of a row with more players, by default."""
MOST_COALITIONS = 65_536
"""Most coalitions of a row; of all rows together, the most whose values are asked at once."""


class Asked(NamedTuple):
    """Values of q coalitions.

    mean, variance : float64 array (q, K). The value, and the variance of its error, independent between coalitions.
    replicates : float64 array (q, R, K) or None. Values by background row, with mean ``mean``; ``variance`` is 0.
    """

    mean: np.ndarray
    variance: np.ndarray
    replicates: np.ndarray | None = None


ValueFunction = Callable[[np.ndarray, np.ndarray], Asked]
"""``value(row, known)``: of q coalitions, by row numbers (q,) and the columns that are known, bool (q, d)."""


class Solved(NamedTuple):
    """Shapley values of n rows with p players and K outputs.

    phi, variance : float64 array (n, p, K). Values, and the variance of their errors.
    base, base_variance : float64 array (K,). Of the empty coalition.
    """

    phi: np.ndarray
    variance: np.ndarray
    base: np.ndarray
    base_variance: np.ndarray


def shapley_values(
    value: ValueFunction,
    base: Asked,
    players: np.ndarray,
    known: np.ndarray,
    n_coalitions: int | None,
    seed: int,
    own_coalitions: bool = False,
) -> Solved:
    """Shapley values of each row's game; a player whose cells are all missing has the value 0."""
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
            rows_here = rows[first : first + size]
            solved = _solved_rows(plan, value, base, rows_here, columns & known[rows_here][:, None])
            phi[np.ix_(rows_here, who)], variance[np.ix_(rows_here, who)] = solved
    return Solved(phi, variance, base.mean[0], _total_variance(base)[0])


def budget(p: int, n_coalitions: int | None) -> int:
    """Most coalitions of a row with p players."""
    if n_coalitions is not None:
        return n_coalitions
    return 2**p if p <= EXACT_PLAYERS else max(SAMPLED, 4 * p)


def _seed(seed: int, pattern: np.ndarray) -> int:
    """A pattern's own seed, whatever other patterns there are."""
    return int(np.random.SeedSequence([seed, *pattern.tolist()]).generate_state(1, np.uint64)[0])


def _solved_rows(
    plan: Plan, value: ValueFunction, base: Asked, rows: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values and variances (r, p, K) of r rows with one plan; ``known`` (r, m, d)."""
    r, m, d = known.shape
    asked = value(np.repeat(rows, m - 1), known[:, 1:].reshape(-1, d))
    K = base.mean.shape[1]
    mean = _with_base(base.mean, asked.mean.reshape(r, m - 1, K))
    phi, variance = solve(plan, mean, _with_base(base.variance, asked.variance.reshape(r, m - 1, K)))
    if asked.replicates is not None and base.replicates is not None:
        R = base.replicates.shape[1]
        each = _with_base(base.replicates.reshape(1, R * K), asked.replicates.reshape(r, m - 1, R * K))
        solved = np.matmul(plan.weight, each).reshape(r, -1, R, K)
        variance = variance + solved.var(axis=2, ddof=1) / R
    return phi, variance


def _with_base(base: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The empty coalition's answer (1, K) before those of the others (r, m - 1, K)."""
    return np.concatenate([np.broadcast_to(base, (len(others), 1, base.shape[1])), others], axis=1)


def _total_variance(asked: Asked) -> np.ndarray:
    """Variance of the values' errors, (q, K)."""
    if asked.replicates is None:
        return asked.variance
    return asked.variance + asked.replicates.var(axis=1, ddof=1) / asked.replicates.shape[1]


# ---- Players of a game on a table: columns, or groups of columns, that are known together.


class Players(NamedTuple):
    """p players, each some columns of a joint.

    columns : tuple of p tuples of int. Numbers of the joint's columns; no column is of two players.
    """

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]

    def of_columns(self, d: int) -> np.ndarray:
        """Which of d columns each player has, bool (p, d)."""
        out = np.zeros((len(self.columns), d), bool)
        for k, columns in enumerate(self.columns):
            out[k, list(columns)] = True
        return out


def make_players(schema: Schema, columns: Iterable[int], groups: Any) -> Players:
    """Players of these columns: one each, or the groups, with a player for each column that is in none."""
    names, columns_of = [], []
    for name, group in _groups_asked(groups):
        words = [group] if isinstance(group, str) else list(group)
        if not words:
            raise ValueError(f"groups: the group {name!r} has no columns" if name else "groups: a group has no columns")
        columns_of.append(tuple(schema.index(word) for word in words))
        names.append(" + ".join(schema.names[j] for j in columns_of[-1]) if name is None else str(name))
    flat = [j for group in columns_of for j in group]
    twice = [j for i, j in enumerate(flat) if j in flat[:i]]
    if twice:
        raise ValueError(f"groups: column {schema.names[twice[0]]!r} is named twice")
    alone = [j for j in columns if j not in flat]
    names, columns_of = names + [schema.names[j] for j in alone], columns_of + [(j,) for j in alone]
    same = [name for i, name in enumerate(names) if name in names[:i]]
    if same:
        raise ValueError(f"groups: two players are called {same[0]!r}; give the group another name")
    return Players(tuple(names), tuple(columns_of))


def _groups_asked(groups: Any) -> list[tuple[Any, Any]]:
    """Name, or None, and members of each group."""
    if groups is None:
        return []
    if isinstance(groups, Mapping):
        return list(groups.items())
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise ValueError(f"groups must be None, 'auto', a list of lists of columns or a dict, got {groups!r}")
    return [(None, group) for group in groups]
