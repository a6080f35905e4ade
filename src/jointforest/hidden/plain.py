"""Trees whose states are codes: Chow-Liu trees, of which a forest has one in each leaf, all of one structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .tree import HiddenTree

_MOST = 1 << 26  # most entries of stacked tables


def log_probability_of_codes(tree: HiddenTree, codes: Sequence[np.ndarray]) -> np.ndarray:
    """log p of n rows without missing cells, (n,): no message is needed. ``codes`` are the columns', all the tree's."""
    total = np.zeros(len(codes[0]))
    states: list[np.ndarray] = []
    with np.errstate(divide="ignore"):
        for k, (j, picked) in enumerate(zip(tree.column.tolist(), tree.picked, strict=True)):
            assert picked is not None
            states.append(np.searchsorted(picked, codes[j]))
            above = states[tree.parent[k]] if k else 0
            total += np.log(tree.transition[k][above, states[k]], dtype=np.float64)
    return total


def stack(trees: Sequence[HiddenTree], n_codes: Sequence[int]) -> HiddenTree | None:
    """T trees as one whose transitions have a table a tree, (T, K_parent, K_k), over all codes of each column.

    It answers one row of evidence in all trees at once, which take the place of rows. None if the trees are few, are
    not all of one structure with codes as states, or would take too much memory.
    """
    first = trees[0]
    if len(trees) < 2 or not all(_alike(tree, first) for tree in trees):
        return None
    sizes = [n_codes[j] for j in first.column.tolist()]
    above = [sizes[k] if k >= 0 else 1 for k in first.parent.tolist()]
    if len(trees) * sum(K * H for K, H in zip(above, sizes, strict=True)) > _MOST:
        return None
    of = [[picked for picked in tree.picked if picked is not None] for tree in trees]  # all of them
    tables = []
    for k, (K, H) in enumerate(zip(above, sizes, strict=True)):
        table = np.zeros((len(trees), K, H), first.dtype)
        for t, tree in enumerate(trees):
            rows = of[t][tree.parent[k]] if k else np.zeros(1, np.int64)
            table[t][np.ix_(rows, of[t][k])] = tree.transition[k]
        tables.append(table)
    return replace(first, transition=tuple(tables), emission=tuple(np.eye(H, dtype=first.dtype) for H in sizes))


def _alike(tree: HiddenTree, first: HiddenTree) -> bool:
    """Whether the states of a tree are codes, and its structure is that of the first."""
    same = np.array_equal(tree.column, first.column) and np.array_equal(tree.parent, first.parent)
    return same and tree.dtype == first.dtype and tree.is_plain
