"""New leaf values of any ensemble: the targets as numbers, and the loss that goes with the link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...data.cells import absent
from ...ensembles.evaluate import apply_link
from ...ensembles.table import Ensemble
from ...models.box_forest.structure import leaf_nodes
from ...runtime.parameters import check, check_number
from ..expectation.expectation import MatchedRows
from ..expectation.match import MatchedEnsemble
from .refit_kernels import curvature, means_above
from .sums import Completions, RefitSample, complete, gather, pair_matrix, pair_product, refit_sums

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
        ratio = np.divide(square, before, out=np.zeros_like(square), where=before > 0)
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
    most_leaves: int = _MOST_LEAVES,
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
        value = _ratio(target, mass + decay) / len(ensemble.root)
    elif method == "forest":
        value = _forest_by_squared_loss(matched, sample, mass, target, decay, most_leaves)
    else:
        value = _boosting_by_squared_loss(matched, sample, mass, target, decay, most_leaves)
    return with_means(ensemble, mass, value)


def with_means(ensemble: Ensemble, mass: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The values (L, K), but at leaves of mass 0 the mean by mass below the nearest node above that has mass."""
    means: np.ndarray = means_above(ensemble.left, ensemble.right, ensemble.leaf, mass, value)
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


def _ratio(target: np.ndarray, mass: np.ndarray) -> np.ndarray:
    return np.divide(target, mass[:, None], out=np.zeros_like(target), where=mass[:, None] > 0)


def _forest_by_squared_loss(
    matched: MatchedEnsemble,
    sample: RefitSample,
    mass: np.ndarray,
    target: np.ndarray,
    decay: float,
    most_leaves: int,
) -> np.ndarray:
    """Proposition 3. In units in which the equations have a diagonal of 1, which makes them as well posed as may be."""
    omega = 1.0 / len(matched.ensemble.root) if is_average(matched.ensemble) else 1.0
    unit = np.zeros(len(mass))
    unit[mass > 0] = (omega**2 * mass[mass > 0] + decay) ** -0.5
    right = unit[:, None] * omega * target
    if len(mass) <= most_leaves:
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
    matched: MatchedEnsemble,
    sample: RefitSample,
    mass: np.ndarray,
    target: np.ndarray,
    decay: float,
    most_leaves: int,
) -> np.ndarray:
    """Proposition 4, tree after tree."""
    matrix = pair_matrix(matched, sample) if len(mass) <= most_leaves else None
    tree = _tree_leaves(matched.ensemble)
    value = np.zeros(target.shape)
    for t in range(len(matched.ensemble.root)):
        leaves = np.flatnonzero(tree == t)
        # values of later trees are 0 yet
        before = pair_product(matched, sample, value, t, t)[leaves] if matrix is None else matrix[leaves] @ value
        value[leaves] = _ratio(target[leaves] - before, mass[leaves] + decay)
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
    total = _sums(matched, data, theta, tree, output)
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
            total = _sums(matched, data, new, tree, output)
            now = _penalised(matched, data, total, new, decay)
            if now <= loss + _SMALL * 1e-3 * abs(loss):  # rounding is no rise
                break
            step *= 0.5
        theta, loss = new, now
        if gain <= _SMALL * abs(loss) * 1e-4:
            break
    return theta.reshape(n_outputs, n).T


def _sums(
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
