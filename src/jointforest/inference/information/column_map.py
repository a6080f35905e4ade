"""The strongest dependences between columns as a map; and which column would change a prediction most if it were known.

A map lists the columns so that those that depend on each other are near, and joins the strongest pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...data.conditions import PerRow
from ...data.discretization.dependence import spanning_tree
from ...data.evidence import intersect
from ...models.base import PosteriorState
from .classes import conditions_of_bins

_LEAST = 0.01
"""Bits below which no edge is drawn."""
_LEAST_SHARE = 0.01
"""Classes that are less probable do not count for the ends of a change."""


class ColumnMap(NamedTuple):
    """Columns in order, and the edges between them: two columns and their mutual information in bits."""

    order: list[int]
    edges: list[tuple[int, int, float]]


def column_map(bits: np.ndarray) -> ColumnMap:
    """The map of columns with these mutual informations, (d, d) in bits: a spanning tree and as many other edges."""
    d = len(bits)
    order, parent = (x.tolist() for x in spanning_tree(bits))
    children: list[list[int]] = [[] for _ in order]
    for k, above in enumerate(parent[1:], 1):
        children[above].append(k)
    found, waiting = [], [0]
    while waiting:  # each branch of the tree is written without a gap
        k = waiting.pop()
        found.append(order[k])
        waiting += sorted(children[k], key=lambda c: (bits[order[c], order[k]], -c))
    tree = {tuple(sorted((order[k], order[above]))) for k, above in enumerate(parent) if above >= 0}
    pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
    others = sorted((pair for pair in pairs if pair not in tree), key=lambda pair: -bits[pair])[:d]
    edges = [(i, j, float(bits[i, j])) for i, j in [*sorted(tree), *others] if bits[i, j] >= _LEAST]
    return ColumnMap(found, edges)


class Change(NamedTuple):
    """How a prediction changes if a column becomes known.

    by : float. Expected absolute change.
    low, high : float. The least and the greatest prediction, over the classes of the column that are not improbable.
    """

    by: float
    low: float
    high: float


def expected_changes(
    state: PosteriorState, j: int, level: int | None, cuts: Mapping[int, np.ndarray]
) -> dict[int, Change]:
    """The changes of a prediction of column j when each column of ``cuts`` becomes known, given one row of evidence."""
    # The prediction is the mean of a number, else the probability of a level. A column becomes known by its level or
    # bin.
    schema, found = state.distribution.schema, {}
    for a, ends in cuts.items():
        try:
            given = state.distribution.given_known([a])
        except ValueError:
            continue
        conditions = tuple(conditions_of_bins(schema.columns[a], ends))
        rows = intersect(schema, state.evidence, {schema.names[a]: PerRow(conditions)})
        with np.errstate(invalid="ignore"):
            share = np.exp(given.log_density(rows) - given.log_density(state.evidence))
        some = np.flatnonzero(share > 0.0)
        if not len(some):
            continue
        inside, p = given.observe(rows.take(some)), share[some] / share[some].sum()
        predicted = inside.moments(j)[0] if level is None else inside.level_probabilities(j)[:, level]
        often = predicted[p >= min(_LEAST_SHARE, p.max())]
        found[a] = Change(float(p @ np.abs(predicted - p @ predicted)), float(often.min()), float(often.max()))
    return found
