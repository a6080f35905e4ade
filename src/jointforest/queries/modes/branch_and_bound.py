"""Branch and bound: how much better than the best row known any row could be."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import numpy as np

from ...ground.progress import bar
from .bound_kernels import bound_halves, choose_cut, mixture_bound
from .box import Box, halves
from .problem import Problem

TOLERANCE = 1e-9
"""A box is done with when its log bound is no more than this above the best row's log density."""
_NEGLIGIBLE = math.log(0.1 * TOLERANCE)
"""Leaves that add less than this to the best row's density, all trees together, need not be followed."""
_MOST_HELD = 50_000_000
"""The search also ends when open boxes hold this many leaves in all (12 bytes each)."""


def search(
    problem: Problem,
    box: Box,
    leaf: np.ndarray,
    log_bound: np.ndarray,
    best: float,
    visit: Callable[[np.ndarray], float],
    budget: int,
) -> float:
    """A bound of the log density of all rows that agree with the evidence, the boxes of greatest bound cut first.

    In a box a tree is nowhere greater than its best leaf there, and the mixture than the sum over trees. Each box is
    cut where that sum loses most at a likely point: at the ends of leaves' boxes, between levels, within intervals.

    Parameters
    ----------
    problem : Problem
        A model and one row of evidence.
    box : Box
        All that agrees with the evidence.
    leaf : int32 array (n,)
        Leaves that meet it.
    log_bound : float64 array (n,)
        Of these leaves in the box.
    best : float
        Log density of the best row known.
    visit : function
        Called with a likely point (d,) of each box that is cut; returns the best log density known then.
    budget : int
        Boxes to cut at most. Fewer are cut if open boxes would hold too many leaves, see `_MOST_HELD`.

    Returns
    -------
    float

    Notes
    -----
    A. H. Land and A. G. Doig, "An automatic method of solving discrete programming problems" (Econometrica, 1960).
    """
    at_least = math.log(len(problem.trees.root))
    total = mixture_bound(problem, leaf, log_bound, -math.inf)
    open_boxes, n, held, done = [(-total, 0, box, leaf, log_bound)], 0, len(leaf), -math.inf
    with bar(budget, "boxes at most") as step:
        while open_boxes and n < budget and held < _MOST_HELD and -open_boxes[0][0] > best + TOLERANCE:
            total, _, box, leaf, log_bound = heapq.heappop(open_boxes)
            held -= len(leaf)
            j, cut, goes_left = choose_cut(problem, box, leaf, log_bound)
            best = visit(problem.point.copy())
            if j < 0:
                done = max(done, -total)
                continue
            n += 1
            step()
            floor = best - at_least + _NEGLIGIBLE
            left, right = halves(problem.columns, box, j, cut, goes_left)
            parts = bound_halves(problem, box, left, right, j, leaf, log_bound, floor)
            for i, (side, kept, bound) in enumerate(((left, *parts[:2]), (right, *parts[2:]))):
                total_here = min(mixture_bound(problem, kept, bound, floor), -total)
                if total_here <= best + TOLERANCE:
                    done = max(done, total_here)
                else:
                    held += len(kept)
                    heapq.heappush(open_boxes, (-total_here, 2 * n + i, side, kept, bound))
    return max(done, -open_boxes[0][0]) if open_boxes else done
