"""Evidence as JSON, in the page's form, to conditions and back; as a sentence, as Python, as a shell command."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from ..data.conditions import AllOf, AnyOf, Closed, Interval, Missing, Not, column_text, has_soft, without_missing
from ..data.evidence import build
from ..data.schema import Column, Schema, shortened
from ..query_language.parser import QuerySyntaxError, parse_beside, parse_conditions
from ..query_language.render import condition_text, text_beside
from .shown import from_shown, rounding, to_shown, written

_Conditions = dict[str, Any]
"""Conditions by column, in the columns' order."""
_CLOSED: dict[tuple[bool, bool], Closed] = {
    (True, True): "both",
    (True, False): "left",
    (False, True): "right",
    (False, False): "neither",
}


class ImpossibleEvidence(ValueError):
    """Evidence of probability 0."""


def read_evidence(schema: Schema, said: Any) -> _Conditions:
    """Conditions from JSON: a list of conditions, each of one column, or ``{"text": sentence}``; raises ValueError."""
    if said is None:
        return {}
    if isinstance(said, Mapping):
        if set(said) != {"text"} or not isinstance(said["text"], str):
            raise ValueError('evidence: expected {"text": a sentence such as "age >= 40"}, or a list of conditions')
        return _in_order(schema, _parsed_evidence(schema, said["text"]))
    if not isinstance(said, list):
        raise ValueError(f"evidence: expected a list of conditions, got {type(said).__name__}")
    found: _Conditions = {}
    for condition in said:
        column = _column_asked(schema, condition)
        new = _condition(schema, column, condition)
        found[column.name] = AllOf(found[column.name], new) if column.name in found else new
    return _in_order(schema, found)


def write_evidence(schema: Schema, conditions: _Conditions) -> list[dict[str, Any]]:
    """Conditions in the page's form, one for each column; `read_evidence` reads them back with the same meaning."""
    # Each has ``words``, too: what stands in the text field beside the column's name.
    return [
        {"column": schema.index(name), "words": text_beside(condition)}
        | written_condition(schema.columns[schema.index(name)], condition)
        for name, condition in conditions.items()
    ]


def tidied(schema: Schema, conditions: _Conditions) -> _Conditions:
    """The same evidence, each condition in its usual form, without empty ones."""
    said = write_evidence(schema, conditions)
    return read_evidence(schema, [one for one in said if not _says_nothing(schema, one)])


def sentence(conditions: _Conditions) -> str:
    """Conditions in the query language."""
    return " and ".join(_joinable(name, condition) for name, condition in conditions.items())


def python_call(conditions: _Conditions) -> str:
    """How to ask in Python."""
    return f"joint.given({sentence(conditions)!r})" if conditions else "joint.given()"


def shell_command(title: str, conditions: _Conditions, columns: Iterable[Column]) -> str:
    """A command that asks for the first of the columns that has no evidence, or for the first one if all have."""
    columns = list(columns)
    column = next((one for one in columns if one.name not in conditions), columns[0])
    path = title if title.endswith(".joint") else "MODEL.joint"
    of = f"P({column_text(column.name)}" if column.is_categorical else f"E({column_text(column.name)}"
    bar = f" | {sentence(conditions)})" if conditions else ")"
    return f"jointforest query {shlex.quote(path)} {shlex.quote(of + bar)}"


# --------------------------------------------------------------------------------------------------- JSON to conditions


def _parsed_evidence(schema: Schema, text: str) -> _Conditions:
    if not text.strip():
        return {}
    return dict(parse_conditions(text, schema.kinds_asked, schema.reasons_aside))


def _in_order(schema: Schema, conditions: _Conditions) -> _Conditions:
    return dict(sorted(conditions.items(), key=lambda pair: schema.index(pair[0])))


def _column_asked(schema: Schema, said: Any) -> Column:
    """The column whose place a condition names."""
    if not isinstance(said, Mapping):
        raise ValueError(f"a condition: expected an object, got {type(said).__name__}")
    return schema.columns[place_of(said.get("column"), len(schema.columns), "column")]


def place_of(said: Any, n: int, what: str) -> int:
    """A position among n, from JSON."""
    if not isinstance(said, int) or isinstance(said, bool) or not 0 <= said < n:
        raise ValueError(f"{what}: expected a place of 0 to {n - 1}, got {str(said)[:40]}")
    return said


def whole_number(body: Mapping[str, Any], name: str, usual: int, least: int, most: int) -> int:
    """A whole number that a question may bring; ``usual`` if it brings none."""
    said = body.get(name)
    if said is None:
        return usual
    if not isinstance(said, int) or isinstance(said, bool) or not least <= said <= most:
        raise ValueError(f"{name}: expected a whole number of {least:,} to {most:,}, got {str(said)[:40]}")
    return said


def _condition(schema: Schema, column: Column, said: Mapping[str, Any]) -> Any:
    """The condition of one column, given by its levels, ends or text."""
    if said.get("missing") is not None:
        if not isinstance(said["missing"], bool):
            raise ValueError(f"column {column.name!r}: missing is true or false, got {said['missing']!r:.40}")
        return Missing() if said["missing"] else Not(Missing())
    if "text" in said:
        return _of_text(schema, column, said["text"])
    if "levels" in said:
        return _levels_condition(column, said["levels"])
    if "low" in said or "high" in said:
        return _numbers_condition(column, said)
    raise ValueError(f"column {column.name!r}: expected levels, low and high, missing, or text")


def _of_text(schema: Schema, column: Column, text: Any) -> Any:
    if not isinstance(text, str):
        raise ValueError(f"column {column.name!r}: text: expected a text, got {type(text).__name__}")
    try:
        return parse_beside(column.name, text, schema.kinds_asked)
    except QuerySyntaxError as error:
        hint = f" ({error.hint})" if error.hint else ""
        forms = "= A, in {A, B}" if column.is_categorical else "= 40, >= 40, between 40 and 60"
        if column.kind == "datetime":
            forms = ">= '2024-03-01', between '2024-03-01' and '2024-04-15'"
        raise ValueError(
            f"column {column.name!r}: cannot read {shortened(text)}: {error.problem}{hint}; write such as {forms}, "
            "is missing"
        ) from None


def _levels_condition(column: Column, said: Any) -> Any:
    if not column.is_categorical:
        raise ValueError(f"column {column.name!r} is {column.kind}: it has no levels; say low and high")
    if not isinstance(said, list):
        raise ValueError(f"column {column.name!r}: levels: expected a list of places, got {type(said).__name__}")
    places = sorted({place_of(k, len(column.levels), f"column {column.name!r}: levels") for k in said})
    if not places:
        raise ImpossibleEvidence(f"column {column.name!r}: no level is left, so that the evidence has probability 0")
    return level_set(column, places)


def level_set(column: Column, places: list[int]) -> Any:
    """One of these levels: the level, a set, or, where most are in it, all but the others."""
    levels = column.levels
    if len(places) == 1:
        return levels[places[0]]
    if 1 < 2 * len(places) > len(levels) and 2 < len(levels) > len(places):
        kept = set(places)
        others = [level for k, level in enumerate(levels) if k not in kept]
        return Not(others[0] if len(others) == 1 else AnyOf(*others))
    return AnyOf(*(levels[k] for k in places))


def _numbers_condition(column: Column, said: Mapping[str, Any]) -> Any:
    if column.is_categorical:
        raise ValueError(f"column {column.name!r} is {column.kind}: it has levels, not numbers; say levels")
    ends = {}
    for end in ("low", "high"):
        x = said.get(end)
        if x is not None and (isinstance(x, bool) or not isinstance(x, int | float)):
            raise ValueError(f"column {column.name!r}: {end}: expected a number or null, got {x!r:.40}")
        ends[end] = None if x is None else from_shown(column, x)
        is_in = said.get(f"{end}_in", True)
        if not isinstance(is_in, bool):
            raise ValueError(f"column {column.name!r}: {end}_in is true or false, got {is_in!r:.40}")
    both_in = said.get("low_in", True), said.get("high_in", True)
    low, high, low_in, high_in = _on_cells(column, ends["low"], ends["high"], *both_in)
    if low is not None and high is not None and low > high:  # not before: ends of one cell differ by rounding
        raise ValueError(f"column {column.name!r}: the interval from {said['low']} to {said['high']} is reversed")
    if low is not None and low == high and low_in and high_in:
        return written(column, low)
    lo, hi = (None if x is None else written(column, x) for x in (low, high))
    return Interval(lo, hi, _CLOSED[low_in, high_in])


def _on_cells(
    column: Column, low: float | None, high: float | None, low_in: bool, high_in: bool
) -> tuple[float | None, float | None, bool, bool]:
    """On a grid the first and the last cell that are meant, both of them in; without a grid, the given ones."""
    if column.step == 0.0:
        return low, high, low_in, high_in
    first = None if low is None else _first(column, low, low_in)
    last = None if high is None else -_first(column, high, high_in, -1.0)
    if first is not None and last is not None and first > last:
        return low, high, low_in, high_in
    at = [None if k is None else column.center + k * column.step for k in (first, last)]
    if any(x is not None and not math.isfinite(x) for x in at):
        return low, high, low_in, high_in
    return at[0], at[1], True, True


def _first(column: Column, end: float, closed: bool, sign: float = 1.0) -> float:
    """First cell from an end on; with a sign of -1 the last one up to it, negated."""
    cells = sign * (end - column.center) / column.step
    near = round(cells)
    if abs(cells - near) <= min(0.25, 1e-9 + rounding(column, end) / column.step):
        return float(near if closed else near + 1)
    return float(math.ceil(cells))


# --------------------------------------------------------------------------------------------------- conditions to JSON


def written_condition(column: Column, condition: Any) -> dict[str, Any]:
    """The condition on one column, without its position."""
    rest, missing = without_missing({column.name: condition})
    if missing and not rest:
        return {"missing": missing[column.name]}
    if not missing and not has_soft(condition):
        if column.is_categorical:
            return {"levels": levels_in(column, condition)}
        if (ends := _ends_of_condition(column, condition)) is not None:
            return ends
    return {"text": text_beside(condition)}


def levels_in(column: Column, condition: Any) -> list[int]:
    """Places of the levels that satisfy a condition."""
    evidence = build(Schema((column,), "pandas"), conditions={column.name: condition})
    if not math.isnan(evidence.value[0, 0]):
        return [int(evidence.value[0, 0])]
    runs = zip(evidence.run_lo.tolist(), evidence.run_hi.tolist(), strict=True)
    return [k for lo, hi in runs for k in range(math.ceil(lo), math.floor(hi) + 1) if lo < k <= hi]


def _ends_of_condition(column: Column, condition: Any) -> dict[str, Any] | None:
    """Low and high of a value or an interval; None of anything else."""
    if isinstance(condition, AnyOf) and len(condition.conditions) == 1:
        condition = condition.conditions[0]
    if isinstance(condition, AllOf):
        return _common(column, condition)
    if isinstance(condition, AnyOf | Not):
        return None
    if isinstance(condition, Interval):
        low, high = (
            None if end is None or end in (math.inf, -math.inf) else to_shown(column, column.to_number(end))
            for end in (condition.lo, condition.hi)
        )
        low_in, high_in = condition.closed in ("both", "left"), condition.closed in ("both", "right")
        return {"low": low, "high": high, "low_in": low_in or low is None, "high_in": high_in or high is None}
    at = to_shown(column, column.to_number(condition))
    return {"low": at, "high": at, "low_in": True, "high_in": True}


def _common(column: Column, condition: AllOf) -> dict[str, Any] | None:
    """Low and high of what several intervals have in common; None if a part is anything else, or nothing is left."""
    parts = [_ends_of_condition(column, part) for part in condition.conditions]
    if any(part is None for part in parts):
        return None
    found: dict[str, Any] = {"low": None, "high": None, "low_in": True, "high_in": True}
    for part in parts:
        assert part is not None
        for end, sign in (("low", 1.0), ("high", -1.0)):
            new, old = part[end], found[end]
            if new is None:
                continue
            if old is None or sign * new > sign * old:
                found[end], found[f"{end}_in"] = new, part[f"{end}_in"]
            elif new == old:
                found[f"{end}_in"] &= part[f"{end}_in"]
    low, high = found["low"], found["high"]
    is_empty = low is not None and high is not None and (low > high or (low == high and not _both_in(found)))
    return None if is_empty else found


def _both_in(ends: Mapping[str, Any]) -> bool:
    return bool(ends["low_in"] and ends["high_in"])


def _says_nothing(schema: Schema, said: Mapping[str, Any]) -> bool:
    """Whether a condition holds of every value."""
    column = schema.columns[said["column"]]
    if "levels" in said:
        return len(said["levels"]) == len(column.levels)
    return "low" in said and said["low"] is None and said["high"] is None


def _joinable(name: str, condition: Any) -> str:
    """A condition as text that ``and`` may join to others."""
    return condition_text(column_text(name), condition, nested=isinstance(condition, AnyOf))
