"""Numbers of one column in the leaves of a tree, as quantile leaves are learned from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .statistics_kernels import rows_by_leaf


class LeafValues(NamedTuple):
    """Numbers of one column that lie on no atom, in the l leaves of a tree.

    Attributes
    ----------
    x : float64 array (m,)
        Those of leaf k are ``x[start[k]:start[k + 1]]``, ascending.
    weight : float64 array (m,)
        How much each counts.
    start : int64 array (l + 1,)
    rows : float64 array (l,)
        How many rows they stand for.
    mean, var : float64 arrays (l,)
        Moments of the rows' numbers; 0 in leaves without any.
    """

    x: np.ndarray
    weight: np.ndarray
    start: np.ndarray
    rows: np.ndarray
    mean: np.ndarray
    var: np.ndarray


def values_of_rows(
    values: np.ndarray, atom: np.ndarray, rows: np.ndarray, start: np.ndarray, weight: np.ndarray
) -> LeafValues:
    """The cells ``values`` (n,) of one column that lie on no ``atom`` (n,; -1), leaf by leaf.

    ``rows`` (m,) and ``start`` (l + 1,) are the rows by leaf, see `statistics_kernels.rows_by_leaf`; ``weight`` (n,) is
    how much each row of the table counts.
    """
    n_leaves = len(start) - 1
    leaf = np.repeat(np.arange(n_leaves, dtype=np.int32), np.diff(start))
    known = (atom[rows] < 0) & ~np.isnan(values[rows])
    rows, leaf = rows[known], leaf[known]
    order = np.argsort(values[rows])
    by_leaf, first = rows_by_leaf(leaf[order], n_leaves)
    order = order[by_leaf]
    x, w, leaf = values[rows[order]], weight[rows[order]], leaf[order]
    total = np.bincount(leaf, w, n_leaves)
    total = np.where(total > 0, total, 1.0)
    mean = np.bincount(leaf, w * (x / total[leaf]), n_leaves)
    with np.errstate(over="ignore"):  # of the largest floats
        var = np.bincount(leaf, w * (x - mean[leaf]) ** 2, n_leaves) / total
    return LeafValues(x, w, first, np.diff(first).astype(np.float64), mean, var)
