"""Coalitions that know the same cells of the same values are answered once, whichever rows they are of."""

from __future__ import annotations

import numpy as np


def distinct(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of (q, w) 64-bit words: the number of the first of each, and which of them each row is (q,)."""
    rows = np.ascontiguousarray(words).view(np.dtype((np.void, words.shape[1] * 8))).ravel()
    _, first, place = np.unique(rows, return_index=True, return_inverse=True)
    return first, place.ravel()
