"""Conditions put together in one normal form, so that the same meaning said the same way is the same condition."""

from __future__ import annotations

from collections.abc import Iterable

from ..table.conditions import AllOf, AnyOf, Interval, Not
from ..table.missing import Missing
from ..table.soft_conditions import About, Likely

Value = str | int | float | bool
Condition = Value | Interval | AnyOf | AllOf | Not | Likely | About | Missing
Conditions = tuple[tuple[str, Condition], ...]
"""Pairs of a column and its condition, each column once."""


def all_of(conditions: Iterable[Condition]) -> Condition:
    """All of them; a lone one is itself."""
    flat = [part for c in conditions for part in (c.conditions if isinstance(c, AllOf) else (c,))]
    return flat[0] if len(flat) == 1 else AllOf(*flat)


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Any of them; a lone one is itself."""
    flat = [part for c in conditions for part in (c.conditions if isinstance(c, AnyOf) else (c,))]
    return flat[0] if len(flat) == 1 else AnyOf(*flat)


def negate(condition: Condition) -> Condition:
    """The opposite condition."""
    if isinstance(condition, Not):
        inner: Condition = condition.condition
        return inner
    if isinstance(condition, bool):
        return not condition
    return Not(condition)


def merge(clauses: Iterable[Conditions]) -> Conditions:
    """Conditions that all hold: those on one column become one."""
    found: dict[str, list[Condition]] = {}
    for conditions in clauses:
        for column, condition in conditions:
            found.setdefault(column, []).append(condition)
    return tuple((column, all_of(parts)) for column, parts in found.items())
