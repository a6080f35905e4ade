"""Kernel of the derived fields of leaves."""

from __future__ import annotations

import math

from ..ground.compile import entry, kernel
from .families.family_kernels import log_norm

_NOTHING_LEFT = 1e-13
"""What rounding leaves of 1 minus the atoms' masses."""


@entry
def derive(columns, leaves, start, stop):
    """Write the derived fields of the parameter rows ``start`` to ``stop``."""
    for row in range(start, stop):
        for s in range(leaves.a.shape[1]):
            a, b, lo, hi = leaves.a[row, s], leaves.b[row, s], leaves.lo[row, s], leaves.hi[row, s]
            leaves.log_norm[row, s] = log_norm(leaves.family[row, s], a, b, lo, hi)
            rest = 1.0
            for k in range(columns.atom_start[s], columns.atom_start[s + 1]):
                rest -= leaves.atom_mass[row, k]
            leaves.log_rest[row, s] = math.log(min(rest, 1.0)) if rest > _NOTHING_LEFT else -math.inf
        if row > start and same_levels(leaves.level_mass, row):  # the pieces of a leaf share their levels
            leaves.log_level[row] = leaves.log_level[row - 1]
            continue
        for k in range(leaves.level_mass.shape[1]):
            mass = leaves.level_mass[row, k]
            leaves.log_level[row, k] = math.log(mass) if mass > 0.0 else -math.inf


@kernel
def same_levels(level_mass, row):
    """Whether a parameter row has the level masses of the row before it."""
    differ = 0
    for k in range(level_mass.shape[1]):
        differ += 1 if level_mass[row, k] != level_mass[row - 1, k] else 0  # without a branch: vector instructions
    return differ == 0
