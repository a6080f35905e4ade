"""log p(evidence without one column), for all columns by one pass up and one down."""

from __future__ import annotations

import numpy as np

from ..table.evidence import Evidence
from .evidence import CodeEvidence, code_evidence, own_messages
from .hidden_trees import HiddenTrees
from .messages import down, up
from .posterior import in_batches, log_density


def log_density_without(hidden: HiddenTrees, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """log p(evidence without column j) of each row and column, with the evidence's penalty, (n, d)."""
    known, d = code_evidence(hidden, evidence), evidence.value.shape[1]

    def work(a: int, b: int) -> np.ndarray:
        return _without(hidden, [of.take(slice(a, b)) for of in known], b - a)

    out = in_batches(hidden, work, len(evidence.value), n_jobs) + evidence.log_penalty[:, None]
    # a tree in which all evidence is impossible says nothing of what is possible without a column
    lost = np.flatnonzero(np.isnan(out).any(axis=1))
    if len(lost):
        rows = evidence.take(lost)
        out[lost] = np.column_stack([log_density(hidden, rows.without(j), n_jobs) for j in range(d)])
    return out


def _without(hidden: HiddenTrees, known: list[CodeEvidence], n: int) -> np.ndarray:
    """`log_density_without` of a batch, penalties aside; NaN in rows that are impossible in a tree."""
    d = len(known)
    base = np.column_stack([of.log_base for of in known])
    with np.errstate(invalid="ignore"):
        rest_base = base.sum(axis=1, keepdims=True) - base
    each = np.empty((len(hidden.trees), n, d))
    for t, tree in enumerate(hidden.trees):
        upward = up(tree, own_messages(tree, known), n)
        downward = down(tree, upward)
        for j in range(d):
            k = tree.node[j]
            own, below = upward.own[k], upward.below[k]
            if own is None:
                each[t, :, j] = upward.log_probability
                continue
            rest = downward.outside[k] if below is None else downward.outside[k] * below
            with np.errstate(divide="ignore", invalid="ignore"):
                share = (rest * own).sum(axis=1, dtype=np.float64) / rest.sum(axis=1, dtype=np.float64)
                each[t, :, j] = upward.log_probability - np.log(share)
    with np.errstate(invalid="ignore"):
        total = np.logaddexp.reduce(each + hidden.log_weight[:, None, None], axis=0) + rest_base
    impossible = ~np.isfinite(each).all(axis=(0, 2)) | ~np.isfinite(base).all(axis=1)
    total[impossible] = np.nan
    return total
