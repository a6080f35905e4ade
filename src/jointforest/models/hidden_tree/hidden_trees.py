"""Hidden trees, and weighted hidden trees over the columns of one schema: a distribution of rows."""

# The columns are joined in a tree. Each node has a hidden state; tables lead from states to states and to codes.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...data.discretization.discretizer import Scale
from ...data.schema import Column, Columns, Schema
from ...runtime.arrays import KeptResults
from ..box_forest.leaves.levels import bits, members
from ..box_forest.structure import Trees

# ---- Draws from many discrete distributions at once, each in constant time (Walker's alias method).


class Alias(NamedTuple):
    """R distributions over C outcomes.

    keep : float32 array (R, C). Probability that a draw that falls on an outcome stays there.
    other : int32 array (R, C). Where it goes otherwise.
    """

    keep: np.ndarray
    other: np.ndarray

    def draw(self, row: np.ndarray, u: np.ndarray) -> np.ndarray:
        """One outcome for each entry of ``row`` (n,), from uniform numbers u (n,), 0 <= u < 1."""
        C = self.keep.shape[1]
        place = u * C
        column = np.minimum(place.astype(np.int64), C - 1)
        at = row * C + column
        return np.where(place - column < self.keep.ravel()[at], column, self.other.ravel()[at])


NOTHING = Alias(np.empty((0, 0), np.float32), np.empty((0, 0), np.int32))
"""No distributions."""


def alias_of(table: np.ndarray) -> Alias:
    """Alias tables of the rows of a table (R, C) of proportions that sum to 1 by row."""
    # Outcomes go by rising probability: one with too little is filled up by the largest, which may become small itself.
    R, C = table.shape
    share = table.astype(np.float64) * C / table.sum(axis=1, dtype=np.float64, keepdims=True)
    order = np.argsort(share, axis=1)
    left = np.take_along_axis(share, order, axis=1)
    keep, other = np.ones((R, C)), order.copy()
    every = np.arange(R)
    small, rich = np.zeros(R, np.int64), np.full(R, C - 1)
    poor = small.copy()  # the outcome to fill up: the next small one, or a rich one that has given too much
    for _ in range(C - 1):
        go = (poor != rich) & (left[every, poor] < 1.0)
        keep[every[go], poor[go]] = left[every[go], poor[go]]
        other[every[go], poor[go]] = order[every[go], rich[go]]
        left[every[go], rich[go]] -= 1.0 - left[every[go], poor[go]]
        small = np.where(go & (poor == small), small + 1, small)
        drained = go & (left[every, rich] < 1.0) & (rich > small)
        poor = np.where(drained, rich, small)
        rich = np.where(drained, rich - 1, rich)
    place = np.argsort(order, axis=1)
    return Alias(
        np.take_along_axis(keep, place, axis=1).astype(np.float32),
        np.take_along_axis(other, place, axis=1).astype(np.int32),
    )


class Cumulated(NamedTuple):
    """R distributions over C outcomes, by their cumulated shares: r plus those of row r, so that all ascend.

    share : float64 array (R * C,)
    """

    share: np.ndarray
    n_outcomes: int

    def draw(self, row: np.ndarray, u: np.ndarray) -> np.ndarray:
        """One outcome for each entry of ``row`` (n,), its quantile at u (n,), 0 <= u < 1."""
        aim = row + np.minimum(u, 1.0 - 1e-9)  # which rounding does not move to the next row
        return np.searchsorted(self.share, aim, side="right") - row * self.n_outcomes


def cumulated(table: np.ndarray) -> Cumulated:
    """Of the rows of a table (R, C) of shares that sum to 1 by row."""
    share = np.cumsum(table, axis=1, dtype=np.float64)
    share /= share[:, -1:]
    return Cumulated((share + np.arange(len(table))[:, None]).ravel(), table.shape[1])


@dataclass(frozen=True, eq=False)
class TreeTables:
    """p(codes) = sum_z prod_k transition[k][z_parent(k), z_k] emission[k][z_k, code of column[k]]; m nodes.

    The root has a parent of a single state, so its transition has one row: the states' shares. All tables have one
    dtype, float32 or float64, in which messages are passed. The model is a hidden Chow-Liu tree (Liu, Van den Broeck,
    "Tractable Regularization of Probabilistic Circuits", NeurIPS 2021).

    column : int32 array (m,). Column of each node; -1 of a node whose column has been summed out.
    parent : int32 array (m,). Parents come before their children; -1 of the root, which is node 0.
    transition : tuple of m arrays (H_parent, H_k). Rows sum to 1.
    emission : tuple of m arrays (H_k, K_j). Rows sum to 1; (H_k, 0) where there is no column.
    blank : tuple of m arrays (H_k,), or empty. p(cell missing | state), for questions about missing cells.
    missing_at : int32 array (m,), or empty. The node whose state determines whether a cell is missing; empty: its own.
    """

    column: np.ndarray
    parent: np.ndarray
    transition: tuple[np.ndarray, ...]
    emission: tuple[np.ndarray, ...]
    blank: tuple[np.ndarray, ...] = ()
    missing_at: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def dtype(self) -> np.dtype:
        """Of the tables, and of the messages."""
        return self.transition[0].dtype

    @property
    def n_states(self) -> np.ndarray:
        """Number of states of each node, int64 (m,)."""
        return np.array([table.shape[1] for table in self.transition])

    @cached_property
    def children(self) -> list[list[int]]:
        """Children of each node."""
        found: list[list[int]] = [[] for _ in self.parent]
        for k, above in enumerate(self.parent.tolist()):
            if above >= 0:
                found[above].append(k)
        return found

    @cached_property
    def by_code(self) -> tuple[np.ndarray, ...]:
        """p(code | state) with a code a row, and a last row of ones for a missing cell: m arrays (K_j + 1, H_k)."""
        return tuple(np.concatenate([t.T, np.ones((1, len(t)), t.dtype)]) for t in self.emission)

    @cached_property
    def picked(self) -> tuple[np.ndarray | None, ...]:
        """The codes that a node's states stand for, ascending, int64 (H_k,); None where states are not codes."""
        return tuple(_picked(table) for table in self.emission)

    @cached_property
    def is_plain(self) -> bool:
        """Whether the states of all nodes are codes."""
        return all(picked is not None for picked in self.picked)

    @cached_property
    def state_quantiles(self) -> tuple[Cumulated, ...]:
        """Quantiles of each node's state given its parent's."""
        return tuple(cumulated(table) for table in self.transition)

    @cached_property
    def code_quantiles(self) -> tuple[Cumulated, ...]:
        """Quantiles of the code of each node's column given its state; of no use where there is no column."""
        return tuple(cumulated(table) if table.shape[1] else Cumulated(np.empty(0), 0) for table in self.emission)

    @cached_property
    def state_draws(self) -> tuple[Alias, ...]:
        """Draws of each node's state given its parent's."""
        return tuple(alias_of(table) for table in self.transition)

    @cached_property
    def code_draws(self) -> tuple[Alias, ...]:
        """Draws of each node's code given its state."""
        return tuple(alias_of(table) if table.shape[1] else NOTHING for table in self.emission)

    @cached_property
    def node(self) -> dict[int, int]:
        """Node of each column."""
        return {j: k for k, j in enumerate(self.column.tolist()) if j >= 0}

    @cached_property
    def missing_node(self) -> dict[int, int]:
        """The node whose states determine whether the cell of each column is missing."""
        if not len(self.missing_at):
            return self.node
        return {j: int(self.missing_at[k]) for j, k in self.node.items()}


def _picked(emission: np.ndarray) -> np.ndarray | None:
    """The one code of each state, where these ascend; else None."""
    if emission.shape[1] == 0 or (np.count_nonzero(emission, axis=1) != 1).any():
        return None
    found = emission.argmax(axis=1)
    return found if (np.diff(found) > 0).all() else None


# ---- Trees of boxes in whose leaves hidden trees stand: a forest that was grown on codes, as one that splits values.


class Grown(NamedTuple):
    """A forest whose leaves hold hidden trees, one each.

    trees : Trees. Splits of the table's own columns.
    leaf : int32 array (T,). The leaf of each hidden tree; leaves of no weight have none.
    has_background : bool. Whether the last tree is the background, a single leaf.
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
            threshold[node] = _upper_end_of_code(scales[j], int(np.floor(trees.threshold[node])))
            continue
        n_codes, n_levels = (int(np.diff(c.level_start)[c.slot[j]]) for c in (of_codes, columns))
        code = np.empty(n_levels, np.int64)
        code[scales[j].lo.astype(np.int64)] = scales[j].code  # level k is the point k
        words.append(bits(members(trees.left_levels[levels_at[node] :], n_codes)[code]))
        levels_at[node] = used
        used += len(words[-1])
    return trees._replace(threshold=threshold, levels_at=levels_at, left_levels=np.concatenate(words))


def _upper_end_of_code(scale: Scale, code: int) -> float:
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
    """T trees of one structure as one with transitions (T, K_parent, K_k), None if this does not pay."""
    # It answers one row of evidence in all trees at once, which take the place of rows.
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

    scales : tuple of d Scale. Codes of each column, and the column's measure inside each code.
    log_weight : float64 array (T,). ``exp`` of it sums to 1.
    grown : Grown or None. The forest in whose leaves the trees stand, if they do; no probability depends on it.
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
    def kept(self) -> KeptResults:
        """What sums of columns look up of arrays of values, which several questions share."""
        return KeptResults()

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
