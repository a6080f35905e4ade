"""Cells that break a relation between two columns: combinations of two values that other rows avoid.

Rows of a country have a few of all languages, and rows of low salaries have no high grade. Such a relation forbids
combinations, which would be frequent if the columns were independent. A joint that has learned a few rows with a
forbidden combination takes it for a rare one, and so do counts. The relation as a whole tells errors from rare
combinations: if the exceptions in all of its forbidden combinations are few, its exceptions are probably errors. They
are errors, too, if values at random explain them. Then all forbidden combinations have the same share of the rows that
independent columns would have, and this share is the same in all relations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from .columns import CheckedColumn

_BINS = 16  # bins of about equal numbers of rows of a column of numbers
_BESIDE = 2  # bins on each side whose rows count too, because a relation need not end where a bin ends
_LEVELS = 200  # most levels of a column that has relations
_EXPECTED = 5.0  # least number of rows that a combination would have if the columns were independent
_FEW = 0.05  # a combination with a larger share of the rows of both of its values is not forbidden
_RARE = 0.1  # nor one with a larger share of the rows of one of its values
_FEWER = 0.35  # most rows of an exception, as a share of the expected ones
_FORBIDDEN = 0.1  # least share of the rows of independent columns that a relation forbids
_TOLERATED = 0.02  # with this share of exceptions among forbidden rows, they are as often genuine as wrong
_PSEUDO = 0.5  # pseudo-exceptions of each relation
_ALIKE = 2.0  # relations with at most so many times the smallest share tell the share of random values
_RARELY = 3.0  # log of the prior odds that exceptions are not such values
_MOST_EVEN = 3.0  # most evidence for them from one relation alone, because some columns are nearly equal to others


class Relation(NamedTuple):
    """A relation of two columns. Its arrays (A + 1, B + 1) have a row and a column of zeros for missing cells.

    a, b : int. The columns.
    rows : float array (A + 1, B + 1). Rows of each combination, with those of the bins beside it.
    of_a, of_b : float arrays (A + 1,), (B + 1,). Rows of each value of a and of b that have both cells, with those of
        the bins beside it.
    p : float array (A + 1, B + 1). Probability that one of the two cells of the combination is wrong; 0 if no row has
        it, or it is not forbidden.
    """

    a: int
    b: int
    rows: np.ndarray
    of_a: np.ndarray
    of_b: np.ndarray
    p: np.ndarray


class _Exceptions(NamedTuple):
    """What `Relations` finds about columns a and b; arrays as those of `Relation`.

    is_exception : bool array (A + 1, B + 1). Which combinations are forbidden but have rows.
    number, expected : float. Rows with forbidden combinations, and those that independent columns would have.
    evenness : float. Log-likelihood ratio of equal shares of the expected rows in all forbidden combinations, against
        shares that are spread exponentially.
    """

    a: int
    b: int
    rows: np.ndarray
    of: list[np.ndarray]
    is_exception: np.ndarray
    number: float
    expected: float
    evenness: float

    @property
    def share(self) -> float:
        """Rows of forbidden combinations over the expected ones."""
        return (self.number + _PSEUDO) / self.expected


class Broken(NamedTuple):
    """The relations that rows break; all arrays are (n, d).

    p : float array. Probability that the cell is wrong, because it breaks a relation.
    relation : int array. The relation, an index into `Relations.found`; -1 if there is none.
    """

    p: np.ndarray
    relation: np.ndarray


class Relations:
    """The relations between the columns of a table.

    found : list of Relation. Those with exceptions.
    code : int array (n, d). The level, or the bin, of each cell; -1 if it is missing or its column has no relations.
    cuts : list of float arrays or None. The ends of the bins of each column of numbers.
    rate : float array (d,). Greatest share of random values in each column that its relations allow.
    """

    def __init__(self, columns: Sequence[CheckedColumn]) -> None:
        self._columns = list(columns)
        self.cuts = [_cuts(column) for column in columns]
        self.code = np.column_stack([self.codes(j, column.item) for j, column in enumerate(columns)])
        self.rate = np.ones(len(columns))
        found = []
        for a in range(len(columns)):
            for b in range(a + 1, len(columns)):
                if self.cuts[a] is None or self.cuts[b] is None:  # the joint predicts a number from other numbers
                    one = self._exceptions(a, b)
                    if one is not None and one.share < 1.0:
                        self.rate[[a, b]] = np.minimum(self.rate[[a, b]], one.share)
                        found.append(one)
        self.found = []
        p_random, of_random = _of_random_values(found)
        for one in found:
            # Random values in both columns make exceptions. What they cannot explain is genuine.
            explained = min((self.rate[one.a] + self.rate[one.b]) / one.share, 1.0)
            p = max(explained / (1.0 + (one.share / _TOLERATED) ** 2), p_random * min(of_random / one.share, 1.0))
            if one.is_exception.any():
                p_of = np.where(one.is_exception, p, 0.0)
                self.found.append(Relation(one.a, one.b, one.rows, one.of[0], one.of[1], p_of))

    def codes(self, j: int, item: np.ndarray) -> np.ndarray:
        """Codes of values of column j, (n,); ``item`` has their indices in `CheckedColumn.values`."""
        column, cuts = self._columns[j], self.cuts[j]
        if cuts is not None:
            return np.where(item >= 0, np.searchsorted(cuts, column.number[item], side="right"), -1)
        return np.where((item < column.n_seen) & (column.n_seen <= _LEVELS), item, -1)

    def ends(self, j: int, item: int) -> tuple[int, int] | None:
        """The first and the last value that counts as like a number; None in a column of levels."""
        if self.cuts[j] is None:
            return None
        code = self.codes(j, np.arange(self._columns[j].n_seen))
        near = np.flatnonzero(np.abs(code - self.codes(j, np.array([item]))) <= _BESIDE)
        return int(near[0]), int(near[-1])

    def _exceptions(self, a: int, b: int) -> _Exceptions | None:
        """The exceptions of the relation of two columns; None if they have none."""
        shape = tuple(int(self.code[:, j].max(initial=-1)) + 2 for j in (a, b))
        known = (self.code[:, a] >= 0) & (self.code[:, b] >= 0)
        at = self.code[known, a] * shape[1] + self.code[known, b]
        own = np.bincount(at, minlength=shape[0] * shape[1]).reshape(shape).astype(float)
        n, rows, of = max(own.sum(), 1.0), own, [own.sum(axis=1), own.sum(axis=0)]
        expected_own = np.outer(*of) / n
        for axis, j in enumerate((a, b)):
            if self.cuts[j] is not None:
                rows, of[axis] = _with_bins_beside(rows, axis), _with_bins_beside(of[axis], 0)
        expected = np.outer(*of) / n
        shares = rows / np.maximum(of[0][:, None], 1.0), rows / np.maximum(of[1], 1.0)
        is_few = (np.minimum(*shares) <= _FEW) & (np.maximum(*shares) <= _RARE)
        is_forbidden = (expected >= _EXPECTED) & is_few & (rows <= _FEWER * expected)
        k, mean = own[is_forbidden], expected_own[is_forbidden]
        number, forbidden = float(k.sum()), float(mean.sum())
        if forbidden < _FORBIDDEN * n:
            return None
        mean = mean * (number + _PSEUDO) / forbidden
        evenness = float((k * np.log1p(mean) - mean - gammaln(k + 1.0) + np.log1p(mean)).sum())
        return _Exceptions(a, b, rows, of, is_forbidden & (rows > 0.0), number, forbidden, evenness)

    def broken(self, code: np.ndarray, is_right: np.ndarray, p_wrong: np.ndarray) -> Broken:
        """The relations that rows break. ``code`` (n, d) has their codes, ``is_right`` (d,) the columns whose cells
        are known to be right, and ``p_wrong`` (n, d) is the probability that a cell is wrong for other reasons."""
        p, which = np.zeros(code.shape), np.full(code.shape, -1)
        strength, rows_of = np.zeros(code.shape), []
        for of in self.found:
            h = of.p[code[:, of.a], code[:, of.b]]
            rows_of.append(np.flatnonzero(h > 0.0))
            for j in (of.a, of.b):
                strength[rows_of[-1], j] += h[rows_of[-1]]
        for k, (of, rows) in enumerate(zip(self.found, rows_of, strict=True)):
            at = code[rows, of.a], code[rows, of.b]
            # A cell is likelier wrong if it breaks more relations, if its column has more errors, if the other cell
            # determines its value, and if it is wrong for other reasons.
            pure = of.rows[:, at[1]].max(axis=0), of.rows[at[0]].max(axis=1)
            total = of.of_b[at[1]], of.of_a[at[0]]
            score = [
                ~is_right[j]
                * self.rate[j]
                * strength[rows, j] ** 2
                * pure[i]
                / np.maximum(total[i], 1.0)
                / np.maximum(1.0 - p_wrong[rows, j], 1e-6)
                for i, j in enumerate((of.a, of.b))
            ]
            for i, j in enumerate((of.a, of.b)):
                mine = of.p[at] * score[i] / np.maximum(score[0] + score[1], 1e-300)
                is_more = mine > p[rows, j]
                p[rows[is_more], j], which[rows[is_more], j] = mine[is_more], k
        return Broken(p, which)


def _of_random_values(found: Sequence[_Exceptions]) -> tuple[float, float]:
    """The probability that values at random made the exceptions in all relations, and the share that they have."""
    # Two hypotheses are compared, by the relations of smallest share: others may have genuine exceptions, too. With
    # values at random, all relations have the same share, and the number of exceptions is Poisson. With genuine
    # exceptions, each share is log-uniform between that of a pseudo-exception and 1. A relation is left out if both of
    # its columns were used before, because columns that are functions of each other have the same exceptions.
    least = min((one.share for one in found), default=1.0)
    alike = sorted((one for one in found if one.share <= _ALIKE * least), key=lambda one: -one.expected)
    share = (sum(one.number for one in alike) + _PSEUDO) / max(sum(one.expected for one in alike), 1.0)
    evidence, seen = -_RARELY, set[int]()
    for one in alike:
        if not {one.a, one.b} <= seen and one.number > 0.0:
            mean, k = share * one.expected, one.number
            evidence += min(one.evenness, _MOST_EVEN)
            if seen:
                any_share = -np.log(k * np.log(one.expected / _PSEUDO))
                evidence += float(k * np.log(mean) - mean - gammaln(k + 1.0) - any_share)
            seen |= {one.a, one.b}
    return float(1.0 / (1.0 + np.exp(-evidence))), share


def _cuts(column: CheckedColumn) -> np.ndarray | None:
    """Ends of the bins of a column of numbers; None if its values are levels, or few enough to count as such."""
    if column.is_levels or column.n_seen <= _BINS:
        return None
    cells = column.number[column.item[column.item >= 0]]
    return np.unique(np.quantile(cells, np.arange(1, _BINS) / _BINS))


def _with_bins_beside(rows: np.ndarray, axis: int) -> np.ndarray:
    """The rows of each combination and of the bins beside it along an axis; the last one there is for missing cells."""
    total = np.zeros_like(rows)
    along, out = np.moveaxis(rows, axis, 0)[:-1], np.moveaxis(total, axis, 0)[:-1]
    for k in range(-_BESIDE, _BESIDE + 1):
        out[max(k, 0) : len(out) + min(k, 0)] += along[max(-k, 0) : len(out) - max(k, 0)]
    return total
