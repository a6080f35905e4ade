"""A forest as a circuit of SPFlow: a sum over leaves of products of one distribution a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..models.base import Distribution
from ..models.box_forest.leaves.levels import dense_levels
from ..models.box_forest.leaves.table import FACTORS, STUDENT, SUM, UNIFORM
from ..models.box_forest.structure import Forest


def to_spflow(model: Distribution) -> Any:
    """The module of SPFlow, float64, with the log-densities of a model that is one forest.

    Raises
    ------
    ValueError
        If SPFlow has no distribution for a part of the model; the message names it.
    ImportError
        Without SPFlow.
    """
    forest = model.forest_for("a circuit of SPFlow")
    check(forest)
    try:
        from . import spflow_modules
    except ModuleNotFoundError as error:
        raise ImportError("a circuit of SPFlow needs it: pip install 'jointforest[spflow]'") from error
    return circuit(forest, spflow_modules)


def circuit(forest: Forest, modules: Any) -> Any:
    """The forest as a module made by the functions ``mixture``, ``product`` and ``product_of`` of ``modules``.

    Leaves that are products, and of one pattern of families, are one product of many channels; each other leaf is a
    module of its own.
    """
    leaves, every = forest.leaves, range(len(forest.schema.columns))
    is_plain = np.diff(leaves.node_start) == 0
    plain, others = np.flatnonzero(is_plain), np.flatnonzero(~is_plain)
    _, pattern = np.unique(leaves.family[plain], axis=0, return_inverse=True)
    groups = [plain[pattern.ravel() == g] for g in np.unique(pattern)]
    inputs = [modules.product(_distributions(forest, rows, every)) for rows in groups]
    inputs += [_node(forest, int(leaves.node_start[leaf]), modules) for leaf in others]
    return modules.mixture(inputs, leaves.log_weight[np.concatenate([*groups, others])])


def check(forest: Forest) -> None:
    """A ValueError that names the parts of the forest for which SPFlow has no distribution."""
    leaves, columns = forest.leaves, forest.columns
    for column in forest.schema.columns:
        if column.is_categorical:
            continue
        what = None
        if column.atoms:
            what = f"values with a mass of their own ({', '.join(f'{value:g}' for value in column.atoms[:3])}, ...)"
        elif column.kind == "datetime":
            what = "dates"
        elif column.step > 0:
            what = f"a grid of {column.step:g}"
        if what:
            raise ValueError(
                f"column {column.name!r}: {what} has no counterpart in SPFlow; kinds= makes it 'continuous'"
            )
        if (leaves.family[:, columns.slot[forest.schema.index(column.name)]] == STUDENT).any():
            raise ValueError(
                f"column {column.name!r}: SPFlow has no Student t, which the background is; learn with epsilon=0"
            )


def _distributions(forest: Forest, rows: np.ndarray, scope: Any) -> list[tuple[Any, ...]]:
    """Of each column in the scope its number, the name of a distribution, and its parameters in these rows."""
    leaves = forest.leaves
    out: list[tuple[Any, ...]] = []
    for j in scope:
        slot = int(forest.columns.slot[j])
        if forest.schema.columns[j].is_categorical:
            mass = dense_levels(forest.columns, leaves, slot)[rows]
            out.append((int(j), "categorical", mass / mass.sum(axis=1, keepdims=True)))
            continue
        ends = leaves.lo[rows, slot], leaves.hi[rows, slot]
        if leaves.family[rows[0], slot] == UNIFORM:
            out.append((int(j), "uniform", *ends))
        else:
            out.append((int(j), "normal", leaves.a[rows, slot], leaves.b[rows, slot], *ends))
    return out


def _node(forest: Forest, node: int, modules: Any) -> Any:
    """The module of a circuit's node, with all below it."""
    leaves = forest.leaves
    if leaves.node_kind[node] == FACTORS:
        scope = np.flatnonzero(leaves.scope[leaves.node_scope[node]])
        return modules.product(_distributions(forest, leaves.node_row[node : node + 1], scope))
    children, child = [], node + 1
    while child < leaves.node_end[node]:
        children.append(child)
        child = int(leaves.node_end[child])
    inputs = [_node(forest, child, modules) for child in children]
    if leaves.node_kind[node] == SUM:
        return modules.mixture(inputs, leaves.node_log_weight[children])
    return modules.product_of(inputs)
