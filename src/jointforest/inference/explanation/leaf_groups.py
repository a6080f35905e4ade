"""One column in groups of leaves: each group answers as the mixture of its leaves."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from ...data.discretization import base_density
from ...data.discretization.discretizer import Scale
from ...data.evidence import Evidence
from ...data.schema import Column, Schema
from ...data.values import scalar
from ...models.box_forest.column_kernels import cdf_rows, level_rows, mean_variance_rows
from ...models.box_forest.forest import Forest
from ...models.box_forest.leaves.circuits import leaf_of_rows
from ...models.box_forest.posterior import LeafPosterior, chunk_posterior
from ...models.box_forest.quantile_kernels import quantile_rows
from ...models.hidden_tree.evidence import code_evidence
from ...models.hidden_tree.hidden_trees import HiddenTrees
from ...models.hidden_tree.posterior import codes_by_tree, tree_log_density
from .box_trees import BoxTrees
from .rules import grid_value


class ColumnInGroups(Protocol):
    """A column in each of k groups of leaves."""

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """CDF of a column of numbers at q points, float64 (k, q)."""
        ...

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        """Quantiles of a column of numbers at q levels, float64 (k, q)."""
        ...

    def mean(self) -> np.ndarray:
        """Means of a column of numbers, float64 (k,)."""
        ...

    def level_probability(self) -> np.ndarray:
        """Probabilities of the levels of a categorical column, float64 (k, K)."""
        ...


@dataclass(frozen=True)
class _OfForest:
    """A column in groups of leaves of independent columns or circuits.

    Attributes
    ----------
    forest : Forest
    j : int
        Number of the column.
    evidence : Evidence
        One row of evidence, k times.
    post : LeafPosterior
        Its row i holds what describes the column in group i.
    """

    forest: Forest
    j: int
    evidence: Evidence
    post: LeafPosterior

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """CDF of a column of numbers at q points, float64 (k, q)."""
        return np.asarray(cdf_rows(self.forest.columns, self.forest.leaves, self.evidence, self.j, self.post, 0, x))

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        """Quantiles of a column of numbers at q levels, float64 (k, q)."""
        columns, leaves = self.forest.columns, self.forest.leaves
        return np.asarray(quantile_rows(columns, leaves, self.evidence, self.j, self.post, 0, levels))

    def mean(self) -> np.ndarray:
        """Means of a column of numbers, float64 (k,)."""
        columns, leaves = self.forest.columns, self.forest.leaves
        both = mean_variance_rows(columns, leaves, self.evidence, self.j, self.post, 0, np.empty((0, 2)))
        return np.asarray(both[:, 0])

    def level_probability(self) -> np.ndarray:
        """Probabilities of the levels of a categorical column, float64 (k, K)."""
        return np.asarray(level_rows(self.forest.columns, self.forest.leaves, self.evidence, self.j, self.post, 0))


@dataclass(frozen=True)
class _OfCodes:
    """A column in groups of leaves that hold trees of codes: p(code) in each group, (k, n_codes)."""

    scale: Scale
    n_levels: int
    p: np.ndarray

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return np.minimum(self.p @ base_density.cdf(self.scale, x).T, 1.0)

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        return base_density.quantiles(self.scale, self.p, levels)

    def mean(self) -> np.ndarray:
        return np.asarray(self.p @ self.scale.moments[1])

    def level_probability(self) -> np.ndarray:
        return base_density.levels(self.scale, self.p, self.n_levels)


def column_in_groups(
    trees: BoxTrees, evidence: Evidence, groups: Sequence[np.ndarray] | np.ndarray, j: int
) -> ColumnInGroups:
    """Column j in k groups of leaves, given one row of evidence that all of them meet; no leaf is in two groups.

    The evidence gives the column no value.
    """
    if isinstance(trees.within, Forest):
        return _in_forest(trees.within, evidence, groups, j)
    return _in_codes(trees.within, evidence, groups, j)


def _in_codes(hidden: HiddenTrees, evidence: Evidence, groups: Sequence[np.ndarray] | np.ndarray, j: int) -> _OfCodes:
    assert hidden.grown is not None
    group_of = np.full(int(hidden.grown.leaf.max()) + 1, -1)
    for number, leaves in enumerate(groups):
        group_of[leaves] = number
    group = group_of[hidden.grown.leaf]
    mine = np.flatnonzero(group >= 0)
    few = replace(hidden, trees=tuple(hidden.trees[t] for t in mine), log_weight=hidden.log_weight[mine], grown=None)
    log_weight = tree_log_density(few, evidence, 1)[0]
    codes = codes_by_tree(few, evidence, [j])[j]
    p = np.zeros((len(groups), codes.shape[1]))
    for number in range(len(groups)):
        own = np.flatnonzero(group[mine] == number)
        p[number] = np.exp(log_weight[own] - np.logaddexp.reduce(log_weight[own])) @ codes[own]
    known, scale = code_evidence(hidden, evidence)[j], hidden.scales[j]
    region = int(known.code[0]) - scale.n_codes - 1
    return _OfCodes(known.regions[region] if region >= 0 else scale, len(hidden.schema.columns[j].levels), p)


def _in_forest(forest: Forest, evidence: Evidence, groups: Sequence[np.ndarray] | np.ndarray, j: int) -> _OfForest:
    group_of = np.full(len(forest.leaves.log_weight), -1)
    for number, leaves in enumerate(groups):
        group_of[leaves] = number
    post = chunk_posterior(forest, evidence, 0, 1, j)
    group = group_of[leaf_of_rows(forest.leaves.node_start, forest.leaves.node_row)[post.leaf]]
    order = np.argsort(group, kind="stable")
    order = order[group[order] >= 0]
    start = np.searchsorted(group[order], np.arange(len(groups) + 1)).astype(np.int64)
    log_weight = post.log_weight[order]
    total = np.array([np.logaddexp.reduce(log_weight[a:b]) for a, b in pairwise(start)])
    return _OfForest(forest, j, evidence.repeat(len(groups)), LeafPosterior(start, post.leaf[order], log_weight, total))


# ---- What single leaves say of the columns: means with intervals, and most probable levels.

LEVEL = 0.9
"""Share of a column's distribution in a leaf that its interval holds."""
_MOST_LEVELS = 3


def leaf_summaries(trees: BoxTrees, evidence: Evidence, leaf: np.ndarray) -> list[dict[str, dict[str, Any]]]:
    """What each of these leaves says, given one row of evidence that all of them meet.

    Parameters
    ----------
    trees : BoxTrees
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
    tails = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    for j, column in enumerate(trees.schema.columns):
        if not len(leaf) or not math.isnan(evidence.value[0, j]):
            continue
        in_leaves = column_in_groups(trees, evidence, leaf[:, None], j)
        if column.is_categorical:
            told = in_leaves.level_probability()
        else:
            told = np.column_stack([in_leaves.mean(), in_leaves.quantile(tails)])
        for says, numbers in zip(found, told, strict=True):
            says[column.name] = column_summary(column, numbers)
    return found


def column_summary(column: Column, numbers: np.ndarray) -> dict[str, Any]:
    """A column's summary as users read it: of the probabilities of its levels, or of mean, low and high."""
    if column.is_categorical:
        return {"levels": _likeliest(column, numbers)}
    return {name: scalar(column, x) for name, x in zip(("mean", "low", "high"), numbers.tolist(), strict=True)}


def leaf_kind(trees: BoxTrees, leaf: int) -> str:
    """``"leaf"`` (a product), ``"circuit"``, ``"Chow-Liu leaf"`` or ``"background"``."""
    if trees.has_background and leaf == len(trees.log_weight) - 1:
        return "background"
    if not isinstance(trees.within, Forest):
        return "Chow-Liu leaf"
    start = trees.within.leaves.node_start
    return "circuit" if start[leaf + 1] > start[leaf] else "leaf"


def summary_text(schema: Schema, says: Mapping[str, Mapping[str, Any]]) -> str:
    """The summary of a leaf, in one line."""
    return "; ".join(f"{name} {_column_text(schema[name], summary)}" for name, summary in says.items())


def _likeliest(column: Column, share: np.ndarray) -> dict[Any, float]:
    order = np.argsort(-share, kind="stable")[:_MOST_LEVELS]
    return {column.levels[code]: float(share[code]) for code in order if share[code] > 0}


def _column_text(column: Column, summary: Mapping[str, Any]) -> str:
    if column.is_categorical:
        shown = {level: share for level, share in summary["levels"].items() if share >= 0.005}
        return ", ".join(f"{level} {100 * share:.0f} %" for level, share in (shown or summary["levels"]).items())
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
