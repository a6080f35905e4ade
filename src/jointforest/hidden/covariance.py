"""Covariance of two columns of numbers under hidden trees, exact, by two more passes."""

from __future__ import annotations

import numpy as np

from ..ground.threads import one_blas_thread
from ..table.evidence import Evidence
from ..table.scale.draws import levels
from .column import groups
from .evidence import CodeEvidence, code_evidence
from .hidden_trees import HiddenTrees
from .posterior import posterior


def covariance(hidden: HiddenTrees, evidence: Evidence, a: int, b: int) -> np.ndarray:
    """Posterior covariance of two numeric or boolean columns (True counts 1) given each of n rows of evidence, (n,).

    NaN where the evidence has probability 0. With m_c the means of a's codes and m that of all,

        Cov(a, b) = s (E[b | weights (m_c - m)+ on a's codes] - E[b | weights (m_c - m)- on them]),  s = E (m_c - m)+.
    """
    known = code_evidence(hidden, evidence)
    with one_blas_thread():
        return np.array(
            [_of_one(hidden, [of.take(np.array([i])) for of in known], a, b) for i in range(len(evidence.value))]
        )


def _of_one(hidden: HiddenTrees, known: list[CodeEvidence], a: int, b: int) -> float:
    found = posterior(hidden, known, [a])
    if np.isneginf(found.log_joint).all():
        return float("nan")
    if not np.isnan([known[a].value[0], known[b].value[0]]).all():
        return 0.0
    share = found.codes[a][0]
    excess = _code_means(hidden, known[a], a)
    excess = excess - share @ excess
    size = float(share @ np.maximum(excess, 0.0))
    if size <= 0.0:
        return 0.0
    means_b = _code_means(hidden, known[b], b)
    center = float(posterior(hidden, known, [b]).codes[b][0] @ means_b)
    ends = []
    for side in (1.0, -1.0):
        tilted = list(known)
        tilted[a] = _tilted(hidden, known[a], a, np.maximum(side * excess, 0.0))
        ends.append(float(posterior(hidden, tilted, [b]).codes[b][0] @ (means_b - center)))
    return size * (ends[0] - ends[1])


def _code_means(hidden: HiddenTrees, known: CodeEvidence, j: int) -> np.ndarray:
    """Mean of each code of a column within what one row of evidence says of it, (K,); 0 of impossible codes."""
    scale = next(scale for rows, scale in groups(hidden.scales[j], known) if len(rows))
    assert scale is not None
    column = hidden.schema.columns[j]
    if column.is_categorical:
        numbers = np.array([float(level) for level in column.levels])
        return np.asarray(levels(scale, np.eye(scale.n_codes), len(numbers)) @ numbers)
    return np.nan_to_num(scale.moments[1])


def _tilted(hidden: HiddenTrees, known: CodeEvidence, j: int, weight: np.ndarray) -> CodeEvidence:
    """What one row says of a column, and a likelihood of each code besides."""
    K = hidden.scales[j].n_codes
    region = int(known.code[0]) - K - 1
    before = known.likelihood[region] if region >= 0 else np.ones(K)
    regions = (known.regions[region],) if region >= 0 else (hidden.scales[j],)
    return known._replace(code=np.array([K + 1]), regions=regions, likelihood=(before * weight / weight.max())[None])
