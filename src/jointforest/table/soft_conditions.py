"""Soft evidence: how likely each value of a column is by an observation that does not settle it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Likely:
    """How likely an observation is under each level, value or interval; made by `likely`.

    Attributes
    ----------
    likelihoods : tuple of (condition, float)
        Levels, values, intervals or sets of them, and their likelihoods.
    others : float
        Likelihood of everything else.
    """

    likelihoods: tuple[tuple[Any, float], ...]
    others: float = 0.0

    def __repr__(self) -> str:
        others = f", others={self.others:g}" if self.others else ""
        return f"likely({dict(self.likelihoods)!r}{others})"


@dataclass(frozen=True)
class About:
    """A noisy measurement of a number; made by `about`.

    Attributes
    ----------
    value : value of the column
        What was measured; a one-dimensional array has one entry a row.
    sd : float or timedelta
        Standard deviation of the measurement's error; an array has one entry a row.
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

    Returns
    -------
    Likely

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
    >>> import jointforest as jf
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> before = joint.given().proba("sex")
    >>> after = joint.given(sex=jf.likely({"MALE": 0.8, "FEMALE": 0.2})).proba("sex")
    >>> round((after["MALE"] / after["FEMALE"]) / (before["MALE"] / before["FEMALE"]), 6)
    4.0
    """
    if not isinstance(likelihoods, Mapping):
        raise TypeError(f"likely: expected a dict of likelihoods such as {{'a': 0.7, 'b': 0.3}}, got {likelihoods!r}")
    checked = tuple((key, _likelihood(key, x)) for key, x in likelihoods.items())
    rest = _likelihood("others", others)
    if not checked:
        raise ValueError("likely: expected a likelihood for at least one level, value or interval, got none")
    if not any(x > 0.0 for _, x in checked) and not rest > 0.0:
        raise ValueError(f"likely: all likelihoods in {dict(likelihoods)!r} are 0, so nothing is possible")
    return Likely(checked, rest)


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

    Returns
    -------
    About

    Raises
    ------
    ValueError
        If sd is not above 0, or infinite.
    TypeError
        If sd is neither a number nor a timedelta, or one of them is a list.

    Examples
    --------
    >>> import jointforest as jf
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


def is_span(sd: Any) -> bool:
    """Whether a standard deviation is a span of time."""
    return hasattr(sd, "total_seconds") or isinstance(sd, np.timedelta64)


def width(sd: Any) -> float:
    """A standard deviation as a number, in seconds if it is a span of time.

    Raises
    ------
    ValueError, TypeError
        As `about`.
    """
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
