"""Kernels: how probable each leaf of an ensemble is, given a row's known cells, under a joint.

P(leaf | known cells) = sum over the joint's components c of P(c | known cells) * product over missing columns of the
mass of the leaf's region in c. Components come in blocks that stay in the processor's cache.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...forest.posterior.weight_kernels import widened
from ...ground.compile import array_kernel, entry, kernel
from ...ground.records import record
from .circuit_kernels import descend_circuit
from .component_kernels import BLOCK, STRIDE, find_live, gather, scratch_live
from .descent_kernels import descend
from .residual_kernels import scratch_left, what_is_left


@record
class Binding(NamedTuple):
    """What kernels know before any row: the model's columns and leaves, and fields of `expectation_bind.Bound`.

    Attributes
    ----------
    columns, leaves, marks, components, splits, masses
    middle, half : float64 arrays (N, K)
    reach : float64 array (N,)
        The largest half of a node's outputs.
    depth : int
    """

    columns: Any
    leaves: Any
    marks: Any
    components: Any
    splits: Any
    masses: Any
    middle: np.ndarray
    half: np.ndarray
    reach: np.ndarray
    depth: int


@record
class Scratch(NamedTuple):
    """Room for one row at a time.

    Attributes
    ----------
    left, live : `Left`, `Live`
    value, weight : float64 arrays (Q,)
        What `find_live` says of the circuits' nodes.
    atom : int32 array (d,)
    region : int32 array (d, 2)
    stack : int32 array
    stack_mass : float64 array
    vector : float64 array (depth + 3, STRIDE)
    level_row : float64 array (S, STRIDE)
    base : float64 array (M,)
    """

    left: Any
    live: Any
    value: np.ndarray
    weight: np.ndarray
    atom: np.ndarray
    region: np.ndarray
    stack: np.ndarray
    stack_mass: np.ndarray
    vector: np.ndarray
    level_row: np.ndarray
    base: np.ndarray


@array_kernel
def scratch(bound):
    """`Scratch` for a binding."""
    n_nodes, n_columns = bound.splits.feature.shape[0], bound.columns.slot.shape[0]
    n_circuit, depth = bound.leaves.node_kind.shape[0], bound.depth
    return Scratch(
        scratch_left(n_nodes, bound.splits.root.shape[0], bound.marks.column.shape[0]),
        scratch_live(bound.components.leaf.shape[0]),
        np.empty(n_circuit, np.float64),
        np.empty(n_circuit, np.float64),
        np.empty(n_columns, np.int32),
        np.empty((n_columns, 2), np.int32),
        np.empty(2 * depth + 4, np.int32),
        np.empty(2 * depth + 4, np.float64),
        np.empty((depth + 3, STRIDE), np.float64),
        np.empty((bound.masses.level.shape[1], STRIDE), np.float64),
        np.empty(bound.marks.column.shape[0], np.float64),
    )


@kernel
def start_row(bound, evidence, X, other, row, post, at, most, room):
    """Find what is left of the trees and the live components; return the numbers of nodes and of marks."""
    n, n_used = what_is_left(bound.splits, X, other, row, room.stack, room.left)
    find_live(
        bound.columns, bound.leaves, evidence, bound.components, row, post, at, most, room.atom, room.value,
        room.weight, room.live,
    )  # fmt: skip
    return n, n_used


@kernel
def load(bound, evidence, n_used, first, room, mass):
    """Gather a block of components, from the first on; return their number, rounded up to 8, and their weight."""
    size = min(BLOCK, room.live.n_products[0] - first)
    gather(
        bound.columns, bound.leaves, evidence, bound.marks, bound.components, bound.masses, room.left.used, n_used,
        room.live, first, size, room.level_row, mass,
    )  # fmt: skip
    for u in range(n_used):
        room.base[u] = math.nan
    end, total = (size + 7) // 8 * 8, 0.0
    for i in range(end):
        room.vector[0, i] = room.live.weight[first + i] if i < size else 0.0
        total += room.vector[0, i]
    return end, total


@array_kernel
def arrive(bound, evidence, tolerance, n, n_used, room, mass):
    """Write the probability of each of the n nodes that are left (see `Left.mass`) for a row's live components."""
    left, live, splits = room.left, room.live, bound.splits
    left.mass[:n] = 0.0
    blocks = (live.n_products[0] + BLOCK - 1) // BLOCK
    for b in range(blocks):
        end, total = load(bound, evidence, n_used, b * BLOCK, room, mass)
        for tree in range(left.start.shape[0] - 1):
            budget = 0.5 * tolerance * bound.reach[splits.root[tree]] / blocks
            descend(
                splits, bound.reach, left, tree, room.vector, mass, room.base, end, total, budget, room.stack,
                room.stack_mass,
            )  # fmt: skip
    for i in range(live.n_products[0], live.n[0]):
        descend_circuit(
            bound.columns, bound.leaves, evidence, bound.marks, bound.components, splits, left, n_used,
            live.component[i], live.weight[i], room.value, room.region,
        )  # fmt: skip


@kernel
def weight_to_drop(half, splits, left, tolerance):
    """Posterior weight to leave out such that errors are at most half the tolerance of each output's range."""
    least = 1.0
    for k in range(half.shape[1]):
        whole, here = 0.0, 0.0
        for tree in range(left.start.shape[0] - 1):
            whole += half[splits.root[tree], k]
            here += half[left.node[left.start[tree]], k]
        if here > 0.0:
            least = min(least, 0.25 * tolerance * whole / here)
    return least


@entry
def expected_rows(bound, evidence, X, other, first, post, tolerance, out, error):
    """Expected sums over trees of rows first.. (those of the posterior), and bounds of their errors; both (n, K)."""
    room = scratch(bound)
    left, middle, half = room.left, bound.middle, bound.half
    mass = np.empty((256, STRIDE), np.float64)
    for at in range(post.log_evidence.shape[0]):
        row = first + at
        if post.log_evidence[at] == -math.inf:
            out[row], error[row] = math.nan, math.nan
            continue
        n, n_used = what_is_left(bound.splits, X, other, row, room.stack, left)
        most = weight_to_drop(half, bound.splits, left, tolerance) if tolerance > 0.0 else 0.0
        find_live(
            bound.columns, bound.leaves, evidence, bound.components, row, post, at, most, room.atom, room.value,
            room.weight, room.live,
        )  # fmt: skip
        mass = with_room(mass, n_used)
        arrive(bound, evidence, tolerance, n, n_used, room, mass)
        for k in range(middle.shape[1]):
            total, wrong, low, high = 0.0, 0.0, 0.0, 0.0
            for p in range(n):
                total += left.mass[p] * middle[left.node[p], k]
                wrong += left.mass[p] * half[left.node[p], k]
            for tree in range(left.start.shape[0] - 1):
                root = left.node[left.start[tree]]
                low += middle[root, k] - half[root, k]
                high += middle[root, k] + half[root, k]
            if room.live.dropped[0] > 0.0:
                wrong += room.live.dropped[0] * max(total - low, high - total)
            out[row, k], error[row, k] = total, wrong


@array_kernel
def with_room(mass, n_used):
    """The array, or a larger one if it has fewer than ``n_used`` rows."""
    return mass if mass.shape[0] >= n_used else np.empty((2 * n_used, STRIDE), np.float64)


@entry
def leaf_rows(bound, evidence, X, other, first, post):
    """Start, leaf and probability of the ensemble's leaves that rows first.. can reach."""
    room = scratch(bound)
    left = room.left
    mass = np.empty((256, STRIDE), np.float64)
    start = np.zeros(post.log_evidence.shape[0] + 1, np.int64)
    leaf, probability = np.empty(1024, np.int32), np.empty(1024, np.float64)
    end = 0
    for at in range(post.log_evidence.shape[0]):
        if post.log_evidence[at] > -math.inf:
            n, n_used = start_row(bound, evidence, X, other, first + at, post, at, 0.0, room)
            mass = with_room(mass, n_used)
            arrive(bound, evidence, 0.0, n, n_used, room, mass)
            if end + n > leaf.shape[0]:
                wider = max(2 * leaf.shape[0], end + n)
                leaf, probability = widened(leaf, end, wider), widened(probability, end, wider)
            for p in range(n):
                if left.mass[p] > 0.0 and left.right[p] < 0:
                    leaf[end], probability[end] = bound.splits.leaf[left.node[p]], left.mass[p]
                    end += 1
        start[at + 1] = end
    return start, leaf[:end].copy(), probability[:end].copy()
