"""Grow a tree that splits all columns at once (Nyga et al. 2023, section 3.1), the most improving node first."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...ground.progress import bar
from ...ground.threads import map_ordered
from ..grow.rank_tree import RankTree
from ..grow.route_kernels import cut_ranks
from ..ranks import Ranks
from .groups import SplitColumn, split_column
from .joint_rows import JointRows
from .partition_kernels import partition
from .significance import log_chance
from .split import Split, best_split, node_statistics

NOISE_LEVEL = 0.05
"""Chance at most with which a node of independent columns is split, with ``min_impurity_decrease=None``."""
_THREADS_FROM = 1 << 22


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


class _Task(NamedTuple):
    """What one tree is grown on, and how.

    Attributes
    ----------
    columns : list of SplitColumn
        Those that may split nodes.
    targets : int64 array
        Columns that judge any split.
    """

    data: JointRows
    weight: np.ndarray
    columns: list[SplitColumn]
    targets: np.ndarray
    settings: JointSettings
    seed: int
    number: int
    n_jobs: int | None


@dataclass
class _Node:
    """A node with the rows ``start..stop-1`` of the tree's, and its split: once it is made, or is the next to make."""

    start: int
    stop: int
    depth: int
    split: Split | None
    left: int = -1
    right: int = -1
    share_left: float = 0.0


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
        ``judges[j, k]``: a split by column j is judged by target k; never by j itself. (d, d + q) with q targets that
        are no columns (`joint_rows.with_targets`).

    Returns
    -------
    tree : RankTree
    leaf_node : int32 array (n,)
        Node in which each row ends; -1 for rows of weight 0.
    """
    n, d = len(data.bins), len(judges)
    rows = np.flatnonzero(weight > 0).astype(np.int32)
    spare = np.empty_like(rows)
    is_target = np.asarray(judges.any(axis=0))
    others = is_target.sum() - is_target[:d] if judges.shape[1] == d else judges.sum(axis=1)
    n_others = [max(int(number), 1) for number in others]
    columns = [
        split_column(data, j, np.flatnonzero(judges[j]), n_others[j])
        for j in range(d)
        if judges[j].any() and data.n_bins[j] > 1
    ]
    task = _Task(data, weight, columns, np.flatnonzero(is_target), settings, seed, number, n_jobs)
    nodes: list[_Node] = []
    heap: list[tuple[float, int]] = []

    def add(start: int, stop: int, depth: int) -> int:
        """A node, and the number of rows for which nothing is left to do."""
        here = rows[start:stop]
        split = _examine(task, here, len(nodes), depth)
        if split is not None:
            heapq.heappush(heap, (-split.improvement * float(weight[here].sum()), len(nodes)))
        nodes.append(_Node(start, stop, depth, split))
        return stop - start if split is None else 0

    with bar(len(rows), "tree") as step:
        add(0, len(rows), 0)
        while heap and (len(nodes) + 1) // 2 != settings.max_leaf_nodes:
            node = nodes[heapq.heappop(heap)[1]]
            split = node.split
            assert split is not None
            n_left, node.share_left = partition(
                data.ranks[split.column], rows[node.start : node.stop], spare[node.start : node.stop], weight,
                split.below, split.goes_left, node.depth, seed, number * n,
            )  # fmt: skip
            node.left, node.right = len(nodes), len(nodes) + 1
            step(add(node.start, node.start + n_left, node.depth + 1))
            step(add(node.start + n_left, node.stop, node.depth + 1))
    leaf_node = np.full(n, -1, dtype=np.int32)
    for k, node in enumerate(nodes):
        if node.left < 0:
            leaf_node[rows[node.start : node.stop]] = k
            node.split = None
    return _rank_tree(nodes, ranks), leaf_node


def _examine(task: _Task, rows: np.ndarray, node: int, depth: int) -> Split | None:
    """The split of a node with these rows, or None: of those by each column, the most improving one that is allowed."""
    data, weight, settings = task.data, task.weight, task.settings
    size = float(weight[rows].sum())
    if size < 2 * settings.min_weight or (settings.max_depth is not None and depth >= settings.max_depth):
        return None
    tried = task.columns
    if settings.max_features < len(tried):
        picked = np.random.default_rng([task.seed, task.number, node]).permutation(len(tried))
        tried = [tried[k] for k in np.sort(picked[: settings.max_features])]
    statistics = node_statistics(data, rows, weight, task.targets, settings.criterion)
    if not statistics.impurity.any():
        return None

    def split_by(by: SplitColumn) -> Split:
        return best_split(data, rows, weight, by, statistics, settings.criterion, settings.min_weight)

    work = len(rows) * len(tried) * len(task.targets)
    found = list(map_ordered(split_by, [(by,) for by in tried], task.n_jobs if work >= _THREADS_FROM else 1))
    targets = {by.column: by.targets for by in tried}
    for split in sorted((s for s in found if s.improvement > 0), key=lambda s: (-s.improvement, s.column)):
        if settings.min_impurity_decrease is not None:
            return split if split.improvement >= settings.min_impurity_decrease else None
        chance = log_chance(data, rows, split.column, split.below, split.goes_left, targets[split.column])
        if chance + split.log_cuts + math.log(len(tried)) <= math.log(NOISE_LEVEL):
            return split
    return None


def _rank_tree(nodes: list[_Node], ranks: Ranks) -> RankTree:
    """The tree as arrays; each numeric split is cut halfway between its two neighbours in the node."""
    splits = [node.split for node in nodes]
    feature = np.array([-1 if s is None else s.column for s in splits], dtype=np.int32)
    below_rank = np.array([-1 if s is None else s.below for s in splits], dtype=np.int32)
    above_rank = np.array([-1 if s is None else s.above for s in splits], dtype=np.int32)
    cut_ranks(feature, below_rank, above_rank, ranks.value_start, ranks.values)
    levels_at = np.full(len(nodes), -1, dtype=np.int32)
    words: list[int] = []
    for node, split in enumerate(splits):
        if split is not None and split.below < 0:
            levels_at[node] = len(words)
            for at in range(0, len(split.goes_left), 64):
                words.append(sum(1 << k for k, bit in enumerate(split.goes_left[at : at + 64].tolist()) if bit))
    return RankTree(
        feature,
        below_rank,
        levels_at,
        np.array([node.left for node in nodes], dtype=np.int32),
        np.array([node.right for node in nodes], dtype=np.int32),
        np.array(words, dtype=np.uint64),
        np.array([node.share_left for node in nodes]),
    )
