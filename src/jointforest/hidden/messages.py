"""Messages up and down a hidden tree, for a batch of rows at once.

Each array of messages is scaled row by row to a greatest entry of 1; the logarithms of the scales are summed in
float64. Where evidence is impossible, the scale is -inf and the messages are arbitrary. None stands for all ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .tree import HiddenTree

Message = np.ndarray | None


class Upward(NamedTuple):
    """What the pass from the leaves to the root found, for n rows.

    Attributes
    ----------
    own : list of m arrays (n, H_k) or None
        p(evidence of the node's column | state), as given.
    message : list of m arrays (n, H_parent) or None
        p(evidence at and below the node | state of the parent), scaled.
    inside : list of m arrays (n, H_k) or None
        p(evidence at and below the node | its state), scaled.
    log_probability : float64 array (n,)
        log p(evidence); -inf where it is impossible.
    """

    own: list[Message]
    message: list[Message]
    inside: list[Message]
    log_probability: np.ndarray


class Downward(NamedTuple):
    """What the pass from the root to the leaves found; arrays have n rows, or 1 where all rows agree.

    Attributes
    ----------
    above : list of m arrays (n, H_parent)
        p(state of the parent, evidence that is not at or below the node), scaled.
    outside : list of m arrays (n, H_k)
        ``above @ transition``: times `inside` it is proportional to the posterior of the node's state.
    """

    above: list[np.ndarray]
    outside: list[np.ndarray]


def log_probability(tree: HiddenTree, own: Sequence[Message], n: int) -> np.ndarray:
    """log p(evidence) of n rows, (n,): the pass upward that keeps no message."""
    return _up(tree, own, n, keep=False).log_probability


def up(tree: HiddenTree, own: Sequence[Message], n: int) -> Upward:
    """The pass from the leaves to the root: ``own[k]`` is p(evidence of node k's column | state), (n, H_k)."""
    return _up(tree, own, n, keep=True)


def down(tree: HiddenTree, upward: Upward) -> Downward:
    """The pass from the root to the leaves."""
    children = tree.children
    one = np.ones((1, 1), tree.dtype)
    above, outside = [one] * len(tree), [tree.transition[0]] * len(tree)
    for k, below in enumerate(children):
        if below:
            base = outside[k] if upward.own[k] is None else outside[k] * upward.own[k]
            for c, others in zip(below, without_each(base, [upward.message[c] for c in below]), strict=True):
                above[c], outside[c] = others, others @ tree.transition[c]
    return Downward(above, outside)


def without_each(base: np.ndarray, messages: list[Message]) -> list[np.ndarray]:
    """``base`` times all messages but one, scaled, for each of the messages in turn."""
    before = [scaled(base)[0]]
    for message in messages[:-1]:
        before.append(before[-1] if message is None else scaled(before[-1] * message)[0])
    after: Message = None
    for i in range(len(messages) - 1, 0, -1):
        message = messages[i]
        if message is not None:
            after = message if after is None else scaled(after * message)[0]
        if after is not None:
            before[i - 1] = scaled(before[i - 1] * after)[0]
    return before


def scaled(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows divided by their greatest entry, and the log of that; rows of zeros become ones, with -inf."""
    top = x.max(axis=1, keepdims=True)
    if not top.all():
        x = np.where(top == 0.0, np.ones((), x.dtype), x)
        with np.errstate(divide="ignore"):
            return x / np.where(top == 0.0, 1.0, top).astype(x.dtype), np.log(top[:, 0].astype(np.float64))
    return x / top, np.log(top[:, 0].astype(np.float64))


def _up(tree: HiddenTree, own: Sequence[Message], n: int, keep: bool) -> Upward:
    m = len(tree)
    log_scale = np.zeros(n)
    message: list[Message] = [None] * m
    inside: list[Message] = list(own)
    for k in range(m - 1, -1, -1):
        here = inside[k]
        if here is None:
            continue
        sent = here @ tree.transition[k].T
        above = int(tree.parent[k])
        if above < 0:
            with np.errstate(divide="ignore"):
                log_scale += np.log(sent[:, 0].astype(np.float64))
            break
        sent, log_top = scaled(sent)
        log_scale += log_top
        other = inside[above]
        if other is None:
            inside[above] = sent
        else:
            inside[above], log_top = scaled(other * sent)
            log_scale += log_top
        message[k] = sent
        if not keep:
            inside[k] = message[k] = None
    return Upward(list(own), message, inside, log_scale)
