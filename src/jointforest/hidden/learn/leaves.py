"""Hidden trees in the leaves of a decision tree: each leaf's rows have one of their own, inside the leaf's box."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...ground.progress import bar
from ...ground.threads import map_ordered, one_blas_thread
from ..tree import HiddenTree
from .columns import CodeTable, code_columns
from .cut import Leaf, cut
from .learn import LearnSettings, Progress, learn_and_test

ROWS_A_STATE = 4
"""Fewest rows for each state, of a leaf or of a table that has more states than the fewest."""


class Learned(NamedTuple):
    """Hidden trees, and how well rows held out like them.

    Attributes
    ----------
    trees : tuple of L HiddenTree
    share : float64 array (L,)
        Of each leaf's rows.
    held_out : float
        Mean log-probability of rows held out; NaN where there are none.
    """

    trees: tuple[HiddenTree, ...]
    share: np.ndarray
    held_out: float


def learn_trees(
    table: CodeTable,
    settings: LearnSettings,
    seed: int,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    information: np.ndarray | None = None,
) -> Learned:
    """A hidden tree for each of ``settings.n_leaves`` leaves of a decision tree, or fewer; as `learn_tree` otherwise.

    No row of a leaf has a code outside its box, and its hidden tree gives such codes no probability: a complete row
    is looked up in one leaf. Leaves are learned side by side.
    """
    if settings.n_leaves < 2:
        tree, held_out = learn_and_test(table, settings, seed, n_jobs, progress, information)
        return Learned((tree,), np.ones(1), held_out)
    leaves = _leaves(table, settings, seed)

    def one(leaf: Leaf, own_seed: int) -> tuple[HiddenTree, float]:
        few = settings._replace(n_states=max(min(settings.n_states, len(leaf.rows) // ROWS_A_STATE), 1))
        return learn_and_test(table.take(leaf.rows), few, own_seed, 1, told.tell, None, leaf.allowed)

    seeds = np.random.default_rng([seed, 1]).integers(2**31, size=len(leaves)).tolist()
    passes = settings.passes * len(leaves)
    with one_blas_thread(), bar(passes, "passes") as step:
        told = _Told(progress, passes, step)
        found = list(map_ordered(one, list(zip(leaves, seeds, strict=True)), n_jobs))
    weight = np.ones(len(table.codes)) if table.weight is None else table.weight
    mass = np.array([weight[leaf.rows].sum() for leaf in leaves])
    share = mass / mass.sum()
    held_out = float(share @ (np.log(share) + [value for _, value in found]))
    return Learned(tuple(tree for tree, _ in found), share, held_out)


def _leaves(table: CodeTable, settings: LearnSettings, seed: int) -> list[Leaf]:
    """Boxes with rows of some weight; rows of none are in no leaf."""
    rows = table.weighed_rows()
    own = table.take(rows)
    rng = np.random.default_rng(seed)
    found = cut(own.codes, code_columns(own), settings.n_leaves, rng, own.weight, settings.perturb)
    return [Leaf(leaf.allowed, rows[leaf.rows]) for leaf in found]


class _Told:
    """Passes of all leaves, counted as they end."""

    def __init__(self, progress: Progress | None, most: int, step: Callable[[], None]) -> None:
        self._progress, self._most, self._step, self._now = progress, most, step, 0

    def tell(self, now: int, most: int, held_out: float) -> None:
        self._now += 1
        self._step()
        if self._progress is not None:
            self._progress(self._now, self._most, held_out)
