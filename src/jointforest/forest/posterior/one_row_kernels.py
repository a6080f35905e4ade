"""Kernels that weigh one row of evidence once for the questions about all columns."""

from __future__ import annotations

import numpy as np

from ...ground.compile import entry
from .circuit_kernels import has_circuit, rows_of_column, share_out
from .weight_kernels import log_sum, weigh_row


@entry
def weigh_one(columns, trees, leaves, evidence):
    """Leaves that the first row of evidence meets, log p(leaf, evidence), the same of circuits' nodes, log p(evidence).

    The third is of the listed leaves' nodes only: log p(node takes part, evidence), see `_circuits.share_out`.
    """
    stack = np.empty(trees.feature.shape[0], np.int32)
    leaf = np.empty(leaves.log_weight.shape[0], np.int32)
    log_weight = np.empty(leaves.log_weight.shape[0], np.float64)
    n_nodes = leaves.node_kind.shape[0]
    atom, value = np.empty(columns.slot.shape[0], np.int32), np.empty(n_nodes, np.float64)
    weight = np.empty(n_nodes, np.float64)
    n = weigh_row(columns, trees, leaves, evidence, 0, stack, leaf, log_weight, atom, value)
    for i in range(n):
        if has_circuit(leaves, leaf[i]):
            share_out(leaves, leaf[i], log_weight[i], value, weight)
    return leaf[:n].copy(), log_weight[:n].copy(), weight, log_sum(log_weight, n)


@entry
def entries_of_column(leaves, column, leaf, log_weight, weight):
    """Rows that describe a column, their log p(row describes it, evidence), and the log of its sum."""
    entry = np.empty(leaves.tree.shape[0], np.int32)
    log_entry = np.empty(leaves.tree.shape[0], np.float64)
    n = rows_of_column(leaves, column, leaf, log_weight, leaf.shape[0], weight, entry, log_entry)
    return entry[:n], log_entry[:n], log_sum(log_entry, n)
