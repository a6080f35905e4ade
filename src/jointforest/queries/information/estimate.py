"""A number that is exact, or the mean over draws with its standard error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """A number, and how well it is known.

    Attributes
    ----------
    value : float
        Natural logarithms: nats.
    standard_error : float
        Of the mean over the draws; 0 if the answer is exact, NaN if it is infinite.
    method : str
        ``"exact"`` (to about 1e-6) or ``"sampling"``.
    """

    value: float
    standard_error: float
    method: str


def exact(value: float) -> Estimate:
    """An answer without sampling."""
    return Estimate(float(value), 0.0 if np.isfinite(value) else np.nan, "exact")


def averaged(*draws: np.ndarray) -> Estimate:
    """The mean over strata of equal weight of the means of their draws, with its standard error."""
    value = float(np.mean([x.mean() for x in draws]))
    if not np.isfinite(value):
        return Estimate(value, np.nan, "sampling")
    variance = sum(x.var(ddof=1) / len(x) for x in draws) / len(draws) ** 2
    return Estimate(value, float(np.sqrt(variance)), "sampling")
