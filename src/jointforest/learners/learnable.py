"""Numbers that can be learned, and numbers of columns or rows that parameters stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from ..runtime.parameters import Number, check, check_number
from ..runtime.warnings import warn
from .leaf_fitting.fit import NARROWEST

LARGEST = 1e150
"""Largest number that can be learned: its square, and so every variance, is a float64 number."""


def check_cells(names: Sequence[str], cells: np.ndarray) -> None:
    """Raise ValueError if the squares of a column's numbers, or of their distances, leave float64; cells: (n, d)."""
    for name, column in zip(names, cells.T, strict=True):
        known = column[~np.isnan(column)]
        large = known[np.abs(known) > LARGEST]
        if len(large):
            raise ValueError(
                f"column {name!r}: {large[0]:g} is too large, expected numbers of at most {LARGEST:g}; "
                "divide the column by a power of ten, or make such cells missing (NaN)"
            )
        span = np.ptp(known)
        if 0 < span < NARROWEST:
            raise ValueError(
                f"column {name!r}: its values span {span:g}, expected 0 or at least {NARROWEST:g}; "
                "multiply the column by a power of ten"
            )


def count_features(max_features: Any, d: int) -> int:
    """Number of columns tried at each node, from scikit-learn's ``max_features``, for d columns.

    Examples
    --------
    >>> [count_features(given, 17) for given in ("sqrt", "log2", None, 3, 0.5)]
    [4, 4, 17, 3, 8]
    """
    if max_features is None:
        return d
    if max_features == "sqrt":
        return max(1, math.isqrt(d))
    if max_features == "log2":
        return max(1, int(math.log2(d)))
    return min(int(max_features), d) if isinstance(max_features, Integral) else max(1, int(max_features * d))


def warn_leaf_size(min_samples_leaf: float, n: int) -> None:
    """Warn that no split of n rows can leave so many on both sides."""
    if min_samples_leaf > n:
        warn(
            f"min_samples_leaf={min_samples_leaf:g} is more than the table's {n} rows: no tree has a split; "
            "one leaf holds all rows; give less"
        )


def count_rows(min_samples_leaf: Any, n: int) -> float:
    """Fewest rows of a leaf, from a number or a share of n rows.

    Raises
    ------
    ValueError
        If it is neither.

    Examples
    --------
    >>> count_rows(5, 1000), count_rows(0.01, 1000), count_rows(0.01, 20)
    (5.0, 10.0, 1.0)
    """
    if isinstance(min_samples_leaf, Integral):
        check_number("min_samples_leaf", min_samples_leaf, 1, whole=True)
        return float(min_samples_leaf)
    share = Number(0, 1, without="both", text="a whole number >= 1 or a share in (0, 1)")
    check("min_samples_leaf", min_samples_leaf, (share,))
    return float(max(1, math.ceil(min_samples_leaf * n - 1e-9)))  # 0.07 * 100 is above 7
