"""New leaf values of an ensemble's trees, by the expected squared loss over what the rows lack.

Propositions 2 to 4 of P. Khosravi and others, "Handling Missing Data in Decision Trees" (2020).
"""

from __future__ import annotations

import numpy as np

from ...ensembles.table import Ensemble
from ..expectation.expectation import Rows
from ..expectation.match import MatchedEnsemble
from .conjugate_gradients import conjugate_gradients
from .pair_kernels import means_above
from .sums import Sample, gather, leaf_sums, pair_matrix, pair_product

METHODS = ("bagging", "forest", "boosting")
MOST_LEAVES = 6000
"""Leaves up to which pairs have a matrix: 288 MB."""
NO_MASS = 1e-12
"""Share of the rows' weight up to which a leaf counts as one without mass: what rounding leaves of an empty one."""


def refit_squared(
    matched: MatchedEnsemble,
    rows: Rows,
    y: np.ndarray,
    method: str,
    weight_decay: float = 0.0,
    weight: np.ndarray | None = None,
    most_leaves: int = MOST_LEAVES,
    n_jobs: int | None = -1,
) -> np.ndarray:
    """Leaf values that minimise the expected squared loss, plus a penalty.

    With F the sum of base and trees, exactly:
    sum_i w_i E[(y_i - F)^2 | known cells of row i] / sum_i w_i + weight_decay |theta|^2.

    Parameters
    ----------
    matched : MatchedEnsemble
    rows : Rows
        n rows.
    y : float64 array (n, K)
    method : {"bagging", "forest", "boosting"}
        "bagging": each tree alone on y, and F is the mean of the trees (Proposition 2). "forest": all trees at once, F
        their mean if the model is an average, else their sum (Proposition 3, omega = 1/T or 1); without weight decay of
        all solutions the one whose trees have the least mean squares. "boosting": one tree after the other on what the
        trees before it leave, F their sum (Proposition 4).
    weight_decay : float
    weight : float64 array (n,), optional
        Weights of rows, default 1.
    most_leaves : int
        With more leaves, pairs of leaves have no matrix: "forest" is solved by conjugate gradients, "boosting" goes
        through the rows once for each tree.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    float64 array (L, K)
        Values with the trees' weights folded in. Leaves without mass have the mean value of the leaves below the
        nearest node above that has some.

    Raises
    ------
    ValueError
        If the joint gives a row's known cells probability 0.
    """
    ensemble = matched.ensemble
    weight = np.ones(len(y)) if weight is None else weight
    sample = gather(matched, rows, y - ensemble.base, weight, n_jobs)
    mass, target = leaf_sums(matched, sample, n_jobs)
    total = float(weight.sum())
    is_known = mass > NO_MASS * total
    mass, target = np.where(is_known, mass, 0.0), np.where(is_known[:, None], target, 0.0)
    decay = weight_decay * total
    if method == "bagging":
        value = _ratio(target, mass + decay) / len(ensemble.root)
    elif method == "forest":
        value = _forest(matched, sample, mass, target, decay, most_leaves, n_jobs)
    else:
        value = _boosting(matched, sample, mass, target, decay, most_leaves, n_jobs)
    return with_means(ensemble, mass, value)


def with_means(ensemble: Ensemble, mass: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The values (L, K), but at leaves of mass 0 the mean by mass below the nearest node above that has mass."""
    nodes = np.flatnonzero(ensemble.leaf >= 0)
    nodes = nodes[np.argsort(ensemble.leaf[nodes])]
    means: np.ndarray = means_above(ensemble.left, ensemble.right, ensemble.leaf, mass, value)[nodes]
    return means


def is_average(ensemble: Ensemble) -> bool:
    """Whether the model's prediction is the mean of its trees', as far as its class tells."""
    name = ensemble.library.split()[-1]
    return ensemble.link == "identity" and name.startswith(("DecisionTree", "ExtraTree", "RandomForest", "XGBRF"))


def tree_leaves(ensemble: Ensemble) -> np.ndarray:
    """The tree of each leaf, (L,)."""
    tree = np.empty(len(ensemble.feature), dtype=np.int64)
    tree[ensemble.root] = np.arange(len(ensemble.root))
    for node in range(len(tree)):  # children come after their parent
        if ensemble.leaf[node] < 0:
            tree[ensemble.left[node]] = tree[ensemble.right[node]] = tree[node]
    out = np.empty(len(ensemble.value), dtype=np.int64)
    is_leaf = ensemble.leaf >= 0
    out[ensemble.leaf[is_leaf]] = tree[is_leaf]
    return out


def _ratio(target: np.ndarray, mass: np.ndarray) -> np.ndarray:
    return np.divide(target, mass[:, None], out=np.zeros_like(target), where=mass[:, None] > 0)


def _forest(
    matched: MatchedEnsemble,
    sample: Sample,
    mass: np.ndarray,
    target: np.ndarray,
    decay: float,
    most_leaves: int,
    n_jobs: int | None,
) -> np.ndarray:
    """Proposition 3. In units in which the equations have a diagonal of 1, which makes them as well posed as may be."""
    omega = 1.0 / len(matched.ensemble.root) if is_average(matched.ensemble) else 1.0
    unit = np.zeros(len(mass))
    unit[mass > 0] = (omega**2 * mass[mass > 0] + decay) ** -0.5
    right = unit[:, None] * omega * target
    if len(mass) <= most_leaves:
        at = np.flatnonzero(mass)
        matrix = omega**2 * pair_matrix(matched, sample, n_jobs)[np.ix_(at, at)] * np.outer(unit[at], unit[at])
        theta = np.zeros(target.shape)
        if decay > 0:
            matrix[np.diag_indices(len(at))] += decay * unit[at] ** 2
            theta[at] = np.linalg.solve(matrix, right[at])
        else:
            theta[at] = _least_norm(matrix, right[at])
    else:

        def times(x: np.ndarray) -> np.ndarray:
            found = omega**2 * pair_product(matched, sample, unit[:, None] * x, n_jobs=n_jobs)
            return unit[:, None] * found + decay * unit[:, None] ** 2 * x

        theta = conjugate_gradients(times, right)
    return omega * unit[:, None] * theta


def _least_norm(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of least norm of equations that have some; the matrix is symmetric, with no negative eigenvalue."""
    eigenvalue, vector = np.linalg.eigh(matrix)
    kept = eigenvalue > len(matrix) * np.finfo(float).eps * eigenvalue[-1]
    vector = vector[:, kept]
    return vector @ ((vector.T @ right) / eigenvalue[kept, None])


def _boosting(
    matched: MatchedEnsemble,
    sample: Sample,
    mass: np.ndarray,
    target: np.ndarray,
    decay: float,
    most_leaves: int,
    n_jobs: int | None,
) -> np.ndarray:
    """Proposition 4, tree after tree."""
    matrix = pair_matrix(matched, sample, n_jobs) if len(mass) <= most_leaves else None
    tree = tree_leaves(matched.ensemble)
    value = np.zeros(target.shape)
    for t in range(len(matched.ensemble.root)):
        own = np.flatnonzero(tree == t)
        # values of later trees are 0 yet
        before = pair_product(matched, sample, value, t, t, n_jobs)[own] if matrix is None else matrix[own] @ value
        value[own] = _ratio(target[own] - before, mass[own] + decay)
        value[own[mass[own] == 0]] = 0.0
    return value
