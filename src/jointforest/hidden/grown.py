"""Trees of boxes in whose leaves hidden trees stand: a forest that was grown on codes, as one that splits values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..table.columns import Columns
from ..table.scale.scale import Scale
from ..trees.nodes import Trees


class Grown(NamedTuple):
    """A forest whose leaves hold hidden trees, one each.

    Attributes
    ----------
    trees : Trees
        Splits of the table's own columns.
    leaf : int32 array (T,)
        The leaf of each hidden tree; leaves of no weight have none.
    has_background : bool
        Whether the last tree is the background, a single leaf.
    """

    trees: Trees
    leaf: np.ndarray
    has_background: bool


def value_trees(trees: Trees, scales: Sequence[Scale], columns: Columns, of_codes: Columns) -> Trees:
    """Trees on codes as trees on values: the same rows go left.

    Parameters
    ----------
    trees : Trees
    scales : sequence of d Scale
    columns, of_codes : Columns
        Of the table, and of its codes, on which the trees are.
    """
    threshold, levels_at = trees.threshold.copy(), trees.levels_at.copy()
    words, used = [np.empty(0, np.uint64)], 0
    for node in np.flatnonzero(trees.feature >= 0).tolist():
        j = int(trees.feature[node])
        if trees.levels_at[node] < 0:
            threshold[node] = _cut(scales[j], int(np.floor(trees.threshold[node])))
            continue
        n_codes, n_levels = (int(np.diff(c.level_start)[c.slot[j]]) for c in (of_codes, columns))
        code = np.empty(n_levels, np.int64)
        code[scales[j].lo.astype(np.int64)] = scales[j].code  # level k is the point k
        words.append(_words(_has(trees.left_levels[levels_at[node] :], n_codes)[code]))
        levels_at[node] = used
        used += len(words[-1])
    return trees._replace(threshold=threshold, levels_at=levels_at, left_levels=np.concatenate(words))


def _cut(scale: Scale, code: int) -> float:
    """The greatest number that has this code or a lower one."""
    end = float(scale.hi[scale.code <= code].max())
    is_beyond = scale.is_point & (scale.code > code) & (scale.lo == end)
    # off a grid a point takes its number from the interval that it ends
    return float(np.nextafter(end, -np.inf)) if scale.step == 0.0 and is_beyond.any() else end


def _has(words: np.ndarray, n: int) -> np.ndarray:
    """Which of n members are in a set of bits, bool (n,)."""
    k = np.arange(n)
    return np.asarray((words[k // 64] >> (k % 64).astype(np.uint64)) & np.uint64(1) == 1)


def _words(members: np.ndarray) -> np.ndarray:
    """Members (bool (n,)) as bits of words, uint64."""
    words = np.zeros((len(members) + 63) // 64, np.uint64)
    k = np.flatnonzero(members)
    np.bitwise_or.at(words, k // 64, np.uint64(1) << (k % 64).astype(np.uint64))
    return words
