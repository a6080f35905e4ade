"""How well evidence fits hidden trees, and what it says of the codes of columns: one pass up, and one down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..ground.threads import chunks, map_ordered, one_blas_thread
from ..table.evidence import Evidence
from .evidence import CodeEvidence, code_evidence, own_messages
from .hidden_trees import HiddenTrees
from .messages import down, log_probability, up
from .tree import HiddenTree

_ROWS = 1_024  # most rows of a batch
_CELLS = 1 << 22  # most entries of all messages of a batch


class CodePosterior(NamedTuple):
    """The posterior of some columns' codes in a batch of n rows.

    Attributes
    ----------
    known : list of d CodeEvidence
    log_joint : float64 array (n, T)
        log weight + log p_t(evidence) of each tree, base densities included; penalties not.
    codes : dict of column to float64 array (n, K_j)
        p(code | evidence); one-hot where the value is known, NaN where the evidence is impossible.
    """

    known: list[CodeEvidence]
    log_joint: np.ndarray
    codes: dict[int, np.ndarray]


class OneRow:
    """One row of evidence, with the posterior of all columns' codes once it is asked for."""

    def __init__(self, hidden: HiddenTrees, evidence: Evidence) -> None:
        self._hidden, self._evidence = hidden, evidence

    @cached_property
    def posterior(self) -> CodePosterior:
        with one_blas_thread():
            known = code_evidence(self._hidden, self._evidence)
            return posterior(self._hidden, known, range(len(known)))


def log_density(hidden: HiddenTrees, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """log p(evidence) of each row, with the evidence's penalty, (n,)."""
    return np.logaddexp.reduce(tree_log_density(hidden, evidence, n_jobs), axis=1) + evidence.log_penalty


def tree_log_density(hidden: HiddenTrees, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """log weight + log p_t(evidence) of each tree, (n, T)."""
    known = code_evidence(hidden, evidence)

    def work(a: int, b: int) -> np.ndarray:
        return _log_joint(hidden, [of.take(slice(a, b)) for of in known], b - a)

    return in_batches(hidden, work, len(evidence.value), n_jobs)


def by_batches(
    hidden: HiddenTrees,
    evidence: Evidence,
    wanted: Sequence[int],
    read: Callable[[CodePosterior], np.ndarray],
    n_jobs: int | None = -1,
    known: OneRow | None = None,
) -> np.ndarray:
    """What ``read`` says of the posterior of the wanted columns, batch after batch, along the first axis."""
    if known is not None:
        return read(known.posterior)
    said = code_evidence(hidden, evidence)

    def work(a: int, b: int) -> np.ndarray:
        return read(posterior(hidden, [of.take(slice(a, b)) for of in said], wanted))

    return in_batches(hidden, work, len(evidence.value), n_jobs)


def posterior(hidden: HiddenTrees, known: list[CodeEvidence], wanted: Sequence[int]) -> CodePosterior:
    """The posterior of the wanted columns' codes."""
    n = len(known[0].code)
    log_joint = np.empty((n, len(hidden.trees)))
    found: list[dict[int, np.ndarray]] = []
    for t, tree in enumerate(hidden.trees):
        upward = up(tree, own_messages(tree, known), n)
        log_joint[:, t] = upward.log_probability
        nodes = np.zeros(len(tree), bool)
        nodes[[tree.node[j] for j in wanted]] = True
        downward = down(tree, upward, nodes)
        found.append({})
        for j in wanted:
            k = tree.node[j]
            below = upward.below[k]
            rest = downward.outside[k] if below is None else downward.outside[k] * below
            found[-1][j] = column_codes(rest, tree, k, known[j])
    log_joint += hidden.log_weight + sum(of.log_base for of in known)[:, None]  # type: ignore[index]
    with np.errstate(invalid="ignore"):
        share = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True))
    codes = {
        j: sum(np.where(share[:, [t]] == 0.0, 0.0, share[:, [t]] * found[t][j]) for t in range(len(found)))
        for j in wanted
    }
    return CodePosterior(known, log_joint, codes)  # type: ignore[arg-type]


def column_codes(rest: np.ndarray, tree: HiddenTree, k: int, known: CodeEvidence) -> np.ndarray:
    """p(code | evidence) of one node's column, (n, K); ``rest`` (n or 1, H_k) is the rest's evidence by state."""
    weight = (rest @ tree.emission[k]).astype(np.float64)
    K = weight.shape[1]
    weight = np.broadcast_to(weight, (len(known.code), K)).copy()
    region = np.flatnonzero(known.code > K)
    weight[region] *= known.likelihood[known.code[region] - K - 1]
    value = np.flatnonzero(known.code < K)
    weight[value] = 0.0
    weight[value, known.code[value]] = 1.0
    total = weight.sum(axis=1, keepdims=True)
    return weight / np.where(total > 0.0, total, 1.0)


def _log_joint(hidden: HiddenTrees, known: list[CodeEvidence], n: int) -> np.ndarray:
    each = [log_probability(tree, own_messages(tree, known), n) for tree in hidden.trees]
    return np.column_stack(each) + hidden.log_weight + np.sum([of.log_base for of in known], axis=0)[:, None]


def batch_rows(hidden: HiddenTrees) -> int:
    """Rows of a batch: what keeps its messages small. It depends on the model alone, not on threads."""
    widest = max(int(tree.n_states.sum()) for tree in hidden.trees)
    return int(np.clip(_CELLS // widest, 16, _ROWS))


def in_batches(hidden: HiddenTrees, work: Callable[[int, int], np.ndarray], n: int, n_jobs: int | None) -> np.ndarray:
    """Answers for n rows, batch after batch of rows a to b, along the first axis."""
    if n == 0:
        return work(0, 0)
    with one_blas_thread():
        return np.concatenate(list(map_ordered(work, chunks(n, batch_rows(hidden)), n_jobs)))
