"""Rows to learn from and validation rows, copies of a row on one side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .constants import FIXED


class Fold(NamedTuple):
    """Numbers of the rows to learn from, and of the validation rows, both ascending."""

    learn: np.ndarray
    held: np.ndarray


def split_folds(cells: np.ndarray, rows: int, folds: int, share: float, seed: int) -> list[Fold]:
    """Folds of at most ``rows`` of the rows of cells (n, d): as many as asked for, each row held out once. One fold
    holds out a ``share`` of the rows."""
    # There is none where all rows are equal, as none of them can be held out. Equal rows are on one side, as they may
    # be copies, but for tables of few values or of one column: there cases recur, in new rows too, and held-out rows
    # that equal no learned row would not be like new rows.
    random = np.random.default_rng(seed)
    chosen = pick_rows(cells, rows, seed)
    group = _same(cells[chosen])
    if group.max() == 0:
        return []
    if cells.shape[1] == 1 or _has_few_values(cells[chosen]):
        group = np.arange(len(chosen))
    n_groups = int(group.max()) + 1
    place = _place(group, random)
    if folds == 1:
        sides = [place >= 1.0 - share]
    else:
        fold = (place * min(folds, n_groups)).astype(np.int64)
        sides = [fold == k for k in np.unique(fold).tolist()]
    folded = [_fold(cells, chosen, is_held) for is_held in sides]
    return [fold for fold in folded if len(fold.held)]


def pick_rows(cells: np.ndarray, rows: int, seed: int) -> np.ndarray:
    """Numbers of at most ``rows`` rows of cells (n, d), ascending, and of those that give each column a known cell."""
    if rows >= len(cells):
        return np.arange(len(cells))
    known = ~np.isnan(cells)
    chosen = np.random.default_rng([seed, 1]).permutation(len(cells))[:rows]
    unknown = np.flatnonzero(~known[chosen].any(axis=0))
    return np.union1d(chosen, known[:, unknown].argmax(axis=0))


def _same(cells: np.ndarray) -> np.ndarray:
    """A number for each row, the same for equal rows; 0, 1, ..."""
    words = np.ascontiguousarray(cells + 0.0)  # -0 is 0
    words[np.isnan(words)] = np.nan
    key = words.view([("", words.dtype)] * words.shape[1]).view(f"V{8 * words.shape[1]}").ravel()
    return np.unique(key, return_inverse=True)[1].ravel()


def _has_few_values(cells: np.ndarray) -> bool:
    """Whether each value of each column recurs in many rows, so that equal rows are no copies."""
    return all(len(np.unique(column)) * FIXED.rows_a_value <= len(cells) for column in cells.T)


def _place(group: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Where each row stands, from 0 to below 1, when groups are put in a row in random order: its group's middle."""
    # The largest group is first. It and the last stand at the ends, so that neither side is ever empty.
    count = np.bincount(group)
    order = random.permutation(len(count))
    first = int(np.flatnonzero(order == count.argmax())[0])
    order[[0, first]] = order[[first, 0]]
    before = np.cumsum(count[order]) - count[order]
    place = np.empty(len(count))
    place[order] = (before + 0.5 * count[order]) / len(group)
    place[order[-1]] = np.nextafter(1.0, 0.0)
    place[order[0]] = 0.0
    return place[group]


def _fold(cells: np.ndarray, rows: np.ndarray, is_held: np.ndarray) -> Fold:
    """The fold that holds these rows out, but those that are needed for each column to have a known cell."""
    is_held = is_held.copy()
    known = ~np.isnan(cells[rows])
    for j in np.flatnonzero(~known[~is_held].any(axis=0)).tolist():
        if known[:, j].any() and not known[~is_held, j].any():
            is_held[np.argmax(known[:, j])] = False
    return Fold(rows[~is_held], rows[is_held])


def known_levels(learn: np.ndarray, held: np.ndarray, is_categorical: np.ndarray) -> np.ndarray:
    """Held-out cells (n, d), missing where no row to learn from has the level: all candidates know as little of it."""
    held = held.copy()
    for j in np.flatnonzero(is_categorical).tolist():
        held[~np.isin(held[:, j], learn[:, j]), j] = np.nan
    return held
