"""Trees on ranks become the node table of a forest."""

from __future__ import annotations

import numpy as np

from ...table.columns import Columns
from ..nodes import Trees
from ..prune import rows_below
from ..ranks import Ranks, between
from .rank_tree import RankTree


def thresholds(columns: Columns, ranks: Ranks, tree: RankTree) -> np.ndarray:
    """Threshold of each node (0 where the split is not numeric): halfway between the column's values on either side.

    On a grid it is the cell edge next to the middle; always ``low <= threshold < high``, so that rows keep their side.
    """
    out = np.zeros(len(tree.feature))
    numeric = np.flatnonzero((tree.feature >= 0) & (tree.levels_at < 0))
    first = ranks.value_start[tree.feature[numeric]]
    low = ranks.values[first + tree.below_rank[numeric]]
    high = ranks.values[first + tree.below_rank[numeric] + 1]
    slot = columns.slot[tree.feature[numeric]]
    out[numeric] = between(low, high, columns.step[slot], columns.origin[slot])
    return out


def join(columns: Columns, ranks: Ranks, trees: list[RankTree], rows_at: list[np.ndarray]) -> Trees:
    """The node table of a forest; ``rows_at[t]`` (N_t,) counts the rows that end in each node of tree t."""
    node_at = np.cumsum([0] + [len(t.feature) for t in trees])
    word_at = np.cumsum([0] + [len(t.level_words) for t in trees])
    leaf_at = np.cumsum([0] + [int((t.left < 0).sum()) for t in trees])

    def shifted(field: str, by: np.ndarray) -> np.ndarray:
        parts = [getattr(t, field) for t in trees]
        return np.concatenate([np.where(p >= 0, p + by[i], -1) for i, p in enumerate(parts)]).astype(np.int32)

    leaf_parts = [np.where(t.left < 0, np.cumsum(t.left < 0) - 1 + leaf_at[i], -1) for i, t in enumerate(trees)]
    return Trees(
        feature=np.concatenate([t.feature for t in trees]),
        threshold=np.concatenate([thresholds(columns, ranks, t) for t in trees]),
        levels_at=shifted("levels_at", word_at),
        left_levels=np.concatenate([t.level_words for t in trees]),
        left=shifted("left", node_at),
        right=shifted("right", node_at),
        leaf=np.concatenate(leaf_parts).astype(np.int32),
        weight=np.concatenate([node_weights(t.left, t.right, r) for t, r in zip(trees, rows_at, strict=True)]),
        root=node_at[:-1].astype(np.int32),
    )


def node_weights(left: np.ndarray, right: np.ndarray, rows_at: np.ndarray) -> np.ndarray:
    """Share of the rows below each node (N,), from the number of rows that end in each leaf."""
    rows = rows_below(left, right, rows_at)
    return np.asarray(rows / rows[0])
