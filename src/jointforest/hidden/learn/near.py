"""States of a column that are near one another: a state's normal over the states of a child."""

from __future__ import annotations

import numpy as np

from ...ground.products import of_finite
from .columns import CodeColumn

_LITTLE = 0.02  # of the variance of the child's states is added to each normal


@of_finite
def near_states(count: np.ndarray, emission: np.ndarray, column: CodeColumn) -> np.ndarray:
    """Where each state's rows would go, were the child's column normal in it: shares of the child's states, (Hp, Hk).

    A child's state lies where the mean of its rows' normal scores is. The states' own shares are multiplied by the
    ratio of the state's normal over these places to that of all rows; each state has a row more, of all rows' variance.

    Parameters
    ----------
    count : float array (Hp, Hk)
        Rows by state and the child's state.
    emission : float array (Hk, K)
        Rows by the child's state and code.
    column : CodeColumn
        The child's, of ordered codes.
    """
    place = emission @ column.score / (emission.sum(axis=1) + 1e-3)
    share = count.sum(axis=0, dtype=np.float64) + 1e-3
    share /= share.sum()
    middle = share @ place
    spread = share @ (place - middle) ** 2 + 1e-6
    rows = count.sum(axis=1, dtype=np.float64) + 1e-3
    mean = count @ place / rows
    variance = np.maximum(count @ place**2 / rows - mean**2, 0.0)
    variance = (rows * variance + spread) / (rows + 1.0) + _LITTLE * spread
    log = (place - middle) ** 2 / spread - (place - mean[:, None]) ** 2 / variance[:, None]
    table = share * np.exp(0.5 * (log - log.max(axis=1, keepdims=True)))
    return np.asarray(table / table.sum(axis=1, keepdims=True), dtype=count.dtype)
