"""Evidence as the kernels see it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..ground.records import record


@record
class Evidence(NamedTuple):
    """What is known of n rows: per cell nothing, a value, or a region.

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
    log_penalty : float64 array (n,)
        Added to the row's log-probability (levels never seen at learning; see `table.schema.Column.log_unseen`);
        those cells count as missing.
    """

    value: np.ndarray
    region: np.ndarray
    run_start: np.ndarray
    run_lo: np.ndarray
    run_hi: np.ndarray
    atoms: np.ndarray
    log_penalty: np.ndarray
