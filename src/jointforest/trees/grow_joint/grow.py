"""Grow a tree that splits all columns at once (Nyga et al. 2023, section 3.1), the most improving node first."""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np

from ...ground.threads import map_ordered
from ..grow.grow import RankTree
from ..grow.tree_kernels import cut_ranks
from ..ranks import Ranks
from .group_kernels import describe
from .row_kernels import JointRows, partition
from .significance_kernels import log_chance
from .split_kernels import best_split

NOISE_LEVEL = 0.05
"""Chance at most with which a node of independent columns is split, with ``min_impurity_decrease=None``."""
_THREADS_FROM = 1 << 20


class JointSettings(NamedTuple):
    """Parameters of joint trees; see `learn.joint_tree.JointTree` for their meaning.

    Attributes
    ----------
    criterion : int
        ENTROPY or GINI, for categorical targets.
    min_weight : float
        Smallest weight of a leaf.
    min_impurity_decrease : float or None
        None: splits must be more than noise.
    """

    criterion: int
    min_weight: float
    max_depth: int | None
    max_leaf_nodes: int | None
    min_impurity_decrease: float | None
    max_features: int


class _Split(NamedTuple):
    """A split of a node; numeric if ``below`` >= 0."""

    improvement: float
    column: int
    below: int
    above: int
    goes_left: np.ndarray
    log_cuts: float


def grow_joint(
    data: JointRows,
    ranks: Ranks,
    weight: np.ndarray,
    judges: np.ndarray,
    settings: JointSettings,
    seed: int,
    number: int,
    n_jobs: int | None,
) -> tuple[RankTree, np.ndarray]:
    """Grow tree ``number`` on the rows of positive weight.

    Parameters
    ----------
    weight : float64 array (n,)
        Weight of each row (how often the bootstrap drew it).
    judges : bool array (d, d)
        ``judges[j, k]``: a split by column j is judged by target k; never by j itself.

    Returns
    -------
    tree : RankTree
    leaf_node : int32 array (n,)
        Node in which each row ends; -1 for rows of weight 0.
    """
    n, d = data.bins.shape
    rows = np.flatnonzero(weight > 0).astype(np.int32)
    spare = np.empty_like(rows)
    targets = [np.flatnonzero(row) for row in judges]
    splitters = np.array([j for j in range(d) if len(targets[j]) and data.n_bins[j] > 1], dtype=np.int64)
    is_target = np.asarray(judges.any(axis=0))
    all_targets = np.flatnonzero(is_target)
    n_others = [max(int(is_target.sum()) - int(is_target[j]), 1) for j in range(d)]

    def examine(node: int, start: int, stop: int, depth: int) -> _Split | None:
        """The split of a node, or None: of those by each column, the most improving one that is allowed."""
        here = rows[start:stop]
        size = float(weight[here].sum())
        if size < 2 * settings.min_weight or (settings.max_depth is not None and depth >= settings.max_depth):
            return None
        tried = splitters
        if settings.max_features < len(splitters):
            picked = np.random.default_rng([seed, number, node]).permutation(len(splitters))
            tried = splitters[np.sort(picked[: settings.max_features])]
        total, impurity = describe(data, here, weight, all_targets, settings.criterion)
        if not impurity.any():
            return None

        def by(j: int) -> _Split:
            improvement, log_cuts, below, above, goes_left = best_split(
                data, here, weight, j, targets[j], total, impurity, settings.criterion, n_others[j],
                settings.min_weight,
            )  # fmt: skip
            return _Split(improvement, j, below, above, goes_left, log_cuts)

        work = len(here) * len(tried) * int(is_target.sum())
        found = list(map_ordered(by, [(j,) for j in tried], n_jobs if work >= _THREADS_FROM else 1))
        for split in sorted((s for s in found if s.improvement > 0), key=lambda s: (-s.improvement, s.column)):
            if settings.min_impurity_decrease is not None:
                return split if split.improvement >= settings.min_impurity_decrease else None
            chance = log_chance(data, here, split.column, split.below, split.goes_left, targets[split.column])
            if chance + split.log_cuts + math.log(len(tried)) <= math.log(NOISE_LEVEL):
                return split
        return None

    split_of: list[_Split | None] = []
    span: list[tuple[int, int, int]] = []
    children: list[tuple[int, int]] = []
    share_left: list[float] = []
    heap: list[tuple[float, int]] = []

    def add(start: int, stop: int, depth: int) -> None:
        node = len(span)
        span.append((start, stop, depth))
        children.append((-1, -1))
        share_left.append(0.0)
        split = examine(node, start, stop, depth)
        split_of.append(split)
        if split is not None:
            heapq.heappush(heap, (-split.improvement * float(weight[rows[start:stop]].sum()), node))

    add(0, len(rows), 0)
    n_leaves = 1
    while heap and n_leaves != settings.max_leaf_nodes:
        node = heapq.heappop(heap)[1]
        start, stop, depth = span[node]
        split = split_of[node]
        assert split is not None
        share = np.zeros(1)
        middle = start + partition(
            data.ranks[split.column], rows[start:stop], spare[start:stop], weight, split.below, split.goes_left,
            share, depth, seed, number * n,
        )  # fmt: skip
        share_left[node] = float(share[0])
        children[node] = len(span), len(span) + 1
        add(start, middle, depth + 1)
        add(middle, stop, depth + 1)
        n_leaves += 1
    leaf_node = np.full(n, -1, dtype=np.int32)
    for node, (start, stop, _) in enumerate(span):
        if children[node][0] < 0:
            leaf_node[rows[start:stop]] = node
            split_of[node] = None
    return _rank_tree(split_of, children, share_left, ranks), leaf_node


def _rank_tree(
    split_of: list[_Split | None], children: list[tuple[int, int]], share_left: list[float], ranks: Ranks
) -> RankTree:
    """The tree as arrays; each numeric split is cut halfway between its two neighbours in the node."""
    feature = np.array([-1 if s is None else s.column for s in split_of], dtype=np.int32)
    low = np.array([-1 if s is None else s.below for s in split_of], dtype=np.int32)
    high = np.array([-1 if s is None else s.above for s in split_of], dtype=np.int32)
    levels_at = np.full(len(split_of), -1, dtype=np.int32)
    words: list[int] = []
    for node, split in enumerate(split_of):
        if split is not None and split.below < 0:
            levels_at[node] = len(words)
            for at in range(0, len(split.goes_left), 64):
                words.append(sum(1 << k for k, bit in enumerate(split.goes_left[at : at + 64].tolist()) if bit))
    left, right = np.array(children, dtype=np.int32).T.copy()
    return RankTree(
        feature,
        cut_ranks(feature, low, high, ranks.value_start, ranks.values),
        levels_at,
        left,
        right,
        np.array(words, dtype=np.uint64),
        np.array(share_left),
    )
