"""Quantile leaves: piecewise-linear CDFs learned from data, as uniform pieces. See docs/concepts/quantile-leaves.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...data.schema import Columns
from ...evaluation.columns_and_pairs import misfit_columns
from ...models.box_forest.box_forest import BoxForest
from ...models.box_forest.leaves.table import PIECES, UNIFORM, pieces_of
from ...models.box_forest.structure import Forest
from ...runtime.arrays import ranges
from .constants import FIXED
from .fit import LeafSums, Table, TreeLeaves
from .quantile_kernels import Samples, cdf_knots, make_scratch
from .running_kernels import MOST, count_at, numbers_at
from .statistics_kernels import rows_by_leaf

# ---- Numbers of one column in the leaves of a tree, as quantile leaves are learned from them.


class LeafValues(NamedTuple):
    """Numbers of one column that lie on no atom, in the l leaves of a tree.

    x : float64 array (m,). Those of leaf k are ``x[start[k]:start[k + 1]]``, ascending.
    weight : float64 array (m,). How much each counts.
    start : int64 array (l + 1,)
    rows : float64 array (l,). How many rows they stand for.
    mean, var : float64 arrays (l,). Moments of the rows' numbers; 0 in leaves without any.
    """

    x: np.ndarray
    weight: np.ndarray
    start: np.ndarray
    rows: np.ndarray
    mean: np.ndarray
    var: np.ndarray


def values_of_rows(
    values: np.ndarray, atom: np.ndarray, rows: np.ndarray, start: np.ndarray, weight: np.ndarray
) -> LeafValues:
    """The cells (n,) of one column that are on no ``atom`` (n,; -1), by leaf; ``rows``, ``start``: rows by leaf."""
    n_leaves = len(start) - 1
    leaf = np.repeat(np.arange(n_leaves, dtype=np.int32), np.diff(start))
    known = (atom[rows] < 0) & ~np.isnan(values[rows])
    rows, leaf = rows[known], leaf[known]
    order = np.argsort(values[rows])
    by_leaf, first = rows_by_leaf(leaf[order], n_leaves)
    order = order[by_leaf]
    x, w, leaf = values[rows[order]], weight[rows[order]], leaf[order]
    total = np.bincount(leaf, w, n_leaves)
    total = np.where(total > 0, total, 1.0)
    mean = np.bincount(leaf, w * (x / total[leaf]), n_leaves)
    with np.errstate(over="ignore"):  # of the largest floats
        var = np.bincount(leaf, w * (x - mean[leaf]) ** 2, n_leaves) / total
    return LeafValues(x, w, first, np.diff(first).astype(np.float64), mean, var)


def cdfs(samples: Samples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Knots of each leaf's CDF near the empirical one: (knot_start (l + 1,), knot_x, knot_p)."""
    # The pieces come from a greedy pass, each as long as any that begins within reach, with knots at the values (H.
    # Imai and M. Iri, "An optimal algorithm for approximating a piecewise linear function", Journal of Information
    # Processing, 1986). The line is then changed as little as it takes to have the mean exactly and the variance within
    # 5 %.
    size = np.diff(samples.start)
    knot_start = np.empty(len(samples.start), np.int64)
    most = int(2 * size.sum() + 32 * len(size))
    knot_x, knot_p = np.empty(most), np.empty(most)
    cdf_knots(samples, *make_scratch(int(size.max(initial=0))), knot_start, knot_x, knot_p)
    return knot_start, knot_x[: knot_start[-1]].copy(), knot_p[: knot_start[-1]].copy()


def column_resolution(values: np.ndarray, spread: float) -> float:
    """Least width of a piece of a column without grid: a share of the median gap between its values."""
    distinct = np.unique(values[~np.isnan(values)])
    gap = float(np.median(np.diff(distinct))) if len(distinct) > 1 else 0.0
    size = float(np.abs(distinct).max(initial=0.0))
    return max(FIXED.quantile_narrowest * gap, 1e-6 * spread, 1e-12 * size)


_PIECE_BYTES = 57
"""Bytes of one of `table.Pieces`."""


class LeafCdfs(NamedTuple):
    """Piecewise-linear CDFs of one numeric column in the l leaves of a tree.

    start : int64 array (l + 1,). The knots of leaf k are ``start[k]:start[k + 1]``, at least two.
    x, p : float64 array (m,). Ascending numbers, and the CDF there, from 0 to 1 in each leaf.
    lo, hi : float64 array (l,). Support of each leaf.
    """

    start: np.ndarray
    x: np.ndarray
    p: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


def leaf_cdfs(
    columns: Columns, table: Table, slot: int, values: LeafValues, box: tuple[np.ndarray, np.ndarray], epsilon: float
) -> LeafCdfs:
    """The CDFs of a numeric slot in leaves with these values; the ``box`` is the sides (l, p) of the leaves."""
    j = int(np.flatnonzero((columns.slot == slot) & (columns.is_categorical == 0))[0])
    lo, hi = _support_of_boxes(columns, table, slot, box[0][:, slot], box[1][:, slot])
    width = column_resolution(table.values[j][table.codes[j] < 0], float(table.spread[slot]))
    place = {"lo": lo, "hi": hi, "step": columns.step[slot], "origin": columns.origin[slot], "width": width}
    return LeafCdfs(*cdfs(_samples(values, epsilon, float(table.spread[slot]), **place)), lo, hi)


def n_pieces(cdfs: Iterable[LeafCdfs]) -> int:
    """Number of pieces of leaves with these CDFs; a CDF that is one line has none."""
    pieces = np.concatenate([np.diff(of.start) - 1 for of in cdfs])
    return int(pieces[pieces > 1].sum())


def with_cdfs(leaves: TreeLeaves, cdfs_of: Mapping[int, LeafCdfs]) -> TreeLeaves:
    """The leaves of one tree, with piecewise-linear CDFs in some slots (Nyga and others 2023, section 3)."""
    fields = {name: getattr(leaves, name).copy() for name in ("family", "a", "b", "lo", "hi")}
    before, edges, shares = 0, [], []
    for slot, cdfs in sorted(cdfs_of.items()):
        fields["family"][:, slot], fields["a"][:, slot], fields["b"][:, slot] = UNIFORM, 0.0, 0.0
        fields["lo"][:, slot], fields["hi"][:, slot] = cdfs.lo, cdfs.hi
        leaf, knot = _leaf_and_knot(cdfs.start)
        count = np.bincount(leaf, minlength=len(cdfs.lo))
        first = np.cumsum(count) - count
        cut = count > 0
        fields["family"][cut, slot] = PIECES
        fields["a"][cut, slot], fields["b"][cut, slot] = first[cut] + before, count[cut]
        fields["lo"][cut, slot], fields["hi"][cut, slot] = cdfs.x[cdfs.start[:-1][cut]], cdfs.x[cdfs.start[1:][cut] - 1]
        before += len(knot)
        edges.append((cdfs.x[knot], cdfs.x[knot + 1]))
        shares.append(cdfs.p[knot + 1] - cdfs.p[knot])
    lo, hi = (np.concatenate(ends) for ends in zip(*edges, strict=True))
    family, nothing = np.full(before, UNIFORM), np.zeros(before)
    with np.errstate(divide="ignore"):
        pieces = pieces_of(family, nothing, nothing, lo, hi, np.log(np.concatenate(shares)))
    return leaves._replace(**fields, pieces=pieces)


def _leaf_and_knot(knot_start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leaf of every piece of a column, and the knot that it begins at; CDFs that are one line have none."""
    count = np.diff(knot_start) - 1
    count[count == 1] = 0
    return np.repeat(np.arange(len(count)), count), ranges(knot_start[:-1], count)


def _samples(values: LeafValues, epsilon: float, spread: float, **place: Any) -> Samples:
    """The numbers of one column, and the largest distance of the CDF: ``epsilon``, the noise of w rows, or 1 / w."""
    n_leaves = len(values.start) - 1
    leaf = np.repeat(np.arange(n_leaves), np.diff(values.start))
    total = np.bincount(leaf, values.weight, n_leaves)
    with np.errstate(divide="ignore"):  # leaves without values
        close = np.minimum(np.maximum(np.maximum(epsilon, FIXED.quantile_noise / np.sqrt(total)), 1 / total), 1.0)
        outside = np.minimum(1 / total, 1.0)
    extra = FIXED.quantile_extra_rows * _pooled_variance(values.var, total, spread) / (total + 1)
    resolution = float(max(1e-3 * place["step"], place["width"]))
    extra = np.maximum(extra, resolution * resolution)
    x, share, start = values.x, values.weight / total[leaf], values.start
    rows, mean, var = (np.ascontiguousarray(a, dtype=np.float64) for a in (values.rows, values.mean, values.var))
    return Samples(x, share, start, rows, close, outside, extra, mean, var, **place)


def _pooled_variance(var: np.ndarray, total: np.ndarray, spread: float) -> float:
    """Mean of the variances (l,) of leaves of weight ``total`` (l,): at most the column's; that where all are 0."""
    free = float(total.sum()) - np.count_nonzero(total)
    with np.errstate(over="ignore"):  # of the largest floats
        squares = float(total @ var)
    return min(squares / free, spread * spread) if squares > 0 and free > 0 else spread * spread


def _support_of_boxes(
    columns: Columns, table: Table, slot: int, lo: np.ndarray, hi: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The boxes' sides (l,), open ones a `quantile_margin` beyond the values; on a grid edges of cells."""
    step, origin = columns.step[slot], columns.origin[slot]
    pad = max(FIXED.quantile_margin * table.spread[slot], 1e-9 * max(abs(table.low[slot]), abs(table.high[slot])))
    low, high = table.low[slot] - pad, table.high[slot] + pad
    below, above = table.edges[:, slot]
    if step > 0:
        low = origin + (np.rint((table.low[slot] - origin) / step) - np.ceil(pad / step) - 0.5) * step
        high = origin + (np.rint((table.high[slot] - origin) / step) + np.ceil(pad / step) + 0.5) * step
        pad = step
    low, high = max(low, below), min(high, above)
    # a box beyond the column's values keeps its finite side
    new_lo = np.where(np.isinf(lo), np.minimum(low, hi - pad), lo)
    new_hi = np.where(np.isinf(hi), np.maximum(high, lo + pad), hi)
    return new_lo, new_hi


# ---- Statistics of quantile leaves for rows in batches: counts at and between the values of a sample.


class Marks(NamedTuple):
    """Values of one numeric column in the l leaves of a tree, and the rows that lie at and between them.

    x : float64 array (m,). The marks of leaf k are ``x[start[k]:start[k + 1]]``, ascending.
    start : int64 array (l + 1,)
    at : int64 array (m,). Rows whose number is the mark.
    above : int64 array (m + l,). Rows between one mark and the next; first, in each leaf, those before all.
    """

    x: np.ndarray
    start: np.ndarray
    at: np.ndarray
    above: np.ndarray


def marks_of(values: LeafValues) -> Marks:
    """Marks at the different values of a sample's rows, nothing counted."""
    n_leaves = len(values.start) - 1
    leaf = np.repeat(np.arange(n_leaves), np.diff(values.start))
    is_new = np.ones(len(leaf), bool)
    is_new[1:] = (np.diff(leaf) > 0) | (values.x[1:] != values.x[:-1])
    start = np.concatenate([[0], np.cumsum(np.bincount(leaf[is_new], minlength=n_leaves))]).astype(np.int64)
    x = values.x[is_new]
    return Marks(x, start, np.zeros(len(x), np.int64), np.zeros(len(x) + n_leaves, np.int64))


def no_counts(marks: Marks) -> Marks:
    """The same marks, nothing counted."""
    return marks._replace(at=np.zeros_like(marks.at), above=np.zeros_like(marks.above))


def add_values(marks: Marks, x: np.ndarray, atom: np.ndarray, leaf_of: np.ndarray, count: np.ndarray) -> None:
    """Count cells ``x`` (n,) that lie on no ``atom`` (n,; -1), ``count`` (n,) times each, of rows in leaves (n,)."""
    # ascending, values find their marks beside those before: few steps, and memory that is at hand
    count_at(x, atom, leaf_of, count, np.argsort(x), marks.start[:-1].copy(), *marks)


def add_marks(marks: Marks, other: Marks) -> None:
    """Add the counts of other rows."""
    marks.at[...] += other.at
    marks.above[...] += other.above


def values_of_marks(marks: Marks, sums: LeafSums, slot: int, step: float, unit: float = 1.0) -> LeafValues:
    """The numbers of a slot as far as marks and sums show; on a grid of ``step``. ``unit`` rows count 1 at marks."""
    count, mean, deviations, lowest, highest = sums.off_atoms[slot].T
    n_leaves, n_gaps = len(count), len(marks.above)
    x, weight = np.empty((2, len(marks.x) + n_gaps * MOST + 2 * n_leaves))
    start = np.empty(n_leaves + 1, np.int64)
    ends = np.ascontiguousarray(lowest), np.ascontiguousarray(highest)
    numbers_at(marks.x, marks.start, marks.at * unit, marks.above * unit, *ends, step, x, weight, start)
    with np.errstate(over="ignore"):  # of the largest floats
        var = deviations / np.maximum(count, 1.0) * (sums.unit[slot] * sums.unit[slot])
    return LeafValues(x[: start[-1]].copy(), weight[: start[-1]].copy(), start, count, mean, var)


# ---- Which columns get quantile leaves: those that normal leaves misfit, unless validation rows are against it.


def choose_slots(
    misfit: np.ndarray,
    fits: Callable[[np.ndarray], bool],
    gains: Callable[[np.ndarray], Sequence[np.ndarray]],
    weight: np.ndarray | None = None,
    groups: int = 0,
) -> np.ndarray:
    """Slots with quantile leaves, bool (p,): all ``misfit`` ones, or those groups that raise the first criterion."""
    nothing = np.zeros_like(misfit)
    if not misfit.any() or not fits(misfit):
        return nothing
    if all(not_worse(gain, weight) for gain in gains(misfit)):
        return misfit
    slots = np.flatnonzero(misfit)
    if len(slots) == 1 or not groups:
        return nothing  # the trial of all columns was that of this one
    better = nothing
    for group in np.array_split(slots, min(len(slots), groups)):
        alone = np.isin(np.arange(len(misfit)), group)
        better |= alone & (np.average(gains(alone)[0], weights=weight) > 0.0)
    return better


def misfit_slots(forest: Forest, X: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Numeric slots whose marginal in the forest is not that of rows X (n, d), of weights (n,) or None: bool (p,)."""
    return misfit_columns(BoxForest(forest), X, weight)[forest.columns.is_categorical == 0]


def small_enough(n_pieces: int, n_trees: int) -> bool:
    """Whether ``n_trees`` trees of so many pieces each take no more than `quantile_bytes`."""
    return _PIECE_BYTES * n_pieces * n_trees <= FIXED.quantile_bytes


def not_worse(gain: np.ndarray, weight: np.ndarray | None = None) -> bool:
    """Whether gains (n,) of rows of weights (n,) or None are on average no more than a standard error below 0."""
    return bool(np.average(gain, weights=weight) >= -gain.std() / np.sqrt(len(gain)))
