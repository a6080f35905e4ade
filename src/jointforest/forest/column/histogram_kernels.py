"""Kernels of histograms by tables: weights times rows in single precision, summed in double, in their order.

Not by matrix products: BLAS takes all cores for one of these, whatever else they work on, and would copy the rows.
"""

from __future__ import annotations

from ...ground.compile import entry

TINY = 1e-30
"""A row that has less than this in a region is lost: float32 loses digits not far below."""


@entry
def add_rows(table, row, weight, out):
    """Add rows (m,) of a table (R, B) times their weight (m,) to ``out`` (B,)."""
    for i in range(row.shape[0]):
        r, w = row[i], weight[i]
        for b in range(out.shape[0]):
            out[b] += w * table[r, b]


@entry
def add_rows_inside(table, row, weight, inside, piece, bin_of_piece, out, is_lost):
    """Add what rows (m,) of a table (R, B) have in a region, scaled to sum to their weight (m,), to ``out`` (B,).

    The region holds the bins that are ``inside``, (B,), and pieces of others: their masses are ``piece`` (m, P), their
    bins ``bin_of_piece`` (P,). Rows that are lost are marked in ``is_lost`` (m,), not added.
    """
    for i in range(row.shape[0]):
        r, total = row[i], 0.0
        for b in range(out.shape[0]):
            total += inside[b] * table[r, b]
        for p in range(bin_of_piece.shape[0]):
            total += piece[i, p]
        is_lost[i] = total < TINY
        if is_lost[i]:
            continue
        share = weight[i] / total
        for b in range(out.shape[0]):
            out[b] += share * inside[b] * table[r, b]
        for p in range(bin_of_piece.shape[0]):
            out[bin_of_piece[p]] += share * piece[i, p]
