"""Kernels that draw rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.numeric_kernels import first_at_least
from ...runtime.random_kernels import start_stream, uniform
from ...runtime.records import record
from .descent_kernels import cell_region
from .leaves.slot_kernels import level_draw, slot_draw, slot_mean_variance
from .posterior_kernels import mixed_levels, row_mixture


@kernel
def draw_row(columns, leaves, evidence, row, leaf, missing, state, out):
    """Draw one row from a leaf, given the row's evidence."""
    for j in range(out.shape[0]):
        x = evidence.value[row, j]
        if x == x:
            out[j] = x
        elif columns.is_categorical[j]:
            region = cell_region(evidence, row, j)
            out[j] = level_draw(columns, leaves, evidence, leaf, columns.slot[j], region, uniform(state))
        else:
            region = cell_region(evidence, row, j)
            out[j] = slot_draw(columns, leaves, evidence, leaf, columns.slot[j], region, state)
    if missing:
        for j in range(out.shape[0]):
            known = evidence.value[row, j] == evidence.value[row, j] or cell_region(evidence, row, j) >= 0
            if not known and uniform(state) < leaves.missing_rate[leaf, j]:
                out[j] = math.nan


@record
class Draws(NamedTuple):
    """Which draws are made of each row: ``first`` .. ``stop - 1`` of ``m``.

    seed : int. Draw k of row i has the random stream of number ``i * m + k`` under this seed.
    missing : bool. Whether unknown cells are missing as often as in the leaf's rows.
    """

    m: int
    first: int
    stop: int
    seed: int
    missing: bool


@record
class DrawScratch(NamedTuple):
    """What drawing writes to, used again from row to row; see `draw_scratch`.

    weight : float64 array, as long as a row of the posterior may be. Cumulated weights of the row's leaves.
    newest : int64 array, as long. The last draw of each of these leaves, -1 if it has none.
    before : int64 array (draws of a row,). The draw of the same leaf before this one, -1 if it is the first.
    state : uint64 array (1,). Of a draw's random stream.
    """

    weight: np.ndarray
    newest: np.ndarray
    before: np.ndarray
    state: np.ndarray


def draw_scratch(most: int, draws: int) -> DrawScratch:
    """Scratch for rows of a posterior with at most ``most`` leaves, of each of which some draws are made."""
    return DrawScratch(
        weight=np.empty(most),
        newest=np.empty(most, np.int64),
        before=np.empty(draws, np.int64),
        state=np.empty(1, np.uint64),
    )


@kernel
def choose_leaves(post, i, draws, number, scratch):
    """Choose the leaf of each draw of row i of the posterior; lists by leaf go to ``newest`` and ``before``."""
    # ``number`` is the stream of draw 0. Returns how many leaves the row has.
    n, total = post.start[i + 1] - post.start[i], 0.0
    for k in range(n):
        total += math.exp(post.log_weight[post.start[i] + k] - post.log_evidence[i])
        scratch.weight[k], scratch.newest[k] = total, -1
    for k in range(draws.first, draws.stop):
        start_stream(scratch.state, draws.seed, number + k)
        at = first_at_least(scratch.weight, 0, n, uniform(scratch.state) * total)
        scratch.before[k - draws.first], scratch.newest[at] = scratch.newest[at], k - draws.first
    return n


@entry
def draw_rows(columns, leaves, evidence, post, first, draws, scratch, out):
    """Draws of each row of the posterior (of the rows first..), into ``out`` (n * m, d)."""
    # Draws are made leaf by leaf, so that parameters are read in order; each has its own random stream.
    state = scratch.state
    for i in range(post.log_evidence.shape[0]):
        row, at = first + i, (first + i) * draws.m
        if post.log_evidence[i] == -math.inf:
            out[at + draws.first : at + draws.stop] = math.nan
            continue
        for number in range(choose_leaves(post, i, draws, at, scratch)):
            leaf, k = post.leaf[post.start[i] + number], scratch.newest[number]
            while k >= 0:
                to = at + draws.first + k
                start_stream(state, draws.seed, to)
                uniform(state)  # chose the leaf
                draw_row(columns, leaves, evidence, row, leaf, draws.missing, state, out[to])
                k = scratch.before[k]


@entry
def complete_rows(columns, leaves, evidence, post, first, start, seed, scratch, out):
    """Draws of each row of the posterior (from row first on), into ``out`` from ``start[row]`` on."""
    # Of c draws, the k-th falls on the leaf at (k + v) / c of the cumulated weights, where v is the same for all rows.
    state = scratch.state
    start_stream(state, seed, 0)
    offset = uniform(state)
    for i in range(post.log_evidence.shape[0]):
        row = first + i
        at, c = start[row], start[row + 1] - start[row]
        if post.log_evidence[i] == -math.inf:
            out[at : at + c] = math.nan
            continue
        total = 0.0
        for number in range(post.start[i], post.start[i + 1]):
            total += math.exp(post.log_weight[number] - post.log_evidence[i])
        k, below = np.int64(0), 0.0
        for number in range(post.start[i], post.start[i + 1]):
            leaf = post.leaf[number]
            below += math.exp(post.log_weight[number] - post.log_evidence[i])
            if number == post.start[i + 1] - 1:
                below = math.inf  # rounding must not lose the last draw
            while k < c and (k + offset) * total < below * c:
                start_stream(state, seed, k + 1)
                draw_row(columns, leaves, evidence, row, leaf, False, state, out[at + k])
                k += 1


# ---- Kernel that fills missing cells with means and most probable levels.


@kernel
def nearest_centre(columns, slot, x):
    """Centre of the nearest grid cell; x itself if there is no grid."""
    step, origin = columns.step[slot], columns.origin[slot]
    return x if step == 0.0 else origin + np.floor((x - origin) / step + 0.5) * step


@kernel
def mixed_mean(columns, leaves, evidence, slot, region, mixture, means):
    """Mean of a numeric slot in a mixture; ``means`` as in `impute_rows`."""
    leaf, weight = mixture
    total = 0.0
    tabled = region < 0 and means.shape[0] > 0
    for i in range(leaf.shape[0]):
        if weight[i] > 0.0:
            if tabled:
                total += weight[i] * means[leaf[i], slot]
            else:
                total += weight[i] * slot_mean_variance(columns, leaves, evidence, leaf[i], slot, region)[0]
    return total


@entry
def impute_rows(columns, leaves, evidence, post, first, means):
    """The rows first.. of the evidence with the cells without a value filled in; shape (rows, d)."""
    # ``means`` (L, p) holds the unconditional means of the leaves; if it is empty they are computed here.
    n, d = post.log_evidence.shape[0], evidence.value.shape[1]
    out = evidence.value[first : first + n].copy()
    for i in range(n):
        if post.log_evidence[i] == -math.inf:
            continue
        mixture = row_mixture(post, i)
        for j in range(d):
            if not math.isnan(out[i, j]):
                continue
            slot, region = columns.slot[j], cell_region(evidence, first + i, j)
            if columns.is_categorical[j]:
                out[i, j] = likeliest(mixed_levels(columns, leaves, evidence, slot, region, mixture))
            else:
                mean = mixed_mean(columns, leaves, evidence, slot, region, mixture, means)
                out[i, j] = nearest_centre(columns, slot, mean)
    return out


@kernel
def likeliest(share):
    """The first level of greatest probability."""
    best = 0
    for k in range(share.shape[0]):
        if share[k] > share[best]:
            best = k
    return best
