"""Leaf parameters: one row a leaf, one table per kind of column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NORMAL = 0
"""Family code: normal(a = mean, b = standard deviation of the untruncated parent) truncated to (lo, hi]."""
UNIFORM = 1
"""Family code: uniform on (lo, hi], both finite; a and b unused (0)."""
STUDENT = 2
"""Family code: Student t with 4 degrees of freedom, a = location, b = scale, truncated to (lo, hi]."""


class Leaves(NamedTuple):
    """Parameters of L leaves over p numeric and c categorical slots (A atoms and S levels in all, T trees).

    The distribution of leaf l is the product over columns of one distribution each. A numeric slot s has mass
    ``atom_mass[l, k]`` on each of its atoms k; the rest, ``1 - sum``, is spread by a truncated density of family
    ``family[l, s]``. On a slot with a grid (``step > 0``) that density is seen only through the mass of its cells.

    Attributes
    ----------
    tree : int32 array (L,)
        Tree of the leaf.
    log_weight : float64 array (L,)
        log of pi_t * w_tl; ``exp`` of it sums to 1 over all leaves of all trees.
    family : uint8 array (L, p)
    a, b : float64 array (L, p)
        Parameters of the family; b > 0 where it is a scale.
    lo, hi : float64 array (L, p)
        Support of the continuous part, inside the leaf's box, lo < hi, may be infinite; on cell edges if there is a
        grid.
    log_norm : float64 array (L, p)
        log of the mass that the untruncated parent gives to (lo, hi]; derived, not saved.
    atom_mass : float64 array (L, A)
    log_rest : float64 array (L, p)
        log of 1 - the slot's atom masses (-inf if nothing is left); derived.
    level_mass : float64 array (L, S)
        Sums to 1 over the levels of each slot; 0 outside the leaf's box.
    log_level : float64 array (L, S)
        log of ``level_mass``; derived.
    missing_rate : float64 array (L, d)
        Share of the leaf's rows in which the column is missing.
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
    missing_rate: np.ndarray
