"""Columns of numbers that are never above another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..schema import Schema
from .contradictions import CHANCE, MOST_EXCEPTION_SHARE, NEAR, CodedTable, gap
from .rule import Equation, Order

_ROWS = 5_000
"""Sampled rows on which orders are sought."""
_FEWEST = 100
"""Fewest rows that must support an order."""
_NEAR = 0.1
"""Gaps up to this share of their median are near 0."""
_FEWEST_NEAR = 20
"""Fewest rows whose gap is near 0: an order has a sharp edge there."""
_ENDS = 0.02
"""Share of the cells at each end of a column that do not count, if there are exceptions."""
_TIMES = 5
"""An order with exceptions has as many times as many gaps near 0 as exceptions, and most exceptions are not as near."""
_WRONG = 0.05
"""Least share of rows that would contradict the order, were the columns independent."""
_FEW, _SOME = 0.05, 0.2
"""Most rows that contradict an order, as a share of the rows that would if the columns were independent: of an order
that is named, and of one whose exceptions may be wrong cells."""
_FAR = 0.9
"""`apartness` above which an order of numbers is hardly informative, as columns have other units or do not depend."""


def find_orders(
    table: CodedTable, equations: Sequence[Equation] = (), most: float = MOST_EXCEPTION_SHARE
) -> list[Order]:
    """Pairs of columns of which one is never above the other, or in at most a share ``most`` of the rows, although both
    have the same range of numbers."""
    # Independent columns would often contradict the order, the gap has a sharp edge at 0 or at one step, and the
    # columns move together. Columns that merely lie apart have no such edge. For dates the first is enough.
    known = {frozenset(pair) for equation in equations for pair in _ordered(table, equation)}
    numeric = [j for j, c in enumerate(table.schema.columns) if not c.is_categorical and table.sizes[j] > 1]
    found: dict[tuple[int, int], Order] = {}
    for a, b in _likely(table, numeric, most):
        if frozenset((a, b)) not in known:
            order = _judged(table, a, b, most)
            if order is not None:
                found[a, b] = order
    above = {pair for pair, order in found.items() if not order.exceptions}
    return [
        order for (a, b), order in found.items()
        if not any((a, c) in above and (c, b) in above for c in numeric if c not in (a, b))
    ]  # fmt: skip


def _ordered(table: CodedTable, equation: Equation) -> Iterator[tuple[int, int]]:
    """Pairs of columns whose order follows from an equation: of two columns, or of a sum and its part."""
    schema = table.schema
    y, least = schema.index(equation.column), {}
    for c, name in equation.terms:
        ends = (schema[name].minimum + schema[name].zero, schema[name].maximum + schema[name].zero)
        least[name] = min(c * end for end in ends)
    for c, name in equation.terms:
        rest = equation.constant + sum(x for other, x in least.items() if other != name)
        if len(equation.terms) == 1 or (c == 1.0 and rest >= 0.0):
            yield schema.index(name), y


def _likely(table: CodedTable, numeric: list[int], most: float) -> Iterator[tuple[int, int]]:
    """Pairs of columns in order in nearly all of some rows, whose ranges overlap."""
    X = table.X[table.rows[:: max(len(table.rows) // _ROWS, 1)]]
    for a in numeric:
        x = X[:, [a]] + table.schema.columns[a].zero
        y = X[:, numeric] + np.array([table.schema.columns[j].zero for j in numeric])
        known = ~(np.isnan(x) | np.isnan(y))
        above = (known & (x > y)).sum(axis=0)
        meet = np.nanmax(x, initial=-np.inf) >= np.nanmin(np.where(known, y, np.inf), axis=0)
        is_few = above <= max(10 * MOST_EXCEPTION_SHARE, most) * known.sum(axis=0)
        for k in np.flatnonzero(is_few & known.any(axis=0) & meet):
            is_time = {table.schema.columns[j].kind == "datetime" for j in (a, numeric[k])}
            if numeric[k] != a and len(is_time) == 1:
                yield a, numeric[k]


def _judged(table: CodedTable, a: int, b: int, most: float) -> Order | None:
    """The rule that column a is at most column b, if enough rows support it."""
    schema, names = table.schema, table.schema.names
    order = Order(low=names[a], high=names[b])
    apart = gap(order, schema, table.X)
    apart = apart[~np.isnan(apart)]
    step = max(schema.columns[a].step, schema.columns[b].step)
    wrong = apart < -NEAR * step
    n, n_wrong = len(apart), int(wrong.sum())
    if n < _FEWEST or n_wrong > most * n or (n_wrong and most > MOST_EXCEPTION_SHARE and not _ends_at(apart, wrong)):
        return None
    by_chance = _share_against(table, a, b)
    if by_chance < _WRONG or -np.log1p(-by_chance) * n < np.log(table.d**2 / CHANCE):
        return None
    if n_wrong > (_FEW if most <= MOST_EXCEPTION_SHARE else _SOME) * by_chance * n:
        return None
    X = table.X
    if n_wrong:  # wrong cells far from all others would make any columns seem apart
        low, high = np.nanquantile(X[:, [a, b]], [_ENDS, 1.0 - _ENDS], axis=0)
        X = X[((X[:, [a, b]] >= low) & (X[:, [a, b]] <= high)).all(axis=1)]
    least = float(apart[~wrong].min())
    is_strict = step > 0.0 and abs(least - step) <= NEAR * step
    if schema.columns[a].kind != "datetime" and not (
        _has_edge(apart[~wrong], step if is_strict else 0.0, step) and apartness(order, schema, X) <= _FAR
    ):
        return None
    return Order(low=names[a], high=names[b], is_strict=is_strict, rows=n - n_wrong, exceptions=n_wrong)


def apartness(order: Order, schema: Schema, X: np.ndarray) -> float:
    """Standard deviation of the gap, divided by that of independent columns: 0 of columns that are nearly equal."""
    cells = X[:, [schema.index(name) for name in order.columns]]
    cells = cells[~np.isnan(cells).any(axis=1)]
    independent = cells.var(axis=0).sum() if len(cells) else 0.0
    return float(np.sqrt(np.diff(cells, axis=1).var() / independent)) if independent > 0.0 else 1.0


def _share_against(table: CodedTable, a: int, b: int) -> float:
    """Share of rows with x > y if columns a and b were independent."""
    columns = table.schema.columns
    x, y = (table.X[table.rows, j] + columns[j].zero for j in (a, b))
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], np.sort(y[known])
    return float(np.searchsorted(y, x, side="left").mean() / len(y)) if len(y) else 0.0


def _ends_at(apart: np.ndarray, wrong: np.ndarray) -> bool:
    """Whether gaps end at 0, with exceptions anywhere below: few of these are as near as many gaps above 0."""
    n_wrong = np.count_nonzero(wrong)
    above = np.sort(apart[~wrong])[: max(_FEWEST_NEAR, _TIMES * n_wrong)]
    return bool(2 * np.count_nonzero(apart[wrong] >= -above[-1]) <= n_wrong)


def _has_edge(apart: np.ndarray, edge: float, step: float) -> bool:
    """Whether many gaps lie near their least possible value."""
    near = max(_NEAR * float(np.median(apart - edge)), 0.5 * step)
    return bool(np.count_nonzero(apart - edge <= near) >= max(_FEWEST_NEAR, 1e-3 * len(apart)))
