"""Rows that contradict rules, and the table as codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

import numpy as np

from ..schema import Column, Schema
from .rule import Combinations, Equation, Function, MissingTogether, MissingWhere, Order, Rule

NEAR = 1e-6
"""Share of a grid's step by which sums may miss because floats round."""
ROUNDED = 1e-5
"""Share of their range by which numbers without grid may miss a sum, because a file has them to six digits or so."""


@singledispatch
def contradicted(rule: Rule, schema: Schema, X: np.ndarray) -> np.ndarray:
    """Which of n rows contradict the rule, bool (n,); X (n, d) has numbers and level codes, NaN where missing."""
    # Rows that miss a needed cell do not contradict. In a function, all rows but those with the commonest value do.
    raise TypeError(f"no rule: {rule!r}")


@contradicted.register
def _(rule: Function, schema: Schema, X: np.ndarray) -> np.ndarray:
    out = np.zeros(len(X), bool)
    cells = X[:, [schema.index(name) for name in rule.columns]]
    known = np.flatnonzero(~np.isnan(cells).any(axis=1))
    if len(known):
        x, y = combined([ranked(cells[known, k]) for k in range(len(rule.of))]), ranked(cells[known, -1])
        out[known] = minority(x, y) | (minority(y, x) if rule.is_mutual else False)
    return out


@contradicted.register
def _(rule: Combinations, schema: Schema, X: np.ndarray) -> np.ndarray:
    return np.zeros(len(X), bool)  # a table has the combinations that it has


@contradicted.register
def _(rule: Equation, schema: Schema, X: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        rest = equation_total(rule, schema, X) - X[:, schema.index(rule.column)]
        return np.asarray(np.abs(rest) > tolerance(rule, schema))


@contradicted.register
def _(rule: Order, schema: Schema, X: np.ndarray) -> np.ndarray:
    apart = gap(rule, schema, X)
    near = NEAR * max(schema[name].step for name in rule.columns)
    with np.errstate(invalid="ignore"):
        return np.asarray(apart <= near if rule.is_strict else apart < -near)


@contradicted.register
def _(rule: MissingTogether, schema: Schema, X: np.ndarray) -> np.ndarray:
    missing = np.isnan(X[:, [schema.index(name) for name in rule.of]])
    return np.asarray(missing.any(axis=1) & ~missing.all(axis=1))


@contradicted.register
def _(rule: MissingWhere, schema: Schema, X: np.ndarray) -> np.ndarray:
    cells = X[:, [schema.index(name) for name in rule.of]]
    is_there = np.zeros(len(X), bool)
    if rule.ends is not None:
        column, (low, high) = schema[rule.of[0]], rule.ends
        if column.is_categorical or column.kind == "datetime":
            raise ValueError(f"column {column.name!r} is {column.kind}, expected numbers in 'missing iff ... <= ...'")
        near = NEAR * column.step
        with np.errstate(invalid="ignore"):
            is_there = (cells[:, 0] >= low - near) & (cells[:, 0] <= high + near)
    for values in rule.values if rule.ends is None else ():
        numbers = [schema[name].to_number(value) for name, value in zip(rule.of, values, strict=True)]
        is_there |= (cells == numbers).all(axis=1)
    known = ~np.isnan(cells).any(axis=1)
    is_missing = np.isnan(X[:, schema.index(rule.column)])
    return np.asarray(known & (is_missing != is_there if rule.is_mutual else is_there & ~is_missing))


# ---- Sums and gaps in the numbers of a table.


def equation_total(rule: Equation, schema: Schema, X: np.ndarray) -> np.ndarray:
    """The sum in numbers of the equation's column, (n,), not rounded to its grid; NaN where a part is missing."""
    out = np.full(len(X), rule.constant - schema[rule.column].zero)
    for coefficient, name in rule.terms:
        out += coefficient * (X[:, schema.index(name)] + schema[name].zero)
    return out


def gap(rule: Order, schema: Schema, X: np.ndarray) -> np.ndarray:
    """High less low, (n,); NaN where either is missing."""
    apart = schema[rule.high].zero - schema[rule.low].zero
    return np.asarray(X[:, schema.index(rule.high)] - X[:, schema.index(rule.low)] + apart)


def tolerance(rule: Equation, schema: Schema) -> float:
    """The tolerance of the sum: that of the rule, and at least half a step of a grid."""
    # Without a grid, and without a word in the rule, what rounding does to the parts.
    column = schema[rule.column]
    if column.step > 0.0 or rule.tolerance:
        return max(column.step * 0.5, rule.tolerance) + NEAR * column.step
    return ROUNDED * sum(abs(c) * number_span(schema[name]) for c, name in ((1.0, rule.column), *rule.terms))


def with_tolerance(rule: Equation, schema: Schema) -> Equation:
    """The rule with the tolerance that the significant digits of its columns give, if that exceeds its usual one."""
    silent = replace(rule, tolerance=0.0)
    half = 0.5 * sum(abs(c) * schema[name].last_digit for c, name in ((1.0, rule.column), *rule.terms))
    if half <= tolerance(silent, schema):
        return silent
    return replace(rule, tolerance=float(f"{1.05 * half:.1e}"))  # two digits are enough, and never too little


def number_span(column: Column) -> float:
    """Largest less least number."""
    return column.maximum - column.minimum


# ---- Values as codes, and rows that disagree with others.


def ranked(x: np.ndarray) -> np.ndarray:
    """The number of each value among the distinct ones, ascending, int64 (n,); -1 where NaN."""
    out = np.full(len(x), -1)
    known = ~np.isnan(x)
    out[known] = np.unique(x[known], return_inverse=True)[1].reshape(-1)
    return out


def numbers_of_distinct(key: np.ndarray) -> np.ndarray:
    """The number of each whole number of at least 0 among the distinct ones, ascending, int64 (n,)."""
    if key.max(initial=0) > 8 * len(key) + 1_000:
        return np.unique(key, return_inverse=True)[1].reshape(-1)
    return np.asarray((np.cumsum(np.bincount(key) > 0) - 1)[key])  # without a sort


def combined(codes: Sequence[np.ndarray]) -> np.ndarray:
    """The number of each combination of codes (n,) among the distinct ones, int64 (n,); none is -1."""
    key = numbers_of_distinct(codes[0].astype(np.int64))
    for other in codes[1:]:
        key = numbers_of_distinct(key * (int(other.max(initial=0)) + 1) + other)
    return key


def minority(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rows whose code y is not the most common one among the rows of equal code x, bool (n,)."""
    if not len(x):
        return np.zeros(0, bool)
    pair = combined([x, y])
    count = np.bincount(pair)
    x_of = np.zeros(len(count), np.int64)
    x_of[pair] = x
    most = np.zeros(int(x.max()) + 1, np.int64)
    order = np.argsort(count, kind="stable")
    most[x_of[order]] = order  # the last one written is the most common
    return np.asarray(most[x] != pair)


# ---- A table as codes of its values, and a random sample of its rows that refutes most candidates of rules.

SAMPLE = 20_000
"""Rows of the sample."""
CHANCE = 1e-3
"""Most rules that are expected to be found by chance, of each kind, in a whole table."""
MOST_EXCEPTION_SHARE = 1e-3
"""Largest share of exceptions of a rule that is named."""


class CodedTable:
    """A table of n rows and d columns. The codes of a whole column are computed when they are first asked for.

    X : float64 array (n, d). Numbers and level codes, NaN where missing.
    rows : int64 array (m,). The sampled rows, ascending.
    sample : int32 array (m, d), by columns. Number of each sampled cell's value in its column; -1 where missing.
    sizes : int64 array (d,). Values of each column in the sample.
    """

    def __init__(self, schema: Schema, X: np.ndarray) -> None:
        self.schema, self.X = schema, X
        n, d = X.shape
        m = min(n, SAMPLE)
        self.rows = np.sort(np.random.default_rng(0).permutation(n)[:m]) if m < n else np.arange(n)
        self._codes: dict[int, np.ndarray] = {}
        self.sample = np.empty((d, m), np.int32).T
        for j in range(d):
            self.sample[:, j] = self.codes(j) if m == n else self._numbered(j, X[self.rows, j])
        self.sizes = self.sample.max(axis=0, initial=-1).astype(np.int64) + 1

    @property
    def n(self) -> int:
        return len(self.X)

    @property
    def d(self) -> int:
        return self.X.shape[1]

    def codes(self, j: int) -> np.ndarray:
        """The number of each cell's value among the distinct ones of column j, ascending, int64 (n,); -1: missing."""
        if j not in self._codes:
            self._codes[j] = self._numbered(j, self.X[:, j])
        return self._codes[j]

    def _numbered(self, j: int, x: np.ndarray) -> np.ndarray:
        """The number of each of some cells of column j among their distinct values, ascending; -1: missing."""
        column = self.schema.columns[j]
        step = 1.0 if column.is_categorical else column.step
        return _ranked_cells(x, step) if step > 0.0 else ranked(x)

    def size(self, j: int) -> int:
        """Number of distinct values of column j."""
        return int(self.codes(j).max(initial=-1)) + 1


def _ranked_cells(x: np.ndarray, step: float) -> np.ndarray:
    """`ranked` for numbers on a grid: numbers in one grid cell get the same rank."""
    known = ~np.isnan(x)
    if not known.any():
        return np.full(len(x), -1)
    low = x[known].min()
    out = np.full(len(x), -1)
    cell = np.rint((x[known] - low) / step)
    out[known] = numbers_of_distinct(cell.astype(np.int64)) if cell.max() < 2**53 else ranked(cell)
    return out
