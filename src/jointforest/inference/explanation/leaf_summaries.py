"""Summaries of single leaves: means of columns with intervals, and most probable levels."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...data.evidence import Evidence
from ...data.schema import Column, Schema
from ...models.box_forest.box_trees import BoxTrees
from .rules import grid_value

SUMMARY_LEVEL = 0.9
"""Share of a column's distribution in a leaf that its interval holds."""
_NOISE = 1e-9
"""A smaller share of a column's range is no number of it."""
_MOST_LEVELS = 3
"""Levels of a column that are shown, the most probable ones."""


def leaf_summaries(trees: BoxTrees, evidence: Evidence, leaf: np.ndarray) -> list[dict[str, dict[str, Any]]]:
    """Summaries of the columns in k leaves, given one row of evidence that all of them meet: k dicts by column.

    Columns to which the evidence gives a value are left out. A number has ``{"mean", "low", "high"}``: the interval
    of equal tails that holds 90 % of it. A column of levels has ``{"levels": {level: probability}}``, at most three.
    """
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
    mean, low, high = (_value_text(column, summary, which) for which in ("mean", "low", "high"))
    return mean if mean == low == high else f"{mean} ({low} to {high})"


def _value_text(column: Column, summary: Mapping[str, Any], which: str) -> str:
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
