"""Tests of independence of columns of any kinds, each pair on its complete rows."""

# See docs/concepts/learnspn-leaves.md. All statistics are (n - 1) times a sum of squared correlations between scores of
# the two columns. If a column is permuted, each correlation has mean 0 and variance 1 / (n - 1) exactly.

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import chdtrc, gammaln

MIN_COMMON = 10
"""With fewer complete rows nothing is found."""
MIN_COUNT = 5.0
"""Smallest group of a test by ranks, and smallest expected count of a chi-square test."""
_FLAT = 1e-9
"""Share of a score's squares left after projection below which nothing but rounding is left."""
_FAR = 2.5
"""Largest quadratic score, in standard deviations, at which a chi-square is near enough; sqrt(5) without ties."""


def p_values(numbers: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """P-values (a + b, a + b) of columns of numbers (a, n), NaN where missing, and of levels (b, n), -1."""
    a, known = len(numbers), np.vstack([~np.isnan(numbers), levels >= 0])
    masks, which = np.unique(known, axis=0, return_inverse=True)
    which = which.ravel()
    each = [rank_scores(x, masks & own) for x, own in zip(numbers, known, strict=False)]
    scores = np.array([one for one, _ in each]).reshape(a, len(masks), 2, known.shape[1])
    n_scores = np.array([n for _, n in each], int).reshape(a, len(masks))
    found = np.ones((len(known), len(known)))
    for i in range(a):
        n, sizes = (known[:a] & known[i]).sum(axis=1), (n_scores[i, which[:a]], n_scores[:, which[i]])
        squares = np.einsum("jpn,jqn->jpq", scores[i, which[:a]], scores[:, which[i]]) ** 2
        found[i, :a] = _numeric_p_values(n, squares, sizes[0] * sizes[1])
    indicators = [(level == np.arange(level.max(initial=0) + 1)[:, None]).astype(np.float64) for level in levels]
    for j, (own, of_mask) in enumerate(zip(indicators, which[a:], strict=True), a):
        sums = np.concatenate([known[:a, None], scores[:, of_mask]], axis=1) @ own.T
        for i in range(a):
            found[i, j] = found[j, i] = mixed_p_value(sums[i].T, int(n_scores[i, of_mask]))
        for i in range(a, j):
            found[i, j] = found[j, i] = table_p_value(indicators[i - a] @ own.T)
    return found


def rank_scores(x: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Linear and quadratic scores (m, 2, n) of a column on m sets of known rows (m, n), and how many there are (m,)."""
    # There is no linear score of a constant column, and no quadratic one of two distinct values, or if a few rows would
    # dominate it.
    order = np.argsort(x, kind="stable")
    begins = np.flatnonzero(np.append(True, x[order[1:]] != x[order[:-1]]))
    ties = np.add.reduceat(known[:, order].astype(np.float64), begins, axis=1)
    n = ties.sum(axis=1, keepdims=True)
    rank = (np.cumsum(ties, axis=1) - 0.5 * ties - 0.5 * n) / np.maximum(n, 1.0)
    squares, cubes, fourths = ((ties * rank**power).sum(axis=1, keepdims=True) for power in (2, 3, 4))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, slope = squares / n, cubes / squares
        left = fourths - n * mean * mean - slope * cubes
        quadratic = np.where(left > _FLAT * fourths, (rank * rank - mean - slope * rank) / np.sqrt(left), 0.0)
        both = np.stack([rank / np.sqrt(squares), quadratic], axis=1)
        furthest = np.where(ties > 0.0, np.abs(quadratic), 0.0).max(axis=1, keepdims=True)
        n_scores = (squares > 0.0).astype(int) * (1 + ((furthest > 0.0) & (furthest <= _FAR / np.sqrt(n))))
    both = np.where(n_scores[:, None] > np.arange(2)[:, None], both, 0.0)
    scores = np.empty((*both.shape[:2], len(x)))
    scores[:, :, order] = np.repeat(both, np.diff(np.append(begins, len(x))), axis=2)
    return np.where(known[:, None], scores, 0.0), n_scores[:, 0]


def _least_p_value(p: Any, q: Any) -> Any:
    """P-value of the smaller one of two p-values that are independent."""
    least = np.minimum(p, q)
    return least * (2.0 - least)


def _numeric_p_values(n: np.ndarray, squares: np.ndarray, n_pairs: np.ndarray) -> np.ndarray:
    """P-values (k,) of pairs of columns of numbers, from squared correlations (k, 2, 2) of their scores."""
    # Spearman's test, and one of the three other correlations, which finds dependence that is not monotone.
    p = chdtrc(1, (n - 1) * squares[:, 0, 0])
    others = (n - 1) * (squares[:, 0, 1] + squares[:, 1, 0] + squares[:, 1, 1])
    p = np.where(n_pairs > 1, _least_p_value(p, chdtrc(np.maximum(n_pairs - 1, 1), others)), p)
    return np.where((n >= MIN_COMMON) & (n_pairs > 0), p, 1.0)


def mixed_p_value(sums: np.ndarray, n_scores: int) -> float:
    """P-value of a column of numbers and one of levels, from each level's count and sums of scores (K, 3)."""
    # The test of Kruskal and Wallis, and the same one of the quadratic scores, which finds levels that differ in
    # spread. Levels of fewer than `MIN_COUNT` rows are merged (if the merged level has too few, with the next rarest).
    n, is_rare = sums[:, 0].sum(), sums[:, 0] < MIN_COUNT
    groups, merged = sums[~is_rare], sums[is_rare].sum(axis=0)
    if merged[0] >= MIN_COUNT:
        groups = np.vstack([groups, merged])
    elif len(groups):
        groups[groups[:, 0].argmin()] += merged
    if n < MIN_COMMON or n_scores == 0 or len(groups) < 2:
        return 1.0
    p, q = chdtrc(len(groups) - 1, (n - 1) * (groups[:, 1:] ** 2 / groups[:, :1]).sum(axis=0))
    return float(p if n_scores == 1 else _least_p_value(p, q))


def table_p_value(counts: np.ndarray) -> float:
    """P-value of a table of counts of two columns of levels, the rarest of which are merged (see `MIN_COUNT`)."""
    # Two levels against two with a smaller expected count: Fisher's exact test.
    n = counts.sum()
    if n < MIN_COMMON or min(counts.shape) < 2:
        return 1.0
    while True:
        rows, columns = counts.sum(axis=1), counts.sum(axis=0)
        if rows.min() * columns.min() >= MIN_COUNT * n:
            break
        if counts.shape == (2, 2):
            return fisher(*counts.ravel().tolist())
        if len(columns) == 2 or (len(rows) > 2 and rows.min() <= columns.min()):
            counts = _smallest_merged(counts, rows)
        else:
            counts = _smallest_merged(counts.T, columns).T
    share = (counts * (counts / np.outer(rows, columns))).sum()
    return float(chdtrc((len(rows) - 1) * (len(columns) - 1), max((n - 1.0) * (share - 1.0), 0.0)))


def _smallest_merged(counts: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """The counts with the two rows of the smallest sums as one; the last row takes the place of the one that goes."""
    kept, gone = np.sort(np.argsort(sums, kind="stable")[:2])
    out = counts.copy()
    out[kept] += counts[gone]
    out[gone] = counts[-1]
    return out[:-1]


def fisher(a: float, b: float, c: float, d: float) -> float:
    """Fisher's exact test of a table [[a, b], [c, d]]."""
    row, column, n = a + b, a + c, a + b + c + d
    k = np.arange(max(0.0, row + column - n), min(row, column) + 1.0)
    log_p = -sum(gammaln(x + 1.0) for x in (k, row - k, column - k, n - row - column + k))
    log_p += sum(gammaln(x + 1.0) for x in (row, n - row, column, n - column)) - gammaln(n + 1.0)
    seen = log_p[int(a - k[0])] + 1e-7  # tables as probable as this one, up to rounding
    return float(min(np.exp(log_p[log_p <= seen]).sum(), 1.0))
