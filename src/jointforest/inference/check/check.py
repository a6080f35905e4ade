"""The probability that each cell of a table is wrong, and its truth, by expectation maximisation on the table itself.

A cell of column j is the truth with probability 1 - e_j, else an error of some kind (`columns`). What is expected of
the truth is a weighted sum: of the joint given all other cells, each of which may be wrong; of near-functions, counted
in the other rows; of the column's own shares; and of a new value. The weights, e_j and the shares of kinds are learned
from the table. If several rows speak of one entity, their votes decide on its values: see `keys`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .columns import RANDOM, TYPING, CheckedColumn
from .keys import Votes, agreement, find_key, source_of, vote
from .partners import PRIOR, PRIOR_OF_FUNCTIONS, Counts, Partners, codes_of_partner
from .texts import WAYS

_ROUNDS = 4
_STEPS = 12
_START = 0.01  # first share of wrong cells
_PSEUDO = 100.0  # cells with the share of wrong ones in all columns, which are added to those of each column
_SHARED = 10.0  # errors with the shares of kinds of all columns, which are added to those of each column
_FIRST = 0.01  # share of values that are invented
_MOST = 0.5  # largest share of wrong cells of a column
_FIXED = 0.2  # least agreement of a column that a given key fixes
_STRUCTURE = 0.1  # share of the entropy of blank cells that another column explains, if they belong to the table
_STILL = 2e-4  # mean change of the probabilities of a column, below which all rounds are done
_SMALLEST = 1e-300

Joint = Callable[[Sequence[np.ndarray], Callable[[slice, int, np.ndarray], np.ndarray]], np.ndarray]
"""What is kept, (n, A), of the probabilities of codes given all other cells, by likelihoods (U + 1, K) of columns."""


class Posterior(NamedTuple):
    """What is known of one column's cells, each (n,).

    Attributes
    ----------
    p_wrong : float array
    best : int array
        The most probable truth, a number of `CheckedColumn.values`; -1 if none is known.
    p_best : float array
    kind : int array
        Most probable kind of error.
    """

    p_wrong: np.ndarray
    best: np.ndarray
    p_best: np.ndarray
    kind: np.ndarray


class ErrorModel:
    """Shares of wrong cells and of kinds of errors, and the posteriors of all cells.

    Attributes
    ----------
    columns : list of CheckedColumn
    posterior : list of Posterior
    rate : float array (d,)
        Share of wrong cells, of those that are not blank.
    partners : list of Partners
    key, source : int or None
        Columns that name the entity of a row, and who speaks of it.
    votes : dict of int to Votes
        Of the columns that the entity fixes.
    """

    def __init__(self, joint: Joint, columns: Sequence[CheckedColumn], key: int | None = None) -> None:
        self.columns, self._joint = list(columns), joint
        self.n = len(columns[0].item)
        self.item = np.column_stack([column.item for column in columns])
        self.rate = np.full(len(columns), _START)
        self.share = [np.full(len(c.kinds), 1.0 / len(c.kinds)) for c in columns]
        self._common = list(self.share)
        self._code = [codes_of_partner(c.item, np.append(c.code, -1)[c.item], c.n_seen) for c in columns]
        self.partners = [Partners(j, c.item, len(c.values), self._code) for j, c in enumerate(columns)]
        self.key = key
        self.source: int | None = None
        self.votes: dict[int, Votes] = {}
        self._vote()
        n = self.n
        self.posterior = [Posterior(np.zeros(n), c.item, np.ones(n), np.full(n, RANDOM)) for c in columns]
        for j, votes in self.votes.items():
            p_wrong = np.where(self.columns[j].item >= 0, 1.0 - votes.seen, votes.probability)
            self.posterior[j] = Posterior(p_wrong, votes.best, votes.probability, np.full(n, RANDOM))
        self._weight: dict[int, np.ndarray] = {}
        self._is_value = [np.ones(len(c.values)) for c in columns]
        for k in range(_ROUNDS if n else 0):
            before = [of.p_wrong for of in self.posterior]
            self._round(is_first=k == 0)
            moved = [np.abs(of.p_wrong - old).mean() for of, old in zip(self.posterior, before, strict=True)]
            if max(moved) < _STILL:
                break

    def is_structural(self, j: int) -> bool:
        """Whether blank cells of a column belong to the table, as other columns say which they are."""
        if j in self.votes or self.partners[j].is_function(_START):
            return False
        blank = (self.item[:, j] < 0).astype(np.int64)
        p = blank.mean() if self.n else 0.0
        if not 0.0 < p < 1.0:
            return True
        entropy = -(p * np.log(p) + (1.0 - p) * np.log(1.0 - p))
        groups = [code + 1 for i, code in enumerate(self._code) if i != j]
        gains = [np.log(Counts(g, blank, 2, np.ones(self.n)).at(blank[:, None])).mean() + entropy for g in groups]
        return max(gains, default=0.0) > _STRUCTURE * entropy

    def _vote(self) -> None:
        """Let the rows of each entity decide on its values, if the table has a key."""
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
        counts = [self._counts(j) for j in range(len(self.columns))]
        wanted = [self._candidates(j, counts[j]) for j in range(len(self.columns))]
        joint = self._ask_joint(wanted)
        wrong = {}
        for j in range(len(self.columns)):
            if j not in self.votes:
                self.posterior[j], wrong[j] = self._column(j, wanted[j], joint[j], counts[j], pooled)
        for is_levels in (False, True):  # errors are of the same kinds in columns of the same kind
            like = [j for j in wrong if self.columns[j].is_levels == is_levels]
            for j in like:
                total = np.sum([wrong[i] for i in like], axis=0) + 1.0
                self._common[j] = total / total.sum()

    def _learn_letters(self) -> None:
        """The letters of typing errors, and texts of right cells, by the posteriors so far."""
        typed: Counter[str] = Counter()
        ways, edits, errors = np.ones(len(WAYS)), 2.5, 2.0
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
        """Counts of a column's values in all rows, and in the groups of its partners; wrong cells do not count."""
        column, right = self.columns[j], 1.0 - self.posterior[j].p_wrong
        groups = [np.zeros(self.n, np.int64), *self.partners[j].group]
        prior = PRIOR_OF_FUNCTIONS if self.partners[j].is_function(float(self.rate.mean())) else PRIOR
        return [Counts(group, column.item, len(column.values), right, prior) for group in groups]

    def _candidates(self, j: int, counts: Sequence[Counts]) -> np.ndarray:
        """Truths to ask for, (n, C): what is seen, what errors may have changed, what other rows propose."""
        column = self.columns[j]
        truth = np.vstack([column.truth, np.full((1, column.truth.shape[1]), -1)])[column.item]
        return np.column_stack([column.item, truth, *(of.proposed() for of in counts)])

    def _ask_joint(self, wanted: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of each column, wanted values and the joint's most probable one, (n, C + 1), and their probabilities."""
        of_code, code, measure = [], [], []
        for column, found in zip(self.columns, self.posterior, strict=True):
            best, has = np.full(column.n_codes, -1), np.flatnonzero(column.code >= 0)
            by = has[np.argsort(column.measure[has], kind="stable")]
            best[column.code[by]] = by
            of_code.append(best)
            code.append(np.append(np.maximum(column.code, 0), 0))
            counted = np.where(column.code >= 0, column.elsewhere(1.0 - found.p_wrong), 0.0)
            measure.append(np.append(counted, 0.0))

        def read(rows: slice, j: int, codes: np.ndarray) -> np.ndarray:
            values = wanted[j][rows]
            p = np.take_along_axis(codes, code[j][values], axis=1) * measure[j][values]
            of_best = codes * measure[j][of_code[j]]
            top = of_best.argmax(axis=1)
            return np.column_stack([p, of_best[np.arange(len(p)), top], of_code[j][top]])

        both = self._joint([self._likelihood(j) for j in range(len(self.columns))], read)
        parts = np.split(both, np.cumsum([of.shape[1] + 2 for of in wanted])[:-1], axis=1)
        return [
            (np.column_stack([values, part[:, -1].astype(np.int64)]), part[:, :-1])
            for values, part in zip(wanted, parts, strict=True)
        ]

    def _likelihood(self, j: int) -> np.ndarray:
        """p(what is seen | code) of each value of a column, (U + 1, K); the last row is of missing cells."""
        column, e = self.columns[j], self.rate[j]
        out = np.ones((column.n_seen + 1, column.n_codes))
        out[:-1] = e * self._vague(j)[:, None]
        has = np.flatnonzero(column.code[: column.n_seen] >= 0)
        out[has, column.code[has]] += (1.0 - e) * column.measure[has]
        u, c = np.nonzero(column.truth >= 0)
        truth = column.truth[u, c]
        p = e * self.share[j][column.place[c]] * np.exp(column.log_error[u, c]) * column.measure[truth]
        some = column.code[truth] >= 0
        np.add.at(out, (u[some], column.code[truth[some]]), p[some])
        return out

    def _vague(self, j: int) -> np.ndarray:
        """p(seen, an error that tells nothing of the truth | error), (U,)."""
        column, share = self.columns[j], self.share[j]
        return np.asarray(share[-2] * np.exp(column.log_random) + share[-1] * np.exp(column.log_any))

    def _column(
        self,
        j: int,
        wanted: np.ndarray,
        joint: tuple[np.ndarray, np.ndarray],
        counts: Sequence[Counts],
        pooled: float,
    ) -> tuple[Posterior, np.ndarray]:
        """The posterior of one column's cells, and its errors of each kind, (E,)."""
        column, (values, of_joint) = self.columns[j], joint
        P, prior = self._expected(j, values, of_joint, counts, pooled)
        C, known = column.truth.shape[1], column.item >= 0
        u = column.item[known]
        q = np.where(column.truth[u] >= 0, np.exp(column.log_error[u]), 0.0)
        is_mass = column.is_levels or column.column.step > 0.0
        F = np.empty((len(P), len(u), len(column.kinds) + 1))  # p(truth, seen) of no error, and of each
        F[:, :, 0] = P[:, known, 0]
        likely = P[:, known, 1 : 1 + C] * q
        F[:, :, 1:-2] = likely.sum(axis=2, keepdims=True) if column.is_levels else likely
        others = np.maximum(1.0 - is_mass * F[:, :, 0], 0.0)
        F[:, :, -2], F[:, :, -1] = others * np.exp(column.log_random[u]), others * np.exp(column.log_any[u])
        weight, e, errors = self._weight.get(j, np.empty(0)), pooled, np.zeros(len(column.kinds))
        has_weights = len(weight) == len(P)
        weight = weight if has_weights else prior / prior.sum()
        right = F[:, :, 0].copy()
        for k in range(_STEPS + 1):
            if column.is_levels and has_weights and k % 6 == 0:
                wrong = np.tensordot(weight, F[:, :, 1:], axes=1) * (max(e, pooled) * self.share[j])
                self._is_value[j] = self._values(column, u, weight @ right, wrong)
                F[:, :, 0] = right * self._is_value[j][u]
            scale = np.concatenate([[1.0 - e], e * self.share[j]])
            mixed = np.tensordot(weight, F, axes=1) * scale
            total = np.maximum(mixed.sum(axis=1), _SMALLEST)
            by_error = mixed / total[:, None]
            if k == _STEPS or not len(u):
                break
            part = (weight[:, None] * (F @ scale) / total).sum(axis=1) + prior
            weight = part / part.sum()
            errors = by_error[:, 1:].sum(axis=0)
            self.share[j] = (errors + _SHARED * self._common[j]) / (errors.sum() + _SHARED)
            e = min(float((errors.sum() + _PSEUDO * pooled) / (len(u) + _PSEUDO)), _MOST)
        self.rate[j], self._weight[j] = e, weight
        p = np.tensordot(weight, P * np.append(self._is_value[j], 0.0)[values], axes=1)
        return self._posterior(j, values, p, q, by_error, total), errors

    def _expected(
        self, j: int, values: np.ndarray, of_joint: np.ndarray, counts: Sequence[Counts], pooled: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """What each part of the model expects of values, (M, n, C), and the prior of the parts' weights, (M,)."""
        column = self.columns[j]
        is_counted = column.is_levels or (column.column.step > 0.0 and column.n_seen < self.n / 3)
        is_function = is_counted and self.partners[j].is_function(pooled)
        new = np.zeros(values.shape)
        new[:, 0] = np.append(np.exp(column.log_new), 0.0)[column.item]
        expected, prior = ([], []) if is_function else ([of_joint], [10.0])
        if is_counted:
            expected += [of.at(values, new) for of in counts[int(is_function) :]]
            prior += [1.0] * (len(expected) - len(prior))
        if column.is_levels:
            expected, prior = [*expected, new], [*prior, 0.1]
        elif not is_counted:
            alone = np.append(column.alone(1.0 - self.posterior[j].p_wrong), 0.0)
            expected, prior = [*expected, alone[values]], [*prior, 1.0]
        return np.stack(expected), np.array(prior)

    def _values(self, column: CheckedColumn, u: np.ndarray, right: np.ndarray, wrong: np.ndarray) -> np.ndarray:
        """p(each value is one of the column's, and not the same error several times), (V,).

        A value of the column has to be invented once, at the probability of its letters; its other rows take it up. The
        rows of the same error have each their own. A value at random is one of the column's.
        """
        log_error = np.log(np.maximum(wrong.sum(axis=1) - wrong[:, -2], _SMALLEST))
        gain = np.log(np.maximum(right, _SMALLEST)) - log_error
        c = np.maximum(column.count, 1.0)
        mean_gain, mean_error = (np.bincount(u, x, column.n_seen) / c for x in (gain, log_error))
        odds = (c - 1.0) * mean_gain + np.log(_FIRST) + column.log_new - mean_error
        out = np.ones(len(column.values))
        out[: column.n_seen] = np.where(column.count > 1.0, 1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0))), 1.0)
        return out

    def _posterior(
        self, j: int, values: np.ndarray, p: np.ndarray, q: np.ndarray, by_error: np.ndarray, seen: np.ndarray
    ) -> Posterior:
        """Best truths of all cells; of missing ones by what is expected of them."""
        column, share, e = self.columns[j], self.share[j], self.rate[j]
        known, C, every = column.item >= 0, column.truth.shape[1], np.arange(self.n)
        u = column.item[known]
        score = np.where(values >= 0, p, 0.0)
        error = np.repeat(self._vague(j)[u][:, None], values.shape[1], axis=1)
        error[:, 1 : 1 + C] += q * share[column.place]
        score[known] *= e * error
        score[values == column.item[:, None]] = 0.0
        score[known, 0] = (1.0 - e) * p[known, 0]
        total = np.ones(self.n)
        total[known] = seen
        choice = score.argmax(axis=1)
        p_best = np.clip(score[every, choice] / np.maximum(total, _SMALLEST), 0.0, 1.0)
        p_wrong, kind = np.zeros(self.n), np.full(self.n, RANDOM)
        p_wrong[known] = 1.0 - by_error[:, 0]
        kind[known] = column.kinds[by_error[:, 1:].argmax(axis=1)] if len(u) else RANDOM
        return Posterior(p_wrong, values[every, choice], p_best, kind)
