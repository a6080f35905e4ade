"""Kernel of histograms by tables given a region: weights times rows in single precision, summed in double, in order.

Not by matrix products, as `ground.mixture_kernels`; BLAS would copy the rows, too.
"""

from __future__ import annotations

from ...ground.compile import entry

TINY = 1e-30
"""A row that has less than this in a region is lost: float32 loses digits not far below."""


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
