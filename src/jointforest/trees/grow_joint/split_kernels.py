"""Kernel: the best split of a node by one column, from the node's rows to the two sides."""

from __future__ import annotations

from ...ground.compile import entry, kernel
from ...ground.sort_kernels import stable_sort
from .cut_kernels import best_cut
from .group_kernels import count_groups, list_groups
from .level_order_kernels import place_levels


@entry
def split_rows(data, rows, weight, by, node, criterion, min_weight, groups, scratch, goes_left):
    """The split that `split.best_split` gives.

    Parameters
    ----------
    data : JointRows
    rows : int32 array (m,)
    weight : float64 array (n,)
    by : SplitColumn
    node : NodeStatistics
    criterion : int
        ENTROPY or GINI, for categorical targets.
    min_weight : float
        Smallest weight of either side.
    groups : Groups
        Of `groups.empty_groups`.
    scratch : SplitScratch
    goes_left : uint8 array (K,), or (0,) if numeric
        Zeros; receives the levels that go left.

    Returns
    -------
    score : float
        Sum of the targets' relative reductions; 0 if there is no split.
    below, above : int
        Largest rank that goes left and smallest that goes right; -1 if categorical, or without a split.
    n_groups : int
        Number of values, or bins of values, that the rows have.
    """
    key, order, code = scratch.key[0], scratch.order[0], groups.code
    if groups.is_binned:
        n_groups = count_groups(data, rows, weight, by, groups)
    else:
        n_groups = list_groups(data, rows, weight, by, groups, scratch)
    for g in range(n_groups):
        order[g] = g
    if by.is_nominal and n_groups > 2:
        place_levels(data, groups, n_groups, by.targets, node, criterion, scratch)
        stable_sort(key, order, n_groups, scratch.key[1], scratch.order[1])
    score, cut = best_cut(data, groups, n_groups, by.targets, node.impurity, criterion, min_weight, scratch)
    below, above = -1, -1
    if cut > 0 and by.n_levels > 0:
        _mark_levels(groups, n_groups, order, cut, by.is_nominal, goes_left)
    elif cut > 0:
        below, above = code[order[cut - 1]], code[order[cut]]
        if groups.is_binned:
            at = data.bin_start[by.column]
            below, above = data.last_rank[at + below], data.last_rank[at + above - 1] + 1
    return score, below, above, n_groups


@kernel
def _mark_levels(groups, n_groups, order, cut, is_nominal, goes_left):
    """The set of levels of a cut; levels that no row of the node has go to the heavier side (ordered: keep order)."""
    code, size = groups.code, groups.size
    if not is_nominal:
        for level in range(code[order[cut - 1]] + 1):
            goes_left[level] = 1
        return
    left, whole = 0.0, 0.0
    for place in range(n_groups):
        whole += size[order[place]]
        if place < cut:
            left += size[order[place]]
    for level in range(goes_left.shape[0]):
        goes_left[level] = 2.0 * left >= whole
    for place in range(n_groups):
        goes_left[code[order[place]]] = place < cut
