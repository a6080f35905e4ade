"""Boxes as conditions and as rules, text of the query language that reads back as the same box; summaries of leaves."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...data.conditions import AnyOf, Interval, Not
from ...data.evidence import Evidence
from ...data.schema import Column, Columns, Schema, place_on_grid
from ...data.texts import column_text
from ...models.box_forest.box_trees import BoxTrees
from ...query_language.render import condition_text


def box_conditions(
    schema: Schema, columns: Columns, lo: np.ndarray, hi: np.ndarray, allowed: np.ndarray
) -> dict[str, Any]:
    """Conditions, by column, of one box; columns that it leaves open have none."""
    conditions: dict[str, Any] = {}
    for j, column in enumerate(schema.columns):
        slot = columns.slot[j]
        if column.is_categorical:
            at, end = columns.level_start[slot], columns.level_start[slot + 1]
            condition = levels_condition(column, allowed[at:end])
        else:
            condition = side_condition(column, float(lo[slot]), float(hi[slot]))
        if condition is not None:
            conditions[column.name] = condition
    return conditions


def rule_text(conditions: Mapping[str, Any]) -> str:
    """Conditions joined by ``and``; '' if there are none."""
    return " and ".join(condition_text(column_text(name), condition) for name, condition in conditions.items())


def side_condition(column: Column, lo: float, hi: float) -> Any:
    """Condition that a number is in ``(lo, hi]``, None if every number is; on a grid by its cells' centres."""
    if lo == -math.inf and hi == math.inf:
        return None
    first: Any = None if lo == -math.inf else lo
    last: Any = None if hi == math.inf else hi
    if column.step == 0.0:
        return Interval(first, last, "neither" if last is None else "right")
    if first is not None:
        first = grid_value(column, column.center + (math.floor(place_on_grid(column, lo)) + 1) * column.step)
    if last is not None:
        last = grid_value(column, column.center + math.floor(place_on_grid(column, hi)) * column.step)
    if first is not None and first == last:
        return first
    return Interval(first, last, "left" if last is None else "right" if first is None else "both")


def grid_value(column: Column, number: float) -> Any:
    """Value of the nearest cell of a grid; midnights of a column of whole days are dates."""
    value = column.from_number(number)
    is_midnight = isinstance(value, dt.datetime) and value.tzinfo is None and value.time() == dt.time()
    return value.date() if is_midnight and column.step % 86400.0 == 0.0 else value


def levels_condition(column: Column, allowed: np.ndarray) -> Any:
    """Condition that a level is one of those allowed (bool (K,)), in its shorter form; None if all are."""
    codes = np.flatnonzero(allowed)
    if len(codes) == len(allowed):
        return None
    if column.kind == "ordered" and 1 < len(codes) == codes[-1] - codes[0] + 1:
        low, high = column.levels[codes[0]], column.levels[codes[-1]]
        if codes[0] == 0:
            return Interval(None, high, "right")
        return Interval(low, None, "left") if codes[-1] == len(allowed) - 1 else Interval(low, high)
    others = np.flatnonzero(~allowed)
    return _any_of(column, codes) if 0 < len(codes) <= len(others) else Not(_any_of(column, others))


def split_conditions(column: Column, left: np.ndarray, right: np.ndarray) -> tuple[Any, Any]:
    """Conditions, as short as may be, that separate the levels with the codes ``left`` from those with ``right``."""
    if column.kind == "ordered" and (left.max() < right.min() or right.max() < left.min()):
        below = Interval(None, column.levels[min(left.max(), right.max())], "right")
        above = Interval(below.hi, None, "neither")
        return (below, above) if left.max() < right.min() else (above, below)
    if len(left) == len(right) == 1:
        return column.levels[left[0]], column.levels[right[0]]
    inside = _any_of(column, left if len(left) <= len(right) else right)
    return (inside, Not(inside)) if len(left) <= len(right) else (Not(inside), inside)


def _any_of(column: Column, codes: np.ndarray) -> Any:
    levels = [column.levels[code] for code in codes]
    return levels[0] if len(levels) == 1 else AnyOf(*levels)


# ---- Summaries of single leaves: means of columns with intervals, and most probable levels.


SUMMARY_LEVEL = 0.9
"""Share of a column's distribution in a leaf that its interval holds."""
_NOISE = 1e-9
"""A smaller share of a column's range is no number of it."""
_MOST_LEVELS = 3
"""Levels of a column that are shown, the most probable ones."""


def leaf_summaries(trees: BoxTrees, evidence: Evidence, leaf: np.ndarray) -> list[dict[str, dict[str, Any]]]:
    """Summaries of the columns without a known value in k leaves, given one row of evidence: dicts by column."""
    # Numbers have {"mean", "low", "high"}, the interval with equal tails that holds 90 %; levels at most three of them.
    summaries: list[dict[str, dict[str, Any]]] = [{} for _ in leaf]
    tails = np.array([(1 - SUMMARY_LEVEL) / 2, (1 + SUMMARY_LEVEL) / 2])
    for j, column in enumerate(trees.schema.columns):
        if not len(leaf) or not math.isnan(evidence.value[0, j]):
            continue
        in_leaves = trees.column_in_groups(evidence, leaf[:, None], j)
        if column.is_categorical:
            answers = in_leaves.level_probability()
        else:
            answers = np.column_stack([in_leaves.mean(), in_leaves.quantile(tails)])
        for says, numbers in zip(summaries, answers, strict=True):
            says[column.name] = column_summary(column, numbers)
    return summaries


def column_summary(column: Column, numbers: np.ndarray) -> dict[str, Any]:
    """A column's summary as users read it: of the probabilities of its levels, or of mean, low and high."""
    if column.is_categorical:
        return {"levels": _likeliest(column, numbers)}
    if column.kind != "datetime":  # what differences of large sums leave of 0 is none
        noise = _NOISE * (column.maximum - column.minimum)
        numbers = np.where(np.abs(numbers) < noise, 0.0, numbers)
    return {name: column.scalar(x) for name, x in zip(("mean", "low", "high"), numbers.tolist(), strict=True)}


def summary_text(schema: Schema, says: Mapping[str, Mapping[str, Any]]) -> str:
    """The summary of a leaf, in one line."""
    return "; ".join(f"{name} {_column_text(schema[name], summary)}" for name, summary in says.items())


def _likeliest(column: Column, share: np.ndarray) -> dict[Any, float]:
    order = np.argsort(-share, kind="stable")[:_MOST_LEVELS]
    return {column.levels[code]: float(share[code]) for code in order if share[code] > 0}


def _column_text(column: Column, summary: Mapping[str, Any]) -> str:
    if column.is_categorical:
        shown = {level: share for level, share in summary["levels"].items() if share >= 0.005}
        return ", ".join(f"{level} {100 * share:.0f}%" for level, share in (shown or summary["levels"]).items())
    mean, low, high = (_rule_value_text(column, summary, which) for which in ("mean", "low", "high"))
    return mean if mean == low == high else f"{mean} ({low} to {high})"


def _rule_value_text(column: Column, summary: Mapping[str, Any], which: str) -> str:
    """A number with two digits of its interval's width, a date, a time to the second."""
    value = summary[which]
    if column.kind == "datetime":
        if isinstance(value, dt.date):  # else beyond the calendar
            value = grid_value(column, column.to_number(value))
        return value.isoformat(" ", "seconds") if isinstance(value, dt.datetime) else str(value)
    width = summary["high"] - summary["low"]
    if not 0 < width < 1e15 or abs(value) > 1e15:
        return f"{value:.6g}"
    places = max(1 - math.floor(math.log10(width)), 0)
    if column.step > 0 and which != "mean":
        places = min(places, column.decimals)
    return f"{value:z.{places}f}"
