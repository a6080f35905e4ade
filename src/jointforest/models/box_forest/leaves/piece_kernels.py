"""Kernels: the pieces of the continuous part of one numeric slot in one leaf; see `table.Pieces`.

A density without pieces counts as a single piece, with number -1 and weight 1.
"""

from __future__ import annotations

import numpy as np

from ....runtime.compile import kernel
from .density_kernels import density_of
from .grid_kernels import log_density
from .table import PIECES


@kernel
def piece_numbers(leaves, l, s):  # noqa: E741
    """Numbers of the slot's first piece and of the one after its last."""
    if leaves.family[l, s] != PIECES:
        return np.int64(-1), np.int64(0)
    first = np.int64(leaves.a[l, s])
    return first, first + np.int64(leaves.b[l, s])


@kernel
def piece(leaves, l, s, k):  # noqa: E741
    """Piece k of the slot: its density, and the log of its share."""
    if k < 0:
        return density_of(leaves, l, s), 0.0
    return density_of(leaves.pieces, k, 0), leaves.pieces.log_weight[k]


@kernel
def piece_at(leaves, l, s, x):  # noqa: E741
    """Number of the first piece that ends at x or above; of the last one if none does."""
    low, stop = piece_numbers(leaves, l, s)
    high = stop - 1
    while low < high:
        middle = (low + high) // 2
        if leaves.pieces.hi[middle, 0] >= x:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def rest_log_density(leaves, l, s, x, step):  # noqa: E741
    """Log density of the continuous part at x; on a grid (``step`` > 0) of the cell with centre x."""
    if leaves.family[l, s] != PIECES:
        return log_density(density_of(leaves, l, s), x, step)
    d, log_share = piece(leaves, l, s, piece_at(leaves, l, s, x))
    return log_share + log_density(d, x, step)
