"""How probable it is that each cell of a table is wrong, and its truth, by expectation maximisation on the table itself.

A cell of column j is the truth with probability 1 - e_j, else an error of some kind (`columns`). What is expected
of the truth is a weighted sum: of the joint given all other cells, each of which may be wrong; of near-functions,
counted in the other rows; of the column's own shares; and of a new value. The weights, e_j and the shares of kinds are
learned from the table. If rows speak of one entity, their votes fix its values: see `keys`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...models.hidden_tree.hidden_trees import HiddenTrees
from .columns import RANDOM, TYPING, CheckedColumn
from .keys import Votes, agreement, find_key, source_of, vote
from .partners import Counts, Partners, codes_of_partner
from .rest import ask_each
from .texts import WAYS

_ROUNDS = 4
_STEPS = 30
_START = 0.01  # first share of wrong cells
_PSEUDO = 100.0  # cells with the share of wrong ones in all columns, which are added to those of each column
_SHARED = 10.0  # errors with the shares of kinds of all columns, which are added to those of each column
_FIRST = 0.01  # share of rows with a value that is in no other row, at least
_MOST = 0.5  # largest share of wrong cells of a column
_FIXED = 0.2  # least agreement of a column that a given key fixes


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
    """Shares of wrong cells and of kinds of errors, and the posteriors of all cells."""

    def __init__(
        self, hidden: HiddenTrees, columns: Sequence[CheckedColumn], key: int | None, n_jobs: int | None = -1
    ) -> None:
        self.hidden, self.columns, self.n_jobs = hidden, list(columns), n_jobs
        d, self.n = len(columns), len(columns[0].item)
        self.item = np.column_stack([column.item for column in columns])
        self.rate = np.full(d, _START)
        self.share = [1.0 / (len(c.kinds) * np.ones(len(c.kinds))) for c in columns]
        n_values = [len(column.values) for column in columns]
        self.code = [
            codes_of_partner(c.item, np.append(c.code, -1)[c.item], c.n_seen) for c in columns
        ]
        self.partners = [Partners(j, c.item, n_values[j], self.code) for j, c in enumerate(columns)]
        free = [j for j in range(d) if not self.partners[j].is_function(_START)]
        self.key = find_key([c.item for c in columns], n_values, self.code, free) if key is None else key
        self.votes: dict[int, Votes] = {}
        self.source = None
        if self.key is not None:
            self.source = source_of(self.code[self.key], self.code, self.key)
            fixed = [
                j
                for j in range(d)
                if j not in (self.key, self.source)
                and agreement(self.code[self.key], self.item[:, j], n_values[j]) >= _FIXED
            ]
            source = None if self.source is None else self.code[self.source]
            found = vote(self.code[self.key], source, [columns[j].item for j in fixed], [n_values[j] for j in fixed])
            self.votes = dict(zip(fixed, found, strict=True))
        self.common = list(self.share)
        self.mixture: dict[int, np.ndarray] = {}
        self.is_value = [np.ones(len(c.values)) for c in columns]
        self.posterior = [self._of_votes(j) for j in range(d)]
        self._learn()

    def _of_votes(self, j: int) -> Posterior:
        n, column = self.n, self.columns[j]
        if j in self.votes:
            votes = self.votes[j]
            p = np.where(column.item >= 0, 1.0 - votes.seen, votes.probability)
            return Posterior(p, votes.best, votes.probability, np.full(n, RANDOM))
        return Posterior(np.zeros(n), column.item, np.ones(n), np.full(n, RANDOM))

    def _learn(self) -> None:
        for k in range(_ROUNDS):
            if k:
                self._learn_letters()
            self.pooled = float(self.rate.mean())
            joint = self._ask_joint([self._candidates(j) for j in range(len(self.columns))])
            wrong = {}
            for j in range(len(self.columns)):
                if j not in self.votes:
                    self.posterior[j], wrong[j] = self._column(j, joint[j])
            for is_levels in (False, True):  # errors are of the same kinds in columns of the same kind
                like = [j for j in wrong if self.columns[j].is_levels == is_levels]
                total = np.sum([wrong[j] for j in like], axis=0) + 1.0
                for j in like:
                    self.common[j] = total / total.sum()

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
                    ways[slips.way[p]] += found.p_wrong[r]
                    edits, errors = edits + slips.edits[p] * found.p_wrong[r], errors + found.p_wrong[r]
                    for letter, times in slips.letters[p].items():
                        typed[letter] += times * float(found.p_wrong[r])
        letters = {c for column in self.columns if column.slips for text in column.texts for c in text}
        total = sum(typed.values()) + 10.0
        log_p = {c: float(np.log((typed[c] + 10.0 / max(len(letters), 1)) / total)) for c in letters}
        for column in self.columns:
            column.learn_letters(log_p, ways / ways.sum(), float(1.0 - errors / edits))

    def _weights(self, j: int) -> np.ndarray:
        """How far each cell counts among the others: the probability that it is right."""
        return 1.0 - self.posterior[j].p_wrong

    def _candidates(self, j: int) -> np.ndarray:
        """Truths to ask for, (n, C): what is seen, what errors may have changed, what partners propose."""
        column = self.columns[j]
        truth = np.vstack([column.truth, np.full((1, column.truth.shape[1]), -1)])[column.item]
        self._counts = getattr(self, "_counts", {})
        self._counts[j] = counts = [
            Counts(group, column.item, len(column.values), self._weights(j))
            for group in [np.zeros(self.n, np.int64), *self.partners[j].group]
        ]
        return np.column_stack([column.item, truth, *(c.proposed() for c in counts)])

    def _ask_joint(self, wanted: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Of each column the probabilities by the joint of wanted values, (n, C), its most probable value, and that one's."""
        by_value = []
        for j, column in enumerate(self.columns):
            code = np.arange(len(column.values))
            best = np.full(column.scale.n_codes, -1)
            order = np.argsort(column.measure, kind="stable")
            order = order[column.code[order] >= 0]
            best[column.code[order]] = code[order]
            by_value.append(best)
        safe = [np.append(column.code, -1) for column in self.columns]
        measure = [
            np.append(np.where(c.code >= 0, c.elsewhere(self._weights(j)), 0.0), 0.0) for j, c in enumerate(self.columns)
        ]

        def read(rows: slice, j: int, codes: np.ndarray) -> np.ndarray:
            values = wanted[j][rows]
            p = np.take_along_axis(codes, np.maximum(safe[j][values], 0), axis=1) * measure[j][values]
            of_best = codes * np.where(by_value[j] >= 0, measure[j][by_value[j]], 0.0)
            top = of_best.argmax(axis=1)
            return np.column_stack([p, by_value[j][top], of_best[np.arange(len(p)), top]])

        likelihood = [self._likelihood(j) for j in range(len(self.columns))]
        both = ask_each(self.hidden, likelihood, self.item, read, self.n_jobs)
        ends = np.cumsum([of.shape[1] + 2 for of in wanted])
        parts = np.split(both, ends[:-1], axis=1)
        return [(part[:, :-2], part[:, -2].astype(np.int64), part[:, -1]) for part in parts]

    def _likelihood(self, j: int) -> np.ndarray:
        """p(what is seen | code) of each value of a column, (U + 1, K); the last row is of missing cells."""
        column, e = self.columns[j], self.rate[j]
        U, K = column.n_seen, column.scale.n_codes
        out = np.zeros((U + 1, K))
        own, other = column.code[:U], column.truth
        out[:U] = e * self._vague(j)[:, None]
        has = np.flatnonzero(own >= 0)
        out[has, own[has]] += (1.0 - e) * column.measure[has]
        u, c = np.nonzero(other >= 0)
        truth = other[u, c]
        p = e * self.share[j][column.place[c]] * np.exp(column.log_error[u, c]) * column.measure[truth]
        some = column.code[truth] >= 0
        np.add.at(out, (u[some], column.code[truth[some]]), p[some])
        out[U] = 1.0
        return out

    def _vague(self, j: int) -> np.ndarray:
        """p(seen, one of the kinds that tell nothing of the truth | error), (U,)."""
        column, share = self.columns[j], self.share[j]
        return np.asarray(share[-2] * np.exp(column.log_random) + share[-1] * np.exp(column.log_any))

    def _column(self, j: int, joint: tuple[np.ndarray, np.ndarray, np.ndarray]) -> tuple[Posterior, np.ndarray]:
        """Weights of what is expected, the share of wrong cells, and the posterior of one column's cells."""
        column, counts = self.columns[j], self._counts[j]
        of_joint, top, of_top = joint
        values = np.column_stack([self._candidates(j), top])
        is_function = self.partners[j].is_function(self.pooled)
        new = np.zeros(values.shape)
        new[:, 0] = np.append(np.exp(column.log_new), 0.0)[column.item]
        expected = [] if is_function else [np.column_stack([of_joint, of_top])]
        if column.is_levels or (column.column.step > 0.0 and column.n_seen < self.n / 3):
            expected += [each.at(values, new) for each in counts[int(is_function) :]]
        if column.is_levels:
            expected.append(new)
        P = np.stack(expected)  # (M, n, C)
        C = column.truth.shape[1]
        known = column.item >= 0
        u = column.item[known]
        q = np.where(column.truth[u] >= 0, np.exp(column.log_error[u]), 0.0)  # (n, C)
        F = np.zeros((len(P), len(u), len(column.kinds) + 1))
        F[:, :, 0] = P[:, known, 0]
        likely = P[:, known, 1 : 1 + C] * q
        F[:, :, 1:-2] = likely.sum(axis=2, keepdims=True) if column.is_levels else likely
        others = np.maximum(1.0 - P[:, known, 0] * (column.is_levels or column.column.step > 0.0), 0.0)
        F[:, :, -2] = others * np.exp(column.log_random[u])
        F[:, :, -1] = others * np.exp(column.log_any[u])
        weight, e, of_kind = self.mixture.get(j, np.empty(0)), self.pooled, np.zeros(len(column.kinds))
        weight = weight if len(weight) == len(P) else np.full(len(P), 1.0 / len(P))
        by_kind, first = np.zeros((len(u), len(column.kinds) + 1)), F[:, :, 0].copy()
        for k in range(_STEPS if len(u) else 0):
            scale = np.concatenate([[1.0 - e], e * self.share[j]])
            if column.is_levels and j in self.mixture and k % 10 == 0:
                wrong = np.tensordot(weight, F[:, :, 1:], axes=1) * (max(e, self.pooled) * self.share[j])
                self.is_value[j] = self._is_value(column, u, weight @ first, wrong)
                F[:, :, 0] = first * self.is_value[j][u]
            mixed = np.tensordot(weight, F, axes=1) * scale
            total = np.maximum(mixed.sum(axis=1), 1e-300)
            by_kind = mixed / total[:, None]
            part = weight[:, None] * (F @ scale) / total
            weight = part.sum(axis=1) / part.sum()
            of_kind = by_kind[:, 1:].sum(axis=0)
            self.share[j] = (of_kind + _SHARED * self.common[j]) / (of_kind.sum() + _SHARED)
            e = min(float((of_kind.sum() + _PSEUDO * self.pooled) / (len(u) + _PSEUDO)), _MOST)
        self.rate[j] = max(e, 1e-4)
        self.mixture[j] = weight
        P *= np.append(self.is_value[j], 0.0)[values]
        return self._posterior(j, values, np.tensordot(weight, P, axes=1), known, q, by_kind, e), of_kind

    def _is_value(self, column: CheckedColumn, u: np.ndarray, right: np.ndarray, wrong: np.ndarray) -> np.ndarray:
        """p(each seen value is one of the column's, and not the same error several times), (U,).

        A value of the column has to be invented once, at the probability of its letters; its other rows take it up. The
        rows of the same error have each their own.
        """
        log_error = np.log(np.maximum(wrong.sum(axis=1) - wrong[:, -2], 1e-300))
        gain = np.log(np.maximum(right, 1e-300)) - log_error
        c = np.maximum(column.count, 1.0)
        mean_gain, mean_error = (np.bincount(u, x, column.n_seen) / c for x in (gain, log_error))
        odds = (c - 1.0) * mean_gain + np.log(_FIRST) + column.log_new - mean_error
        return np.where(column.count > 1.0, 1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0))), 1.0)

    def _posterior(self, j: int, values: np.ndarray, p: np.ndarray, known: np.ndarray, q: np.ndarray, by_kind: np.ndarray, e: float) -> Posterior:
        column, share = self.columns[j], self.share[j]
        n, C = self.n, column.truth.shape[1]
        p = np.where(values >= 0, p, 0.0)
        score = np.zeros(p.shape)
        u = column.item[known]
        score[known] = e * p[known] * self._vague(j)[u][:, None]
        score[known, 1 : 1 + C] += e * p[known, 1 : 1 + C] * q * share[column.place]
        score[values == column.item[:, None]] = 0.0
        score[known, 0] = (1.0 - e) * p[known, 0]
        score[~known] = p[~known]
        total = np.ones(n)
        total[known] = score[known, 0] / np.maximum(by_kind[:, 0], 1e-300)
        choice = score.argmax(axis=1)
        best = values[np.arange(n), choice]
        with np.errstate(invalid="ignore"):
            p_best = np.clip(score[np.arange(n), choice] / np.maximum(total, 1e-300), 0.0, 1.0)
        p_wrong, kind = np.zeros(n), np.full(n, RANDOM)
        p_wrong[known] = 1.0 - by_kind[:, 0]
        kind[known] = column.kinds[by_kind[:, 1:].argmax(axis=1)]
        return Posterior(p_wrong, best, p_best, kind)
