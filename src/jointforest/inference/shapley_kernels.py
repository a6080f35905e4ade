"""Kernel: interventional Shapley values of sums over trees, leaf by leaf."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..ensembles.evaluate_kernels import row_goes_left
from ..runtime.compile import entry
from ..runtime.records import record


@record
class Facing(NamedTuple):
    """Rows, and the background into which coalitions of their cells are put, as the ensemble sees them.

    X, other, known : float64, bool and bool array (n, f). Known cells are those that coalitions may have.
    there, other_there : float64 and bool array (R, f). The background; complete.
    player : int32 array (f,). Player of each feature, -1 for none.
    """

    X: np.ndarray
    other: np.ndarray
    known: np.ndarray
    there: np.ndarray
    other_there: np.ndarray
    player: np.ndarray


@entry
def interventional_rows(ensemble, facing, share, start, stop, phi, square):
    """Add values of rows start..stop-1 for R background rows to ``phi`` (n, p, K), their squares to ``square``."""
    # share[a, c] = (a - 1)! c! / (a + c)!. A coalition reaches a leaf if all players of A are in it and none of C:
    # where row and background part, A are the players that follow the row, C those that follow the background.
    X, other, there, other_there = facing.X, facing.other, facing.there, facing.other_there
    p, n_outputs = phi.shape[1], phi.shape[2]
    side = np.zeros(p + 1, np.int8)
    path = np.empty(p + 1, np.int32)
    waiting = np.empty((p + 2, 4), np.int32)  # node, players on the path before, player that is added, its side
    each = np.empty((p, n_outputs))
    for i in range(start, stop):
        for b in range(there.shape[0]):
            each[:] = 0.0
            for tree in range(len(ensemble.root)):
                waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = ensemble.root[tree], 0, -1, 0
                n_waiting, length = 1, 0
                while n_waiting > 0:
                    n_waiting -= 1
                    node, before, added = waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2]
                    while length > before:
                        length -= 1
                        side[path[length]] = 0
                    if added >= 0:
                        side[added] = waiting[n_waiting, 3]
                        path[length] = added
                        length += 1
                    while ensemble.leaf[node] < 0:
                        j = ensemble.feature[node]
                        k = facing.player[j]
                        theirs = row_goes_left(ensemble, node, there, other_there, b)
                        left = theirs
                        if k >= 0 and facing.known[i, j] and side[k] != 2:
                            left = row_goes_left(ensemble, node, X, other, i)
                            if left != theirs and side[k] == 0:
                                waiting[n_waiting, 0] = ensemble.left[node] if theirs else ensemble.right[node]
                                waiting[n_waiting, 1], waiting[n_waiting, 2], waiting[n_waiting, 3] = length, k, 2
                                n_waiting += 1
                                side[k] = 1
                                path[length] = k
                                length += 1
                        node = ensemble.left[node] if left else ensemble.right[node]
                    leaf = ensemble.leaf[node]
                    a = 0
                    for q in range(length):
                        a += side[path[q]] == 1
                    for q in range(length):
                        k = path[q]
                        weight = share[a, length - a] if side[k] == 1 else -share[length - a, a]
                        for o in range(n_outputs):
                            each[k, o] += weight * ensemble.value[leaf, o]
                while length > 0:
                    length -= 1
                    side[path[length]] = 0
            for k in range(p):
                for o in range(n_outputs):
                    phi[i, k, o] += each[k, o]
                    square[i, k, o] += each[k, o] ** 2
