"""Kernel of the parents of circuit nodes."""

from __future__ import annotations

import numpy as np

from ...ground.compile import entry


@entry
def parents(end):
    """Parent of each node of circuits in preorder, int64 (Q,); -1 of roots."""
    parent = np.full(end.shape[0], -1, np.int64)
    for q in range(end.shape[0]):
        child = q + 1
        while child < end[q]:
            parent[child] = q
            child = end[child]
    return parent
