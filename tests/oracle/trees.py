"""One column given the rest of a row, by trees that are weighed by what they say of the evidence."""

from __future__ import annotations

import math

import numpy as np

from .boxes import MIXED, leaf_boxes, level_bit, n_levels
from .column import given, probability_of
from .evidence import Set, cell, everything, is_level_in, log_factor
from .slot import piece


def combined(model, evidence, i, j, beta):
    """Column j given the evidence of row i, by a weighted mean of the trees' own conditionals; see `given`.

    Tree t counts (pi_t p_t(evidence))^beta, the background nothing (Correia et al. 2020, section 4: 0 is GeF, 1 GeF+
    without background). A tree with p_t = 0 has a say only for beta = 0, or if all are such: then all count the same,
    and it speaks by the leaves that the evidence can reach, weighed by their shares of rows.
    """
    whole = given(model, evidence, i, j)
    n_trees = len(model.trees.root) - model.has_background
    tree = model.leaves.tree
    parts = [whole._replace(leaves=[x for x in whole.leaves if tree[x[1]] == t]) for t in range(n_trees)]
    p = [probability_of(part, whole.known) for part in parts]
    fallen = [x == 0.0 for x in p]
    for t in np.flatnonzero(fallen):
        parts[t] = whole._replace(leaves=without_densities(model, evidence, i, j, t))
    total = [probability_of(part, whole.known) for part in parts]
    if all(fallen) or beta == 0.0:
        share = [float(x > 0.0) for x in total]
    else:
        share = [0.0 if x == 0.0 else x**beta for x in p]
    leaves = [
        (s / x * weight, row, box)
        for part, s, x in zip(parts, share, total, strict=True)
        if s > 0.0
        for weight, row, box in part.leaves
    ]
    return whole._replace(leaves=leaves)


def without_densities(model, evidence, i, j, t):
    """(weight, leaf, box) of the leaves of tree t that row i can reach.

    Weights are shares of rows, whatever densities say; if column j is known to be in a set, each row counts what the
    set leaves of it, and the share is of what is left.
    """
    boxes, result, known = leaf_boxes(model), [], cell(evidence, i, j)
    for leaf in reached(model, evidence, i, int(model.trees.root[t])):
        left = math.exp(log_factor(model, boxes[leaf], leaf, j, known)) if isinstance(known, Set) else 1.0
        if left > 0.0:
            result.append((math.exp(model.leaves.log_weight[leaf]) / left, leaf, boxes[leaf]))
    return result


def reached(model, evidence, i, node):
    """Leaves below a node whose splits, each by itself, row i's evidence can pass."""
    trees, j = model.trees, int(model.trees.feature[node])
    if j == -1:
        return [int(trees.leaf[node])]
    if j == MIXED:
        return reached(model, evidence, i, int(trees.left[node])) + reached(model, evidence, i, int(trees.right[node]))
    known = cell(evidence, i, j)
    if model.columns.is_categorical[j]:
        levels = [k for k in range(n_levels(model, j)) if known is None or is_level_in(k, known)]
        left = any(level_bit(trees, node, k) for k in levels)
        right = any(not level_bit(trees, node, k) for k in levels)
    else:
        cut = float(trees.threshold[node])
        if known is None:
            known = everything(model, j)
        if isinstance(known, Set):
            atoms = [value for k, (value, _) in enumerate(piece(model, 0, j).atoms) if k in known.atoms]
            left = any(lo < cut for lo, _ in known.runs) or any(x <= cut for x in atoms)
            right = any(hi > cut for _, hi in known.runs) or any(x > cut for x in atoms)
        else:
            left, right = known <= cut, known > cut
    result = reached(model, evidence, i, int(trees.left[node])) if left else []
    return result + (reached(model, evidence, i, int(trees.right[node])) if right else [])
