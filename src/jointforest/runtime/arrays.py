"""Whole-array operations that NumPy lacks."""

from __future__ import annotations

import numpy as np


def ranges(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The numbers ``first[k], ..., first[k] + count[k] - 1`` of every k, one after the other."""
    return np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())


def sums_by_key(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Different keys, ascending, and the sums of their counts."""
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])
    return keys[first], np.add.reduceat(counts, first) if len(first) else counts
