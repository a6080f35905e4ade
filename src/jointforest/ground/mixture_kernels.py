"""Kernel of mixtures of a table's rows.

Not by matrix products: BLAS takes all cores for one of these, whatever else they work on.
"""

from __future__ import annotations

from .compile import entry


@entry
def mix_rows(table, rows, weight, out):
    """Add rows (m,), int32, of a table (R, N) times their weight (m,) to ``out`` (N,), float64, in their order."""
    for i in range(rows.shape[0]):
        row, w = rows[i], weight[i]
        for k in range(out.shape[0]):
            out[k] += w * table[row, k]
