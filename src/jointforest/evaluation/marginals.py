"""Column by column: Kolmogorov distances of numbers, total variation of levels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .cells import Cells


@dataclass(frozen=True)
class Marginals:
    """How far apart two tables are in each column.

    Attributes
    ----------
    distance : dict of column to float
        Between 0 and 1. Numbers and dates: the Kolmogorov distance of their known cells. Levels: the total variation
        distance, missing being a level. The largest first. A column of numbers that the table does not know is left
        out.
    missing : dict of column to float
        Difference of the shares of missing cells in columns of numbers and dates, rows less table; only where there
        are missing cells.
    """

    distance: dict[str, float]
    missing: dict[str, float]

    @property
    def shape(self) -> float:
        """Mean of 1 - distance (KSComplement and TVComplement of sdmetrics' quality report); NaN of no column."""
        return float(1.0 - np.mean(list(self.distance.values()))) if self.distance else math.nan


def marginals(real: Cells, rows: Cells) -> Marginals:
    """Distances of the columns of two tables.

    Examples
    --------
    >>> import numpy as np
    >>> real = Cells(("a",), np.array([0]), np.array([[1.0], [2.0], [3.0], [4.0]]))
    >>> marginals(real, real.take(np.array([0, 1]))).distance
    {'a': 0.5}
    """
    distance, missing = {}, {}
    for j, name in enumerate(real.names):
        a, b = real.X[:, j], rows.X[:, j]
        if real.is_numeric(j):
            gap = float(np.isnan(b).mean() - np.isnan(a).mean())
            if np.isnan(a).any() or np.isnan(b).any():
                missing[name] = gap
            found = kolmogorov(a[~np.isnan(a)], b[~np.isnan(b)])
        else:
            found = total_variation(a, b, int(real.n_levels[j]))
        if not math.isnan(found):
            distance[name] = found
    return Marginals(dict(sorted(distance.items(), key=lambda item: -item[1])), missing)


def kolmogorov(a: np.ndarray, b: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Largest difference of two empirical CDFs, numbers (n,) and (m,); NaN if a is empty, 1 if b alone is.

    ``weight`` (n,) are those of a; None: all alike.
    """
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


def total_variation(a: np.ndarray, b: np.ndarray, n_levels: int) -> float:
    """Half the sum of differences of level shares, of codes (n,) and (m,)."""
    share = [np.bincount(codes.astype(np.int64), minlength=n_levels) / len(codes) for codes in (a, b)]
    return float(0.5 * np.abs(share[0] - share[1]).sum())
