"""How far two joints of one schema are apart: the largest difference of their answers to random evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..data.conditions import PerRow
from ..data.evidence import Evidence, build
from ..data.schema import Column, Schema
from ..explorer.shown import ShownBins, ShownJoint, to_shown
from ..explorer.state import read_evidence
from ..inference.histogram import histogram
from ..inference.sampling import sample
from ..models.base import Distribution
from ..models.mixture import weighted
from ..runtime.threads import map_ordered

N_PIECES = 1_000
"""Pieces of random evidence."""
FEW_PIECES = 200
"""Pieces where only the rounding of a joint is measured, and where forests answer one piece after the other."""
RULED_PIECES = 50
"""Pieces where the joint has enforced rules: an answer about a sum of columns takes up to 0.1 seconds."""
_MOST_COLUMNS = 3
"""Most columns in a piece."""
SEVERAL = 0.3
"""Share of conditions on levels that name two."""
_STEPS = 200
"""Steps of a histogram's axis to which the ends of an interval are rounded, as a drag does."""


class Errors(NamedTuple):
    """Differences of answers, each the largest of a piece of evidence over all bins and levels of all columns.

    largest, usual : float. The largest and the median of the pieces, as shares of 1.
    n : int. Number of pieces.
    """

    largest: float
    usual: float
    n: int


def random_pieces(shown: ShownJoint, n: int = N_PIECES, seed: int = 0) -> list[list[dict[str, Any]]]:
    """Evidence on one to three columns, as a page asks for it, which holds for a row drawn from the joint."""
    rng = np.random.default_rng(seed)
    model, nothing = shown.joint.distribution, shown.nothing.evidence
    X, other = (sample(model, nothing, n, seed + k) for k in (1, 2))
    return [_piece(shown, X[i], other[i], rng) for i in range(n)]


def _piece(shown: ShownJoint, x: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> list[dict[str, Any]]:
    d = len(shown.columns)
    places = sorted(rng.choice(d, min(int(rng.integers(1, _MOST_COLUMNS + 1)), d), replace=False).tolist())
    said = [_condition(shown.columns[j], shown.bins[j], x[j], other[j], rng) | {"column": j} for j in places]
    return [condition for condition in said if len(condition) > 1]


def _condition(column: Column, bins: ShownBins, x: float, other: float, rng: np.random.Generator) -> dict[str, Any]:
    """A condition that the value x satisfies, none of a cell that a rule makes missing; ``other`` is another value."""
    if np.isnan(x) or np.isnan(other):
        return {}
    if column.is_categorical:
        both = {int(x), int(other)} if rng.random() < SEVERAL else {int(x)}
        return {"levels": sorted(both)} if len(both) < len(column.levels) else {}
    edges, half = bins.edges, 0.5 * column.step
    kind = int(rng.integers(4))
    if kind == 0:
        k = int(np.clip(np.searchsorted(edges, x) - 1, 0, len(edges) - 2))
        low, high = edges[k] + half, edges[k + 1] - half
    else:
        low, high = (_rounded(column, edges, end) for end in sorted((x, other)))
    ends = [None if kind == 2 else low, None if kind == 3 else high]
    if ends[0] is not None and ends[0] - half <= edges[0]:
        ends[0] = None
    if ends[1] is not None and ends[1] + half >= edges[-1]:
        ends[1] = None
    numbers = [None if end is None else to_shown(column, float(end)) for end in ends]
    if numbers == [None, None] or (numbers[0] == numbers[1] and column.step == 0.0):
        return {}
    return {"low": numbers[0], "high": numbers[1]}


def _rounded(column: Column, edges: np.ndarray, x: float) -> float:
    """An end of an interval as a drag gives it: on the grid of the column, or on one of `_STEPS` steps."""
    if column.step > 0.0:
        return column.center + round((x - column.center) / column.step) * column.step
    step = (edges[-1] - edges[0]) / _STEPS
    return float(edges[0] + round((x - edges[0]) / step) * step)


def measured_errors(shown: ShownJoint, other: Distribution, pieces: Sequence[list[dict[str, Any]]]) -> Errors:
    """How far the answers of a distribution are from those of the joint that is shown, on pieces of evidence."""
    evidence = row_evidence(shown.joint.schema, pieces)
    true, near = (answers_of(model, evidence, shown.bins) for model in (shown.joint.distribution, other))
    worst = np.zeros(len(pieces))
    for mine, theirs in zip(true, near, strict=True):
        worst = np.maximum(worst, np.nan_to_num(np.abs(mine - theirs).max(axis=1)))
    return Errors(float(worst.max()), float(np.median(worst)), len(pieces))


def row_evidence(schema: Schema, pieces: Sequence[list[dict[str, Any]]]) -> Evidence:
    """Pieces of evidence as the rows of one."""
    conditions: dict[str, list[Any]] = {name: [None] * len(pieces) for name in schema.names}
    for i, piece in enumerate(pieces):
        for name, condition in read_evidence(schema, piece).items():
            conditions[name][i] = condition
    said = {name: PerRow(each) for name, each in conditions.items() if any(one is not None for one in each)}
    return build(schema, conditions=said, n=len(pieces))


def answers_of(model: Distribution, evidence: Evidence, bins: Sequence[ShownBins]) -> list[np.ndarray]:
    """Shares of the bins, or levels, of each column given each row of evidence, (n, B) each."""
    if not any(component.is_forest for component in model.components):
        state = model.observe(evidence)
        state.prepare(range(len(bins)))  # messages pass once for all columns
        return [histogram(state, j, one.edges).astype(np.float32) for j, one in enumerate(bins)]
    if len(model.components) > 1:
        each = [answers_of(component, evidence, bins) for component in model.components]
        log_joint = np.column_stack([one.observe(evidence).log_probability() for one in model.components])
        log_joint += model.log_weight
        weight = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True))
        return [weighted(weight, shares) for shares in zip(*each, strict=True)]
    n = len(evidence.value)  # row by row: forests keep tables of bins for that, and meet all leaves again and again

    def of_row(i: int) -> list[np.ndarray]:
        row = model.observe(evidence.take(np.array([i])))
        return [histogram(row, j, one.edges).astype(np.float32) for j, one in enumerate(bins)]

    found = list(map_ordered(of_row, [(i,) for i in range(n)]))
    return [np.concatenate([row[j] for row in found]) for j in range(len(bins))]
