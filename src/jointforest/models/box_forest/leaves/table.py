"""Leaf parameters: one row a leaf (more of a leaf with a circuit), one table per kind of column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....runtime.records import record
from .levels import WideLevels

NORMAL = np.uint8(0)
"""Family code: normal(a = mean, b = standard deviation of the untruncated parent) truncated to (lo, hi]."""
UNIFORM = np.uint8(1)
"""Family code: uniform on (lo, hi], both finite; a and b unused (0)."""
STUDENT = np.uint8(2)
"""Family code: Student t with 4 degrees of freedom, a = location, b = scale, truncated to (lo, hi]."""


class Density(NamedTuple):
    """The continuous part of one numeric slot in one parameter row; fields as in `Leaves`.

    Kernels make it in registers (`density_kernels.density_of`): it is passed by value.
    """

    family: Any
    a: Any
    b: Any
    lo: Any
    hi: Any
    log_norm: Any


SUM, PRODUCT, FACTORS = 0, 1, 2
"""Kinds of circuit nodes: mixture of its children, product of its children, product of one row's distributions."""


class Circuits(NamedTuple):
    """The circuits of L leaves: those fields of `Leaves` that are empty where every leaf is one product.

    Attributes
    ----------
    node_start : int32 array (L + 1,)
    node_kind : uint8 array (Q,)
    node_end : int32 array (Q,)
    node_log_weight : float64 array (Q,)
    node_row : int32 array (Q,)
    scope : uint8 array (F, d)
    """

    node_start: np.ndarray
    node_kind: np.ndarray
    node_end: np.ndarray
    node_log_weight: np.ndarray
    node_row: np.ndarray
    scope: np.ndarray


class ParameterTables(NamedTuple):
    """The fields of `Leaves` that say what the leaves are, but for circuits; `derived.make_leaves` adds the rest.

    Attributes
    ----------
    tree, log_weight, family, a, b, lo, hi, atom_mass, level_mass, missing_rate : array-like
        As in `Leaves`.
    wide : WideLevels, optional
        As in `Leaves`; None where no column is wide.
    """

    tree: Any
    log_weight: Any
    family: Any
    a: Any
    b: Any
    lo: Any
    hi: Any
    atom_mass: Any
    level_mass: Any
    missing_rate: Any
    wide: WideLevels | None = None


@record
class Leaves(NamedTuple):
    """Parameters of L leaves over p numeric and c categorical slots (A atoms and S levels in all, T trees).

    The tables have R >= L rows. Row l < L is the product, over columns, of one distribution each: the distribution of
    leaf l, unless the leaf has a circuit. The rows from L on belong to the circuits; FACTORS nodes of one leaf may
    share a row if their scopes are disjoint, so that a row describes a column at most once.

    A numeric slot s of a row r has mass ``atom_mass[r, k]`` on each of its atoms k; the rest, ``1 - sum``, is spread by
    a truncated density of family ``family[r, s]``. On a slot with a grid (``step > 0``) that density is seen only
    through the mass of its cells.

    A circuit is a tree of nodes over the columns. A FACTORS node is the product of its row's distributions over the
    columns of its scope, a PRODUCT node that of its children, whose scopes are disjoint (decomposable), a SUM node the
    mixture of its children, whose scopes are equal (smooth); the root's scope is all columns. Nodes are in preorder,
    so that the children of node q are ``q + 1``, ``node_end[q + 1]``, ... up to ``node_end[q]``. With nodes and scopes
    as in A. Choi and others, "Probabilistic circuits" (UCLA, 2020), every query is exact in one pass over the nodes.

    Attributes
    ----------
    tree : int32 array (R,)
        Tree of the leaf that the row belongs to.
    log_weight : float64 array (L,)
        log of pi_t * w_tl; ``exp`` of it sums to 1 over all leaves of all trees.
    family : uint8 array (R, p)
    a, b : float64 array (R, p)
        Parameters of the family; b > 0 where it is a scale.
    lo, hi : float64 array (R, p)
        Support of the continuous part, inside the leaf's box, lo < hi, may be infinite; on cell edges if there is a
        grid.
    log_norm : float64 array (R, p)
        log of the mass that the untruncated parent gives to (lo, hi]; derived, not saved.
    atom_mass : float64 array (R, A)
    log_rest : float64 array (R, p)
        log of 1 - the slot's atom masses (-inf if nothing is left); derived.
    level_mass : float64 array (R, S')
        Of the columns of few levels, S' in all, that are not in ``wide``; sums to 1 over the levels of each slot; 0
        outside the leaf's box.
    log_level : float64 array (R, S')
        log of ``level_mass``; derived.
    wide : WideLevels
        Level masses of the columns of many levels; these sum to 1, too. Kernels ask for either by `level_kernels`.
    missing_rate : float64 array (L, d)
        Share of the leaf's rows in which the column is missing.
    node_start : int32 array (L + 1,)
        The nodes of leaf l are ``node_start[l]:node_start[l + 1]``, its root first. None: the leaf is row l. Row l of a
        leaf with a circuit holds valid parameters that no query uses.
    node_kind : uint8 array (Q,)
        SUM, PRODUCT or FACTORS.
    node_end : int32 array (Q,)
        One past the last node of the node's subtree.
    node_log_weight : float64 array (Q,)
        log weight of a child of a SUM node, whose children's weights sum to 1; 0 elsewhere.
    node_row : int32 array (Q,)
        Row (L..R - 1) of a FACTORS node, -1 of others. Each of these rows is of one leaf's nodes, at least one.
    scope : uint8 array (F, d)
        One line a FACTORS node, in node order: 1 where the node describes the column, else 0. What a row of the tables
        says of columns that no node of it describes are valid parameters that no query uses.
    node_scope : int32 array (Q,)
        Row of ``scope`` of a FACTORS node, -1 of others; derived.
    scope_start : int32 array (F + 1,)
        ``scope_column[scope_start[k]:scope_start[k + 1]]`` are the columns of FACTORS node k; derived.
    scope_column : int32 array (number of ones in scope,)
        Derived.
    """

    tree: np.ndarray
    log_weight: np.ndarray
    family: np.ndarray
    a: np.ndarray
    b: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    log_norm: np.ndarray
    atom_mass: np.ndarray
    log_rest: np.ndarray
    level_mass: np.ndarray
    log_level: np.ndarray
    wide: WideLevels
    missing_rate: np.ndarray
    node_start: np.ndarray
    node_kind: np.ndarray
    node_end: np.ndarray
    node_log_weight: np.ndarray
    node_row: np.ndarray
    scope: np.ndarray
    node_scope: np.ndarray
    scope_start: np.ndarray
    scope_column: np.ndarray
