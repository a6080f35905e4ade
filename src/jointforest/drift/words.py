"""Changes in sentences: shares and means of the rows of the old and the new table, in the columns' own units."""

from __future__ import annotations

import numpy as np

from ..data.shown_values import cell_in_words, number_text
from ..evaluation.columns_and_pairs import pearson
from .tables import Coded, TwoTables
from .terms import deviance

_NAMED = 3
"""Most levels of a bin that are named."""


def _percent(hits: int, n: int) -> str:
    share = 100.0 * hits / max(n, 1)
    return f"{share:.{1 if share >= 1.0 or not hits else 2}f}% ({hits:,} of {n:,})"


class Words:
    """Writes sentences about two tables."""

    def __init__(self, tables: TwoTables) -> None:
        self._tables = tables
        self._is_new = np.arange(len(tables.X)) >= tables.n_old

    def _part(self, coded: Coded, j: int, code: int) -> str:
        """The rows with a code of a column: a level, a few levels, an interval, or missing cells."""
        column, x = self._tables.schema.columns[j], self._tables.X[coded.codes[:, j] == code, j]
        if code == coded.size[j] - 1:
            return f"{column.name} is missing"
        if column.is_categorical:
            levels, count = np.unique(x, return_counts=True)
            named = [str(cell_in_words(column, level)) for level in levels[np.argsort(-count, kind="stable")]]
            if len(named) > _NAMED:
                return f"{column.name} is one of {len(named)} rare levels"
            return f"{column.name} = {' or '.join(named)}"
        low, high = (cell_in_words(column, end) for end in (x.min(), x.max()))
        return f"{column.name} = {low}" if low == high else f"{column.name} from {low} to {high}"

    def _share(self, hits: np.ndarray, among: np.ndarray) -> str:
        """The shares of rows in both tables, with counts; masks (n,)."""
        old, new = (
            (int(np.count_nonzero(hits & among & side)), int(np.count_nonzero(among & side)))
            for side in (~self._is_new, self._is_new)
        )
        return f"{_percent(*old)} -> {_percent(*new)}"

    def column(self, j: int, contribution: np.ndarray, is_trend: bool) -> str:
        """The change of a column; ``contribution`` (K,) of its codes."""
        if is_trend and not self._tables.schema.columns[j].is_flag:
            return self._mean(j, np.ones(len(self._is_new), bool))
        of, code = self._tables.fine, int(np.argmax(contribution))
        hits = of.codes[:, j] == code
        if code == of.size[j] - 1:
            name = self._tables.schema.columns[j].name
            return f"share of missing cells of {name}: {self._share(hits, np.ones_like(hits))}"
        return f"share of {self._part(of, j, code)}: {self._share(hits, np.ones_like(hits))}"

    def _mean(self, j: int, among: np.ndarray, where: str = "") -> str:
        """The change of the mean of a column of numbers, or of an ordered one its median; among rows of a mask (n,)."""
        column, x = self._tables.schema.columns[j], self._tables.X[:, j]
        known = among & ~np.isnan(x)
        values = [x[known & side] for side in (~self._is_new, self._is_new)]
        counts = " -> ".join(f"{len(of):,}" for of in values)
        what, of = ("median", np.median) if column.is_categorical else ("mean", np.mean)
        if not all(map(len, values)):
            return f"number of known cells of {column.name}{where}: {counts}"
        ends = [float(of(side)) for side in values]
        if column.is_categorical:
            texts = [str(cell_in_words(column, float(np.ceil(end)))) for end in ends]
        else:
            low, high = min(ends), max(ends)
            span = max(high - low, 1e-3 * float(np.std(x[known])))
            texts = [column.text(end) or number_text(column, end, low, low + 10.0 * span, True) for end in ends]
        return f"{what} of {column.name}{where}: {texts[0]} -> {texts[1]} ({counts} cells)"

    def _move(self, j: int, among: np.ndarray) -> float:
        """How clearly the numbers of a column differ between the tables, among rows of a mask (n,): n r^2 of ranks."""
        known = among & ~np.isnan(self._tables.X[:, j])
        pairs = np.column_stack([self._tables.X[known, j], self._is_new[known]])
        return len(pairs) * _rank_correlation(pairs) ** 2

    def pair(self, i: int, j: int, rows: np.ndarray, new: np.ndarray, excess: np.ndarray, is_trend: bool) -> str:
        """The change of columns i and j beyond that of each, from rows, new rows and deviances (I, J)."""
        # Where rows of one level deviate from the sum of both changes, those of others do, too. So the named group has
        # both: an excess, and a change of its own.
        columns, codes = self._tables.schema.columns, self._tables.few.codes
        numeric = [k for k in (i, j) if columns[k].is_ordered and not columns[k].is_flag]
        if is_trend and len(numeric) == 2:
            known = ~np.isnan(self._tables.X[:, [i, j]]).any(1)
            texts = [
                f"{_rank_correlation(self._tables.X[known & side][:, [i, j]]):.2f}".replace("-", "−")
                + f" ({np.count_nonzero(known & side):,})"
                for side in (~self._is_new, self._is_new)
            ]
            return f"rank correlation of {columns[i].name} and {columns[j].name}: {texts[0]} -> {texts[1]} rows"
        if is_trend and numeric:
            (number,) = numeric
            other = j if number == i else i
            moves = [self._move(number, codes[:, other] == code) for code in range(self._tables.few.size[other])]
            code = int(np.argmax(excess.sum(1 if other == i else 0) * moves))
            where = self._part(self._tables.few, other, code)
            return self._mean(number, codes[:, other] == code, f" where {where}")
        if columns[i].is_ordered and not columns[j].is_ordered:  # groups are the rows of a level
            i, j, rows, new, excess = j, i, rows.T, new.T, excess.T
        share = new.sum(1, keepdims=True) / np.maximum(rows.sum(1, keepdims=True), 1.0)
        a, b = np.unravel_index(int(np.argmax(excess * deviance(rows, share, new))), rows.shape)
        among, hits = codes[:, i] == a, codes[:, j] == b
        where = self._part(self._tables.few, i, int(a))
        return f"share of {self._part(self._tables.few, j, int(b))} where {where}: {self._share(hits, among)}"

    def region(self, columns: tuple[int, int], cell: tuple[int, int], expected: float) -> str:
        """The change of the share of a cell of two columns, with what the changes of each would give."""
        few, (i, j), (a, b) = self._tables.few, columns, cell
        hits = (few.codes[:, i] == a) & (few.codes[:, j] == b)
        n_new = int(self._is_new.sum())
        return (
            f"share of {self._part(few, i, a)} and {self._part(few, j, b)}: {self._share(hits, np.ones_like(hits))}, "
            f"{100.0 * expected / n_new:.1f}% expected"
        )


def _rank_correlation(x: np.ndarray) -> float:
    """Spearman's correlation of two columns (n, 2); 0 where one of them never changes."""
    ranks = np.empty(x.shape)
    for k in (0, 1):
        _, place, count = np.unique(x[:, k], return_inverse=True, return_counts=True)
        ranks[:, k] = (np.cumsum(count) - 0.5 * count)[place]
    return float(np.nan_to_num(pearson(*ranks.T)))
