"""Conditions on one column of a row: a value, an interval, a set, and their combinations."""

# The first chapter is soft evidence: how likely each value is.

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal

import numpy as np

# ---- Soft evidence: how likely each value of a column is by an observation that does not settle it.


@dataclass(frozen=True)
class Likely:
    """How likely an observation is under each level, value or interval; made by `likely`.

    likelihoods : tuple of (condition, float). Levels, values, intervals or sets of them, and their likelihoods.
    others : float. Likelihood of everything else.
    """

    likelihoods: tuple[tuple[Any, float], ...]
    others: float = 0.0

    def __repr__(self) -> str:
        others = f", others={self.others:g}" if self.others else ""
        return f"likely({dict(self.likelihoods)!r}{others})"


@dataclass(frozen=True)
class About:
    """A noisy measurement of a number; made by `about`.

    value : value of the column. What was measured; a one-dimensional array has one entry a row.
    sd : float or timedelta. Standard deviation of the measurement's error; an array has one entry a row.
    """

    value: Any
    sd: Any

    def __repr__(self) -> str:
        return f"about({self.value!r}, sd={self.sd!r})"


Soft = Likely | About


def likely(likelihoods: Mapping[Any, float], others: float = 0.0) -> Likely:
    """Soft evidence: how likely what was observed is under each level, value or interval of a column.

    It goes where conditions go: ``joint.given(sex=jf.likely({"Male": .8, "Female": .2}))``. Only ratios count:
    likelihoods are divided by the greatest, so a ``log_probability`` is that of evidence as sure as at its best value.

    Parameters
    ----------
    likelihoods : dict
        Likelihoods, not negative and not all 0, by level, value, `between`, or tuple of them (each of which has it).
        Values of columns with a density must be their atoms; intervals must not overlap.
    others : float, default 0
        Likelihood of everything that is not named; by default it is ruled out.

    Raises
    ------
    ValueError
        If there are no likelihoods, all are 0, or one is negative, NaN or infinite.
    TypeError
        If it is no dict, or one is no number.

    Notes
    -----
    J. Pearl, "Probabilistic Reasoning in Intelligent Systems" (1988), section 2.2.2: virtual evidence. p(evidence) is
    E[l(x)], as if a child of the column had been seen that has this likelihood.

    Examples
    --------
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> before = joint.given().proba("sex")
    >>> after = joint.given(sex=jf.likely({"MALE": 0.8, "FEMALE": 0.2})).proba("sex")
    >>> round((after["MALE"] / after["FEMALE"]) / (before["MALE"] / before["FEMALE"]), 6)
    4.0
    """
    if not isinstance(likelihoods, Mapping):
        raise TypeError(f"likely: expected a dict of likelihoods such as {{'a': 0.7, 'b': 0.3}}, got {likelihoods!r}")
    checked = tuple((key, _likelihood(key, x)) for key, x in likelihoods.items())
    of_others = _likelihood("others", others)
    if not checked:
        raise ValueError("likely: expected a likelihood for at least one level, value or interval, got none")
    if not any(x > 0.0 for _, x in checked) and not of_others > 0.0:
        raise ValueError(f"likely: all likelihoods in {dict(likelihoods)!r} are 0, so nothing is possible")
    return Likely(checked, of_others)


def about(value: Any, sd: Any) -> About:
    """Soft evidence: a noisy measurement, the value give or take a normal error of standard deviation ``sd``.

    It goes where conditions go: ``joint.given(age=jf.about(40, sd=2))``. The likelihood of x is that of a normal around
    the value, divided by the greatest, so a ``log_probability`` is that of evidence as sure as at its best value. Cells
    of a grid count by their centres, atoms exactly, and a density by steps of sd/10; more than 8 sd off is ruled out.

    Parameters
    ----------
    value : value of a numeric or date-time column
        A one-dimensional numpy array has one measurement a row (NaN: none).
    sd : float, or timedelta for dates
        Above 0; for date-time columns a number is in seconds. An array has one entry a row.

    Raises
    ------
    ValueError
        If sd is not above 0, or infinite.
    TypeError
        If sd is neither a number nor a timedelta, or one of them is a list.

    Examples
    --------
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> vague, better = (joint.given(body_mass_g=jf.about(4300, sd=sd)) for sd in (200, 20))
    >>> bool(better.std("body_mass_g") < vague.std("body_mass_g") < joint.given().std("body_mass_g"))
    True
    """
    for given in (value, sd):
        refuse_list("about", given)
    for each in sd if getattr(sd, "ndim", 0) == 1 else [sd]:
        width(each)
    return About(value, sd)


def refuse_list(function: str, value: Any) -> None:
    """Raise TypeError for a list or tuple where a value, or an array of one entry a row, is meant."""
    if isinstance(value, list | tuple):
        raise TypeError(f"{function}: expected a value, or a numpy array with one entry a row, got {value!r}")


def is_time_span(sd: Any) -> bool:
    """Whether a standard deviation is a span of time."""
    return hasattr(sd, "total_seconds") or isinstance(sd, np.timedelta64)


def width(sd: Any) -> float:
    """A standard deviation as a number, in seconds if it is a span of time."""
    if hasattr(sd, "total_seconds"):
        number = float(sd.total_seconds())
    elif isinstance(sd, np.timedelta64):
        number = float(sd / np.timedelta64(1, "ns")) / 1e9
    elif isinstance(sd, int | float | np.number) and not isinstance(sd, bool):
        number = float(sd)
    else:
        raise TypeError(f"about: expected sd to be a number or a timedelta, got {sd!r}")
    if not 0.0 < number < math.inf:
        raise ValueError(f"about: expected a finite sd above 0, got {sd!r}; if the value is certain, give it as it is")
    return number


def _likelihood(key: Any, x: Any) -> float:
    if isinstance(x, bool) or not isinstance(x, int | float | np.number):
        raise TypeError(f"likely: expected a number as the likelihood of {key!r}, got {x!r}")
    if not 0.0 <= x < math.inf:
        raise ValueError(f"likely: the likelihood of {key!r} is {x!r}; expected a finite number of 0 or more")
    return float(x)


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
        object.__setattr__(self, "conditions", _given_parts(conditions))


@dataclass(frozen=True, init=False)
class AllOf:
    """All of the conditions: ``AllOf(between(0, 10), Not(5))``."""

    conditions: tuple[Any, ...]

    def __init__(self, *conditions: Any) -> None:
        object.__setattr__(self, "conditions", _given_parts(conditions))


@dataclass(frozen=True)
class Not:
    """The negation of a condition; the cell is not missing for it."""

    condition: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "condition", _hashable(self.condition))


@dataclass(frozen=True)
class PerRow:
    """One condition for each row of evidence: ``PerRow([between(0, 5), None, AnyOf(1, 2)])``; None is no condition."""

    conditions: Sequence[Any]


def between(lo: Any = None, hi: Any = None, closed: Closed = "both") -> Interval:
    """Condition that a value lies from ``lo`` to ``hi``.

    Parameters
    ----------
    lo, hi : value of the column, optional
        None: no bound. Dates may be text (``'2024-03-01'``); numpy arrays have one entry a row (NaN: no bound).
    closed : {"both", "left", "right", "neither"}, default "both"
        Which ends belong to it.

    Raises
    ------
    TypeError
        If an end is a list.
    ValueError
        If ``lo`` is greater than ``hi``, or one of them is NaN.

    Examples
    --------
    >>> between(40, 60)
    Interval(lo=40, hi=60, closed='both')
    """
    for end in (lo, hi):
        refuse_list("between", end)
        if isinstance(end, float | np.floating) and math.isnan(end):
            raise ValueError(f"between: expected a value or None for no bound, got {end!r}")
    if not isinstance(lo, str) and not _is_array(lo) and not _is_array(hi):  # of text the column knows the order
        try:
            is_reversed = lo is not None and hi is not None and bool(lo > hi)
        except TypeError:
            is_reversed = False
        if is_reversed:
            raise ValueError(f"between: the interval from {lo!r} to {hi!r} is reversed; exchange its ends")
    return Interval(lo, hi, closed)


def normal(condition: Any) -> Any:
    """The condition with lists, tuples and sets written as `AnyOf`, and NaN as None."""
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
    """Number of rows of a condition with one entry per row; None if it is the same for every row."""
    if isinstance(condition, PerRow):
        return len(condition.conditions)
    if isinstance(condition, Interval):
        lengths = {len(end) for end in (condition.lo, condition.hi) if _is_array(end)}
    elif isinstance(condition, About):
        lengths = {len(part) for part in (condition.value, condition.sd) if _is_array(part)}
    elif isinstance(condition, AnyOf | AllOf):
        made = [part for part in condition.conditions if isinstance(part, _MADE)]  # most are plain values
        lengths = {n for part in made if (n := n_rows(part)) is not None}
    elif isinstance(condition, Not):
        return n_rows(condition.condition)
    else:
        return None
    if len(lengths) > 1:
        raise ValueError(f"the parts of a condition have different numbers of rows: {sorted(lengths)}")
    return lengths.pop() if lengths else None


def of_row(condition: Any, i: int) -> Any:
    """A condition on row i alone."""
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
    """The condition as a list of conditions that all hold, each of them soft evidence or free of it."""
    if not isinstance(condition, AllOf) or not has_soft(condition):
        return [condition]
    return [factor for part in condition.conditions for factor in factors(part)]


def has_soft(condition: Any) -> bool:
    """Whether soft evidence is, or is a part of, a condition."""
    return _has_part(condition, Soft)


def _has_part(condition: Any, kind: type | UnionType) -> bool:
    """Whether a condition, or a part of it, is of a kind."""
    if isinstance(condition, AnyOf | AllOf | PerRow):
        return any(_has_part(part, kind) for part in condition.conditions)
    return _has_part(condition.condition, kind) if isinstance(condition, Not) else isinstance(condition, kind)


def check_hard(conditions: Mapping[str, Any]) -> None:
    """An event either happens or not: a ValueError if there is soft evidence among its conditions by column."""
    for name, condition in conditions.items():
        if has_soft(condition):
            raise ValueError(
                f"column {name!r}: an event either happens or not, so {condition!r} cannot be one; "
                "soft evidence goes into given(...)"
            )


def _given_parts(conditions: tuple[Any, ...]) -> tuple[Any, ...]:
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


# ---- Conditions that a cell is missing, or is not.


@dataclass(frozen=True)
class Missing:
    """The cell is missing; ``Not(Missing())``: it is not. What learning saw of missing cells answers.

    Examples
    --------
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> joint.given(sex=jf.Missing()).probability("species = Chinstrap") < 0.1
    True
    """


def without_missing(
    conditions: Mapping[str, Any], tick_boxes: Container[str] = ()
) -> tuple[dict[str, Any], dict[str, bool]]:
    """Conditions by column without those on missing cells, and a dict of these: True where the cell is missing."""
    others_by_column: dict[str, Any] = {}
    missing: dict[str, bool] = {}
    for name, condition in conditions.items():
        parts = condition.conditions if isinstance(condition, AllOf) else (condition,)
        said = {said for part in parts if (said := _says(part)) is not None}
        others = [part for part in parts if _says(part) is None]
        if any(_has_part(part, Missing) for part in others):
            raise ValueError(
                f"column {name!r}: that a cell is missing stands alone, or is joined to other conditions by 'and'; "
                "ask for the parts: P(A or B) = P(A) + P(B) - P(A, B)"
            )
        if len(said) > 1:
            raise ValueError(f"column {name!r}: its cell cannot be both missing and known; drop one of the conditions")
        if not said:
            others_by_column[name] = condition
            continue
        if name in tick_boxes:
            others.append(not said.pop())
        else:
            missing[name] = said.pop()
        if others:
            others_by_column[name] = AllOf(*others) if len(others) > 1 else others[0]
    return others_by_column, missing


def _says(condition: Any) -> bool | None:
    """Whether the cell is missing; None if the condition is another one."""
    if isinstance(condition, Not):
        inner = _says(condition.condition)
        return None if inner is None else not inner
    return True if isinstance(condition, Missing) else None


# ---- A kind of column of which another one marks values and bounds.


@dataclass(frozen=True)
class Censored:
    """Numbers that another column calls inexact; made by `censored`.

    event : str. The column that is true or 1 where a number is exact; elsewhere the value is above it.
    below : str. The column that is true or 1 where the value is below the number; elsewhere it is exact.
    """

    event: str = ""
    below: str = ""

    @property
    def flag(self) -> str:
        """The column that marks them."""
        return self.event or self.below


def censored(event: str = "", below: str = "") -> Censored:
    """Kind of a column of numbers with another column that marks exact ones.

    It goes where kinds of columns go: ``kinds={"months": jf.censored(event="died")}``. The other column takes no part
    in the joint.

    Parameters
    ----------
    event : str
        Column of booleans, or 0 and 1: where it is false the value is above the number, as of a time that is not over.
    below : str
        Column of booleans, or 0 and 1: where it is true the value is below the number, a limit of detection.

    Raises
    ------
    ValueError
        If not exactly one column is named.

    Examples
    --------
    >>> censored(event="died")
    Censored(event='died', below='')
    """
    if bool(event) == bool(below):
        raise ValueError(
            "censored: expected event= or below=, the name of the column that says which numbers are exact"
        )
    return Censored(str(event), str(below))


# ---- Columns, values and sums as texts of the query language.

KEYWORDS = {"and", "or", "not", "in", "between"}
"""Words, in any case, that are neither names nor values unless quoted."""
MISSING = {"na", "nan", "null", "none"}
"""Words that tables write in place of a value: no values here."""
_TAKEN = KEYWORDS | MISSING | {"true", "false"}
"""Words that are something else than a column where a value may stand."""


def is_word_character(character: str) -> bool:
    """Whether a bare word may hold this character: letters, digits, the underscore, and accents."""
    return character.isalnum() or ("a" + character).isidentifier()


def column_text(name: str) -> str:
    """A column's name, in backticks if it needs them."""
    bare = name and all(map(is_word_character, name)) and not name[0].isdecimal() and name.lower() not in _TAKEN
    return name if bare else "`" + name.replace("`", "``") + "`"


def plain_number(x: float) -> str:
    """A number, whole ones without a point."""
    return str(int(x)) if x.is_integer() and abs(x) < 1e9 else repr(x)


_MOST_DIGITS = 12
"""Digits of a number that is written in full; one of more is what floats make of a shorter one, or has no grid."""
_SHORT = 6
"""Digits that are shown of a number without grid."""


def shown_number(x: float) -> str:
    """A number as people read it: without the digits that floats add, and with few digits if it has many."""
    if _digits(repr(x)) <= _MOST_DIGITS or not math.isfinite(x):
        return repr(x)
    rounded = repr(float(f"{x:.{_MOST_DIGITS}g}"))
    if _digits(rounded) < _MOST_DIGITS - 1:
        return rounded
    return f"{x:.{max(_SHORT, len(str(int(abs(x)))))}g}" if abs(x) < 1e12 else f"{x:.{_SHORT}g}"


def _digits(number: str) -> int:
    """Number of significant digits of a number."""
    return len(number.partition("e")[0].replace(".", "").lstrip("-0").rstrip("0"))


def value_text(value: Any) -> str:
    """A value as conditions write it: text in single quotes."""
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"


def sum_text(terms: Sequence[tuple[float, str]], constant: float) -> str:
    """A sum of columns, such as ``a + 1.5 * b - c / 3 + 4``."""
    parts = [(c, _times(abs(c), column_text(name))) for c, name in terms]
    if constant or not parts:
        parts.append((constant, plain_number(abs(constant))))
    text = "".join(f" {'-' if c < 0 else '+'} {part}" for c, part in parts)
    return text[3:] if text.startswith(" + ") else "-" + text[3:]


_LONG = 8
"""Characters; a coefficient of more is written as a quotient."""


def _times(factor: float, column: str) -> str:
    """A column times a positive number, or divided by a whole one where that is shorter, as for a third."""
    if factor == 1.0:
        return column
    divisor = round(1.0 / factor) if factor > 1e-6 else 0
    if divisor > 1 and 1.0 / divisor == factor and len(repr(factor)) > _LONG:
        return f"{column} / {divisor}"
    return f"{plain_number(factor)} * {column}"
