"""What single leaves say of the columns: means with intervals, and most probable levels."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..forest.column.level_kernels import level_rows
from ..forest.column.moment_kernels import mean_variance_rows
from ..forest.column.quantile_kernels import quantile_rows
from ..forest.forest import Forest
from ..forest.posterior.posterior import LeafPosterior, chunk_posterior
from ..leaves.circuits.soundness import leaf_of_rows
from ..table import values as answers
from ..table.regions import Evidence
from ..table.schema import Column, Schema
from .rules import grid_value

LEVEL = 0.9
"""Share of a column's distribution in a leaf that its interval holds."""
_MOST_LEVELS = 3


def leaf_answers(model: Forest, evidence: Evidence, leaf: np.ndarray) -> list[dict[str, dict[str, Any]]]:
    """What each of these leaves says, given one row of evidence that all of them meet.

    Parameters
    ----------
    model : Forest
    evidence : Evidence
        One row.
    leaf : integer array (k,)

    Returns
    -------
    list of k dicts
        By column, those left out that the evidence gives a value: ``{"mean", "low", "high"}`` of a number, with the
        interval of equal tails that holds 90 % of it, or ``{"levels": {level: probability}}``, at most three.
    """
    found: list[dict[str, dict[str, Any]]] = [{} for _ in leaf]
    rows = evidence.repeat(len(leaf))
    tails = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    for j, column in enumerate(model.schema.columns):
        if not len(leaf) or not math.isnan(evidence.value[0, j]):
            continue
        post = _entries(model, evidence, j, leaf)
        if column.is_categorical:
            for says, share in zip(found, level_rows(model.columns, model.leaves, rows, j, post, 0), strict=True):
                says[column.name] = {"levels": _likeliest(column, share)}
            continue
        mean = mean_variance_rows(model.columns, model.leaves, rows, j, post, 0, np.empty((0, 2)))[:, 0]
        ends = quantile_rows(model.columns, model.leaves, rows, j, post, 0, tails)
        for says, middle, (low, high) in zip(found, mean.tolist(), ends.tolist(), strict=True):
            numbers = {"mean": middle, "low": low, "high": high}
            says[column.name] = {name: answers.scalar(column, number) for name, number in numbers.items()}
    return found


def answers_text(schema: Schema, says: Mapping[str, Mapping[str, Any]]) -> str:
    """What a leaf says, in one line."""
    return "; ".join(f"{name} {_answer_text(schema[name], answer)}" for name, answer in says.items())


def _entries(model: Forest, evidence: Evidence, j: int, leaf: np.ndarray) -> LeafPosterior:
    """A posterior whose row i holds only what describes column j in leaf i of the list."""
    post = chunk_posterior(model, evidence, 0, 1, j)
    owner = leaf_of_rows(model.leaves.node_start, model.leaves.node_row)[post.leaf]
    order = np.argsort(owner, kind="stable")
    first, stop = (np.searchsorted(owner[order], leaf, side) for side in ("left", "right"))
    picked = np.concatenate([order[a:b] for a, b in zip(first, stop, strict=True)])
    start = np.cumsum(np.append(0, stop - first))
    log_weight = post.log_weight[picked]
    return LeafPosterior(start, post.leaf[picked], log_weight, np.logaddexp.reduceat(log_weight, start[:-1]))


def _likeliest(column: Column, share: np.ndarray) -> dict[Any, float]:
    order = np.argsort(-share, kind="stable")[:_MOST_LEVELS]
    return {column.levels[code]: float(share[code]) for code in order if share[code] > 0}


def _answer_text(column: Column, answer: Mapping[str, Any]) -> str:
    if column.is_categorical:
        shown = {level: share for level, share in answer["levels"].items() if share >= 0.005}
        return ", ".join(f"{level} {100 * share:.0f} %" for level, share in (shown or answer["levels"]).items())
    mean, low, high = (_value_text(column, answer, which) for which in ("mean", "low", "high"))
    return mean if mean == low == high else f"{mean} ({low} to {high})"


def _value_text(column: Column, answer: Mapping[str, Any], which: str) -> str:
    """A number with two digits of its interval's width, a date, a time to the second."""
    value = answer[which]
    if column.kind == "datetime":
        if isinstance(value, dt.date):  # else beyond the calendar
            value = grid_value(column, column.to_number(value))
        return value.isoformat(" ", "seconds") if isinstance(value, dt.datetime) else str(value)
    width = answer["high"] - answer["low"]
    if not 0 < width < 1e15 or abs(value) > 1e15:
        return f"{value:.6g}"
    places = max(1 - math.floor(math.log10(width)), 0)
    if column.step > 0 and which != "mean":
        places = min(places, column.decimals)
    return f"{value:z.{places}f}"
