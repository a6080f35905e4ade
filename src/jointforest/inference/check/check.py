"""The probability that each cell is wrong, and its most probable true value, by expectation maximisation on the table.

A cell of column j contains its true value (the *truth*) with probability 1 - e_j, and otherwise an error of some kind
(see `columns`; for swaps with the neighbouring column, `swaps`). A joint that has learned the table predicts its errors
too, which are taken out. Four distributions predict the truth, and their weighted sum is its prior: the joint given all
other cells, each of which may be wrong; near-functions, counted in the other rows; the shares of values in the column;
and a distribution of new values. The weights, e_j and the shares of kinds of errors are learned from the table. If
several rows describe one entity, their votes determine its values instead (see `find_key`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from .columns import RANDOM, RULE, SWAP, TYPING, CheckedColumn
from .partners import (
    PRIOR_OF_FUNCTIONS,
    PRIOR_ROWS,
    Counts,
    Partners,
    codes_of_partner,
    explains,
    group_like,
    joined_partners,
)
from .relations import Broken, Relations
from .rules import BrokenRules, RowsOfRule
from .swaps import Swaps
from .texts import WAYS

# ---- Tables in which several rows, from different sources, describe one entity: votes for its true values.


_AGREE = 0.4  # least agreement within entities, beyond chance, of a column that supports a possible key
_COLUMNS = 2  # least number of such columns
_VOTE_ROUNDS = 16  # rounds of expectation maximisation of the votes


def agreement(group: np.ndarray, item: np.ndarray, n_values: int) -> float:
    """Agreement of the cells within groups beyond chance: 0 if they agree as all rows do, 1 if they always agree."""
    known = (item >= 0) & (group >= 0)
    if not known.any():
        return 0.0
    counts = Counts(group, item, n_values, np.ones(len(item)))
    same = float((counts.proposed()[known, 0] == item[known]).mean())
    base = float(counts.of_item.max() / counts.of_item.sum())
    return (same - base) / (1.0 - base) if base < 1.0 else 0.0


def source_of(key: np.ndarray, code: Sequence[np.ndarray], k: int) -> int | None:
    """The column that names the source of each row, or None: nearly no two rows of one entity have the same source."""
    found = []
    for i, other in enumerate(code):
        if i == k or not (other >= 0).all() or len(np.unique(other)) > len(other) / 3:
            continue
        distinct = len(np.unique(joined_partners([key, other])))
        if distinct >= 0.99 * len(other):
            found.append((len(np.unique(other)), i))
    return min(found)[1] if found else None


def find_key(
    item: Sequence[np.ndarray], n_values: Sequence[int], code: Sequence[np.ndarray], free: Sequence[int]
) -> int | None:
    """The column that names entities which several sources describe; None if there is none. ``free`` are the columns
    that no other column determines."""
    # Only these count as evidence for a key, because agreement in the others may follow from a near-function.
    n, best = len(item[0]) if item else 0, (0.0, -1)
    for k in range(len(item)):
        groups = len(np.unique(code[k][code[k] >= 0]))
        if groups < 10 or not 3.0 <= n / groups <= 100.0 or source_of(code[k], code, k) is None:
            continue
        agreed = [agreement(code[k], item[j], n_values[j]) for j in free if j not in (k, source_of(code[k], code, k))]
        high = [a for a in agreed if a >= _AGREE]
        if len(high) >= max(_COLUMNS, 0.5 * len(agreed)):
            best = max(best, (sum(high), k))
    return best[1] if best[1] >= 0 else None


class Votes(NamedTuple):
    """The result of the votes on one column.

    seen : float array (n,). Probability that the row's own value is true; 0 where it is missing.
    best : int array (n,). The most probable value of the entity, -1 if there is none.
    probability : float array (n,). Probability of ``best``.
    """

    seen: np.ndarray
    best: np.ndarray
    probability: np.ndarray


def vote(
    key: np.ndarray, source: np.ndarray | None, items: Sequence[np.ndarray], n_values: Sequence[int]
) -> list[Votes]:
    """The true values of all columns that the entity determines, by expectation maximisation (Dawid and Skene 1979)."""
    # The accuracy of a source in a column is estimated from the other columns, so that sources that copy one another do
    # not confirm themselves. The model needs the number of wrong values that an entity may have. It is estimated as one
    # over the share of pairs of wrong cells of an entity that agree.
    source = np.zeros(len(key), np.int64) if source is None else source
    n_sources, d = int(source.max()) + 1, len(items)
    accuracy, alternatives, found = np.full((n_sources, d), 0.6), np.full(d, 3.0), []
    for _ in range(_VOTE_ROUNDS):
        found = [
            _vote(key, items[j], n_values[j], accuracy[source, j] * alternatives[j] / (1.0 - accuracy[source, j]))
            for j in range(d)
        ]
        right, cells = np.zeros((n_sources, d)), np.zeros((n_sources, d))
        for j, (item, votes) in enumerate(zip(items, found, strict=True)):
            known = item >= 0
            right[:, j] = np.bincount(source[known], votes.seen[known], n_sources)
            cells[:, j] = np.bincount(source[known], minlength=n_sources)
            alternatives[j] = _alternatives(key, item, n_values[j], votes.seen)
        if d > 1:
            right, cells = right.sum(axis=1, keepdims=True) - right, cells.sum(axis=1, keepdims=True) - cells
        # Half steps, because whole ones oscillate.
        accuracy = 0.5 * accuracy + 0.5 * np.clip((right + 1.0) / (cells + 2.0), 0.02, 0.98)
    return found


def _vote(key: np.ndarray, item: np.ndarray, n_values: int, odds: np.ndarray) -> Votes:
    """The votes on one column: the log odds of the cells are added for each value of an entity."""
    counts = Counts(key, item, n_values, np.maximum(np.log(odds), 0.0))
    group = counts.key // n_values
    top, total = np.zeros(len(counts.total)), np.zeros(len(counts.total))
    np.maximum.at(top, group, counts.count)
    np.add.at(total, group, np.exp(counts.count - top[group]))
    share = np.exp(counts.count - top[group]) / (total + np.exp(-top))[group]
    out = []
    for value in (item, counts.top[key, 0]):
        wanted = key * n_values + value
        place = np.minimum(np.searchsorted(counts.key, wanted), max(len(counts.key) - 1, 0))
        out.append(np.where((key >= 0) & (value >= 0), share[place], 0.0) if len(share) else np.zeros(len(key)))
    return Votes(out[0], np.where(key >= 0, counts.top[key, 0], -1), out[1])


def _alternatives(key: np.ndarray, item: np.ndarray, n_values: int, right: np.ndarray) -> float:
    """Estimated number of wrong values: one over the share of pairs of wrong cells of an entity that agree; 1 to 50."""
    wrong = Counts(key, item, n_values, 1.0 - right)
    same = float(np.maximum(wrong.count * (wrong.count - 1.0), 0.0).sum())
    pairs = float(np.maximum(wrong.total * (wrong.total - 1.0), 0.0).sum())
    return float(np.clip((pairs + 1.0) / (same + 1.0), 1.0, 50.0))


# ---- The probabilities, by expectation maximisation.


_ROUNDS = 4  # most passes over all columns
_STEPS = 12  # steps of expectation maximisation for one column in each round
_START = 0.01  # initial share of wrong cells
_PSEUDO = 100.0  # pseudo-cells that pull the share of wrong cells of each column to the mean of all columns
_SHARED = 10.0  # pseudo-errors that pull the shares of kinds of errors of each column to those of similar columns
_FIRST = 0.01  # prior probability that a cell is the first with its genuine value
_MOST = 0.5  # largest share of wrong cells of a column
_FIXED = 0.2  # least agreement within entities of a column whose values the votes determine
_CLEAR = 2.0  # without a grid, rates are learned from cells that errors explain better than the truth by this factor
_SETTLED = 1e-4  # steps end when no weight, nor the share of wrong cells, changes by more than this
_STILL = 2e-4  # rounds end when the mean change of probabilities is below this in every column
_MANY_ROWS = 1_000  # least number of rows with which a density is known well enough to take errors out of it
_GENUINE = 0.05  # least share of a learned prediction that is not of errors
_SMALLEST = 1e-300  # avoids divisions by 0
_AT_RANDOM = -2  # index of values at random among the kinds of errors

_Joint = Callable[
    ["ErrorModel", np.ndarray, Sequence[np.ndarray], Callable[[slice, int, np.ndarray], np.ndarray]], np.ndarray
]
"""A function that asks the joint about every cell of a model's rows, given all other cells of its row.

Its third argument is the likelihood (U + 1, K) of each column: p(what the cell contains | code). The second one (n, d)
says which row of it belongs to each cell; -1, the last one, is for missing cells. The fourth one is called as
``read(rows, j, p)`` with the probabilities (b, K) of the codes of column j in a batch of rows, and returns what to keep
of them. The result has the kept numbers of all columns side by side, (n, A).
"""


class _Posterior(NamedTuple):
    """The posterior of the cells of one column; all arrays are (n,).

    p_wrong : float array. Probability that the cell is wrong; 0 for missing and blank cells of columns without votes.
    best : int array. The most probable truth, an index into `CheckedColumn.values`; -1 if none is known.
    p_best : float array. Probability of ``best``.
    kind : int array. The most probable kind of error, if the cell is wrong.
    """

    p_wrong: np.ndarray
    best: np.ndarray
    p_best: np.ndarray
    kind: np.ndarray


class ErrorModel:
    """The error model of a table: learned when it is made, with the posteriors of all cells.

    rows : int array (n,). The numbers of the rows in the table.
    is_right : bool array (d,). The columns whose true values are known: see `of_row`.
    item : int array (n, d). The value in each cell, as `CheckedColumn.item`.
    rate : float array (d,). Share of wrong cells among those that are neither blank nor missing.
    partners : list of Partners. For each column, the other columns that predict it best.
    swaps : Swaps. The swaps of neighbouring columns.
    rules, breaks : BrokenRules, Breaks. The rules of numbers, and which of them each row breaks.
    relations, broken : Relations, Broken. The relations between columns, and which of them each row breaks. ``broken``
        also has the orders.
    p_wrong_alone : float array (n, d). Probability that a cell is wrong, if broken rules and relations are ignored.
    key, source : int or None. The columns that name the entity of each row, and the source that reports it.
    votes : dict of int to Votes. The votes on the columns that the entity determines.
    """

    def __init__(
        self,
        joint: _Joint,
        columns: Sequence[CheckedColumn],
        swaps: Swaps,
        rules: BrokenRules,
        key: int | None = None,
    ) -> None:
        self.columns, self._joint, self.swaps, self.rules = list(columns), joint, swaps, rules
        rows_of_rules = rules.rows_breaking(
            np.column_stack([c.item for c in columns]), np.zeros(len(columns), bool), True
        )
        self.n = len(columns[0].item)
        self.rows, self.is_right = np.arange(self.n), np.zeros(len(columns), bool)
        self.item = np.column_stack([column.item for column in columns])
        self._is_counted = [c.is_levels or (c.has_mass and c.n_seen < self.n / 3) for c in columns]
        self._is_contaminated = [c.is_learned and (c.has_mass or self.n >= _MANY_ROWS) for c in columns]
        self.rate = np.full(len(columns), _START)
        self.share = [np.full(len(c.kinds), 1.0 / len(c.kinds)) for c in columns]
        self._common = list(self.share)
        self._code = [codes_of_partner(c.item, np.append(c.code, -1)[c.item], c.n_seen) for c in columns]
        self.partners = [Partners(j, c.item, len(c.values), self._code) for j, c in enumerate(columns)]
        for column, partners in zip(self.columns, self.partners, strict=True):
            if column.has_close_levels and not partners.is_function(_START):
                column.leave_out_close_levels()
        self.key = key
        self.source: int | None = None
        self.votes: dict[int, Votes] = {}
        self._vote()
        n = self.n
        self.relations = Relations(columns)
        self.p_wrong_alone = np.zeros((n, len(columns)))
        self._p_other_error = np.zeros((n, len(columns)))  # probability of an error other than a random value
        self._weigh_broken(self.relations.code, rows_of_rules)
        self.posterior = [_Posterior(np.zeros(n), c.item, np.ones(n), np.full(n, RANDOM)) for c in columns]
        for j, votes in self.votes.items():
            p_wrong = np.where(self.columns[j].item >= 0, 1.0 - votes.seen, votes.probability)
            self.posterior[j] = _Posterior(p_wrong, votes.best, votes.probability, np.full(n, RANDOM))
            self.p_wrong_alone[:, j] = p_wrong
        self._weight: dict[int, np.ndarray] = {}
        self._support: dict[tuple[int, int], np.ndarray] = {}
        self._kept_counts: dict[int, list[Counts]] = {}
        self._is_value = [c.genuine for c in columns]
        for k in range(_ROUNDS if n else 0):
            before = [of.p_wrong for of in self.posterior]
            self._round(is_first=k == 0)
            moved = [np.abs(of.p_wrong - old).mean() for of, old in zip(self.posterior, before, strict=True)]
            self._weigh_broken(self.relations.code, rows_of_rules)
            # The first round does not know yet which cells explain broken rules.
            if max(moved) < _STILL and not (k == 0 and max(self.broken.p.max(), self.breaks.p.max()) > 0.0):
                break

    def is_structural(self, j: int) -> bool:
        """Whether the blank cells of a column are no errors, because another column predicts which cells are blank."""
        # Missing cells count as blank here. It is False if votes or a near-function predict the column.
        if j in self.votes or self.partners[j].is_function(_START):
            return False
        blank = (self.item[:, j] < 0).astype(np.int64)
        return explains([code + 1 for i, code in enumerate(self._code) if i != j], blank)

    def _vote(self) -> None:
        """Determine the values of each entity by votes of its rows, if the table has a key."""
        n_values = [len(column.values) for column in self.columns]
        items = [column.item for column in self.columns]
        if self.key is None:
            free = [j for j, of in enumerate(self.partners) if not of.is_function(_START)]
            self.key = find_key(items, n_values, self._code, free)
        if self.key is None:
            return
        key = self._code[self.key]
        self.source = source_of(key, self._code, self.key)
        others = [j for j in range(len(items)) if j not in (self.key, self.source)]
        fixed = [j for j in others if agreement(key, items[j], n_values[j]) >= _FIXED]
        source = None if self.source is None else self._code[self.source]
        found = vote(key, source, [items[j] for j in fixed], [n_values[j] for j in fixed])
        self.votes = dict(zip(fixed, found, strict=True))

    def _round(self, is_first: bool) -> None:
        """One step of expectation maximisation over all columns."""
        if not is_first:
            self._learn_letters()
        pooled = float(self.rate.mean())
        for column, found in zip(self.columns, self.posterior, strict=True):
            column.weigh(1.0 - found.p_wrong)
        counts = [self._counts(j) for j in range(len(self.columns))]
        self._support = self._supports(counts)
        wanted = [self._candidates(j, counts[j]) for j in range(len(self.columns))]
        joint = self._ask_joint(self.item, [self._likelihood(j) for j in range(len(self.columns))], wanted)
        wrong = {}
        for j in range(len(self.columns)):
            if j not in self.votes:
                found, wrong[j] = self._column(j, wanted[j], joint[j], counts[j], pooled)
                self.posterior[j] = self._corrected(j, found)
        for is_levels in (False, True):  # columns of levels share their kinds of errors, and so do columns of numbers
            like = [j for j in wrong if self.columns[j].is_levels == is_levels]
            for j in like:
                total = np.sum([wrong[i] for i in like], axis=0) + 1.0
                self._common[j] = total / total.sum()

    def of_row(self, r: int, right: Mapping[int, int]) -> ErrorModel:
        """The same model of row r alone, in which the true values of some columns are known; it learns nothing more.
        ``right`` maps columns to their true values, as in ``item``; -1 if the cell is right to be empty."""
        d, one = len(self.columns), copy(self)
        one.n, one.rows, one.item = 1, np.array([r]), self.item[[r]].copy()
        one.columns, one.partners = [copy(of) for of in self.columns], [copy(of) for of in self.partners]
        one.posterior, one.is_right = [], np.isin(np.arange(d), list(right))
        for j, i in right.items():
            one.item[0, j] = i
        codes = [self.relations.codes(j, one.item[:, j]) for j in range(d)]
        of_table = self.p_wrong_alone, self._p_other_error
        one.p_wrong_alone, one._p_other_error = (np.where(one.is_right, 0.0, of[[r]]) for of in of_table)
        one._weigh_broken(np.column_stack(codes), self.rules.rows_breaking(one.item, one.is_right))
        one.swaps = Swaps(*(x[[r]].copy() for x in self.swaps))
        for j, i in right.items():
            k = int(self.swaps.neighbour[r, j])
            is_accepted = i >= 0 and i == self.swaps.item[r, j]
            one.swaps.p[one.swaps.neighbour == j] = 0.0
            one.swaps.p[0, k] = float(is_accepted) if one.swaps.neighbour[0, k] == j else one.swaps.p[0, k]
        counts, wanted, tables, seen = [], [], [], one.item.copy()
        for j, column in enumerate(one.columns):
            column.item, column.is_blank = one.item[:, j], column.is_blank[[r]]
            column.is_range, column.ranges = column.is_range[[r]], column.ranges[[r]]
            partners = one.partners[j]
            partners.group = [
                group_like(group, [self._code[i] for i in of], [self._code_of(i, one.item[0, i], r) for i in of])
                for group, of in zip(partners.group, partners.columns, strict=True)
            ]
            counts.append([of.take(one.rows) for of in self._learned_counts(j)])
            for of, group in zip(counts[j][1:], partners.group, strict=True):
                if group[0] != of.group[0]:  # a group of which the row's own cell is no part
                    of.group, of.item, of.weight = group, np.array([-1]), np.zeros(1)
            found = _Posterior(*(x[[r]] for x in self.posterior[j]))
            if j not in right:
                wanted.append(one._candidates(j, counts[j]))
                tables.append(one._likelihood(j))
            else:
                found = _Posterior(np.zeros(1), column.item, np.ones(1), np.full(1, RANDOM))
                wanted.append(column.item[:, None])
                tables.append(np.ones((2, column.n_codes)))
                if right[j] >= 0 and column.code[right[j]] >= 0:
                    seen[0, j] = 0
                    tables[j][0] = np.eye(column.n_codes)[column.code[right[j]]]
            one.posterior.append(found)
        one._support = one._supports(counts)
        joint = one._ask_joint(seen, tables, wanted)
        for j in set(range(d)) - set(right) - set(self.votes):
            found, _ = one._column(j, wanted[j], joint[j], counts[j], float(self.rate.mean()), steps=0)
            one.posterior[j] = one._corrected(j, found)
        return one

    def _corrected(self, j: int, found: _Posterior) -> _Posterior:
        """The posterior of the cells of one column, each of which may also be swapped, or break a rule that gives its
        value."""
        breaks, swaps = self.breaks, self.swaps
        by_rule = np.where(breaks.item[:, j] >= 0, breaks.p[:, j], 0.0)
        for p, item, kind in ((swaps.p[:, j], swaps.item[:, j], SWAP), (by_rule, breaks.item[:, j], RULE)):
            likelier = (p > 0.0) & (p > found.p_best * (1.0 - p) * (found.best != self.item[:, j]))
            likelier &= (p > found.p_wrong) | (kind == RULE)  # the value that a rule gives is better than a likely one
            found = _Posterior(
                1.0 - (1.0 - found.p_wrong) * (1.0 - p),
                np.where(likelier, item, found.best),
                np.where(likelier, p, found.p_best * (1.0 - p)),
                np.where(likelier, kind, found.kind),
            )
        return found

    def _weigh_broken(self, code: np.ndarray, rows_of_rules: Sequence[RowsOfRule]) -> None:
        """Weigh which cell of each broken rule or relation is wrong, from `p_wrong_alone`; ``code`` as for
        `Relations.broken`."""
        self.breaks = self.rules.weigh_rows(rows_of_rules, self.p_wrong_alone)
        found = self.relations.broken(code, self.is_right, self.p_wrong_alone)
        p = np.where(self.breaks.item < 0, self.breaks.p, 0.0)
        self.broken = Broken(np.maximum(found.p, p), np.where(p > found.p, -1, found.relation))

    def _code_of(self, j: int, i: int, r: int) -> int:
        """Value i of column j, which is not that of row r or is, for use as a partner: see `codes_of_partner`."""
        if i == self.item[r, j]:
            return int(self._code[j][r])
        return int(i if self._code[j] is self.columns[j].item else self.columns[j].code[i])

    def _learned_counts(self, j: int) -> list[Counts]:
        """`_counts` after the last round, kept from one question about a row to the next."""
        if j not in self._kept_counts:
            self._kept_counts[j] = self._counts(j)
        return self._kept_counts[j]

    def _learn_letters(self) -> None:
        """Learn the letters of typing errors and those of right texts, from the current posteriors."""
        typed: Counter[str] = Counter()
        ways, edits, errors = np.full(len(WAYS), 5.0), 12.5, 10.0
        for column, found in zip(self.columns, self.posterior, strict=True):
            column.learn_texts(1.0 - found.p_wrong)
            slips = column.slips
            if slips is None:
                continue
            place = {pair: p for p, pair in enumerate(zip(slips.seen.tolist(), slips.truth.tolist(), strict=True))}
            for r in np.flatnonzero((found.kind == TYPING) & (found.p_wrong > 0.5)).tolist():
                p = place.get((int(column.item[r]), int(found.best[r])))
                if p is not None:
                    share = float(found.p_wrong[r])
                    ways[slips.way[p]] += share
                    edits, errors = edits + slips.edits[p] * share, errors + share
                    for letter, times in slips.letters[p].items():
                        typed[letter] += times * share
        letters = {c for column in self.columns if column.slips for text in column.texts for c in text}
        total = sum(typed.values()) + 10.0
        log_p = {c: float(np.log((typed[c] + 10.0 / len(letters)) / total)) for c in letters}
        for column in self.columns:
            column.learn_letters(log_p, ways / ways.sum(), float(1.0 - errors / edits))

    def _counts(self, j: int) -> list[Counts]:
        """Counts of a column's values in all rows, and in the groups of each partner."""
        # A cell counts with the probability that it is right.
        column, right = self.columns[j], 1.0 - self.posterior[j].p_wrong
        groups = [np.zeros(self.n, np.int64), *self.partners[j].group]
        prior = PRIOR_OF_FUNCTIONS if self.partners[j].is_function(float(self.rate.mean())) else PRIOR_ROWS
        return [Counts(group, column.item, len(column.values), right, prior) for group in groups]

    def _candidates(self, j: int, counts: Sequence[Counts]) -> np.ndarray:
        """Candidates for the truth of each cell, (n, C); -1 where there are fewer."""
        # They are the value in the cell, values that an error may have changed into it, and frequent values of others.
        column = self.columns[j]
        truth = np.vstack([column.truth, np.full((1, column.truth.shape[1]), -1)])[column.item]
        return np.column_stack([column.item, truth, *(of.proposed() for of in counts)])

    def _ask_joint(
        self, item: np.ndarray, likelihood: Sequence[np.ndarray], wanted: Sequence[np.ndarray]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each column, the wanted values and the joint's most probable one, (n, C + 1), and their probabilities.
        ``item`` (n, d) says which row of ``likelihood`` belongs to a cell; -1 is the last one."""
        of_code, code, measure = [], [], []
        for column in self.columns:
            best, has = np.full(column.n_codes, -1), np.flatnonzero(column.code >= 0)
            by = has[np.argsort(column.measure[has], kind="stable")]
            best[column.code[by]] = by
            of_code.append(best)
            code.append(np.append(np.maximum(column.code, 0), 0))
            counted = np.where(column.code >= 0, column.measure_without_row, 0.0)
            measure.append(np.append(counted, 0.0))

        def read(rows: slice, j: int, codes: np.ndarray) -> np.ndarray:
            values = wanted[j][rows]
            p = np.take_along_axis(codes, code[j][values], axis=1) * measure[j][values]
            of_best = codes * measure[j][of_code[j]]
            top = of_best.argmax(axis=1)
            return np.column_stack([p, of_best[np.arange(len(p)), top], of_code[j][top]])

        both = self._joint(self, item, likelihood, read)
        parts = np.split(both, np.cumsum([of.shape[1] + 2 for of in wanted])[:-1], axis=1)
        return [
            (np.column_stack([values, part[:, -1].astype(np.int64)]), part[:, :-1])
            for values, part in zip(wanted, parts, strict=True)
        ]

    def _likelihood(self, j: int) -> np.ndarray:
        """p(value in the cell | code of its truth), (U + 1, K), for each value and, last, for a missing cell."""
        column, e = self.columns[j], self.rate[j]
        out = np.ones((column.n_seen + 1, column.n_codes))
        out[:-1] = e * self._vague(j)[:, None]
        has = np.flatnonzero(column.code[: column.n_seen] >= 0)
        out[has, column.code[has]] += (1.0 - e) * (column.measure * column.genuine)[has]
        u, c = np.nonzero(column.truth >= 0)
        truth = column.truth[u, c]
        p = e * self.share[j][column.place[c]] * np.exp(column.log_error[u, c]) * column.measure[truth]
        some = column.code[truth] >= 0
        np.add.at(out, (u[some], column.code[truth[some]]), p[some])
        return out

    def _vague(self, j: int) -> np.ndarray:
        """p(value in the cell, by one of the two errors that do not depend on the truth | a wrong cell), (U,)."""
        column, share = self.columns[j], self.share[j]
        return np.asarray(share[_AT_RANDOM] * np.exp(column.log_random) + share[-1] * np.exp(column.log_any))

    def _column(
        self,
        j: int,
        wanted: np.ndarray,
        joint: tuple[np.ndarray, np.ndarray],
        counts: Sequence[Counts],
        pooled: float,
        steps: int = _STEPS,
    ) -> tuple[_Posterior, np.ndarray]:
        """The posterior of one column's cells, and its expected number of errors of each kind, (E,). ``pooled`` is the
        mean share of wrong cells of all columns. Without ``steps`` nothing is learned."""
        column, (values, of_joint) = self.columns[j], joint
        # P[m][r, c]: probability of candidate c of row r in prediction m; c = 0 is the value in the cell.
        P, prior = self._expected(j, values, of_joint, counts, pooled)
        C, has = column.truth.shape[1], column.item >= 0
        known = slice(None) if has.all() else has  # a slice makes no copy
        u = column.item[known]
        q = np.where(column.truth[u] >= 0, np.exp(column.log_error[u]), 0.0)
        F = np.empty((len(column.errors) + 1, len(P), len(u)))  # p(truth, seen value), without an error and with each
        for m, of in enumerate(P):  # after the first candidate there are C that an error may have changed
            likely = of[known, 1 : 1 + C]
            F[0, m] = of[known, 0]
            F[1:-2, m] = np.einsum("rc,rc->r", likely, q) if column.is_levels else (likely * q).T
        right = F[0].copy()
        others = np.maximum(1.0 - column.has_mass * F[0], 0.0)  # the truth is another value; densities have no mass
        F[-2], F[-1] = others * np.exp(column.log_random[u]), others * np.exp(column.log_any[u])
        weight, e = self._weight.get(j, np.empty(0)), pooled if steps else float(self.rate[j])
        errors = np.zeros(len(column.kinds))
        is_function = self._is_predicted(j, pooled)
        has_learned_errors = self._is_contaminated[j] and not is_function
        has_weights = len(weight) == len(P)
        weight = weight if has_weights else prior / prior.sum()
        last = steps
        for k in range(steps + 1):
            if is_function and steps:  # the last prediction, if the partner is wrong: as often as the column itself
                weight = np.append(weight[:-1] / weight[:-1].sum(), e * self.share[j][-2])
            # This needs the weights of the previous round, so the first round takes every value as genuine.
            if column.has_mass and has_weights and steps and k % 6 == 0:
                wrong = (weight @ F[1:]).T * (max(e, pooled) * self.share[j][column.errors])
                self._is_value[j] = column.genuine * self._values(column, u, weight @ right, wrong)
            if k % 6 == 0:
                F[0] = right * self._is_value[j][u]
            scale = np.append(1.0 - e, e * self.share[j][column.errors])
            if has_learned_errors:  # the joint predicts (1 - e) p(right value) + e p(error that depends on the truth)
                learned = right[0] * self._is_value[j][u]
                F[0, 0] = np.maximum(learned - scale[1:-2] @ F[1:-2, 0], _GENUINE * learned) / (1.0 - e)
            by_prediction = np.tensordot(scale, F, axes=1)
            total = np.maximum(weight @ by_prediction, _SMALLEST)
            if k == last or not len(u):
                break
            by_truth = (1.0 - e) * (weight @ F[0])
            is_clear = column.has_mass | (total - by_truth > _CLEAR * e / (1.0 - e) * by_truth)
            errors[column.errors] = (scale * (F @ (is_clear / total) @ weight))[1:]
            part = weight * (by_prediction @ (1.0 / total)) + prior
            moved, weight = np.abs(part / part.sum() - weight / weight.sum()).max(), part / part.sum()
            self.share[j] = (errors + _SHARED * self._common[j]) / (errors.sum() + _SHARED)
            before, e = e, min(float((errors.sum() + _PSEUDO * pooled) / (len(u) + _PSEUDO)), _MOST)
            if k % 6 == 5 and max(moved, abs(e - before)) < _SETTLED:
                last = k + 1
        if steps:
            self.rate[j], self._weight[j] = e, weight
        by_error = (weight @ F).T * scale / total[:, None]
        p = np.zeros(values.shape)
        for w, of in zip(weight.tolist(), P, strict=True):
            p += w * of
        p *= np.append(self._is_value[j], 0.0)[values]
        return self._posterior(j, values, p, q, by_error, total), errors

    def _expected(
        self, j: int, values: np.ndarray, of_joint: np.ndarray, counts: Sequence[Counts], pooled: float
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Probabilities of values in M predictions of the truth, (n, C) each, and pseudo-counts of their weights, (M,).
        A near-function replaces the joint and the shares of the column."""
        column = self.columns[j]
        is_counted = self._is_counted[j]
        is_function, if_wrong = self._is_predicted(j, pooled), None
        marginal = np.append(column.marginal_without_row, 0.0)
        new = np.zeros(values.shape) if column.is_levels else marginal[values]
        if column.is_levels:
            new[:, 0] = np.append(np.exp(column.log_new), 0.0)[column.item]
        expected, prior = ([], []) if is_function else ([of_joint], [10.0])
        if is_counted:
            by_functions, if_wrong = self._by_functions(j, values, new, counts) if is_function else ([], None)
            expected += by_functions or [of.at(values, new) for of in counts]
            prior += [1.0] * (len(expected) - len(prior))
        if column.is_levels:
            expected, prior = [*expected, new], [*prior, 0.1]
        elif not is_counted:
            expected, prior = [*expected, marginal[values]], [*prior, 1.0]
        if if_wrong is not None:
            expected, prior = [*expected, if_wrong], [*prior, 0.0]
        return expected, np.array(prior)

    def _by_functions(
        self, j: int, values: np.ndarray, new: np.ndarray, counts: Sequence[Counts]
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the predictions, (n, C) each, and that for a wrong partner, divided by the rate of random values."""
        # By default, the partner is assumed to have as many random values as the column. Its cell is less probably
        # wrong if it predicts the cells of other columns well, and if other partners predict the same.
        everywhere, (first, *others) = counts[0].at(values, new), counts[1:]
        columns, guess = self.partners[j].columns, first.guess()
        odd = 1.0 - np.prod(1.0 - self._p_other_error[:, columns[0]], axis=1)[:, None]
        ratio = np.zeros(self.n)
        for i in columns[0]:
            ratio += np.prod([of for (a, k), of in self._support.items() if a == i and k != j], axis=0)
        for of, more in zip(others, columns[1:], strict=True):
            if not set(more) & set(columns[0]):
                ratio *= np.where(of.guess() == guess, sum(map(self._random_rate, more)), 1.0)
        # A partner whose cell has an error of another kind predicts nothing.
        if_wrong = ((1.0 - odd) * ratio[:, None] + odd / max(self._random_rate(j), 1e-9)) * everywhere
        return [(1.0 - odd) * of.at(values, new) for of in counts[1:]], if_wrong

    def _random_rate(self, i: int) -> float:
        """The share of random values in column i. Other errors rarely make a level of it."""
        return float(self.rate[i] * self.share[i][_AT_RANDOM])

    def _supports(self, counts: Sequence[Sequence[Counts]]) -> dict[tuple[int, int], np.ndarray]:
        """(n,) for each partner i and column k: p(cell of k | cell of i is wrong) / p(cell of k | cell of i)."""
        out, pooled = {}, float(self.rate.mean())
        for k, (everywhere, *partners) in enumerate(counts):
            if not self._is_predicted(k, pooled):
                continue
            for of, columns in zip(partners, self.partners[k].columns, strict=True):
                if len(columns) == 1:
                    seen = everywhere.item[:, None]
                    shares, given = everywhere.at(seen)[:, 0], of.at(seen)[:, 0]
                    e = self._random_rate(columns[0])
                    ratio = shares / np.maximum((1.0 - e) * given + e * shares, _SMALLEST)
                    out[columns[0], k] = np.where((seen[:, 0] >= 0) & (of.group >= 0), ratio, 1.0)
        return out

    def _is_predicted(self, j: int, pooled: float) -> bool:
        """Whether a near-function predicts a column; for ``pooled`` see `_column`."""
        return self._is_counted[j] and self.partners[j].is_function(pooled)

    def _values(self, column: CheckedColumn, u: np.ndarray, right: np.ndarray, wrong: np.ndarray) -> np.ndarray:
        """p(value is genuine), (V,), and not the same error that occurs several times. ``right`` and ``wrong`` are the
        probabilities of each cell without and with each error; ``u`` has the value of each cell."""
        # Two explanations of the c rows of a value are compared. A genuine value needs one new text, with the
        # probability of its letters, and then each row is right. The probability of a
        # new number is the share of cells whose number occurs once. Otherwise each row needs an error of its own.
        # Errors at random are left out, because they only repeat genuine values.
        log_error = np.log(np.maximum(wrong.sum(axis=1) - wrong[:, _AT_RANDOM], _SMALLEST))
        gain = np.log(np.maximum(right, _SMALLEST)) - log_error
        c = np.maximum(column.count, 1.0)
        mean_gain, mean_error = (np.bincount(u, x, column.n_seen) / c for x in (gain, log_error))
        new, first = column.log_new, _FIRST
        if not column.is_levels:
            new, first = column.log_beside, max(first, float((column.count == 1.0).sum() / column.count.sum()))
        odds = (c - 1.0) * mean_gain + np.log(first) + new - mean_error
        out = np.ones(len(column.values))
        out[: column.n_seen] = np.where(column.count > 1.0, 1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0))), 1.0)
        return out

    def _posterior(
        self, j: int, values: np.ndarray, p: np.ndarray, q: np.ndarray, by_error: np.ndarray, seen: np.ndarray
    ) -> _Posterior:
        """The posterior of all cells; for missing and blank cells it comes from the predictions alone."""
        column, share, e = self.columns[j], self.share[j], self.rate[j]
        known, C, every = column.item >= 0, column.truth.shape[1], np.arange(self.n)
        u = column.item[known]
        score = np.where(values >= 0, p, 0.0)
        error = np.repeat(self._vague(j)[u][:, None], values.shape[1], axis=1)
        error[:, 1 : 1 + C] += q * share[column.place]
        score[known] *= e * error
        score[values == column.item[:, None]] = 0.0
        score[known, 0] = (1.0 - e) * p[known, 0]
        score[known] /= np.maximum(seen, _SMALLEST)[:, None]
        p_wrong, kind = np.zeros(self.n), np.full(self.n, RANDOM)
        p_wrong[known] = 1.0 - by_error[:, 0]
        kind[known] = column.kinds[column.errors[by_error[:, 1:].argmax(axis=1)]] if len(u) else RANDOM
        # A cell that breaks a relation and has no other error may be a random value, whose truth is any other value.
        rows = np.flatnonzero(self.broken.p[:, j])
        other = np.where((values >= 0) & (values != column.item[:, None]), p, 0.0)[rows]
        other /= np.maximum(1.0 - column.has_mass * p[rows, :1], _SMALLEST)
        in_place = 1.0 - self.swaps.p[:, j]
        self.p_wrong_alone[:, j] = 1.0 - (1.0 - p_wrong) * in_place
        self._p_other_error[known, j] = 1.0 - (by_error[:, 0] + by_error[:, _AT_RANDOM]) * in_place[known]
        moved = self.broken.p[rows, j] * np.minimum(score[rows, 0], 1.0 - p_wrong[rows])
        score[rows] += moved[:, None] * other
        score[rows, 0] -= moved
        kind[rows[moved > p_wrong[rows]]] = RANDOM
        p_wrong[rows] += moved
        choice = score.argmax(axis=1)
        p_best = np.clip(score[every, choice], 0.0, 1.0)
        return _Posterior(p_wrong, values[every, choice], p_best, kind)
