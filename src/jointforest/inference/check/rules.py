"""Cells that break a rule of numbers, a sum or an order, which holds in nearly all rows.

One cell of a row that breaks `gross = net + tax` is wrong, and the others say what its value is. Which one it is, the
joint tells: the density of the row with each of the cells corrected, times the probability of the error that changed
the corrected value into the one in the cell. In an order, such as `start <= end`, the wrong cell has no single true
value. For an order, mainly the other evidence that a cell is wrong decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...data.evidence import build
from ...data.rules.contradictions import contradicted, equation_total
from ...data.rules.find import find_broken_rules, with_usual_grids
from ...data.rules.rule import Equation, Order
from ...data.schema import Schema, snapped
from ...models.base import Distribution
from .columns import FACTORS, CheckedColumn
from .partners import explains
from .texts import edits_between

_MOST = 0.05  # greatest share of rows that break a rule, for each column but one: then half of them are genuine
_STEEP = 4.0  # power of the share: half of it makes 16 of 17 exceptions wrong
_BREAKS_ANOTHER = 1e-3  # probability that a row with a corrected cell breaks another rule
# Densities are raised to this power: they are overconfident in small tables, and count a derived cell twice.
_TRUST = 0.5
_LEAST = 1e-6  # least probability that a cell is right, for other reasons than rules
_MOST_DROP = 50.0  # log densities that are lower than the highest one of a row by more than this are equal


class Breaks(NamedTuple):
    """The rules that rows break; all arrays are (n, d).

    p : float array. Probability that the cell is wrong, because it breaks a rule.
    item : int array. The value that the rule gives, as `CheckedColumn.item`; -1 if it gives none.
    rule : int array. The rule, an index into `BrokenRules.rules`; -1 if there is none.
    """

    p: np.ndarray
    item: np.ndarray
    rule: np.ndarray


class RowsOfRule(NamedTuple):
    """The r rows that break a rule of c columns.

    rule : int. An index into `BrokenRules.rules`.
    rows : int array (r,), columns : list of c int.
    score : float array (r, c). Log-probability, up to a constant of the row, that this cell alone is wrong. Other
        evidence is not included.
    item : int array (r, c). The value that the rule gives, as `CheckedColumn.item`; -1 if it gives none.
    """

    rule: int
    rows: np.ndarray
    columns: list[int]
    score: np.ndarray
    item: np.ndarray


class BrokenRules:
    """The rules of numbers in a checked table. Columns are the m checked ones, ``places`` those of the schema.

    rules : list of Equation or Order. Those that the joint knows, and those that few rows of the table break.
    p : list of float. Probability that a row that breaks the rule has a wrong cell.
    """

    def __init__(
        self, distribution: Distribution, X: np.ndarray, places: Sequence[int], columns: Sequence[CheckedColumn]
    ) -> None:
        self._distribution, self._schema = distribution, with_usual_grids(distribution.schema, X, _MOST)
        self._places, self._columns = list(places), list(columns)
        self.rules: list[Equation | Order] = []
        self.p: list[float] = []
        known = {
            str(rule): rule for rule in self._schema.rules if isinstance(rule, Equation | Order) and not rule.exceptions
        }
        found = [rule for rule in find_broken_rules(self._schema, X, _MOST) if str(rule) not in known]
        groups = [column.item + 1 for column in columns]
        for rule in (*known.values(), *found):
            at = [self._schema.index(name) for name in rule.columns]
            wrong, most = contradicted(rule, self._schema, X), _MOST * (len(at) - 1)
            if not wrong.any() or not set(at) <= set(places):
                continue
            # A rule that the joint knows holds in all rows that it has learned, which count too.
            is_known = str(rule) in known
            n = int((~np.isnan(X[:, at])).all(axis=1).sum()) + (rule.rows if is_known else 0)
            share = float(wrong.sum()) / n
            if share <= most and (is_known or not explains(groups, wrong.astype(np.int64))):
                self.rules.append(rule)
                self.p.append(1.0 / (1.0 + (share / most) ** _STEEP))

    def text(self, k: int) -> str:
        """What a row that breaks rule k does, in words."""
        rule = self.rules[k]
        return f"breaks {replace(rule, tolerance=0.0) if isinstance(rule, Equation) else rule}"

    def rows_breaking(self, item: np.ndarray, is_right: np.ndarray, may_add: bool = False) -> list[RowsOfRule]:
        """For each rule, the rows that break it. ``item`` (n, m) has their values. ``is_right`` (m,) says which columns
        are known to be right, and ``may_add`` whether values that no cell has are added to the columns."""
        n, schema, found = len(item), self._schema, []
        X = np.full((n, len(schema.columns)), np.nan)
        for i, j in enumerate(self._places):
            X[:, j] = np.append(self._columns[i].number, np.nan)[item[:, i]]
        wrong = np.array([contradicted(rule, schema, X) for rule in self.rules], bool).reshape(-1, n)
        in_sum = wrong[[isinstance(rule, Equation) for rule in self.rules]].any(axis=0)
        for k, rule in enumerate(self.rules):
            rows = np.flatnonzero(wrong[k] & (isinstance(rule, Equation) | ~in_sum))
            of = [self._places.index(schema.index(name)) for name in rule.columns]
            score, value = self._corrected(rule, of, X[rows], item[rows], is_right)
            has = score.max(axis=1, initial=-np.inf) > -np.inf
            rows, score, value = rows[has], score[has], value[has]
            items = np.full(value.shape, -1)
            for c, i in enumerate(of):
                known = ~np.isnan(value[:, c])
                items[known, c] = self._columns[i].items_of(value[known, c], may_add)
            if len(rows):
                found.append(RowsOfRule(k, rows, of, score, items))
        return found

    def weigh_rows(self, found: Sequence[RowsOfRule], p_wrong: np.ndarray) -> Breaks:
        """For each cell, the rule that it most probably breaks. ``p_wrong`` (n, m) is the probability that a cell is
        wrong by other evidence."""
        p, items, which = np.zeros(p_wrong.shape), np.full(p_wrong.shape, -1), np.full(p_wrong.shape, -1)
        for k, rows, of, score, item in found:
            # If one cell alone is wrong, the others are right. An order has no likelihood of a value, so the prior
            # probability is multiplied in here.
            alone = np.clip(p_wrong[rows][:, of], _LEAST, 1.0 - _LEAST)
            log_p = score - np.log1p(-alone) + (np.log(alone) if isinstance(self.rules[k], Order) else 0.0)
            share = np.exp(log_p - log_p.max(axis=1, keepdims=True))
            share *= self.p[k] / share.sum(axis=1, keepdims=True)
            for c, i in enumerate(of):
                more = share[:, c] > p[rows, i]
                at = rows[more], i
                p[at], items[at], which[at] = share[more, c], item[more, c], k
        return Breaks(p, items, which)

    def _corrected(
        self,
        rule: Equation | Order,
        of: Sequence[int],
        X: np.ndarray,
        item: np.ndarray,
        is_right: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The log-probability, up to a constant of the row, that each of the c columns of a rule is wrong in rows X
        (r, d) that break it, (r, c), and its corrected values, (r, c)."""
        schema, shape, is_sum = self._schema, (len(X), len(of)), isinstance(rule, Equation)
        log_p, value, fits = np.zeros(shape), np.full(shape, np.nan), np.zeros(shape, bool)
        for c, i in enumerate(of):
            Y, j = X.copy(), self._places[i]
            Y[:, j] = snapped(schema.columns[j], _solved(rule, schema, X, j)) if isinstance(rule, Equation) else np.nan
            fits[:, c], value[:, c] = ~contradicted(rule, schema, Y) & ~is_right[i], Y[:, j]
            if len(X) and is_sum:
                log_p[:, c] = _TRUST * self._distribution.log_density(build(self._distribution.schema, Y))
            still = np.sum([contradicted(other, schema, Y) for other in self.rules], axis=0)
            log_p[:, c] += np.log(_BREAKS_ANOTHER) * still
        top = np.max(np.where(fits, log_p, -np.inf), axis=1, keepdims=True)
        log_p = np.maximum(log_p, np.where(top > -np.inf, top, 0.0) - _MOST_DROP)
        for c, i in enumerate(of if is_sum else ()):
            decimals = schema.columns[self._places[i]].decimals
            log_p[:, c] += _log_error(self._columns[i], decimals, item[:, i], value[:, c])
        return np.where(fits, log_p, -np.inf), value


def _solved(rule: Equation, schema: Schema, X: np.ndarray, j: int) -> np.ndarray:
    """The number of column j with which rows X (r, d) obey a rule, (r,)."""
    y, total = schema.index(rule.column), equation_total(rule, schema, X)
    if j == y:
        return total
    coefficient = next(c for c, name in rule.terms if schema.index(name) == j)
    return np.asarray(X[:, j] + (X[:, y] - total) / coefficient)


def _log_error(column: CheckedColumn, decimals: int, item: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """log p(value in the cell | it is wrong, and its truth), (r,): half of the errors are any value, or one at random.
    The others are one digit, or a factor. ``truth`` (r,) is NaN if it may be any."""
    p = 0.25 * (np.exp(column.log_random[item]) + np.exp(column.log_any[item]))
    known = np.flatnonzero(~np.isnan(truth))
    if len(known) and column.column.kind != "datetime":
        number, x = column.number[item[known]], truth[known]
        texts = [f"{number:.{decimals}f}" for number in (*number.tolist(), *x.tolist())]
        r = len(known)
        one_digit = edits_between(texts, np.arange(r), np.arange(r) + r) == 1
        factors = np.array([factor for _, factor in FACTORS])
        by_factor = np.isclose(x[:, None] * factors, number[:, None], rtol=1e-9, atol=0.5 * column.column.step).any(1)
        lengths = np.array([len(text) for text in texts[r:]])
        p[known] += 0.25 * one_digit / (10.0 * lengths) + 0.25 * by_factor / len(FACTORS)
    return np.asarray(np.log(np.maximum(p, 1e-300)))
