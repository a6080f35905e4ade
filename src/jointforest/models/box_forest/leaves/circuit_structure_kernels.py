"""Kernel of the derived fields of leaves."""

from __future__ import annotations

import math

import numpy as np

from ....runtime.compile import entry, kernel
from .density_kernels import density_of
from .family_kernels import log_norm
from .table import FACTORS, SUM

_NOTHING_LEFT = 1e-13
"""What rounding leaves of 1 minus the atoms' masses."""


@entry
def derive(columns, leaves, start, stop):
    """Write the derived fields of the parameter rows ``start`` to ``stop``."""
    for row in range(start, stop):
        for s in range(leaves.a.shape[1]):
            leaves.log_norm[row, s] = log_norm(density_of(leaves, row, s))
            off_atoms = 1.0
            for k in range(columns.atom_start[s], columns.atom_start[s + 1]):
                off_atoms -= leaves.atom_mass[row, k]
            leaves.log_rest[row, s] = math.log(min(off_atoms, 1.0)) if off_atoms > _NOTHING_LEFT else -math.inf
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


# ---- Kernel of the parents of circuit nodes.


@entry
def parents(end):
    """Parent of each node of circuits in preorder, int64 (Q,); -1 of roots."""
    parent = np.full(end.shape[0], -1, np.int64)
    for q in range(end.shape[0]):
        child = q + 1
        while child < end[q]:
            parent[child] = q
            child = end[child]
    return parent


# ---- Kernel that finds the first node of a circuit that breaks a promise of `table.Leaves`.

SOUND = 0
"""The circuit breaks no promise."""


@entry
def first_unsound(node_start, node_kind, node_end, node_log_weight, factors_scope, n_columns, tolerance):  # noqa: C901
    """Complaint (a key of `derived._COMPLAINTS`, SOUND if there is none), leaf and node.

    ``factors_scope`` (R - L, words) holds the scopes of the FACTORS nodes as bits. Nothing else is taken for granted of
    ``node_end`` and ``node_log_weight`` but their lengths and that no weight is NaN.
    """
    n = node_kind.shape[0]
    scope = np.zeros((n, factors_scope.shape[1]), np.uint8)
    is_weighted = np.zeros(n, np.uint8)  # a sum's child
    row = factors_scope.shape[0]
    for leaf in range(node_start.shape[0] - 2, -1, -1):
        first, stop = node_start[leaf], node_start[leaf + 1]
        for q in range(stop - 1, first - 1, -1):  # children come after their parent
            if not q < node_end[q] <= stop:
                return 1, leaf, q
            if node_kind[q] == FACTORS:
                if node_end[q] != q + 1:
                    return 3, leaf, q
                row -= 1
                scope[q] = factors_scope[row]
                if not np.any(scope[q]):
                    return 9, leaf, q
                continue
            if node_end[q] == q + 1:
                return 2, leaf, q
            is_sum = node_kind[q] == SUM
            scope[q] = scope[q + 1]
            total = 0.0
            child = q + 1
            while child < node_end[q]:  # ends of the children are checked already: they lie beyond them
                if is_sum:
                    is_weighted[child] = 1
                    total += math.exp(node_log_weight[child])
                    if np.any(scope[child] != scope[q]):
                        return 7, leaf, q
                elif child > q + 1:
                    if np.any(scope[child] & scope[q]):
                        return 6, leaf, q
                    scope[q] |= scope[child]
                child = node_end[child]
            if child != node_end[q]:
                return 1, leaf, q
            if is_sum and not abs(total - 1.0) <= tolerance:
                return 4, leaf, q
        if first < stop:
            if node_end[first] != stop:
                return 1, leaf, first
            missing = n_columns
            for word in scope[first]:
                while word:
                    missing -= word & 1
                    word >>= 1
            if missing:
                return 8, leaf, first
            for q in range(first, stop):
                if not is_weighted[q] and node_log_weight[q] != 0.0:
                    return 5, leaf, q
    return SOUND, -1, -1
