"""Hidden states given one row of evidence, and the nodes about which the evidence is most informative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...data.evidence import Evidence, build
from ...runtime.threads import one_blas_thread
from ..base import Distribution
from .hidden_trees import HiddenTrees, TreeTables
from .messages import CodeEvidence, code_evidence, down, own_messages, up


class HiddenState(NamedTuple):
    """A hidden state of one tree, given one row of evidence.

    weight : float. p(state | evidence).
    log_weight : float. log p(state, evidence).
    tree : int. Number of the tree.
    column : str. The column whose node has the state.
    state : int. Number of the state.
    distribution : Distribution. The distribution of the rows in the state.
    """

    weight: float
    log_weight: float
    tree: int
    column: str
    state: int
    distribution: Distribution


def most_informed_nodes(
    hidden: HiddenTrees, evidence: Evidence, posteriors: Sequence[tuple[list[np.ndarray], float]] | None = None
) -> list[tuple[int, np.ndarray, float]]:
    """For each tree, the node whose posterior of states, given one row of evidence, diverges most from the prior."""
    # A tuple has the node, p(state | evidence) (H,), and log p(tree, evidence). Only nodes with a column count. If the
    # evidence contains a sum, ``posteriors`` gives the states of all nodes and log p(evidence) for each tree.
    with one_blas_thread():
        known, nothing = code_evidence(hidden, evidence), code_evidence(hidden, build(hidden.schema))
        log_base = float(sum(of.log_base[0] for of in known))
        found = []
        for t, (tree, log_weight) in enumerate(zip(hidden.trees, hidden.log_weight.tolist(), strict=True)):
            prior = node_states(tree, nothing)[0]
            posterior, log_p = node_states(tree, known) if posteriors is None else posteriors[t]
            apart = [
                state_divergence(p, q) if j >= 0 else -1.0
                for p, q, j in zip(posterior, prior, tree.column.tolist(), strict=True)
            ]
            node = int(np.argmax(np.round(apart, 9)))
            found.append((node, posterior[node], log_weight + log_p + log_base))
        return found


def node_states(tree: TreeTables, known: list[CodeEvidence]) -> tuple[list[np.ndarray], float]:
    """p(state | one row of evidence) of every node, and log p(evidence) without base densities."""
    upward = up(tree, own_messages(tree, known), 1)
    downward = down(tree, upward)
    weights = [downward.state(k)[0].astype(np.float64) for k in range(len(tree))]
    shares = [weight / max(weight.sum(), np.finfo(float).tiny) for weight in weights]
    return shares, float(upward.log_probability[0])


def state_divergence(p: np.ndarray, q: np.ndarray) -> float:
    """Kullback-Leibler divergence of two discrete distributions, in nats."""
    some = p > 0.0
    return float(p[some] @ np.log(p[some] / np.maximum(q[some], np.finfo(float).tiny)))
