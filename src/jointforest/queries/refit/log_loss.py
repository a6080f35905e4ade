"""New leaf values of ensembles that add up log-odds, by Newton steps on the expected log-loss."""

from __future__ import annotations

import numpy as np

from ...ensembles.evaluate import apply_link
from ..expectation.expectation import Rows
from ..expectation.match import MatchedEnsemble
from .completion_kernels import curvature
from .completions import Completions, complete
from .squared_loss import NO_MASS, tree_leaves, with_means
from .sums import gather

_MOST_STEPS = 100
_MOST_HALVINGS = 30
_SMALL = 1e-10


def refit_log_loss(
    matched: MatchedEnsemble,
    rows: Rows,
    y: np.ndarray,
    method: str,
    weight_decay: float,
    weight: np.ndarray | None = None,
    m: int = 128,
    seed: int = 0,
    n_jobs: int | None = -1,
) -> np.ndarray:
    """Leaf values by the expected log-loss, plus a penalty.

    With F the sum of base and trees:
    sum_i w_i E[loss(y_i, F(X)) | known cells of row i] / sum_i w_i + weight_decay |theta|^2 / 2, the mean of the losses
    over the completions of a row, not the loss of a mean. Rows with at most ``m`` combinations of cells have this mean
    exactly, others that over m stratified completions.

    Parameters
    ----------
    matched : MatchedEnsemble
        Its link is "logistic" or "softmax".
    rows : Rows
        n rows.
    y : float64 array (n, K)
        Of a logistic link (K = 1) between 0 and 1, else shares of classes.
    method : {"boosting", "forest"}
        "boosting": one tree after the other, each leaf by one Newton step from 0, on what the trees before leave:
        theta = -g / (h + weight_decay sum_i w_i), where g and h are the sums of the loss's two derivatives in F. A step
        is halved until the leaf's loss does not rise. "forest": all trees at once, by Newton steps to the minimum.
    weight_decay : float
        Above 0 for "forest".
    weight : float64 array (n,), optional
        Weights of rows, default 1.
    m, seed : int
        Completions.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    float64 array (L, K)
        A tree has values for those outputs for which it had some. Leaves without mass as in `squared_loss`.

    Raises
    ------
    ValueError
        If the joint gives a row's known cells probability 0.
    """
    weight = np.ones(len(y)) if weight is None else weight
    data = complete(matched, gather(matched, rows, y, weight, n_jobs), m, seed, n_jobs)
    decay = weight_decay * float(weight.sum())
    n_leaves = len(matched.ensemble.value)
    mass = np.zeros(n_leaves)
    for leaf in data.leaf.T:
        mass += np.bincount(leaf, data.weight, n_leaves)
    mass[mass <= NO_MASS * data.weight.sum()] = 0.0
    value = _boosting(matched, data, decay) if method == "boosting" else _forest(matched, data, decay)
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
    np.logical_or.at(out, tree_leaves(ensemble), ensemble.value != 0)
    return out | (len(ensemble.base) == 1)


def _boosting(matched: MatchedEnsemble, data: Completions, decay: float) -> np.ndarray:
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
            bend = np.bincount(leaf, data.weight * share[:, k] * (1.0 - share[:, k]), n) + decay
            step[:, k] = np.divide(-slope, bend, out=np.zeros(n), where=bend > 0)
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


def _forest(matched: MatchedEnsemble, data: Completions, decay: float) -> np.ndarray:
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
        slope, bend = np.zeros(len(theta)), np.zeros((len(theta), len(theta)))
        for t, k, s in zip(tree, output, shift, strict=True):
            off = data.weight * share[:, k] - data.target[:, k]
            slope += np.bincount(data.leaf[:, t] + s, off, len(theta))
        slope += decay * theta
        curvature(data.leaf, tree, output, shift, data.weight, share, bend)
        bend += bend.T - np.diag(np.diagonal(bend)) + decay * np.eye(len(theta))
        step = np.zeros(len(theta))
        step[at] = -np.linalg.solve(bend[np.ix_(at, at)], slope[at])
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
