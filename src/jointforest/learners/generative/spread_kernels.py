"""How probable out-of-bag cells are in their leaves."""

from __future__ import annotations

import math

import numpy as np

from ...models.box_forest.leaves.slot_kernels import value_log_density
from ...runtime.compile import entry


@entry
def log_density_by_slot(columns, leaves, marginal, values, codes, leaf, rows, numeric):
    """Of each numeric column, the sum over the rows of the log of the mean of two densities: leaf's and marginal."""
    out = np.zeros(numeric.shape[0])
    for k in range(numeric.shape[0]):
        j = numeric[k]
        s = columns.slot[j]
        for i in rows:
            x = values[j, i]
            if x == x:
                in_leaf = value_log_density(columns, leaves, leaf[i], s, x, codes[j, i])
                in_all = value_log_density(columns, marginal, 0, s, x, codes[j, i])
                top = max(in_leaf, in_all)
                out[k] += top + math.log(0.5 * math.exp(in_leaf - top) + 0.5 * math.exp(in_all - top))
    return out
