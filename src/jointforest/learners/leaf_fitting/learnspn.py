"""Leaves that are mixtures of products: learned by LearnSPN, or one product for each class.

See docs/concepts/learnspn-leaves.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...data.schema import Columns
from ...runtime.random_kernels import stream_state
from ...runtime.records import record
from .fit import Table
from .learnspn_kernels import FACTORS, SUM, learn_leaf
from .statistics_kernels import rows_by_leaf

# ---- What the kernels of LearnSPN work on: cells, views of columns, and the nodes of a circuit to be.


@record
class SpnRows(NamedTuple):
    """The n rows to learn from, of d columns.

    values : float64 array (d, n), codes : int32 array (d, n), is_categorical : uint8 array (d,)
    weight : float64 array (n,). How much each row counts in the weights of the sums.
    centre, unit : float64 arrays (d,), n_levels : int32 array (d,). What makes columns comparable in the clustering.
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
class CircuitNodes(NamedTuple):
    """The nodes of one leaf's circuit (q,) in preorder, its FACTORS nodes (f,), and a stack of nodes to come. A line of
    ``stack`` is a range of rows, one of columns, what is known, and the parent; ranges are reordered inside, so that
    each keeps its content. ``in_rest`` (d,) are the columns of the FACTORS node that comes last under the product at
    work."""

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


def make_nodes(d: int, n: int, min_rows: int) -> CircuitNodes:
    """Room for the circuit of a leaf of n rows."""
    # The FACTORS nodes are disjoint in the table, each of at least min_rows rows (or all) and a column.
    most = max(n // min_rows, 1) * d
    return CircuitNodes(
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

    min_samples : int. A leaf of fewer distinct rows gets no circuit.
    min_rows : int. A sum node gives each child at least so many distinct rows; at least 1.
    significance : float. Chance, at most, that columns independent of each other are not told apart in one node.
    """

    min_samples: int = 30
    min_rows: int = 15
    significance: float = 0.05


class Components(NamedTuple):
    """What the l leaves of one tree become: mixtures of m products, some of which take their rows from one group.

    leaf : int64 array (m,). The leaf whose component each is, ascending; a leaf that is not listed stays one product of
        all its rows.
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


def _joined(mixtures: dict[int, _Mixture], d: int) -> Components:
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


def multiplied_out(nodes: CircuitNodes) -> _Mixture:
    """A circuit as a mixture of products: every product of sums is a sum. Where that would be more than
    `_MOST_COMPONENTS`, the mixtures of the fewest columns become products of all rows."""
    number, d = nodes.scope.shape
    rows = [nodes.group_rows[nodes.group_start[k] : nodes.group_start[k + 1]] for k in range(number)]
    waiting: list[tuple[int, np.ndarray, np.ndarray]] = []  # node, log weights and groups of the nodes without a parent
    for node in range(len(nodes.kind) - 1, -1, -1):  # children come after their parent
        below = []
        while waiting and waiting[-1][0] < nodes.end[node]:
            below.append(waiting.pop()[1:])
        if nodes.kind[node] == FACTORS:
            number -= 1
            weight, group = np.zeros(1), np.where(nodes.scope[number] == 1, number, -1)[None]
        elif nodes.kind[node] == SUM:
            weight, group = (np.concatenate(of) for of in zip(*below, strict=True))
        else:
            below.sort(key=lambda child: -np.count_nonzero(child[1][0] >= 0))
            weight, group = np.zeros(1), np.full((1, d), -1)
            for child_weight, child_group in below:
                if len(weight) * len(child_weight) > _MOST_COMPONENTS:
                    child_weight, child_group = np.zeros(1), _as_product(child_group, rows)
                weight = (weight[:, None] + child_weight).ravel()
                group = np.maximum(group[:, None], child_group).reshape(-1, d)
        waiting.append((node, weight + nodes.log_weight[node], group))
    return _Mixture(*waiting[0][1:], rows)


def _as_product(group: np.ndarray, rows: list[np.ndarray]) -> np.ndarray:
    """One product in place of a mixture: its columns have the rows of all components, a group that is added."""
    has_column = group[0] >= 0
    first = int(np.argmax(has_column))
    rows.append(np.concatenate([rows[k] for k in np.unique(group[:, first])]))
    return np.where(has_column, len(rows) - 1, -1)[None]


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
) -> Iterator[tuple[int, CircuitNodes]]:
    """The leaves of one tree that become circuits by LearnSPN, and the nodes of each (Gens and Domingos 2013, Algorithm
    1; Correia et al. 2020, section 4). The rows of leaf k are ``rows[start[k]:start[k + 1]]``. They are counted, and
    tested, once, however often a bootstrap drew them: only the weights of the sums count ``weight`` (n,). Columns
    outside ``scope_columns`` (bool (d,)) are held to be independent of all."""
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
    order = np.concatenate([np.flatnonzero(~scope_columns), np.flatnonzero(scope_columns)]).astype(np.int32)
    n_apart = int(d - np.sum(scope_columns))
    state = stream_state(seed, number)
    cells = SpnRows(table.values, table.codes, columns.is_categorical, weight, centre, unit, n_levels)
    views = make_views(d, int(np.diff(start).max(initial=0)))
    for leaf in np.flatnonzero(np.diff(start) >= spn.min_samples).tolist():
        here = rows[start[leaf] : start[leaf + 1]].copy()
        nodes = make_nodes(d, len(here), spn.min_rows)
        q, f = learn_leaf(cells, here, order.copy(), n_apart, spn.min_rows, spn.significance, views, nodes, state)
        if q:
            yield (
                leaf,
                nodes._replace(
                    kind=nodes.kind[:q],
                    end=nodes.end[:q],
                    log_weight=nodes.log_weight[:q],
                    scope=nodes.scope[:f],
                    group_rows=nodes.group_rows[: nodes.group_start[f]],
                    group_start=nodes.group_start[: f + 1],
                ),
            )


def spn_components(columns: Columns, circuits: Iterator[tuple[int, CircuitNodes]]) -> Components:
    """The components of leaves that become circuits, of `spn_circuits`."""
    return _joined({leaf: multiplied_out(nodes) for leaf, nodes in circuits}, len(columns.slot))


def class_components(
    columns: Columns, table: Table, rows: np.ndarray, start: np.ndarray, weight: np.ndarray, target: int
) -> Components:
    """Leaves that are a mixture over their classes, each a product of all columns: naive Bayes within the leaf. The
    rows of leaf k are ``rows[start[k]:start[k + 1]]``, and count ``weight`` (n,)."""
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
    return _joined(mixtures, d)
