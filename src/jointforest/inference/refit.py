"""New leaf values of any ensemble, by squared loss or log-loss: the equations, the sums over rows, the targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..data.cells import absent
from ..ensembles.evaluate import apply_link, leaves
from ..ensembles.table import Ensemble
from ..models.box_forest.posterior import chunk_posterior, row_chunks
from ..models.box_forest.structure import leaf_nodes
from ..runtime.arrays import divided
from ..runtime.parameters import check, check_number
from ..runtime.threads import map_ordered
from .expectation.cell_kernels import complete_stratified
from .expectation.component_kernels import STRIDE
from .expectation.descent_kernels import leaf_pair_rows
from .expectation.expectation import (
    MatchedRows,
    PairSums,
    cell_scratch,
    distinct,
    expectation_scratch,
    knows_splits,
    leaf_probability,
    take_matched,
)
from .expectation.match import MatchedEnsemble, filled
from .refit_kernels import cell_leaves, curvature, means_above, pair_leaves

# ---- Conjugate gradients, for equations whose matrix is known by its products alone.

_TOLERANCE = 1e-12
"""Relative length of what a solution leaves of the right side."""


def conjugate_gradients(times: Callable[[np.ndarray], np.ndarray], right: np.ndarray) -> np.ndarray:
    """x (n, K) with A x = b for K right sides at once; of several solutions the one of least norm."""
    # An ArithmeticError if `_TOLERANCE` is not reached in 10 n steps.
    x, residual = np.zeros_like(right), right.copy()
    direction, square = residual.copy(), (residual**2).sum(axis=0)
    goal = _TOLERANCE**2 * square
    for _ in range(10 * len(right) + 1):
        if (square <= goal).all():
            return x
        product = times(direction)
        curvature = (direction * product).sum(axis=0)
        step = np.divide(square, curvature, out=np.zeros_like(square), where=(curvature > 0) & (square > goal))
        x += step * direction
        residual -= step * product
        before, square = square, (residual**2).sum(axis=0)
        ratio = divided(square, before)
        direction = residual + ratio * direction
    raise ArithmeticError(f"conjugate gradients: no solution in {10 * len(right)} steps")


# ---- New leaf values of an ensemble's trees, by the expected squared loss over what the rows lack.

_METHODS = ("bagging", "forest", "boosting")
_MOST_LEAVES = 6000
"""Leaves up to which pairs have a matrix: 288 MB."""
NO_MASS = 1e-12
"""Share of the rows' weight up to which a leaf counts as one without mass: what rounding leaves of an empty one."""


def refit_squared(
    matched: MatchedEnsemble,
    rows: MatchedRows,
    y: np.ndarray,
    method: str,
    weight_decay: float = 0.0,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """Leaf values (L, K) of least expected squared loss plus penalty; raises ValueError for a row of probability 0."""
    # sum_i w_i E[(y_i - F)^2 | known cells of row i] / sum_i w_i + weight_decay |theta|^2, F the sum of base and trees.
    # Leaves without mass get the mean value below the nearest node above that has some.
    ensemble = matched.ensemble
    weight = np.ones(len(y)) if weight is None else weight
    sample = gather(matched, rows, y - ensemble.base, weight)
    mass, target = refit_sums(matched, sample)
    total = float(weight.sum())
    is_known = mass > NO_MASS * total
    mass, target = np.where(is_known, mass, 0.0), np.where(is_known[:, None], target, 0.0)
    decay = weight_decay * total
    if method == "bagging":
        value = _target_over_mass(target, mass + decay) / len(ensemble.root)
    elif method == "forest":
        value = _forest_by_squared_loss(matched, sample, mass, target, decay)
    else:
        value = _boosting_by_squared_loss(matched, sample, mass, target, decay)
    return with_means(ensemble, mass, value)


def with_means(ensemble: Ensemble, mass: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The values (L, K), but at leaves of mass 0 the mean by mass below the nearest node above that has mass."""
    means: np.ndarray = means_above(ensemble.left, ensemble.right, ensemble.leaf, mass, np.ascontiguousarray(value))
    return means[leaf_nodes(ensemble.leaf)]


def is_average(ensemble: Ensemble) -> bool:
    """Whether the model's prediction is the mean of its trees', as far as its class shows."""
    name = ensemble.library.split()[-1]
    return ensemble.link == "identity" and name.startswith(("DecisionTree", "ExtraTree", "RandomForest", "XGBRF"))


def _tree_leaves(ensemble: Ensemble) -> np.ndarray:
    """The tree of each leaf, (L,)."""
    tree = np.empty(len(ensemble.feature), dtype=np.int64)
    tree[ensemble.root] = np.arange(len(ensemble.root))
    for node in range(len(tree)):  # children come after their parent
        if ensemble.leaf[node] < 0:
            tree[ensemble.left[node]] = tree[ensemble.right[node]] = tree[node]
    return tree[leaf_nodes(ensemble.leaf)]


def _target_over_mass(target: np.ndarray, mass: np.ndarray) -> np.ndarray:
    return divided(target, mass[:, None])


def _forest_by_squared_loss(
    matched: MatchedEnsemble, sample: RefitSample, mass: np.ndarray, target: np.ndarray, decay: float
) -> np.ndarray:
    """Proposition 3. In units in which the equations have a diagonal of 1, which makes them as well posed as may be."""
    omega = 1.0 / len(matched.ensemble.root) if is_average(matched.ensemble) else 1.0
    unit = np.zeros(len(mass))
    unit[mass > 0] = (omega**2 * mass[mass > 0] + decay) ** -0.5
    right = unit[:, None] * omega * target
    if len(mass) <= _MOST_LEAVES:
        at = np.flatnonzero(mass)
        matrix = omega**2 * pair_matrix(matched, sample)[np.ix_(at, at)] * np.outer(unit[at], unit[at])
        theta = np.zeros(target.shape)
        if decay > 0:
            matrix[np.diag_indices(len(at))] += decay * unit[at] ** 2
            theta[at] = np.linalg.solve(matrix, right[at])
        else:
            theta[at] = _least_norm(matrix, right[at])
    else:

        def times(x: np.ndarray) -> np.ndarray:
            product = omega**2 * pair_product(matched, sample, unit[:, None] * x)
            return unit[:, None] * product + decay * unit[:, None] ** 2 * x

        theta = conjugate_gradients(times, right)
    return omega * unit[:, None] * theta


def _least_norm(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of least norm of equations that have some; the matrix is symmetric, with no negative eigenvalue."""
    eigenvalue, vector = np.linalg.eigh(matrix)
    kept = eigenvalue > len(matrix) * np.finfo(float).eps * eigenvalue[-1]
    vector = vector[:, kept]
    return vector @ ((vector.T @ right) / eigenvalue[kept, None])


def _boosting_by_squared_loss(
    matched: MatchedEnsemble, sample: RefitSample, mass: np.ndarray, target: np.ndarray, decay: float
) -> np.ndarray:
    """Proposition 4, tree after tree."""
    matrix = pair_matrix(matched, sample) if len(mass) <= _MOST_LEAVES else None
    tree = _tree_leaves(matched.ensemble)
    value = np.zeros(target.shape)
    for t in range(len(matched.ensemble.root)):
        leaves = np.flatnonzero(tree == t)
        # values of later trees are 0 yet
        before = pair_product(matched, sample, value, t, t)[leaves] if matrix is None else matrix[leaves] @ value
        value[leaves] = _target_over_mass(target[leaves] - before, mass[leaves] + decay)
        value[leaves[mass[leaves] == 0]] = 0.0
    return value


# ---- New leaf values of ensembles that add up log-odds, by Newton steps on the expected log-loss.

_MOST_STEPS = 100
"""Most Newton steps of an output; the loss is convex, so few are enough."""
_MOST_HALVINGS = 30
"""Most halvings of a step that raises the loss."""
_SMALL = 1e-10
"""Relative rise of a loss that is rounding."""


def refit_log_loss(
    matched: MatchedEnsemble,
    rows: MatchedRows,
    y: np.ndarray,
    method: str,
    weight_decay: float,
    weight: np.ndarray | None = None,
    m: int = 128,
    seed: int = 0,
) -> np.ndarray:
    """Leaf values (L, K) of least expected log-loss plus penalty; raises ValueError for a row of probability 0."""
    # sum_i w_i E[loss(y_i, F(X)) | known cells of row i] / sum_i w_i + weight_decay |theta|^2 / 2: the mean of losses
    # over completions, exact for at most ``m`` combinations of cells, otherwise over m stratified completions.
    weight = np.ones(len(y)) if weight is None else weight
    data = complete(matched, gather(matched, rows, y, weight), m, seed)
    decay = weight_decay * float(weight.sum())
    n_leaves = len(matched.ensemble.value)
    mass = np.zeros(n_leaves)
    for leaf in data.leaf.T:
        mass += np.bincount(leaf, data.weight, n_leaves)
    mass[mass <= NO_MASS * data.weight.sum()] = 0.0
    value = (
        _boosting_by_log_loss(matched, data, decay)
        if method == "boosting"
        else _forest_by_log_loss(matched, data, decay)
    )
    return with_means(matched.ensemble, mass, np.where(mass[:, None] > 0, value, 0.0))


def log_loss(link: str, total: np.ndarray, weight: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Weighted log-loss of each complete row (N,), of sums before the link (N, K) and targets times weights (N, K)."""
    if link == "logistic":
        return weight * np.logaddexp(0.0, total[:, 0]) - target[:, 0] * total[:, 0]
    return weight * np.logaddexp.reduce(total, axis=1) - (target * total).sum(axis=1)


def outputs_of_trees(matched: MatchedEnsemble) -> np.ndarray:
    """Which outputs each tree adds to, bool (T, K); all of them if there is one."""
    ensemble = matched.ensemble
    out = np.zeros((len(ensemble.root), len(ensemble.base)), dtype=bool)
    np.logical_or.at(out, _tree_leaves(ensemble), ensemble.value != 0)
    return out | (len(ensemble.base) == 1)


def _boosting_by_log_loss(matched: MatchedEnsemble, data: Completions, decay: float) -> np.ndarray:
    ensemble = matched.ensemble
    n = len(ensemble.value)
    value = np.zeros(ensemble.value.shape)
    total = np.tile(ensemble.base, (len(data.leaf), 1))
    for t, active in enumerate(outputs_of_trees(matched)):
        leaf = data.leaf[:, t]
        share = apply_link(ensemble.link, total)
        step = np.zeros(value.shape)
        for k in np.flatnonzero(active):
            slope = np.bincount(leaf, data.weight * share[:, k] - data.target[:, k], n)
            hessian = np.bincount(leaf, data.weight * share[:, k] * (1.0 - share[:, k]), n) + decay
            step[:, k] = np.divide(-slope, hessian, out=np.zeros(n), where=hessian > 0)
        before = np.bincount(leaf, log_loss(ensemble.link, total, data.weight, data.target), n)
        for _ in range(_MOST_HALVINGS):
            new = total + step[leaf]
            after = np.bincount(leaf, log_loss(ensemble.link, new, data.weight, data.target), n)
            rises = after + 0.5 * decay * (step**2).sum(axis=1) > before * (1.0 + _SMALL) + _SMALL
            if not rises.any():
                break
            step[rises] *= 0.5
        value += step
        total = new
    return value


def _forest_by_log_loss(matched: MatchedEnsemble, data: Completions, decay: float) -> np.ndarray:
    """Newton steps for all numbers at once: of leaves, and of the outputs that their trees add to."""
    ensemble = matched.ensemble
    n, n_outputs = ensemble.value.shape
    tree, output = np.nonzero(outputs_of_trees(matched))
    shift = n * output
    used = np.zeros(n * n_outputs, dtype=bool)
    for t, s in zip(tree, shift, strict=True):
        used[data.leaf[:, t] + s] = True
    at = np.flatnonzero(used)
    theta = np.zeros(n * n_outputs)
    total = _completion_sums(matched, data, theta, tree, output)
    loss = _penalised(matched, data, total, theta, decay)
    for _ in range(_MOST_STEPS):
        share = apply_link(ensemble.link, total)
        slope, hessian = np.zeros(len(theta)), np.zeros((len(theta), len(theta)))
        for t, k, s in zip(tree, output, shift, strict=True):
            off = data.weight * share[:, k] - data.target[:, k]
            slope += np.bincount(data.leaf[:, t] + s, off, len(theta))
        slope += decay * theta
        curvature(data.leaf, tree, output, shift, data.weight, share, hessian)
        hessian += hessian.T - np.diag(np.diagonal(hessian)) + decay * np.eye(len(theta))
        step = np.zeros(len(theta))
        step[at] = -np.linalg.solve(hessian[np.ix_(at, at)], slope[at])
        gain = -0.5 * float(slope @ step)
        for _ in range(_MOST_HALVINGS):
            new = theta + step
            total = _completion_sums(matched, data, new, tree, output)
            now = _penalised(matched, data, total, new, decay)
            if now <= loss + _SMALL * 1e-3 * abs(loss):  # rounding is no rise
                break
            step *= 0.5
        theta, loss = new, now
        if gain <= _SMALL * abs(loss) * 1e-4:
            break
    return theta.reshape(n_outputs, n).T


def _completion_sums(
    matched: MatchedEnsemble, data: Completions, theta: np.ndarray, tree: np.ndarray, output: np.ndarray
) -> np.ndarray:
    total = np.tile(matched.ensemble.base, (len(data.leaf), 1))
    value = theta.reshape(len(matched.ensemble.base), -1)
    for t, k in zip(tree, output, strict=True):
        total[:, k] += value[k, data.leaf[:, t]]
    return total


def _penalised(
    matched: MatchedEnsemble, data: Completions, total: np.ndarray, theta: np.ndarray, decay: float
) -> float:
    loss = log_loss(matched.ensemble.link, total, data.weight, data.target).sum()
    return float(loss + 0.5 * decay * (theta**2).sum())


def refit_values(
    matched: MatchedEnsemble,
    rows: MatchedRows,
    y: np.ndarray,
    method: str = "auto",
    weight_decay: float | None = None,
    weight: np.ndarray | None = None,
    m: int = 128,
    seed: int = 0,
) -> np.ndarray:
    """Leaf values (L, K) by the expected squared loss (`refit_squared`) or log-loss (`refit_log_loss`)."""
    ensemble = matched.ensemble
    link = ensemble.link
    check("method", method, ("auto", *_METHODS))
    if link == "exp":
        raise ValueError(
            f"the {ensemble.library} predicts the exponential of a sum, by one of several losses (Poisson, gamma, "
            "Tweedie, ...): there is no refit of these, only of squared loss and log-loss"
        )
    if weight_decay is None:
        weight_decay = 0.0 if link == "identity" else 1.0 / (len(y) if weight is None else float(weight.sum()))
    check_number("weight_decay", weight_decay, 0, np.inf, without="high", text="a number of at least 0")
    if method == "auto":
        method = "bagging" if is_average(ensemble) else "boosting"
    if link == "identity":
        return refit_squared(matched, rows, y, method, weight_decay, weight)
    if method == "bagging":
        raise ValueError(
            f"method='bagging': the {ensemble.library} adds up log-odds, its trees are no predictions of their own; "
            "use 'boosting' or 'forest'"
        )
    if method == "forest" and weight_decay == 0:
        raise ValueError(
            "method='forest': log-loss has no minimum where rows of a leaf are of one class; give a weight_decay"
        )
    return refit_log_loss(matched, rows, y, method, weight_decay, weight, m, seed)


def targets(ensemble: Ensemble, y: Any, n: int) -> np.ndarray:
    """The targets of n rows in the model's outputs, (n, K): indicators of classes, or numbers."""
    cells = np.asarray(y, dtype=object)
    if cells.shape != (n,):
        raise ValueError(f"y: expected one entry for each of the {n} rows of X, got shape {cells.shape}")
    missing = [i for i, cell in enumerate(cells.tolist()) if absent(cell)]
    if missing:
        raise ValueError(
            f"y: {len(missing)} of {n} entries are missing, the first in row {missing[0]}; only X may have missing "
            "cells: leave these rows out"
        )
    if ensemble.classes is None:
        try:
            numbers = cells.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"y: expected numbers for the {ensemble.library}, got {cells[0]!r}") from None
        if not np.isfinite(numbers).all():
            raise ValueError("y: infinite numbers")
        if ensemble.link == "logistic" and ((numbers < 0) | (numbers > 1)).any():
            raise ValueError(f"y: the {ensemble.library} predicts shares; expected numbers from 0 to 1")
        return numbers[:, None]
    place = {label: k for k, label in enumerate(ensemble.classes)}
    unknown = [cell for cell in cells.tolist() if cell not in place]
    if unknown:
        raise ValueError(
            f"y: {unknown[0]!r} is no class of the {ensemble.library}, which has {list(ensemble.classes)[:8]}"
        )
    shares = np.eye(len(place))[[place[cell] for cell in cells.tolist()]]
    return shares[:, 1:] if ensemble.link == "logistic" else shares


# ---- What refitting an ensemble's leaf values takes of the rows: sums over rows of probabilities of leaves and pairs.


_ROWS = 32
"""Rows of a chunk for a thread."""
_AT_ONCE = 4096
"""Rows whose leaf probabilities are held at a time, which bounds memory."""
_MOST_PARTS = 16
"""Most parts of a sum. They do not depend on the number of threads, so that the answer does not either."""
_PART_BYTES = 2**28
"""Memory that all parts of a sum may have."""


class RefitSample(NamedTuple):
    """Weighted rows with targets; rows that are alike are one.

    leaf : int32 array (n, T). Leaves of the rows that know all features that are split.
    leaf_weight : float64 array (n,)
    leaf_target : float64 array (n, K). Weight times target, summed.
    part : Rows. The other m rows.
    part_weight : float64 array (m,)
    part_target : float64 array (m, K)
    """

    leaf: np.ndarray
    leaf_weight: np.ndarray
    leaf_target: np.ndarray
    part: MatchedRows
    part_weight: np.ndarray
    part_target: np.ndarray


def gather(matched: MatchedEnsemble, rows: MatchedRows, y: np.ndarray, weight: np.ndarray) -> RefitSample:
    """n rows with targets (n, K) and weights (n,)."""
    counts = weight > 0
    complete = knows_splits(matched.features, rows) & counts
    known_rows, incomplete_rows = np.flatnonzero(complete), np.flatnonzero(~complete & counts)
    leaf = leaves(matched.ensemble, rows.X[known_rows], rows.other[known_rows])
    part, place = take_matched(rows, incomplete_rows), np.arange(len(incomplete_rows))
    if len(incomplete_rows):
        part, same = distinct(part)
        place = place[same] if isinstance(same, slice) else same
    total = weight[:, None] * y
    return RefitSample(
        leaf,
        weight[known_rows],
        total[known_rows],
        part,
        np.bincount(place, weight[incomplete_rows], len(part.X)),
        np.column_stack([np.bincount(place, column, len(part.X)) for column in total[incomplete_rows].T]),
    )


def refit_sums(matched: MatchedEnsemble, sample: RefitSample) -> tuple[np.ndarray, np.ndarray]:
    """Sums over rows of weight times P(in the leaf | known cells), (L,), and of this times the target, (L, K)."""
    n_leaves, n_outputs = matched.ensemble.value.shape
    mass, target = np.zeros(n_leaves), np.zeros((n_leaves, n_outputs))
    for leaf in sample.leaf.T:
        mass += np.bincount(leaf, sample.leaf_weight, n_leaves)
        for k in range(n_outputs):
            target[:, k] += np.bincount(leaf, sample.leaf_target[:, k], n_leaves)
    for first in range(0, len(sample.part_weight), _AT_ONCE):
        here = np.arange(first, min(first + _AT_ONCE, len(sample.part_weight)))
        reached = leaf_probability(matched, take_matched(sample.part, here))
        size = np.diff(reached.start)
        if not size.all():
            raise ValueError(
                f"{int((size == 0).sum())} of the rows with missing cells have probability 0 under the joint, so that "
                "nothing is known of their completions: leave them out, or fit the joint with a background"
            )
        mass += np.bincount(reached.leaf, reached.probability * np.repeat(sample.part_weight[here], size), n_leaves)
        for k in range(n_outputs):
            share = reached.probability * np.repeat(sample.part_target[here, k], size)
            target[:, k] += np.bincount(reached.leaf, share, n_leaves)
    return mass, target


def pair_matrix(matched: MatchedEnsemble, sample: RefitSample) -> np.ndarray:
    """Sums over rows of weight times P(in leaf a and in leaf b | known cells), (L, L)."""
    n_leaves, n_outputs = matched.ensemble.value.shape
    nothing = np.empty((0, n_outputs))

    def add(first: int, stop: int, rows: list[tuple[int, int]]) -> np.ndarray:
        out = np.zeros((n_leaves, n_leaves))
        pair_leaves(sample.leaf, sample.leaf_weight, first, stop, out)
        _add_rows(matched, sample, rows, PairSums(-1, 0, nothing, out, nothing, np.zeros(n_leaves)))
        return out

    out = _sum_parts(matched, sample, n_leaves**2, add)
    out += out.T - np.diag(np.diagonal(out))
    return out


def pair_product(
    matched: MatchedEnsemble, sample: RefitSample, value: np.ndarray, tree: int = -1, stop: int = 0
) -> np.ndarray:
    """`pair_matrix` times value (L, K), without the matrix; (L, K)."""
    # If ``tree`` is given, only for its leaves, and without its own values and those of the trees from ``stop`` on.
    ensemble = matched.ensemble
    nothing = np.empty((0, 0))

    def add(first: int, end: int, rows: list[tuple[int, int]]) -> np.ndarray:
        out = np.zeros(value.shape)
        leaf = sample.leaf[first:end]
        trees = range(len(ensemble.root)) if tree < 0 else [s for s in range(stop) if s != tree]
        total = np.zeros((len(leaf), value.shape[1]))
        for s in trees:
            total += value[leaf[:, s]]
        total *= sample.leaf_weight[first:end, None]
        for s in trees if tree < 0 else [tree]:
            for k in range(value.shape[1]):
                out[:, k] += np.bincount(leaf[:, s], total[:, k], len(value))
        _add_rows(matched, sample, rows, PairSums(tree, stop, value, nothing, out, np.zeros(len(value))))
        return out

    return _sum_parts(matched, sample, value.size, add)


def _add_rows(matched: MatchedEnsemble, sample: RefitSample, rows: list[tuple[int, int]], sums: PairSums) -> None:
    """Add the pairs of leaves of these chunks of the rows with missing cells."""
    part = sample.part
    # every leaf counts, also beside one of its value
    arrays = matched.arrays()._replace(half_most=np.ones(len(matched.half)))
    scratch, narrow = expectation_scratch(arrays), np.empty((len(arrays.regions.column), STRIDE))
    for first, end in rows:
        post = chunk_posterior(matched.model, part.evidence, first, end)
        leaf_pair_rows(arrays, part, first, post, sample.part_weight, sums, scratch, narrow)


def _sum_parts(matched: MatchedEnsemble, sample: RefitSample, size: int, add: Callable[..., np.ndarray]) -> np.ndarray:
    """Sum of what some parts of the rows have: parts that do not depend on the number of threads, few if large."""
    n = max(1, min(_MOST_PARTS, _PART_BYTES // (8 * size)))
    chunks = row_chunks(matched.model, sample.part.evidence, _ROWS) if len(sample.part_weight) else []
    ends = np.linspace(0, len(sample.leaf), n + 1).astype(int)
    chunk_ends = np.linspace(0, len(chunks), n + 1).astype(int)
    parts = [(int(ends[i]), int(ends[i + 1]), chunks[chunk_ends[i] : chunk_ends[i + 1]]) for i in range(n)]
    total: np.ndarray | None = None
    for part in map_ordered(add, parts):
        total = part if total is None else total + part
    assert total is not None
    return total


# ---- Rows as weighted complete ones: all that they may be where these are few, else a stratified sample.

_DRAWN = 100_000
"""Completed rows that a thread holds at a time."""


class Completions(NamedTuple):
    """N weighted complete rows.

    leaf : int32 array (N, T)
    weight : float64 array (N,)
    target : float64 array (N, K). Weight times target.
    """

    leaf: np.ndarray
    weight: np.ndarray
    target: np.ndarray


def complete(matched: MatchedEnsemble, sample: RefitSample, m: int, seed: int) -> Completions:
    """Rows of a sample completed: to all combinations of cells if they are at most ``m``, else to m draws."""
    part = sample.part
    arrays = matched.arrays()

    def work(first: int, stop: int) -> tuple[np.ndarray, ...]:
        post = chunk_posterior(matched.model, part.evidence, first, stop)
        count, probability, leaf = cell_leaves(
            arrays, part, first, post, m, expectation_scratch(arrays), cell_scratch(arrays, m)
        )
        row = np.repeat(np.arange(first, stop), np.maximum(count, 0))
        if not (count < 0).any():
            return count, row, probability, leaf
        many = np.flatnonzero(count < 0)
        drawn = _draw_leaves(matched, sample, first + many, m, seed)
        return (
            count,
            np.concatenate([row, np.repeat(first + many, m)]),
            np.concatenate([probability, np.full(len(drawn), 1.0 / m)]),
            np.concatenate([leaf, drawn]),
        )

    size = max(1, min(256, _DRAWN // m))
    cut = row_chunks(matched.model, part.evidence, size) if len(sample.part_weight) else []
    parts: list[Any] = list(map_ordered(work, cut))
    lost = sum(int((count == 0).sum()) for count, *_ in parts)
    if lost:
        raise ValueError(
            f"{lost} of the rows with missing cells have probability 0 under the joint, so that nothing is known of "
            "their completions: leave them out, or fit the joint with a background"
        )
    row = np.concatenate([np.empty(0, dtype=np.int64), *(p[1] for p in parts)])
    share = np.concatenate([np.empty(0), *(p[2] for p in parts)])
    return Completions(
        np.concatenate([sample.leaf, *(p[3] for p in parts)]),
        np.concatenate([sample.leaf_weight, sample.part_weight[row] * share]),
        np.concatenate([sample.leaf_target, sample.part_target[row] * share[:, None]]),
    )


def _draw_leaves(matched: MatchedEnsemble, sample: RefitSample, row: np.ndarray, m: int, seed: int) -> np.ndarray:
    """Leaves of m completions of each of some rows, (m * rows, T)."""
    model, rows = matched.model, take_matched(sample.part, row)
    drawn = np.empty((m * len(row), rows.evidence.value.shape[1]))
    post = chunk_posterior(model, rows.evidence, 0, len(row))
    complete_stratified(model.columns, model.leaves, rows.evidence, post, m, seed, int(row[0]), drawn)
    X, other = filled(matched.features, np.repeat(rows.X, m, axis=0), np.repeat(rows.other, m, axis=0), drawn)
    return leaves(matched.ensemble, X, other)
