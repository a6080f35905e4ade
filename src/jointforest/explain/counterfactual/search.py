"""Search over sets of columns to change, small sets first."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .candidates import BEST, Columns, every_row, every_value, rows_for
from .problem import Problem, unlike, within

MOST_SETS = 96
"""Sets of one size that are tried, the most promising first, where not all rows can be."""
MOST_ROWS = 20_000
"""Rows of one size that are all tried."""
MORE = 1
"""How many changes more than the least rows may have."""


class Found(NamedTuple):
    """Plausible rows with the wanted outcome.

    Attributes
    ----------
    X : float64 array (n, d)
    is_fewest : bool
        Whether all rows with fewer changes than the first were tried, so that none of these will do.
    """

    X: np.ndarray
    is_fewest: bool


def search(p: Problem, n: int, seed: int) -> Found:
    """Rows with few changes: sets of columns of size 1, 2, ... until n sets without a needless column are found.

    A set that holds a smaller one that did is not tried. Where the rows of a size are too many to try them all, the
    sets are ranked by how near their best subset came to the wanted outcome.
    """
    values = {j: every_value(p.columns[j], float(p.row[j])) for j in p.free}
    free = tuple(j for j in p.free if (found := values[j]) is None or len(found))  # not constant ones
    score: dict[Columns, float] = {}
    minimal: list[frozenset[int]] = []
    best: dict[int, list[float]] = {}
    hits: list[np.ndarray] = []
    complete = is_fewest = True
    for size in range(1, len(free) + 1):
        if len(minimal) >= n or (minimal and size > min(map(len, minimal)) + MORE and _number(p, hits) >= n):
            break
        sets, all_sets = _sets(free, size, minimal, score)
        if not sets:
            break
        rows = every_row(p, sets, values, MOST_ROWS) if all_sets else []
        if rows:
            X, owner = np.vstack(rows), np.repeat(np.arange(len(sets)), [len(one) for one in rows])
        else:
            sets = _most_promising(sets, score)
            X, owner = rows_for(p, sets, values, best, seed + size)
        valid, plausible, nearness = _tried(p, X)
        for i in np.unique(owner[plausible]).tolist():
            score[sets[i]] = float(nearness[plausible & (owner == i)].max())
        if size == 1:
            best = {
                columns[0]: _best(X[owner == i, columns[0]], nearness[owner == i]) for i, columns in enumerate(sets)
            }
        hits.append(X[valid])
        if valid.any() and not minimal:
            is_fewest = complete or bool((p.changed(X[valid]).sum(axis=1) == 1).any())
        minimal = _minimal([*minimal, *(frozenset(np.flatnonzero(one).tolist()) for one in p.changed(X[valid]))])
        complete = complete and bool(rows)
    return Found(np.vstack(hits) if hits else np.empty((0, len(p.row))), is_fewest and bool(minimal))


def _number(p: Problem, hits: list[np.ndarray]) -> int:
    """How many of the rows found are unlike each other."""
    return len(unlike(p, np.vstack(hits)))


def _tried(p: Problem, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which rows (n, d) will do, which are plausible and changed, and how near each is to the outcome, each (n,)."""
    valid, score = np.zeros(len(X), bool), np.full(len(X), -np.inf)
    cells = ~p.changed(X) | (within(p.columns, X) == X)  # draws of tails beyond the range, cells that lack a draw
    X_once, place = np.unique(X, axis=0, return_inverse=True)
    ok = p.plausible(X_once)[0][place.ravel()] & cells.all(axis=1) & p.changed(X).any(axis=1)
    some = np.flatnonzero(ok)
    if len(some):
        judged = p.outcome.judge(X[some])
        valid[some], score[some] = judged.valid, judged.score
    return valid, ok, score


def _sets(
    free: tuple[int, ...], size: int, minimal: list[frozenset[int]], score: dict[Columns, float]
) -> tuple[list[Columns], bool]:
    """Sets of a size that hold none of the minimal ones, and whether these are all; else those above sets tried."""
    few = size == 1 or math.comb(len(free), size) <= MOST_ROWS
    found: Iterable[Columns] = itertools.combinations(free, size) if few else ()
    if not few:
        found = {tuple(sorted({*s, j})) for s in score if len(s) == size - 1 for j in free if j not in s}
    return sorted(s for s in found if not any(m <= set(s) for m in minimal)), few


def _most_promising(sets: list[Columns], score: dict[Columns, float]) -> list[Columns]:
    """At most `MOST_SETS` of them: by the best of the subsets tried that lack one column, then by the other's own."""

    def promise(columns: Columns) -> tuple[float, float]:
        subsets = [(score.get(tuple(k for k in columns if k != j), -np.inf), j) for j in columns]
        top, j = max(subsets)
        return top, score.get((j,), -np.inf)

    return sets if len(sets) <= MOST_SETS else sorted(sets, key=promise, reverse=True)[:MOST_SETS]


def _best(values: np.ndarray, nearness: np.ndarray) -> list[float]:
    """The values (k,) of a column that come nearest to the wanted outcome alone."""
    order = np.argsort(-nearness, kind="stable")
    order = order[nearness[order] > -np.inf]
    return list(dict.fromkeys(values[order].tolist()))[:BEST]


def _minimal(sets: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Those that hold no other."""
    out: list[frozenset[int]] = []
    for one in sorted(set(sets), key=lambda s: (len(s), sorted(s))):
        if one and not any(other <= one for other in out):
            out.append(one)
    return out
