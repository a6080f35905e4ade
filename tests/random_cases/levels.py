"""Level masses taken apart as leaves hold them."""

from __future__ import annotations

import numpy as np

from jointforest.data.schema import Columns
from jointforest.models.box_forest.leaves.levels import WideLevels, layout, one_column, side_by_side


def split_levels(rng: np.random.Generator, columns: Columns, mass: np.ndarray) -> tuple[np.ndarray, WideLevels]:
    """Level masses (R, S) as `Leaves` holds them: dense, and of many levels as what rows share and what is their own.

    What rows share, and which levels of a row are in its set, is drawn; some rows share nothing.
    """
    where, n = layout(columns), len(mass)
    found = []
    for slot in where.slots.tolist():
        dense = mass[:, columns.level_start[slot] : columns.level_start[slot + 1]]
        share = rng.dirichlet(np.ones(dense.shape[1]))
        member = (dense > 0) & (rng.random(dense.shape) < 0.8)
        most = np.where(member, dense / share, np.inf).min(axis=1)
        scale = np.where(np.isfinite(most) & (rng.random(n) < 0.8), most, 0.0)
        own = dense - scale[:, None] * np.where(member, share, 0.0)
        row, level = np.nonzero(own > 1e-15)
        found.append(one_column(scale, share, member, row, level, own[row, level]))
    return mass[:, where.narrow], side_by_side(where, found, n)
