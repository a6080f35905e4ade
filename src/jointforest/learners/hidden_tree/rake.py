"""Iterative proportional fitting: the marginals of a hidden tree's codes become those of the rows.

Every code c of a column j is multiplied by a number r_j(c) (Deming and Stephan 1940). That is exact: the product of the
joint with functions of single columns is a hidden tree of the same structure.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...models.hidden_tree.tables import TreeTables
from .constants import FIXED
from .em import Nodes, Tables, split_tables


def raked(tree: TreeTables, nodes: Nodes, counts: Tables) -> TreeTables:
    """The tree, which has a column at each node, with the marginals of expected counts of the rows.

    A missing cell counts for the codes that its states give.
    """
    target = []
    for emission, cells in zip(tree.emission, split_tables(nodes, counts)[1], strict=True):
        rows = cells[:-1].sum(axis=1, dtype=np.float64) + cells[-1].astype(np.float64) @ emission
        share = np.where(emission.any(axis=0), np.maximum(rows / rows.sum(), FIXED.least_share), 0.0)
        target.append(share / share.sum())
    sweep = _Sweep(tree, target)
    for _ in range(FIXED.sweeps):
        if sweep.run() < FIXED.raked:
            break
    return sweep.tree()


class _Sweep:
    """Messages of a tree, node by node, with the factors of its codes.

    ``out[k]`` is the probability of the states of node k with everything that does not lie at or below it, ``here[k]``
    what lies at and below it says of its states, and ``up[k]`` what that says of its parent's states.
    """

    def __init__(self, tree: TreeTables, target: list[np.ndarray]) -> None:
        self._tree, self._target = tree, target
        self._transition = [table.astype(np.float64) for table in tree.transition]
        self._emission = [table.astype(np.float64) for table in tree.emission]
        self._factor = [np.ones(table.shape[1]) for table in tree.emission]
        self._here = [np.ones(table.shape[0]) for table in tree.emission]
        self._up = [np.ones(table.shape[0]) for table in tree.transition]
        self._out = [np.empty(0)] * len(tree)
        self._walk = _walk(tree.children)

    def run(self) -> float:
        """Fit all columns once, depth first, so that each sees those fitted before; the largest error of a share."""
        worst = 0.0
        for k, is_back in self._walk:
            above = int(self._tree.parent[k])
            if is_back:
                up = self._transition[k] @ self._here[k]
                if above >= 0:
                    self._here[above] *= up / self._up[k]
                self._up[k] = up
                continue
            at_parent = self._out[above] * self._here[above] / self._up[k] if above >= 0 else np.ones(1)
            self._out[k] = at_parent @ self._transition[k]
            worst = max(worst, self._fit(k))
        return worst

    def _fit(self, k: int) -> float:
        factor, emission = self._factor[k], self._emission[k]
        below = self._here[k] / (emission @ factor)
        share = ((self._out[k] * below) @ emission) * factor
        share /= share.sum()
        self._factor[k] = factor * np.where(share > 0.0, self._target[k] / np.where(share > 0.0, share, 1.0), 1.0)
        self._here[k] = below * (emission @ self._factor[k])
        return float(np.abs(share - self._target[k]).max(initial=0.0))

    def tree(self) -> TreeTables:
        """The tree with its factors multiplied into its tables."""
        emission = [table * factor for table, factor in zip(self._emission, self._factor, strict=True)]
        transition = [table * here for table, here in zip(self._transition, self._here, strict=True)]
        dtype = self._tree.dtype
        return replace(
            self._tree,
            transition=tuple((table / table.sum(axis=1, keepdims=True)).astype(dtype) for table in transition),
            emission=tuple((table / table.sum(axis=1, keepdims=True)).astype(dtype) for table in emission),
        )


def with_marginal(mass: np.ndarray, share: np.ndarray, marginal: np.ndarray) -> np.ndarray:
    """Masses of codes (H, K) whose rows sum to 1 and whose mean over the states is the marginal (K,)."""
    # both factors by turns (Sinkhorn): each row of the result sums to 1, and codes of no mass stay so
    of_row = 1.0 / np.maximum(mass.sum(axis=1), 1e-300)
    for _ in range(FIXED.rakings_by_turns):
        of_code = marginal / np.maximum((share * of_row) @ mass, 1e-300)
        of_row = 1.0 / np.maximum(mass @ of_code, 1e-300)
    return np.asarray(mass * of_code * of_row[:, None])


def _walk(children: list[list[int]]) -> list[tuple[int, bool]]:
    """Nodes depth first from the root, each on the way down (False) and on the way back (True)."""
    steps, waiting = [], [(0, False)]
    while waiting:
        k, is_back = waiting.pop()
        steps.append((k, is_back))
        if not is_back:
            waiting.append((k, True))
            waiting += [(child, False) for child in children[k]]
    return steps
