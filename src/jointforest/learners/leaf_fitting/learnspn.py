"""Circuits learned for the leaves of one tree: LearnSPN, or one product for each class. See
docs/concepts/learnspn-leaves.md."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...data.schema import Columns
from ...models.box_forest.leaves.derived import node_scopes
from ...models.box_forest.leaves.table import FACTORS, SUM, Circuits
from ...runtime.random_kernels import stream_state
from ...runtime.records import record
from .fit import Table
from .learnspn_kernels import learn_leaf
from .statistics_kernels import rows_by_leaf

# ---- What the kernels of LearnSPN work on: cells, views of columns, and the nodes of a circuit to be.


@record
class Cells(NamedTuple):
    """The n rows to learn from, of d columns.

    Attributes
    ----------
    values : float64 array (d, n), codes : int32 array (d, n), is_categorical : uint8 array (d,)
    weight : float64 array (n,)
        How much each row counts in the weights of the sums.
    centre, unit : float64 arrays (d,), n_levels : int32 array (d,)
        What makes columns comparable in the clustering.
    """

    values: np.ndarray
    codes: np.ndarray
    is_categorical: np.ndarray
    weight: np.ndarray
    centre: np.ndarray
    unit: np.ndarray
    n_levels: np.ndarray


@record
class Views(NamedTuple):
    """Scratch: how the tests of independence see the columns (d,) on some rows (n,); and pairs of columns."""

    kind: np.ndarray
    values: np.ndarray
    level: np.ndarray
    n_levels: np.ndarray
    order: np.ndarray
    n_known: np.ndarray
    linear: np.ndarray
    quadratic: np.ndarray
    n_scores: np.ndarray
    everywhere: np.ndarray
    common: np.ndarray
    common_level: np.ndarray
    common_scores: np.ndarray
    spare: np.ndarray


@record
class Nodes(NamedTuple):
    """The nodes of one leaf's circuit (q,) in preorder, its FACTORS nodes (f,), and a stack of nodes to come.

    A line of ``stack`` is a range of rows, one of columns, what is known, and the parent; ranges are reordered inside,
    so that each keeps its content. ``in_rest`` (d,) are the columns of the FACTORS node that comes last under the
    product at work.
    """

    kind: np.ndarray
    end: np.ndarray
    log_weight: np.ndarray
    n_children: np.ndarray
    scope: np.ndarray
    group_rows: np.ndarray
    group_start: np.ndarray
    stack: np.ndarray
    stack_log_weight: np.ndarray
    in_rest: np.ndarray


def make_views(d: int, n: int) -> Views:
    """Scratch for d columns and at most n rows."""

    def integers(*shape: int) -> np.ndarray:
        return np.empty(shape, np.int32)

    return Views(
        kind=np.empty(d, np.uint8),
        values=np.empty((d, n)),
        level=integers(d, n),
        n_levels=integers(d),
        order=np.empty((d, n), np.int64),
        n_known=integers(d),
        linear=np.empty((d, n)),
        quadratic=np.empty((d, n)),
        n_scores=integers(d),
        everywhere=np.ones(n, bool),
        common=np.empty(n, bool),
        common_level=integers(n),
        common_scores=np.empty((4, n)),
        spare=np.empty(n, np.int64),
    )


def make_nodes(d: int, n: int, min_rows: int) -> Nodes:
    """Room for the circuit of a leaf of n rows."""
    # The FACTORS nodes are disjoint in the table, each of at least min_rows rows (or all) and a column.
    most = max(n // min_rows, 1) * d
    return Nodes(
        kind=np.empty(2 * most, np.uint8),
        end=np.empty(2 * most, np.int32),
        log_weight=np.zeros(2 * most),
        n_children=np.zeros(2 * most, np.int64),
        scope=np.zeros((most, d), np.uint8),
        group_rows=np.empty(n * d, np.int32),
        group_start=np.zeros(most + 1, np.int64),
        stack=np.empty((2 * most, 6), np.int64),
        stack_log_weight=np.zeros(2 * most),
        in_rest=np.zeros(d, bool),
    )


class SpnSettings(NamedTuple):
    """How LearnSPN grows the circuit of a leaf.

    Attributes
    ----------
    min_samples : int
        A leaf of fewer distinct rows gets no circuit.
    min_rows : int
        A sum node gives each child at least so many distinct rows; at least 1.
    significance : float
        Chance, at most, that columns independent of each other are not told apart in one node.
    """

    min_samples: int = 30
    min_rows: int = 15
    significance: float = 0.05


class TreeCircuits(NamedTuple):
    """Circuits of the l leaves of one tree, and the rows that their F FACTORS nodes are to be fitted on.

    Attributes
    ----------
    node_start, node_kind, node_end, node_log_weight, scope
        As in `table.Circuits`, numbered within the tree.
    group_rows : int32 array (m,), group_start : int64 array (F + 1,)
        The rows of FACTORS node k are ``group_rows[group_start[k]:group_start[k + 1]]``.
    group_leaf : int32 array (F,)
        Its leaf.
    """

    node_start: np.ndarray
    node_kind: np.ndarray
    node_end: np.ndarray
    node_log_weight: np.ndarray
    scope: np.ndarray
    group_rows: np.ndarray
    group_start: np.ndarray
    group_leaf: np.ndarray

    def circuits(self) -> Circuits:
        """The nodes, each FACTORS node with a row of its own: row k of the tree's circuits is fitted on group k."""
        row = node_scopes(self.node_kind)
        return Circuits(self.node_start, self.node_kind, self.node_end, self.node_log_weight, row, self.scope)


def learn_circuits(
    columns: Columns,
    table: Table,
    rows: np.ndarray,
    start: np.ndarray,
    weight: np.ndarray,
    spn: SpnSettings,
    scope_columns: np.ndarray,
    seed: int,
    number: int,
) -> TreeCircuits:
    """Circuits of the leaves of one tree, by LearnSPN (Gens and Domingos 2013, Algorithm 1; Correia et al. 2020,
    section 4).

    Columns of a node that are independent of each other, or in groups that are, become a product; columns that do not
    split, a sum over two clusters of the rows. The rows of leaf k are ``rows[start[k]:start[k + 1]]``. They are
    counted, and tested, once, however often a bootstrap drew them: only the weights of the sums count ``weight`` (n,).
    Columns outside ``scope_columns`` (bool (d,)) are held to be independent of all. A leaf has no nodes where it has
    few rows, or no columns that are found dependent.
    """
    n_leaves, d = len(start) - 1, len(columns.slot)
    is_categorical = columns.is_categorical == 1
    centre, unit, n_levels = np.zeros(d), np.ones(d), np.zeros(d, np.int32)
    numeric = columns.slot[~is_categorical]
    centre[~is_categorical], unit[~is_categorical] = table.centre[numeric], table.spread[numeric]
    for j in np.flatnonzero(is_categorical):
        at = slice(columns.level_start[columns.slot[j]], columns.level_start[columns.slot[j] + 1])
        n_levels[j] = at.stop - at.start
        # The indicators of a level drawn at random vary by 1 - sum of squared shares in all: then by 1, like a number.
        unit[j] = np.sqrt(max(1.0 - np.sum(table.level_share[at] ** 2), 1e-6))
    order = np.concatenate([np.flatnonzero(~scope_columns), np.flatnonzero(scope_columns)]).astype(np.int32)
    n_apart = int(d - np.sum(scope_columns))
    state = stream_state(seed, number)
    parts: list[tuple[np.ndarray, ...]] = []
    leaves: list[int] = []
    cells = Cells(table.values, table.codes, columns.is_categorical, weight, centre, unit, n_levels)
    views = make_views(d, int(np.diff(start).max(initial=0)))
    for leaf in np.flatnonzero(np.diff(start) >= spn.min_samples).tolist():
        here = rows[start[leaf] : start[leaf + 1]].copy()
        nodes = make_nodes(d, len(here), spn.min_rows)
        q, f = learn_leaf(cells, here, order.copy(), n_apart, spn.min_rows, spn.significance, views, nodes, state)
        parts.append((
            nodes.kind[:q], nodes.end[:q], nodes.log_weight[:q],
            nodes.scope[:f], nodes.group_rows[: nodes.group_start[f]], nodes.group_start[: f + 1],
        ))  # fmt: skip
        leaves.append(leaf)
    return _join(parts, leaves, n_leaves, d)


def class_circuits(
    columns: Columns, table: Table, rows: np.ndarray, start: np.ndarray, weight: np.ndarray, target: int
) -> TreeCircuits:
    """Circuits that are a sum over the classes in a leaf, each a product of all columns: naive Bayes within the leaf.

    The rows of leaf k are ``rows[start[k]:start[k + 1]]``, and count ``weight`` (n,). Those whose class is missing take
    part in no class. Leaves of fewer than two classes have no nodes.
    """
    n_leaves, d = len(start) - 1, len(columns.slot)
    slot = columns.slot[target]
    n_classes = int(columns.level_start[slot + 1] - columns.level_start[slot])
    parts: list[tuple[np.ndarray, ...]] = []
    leaves: list[int] = []
    for leaf in range(n_leaves):
        here = rows[start[leaf] : start[leaf + 1]]
        by_class, at = rows_by_leaf(table.codes[target][here], n_classes)
        present = np.flatnonzero(np.diff(at))
        f = len(present)
        if f < 2:
            continue
        share = np.array([weight[here[by_class[at[k] : at[k + 1]]]].sum() for k in present])
        kind = np.concatenate([[SUM], np.full(f, FACTORS)])
        end = np.concatenate([[f + 1], np.arange(2, f + 2)])
        log_weight = np.concatenate([[0.0], np.log(share / share.sum())])
        group_start = np.concatenate([[0], at[present + 1]])
        parts.append((kind, end, log_weight, np.ones((f, d), np.uint8), here[by_class], group_start))
        leaves.append(leaf)
    return _join(parts, leaves, n_leaves, d)


def _join(parts: list[tuple[np.ndarray, ...]], leaves: list[int], n_leaves: int, d: int) -> TreeCircuits:
    """Circuits of some leaves, each numbered from 0, as those of a tree.

    A part has kinds, ends and log weights of the nodes, and scopes, rows and row starts of the FACTORS nodes.
    """
    none = np.empty(0)
    first = (none, none, none, np.empty((0, d)), none, np.zeros(1))  # so that there is something to join
    kind, end, log_weight, scope, rows, start = zip(first, *parts, strict=True)
    n_nodes = np.zeros(n_leaves + 1)
    n_nodes[np.array(leaves, np.int64) + 1] = [len(k) for k in kind[1:]]
    node_start = np.cumsum(n_nodes).astype(np.int32)
    end = [none, *(e + node_start[leaf] for e, leaf in zip(end[1:], leaves, strict=True))]
    return TreeCircuits(
        node_start=node_start,
        node_kind=np.concatenate(kind).astype(np.uint8),
        node_end=np.concatenate(end).astype(np.int32),
        node_log_weight=np.concatenate(log_weight),
        scope=np.concatenate(scope).astype(np.uint8),
        group_rows=np.concatenate(rows).astype(np.int32),
        group_start=np.cumsum(np.concatenate([[0], *(np.diff(s) for s in start)])).astype(np.int64),
        group_leaf=np.repeat(np.array(leaves, np.int32), [len(s) for s in scope[1:]]),
    )
