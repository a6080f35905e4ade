"""Hidden trees given that a cell is missing, or is not: states weighed anew; how probable it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .evidence import own_messages
from .hidden_trees import HiddenTrees
from .messages import Message, down, up
from .posterior import OneRow
from .reshape import conditioned_tree
from .tree import HiddenTree


def given_missing(hidden: HiddenTrees, j: int, is_missing: bool) -> tuple[HiddenTrees | None, float]:
    """The distribution given that cell j is missing (or is known), and the log-probability of that.

    The share of missing cells in each state of the column's node is a message from it. None and -inf where impossible.
    """
    found = [_given(tree, tree.node[j], is_missing) for tree in hidden.trees]
    joint = np.array([log_p for _, log_p in found]) + hidden.log_weight
    log_share = float(np.logaddexp.reduce(joint))
    if log_share == -np.inf:
        return None, -np.inf
    some = np.flatnonzero(joint > -np.inf)
    trees = tuple(found[t][0] for t in some.tolist())
    return replace(hidden, trees=trees, log_weight=joint[some] - log_share, grown=None), log_share


def missing_shares(hidden: HiddenTrees, known: OneRow, columns: list[int]) -> np.ndarray:
    """P(cell j missing | one row of evidence) of some columns that the evidence does not say missing, (len(columns),).

    The mean of a column's shares of missing cells over the posterior of its node's state, in each tree.
    """
    post = known.posterior
    share = np.exp(post.log_joint[0] - np.logaddexp.reduce(post.log_joint[0]))
    found = np.zeros(len(columns))
    for t in np.flatnonzero(share > 0.0).tolist():
        tree = hidden.trees[t]
        if not tree.blank:
            continue
        upward = up(tree, own_messages(tree, post.known), 1)
        nodes = [tree.node[j] for j in columns]
        wanted = np.zeros(len(tree), bool)
        wanted[nodes] = True
        outside = down(tree, upward, wanted).outside
        for i, k in enumerate(nodes):
            inside = upward.inside[k]
            state = (outside[k] if inside is None else outside[k] * inside)[0]
            found[i] += share[t] * float(state @ tree.blank[k]) / float(state.sum())
    return found


def _given(tree: HiddenTree, node: int, is_missing: bool) -> tuple[HiddenTree, float]:
    states = len(tree.emission[node])
    rate = tree.blank[node] if tree.blank else np.zeros(states, tree.dtype)
    said = (rate if is_missing else 1 - rate).astype(tree.dtype)
    own: list[Message] = [None] * len(tree)
    own[node] = said[None]
    upward = up(tree, own, 1)
    given = conditioned_tree(tree, upward.inside, [None] * (max(tree.node) + 1))
    if tree.blank:
        blank = np.full(states, float(is_missing), tree.blank[node].dtype)
        given = replace(given, blank=(*tree.blank[:node], blank, *tree.blank[node + 1 :]))
    return given, float(upward.log_probability[0])
