"""Mutual information of two columns by classes: levels, and bins of equal probability of numbers.

It is exact and finite, and can be counted in the rows of a table.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...data.conditions import AnyOf, PerRow
from ...data.discretization.dependence import mutual_information, spanning_tree, times_log
from ...data.evidence import Evidence, intersect
from ...data.schema import Column
from ...models.base import Distribution, PosteriorState
from ..explanation.rules import side_condition

CLASS_BINS = 16
"""Bins of a column of numbers, as where learners measure dependence."""
_ROWS = 512
"""Classes that are observed at once."""


def class_cuts(state: PosteriorState, j: int, bins: int) -> np.ndarray:
    """Cuts between bins of about equal probability of a column of numbers; none of levels."""
    # They lie at quantiles, on a grid between cells. A value that fills a bin is alone in it.
    column = state.distribution.schema.columns[j]
    if column.is_categorical:
        return np.empty(0)
    ends = state.quantile(j, np.arange(1, bins) / bins)[0]
    if column.step > 0.0:
        cells = np.rint((ends - column.center) / column.step)
        cells = np.concatenate([cells, cells[1:][cells[1:] == cells[:-1]] - 1.0])
        return column.center + (np.unique(cells) + 0.5) * column.step
    points = ends[1:][ends[1:] == ends[:-1]]
    return np.unique(np.concatenate([ends, np.nextafter(points, -np.inf)]))


def conditions_of_bins(column: Column, cuts: np.ndarray) -> list[Any]:
    """The conditions that a column is in each of its bins, or has each of its levels."""
    if column.is_categorical:
        return [AnyOf(level) for level in column.levels]
    ends = [-np.inf, *cuts.tolist(), np.inf]
    return [AnyOf(side_condition(column, lo, hi)) for lo, hi in itertools.pairwise(ends)]


def n_classes(column: Column, cuts: np.ndarray) -> int:
    """Levels, or bins between cuts."""
    return len(column.levels) if column.is_categorical else len(cuts) + 1


def informations(state: PosteriorState, a: int, others: Sequence[int], cuts: Mapping[int, np.ndarray]) -> np.ndarray:
    """Mutual information, in nats, of column a with each other one given one row of evidence, (len(others),)."""
    # It is that of the classes between ``cuts`` in the rows where both columns have values; NaN where there are none.
    found = np.full(len(others), np.nan)
    groups: dict[int, tuple[Distribution, list[int]]] = {}
    for i, b in enumerate(others):
        try:
            given = state.distribution.given_known([a, b])
        except ValueError:  # rules make one of them missing in each row
            continue
        groups.setdefault(id(given), (given, []))[1].append(i)
    for given, places in groups.values():
        for i, table in zip(places, _joints(given, state.evidence, a, [others[i] for i in places], cuts), strict=True):
            found[i] = _information_of(table)
    return found


def _joints(
    model: Distribution, evidence: Evidence, a: int, others: Sequence[int], cuts: Mapping[int, np.ndarray]
) -> list[np.ndarray]:
    """P(class of a, class of b | evidence) for each other column b, (classes of a, classes of b) each."""
    schema = model.schema
    conditions = conditions_of_bins(schema.columns[a], cuts[a])
    tables = [np.zeros((len(conditions), n_classes(schema.columns[b], cuts[b]))) for b in others]
    log_evidence = model.log_density(evidence)
    for first in range(0, len(conditions), _ROWS):
        rows = intersect(schema, evidence, {schema.names[a]: PerRow(tuple(conditions[first : first + _ROWS]))})
        inside = model.observe(rows)
        inside.prepare(others)
        with np.errstate(invalid="ignore"):
            share = np.nan_to_num(np.exp(inside.log_probability() - log_evidence))
        for table, b in zip(tables, others, strict=True):
            within = np.nan_to_num(inside.histogram(b, cuts[b]))  # of impossible rows it is NaN
            table[first : first + _ROWS] = share[:, None] * np.maximum(within, 0.0)
    return tables


def _information_of(table: np.ndarray) -> float:
    """Mutual information of a table of probabilities, in nats; NaN of an impossible one."""
    total = table.sum()
    table = table / total if total > 0.0 else np.full_like(table, np.nan)
    both, rows, columns = (times_log(p).sum() for p in (table, table.sum(axis=1), table.sum(axis=0)))
    return float(np.maximum(both - rows - columns, 0.0))


def all_informations(state: PosteriorState, columns: Sequence[int], cuts: Mapping[int, np.ndarray]) -> np.ndarray:
    """`informations` of each two of some columns, (d, d); 0 on the diagonal and where no row has values of both."""
    of = state.distribution.schema.columns
    order = sorted(range(len(columns)), key=lambda i: n_classes(of[columns[i]], cuts[columns[i]]))
    found = np.zeros((len(columns), len(columns)))
    for k, i in enumerate(order[:-1]):
        later = order[k + 1 :]
        found[i, later] = np.nan_to_num(informations(state, columns[i], [columns[m] for m in later], cuts))
        found[later, i] = found[i, later]
    return found


def information_of_rows(X: np.ndarray, columns: Sequence[Column], cuts: Sequence[np.ndarray]) -> np.ndarray:
    """The same counted in rows (n, d), less what chance gives: see `dependence.mutual_information`."""
    classes = np.full(X.shape, -1, np.int16)
    for j, column in enumerate(columns):
        known = ~np.isnan(X[:, j])
        classes[known, j] = X[known, j] if column.is_categorical else np.searchsorted(cuts[j], X[known, j])
    size = np.array([n_classes(column, cut) for column, cut in zip(columns, cuts, strict=True)])
    return mutual_information(classes, size)


# ---- The strongest dependences between columns as a map; and which column would change a prediction most if it were
# ---- known.
# ---- A map lists the columns so that those that depend on each other are near, and joins the strongest pairs.


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


class Moves(NamedTuple):
    """How a prediction changes if a column becomes known.

    by : float. Expected absolute change.
    low, high : float. The least and the greatest prediction, over the classes of the column that are not improbable.
    """

    by: float
    low: float
    high: float


def expected_changes(
    state: PosteriorState, j: int, level: int | None, cuts: Mapping[int, np.ndarray]
) -> dict[int, Moves]:
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
        found[a] = Moves(float(p @ np.abs(predicted - p @ predicted)), float(often.min()), float(often.max()))
    return found
