"""Contaminated parameters: every combination of vertices of the credal sets, or random points inside them."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar

from .boxes import leaf_boxes, level_bit
from .evidence import cell
from .moments import parent_pdf
from .slot import NORMAL, UNIFORM, cell_of, level_mass, log, parent_mass, piece


class TooMany(Exception):
    """There are more combinations of vertices than a test should go through."""


class Vertices:
    """Every combination of vertices of the credal sets at once: each parameter is an axis of the arrays."""

    def __init__(self, epsilon, most=300_000):
        self.epsilon, self.most, self.axes = epsilon, most, {}

    def along(self, key, candidates):
        """An array of a parameter's candidates along its own axis."""
        axis = self.axes.setdefault(key, len(self.axes))
        if axis >= 30:  # a limit of numpy's
            raise TooMany
        return np.asarray(candidates, float).reshape([-1] + [1] * axis)

    def weights(self, key, p):
        """(1 - epsilon) p + epsilon v for every vertex v: an array for each outcome."""
        p = np.asarray(p, float)
        rows = (1.0 - self.epsilon) * p + self.epsilon * np.eye(len(p))
        return [self.along(key, rows[:, k]) for k in range(len(p))]

    def means(self, key, piece, move, density):
        """Both ends, and the mean between them at which the density is greatest, by golden sections."""
        if move == 0.0:
            return piece.a
        ends = (piece.a - move, piece.a + move)
        best = minimize_scalar(lambda m: -log(density(m)), bounds=ends, method="bounded", options={"xatol": 1e-11})
        return self.along(key, [*ends, best.x])

    def combined(self, how, a, b):
        """``how(a, b)`` over all combinations, if they are not too many."""
        if math.prod(np.broadcast_shapes(np.shape(a), np.shape(b))) > self.most:
            raise TooMany
        return how(a, b)


class Interior:
    """Random points of the credal sets, all along one axis."""

    def __init__(self, epsilon, n, seed):
        self.epsilon, self.n, self.rng, self.drawn = epsilon, n, np.random.default_rng(seed), {}

    def weights(self, key, p):
        if key not in self.drawn:  # from corners to middles
            v = self.rng.dirichlet(np.full(len(p), self.rng.choice([0.05, 1.0])), size=self.n)
            self.drawn[key] = (1.0 - self.epsilon) * np.asarray(p) + self.epsilon * v
        return list(self.drawn[key].T)

    def means(self, key, piece, move, density):
        if key not in self.drawn:
            self.drawn[key] = piece.a + move * self.rng.uniform(-1, 1, size=self.n)
        return self.drawn[key]

    def combined(self, how, a, b):
        return how(a, b)


def contaminated(model, evidence, i, j, level, choice, tree, c, unit=None):
    """p_t(column j has the level, evidence of row i) in one tree, under every choice of the parameters.

    ``choice`` is a `Vertices` or an `Interior`; means move by up to ``c * epsilon`` standard deviations of the leaf, or
    units of the column.
    """
    known = [cell(evidence, i, k) for k in range(len(model.columns.slot))]
    known[j] = float(level)
    moves = (j, c * choice.epsilon, unit)
    return contaminated_node(model, int(model.trees.root[tree]), known, choice, moves, leaf_boxes(model))


def leaf_sum(model, node):
    """Weight of the leaves below a node of a tree."""
    leaf = int(model.trees.leaf[node])
    if leaf >= 0:
        return math.exp(model.leaves.log_weight[leaf])
    return leaf_sum(model, int(model.trees.left[node])) + leaf_sum(model, int(model.trees.right[node]))


def contaminated_node(model, node, known, choice, moves, boxes):
    """A split is a sum over its sides; a side that the evidence excludes counts 0, but may be given weight."""
    trees = model.trees
    if trees.leaf[node] >= 0:
        leaf = int(trees.leaf[node])
        return contaminated_leaf(model, leaf, known, choice, moves, boxes[leaf])
    f, sides = int(trees.feature[node]), (int(trees.left[node]), int(trees.right[node]))
    w = np.array([leaf_sum(model, side) for side in sides])
    w = choice.weights(("split", node), w / w.sum())
    total = 0.0
    for k, side in enumerate(sides):
        if f >= 0 and known[f] is not None:
            here = trees.threshold[node] >= known[f]
            if model.columns.is_categorical[f]:
                here = level_bit(trees, node, int(known[f]))
            if here != (k == 0):
                continue
        below = contaminated_node(model, side, known, choice, moves, boxes)
        total = choice.combined(np.add, total, choice.combined(np.multiply, w[k], below))
    return total


def contaminated_leaf(model, row, known, choice, moves, box):
    """The product of a leaf's distributions."""
    total, target, (_, levels) = 1.0, moves[0], box
    for j in range(len(known)):
        if known[j] is None:
            continue
        if model.columns.is_categorical[j]:
            factor = choice.weights(("levels", row, j), level_mass(model, row, j))[int(known[j])]
            if j == target and known[j] not in levels.get(j, {known[j]}):
                factor = 0.0 * factor  # the box stays as it is
        else:
            factor = contaminated_number(model, row, j, known[j], choice, moves)
        total = choice.combined(np.multiply, total, factor)
    return total


def contaminated_number(model, row, j, x, choice, moves):
    """Density of a number: its atom, or the rest's contaminated share of a density whose mean moves."""
    this, (_, reach, unit) = piece(model, row, j), moves

    def rest(mean):
        return moved_density(this, mean, x)

    share, parts = 1.0, this.parts
    if parts:
        at = [k for k, (_, part) in enumerate(parts) if part.lo < x <= part.hi]
        shares = choice.weights(("pieces", row, j), [share for share, _ in parts])
        share, this = (shares[at[0]], parts[at[0]][1]._replace(atoms=this.atoms, rest=this.rest)) if at else (0.0, this)
    move = (reach * (this.b if unit is None else unit[j])) if this.family == NORMAL else 0.0
    inside = rest(this.a) if not parts or at else 0.0
    if this.family == NORMAL and inside > 0.0:
        inside = rest(choice.means(("mean", row, j), this, move, rest))
    inside = choice.combined(np.multiply, share, inside)
    if not this.atoms:
        return inside
    w = choice.weights(("atoms", row, j), [*(mass for _, mass in this.atoms), this.rest])
    lo, hi = (x, x) if this.step == 0.0 else cell_of(this, x)
    own = [k for k, (value, _) in enumerate(this.atoms) if value == x or lo < value <= hi]
    if this.step == 0.0:
        return w[own[0]] if own else w[-1] * inside
    return sum(w[k] for k in own) / this.step + w[-1] * inside


def moved_density(piece, mean, x):
    """Density of the truncated part (mass of the cell over its width) if the parent had this mean; works on arrays."""
    piece = piece._replace(a=mean)
    lo, hi = (x, x) if piece.step == 0.0 else cell_of(piece, x)
    if not piece.lo < 0.5 * (lo + hi) <= piece.hi:
        return 0.0 * np.asarray(mean)
    whole = 1.0 if piece.family == UNIFORM else parent_mass(piece, piece.lo, piece.hi)
    if piece.step > 0.0:
        return parent_mass(piece, lo, hi) / whole / piece.step
    if piece.family == NORMAL:
        z = (x - mean) / piece.b
        return np.exp(-0.5 * z * z) / (math.sqrt(2 * math.pi) * piece.b) / whole
    return parent_pdf(piece, x) / whole
