"""Cells that break a relation between two columns: combinations of two values that other rows avoid.

Rows of a country have a few of all languages, and rows of low salaries have no high grade. Such a relation forbids
combinations, which would be frequent if the columns were independent. A joint that has learned a few rows with a
forbidden combination takes it for a rare one, and so do counts. The relation as a whole tells errors from rare
combinations: if the exceptions in all of its forbidden combinations are few, its exceptions are probably errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

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
                    rows, of, is_exception, share = self._relation(a, b)
                    self.rate[[a, b]] = np.minimum(self.rate[[a, b]], share)
                    if share < 1.0 and is_exception.any():
                        found.append((a, b, rows, of, is_exception, share))
        self.found = []
        for a, b, rows, of, is_exception, share in found:
            # Random values in both columns make exceptions. What they cannot explain is genuine.
            explained = min((self.rate[a] + self.rate[b]) / share, 1.0)
            p = np.where(is_exception, explained / (1.0 + (share / _TOLERATED) ** 2), 0.0)
            self.found.append(Relation(a, b, rows, of[0], of[1], p))

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

    def _relation(self, a: int, b: int) -> tuple[np.ndarray, list[np.ndarray], np.ndarray, float]:
        """Rows of each combination; rows of the values of each column; which combinations are forbidden but have rows;
        and the rows of all forbidden combinations over the expected ones (1 if the columns have no relation)."""
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
        forbidden = float(expected_own[is_forbidden].sum())
        share = (float(own[is_forbidden].sum()) + _PSEUDO) / forbidden if forbidden >= _FORBIDDEN * n else 1.0
        return rows, of, is_forbidden & (rows > 0.0), min(share, 1.0)

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
