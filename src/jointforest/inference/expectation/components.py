"""The joint as a mixture of components, whose columns are independent where the joint's leaves allow it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...models.box_forest.structure import Forest
from ...runtime.records import record
from .component_kernels import circuit_components, fill_level_masses


@record
class Components(NamedTuple):
    """The joint as a mixture of C components: leaves, or of a leaf with a circuit the children of its first sums.

    Attributes
    ----------
    start : int32 array (L + 1,)
        Those of leaf l are ``start[l]:start[l + 1]``.
    leaf : int32 array (C,)
    node : int32 array (C,)
        Node of the leaf's circuit; -1 where the component is the leaf.
    is_product : uint8 array (C,)
        Whether the columns are independent within the component.
    part_start : int32 array (C + 1,)
        ``part_start[c]:part_start[c + 1]`` are the parts of a product; the other components have none.
    part_row, part_scope : int32 arrays
        Parameter row, and scope (-1: all columns), of each part.
    part_weight : float64 array
        The distribution of a column is the mixture, with these weights, of the parts that have it in their scope.
    """

    start: np.ndarray
    leaf: np.ndarray
    node: np.ndarray
    is_product: np.ndarray
    part_start: np.ndarray
    part_row: np.ndarray
    part_scope: np.ndarray
    part_weight: np.ndarray


@record
class RegionMasses(NamedTuple):
    """Masses in the joint's C components, computed before any row.

    Attributes
    ----------
    level : float64 array (C, N)
        Of each level of the columns of few levels, as in ``Leaves.level_mass``; those of many are looked up row by row.
    table : float64 array (C, m)
        Of some of the numeric split regions.
    place : int32 array (M,)
        Where a split region is in the table; -1 if it is not.
    """

    level: np.ndarray
    table: np.ndarray
    place: np.ndarray


def joint_components(model: Forest) -> Components:
    """The components of a joint."""
    if len(model.leaves.node_kind):
        return Components(*circuit_components(model.leaves))
    n = len(model.leaves.log_weight)  # each leaf is one
    each, none = np.arange(n, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    start = np.arange(n + 1, dtype=np.int32)
    return Components(start, each, none, np.ones(n, dtype=np.uint8), start, each, none, np.ones(n))


def level_masses(model: Forest, components: Components) -> np.ndarray:
    """Mass of each level of the columns of few levels in each component, (C, N)."""
    if not len(model.leaves.node_kind):
        return model.leaves.level_mass
    out = np.empty((len(components.leaf), model.leaves.level_mass.shape[1]))
    fill_level_masses(model.leaves, model.columns, components, 0, len(out), out)
    return out


def dependent_size(model: Forest, components: Components) -> int:
    """Most nodes of a component whose columns depend on each other."""
    node = components.node[components.is_product == 0]
    return int((model.leaves.node_end[node] - node).max(initial=0))
