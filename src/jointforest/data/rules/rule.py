"""The meaning of a rule between columns, its text, and rules in files."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from ...runtime.parameters import need
from ..conditions import column_text, plain_number, sum_text, value_text

ENOUGH_ROWS = 300
"""Rows that support a rule that is enforced without being declared: by the rule of three, then fewer than 1 % of the
rows of its kind contradict it, with a probability of 95 %."""
ENOUGH_EQUATION = 100
"""The same for equations: a total is computed, so that all rows obey it or few do. Each of the six that 120 rows of 20
tables show holds in all other rows of its table (see the experiment on rules)."""
ENOUGH_MISSING = 50
"""The same for rules about missing cells, as they follow from how a table was made: a question that was not asked.
Without the rule, draws and imputed tables would have answers that were never given."""


@dataclass(frozen=True, kw_only=True)
class Rule(ABC):
    """A statement about several columns of a table; `str` gives the text from which `jf.rule` makes it again.

    rows : int. Rows that support the rule: those in which it could have failed. Of missing cells, those that miss them.
    exceptions : int. Rows of the table that contradict it. Only a rule without exceptions is enforced.
    is_enforced : bool. Whether the joint gives rows that contradict the rule probability 0.
    """

    kind: ClassVar[str]
    rows: int = 0
    exceptions: int = 0
    is_enforced: bool = False

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the rule is about."""

    @abstractmethod
    def __str__(self) -> str: ...

    def to_dict(self) -> dict[str, Any]:
        """As plain data, with the ``kind``; `data.rules.plain.rule_from_dict` reads it."""
        return {"kind": self.kind} | asdict(self)


@dataclass(frozen=True)
class Function(Rule):
    """Rows that agree in the columns ``of`` agree in ``column``: ``Dest, Distance -> Origin``. Of a single column it
    may hold both ways: ``education <-> education_num``."""

    kind: ClassVar[str] = "function"
    of: tuple[str, ...]
    column: str
    is_mutual: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.of, self.column)

    def __str__(self) -> str:
        arrow = "<->" if self.is_mutual else "->"
        return f"{', '.join(map(column_text, self.of))} {arrow} {column_text(self.column)}"


@dataclass(frozen=True)
class Combinations(Rule):
    """Only the combinations of values that the table has exist: ``combinations(country, city)``."""

    kind: ClassVar[str] = "combinations"
    of: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.of

    def __str__(self) -> str:
        return f"combinations({', '.join(map(column_text, self.of))})"


@dataclass(frozen=True)
class Equation(Rule):
    """A column is a sum of others: ``total = price + tax``. On a grid the sum is rounded to it.

    Date-times count in seconds since 1970, so that ``end = start + 60 * minutes`` is an equation.

    tolerance : float. By how much cells may miss the sum because they are rounded: ``mean = low / 2 + high / 2 within
        0.01``. 0 means half a step of the column's grid, or without a grid what six digits leave.
    """

    kind: ClassVar[str] = "equation"
    column: str
    terms: tuple[tuple[float, str], ...]
    constant: float = 0.0
    tolerance: float = 0.0

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, *(name for _, name in self.terms))

    def __str__(self) -> str:
        within = f" within {plain_number(self.tolerance)}" if self.tolerance else ""
        return f"{column_text(self.column)} = {sum_text(self.terms, self.constant)}{within}"


@dataclass(frozen=True)
class Order(Rule):
    """One column is at most another: ``start <= end``, or less: ``start < end``."""

    kind: ClassVar[str] = "order"
    low: str
    high: str
    is_strict: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.low, self.high)

    def __str__(self) -> str:
        return f"{column_text(self.low)} {'<' if self.is_strict else '<='} {column_text(self.high)}"


@dataclass(frozen=True)
class MissingTogether(Rule):
    """Columns are missing in the same rows: ``AirTime, ArrDelay missing together``."""

    kind: ClassVar[str] = "missing together"
    of: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.of

    def __str__(self) -> str:
        return f"{', '.join(map(column_text, self.of))} missing together"


@dataclass(frozen=True)
class MissingWhere(Rule):
    """A column is missing in the rows where others have certain values, and in no others. ``CancellationCode missing
    iff Cancelled = 0``, or of several columns ``delay missing iff (a, b) in {(1, 0)}``. If it is not mutual, cells of
    other rows may be missing, too: ``shoe_size missing if runs = no``. Of one column of numbers ``values`` may have the
    two ends of a range, one of them None, instead: ``race missing iff km <= 20``."""

    kind: ClassVar[str] = "missing where"
    column: str
    of: tuple[str, ...]
    values: tuple[tuple[str | bool | int | float | None, ...], ...]
    is_mutual: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, *self.of)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of a range of numbers; None of single values."""
        if len(self.values[0]) == len(self.of):
            return None
        low, high = self.values[0]
        return -math.inf if low is None else float(low), math.inf if high is None else float(high)

    def __str__(self) -> str:
        names = ", ".join(map(column_text, self.of))
        if self.ends is not None:
            low, high = self.values[0]
            where = f"<= {value_text(high)}" if low is None else f">= {value_text(low)}"
            return f"{column_text(self.column)} missing {'iff' if self.is_mutual else 'if'} {names} {where}"
        texts = [", ".join(map(value_text, one)) for one in self.values]
        if len(self.of) > 1:
            names, texts = f"({names})", [f"({text})" for text in texts]
        where = f"= {texts[0]}" if len(texts) == 1 and len(self.of) == 1 else f"in {{{', '.join(texts)}}}"
        return f"{column_text(self.column)} missing {'iff' if self.is_mutual else 'if'} {names} {where}"


RULE_KINDS: dict[str, type[Rule]] = {
    one.kind: one for one in (Function, Combinations, Equation, Order, MissingTogether, MissingWhere)
}
"""The class of each kind of rule."""


def enough_rows(rule: Rule) -> int:
    """Fewest rows that support a found rule that is enforced by default."""
    if isinstance(rule, Equation):
        return ENOUGH_EQUATION
    return ENOUGH_MISSING if isinstance(rule, MissingTogether | MissingWhere) else ENOUGH_ROWS


# ---- Rules from untrusted plain data: every field is checked.


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
    need(len(set(rule.columns)) == len(rule.columns), f"{at}: a column is named twice")
    if isinstance(rule, MissingWhere):
        is_range = len(rule.of) == 1 and len(rule.values) == 1 and None in rule.values[0]
        need(is_range or all(len(one) == len(rule.of) for one in rule.values), f"{at}.values: expected one a column")
    return rule


def _count(value: Any, at: str) -> int:
    need(type(value) is int and 0 <= value < 2**53, f"{at}: expected an integer >= 0, got {value!r:.80}")
    return value


def _flag(value: Any, at: str) -> bool:
    need(type(value) is bool, f"{at}: expected true or false, got {value!r:.80}")
    return value


def _column_name(value: Any, at: str) -> str:
    need(isinstance(value, str) and len(value) <= 10_000, f"{at}: expected a column's name, got {value!r:.80}")
    return value


def _column_names(value: Any, at: str) -> tuple[str, ...]:
    return tuple(_column_name(one, at) for one in _items(value, at))


def finite_number(value: Any, at: str) -> float:
    need(type(value) in (int, float) and math.isfinite(value), f"{at}: expected a finite number, got {value!r:.80}")
    return float(value)


def _tolerance(value: Any, at: str) -> float:
    number = finite_number(value, at)
    need(number >= 0.0, f"{at}: expected a number >= 0, got {value!r:.80}")
    return number


def _terms(value: Any, at: str) -> tuple[tuple[float, str], ...]:
    pairs = [_items(pair, at) for pair in _items(value, at)]
    need(all(len(pair) == 2 for pair in pairs), f"{at}: expected pairs of a number and a column")
    terms = tuple((finite_number(c, at), _column_name(name, at)) for c, name in pairs)
    need(all(c for c, _ in terms), f"{at}: a coefficient is 0")
    return terms


def _listed_values(value: Any, at: str) -> tuple[tuple[Any, ...], ...]:
    rows = tuple(tuple(_items(row, at)) for row in _items(value, at))
    is_range = len(rows) == 1 and len(rows[0]) == 2 and rows[0].count(None) == 1
    for one in (one for row in rows for one in row if not (is_range and one is None)):
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
    "column": _column_name,
    "low": _column_name,
    "high": _column_name,
    "of": _column_names,
    "terms": _terms,
    "constant": finite_number,
    "tolerance": _tolerance,
    "values": _listed_values,
}
