"""Hidden trees, the slow way: all combinations of states one by one, columns as clouds of points with masses."""

from __future__ import annotations

import itertools
import math

import numpy as np

from . import scale as one_scale
from .evidence import Set, cell


def row_of(hidden, evidence, i):
    """What is known of each column in row i."""
    return [cell(evidence, i, j) for j in range(len(hidden.schema.columns))]


def likelihood(column, x, is_mass, known):
    """How likely the value x of a column is by what is known of it: nothing, a number, or a `Set`."""
    if known is None:
        return 1.0
    if isinstance(known, Set):
        if is_mass and x in column.atoms and column.step == 0.0:
            k = column.atoms.index(x)
            return known.weight_of(k) if k in known.atoms else 0.0
        return math.fsum(w for (lo, hi), w in known.weighed_runs() if lo < x <= hi)
    return float(x == cell_of(column, known))


def cell_of(column, x):
    """A number, on a grid the centre of its cell."""
    return column.center + round((x - column.center) / column.step) * column.step if column.step > 0.0 else x


def has(scale, x):
    """Whether any of the scale's segments holds a value."""
    return any(lo < x <= hi or lo == hi == x for lo, hi in zip(scale.lo, scale.hi, strict=True))


def by_code(hidden, j, known):
    """Mean of what is known in each code of a column, (K,); of a value its base density."""
    scale, column = hidden.scales[j], hidden.schema.columns[j]
    found = np.zeros(scale.n_codes)
    if known is None:
        return found + 1.0
    if isinstance(known, Set):
        code, _, mass = cloud(hidden, j, known, [])
        return np.array([math.fsum(mass[code == c]) for c in range(scale.n_codes)])
    known = cell_of(column, known)
    if has(scale, known):
        code, density = one_scale.base_density(scale, known)
        found[code] = density
    return found


def cloud(hidden, j, known, cuts):
    """Code, place and (mass in the code times likelihood) of the points of a column of which no value is known."""
    edges = [edge for run in known.runs for edge in run] if isinstance(known, Set) else []
    code, x, mass, is_mass = one_scale.cloud(hidden.scales[j], [*edges, *cuts])
    column = hidden.schema.columns[j]
    return code, x, mass * [likelihood(column, a, m, known) for a, m in zip(x.tolist(), is_mass, strict=True)]


def combinations(tree):
    """Every combination of states, and its probability."""
    for states in itertools.product(*(range(table.shape[1]) for table in tree.transition)):
        p = 1.0
        for k, z in enumerate(states):
            above = states[tree.parent[k]] if tree.parent[k] >= 0 else 0
            p *= float(tree.transition[k][above, z])
        if p > 0.0:
            yield states, p


class Given:
    """What is known of each column of a row, and sums over all trees and combinations of states."""

    def __init__(self, hidden, knowns):
        self.hidden, self.knowns = hidden, knowns
        self.inside = [by_code(hidden, j, known) for j, known in enumerate(knowns)]
        self.probability, self.of_code = 0.0, [np.zeros(len(vector)) for vector in self.inside]
        for tree, log_weight in zip(hidden.trees, hidden.log_weight, strict=True):
            for states, p in combinations(tree):
                self._add(tree, states, math.exp(log_weight) * p)

    def _add(self, tree, states, p):
        """Add a combination of states to p(evidence) and, of each column, p(code, evidence)."""
        nodes = [(k, j) for k, j in enumerate(tree.column.tolist()) if j >= 0]
        each = {j: tree.emission[k][states[k]].astype(float) * self.inside[j] for k, j in nodes}
        self.probability += p * math.prod(each[j].sum() for j in each)
        for j, vector in each.items():
            self.of_code[j] += p * math.prod(each[i].sum() for i in each if i != j) * vector

    def codes(self, j):
        """p(code | evidence), (K,)."""
        return self.of_code[j] / self.probability


def log_density(given):
    """log p(evidence)."""
    return math.log(given.probability) if given.probability > 0.0 else -math.inf


def distribution(given, j, cuts=()):
    """Points of a column and their masses given the evidence; exact sums end at cuts."""
    known = given.knowns[j]
    if known is not None and not isinstance(known, Set):
        return np.array([cell_of(given.hidden.schema.columns[j], known)]), np.ones(1)
    code, x, mass = cloud(given.hidden, j, known, list(cuts))
    inside = given.inside[j]
    return x, (given.codes(j) / np.where(inside > 0.0, inside, 1.0))[code] * mass


def level_probability(given, j):
    """Probability of each level."""
    x, share = distribution(given, j)
    return np.array([math.fsum(share[x == k]) for k in range(len(given.hidden.schema.columns[j].levels))])


def mean_variance(given, j):
    """Mean and variance of a numeric column."""
    x, share = distribution(given, j)
    mean = math.fsum(share * x)
    return mean, math.fsum(share * (x - mean) ** 2)


def cdf(given, j, points):
    """P(column <= x) at points."""
    x, share = distribution(given, j, points)
    step = given.hidden.scales[j].step
    return np.array([math.fsum(share[x <= at + 1e-9 * step]) for at in points])


def pdf(given, j, at):
    """Density of a number of a column of which no value is known: its part of p(evidence, number)."""
    column, scale = given.hidden.schema.columns[j], given.hidden.scales[j]
    at = cell_of(column, at)
    if not has(scale, at):
        return 0.0
    code, density = one_scale.base_density(scale, at)
    if given.inside[j][code] == 0.0:
        return 0.0
    said = likelihood(column, at, at in column.atoms, given.knowns[j])
    return given.codes(j)[code] / given.inside[j][code] * density * said


def all_codes(given):
    """p(codes of all columns | evidence), an array with one axis a column."""
    total = np.zeros([len(vector) for vector in given.inside])
    for tree, log_weight in zip(given.hidden.trees, given.hidden.log_weight, strict=True):
        for states, p in combinations(tree):
            of = {
                j: tree.emission[k][states[k]].astype(float) * given.inside[j]
                for k, j in enumerate(tree.column)
                if j >= 0
            }
            part = np.array(math.exp(log_weight) * p)
            for j in range(total.ndim):
                part = part[..., None] * of[j]
            total += part
    return total / total.sum()


def missing_rate(given, j):
    """How often a free cell is blank in rows drawn with missing cells: the mean over its states."""
    total = 0.0
    for tree, log_weight in zip(given.hidden.trees, given.hidden.log_weight, strict=True):
        for states, p in combinations(tree):
            fits = [tree.emission[k][states[k]] @ given.inside[i] for k, i in enumerate(tree.column) if i >= 0]
            k = list(tree.column).index(j)
            k = tree.missing_at[k] if len(tree.missing_at) else k
            total += math.exp(log_weight) * p * math.prod(fits) * tree.blank[k][states[k]]
    return float(total / given.probability)


def states(given, j):
    """p(state of the column's node | evidence), tree after tree."""
    found = []
    for tree, log_weight in zip(given.hidden.trees, given.hidden.log_weight, strict=True):
        k = tree.node[j]
        share = [0.0] * tree.transition[k].shape[1]
        for z, p in combinations(tree):
            fits = [tree.emission[i][z[i]] @ given.inside[c] for i, c in enumerate(tree.column) if c >= 0]
            share[z[k]] += math.exp(log_weight) * p * math.prod(map(float, fits))
        found += share
    return np.array(found) / given.probability


def is_far(given):
    """Whether a cell lies beyond the observed range, with less than a thousandth of a row expected as far out."""
    for j, (column, known) in enumerate(zip(given.hidden.schema.columns, given.knowns, strict=True)):
        if column.is_categorical or known is None:
            continue
        if isinstance(known, Set):
            atoms = [column.atoms[k] for k in known.atoms if k < len(column.atoms)]
            ends = [edge for run in known.runs for edge in run] + atoms
            if not ends:
                continue
            lo, hi = min(ends), max(ends)
        else:
            lo, hi = known - column.step / 2, known + column.step / 2
        scale = given.hidden.scales[j]
        rows = column.n_observed / scale.n_codes
        code, x, mass, _ = one_scale.cloud(scale, [a for a in (lo, hi) if math.isfinite(a)])
        if lo > column.maximum and rows * math.fsum(mass[(code == scale.n_codes - 1) & (x > lo)]) < 1e-3:
            return True
        if hi < column.minimum and rows * math.fsum(mass[(code == 0) & (x <= hi)]) < 1e-3:
            return True
    return False
