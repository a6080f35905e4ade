"""The order in which the columns of a row are drawn, and which other columns each one looks at."""

from __future__ import annotations

import numpy as np

from ...data.discretization.dependence import mutual_information
from ...models.history.columns import GAP, HistoryColumns
from ...models.history.records import Histories
from .constants import FIXED


def take_subjects(histories: Histories, n_rows: int, seed: int) -> np.ndarray:
    """Some subjects, drawn at random, with about ``n_rows`` rows together: ascending numbers."""
    length = np.diff(histories.start)
    chosen = np.random.default_rng([seed, 1]).permutation(len(length))
    return np.sort(chosen[: 1 + np.searchsorted(np.cumsum(length[chosen]), n_rows)])


def order_rows(columns: HistoryColumns, histories: Histories) -> list[int]:
    """Numbers of the row variables in the order in which they are to be drawn.

    The time since the row before comes first. Columns of levels that mostly stay follow, those that stay most often
    first, because what comes after them then keeps to them. The others follow in the order in which a maximum spanning
    tree of mutual information (Prim 1957) reaches them from these, or from the column that the others say most about.
    """
    d = len(columns.rows)
    stays = np.array([stay_share(histories, j) for j in range(d)])
    is_gap = np.array([variable.source == GAP for variable in columns.rows])
    levels = np.array([variable.coding.column.is_categorical for variable in columns.rows])
    steady = levels & (stays >= FIXED.steady_share) & ~is_gap
    placed = np.flatnonzero(is_gap).tolist() + sorted(np.flatnonzero(steady).tolist(), key=lambda j: -stays[j])
    information = row_information(histories)
    information[is_gap] = information[:, is_gap] = 0.0
    rest = [j for j in range(d) if j not in placed]
    while rest:
        hubs = [j for j in placed if not is_gap[j]]
        reach = information[np.ix_(rest, hubs)].max(axis=1) if hubs else information[np.ix_(rest, rest)].sum(axis=1)
        placed.append(rest.pop(int(np.argmax(reach))))
    return placed


def stay_share(histories: Histories, j: int) -> float:
    """Share of rows after the first in which a column has the code of the row before."""
    code = histories.code[:, j]
    later = np.ones(len(code), dtype=bool)
    later[histories.start[:-1]] = False
    same = np.concatenate([[False], code[1:] == code[:-1]])
    return float(same[later].mean()) if later.any() else 0.0


def row_information(histories: Histories) -> np.ndarray:
    """Mutual information of each two columns of a row, (d, d), from classes of codes; 0 on the diagonal."""
    classes = np.minimum(histories.code // FIXED.codes_a_class, FIXED.classes - 1).astype(np.int32)
    found = mutual_information(classes, np.full(classes.shape[1], FIXED.classes))
    np.fill_diagonal(found, 0.0)
    return found


def others_of(columns: HistoryColumns, histories: Histories) -> list[list[int]]:
    """For each column of a row the other columns that its contexts have: the most informative ones, ascending."""
    d = len(columns.rows)
    if d - 1 <= FIXED.others:
        return [[i for i in range(d) if i != j] for j in range(d)]
    ranked = np.argsort(-row_information(histories), axis=1, kind="stable")
    return [sorted([i for i in ranked[j].tolist() if i != j][: FIXED.others]) for j in range(d)]
