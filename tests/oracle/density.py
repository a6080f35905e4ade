"""Log-density, and the posterior of the leaves: a plain sum over all leaves; the circuits of leaves by recursion."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from .boxes import leaf_boxes
from .evidence import cell, log_factor

SUM, PRODUCT, FACTORS = 0, 1, 2


def log_joint(model, evidence, i, leave_out=None):
    """log p(leaf, evidence of row i) of every leaf; column ``leave_out`` counts as missing."""
    boxes, result = leaf_boxes(model), np.empty(len(model.leaves.log_weight))
    known = [None if j == leave_out else cell(evidence, i, j) for j in range(len(model.columns.slot))]
    for leaf in range(len(result)):
        result[leaf] = float(model.leaves.log_weight[leaf]) + log_leaf(model, boxes[leaf], leaf, known)
    return result


def log_leaf(model, box, leaf, known):
    """Log p(what is known) in a leaf: its product over columns, or its circuit's root."""
    if circuit_root(model, leaf) is None:
        return sum(log_factor(model, box, leaf, j, known[j]) for j in range(len(known)))
    return log_node(model, box, circuit_root(model, leaf), known)


def circuit_root(model, leaf):
    """The first of the leaf's nodes; None if it has none."""
    first, end = model.leaves.node_start[leaf : leaf + 2]
    return int(first) if first < end else None


def children(model, node):
    """The nodes right below a node, which come after it, side by side."""
    result, child = [], node + 1
    while child < model.leaves.node_end[node]:
        result.append(child)
        child = int(model.leaves.node_end[child])
    return result


def factors(model, node):
    """The row of a FACTORS node, and the columns that it describes, by counting the nodes of its kind before it."""
    k = int(np.sum(model.leaves.node_kind[:node] == FACTORS))
    return int(model.leaves.node_row[node]), np.flatnonzero(model.leaves.scope[k]).tolist()


def log_node(model, box, node, known):
    """Log p(what is known) below a node, from the definition of the three kinds of nodes."""
    kind = model.leaves.node_kind[node]
    if kind == FACTORS:
        row, columns = factors(model, node)
        return sum(log_factor(model, box, row, j, known[j]) for j in columns)
    below = [log_node(model, box, child, known) for child in children(model, node)]
    if kind == PRODUCT:
        return sum(below)
    return log_sum(below + model.leaves.node_log_weight[children(model, node)])


def describing(model, box, node, known, j):
    """``(log weight, row)`` of the rows that describe column j below a node: p(known) below it is their sum.

    Column j itself is not to be known.
    """
    kind = model.leaves.node_kind[node]
    if kind == FACTORS:
        row, columns = factors(model, node)
        return [(log_node(model, box, node, known), row)] if j in columns else []
    result = []
    for child in children(model, node):
        others = 0.0
        if kind == PRODUCT:
            others = sum(log_node(model, box, c, known) for c in children(model, node) if c != child)
        else:
            others = float(model.leaves.node_log_weight[child])
        result += [(others + weight, row) for weight, row in describing(model, box, child, known, j)]
    return result


def log_sum(log_values):
    """log of the sum of exponentials; -inf if there is nothing to sum."""
    return float(logsumexp(log_values)) if np.any(np.isfinite(log_values)) else -math.inf


def log_density(model, evidence):
    """log p(evidence), a plain sum over all leaves, and the penalty of unseen levels."""
    n = len(evidence.value)
    return np.array([log_sum(log_joint(model, evidence, i)) + evidence.log_penalty[i] for i in range(n)])


def posterior(model, evidence, i):
    """p(leaf | evidence of row i) by Bayes' rule; NaN if the evidence is impossible."""
    joint = log_joint(model, evidence, i)
    total = log_sum(joint)
    return np.exp(joint - total) if total > -math.inf else np.full(len(joint), math.nan)


def background_weight(model, evidence, i):
    """Posterior weight of the background, the last tree's leaf; 0 without one; NaN for impossible evidence."""
    tree = model.leaves.tree[: len(model.leaves.log_weight)]
    share = posterior(model, evidence, i)[tree == len(model.trees.root) - 1]
    return float(share.sum()) * model.has_background  # NaN * 0 is NaN
