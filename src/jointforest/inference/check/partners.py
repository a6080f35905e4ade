"""Near-functions: predictions of a cell from other columns, by counts in the other rows."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from ...data.rules.contradictions import combined, numbers_of_distinct

PRIOR_ROWS = 0.5  # pseudo-rows with the shares of the whole column, which are added to each group
PRIOR_OF_FUNCTIONS = 0.005  # the same of near-functions
_TABLE = 100_000  # most pairs of a group and a value that are counted in a table, which is quicker to read
_NEW = 0.5  # share of new values in the pseudo-rows
_ROWS = 5_000  # most rows by which partners are chosen
_EXPLAINED = 0.1  # an event is explained by a column that explains more than this share of its entropy
_PARTNERS = 4  # most single columns that are partners of a column
_NEAR = 0.8  # least accuracy of a near-function, beyond chance
_SOME = 0.3  # the same, where the share of wrong cells can explain its exceptions
_PARTS = 16  # parts of about equal numbers of rows, of groups that are beside each other


def joined_partners(codes: Sequence[np.ndarray]) -> np.ndarray:
    """Group of each row by its values in several columns, (n,); -1 where one of them is missing."""
    known = np.all([code >= 0 for code in codes], axis=0)
    group = np.full(len(known), -1)
    if known.any():
        group[known] = combined([code[known] for code in codes])
    return group


class Counts:
    """Weighted counts of the values in each group of rows. Answers about a row exclude the row itself.

    group, item : int arrays (n,). The group and the value of each row; -1 where missing.
    weight : float array (n,). Weight of each row's cell; 0 where it is missing.
    key, count : int array (P,), float array (P,). The pairs of a group and a value, ``group * n_values + item``,
        ascending, and their weights.
    total, of_item : float arrays (G,), (n_values,). Weight of each group, and of each value. The last group is empty,
        for rows without a group.
    top : int array (G, 2). The two most frequent values of each group; -1 where there are fewer.
    """

    def __init__(
        self, group: np.ndarray, item: np.ndarray, n_values: int, weight: np.ndarray, prior: float = PRIOR_ROWS
    ) -> None:
        self._prior = prior
        self.group, self.item, self.n_values = group, item, max(n_values, 1)
        self.weight = np.where(item >= 0, weight, 0.0)
        has = (group >= 0) & (item >= 0)
        key = group[has] * self.n_values + item[has]
        place = numbers_of_distinct(key)
        self.key = np.empty(int(place.max(initial=-1)) + 1, np.int64)
        self.key[place] = key
        self.count = np.bincount(place, weight[has], len(self.key))
        self.total = np.bincount(group[has], weight[has], int(group.max(initial=-1)) + 2)
        self.of_item = np.bincount(item[item >= 0], weight[item >= 0], self.n_values)
        by = np.lexsort((self.count, self.key // self.n_values))
        of = (self.key // self.n_values)[by]
        self.top = np.full((len(self.total), 2), -1)
        for back in (0, 1):  # the most frequent value of each group, and the next
            last = np.flatnonzero(np.append(of[1:] != of[:-1], True)) if len(of) else of
            self.top[of[last], back] = self.key[by[last]] % self.n_values
            by, of = np.delete(by, last), np.delete(of, last)

    def take(self, rows: np.ndarray) -> Counts:
        """The same counts, for answers about some of the rows only."""
        few = copy(self)
        few.group, few.item, few.weight = self.group[rows], self.item[rows], self.weight[rows]
        return few

    def at(self, value: np.ndarray, new: np.ndarray | float = 0.0) -> np.ndarray:
        """p(value | the row's group) of values (n, C), by counts in the other rows, (n, C); 0 for value -1. ``new`` (n,
        C) is the probability of a value if no other row has it."""
        own = (value == self.item[:, None]) * self.weight[:, None]
        mine = self.weight[:, None]
        marginal = np.where(value >= 0, self.of_item[np.minimum(value, self.n_values - 1)] - own, 0.0)
        marginal = np.maximum(marginal, 0.0) / np.maximum(self.of_item.sum() - mine, 1e-9)
        marginal = (1.0 - _NEW) * marginal + _NEW * new
        count, total = self.tally(value)
        return (count + self._prior * marginal) / (total + self._prior)

    def tally(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weight of values (n, C) in the other rows of each row's group, and of all values (n, 1)."""
        wanted = self.group[:, None] * self.n_values + value
        has = (self.group[:, None] >= 0) & (value >= 0)
        if len(self.total) * self.n_values <= _TABLE:
            table = np.zeros(len(self.total) * self.n_values)
            table[self.key] = self.count
            count = table[np.where(has, wanted, -1)]  # the last group is empty
        else:
            place = np.minimum(np.searchsorted(self.key, wanted), max(len(self.key) - 1, 0))
            has &= self.key[place] == wanted if len(self.key) else False
            count = self.count[place] if len(self.key) else np.zeros(wanted.shape)
        own = np.where(value == self.item[:, None], self.weight[:, None], 0.0)
        count = np.where(has, count - own, 0.0)
        total = np.where(self.group >= 0, self.total[self.group] - self.weight, 0.0)[:, None]
        return np.maximum(count, 0.0), np.maximum(total, 0.0)

    def proposed(self) -> np.ndarray:
        """The most frequent values of each row's group, (n, 2); -1 if there are fewer."""
        return self.top[self.group]

    def guess(self) -> np.ndarray:
        """The most frequent value of the other rows of each row's group, (n,)."""
        best = self.proposed()
        share = np.column_stack([self.at(best[:, k : k + 1])[:, 0] for k in (0, 1)])
        return np.asarray(best[np.arange(len(best)), share.argmax(axis=1)])


def group_like(group: np.ndarray, codes: Sequence[np.ndarray], of: Sequence[int]) -> np.ndarray:
    """Group (1,) of the rows whose values in several columns are ``of``; -1 if there is none."""
    same = np.all([code == value for code, value in zip(codes, of, strict=True)], axis=0)
    return group[[same.argmax()]] if same.any() else np.array([-1])


def explains(groups: Sequence[np.ndarray], event: np.ndarray) -> bool:
    """Whether one of some columns tells in which rows an event (n,), 0 or 1, happens; ``groups`` are of at least 0."""
    p = event.mean() if len(event) else 0.0
    if not 0.0 < p < 1.0:
        return True
    entropy = -(p * np.log(p) + (1.0 - p) * np.log(1.0 - p))
    with np.errstate(divide="ignore"):  # a row without another one of its group gains nothing
        gains = [np.log(Counts(g, event, 2, np.ones(len(event))).at(event[:, None])).mean() + entropy for g in groups]
    return max(gains, default=0.0) > _EXPLAINED * entropy


def codes_of_partner(item: np.ndarray, code: np.ndarray, n_values: int) -> np.ndarray:
    """The cells of a column for use as a partner, (n,): its values, or its codes in the joint."""
    # Many values would make small groups, so codes replace them, unless nearly all cells are distinct.
    return item if n_values <= 1_000 or n_values > 0.9 * len(item) else np.where(item >= 0, code[item], -1)


class Partners:
    """The columns, and at most one pair of columns, that predict one column best.

    columns : list of tuple of int. The one or two columns of each partner, the best partner first.
    group : list of int arrays (n,). The groups of rows with the same values in these columns.
    accuracy : float. For the best partner: how often the most frequent value of the other rows of a group is right,
        beyond chance.
    exceptions : float. For the best partner: how often that value is not right.
    is_mixed : bool. Whether the exceptions of the best partner are in some groups rather than anywhere, as where a
        number and a level depend on each other. Then they are not wrong cells of a function.
    """

    def __init__(self, j: int, item: np.ndarray, n_values: int, code: Sequence[np.ndarray]) -> None:
        n = len(item)
        rows = np.arange(n) if n <= _ROWS else np.arange(_ROWS) * n // _ROWS
        self.columns: list[tuple[int, ...]] = []
        self.group: list[np.ndarray] = []
        self.accuracy, self.exceptions, self.is_mixed = 0.0, 1.0, False
        others = [i for i in range(len(code)) if i != j]

        def right(group: np.ndarray) -> float:
            """How often the most frequent value of the other rows of the group is right."""
            counts = Counts(group, item, n_values, np.ones(n)).take(rows)
            known = counts.item >= 0
            many = known & (counts.group >= 0) & (counts.total[counts.group] > 1.0)
            is_common = 2 * many.sum() > known.sum() > 0
            return float((counts.guess() == counts.item)[many].mean()) if is_common else 0.0

        if not (item >= 0).any():
            return
        none = _mean_log_p(np.zeros(n, np.int64), item, n_values, rows)
        single = sorted(((_mean_log_p(code[i], item, n_values, rows), i) for i in others), reverse=True)
        self.columns = [(i,) for of, i in single[:_PARTNERS] if of > none + 1e-3]
        if self.columns and len(others) > 1:
            least, best = single[0]
            pairs = [(best, i) for i in others if i != best]
            double = (_mean_log_p(joined_partners([code[a], code[b]]), item, n_values, rows) for a, b in pairs)
            of, pair = max(zip(double, pairs, strict=True))
            self.columns += [pair] if of > least + 1e-2 else []
        self.group = [joined_partners([code[i] for i in columns]) for columns in self.columns]
        shares = [right(group) for group in self.group]
        base = np.bincount(item[item >= 0]).max() / (item >= 0).sum()
        beyond = [(share - base) / (1.0 - base) if base < 1.0 else 0.0 for share in shares]
        self.accuracy = max(beyond, default=0.0)
        self.exceptions = 1.0 - max(shares, default=0.0)
        if self.accuracy >= _SOME:
            self.is_mixed = _is_mixed(self.group[int(np.argmax(beyond))][rows], item[rows], n_values)
        if self.is_function(0.05):
            near = [k for k, of in enumerate(beyond) if of >= 0.9 * self.accuracy]
            self.columns, self.group = [self.columns[k] for k in near], [self.group[k] for k in near]

    def is_function(self, wrong: float) -> bool:
        """Whether the best partner is a near-function, if ``wrong`` is the share of wrong cells of the table."""
        few = self.exceptions <= min(2.0 * wrong, 0.05)
        return bool(not self.is_mixed and (self.accuracy >= _NEAR or (few and self.accuracy >= _SOME)))


def _mean_log_p(group: np.ndarray, item: np.ndarray, n_values: int, rows: np.ndarray) -> float:
    """Mean of `Counts.at` of the values of some rows, as logarithms of at least -9.2, without other answers."""
    known = item >= 0
    has = known & (group >= 0)
    of_item = np.bincount(item[known], minlength=n_values)
    total = np.bincount(group[has], minlength=1)
    place = np.full(len(item), -1)
    place[has] = numbers_of_distinct(group[has] * max(n_values, 1) + item[has])
    count = np.bincount(place[has], minlength=1)
    rows = rows[known[rows]]
    if not len(rows):
        return 0.0
    marginal = (1.0 - _NEW) * (of_item[item[rows]] - 1.0) / max(of_item.sum() - 1.0, 1e-9)
    others, all_others = (np.where(has[rows], of[at[rows]] - 1.0, 0.0) for of, at in ((count, place), (total, group)))
    p = (others + PRIOR_ROWS * marginal) / (all_others + PRIOR_ROWS)
    return float(np.log(np.maximum(p, 1e-4)).mean())


def _is_mixed(group: np.ndarray, item: np.ndarray, n_values: int) -> bool:
    """Whether the rows that do not have the most frequent value of the other rows of their group are in some groups, or
    in groups beside each other. Wrong cells would be anywhere."""
    counts = Counts(group, item, n_values, np.ones(len(item)))
    many = (item >= 0) & (group >= 0) & (counts.total[group] > 1.0)
    is_exception = (counts.guess() != item)[many].astype(np.int64)
    beside = np.empty(len(is_exception), np.int64)
    beside[np.argsort(group[many], kind="stable")] = np.arange(len(beside)) * _PARTS // max(len(beside), 1)
    return bool(is_exception.any() and explains([beside, group[many]], is_exception))
