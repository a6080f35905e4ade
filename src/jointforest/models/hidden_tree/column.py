"""Answers about one column given evidence: levels, moments, CDF, density and quantiles, as mixtures over its codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...data.discretization import base_density
from ...data.discretization.base_density import levels
from ...data.discretization.discretizer import Scale
from ...data.evidence import Evidence, build
from ...data.schema import Column
from ...runtime.threads import one_blas_thread
from ..base import Distribution, Parts
from .hidden_trees import HiddenTrees, TreeTables, lost_atoms
from .messages import CodeEvidence, code_evidence, down, own_messages, up
from .posterior import CodePosterior, KeptRows, by_batches, codes_without_each, column_codes, in_batches, posterior


class Question(NamedTuple):
    """A question about one column, with q answers for each row of evidence.

    read : function. Computes the answers (n, q) from a scale and the probabilities of its codes, (n, K).
    of_value : function. Computes the answers (n, q) from known values of the column, (n,).
    """

    read: Callable[[Scale, np.ndarray], np.ndarray]
    of_value: Callable[[np.ndarray], np.ndarray]


def level_probabilities(column: Column) -> Question:
    """Probability of each of the q levels of a categorical column."""
    L = len(column.levels)
    return Question(lambda scale, p: levels(scale, p, L), lambda x: (x[:, None] == np.arange(L)).astype(np.float64))


def moments(column: Column) -> Question:
    """Mean and variance of a numeric column."""

    def read(scale: Scale, p: np.ndarray) -> np.ndarray:
        _, mean, variance = scale.moments
        center = p @ mean
        return np.column_stack([center, p @ variance + (p * (mean - center[:, None]) ** 2).sum(axis=1)])

    return Question(read, lambda x: np.column_stack([at_center(column, x), np.zeros(len(x))]))


def cdf(column: Column, x: np.ndarray) -> Question:
    """P(column <= x) of a numeric column at q points."""
    unknown = np.where(np.isnan(x), np.nan, 0.0)

    def read(scale: Scale, p: np.ndarray) -> np.ndarray:
        return np.minimum(p @ base_density.cdf(scale, x).T, 1.0) + unknown

    return Question(read, lambda value: (at_center(column, value)[:, None] <= x) + unknown)


def pdf(column: Column, x: np.ndarray) -> Question:
    """Density of a numeric column at q points; on a grid a cell's mass over the step, at an atom its mass."""
    height = np.full(len(x), 1.0 / column.step if column.step > 0.0 else np.inf)
    if column.step == 0.0:
        height[np.isin(x, column.atoms)] = 1.0
    unknown = np.where(np.isnan(x), np.nan, 0.0)

    def read(scale: Scale, p: np.ndarray) -> np.ndarray:
        return p @ np.where(np.isin(x, lost_atoms(scale, column)), 0.0, base_density.pdf(scale, x).T) + unknown

    def of_value(value: np.ndarray) -> np.ndarray:
        return np.where(at_center(column, value)[:, None] == at_center(column, x), height, 0.0) + unknown

    return Question(read, of_value)


def quantile(column: Column, q: np.ndarray) -> Question:
    """inf{x: P(column <= x) >= q} of a numeric column at q levels."""
    wrong = q[~((q > 0.0) & (q < 1.0))]
    if len(wrong):
        raise ValueError(f"quantile of column {column.name!r}: q must be above 0 and below 1, got {wrong[0]}")

    def of_value(value: np.ndarray) -> np.ndarray:
        return np.repeat(at_center(column, value)[:, None], len(q), axis=1)

    return Question(lambda scale, p: base_density.quantiles(scale, p, q), of_value)


def at_center(column: Column, x: np.ndarray) -> np.ndarray:
    """The numbers x; on a grid, the centres of their cells."""
    if column.step == 0.0:
        return x
    return column.center + np.rint((x - column.center) / column.step) * column.step


def groups(scale: Scale, known: CodeEvidence) -> Iterator[tuple[np.ndarray, Scale | None]]:
    """Groups of rows with the same evidence on the column, and the scale in each; None for rows with a value."""
    K = scale.n_codes
    yield np.flatnonzero(known.code < K), None
    yield np.flatnonzero(known.code == K), scale
    for r, region in enumerate(known.regions):
        yield np.flatnonzero(known.code == K + 1 + r), region


def column_answers(
    hidden: HiddenTrees, evidence: Evidence, j: int, question: Question, kept: KeptRows | None = None
) -> np.ndarray:
    """The answers to a question about column j given each of n rows of evidence, (n, q); NaN where impossible."""

    def answer(found: CodePosterior) -> np.ndarray:
        out = _of_codes(hidden.scales[j], found.codes[j], found.known[j], question)
        out[np.isneginf(found.log_joint.max(axis=1))] = np.nan
        return out

    return by_batches(hidden, evidence, [j], answer, kept)


def means_without_each(
    hidden: HiddenTrees, evidence: Evidence, asked: Mapping[int, np.ndarray]
) -> dict[int, np.ndarray]:
    """As `Distribution.means_without_each`."""
    rows = np.unique(np.concatenate([*asked.values()]))
    known, columns = code_evidence(hidden, evidence.take(rows)), hidden.schema.columns
    widths = [len(columns[j].levels) or 1 for j in asked]

    def work(a: int, b: int) -> np.ndarray:
        codes = codes_without_each(hidden, [of.take(slice(a, b)) for of in known], list(asked))
        return np.column_stack([
            levels(hidden.scales[j], p, width) if columns[j].is_categorical else p @ hidden.scales[j].moments[1]
            for width, (j, p) in zip(widths, codes.items(), strict=True)
        ])  # fmt: skip

    each = np.split(in_batches(hidden, work, len(rows)), np.cumsum(widths)[:-1], axis=1)
    return {j: of[np.searchsorted(rows, wanted)] for of, (j, wanted) in zip(each, asked.items(), strict=True)}


def _of_codes(scale: Scale, weight: np.ndarray, known: CodeEvidence, question: Question) -> np.ndarray:
    """The answers from the probabilities of the column's codes, (n, K), and from the evidence on the column itself."""
    out: np.ndarray | None = None
    for rows, at in groups(scale, known):
        if len(rows) or at is scale:
            part = question.of_value(known.value[rows]) if at is None else _possible(at, weight[rows], question)
            out = np.full((len(weight), part.shape[1]), np.nan) if out is None else out
            out[rows] = part
    assert out is not None
    return out


def _possible(scale: Scale, weight: np.ndarray, question: Question) -> np.ndarray:
    """The answers under a scale that is restricted to a region; NaN if the region is empty."""
    # NaN in ``weight`` becomes 0; the caller overwrites the answers of these rows with NaN.
    if not len(scale.code):
        return np.full((len(weight), 1), np.nan)
    return question.read(scale, np.nan_to_num(weight))


# ---- The exact covariance of two columns of numbers under hidden trees, by two more passes.


def covariance(hidden: HiddenTrees, evidence: Evidence, a: int, b: int, kept: KeptRows | None = None) -> np.ndarray:
    """Posterior covariance of two numeric or boolean columns given each of n rows of evidence, (n,)."""
    # Let m_c be the mean of code c of column a, m the mean of a, and x+ and x- the positive and negative parts of x.
    # Then Cov(a, b) = s (E[b | weights (m_c - m)+ on a's codes] - E[b | weights (m_c - m)- on them]),  s = E (m_c -
    # m)+.
    known = code_evidence(hidden, evidence) if kept is None else kept.known
    before = None if kept is None else kept.posterior([a, b])

    def work(first: int, stop: int) -> np.ndarray:
        def tilted(known: list[CodeEvidence], rows: np.ndarray) -> CodePosterior:
            """The posterior of column b in some of the rows, with other evidence ``known``."""
            return posterior(hidden, known, [b]) if kept is None else kept.otherwise(known, first + rows, [b])

        rows = slice(first, stop)
        taken = [of.take(rows) for of in known]
        codes = posterior(hidden, taken, [a, b]) if before is None else before.take(rows)
        return _covariances(hidden, taken, a, b, codes, tilted)

    return in_batches(hidden, work, len(evidence.value))


def _covariances(
    hidden: HiddenTrees,
    known: list[CodeEvidence],
    a: int,
    b: int,
    before: CodePosterior,
    ask: Callable[[list[CodeEvidence], np.ndarray], CodePosterior],
) -> np.ndarray:
    """Covariances in a batch of rows, (n,)."""
    # ``before`` is the posterior of the rows, and ``ask`` computes that of some rows with other evidence.
    share = before.codes[a]
    is_free = np.isnan(known[a].value) & np.isnan(known[b].value)
    excess = _code_means(hidden, known[a], a)
    excess = excess - _expected_number(share, excess)
    size = _expected_number(share, np.maximum(excess, 0.0))[:, 0]
    means_b = _code_means(hidden, known[b], b)
    center = _expected_number(before.codes[b], means_b)
    out = np.zeros(len(is_free))
    rows = np.flatnonzero(is_free & (size > 0.0))
    if len(rows):
        twice = np.concatenate([rows, rows])
        tilted = [of.take(twice) for of in known]
        sides = np.concatenate([excess[rows], -excess[rows]])
        tilted[a] = _tilted(hidden, tilted[a], a, np.maximum(sides, 0.0))
        after = ask(tilted, twice).codes[b]
        above, below = np.split(_expected_number(after, (means_b - center)[twice])[:, 0], 2)
        out[rows] = size[rows] * (above - below)
    out[np.isneginf(before.log_joint.max(axis=1))] = np.nan
    return out


def _expected_number(share: np.ndarray, of_code: np.ndarray) -> np.ndarray:
    """Means over codes of the numbers ``of_code`` (n, K), with the weights ``share`` (n, K): (n, 1)."""
    return np.asarray((share * of_code).sum(axis=1, keepdims=True))


def _code_means(hidden: HiddenTrees, known: CodeEvidence, j: int) -> np.ndarray:
    """Mean of the column within each code, given the evidence of each row on it, (n, K); 0 for impossible codes."""
    column, out = hidden.schema.columns[j], np.zeros((len(known.code), hidden.scales[j].n_codes))
    for rows, scale in groups(hidden.scales[j], known):
        if scale is None or not len(rows):
            continue
        if column.is_categorical:
            numbers = np.array([float(level) for level in column.levels])
            out[rows] = levels(scale, np.eye(scale.n_codes), len(numbers)) @ numbers
        else:
            out[rows] = np.nan_to_num(scale.moments[1])
    return out


def _tilted(hidden: HiddenTrees, known: CodeEvidence, j: int, weight: np.ndarray) -> CodeEvidence:
    """The evidence on a column without a value in any row, multiplied by likelihoods (n, K) of its codes."""
    K, n = hidden.scales[j].n_codes, len(known.code)
    region = known.code - K - 1
    likelihood = weight / weight.max(axis=1, keepdims=True)
    has = np.flatnonzero(region >= 0)
    likelihood[has] *= known.likelihood[region[has]]
    return known._replace(code=K + 1 + np.arange(n), regions=(hidden.scales[j],), likelihood=likelihood)


# ---- Decomposition of an answer by hidden states.


def parts(hidden: HiddenTrees, row: KeptRows, j: int) -> Parts:
    """The components of the answers about column j, given one row of evidence: the states of its node in each tree."""
    known, nothing = row.known, code_evidence(hidden, build(hidden.schema))
    share_of_tree = np.exp(row.posterior([j]).log_joint[0] - row.log_probability()[0])
    prior, weight, codes = [], [], []
    with one_blas_thread():
        for tree, log_weight, share in zip(hidden.trees, hidden.log_weight, share_of_tree, strict=True):
            k = tree.node[j]
            states = np.eye(tree.emission[k].shape[0], dtype=tree.dtype)
            prior.append(np.exp(log_weight) * node_states(tree, nothing)[0][k])
            weight.append(share * node_states(tree, known)[0][k])
            codes.append(column_codes(states, tree, k, known[j].take(np.zeros(len(states), np.int64))))
    column = hidden.schema.columns[j]
    is_levels = column.is_categorical
    question = level_probabilities(column) if is_levels else moments(column)
    of_code = np.concatenate(codes)
    answer = _of_codes(hidden.scales[j], of_code, known[j].take(np.zeros(len(of_code), np.int64)), question)
    mean, variance = (answer, answer * (1.0 - answer)) if is_levels else (answer[:, :1], answer[:, 1:])
    return Parts(np.concatenate(prior), np.concatenate(weight), mean, variance)


# ---- Hidden states given one row of evidence, and the nodes about which the evidence is most informative.


class HiddenState(NamedTuple):
    """A hidden state of one tree, given one row of evidence.

    weight : float. p(state | evidence).
    log_weight : float. log p(state, evidence).
    tree : int. Number of the tree.
    column : str. The column whose node has the state.
    state : int. Number of the state.
    distribution : Distribution. The distribution of the rows in the state.
    """

    weight: float
    log_weight: float
    tree: int
    column: str
    state: int
    distribution: Distribution


def most_informed_nodes(
    hidden: HiddenTrees, evidence: Evidence, posteriors: Sequence[tuple[list[np.ndarray], float]] | None = None
) -> list[tuple[int, np.ndarray, float]]:
    """For each tree, the node whose posterior of states, given one row of evidence, diverges most from the prior."""
    # A tuple has the node, p(state | evidence) (H,), and log p(tree, evidence). Only nodes with a column count. If the
    # evidence contains a sum, ``posteriors`` gives the states of all nodes and log p(evidence) for each tree.
    with one_blas_thread():
        known, nothing = code_evidence(hidden, evidence), code_evidence(hidden, build(hidden.schema))
        log_base = float(sum(of.log_base[0] for of in known))
        found = []
        for t, (tree, log_weight) in enumerate(zip(hidden.trees, hidden.log_weight.tolist(), strict=True)):
            prior = node_states(tree, nothing)[0]
            posterior, log_p = node_states(tree, known) if posteriors is None else posteriors[t]
            apart = [
                state_divergence(p, q) if j >= 0 else -1.0
                for p, q, j in zip(posterior, prior, tree.column.tolist(), strict=True)
            ]
            node = int(np.argmax(np.round(apart, 9)))
            found.append((node, posterior[node], log_weight + log_p + log_base))
        return found


def node_states(tree: TreeTables, known: list[CodeEvidence]) -> tuple[list[np.ndarray], float]:
    """p(state | one row of evidence) of every node, and log p(evidence) without base densities."""
    upward = up(tree, own_messages(tree, known), 1)
    downward = down(tree, upward)
    weights = [downward.state(k)[0].astype(np.float64) for k in range(len(tree))]
    shares = [weight / max(weight.sum(), np.finfo(float).tiny) for weight in weights]
    return shares, float(upward.log_probability[0])


def state_divergence(p: np.ndarray, q: np.ndarray) -> float:
    """Kullback-Leibler divergence of two discrete distributions, in nats."""
    some = p > 0.0
    return float(p[some] @ np.log(p[some] / np.maximum(q[some], np.finfo(float).tiny)))
