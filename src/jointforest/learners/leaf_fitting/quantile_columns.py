"""Columns of numbers that leaves misfit: their marginal in a forest is not that of the rows."""

from __future__ import annotations

import numpy as np

from ...data.build_evidence import build
from ...data.schema import Columns
from ...evaluation.columns_and_pairs import kolmogorov
from ...inference.sampling import sample
from ...models.box_forest.box_forest import BoxForest
from ...models.box_forest.forest import Forest
from ...models.box_forest.leaves.derived import table_bytes

FAR = 0.01
"""Kolmogorov distance of a column's rows and draws, chance aside, beyond which leaves misfit it."""
_CELLS = 4_000_000  # most cells drawn
_DRAWS = 4_000, 20_000  # fewest and most rows drawn
MOST_BYTES = 2**31
"""Size that a forest's tables may have with quantile leaves, which need a row for each piece of a CDF."""


def misfit_slots(forest: Forest, X: np.ndarray, weight: np.ndarray | None, n_jobs: int | None) -> np.ndarray:
    """Numeric slots whose marginal in the forest is not that of rows X (n, d), of weights (n,) or None: bool (p,)."""
    columns = forest.columns
    n_draws = int(np.clip(_CELLS // X.shape[1], *_DRAWS))
    drawn = sample(BoxForest(forest), build(forest.schema), n_draws, 0, False, n_jobs)
    most = FAR + 1.0 / np.sqrt(n_draws)
    misfit = np.zeros(len(columns.step), bool)
    for j in np.flatnonzero(columns.is_categorical == 0):
        x, y = X[:, j], drawn[:, j]
        known = ~np.isnan(x)
        far = kolmogorov(x[known], y[~np.isnan(y)], None if weight is None else weight[known])
        misfit[columns.slot[j]] = far > most
    return misfit


def fits(columns: Columns, n_rows: int, n_trees: int) -> bool:
    """Whether tables of ``n_trees`` trees of ``n_rows`` parameter rows each are of no more than `MOST_BYTES`."""
    return table_bytes(columns, n_rows * n_trees) <= MOST_BYTES


def not_worse(gain: np.ndarray, weight: np.ndarray | None = None) -> bool:
    """Whether gains (n,) of rows of weights (n,) or None are on average no more than a standard error below 0."""
    return bool(np.average(gain, weights=weight) >= -gain.std() / np.sqrt(len(gain)))
