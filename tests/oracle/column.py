"""One column given the rest of a row: levels, distribution function, density, quantiles."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .boxes import leaf_boxes, n_levels
from .density import log_joint
from .evidence import cell, everything, likelihood, likelihood_at, log_factor, within
from .slot import cell_number, piece


class Given(NamedTuple):
    """Column j, given the rest of a row's evidence: what is known of the column itself, and the leaves' weights."""

    model: object
    j: int
    known: object
    leaves: list  # (weight, leaf, box) of the leaves that the other columns leave possible


def given(model, evidence, i, j):
    """Column j given the evidence of row i.

    Weights are p(leaf, evidence on other columns) up to a common factor.
    """
    boxes, joint = leaf_boxes(model), log_joint(model, evidence, i, leave_out=j)
    top, met = joint.max(), np.flatnonzero(joint > -math.inf).tolist()
    leaves = [(math.exp(joint[leaf] - top), leaf, boxes[leaf]) for leaf in met]
    known = cell(evidence, i, j)
    if known is None and not model.columns.is_categorical[j]:
        known = everything(model, j)
    return Given(model, j, known, leaves)


def expectation(given, of_leaf):
    """sum_l p(leaf, the rest of the evidence) * of_leaf(leaf, box), up to the common factor of the weights."""
    return math.fsum(weight * of_leaf(leaf, box) for weight, leaf, box in given.leaves)


def probability_of(given, region):
    """p(column j in region | the rest), up to the common factor; a density if ``region`` is a value."""
    return expectation(given, lambda leaf, box: math.exp(log_factor(given.model, box, leaf, given.j, region)))


def level_probability(given):
    """p(level of column j | evidence)."""
    levels = range(n_levels(given.model, given.j))
    fits = [1.0 if given.known is None else likelihood(k, given.known) for k in levels]
    mass = [probability_of(given, float(k)) * fits[k] for k in levels]
    total = math.fsum(mass)
    return np.array(mass) / total if total > 0.0 else np.full(len(mass), math.nan)


def cdf(given, x):
    """P(X_j <= x | evidence); on a grid whole cells count, at their centres."""
    this, total = piece(given.model, 0, given.j), probability_of(given, given.known)
    if total == 0.0:
        return math.nan
    if isinstance(given.known, float):
        return float(given.known <= x)
    if this.step > 0.0:  # the upper edge of the last cell whose centre is at most x
        x = this.origin + (math.floor((x - this.origin) / this.step + 1e-9) + 0.5) * this.step
    return probability_of(given, within(given.known, this, -math.inf, x)) / total


def pdf(given, x):
    """Density (on atoms: mass) of column j at x, given evidence that is not a value of column j."""
    this, total = piece(given.model, 0, given.j), probability_of(given, given.known)
    if total == 0.0:
        return math.nan
    return probability_of(given, float(x)) * likelihood_at(x, this, given.known) / total


def quantile(given, q):
    """inf{x: F(x) >= q} by halving an interval; an atom or a cell centre exactly."""
    if math.isnan(cdf(given, 0.0)):
        return math.nan
    if isinstance(given.known, float):
        return given.known
    this = piece(given.model, 0, given.j)
    if this.step > 0.0:  # halve over the numbers of cells
        at = cell_number(this, this.a)
        lo, hi = bracket(lambda k: cdf(given, this.origin + k * this.step), q, at - 1, at + 1)
        while hi - lo > 1:
            middle = (lo + hi) // 2
            lo, hi = (lo, middle) if cdf(given, this.origin + middle * this.step) >= q else (middle, hi)
        return this.origin + hi * this.step
    lo, hi = bracket(lambda x: cdf(given, x), q, this.a - 1.0, this.a + 1.0)
    while hi - lo > 1e-13 * max(1.0, abs(lo), abs(hi)):
        middle = 0.5 * (lo + hi)
        lo, hi = (lo, middle) if cdf(given, middle) >= q else (middle, hi)
    return next((value for value, _ in this.atoms if lo < value <= hi), hi)


def bracket(distribution, q, lo, hi):
    """Widen (lo, hi) until F(lo) < q <= F(hi)."""
    while distribution(hi) < q:
        hi += 2 * (hi - lo)
    while distribution(lo) >= q:
        lo -= 2 * (hi - lo)
    return lo, hi
