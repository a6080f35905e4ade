"""The joint distribution of the codes of a few columns, exact: pairs, mostly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ground.threads import one_blas_thread
from .hidden_trees import HiddenTrees
from .reshape import keep
from .tree import HiddenTree

MOST = 1 << 24
"""Most entries of a table, states included: 128 MB."""


def joint_codes(hidden: HiddenTrees, columns: Sequence[int]) -> np.ndarray | None:
    """p(codes of m columns), an array (K_1, ..., K_m) that sums to 1; None if it were larger than `MOST`.

    Given evidence: of `reshape.condition`.
    """
    size = np.prod([float(hidden.scales[j].n_codes) for j in columns])
    if size * max(int(tree.n_states.max()) for tree in hidden.trees) > MOST:
        return None
    few = keep(hidden, columns)
    with one_blas_thread():
        each = [np.exp(w) * _of_tree(tree) for tree, w in zip(few.trees, few.log_weight.tolist(), strict=True)]
    total: np.ndarray = sum(each)
    return total.transpose(np.argsort(np.argsort(columns))) / total.sum()


def _of_tree(tree: HiddenTree) -> np.ndarray:
    """p(codes) of all columns of a small tree, in the order of the columns."""
    tables: list[np.ndarray] = [np.empty(0)] * len(tree)  # p(codes at and below | state), with the columns' numbers
    order: list[list[int]] = [[]] * len(tree)
    for k in range(len(tree) - 1, -1, -1):
        j = int(tree.column[k])
        table = tree.emission[k].astype(np.float64) if j >= 0 else np.ones((tree.transition[k].shape[1], 1))
        order[k] = [j] if j >= 0 else []
        for c in tree.children[k]:
            table = (table[:, :, None] * tables[c][:, None, :]).reshape(len(table), -1)
            order[k] = order[k] + order[c]
        tables[k] = tree.transition[k].astype(np.float64) @ table
    sizes = {int(j): tree.emission[k].shape[1] for k, j in enumerate(tree.column) if j >= 0}
    return tables[0].reshape([sizes[j] for j in order[0]]).transpose(np.argsort(order[0]))
