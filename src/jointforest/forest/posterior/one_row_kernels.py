"""Kernel that reads one weighed row of evidence for a question about one column."""

from __future__ import annotations

import numpy as np

from ...ground.compile import entry
from .circuit_kernels import rows_of_column
from .weight_kernels import log_sum


@entry
def entries_of_column(leaves, column, leaf, log_weight, share):
    """Parameter rows that describe a column, their log p(row describes it, evidence), and the log of its sum."""
    entry = np.empty(leaves.tree.shape[0], np.int32)
    log_entry = np.empty(leaves.tree.shape[0], np.float64)
    n = rows_of_column(leaves, column, leaf, log_weight, leaf.shape[0], share, entry, log_entry)
    return entry[:n], log_entry[:n], log_sum(log_entry, n)
