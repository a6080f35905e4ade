"""Numeric leaf distributions made by hand."""

from __future__ import annotations

import numpy as np

from jointforest.models.box_forest.leaves import family_kernels
from jointforest.models.box_forest.leaves.table import Density

from .compiled import compiled


def density(family: int, a: float, b: float, lo: float, hi: float) -> Density:
    """A density of a family and its norm, for kernels that a test calls."""
    parent = Density(np.uint8(family), float(a), float(b), float(lo), float(hi), 0.0)
    return parent._replace(log_norm=compiled(family_kernels.log_norm)(parent))
