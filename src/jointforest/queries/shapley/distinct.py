"""Coalitions that know the same cells of the same values are answered once, whichever rows they are of."""

from __future__ import annotations

import numpy as np


def distinct(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of (q, w) 64-bit words: the number of the first of each, ascending, and which each row is (q,)."""
    rows = np.ascontiguousarray(words).view(np.dtype((np.void, words.shape[1] * 8))).ravel()
    _, first, place = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first)  # as they came: coalitions of one row stay together
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return first[order], rank[place.ravel()]
