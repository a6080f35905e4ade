"""Distance of drawn rows to validation rows: the cost of the best matching (a Wasserstein distance)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...data.schema import Schema
from .constants import FIXED


def matching_costs(schema: Schema, drawn: np.ndarray, held: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Distances (m, n) of drawn rows (m, d) to held-out rows (n, d): sums over the cells that the held-out row knows.
    Numbers differ by their absolute difference over ``spread`` (d,), levels by 1 if they differ."""
    # A value differs by 1 from a cell that a rule makes missing.
    cost = np.zeros((len(drawn), len(held)))
    for j, column in enumerate(schema.columns):
        x, y = drawn[:, j, None], held[:, j]
        far = (x != y) * 1.0 if column.is_categorical else np.abs(x - y) / spread[j]
        cost += np.where(np.isnan(y), 0.0, np.where(np.isnan(x), 1.0, far))
    return cost


def matched_distances(costs: Sequence[np.ndarray], weight: np.ndarray, seed: int) -> np.ndarray:
    """Mean distance of each held-out row to its draws in the best matching to draws of a mixture, (n,). ``costs`` has
    the distances (m, n) of draws of each component with weight (K,)."""
    # Each held-out row is matched as often as there are draws for: one draw a row would tell more of the noise of the
    # draws than of their distribution.
    from scipy.optimize import linear_sum_assignment

    m, n = costs[0].shape
    often = max(m // n, 1)
    rows = min(often * n, m)
    component = np.searchsorted(np.cumsum(weight)[:-1], np.random.default_rng(seed).random(rows), side="right")
    cost = np.stack([costs[k][i] for i, k in enumerate(component.tolist())])
    cost = np.repeat(cost[:, : rows // often], often, axis=1)
    row, column = linear_sum_assignment(cost)
    of_row = column // often
    return np.asarray(np.bincount(of_row, cost[row, column]) / np.bincount(of_row))


def spreads(schema: Schema, cells: np.ndarray) -> np.ndarray:
    """Standard deviations of the columns' known cells (d,); 1 where there is none, and of levels."""
    found = np.ones(len(schema.columns))
    for j, column in enumerate(schema.columns):
        known = cells[~np.isnan(cells[:, j]), j]
        if not column.is_categorical and np.ptp(known) > 0.0:
            found[j] = np.std(known)
    return found


def is_nearer(distance: np.ndarray, others: np.ndarray) -> bool:
    """Whether distances of rows are less than others by more than the standard error of the mean difference."""
    gain = others - distance
    return bool(gain.mean() > FIXED.nearer_errors * gain.std() / np.sqrt(len(gain)))
