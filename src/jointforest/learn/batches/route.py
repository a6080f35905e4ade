"""Where the rows of a batch end in trees that were grown on a sample, and how many rows of a table end in each leaf."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...ground.threads import map_ordered
from ...leaves.fit.prepare import codes_of
from ...table.columns import Columns
from ...table.infer.keys import row_keys
from ...table.schema import Schema
from ...trees.nodes import Trees
from ...trees.route_kernels import route_by_key
from ..arrival import first_leaves
from .passes import Fold, Pass
from .rows import cells_of, check_number
from .weights import Weights

Sizes = Callable[[Trees], np.ndarray]
"""Rows of a whole table that end in each leaf of trees, int64 (L,)."""


class Route(NamedTuple):
    """Trees, and all that rows need to be sent down.

    Attributes
    ----------
    schema : Schema
    columns : Columns
    trees : Trees
    seed : int
        Of the keys of rows.
    weights : Weights or None
        None: rows count alike.
    """

    schema: Schema
    columns: Columns
    trees: Trees
    seed: int
    weights: Weights | None


class Routed(NamedTuple):
    """Rows of a batch, float64 and int32 (d, n) as in `prepare.Table`, and where they end.

    ``times``, int64 (n,), is how many rows each counts as; ``leaf_of(t)`` gives the leaves in tree t, int32 (n,),
    numbered within the tree.
    """

    values: np.ndarray
    codes: np.ndarray
    times: np.ndarray
    leaf_of: Callable[[int], np.ndarray]


def routed(route: Route, batch: Any) -> Routed:
    """The rows of a batch, a frame, and where they end."""
    weights = route.weights
    reader, X = cells_of(route.schema, batch, weights.name if weights else None)
    values, first = np.ascontiguousarray(X.T), first_leaves(route.trees)
    keys = np.zeros(len(X), np.uint64)
    if np.isnan(X).any():
        keys = row_keys(((name, reader.cells(name)) for name in reader.names), reader.n, route.seed)

    def leaf_of(t: int) -> np.ndarray:
        out = np.empty(len(X), np.int32)
        route_by_key(route.trees, values, keys, t, int(first[t]), out)
        return out

    times = weights.counts(reader) if weights else np.ones(len(X), np.int64)
    return Routed(values, codes_of(route.columns, values), times, leaf_of)


def leaf_sizes(
    fold: Fold, n: int, schema: Schema, columns: Columns, seed: int, weights: Weights | None, trees: Trees
) -> np.ndarray:
    """Rows of a table of n that end in each leaf, int64 (L,), whatever their weights, by a pass over it.

    Raises
    ------
    ValueError
        If the batches have other rows than they had before.
    """
    route = Route(schema, columns, trees, seed, weights)
    first = first_leaves(trees)
    sizes: np.ndarray = fold(
        Pass(partial(np.zeros, first[-1], np.int64), partial(_count, route), np.add, "rows seen"), n
    )
    check_number(n, int(sizes[: first[1]].sum()))
    return sizes


def _count(route: Route, sizes: np.ndarray, batch: Any, n_jobs: int | None) -> np.ndarray:
    """Count the rows of a batch."""
    first, rows = first_leaves(route.trees), routed(route, batch)

    def one(t: int) -> np.ndarray:
        return np.bincount(rows.leaf_of(t), minlength=int(first[t + 1] - first[t]))

    return sizes + np.concatenate(list(map_ordered(one, [(t,) for t in range(len(first) - 1)], n_jobs)))
