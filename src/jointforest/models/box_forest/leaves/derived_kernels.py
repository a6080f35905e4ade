"""Kernels of the derived fields of leaves."""

import math

from ....runtime.compile import entry
from .density_kernels import density_of
from .family_kernels import log_norm
from .slot_kernels import piece_numbers
from .table import PIECES

_NOTHING_LEFT = 1e-13
"""What rounding leaves of 1 minus the atoms' masses."""


@entry
def derive(columns, leaves, start, stop):
    """Write the derived fields of the leaves ``start`` to ``stop``."""
    for row in range(start, stop):
        for s in range(leaves.a.shape[1]):
            d = density_of(leaves, row, s)
            leaves.log_norm[row, s] = log_norm(d) if d.family != PIECES else 0.0
            off_atoms = 1.0
            for k in range(columns.atom_start[s], columns.atom_start[s + 1]):
                off_atoms -= leaves.atom_mass[row, k]
            leaves.log_rest[row, s] = math.log(min(off_atoms, 1.0)) if off_atoms > _NOTHING_LEFT else -math.inf
        for k in range(leaves.level_mass.shape[1]):
            mass = leaves.level_mass[row, k]
            leaves.log_level[row, k] = math.log(mass) if mass > 0.0 else -math.inf


@entry
def derive_pieces(leaves):
    """Write the derived fields of the pieces of all leaves."""
    pieces = leaves.pieces
    for k in range(pieces.log_weight.shape[0]):
        pieces.log_norm[k, 0] = log_norm(density_of(pieces, k, 0))
        pieces.below[k] = 0.0
    for row in range(leaves.a.shape[0]):
        for s in range(leaves.a.shape[1]):
            first, stop = piece_numbers(leaves, row, s)
            for k in range(first + 1, stop):  # none where the density is whole
                pieces.below[k] = pieces.below[k - 1] + math.exp(pieces.log_weight[k - 1])
