"""Pair by pair: is the association of two columns the same in two tables?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .cells import Cells

MOST_PAIRS = 1000
"""Pairs looked at; of more than that so many are drawn."""
N_BINS = 10
"""Bins of a column of numbers beside one of levels."""


@dataclass(frozen=True)
class Pairs:
    """How alike two tables are in each pair of columns.

    Attributes
    ----------
    similarity : dict of (column, column) to float
        Between 0 and 1, the smallest first. Two columns of numbers: 1 - \\|difference of their Pearson
        correlations\\| / 2, on rows that have both. Else 1 - total variation distance of the two contingency tables,
        numbers cut in ten bins of equal shares of the table, missing being a level. A pair of numbers of which one
        never changes in the table is left out.
    correlation : dict of (column, column) to (float, float)
        Correlation of each pair of numbers, in the table and in the rows.
    n_pairs : int
        Number of pairs of columns; if more than 1,000, so many of them were drawn.
    """

    similarity: dict[tuple[str, str], float]
    correlation: dict[tuple[str, str], tuple[float, float]]
    n_pairs: int

    @property
    def trend(self) -> float:
        """Mean similarity (the pair trends of sdmetrics' quality report, but for the bins); NaN of no pair."""
        return float(np.mean(list(self.similarity.values()))) if self.similarity else math.nan


def quantile_edges(x: np.ndarray) -> np.ndarray:
    """Inner edges of at most ten bins of numbers (n,), each of about the same share; bins are (edge, next edge]."""
    return np.unique(np.quantile(x, np.arange(1, N_BINS) / N_BINS, method="inverted_cdf"))


def width_edges(x: np.ndarray) -> np.ndarray:
    """Inner edges of ten bins of numbers (n,), all of the same width: those of sdmetrics."""
    return np.asarray(np.linspace(x.min(), x.max(), N_BINS + 1)[1:-1])


def pairs(
    real: Cells,
    rows: Cells,
    random: np.random.Generator,
    edges: Callable[[np.ndarray], np.ndarray] = quantile_edges,
    most: int = MOST_PAIRS,
) -> Pairs:
    """Similarity of pairs of columns, at most ``most`` of them drawn by ``random``; ``edges`` cuts numbers in bins."""
    d = len(real.names)
    first, second = np.triu_indices(d, 1)
    n_pairs = len(first)
    if n_pairs > most:
        drawn = np.sort(random.choice(n_pairs, most, replace=False))
        first, second = first[drawn], second[drawn]
    a_codes, b_codes, n_codes = _binned(real, rows, edges)
    similarity, correlation = {}, {}
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        names = real.names[i], real.names[j]
        if real.is_numeric(i) and real.is_numeric(j):
            both = pearson(real.X[:, i], real.X[:, j]), pearson(rows.X[:, i], rows.X[:, j])
            if math.isnan(both[0]):
                continue
            correlation[names] = both[0], 0.0 if math.isnan(both[1]) else both[1]
            similarity[names] = 1.0 - abs(correlation[names][0] - correlation[names][1]) / 2.0
        else:
            a, b = (codes[:, i] * n_codes[j] + codes[:, j] for codes in (a_codes, b_codes))
            similarity[names] = 1.0 - _table_distance(a, b, n_codes[i] * n_codes[j])
    return Pairs(dict(sorted(similarity.items(), key=lambda item: item[1])), correlation, n_pairs)


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Correlation of numbers (n,) on the rows that have both; NaN if one of them never changes there."""
    known = ~(np.isnan(x) | np.isnan(y))
    u, v = _standardised(x[known]), _standardised(y[known])
    return float(np.clip(u @ v, -1.0, 1.0)) if u.any() and v.any() else math.nan


def _standardised(x: np.ndarray) -> np.ndarray:
    """Numbers (n,) with mean 0 and length 1; zeros if there is one value only. Huge numbers do not overflow."""
    if not len(x) or x.min() == x.max():
        return np.zeros(len(x))
    x = np.ldexp(x, -np.frexp(np.abs(x).max())[1])  # by a power of two, so that nothing is rounded
    x = x - x.mean()
    x = x / np.abs(x).max()
    return np.asarray(x / np.sqrt(x @ x))


def _binned(
    real: Cells, rows: Cells, edges: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Codes (n, d) and (m, d) of both tables, int64, numbers by their bin, and the number of codes of each column."""
    codes = [np.empty(table.X.shape, dtype=np.int64) for table in (real, rows)]
    n_codes = []
    for j in range(len(real.names)):
        if not real.is_numeric(j):
            n_codes.append(int(real.n_levels[j]))
            for table, out in zip((real, rows), codes, strict=True):
                out[:, j] = table.X[:, j]
            continue
        known = real.X[~np.isnan(real.X[:, j]), j]
        cuts = edges(known) if len(known) else known
        n_codes.append(len(cuts) + 2)  # the bins, and missing
        for table, out in zip((real, rows), codes, strict=True):
            x = table.X[:, j]
            out[:, j] = np.where(np.isnan(x), len(cuts) + 1, np.searchsorted(cuts, x, "left"))
    return codes[0], codes[1], n_codes


def _table_distance(a: np.ndarray, b: np.ndarray, n_cells: int) -> float:
    """Total variation distance of codes (n,) and (m,), each below ``n_cells``."""
    if n_cells > 4 * (len(a) + len(b)):  # more cells than rows: only those that occur
        used = np.unique(np.concatenate([a, b]), return_inverse=True)[1]
        a, b, n_cells = used[: len(a)], used[len(a) :], int(used.max()) + 1
    share = [np.bincount(codes, minlength=n_cells) / len(codes) for codes in (a, b)]
    return float(0.5 * np.abs(share[0] - share[1]).sum())
