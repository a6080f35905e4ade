"""Trees of one target: grown on its contexts, and put side by side as the arrays that kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...models.history.contexts import CODE, HEAD, N_CLASSES, N_VALUES, NOW, OF_ROW, PREVIOUS, VALUE
from ...models.history.known_kernels import collect_contexts, expected_classes, target_codes_of
from ...models.history.records import Conditionals, Histories, HistoryLayout, empty_state
from .constants import FIXED, Constants
from .grow_kernels import GrownTree, Room, SplitLimits, grow_ratio_tree, grow_value_tree, smooth_values


class HistoryTree(NamedTuple):
    """One tree of a target.

    sort : int. Sort of its classes: see `contexts`.
    feature, threshold, child : int32 array (M,). Feature -1 and child -1 at leaves.
    entry : float32 array (L, C). Entries of the leaves, in the order of their nodes.
    """

    sort: int
    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    entry: np.ndarray


@dataclass(frozen=True)
class Target:
    """What is to be predicted.

    number : int. Number of the target: see `Conditionals`.
    is_number : bool. Whether neighbouring codes are alike.
    may_miss : bool. Whether its cells may be missing; if not, the code of missing cells has no probability.
    kinds, columns : int16 array (K,). Its contexts.
    sorts : tuple of int. Sorts of classes of its ratio trees, in order.
    """

    number: int
    n_codes: int
    is_number: bool
    may_miss: bool
    kinds: np.ndarray
    columns: np.ndarray
    sorts: tuple[int, ...]


class TargetRows(NamedTuple):
    """Contexts uint8 (K, R) and codes int32 (R,) of the rows of a target."""

    values: np.ndarray
    code: np.ndarray


def rows_of(layout: HistoryLayout, histories: Histories, target: Target) -> TargetRows:
    """The rows of a target."""
    state = empty_state(1, layout.n_head, len(layout.n_codes))
    most = max(len(histories.code), len(histories.length))
    code = np.empty(most, dtype=np.int32)
    n = target_codes_of(layout, histories, target.number, state, code)
    values = np.empty((len(target.kinds), n), dtype=np.uint8)
    collect_contexts(layout, histories, target.kinds, target.columns, target.number, state, values)
    return TargetRows(values, code[:n])


def learn_target(
    layout: HistoryLayout, histories: Histories, target: Target, seed: int, constants: Constants = FIXED
) -> list[HistoryTree]:
    """The trees of a target: a value tree, then a ratio tree for each kind of classes."""
    rows = rows_of(layout, histories, target)
    trees = [value_tree(rows, target, seed, constants)]
    for sort in target.sorts:
        trees.append(ratio_tree(layout, histories, target, rows, trees, sort, seed, constants))
    return trees


def _grown(n_rows: int, min_rows: int, constants: Constants) -> GrownTree:
    """Room for a tree."""
    m = max(3, 2 * min(constants.leaves, n_rows // max(min_rows, 1) + 2))
    feature, threshold, child, parent = np.zeros((4, m), dtype=np.int32)
    start, stop = np.zeros((2, m), dtype=np.int64)
    rows, spare = np.zeros((2, n_rows), dtype=np.int64)
    return GrownTree(feature, threshold, child, parent, start, stop, rows, spare)


def grow_values(rows: TargetRows, n_codes: int, number: int, seed: int, constants: Constants) -> tuple[GrownTree, int]:
    """The nodes of a value tree, and their number."""
    grown = _grown(len(rows.code), constants.min_rows, constants)
    limits = SplitLimits(
        constants.min_rows, constants.value_gain, constants.gain_a_type, len(grown.feature), constants.split_rows, 0.0
    )
    count = np.arange(constants.split_rows + 2)
    room = Room(
        log_table=count * np.log(np.maximum(count, 1)),
        order=np.zeros(constants.split_rows, dtype=np.int32),
        place=np.zeros(N_VALUES + 1, dtype=np.int64),
        left=np.zeros(n_codes, dtype=np.int64),
        right=np.zeros(n_codes, dtype=np.int64),
    )
    n_nodes = grow_value_tree(rows.values, rows.code, grown, limits, room, seed, 2 * number)
    return grown, n_nodes


def value_tree(rows: TargetRows, target: Target, seed: int, constants: Constants) -> HistoryTree:
    """A tree whose leaves hold distributions over the codes."""
    n_codes = target.n_codes
    grown, n_nodes = grow_values(rows, n_codes, target.number, seed, constants)
    marginal = np.bincount(rows.code, minlength=n_codes) + 0.1
    marginal[0] = marginal[0] if target.may_miss else 0.0
    marginal /= marginal.sum()
    table = np.zeros((n_nodes, n_codes))
    smooth_values(
        grown, n_nodes, rows.code, int(target.is_number), constants.near, constants.far, marginal,
        np.zeros((3, n_codes)), table, np.zeros(n_codes + 2),
    )  # fmt: skip
    return _history_tree(VALUE, grown, n_nodes, table)


def ratio_tree(
    layout: HistoryLayout,
    histories: Histories,
    target: Target,
    rows: TargetRows,
    trees: Sequence[HistoryTree],
    sort: int,
    seed: int,
    constants: Constants,
) -> HistoryTree:
    """A tree whose leaves multiply the classes of the codes by observed over expected rows."""
    n, n_classes = len(rows.code), N_CLASSES[sort]
    kept = np.arange(len(target.kinds))
    if sort == CODE:
        j = (target.number - layout.n_head) % len(layout.n_codes)
        n_classes, kept = int(layout.n_codes[j]), of_others(target, j)
    state = empty_state(1, layout.n_head, len(layout.n_codes))
    observed, expected = np.empty(n, dtype=np.int64), np.empty((n, n_classes), dtype=np.float32)
    so_far = conditionals_of([(target, trees)], layout)
    expected_classes(layout, so_far, histories, target.number, sort, state, np.empty(64), observed, expected)
    grown = _grown(n, constants.ratio_rows, constants)
    limits = SplitLimits(
        constants.ratio_rows, constants.ratio_gain, constants.gain_a_type, len(grown.feature), constants.split_rows,
        constants.ratio_pseudo,
    )  # fmt: skip
    ratio = np.ones((len(grown.feature), n_classes))
    n_nodes = grow_ratio_tree(
        rows.values[kept], observed, expected, grown, limits, ratio, np.zeros((N_VALUES, n_classes)),
        np.zeros((N_VALUES, n_classes)), np.zeros((4, n_classes)), seed, 2 * target.number + 1,
    )  # fmt: skip
    feature = grown.feature[:n_nodes]
    feature[feature >= 0] = kept[feature[feature >= 0]]
    return _history_tree(sort, grown, n_nodes, ratio)


def of_others(target: Target, j: int) -> np.ndarray:
    """Numbers of the contexts of column j that do not look at the column itself."""
    kinds, columns = target.kinds, target.columns
    return np.flatnonzero(np.isin(kinds, (NOW, HEAD, *OF_ROW)) | ((kinds == PREVIOUS) & (columns != j)))


def _history_tree(sort: int, grown: GrownTree, n_nodes: int, table: np.ndarray) -> HistoryTree:
    feature = grown.feature[:n_nodes]
    order = depth_first(np.where(feature < 0, -1, grown.child[:n_nodes]))
    number = np.empty(n_nodes, dtype=np.int32)
    number[order] = np.arange(n_nodes)
    feature = feature[order]
    leaf = feature < 0
    child = np.where(leaf, -1, number[grown.child[:n_nodes][order]]).astype(np.int32)
    return HistoryTree(sort, feature, grown.threshold[:n_nodes][order], child, table[order[leaf]].astype(np.float32))


def depth_first(child: np.ndarray) -> np.ndarray:
    """Nodes of a tree (int64 (M,)) with small subtrees together, near each other in memory; children side by side.
    ``child`` (M,) is the left child of each node, which the right one follows; -1 at leaves."""
    left, order, waiting = child.tolist(), [0], [0]
    while waiting:
        first = left[waiting.pop()]
        if first >= 0:
            order += (first, first + 1)
            waiting += (first + 1, first)
    return np.array(order, dtype=np.int64)


def conditionals_of(learned: Sequence[tuple[Target, Sequence[HistoryTree]]], layout: HistoryLayout) -> Conditionals:
    """All trees as the arrays of kernels; targets without trees have none."""
    n_targets = layout.n_head + 2 * len(layout.n_codes)
    by_number = {target.number: (target, trees) for target, trees in learned}
    codes, start = np.ones(n_targets, dtype=np.int64), np.zeros(n_targets + 1, dtype=np.int64)
    sorts, roots, kinds, columns, thresholds, children, tables = [], [], [], [], [], [], []
    n_nodes = n_entries = 0
    for number in range(n_targets):
        if number in by_number:
            target, trees = by_number[number]
            codes[number] = target.n_codes
            for tree in trees:
                leaf = tree.feature < 0
                at = n_entries + np.arange(leaf.sum()) * tree.entry.shape[1]
                child = tree.child.astype(np.int64) + n_nodes
                child[leaf] = -1 - at
                sorts.append(tree.sort)
                roots.append(n_nodes)
                kinds.append(np.append(target.kinds, 0)[tree.feature])
                columns.append(np.append(target.columns, 0)[tree.feature])
                thresholds.append(tree.threshold)
                children.append(child)
                tables.append(tree.entry.ravel())
                n_nodes += len(leaf)
                n_entries += tree.entry.size
        start[number + 1] = len(sorts)
    return Conditionals(
        codes, start, np.array(sorts, dtype=np.int64), np.array(roots, dtype=np.int64),
        np.concatenate(kinds).astype(np.int16), np.concatenate(columns).astype(np.int16),
        np.concatenate(thresholds).astype(np.int16), np.concatenate(children), np.concatenate(tables),
    )  # fmt: skip
