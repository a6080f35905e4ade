"""Whole-array operations that NumPy lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_MOST_KEPT = 12
"""Most results that are kept; the oldest is dropped first."""


class KeptResults:
    """The last few results of functions of arrays, found again by the identity of these arrays."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def of(self, name: tuple[Any, ...], make: Callable[..., Any], *arrays: Any) -> Any:
        """``make(*arrays)``, computed once for each name and these same array objects, which must not change."""
        key = (name, *map(id, arrays))
        kept = self._found.get(key)  # which holds the arrays too, so that no other array has their identity
        if kept is None:
            kept = self._found[key] = make(*arrays), arrays
            for old in list(self._found)[:-_MOST_KEPT]:
                self._found.pop(old, None)
        return kept[0]


def divided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, 0 where b is not positive."""
    return np.asarray(np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > 0.0))


def ranges(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The numbers ``first[k], ..., first[k] + count[k] - 1`` of every k, one after the other."""
    return np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())


def sums_by_key(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Different keys, ascending, and the sums of their counts."""
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])
    return keys[first], np.add.reduceat(counts, first) if len(first) else counts
