"""The box of each leaf, from the splits above it."""

from __future__ import annotations

import numpy as np

from ..ground.compile import entry, kernel
from ..table.columns import Columns
from .nodes import Trees


def leaf_boxes(trees: Trees, columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Box of each of the L leaves.

    Returns
    -------
    lo, hi : float64 arrays (L, p)
        Half-open sides ``(lo, hi]`` of the numeric slots; infinite where no split bounds them.
    allowed : bool array (L, S)
        Levels that the box admits.
    """
    n_leaves = int(trees.leaf.max()) + 1
    lo = np.full((n_leaves, len(columns.step)), -np.inf)
    hi = np.full((n_leaves, len(columns.step)), np.inf)
    allowed = np.ones((n_leaves, int(columns.level_start[-1])), dtype=np.uint8)
    for root in trees.root:
        _fill(trees, columns, root, lo, hi, allowed)
    return lo, hi, allowed.view(np.bool_)


@entry
def _fill(trees, columns, root, lo, hi, allowed):
    """Walk one tree depth first with the current box, undoing each split's effect on the way back up."""
    p = lo.shape[1]
    box_lo = np.full(p, -np.inf)
    box_hi = np.full(p, np.inf)
    box_allowed = np.ones(allowed.shape[1], np.uint8)
    # One entry a node on the path: the node, and how many of its children are done.
    capacity = 64
    path = np.empty(capacity, np.int64)
    done = np.zeros(capacity, np.int64)
    saved = np.empty(capacity, np.float64)
    saved_levels = np.empty((capacity, 0 if allowed.shape[1] == 0 else _most_levels(columns)), np.uint8)
    top = 0
    path[0] = root
    while top >= 0:
        node = path[top]
        if trees.left[node] < 0:
            leaf = trees.leaf[node]
            lo[leaf] = box_lo
            hi[leaf] = box_hi
            allowed[leaf] = box_allowed
            top -= 1
            continue
        feature = trees.feature[node]
        slot = columns.slot[feature]
        numeric = trees.levels_at[node] < 0
        if numeric:
            if done[top] == 0:
                saved[top] = box_hi[slot]
                box_hi[slot] = min(box_hi[slot], trees.threshold[node])
            elif done[top] == 1:
                box_hi[slot] = saved[top]
                saved[top] = box_lo[slot]
                box_lo[slot] = max(box_lo[slot], trees.threshold[node])
            else:
                box_lo[slot] = saved[top]
        else:
            first = columns.level_start[slot]
            n_levels = columns.level_start[slot + 1] - first
            for k in range(n_levels):
                if done[top] == 0:
                    saved_levels[top, k] = box_allowed[first + k]
                bit = (trees.left_levels[trees.levels_at[node] + k // 64] >> np.uint64(k % 64)) & np.uint64(1)
                wanted = done[top] == 2 or (bit == 1) == (done[top] == 0)
                box_allowed[first + k] = saved_levels[top, k] if wanted else 0
        done[top] += 1
        if done[top] == 3:
            top -= 1
            continue
        top += 1
        if top == capacity:
            path = np.concatenate((path, np.empty_like(path)))
            done = np.concatenate((done, np.zeros_like(done)))
            saved = np.concatenate((saved, np.empty_like(saved)))
            saved_levels = np.concatenate((saved_levels, np.empty_like(saved_levels)))
            capacity *= 2
        path[top] = trees.left[node] if done[top - 1] == 1 else trees.right[node]
        done[top] = 0


@kernel
def _most_levels(columns):
    """Largest number of levels of a categorical slot."""
    most = 0
    for s in range(columns.level_start.shape[0] - 1):
        most = max(most, columns.level_start[s + 1] - columns.level_start[s])
    return most
