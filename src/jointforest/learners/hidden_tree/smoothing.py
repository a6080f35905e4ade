"""Tables of a hidden tree from counts of rows: what is added so that small counts do not mislead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...models.hidden_tree.tables import TreeTables
from ...runtime.threads import Run, of_finite, one_by_one
from .constants import FIXED
from .start import near_states
from .structure import CodeColumn


class Smoothing(NamedTuple):
    """Rows added to the counts of each state.

    A state whose rows all have the same code gets nothing. A state whose rows have many codes probably has further
    codes that no row has shown yet (Witten and Bell 1991). So the rows added grow with the effective number of codes
    of the state, less one: the number of equally frequent codes that would be as diverse.

    Attributes
    ----------
    transition : float
        Rows for each further code, in the proportions of the child's states.
    normal : float
        Rows of the state's own normal on the scale of normal scores, times its part of rows outside point masses.
    marginal : float
        Rows for each further code, in the proportions of the column's marginal.
    extra : float
        Rows in the proportions of the child's states, whatever the number of codes.
    near : float
        Rows of transitions by the state's own normal over the child's states (`near_states`), where the child's
        column is of numbers.
    point_mass : float
        A code with a larger part of the rows that exceeds the codes beside it is a point mass, such as 40 hours a week.
        No normal blurs it with its neighbours.
    wider : float
        Each state's normal has a row more, of so many times the variance within states.
    """

    transition: float = 0.02
    normal: float = 30.0
    marginal: float = 0.01
    extra: float = 0.0
    near: float = 0.0
    point_mass: float = FIXED.point_mass
    wider: float = 1.0


class Counts(NamedTuple):
    """Expected numbers of rows.

    Attributes
    ----------
    transition : list of m arrays (H_parent, H_k)
    emission : list of m arrays (H_k, K)
    blank : list of m arrays (H_k,)
        Of missing cells.
    """

    transition: list[np.ndarray]
    emission: list[np.ndarray]
    blank: list[np.ndarray]


def count_states(states: np.ndarray, codes: np.ndarray, order: np.ndarray, parent: np.ndarray, n_codes: np.ndarray,
                 weight: np.ndarray | None) -> Counts:  # fmt: skip
    """Counts of rows whose states (n, d) are known, float32."""
    size = states.max(axis=0) + 1
    transition, emission, blank = [], [], []
    for j, above in zip(order.tolist(), parent.tolist(), strict=True):
        H, K = int(size[j]), int(n_codes[j])
        up, wide = (states[:, order[above]], int(size[order[above]])) if above >= 0 else (0 * states[:, j], 1)
        pair = np.bincount(up * H + states[:, j], weights=weight, minlength=wide * H)
        cell = np.bincount(states[:, j] * (K + 1) + codes[:, j], weights=weight, minlength=H * (K + 1))
        transition.append(pair.reshape(wide, H).astype(np.float32))
        cell = cell.reshape(H, K + 1).astype(np.float32)
        emission.append(np.ascontiguousarray(cell[:, :K]))
        blank.append(cell[:, K].copy())
    return Counts(transition, emission, blank)


def tree_of(
    counts: Counts,
    order: np.ndarray,
    parent: np.ndarray,
    columns: tuple[CodeColumn, ...],
    smoothing: Smoothing,
    normals: Normals | None = None,
    run: Run = one_by_one,
) -> TreeTables:
    """The tree whose tables are proportional to counts and what is added; ``normals`` may be of earlier counts."""
    of = normals_of(counts, order, parent, columns, smoothing) if normals is None else normals

    def one(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        cells = counts.emission[k]
        return (
            _transition(counts.transition[k], smoothing, of.over_states[k]),
            _emission(cells, counts.blank[k], columns[order[k]], smoothing, of.over_codes[k]),
            _blank(counts.blank[k], cells.sum(axis=1), smoothing),
        )

    transition, emission, blank = zip(*run(one, [(k,) for k in range(len(order))]), strict=True)
    return TreeTables(order, parent, transition, emission, blank)


class Normals(NamedTuple):
    """Normals of states, for columns of numbers that are smooth; None for others, and where none are added.

    Attributes
    ----------
    over_codes : list of m arrays (H_k, K)
        `own_normals`.
    over_states : list of m arrays (H_parent, H_k)
        `near_states`.
    """

    over_codes: list[np.ndarray | None]
    over_states: list[np.ndarray | None]


def normals_of(
    counts: Counts, order: np.ndarray, parent: np.ndarray, columns: tuple[CodeColumn, ...], smoothing: Smoothing
) -> Normals:
    """The normals that `smoothing` asks for."""
    found = Normals([None] * len(order), [None] * len(order))
    for k, j in enumerate(order.tolist()):
        if is_smooth(columns[j], smoothing):
            if smoothing.normal > 0.0:
                found.over_codes[k] = own_normals(counts.emission[k], columns[j], smoothing)
            if smoothing.near > 0.0 and parent[k] >= 0:
                found.over_states[k] = near_states(counts.transition[k], counts.emission[k], columns[j])
    return found


def _blank(lost: np.ndarray, known: np.ndarray, smoothing: Smoothing) -> np.ndarray:
    """Share of missing cells by state, (H,), towards the column's own where rows are few."""
    share = lost.sum() / max(float(lost.sum() + known.sum()), 1e-12)
    added = np.float32(FIXED.least_rows if smoothing.marginal > 0.0 else 1e-9)
    return (lost + added * np.float32(share)) / (lost + known + added)


def _transition(count: np.ndarray, smoothing: Smoothing, near: np.ndarray | None = None) -> np.ndarray:
    share = np.einsum("ij->j", count) + np.float32(1e-3)
    least = FIXED.least_rows if smoothing.transition > 0.0 else 0.0
    rows = smoothing.transition * _other_ways(count) + np.float32(smoothing.extra + least)
    table = rows * (share / share.sum(dtype=np.float64)).astype(count.dtype)
    table += count
    if near is not None:
        table += np.float32(smoothing.near) * near
    return _to_one(table)


def _to_one(table: np.ndarray) -> np.ndarray:
    """The table, changed in place so that its rows sum to 1."""
    table *= 1.0 / table.sum(axis=1, keepdims=True)
    return table


def _other_ways(count: np.ndarray) -> np.ndarray:
    """Effective number of next states of each state (the inverse of Simpson's index) minus one, (H, 1)."""
    total = count.sum(axis=1) + np.float32(1e-9)
    square = np.einsum("ij,ij->i", count, count) + np.float32(1e-18)
    return np.maximum(total * (total / square) - 1.0, 0.0)[:, None]


def _emission(
    count: np.ndarray, lost: np.ndarray, column: CodeColumn, smoothing: Smoothing, normals: np.ndarray | None
) -> np.ndarray:
    rows = smoothing.marginal * _other_ways(count) + np.float32(FIXED.least_rows if smoothing.marginal > 0.0 else 0.0)
    normal = np.float32(smoothing.normal)
    if smoothing.marginal > 0.0:
        known = count.sum(axis=1)
        unlike = _unlike_the_known(known, lost)
        rows = rows + unlike[:, None]
        normal = normal * (known / (known + unlike + np.float32(1e-9)))[:, None]  # a normal of what is known
    table = rows * column.marginal.astype(count.dtype)
    table += count
    if normals is not None:
        table += normal * normals
    return _to_one(table)


def _unlike_the_known(known: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Rows of each state, (H,), whose missing cell is not to be taken for one of the few that the state knows.

    A state of rows that miss the cell has a few rows that do not; what these have says little of the others, whose cell
    counts as the column's marginal. A state that misses cells no more often than others has none.
    """
    usual = lost.sum() / max(float(known.sum()), 1e-12)
    more = np.maximum(lost - np.float32(FIXED.usual_missing * usual) * known, 0.0)
    return np.asarray(more * more / (more + np.float32(FIXED.few_known) * known + np.float32(1e-9)))


def is_smooth(column: CodeColumn, smoothing: Smoothing) -> bool:
    """Whether an ordered column has codes that are no point masses."""
    return column.is_ordered and int(np.count_nonzero(_is_light(column, smoothing))) > 1


def _is_light(column: CodeColumn, smoothing: Smoothing) -> np.ndarray:
    """Whether a code is possible and no point mass, bool (K,)."""
    share = column.marginal
    is_point_mass = (share > smoothing.point_mass) & (share > FIXED.point_mass_above * column.around)
    return ~is_point_mass & (share > 0.0)


@of_finite
def own_normals(count: np.ndarray, column: CodeColumn, smoothing: Smoothing) -> np.ndarray:
    """Each state's normal, fitted to normal scores, over the codes that are no point masses, times their share, (H, K).

    Little is known of small states.
    """
    from scipy.special import ndtr

    light = _is_light(column, smoothing).astype(count.dtype)
    score = column.score.astype(count.dtype) * light
    all_rows = count.sum(axis=1) + np.float32(1e-3)
    rows = count @ light + np.float32(1e-3)
    mean = count @ score / rows
    square = count @ score**2 / rows
    inside = (_spread_inside(column) * light).astype(count.dtype)
    variance = np.maximum(square - mean**2, 0.0) + count @ inside / rows
    wide = smoothing.wider * float((rows * variance).sum() / rows.sum())
    variance = (rows * variance + np.float32(wide)) / (rows + 1.0) + 1e-4
    at = (column.edge[None, 1:-1].astype(np.float32) - mean[:, None]) / np.sqrt(variance)[:, None]
    below = ndtr(at)
    whole = np.empty_like(count)
    whole[:, 0] = below[:, 0]
    np.subtract(below[:, 1:], below[:, :-1], out=whole[:, 1:-1])
    whole[:, -1] = 1.0 - below[:, -1]
    whole *= light
    return whole * (rows / all_rows / (whole.sum(axis=1) + np.float32(1e-9)))[:, None]


def _spread_inside(column: CodeColumn) -> np.ndarray:
    """Variance of a standard normal within each code's interval, (K,)."""
    edge = column.edge
    density = np.where(np.isfinite(edge), edge, 0.0) * np.exp(-0.5 * edge**2) / np.sqrt(2 * np.pi)
    some = column.marginal > 0
    return np.maximum(1.0 - np.diff(density) / np.where(some, column.marginal, 1.0) - column.score**2, 0.0) * some
