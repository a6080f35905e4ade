"""Statements of a joint that can be counted in a table, such as P(rate <= 159 given room = 'suite'), and the worst one.

The statements are exact answers of the joint, not shares of draws. Of each column they are P(level) of common levels, or
P(x <= quantile) and the mean. They are asked given nothing, and given each class of values of the columns on which it
depends most. Relations that the rule search knows, and that the joint does not enforce, are statements too.

A statement is wrong as far as it lies outside a confidence interval of the rows' share. The intervals of all statements
hold together with a probability of 1 - `LEVEL`, by Bonferroni's inequality. Those of probabilities are of Clopper and
Pearson, which hold for any number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from ..data.conditions import AnyOf, Interval, PerRow
from ..data.evidence import Evidence, build, intersect
from ..data.rules.contradictions import combined, contradicted, tolerance, total
from ..data.rules.rule import Combinations, Equation, Function, Order, Rule
from ..data.schema import Column, Schema, kernel_columns, snap
from ..data.texts import column_text
from ..learners.hidden_tree.structure import mutual_information
from ..models.base import Distribution
from ..query_language.render import condition_text
from .columns_and_pairs import some
from .misfit import classes_of

LEVEL = 0.01
"""Probability with which a true joint has any statement that is called wrong."""
MOST_ROWS = 200_000
"""Rows that are counted; of more so many are drawn."""
_PAIRS = 24
"""Most pairs of a column and one on which it depends; the strongest are taken."""
_PARTNERS = 2
"""Most columns given which a column is asked about: the strongest."""
_LOOKED_AT = 4_000
"""Rows by which the strength of dependence is judged."""
_CLASSES = 4
"""Most levels of a column, or runs of about equal mass of a number, that are given."""
_LEVELS = 5
"""Most levels of a column whose probabilities are asked for: the most common ones."""
_SHARES = 0.05, 0.25, 0.5, 0.75, 0.95
"""Of the quantiles up to which a column of numbers is asked about, beside its ends and its widest gap."""
_FEWEST = 20
"""Fewest rows of a statement."""
_OF_RULES = 256
"""Rows by whose values a joint is asked whether a rule holds."""
_MOST_RULES = 20
"""Most rules that are asked about: those of most rows."""


class Statement(NamedTuple):
    """One statement.

    Attributes
    ----------
    text : str
    joint, rows : float
        The joint's answer, and what counting rows gives.
    n_rows : int
        Rows that were counted.
    off : float
        By how much the joint is wrong, chance aside, as a probability; 0 if chance may explain all of it. Of means the
        total variation distance of two normal distributions that are as many standard deviations apart.
    """

    text: str
    joint: float
    rows: float
    n_rows: int
    off: float

    def __str__(self) -> str:
        joint, rows = _in_digits(self.joint, self.rows)
        return f"{self.text}: joint {joint}, rows {rows} ({self.n_rows:,} rows)"


@dataclass(frozen=True)
class Statements:
    """Statements of a joint beside counts of rows.

    Attributes
    ----------
    n : int
        Number of statements.
    of : str
        The rows that were counted, in words.
    wrong : tuple of Statement
        Those that chance does not explain, the worst first.
    """

    n: int
    of: str
    wrong: tuple[Statement, ...]

    @property
    def off(self) -> float:
        """By how much the worst statement is wrong; 0 if none is."""
        return self.wrong[0].off if self.wrong else 0.0

    @property
    def in_words(self) -> str:
        """How many statements are wrong, and the worst."""
        found = f"{self.n:,} statements beside counts of {self.of}"
        if not self.wrong:
            return f"{found}: none is off by more than chance"
        return f"{found}: {len(self.wrong):,} off by more than chance, the worst {self.wrong[0]}"


def statements(model: Distribution, X: np.ndarray, of: str, n_jobs: int | None = -1) -> Statements:
    """Statements of a joint beside counts of encoded rows X (n, d), which ``of`` names in words."""
    schema = model.schema
    X = snap(kernel_columns(schema), X[some(len(X), MOST_ROWS, np.random.default_rng(0))])
    asked = [*_of_columns(model, X, n_jobs), *_of_rules(model, X, n_jobs)]
    counted = [one for one in asked if one.n_rows >= _FEWEST and not np.isnan(one.joint)]
    level = LEVEL / max(len(counted), 1)
    judged = [Statement(one.text(), one.joint, one.rows, one.n_rows, off) for one in counted if (off := one.off(level))]
    return Statements(len(counted), of, tuple(sorted(judged, key=lambda one: (-one.off, one.text))))


# ---- One statement before it is judged.


class _Asked(NamedTuple):
    """A probability, or with an ``sd`` a mean: the joint's answer, and what rows say; words are made when needed."""

    text: Callable[[], str]
    joint: float
    rows: float
    n_rows: int
    n_yes: float = 0.0
    sd: float = 0.0
    beyond: Callable[[float], float] | None = None

    def off(self, level: float) -> float:
        """By how much the joint is wrong beside an interval that misses with the probability ``level``."""
        if self.beyond is None:
            low, high = interval(self.n_yes, self.n_rows, level)
            return max(low - self.joint, self.joint - high, 0.0)
        apart = self.rows - self.joint
        away = abs(apart) + float(ndtri(level / 2.0)) * self.sd / np.sqrt(self.n_rows)
        # of heavy tails a sum is as far from its mean as one part may be: n P(part so far) is added (Nagaev 1979)
        if away <= 0.0 or self.n_rows * self.beyond(self.n_rows * apart) > level:
            return 0.0
        return float(2.0 * ndtr(0.5 * away / self.sd) - 1.0)


def interval(k: float, n: int, level: float) -> tuple[float, float]:
    """Limits of Clopper and Pearson for the share of k in n rows, which miss it with a probability of at most level."""
    low = 0.0 if k <= 0 else float(betaincinv(k, n - k + 1.0, level / 2.0))
    high = 1.0 if k >= n else float(betaincinv(k + 1.0, n - k, 1.0 - level / 2.0))
    return low, high


def _in_digits(a: float, b: float) -> tuple[str, str]:
    """Two numbers with two digits, or as many more as tell them apart."""
    for digits in range(2, 7):
        both = tuple(f"{x:.{digits}f}" if abs(x) <= 1.0 else f"{x:.{digits + 1}g}" for x in (a, b))
        if both[0] != both[1]:
            break
    return both[0], both[1]


# ---- Columns, given nothing and given the columns on which they depend most.


class _Class(NamedTuple):
    """A class of values of a column: the condition, and which rows are in it, bool (n,)."""

    condition: Any
    rows: np.ndarray


def _of_columns(model: Distribution, X: np.ndarray, n_jobs: int | None) -> Iterator[_Asked]:
    """Statements about each column, given nothing, and given classes of its partners."""
    schema = model.schema
    known = ~np.isnan(X)
    has_missing = ~known.all(axis=0)
    partners = _partners(schema, X)
    classes = {p: _classes(schema.columns[p], X[:, p]) for p in sorted({p for of in partners for p in of})}
    given: dict[tuple[int, ...], Distribution | None] = {(): model}
    for j, column in enumerate(schema.columns):
        each: dict[tuple[int, ...], list[tuple[int, _Class | None]]] = {}
        for p in (j, *partners[j]):
            cells = tuple(sorted({k for k in (j, p) if has_missing[k]}))
            each.setdefault(cells, []).extend([(p, None)] if p == j else [(p, one) for one in classes[p]])
        for cells, conditions in each.items():
            if cells not in given:  # counts are of rows that have both cells
                given[cells] = model.given_missing_cells({schema.names[k]: False for k in cells})[0]
            if (of := given[cells]) is not None:
                yield from _of_column(of, X[:, j], column, j, conditions, n_jobs)


def _partners(schema: Schema, X: np.ndarray) -> list[list[int]]:
    """The columns on which each column depends most, the strongest first."""
    rows = X[some(len(X), _LOOKED_AT, np.random.default_rng(1))]
    information = mutual_information(*classes_of(schema, rows, rows[:0]))
    np.fill_diagonal(information, 0.0)
    strongest = np.argsort(-information, axis=1, kind="stable")[:, :_PARTNERS]
    strength = np.take_along_axis(information, strongest, axis=1)
    least = max(np.sort(strength.ravel())[::-1][:_PAIRS][-1], 1e-9)
    return [[p for p, s in zip(of, by, strict=True) if s >= least] for of, by in zip(strongest.tolist(), strength, strict=True)]


def _classes(column: Column, x: np.ndarray) -> list[_Class]:
    """Common levels, or runs of numbers of about equal mass and the two sides of the widest gap, of enough rows."""
    found = []
    if column.is_categorical:
        count = np.bincount(x[~np.isnan(x)].astype(np.int64), minlength=len(column.levels))
        for code in np.argsort(-count, kind="stable")[:_CLASSES].tolist():
            found.append(_Class(column.levels[code], x == code))
    else:
        known = np.sort(x[~np.isnan(x)])
        ends = np.unique(np.append(_ends(known, np.arange(1, _CLASSES) / _CLASSES), known[-1:]))
        low = -np.inf
        for end in ends.tolist():
            rows = (x > low) & (x <= end)
            first, low = known[np.searchsorted(known, low, "right")], end
            ends_at = [None if one in (known[0], known[-1]) else column.from_number(one) for one in (first, end)]
            is_one = first == end and known[0] < known[-1]
            found.append(_Class(column.from_number(end) if is_one else Interval(*ends_at), rows))
    return [one for one in found if _FEWEST <= np.count_nonzero(one.rows) < len(x)]


def _ends(known: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """Quantiles of ascending numbers, and the last number before the widest gap that has enough rows on both sides."""
    n = len(known)
    found = np.quantile(known, shares, method="inverted_cdf") if n else known
    few = max(_FEWEST, n // 50)
    if n > 2 * few:
        found = np.append(found, known[few - 1 + int(np.diff(known[few - 1 : n - few + 1]).argmax())])
    return np.unique(found)


def _of_column(
    model: Distribution,
    x: np.ndarray,
    column: Column,
    j: int,
    conditions: Sequence[tuple[int, _Class | None]],
    n_jobs: int | None,
) -> Iterator[_Asked]:
    """Statements about column j, whose cells are x, given each condition on another column."""
    known = ~np.isnan(x)
    if np.count_nonzero(known) < _FEWEST:
        return
    names = model.schema.names
    each = {
        names[p]: PerRow([None if q != p or one is None else one.condition for q, one in conditions])
        for p in dict.fromkeys(p for p, one in conditions if one is not None)
    }
    state = model.observe(build(model.schema, conditions=each, n=len(conditions)))
    is_sure = np.isinf(state.effective_draws)
    name = column_text(column.name)
    rows = [known if one is None else known & one.rows for _, one in conditions]
    givens = ["" if one is None else f" given {condition_text(column_text(names[p]), one.condition)}" for p, one in conditions]  # noqa: E501
    if column.is_categorical:
        codes = [x[of].astype(np.int64) for of in rows]
        count = np.array([np.bincount(code, minlength=len(column.levels)) for code in codes])
        common = np.argsort(-np.bincount(x[known].astype(np.int64), minlength=len(column.levels)), kind="stable")
        events = [(code, condition_text(name, column.levels[code])) for code in common[:_LEVELS].tolist()]
        answer = state.level_probabilities(j, n_jobs)
    else:
        values = np.sort(x[known])
        cuts = np.append(_ends(values, _SHARES), values[-1])
        below = values[0] - (0.5 * column.step if column.step else np.spacing(abs(values[0])))
        cuts = np.unique(np.append(below, cuts))
        count = np.array([np.searchsorted(np.sort(x[of]), cuts, "right") for of in rows])
        events = [(k, f"{name} <= {_written(column, cut)}") for k, cut in enumerate(cuts.tolist())]
        events[0] = (0, f"{name} < {_written(column, values[0])}")
        answer = state.cdf(j, cuts, n_jobs)
    for i, (of, given) in enumerate(zip(rows, givens, strict=True)):
        n = int(np.count_nonzero(of))
        if n < _FEWEST or not is_sure[i]:
            continue
        for k, event in events:
            text = f"P({event}{given})"
            yield _Asked(lambda text=text: text, float(answer[i, k]), count[i, k] / n, n, float(count[i, k]))  # type: ignore[misc]
    if not column.is_categorical and column.kind != "datetime":
        mean, variance = state.moments(j, n_jobs)
        for i, (of, given) in enumerate(zip(rows, givens, strict=True)):
            sd = float(np.sqrt(max(variance[i], x[of].var() if of.any() else 0.0)))
            if is_sure[i] and 0.0 < sd < np.inf:
                one, center = state.evidence.take(np.array([i])), float(mean[i])

                def beyond(apart: float, one: Evidence = one, center: float = center) -> float:
                    share = float(model.observe(one).cdf(j, np.array([center + apart]), n_jobs)[0, 0])
                    return share if apart < 0.0 else 1.0 - share

                text = f"mean({name}{given})"
                n = int(np.count_nonzero(of))
                yield _Asked(lambda text=text: text, center, float(x[of].mean()), n, sd=sd, beyond=beyond)  # type: ignore[misc]


def _written(column: Column, number: float) -> str:
    """A number of a column in words."""
    value = column.from_number(number)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# ---- Rules that hold in the table, and that the joint does not enforce.


def _of_rules(model: Distribution, X: np.ndarray, n_jobs: int | None) -> Iterator[_Asked]:
    """How probable it is that each rule holds, given what it is of in each of some rows in which it holds."""
    rules = [one for one in model.schema.rules if isinstance(one, Function | Equation | Order | Combinations)]
    rules = sorted((one for one in rules if not one.is_enforced), key=lambda one: -one.rows)[:_MOST_RULES]
    for rule in rules:
        of, target = _sides(rule)
        known = ~np.isnan(X[:, [model.schema.index(name) for name in rule.columns]]).any(axis=1)
        holds = np.flatnonzero(known & ~contradicted(rule, model.schema, X))
        rows = holds[some(len(holds), _OF_RULES, np.random.default_rng(2))]
        if not len(rows):
            continue
        value = np.full((len(rows), X.shape[1]), np.nan)
        columns = [model.schema.index(name) for name in of]
        value[:, columns] = X[np.ix_(rows, columns)]
        given = build(model.schema, value)
        both = intersect(model.schema, given, {target: PerRow(_kept(rule, model.schema, X, rows))})
        states = [model.observe(one) for one in (given, both)]
        is_sure = np.isinf(np.minimum(*(state.effective_draws for state in states)))
        with np.errstate(invalid="ignore"):
            share = np.exp(states[1].log_probability(n_jobs) - states[0].log_probability(n_jobs))[is_sure]
        share = np.minimum(share[~np.isnan(share)], 1.0)
        if len(share):
            text = f"P({rule} holds given {', '.join(map(column_text, of))})"
            exceptions = np.count_nonzero(known) - len(holds)
            yield _Asked(
                lambda text=text: text, float(share.mean()), 1.0 - exceptions / np.count_nonzero(known),  # type: ignore[misc]
                len(share), float(len(share)),
            )  # fmt: skip


def _sides(rule: Rule) -> tuple[tuple[str, ...], str]:
    """The columns that a rule is of, and the one that it then limits."""
    if isinstance(rule, Function):
        return rule.of, rule.column
    if isinstance(rule, Equation):
        return rule.columns[1:], rule.column
    return rule.columns[:-1], rule.columns[-1]


def _kept(rule: Rule, schema: Schema, X: np.ndarray, rows: np.ndarray) -> list[Any]:
    """What a rule leaves of the column that it limits, a condition for each of some rows in which it holds."""
    of, target = _sides(rule)
    column, y = schema[target], X[:, schema.index(target)]
    if isinstance(rule, Order):
        closed: Any = "right" if rule.is_strict else "both"
        return [Interval(column.scalar(x), None, closed) for x in X[rows, schema.index(rule.low)].tolist()]
    if isinstance(rule, Equation):
        sums, off = total(rule, schema, X[rows]), tolerance(rule, schema)
        return [Interval(column.scalar(x - off), column.scalar(x + off)) for x in sums.tolist()]
    if isinstance(rule, Combinations):
        known = np.flatnonzero(~np.isnan(X[:, [schema.index(name) for name in rule.of]]).any(axis=1))
        group = np.full(len(X), -1)
        group[known] = combined([np.unique(X[known, schema.index(name)], return_inverse=True)[1] for name in of])
        values = [np.unique(y[known[group[known] == k]]).tolist() for k in group[rows].tolist()]
        return [AnyOf(*(column.from_number(x) for x in some_values)) for some_values in values]
    if column.is_categorical:
        return [AnyOf(column.from_number(x)) for x in y[rows].tolist()]
    values = np.unique(y[~np.isnan(y)])  # nearer to the value than to any other
    middle = np.concatenate([[-np.inf], 0.5 * (values[1:] + values[:-1]), [np.inf]])
    at = np.searchsorted(values, y[rows])
    ends = [[None if np.isinf(x) else column.scalar(x) for x in (middle[k], middle[k + 1])] for k in at.tolist()]
    return [Interval(low, high, "right") for low, high in ends]
