"""Codes as learning sees them: how many a column has, how common they are, where they lie on a normal scale."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class CodeColumn(NamedTuple):
    """One column of codes; a missing cell has the code K.

    Attributes
    ----------
    marginal : float64 array (K,)
        Share of each code; 0 of codes that cannot be.
    edge : float64 array (K + 1,)
        Ends of the codes' intervals in normal scores, from -inf to inf; empty where the codes have no order.
    """

    marginal: np.ndarray
    edge: np.ndarray

    @property
    def n_codes(self) -> int:
        return len(self.marginal)

    @property
    def is_ordered(self) -> bool:
        return len(self.edge) > 0

    @property
    def score(self) -> np.ndarray:
        """Mean of a standard normal within each code's interval, (K,)."""
        density = np.exp(-0.5 * self.edge**2) / np.sqrt(2 * np.pi)
        some = self.marginal > 0
        return np.where(some, -np.diff(density) / np.where(some, self.marginal, 1.0), 0.0)


def code_columns(
    codes: np.ndarray,
    n_codes: np.ndarray,
    is_ordered: np.ndarray,
    weight: np.ndarray | None = None,
    allowed: list[np.ndarray] | None = None,
) -> tuple[CodeColumn, ...]:
    """The columns of a table of codes (n, d); codes never seen count half a row, but for those that are not allowed."""
    from scipy.special import ndtri

    columns = []
    for j, K in enumerate(n_codes.tolist()):
        count = np.bincount(codes[:, j], weights=weight, minlength=K + 1)[:K] + 0.0
        count[(count == 0.0) & (True if allowed is None else allowed[j])] = 0.5
        marginal = count / count.sum()
        edge = np.empty(0)
        if is_ordered[j]:
            inner = np.clip(np.cumsum(marginal)[:-1], 0.0, 1.0)
            edge = np.concatenate([[-np.inf], ndtri(inner), [np.inf]])
        columns.append(CodeColumn(marginal, edge))
    return tuple(columns)
