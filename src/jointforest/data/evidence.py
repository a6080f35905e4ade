"""Evidence as the kernels see it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..runtime.records import record


@record
class Evidence(NamedTuple):
    """What is known of n rows: per cell nothing, a value, or a region, whose parts may have likelihoods.

    What a cell says is a likelihood, a function l of the column's value: of a region the weights below within it, 0
    outside. Of hard evidence all weights are 1. p(evidence) is the mean of the product of all cells' likelihoods.

    Attributes
    ----------
    value : float64 array (n, d), C-contiguous
        The cell's value (level code if categorical); NaN where no value is known.
    region : int32 array (n, d), or (0, 0) if there are no regions at all
        Number of the cell's region, -1 if none. A cell never has both a value and a region.
    run_start : int32 array (R + 1,)
        Region r is the union of the runs ``run_start[r]:run_start[r + 1]``; it may be empty.
    run_lo, run_hi : float64 array (Q,)
        Half-open runs ``(lo, hi]``, disjoint, ascending, lo < hi; on cell edges where the column has a grid. For a
        categorical column level k is in a run if ``lo < k <= hi``, edges at ``k -+ 0.5``.
    atoms : uint64 array (R,)
        Bit k is set if the k-th atom of the region's column lies in the region.
    run_log_weight : float64 array (Q,)
        Log of the likelihood in each run, finite, at most 0; 0 in hard evidence.
    atom_log_weight : float64 array (R, A), or (0, 0) if no region is soft
        Log of the likelihood of the region's k-th atom where bit k is set, else 0; A is at least the number of bits of
        the largest ``atoms``. On a grid the atom's weight is that of the run with its cell.
    log_penalty : float64 array (n,)
        Added to the row's log-probability: of levels never seen at learning (see `data.schema.Column.log_unseen`),
        whose cells count as missing; and log-likelihoods of known values where there is soft evidence of them, too.
    """

    value: np.ndarray
    region: np.ndarray
    run_start: np.ndarray
    run_lo: np.ndarray
    run_hi: np.ndarray
    atoms: np.ndarray
    run_log_weight: np.ndarray
    atom_log_weight: np.ndarray
    log_penalty: np.ndarray

    @staticmethod
    def of_values(value: np.ndarray, log_penalty: np.ndarray | None = None) -> Evidence:
        """Evidence of values alone: float64 array (n, d), NaN where nothing is known."""
        nothing = np.empty(0)
        return Evidence(
            value=value,
            region=np.empty((0, 0), dtype=np.int32),
            run_start=np.zeros(1, dtype=np.int32),
            run_lo=nothing,
            run_hi=nothing,
            atoms=np.empty(0, dtype=np.uint64),
            run_log_weight=nothing,
            atom_log_weight=np.empty((0, 0)),
            log_penalty=np.zeros(len(value)) if log_penalty is None else log_penalty,
        )

    @property
    def has_regions(self) -> bool:
        """Whether any cell may have a region."""
        return self.region.size > 0

    def soft_columns(self) -> np.ndarray:
        """Which columns have soft evidence in some row, bool (d,)."""
        soft = np.zeros(len(self.atoms) + 1, bool)  # the last is that of region -1
        soft[np.repeat(np.arange(len(self.atoms)), np.diff(self.run_start))[self.run_log_weight != 0.0]] = True
        if self.atom_log_weight.size:
            soft[:-1] |= (self.atom_log_weight != 0.0).any(axis=1)
        return np.asarray(soft[self.cell_regions()].any(axis=0))

    def cell_regions(self) -> np.ndarray:
        """Number of each cell's region, -1 if none: a new int32 array (n, d), whether there are regions or not."""
        return self.region.copy() if self.has_regions else np.full(self.value.shape, -1, dtype=np.int32)

    def take(self, rows: np.ndarray) -> Evidence:
        """The rows of these numbers, in this order."""
        region = self.region[rows] if self.has_regions else self.region
        return self._replace(value=self.value[rows], region=region, log_penalty=self.log_penalty[rows])

    def repeat(self, n: int) -> Evidence:
        """Each row n times, one after the other."""
        return self.take(np.repeat(np.arange(len(self.value)), n))

    def without(self, j: int) -> Evidence:
        """The evidence with nothing known of column j; penalties stay."""
        value = self.value.copy()
        value[:, j] = np.nan
        region = self.region.copy()
        if self.has_regions:
            region[:, j] = -1
        return self._replace(value=value, region=region)


# ---- Equal rows of evidence have equal answers: each is answered once.


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
