"""A slow, obvious oracle for every query, from the definition; shares no code with the package.

The forest density is the mixture of Watson et al. (AISTATS 2023, section 4, Alg. 2), as in `docs/design.md`:

    M(x) = sum_l w_l * 1[x in B_l] * prod_j D_lj(x_j)

over the leaves l of all trees, with boxes ``B_l`` half-open, ``(lo, hi]``. In a leaf with a circuit the value of the
circuit's root stands for the product over j, by recursion. Every function here goes through all leaves.
Its only source of numbers are the plain arrays of a `Model` and of an `Evidence`. It is meant for mild parameters,
where differences of distribution functions are accurate.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import mpmath
import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, ndtr, stdtr

NORMAL, UNIFORM, STUDENT = 0, 1, 2
SUM, PRODUCT, FACTORS = 0, 1, 2
Runs = list[tuple[float, float]]


class Set(NamedTuple):
    """A set of values of one column: runs (lo, hi] and the numbers of atoms."""

    runs: Runs
    atoms: set[int]


# --------------------------------------------------------------------------------------------- the boxes of the leaves


def leaf_boxes(model):
    """Box of every leaf: {column: (lo, hi)} and {column: set of levels}, by following every path from every root."""
    boxes = {}
    for root in model.trees.root:
        follow(model, int(root), {}, {}, boxes)
    return boxes


def follow(model, node, bounds, levels, boxes):
    """Go down both ways; note the box at leaves. Columns without a split on the path are absent from the box."""
    trees, j = model.trees, int(model.trees.feature[node])
    if j < 0:
        boxes[int(trees.leaf[node])] = (bounds, levels)
        return
    left, right = int(trees.left[node]), int(trees.right[node])
    if model.columns.is_categorical[j]:
        goes_left = {k for k in range(n_levels(model, j)) if level_bit(trees, node, k)}
        here = levels.get(j, set(range(n_levels(model, j))))
        follow(model, left, bounds, {**levels, j: here & goes_left}, boxes)
        follow(model, right, bounds, {**levels, j: here - goes_left}, boxes)
    else:
        (lo, hi), cut = bounds.get(j, (-math.inf, math.inf)), float(trees.threshold[node])
        follow(model, left, {**bounds, j: (lo, min(hi, cut))}, levels, boxes)
        follow(model, right, {**bounds, j: (max(lo, cut), hi)}, levels, boxes)


def level_bit(trees, node, k):
    """Whether level k goes left at a categorical node."""
    word = int(trees.left_levels[trees.levels_at[node] + k // 64])
    return word >> (k % 64) & 1 == 1


def n_levels(model, j):
    """Number of levels of a categorical column."""
    s = model.columns.slot[j]
    return int(model.columns.level_start[s + 1] - model.columns.level_start[s])


# -------------------------------------------------------------------------------- one numeric column in one leaf: D_lj


class Piece(NamedTuple):
    """A numeric column's distribution in a leaf: atoms, and a truncated parent that holds the rest of the mass."""

    atoms: list[tuple[float, float]]  # (value, mass)
    rest: float
    family: int
    a: float
    b: float
    lo: float
    hi: float
    step: float
    origin: float


def piece(model, leaf, j):
    """The distribution of numeric column j in a leaf."""
    c, v, s = model.columns, model.leaves, int(model.columns.slot[j])
    numbers = range(int(c.atom_start[s]), int(c.atom_start[s + 1]))
    atoms = [(float(c.atom_value[k]), float(v.atom_mass[leaf, k])) for k in numbers]
    parameters = (float(array[leaf, s]) for array in (v.a, v.b, v.lo, v.hi))
    rest = 1.0 - math.fsum(mass for _, mass in atoms)
    return Piece(atoms, max(rest, 0.0), int(v.family[leaf, s]), *parameters, float(c.step[s]), float(c.origin[s]))


def parent_mass(piece, u, v):
    """P(u < X <= v) of the untruncated parent; works on arrays."""
    if piece.family == UNIFORM:
        return (v - u) / (piece.hi - piece.lo)
    cdf = ndtr if piece.family == NORMAL else lambda z: stdtr(4.0, z)
    u, v = (u - piece.a) / piece.b, (v - piece.a) / piece.b
    # Above the centre the difference of upper tails keeps more digits than that of lower ones.
    return np.where(np.asarray(u) > 0.0, cdf(-u) - cdf(-v), cdf(v) - cdf(u))


def parent_log_pdf(piece, x):
    """Log-density of the untruncated parent, in 30 digits so that no square overflows."""
    if piece.family == UNIFORM:
        return -math.log(piece.hi - piece.lo)
    with mpmath.workdps(30):
        z = (mpmath.mpf(x) - piece.a) / piece.b
        if piece.family == NORMAL:
            return float(-z * z / 2 - mpmath.log(2 * mpmath.pi) / 2 - mpmath.log(piece.b))
        return float(mpmath.log(mpmath.mpf(3) / 8) - mpmath.log(1 + z * z / 4) * 5 / 2 - mpmath.log(piece.b))


def log(x):
    """Logarithm with log 0 = -inf."""
    return math.log(x) if x > 0.0 else -math.inf


def rest_log_pdf(piece, x):
    """Log-density of the truncated part at x."""
    if not piece.lo < x <= piece.hi:
        return -math.inf
    return parent_log_pdf(piece, x) - log(parent_mass(piece, piece.lo, piece.hi))


def rest_mass(piece, u, v):
    """P(u < X <= v) of the truncated part."""
    u, v = max(u, piece.lo), min(v, piece.hi)
    return float(parent_mass(piece, u, v) / parent_mass(piece, piece.lo, piece.hi)) if u < v else 0.0


def cell_number(piece, x):
    """Number of the grid cell ``(centre - step/2, centre + step/2]`` that x lies in."""
    return math.ceil((x - piece.origin) / piece.step - 0.5)


def cell_of(piece, x):
    """Bounds of the grid cell that x lies in."""
    k = cell_number(piece, x)
    return piece.origin + (k - 0.5) * piece.step, piece.origin + (k + 0.5) * piece.step


def value_log_density(piece, x):
    """Design, "Densities of one column in one leaf": atom, density, or mass of the cell over its width."""
    if piece.step == 0.0:
        for value, mass in piece.atoms:
            if value == x:
                return log(mass)
        return log(piece.rest) + rest_log_pdf(piece, x)
    lo, hi = cell_of(piece, x)
    on_atom = math.fsum(mass for value, mass in piece.atoms if lo < value <= hi)
    return log(on_atom + piece.rest * rest_mass(piece, lo, hi)) - math.log(piece.step)


def set_mass(piece, region):
    """Design, same place: the region's atoms, and the rest's mass of its runs."""
    on_atoms = math.fsum(mass for k, (_, mass) in enumerate(piece.atoms) if k in region.atoms)
    return on_atoms + piece.rest * math.fsum(rest_mass(piece, lo, hi) for lo, hi in region.runs)


def level_mass(model, leaf, j):
    """Masses of the levels of categorical column j in a leaf."""
    at = model.columns.level_start[model.columns.slot[j]]
    return [float(m) for m in model.leaves.level_mass[leaf, at : at + n_levels(model, j)]]


# ------------------------------------------------------------------------------------------------------------ evidence


def cell(evidence, i, j):
    """What is known of a cell: None, a float, or a `Set`."""
    if not math.isnan(evidence.value[i, j]):
        return float(evidence.value[i, j])
    if evidence.region.size == 0 or evidence.region[i, j] < 0:
        return None
    r = int(evidence.region[i, j])
    runs = range(int(evidence.run_start[r]), int(evidence.run_start[r + 1]))
    bits = int(evidence.atoms[r])
    return Set(
        [(float(evidence.run_lo[q]), float(evidence.run_hi[q])) for q in runs], {k for k in range(64) if bits >> k & 1}
    )


def log_factor(model, box, leaf, j, known):
    """Log of 1[x_j in B_lj] * D_lj(what is known of x_j): a density for a value, a mass for a set, 1 for nothing.

    ``leaf`` is a row of the parameter tables: a leaf, or a part of a circuit.
    """
    bounds, levels = box
    if known is None:
        return 0.0
    if model.columns.is_categorical[j]:
        allowed = levels.get(j, set(range(n_levels(model, j))))
        meant = {k for k in allowed if is_level_in(k, known)}
        return log(math.fsum(m for k, m in enumerate(level_mass(model, leaf, j)) if k in meant))
    lo, hi = bounds.get(j, (-math.inf, math.inf))
    this = piece(model, leaf, j)
    if isinstance(known, Set):
        return log(set_mass(this, within(known, this, lo, hi)))
    return value_log_density(this, known) if lo < known <= hi else -math.inf


def is_level_in(k, known):
    """Whether level k agrees with a value or a set."""
    return any(lo < k <= hi for lo, hi in known.runs) if isinstance(known, Set) else k == known


def within(region, piece, lo, hi):
    """The part of a set that lies in (lo, hi]."""
    runs = [(max(u, lo), min(v, hi)) for u, v in region.runs if max(u, lo) < min(v, hi)]
    return Set(runs, {k for k in region.atoms if k < len(piece.atoms) and lo < piece.atoms[k][0] <= hi})


def everything(model, j):
    """The set of all values of a numeric column."""
    s = model.columns.slot[j]
    return Set([(-math.inf, math.inf)], set(range(int(model.columns.atom_start[s + 1] - model.columns.atom_start[s]))))


# -------------------------------------------------------------------------------------------- density and the posterior


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


# -------------------------------------------------------------------------------------------- the circuits of leaves


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


# ------------------------------------------------------------------------------ one column, given the other columns


class Given(NamedTuple):
    """Column j, given the rest of a row's evidence: what is known of the column itself, and the leaves' weights."""

    model: object
    j: int
    known: object
    leaves: list  # (weight, row, box) of the rows of the tables that the other columns leave possible


def given(model, evidence, i, j):
    """Column j given the evidence of row i.

    Weights are p(row describes column j, evidence on other columns) up to a common factor; a leaf without circuit is
    its own row.
    """
    boxes, joint = leaf_boxes(model), log_joint(model, evidence, i, leave_out=j)
    others = [None if k == j else cell(evidence, i, k) for k in range(len(model.columns.slot))]
    top, leaves = joint.max(), []
    for leaf in np.flatnonzero(joint > -math.inf).tolist():
        rows = [(float(joint[leaf]), leaf)]
        if circuit_root(model, leaf) is not None:
            rows = describing(model, boxes[leaf], circuit_root(model, leaf), others, j)
            rows = [(float(model.leaves.log_weight[leaf]) + w, row) for w, row in rows if w > -math.inf]
        leaves += [(math.exp(w - top), row, boxes[leaf]) for w, row in rows]
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
    fits = [given.known is None or is_level_in(k, given.known) for k in levels]
    mass = [probability_of(given, float(k)) if fits[k] else 0.0 for k in levels]
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
    on_atom = [k for k, (value, _) in enumerate(this.atoms) if value == x and this.step == 0.0]
    inside = on_atom[0] in given.known.atoms if on_atom else any(lo < x <= hi for lo, hi in given.known.runs)
    return probability_of(given, float(x)) / total if inside else 0.0


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


# -------------------------------------------------------------------------------------------------------------- moments


def integral(piece, function, u, v):
    """Integral of function(x) over the truncated part within (u, v], the density cut where it bends."""
    u, v = max(u, piece.lo), min(v, piece.hi)
    if u >= v:
        return 0.0
    scales = (-1000, -40, -8, -3, -1, 0, 1, 3, 8, 40, 1000)
    bends = [] if piece.family == UNIFORM else [piece.a + k * piece.b for k in scales]
    cuts = [u, *(x for x in bends if u < x < v), v]
    norm = float(parent_mass(piece, piece.lo, piece.hi))
    # In standard units, which suit the rule for infinite ranges.
    a, b = (0.0, 1.0) if piece.family == UNIFORM else (piece.a, piece.b)
    parts = [
        b * quad(lambda z: function(a + b * z) * parent_pdf(piece, a + b * z), lo, hi, epsabs=0.0, epsrel=1e-11)[0]
        for lo, hi in pairwise((x - a) / b for x in cuts)
    ]
    return math.fsum(parts) / norm


def parent_pdf(piece, x):
    """Density of the untruncated parent, in plain floats."""
    if piece.family == UNIFORM:
        return 1.0 / (piece.hi - piece.lo)
    z = (x - piece.a) / piece.b
    if piece.family == NORMAL:
        return math.exp(-0.5 * z * z) / (math.sqrt(2 * math.pi) * piece.b)
    return 0.375 / (1.0 + 0.25 * z * z) ** 2.5 / piece.b


def cell_sum(piece, function, u, v):
    """Sum of function(centre) * mass over the grid cells of the truncated part within (u, v], which is on cell edges.

    Beyond 300 scales of a Student t, where 1e-9 of its mass is left, an integral stands for the sum of cells.
    """
    u, v = max(u, piece.lo), min(v, piece.hi)
    if u >= v:
        return 0.0
    far = {NORMAL: 40.0 * piece.b, STUDENT: 300.0 * piece.b, UNIFORM: math.inf}[piece.family]
    middle_lo = max(u, cell_of(piece, piece.a - far)[0]) if math.isfinite(far) else u
    middle_hi = min(v, cell_of(piece, piece.a + far)[1]) if math.isfinite(far) else v
    total = 0.0
    if middle_lo < middle_hi:
        first, last = cell_number(piece, middle_lo + 0.5 * piece.step), cell_number(piece, middle_hi - 0.5 * piece.step)
        centre = piece.origin + np.arange(first, last + 1) * piece.step
        mass = parent_mass(piece, centre - 0.5 * piece.step, centre + 0.5 * piece.step)
        total = float(np.sum(function(centre) * mass) / parent_mass(piece, piece.lo, piece.hi))
    if piece.family == STUDENT:
        total += integral(piece, function, u, min(v, middle_lo)) + integral(piece, function, max(u, middle_hi), v)
    return total


def slot_integral(piece, function, region):
    """Integral of function over one leaf's column within a set: atoms, and the cells or the density of the rest."""
    total = math.fsum(m * function(value) for k, (value, m) in enumerate(piece.atoms) if m > 0.0 and k in region.atoms)
    part = cell_sum if piece.step > 0.0 else integral
    if piece.rest > 0.0:
        total += piece.rest * math.fsum(part(piece, function, lo, hi) for lo, hi in region.runs)
    return total


def mean_variance(given):
    """Mean and variance of numeric column j given the evidence."""
    total = probability_of(given, given.known)
    if total == 0.0:
        return math.nan, math.nan
    if isinstance(given.known, float):
        return given.known, 0.0

    def average(function):
        pieces = {leaf: piece(given.model, leaf, given.j) for _, leaf, _ in given.leaves}
        return expectation(given, lambda leaf, _: slot_integral(pieces[leaf], function, given.known)) / total

    mean = average(lambda x: x)
    return mean, average(lambda x: (x - mean) ** 2)


def impute(model, evidence, i):
    """Row i with its gaps filled: posterior mean (its cell's centre on a grid), or the most probable level."""
    row = []
    for j in range(len(model.columns.slot)):
        column = given(model, evidence, i, j)
        if isinstance(column.known, float):
            row.append(column.known)
        elif model.columns.is_categorical[j]:
            p = level_probability(column)
            row.append(math.nan if np.isnan(p[0]) else float(np.argmax(p)))
        else:
            mean, this = mean_variance(column)[0], piece(model, 0, j)
            if this.step > 0.0 and not math.isnan(mean):
                mean = this.origin + round((mean - this.origin) / this.step) * this.step
            row.append(mean)
    return np.array(row)


def missing_rate(model, evidence, i, j):
    """Expected share of missing cells of column j given the evidence of row i."""
    return float(np.dot(posterior(model, evidence, i), model.leaves.missing_rate[:, j]))


# ------------------------------------------------------------------------------- trees weighed by what they say of it


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
    """(weight, row, box) of what describes column j in the leaves of tree t that row i can reach.

    Weights are shares of rows, whatever densities say; if column j is known to be in a set, each row counts what the
    set leaves of it, and the share is of what is left.
    """
    boxes, result, known = leaf_boxes(model), [], cell(evidence, i, j)
    for leaf in reached(model, evidence, i, int(model.trees.root[t])):
        rows, w = [(0.0, leaf)], float(model.leaves.log_weight[leaf])
        if circuit_root(model, leaf) is not None:
            rows = describing(model, boxes[leaf], circuit_root(model, leaf), [None] * len(model.columns.slot), j)
        for log_share, row in rows:
            left = math.exp(log_factor(model, boxes[leaf], row, j, known)) if isinstance(known, Set) else 1.0
            if left > 0.0:
                result.append((math.exp(w + log_share) / left, row, boxes[leaf]))
    return result


def reached(model, evidence, i, node):
    """Leaves below a node whose splits, each by itself, row i's evidence can pass."""
    trees, j = model.trees, int(model.trees.feature[node])
    if j < 0:
        return [int(trees.leaf[node])]
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


# ------------------------------------------------------------------------------------------- contaminated parameters


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
        root, row = circuit_root(model, leaf), leaf
        if root is not None:
            return contaminated_circuit(model, root, known, choice, moves, boxes[leaf])
        return contaminated_row(model, row, range(len(known)), known, choice, moves, boxes[leaf])
    f, sides = int(trees.feature[node]), (int(trees.left[node]), int(trees.right[node]))
    w = np.array([leaf_sum(model, side) for side in sides])
    w = choice.weights(("split", node), w / w.sum())
    total = 0.0
    for k, side in enumerate(sides):
        if known[f] is not None:
            here = trees.threshold[node] >= known[f]
            if model.columns.is_categorical[f]:
                here = level_bit(trees, node, int(known[f]))
            if here != (k == 0):
                continue
        below = contaminated_node(model, side, known, choice, moves, boxes)
        total = choice.combined(np.add, total, choice.combined(np.multiply, w[k], below))
    return total


def contaminated_circuit(model, node, known, choice, moves, box):
    kind = model.leaves.node_kind[node]
    if kind == FACTORS:
        row, columns = factors(model, node)
        return contaminated_row(model, row, columns, known, choice, moves, box)
    parts = [contaminated_circuit(model, child, known, choice, moves, box) for child in children(model, node)]
    if kind == PRODUCT:
        total = 1.0
        for part in parts:
            total = choice.combined(np.multiply, total, part)
        return total
    w = choice.weights(("sum", node), np.exp(model.leaves.node_log_weight[children(model, node)]))
    total = 0.0
    for share, part in zip(w, parts, strict=True):
        total = choice.combined(np.add, total, choice.combined(np.multiply, share, part))
    return total


def contaminated_row(model, row, columns, known, choice, moves, box):
    """The product of a row's distributions over these columns."""
    total, target, (_, levels) = 1.0, moves[0], box
    for j in columns:
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

    move = (reach * (this.b if unit is None else unit[j])) if this.family == NORMAL else 0.0
    inside = rest(this.a)
    if this.family == NORMAL and inside > 0.0:
        inside = rest(choice.means(("mean", row, j), this, move, rest))
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
