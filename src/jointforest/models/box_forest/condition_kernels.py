"""Kernels of conditioning: in which runs of a region pieces have mass, and the trees of the leaves that stay."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.records import record
from .leaves.family_kernels import log_mass
from .leaves.piece_kernels import piece


@entry
def runs_inside(columns, leaves, evidence, leaf, slot, number, region):
    """The runs of a region in which each of n pieces of a numeric slot has mass; ``number`` is -1 of a whole density.

    Piece i, of leaf ``leaf[i]``, has mass in the runs ``run[start[i]:start[i + 1]]``, and log masses there times their
    likelihoods.
    """
    n_pieces, first_run, end_run = number.shape[0], evidence.run_start[region], evidence.run_start[region + 1]
    start = np.zeros(n_pieces + 1, np.int64)
    run, log_share = np.empty(n_pieces, np.int64), np.empty(n_pieces, np.float64)
    n = 0
    for i in range(n_pieces):
        d, log_weight = piece(leaves, leaf[i], slot, number[i])
        for q in range(first_run, end_run):
            u, v = max(evidence.run_lo[q], d.lo), min(evidence.run_hi[q], d.hi)
            if v - u > 0.5 * columns.step[slot]:  # less is rounding
                mass = log_weight + log_mass(d, u, v) + evidence.run_log_weight[q]
                if mass == -math.inf:
                    continue
                if n == run.shape[0]:
                    run = np.concatenate((run, np.empty_like(run)))
                    log_share = np.concatenate((log_share, np.empty_like(log_share)))
                run[n], log_share[n] = q, mass
                n += 1
        start[i + 1] = n
    return start, run[:n].copy(), log_share[:n].copy()


# ---- Kernels: trees restricted to some of their leaves.


@record
class NewNodes(NamedTuple):
    """What `restrict` writes: new trees, of which the arrays hold as many nodes, leaves and trees as the old ones had.

    Attributes
    ----------
    node : int64 array
        Which node each was; parents before children, tree by tree.
    left, right, number : int32 arrays
        Children, and the numbers of new leaves; -1 of others.
    root, old_tree : int32 arrays
        Root of each tree, and which tree it was.
    leaf : int64 array
        Which leaf each new leaf was.
    below : int64 array
        Scratch: how many leaves that stay are below each old node.
    stack, parent : int64 arrays, one longer than there are nodes
        Scratch: old nodes still to be visited (negative: a right child), and their new parents.
    """

    node: np.ndarray
    left: np.ndarray
    right: np.ndarray
    number: np.ndarray
    root: np.ndarray
    old_tree: np.ndarray
    leaf: np.ndarray
    below: np.ndarray
    stack: np.ndarray
    parent: np.ndarray


def new_nodes(n_nodes: int, n_leaves: int, n_trees: int) -> NewNodes:
    """Arrays for trees of at most so many nodes and leaves."""
    return NewNodes(
        node=np.empty(n_nodes, np.int64),
        left=np.full(n_nodes, -1, np.int32),
        right=np.full(n_nodes, -1, np.int32),
        number=np.full(n_nodes, -1, np.int32),
        root=np.empty(n_trees, np.int32),
        old_tree=np.empty(n_trees, np.int32),
        leaf=np.empty(n_leaves, np.int64),
        below=np.zeros(n_nodes, np.int64),
        stack=np.empty(n_nodes + 1, np.int64),
        parent=np.empty(n_nodes + 1, np.int64),
    )


@kernel
def count_below(trees, stays, below):
    """Write how many of the leaves that stay are below each node."""
    for q in range(below.shape[0] - 1, -1, -1):  # children come after their parent
        below[q] = stays[trees.leaf[q]] if trees.leaf[q] >= 0 else below[trees.left[q]] + below[trees.right[q]]


@entry
def restrict(trees, stays, new):
    """The trees of the leaves that stay (uint8 (L,)); returns how many new nodes, trees and leaves there are.

    The sibling of what goes takes their parent's place. Trees without leaves go.
    """
    below, stack, parent = new.below, new.stack, new.parent
    count_below(trees, stays, below)
    n, n_trees, n_leaves = 0, 0, 0
    for tree in range(trees.root.shape[0]):
        if below[trees.root[tree]] == 0:
            continue
        new.root[n_trees], new.old_tree[n_trees] = n, tree
        n_trees += 1
        stack[0], parent[0], height = trees.root[tree], -1, 1
        while height > 0:
            height -= 1
            q, above = abs(stack[height]), parent[height]
            side = new.right if stack[height] < 0 else new.left
            while trees.leaf[q] < 0 and (below[trees.left[q]] == 0 or below[trees.right[q]] == 0):
                q = np.int64(trees.right[q] if below[trees.left[q]] == 0 else trees.left[q])
            new.node[n] = q
            if above >= 0:
                side[above] = n
            if trees.leaf[q] < 0:
                stack[height], parent[height] = -trees.right[q], n
                stack[height + 1], parent[height + 1] = trees.left[q], n
                height += 2
            else:
                new.number[n], new.leaf[n_leaves] = n_leaves, trees.leaf[q]
                n_leaves += 1
            n += 1
    return n, n_trees, n_leaves


@entry
def weights_below(left, right, number, root, log_weight):
    """Weight of each node, (n,), from the leaves' log weights: 1 at roots; and the log weight of each tree, (t,)."""
    n = left.shape[0]
    weight, of_tree = np.empty(n, np.float64), np.empty(root.shape[0], np.float64)
    for t in range(root.shape[0]):
        end = root[t + 1] if t + 1 < root.shape[0] else n
        top = -np.inf
        for q in range(root[t], end):
            if number[q] >= 0:
                top = max(top, log_weight[number[q]])
        for q in range(end - 1, root[t] - 1, -1):
            weight[q] = np.exp(log_weight[number[q]] - top) if number[q] >= 0 else weight[left[q]] + weight[right[q]]
        total = weight[root[t]]
        weight[root[t] : end] /= total
        of_tree[t] = top + np.log(total)
    return weight, of_tree
