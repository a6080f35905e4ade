"""The most probable rows of hidden trees, with a bound closed by branch and bound over boxes of codes."""

from __future__ import annotations

import heapq
from itertools import count

import numpy as np

from ...ground.progress import bar
from ...ground.threads import one_blas_thread
from ...hidden.hidden_trees import HiddenTrees
from ...hidden.rows import sample
from ...table.evidence import Evidence
from ...table.scale.codes import codes_of
from .branch_and_bound import TOLERANCE
from .code_problem import Box, CodeProblem, ascend, bounds, code_problem, everything, log_density_of

STARTS = 8, 32
"""Draws from which better rows are sought: of a small budget, and of a large one."""
_BOXES_A_START = 60
CUTS = 10
"""A box cut here counts as so many boxes of a forest for each tree: it takes as long."""
_AT_ONCE = 16


def hidden_modes(hidden: HiddenTrees, evidence: Evidence, budget: int) -> tuple[np.ndarray, float]:
    """Complete rows of high density under one row of hard evidence, best first, and a bound of any row's log density.

    Returns
    -------
    X : float64 array (m, d)
        No two of them have the same codes.
    log_bound : float
    """
    with one_blas_thread():
        problem = code_problem(hidden, evidence)
        found = _Found(problem)
        n_starts = min(max(budget // _BOXES_A_START, STARTS[0]), STARTS[1])
        drawn = sample(hidden, evidence, n_starts, 0, n_jobs=1)
        codes = [codes_of(scale, drawn[:, j])[0] for j, scale in enumerate(hidden.scales)]
        root = everything(problem)
        starts = np.vstack([np.column_stack(codes).astype(np.int64), bounds(problem, root).star])
        found.add(ascend(problem, starts))
        log_bound = _search(problem, root, found, budget // (CUTS * len(problem.trees)))
    codes_found, log_density = found.all()
    order = np.argsort(-log_density, kind="stable")
    X = np.column_stack([value[codes_found[order, j]] for j, value in enumerate(problem.value)])
    return X, max(log_bound, float(log_density.max()))


class _Found:
    """Rows of codes found so far."""

    def __init__(self, problem: CodeProblem) -> None:
        self._problem = problem
        self._codes: list[np.ndarray] = []
        self._log_density: list[np.ndarray] = []
        self.best = -np.inf

    def add(self, codes: np.ndarray) -> None:
        """Keep rows (n, d), and better ones near the best of them, if that is the best so far."""
        log_density = log_density_of(self._problem, codes)
        self._codes.append(codes)
        self._log_density.append(log_density)
        if log_density.max() > self.best + TOLERANCE:
            self.best = float(log_density.max())
            self.add(ascend(self._problem, codes[[log_density.argmax()]]))

    def all(self) -> tuple[np.ndarray, np.ndarray]:
        """Each row once, (m, d), and its log density."""
        codes, first = np.unique(np.vstack(self._codes), axis=0, return_index=True)
        return codes, np.concatenate(self._log_density)[first]


def _search(problem: CodeProblem, root: Box, found: _Found, budget: int) -> float:
    """A bound of everything in the box, closed by at most ``budget`` cuts: the box of greatest bound is cut first.

    A box is cut in the column in which fixing a single code loses most: that code, and all others.
    """
    number, at_root = count(), bounds(problem, root)
    heap = [
        (-float(at_root.log_bound[0]), next(number), tuple(part[0] for part in root), at_root.star[0], at_root.loss[0])
    ]
    reached = -np.inf  # bounds of boxes that cannot be cut any more
    with bar(budget, "boxes at most") as step:
        while heap and budget > 0 and -heap[0][0] > found.best + TOLERANCE:
            halves: list[Box] = []
            parents: list[float] = []
            while heap and budget > 0 and len(parents) < _AT_ONCE and -heap[0][0] > found.best + TOLERANCE:
                minus, _, box, star, loss = heapq.heappop(heap)
                j = int(loss.argmax())
                if box[j].sum() < 2 or loss[j] <= 0.0:  # only rounding is left between the bound and its star
                    reached = max(reached, -minus)
                    continue
                only = np.zeros_like(box[j])
                only[star[j]] = True
                for half in (only, box[j] & ~only):
                    halves.append((*box[:j], half, *box[j + 1 :]))
                    parents.append(-minus)
                budget -= 1
                step()
            if not halves:
                break
            boxes = tuple(np.stack([half[j] for half in halves]) for j in range(len(root)))
            new = bounds(problem, boxes)
            found.add(new.star)
            log_bound = np.minimum(new.log_bound, parents)
            for i in np.flatnonzero(log_bound > found.best + TOLERANCE).tolist():
                heapq.heappush(heap, (-float(log_bound[i]), next(number), halves[i], new.star[i], new.loss[i]))
    return max(found.best + TOLERANCE if not heap else -heap[0][0], reached, found.best)
