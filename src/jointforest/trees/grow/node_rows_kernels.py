"""The rows of a node and work space for its splits, so that kernels allocate nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.compile import array_kernel
from ...ground.records import record


@record
class Work(NamedTuple):
    """The rows of one node, in their order, and work space; m is the most rows of a node, S the number of statistics.

    Statistics are the class weights; for VARIANCE they are the weight and the sum of weight times target.

    Attributes
    ----------
    target, weight : float64 arrays (m,)
        Class or number of each row of the node, and its weight.
    node : float64 array (S,)
        Statistics of the node.
    code : int32 array (m,)
        Rank or level of each row of the node in the column tried.
    total, left, right : float64 arrays (S,)
    table : float64 array (m or most levels, S)
        Statistics by rank or level.
    order : int64 array (m or most levels,), share : float64 array (most levels,)
    first : int32 array (most ranks,), after : int32 array (m,)
        Rows of the node by rank: the first of a rank, and the one after each; -1 for none. ``first`` is all
        -1 between uses.
    words, groups : uint64 arrays
        The set of ranks in use, as bits; and which words are not 0, as bits. All 0 between uses.
    """

    target: np.ndarray
    weight: np.ndarray
    node: np.ndarray
    code: np.ndarray
    total: np.ndarray
    left: np.ndarray
    right: np.ndarray
    table: np.ndarray
    order: np.ndarray
    share: np.ndarray
    first: np.ndarray
    after: np.ndarray
    words: np.ndarray
    groups: np.ndarray


@array_kernel
def work_space(m, n_statistics, most_ranks, most_levels):
    """Work space for nodes of up to ``m`` rows."""
    n_words = most_ranks // 64 + 1
    longest = max(m, most_levels)
    return Work(
        np.empty(m, np.float64),
        np.empty(m, np.float64),
        np.empty(n_statistics, np.float64),
        np.empty(m, np.int32),
        np.empty(n_statistics, np.float64),
        np.empty(n_statistics, np.float64),
        np.empty(n_statistics, np.float64),
        np.empty((longest, n_statistics), np.float64),
        np.empty(longest, np.int64),
        np.empty(most_levels, np.float64),
        np.full(most_ranks, -1, np.int32),
        np.empty(m, np.int32),
        np.zeros(n_words, np.uint64),
        np.zeros(n_words // 64 + 1, np.uint64),
    )
