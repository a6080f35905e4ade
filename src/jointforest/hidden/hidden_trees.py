"""Hidden trees over the columns of one schema, weighted: a distribution of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..table.scale.scale import Scale
from ..table.schema import Schema
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
    """

    schema: Schema
    scales: tuple[Scale, ...]
    trees: tuple[HiddenTree, ...]
    log_weight: np.ndarray
