"""Equal rows of evidence have equal answers: each is answered once."""

from __future__ import annotations

import numpy as np

from .evidence import Evidence


def distinct_rows(evidence: Evidence) -> tuple[Evidence, np.ndarray | slice]:
    """Rows of evidence without repetition, and which of them each row is; all of them if few are equal.

    Returns
    -------
    rows : Evidence
        Its log_penalty is one of several that equal rows may have.
    place : int64 array (n,), or slice
        ``answers[place]`` are the answers for all rows.
    """
    everything = slice(None)
    value, region = evidence.value, evidence.region
    if len(value) < 16:
        return evidence, everything
    key = _key(value.view(np.uint64))
    if evidence.has_regions:
        key += _key(region.astype(np.uint64)) * np.uint64(3)
    in_order = np.sort(key)
    if 2 * (1 + np.count_nonzero(in_order[1:] != in_order[:-1])) > len(key):
        return evidence, everything
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    rows = evidence.take(first)
    same = np.array_equal(rows.value.view(np.uint64)[place], value.view(np.uint64))
    if not same or (evidence.has_regions and not np.array_equal(rows.region[place], region)):
        return evidence, everything  # two rows that differ have one key
    return rows, place


def _key(bits: np.ndarray) -> np.ndarray:
    """A number for each row of (n, d) words, the same for equal rows and seldom for others."""
    odd = np.random.default_rng(0).integers(2**63, size=bits.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed: np.ndarray = ((bits ^ (bits >> np.uint64(32))) * odd).sum(axis=1, dtype=np.uint64)
    return mixed
