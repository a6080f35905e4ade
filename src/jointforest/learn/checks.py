"""Checks of estimator parameters, with errors that say what was expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..leaves.fit.fit import NARROWEST

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


def check_number(
    name: str, value: Any, *, low: float, high: float = math.inf, whole: bool = False, none: bool = False
) -> None:
    """Raise ValueError unless ``low <= value <= high`` (a whole number if ``whole``; None allowed if ``none``)."""
    if none and value is None:
        return
    kind = Integral if whole else Real
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= float(value) <= high:
        what = "a whole number" if whole else "a number"
        limits = f"at least {low}" if high == math.inf else f"between {low} and {high}"
        raise ValueError(f"{name} must be {what} {limits}{' or None' if none else ''}, got {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def count_features(max_features: str | int | float | None, d: int) -> int:
    """Number of columns tried at each node, from scikit-learn's ``max_features``, for d columns."""
    if max_features is None:
        return d
    if max_features == "sqrt":
        return max(1, math.isqrt(d))
    if max_features == "log2":
        return max(1, int(math.log2(d)))
    if not isinstance(max_features, str | bool):
        if isinstance(max_features, int | np.integer) and max_features >= 1:
            return min(int(max_features), d)
        if isinstance(max_features, float) and 0 < max_features <= 1:
            return max(1, int(max_features * d))
    raise ValueError(
        f"max_features must be 'sqrt', 'log2', None, a whole number >= 1 or a share in (0, 1], got {max_features!r}"
    )
