"""Hidden states: which of them evidence speaks for, and what the columns are like in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..ground.threads import one_blas_thread
from ..table.build_evidence import build
from ..table.evidence import Evidence
from .evidence import CodeEvidence, code_evidence, own_messages
from .hidden_trees import HiddenTrees
from .messages import down, times, up
from .posterior import column_codes
from .tree import HiddenTree


class States(NamedTuple):
    """States of one node of a tree.

    Attributes
    ----------
    node : int
    prior, posterior : float64 array (H,)
        p(state), and p(state | evidence) within the tree.
    log_joint : float
        Log weight of the tree + log p(evidence) in it.
    """

    node: int
    prior: np.ndarray
    posterior: np.ndarray
    log_joint: float


def told_states(hidden: HiddenTrees, evidence: Evidence) -> list[States]:
    """Of each tree, the column of whose node's states one row of evidence tells most (KL of posterior and prior).

    The first one where nothing is known. Trees in which the evidence is impossible have log_joint -inf.
    """
    with one_blas_thread():
        known, nothing = code_evidence(hidden, evidence), code_evidence(hidden, build(hidden.schema))
        found = []
        for tree, log_weight in zip(hidden.trees, hidden.log_weight.tolist(), strict=True):
            prior, (posterior, log_p) = _node_states(tree, nothing)[0], _node_states(tree, known)
            told = [
                _divergence(p, q) if j >= 0 else -1.0
                for p, q, j in zip(posterior, prior, tree.column.tolist(), strict=True)
            ]
            node = int(np.argmax(np.round(told, 9)))
            log_base = float(sum(of.log_base[0] for of in known))
            found.append(States(node, prior[node], posterior[node], log_weight + log_p + log_base))
        return found


def codes_in_states(
    tree: HiddenTree, known: list[CodeEvidence], node: int, states: np.ndarray
) -> dict[int, np.ndarray]:
    """p(code of column j | state of the node, one row of evidence) for n states: by column, each (n, K_j)."""
    n = len(states)
    inside = (np.arange(tree.emission[node].shape[0]) == states[:, None]).astype(tree.dtype)
    own = [None if of is None else np.repeat(of, n, axis=0) for of in own_messages(tree, known)]
    own[node] = times(own[node], inside)[0]
    upward = up(tree, own, n)
    downward = down(tree, upward)
    found = {}
    for j, k in tree.node.items():
        rest = times(downward.outside[k], upward.below[k])[0]
        rest = times(rest, inside)[0] if k == node else rest
        assert rest is not None
        found[j] = column_codes(rest, tree, k, known[j].take(np.zeros(n, np.int64)))
    return found


def _node_states(tree: HiddenTree, known: list[CodeEvidence]) -> tuple[list[np.ndarray], float]:
    """p(state | one row of evidence) of every node, and log p(evidence) without base densities."""
    upward = up(tree, own_messages(tree, known), 1)
    outside = down(tree, upward).outside
    found = []
    for k, inside in enumerate(upward.inside):
        weight = (outside[k] if inside is None else outside[k] * inside)[0].astype(np.float64)
        found.append(weight / max(weight.sum(), np.finfo(float).tiny))
    return found, float(upward.log_probability[0])


def _divergence(p: np.ndarray, q: np.ndarray) -> float:
    some = p > 0.0
    return float(p[some] @ np.log(p[some] / np.maximum(q[some], np.finfo(float).tiny)))
