"""Which coalitions of p players are asked, and the linear map from their values to Shapley values."""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np


class Plan(NamedTuple):
    """m coalitions of p players, and how Shapley values follow from the game's values v (m,).

    Attributes
    ----------
    member : bool array (m, p)
        Players of each coalition. The first is empty, the second has all.
    weight : float64 array (p, m)
        ``phi = weight @ v``. Its rows sum to 0, its columns to -1, 1, 0, ..., 0, so that phi sums to v[1] - v[0].
    first_sampled : int
        Coalitions from here on were drawn: pairs of a coalition and what it lacks, all coalitions before all that
        these lack. m if none was.
    score : float64 array (p, k)
        What the residual of each of the k drawn pairs adds to the error of phi (HC3); see `solve.solve`.
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
    """All coalitions if they are at most m, else about m of them, paired, by the weights of KernelSHAP.

    Pairs of the smallest and largest coalitions, which weigh most, are all asked as long as no fewer draws would be due
    to them; the others are drawn, sizes by their weight, players at random.

    Parameters
    ----------
    p : int
        Players, at least 1.
    m : int
        At least `least_coalitions` unless all are asked.
    seed : int

    Returns
    -------
    Plan

    Notes
    -----
    S. Lundberg, S.-I. Lee, "A Unified Approach to Interpreting Model Predictions" (2017), Theorem 2; paired sampling:
    I. Covert, S.-I. Lee, "Improving KernelSHAP" (2021), section 4.2.
    """
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
    half = np.where(2 * sizes == p, 0.5, 1.0)  # a pair of two halves is met twice
    mass = half * 2.0 * (p - 1) / (sizes * (p - sizes))
    n_pairs = np.array([math.comb(p, s) for s in sizes.tolist()]) * half
    left = (m - 2) // 2
    whole = 0
    # the pairs of a size are listed if as many draws would be due to them; those of one player always
    while whole == 0 or left * mass[whole] / mass[whole:].sum() >= n_pairs[whole] <= left - 4:
        left -= int(n_pairs[whole])
        whole += 1
    listed = np.concatenate([_of_size(p, int(s)) for s in sizes[:whole]])
    listed_weight = np.repeat(mass[:whole] / n_pairs[:whole], n_pairs[:whole].astype(int))
    drawn = _drawn(p, sizes[whole:], mass[whole:], left, rng)
    pairs = np.concatenate([listed, drawn])
    weight = np.append(listed_weight, np.full(left, mass[whole:].sum() / left))
    return _least_squares(pairs, weight, len(listed))


def _of_size(p: int, s: int) -> np.ndarray:
    """One coalition of each pair of sizes s and p - s, bool (., p)."""
    chosen = np.array(list(combinations(range(p), s)))
    if 2 * s == p:
        chosen = chosen[: len(chosen) // 2]  # those with player 0
    member = np.zeros((len(chosen), p), bool)
    member[np.arange(len(chosen))[:, None], chosen] = True
    return member


def _drawn(p: int, sizes: np.ndarray, mass: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """k coalitions, bool (k, p): sizes by their mass, as evenly as can be; players at random."""
    at = (np.arange(k) + rng.random()) / k
    size = sizes[np.searchsorted(np.cumsum(mass)[:-1] / mass.sum(), at)]
    return rng.random((k, p)).argsort(axis=1).argsort(axis=1) < size[:, None]


def _least_squares(pairs: np.ndarray, pair_weight: np.ndarray, n_listed: int) -> Plan:
    """phi of least sum of pair_weight ((v(S) - v(rest)) / 2 - sum_j phi_j (1[j in S] - 1/2))^2, summing to v[1] - v[0].

    With the orthonormal basis B of what is orthogonal to ones, phi = (v[1] - v[0]) / p + B gamma is free in gamma.
    """
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
