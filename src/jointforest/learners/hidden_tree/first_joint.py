"""A small hidden tree that completes the rows of a table, from which forests are then learned."""

# A tree sends a row to one leaf, so a row without the value of a split would tell the leaf nothing about its other
# cells. A draw given the known cells of the row has the dependence that these show (Little, Rubin 2019, chapter 4).

from __future__ import annotations

import numpy as np

from ...data.evidence import build
from ...data.observe_table import mix_all_bits
from ...data.ranges import Ranges
from ...data.schema import Schema
from ...models.hidden_tree.hidden_trees import HiddenTrees
from ...models.hidden_tree.sampling import completed_rows
from ...runtime.threads import one_blas_thread
from .codes import scales_of, table_of
from .constants import FIXED
from .em import Smoothing
from .learn import LearnSettings, learn_tree


def fill_in(hidden: HiddenTrees, X: np.ndarray, keys: np.ndarray, ranges: Ranges | None = None) -> np.ndarray:
    """The cells X (n, d), each missing one drawn given the known cells of its row; a row's draws depend on its key."""
    # Cells that are ranges are drawn within them.
    unknown = np.isnan(X) if ranges is None else np.isnan(X) | (ranges.number >= 0)
    rows = np.flatnonzero(unknown.any(axis=1))
    filled = X.copy(order="K")
    known = build(hidden.schema, X[rows], ranges=None if ranges is None else ranges.take(rows))
    filled[rows] = completed_rows(hidden, known, keys[rows])
    return filled


def keys_of(n: int, seed: int) -> np.ndarray:
    """Keys of n rows in their order."""
    return mix_all_bits(np.arange(n, dtype=np.uint64) ^ mix_all_bits(np.full(1, seed, dtype=np.uint64)))


def first_joint(
    schema: Schema, X: np.ndarray, weight: np.ndarray | None, seed: int, ranges: Ranges | None = None
) -> HiddenTrees:
    """A hidden tree with fixed settings, learned from some of the rows X (n, d) of weights (n,) or None."""
    if weight is not None:  # rounded, so that weights of another unit have the same joint
        weight = (weight / weight.mean()).astype(np.float32).astype(np.float64)
    n = min(len(X), FIXED.first_rows)
    n_bins = max(FIXED.fewest_bins, round(n**0.5))
    point_mass = max(FIXED.point_mass, FIXED.point_mass_bins / n_bins)
    settings = LearnSettings(
        n_states=max(min(FIXED.first_states, n // FIXED.rows_a_state_without_trials), 1),
        smoothing=Smoothing(normal=FIXED.first_normal, near=FIXED.near, point_mass=point_mass),
    )
    scales = scales_of(schema, X, weight, n_bins, FIXED.fine_ends, False, ranges)
    if n < len(X):  # rows of more weight are drawn more often, and then count alike
        share = None if weight is None else weight / weight.sum()
        few = np.random.default_rng([seed, 8]).choice(len(X), n, replace=weight is not None, p=share)
        X, weight, ranges = X[np.sort(few)], None, None if ranges is None else ranges.take(np.sort(few))
    table = table_of(schema, scales, X, weight, ranges)
    with one_blas_thread(in_kernels=True):
        tree = learn_tree(table, settings, seed)
    return HiddenTrees(schema, scales, (tree,), np.zeros(1))
