"""Rows that share cells: each row's leaves from what each cell says of each leaf."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import entry
from .weight_kernels import log_sum, widened


@entry
def shared_rows(prior, cell, start, leaf, says, at, log_weight):
    """Start, leaf, log_weight and log_evidence (see `posterior.LeafPosterior`) of rows of known cells.

    ``prior`` (L,) are the leaves' log weights, ``cell`` (n, d) the number of each cell, -1 where it is missing. Cell c
    meets the leaves ``leaf[start[c]:start[c + 1]]``, and ``says[c]`` (L,) is its log density in each, -inf in others.
    ``at`` and ``log_weight`` (L,) are scratch.
    """
    n, d = cell.shape
    starts = np.zeros(n + 1, np.int64)
    all_leaf, all_log_weight = np.empty(1024, np.int32), np.empty(1024, np.float64)
    log_evidence = np.empty(n, np.float64)
    end = np.int64(0)
    for row in range(n):
        fewest, least = -1, prior.shape[0] + 1
        for j in range(d):
            c = cell[row, j]
            if c >= 0 and start[c + 1] - start[c] < least:
                fewest, least = j, start[c + 1] - start[c]
        count = 0
        if fewest < 0:
            for i in range(prior.shape[0]):
                at[i], log_weight[i] = i, prior[i]
            count = prior.shape[0]
        else:
            c = cell[row, fewest]
            for i in range(start[c], start[c + 1]):
                at[count], log_weight[count] = leaf[i], prior[leaf[i]] + says[c, leaf[i]]
                count += 1
        for j in range(d):
            c = cell[row, j]
            if c < 0 or j == fewest:
                continue
            kept = 0
            for i in range(count):
                total = log_weight[i] + says[c, at[i]]
                at[kept], log_weight[kept] = at[i], total
                kept += 1 if total > -math.inf else 0
            count = kept
        log_evidence[row] = log_sum(log_weight, count)
        if end + count > all_leaf.shape[0]:
            size = max(2 * all_leaf.shape[0], end + count)
            all_leaf, all_log_weight = widened(all_leaf, end, size), widened(all_log_weight, end, size)
        for i in range(count):
            all_leaf[end + i], all_log_weight[end + i] = at[i], log_weight[i]
        end += count
        starts[row + 1] = end
    return starts, all_leaf[:end], all_log_weight[:end], log_evidence
