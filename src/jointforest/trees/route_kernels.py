"""Kernels: the side that a row takes at a node of the node table, and the leaf where it ends by its key."""

from __future__ import annotations

import numpy as np

from ..ground.compile import entry, kernel
from ..ground.random_kernels import stream, uniform
from .level_bits_kernels import has_level


@kernel
def goes_left(trees, node, x):
    """Whether a value, or a level's code, goes left."""
    at = np.int64(trees.levels_at[node])
    if at < 0:
        return x <= trees.threshold[node]
    return has_level(trees.left_levels, at, np.int64(x))


@entry
def route_by_key(trees, values, keys, t, first_leaf, out):
    """Leaf of each row of ``values`` (d, n) in tree t, counted from the tree's first one, ``first_leaf``, into ``out``
    (int32, n).

    A row without the split's value goes left as often as the tree's rows do, by a draw that depends on its key, uint64
    (n,), alone: rows of equal cells end in one leaf, wherever they stand in a table.
    """
    own = stream(1, t)[0]
    state = stream(0, 0)
    for i in range(values.shape[1]):
        node = trees.root[t]
        drawn = False
        while trees.left[node] >= 0:
            x = values[trees.feature[node], i]
            if np.isnan(x):
                if not drawn:
                    state[0] = keys[i] ^ own
                    drawn = True
                share = trees.weight[trees.left[node]] / trees.weight[node] if trees.weight[node] > 0.0 else 0.5
                is_left = uniform(state) < share
            else:
                is_left = goes_left(trees, node, x)
            node = trees.left[node] if is_left else trees.right[node]
        out[i] = trees.leaf[node] - first_leaf
