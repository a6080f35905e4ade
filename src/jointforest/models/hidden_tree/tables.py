"""A hidden tree: columns joined in a tree, a hidden state for each node, tables between states and to codes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

# ---- Draws from many discrete distributions at once, each in constant time (Walker's alias method).


class Alias(NamedTuple):
    """R distributions over C outcomes.

    Attributes
    ----------
    keep : float32 array (R, C)
        Probability that a draw that falls on an outcome stays there.
    other : int32 array (R, C)
        Where it goes otherwise.
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
    """Alias tables of the rows of a table (R, C) of shares that sum to 1 by row.

    Outcomes go by rising probability: one with too little is filled up by the richest, which may become poor itself
    and is then filled up by the next richest.
    """
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

    Attributes
    ----------
    share : float64 array (R * C,)
    n_outcomes : int
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

    Attributes
    ----------
    column : int32 array (m,)
        Column of each node; -1 of a node whose column has been summed out.
    parent : int32 array (m,)
        Parents come before their children; -1 of the root, which is node 0.
    transition : tuple of m arrays (H_parent, H_k)
        Rows sum to 1.
    emission : tuple of m arrays (H_k, K_j)
        Rows sum to 1; (H_k, 0) where there is no column.
    blank : tuple of m arrays (H_k,), or empty
        p(cell missing | state), for rows drawn with missing cells and questions about these; no other answer depends on
        it.
    missing_at : int32 array (m,), or empty
        The node whose states say whether the cell of a node's column is missing: another one without a column where
        missing cells depend on other cells. Empty where each node has its own.
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
        """The node whose states say whether the cell of each column is missing."""
        if not len(self.missing_at):
            return self.node
        return {j: int(self.missing_at[k]) for j, k in self.node.items()}


def _picked(emission: np.ndarray) -> np.ndarray | None:
    """The one code of each state, where these ascend; else None."""
    if emission.shape[1] == 0 or (np.count_nonzero(emission, axis=1) != 1).any():
        return None
    found = emission.argmax(axis=1)
    return found if (np.diff(found) > 0).all() else None
