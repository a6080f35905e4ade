"""How often cells are missing in each state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...ground.threads import chunks, map_ordered, one_blas_thread
from ..messages import down, up
from ..tree import HiddenTree
from .em import own_messages

_ROWS = 512
_PRIOR = 1.0  # rows of the column's own share of missing cells


def learn_blanks(
    tree: HiddenTree, codes: np.ndarray, weight: np.ndarray | None = None, n_jobs: int | None = -1
) -> HiddenTree:
    """The tree with `HiddenTree.blank` learned from rows of codes (n, d), of which the last of a column is missing."""
    missing = np.column_stack([codes[:, j] == tree.emission[tree.node[j]].shape[1] for j in range(codes.shape[1])])
    if not missing.any():
        return replace(tree, blank=tuple(np.zeros(table.shape[1], tree.dtype) for table in tree.transition))
    w = np.ones(len(codes)) if weight is None else weight

    def count(a: int, b: int) -> list[np.ndarray]:
        upward = up(tree, own_messages(tree, codes[a:b]), b - a)
        outside = down(tree, upward).outside
        found = []
        for k, j in enumerate(tree.column.tolist()):
            states = outside[k] * upward.inside[k]
            states = states * (w[a:b] / states.sum(axis=1))[:, None]
            found.append(np.array([states[missing[a:b, j]].sum(axis=0), states.sum(axis=0)]))
        return found

    with one_blas_thread():
        counts = list(map_ordered(count, chunks(len(codes), _ROWS), n_jobs))
    blank = []
    for k, j in enumerate(tree.column.tolist()):
        lost, rows = np.sum([found[k] for found in counts], axis=0)
        share = float(np.average(missing[:, j], weights=w))
        blank.append(((lost + _PRIOR * share) / (rows + _PRIOR)).astype(tree.dtype))
    return replace(tree, blank=tuple(blank))
