"""The most probable rows that agree with evidence, and how much better any row could be."""

# See docs/concepts/modes.md.

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...data.evidence import Evidence, build
from ...data.schema import Columns, Schema
from ...runtime.progress import bar
from ...runtime.records import record
from . import mode_kernels
from .leaves.table import Leaves
from .posterior import log_density
from .posterior_kernels import posterior_rows, row_scratch
from .structure import Forest, Trees

# ---- What the kernels of modes work on: a forest, one row of evidence, and scratch.


@record
class _Problem(NamedTuple):
    """The search for the mode of a model under one row of evidence.

    columns, trees, leaves : Columns, Trees, Leaves. The forest.
    evidence : Evidence. One row.
    stack : int32 array, reached : int32 array (L,). Scratch: nodes to visit, and leaves that the evidence can reach.
    layer : int64 array (L,). See `Forest.layers`, of which there are T.
    best_bound : float64 array (T,), best_leaf : int64 array (T,). Scratch: greatest bound of each layer, and its leaf.
    point : float64 array (d,). Scratch: a point.
    loss, worst : float64 arrays (d,), culprit : int32 array (d,). Scratch, of columns; see `mode_kernels.choose_cut`.
    """

    columns: Columns
    trees: Trees
    leaves: Leaves
    evidence: Evidence
    stack: np.ndarray
    reached: np.ndarray
    layer: np.ndarray
    best_bound: np.ndarray
    best_leaf: np.ndarray
    point: np.ndarray
    loss: np.ndarray
    worst: np.ndarray
    culprit: np.ndarray


def problem_of(forest: Forest, evidence: Evidence) -> _Problem:
    """The search for the mode of a model under one row of evidence, with scratch of its own."""
    d, (layer, n_layers) = len(forest.columns.slot), forest.layers
    n_leaves = len(forest.leaves.log_weight)
    return _Problem(
        columns=forest.columns,
        trees=forest.trees,
        leaves=forest.leaves,
        evidence=evidence,
        stack=np.empty(len(forest.trees.feature), np.int32),
        reached=np.empty(n_leaves, np.int32),
        layer=layer,
        best_bound=np.empty(n_layers),
        best_leaf=np.empty(n_layers, np.int64),
        point=np.empty(d),
        loss=np.empty(d),
        worst=np.empty(d),
        culprit=np.empty(d, np.int32),
    )


# ---- Boxes: sets of rows that branch and bound cuts in two.


@record
class _Box(NamedTuple):
    """A set of rows: an interval for each number, and some of the levels.

    lo, hi : float64 arrays (p,). ``(lo, hi]`` of the numeric slots; on cell edges of grids.
    allowed : uint8 array (S,). 1 for the levels in it.
    """

    lo: np.ndarray
    hi: np.ndarray
    allowed: np.ndarray


def largest_box(columns: Columns, evidence: Evidence) -> _Box:
    """The box of everything, with just those levels that the one row of evidence admits."""
    p, allowed = len(columns.step), np.ones(columns.level_start[-1], np.uint8)
    for j in np.flatnonzero(columns.is_categorical):
        slot, x = columns.slot[j], evidence.value[0, j]
        region = evidence.region[0, j] if evidence.region.size else -1
        level = np.arange(columns.n_levels(slot))
        held = level == x if x == x else np.full(len(level), region < 0)
        for run in range(evidence.run_start[region], evidence.run_start[region + 1]) if region >= 0 else ():
            held |= (evidence.run_lo[run] < level) & (level <= evidence.run_hi[run])
        allowed[columns.level_start[slot] + level] = held
    return _Box(np.full(p, -np.inf), np.full(p, np.inf), allowed)


def halves(columns: Columns, box: _Box, j: int, cut: float, goes_left: np.ndarray) -> tuple[_Box, _Box]:
    """The two parts of a box: column j up to ``cut`` and above, or the levels that go left and the others."""
    slot = columns.slot[j]
    if columns.is_categorical[j]:
        left, right = box.allowed.copy(), box.allowed.copy()
        levels = columns.levels_of(slot)
        left[levels] &= goes_left
        right[levels] &= 1 - goes_left
        return box._replace(allowed=left), box._replace(allowed=right)
    hi, lo = box.hi.copy(), box.lo.copy()
    hi[slot] = lo[slot] = cut
    return box._replace(hi=hi), box._replace(lo=lo)


# ---- Rows made better, one column at a time, until none gets better.

_GAIN = 1e-12
"""Rise of the log-density that is rounding."""
_SWEEPS = 100
"""Most rounds over all columns. The density rises in each, so the bound only ends rounding noise."""


def _ascend(forest: Forest, problem: _Problem, box: _Box, x: np.ndarray) -> np.ndarray:
    """A row at least as probable as x that no change of a single column improves, as far as tried."""
    # Of levels the best is taken; of numbers the best of the leaves' peaks, ends and atoms, refined by golden sections.
    columns, leaves, evidence = forest.columns, forest.leaves, problem.evidence
    free = np.flatnonzero(np.isnan(evidence.value[0]))
    nowhere = np.full((1, len(x)), -1, np.int32)
    value = np.array(x, ndmin=2)
    known = evidence._replace(value=value, region=nowhere if evidence.has_regions else evidence.region)
    scratch, tried = row_scratch(forest), mode_kernels.tried_scratch()
    last, at_last = -np.inf, -1
    for step in range(_SWEEPS * len(free)):
        j = int(free[step % len(free)])
        before, value[0, j] = value[0, j], np.nan
        _, row, log_weight, _ = posterior_rows(columns, forest.trees, leaves, known, 0, 1, True, scratch)
        if columns.is_categorical[j]:
            value[0, j], density = mode_kernels.best_level(problem, box, j, row, log_weight, before)
        else:
            value[0, j], density = mode_kernels.best_number(problem, box, j, row, log_weight, tried, before)
        if density > last + _GAIN:
            last, at_last = density, step
        elif step - at_last >= len(free):
            break
    return value[0].copy()


# ---- Branch and bound: how much better than the best row known any row could be.

TOLERANCE = 1e-9
"""A box is done with when its log bound is no more than this above the best row's log density."""
_NEGLIGIBLE = math.log(0.1 * TOLERANCE)
"""Leaves that add less than this to the best row's density, all trees together, need not be followed."""
_MOST_HELD = 50_000_000
"""The search also ends when open boxes hold this many leaves in all (12 bytes each)."""


def search(
    problem: _Problem,
    box: _Box,
    leaf: np.ndarray,
    log_bound: np.ndarray,
    best: float,
    visit: Callable[[np.ndarray], float],
    budget: int,
) -> float:
    """An upper bound of the log density of all rows that agree with the evidence, by branch and bound."""
    # In a box a tree is nowhere greater than its best leaf there, and the mixture than the sum over trees. The box of
    # greatest bound is cut where that sum loses most at a likely point.
    at_least = math.log(len(problem.trees.root))
    total = mode_kernels.mixture_bound(problem, leaf, log_bound, -math.inf)
    open_boxes, n, held, done = [(-total, 0, box, leaf, log_bound)], 0, len(leaf), -math.inf
    with bar(budget, "searching boxes") as step:
        while open_boxes and n < budget and held < _MOST_HELD and -open_boxes[0][0] > best + TOLERANCE:
            total, _, box, leaf, log_bound = heapq.heappop(open_boxes)
            held -= len(leaf)
            j, cut, goes_left = mode_kernels.choose_cut(problem, box, leaf, log_bound)
            best = visit(problem.point.copy())
            if j < 0:
                done = max(done, -total)
                continue
            n += 1
            step()
            floor = best - at_least + _NEGLIGIBLE
            left, right = halves(problem.columns, box, j, cut, goes_left)
            parts = mode_kernels.bound_halves(problem, box, left, right, j, leaf, log_bound, floor)
            for i, (side, kept, bound) in enumerate(((left, *parts[:2]), (right, *parts[2:]))):
                total_here = min(mode_kernels.mixture_bound(problem, kept, bound, floor), -total)
                if total_here <= best + TOLERANCE:
                    done = max(done, total_here)
                else:
                    held += len(kept)
                    heapq.heappush(open_boxes, (-total_here, 2 * n + i, side, kept, bound))
    return max(done, -open_boxes[0][0]) if open_boxes else done


CANDIDATES = 256
"""Modes of leaves that are compared by the density of the mixture, at least."""
_STARTS = 16
"""The best of them from which better rows are sought."""
BUDGET = 10_000
"""Boxes that branch and bound may cut unless another number is asked for."""
_EQUAL = 1e-12
"""Log densities this close are a tie."""


class ModePoints(NamedTuple):
    """Modes of a forest, best first.

    X : float64 array (m, d). Complete rows, each of another cell: no two are of the same leaf in every tree.
    log_density : float64 array (m,). Of the whole forest.
    log_bound : float. No row that agrees with the evidence has a greater log density.
    """

    X: np.ndarray
    log_density: np.ndarray
    log_bound: float


def refuse_soft(schema: Schema, evidence: Evidence) -> None:
    """Raise ValueError if evidence is soft."""
    soft = np.flatnonzero(evidence.soft_columns())
    if len(soft):
        raise ValueError(
            f"mode: the evidence on column {schema.names[soft[0]]!r} is soft (likely or about), which outweighs "
            "rows and does not select them; ask joint.condition(...) with it, then .given().mode()"
        )


def modes(forest: Forest, evidence: Evidence, k: int, budget: int = BUDGET) -> ModePoints:
    """The k best rows that the search finds under evidence, and ``log_bound`` of the density of any other row."""
    # With a single tree of product leaves the first row reaches the bound. Soft evidence is a ValueError: its row of
    # greatest density is the mode of the conditioned forest.
    refuse_soft(forest.schema, evidence)
    problem, box = problem_of(forest, evidence), largest_box(forest.columns, evidence)
    leaf, points, log_bound = mode_kernels.leaf_modes(problem, box)
    if not len(leaf):
        raise ValueError("the evidence has probability 0; drop or widen one of its conditions")
    bound = mode_kernels.mixture_bound(problem, leaf, log_bound, -np.inf)
    order = np.argsort(-log_bound, kind="stable")
    least = log_bound[order[min(max(k, CANDIDATES), len(order)) - 1]] - _EQUAL
    X = points[np.sort(order[log_bound[order] >= least])]
    density = _density(forest, X)
    if bound > density.max() + TOLERANCE:
        starts = X[np.argsort(-density, kind="stable")[:_STARTS]]
        candidates = _BestRows(forest, problem, box, [*X, *(_ascend(forest, problem, box, x) for x in starts)])
        if budget > 0 and bound > candidates.best + TOLERANCE:
            bound = min(bound, search(problem, box, leaf, log_bound, candidates.best, candidates.visit, budget))
        X = np.array(candidates.rows)
        density = _density(forest, X)
    order = np.argsort(-density, kind="stable")
    at = np.full((len(order), len(problem.best_leaf)), -1, np.int32)
    cell = mode_kernels.leaves_of_rows(forest.columns, forest.trees, build(forest.schema, X[order]), problem.stack, at)
    order = order[np.sort(np.unique(cell, axis=0, return_index=True)[1])]
    last = density[order[min(k, len(order)) - 1]] - _EQUAL
    order = order[density[order] >= last]
    return ModePoints(X[order], density[order], max(bound, float(density[order[0]])))


class _BestRows:
    """Rows that were found so far, and the greatest log density among them."""

    def __init__(self, forest: Forest, problem: _Problem, box: _Box, rows: list[np.ndarray]) -> None:
        self._forest, self._problem, self._box = forest, problem, box
        self.rows = rows
        self.best = float(_density(forest, np.array(rows)).max())

    def visit(self, x: np.ndarray) -> float:
        """Keep the row, and a better one near it if it is the best so far; the best log density of all."""
        self.rows.append(x)
        density = float(_density(self._forest, x[None])[0])
        if density > self.best + _EQUAL:
            self.rows.append(_ascend(self._forest, self._problem, self._box, x))
            self.best = max(density, float(_density(self._forest, self.rows[-1][None])[0]))
        return self.best


def _density(forest: Forest, X: np.ndarray) -> np.ndarray:
    """Log density of complete rows (n, d)."""
    return log_density(forest, build(forest.schema, X))
