"""Checks of arguments: which values are allowed, and an error with the expected values and the given one."""

# A tuple lists the allowed values; a `Number` is a range. An estimator declares its parameters with `parameter`, and
# `check_parameters` checks all of them at the start of ``fit``.

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Number:
    """A range of numbers, which never contains booleans or NaN.

    low, high : float. Ends of the range.
    whole : bool. Whether it contains only whole numbers (of Python or NumPy).
    without : "", "low", "high" or "both". Ends that do not belong to the range.
    text : str. Description in errors; by default it names the ends.

    >>> 0.5 in Number(0, 1), 1.0 in Number(0, 1, without="high"), True in Number(0), 2.0 in Number(0, whole=True)
    (True, False, False, False)
    >>> str(Number(1, whole=True)), str(Number(0, 0.5)), str(Number(0, 0.5, without="low"))
    ('a whole number at least 1', 'a number between 0 and 0.5', 'a number more than 0 and at most 0.5')
    """

    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    without: str = ""
    text: str = ""

    def __contains__(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            return False
        number: Any = value
        above = self.low < number if self.without in ("low", "both") else self.low <= number
        below = number < self.high if self.without in ("high", "both") else number <= self.high
        return bool(above and below)

    def __str__(self) -> str:
        if self.text:
            return self.text
        kind = "a whole number" if self.whole else "a number"
        if not self.without and -math.inf < self.low and self.high < math.inf:
            return f"{kind} between {self.low} and {self.high}"
        above = f"{'more than' if self.without in ('low', 'both') else 'at least'} {self.low}"
        below = f"{'less than' if self.without in ('high', 'both') else 'at most'} {self.high}"
        limits = [above] * (self.low > -math.inf) + [below] * (self.high < math.inf)
        return f"{kind} {' and '.join(limits)}".rstrip()


Allowed = tuple[str | bool | Number | None, ...]
"""Values that an argument may have."""
FLAG: Allowed = (True, False)
VERBOSE: Allowed = (True, False, Number(0, whole=True))


def need(holds: object, message: str) -> None:
    """Raise ValueError with the message unless the condition holds: for what files and other models contain."""
    if not holds:
        raise ValueError(message)


def check(name: str, value: Any, allowed: Allowed) -> None:
    """Raise ValueError unless the argument ``name`` has one of the values that are allowed."""
    for one in allowed:
        if value in one if isinstance(one, Number) else value is None if one is None else _is(value, one):
            return
    raise ValueError(f"{name} must be {_in_words(allowed)}, got {value!r}")


def check_number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    whole: bool = False,
    without: str = "",
    text: str = "",
) -> None:
    """Raise ValueError unless the argument ``name`` is in the `Number` with the other arguments."""
    check(name, value, (Number(low, high, whole, without, text),))


def check_shares(name: str, value: Any) -> np.ndarray:
    """The shares ``value``, a number or a sequence, as a float64 array of 0 or 1 dimensions."""
    try:
        shares = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.array(np.nan)
    if shares.ndim > 1 or not np.all((shares > 0) & (shares < 1)):
        raise ValueError(f"{name} must be a number, or a sequence of numbers, between 0 and 1, got {value!r}")
    return shares


def parameter(default: Any, *allowed: str | bool | Number | None) -> Any:
    """A dataclass field for a parameter of an estimator, with its default and its allowed values."""
    return field(default=default, metadata={"allowed": allowed})


def check_parameters(estimator: Any) -> None:
    """Raise ValueError for the first parameter of an estimator whose value is not allowed (see `parameter`)."""
    for one in fields(estimator):
        if "allowed" in one.metadata:
            check(one.name, getattr(estimator, one.name), one.metadata["allowed"])


def _is(value: Any, one: str | bool) -> bool:
    """Whether a value is this text, or this boolean; the number 1 is not True."""
    return isinstance(value, str if isinstance(one, str) else (bool, np.bool_)) and bool(value == one)


def _in_words(allowed: Allowed) -> str:
    words = [str(one) if isinstance(one, Number) else repr(one) for one in allowed]
    if all(isinstance(one, str) for one in allowed):
        return f"one of {', '.join(words)}"
    return " or ".join([*([", ".join(words[:-1])] if words[:-1] else []), words[-1]])


# ---- One seed for whatever users give as ``random_state``.


def seed_of(random_state: Any) -> int:
    """One non-negative integer for scikit-learn's ``random_state``: None, int, Generator or RandomState."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**63))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    check_number(
        "random_state", random_state, 0, 2**63 - 1, whole=True,
        text="None, a non-negative integer, a Generator or a RandomState",
    )  # fmt: skip
    return int(random_state)
