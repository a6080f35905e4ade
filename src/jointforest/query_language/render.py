"""Conditions to text that the parser reads back as the same conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..data.conditions import (
    About,
    AllOf,
    AnyOf,
    Interval,
    Likely,
    Missing,
    Not,
    Soft,
    column_text,
    normal,
    plain_number,
    value_text,
    width,
)


def conditions_text(conditions: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> str:
    """Conditions joined by commas."""
    pairs = conditions.items() if isinstance(conditions, Mapping) else conditions
    return ", ".join(condition_text(column_text(column), condition) for column, condition in pairs)


def text_beside(condition: Any) -> str:
    """One condition without the name of its column, as `parse_beside` reads it.

    Examples
    --------
    >>> text_beside(Interval(40, 60)), text_beside(AnyOf(1, Missing()))
    ('between 40 and 60', '= 1 or is missing')
    """
    return condition_text("", condition).strip()  # without a name, conditions begin with a space


def condition_text(column: str, condition: Any, nested: bool = False) -> str:
    """One condition on a column (given as text); ``nested`` puts brackets around what is joined by words."""
    if isinstance(condition, Interval):
        return _interval_text(column, condition)
    if isinstance(condition, AnyOf):
        if all(map(_is_value, condition.conditions)):
            return f"{column} in {_list_text(condition.conditions)}"
        return _joined(column, condition.conditions, " or ", nested)
    if isinstance(condition, AllOf):
        return _joined(column, condition.conditions, " and ", nested)
    if isinstance(condition, Missing):
        return f"{column} is missing"
    if isinstance(condition, Not):
        inner = condition.condition
        if isinstance(inner, Missing):
            return f"{column} is not missing"
        if isinstance(inner, AnyOf) and all(map(_is_value, inner.conditions)):
            return f"{column} not in {_list_text(inner.conditions)}"
        if _is_value(inner):
            return f"{column} != {value_text(inner)}"
        return f"not ({condition_text(column, inner).strip()})"
    if isinstance(condition, Soft):
        return _soft_text(column, condition)
    return f"{column} = {value_text(condition)}"


def _soft_text(column: str, condition: Likely | About) -> str:
    if isinstance(condition, About):
        return f"{column} about {value_text(condition.value)} sd {plain_number(width(condition.sd))}"
    parts = [f"{_key_text(column, normal(key))}: {plain_number(x)}" for key, x in condition.likelihoods]
    if condition.others:
        parts.append(f"others: {plain_number(condition.others)}")
    return f"{column} likely {{{', '.join(parts)}}}"


def _key_text(column: str, key: Any) -> str:
    return value_text(key) if _is_value(key) else condition_text(column, key).strip()


def _joined(column: str, conditions: Iterable[Any], word: str, nested: bool) -> str:
    text = word.join(condition_text(column, condition, nested=True).strip() for condition in conditions)
    return f"({text})" if nested else text


def _interval_text(column: str, interval: Interval) -> str:
    low = "<=" if interval.closed in ("both", "left") else "<"
    high = "<=" if interval.closed in ("both", "right") else "<"
    if interval.lo is None and interval.hi is None:
        return f"{column} of any value"
    if interval.lo is None:
        return f"{column} {high} {value_text(interval.hi)}"
    if interval.hi is None:
        return f"{column} {low.replace('<', '>')} {value_text(interval.lo)}"
    if not column:
        lo, hi = value_text(interval.lo), value_text(interval.hi)
        return f"between {lo} and {hi}" if low == high == "<=" else f"{low.replace('<', '>')} {lo} and {high} {hi}"
    return f"{value_text(interval.lo)} {low} {column} {high} {value_text(interval.hi)}"


def _is_value(condition: Any) -> bool:
    return not isinstance(condition, Interval | AnyOf | AllOf | Not | Soft | Missing)


def _list_text(values: Iterable[Any]) -> str:
    return "{" + ", ".join(map(value_text, values)) + "}"
