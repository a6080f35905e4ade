"""The conditions on a node table that comes from a file: kernels check no bounds."""

from __future__ import annotations

import numpy as np

from .table import Ensemble

LINKS = ("identity", "logistic", "softmax", "exp")
DTYPES = {
    "feature": "<i4",
    "threshold": "<f8",
    "levels_at": "<i4",
    "left_levels": "<u8",
    "missing_left": "|u1",
    "other_left": "|u1",
    "left": "<i4",
    "right": "<i4",
    "leaf": "<i4",
    "root": "<i4",
    "value": "<f8",
    "base": "<f8",
}
"""Arrays of an ensemble, and their types in files: truth values are bytes."""


def check_ensemble(ensemble: Ensemble, n_levels: np.ndarray) -> None:
    """Raise ValueError unless a node table is valid; ``n_levels`` (n_features,) is 0 for numbers."""
    # An infinite threshold is allowed: it separates missing cells from others.
    n, L = len(ensemble.feature), len(ensemble.value)
    for name in ("threshold", "levels_at", "missing_left", "other_left", "left", "right", "leaf"):
        _require(getattr(ensemble, name).shape == (n,), f"{name}: expected shape ({n},)")
    _require(ensemble.value.ndim == 2 and ensemble.value.shape[1] == len(ensemble.base) > 0, "value: wrong shape")
    _require(ensemble.link in LINKS, f"link: expected one of {LINKS}")
    _require(not bool(np.isnan(ensemble.threshold).any()), "threshold: not a number")
    for name in ("value", "base"):
        _require(bool(np.isfinite(getattr(ensemble, name)).all()), f"{name}: not finite")
    is_leaf = ensemble.feature < 0
    _require(int(is_leaf.sum()) == L > 0, "feature: as many leaves as values")
    _require(bool((np.sort(ensemble.leaf[is_leaf]) == np.arange(L)).all()), "leaf: each number once")
    _require(bool((ensemble.leaf[~is_leaf] == -1).all()), "leaf: -1 at inner nodes")
    _require(bool((ensemble.feature < len(n_levels)).all()), "feature: out of range")
    inner = np.flatnonzero(~is_leaf)
    children = np.concatenate([ensemble.left[inner], ensemble.right[inner]]).astype(np.int64)
    parents = np.concatenate([inner, inner])
    _require(bool(((children > parents) & (children < n)).all()), "left, right: after their parent")
    nodes = np.concatenate([children, ensemble.root.astype(np.int64)])
    _require(len(nodes) == n and bool((np.sort(nodes) == np.arange(n)).all()), "left, right, root: each node once")
    _require(bool((np.diff(ensemble.root) > 0).all()), "root: not ascending")
    at = ensemble.levels_at.astype(np.int64)
    feature = ensemble.feature[inner]
    by_level = at[inner] >= 0
    _require(bool((n_levels[feature][by_level] > 0).all()), "levels_at: a set of levels of a number")
    words = (n_levels[feature] + 63) // 64
    ends = at[inner] + words
    _require(bool((ends[by_level] <= len(ensemble.left_levels)).all()), "levels_at: out of range")
    _require(bool((at[is_leaf] == -1).all() and (at >= -1).all()), "levels_at: -1 without a set")


def _require(is_true: bool, what: str) -> None:
    if not is_true:
        raise ValueError(f"an ensemble of trees is broken: {what}")
