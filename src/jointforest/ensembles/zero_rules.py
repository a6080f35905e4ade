"""LightGBM's rules for zeros: what is nearly 0 is 0, and 0 may be a missing value."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .join import Tree

LARGEST_ZERO = float(np.float32(1e-35))
"""Numbers of at most this size are 0 to LightGBM."""
_BELOW_ZERO = float(np.nextafter(-LARGEST_ZERO, -np.inf))
_MOST_NODES = 2**20


def with_zeros(threshold: np.ndarray) -> np.ndarray:
    """Thresholds that part numbers as the given ones do once small numbers are turned into 0."""
    small = np.where(threshold >= 0, LARGEST_ZERO, _BELOW_ZERO)
    return np.where(np.abs(threshold) <= LARGEST_ZERO, small, threshold)


class _Test(NamedTuple):
    """A numeric split whose sides are a node of the old tree, or another test of the same feature."""

    threshold: float
    missing_left: bool
    left: int | _Test
    right: int | _Test


class _Reach(NamedTuple):
    """What can come to a node, of one feature: numbers in (lo, hi], and missing values or not."""

    lo: float
    hi: float
    missing: bool


_ALL = _Reach(-np.inf, np.inf, True)


def with_zeros_missing(tree: Tree, zero_is_missing: np.ndarray, library: str) -> Tree:
    """The tree that sends zeros where ``missing_left`` says, at the numeric splits where ``zero_is_missing``.

    Zeros that leave their side cut it in two parts, which come together below: their subtree is there once for each,
    less what cannot be reached.

    Raises
    ------
    ValueError
        If the tree grows beyond all measure.
    """
    zero_goes_left = tree.threshold >= 0
    moved = zero_is_missing & (tree.left >= 0) & (zero_goes_left != tree.missing_left)
    if not moved.any():
        return tree
    source: list[int] = []
    threshold: list[float] = []
    missing_left: list[bool] = []
    left: list[int] = []
    right: list[int] = []
    # what to place, below which new node, on its left side or not, and what can come there of each feature
    todo: list[tuple[int | _Test, int, int, bool, dict[int, _Reach]]] = [(0, 0, -1, False, {})]
    while todo:
        what, old, parent, on_left, reach = todo.pop()
        if not isinstance(what, _Test):
            old = what
        j = int(tree.feature[old])
        is_numeric = tree.left[old] >= 0 and old not in tree.left_levels
        if is_numeric:
            test = what if isinstance(what, _Test) else _test(tree, old, bool(moved[old]))
            here = reach.get(j, _ALL)
            side = _only_side(test, here)
            if side is not None:
                todo.append((side, old, parent, on_left, reach))
                continue
        new = len(source)
        if new >= _MOST_NODES:
            raise ValueError(f"{library}: zero_as_missing=True makes a tree of more than {_MOST_NODES} nodes")
        if parent >= 0:
            (left if on_left else right)[parent] = new
        source.append(old)
        left.append(-1)
        right.append(-1)
        threshold.append(test.threshold if is_numeric else 0.0)
        missing_left.append(test.missing_left if is_numeric else bool(tree.missing_left[old]))
        if is_numeric:
            low = _Reach(here.lo, test.threshold, here.missing and test.missing_left)
            high = _Reach(test.threshold, here.hi, here.missing and not test.missing_left)
            todo.append((test.right, old, new, False, {**reach, j: high}))
            todo.append((test.left, old, new, True, {**reach, j: low}))
        elif tree.left[old] >= 0:
            todo.append((int(tree.right[old]), old, new, False, reach))
            todo.append((int(tree.left[old]), old, new, True, reach))
    at = np.array(source)
    return Tree(
        feature=tree.feature[at],
        threshold=np.array(threshold),
        left=np.array(left),
        right=np.array(right),
        missing_left=np.array(missing_left),
        other_left=tree.other_left[at],
        left_levels={i: tree.left_levels[old] for i, old in enumerate(source) if old in tree.left_levels},
        value=tree.value[at],
    )


def _test(tree: Tree, node: int, moved: bool) -> _Test:
    """The split of a node, with zeros on the side of missing values if they are to be moved there."""
    threshold = float(tree.threshold[node])
    left, right = int(tree.left[node]), int(tree.right[node])
    if not moved:
        return _Test(threshold, bool(tree.missing_left[node]), left, right)
    if threshold >= 0:  # zeros go right
        above = _Test(LARGEST_ZERO, False, _Test(_BELOW_ZERO, False, left, right), left)
        return _Test(threshold, False, above, right)
    return _Test(threshold, True, left, _Test(LARGEST_ZERO, True, _Test(_BELOW_ZERO, True, right, left), right))


def _only_side(test: _Test, reach: _Reach) -> int | _Test | None:
    """The side to which all goes that can come, None if both."""
    goes_left = reach.lo < test.threshold or (reach.missing and test.missing_left)
    goes_right = reach.hi > test.threshold or (reach.missing and not test.missing_left)
    if goes_left and goes_right:
        return None
    return test.left if goes_left else test.right
