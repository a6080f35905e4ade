"""What the kernels of LearnSPN work on: cells, views of columns, and the nodes of a circuit to be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.records import record


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
    bent: np.ndarray
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

    def whole(*shape: int) -> np.ndarray:
        return np.empty(shape, np.int32)

    return Views(
        kind=np.empty(d, np.uint8),
        values=np.empty((d, n)),
        level=whole(d, n),
        n_levels=whole(d),
        order=np.empty((d, n), np.int64),
        n_known=whole(d),
        linear=np.empty((d, n)),
        bent=np.empty((d, n)),
        n_scores=whole(d),
        everywhere=np.ones(n, bool),
        common=np.empty(n, bool),
        common_level=whole(n),
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
