"""The likelihood of evidence under hidden trees, and the posterior of codes: one pass up, and one down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from ...data.evidence import Evidence
from ...runtime.threads import chunks, map_ordered, of_finite, one_blas_thread
from .hidden_trees import HiddenTrees, TreeTables, log_probability_of_codes
from .messages import CodeEvidence, Upward, code_evidence, down, log_probability, own_messages, possible_rows, up

_ROWS = 1_024  # most rows of a batch
_SOME_ROWS = 8_192  # and where each tree has to do with some of the rows
_PAIRS = 1 << 23  # most pairs of a row and a tree
_CELLS = 1 << 22  # most entries of all messages of a batch
_KEPT = 1 << 23  # most entries of codes that are kept for further questions


class CodePosterior(NamedTuple):
    """The posterior of some columns' codes in a batch of n rows.

    log_joint : float64 array (n, T). log weight + log p_t(evidence) of each tree, without penalties.
    codes : dict of column to float64 array (n, K_j). p(code | evidence); NaN where the evidence is impossible.
    """

    known: list[CodeEvidence]
    log_joint: np.ndarray
    codes: dict[int, np.ndarray]

    def take(self, rows: slice) -> CodePosterior:
        """Some of the rows."""
        known = [of.take(rows) for of in self.known]
        return CodePosterior(known, self.log_joint[rows], {j: codes[rows] for j, codes in self.codes.items()})


class KeptRows:
    """Rows of evidence, and the posterior of the codes of columns, kept for the questions that follow. Of a single row
    all columns are found at once, of several rows those that are asked for."""

    def __init__(self, hidden: HiddenTrees, evidence: Evidence) -> None:
        self._hidden, self._evidence = hidden, evidence
        self._log_joint: np.ndarray | None = None
        self._codes: dict[int, np.ndarray] = {}

    @cached_property
    def known(self) -> list[CodeEvidence]:
        return code_evidence(self._hidden, self._evidence)

    def log_probability(self) -> np.ndarray:
        """log p(evidence) of each row, penalties aside, (n,)."""
        if self._log_joint is None and len(self._evidence.value) == 1:
            self.posterior([0])
        if self._log_joint is None:
            self._log_joint = np.logaddexp.reduce(tree_log_density(self._hidden, self._evidence), axis=1)[:, None]
        return np.asarray(np.logaddexp.reduce(self._log_joint, axis=1))

    def posterior(self, wanted: Sequence[int]) -> CodePosterior:
        """The posterior of the wanted columns' codes; of several rows with the sum of ``log_joint`` over the trees."""
        lacking = [j for j in wanted if j not in self._codes]
        if lacking and len(self._evidence.value) == 1:
            with one_blas_thread():
                found = posterior(self._hidden, self.known, range(len(self.known)))
            self._log_joint, self._codes = found.log_joint, found.codes
        elif lacking:
            self._find(lacking)
        assert self._log_joint is not None
        return CodePosterior(self.known, self._log_joint, self._codes)

    def otherwise(self, known: list[CodeEvidence], rows: np.ndarray, wanted: Sequence[int]) -> CodePosterior:
        """The posterior of the wanted columns' codes in some of the rows, of whose columns this is known instead."""
        return posterior(self._hidden, known, wanted)

    def _find(self, columns: list[int]) -> None:
        """Keep the codes of these columns, and those of others as long as they are few."""
        sizes = [self._hidden.scales[j].n_codes for j in columns]

        def read(known: list[CodeEvidence]) -> np.ndarray:
            found = posterior(self._hidden, known, columns)
            total = np.logaddexp.reduce(found.log_joint, axis=1)
            return np.column_stack([total, *(found.codes[j] for j in columns)])

        both = of_batches(self._hidden, self.known, read)
        if both.size + sum(codes.size for codes in self._codes.values()) > _KEPT:
            self._codes = {}
        self._log_joint = both[:, :1]
        self._codes |= dict(zip(columns, np.split(both[:, 1:], np.cumsum(sizes)[:-1], axis=1), strict=True))


def log_density(hidden: HiddenTrees, evidence: Evidence) -> np.ndarray:
    """log p(evidence) of each row, with the evidence's penalty, (n,)."""
    return np.logaddexp.reduce(tree_log_density(hidden, evidence), axis=1) + evidence.log_penalty


def tree_log_density(hidden: HiddenTrees, evidence: Evidence) -> np.ndarray:
    """log weight + log p_t(evidence) of each tree, (n, T)."""
    return of_batches(hidden, code_evidence(hidden, evidence), partial(_log_joint, hidden))


def sums_over_trees(hidden: HiddenTrees, evidence: Evidence, first: np.ndarray) -> np.ndarray:
    """`tree_log_density` summed over runs of trees that begin with those of numbers ``first`` (m,): (n, m)."""

    def read(known: list[CodeEvidence]) -> np.ndarray:
        return np.asarray(np.logaddexp.reduceat(_log_joint(hidden, known), first, axis=1))

    return of_batches(hidden, code_evidence(hidden, evidence), read)


def by_batches(
    hidden: HiddenTrees,
    evidence: Evidence,
    wanted: Sequence[int],
    read: Callable[[CodePosterior], np.ndarray],
    kept: KeptRows | None = None,
) -> np.ndarray:
    """The results of ``read`` for the posterior of the wanted columns, batch after batch, along the first axis."""
    if kept is not None:
        return read(kept.posterior(wanted))
    return of_batches(hidden, code_evidence(hidden, evidence), lambda known: read(posterior(hidden, known, wanted)))


def posterior(hidden: HiddenTrees, known: list[CodeEvidence], wanted: Sequence[int]) -> CodePosterior:
    """The posterior of the wanted columns' codes."""
    n = len(known[0].code)
    if n == 1 and hidden.support is not None and hidden.stacked is not None:
        return _of_one_row(hidden, hidden.stacked, known, wanted)
    log_joint = np.full((n, len(hidden.trees)), -np.inf)
    mixed = _Mixed(n, {j: hidden.scales[j].n_codes for j in wanted})
    for t, (tree, rows) in enumerate(zip(hidden.trees, possible_rows(hidden, known), strict=True)):
        said = [of.take(rows) for of in known]
        if len(said[0].code):
            found, codes = _of_tree(tree, said, wanted)
            log_joint[rows, t] = found + hidden.log_weight[t]
            mixed.add(rows, log_joint[rows, t], codes)
    log_joint += np.sum([of.log_base for of in known], axis=0)[:, None]
    return CodePosterior(known, log_joint, mixed.shares())


def _of_tree(
    tree: TreeTables, known: list[CodeEvidence], wanted: Sequence[int]
) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """log p(codes) of n rows, (n,), and the posterior of the wanted columns' codes, each (n, K_j), in one tree."""
    upward = up(tree, own_messages(tree, known), len(known[0].code))
    node = {j: tree.node[j] for j in wanted}
    downward = down(tree, upward, [*node.values()])
    return upward.log_probability, {j: column_codes(downward.rest(k), tree, k, known[j]) for j, k in node.items()}


def _of_one_row(
    hidden: HiddenTrees, stacked: TreeTables, known: list[CodeEvidence], wanted: Sequence[int]
) -> CodePosterior:
    """The posterior of one row's codes, from all trees at once."""
    log_joint, codes = _of_stacked(stacked, len(hidden.trees), known, wanted)
    log_joint += hidden.log_weight
    with np.errstate(invalid="ignore"):
        share = np.exp(log_joint - np.logaddexp.reduce(log_joint))
    some = share != 0.0
    log_joint += sum(float(of.log_base[0]) for of in known)
    return CodePosterior(known, log_joint[None], {j: (share[some] @ p[some])[None] for j, p in codes.items()})


def _of_stacked(
    stacked: TreeTables, n_trees: int, known: list[CodeEvidence], wanted: Sequence[int]
) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """As `_of_tree`, of one row in each of the trees that are stacked."""
    return _of_tree(stacked, [of.take(np.zeros(n_trees, np.int64)) for of in known], wanted)


def codes_by_tree(hidden: HiddenTrees, evidence: Evidence, wanted: Sequence[int]) -> dict[int, np.ndarray]:
    """p(code of the column | one row of evidence) in each of the T trees, by wanted column: (T, K_j)."""
    with one_blas_thread():
        known = code_evidence(hidden, evidence)
        if hidden.stacked is not None:
            return _of_stacked(hidden.stacked, len(hidden.trees), known, wanted)[1]
        each = [_of_tree(tree, known, wanted)[1] for tree in hidden.trees]
        return {j: np.concatenate([codes[j] for codes in each]) for j in wanted}


class _Mixed:
    """Posteriors of n rows' codes, mixed as they come, in proportion to ``exp(log_joint)``."""

    def __init__(self, n: int, n_codes: dict[int, int]) -> None:
        self._top, self._total = np.full(n, -np.inf), np.zeros(n)  # the greatest log_joint so far; sum, relative to it
        self._codes = {j: np.zeros((n, K)) for j, K in n_codes.items()}

    def add(self, rows: np.ndarray | slice, log_joint: np.ndarray, codes: dict[int, np.ndarray]) -> None:
        """Add one tree's, of some rows."""
        top = np.maximum(self._top[rows], log_joint)
        with np.errstate(invalid="ignore"):  # NaN where nothing was possible so far
            before, now = (np.nan_to_num(np.exp(x - top)) for x in (self._top[rows], log_joint))
        self._top[rows] = top
        self._total[rows] = self._total[rows] * before + now
        for j, mixed in self._codes.items():
            mixed[rows] = mixed[rows] * before[:, None] + np.where(now[:, None] == 0.0, 0.0, now[:, None] * codes[j])

    def shares(self) -> dict[int, np.ndarray]:
        """The mixed posteriors; NaN in rows that no tree gives a probability."""
        with np.errstate(invalid="ignore"):
            return {j: mixed / self._total[:, None] for j, mixed in self._codes.items()}


@of_finite
def column_codes(rest: np.ndarray, tree: TreeTables, k: int, known: CodeEvidence) -> np.ndarray:
    """p(code | evidence) of one node's column, (n, K); ``rest`` (n or 1, H_k) is the rest's evidence by state."""
    K, picked = tree.emission[k].shape[1], tree.picked[k]
    weight = np.zeros((len(known.code), K))
    if picked is None:
        weight[:] = rest @ tree.emission[k]
    else:
        weight[:, picked] = rest
    region = np.flatnonzero(known.code > K)
    weight[region] *= known.likelihood[known.code[region] - K - 1]
    value = np.flatnonzero(known.code < K)
    weight[value] = 0.0
    weight[value, known.code[value]] = 1.0
    total = weight.sum(axis=1, keepdims=True)
    return weight / np.where(total > 0.0, total, 1.0)


def _log_joint(hidden: HiddenTrees, known: list[CodeEvidence]) -> np.ndarray:
    joint = np.full((len(known[0].code), len(hidden.trees)), -np.inf)
    for t, (tree, rows) in enumerate(zip(hidden.trees, possible_rows(hidden, known), strict=True)):
        said = [of.take(rows) for of in known]
        if len(said[0].code):
            joint[rows, t] = _log_codes(tree, said)
    return joint + hidden.log_weight + np.sum([of.log_base for of in known], axis=0)[:, None]


def _log_codes(tree: TreeTables, known: list[CodeEvidence]) -> np.ndarray:
    """log p(codes) of n rows, at least one, in one tree, (n,)."""
    n = len(known[0].code)
    if not tree.is_plain:
        return log_probability(tree, own_messages(tree, known), n)
    full = np.logical_and.reduce([known[j].code < tree.emission[k].shape[1] for j, k in tree.node.items()])
    found = np.empty(n)
    for rows, of_codes in ((np.flatnonzero(full), True), (np.flatnonzero(~full), False)):
        if len(rows):
            said = known if len(rows) == n else [of.take(rows) for of in known]
            if of_codes:
                found[rows] = log_probability_of_codes(tree, [of.code for of in said])
            else:
                found[rows] = log_probability(tree, own_messages(tree, said), len(rows))
    return found


def batch_rows(hidden: HiddenTrees) -> int:
    """Rows of a batch: what keeps its messages small. It depends on the model alone, not on threads."""
    # A power of two, so that a table cut at a multiple of a greater one has the same batches as the whole.
    widest = max(int(tree.n_states.sum()) for tree in hidden.trees)
    most = _ROWS if hidden.support is None else _SOME_ROWS
    rows = int(np.clip(min(_CELLS // widest, _PAIRS // len(hidden.trees)), 16, most))
    return 1 << (rows.bit_length() - 1)


def in_batches(hidden: HiddenTrees, work: Callable[[int, int], np.ndarray], n: int) -> np.ndarray:
    """Answers for n rows, batch after batch of rows a to b, along the first axis."""
    if n == 0:
        return work(0, 0)
    with one_blas_thread():
        return np.concatenate(list(map_ordered(work, chunks(n, batch_rows(hidden)))))


def of_batches(
    hidden: HiddenTrees, known: list[CodeEvidence], read: Callable[[list[CodeEvidence]], np.ndarray]
) -> np.ndarray:
    """What is read of each batch of the rows of evidence."""
    return in_batches(hidden, lambda a, b: read([of.take(slice(a, b)) for of in known]), len(known[0].code))


# ---- Without the evidence on one column, for all columns by one pass up and one down.


def codes_without_each(hidden: HiddenTrees, known: list[CodeEvidence], wanted: Sequence[int]) -> dict[int, np.ndarray]:
    """p(code | evidence on the other columns) of wanted columns, (n, K_j); NaN in rows impossible in a tree."""
    n, size = len(known[0].code), {j: hidden.scales[j].n_codes for j in wanted}
    mixed = {j: _Mixed(n, {j: size[j]}) for j in wanted}
    impossible = ~np.isfinite(np.sum([of.log_base for of in known], axis=0))
    for tree, log_weight in zip(hidden.trees, hidden.log_weight, strict=True):
        upward = up(tree, own_messages(tree, known), n)
        downward = down(tree, upward, [tree.node[j] for j in wanted])
        impossible |= ~np.isfinite(upward.log_probability)
        for j, mixture in mixed.items():
            k, nothing = tree.node[j], known[j]._replace(code=np.full(n, size[j]))
            rest = downward.rest(k)
            mixture.add(
                slice(None), log_weight + _log_without(upward, k, rest), {j: column_codes(rest, tree, k, nothing)}
            )
    return {j: np.where(impossible[:, None], np.nan, mixture.shares()[j]) for j, mixture in mixed.items()}


def _log_without(upward: Upward, k: int, rest: np.ndarray) -> np.ndarray:
    """log p(evidence without that on node k's column), (n,), from `Downward.rest`; NaN of impossible evidence."""
    own = upward.own[k]
    if own is None:
        return upward.log_probability
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (rest * own).sum(axis=1, dtype=np.float64) / rest.sum(axis=1, dtype=np.float64)
        return np.asarray(upward.log_probability - np.log(share))


def log_density_without(hidden: HiddenTrees, evidence: Evidence) -> np.ndarray:
    """log p(evidence without column j) of each row and column, with the evidence's penalty, (n, d)."""
    known, d = code_evidence(hidden, evidence), evidence.value.shape[1]
    out = of_batches(hidden, known, partial(_log_density_without, hidden)) + evidence.log_penalty[:, None]
    # a tree in which all evidence is impossible is not informative about what is possible without a column
    lost = np.flatnonzero(np.isnan(out).any(axis=1))
    if len(lost):
        rows = evidence.take(lost)
        out[lost] = np.column_stack([log_density(hidden, rows.without(j)) for j in range(d)])
    return out


def _log_density_without(hidden: HiddenTrees, known: list[CodeEvidence]) -> np.ndarray:
    """`log_density_without` of a batch, penalties aside; NaN in rows that are impossible in a tree."""
    n, d = len(known[0].code), len(known)
    base = np.column_stack([of.log_base for of in known])
    with np.errstate(invalid="ignore"):
        rest_base = base.sum(axis=1, keepdims=True) - base
    each = np.empty((len(hidden.trees), n, d))
    for t, tree in enumerate(hidden.trees):
        upward = up(tree, own_messages(tree, known), n)
        downward = down(tree, upward)
        for j in range(d):
            each[t, :, j] = _log_without(upward, tree.node[j], downward.rest(tree.node[j]))
    with np.errstate(invalid="ignore"):
        total = np.logaddexp.reduce(each + hidden.log_weight[:, None, None], axis=0) + rest_base
    impossible = ~np.isfinite(each).all(axis=(0, 2)) | ~np.isfinite(base).all(axis=1)
    total[impossible] = np.nan
    return total
