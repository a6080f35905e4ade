"""Log-density, and the posterior of the leaves: a plain sum over all leaves."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from .boxes import leaf_boxes
from .evidence import cell, log_factor


def log_joint(model, evidence, i, leave_out=None):
    """log p(leaf, evidence of row i) of every leaf; column ``leave_out`` counts as missing."""
    boxes, result = leaf_boxes(model), np.empty(len(model.leaves.log_weight))
    known = [None if j == leave_out else cell(evidence, i, j) for j in range(len(model.columns.slot))]
    for leaf in range(len(result)):
        result[leaf] = float(model.leaves.log_weight[leaf]) + log_leaf(model, boxes[leaf], leaf, known)
    return result


def log_leaf(model, box, leaf, known):
    """Log p(what is known) in a leaf, a product over columns."""
    return sum(log_factor(model, box, leaf, j, known[j]) for j in range(len(known)))


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
    tree = model.leaves.tree
    share = posterior(model, evidence, i)[tree == len(model.trees.root) - 1]
    return float(share.sum()) * model.has_background  # NaN * 0 is NaN
