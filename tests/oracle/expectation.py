"""Expectations of an ensemble under a joint, from the definition: leaf by leaf, and completion by completion.

A row is a dict from the names of features to what the table says: a number, a label, or nothing (the name is absent).
Thresholds are not to lie within rounding of the centre of a cell, but may be one.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from ..random_cases.cells import Region, make_evidence
from .density import log_joint, log_sum


def goes_left(ensemble, node, cell):
    """Which way a known cell goes: numbers by the threshold, labels by their set, unknown labels by ``other_left``."""
    feature = int(ensemble.feature[node])
    if ensemble.levels_at[node] < 0:
        return float(cell) <= ensemble.threshold[node]
    levels = ensemble.categories[feature]
    if cell not in levels:
        return bool(ensemble.other_left[node])
    k = levels.index(cell)
    return bool(int(ensemble.left_levels[ensemble.levels_at[node] + k // 64]) >> (k % 64) & 1)


def value_at(ensemble, row):
    """The sums before the link of a complete row."""
    total = np.array(ensemble.base, dtype=float)
    for root in ensemble.root:
        node = int(root)
        while ensemble.leaf[node] < 0:
            left = goes_left(ensemble, node, row[ensemble.names[ensemble.feature[node]]])
            node = int(ensemble.left[node] if left else ensemble.right[node])
        total = total + ensemble.value[ensemble.leaf[node]]
    return total


def leaf_tests(ensemble, root, row):
    """For each leaf that a row can reach: its number, and the tests (node, goes left) on cells that the row lacks."""
    found = []

    def follow(node, tests):
        if ensemble.leaf[node] >= 0:
            found.append((int(ensemble.leaf[node]), tests))
            return
        name = ensemble.names[ensemble.feature[node]]
        known = name in row
        for left, child in ((True, int(ensemble.left[node])), (False, int(ensemble.right[node]))):
            if not known:
                follow(child, [*tests, (node, left)])
            elif goes_left(ensemble, node, row[name]) == left:
                follow(child, tests)

    follow(int(root), [])
    return found


def region_of(ensemble, column, tests):
    """What the tests leave of a column of the joint, as a region."""
    if column.is_categorical:
        kept = [
            k
            for k, level in enumerate(column.levels)
            if all(goes_left(ensemble, node, level) == left for node, left in tests)
        ]
        return Region(tuple((k - 0.5, k + 0.5) for k in kept))
    lo = max([float(ensemble.threshold[node]) for node, left in tests if not left], default=-math.inf)
    hi = min([float(ensemble.threshold[node]) for node, left in tests if left], default=math.inf)
    atoms = tuple(k for k, value in enumerate(column.atoms) if lo < value <= hi)
    if column.step > 0:
        lo, hi = edge_above(column, lo), edge_above(column, hi)
    return Region(((lo, hi),) if lo < hi else (), atoms)


def edge_above(column, x):
    """Upper edge of the last cell with a centre of at most x."""
    if math.isinf(x):
        return x
    k = math.floor((x - column.origin) / column.step + 1e-9)
    return column.origin + (k + 0.5) * column.step


def probability(model, ensemble, tests, cells):
    """P(the tests turn out so | known cells)."""
    known, boxed = list(cells), list(cells)
    for j, column in enumerate(model.schema.columns):
        mine = [t for t in tests if ensemble.names[ensemble.feature[t[0]]] == column.name]
        if mine:
            boxed[j] = region_of(ensemble, column, mine)
    both = make_evidence([boxed, known])
    return math.exp(log_sum(log_joint(model, both, 0)) - log_sum(log_joint(model, both, 1)))


def leaf_probability(model, ensemble, row, cells):
    """P(the row is in the leaf | known cells) of every leaf, (L,); ``cells`` are the row's as the joint has them."""
    out = np.zeros(len(ensemble.value))
    for root in ensemble.root:
        for leaf, tests in leaf_tests(ensemble, root, row):
            out[leaf] = probability(model, ensemble, tests, cells)
    return out


def mean(model, ensemble, row, cells):
    """E[F | known cells], Proposition 1 and linearity."""
    return ensemble.base + leaf_probability(model, ensemble, row, cells) @ ensemble.value


def second_moment(model, ensemble, row, cells):
    """E[F F' | known cells], (K, K), Lemma 2: over pairs of leaves."""
    base = ensemble.base
    total = np.outer(base, base)
    trees = [leaf_tests(ensemble, root, row) for root in ensemble.root]
    centred = mean(model, ensemble, row, cells) - base
    total = total + np.outer(base, centred) + np.outer(centred, base)
    for a, b in itertools.product(trees, trees):
        for (one, tests), (other, more) in itertools.product(a, b):
            p = probability(model, ensemble, tests + more, cells)
            total = total + p * np.outer(ensemble.value[one], ensemble.value[other])
    return total


def completions(model, cells):
    """All completions of a row of levels, and their probabilities given its known cells."""
    free = [j for j, cell in enumerate(cells) if cell is None]
    rows, weights = [], []
    for levels in itertools.product(*(range(len(model.schema.columns[j].levels)) for j in free)):
        whole = list(cells)
        for j, k in zip(free, levels, strict=True):
            whole[j] = float(k)
        rows.append(whole)
        weights.append(math.exp(log_sum(log_joint(model, make_evidence([whole]), 0))))
    return rows, np.array(weights) / math.fsum(weights)


def enumerated(model, ensemble, row, cells, function):
    """E[function(F) | known cells], by all completions of a row of levels."""
    total = 0.0
    for whole, p in zip(*completions(model, cells), strict=True):
        known = {c.name: c.levels[int(x)] for c, x in zip(model.schema.columns, whole, strict=True)}
        total = total + p * function(value_at(ensemble, {**known, **row}))
    return total
