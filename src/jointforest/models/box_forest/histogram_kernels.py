"""Kernels of the mass of bins of one numeric column, in a mixture of leaves."""

import math

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.numeric_kernels import first_at_least
from .descent_kernels import cell_region, known_number
from .leaves.family_kernels import log_mass
from .leaves.slot_kernels import (
    cut_to_support,
    has_atom,
    is_line,
    piece,
    piece_at,
    piece_numbers,
    region_log_mass,
    weighed_atom,
)


@kernel
def _bin_of(lo, hi, x):
    """Number of the bin ``(lo, hi]`` that holds x, -1 if none does."""
    b = first_at_least(hi, 0, hi.shape[0], x)
    return b if b < hi.shape[0] and lo[b] < x else -1


@kernel
def add_line(u, v, lo, hi, weight, out):
    """Add weight * P(lo[b] < X <= hi[b]) of a uniform distribution on (u, v] to each bin."""
    for b in range(lo.shape[0]):
        length = min(v, hi[b]) - max(u, lo[b])
        if length > 0.0:
            out[b] += weight * min(length / (v - u), 1.0)


@kernel
def add_run(columns, leaves, l, s, run, log_weight, bins, out):  # noqa: E741
    """Add exp(log_weight) * P(lo[b] < X <= hi[b], X in run) of the rest of leaf l to each bin."""
    lo, hi = bins
    u, v = cut_to_support(columns, leaves, l, s, run[0], run[1])
    if not u < v:
        return
    _, stop = piece_numbers(leaves, l, s)
    for at in range(piece_at(leaves, l, s, u), stop):
        d, log_share = piece(leaves, l, s, at)
        for k in range(first_at_least(hi, 0, hi.shape[0], max(u, d.lo)), hi.shape[0]):
            if lo[k] >= min(v, d.hi):
                break
            mass = log_mass(d, max(u, lo[k]), min(v, hi[k]))
            if mass > -math.inf:
                out[k] += math.exp(log_weight + log_share + mass)


@kernel
def add_bins(columns, leaves, evidence, leaf, slot, region, log_weight, bins, out):
    """Add exp(log_weight) * P(lo[b] < X <= hi[b] | region) of one leaf to each bin."""
    lo, hi = bins
    if is_line(columns, leaves, leaf, slot, region):
        add_line(leaves.lo[leaf, slot], leaves.hi[leaf, slot], lo, hi, math.exp(log_weight), out)
        return
    total = region_log_mass(columns, leaves, evidence, leaf, slot, region)
    if total == -math.inf:
        return
    first = columns.atom_start[slot]
    for k in range(columns.atom_start[slot + 1] - first):
        if has_atom(evidence, region, k):
            b = _bin_of(lo, hi, columns.atom_value[first + k])
            if b >= 0:
                mass = weighed_atom(evidence, region, k, leaves.atom_mass[leaf, first + k])
                out[b] += math.exp(log_weight - total) * mass
    log_rest = leaves.log_rest[leaf, slot]
    if log_rest == -math.inf:
        return
    if region < 0:
        add_run(columns, leaves, leaf, slot, (-math.inf, math.inf), log_weight + log_rest, bins, out)
        return
    for run in range(evidence.run_start[region], evidence.run_start[region + 1]):
        ends = evidence.run_lo[run], evidence.run_hi[run]
        log_share = log_weight + log_rest + evidence.run_log_weight[run] - total
        add_run(columns, leaves, leaf, slot, ends, log_share, bins, out)


@entry
def bin_rows(columns, leaves, evidence, j, post, first, lo, hi):
    """P(lo[b] < column j <= hi[b]) in each row of the posterior (of the rows first..); shape (rows, bins)."""
    # Bins are those of `histogram.Bins`.
    n, slot = post.log_evidence.shape[0], columns.slot[j]
    bins = lo, hi
    out = np.zeros((n, lo.shape[0]), np.float64)
    for i in range(n):
        value, log_evidence = evidence.value[first + i, j], post.log_evidence[i]
        if log_evidence == -math.inf:
            out[i] = math.nan
        elif value == value:
            b = _bin_of(lo, hi, known_number(columns, slot, value))
            if b >= 0:
                out[i, b] = 1.0
        else:
            region = cell_region(evidence, first + i, j)
            for e in range(post.start[i], post.start[i + 1]):
                log_weight = post.log_weight[e] - log_evidence
                add_bins(columns, leaves, evidence, post.leaf[e], slot, region, log_weight, bins, out[i])
    return out


# ---- Histograms by tables given a region: weights times rows in single precision, summed in double, in order.

TINY = 1e-30
"""A row that has less than this in a region is lost: float32 loses digits not far below."""


@entry
def add_rows_inside(table, row, weight, inside, piece, bin_of_piece, out, is_lost):
    """Add the part of rows (m,) of a table (R, B) in a region, scaled to sum to their weight (m,), to ``out`` (B,)."""
    # The region holds the bins ``inside`` (B,) and the masses ``piece`` (m, P) of other bins, ``bin_of_piece`` (P,).
    # Rows that underflow are marked in ``is_lost`` (m,), not added.
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


BLOCK = 512
"""Rows of a table that all rows of a posterior read before the next ones: so many stay in the processor's cache."""


@entry
def mixed_table_rows(table, post):
    """The mixture of rows of the table (R, B) that each row of a posterior is, (rows, B); NaN of impossible ones."""
    n = post.log_evidence.shape[0]
    out = np.zeros((n, table.shape[1]), np.float64)
    at = post.start[:n].copy()
    for i in range(n):
        if post.log_evidence[i] == -math.inf:
            out[i] = math.nan
            at[i] = post.start[i + 1]
    for first in range(0, table.shape[0], BLOCK):
        for i in range(n):
            k = at[i]
            while k < post.start[i + 1] and post.leaf[k] < first + BLOCK:
                weight = math.exp(post.log_weight[k] - post.log_evidence[i])
                if weight > 0.0:
                    leaf = post.leaf[k]
                    for b in range(out.shape[1]):
                        out[i, b] += weight * table[leaf, b]
                k += 1
            at[i] = k
    return out
