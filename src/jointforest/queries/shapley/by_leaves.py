"""Interventional Shapley values of sums over trees: over all coalitions at once, leaf by leaf."""

from __future__ import annotations

import math

import numpy as np

from ...ensembles.evaluate import raw, routing
from ...ensembles.table import Ensemble
from ...ground.threads import chunks, map_ordered
from .game import Solved
from .interventional import Background
from .leaf_kernels import Facing, interventional_rows

_ROWS = 8


def by_leaves(
    ensemble: Ensemble,
    X: np.ndarray,
    other: np.ndarray,
    known: np.ndarray,
    player: np.ndarray,
    p: int,
    background: Background,
    n_jobs: int | None = -1,
) -> Solved:
    """Values of v(S) = mean over background rows b of F(x_S, b_rest), all coalitions, any number of players.

    Linear in leaves: a leaf that needs the players A to be of the row and C of the background gives its value times
    (a - 1)! c! / (a + c)! to each of A, and takes its value times (c - 1)! a! / (a + c)! from each of C.

    Parameters
    ----------
    ensemble : Ensemble
        Its sums before the link.
    X, other : float64 and bool array (n, f), C-contiguous
    known : bool array (n, f)
        Cells that coalitions may have.
    player : int32 array (f,)
        Player of each feature, -1 for none.
    p : int
    background : Background
        R rows.
    n_jobs : int or None

    Returns
    -------
    Solved
        Variances are those over the background rows.

    Notes
    -----
    S. Lundberg and others, "From local explanations to global understanding with explainable AI for trees" (2020),
    Algorithm 3.
    """
    there, other_there = background
    R, K = len(there), len(ensemble.base)
    share = np.zeros((p + 1, p + 1))
    for a in range(1, p + 1):
        for c in range(p + 1 - a):
            share[a, c] = 1.0 / (a * math.comb(a + c, a))
    phi, square = np.zeros((2, len(X), p, K))
    back = np.ascontiguousarray(there), np.ascontiguousarray(other_there)
    arrays, facing = routing(ensemble), Facing(X, other, np.ascontiguousarray(known), *back, player.astype(np.int32))

    def work(start: int, stop: int) -> None:
        interventional_rows(arrays, facing, share, start, stop, phi, square)

    list(map_ordered(work, chunks(len(X), _ROWS), n_jobs))
    phi /= R
    variance = np.maximum(square / R - phi**2, 0.0) / (R - 1)
    total = raw(ensemble, *back, n_jobs)
    return Solved(phi, variance, total.mean(axis=0), total.var(axis=0, ddof=1) / R)
