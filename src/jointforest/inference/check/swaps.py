"""Cells that were swapped with those of the neighbouring column: two cells of a row at once, found by its density.

A joint that learned the table has learned its swapped rows too, and expects one swapped cell beside the other. The
density of the whole row still tells them: nearly all rows of the table are less dense after a swap, and swapped rows
are denser.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...data.evidence import build
from ...data.schema import place_on_grid
from ...models.base import Distribution
from .columns import CheckedColumn

_START = 0.01  # initial share of swapped rows, for a joint that has not learned the table
_PSEUDO = 100.0  # pseudo-rows of this share
_ROUNDS = 30  # rounds of expectation maximisation
_EXCHANGEABLE = 0.15  # columns are too alike if more than this share of their rows is denser after a swap
_NEAR = 1.0  # rows whose log density changes by less show how many genuine rows are denser after a swap
_CLEAR = 3.0  # standard deviations by which the number of rows that are denser exceeds that of genuine rows
_LEAST_MEAN = 1.5  # least mean gain of swapped rows: that of genuine rows is 1
_UNLIKELY = 8.0  # rows whose two cells would be less likely by more than this after a swap, each alone, are not asked
_MOST = 50.0  # greatest change of the log density that counts
_FACTOR_SD = 0.1  # prior standard deviation of the factor, around 1: see `_factor_of_gains`
_LEAST_FACTOR = 0.3  # least factor that is compared; the prior makes smaller ones improbable
_FACTORS = 15  # factors that are compared, 0.05 apart
_SHARES = 0.0, 0.003, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15  # shares of swapped rows that are tried, to `_EXCHANGEABLE`


class Swaps(NamedTuple):
    """Swaps of the cells of d columns, each with the likelier neighbour; all arrays are (n, d).

    p : float array. Probability that the cell is swapped.
    neighbour : int array. The other column.
    item : int array. The value of the other column's cell in this column, as `CheckedColumn.item`; -1 if it is no value
        of it.
    """

    p: np.ndarray
    neighbour: np.ndarray
    item: np.ndarray


def find_swaps(
    distribution: Distribution, X: np.ndarray, places: Sequence[int], columns: Sequence[CheckedColumn], is_learned: bool
) -> Swaps:
    """The swaps of neighbouring columns; adds values to columns that only a swap gives them. ``X`` (n, d) has the
    encoded rows, and ``places`` (m,) says which of its columns the m checked ones are."""
    n, m = len(X), len(columns)
    p, neighbour = np.zeros((n, m)), np.tile(np.arange(m), (n, 1))
    before = np.full(n, np.nan)
    for a, b in zip(range(m - 1), range(1, m), strict=True):
        of_a, of_b = _exchanged(columns[a], columns[b]), _exchanged(columns[b], columns[a])
        both = np.flatnonzero(~np.isnan(of_a) & ~np.isnan(of_b))
        in_b = columns[b].number[columns[b].item[both]]
        rows = both[of_a[both] != in_b]
        if not len(rows):
            continue
        likelier = columns[a].log_marginal(of_b[rows]) + columns[b].log_marginal(of_a[rows])
        for of in (columns[a], columns[b]):
            likelier -= of.log_marginal(of.number[of.item[rows]])
        n_rows, rows = len(rows), rows[likelier > -_UNLIKELY]
        if not len(rows):
            continue
        new = rows[np.isnan(before[rows])]
        before[new] = _log_density(distribution, X[new], places, columns, new)
        Y = X[rows]
        Y[:, places[a]], Y[:, places[b]] = of_b[rows], of_a[rows]
        with np.errstate(invalid="ignore"):
            gain = _log_density(distribution, Y, places, columns, rows, {a, b}) - before[rows]
        gain[before[rows] == -np.inf] = -_MOST  # impossible by an enforced rule, which `rules` is for
        n_same = _rows_of_same(of_a[both], in_b)
        swapped = _p_swapped(np.nan_to_num(gain, nan=-_MOST), n_rows, n_same, is_learned)
        for j, other in ((a, b), (b, a)):
            likelier = swapped > p[rows, j]
            p[rows[likelier], j], neighbour[rows[likelier], j] = swapped[likelier], other
    item = np.full((n, m), -1)
    for j, column in enumerate(columns):
        rows = np.flatnonzero(p[:, j] > 0.0)
        number = np.full(n, np.nan)
        for other in np.unique(neighbour[rows, j]).tolist():
            of = rows[neighbour[rows, j] == other]
            number[of] = _exchanged(columns[other], column)[of]
        item[rows, j] = column.items_of(number[rows])
    return Swaps(p, neighbour, item)


def _exchanged(column: CheckedColumn, other: CheckedColumn) -> np.ndarray:
    """The number that each cell of a column has in another one, (n,); NaN where it is no value of the other."""
    a, b = column.column, other.column
    if column.is_levels != other.is_levels or (a.kind == "datetime") != (b.kind == "datetime"):
        return np.full(len(column.item), np.nan)
    if column.is_levels:
        codes = [b.code(value) for value in column.values[: column.n_seen]]
        numbers = np.array([np.nan if code is None else float(code) for code in codes])
    else:
        numbers = column.number[: column.n_seen] + a.zero - b.zero
        if b.step > 0.0:
            numbers = np.array([x if place_on_grid(b, x).is_integer() else np.nan for x in numbers.tolist()])
    return np.append(numbers, np.nan)[column.item]


def _rows_of_same(a: np.ndarray, b: np.ndarray) -> int:
    """The number of rows with the same value in both cells. A value that is usual in both, such as 0, counts at most
    as often as it stands in only one."""
    value, rows = np.unique(a[a == b], return_counts=True)
    alone = np.sort(np.concatenate([a[a != b], b[a != b]]))
    alone_rows = np.searchsorted(alone, value, side="right") - np.searchsorted(alone, value)
    return int(np.minimum(rows, alone_rows).sum())


def _log_density(
    distribution: Distribution,
    X: np.ndarray,
    places: Sequence[int],
    columns: Sequence[CheckedColumn],
    rows: np.ndarray,
    known: set[int] | frozenset[int] = frozenset(),
) -> np.ndarray:
    """Log density of rows, with the probability of levels never seen; the columns ``known`` have none of these."""
    out = np.asarray(distribution.log_density(build(distribution.schema, X)))
    for j, column in enumerate(columns):
        if j not in known:
            out = out + column.column.log_unseen * ((column.item[rows] >= 0) & np.isnan(X[:, places[j]]))
    return out


def _p_swapped(gain: np.ndarray, n_rows: int, n_same: int, is_learned: bool) -> np.ndarray:
    """Probability that the two cells of each row are swapped, (r,), from the gains of its log density by a swap. Of
    ``n_rows`` rows with two such cells, those that are not among the r have no chance of a swap. In ``n_same`` other
    rows the cells are the same."""
    # If the joint has not learned the rows, this is Bayes' rule with a learned share of swapped rows. A joint that has
    # learned them makes a swapped row as dense as there are such rows. Then the number of genuine rows of each gain
    # above 0 is needed. It is proportional to exp(-factor x gain). Its value at 0 is that of rows with gains near 0,
    # and of rows with the same cells. If there are fewer losses in (-1, 0) than in (-2, -1), the numbers fall towards
    # 0, and gains fall at least by this ratio. The excess rows form a second group, the swapped ones. Their gains are
    # taken to be exponential.
    gain, p = np.clip(gain, -_MOST, _MOST), np.zeros(len(gain))
    if not is_learned:
        share = _START
        for _ in range(_ROUNDS):
            p = share / (share + (1.0 - share) * np.exp(-gain))
            share = (p.sum() + _START * _PSEUDO) / (n_rows + _PSEUDO)
        return p
    denser, factor = gain > 0.0, _factor_of_gains(gain)
    of, near = gain[denser], 0.5 * ((np.abs(gain) < _NEAR).sum() + n_same)
    genuine = near + factor
    n, mean, q = len(of) - genuine / factor, 2.0, np.zeros(len(of))
    if n <= 0.0 or n < _CLEAR * np.sqrt(near) or len(of) > _EXCHANGEABLE * n_rows:
        return p
    few, more = (np.count_nonzero((gain < a) & (gain >= a - _NEAR)) + 1.0 for a in (0.0, -_NEAR))
    few += 0.5 * n_same
    genuine = min(genuine, few * np.sqrt(few / more))
    falling = genuine * np.exp(-max(factor, np.log(more / few)) * of)
    for _ in range(_ROUNDS):
        swapped = n / mean * np.exp(-of / mean)
        q = swapped / (swapped + falling)
        n = q.sum()
        mean = max(float(q @ of / n), _LEAST_MEAN)
    p[denser] = q
    return p


def _factor_of_gains(gain: np.ndarray) -> float:
    """Factor (0.3 to 1) that makes gains and losses of equal size as frequent as theory says; ``gain`` (r,)."""
    # In rows that are drawn from a distribution, gains of size g are exp(-g) times as frequent as losses. The joint of
    # a small table exaggerates: its gains follow this law after multiplication by the factor. In the rows that are
    # swapped, gains and losses are exchanged. Large losses tell nothing, because most such rows are not asked.
    gain = gain[np.abs(gain) < _UNLIKELY]
    factor = np.linspace(_LEAST_FACTOR, 1.0, _FACTORS)[:, None]
    fits = np.full((_FACTORS, 1), -np.inf)
    for share in _SHARES:
        p = share + (1.0 - 2.0 * share) / (1.0 + np.exp(factor * gain))
        fits = np.maximum(fits, np.log(p).sum(axis=1, keepdims=True))
    return float(factor[(fits - 0.5 * ((1.0 - factor) / _FACTOR_SD) ** 2).argmax(), 0])
