"""What a joint gets wrong of the table that it was learned from: poorly fitted columns, and pairs of columns.

Both compare rows that were learned from with rows drawn from the joint.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..data.discretization.dependence import coarse, mutual_information, spanning_tree
from ..data.evidence import build
from ..data.schema import Schema
from ..models.base import Distribution
from ..runtime.warnings import LostDependenceWarning, warn

# ---- Columns of numbers whose marginal in the joint is not that of the rows.

_FAR = 0.01
"""Kolmogorov distance of a column's rows and draws, chance aside, beyond which the joint fits the column poorly."""
_CELLS = 4_000_000
"""Most cells that are drawn, which bounds time and memory."""
_DRAWS = 4_000, 20_000
"""Fewest and most rows that are drawn: the Kolmogorov distance of 4,000 rows has a standard error below .01."""


def misfit_columns(model: Distribution, X: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Columns of numbers whose marginal is not that of rows X (n, d), of weights (n,) or None: bool (d,)."""
    n_draws = int(np.clip(_CELLS // X.shape[1], *_DRAWS))
    drawn = model.sample(build(model.schema), n_draws, 0, False)
    most = _FAR + 1.0 / np.sqrt(n_draws)
    misfit = np.zeros(X.shape[1], bool)
    for j, column in enumerate(model.schema.columns):
        if column.is_categorical:
            continue
        x, y = X[:, j], drawn[:, j]
        known = ~np.isnan(x)
        misfit[j] = kolmogorov(x[known], y[~np.isnan(y)], None if weight is None else weight[known]) > most
    return misfit


def kolmogorov(a: np.ndarray, b: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Largest difference of two empirical CDFs, numbers (n,) and (m,); NaN if a is empty, 1 if b alone is."""
    # ``weight`` (n,) are those of a; None: all alike.
    if not len(a) or (weight is not None and not weight.sum() > 0.0):
        return math.nan
    if not len(b):
        return 1.0
    order = np.argsort(a)
    a, b = a[order], np.sort(b)
    mass = np.arange(len(a) + 1.0) if weight is None else np.concatenate([[0.0], np.cumsum(weight[order])])
    at = np.concatenate([a, b])
    below = mass[np.searchsorted(a, at, "right")] / mass[-1] - np.searchsorted(b, at, "right") / len(b)
    return float(np.abs(below).max())


# ---- Strong pairs of columns whose dependence a joint loses: rows that were learned from against rows drawn.

ROWS = 4_000
"""Rows of the table that are looked at, and rows drawn."""
STRONG = 0.5
"""Pairs that depend on each other like normal columns of this correlation, or more, are held against the joint."""
DROP = 0.05
"""Most that a pair's dependence may fall, chance aside."""
_CODES = 8
"""Codes of a numeric column; a strong dependence shows in few."""
_WIDTH = 1_024
"""Most codes of all columns together, as long as each has two: pairs cost the square of it."""
_SIGMAS = 3.0
"""Standard errors that count as chance."""
_NAMED = 5
"""Most pairs that the warning names."""


class LostPair(NamedTuple):
    """Two columns that depend on each other less in the joint than in the table, as correlations of normal columns."""

    a: str
    b: str
    table: float
    joint: float


def lost_pairs(model: Distribution, X: np.ndarray, weight: np.ndarray | None) -> list[LostPair]:
    """The strong pairs of rows X (n, d) with weights (n,) or None whose dependence ``model`` loses, the worst first."""
    # Compared are the pairs of the table's Chow-Liu tree, so that every block of columns is covered. Dependence is
    # sqrt(1 - exp(-2 I)), and of two numbers also their correlation, which is the same for normal columns.
    if X.shape[1] < 2:
        return []
    taken = np.sort(np.random.default_rng(0).permutation(len(X))[:ROWS])
    X, weight = X[taken], None if weight is None else weight[taken]
    drawn = model.sample(build(model.schema), ROWS, 0, False)
    names, is_number = model.schema.names, [not column.is_categorical for column in model.schema.columns]
    classes, size = classes_of(model.schema, X, drawn)
    table, of_draws = mutual_information(classes[: len(X)], size, weight), classes[len(X) :]
    order, parent = spanning_tree(table)
    lost = []
    for a, b in zip(order[1:].tolist(), order[parent[1:]].tolist(), strict=True):
        together = ~np.isnan(X[:, [a, b]]).any(axis=1)
        ways = float((size[a] - 1) * (size[b] - 1))
        joint = mutual_information(of_draws[:, [a, b]], size[[a, b]])[0, 1]
        asked = [(_by_information(table[a, b], ways, int(together.sum())), _by_information(joint, ways, ROWS))]
        if is_number[a] and is_number[b]:
            both = _by_correlation(X[:, a], X[:, b], weight), _by_correlation(drawn[:, a], drawn[:, b], None)
            asked.append(both if both[0].value >= 0 else (both[0].negative(), both[1].negative()))
        first, second = sorted((names[a], names[b]))
        for seen, kept in asked:
            if seen.value >= STRONG and seen.least - kept.most > DROP:
                lost.append(LostPair(first, second, seen.value, kept.value))
                break
    return sorted(lost, key=lambda pair: (pair.joint - pair.table, pair.a, pair.b))


def classes_of(schema: Schema, X: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Few classes a column, of rows (n, d) and then of draws (m, d), int16 (n + m, d); and how many each column has."""
    columns = schema.columns
    most = int(np.clip(_WIDTH // len(columns), 2, _CODES))
    codes = np.empty((len(X) + len(drawn), len(columns)), np.int64)
    n_codes = np.empty(len(columns), np.int64)
    for j, column in enumerate(columns):
        both, cuts = np.concatenate([X[:, j], drawn[:, j]]), _ends_of_classes(X[:, j], most)
        codes[:, j] = np.nan_to_num(both) if column.is_categorical else np.searchsorted(cuts, both)
        n_codes[j] = len(column.levels) if column.is_categorical else len(cuts) + 1
        codes[np.isnan(both), j] = n_codes[j]
    return coarse(codes, n_codes, np.array([not column.is_categorical for column in columns]))


def _ends_of_classes(x: np.ndarray, n: int) -> np.ndarray:
    """Upper ends of about n bins with about equally many cells each, without that of the last bin. A value that as
    many cells have has a bin of its own."""
    known = x[~np.isnan(x)]
    if len(known) == 0:
        return np.empty(0)
    ends = np.quantile(known, np.arange(1, n) / n, method="inverted_cdf")
    point_masses = np.unique(ends[1:][ends[1:] == ends[:-1]])
    return np.unique(np.concatenate([ends, np.nextafter(point_masses, -np.inf)]))


class _Dependence(NamedTuple):
    """An estimate as a correlation of normal columns, and how little and how much it may be."""

    value: float
    least: float
    most: float

    def negative(self) -> _Dependence:
        return _Dependence(-self.value, -self.most, -self.least)


def _by_information(information: float, ways: float, n: int) -> _Dependence:
    """From mutual information; its standard error is half that of a chi-square with ``ways`` degrees, over n rows."""
    error = float(np.sqrt(2.0 * (ways + 4.0 * n * information)) / (2.0 * max(n, 1)))
    return _Dependence(*(_as_correlation(information + k * error) for k in (0.0, -_SIGMAS, _SIGMAS)))


def _as_correlation(information: float) -> float:
    """Correlation of two normal columns of this mutual information."""
    return float(np.sqrt(-np.expm1(-2.0 * max(information, 0.0))))


def _by_correlation(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> _Dependence:
    """The correlation of the known cells of two columns of numbers (n,), 0 if one is constant; its standard error."""
    # The error of Fisher's z is that of the influence function, so tails of few rows count, and at least the normal
    # one.
    both = ~np.isnan(x) & ~np.isnan(y)
    w = np.ones(int(both.sum())) if weight is None else weight[both]
    if not w.sum() > 0.0:
        return _Dependence(0.0, 0.0, 0.0)
    w = w / w.sum()
    z = np.array([x[both], y[both]])
    z = z / np.maximum(np.abs(z).max(axis=1, keepdims=True), 1e-300)  # nothing overflows
    z = z - (z @ w)[:, None]
    sd = np.sqrt(z**2 @ w)
    if np.any(sd <= 1e-12):
        return _Dependence(0.0, 0.0, 0.0)
    z /= sd[:, None]
    r = float(np.clip((z[0] * z[1]) @ w, -1.0 + 1e-12, 1.0 - 1e-12))
    influence = w * (z[0] * z[1] - 0.5 * r * (z**2).sum(axis=0))
    error = max(np.sqrt(influence @ influence) / (1.0 - r * r), 1.0 / np.sqrt(max(1.0 / (w @ w) - 3.0, 1e-12)))
    return _Dependence(*np.tanh(np.arctanh(r) + _SIGMAS * error * np.array([0.0, -1.0, 1.0])).tolist())


def warn_lost_pairs(pairs: list[LostPair], hint: str) -> None:
    """Name the pairs that a joint does not keep, and what to do."""
    if not pairs:
        return
    of = "{!r} and {!r} (like a correlation of {:.2f} in the table, {:.2f} in the joint)"
    named = "; ".join(of.format(*pair) for pair in pairs[:_NAMED])
    more = f"; and {len(pairs) - _NAMED} others" if len(pairs) > _NAMED else ""
    warn(LostDependenceWarning(
        f"the joint has lost some of the dependence between columns: {named}{more}; try {hint}"
    ))  # fmt: skip
