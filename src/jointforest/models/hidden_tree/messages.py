"""Messages up and down a hidden tree, for a batch of rows at once.

Upward messages are scaled row by row to a greatest entry of 1, and the logarithms of the scales are summed in
float64; those downward to a sum of 1.
Where evidence is impossible, the scale is -inf and the messages are arbitrary. None stands for all ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...runtime.threads import of_finite
from .hidden_trees import TreeTables

Message = np.ndarray | None

_TINY = 1e-30  # scales whose inverse is a float32
_IN_FLOAT32 = 3  # messages that may be multiplied in float32; products of more lose differences between states


class Upward(NamedTuple):
    """What the pass from the leaves to the root found, for n rows; a list has one entry a node.

    Attributes
    ----------
    own : list of m arrays (n, H_k) or None
        p(evidence of the node's column | state), as given.
    message : list of m arrays (n, H_parent) or None
        p(evidence at and below the node | state of the parent), scaled.
    below : list of m arrays (n, H_k) or None
        p(evidence below the node | its state), scaled.
    inside : list of m arrays (n, H_k) or None
        p(evidence at and below the node | its state), scaled.
    log_probability : float64 array (n,)
        log p(evidence); -inf where it is impossible.
    """

    own: list[Message]
    message: list[Message]
    below: list[Message]
    inside: list[Message]
    log_probability: np.ndarray


class Downward(NamedTuple):
    """What the pass from the root to the leaves found; arrays have n rows, or 1 where all rows agree.

    Attributes
    ----------
    upward : Upward
    above : list of m arrays (n, H_parent)
        p(state of the parent, evidence that is not at or below the node), scaled.
    outside : list of m arrays (n, H_k)
        ``above @ transition``.
    """

    upward: Upward
    above: list[np.ndarray]
    outside: list[np.ndarray]

    def state(self, k: int) -> np.ndarray:
        """p(state of node k, evidence) but for a factor of each row, (n, H_k)."""
        inside = self.upward.inside[k]
        return self.outside[k] if inside is None else self.outside[k] * inside

    def rest(self, k: int) -> np.ndarray:
        """The same without the evidence of the node's own column."""
        below = self.upward.below[k]
        return self.outside[k] if below is None else self.outside[k] * below


def log_probability(tree: TreeTables, own: Sequence[Message], n: int) -> np.ndarray:
    """log p(evidence) of n rows, (n,): the pass upward that keeps no message."""
    return _up(tree, own, n, keep=False).log_probability


def up(tree: TreeTables, own: Sequence[Message], n: int) -> Upward:
    """The pass from the leaves to the root; ``own[k]`` is p(evidence of node k's column | state), (n, H_k)."""
    return _up(tree, own, n, keep=True)


@of_finite
def down(tree: TreeTables, upward: Upward, nodes: Sequence[int] | None = None) -> Downward:
    """The pass from the root to the leaves, or to some nodes alone; the others are left empty."""
    one = np.ones((1, 1), tree.dtype)
    above, outside = [one] * len(tree), [_through(one, tree.transition[0])] * len(tree)
    on_the_way = np.full(len(tree), nodes is None)
    on_the_way[list(nodes or ())] = True
    for k in range(len(tree) - 1, 0, -1):
        on_the_way[tree.parent[k]] |= on_the_way[k]
    for k, children in enumerate(tree.children):
        if any(on_the_way[c] for c in children):
            base = outside[k] if upward.own[k] is None else outside[k] * upward.own[k]
            for c, others in zip(children, without_each(base, [upward.message[c] for c in children]), strict=True):
                if on_the_way[c]:
                    above[c] = others
                    outside[c] = _through(others, tree.transition[c])
    return Downward(upward, above, outside)


def without_each(base: np.ndarray, messages: list[Message]) -> list[np.ndarray]:
    """``base`` times all messages but one, scaled, for each of the messages in turn."""
    if len(messages) > _IN_FLOAT32 and base.dtype != np.float64:
        wide = [None if message is None else message.astype(np.float64) for message in messages]
        return [found.astype(base.dtype) for found in without_each(base.astype(np.float64), wide)]
    before = [_by_sum(base)]
    for message in messages[:-1]:
        before.append(before[-1] if message is None else _by_sum(before[-1] * message))
    after: Message = None
    for i in range(len(messages) - 1, 0, -1):
        after = times(after, messages[i])[0]
        if after is not None:
            before[i - 1] = _by_sum(before[i - 1] * after)
    return before


def times(a: Message, b: Message) -> tuple[Message, np.ndarray | float]:
    """The product of two scaled messages, scaled, and the log of its scale."""
    if a is None or b is None:
        return b if a is None else a, 0.0
    return _scaled(a * b)


def _scaled(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows divided by their greatest entry, and the log of that; rows of zeros become ones, with -inf."""
    top = x.max(axis=1, keepdims=True)
    if top.min() > _TINY:
        return x * (1.0 / top), np.log(top[:, 0].astype(np.float64))  # several times as fast as to divide
    zero = top == 0.0
    with np.errstate(divide="ignore"):
        log_top = np.log(top[:, 0].astype(np.float64))
    one = np.ones((), x.dtype)
    return np.where(zero, one, x / np.where(zero, one, top)), log_top


def _by_sum(x: np.ndarray) -> np.ndarray:
    """Rows divided by their sums, which are found faster than greatest entries; rows of zeros become ones."""
    total = (x @ np.ones(x.shape[1], x.dtype))[:, None]
    if total.min() > _TINY:
        return x * (1.0 / total)
    return x / total if total.all() else _scaled(x)[0]


def _towards(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Messages x (n, H) by the states of the parent: a table (K, H) of all rows, or (n, K, H) of each row."""
    return x @ table.T if table.ndim == 2 else np.matmul(table, x[:, :, None])[:, :, 0]


def _through(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Messages x (n, K) from the states of the parent, by those of the node: a table (K, H), or (n, K, H)."""
    return x @ table if table.ndim == 2 else np.matmul(x[:, None, :], table)[:, 0]


@of_finite
def _up(tree: TreeTables, own: Sequence[Message], n: int, keep: bool) -> Upward:
    m = len(tree)
    log_scale = np.zeros(n)
    message: list[Message] = [None] * m
    below: list[Message] = [None] * m
    inside: list[Message] = [None] * m
    for k in range(m - 1, -1, -1):
        here = below[k]
        below[k] = here if here is None else here.astype(tree.dtype, copy=False)
        inside[k], log_top = times(below[k], own[k])
        log_scale += log_top
        here = inside[k]
        if here is None:
            continue
        sent, log_top = _scaled(_towards(here, tree.transition[k]))
        log_scale += log_top
        above = int(tree.parent[k])
        if above >= 0:
            message[k] = sent
            wide = sent.astype(np.float64) if len(tree.children[above]) > _IN_FLOAT32 else sent
            below[above], log_top = times(below[above], wide)
            log_scale += log_top
        if not keep:
            message[k] = below[k] = inside[k] = None
    return Upward(list(own), message, below, inside, log_scale)
