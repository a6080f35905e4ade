"""Divergences and distances of two models over columns that both have."""

# The mathematics is in docs/concepts/information.md.

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...data.conditions import AnyOf, PerRow
from ...data.discretization.dependence import mutual_information, spanning_tree, times_log
from ...data.evidence import Evidence, intersect
from ...data.schema import Column
from ...models.base import Distribution, PosteriorState
from ...models.box_forest.leaves.family_kernels import MODULES
from ...models.box_forest.leaves.table import PIECES
from ...models.box_forest.structure import leaf_boxes
from ...runtime.threads import chunks, map_ordered
from ..explanation import side_condition
from .entropy import is_partition, tree_entropy
from .entropy_kernels import column_log_densities
from .integral import Columns, Estimate, ModelView, averaged, breaks, cell_range, ends, exact, integral

# ---- Cross entropy of two single trees in closed form over pairs of leaves, one column at a time.

_NODE, _WEIGHT = np.polynomial.legendre.leggauss(10)
_TOLERANCE = 1e-8
"""How far the integral of a density may be from 1 for the integral of the divergence to count."""
_WORK = 5e7
"""Most points times parameter rows to visit for a column."""


def cross_entropy(p: ModelView, q: ModelView, of: Columns) -> float | None:
    """-E_p log q, where both are one tree with disjoint leaves in the columns; None otherwise, or if it is costly."""
    # With M the mass of a column of p's leaf l in the box of q's leaf m, and C the mean there of log of q's density,
    # E_p log q = sum_l w_l sum_m (prod_j M_lmj log v_m + sum_j C_lmj prod_{i != j} M_lmi).
    for v in (p, q):
        columns = [v.number[k] for k in of]
        if not is_partition(v.forest, columns):
            return None
    log_w, log_v = p.forest.leaves.log_weight, q.forest.leaves.log_weight
    if len(of) * len(log_w) * len(log_v) > _WORK / 10:
        return None
    mass, mean = np.empty((2, len(of), len(log_w), len(log_v)))
    for i, k in enumerate(of):
        apart = _column_moments(p, q, k)
        if apart is None:
            return None
        mass[i], mean[i] = apart
    w = np.exp(log_w)[:, None]
    total = _weighed_sum(w * mass.prod(axis=0), np.broadcast_to(log_v, mass.shape[1:]))
    for i in range(len(of)):
        total += _weighed_sum(w * np.delete(mass, i, axis=0).prod(axis=0), mean[i])
    return -total


def _weighed_sum(weight: np.ndarray, value: np.ndarray) -> float:
    """Sum of weight times value, where the weight is not 0."""
    is_used = weight > 0
    return float(np.sum(weight[is_used] * value[is_used]))


def _column_moments(p: ModelView, q: ModelView, k: int) -> tuple[np.ndarray, np.ndarray] | None:
    """M and C of a column for all pairs of leaves; None if that is costly or not precise."""
    points = _points_and_measure(p, q, k)
    if points is None:
        return None
    x, weight = points
    share, log_q = np.exp(_leaf_log_densities(p, k, x)) * weight, _leaf_log_densities(q, k, x)
    if np.exp(p.forest.leaves.log_weight) @ np.abs(share.sum(axis=1) - 1) > _TOLERANCE:
        return None
    inside = _in_boxes(q, k, x)
    never = (inside & (log_q == -np.inf)).astype(np.float64)
    mean = share @ np.where(inside & (log_q > -np.inf), log_q, 0.0).T
    return share @ inside.T.astype(np.float64), np.where(share @ never.T > 0, -np.inf, mean)


def _points_and_measure(p: ModelView, q: ModelView, k: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Points of a column and their measure: levels, cells, atoms, and Gauss rules between the breaks of both models."""
    column, rows = p.columns[k], len(p.forest.leaves.tree) + len(q.forest.leaves.tree)
    if column.is_categorical:
        return np.arange(len(column.levels), dtype=np.float64), np.ones(len(column.levels))
    if column.step > 0.0:
        first, last = cell_range((p, q), k)
        n = last - first + 1
        if n * rows > _WORK:
            return None
        return column.center + np.arange(first, last + 1) * column.step, np.full(n, column.step)
    known = breaks((p, q), k)
    trees = q.forest.trees
    points = [known, trees.threshold[trees.feature == q.number[k]]]
    for v in (p, q):
        s, leaves = v.forest.columns.slot[v.number[k]], v.forest.leaves
        of_slot = (np.concatenate([getattr(leaves, name)[:, s], getattr(leaves.pieces, name)[:, 0]])
                   for name in ("family", "a", "b"))  # fmt: skip
        family, a, b = of_slot
        for code in np.unique(family[family != PIECES]).tolist():
            spans, of = getattr(MODULES[code], "SPANS", None), family == code
            if spans is None:
                return None
            points.append((a[of, None] + b[of, None] * spans).ravel())
    edges = np.unique(np.concatenate(points))
    edges = edges[(edges >= known[0]) & (edges <= known[-1])]
    if len(_NODE) * len(edges) * rows > _WORK:
        return None
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    atoms = np.unique(np.concatenate([v.columns[k].atoms for v in (p, q)]))
    x, weight = (middle[:, None] + np.outer(half, _NODE)).ravel(), np.outer(half, _WEIGHT).ravel()
    return np.concatenate([x, atoms]), np.concatenate([weight, np.ones(len(atoms))])


def _leaf_log_densities(v: ModelView, k: int, x: np.ndarray) -> np.ndarray:
    """Log density of the column in every leaf at points in the reference's numbers, (L, q)."""
    j = v.number[k]
    log_density = column_log_densities(v.forest.columns, v.forest.leaves, j, _own_points(v, k, x))
    return np.where(np.isin(x, v.foreign[k]), -np.inf, log_density)


def _in_boxes(v: ModelView, k: int, x: np.ndarray) -> np.ndarray:
    """Whether points lie in the boxes of the leaves, bool (L, q)."""
    lo, hi, allowed = leaf_boxes(v.forest.trees, v.forest.columns)
    s, values = v.forest.columns.slot[v.number[k]], _own_points(v, k, x)
    if v.columns[k].is_categorical:
        at = v.forest.columns.level_start[s] + values.astype(np.int64)
        return np.asarray(allowed[:, at])
    return np.asarray((lo[:, s, None] < values) & (values <= hi[:, s, None]))


def _own_points(v: ModelView, k: int, x: np.ndarray) -> np.ndarray:
    """Points in the model's own numbers."""
    code = v.code[k]
    return x + v.shift[k] if code is None else code[x.astype(np.int64)].astype(np.float64)


def kl_divergence(p: ModelView, q: ModelView, of: Columns, n: int, seed: int) -> Estimate:
    """Divergence of Kullback and Leibler, E_p log(p / q), in nats; infinite where q gives rows of p probability 0."""
    # If it is not exact, ``n`` rows are drawn from p.
    value = tree_divergence(p, q, of)
    if value is None:
        value = integral((p, q), of, _kl)
    if value is not None:
        return exact(max(value, 0.0))
    X = p.draw(n, seed)
    return averaged(p.log_density(X, of) - q.log_density(X, of))


def tree_divergence(p: ModelView, q: ModelView, of: Columns) -> float | None:
    """KL(p || q) of two single trees, -H(p) - E_p log q; None where one of them is none, or it takes too much work."""
    if not (p.model.is_forest and q.model.is_forest):
        return None
    entropy_of_p = tree_entropy(p.forest, [p.number[k] for k in of])
    cross = cross_entropy(p, q, of) if entropy_of_p is not None else None
    return cross - entropy_of_p if entropy_of_p is not None and cross is not None else None


def jensen_shannon(p: ModelView, q: ModelView, of: Columns, n: int, seed: int) -> Estimate:
    """Divergence of Jensen and Shannon, the mean of KL(p || m) and KL(q || m) with m = (p + q) / 2: 0 to log 2 nats."""
    most = np.log(2.0)
    return _of_shares(p, q, of, lambda s: most + times_log(s) + times_log(1.0 - s), most, n, seed)


def _total_variation(p: ModelView, q: ModelView, of: Columns, n: int, seed: int) -> Estimate:
    """Total variation, the largest difference of the probabilities of an event: 0 to 1."""
    return _of_shares(p, q, of, lambda s: np.abs(2.0 * s - 1.0), 1.0, n, seed)


def hellinger(p: ModelView, q: ModelView, of: Columns, n: int, seed: int) -> Estimate:
    """Hellinger distance, the root of 1 - int sqrt(p q): 0 to 1."""
    # 1 - 2 sqrt(s (1 - s)) without cancellation
    estimate = _of_shares(p, q, of, lambda s: (np.sqrt(s) - np.sqrt(1.0 - s)) ** 2, 1.0, n, seed)
    root = np.sqrt(estimate.value)
    error = estimate.standard_error / (2.0 * root) if root > 0 else estimate.standard_error
    return Estimate(float(root), float(error), estimate.method)


MEASURES: dict[str, Callable[..., Estimate]] = {
    "kl": kl_divergence,
    "jensen-shannon": jensen_shannon,
    "total-variation": _total_variation,
    "hellinger": hellinger,
}


def _of_shares(
    p: ModelView,
    q: ModelView,
    of: Columns,
    function: Callable[[np.ndarray], np.ndarray],
    most: float,
    n: int,
    seed: int,
) -> Estimate:
    """E_m f(s) over m = (p + q) / 2, s = p / (p + q): f is in 0..most, so the variance is finite, whatever p and q."""

    def summed(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
        return 0.5 * (np.exp(log_p) + np.exp(log_q)) * function(_share(log_p, log_q))

    value = integral((p, q), of, summed)
    if value is not None:
        return exact(min(max(value, 0.0), most))
    seeds = np.random.default_rng(seed).integers(2**63, size=2)  # two models' draws must not share their streams
    draws = [v.draw((n + 1) // 2, int(s)) for v, s in zip((p, q), seeds, strict=True)]
    return averaged(*(function(_share(p.log_density(X, of), q.log_density(X, of))) for X in draws))


def _share(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """p / (p + q); one half where both are 0."""
    top = np.maximum(log_p, log_q)
    top = np.where(top > -np.inf, top, 0.0)
    a, b = np.exp(log_p - top), np.exp(log_q - top)
    return np.where(a + b > 0, a / np.maximum(a + b, 1e-300), 0.5)


def _kl(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    is_possible = log_p > -np.inf
    log_p, log_q = (np.where(is_possible, log_density, 0.0) for log_density in (log_p, log_q))
    return np.where(is_possible, np.exp(log_p) * (log_p - log_q), 0.0)


# ---- How far apart two models are in each column: CDFs of numbers, probabilities of levels.

SUP, AREA = 1e-3, 1e-3
"""Largest errors: of the sup-distance, and of the area between CDFs as a share of the column's spread."""
_POINTS = 64
"""Points of a chunk for a thread."""


class ColumnDistance(NamedTuple):
    """How far apart two distributions of a column are.

    Attributes
    ----------
    distance : float
        0 to 1. Of numbers the largest distance of the CDFs (Kolmogorov), at most 1e-3 too small and mostly far
        closer; of levels the total variation.
    wasserstein : float or None
        Area between the CDFs of numbers, which is how far mass has to move on average, in the column's units
        (date-times: seconds), to a thousandth of the column's spread; None of levels.
    """

    distance: float
    wasserstein: float | None


def column_distance(p: ModelView, q: ModelView, k: int) -> ColumnDistance:
    """Distance of the distributions of column k of two views."""
    if not p.columns[k].is_categorical:
        return _of_numbers(p, q, k)
    ours, theirs = (v.marginals.level_probabilities(v.number[k])[0] for v in (p, q))
    code = q.code[k]
    assert code is not None
    return ColumnDistance(0.5 * float(np.abs(ours - theirs[code]).sum()), None)


def _of_numbers(p: ModelView, q: ModelView, k: int) -> ColumnDistance:
    """Both distances by bounds: between two points F - G lies between its ends' F_0 - G_1 and F_1 - G_0."""
    # Intervals are halved until these bounds are tight. On a grid both are constant from one centre to the next.
    both = (p, q)
    column, step = p.columns[k], p.columns[k].step
    x, spread = _first_points(both, k), _spread_of_both(both, k)
    F = _cdfs(both, k, x)
    while True:  # ends when nothing is open: no interval is halved below a float, or a cell
        gap, width, rise = np.abs(F[0] - F[1]), np.diff(x), np.diff(F, axis=1)
        middle = x[:-1] + 0.5 * width
        if step > 0.0:
            middle = column.center + np.floor((middle - column.center) / step + 0.25) * step
        is_open = (middle > x[:-1] + 0.5 * step) & (middle < x[1:])
        sup, wide = gap.max(), AREA * max(spread, _deviation(width, F))
        highest = np.maximum(F[0, 1:] - F[1, :-1], F[1, 1:] - F[0, :-1])
        error = np.where(is_open, 0.5 * width * rise.sum(axis=0), 0.0)
        coarse = error > wide / len(x) if error.sum() > wide else np.zeros(len(error), bool)
        split = is_open & (coarse | (highest > sup + SUP))
        if not split.any():
            break
        new = middle[split]
        at = np.searchsorted(x, new)
        x, F = np.insert(x, at, new), np.insert(F, at, _cdfs(both, k, new), axis=1)
    mean = np.where(is_open, 0.5 * (gap[:-1] + gap[1:]), gap[:-1])
    return ColumnDistance(float(sup), float(width @ mean))


def _deviation(width: np.ndarray, F: np.ndarray) -> float:
    """Mean distance from the median, of the model where it is larger, from below: no heavy tail is beyond reach."""
    least = np.where(F[:, 1:] <= 0.5, F[:, :-1], np.where(F[:, :-1] >= 0.5, 1.0 - F[:, 1:], 0.0))
    return float((least @ width).max())


def _cdfs(both: tuple[ModelView, ModelView], k: int, x: np.ndarray) -> np.ndarray:
    """The two CDFs at points, (2, q)."""

    def work(v: ModelView, first: int, stop: int) -> np.ndarray:
        return v.marginals.cdf(v.number[k], x[first:stop] + v.shift[k])[0]

    parts = list(map_ordered(work, [(v, *part) for v in both for part in chunks(len(x), _POINTS)]))
    return np.concatenate(parts).reshape(2, -1)


def _first_points(both: tuple[ModelView, ModelView], k: int) -> np.ndarray:
    """First points: the ends and some quantiles of both; atoms, and what is just below them."""
    column = both[0].columns[k]
    if column.step > 0.0:
        first, last = cell_range(both, k)
        at = np.unique(np.linspace(first - 1, last + 1, min(last - first + 3, 33)).round())
        return np.asarray(column.center + at * column.step)
    atoms = np.unique(np.concatenate([v.columns[k].atoms for v in both]))
    points = [ends(v, k) for v in both] + [_quantiles(v, k) for v in both]
    low, high = min(x.min() for x in points), max(x.max() for x in points)
    atoms = atoms[(atoms >= low) & (atoms <= high)]
    return np.unique(np.concatenate([*points, atoms, np.nextafter(atoms, -np.inf), [np.nextafter(low, -np.inf)]]))


def _quantiles(v: ModelView, k: int) -> np.ndarray:
    tail = 10.0 ** -np.arange(2, 10)  # in wide tails few points would do badly
    q = np.concatenate([np.arange(1, 32) / 32, tail, 1.0 - tail, [0.05, 0.95]])
    return v.marginals.quantile(v.number[k], q)[0] - v.shift[k]


def _spread_of_both(both: tuple[ModelView, ModelView], k: int) -> float:
    """How far apart the 5 % quantiles on either side are, over both; the whole range if that is nothing."""
    points = np.concatenate([_quantiles(v, k)[-2:] for v in both])
    if np.ptp(points) == 0.0:
        points = np.concatenate([ends(v, k) for v in both])
    return float(np.ptp(points))


# ---- Mutual information of two columns by classes: levels, and bins of equal probability of numbers.

# It is exact and finite, and can be counted in the rows of a table.

CLASS_BINS = 16
"""Bins of a column of numbers, as where learners measure dependence."""
_ROWS = 512
"""Classes that are observed at once."""


def class_cuts(state: PosteriorState, j: int, bins: int) -> np.ndarray:
    """Cuts between bins of about equal probability of a column of numbers; none of levels."""
    # They lie at quantiles, on a grid between cells. A value that fills a bin is alone in it.
    column = state.distribution.schema.columns[j]
    if column.is_categorical:
        return np.empty(0)
    ends = state.quantile(j, np.arange(1, bins) / bins)[0]
    if column.step > 0.0:
        cells = np.rint((ends - column.center) / column.step)
        cells = np.concatenate([cells, cells[1:][cells[1:] == cells[:-1]] - 1.0])
        return column.center + (np.unique(cells) + 0.5) * column.step
    points = ends[1:][ends[1:] == ends[:-1]]
    return np.unique(np.concatenate([ends, np.nextafter(points, -np.inf)]))


def conditions_of_bins(column: Column, cuts: np.ndarray) -> list[Any]:
    """The conditions that a column is in each of its bins, or has each of its levels."""
    if column.is_categorical:
        return [AnyOf(level) for level in column.levels]
    ends = [-np.inf, *cuts.tolist(), np.inf]
    return [AnyOf(side_condition(column, lo, hi)) for lo, hi in itertools.pairwise(ends)]


def n_classes(column: Column, cuts: np.ndarray) -> int:
    """Levels, or bins between cuts."""
    return len(column.levels) if column.is_categorical else len(cuts) + 1


def informations(state: PosteriorState, a: int, others: Sequence[int], cuts: Mapping[int, np.ndarray]) -> np.ndarray:
    """Mutual information, in nats, of column a with each other one given one row of evidence, (len(others),)."""
    # It is that of the classes between ``cuts`` in the rows where both columns have values; NaN where there are none.
    found = np.full(len(others), np.nan)
    groups: dict[int, tuple[Distribution, list[int]]] = {}
    for i, b in enumerate(others):
        try:
            given = state.distribution.given_known([a, b])
        except ValueError:  # rules make one of them missing in each row
            continue
        groups.setdefault(id(given), (given, []))[1].append(i)
    for given, places in groups.values():
        for i, table in zip(places, _joints(given, state.evidence, a, [others[i] for i in places], cuts), strict=True):
            found[i] = _information_of(table)
    return found


def _joints(
    model: Distribution, evidence: Evidence, a: int, others: Sequence[int], cuts: Mapping[int, np.ndarray]
) -> list[np.ndarray]:
    """P(class of a, class of b | evidence) for each other column b, (classes of a, classes of b) each."""
    schema = model.schema
    conditions = conditions_of_bins(schema.columns[a], cuts[a])
    tables = [np.zeros((len(conditions), n_classes(schema.columns[b], cuts[b]))) for b in others]
    log_evidence = model.log_density(evidence)
    for first in range(0, len(conditions), _ROWS):
        rows = intersect(schema, evidence, {schema.names[a]: PerRow(tuple(conditions[first : first + _ROWS]))})
        inside = model.observe(rows)
        inside.prepare(others)
        with np.errstate(invalid="ignore"):
            share = np.nan_to_num(np.exp(inside.log_probability() - log_evidence))
        for table, b in zip(tables, others, strict=True):
            within = np.nan_to_num(inside.histogram(b, cuts[b]))  # of impossible rows it is NaN
            table[first : first + _ROWS] = share[:, None] * np.maximum(within, 0.0)
    return tables


def _information_of(table: np.ndarray) -> float:
    """Mutual information of a table of probabilities, in nats; NaN of an impossible one."""
    total = table.sum()
    table = table / total if total > 0.0 else np.full_like(table, np.nan)
    both, rows, columns = (times_log(p).sum() for p in (table, table.sum(axis=1), table.sum(axis=0)))
    return float(np.maximum(both - rows - columns, 0.0))


def all_informations(state: PosteriorState, columns: Sequence[int], cuts: Mapping[int, np.ndarray]) -> np.ndarray:
    """`informations` of each two of some columns, (d, d); 0 on the diagonal and where no row has values of both."""
    of = state.distribution.schema.columns
    order = sorted(range(len(columns)), key=lambda i: n_classes(of[columns[i]], cuts[columns[i]]))
    found = np.zeros((len(columns), len(columns)))
    for k, i in enumerate(order[:-1]):
        later = order[k + 1 :]
        found[i, later] = np.nan_to_num(informations(state, columns[i], [columns[m] for m in later], cuts))
        found[later, i] = found[i, later]
    return found


def information_of_rows(X: np.ndarray, columns: Sequence[Column], cuts: Sequence[np.ndarray]) -> np.ndarray:
    """The same counted in rows (n, d), less what chance gives: see `dependence.mutual_information`."""
    classes = np.full(X.shape, -1, np.int16)
    for j, column in enumerate(columns):
        known = ~np.isnan(X[:, j])
        classes[known, j] = X[known, j] if column.is_categorical else np.searchsorted(cuts[j], X[known, j])
    size = np.array([n_classes(column, cut) for column, cut in zip(columns, cuts, strict=True)])
    return mutual_information(classes, size)


# ---- The strongest dependences between columns as a map; and which column would change a prediction most if it were
# ---- known.
# ---- A map lists the columns so that those that depend on each other are near, and joins the strongest pairs.


_LEAST = 0.01
"""Bits below which no edge is drawn."""
_LEAST_SHARE = 0.01
"""Classes that are less probable do not count for the ends of a change."""


class ColumnMap(NamedTuple):
    """Columns in order, and the edges between them: two columns and their mutual information in bits."""

    order: list[int]
    edges: list[tuple[int, int, float]]


def column_map(bits: np.ndarray) -> ColumnMap:
    """The map of columns with these mutual informations, (d, d) in bits: a spanning tree and as many other edges."""
    d = len(bits)
    order, parent = (x.tolist() for x in spanning_tree(bits))
    children: list[list[int]] = [[] for _ in order]
    for k, above in enumerate(parent[1:], 1):
        children[above].append(k)
    found, waiting = [], [0]
    while waiting:  # each branch of the tree is written without a gap
        k = waiting.pop()
        found.append(order[k])
        waiting += sorted(children[k], key=lambda c: (bits[order[c], order[k]], -c))
    tree = {tuple(sorted((order[k], order[above]))) for k, above in enumerate(parent) if above >= 0}
    pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
    others = sorted((pair for pair in pairs if pair not in tree), key=lambda pair: -bits[pair])[:d]
    edges = [(i, j, float(bits[i, j])) for i, j in [*sorted(tree), *others] if bits[i, j] >= _LEAST]
    return ColumnMap(found, edges)


class Moves(NamedTuple):
    """How a prediction changes if a column becomes known.

    by : float. Expected absolute change.
    low, high : float. The least and the greatest prediction, over the classes of the column that are not improbable.
    """

    by: float
    low: float
    high: float


def expected_changes(
    state: PosteriorState, j: int, level: int | None, cuts: Mapping[int, np.ndarray]
) -> dict[int, Moves]:
    """The changes of a prediction of column j when each column of ``cuts`` becomes known, given one row of evidence."""
    # The prediction is the mean of a number, else the probability of a level. A column becomes known by its level or
    # bin.
    schema, found = state.distribution.schema, {}
    for a, cuts_of_a in cuts.items():
        try:
            given = state.distribution.given_known([a])
        except ValueError:
            continue
        conditions = tuple(conditions_of_bins(schema.columns[a], cuts_of_a))
        rows = intersect(schema, state.evidence, {schema.names[a]: PerRow(conditions)})
        with np.errstate(invalid="ignore"):
            share = np.exp(given.log_density(rows) - given.log_density(state.evidence))
        some = np.flatnonzero(share > 0.0)
        if not len(some):
            continue
        inside, p = given.observe(rows.take(some)), share[some] / share[some].sum()
        predicted = inside.moments(j)[0] if level is None else inside.level_probabilities(j)[:, level]
        often = predicted[p >= min(_LEAST_SHARE, p.max())]
        found[a] = Moves(float(p @ np.abs(predicted - p @ predicted)), float(often.min()), float(often.max()))
    return found
