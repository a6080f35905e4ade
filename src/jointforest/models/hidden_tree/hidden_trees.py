"""Hidden trees over the columns of one schema, weighted: a distribution of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...data.discretization.discretizer import Scale
from ...data.schema import Column, Columns, Schema
from ..box_forest.leaves.levels import bits, members
from ..box_forest.structure import Trees
from .tables import TreeTables

# ---- Trees of boxes in whose leaves hidden trees stand: a forest that was grown on codes, as one that splits values.


class Grown(NamedTuple):
    """A forest whose leaves hold hidden trees, one each.

    Attributes
    ----------
    trees : Trees
        Splits of the table's own columns.
    leaf : int32 array (T,)
        The leaf of each hidden tree; leaves of no weight have none.
    has_background : bool
        Whether the last tree is the background, a single leaf.
    """

    trees: Trees
    leaf: np.ndarray
    has_background: bool


def value_trees(trees: Trees, scales: Sequence[Scale], columns: Columns, of_codes: Columns) -> Trees:
    """Trees on codes as trees on values: the same rows go left."""
    threshold, levels_at = trees.threshold.copy(), trees.levels_at.copy()
    words, used = [np.empty(0, np.uint64)], 0
    for node in np.flatnonzero(trees.feature >= 0).tolist():
        j = int(trees.feature[node])
        if trees.levels_at[node] < 0:
            threshold[node] = _cut(scales[j], int(np.floor(trees.threshold[node])))
            continue
        n_codes, n_levels = (int(np.diff(c.level_start)[c.slot[j]]) for c in (of_codes, columns))
        code = np.empty(n_levels, np.int64)
        code[scales[j].lo.astype(np.int64)] = scales[j].code  # level k is the point k
        words.append(bits(members(trees.left_levels[levels_at[node] :], n_codes)[code]))
        levels_at[node] = used
        used += len(words[-1])
    return trees._replace(threshold=threshold, levels_at=levels_at, left_levels=np.concatenate(words))


def _cut(scale: Scale, code: int) -> float:
    """The greatest number that has this code or a lower one."""
    end = float(scale.hi[scale.code <= code].max())
    is_beyond = scale.is_point & (scale.code > code) & (scale.lo == end)
    # off a grid a point takes its number from the interval that it ends
    return float(np.nextafter(end, -np.inf)) if scale.step == 0.0 and is_beyond.any() else end


# ---- Trees whose states are codes: Chow-Liu trees, of which a forest has one in each leaf, all of one structure.

_MOST = 1 << 26  # most entries of stacked tables


def log_probability_of_codes(tree: TreeTables, codes: Sequence[np.ndarray]) -> np.ndarray:
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


def _stack(trees: Sequence[TreeTables], n_codes: Sequence[int]) -> TreeTables | None:
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


def _alike(tree: TreeTables, first: TreeTables) -> bool:
    """Whether the states of a tree are codes, and its structure is that of the first."""
    same = np.array_equal(tree.column, first.column) and np.array_equal(tree.parent, first.parent)
    return same and tree.dtype == first.dtype and tree.is_plain


@dataclass(frozen=True, eq=False)
class HiddenTrees:
    """P(x) = sum_t exp(log_weight[t]) p_t(codes of x) prod_j base_j(x_j | code); the scales are common to all trees.

    Attributes
    ----------
    schema : Schema
    scales : tuple of d Scale
        Codes of each column, and the column's measure inside each code.
    trees : tuple of T TreeTables
    log_weight : float64 array (T,)
        ``exp`` of it sums to 1.
    grown : Grown or None
        The forest in whose leaves the trees stand, if they do; no probability depends on it.
    """

    schema: Schema
    scales: tuple[Scale, ...]
    trees: tuple[TreeTables, ...]
    log_weight: np.ndarray
    grown: Grown | None = None

    @cached_property
    def support(self) -> tuple[np.ndarray, ...] | None:
        """Whether each tree gives a column's code any probability, d bool arrays (K_j, T); None where all do."""
        found = [np.ones((scale.n_codes, len(self.trees)), bool) for scale in self.scales]
        for t, tree in enumerate(self.trees):
            for j, k in tree.node.items():
                found[j][:, t] = tree.emission[k].any(axis=0)
        return None if all(inside.all() for inside in found) else tuple(found)

    @cached_property
    def lost(self) -> tuple[np.ndarray, ...]:
        """`lost_atoms` of each column."""
        return tuple(map(lost_atoms, self.scales, self.schema.columns))

    @cached_property
    def stacked(self) -> TreeTables | None:
        """All trees as one, for one row of evidence: see `_stack`."""
        return _stack(self.trees, [scale.n_codes for scale in self.scales])


def lost_atoms(scale: Scale, column: Column) -> np.ndarray:
    """Atoms of a column without grid that a region has left out of its scale: they have no density either."""
    if scale.step > 0.0 or not column.atoms:
        return np.empty(0)
    return np.setdiff1d(column.atoms, scale.lo[scale.points])
