"""Which columns get quantile leaves: those that normal leaves misfit, unless validation rows are against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...data.schema import Columns
from ...evaluation.misfit import misfit_columns
from ...models.box_forest.box_forest import BoxForest
from ...models.box_forest.leaves.derived import table_bytes
from ...models.box_forest.structure import Forest
from .constants import FIXED


def choose_slots(
    misfit: np.ndarray,
    fits: Callable[[np.ndarray], bool],
    gains: Callable[[np.ndarray], Sequence[np.ndarray]],
    weight: np.ndarray | None = None,
    groups: int = 0,
) -> np.ndarray:
    """Numeric slots that get quantile leaves, bool (p,).

    These are all ``misfit`` slots, unless the validation rows are against it. Then they are tried in groups, and those
    that raise the first criterion are taken.

    Parameters
    ----------
    misfit : bool array (p,)
        Slots that normal leaves misfit.
    fits : callable
        Whether the tables of the forest with quantile leaves of some slots are small enough.
    gains : callable
        What validation rows (n,) gain by quantile leaves of some slots, by one criterion or several.
    weight : float64 array (n,), optional
        Weights of the validation rows; None: all alike.
    groups : int
        Most groups that are tried; 0: none.
    """
    nothing = np.zeros_like(misfit)
    if not misfit.any() or not fits(misfit):
        return nothing
    if all(not_worse(gain, weight) for gain in gains(misfit)):
        return misfit
    slots = np.flatnonzero(misfit)
    if len(slots) == 1 or not groups:
        return nothing  # the trial of all columns was that of this one
    better = nothing
    for group in np.array_split(slots, min(len(slots), groups)):
        alone = np.isin(np.arange(len(misfit)), group)
        better |= alone & (np.average(gains(alone)[0], weights=weight) > 0.0)
    return better


def misfit_slots(forest: Forest, X: np.ndarray, weight: np.ndarray | None, n_jobs: int | None) -> np.ndarray:
    """Numeric slots whose marginal in the forest is not that of rows X (n, d), of weights (n,) or None: bool (p,)."""
    return misfit_columns(BoxForest(forest), X, weight, n_jobs)[forest.columns.is_categorical == 0]


def small_enough(columns: Columns, n_rows: int, n_trees: int) -> bool:
    """Whether tables of ``n_trees`` trees of ``n_rows`` parameter rows each are of no more than `quantile_bytes`."""
    return table_bytes(columns, n_rows * n_trees) <= FIXED.quantile_bytes


def not_worse(gain: np.ndarray, weight: np.ndarray | None = None) -> bool:
    """Whether gains (n,) of rows of weights (n,) or None are on average no more than a standard error below 0."""
    return bool(np.average(gain, weights=weight) >= -gain.std() / np.sqrt(len(gain)))
