"""A forest of boxes as its questions see it: schema, columns, trees, leaves. Immutable."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from ...data.schema import Columns, Schema
from .leaves.table import Leaves
from .structure import Trees


@dataclass(frozen=True)
class Forest:
    """P(x) = sum over leaves of exp(log_weight) * 1[x in box] * product of the leaf's distributions.

    A leaf may have a circuit in place of the product, see `models.box_forest.leaves.table.Leaves`.

    With ``has_background`` the last tree is the background: one node, one leaf, a wide distribution over everything
    that carries the weight epsilon.
    """

    schema: Schema
    columns: Columns
    trees: Trees
    leaves: Leaves
    has_background: bool

    @cached_property
    def at_atoms(self) -> np.ndarray:
        """Log densities of leaves without circuit at atoms, float64 (L, A): 0 until `weight_kernels` needs one.

        Rows meet the same atoms again and again, and what two threads both find is the same number.
        """
        return np.zeros((len(self.leaves.log_weight), len(self.columns.atom_value)))

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: a copy finds its own `at_atoms`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
