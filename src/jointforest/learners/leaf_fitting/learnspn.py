"""Leaves that are mixtures of products: learned by LearnSPN, or one product for each class."""

# See docs/concepts/learnspn-leaves.md.

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from ...data.schema import Columns
from ...runtime.random_kernels import stream_state
from .fit import Table
from .independence import p_values
from .learnspn_kernels import two_means
from .statistics_kernels import rows_by_leaf


class Factors(NamedTuple):
    """A node that is a product of one distribution for each of some columns, all of the same rows."""

    rows: np.ndarray
    columns: np.ndarray


class Product(NamedTuple):
    """A node that multiplies circuits over disjoint sets of columns."""

    children: list[Node]


class SumNode(NamedTuple):
    """A node that mixes two circuits over the same columns."""

    log_weight: np.ndarray
    children: list[Node]


Node = Factors | Product | SumNode


class SpnSettings(NamedTuple):
    """How LearnSPN grows the circuit of a leaf.

    min_samples : int. A leaf of fewer distinct rows gets no circuit.
    min_rows : int. A sum node gives each child at least so many distinct rows; at least 1.
    significance : float. Level of the tests of independence in one node.
    """

    min_samples: int = 30
    min_rows: int = 15
    significance: float = 0.05


class Components(NamedTuple):
    """What the l leaves of one tree become: mixtures of m products, some of which take their rows from one group.

    leaf : int64 array (m,). The leaf of each component, ascending; other leaves stay one product of all their rows.
    log_weight : float64 array (m,). Of the component in its leaf.
    group : int64 array (m, d). The group of rows that each column of the component is fitted on.
    group_rows : int32 array (M,), group_start : int64 array (G + 1,). The rows of group k are
        ``group_rows[group_start[k]:group_start[k + 1]]``.
    group_leaf : int64 array (G,). The leaf that these rows are in.
    """

    leaf: np.ndarray
    log_weight: np.ndarray
    group: np.ndarray
    group_rows: np.ndarray
    group_start: np.ndarray
    group_leaf: np.ndarray


class _Mixture(NamedTuple):
    """The components of one leaf: log weights (m,), the group of each column (m, d), and the rows of each group."""

    log_weight: np.ndarray
    group: np.ndarray
    rows: list[np.ndarray]


def _joined_mixtures(mixtures: dict[int, _Mixture], d: int) -> Components:
    """The mixtures of some leaves of d columns, by the number of the leaf in ascending order."""
    rows = [group for mixture in mixtures.values() for group in mixture.rows]
    n_groups = np.array([len(mixture.rows) for mixture in mixtures.values()], np.int64)
    before = np.cumsum(n_groups) - n_groups
    leaf = np.array(list(mixtures), np.int64)
    size = [len(mixture.log_weight) for mixture in mixtures.values()]
    return Components(
        leaf=np.repeat(leaf, size),
        log_weight=np.concatenate([np.empty(0), *(mixture.log_weight for mixture in mixtures.values())]),
        group=np.concatenate(
            [
                np.empty((0, d), np.int64),
                *(mixture.group + first for mixture, first in zip(mixtures.values(), before, strict=True)),
            ]
        ),
        group_rows=np.concatenate([np.empty(0, np.int32), *rows]),
        group_start=np.cumsum([0] + [len(group) for group in rows]).astype(np.int64),
        group_leaf=np.repeat(leaf, n_groups),
    )


_MOST_COMPONENTS = 4096
"""Components of a product of mixtures; of those beyond, the columns become independent."""


def multiplied_out(node: Node, d: int) -> _Mixture:
    """A circuit over d columns as a mixture of products, of at most `_MOST_COMPONENTS`."""
    rows: list[np.ndarray] = []
    return _Mixture(*_products(node, d, rows), rows)


def _products(node: Node, d: int, rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Log weights (m,) and groups (m, d), -1 of other columns, of a node; the groups' rows are added to ``rows``."""
    if isinstance(node, Factors):
        rows.append(node.rows)
        return np.zeros(1), np.where(np.isin(np.arange(d), node.columns), len(rows) - 1, -1)[None]
    below = [_products(child, d, rows) for child in node.children]
    if isinstance(node, SumNode):
        weights = [weight + log_share for (weight, _), log_share in zip(below, node.log_weight, strict=True)]
        return np.concatenate(weights), np.concatenate([group for _, group in below])
    below.sort(key=lambda child: -np.count_nonzero(child[1][0] >= 0))
    weight, group = np.zeros(1), np.full((1, d), -1)
    for child_weight, child_group in below:
        if len(weight) * len(child_weight) > _MOST_COMPONENTS:
            child_weight, child_group = np.zeros(1), _as_product(child_group, rows)
        weight = (weight[:, None] + child_weight).ravel()
        group = np.maximum(group[:, None], child_group).reshape(-1, d)
    return weight, group


def _as_product(group: np.ndarray, rows: list[np.ndarray]) -> np.ndarray:
    """One product in place of a mixture: its columns have the rows of all components, a group that is added."""
    has_column = group[0] >= 0
    first = int(np.argmax(has_column))
    rows.append(np.concatenate([rows[k] for k in np.unique(group[:, first])]))
    return np.where(has_column, len(rows) - 1, -1)[None]


_HEAVY = 2.0 / 3.0
"""Share of the known cells from which on one number makes a column one of two levels: that number, and the others."""


class SpnRows(NamedTuple):
    """The n rows to learn circuits from, and how.

    values : float64 array (d, n), is_categorical : bool array (d,)
    weight : float64 array (n,). How much each row counts in the weights of the sums.
    centre, unit : float64 arrays (d,), n_levels : int32 array (d,). What makes columns comparable in the clustering.
    state : uint64 array (1,). The random stream of the tree.
    """

    values: np.ndarray
    is_categorical: np.ndarray
    weight: np.ndarray
    centre: np.ndarray
    unit: np.ndarray
    n_levels: np.ndarray
    spn: SpnSettings
    state: np.ndarray

    def learn(self, rows: np.ndarray, columns: np.ndarray, apart: np.ndarray) -> Node:
        """Circuit over ``columns``, and over those that are ``apart``: independent of all. Sorts both in place."""
        if len(rows) < 2 * self.spn.min_rows:
            return Factors(rows.copy(), np.append(apart, columns))
        label = self.components(rows, columns)
        size = np.bincount(label, minlength=1)
        columns[:] = columns[np.argsort(np.where(size[label] > 1, label, -1), kind="stable")]
        alone, *groups = np.split(columns, len(columns) - np.cumsum(size[size > 1][::-1])[::-1])
        children, rest = list[Node](), [apart, alone]
        for group in groups:
            child = self.clusters(rows, group)
            children += [] if child is None else [child]
            rest += [group] if child is None else []
        if sum(map(len, rest)):
            children.append(Factors(rows.copy(), np.concatenate(rest)))
        return Product(children) if len(children) > 1 else children[0]

    def clusters(self, rows: np.ndarray, columns: np.ndarray) -> SumNode | None:
        """The rows in two clusters, the first before the second; None if they have none."""
        side = two_means(self.points(rows, columns), self.spn.min_rows, self.state)
        if not side.any():
            return None
        rows[:] = np.concatenate([rows[~side], rows[side]])
        parts = np.split(rows, [np.count_nonzero(~side)])
        share = np.array([self.weight[part].sum() for part in parts])
        return SumNode(np.log(share / share.sum()), [self.learn(part, columns, columns[:0]) for part in parts])

    def points(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Cells as points (n, D): numbers in units, levels as indicators in units, about their means, missing at 0."""
        points = []
        for j in columns.tolist():
            x = self.values[j, rows, None]
            point = x == np.arange(self.n_levels[j]) if self.is_categorical[j] else x - self.centre[j]
            known = ~np.isnan(x)
            mean = np.sum(point / self.unit[j], axis=0, where=known) / max(int(known.sum()), 1)
            points.append(np.where(known, point / self.unit[j] - mean, 0.0))
        return np.hstack(points)

    def components(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Components (k,), numbered by their first column, of the graph of pairs of columns that are dependent."""
        # Bonferroni: a pair is dependent if its p-value is below ``significance`` / number of pairs of varying columns.
        views = [self.view(rows, j) for j in columns.tolist()]
        numbers, levels = ([c for c, view in enumerate(views) if view is not None and view.dtype.kind == kind]
                           for kind in "fi")  # fmt: skip
        graph, varying = np.zeros((len(columns), len(columns)), bool), [*numbers, *levels]
        if len(varying) > 1:
            tables = (np.array([views[c] for c in of]).reshape(len(of), len(rows)) for of in (numbers, levels))
            n_pairs = len(varying) * (len(varying) - 1) // 2
            graph[np.ix_(varying, varying)] = p_values(*tables) < self.spn.significance / n_pairs
        return connected_components(graph, directed=False)[1]

    def view(self, rows: np.ndarray, j: int) -> np.ndarray | None:
        """A column as the tests see it: numbers, or levels (int64, -1 where missing); None if it does not vary."""
        x = self.values[j, rows]
        known, level = ~np.isnan(x), np.full(len(x), -1)
        _, first, place, n = np.unique(x[known], return_index=True, return_inverse=True, return_counts=True)
        if len(n) < 2:
            return None
        if self.is_categorical[j]:
            level[known] = np.argsort(np.argsort(first))[place]
        elif n.max() > _HEAVY * len(place):
            level[known] = place == n.argmax()
        else:
            return x
        return level


def spn_circuits(
    columns: Columns,
    table: Table,
    rows: np.ndarray,
    start: np.ndarray,
    weight: np.ndarray,
    spn: SpnSettings,
    scope_columns: np.ndarray,
    seed: int,
    number: int,
) -> Iterator[tuple[int, Node]]:
    """The leaves of one tree that become circuits by LearnSPN (Gens, Domingos 2013, Algorithm 1), and these."""
    # Columns of a node that are independent of each other, or in groups that are, become a product; columns that do not
    # split, a sum over two clusters of the rows. A leaf has no circuit where it has few rows, or no columns that are
    # found dependent.
    d = len(columns.slot)
    is_categorical = columns.is_categorical == 1
    centre, unit, n_levels = np.zeros(d), np.ones(d), np.zeros(d, np.int32)
    numeric = columns.slot[~is_categorical]
    centre[~is_categorical], unit[~is_categorical] = table.centre[numeric], table.spread[numeric]
    for j in np.flatnonzero(is_categorical):
        at = columns.levels_of(columns.slot[j])
        n_levels[j] = at.stop - at.start
        # The indicators of a level drawn at random vary by 1 - sum of squared shares in all: then by 1, like a number.
        unit[j] = np.sqrt(max(1.0 - np.sum(table.level_share[at] ** 2), 1e-6))
    order, is_apart = np.arange(d), ~scope_columns
    cells = SpnRows(table.values, is_categorical, weight, centre, unit, n_levels, spn, stream_state(seed, number))
    for leaf in np.flatnonzero(np.diff(start) >= spn.min_samples).tolist():
        circuit = cells.learn(rows[start[leaf] : start[leaf + 1]].copy(), order[scope_columns], order[is_apart])
        if not isinstance(circuit, Factors):
            yield leaf, circuit


def spn_components(columns: Columns, circuits: Iterator[tuple[int, Node]]) -> Components:
    """The components of leaves that become circuits, of `spn_circuits`."""
    d = len(columns.slot)
    return _joined_mixtures({leaf: multiplied_out(circuit, d) for leaf, circuit in circuits}, d)


def class_components(
    columns: Columns, table: Table, rows: np.ndarray, start: np.ndarray, weight: np.ndarray, target: int
) -> Components:
    """Leaves that are a mixture over their classes, each a product of all columns: naive Bayes within the leaf."""
    # Those whose class is missing take part in no class. Leaves of fewer than two classes stay one product.
    d, slot = len(columns.slot), columns.slot[target]
    n_classes = columns.n_levels(slot)
    mixtures: dict[int, _Mixture] = {}
    for leaf in range(len(start) - 1):
        here = rows[start[leaf] : start[leaf + 1]]
        by_class, at = rows_by_leaf(table.codes[target][here], n_classes)
        groups = [here[by_class[at[k] : at[k + 1]]] for k in np.flatnonzero(np.diff(at))]
        if len(groups) > 1:
            share = np.array([weight[group].sum() for group in groups])
            group = np.repeat(np.arange(len(groups))[:, None], d, axis=1)
            mixtures[leaf] = _Mixture(np.log(share / share.sum()), group, groups)
    return _joined_mixtures(mixtures, d)
