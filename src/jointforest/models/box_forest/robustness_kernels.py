"""Kernels of robustness: the worst that contaminated leaves and trees can do to a row's predicted class."""

import math

from ...runtime.compile import entry, kernel
from ...runtime.numeric_kernels import chandrupatla
from .descent_kernels import goes_left
from .leaves.family_kernels import log_norm, mean_variance
from .leaves.grid_kernels import cell_centre, log_density
from .leaves.level_kernels import has_level, level_mass, log_level
from .leaves.normal_kernels import INV_SQRT_2PI, short_series, upper_tail
from .leaves.slot_kernels import find_atom, piece, piece_at, safe_log
from .leaves.table import NORMAL, PIECES, Density
from .structure_kernels import MIXED

# ---- Kernels: how improbable and how probable one number can become when its distribution is contaminated.
# The mean of a normal may move by ``reach``. The density at x is log-concave in the mean: the derivative of the
# logarithm is (E[X | cell of x] - E[X]) / b^2, and that of the expectations the difference of two variances, of which
# that of the cell is the smaller one.


_NEAR = 1e-5
"""A last Newton step of this, in standard deviations, leaves an error of about its square."""
_FINE = 1e-4
"""In cells this narrow, in standard deviations, the mean is the centre, to the square of this."""

_MEAN_EXCESS = 0.8
"""The mean of a standard normal above z >= 0 lies at most this (the square root of 2 / pi) above z."""


@kernel
def is_cut(d):
    """Whether the support has an end."""
    return d.lo > -math.inf or d.hi < math.inf


@kernel
def _moved(d, mean):
    """The normal with another mean."""
    moved = Density(d.family, mean, d.b, d.lo, d.hi, 0.0)
    if is_cut(d):
        moved = Density(d.family, mean, d.b, d.lo, d.hi, log_norm(moved))
    return moved


@kernel
def _slope(d, mean, step, x):
    """Slope of the log density in the mean, and its own slope; both times b^2."""
    moved = Density(d.family, mean, d.b, d.lo, d.hi, 0.0)
    all_mean, all_var = mean_variance(moved, d.lo, d.hi)
    if step <= _FINE * d.b:
        return x - all_mean, -all_var / (d.b * d.b)
    cell_mean, cell_var = mean_variance(moved, x - 0.5 * step, x + 0.5 * step)
    return cell_mean - all_mean, (cell_var - all_var) / (d.b * d.b)


@kernel
def best_mean(d, step, x, reach):
    """The mean within ``reach`` of a at which the value is most probable."""
    if not is_cut(d):
        return min(max(x, d.a - reach), d.a + reach)
    if not d.lo < x <= d.hi:
        return d.a
    slope, curvature = _slope(d, d.a, step, x)
    if slope == 0.0:
        return d.a
    end = d.a + reach if slope > 0.0 else d.a - reach
    if (slope > 0.0) == (_slope(d, end, step, x)[0] > 0.0):
        return end
    low, high, mean = min(d.a, end), max(d.a, end), d.a
    for _ in range(60):
        new = mean - slope / curvature if curvature < 0.0 else high
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - mean) <= _NEAR * d.b:
            return new
        mean = new
        slope, curvature = _slope(d, mean, step, x)
        if slope > 0.0:
            low = mean
        else:
            high = mean
    return mean


@kernel
def trend(d, step, x, reach):
    """1 if the value is the more probable the larger the mean, everywhere within ``reach`` of a; -1 if the smaller."""
    # 0 if neither is clear. What is cut off below raises E[X], but not above max(mean, lo) + 0.8 b.
    above = d.a + reach if d.lo == -math.inf else max(d.a + reach, d.lo) + _MEAN_EXCESS * d.b
    if x - 0.5 * step >= above:
        return 1
    below = d.a - reach if d.hi == math.inf else min(d.a - reach, d.hi) - _MEAN_EXCESS * d.b
    return -1 if x + 0.5 * step <= below else 0


@kernel
def _density_at(d, mean, step, x):
    """Density of a normal with this mean, of the value or its cell: a log and a factor, as logarithms take time."""
    scale = 1.0 / d.b
    z, h = (x - mean) * scale, step * scale
    z2, y = z * z, h * h
    zl, zh = (d.lo - mean) * scale, (d.hi - mean) * scale
    near = (zl > -0.5 and zh < 40.0) or (zh < 0.5 and zl > -40.0)  # both ends matter, and their masses may cancel
    if y * (z2 + 4.0) > 0.05 or zl > 8.0 or zh < -8.0 or near:
        return log_density(_moved(d, mean), x, step), 1.0
    if not d.lo < x <= d.hi:
        return -math.inf, 1.0
    factor = INV_SQRT_2PI * scale
    if step > 0.0:
        factor += factor * short_series(z2, y)
    if zl > -0.5:
        factor /= upper_tail(zl) if zl > 0.0 else 1.0 - upper_tail(-zl)
    elif zh < 0.5:
        factor /= upper_tail(-zh) if zh < 0.0 else 1.0 - upper_tail(zh)
    elif is_cut(d):
        factor /= 1.0 - upper_tail(-zl) - upper_tail(zh)
    return -0.5 * z2, factor


@kernel
def normal_density_bound(d, step, x, reach, rises, best, upper):
    """Bound of the density of a normal, truncated or not, whose mean may move by ``reach``, as a log and a factor."""
    # ``rises`` is from `trend`. Where it is 0, upper bounds need ``best`` from `best_mean` (truncated), or x.
    if rises != 0:
        return _density_at(d, d.a + reach if (rises > 0) == upper else d.a - reach, step, x)
    if upper:
        return _density_at(d, min(max(best, d.a - reach), d.a + reach), step, x)
    if not is_cut(d):
        return _density_at(d, d.a - reach if x >= d.a else d.a + reach, step, x)
    log_1, factor_1 = _density_at(d, d.a - reach, step, x)
    log_2, factor_2 = _density_at(d, d.a + reach, step, x)  # the farther end need not be the worse one
    return (log_1, factor_1) if log_1 - log_2 < math.log(factor_2 / factor_1) else (log_2, factor_2)


@kernel
def with_atoms(log_bound, log_rest, atom_mass, n_atoms, step, epsilon, upper):
    """Bound of a number's density in a slot with atoms, as a mass and the log of a factor."""
    # Atoms and the rest are outcomes of one categorical distribution; ``atom_mass`` is -1 if the number is no atom.
    kept, added = 1.0 - epsilon, epsilon if upper else 0.0
    if atom_mass < 0.0:
        return kept * math.exp(log_rest) + added, log_bound
    if step == 0.0:
        return kept * atom_mass + added, 0.0
    cell = math.exp(log_bound) * step
    if not upper and n_atoms == 1:  # all that contaminates is on the atom or in the rest: the cell gets some
        added = epsilon * cell
    return kept * (atom_mass + math.exp(log_rest) * cell) + added, -math.log(step)


# ---- Kernels: the lowest and the highest density that a contaminated leaf can give the evidence.


@kernel
def _best_mean(worst, at, d, step, x, unit, reach):
    """`best_mean` of x, kept for every epsilon ``at`` a reached leaf (its place) and slot; place -1: not kept."""
    if at[0] < 0:
        return best_mean(d, step, x, reach)
    best = worst.best_mean[at]
    if best != best:
        best = best_mean(d, step, x, unit)
        worst.best_mean[at] = best
    return best


@kernel
def _number_bound(problem, reached, worst, row, j, i, epsilon, upper):
    """Bound of the density of the known number j in a leaf, as the product of a mass, a factor and e^log."""
    # ``i`` is the place of the leaf among the reached ones.
    columns, leaves = problem.columns, problem.leaves
    slot, x, atom = columns.slot[j], reached.x[j], reached.atom[j]
    step, first = columns.step[slot], columns.atom_start[slot]
    log, factor, mass, n_atoms = 0.0, 1.0, 1.0, columns.atom_start[slot + 1] - first
    if step > 0.0 or atom < 0:
        d, log_share = piece(leaves, row, slot, piece_at(leaves, row, slot, x))
        unit = problem.c * (d.b if problem.unit.shape[0] == 0 else problem.unit[slot])
        reach = unit * epsilon
        if d.family != NORMAL or reach == 0.0:
            log = log_density(d, x, step)
        else:
            rises, best = trend(d, step, x, reach), x
            if upper and rises == 0 and is_cut(d):
                best = _best_mean(worst, (i, slot), d, step, x, unit, reach)
            log, factor = normal_density_bound(d, step, x, reach, rises, best, upper)
        if leaves.family[row, slot] == PIECES:
            log += safe_log((1.0 - epsilon) * math.exp(log_share) + (epsilon if upper else 0.0))
    if n_atoms > 0:
        atom_mass = -1.0
        if atom >= 0:
            atom_mass = leaves.atom_mass[row, first + atom]
            log, factor = log + math.log(factor), 1.0
        mass, log = with_atoms(log, leaves.log_rest[row, slot], atom_mass, n_atoms, step, epsilon, upper)
    return mass, factor, log


@kernel
def _leaf_log_bound(problem, reached, worst, i, epsilon, log_kept, upper):
    """Log bound of the evidence in the i-th of the reached leaves; log_kept: log(1 - epsilon)."""
    leaves, slot, level = problem.leaves, reached.level_slot, reached.level
    row, n_levels = reached.leaf[i], reached.n_levels[0]
    total, product = 0.0, 1.0  # logarithms are taken of products of many
    if upper and epsilon > 0.0:
        for k in range(n_levels):
            product *= (1.0 - epsilon) * level_mass(leaves, row, slot[k], level[k]) + epsilon
            if product < 1e-100:
                total, product = total + math.log(product), 1.0
    else:
        for k in range(n_levels):
            total += log_level(leaves, row, slot[k], level[k])
        total += n_levels * log_kept if n_levels > 0 else 0.0
    for k in range(reached.n_numbers[0]):
        if total == -math.inf:
            break
        mass, factor, log = _number_bound(problem, reached, worst, row, reached.number[k], i, epsilon, upper)
        product *= factor * mass
        if not 1e-100 < product < 1e100:
            total, product = total + safe_log(product), 1.0
        total += log
    return total + math.log(product)


@kernel
def bound_leaves(problem, reached, worst, first, stop, epsilon):
    """Write the log bounds of the evidence in those of the reached leaves that lack them."""
    leaves = problem.leaves
    log_kept = math.log1p(-epsilon) if epsilon < 1.0 else -math.inf
    for i in range(first, stop):
        row, upper = reached.leaf[i], worst.value[i] > 0.0
        bound = worst.upper[i] if upper else worst.lower[i]
        if bound == bound:
            continue
        bound = 0.0
        if not worst.is_impossible[leaves.tree[row]]:
            bound = _leaf_log_bound(problem, reached, worst, i, epsilon, log_kept, upper)
        if upper:
            worst.upper[i] = bound
        else:
            worst.lower[i] = bound


# ---- Kernels: the part of the trees that a row of values reaches, node by node, and the row's known cells.


@entry
def allowed_levels(trees, j, at_node, allowed):
    """Write which levels of categorical column j the box of each leaf admits, uint8 (L, K)."""
    # ``at_node`` (N, K) is scratch; 1 in the rows of roots.
    for node in range(at_node.shape[0]):
        leaf, left, right = trees.leaf[node], trees.left[node], trees.right[node]
        for k in range(at_node.shape[1]):
            if leaf >= 0:
                allowed[leaf, k] = at_node[node, k]
                continue
            at_node[left, k], at_node[right, k] = at_node[node, k], at_node[node, k]
            if trees.feature[node] == j:
                other = right if has_level(trees.left_levels, trees.levels_at[node], k) else left
                at_node[other, k] = 0


@kernel
def _known_cells(columns, evidence, row, reached):
    """Write what is known of the row's cells."""
    n_levels, n_numbers = 0, 0
    for j in range(columns.slot.shape[0]):
        x, slot = evidence.value[row, j], columns.slot[j]
        reached.x[j], reached.atom[j] = x, -1
        if x != x:
            continue
        if columns.is_categorical[j]:
            if columns.level_start[slot + 1] - columns.level_start[slot] > 1:  # an only level has probability 1
                reached.level_slot[n_levels], reached.level[n_levels] = slot, int(x)
                n_levels += 1
            continue
        step = columns.step[slot]
        reached.x[j] = cell_centre(step, columns.origin[slot], x) if step > 0.0 else x
        reached.atom[j] = find_atom(columns, slot, x)
        reached.number[n_numbers] = j
        n_numbers += 1
    reached.n_levels[0], reached.n_numbers[0] = n_levels, n_numbers


@kernel
def reached_nodes(problem, evidence, row, reached):
    """Write the nodes that the row reaches; both ways where the split column is not known, or there is no split."""
    trees, weight, stack = problem.trees, problem.weight, reached.stack
    n_nodes, n_leaves = 0, 0
    for tree in range(trees.root.shape[0]):
        reached.node_start[tree], reached.leaf_start[tree] = n_nodes, n_leaves
        node, depth = trees.root[tree], 0
        while True:
            j = trees.feature[node]
            reached.other[n_nodes] = -1
            if trees.leaf[node] >= 0:
                reached.leaf_at[n_nodes], reached.leaf[n_leaves] = n_leaves, trees.leaf[node]
                n_leaves += 1
                n_nodes += 1
                if depth == 0:
                    break
                depth -= 1
                parent = stack[depth]
                reached.other[parent] = n_nodes
                node = trees.right[reached.child[parent]]
                reached.child[parent] = parent + 1
                continue
            x = evidence.value[row, j] if j != MIXED else math.nan
            reached.leaf_at[n_nodes] = -1
            if x != x:
                down = trees.left[node]
                reached.child[n_nodes] = node  # until its other side has been found
                stack[depth] = n_nodes
                depth += 1
            else:
                down = trees.left[node] if goes_left(trees, node, x) else trees.right[node]
                reached.child[n_nodes] = n_nodes + 1
            # nodes that no row of learning reached have no shares of their own
            reached.share[n_nodes] = weight[down] / weight[node] if weight[node] > 0.0 else 0.5
            node = down
            n_nodes += 1
    reached.node_start[trees.root.shape[0]], reached.leaf_start[trees.root.shape[0]] = n_nodes, n_leaves


# ---- Kernels: value and mass (see `_class_value`) of the leaves that a row reaches.


@kernel
def _class_value(q_y, q_z, z_allowed, others_allowed, u, epsilon):
    """The most that q(z) - q(y) - u q(box) can be for a contaminated distribution q of classes, and its q(box)."""
    # ``box`` are the classes that the leaf's box admits, ``others_allowed``: some besides y and z.
    if z_allowed:
        best, mass = 1.0 - u, 1.0
    elif u < 0.0 and others_allowed:
        best, mass = -u, 1.0
    else:  # all that contaminates is on classes out of the box
        best, mass = 0.0, 0.0
    return (1.0 - epsilon) * (q_z - q_y - u) + epsilon * best, 1.0 - epsilon + epsilon * mass


@kernel
def value_classes(problem, leaf, y, z, u, epsilon):
    """Value and mass of a leaf whose only contaminated distribution is that of the target."""
    leaves, slot = problem.leaves, problem.slot
    q_y, q_z = level_mass(leaves, leaf, slot, y), level_mass(leaves, leaf, slot, z)
    z_allowed, others = problem.allowed[leaf, z] != 0, problem.n_allowed[leaf] > problem.allowed[leaf, y]
    return _class_value(q_y, q_z, z_allowed, others, u, epsilon)


@kernel
def value_leaves(problem, reached, worst, first, stop, y, z, u, epsilon):
    """Write value, mass and scale of the reached leaves first..stop-1; returns the largest scale."""
    if worst.epsilon[0] != epsilon:
        for i in range(reached.leaf_start[problem.trees.root.shape[0]]):
            worst.lower[i], worst.upper[i] = math.nan, math.nan
        worst.epsilon[0] = epsilon
    for i in range(first, stop):
        worst.value[i], worst.mass[i] = value_classes(problem, reached.leaf[i], y, z, u, epsilon)
    bound_leaves(problem, reached, worst, first, stop, epsilon)
    top = -math.inf
    for i in range(first, stop):
        worst.log_scale[i] = worst.upper[i] if worst.value[i] > 0.0 else worst.lower[i]
        top = max(top, worst.log_scale[i])
    return top


# ---- Kernels: the worst case of a prediction when every parameter is contaminated by epsilon, up the trees.

_ROUNDING = 1e-15
"""Ratios are known to this."""


@kernel
def _value_trees(reached, worst, first, stop, epsilon, top):
    """Write value and mass of trees, as multiples of e^top: splits are sums, of which the row reaches parts."""
    value, mass, kept = worst.node_value, worst.node_mass, 1.0 - epsilon
    for node in range(reached.node_start[stop] - 1, reached.node_start[first] - 1, -1):
        at = reached.leaf_at[node]
        if at >= 0:
            scale = math.exp(worst.log_scale[at] - top)
            value[node], mass[node] = worst.value[at] * scale, worst.mass[at] * scale
            continue
        child, other, w = reached.child[node], reached.other[node], reached.share[node]
        v, m = (value[other], mass[other]) if other >= 0 else (0.0, 0.0)  # the evidence excludes the other side
        best, best_mass = (value[child], mass[child]) if value[child] > v else (v, m)
        value[node] = kept * (w * value[child] + (1.0 - w) * v) + epsilon * best
        mass[node] = kept * (w * mass[child] + (1.0 - w) * m) + epsilon * best_mass
    for t in range(first, stop):
        worst.tree_value[t], worst.tree_mass[t] = value[reached.node_start[t]], mass[reached.node_start[t]]


@kernel
def mixture_value(problem, reached, worst, y, z, epsilon):
    """Value and mass of the mixture of all trees, whose weights are contaminated too, and the log of their scale."""
    n = reached.leaf_start[problem.n_trees]
    top = value_leaves(problem, reached, worst, 0, n, y, z, 0.0, epsilon)
    if top == -math.inf:
        return 0.0, 0.0, top
    _value_trees(reached, worst, 0, problem.n_trees, epsilon, top)
    value, mass, best, best_mass = 0.0, 0.0, -math.inf, 0.0
    for t in range(problem.n_trees):
        w = problem.weight[problem.trees.root[t]]
        value += w * worst.tree_value[t]
        mass += w * worst.tree_mass[t]
        if worst.tree_value[t] > best:
            best, best_mass = worst.tree_value[t], worst.tree_mass[t]
    return (1.0 - epsilon) * value + epsilon * best, (1.0 - epsilon) * mass + epsilon * best_mass, top


@kernel
def _tree_excess(problem, reached, worst, t, y, z, u, epsilon):
    """Value and mass of one tree, and the log of their scale."""
    first, stop = reached.leaf_start[t], reached.leaf_start[t + 1]
    top = value_leaves(problem, reached, worst, first, stop, y, z, u, epsilon)
    if top == -math.inf:
        return 0.0, 0.0, top
    _value_trees(reached, worst, t, t + 1, epsilon, top)
    return worst.tree_value[t], worst.tree_mass[t], top


@kernel
def _most_apart(problem, reached, worst, t, y, z, epsilon):
    """The most that p_t(z | evidence) - p_t(y | evidence) can be."""
    first = reached.leaf_start[t]
    if reached.leaf_start[t + 1] == first + 1:
        leaf = reached.leaf[first]  # the evidence, whatever its density, adds nothing to the leaf
        value, mass = value_classes(problem, leaf, y, z, 0.0, epsilon)
        return value / mass
    u = worst.ratio[t]  # of another epsilon or challenger: near the answer, but it may lie above it
    value, mass, _ = _tree_excess(problem, reached, worst, t, y, z, u, epsilon)
    if not value > 0.0:
        u = -1.0
        value, mass, _ = _tree_excess(problem, reached, worst, t, y, z, u, epsilon)
    while value > _ROUNDING * mass:
        u += value / mass
        value, mass, _ = _tree_excess(problem, reached, worst, t, y, z, u, epsilon)
    worst.ratio[t] = u
    return u


@kernel
def average_value(problem, reached, worst, y, z, epsilon):
    """The most that the weighed average of the trees' p_t(z | evidence) - p_t(y | evidence) can be."""
    total = 0.0
    for t in range(problem.n_trees):
        if worst.tree_weight[t] > 0.0:
            total += worst.tree_weight[t] * _most_apart(problem, reached, worst, t, y, z, epsilon)
    return total


@kernel
def _weigh_trees(problem, reached, worst, y, z):
    """Write the weights of the trees in the average, (pi_t p_t(evidence))^beta of the model as it is over their sum."""
    # Mark the trees in which the evidence is impossible, too, and forget the ratios.
    top, weight = -math.inf, worst.tree_weight
    for t in range(problem.n_trees):
        worst.ratio[t], worst.is_impossible[t], weight[t] = -1.0, 0, -math.inf
        _, mass, scale = _tree_excess(problem, reached, worst, t, y, z, 0.0, 0.0)
        if mass > 0.0:
            weight[t] = problem.beta * (math.log(mass) + scale + math.log(problem.weight[problem.trees.root[t]]))
        else:
            worst.is_impossible[t] = 1
        top = max(top, weight[t])
    if top == -math.inf or problem.beta == 0.0:
        for t in range(problem.n_trees):
            weight[t] = 0.0
        top = 0.0
    total = 0.0
    for t in range(problem.n_trees):
        weight[t] = math.exp(weight[t] - top)
        total += weight[t]
    for t in range(problem.n_trees):
        weight[t] /= total
    worst.epsilon[0] = math.nan  # the bounds did not know in which trees the evidence is impossible


# ---- Kernels: how much contamination it takes until another class can win, row by row.

_STEEP = -2.0
"""A start for interpolation where log-odds may be without bound."""


@kernel
def _log_odds(value, mass):
    """Log-odds of the challenger against all else, which grow nearly as the means move."""
    if not abs(value) < mass:
        return 40.0 if value >= 0.0 else -40.0
    return math.log1p(2.0 * value / (mass - value))


@kernel
def _challenge(problem, reached, worst, y, z, epsilon):
    """Below 0 if the challenger cannot win; smooth in epsilon, and nearly straight."""
    if problem.beta < 1.0:
        return average_value(problem, reached, worst, y, z, epsilon)
    value, mass, _ = mixture_value(problem, reached, worst, y, z, epsilon)
    return _log_odds(value, mass)


@kernel
def _first_win(problem, reached, worst, y, z, margin, stop, tol):
    """The largest epsilon, to ``tol``, at which the challenger cannot win; at ``stop`` it can."""
    # It wins at the latest where contaminating the classes alone overcomes ``margin``, unless boxes exclude it.
    if margin >= 0.0:
        return 0.0
    b, fb = 0.0, margin if problem.beta < 1.0 else max(_log_odds(margin, 1.0), _STEEP)
    if problem.splits_target == 0:
        stop = min(stop, margin / (margin - 1.0))
    a = max(stop - 0.5 * tol, 0.0)
    fa = _challenge(problem, reached, worst, y, z, a)
    if fa < 0.0:
        return a
    c, fc, t = a, fa, fa / (fa - fb)
    while abs(b - a) > tol:
        least = 0.5 * tol / abs(b - a)
        t = min(max(t, least), 1.0 - least)
        x = a + t * (b - a)
        f = _challenge(problem, reached, worst, y, z, x)
        if (f < 0.0) == (fa < 0.0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, f
        t = chandrupatla(a, fa, b, fb, c, fc)
    return a if fa < 0.0 else b


@kernel
def _row_epsilon(problem, reached, worst, y, second, p, i, tol):
    """The most epsilon at which no challenger of class y can win; ``p[i]`` are the probabilities of the classes."""
    smallest = 1.0  # there any class can have all the mass
    for k in range(-1, problem.n_classes):
        z = second if k < 0 else k  # the likeliest challenger first: mostly none of the others can win so soon
        if z == y or k == second:
            continue
        at = worst.epsilon[0] if smallest <= worst.epsilon[0] <= smallest + tol else smallest  # its bounds are at hand
        if k >= 0 and _challenge(problem, reached, worst, y, z, at) < 0.0:
            continue
        margin = p[i, z] - p[i, y]
        smallest = min(smallest, _first_win(problem, reached, worst, y, z, margin, at, tol))
        if smallest == 0.0:
            break
    return smallest


@kernel
def _start_row(problem, evidence, row, y, z, reached, worst):
    """Write what the row reaches, and forget what was known of another row."""
    _known_cells(problem.columns, evidence, row, reached)
    reached_nodes(problem, evidence, row, reached)
    for i in range(reached.leaf_start[problem.trees.root.shape[0]]):
        for slot in range(worst.best_mean.shape[1]):
            worst.best_mean[i, slot] = math.nan
    worst.epsilon[0] = math.nan
    if problem.beta < 1.0:
        _weigh_trees(problem, reached, worst, y, z)


@entry
def epsilon_rows(problem, evidence, reached, worst, first, predicted, second, p, tol, out):
    """Write the robustness of the rows from ``first`` on: epsilon, to ``tol``, at most 1."""
    # ``predicted`` and ``second`` are the two likeliest classes, -1 for none, ``p`` the probabilities of all.
    for i in range(out.shape[0]):
        y, z = predicted[i], second[i]
        if y >= 0:
            _start_row(problem, evidence, first + i, y, z, reached, worst)
            out[i] = _row_epsilon(problem, reached, worst, y, z, p, i, tol)
