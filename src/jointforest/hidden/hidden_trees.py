"""Hidden trees over the columns of one schema, weighted: a distribution of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..table.scale.scale import Scale
from ..table.schema import Column, Schema
from .grown import Grown
from .plain import stack
from .tree import HiddenTree


@dataclass(frozen=True, eq=False)
class HiddenTrees:
    """P(x) = sum_t exp(log_weight[t]) p_t(codes of x) prod_j base_j(x_j | code); the scales are common to all trees.

    Attributes
    ----------
    schema : Schema
    scales : tuple of d Scale
        Codes of each column, and the column's measure inside each code.
    trees : tuple of T HiddenTree
    log_weight : float64 array (T,)
        ``exp`` of it sums to 1.
    grown : Grown or None
        The forest in whose leaves the trees stand, if they do; no probability depends on it.
    """

    schema: Schema
    scales: tuple[Scale, ...]
    trees: tuple[HiddenTree, ...]
    log_weight: np.ndarray
    grown: Grown | None = None

    @cached_property
    def support(self) -> tuple[np.ndarray, ...] | None:
        """Whether each tree gives a column's code any probability, d bool arrays (K_j, T); None where all do."""
        found = [np.ones((scale.n_codes, len(self.trees)), bool) for scale in self.scales]
        for t, tree in enumerate(self.trees):
            for j, k in tree.node.items():
                found[j][:, t] = tree.emission[k].any(axis=0)
        return None if all(inside.all() for inside in found) else tuple(found)

    @cached_property
    def lost(self) -> tuple[np.ndarray, ...]:
        """`lost_atoms` of each column."""
        return tuple(map(lost_atoms, self.scales, self.schema.columns))

    @cached_property
    def stacked(self) -> HiddenTree | None:
        """All trees as one, for one row of evidence: see `stack`."""
        return stack(self.trees, [scale.n_codes for scale in self.scales])


def lost_atoms(scale: Scale, column: Column) -> np.ndarray:
    """Atoms of a column without grid that a region has left out of its scale: they have no density either."""
    if scale.step > 0.0 or not column.atoms:
        return np.empty(0)
    return np.setdiff1d(column.atoms, scale.lo[scale.points])
