"""Kernels: synthetic rows for the rounds of the adversarial forest, on ranks."""

from ...runtime.compile import entry
from ...runtime.random_kernels import below, stream


@entry
def from_marginals(codes, seed, out):
    """Each cell drawn from its column alone (Watson et al. 2023, Algorithm 1, first round); codes, out: (d, n)."""
    d, n = codes.shape
    for j in range(d):
        state = stream(seed, j)
        for i in range(n):
            out[j, i] = codes[j, below(state, n)]


@entry
def from_leaves(codes, leaf_of, rows, start, seed, out):
    """Rows ``out`` (int32 (d, n)), each drawn in one leaf, columns independently (Algorithm 1, later rounds)."""
    # leaf_of : int32 array (T, n). Leaf of each real row in each tree, numbered within the tree.
    # rows : int32 array (T, n), start : int64 array (T, most leaves + 1). Rows of each tree by leaf, and where these
    #     begin.
    d, n = codes.shape
    for i in range(n):
        state = stream(seed, i)
        t = below(state, leaf_of.shape[0])
        leaf = leaf_of[t, below(state, n)]
        first = start[t, leaf]
        size = start[t, leaf + 1] - first
        for j in range(d):
            out[j, i] = codes[j, rows[t, first + below(state, size)]]
