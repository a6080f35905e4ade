"""What a user can say of one column of a row: a value, an interval, a set, and their combinations.

How likely each value is, is said by `soft_conditions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .soft_conditions import About, Soft, refuse_list

Closed = Literal["both", "left", "right", "neither"]


@dataclass(frozen=True)
class Interval:
    """Values from ``lo`` to ``hi``.

    Attributes
    ----------
    lo, hi : value of the column, optional
        None: no bound. Dates may be text (``'2024-03-01'``). One-dimensional numpy arrays have one entry a row.
    closed : {"both", "left", "right", "neither"}
        Which ends belong to it.
    """

    lo: Any = None
    hi: Any = None
    closed: Closed = "both"

    def __post_init__(self) -> None:
        if self.closed not in ("both", "left", "right", "neither"):
            raise ValueError(f"closed: expected 'both', 'left', 'right' or 'neither', got {self.closed!r}")


@dataclass(frozen=True, init=False)
class AnyOf:
    """At least one of the conditions: ``AnyOf("red", "green")``, ``AnyOf(between(0, 1), between(5, 6))``."""

    conditions: tuple[Any, ...]

    def __init__(self, *conditions: Any) -> None:
        object.__setattr__(self, "conditions", _parts(conditions))


@dataclass(frozen=True, init=False)
class AllOf:
    """All of the conditions: ``AllOf(between(0, 10), Not(5))``."""

    conditions: tuple[Any, ...]

    def __init__(self, *conditions: Any) -> None:
        object.__setattr__(self, "conditions", _parts(conditions))


@dataclass(frozen=True)
class Not:
    """Everything but what the condition says; the cell is not missing for it."""

    condition: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "condition", _hashable(self.condition))


@dataclass(frozen=True)
class PerRow:
    """One condition for each row of evidence: ``PerRow([between(0, 5), None, AnyOf(1, 2)])``; None says nothing."""

    conditions: Sequence[Any]


def between(lo: Any = None, hi: Any = None, closed: Closed = "both") -> Interval:
    """Condition that a value lies from ``lo`` to ``hi``.

    Parameters
    ----------
    lo, hi : value of the column, optional
        None: no bound. Dates may be text (``'2024-03-01'``); numpy arrays have one entry a row (NaN: no bound).
    closed : {"both", "left", "right", "neither"}, default "both"
        Which ends belong to it.

    Returns
    -------
    Interval

    Raises
    ------
    TypeError
        If an end is a list.

    Examples
    --------
    >>> between(40, 60)
    Interval(lo=40, hi=60, closed='both')
    """
    for end in (lo, hi):
        refuse_list("between", end)
    return Interval(lo, hi, closed)


def normal(condition: Any) -> Any:
    """The condition with lists, tuples and sets written as `AnyOf`, and NaN as None.

    Raises
    ------
    TypeError
        If it is an array, which could mean several things.
    """
    if isinstance(condition, list | tuple | set | frozenset):
        return AnyOf(*condition) if len(condition) != 1 else AnyOf(tuple(condition))
    if isinstance(condition, np.ndarray) and condition.ndim == 0:
        condition = condition.item()
    if _is_array(condition):
        raise TypeError(
            f"got an array of {len(condition)} entries as a condition; write PerRow(array) for one value a row, "
            "or a list for any of several values"
        )
    is_missing = condition is None or (isinstance(condition, float | np.floating) and condition != condition)
    return None if is_missing or type(condition).__name__ in ("NAType", "NaTType") else condition


_MADE = PerRow | Interval | About | AnyOf | AllOf | Not


def n_rows(condition: Any) -> int | None:
    """Number of rows that a condition speaks of one by one; None if it says the same of every row.

    Raises
    ------
    ValueError
        If its parts have different numbers of rows.
    """
    if isinstance(condition, PerRow):
        return len(condition.conditions)
    if isinstance(condition, Interval):
        found = {len(end) for end in (condition.lo, condition.hi) if _is_array(end)}
    elif isinstance(condition, About):
        found = {len(part) for part in (condition.value, condition.sd) if _is_array(part)}
    elif isinstance(condition, AnyOf | AllOf):
        made = [part for part in condition.conditions if isinstance(part, _MADE)]  # most are plain values
        found = {n for part in made if (n := n_rows(part)) is not None}
    elif isinstance(condition, Not):
        return n_rows(condition.condition)
    else:
        return None
    if len(found) > 1:
        raise ValueError(f"the parts of a condition have different numbers of rows: {sorted(found)}")
    return found.pop() if found else None


def of_row(condition: Any, i: int) -> Any:
    """What a condition says of row i."""
    if isinstance(condition, PerRow):
        entries: Any = condition.conditions
        return entries.iloc[i] if hasattr(entries, "iloc") else entries[i]
    if isinstance(condition, Interval):
        return Interval(_entry(condition.lo, i), _entry(condition.hi, i), condition.closed)
    if isinstance(condition, About):
        value = _entry(condition.value, i)
        return None if value is None else About(value, _entry(condition.sd, i))
    if isinstance(condition, AnyOf):
        return AnyOf(*(of_row(part, i) for part in condition.conditions))
    if isinstance(condition, AllOf):
        return AllOf(*(of_row(part, i) for part in condition.conditions))
    return Not(of_row(condition.condition, i)) if isinstance(condition, Not) else condition


def factors(condition: Any) -> list[Any]:
    """The condition as conditions that all hold, each of them soft evidence or free of it.

    Examples
    --------
    >>> from jointforest.table.soft_conditions import about
    >>> factors(AllOf(between(20, 60), about(40, sd=2)))
    [Interval(lo=20, hi=60, closed='both'), about(40, sd=2)]
    """
    if not isinstance(condition, AllOf) or not has_soft(condition):
        return [condition]
    return [factor for part in condition.conditions for factor in factors(part)]


def has_soft(condition: Any) -> bool:
    """Whether soft evidence is, or is a part of, a condition."""
    if isinstance(condition, AnyOf | AllOf | PerRow):
        return any(map(has_soft, condition.conditions))
    return has_soft(condition.condition) if isinstance(condition, Not) else isinstance(condition, Soft)


def check_hard(conditions: Mapping[str, Any]) -> None:
    """An event either happens or not: a ValueError if there is soft evidence among its conditions by column."""
    for name, condition in conditions.items():
        if has_soft(condition):
            raise ValueError(
                f"column {name!r}: an event either happens or not, so {condition!r} cannot be one; "
                "soft evidence goes into given(...)"
            )


def _parts(conditions: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parts, given one by one or as one list of them."""
    if len(conditions) == 1 and isinstance(conditions[0], list | tuple | set | frozenset):
        conditions = tuple(conditions[0])
    return tuple(_hashable(part) for part in conditions)


def _hashable(part: Any) -> Any:
    return AnyOf(tuple(part)) if isinstance(part, list | tuple | set | frozenset) else part


def _is_array(value: Any) -> bool:
    return getattr(value, "ndim", 0) == 1 or type(value).__name__ == "Series"


def _entry(end: Any, i: int) -> Any:
    if not _is_array(end):
        return end
    value = end.iloc[i] if hasattr(end, "iloc") else end[i]
    return normal(value)
