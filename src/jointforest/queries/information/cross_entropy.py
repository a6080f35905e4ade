"""Cross entropy of two single trees in closed form over pairs of leaves, one column at a time."""

from __future__ import annotations

import numpy as np

from ...leaves.table import STUDENT
from ...trees.boxes import leaf_boxes
from .entropy_kernels import column_log_densities
from .integral import breaks, cell_range
from .partition import column_of_leaves, is_partition, mixes_columns
from .projection import Columns, View

_NODE, _WEIGHT = np.polynomial.legendre.leggauss(10)
_SPANS = np.array([-8, -4, -2, -1, 0, 1, 2, 4, 8])
_TOLERANCE = 1e-8
_WORK = 5e7
"""Most points times parameter rows to visit for a column."""


def cross_entropy(p: View, q: View, of: Columns) -> float | None:
    """-E_p log q, where both are one tree whose leaves are apart in the columns; None otherwise, or if it is costly.

    With M the mass of a column of p's leaf l in the box of q's leaf m, and C the mean there of log of q's density,

        E_p log q = sum_l w_l sum_m (prod_j M_lmj log v_m + sum_j C_lmj prod_{i != j} M_lmi).
    """
    for v in (p, q):
        columns = [v.number[k] for k in of]
        if not is_partition(v.forest, columns) or mixes_columns(v.forest, columns):
            return None
    log_w, log_v = p.forest.leaves.log_weight, q.forest.leaves.log_weight
    if len(of) * len(log_w) * len(log_v) > _WORK / 10:
        return None
    mass, mean = np.empty((2, len(of), len(log_w), len(log_v)))
    for i, k in enumerate(of):
        found = _column(p, q, k)
        if found is None:
            return None
        mass[i], mean[i] = found
    w = np.exp(log_w)[:, None]
    total = _dot(w * mass.prod(axis=0), np.broadcast_to(log_v, mass.shape[1:]))
    for i in range(len(of)):
        total += _dot(w * np.delete(mass, i, axis=0).prod(axis=0), mean[i])
    return -total


def _dot(weight: np.ndarray, value: np.ndarray) -> float:
    """Sum of weight times value, where the weight is not 0."""
    some = weight > 0
    return float(np.sum(weight[some] * value[some]))


def _column(p: View, q: View, k: int) -> tuple[np.ndarray, np.ndarray] | None:
    """M and C of a column for all pairs of leaves; None if that is costly or not precise."""
    found = _points(p, q, k)
    if found is None:
        return None
    x, weight = found
    share, log_q = np.exp(_log_densities(p, k, x)) * weight, _log_densities(q, k, x)
    if np.exp(p.forest.leaves.log_weight) @ np.abs(share.sum(axis=1) - 1) > _TOLERANCE:
        return None
    inside = _in_boxes(q, k, x)
    never = (inside & (log_q == -np.inf)).astype(np.float64)
    mean = share @ np.where(inside & (log_q > -np.inf), log_q, 0.0).T
    return share @ inside.T.astype(np.float64), np.where(share @ never.T > 0, -np.inf, mean)


def _points(p: View, q: View, k: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Points of a column and their measure: levels, cells, atoms, and Gauss rules between the breaks of both models."""
    column, rows = p.columns[k], len(p.forest.leaves.tree) + len(q.forest.leaves.tree)
    if column.is_categorical:
        return np.arange(len(column.levels), dtype=np.float64), np.ones(len(column.levels))
    if column.step > 0.0:
        first, last = cell_range((p, q), k)
        n = last - first + 1
        if n * rows > _WORK:
            return None
        return column.center + np.arange(first, last + 1) * column.step, np.full(n, column.step)
    known = breaks((p, q), k)
    trees = q.forest.trees
    points = [known, trees.threshold[trees.feature == q.number[k]]]
    for v in (p, q):
        s, leaves = v.forest.columns.slot[v.number[k]], v.forest.leaves
        if (leaves.family[:, s] == STUDENT).any():
            return None
        points.append((leaves.a[:, s, None] + leaves.b[:, s, None] * _SPANS).ravel())
    edges = np.unique(np.concatenate(points))
    edges = edges[(edges >= known[0]) & (edges <= known[-1])]
    if len(_NODE) * len(edges) * rows > _WORK:
        return None
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    atoms = np.unique(np.concatenate([v.columns[k].atoms for v in (p, q)]))
    x, weight = (middle[:, None] + np.outer(half, _NODE)).ravel(), np.outer(half, _WEIGHT).ravel()
    return np.concatenate([x, atoms]), np.concatenate([weight, np.ones(len(atoms))])


def _log_densities(v: View, k: int, x: np.ndarray) -> np.ndarray:
    """Log density of the column in every leaf at points in the reference's numbers, (L, q)."""
    j = v.number[k]
    found = column_log_densities(v.forest.columns, v.forest.leaves, j, *column_of_leaves(v.forest, j), _own(v, k, x))
    return np.where(np.isin(x, v.foreign[k]), -np.inf, found)


def _in_boxes(v: View, k: int, x: np.ndarray) -> np.ndarray:
    """Whether points lie in the boxes of the leaves, bool (L, q)."""
    lo, hi, allowed = leaf_boxes(v.forest.trees, v.forest.columns)
    s, own = v.forest.columns.slot[v.number[k]], _own(v, k, x)
    if v.columns[k].is_categorical:
        at = v.forest.columns.level_start[s] + own.astype(np.int64)
        return np.asarray(allowed[:, at])
    return np.asarray((lo[:, s, None] < own) & (own <= hi[:, s, None]))


def _own(v: View, k: int, x: np.ndarray) -> np.ndarray:
    """Points in the model's own numbers."""
    code = v.code[k]
    return x + v.shift[k] if code is None else code[x.astype(np.int64)].astype(np.float64)
