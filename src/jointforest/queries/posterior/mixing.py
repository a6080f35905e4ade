"""How the answers of a model's parts are mixed: by how well the evidence fits each part."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...model.model import Model
from ...model.part import Part
from ...table.evidence import Evidence


def log_joint(model: Model, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """log pi_k + log p_k(evidence) of each part, (n, K)."""
    each = [part.log_density(evidence, n_jobs) for part in model.parts]
    return np.column_stack(each) + model.log_weight


def shares(model: Model, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """p(part k | evidence), (n, K): rows sum to 1, NaN where the evidence has probability 0."""
    joint = log_joint(model, evidence, n_jobs)
    with np.errstate(invalid="ignore"):
        return np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))


def mixed(
    model: Model,
    evidence: Evidence,
    ask: Callable[[Part, object], np.ndarray],
    n_jobs: int | None = -1,
    known: Sequence[object] | None = None,
) -> np.ndarray:
    """sum_k p(part k | evidence) ask(part k), for answers with n entries along their first axis.

    ``ask`` gets a part and what is `known` of the evidence in it, or None. A model of one part answers as that part.
    """
    if len(model.parts) == 1:
        return ask(model.parts[0], None if known is None else known[0])
    share = shares(model, evidence, n_jobs)
    return weighted(share, [ask(part, known and known[k]) for k, part in enumerate(model.parts)])


def weighted(share: np.ndarray, answers: Sequence[np.ndarray]) -> np.ndarray:
    """sum_k share[:, k] answers[k]; parts of share 0 have no say, whatever they answer."""
    total = np.zeros_like(answers[0])
    for k, answer in enumerate(answers):
        s = share[:, k].reshape(-1, *[1] * (answer.ndim - 1))
        total += np.where(s == 0.0, 0.0, s * answer)
    return total
