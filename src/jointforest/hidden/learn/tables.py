"""Tables of a hidden tree from counts of rows: what is added so that small counts do not mislead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..tree import HiddenTree
from .columns import CodeColumn


class Smoothing(NamedTuple):
    """Rows added to the counts of each state.

    Attributes
    ----------
    transition : float
        Rows of the child's states, by their shares.
    normal : float
        Rows of the state's own normal on the scale of normal scores; of ordered columns of more than 8 codes.
    marginal : float
        Rows of the column's marginal.
    """

    transition: float = 0.5
    normal: float = 30.0
    marginal: float = 0.1


class Counts(NamedTuple):
    """Expected numbers of rows.

    Attributes
    ----------
    transition : list of m arrays (H_parent, H_k)
    emission : list of m arrays (H_k, K)
    """

    transition: list[np.ndarray]
    emission: list[np.ndarray]


def count_states(states: np.ndarray, codes: np.ndarray, order: np.ndarray, parent: np.ndarray, n_codes: np.ndarray,
                 weight: np.ndarray | None) -> Counts:  # fmt: skip
    """Counts of rows whose states (n, d) are known, float32."""
    size = states.max(axis=0) + 1
    transition, emission = [], []
    for j, above in zip(order.tolist(), parent.tolist(), strict=True):
        H, K = int(size[j]), int(n_codes[j])
        up, wide = (states[:, order[above]], int(size[order[above]])) if above >= 0 else (0 * states[:, j], 1)
        pair = np.bincount(up * H + states[:, j], weights=weight, minlength=wide * H)
        cell = np.bincount(states[:, j] * (K + 1) + codes[:, j], weights=weight, minlength=H * (K + 1))
        transition.append(pair.reshape(wide, H).astype(np.float32))
        emission.append(np.ascontiguousarray(cell.reshape(H, K + 1)[:, :K], dtype=np.float32))
    return Counts(transition, emission)


def tree_of(counts: Counts, order: np.ndarray, parent: np.ndarray, columns: tuple[CodeColumn, ...],
            smoothing: Smoothing) -> HiddenTree:  # fmt: skip
    """The tree whose tables are proportional to counts and what is added to them."""
    transition = [_transition(table, smoothing.transition) for table in counts.transition]
    emission = [_emission(table, columns[j], smoothing) for table, j in zip(counts.emission, order, strict=True)]
    return HiddenTree(order, parent, tuple(transition), tuple(emission))


def _transition(count: np.ndarray, rows: float) -> np.ndarray:
    share = count.sum(axis=0, dtype=np.float64) + 1e-3
    table = count + (rows * share / share.sum()).astype(count.dtype)
    return table / table.sum(axis=1, keepdims=True)


def _emission(count: np.ndarray, column: CodeColumn, smoothing: Smoothing) -> np.ndarray:
    table = count + (smoothing.marginal * column.marginal).astype(count.dtype)
    if column.is_ordered and column.n_codes > 8 and smoothing.normal > 0.0:
        table += np.float32(smoothing.normal) * own_normals(count, column)
    return table / table.sum(axis=1, keepdims=True)


def own_normals(count: np.ndarray, column: CodeColumn) -> np.ndarray:
    """Each state's normal, fitted to its normal scores, over the codes, (H, K); little is known of small states."""
    from scipy.special import ndtr

    score = column.score.astype(count.dtype)
    rows = count.sum(axis=1) + np.float32(1e-3)
    mean = count @ score / rows
    square = count @ score**2 / rows
    inside = _spread_inside(column)
    spread = count @ inside.astype(count.dtype) / rows
    variance = np.maximum(square - mean**2, 0.0) + spread
    variance = (rows * variance + 1.0) / (rows + 1.0) + 1e-4
    at = (column.edge[None, 1:-1].astype(np.float32) - mean[:, None]) / np.sqrt(variance)[:, None]
    below = ndtr(at)
    whole = np.empty_like(count)
    whole[:, 0] = below[:, 0]
    np.subtract(below[:, 1:], below[:, :-1], out=whole[:, 1:-1])
    whole[:, -1] = 1.0 - below[:, -1]
    return whole


def _spread_inside(column: CodeColumn) -> np.ndarray:
    """Variance of a standard normal within each code's interval, (K,)."""
    edge = column.edge
    density = np.where(np.isfinite(edge), edge, 0.0) * np.exp(-0.5 * edge**2) / np.sqrt(2 * np.pi)
    return np.maximum(1.0 - np.diff(density) / column.marginal - column.score**2, 0.0)
