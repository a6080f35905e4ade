"""First states of the rows: clusters of rows over all columns, or for each column over what depends on it."""

from __future__ import annotations

import numpy as np

from ...runtime.threads import Run, of_finite, one_by_one
from .constants import FIXED
from .features import features
from .structure import CodeColumn


def start_states(
    codes: np.ndarray,
    columns: tuple[CodeColumn, ...],
    information: np.ndarray,
    kind: str,
    n_states: int,
    rng: np.random.Generator,
    weight: np.ndarray | None,
    run: Run = one_by_one,
) -> np.ndarray:
    """State of each row in each column, (n, d): "shared", clusters over all columns; "local", others for each."""
    # For a local start a column i counts towards column j by what it tells of it: its features are multiplied by (1 -
    # exp(-2 information))^(1/4), the root of the correlation of two normals of such mutual information.
    seen = features(codes, columns)
    w = np.ones(len(codes)) if weight is None else weight
    if kind == "shared":
        state = clusters(np.hstack(seen), n_states, rng, w)
        return np.repeat(state[:, None], len(seen), axis=1)

    def one(j: int, own: np.random.Generator) -> np.ndarray:
        closeness = (-np.expm1(-2.0 * information[j])) ** 0.25
        closeness[j] = 1.0
        near = np.argsort(-closeness, kind="stable")[: FIXED.nearest_columns]
        near = near[(closeness[near] > FIXED.faint_weight) | (near == j)]
        return clusters(np.hstack([seen[i] * np.float32(closeness[i]) for i in near]), n_states, own, w)

    return np.column_stack(run(one, list(enumerate(rng.spawn(len(seen))))))


@of_finite
def clusters(X: np.ndarray, n_clusters: int, rng: np.random.Generator, weight: np.ndarray) -> np.ndarray:
    """Number of each row's cluster of k-means (Lloyd 1982; centres drawn as by Arthur and Vassilvitskii 2007), (n,)."""
    from scipy.sparse import csc_array

    n = len(X)
    if n_clusters < 2 or X.shape[1] == 0 or n < 2:
        return np.zeros(n, dtype=np.int64)
    centre = _first_centres(X, n_clusters, rng, weight)
    for _ in range(FIXED.cluster_passes):
        near = _nearest(X, centre)
        rows = csc_array((weight.astype(np.float32), near, np.arange(n + 1)), shape=(len(centre), n))
        size = np.bincount(near, weights=weight, minlength=len(centre)).astype(np.float32)[:, None]
        centre = np.where(size > 0, (rows @ X) / np.where(size > 0, size, 1.0), centre).astype(np.float32)
    return np.unique(_nearest(X, centre), return_inverse=True)[1]


def _nearest(X: np.ndarray, centre: np.ndarray) -> np.ndarray:
    return np.argmin((centre**2).sum(axis=1) - 2.0 * (X @ centre.T), axis=1)


def _first_centres(X: np.ndarray, n_clusters: int, rng: np.random.Generator, weight: np.ndarray) -> np.ndarray:
    """Rows far from one another: drawn by their squared distance to those drawn before, a few of many at once."""
    at_once = FIXED.centres_at_once if n_clusters >= FIXED.many_centres else 1
    length = (X**2).sum(axis=1)
    chosen = [int(np.searchsorted(np.cumsum(weight), rng.random() * weight.sum()))]
    far = np.full(len(X), np.inf)
    new = np.array(chosen)
    while True:
        distance = length[:, None] - 2.0 * (X @ X[new].T) + length[new]
        far = np.minimum(far, distance.min(axis=1))
        far = np.where(far < 1e-5 * (1.0 + length), 0.0, far)  # rounding must not tell equal rows apart
        mass = np.cumsum(far * weight)
        if len(chosen) >= n_clusters or mass[-1] <= 0.0:
            return X[np.array(chosen)]
        drawn = np.searchsorted(mass, rng.random(at_once) * mass[-1], side="right")
        new = np.unique(np.minimum(drawn, len(X) - 1))[: n_clusters - len(chosen)]
        chosen.extend(new.tolist())
