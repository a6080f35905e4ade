"""Kernel: divide the rows of a node between two children."""

from __future__ import annotations

from ...ground.compile import entry
from ...ground.random_kernels import stream, uniform


@entry
def partition(codes, rows, spare, weight, below_rank, goes_left, depth, seed, first_stream):
    """Bring the rows of a node that go left before the others, keeping their order; return how many go left.

    Also returns the share of the known rows' weight that goes left; rows with missing value draw with it.

    Parameters
    ----------
    codes : int32 array (n,)
        Ranks or levels of the split column.
    rows, spare : int32 arrays (m,)
        The rows of the node; scratch.
    below_rank : int
        Largest rank that goes left; -1 if the split is categorical.
    goes_left : uint8 array (K,)
        Whether a level goes left.
    depth, seed, first_stream : int
        The draw of row i is by ``depth`` and number ``first_stream + i``, whatever the order in which nodes are split.
    """
    known = 0.0
    left = 0.0
    for i in rows:
        code = codes[i]
        if code >= 0:
            known += weight[i]
            if (code <= below_rank) if below_rank >= 0 else (goes_left[code] == 1):
                left += weight[i]
    share = left / known
    n_left = 0
    n_right = 0
    for k in range(rows.shape[0]):
        i = rows[k]
        code = codes[i]
        if code < 0:
            is_left = uniform(stream(seed + 1 + depth, first_stream + i)) < share
        elif below_rank >= 0:
            is_left = code <= below_rank
        else:
            is_left = goes_left[code] == 1
        if is_left:
            rows[n_left] = i
            n_left += 1
        else:
            spare[n_right] = i
            n_right += 1
    for k in range(n_right):
        rows[n_left + k] = spare[k]
    return n_left, share
