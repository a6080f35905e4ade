"""Kernels that draw rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...runtime.compile import array_kernel, entry, kernel
from ...runtime.random_kernels import start_stream, uniform
from ...runtime.records import record
from .circuit_kernels import circuit_log_density, column_mixture, draw_parts, find_atoms, has_circuit, share_out
from .leaves.slot_kernels import level_draw, slot_draw, slot_mean_variance
from .leaves.table import Leaves
from .posterior_kernels import Mixture, mixed_levels, row_mixture
from .region_kernels import cell_region


@kernel
def draw_row(columns, leaves, evidence, row, leaf, of, missing, state, out):
    """Draw one row from a leaf, given the row's evidence; column j by the parameter row ``of[j]``."""
    for j in range(out.shape[0]):
        x = evidence.value[row, j]
        if x == x:
            out[j] = x
        elif columns.is_categorical[j]:
            region = cell_region(evidence, row, j)
            out[j] = level_draw(columns, leaves, evidence, of[j], columns.slot[j], region, uniform(state))
        else:
            region = cell_region(evidence, row, j)
            out[j] = slot_draw(columns, leaves, evidence, of[j], columns.slot[j], region, state)
    if missing:
        for j in range(out.shape[0]):
            known = evidence.value[row, j] == evidence.value[row, j] or cell_region(evidence, row, j) >= 0
            if not known and uniform(state) < leaves.missing_rate[leaf, j]:
                out[j] = math.nan


@record
class Draws(NamedTuple):
    """Which draws are made of each row: ``first`` .. ``stop - 1`` of ``m``.

    Attributes
    ----------
    m, first, stop : int
    seed : int
        Draw k of row i has the random stream of number ``i * m + k`` under this seed.
    missing : bool
        Whether cells of which nothing is known are blanked as often as they are missing in the leaf's rows.
    """

    m: int
    first: int
    stop: int
    seed: int
    missing: bool


@record
class DrawScratch(NamedTuple):
    """What drawing writes to, used again from row to row; see `draw_scratch`.

    Attributes
    ----------
    weight : float64 array, as long as a row of the posterior may be
        Cumulated weights of the row's leaves.
    newest : int64 array, as long
        The last draw of each of these leaves, -1 if it has none.
    before : int64 array (draws of a row,)
        The draw of the same leaf before this one, -1 if it is the first.
    atom : int32 array (d,)
    of : int32 array (d,)
        Parameter row that describes each column.
    value : float64 array (Q,), active : uint8 array (Q,)
        Log p(evidence) of circuit nodes, and whether a node takes part in a draw.
    state : uint64 array (1,)
        Of a draw's random stream.
    """

    weight: np.ndarray
    newest: np.ndarray
    before: np.ndarray
    atom: np.ndarray
    of: np.ndarray
    value: np.ndarray
    active: np.ndarray
    state: np.ndarray


def draw_scratch(leaves: Leaves, most: int, draws: int) -> DrawScratch:
    """Scratch for rows of a posterior with at most ``most`` leaves, of each of which some draws are made."""
    d, n_nodes = leaves.missing_rate.shape[1], len(leaves.node_kind)
    return DrawScratch(
        weight=np.empty(most),
        newest=np.empty(most, np.int64),
        before=np.empty(draws, np.int64),
        atom=np.empty(d, np.int32),
        of=np.empty(d, np.int32),
        value=np.empty(n_nodes),
        active=np.empty(n_nodes, np.uint8),
        state=np.empty(1, np.uint64),
    )


@kernel
def first_at_least(ascending, n, target):
    """The first of the n numbers, which ascend, that is at least the target; n if none is."""
    low, high = np.int64(0), np.int64(n)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


@array_kernel
def choose_leaves(post, i, draws, number, scratch):
    """Choose the leaf of each draw of row i of the posterior; lists by leaf go to ``newest`` and ``before``.

    ``number`` is the stream of draw 0. Returns how many leaves the row has.
    """
    n, total = post.start[i + 1] - post.start[i], 0.0
    for k in range(n):
        total += math.exp(post.log_weight[post.start[i] + k] - post.log_evidence[i])
        scratch.weight[k], scratch.newest[k] = total, -1
    for k in range(draws.first, draws.stop):
        start_stream(scratch.state, draws.seed, number + k)
        at = first_at_least(scratch.weight, n, uniform(scratch.state) * total)
        scratch.before[k - draws.first], scratch.newest[at] = scratch.newest[at], k - draws.first
    return n


@entry
def draw_rows(columns, leaves, evidence, post, first, draws, scratch, out):
    """Draws of each row of the posterior (of the rows first..), into ``out`` (n * m, d).

    Draws of a row are made leaf by leaf, so that the leaves' parameters are read in order; every draw has its own
    random stream, so that the order changes nothing.
    """
    state = scratch.state
    for i in range(post.log_evidence.shape[0]):
        row, at = first + i, (first + i) * draws.m
        if post.log_evidence[i] == -math.inf:
            out[at + draws.first : at + draws.stop] = math.nan
            continue
        if scratch.value.shape[0] > 0:
            find_atoms(columns, evidence, row, scratch.atom)
        for number in range(choose_leaves(post, i, draws, at, scratch)):
            leaf, k = post.leaf[post.start[i] + number], scratch.newest[number]
            if k >= 0 and has_circuit(leaves, leaf):
                circuit_log_density(columns, leaves, evidence, row, scratch.atom, leaf, scratch.value)
            while k >= 0:
                to = at + draws.first + k
                start_stream(state, draws.seed, to)
                uniform(state)  # chose the leaf
                draw_parts(leaves, leaf, scratch.value, scratch.active, state, scratch.of)
                draw_row(columns, leaves, evidence, row, leaf, scratch.of, draws.missing, state, out[to])
                k = scratch.before[k]


@entry
def complete_rows(columns, leaves, evidence, post, first, start, seed, scratch, out):
    """Draws of each row of the posterior (of the rows first..), into ``out`` from ``start[row]`` on; see `completions`.

    Of c draws, the k-th falls on the leaf at (k + v) / c of the cumulated weights, where v is the same for all rows.
    """
    state = scratch.state
    start_stream(state, seed, 0)
    offset = uniform(state)
    for i in range(post.log_evidence.shape[0]):
        row = first + i
        at, c = start[row], start[row + 1] - start[row]
        if post.log_evidence[i] == -math.inf:
            out[at : at + c] = math.nan
            continue
        if scratch.value.shape[0] > 0:
            find_atoms(columns, evidence, row, scratch.atom)
        total = 0.0
        for number in range(post.start[i], post.start[i + 1]):
            total += math.exp(post.log_weight[number] - post.log_evidence[i])
        k, below = np.int64(0), 0.0
        for number in range(post.start[i], post.start[i + 1]):
            leaf = post.leaf[number]
            below += math.exp(post.log_weight[number] - post.log_evidence[i])
            if number == post.start[i + 1] - 1:
                below = math.inf  # rounding must not lose the last draw
            if k < c and (k + offset) * total < below * c and has_circuit(leaves, leaf):
                circuit_log_density(columns, leaves, evidence, row, scratch.atom, leaf, scratch.value)
            while k < c and (k + offset) * total < below * c:
                start_stream(state, seed, k + 1)
                draw_parts(leaves, leaf, scratch.value, scratch.active, state, scratch.of)
                draw_row(columns, leaves, evidence, row, leaf, scratch.of, False, state, out[at + k])
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


@kernel
def share_row(columns, leaves, evidence, row, post, i, atom, value, share):
    """Write log p(node takes part, evidence) of the circuits of the leaves of row i of the posterior into ``share``."""
    find_atoms(columns, evidence, row, atom)
    for k in range(post.start[i], post.start[i + 1]):
        if has_circuit(leaves, post.leaf[k]):
            circuit_log_density(columns, leaves, evidence, row, atom, post.leaf[k], value)
            share_out(leaves, post.leaf[k], post.log_weight[k], value, share)


@entry
def impute_rows(columns, leaves, evidence, post, first, means):
    """The rows first.. of the evidence with the cells without a value filled in; shape (rows, d).

    ``means`` (R, p) holds the unconditional means of the parameter rows; if it is empty they are computed here.
    """
    n, d = post.log_evidence.shape[0], evidence.value.shape[1]
    n_nodes = leaves.node_kind.shape[0]
    atom = np.empty(d, np.int32)
    value, node_share = np.empty(n_nodes, np.float64), np.empty(n_nodes, np.float64)
    out = evidence.value[first : first + n].copy()
    for i in range(n):
        if post.log_evidence[i] == -math.inf:
            continue
        mixture = row_mixture(post, i)
        leaf, log_weight = mixture.leaf, post.log_weight[post.start[i] : post.start[i + 1]]
        if n_nodes > 0:
            share_row(columns, leaves, evidence, first + i, post, i, atom, value, node_share)
        for j in range(d):
            if not math.isnan(out[i, j]):
                continue
            if n_nodes > 0:
                row, share = column_mixture(leaves, j, leaf, log_weight, post.log_evidence[i], node_share)
                mixture = Mixture(row, share)
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
