"""Removing leaves with too few rows, and counting rows below nodes."""

from __future__ import annotations

import numpy as np

from .prune_kernels import add_rows, number_nodes, replace_small


def pruned(
    left: np.ndarray, right: np.ndarray, rows_at: np.ndarray, min_rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Remove leaves that fewer than ``min_rows`` rows reach: the sibling takes the place of their parent.

    Where both children are too small, so is their parent.

    Parameters
    ----------
    left, right : int32 arrays (N,)
        Children, after their parent; -1 at leaves.
    rows_at : int array (N,)
        Number of rows that end in each node.

    Returns
    -------
    left, right : int32 arrays (M,)
        Children of the smaller tree, depth first and parents before children.
    order : int64 array (M,)
        Which old node each new one is.
    """
    new_left, new_right = left.astype(np.int64), right.astype(np.int64)
    n_nodes = len(left)
    stands_for = np.arange(n_nodes)
    replace_small(new_left, new_right, rows_at.astype(np.int64), min_rows, stands_for)
    order, number, stack = (np.empty(n_nodes, dtype=np.int64) for _ in range(3))
    stack[0] = stands_for[0]
    kept = order[: number_nodes(new_left, new_right, stack, order, number)].copy()
    inner = new_left[kept] >= 0
    children = (np.where(inner, number[child[kept]], -1).astype(np.int32) for child in (new_left, new_right))
    return *children, kept  # type: ignore[return-value]  # two children


def rows_below(left: np.ndarray, right: np.ndarray, rows_at: np.ndarray) -> np.ndarray:
    """Rows below each node (float64, N), from the number of rows that end in each leaf."""
    rows = rows_at.astype(np.float64)
    add_rows(left, right, rows)
    return rows
