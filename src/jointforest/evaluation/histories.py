"""How true are drawn histories to those of a table: accuracy of ten-bin distributions, and two-sample tests."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from ..cards import text_html
from .columns_and_pairs import TableCells, total_variation
from .two_sample_test import ToldApart, told_apart

_N_BINS = 10
"""Bins of a column: equal shares of the table's rows, or its most frequent levels."""
_MOST_SETS = 500
"""Pairs, and triples, of columns that are compared; of more so many are drawn."""
NO_ROW = _N_BINS + 3
"""Bin of a row that is not there."""


class HistoryCells(NamedTuple):
    """The cells of N rows of n subjects.

    cells : Cells. Of all rows, subject after subject in the order of time.
    start : int64 array (n + 1,). Rows ``start[i]:start[i + 1]`` are those of subject i.
    """

    cells: TableCells
    start: np.ndarray

    @property
    def length(self) -> np.ndarray:
        """Number of rows of each subject, (n,)."""
        return np.diff(self.start)


@dataclass(frozen=True)
class HistoryAccuracy:
    """How alike the histories of two tables are: means of 1 - total variation distance.

    One random row of each subject is taken, with the next one. Columns of numbers have ten bins of equal shares,
    others their ten most frequent levels; missing cells are a bin. The number of rows of the subject is a column, too.

    columns : float. Single columns.
    pairs : float. Pairs of columns of the row, and each column with its own value in the next row.
    next_row : float. The latter alone.
    triples : float. Triples of columns of the row.
    distinct : float. Number of distinct bins of a column within a subject.
    """

    columns: float
    pairs: float
    next_row: float
    triples: float
    distinct: float


@dataclass(frozen=True)
class HistoryFidelity:
    """The result of `HistoryJoint.fidelity`; it prints as a table.

    drawn : HistoryAccuracy. Of drawn histories, against the table.
    held_out : HistoryAccuracy or None. Of held-out histories, against the table: what the sampling of subjects alone
        costs, if there are as many.
    told_apart_rows : ToldApart. Two-sample test of two consecutive rows: drawn ones beside held-out ones, or the
        table's.
    told_apart_subjects : ToldApart. The same of summaries of each subject: number of rows, first, last, mean, standard
        deviation, least, greatest, distinct values and changes of each column.
    n_subjects : int. Drawn, as many as the table has.
    against : {"held-out", "table"}. Which subjects the classifiers compare with drawn ones.
    """

    drawn: HistoryAccuracy
    held_out: HistoryAccuracy | None
    told_apart_rows: ToldApart
    told_apart_subjects: ToldApart
    n_subjects: int
    against: str

    def __str__(self) -> str:
        lines = [f"{self.n_subjects} drawn subjects beside those of the table:"]
        lines += [f"  {'accuracy of':<20}{'drawn':>8}" + (f"{'held-out':>10}" if self.held_out else "")]
        for name in (field.name for field in fields(HistoryAccuracy)):
            other = f"{getattr(self.held_out, name):10.4f}" if self.held_out else ""
            lines.append(f"  {name.replace('_', ' '):<20}{getattr(self.drawn, name):8.4f}{other}")
        others = "held-out subjects" if self.against == "held-out" else "subjects of the table"
        lines.append(f"classifier two-sample test of drawn and {others}, score (1 is best):")
        for what, test in (("two rows", self.told_apart_rows), ("summaries", self.told_apart_subjects)):
            most = ", ".join(list(test.columns)[:3])
            lines.append(f"  {what:<20}{test.score:8.4f}  {test.classifier}; used most: {most}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return text_html(str(self))


def history_fidelity(
    table: HistoryCells, drawn: HistoryCells, held_out: HistoryCells | None, seed: int
) -> HistoryFidelity:
    """All figures of drawn histories beside those of a table, and held-out ones."""
    other = table if held_out is None else held_out
    return HistoryFidelity(
        drawn=accuracy(table, drawn, seed),
        held_out=None if held_out is None else accuracy(table, held_out, seed),
        told_apart_rows=told_apart(two_rows(other, seed), two_rows(drawn, seed), seed),
        told_apart_subjects=told_apart(summaries(other), summaries(drawn), seed),
        n_subjects=len(drawn.length),
        against="table" if held_out is None else "held-out",
    )


# ---- Accuracy.


def accuracy(table: HistoryCells, other: HistoryCells, seed: int) -> HistoryAccuracy:
    """How alike the histories of two tables are; the first one has the bins."""
    edges = _ends_or_levels(table.cells)
    one, two = (_drawn_rows(which, _bins_of_cells(which.cells, edges), seed) for which in (table, other))
    d = one.now.shape[1]
    rng = np.random.default_rng([seed, 1])

    def alike(size: int) -> list[float]:
        sets = list(itertools.combinations(range(d), size)) if d <= 60 else _some_sets(d, size, rng)
        chosen = (
            sets if len(sets) <= _MOST_SETS else [sets[k] for k in rng.choice(len(sets), _MOST_SETS, replace=False)]
        )
        return [_agreement(_pairs_of_columns(one.now, c), _pairs_of_columns(two.now, c)) for c in chosen]

    follow = [
        _agreement(one.now[:, j] * 16 + one.after[:, j], two.now[:, j] * 16 + two.after[:, j]) for j in range(d - 1)
    ]
    distinct = [_agreement(one.distinct[:, j], two.distinct[:, j]) for j in range(d - 1)]
    figures = alike(1), alike(2) + follow, follow, alike(3), distinct
    return HistoryAccuracy(*(float(np.mean(figure)) if figure else 1.0 for figure in figures))


class _Drawn(NamedTuple):
    """Bins of one row of each subject with its number of rows, of the next row, and distinct bins of the subject."""

    now: np.ndarray
    after: np.ndarray
    distinct: np.ndarray


def _ends_or_levels(cells: TableCells) -> list[np.ndarray]:
    """Of each column the ends of its bins, or its most frequent levels."""
    found = []
    for j in range(cells.X.shape[1]):
        x = cells.X[:, j]
        if cells.is_numeric(j):
            known = x[~np.isnan(x)]
            share = np.arange(1, _N_BINS) / _N_BINS
            found.append(np.unique(np.quantile(known, share, method="closest_observation")) if len(known) else known)
        else:
            counts = np.bincount(x[x < cells.n_levels[j] - 1].astype(np.intp), minlength=int(cells.n_levels[j]))
            found.append(np.argsort(-counts, kind="stable")[:_N_BINS])
    return found


def _bins_of_cells(cells: TableCells, edges: list[np.ndarray]) -> np.ndarray:
    """Bin of each cell, 0 where it is missing; int64 (N, d)."""
    found = np.zeros(cells.X.shape, dtype=np.int64)
    for j, of in enumerate(edges):
        x = cells.X[:, j]
        if cells.is_numeric(j):
            found[:, j] = np.where(np.isnan(x), 0, np.searchsorted(of, x) + 1)
        else:
            bin_of = np.full(int(cells.n_levels[j]), _N_BINS + 2)
            bin_of[of] = np.arange(1, len(of) + 1)
            bin_of[-1] = 0
            found[:, j] = bin_of[x.astype(np.intp)]
    return found


def _drawn_rows(histories: HistoryCells, binned: np.ndarray, seed: int) -> _Drawn:
    """A random row of each subject that another one follows, if it has two rows."""
    length, first = histories.length, histories.start[:-1]
    row = first + ((length - 1) * np.random.default_rng(seed).random(len(length))).astype(np.int64)
    after = np.where((length > 1)[:, None], binned[np.minimum(row + 1, len(binned) - 1)], NO_ROW)
    distinct = np.column_stack([_count_distinct(binned[:, j], histories.start) for j in range(binned.shape[1])])
    return _Drawn(np.column_stack([binned[row], length]), after, distinct)


def _count_distinct(x: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Number of distinct values of each subject, (n,)."""
    subject = np.repeat(np.arange(len(start) - 1), np.diff(start))
    order = np.lexsort((x, subject))
    ordered, of = x[order], subject[order]
    new = np.append(True, (ordered[1:] != ordered[:-1]) | (of[1:] != of[:-1]))
    return np.bincount(of[new], minlength=len(start) - 1)


def _some_sets(d: int, size: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Random sets of columns."""
    return [tuple(rng.choice(d, size, replace=False).tolist()) for _ in range(_MOST_SETS)]


def _pairs_of_columns(x: np.ndarray, chosen: tuple[int, ...]) -> np.ndarray:
    """Columns as one column of numbers."""
    number = x[:, chosen[0]].copy()
    for j in chosen[1:]:
        number = number * 100_000 + x[:, j]
    return number


def _agreement(a: np.ndarray, b: np.ndarray) -> float:
    """1 - total variation distance of two samples of whole numbers."""
    return 1.0 - total_variation(a, b, int(max(a.max(), b.max())) + 1)


# ---- What classifiers see.


def two_rows(histories: HistoryCells, seed: int) -> TableCells:
    """A random row of each subject and the next one, whether they are equal, and by how much numbers differ."""
    cells, length = histories.cells, histories.length
    several = np.flatnonzero(length > 1)
    place = (np.random.default_rng(seed).random(len(several)) * (length[several] - 1)).astype(np.int64)
    row = histories.start[several] + place
    a, b = cells.X[row], cells.X[row + 1]
    numeric = np.flatnonzero(cells.n_levels == 0)
    same = ((a == b) | (np.isnan(a) & np.isnan(b))).astype(np.float64)
    changes = b[:, numeric] - a[:, numeric]
    names = (
        *cells.names,
        *(f"next {name}" for name in cells.names),
        *(f"same {name}" for name in cells.names),
        *(f"change of {cells.names[j]}" for j in numeric),
        "place",
    )
    none = np.zeros(len(cells.names) + len(numeric) + 1, dtype=np.int64)
    n_levels = np.concatenate([cells.n_levels, cells.n_levels, none])
    return TableCells(names, n_levels, np.column_stack([a, b, same, changes, place]))


def summaries(histories: HistoryCells) -> TableCells:
    """Summaries of each subject: see `HistoryFidelity`."""
    cells, start, length = histories.cells, histories.start, histories.length
    has = np.flatnonzero(length > 0)
    first, last = start[:-1][has], start[1:][has] - 1
    subject = np.repeat(np.arange(len(length)), length)
    parts: list[np.ndarray] = [length[has].astype(np.float64)]
    names, n_levels = ["number of rows"], [0]
    for j, name in enumerate(cells.names):
        x, levels = cells.X[:, j], int(cells.n_levels[j])
        _, code = np.unique(x, return_inverse=True)
        changed = np.append(False, code[1:] != code[:-1]) & (np.append(-1, subject[:-1]) == subject)
        found = {
            "first": (x[first], levels),
            "last": (x[last], levels),
            "distinct": (_count_distinct(code, start)[has], 0),
            "changes": (np.bincount(subject, changed, len(length))[has], 0),
        }
        if not levels:
            known = ~np.isnan(x)
            n = np.bincount(subject, known, len(length))
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = np.bincount(subject, np.where(known, x, 0.0), len(length)) / n
                square = np.bincount(subject, np.where(known, (x - mean[subject]) ** 2, 0.0), len(length)) / n
            found |= {"mean": (mean[has], 0), "spread": (np.sqrt(square)[has], 0)}
            for what, least in (("least", np.fmin), ("greatest", np.fmax)):
                found[what] = (least.reduceat(x, first), 0)
        for what, (values, of) in found.items():
            names.append(f"{what} {name}")
            parts.append(values)
            n_levels.append(of)
    return TableCells(tuple(names), np.array(n_levels, dtype=np.int64), np.column_stack(parts))
