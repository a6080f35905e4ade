"""Codes as learning sees them: how many a column has, how common they are, where they lie on a normal scale."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_BESIDE = 2  # codes on either side that a heap stands out of


class CodeTable(NamedTuple):
    """Rows of codes.

    Attributes
    ----------
    codes : int array (n, d)
        Codes 0..n_codes[j] - 1; a missing cell has the code ``n_codes[j]``.
    n_codes : int array (d,)
    is_ordered : bool array (d,)
        Whether a column's codes are ordered bins of numbers; other codes are levels.
    weight : float array (n,) or None
        Weights of the rows.
    """

    codes: np.ndarray
    n_codes: np.ndarray
    is_ordered: np.ndarray
    weight: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> CodeTable:
        """Some of the rows."""
        return self._replace(codes=self.codes[rows], weight=None if self.weight is None else self.weight[rows])

    def weighed_rows(self) -> np.ndarray:
        """Which rows have any weight."""
        return np.arange(len(self.codes)) if self.weight is None else np.flatnonzero(self.weight > 0)


class CodeColumn(NamedTuple):
    """One column of codes; a missing cell has the code K.

    Attributes
    ----------
    marginal : float64 array (K,)
        Share of each code; 0 of codes that cannot be.
    edge : float64 array (K + 1,)
        Ends of the codes' intervals in normal scores, from -inf to inf; empty where the codes have no order.
    score : float64 array (K,)
        Mean of a standard normal within each code's interval; empty where the codes have no order.
    around : float64 array (K,)
        Mean share of the two codes on either side, fewer at the ends; empty where the codes have no order.
    """

    marginal: np.ndarray
    edge: np.ndarray
    score: np.ndarray
    around: np.ndarray

    @property
    def n_codes(self) -> int:
        return len(self.marginal)

    @property
    def is_ordered(self) -> bool:
        return len(self.edge) > 0


def code_columns(table: CodeTable, allowed: list[np.ndarray] | None = None) -> tuple[CodeColumn, ...]:
    """The columns of a table; codes never seen count half a row, but for those that are not allowed."""
    columns = []
    for j, K in enumerate(table.n_codes.tolist()):
        count = np.bincount(table.codes[:, j], weights=table.weight, minlength=K + 1)[:K] + 0.0
        columns.append(code_column(count, bool(table.is_ordered[j]), None if allowed is None else allowed[j]))
    return tuple(columns)


def code_column(count: np.ndarray, is_ordered: bool, allowed: np.ndarray | None) -> CodeColumn:
    """The column whose codes occur so often each, (K,); see `code_columns`."""
    from scipy.special import ndtri

    count = np.where((count == 0.0) & (True if allowed is None else allowed), 0.5, count)
    marginal = count / count.sum()
    edge = score = around = np.empty(0)
    if is_ordered:
        inner = np.clip(np.cumsum(marginal)[:-1], 0.0, 1.0)
        edge = np.concatenate([[-np.inf], ndtri(inner), [np.inf]])
        density = np.exp(-0.5 * edge**2) / np.sqrt(2 * np.pi)
        score = -np.diff(density) / np.where(marginal > 0, marginal, np.inf)
        around = _around(marginal)
    return CodeColumn(marginal, edge, score, around)


def _around(share: np.ndarray) -> np.ndarray:
    """Mean of the `_BESIDE` entries on either side of each, (K,); 0 where there is none."""
    window = np.ones(2 * _BESIDE + 1)
    total, n = (np.convolve(np.pad(x, _BESIDE), window, "valid") - x for x in (share, np.ones(len(share))))
    return total / np.maximum(n, 1.0)
