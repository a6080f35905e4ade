"""Rules from untrusted plain data: every field is checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from .rule import RULE_KINDS, Rule

MOST_RULES = 10_000
MOST_VALUES = 10_000


def rules_from_list(entries: Any, names: Sequence[str]) -> tuple[Rule, ...]:
    """Rules from a list of `Rule.to_dict`, about columns of these names; raises ValueError, which names the field."""
    if not isinstance(entries, list) or len(entries) > MOST_RULES:
        raise ValueError(f"rules: expected a list of at most {MOST_RULES} rules")
    return tuple(rule_from_dict(entry, f"rules[{k}]", names) for k, entry in enumerate(entries))


def rule_from_dict(entry: Any, at: str, names: Sequence[str]) -> Rule:
    """One rule; see `rules_from_list`."""
    if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str) or entry["kind"] not in RULE_KINDS:
        raise ValueError(f"{at}.kind: expected one of {', '.join(RULE_KINDS)}")
    made = RULE_KINDS[entry["kind"]]
    wanted = {field.name for field in fields(made)}
    wrong = (set(entry) - {"kind"}) ^ wanted
    if wrong:
        raise ValueError(f"{at}: fields missing or unknown: {', '.join(sorted(map(str, wrong)))[:200]}")
    rule = made(**{name: _READERS[name](entry[name], f"{at}.{name}") for name in wanted})
    unknown = [name for name in rule.columns if name not in names]
    if unknown:
        raise ValueError(f"{at}: there is no column {unknown[0]!r:.80}")
    if len(set(rule.columns)) != len(rule.columns):
        raise ValueError(f"{at}: a column is named twice")
    return rule


def _count(value: Any, at: str) -> int:
    if type(value) is not int or not 0 <= value < 2**53:
        raise ValueError(f"{at}: expected an integer >= 0, got {value!r:.80}")
    return value


def _flag(value: Any, at: str) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{at}: expected true or false, got {value!r:.80}")
    return value


def _name(value: Any, at: str) -> str:
    if not isinstance(value, str) or len(value) > 10_000:
        raise ValueError(f"{at}: expected a column's name, got {value!r:.80}")
    return value


def _names(value: Any, at: str) -> tuple[str, ...]:
    return tuple(_name(one, at) for one in _items(value, at))


def finite_number(value: Any, at: str) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{at}: expected a finite number, got {value!r:.80}")
    return float(value)


def _tolerance(value: Any, at: str) -> float:
    number = finite_number(value, at)
    if number < 0.0:
        raise ValueError(f"{at}: expected a number >= 0, got {value!r:.80}")
    return number


def _terms(value: Any, at: str) -> tuple[tuple[float, str], ...]:
    pairs = [_items(pair, at) for pair in _items(value, at)]
    if not all(len(pair) == 2 for pair in pairs):
        raise ValueError(f"{at}: expected pairs of a number and a column")
    terms = tuple((finite_number(c, at), _name(name, at)) for c, name in pairs)
    if not all(c for c, _ in terms):
        raise ValueError(f"{at}: a coefficient is 0")
    return terms


def _values(value: Any, at: str) -> tuple[tuple[Any, ...], ...]:
    rows = tuple(tuple(_items(row, at)) for row in _items(value, at))
    for one in (one for row in rows for one in row):
        if not isinstance(one, str | bool) and (type(one) not in (int, float) or not math.isfinite(one)):
            raise ValueError(f"{at}: expected levels or numbers, got {one!r:.80}")
    return rows


def _items(value: Any, at: str) -> list[Any]:
    if not isinstance(value, list | tuple) or not 0 < len(value) <= MOST_VALUES:
        raise ValueError(f"{at}: expected a list of 1 to {MOST_VALUES} entries")
    return list(value)


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "rows": _count,
    "exceptions": _count,
    "is_enforced": _flag,
    "is_mutual": _flag,
    "is_strict": _flag,
    "column": _name,
    "low": _name,
    "high": _name,
    "of": _names,
    "terms": _terms,
    "constant": finite_number,
    "tolerance": _tolerance,
    "values": _values,
}
