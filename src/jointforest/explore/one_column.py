"""One column given evidence: masses of bins or levels, mean and interval, how much it moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..queries.column.distribution import quantile
from ..queries.column.histogram import histogram
from ..queries.column.moments import mean_variance
from ..table.schema import Column
from .known import Known
from .numbers import to_shown
from .state import written_condition
from .subject import Subject

TAILS = np.array([0.05, 0.95])
"""Ends of the interval, as probabilities."""
_Three = tuple[float | None, float | None, float | None]


def column_answer(subject: Subject, known: Known, j: int, is_exact: bool) -> dict[str, Any]:
    """What a page shows of column j; all of it JSON."""
    column, bins, before = subject.columns[j], subject.bins[j], subject.masses[j]
    fine = before if not known.conditions else np.maximum(histogram(known.weighed, j, bins.cuts, 1)[0], 0.0)
    mass = bins.together(fine)
    if column.is_categorical:
        numbers = _of_levels(column, mass)
    else:
        numbers = _exact(known, j, column) if is_exact else _of_bins(subject, known, j, fine)
    return {
        "mass": _rounded(mass),
        "atoms": _rounded(fine[bins.cell]) if len(bins.cell) else [],
        **dict(zip(("mean", "low", "high"), numbers, strict=True)),
        "moved": _bits(mass, bins.together(before)) if known.conditions else 0.0,
    }


def _rounded(mass: np.ndarray) -> list[float]:
    """Masses short enough to send, without digits that nobody sees."""
    return [float(f"{x:.9g}") for x in mass.tolist()]


def _of_levels(column: Column, mass: np.ndarray) -> _Three:
    """P(True) of a boolean column, the interval's ends of an ordered one as places."""
    if column.kind == "boolean":
        return (float(mass[column.codes[True]]) if True in column.codes else 0.0), None, None
    if not column.is_ordered:
        return None, None, None
    low, high = np.minimum(np.searchsorted(np.cumsum(mass), TAILS - 1e-12), len(mass) - 1).tolist()
    return None, low, high


def _exact(known: Known, j: int, column: Column) -> _Three:
    """Mean, and the ends of the interval with equal tails that holds 90 %: the joint's own."""
    w = known.weighed
    mean = float(mean_variance(w.model, w.evidence, j, known=w.known)[0][0])
    low, high = quantile(w.model, w.evidence, j, TAILS, known=w.known)[0].tolist()
    return to_shown(column, mean), to_shown(column, low), to_shown(column, high)


def _of_bins(subject: Subject, known: Known, j: int, fine: np.ndarray) -> _Three:
    """The same from masses of cuts (C,): where in a cut, is as it is without evidence."""
    column, bins = subject.columns[j], subject.bins[j]
    mean = float(fine @ subject.centers[j])
    low, high = np.interp(TAILS, np.concatenate([[0.0], np.cumsum(fine)]), bins.cuts).tolist()
    if column.step > 0.0:
        low, high = (
            column.center + np.ceil((x - column.center) / column.step - 0.5 - 1e-6) * column.step for x in (low, high)
        )
    shown = [to_shown(column, x) for x in (mean, low, high)]
    condition = known.conditions.get(column.name)
    said = {} if condition is None else written_condition(column, condition)
    least, most = said.get("low"), said.get("high")
    shown = [x if x is None or least is None else max(x, least) for x in shown]
    mean_, low_, high_ = (x if x is None or most is None else min(x, most) for x in shown)
    return mean_, low_, high_


def _bits(mass: np.ndarray, before: np.ndarray) -> float:
    """Kullback-Leibler divergence from what was known before, in bits."""
    some = mass > 0.0
    ratio = mass[some] / np.maximum(before[some], 1e-300)
    return max(float(mass[some] @ np.log2(ratio)), 0.0)
