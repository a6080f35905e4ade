"""The most probable rows that agree with evidence, and how much better any row could be. See docs/modes.md."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...forest.forest import Forest
from ...forest.posterior.density import log_density
from ...table.build_evidence import build
from ...table.evidence import Evidence
from .ascent import ascend
from .bound_kernels import mixture_bound
from .box import Box, whole
from .branch_and_bound import TOLERANCE, search
from .mode_kernels import leaf_modes, leaves_of_rows
from .problem import Problem, problem_of

CANDIDATES = 256
"""Modes of leaves that are compared by the density of the whole mixture, at least."""
STARTS = 16
"""The best of them from which better rows are sought."""
BUDGET = 10_000
"""Boxes that branch and bound may cut unless another number is asked for."""
_EQUAL = 1e-12
"""Log densities this close are a tie."""


class ModePoints(NamedTuple):
    """Modes of a forest, best first.

    Attributes
    ----------
    X : float64 array (m, d)
        Complete rows, each of another cell: no two are of the same leaf in every tree.
    log_density : float64 array (m,)
        Of the whole forest.
    log_bound : float
        No row that agrees with the evidence has a greater log density.
    """

    X: np.ndarray
    log_density: np.ndarray
    log_bound: float


def modes(forest: Forest, evidence: Evidence, k: int, budget: int = BUDGET) -> ModePoints:
    """The best rows under evidence that were found, by the density of the whole forest, and a bound.

    Parameters
    ----------
    forest : Forest
    evidence : Evidence
        One row.
    k : int
        How many, each of another cell: two rows are of one cell if they are of the same leaf in every tree. More if
        others are as good as the last.
    budget : int
        Boxes that branch and bound may cut to show that no row is better than the first; 0 leaves it out.

    Returns
    -------
    ModePoints
        The mode's log density lies between the first one's and ``log_bound``. With a single tree whose leaves are
        products the two are equal, and the k rows are the modes of the k best leaves.

    Raises
    ------
    ValueError
        If the evidence has probability 0, or is soft: then the row of greatest density given the evidence is the mode
        of the conditioned forest.

    Notes
    -----
    MPE in selective models, and by maximising parts in others: D. Nyga and others, "Joint probability trees" (2023),
    section 3. Within a tree leaves do not overlap, so a mixture of trees is nowhere greater than the sum of the trees'
    maxima, also in a box: `branch_and_bound.search`.

    Examples
    --------
    >>> import jointforest as jf
    >>> learned = jf.AdversarialForest(n_estimators=2, random_state=0).fit(jf.datasets.load_penguins())
    >>> forest = learned.joint_.model.forest
    >>> best = modes(forest, build(forest.schema, conditions={"species": "Gentoo"}), 1)
    >>> forest.schema["island"].from_number(best.X[0, 1]), bool(best.log_bound - best.log_density[0] < 1e-8)
    ('Biscoe', True)
    """
    soft = np.flatnonzero(evidence.soft_columns())
    if len(soft):
        raise ValueError(
            f"mode: the evidence on column {forest.schema.names[soft[0]]!r} is soft (likely or about), which outweighs "
            "rows and does not select them; ask joint.condition(...) with it, then .given().mode()"
        )
    problem, box = problem_of(forest, evidence), whole(forest.columns, evidence)
    leaf, points, log_bound = leaf_modes(problem, box)
    if not len(leaf):
        raise ValueError("the evidence has probability 0; drop or widen one of its conditions")
    bound = mixture_bound(problem, leaf, log_bound, -np.inf)
    order = np.argsort(-log_bound, kind="stable")
    least = log_bound[order[min(max(k, CANDIDATES), len(order)) - 1]] - _EQUAL
    X = points[np.sort(order[log_bound[order] >= least])]
    density = _density(forest, X)
    if bound > density.max() + TOLERANCE:
        starts = X[np.argsort(-density, kind="stable")[:STARTS]]
        found = _Rows(forest, problem, box, [*X, *(ascend(forest, problem, box, x) for x in starts)])
        if budget > 0 and bound > found.best + TOLERANCE:
            bound = min(bound, search(problem, box, leaf, log_bound, found.best, found.visit, budget))
        X = np.array(found.rows)
        density = _density(forest, X)
    order = np.argsort(-density, kind="stable")
    cell = leaves_of_rows(forest.columns, forest.trees, build(forest.schema, X[order]), problem.stack)
    order = order[np.sort(np.unique(cell, axis=0, return_index=True)[1])]
    last = density[order[min(k, len(order)) - 1]] - _EQUAL
    order = order[density[order] >= last]
    return ModePoints(X[order], density[order], max(bound, float(density[order[0]])))


class _Rows:
    """Rows that were found so far, and the greatest log density among them."""

    def __init__(self, forest: Forest, problem: Problem, box: Box, rows: list[np.ndarray]) -> None:
        self._forest, self._problem, self._box = forest, problem, box
        self.rows = rows
        self.best = float(_density(forest, np.array(rows)).max())

    def visit(self, x: np.ndarray) -> float:
        """Keep the row, and a better one near it if it is the best so far; the best log density of all."""
        self.rows.append(x)
        density = float(_density(self._forest, x[None])[0])
        if density > self.best + _EQUAL:
            self.rows.append(ascend(self._forest, self._problem, self._box, x))
            self.best = max(density, float(_density(self._forest, self.rows[-1][None])[0]))
        return self.best


def _density(forest: Forest, X: np.ndarray) -> np.ndarray:
    """Log density of complete rows (n, d)."""
    return log_density(forest, build(forest.schema, X), n_jobs=1)
