"""How alike two tables are in columns and pairs of columns; poorly fitted marginals and lost dependence of draws."""

# Poorly fitted marginals and lost dependence compare rows that were learned from with rows drawn from the joint.

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..data.discretization.dependence import coarse, mutual_information, spanning_tree
from ..data.evidence import build
from ..data.frames import encode, read
from ..data.schema import Column, Schema, near, snapped
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
    return _Dependence(*(_correlation_of_information(information + k * error) for k in (0.0, -_SIGMAS, _SIGMAS)))


def _correlation_of_information(information: float) -> float:
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


# ---- Rows of a frame as the measures of fidelity read them: numbers, and codes in which missing is a level of its own.


class TableCells(NamedTuple):
    """The cells of n rows.

    n_levels : int64 array (d,). 0 in a column of numbers or dates; else one more than the greatest code.
    X : float64 array (n, d). Numbers, NaN where missing, on a column's grid without rounding (0.1 + 0.2 is 0.3); codes
        of levels, never NaN: after the levels of the schema come one for all levels that it does not have, and one for
        missing cells.
    """

    names: tuple[str, ...]
    n_levels: np.ndarray
    X: np.ndarray

    def take(self, rows: np.ndarray) -> TableCells:
        """The rows of these numbers, in this order."""
        return self._replace(X=self.X[rows])

    def is_numeric(self, j: int) -> bool:
        """Whether column j holds numbers or dates."""
        return not self.n_levels[j]


def table_cells(schema: Schema, X: np.ndarray, unseen: np.ndarray) -> TableCells:
    """Cells of encoded rows: X (n, d) and unseen (n, d) as `data.frames.encode` gives them."""
    counts = np.array([len(column.levels) + 2 if column.is_categorical else 0 for column in schema.columns])
    coded = np.where(unseen, counts - 2.0, np.where(np.isnan(X), counts - 1.0, X))
    numbers = np.column_stack([_near_grid(column, X[:, j]) for j, column in enumerate(schema.columns)])
    return TableCells(schema.names, counts, np.where(counts > 0, coded, numbers))


def _near_grid(column: Column, x: np.ndarray) -> np.ndarray:
    """Numbers (n,), those on the column's grid but for rounding as rows drawn have them."""
    near_x = snapped(column, x)
    return np.where(np.abs(x - near_x) <= 1e-6 * column.step + 4e-16 * np.abs(x), near_x, x)


def read_rows(schema: Schema, frame: Any, what: str) -> tuple[np.ndarray, np.ndarray]:
    """A frame with all of the schema's columns, encoded: X (n, d) and unseen (n, d)."""
    reader = read(frame)
    if reader.frame != "numpy":
        absent = [name for name in schema.names if name not in reader.names]
        if absent:
            hint = near(absent[0], reader.names)
            raise ValueError(f"{what}: there is no column {absent[0]!r}; {hint}; all columns are compared")
    if reader.n == 0:
        raise ValueError(f"{what}: the table has no rows; at least one is needed")
    return encode(schema, frame)


def read_table_cells(schema: Schema, frame: Any, what: str) -> TableCells:
    """Cells of a frame with all of the schema's columns; errors as of `read_rows`."""
    return table_cells(schema, *read_rows(schema, frame, what))


def some(n: int, most: int, random: np.random.Generator) -> np.ndarray:
    """Numbers of at most ``most`` of n rows, drawn without replacement, ascending; all of them if there are no more."""
    return np.arange(n) if n <= most else np.sort(random.choice(n, most, replace=False))


_LOOKED_AT = 4_000
"""Rows by which the strength of dependence is judged."""


def pair_information(schema: Schema, X: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Mutual information of the columns of rows X (n, d), by some of the rows, (d, d); -inf of a column with itself."""
    rows = X[some(len(X), _LOOKED_AT, random)]
    information = mutual_information(*classes_of(schema, rows, rows[:0]))
    np.fill_diagonal(information, -np.inf)
    return information


# ---- Column by column: Kolmogorov distances of numbers, total variation of levels.


@dataclass(frozen=True)
class Marginals:
    """How far apart two tables are in each column.

    distance : dict of column to float. Between 0 and 1. Numbers and dates: the Kolmogorov distance of their known
        cells. Levels: the total variation distance, missing being a level. The largest first. A column of numbers that
        the table does not know is left out.
    missing : dict of column to float. Difference of the shares of missing cells in columns of numbers and dates, rows
        less table; only where there are missing cells.
    """

    distance: dict[str, float]
    missing: dict[str, float]

    @property
    def shape(self) -> float:
        """Mean of 1 - distance (KSComplement and TVComplement of sdmetrics' quality report); NaN of no column."""
        return float(1.0 - np.mean(list(self.distance.values()))) if self.distance else math.nan


def column_distances(real: TableCells, rows: TableCells) -> Marginals:
    """Distances of the columns of two tables."""
    distance, missing = {}, {}
    for j, name in enumerate(real.names):
        a, b = real.X[:, j], rows.X[:, j]
        if real.is_numeric(j):
            gap = float(np.isnan(b).mean() - np.isnan(a).mean())
            if np.isnan(a).any() or np.isnan(b).any():
                missing[name] = gap
            apart = kolmogorov(a[~np.isnan(a)], b[~np.isnan(b)])
        else:
            apart = total_variation(a, b, int(real.n_levels[j]))
        if not math.isnan(apart):
            distance[name] = apart
    return Marginals(dict(sorted(distance.items(), key=lambda item: -item[1])), missing)


def total_variation(a: np.ndarray, b: np.ndarray, n_levels: int) -> float:
    """Half the sum of differences of level shares, of codes (n,) and (m,), each below ``n_levels``."""
    a, b = a.astype(np.int64), b.astype(np.int64)
    if n_levels > 4 * (len(a) + len(b)):  # more levels than rows: only those that occur
        used = np.unique(np.concatenate([a, b]), return_inverse=True)[1]
        a, b, n_levels = used[: len(a)], used[len(a) :], int(used.max()) + 1
    share = [np.bincount(codes, minlength=n_levels) / len(codes) for codes in (a, b)]
    return float(0.5 * np.abs(share[0] - share[1]).sum())


# ---- Pair by pair: is the association of two columns the same in two tables?

MOST_PAIRS = 1000
"""Pairs looked at; of more than that so many are drawn."""
_N_BINS = 10
"""Bins of a column of numbers beside one of levels."""


@dataclass(frozen=True)
class ComparedPairs:
    """How alike two tables are in each pair of columns.

    similarity : dict of (column, column) to float. Between 0 and 1, the smallest first. Two columns of numbers: 1 -
        \\|difference of their Pearson correlations\\| / 2, on rows that have both. Else 1 - total variation distance of
        the two contingency tables, numbers cut in ten bins of equal shares of the table, missing being a level. A pair
        of numbers of which one never changes in the table is left out.
    correlation : dict of (column, column) to (float, float). Correlation of each pair of numbers, in the table and in
        the rows.
    n_pairs : int. Number of pairs of columns; if more than 1,000, so many of them were drawn.
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
    return np.unique(np.quantile(x, np.arange(1, _N_BINS) / _N_BINS, method="inverted_cdf"))


def width_edges(x: np.ndarray) -> np.ndarray:
    """Inner edges of ten bins of numbers (n,), all of the same width: those of sdmetrics."""
    return np.asarray(np.linspace(x.min(), x.max(), _N_BINS + 1)[1:-1])


def pairs(
    real: TableCells,
    rows: TableCells,
    random: np.random.Generator,
    edges: Callable[[np.ndarray], np.ndarray] = quantile_edges,
    most: int = MOST_PAIRS,
) -> ComparedPairs:
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
            similarity[names] = 1.0 - total_variation(a, b, n_codes[i] * n_codes[j])
    return ComparedPairs(dict(sorted(similarity.items(), key=lambda item: item[1])), correlation, n_pairs)


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Correlation of numbers (n,) on the rows that have both; NaN if one of them never changes there."""
    known = ~(np.isnan(x) | np.isnan(y))
    u, v = _unit_numbers(x[known]), _unit_numbers(y[known])
    return float(np.clip(u @ v, -1.0, 1.0)) if u.any() and v.any() else math.nan


def _unit_numbers(x: np.ndarray) -> np.ndarray:
    """Numbers (n,) with mean 0 and length 1; zeros if there is one value only. Huge numbers do not overflow."""
    if not len(x) or x.min() == x.max():
        return np.zeros(len(x))
    x = np.ldexp(x, -np.frexp(np.abs(x).max())[1])  # by a power of two, so that nothing is rounded
    x = x - x.mean()
    x = x / np.abs(x).max()
    return np.asarray(x / np.sqrt(x @ x))


def _binned(
    real: TableCells, rows: TableCells, edges: Callable[[np.ndarray], np.ndarray]
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
