"""The value of a coalition as the ensemble's expected answer given the coalition's cells."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...data.discretization.dependence import CLASSES, mutual_information
from ...data.evidence import Evidence
from ...ensembles.evaluate import apply_link, raw, routing
from ...ensembles.table import Ensemble
from ...models.base import Distribution
from ...runtime.threads import chunks, map_ordered
from ..expectation.expectation import MatchedRows, completed_sums, knows_splits, take_matched
from ..expectation.match import MatchedEnsemble
from ..sampling import sample
from .game import Asked, Solved, ValueFunction
from .leaf_kernels import Facing, interventional_rows

# ---- Coalitions with the same cells of the same values are answered once, whichever rows they are of.


def distinct_words(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of (q, w) 64-bit words: the number of the first of each, ascending, and which each row is (q,)."""
    rows = np.ascontiguousarray(words).view(np.dtype((np.void, words.shape[1] * 8))).ravel()
    _, first, place = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first)  # as they came: coalitions of one row stay together
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return first[order], rank[place.ravel()]


Expect = Callable[[MatchedRows, int], tuple[np.ndarray, np.ndarray]]
"""``expect(rows, seed)``: expected answers of rows with missing cells, and their standard errors, each (n, K)."""


def known_cells(rows: MatchedRows, column: np.ndarray) -> np.ndarray:
    """Which of the joint's columns each row knows, bool (n, d); ``column`` (n_features,) is that of each feature."""
    known = ~np.isnan(rows.evidence.value)
    for f, j in enumerate(column.tolist()):  # a level that only the model knows
        known[:, j] |= ~np.isnan(rows.X[:, f]) | rows.other[:, f]
    return known


def conditional(rows: MatchedRows, column: np.ndarray, expect: Expect, seed: int) -> ValueFunction:
    """v(S) = E[f(X) | X_S = x_S] under the joint, for coalitions of rows."""
    calls = np.random.SeedSequence(seed)

    def value(row: np.ndarray, known: np.ndarray) -> Asked:
        hidden = hide(rows, column, row, known)
        key = np.hstack([hidden.evidence.value, hidden.X, hidden.other])
        first, place = distinct_words(key)
        few = MatchedRows(hidden.evidence.take(first), hidden.X[first], hidden.other[first])
        mean, error = expect(few, int(calls.spawn(1)[0].generate_state(1, np.uint64)[0] >> 2))
        return Asked(mean[place], error[place] ** 2)

    return value


def hide(rows: MatchedRows, column: np.ndarray, row: np.ndarray, known: np.ndarray) -> MatchedRows:
    """Rows of these numbers (q,) with nothing but these cells known, bool (q, d)."""
    seen = known[:, column]
    return MatchedRows(
        Evidence.of_values(np.where(known, rows.evidence.value[row], np.nan)),
        np.where(seen, rows.X[row], np.nan),
        rows.other[row] & seen,
    )


# ---- The value of a coalition as the mean answer with the coalition's cells put into rows of a background.

_CELLS = 4_000_000
"""Most cells of the rows that are made at once."""

Background = tuple[np.ndarray, np.ndarray]
"""R complete rows: float64 and bool array (R, f)."""

_Answer = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""``answer(X, other)``: the model's answers (n, K) to complete rows (n, f)."""


def interventional(
    X: np.ndarray, other: np.ndarray, column: np.ndarray, background: Background, answer: _Answer
) -> ValueFunction:
    """v(S) = mean over background rows b of f(x_S, b_rest)."""
    X_there, other_there = background
    R, f = X_there.shape

    def value(row: np.ndarray, known: np.ndarray) -> Asked:
        each, size = [], max(1, _CELLS // (R * max(f, 1)))
        for first in range(0, len(row), size):
            here = slice(first, first + size)
            seen = known[here][:, None, column]
            cells = np.where(seen, X[row[here]][:, None], X_there)
            unknown = np.where(seen, other[row[here]][:, None], other_there)
            each.append(answer(cells.reshape(-1, f), unknown.reshape(-1, f)).reshape(len(cells), R, -1))
        replicates = np.concatenate(each)
        mean = replicates.mean(axis=1)
        return Asked(mean, np.zeros_like(mean), replicates)

    return value


# ---- The value of a coalition as the mean of any function over rows drawn given the coalition's cells.

_DRAWN_ROWS = 200_000
"""Most rows that the function gets at once."""

_Function = Callable[[np.ndarray], np.ndarray]
"""Answers (n, K) to complete rows of the joint (n, d); of all NaN rows NaN."""


def by_function(
    function: _Function, model: Distribution, X: np.ndarray, needed: np.ndarray, m: int, seed: int
) -> ValueFunction:
    """v(S) = E[f(X) | X_S = x_S] as the mean of f over m draws given the coalition's cells."""
    # Coalitions that know all that f needs have its own answer.
    calls = np.random.SeedSequence(seed)

    def value(row: np.ndarray, known: np.ndarray) -> Asked:
        first, place = distinct_words(np.where(known, X[row], np.nan))
        cells = np.where(known[first], X[row[first]], np.nan)
        is_complete = known[first][:, needed].all(axis=1)
        parts, size = [], max(1, _DRAWN_ROWS // m)
        out: np.ndarray | None = None
        for chosen, draws in ((np.flatnonzero(is_complete), 1), (np.flatnonzero(~is_complete), m)):
            for start in range(0, len(chosen), size if draws > 1 else _DRAWN_ROWS):
                rows_here = chosen[start : start + (size if draws > 1 else _DRAWN_ROWS)]
                rows = cells[rows_here]
                if draws > 1:
                    seed_here = int(calls.spawn(1)[0].generate_state(1, np.uint64)[0] >> 2)
                    rows = sample(model, Evidence.of_values(rows), draws, seed_here, False)
                parts.append((rows_here, _means_and_variances(function(rows), len(rows_here), draws)))
        for rows_here, answers in parts:
            out = np.empty((2, len(first), answers.shape[2])) if out is None else out
            out[:, rows_here] = answers
        assert out is not None
        return Asked(out[0][place], out[1][place])

    return value


def _means_and_variances(answer: np.ndarray, n: int, m: int) -> np.ndarray:
    """Means and their variances (2, n, K) of the answers (n * m, K) to m draws for each of n rows."""
    each = answer.reshape(n, m, -1)
    mean = each.mean(axis=1)
    return np.stack([mean, each.var(axis=1, ddof=1) / m if m > 1 else np.zeros_like(mean)])


# ---- The value of a coalition as the mean, or the level probabilities, of a column under the joint.


def by_posterior(model: Distribution, X: np.ndarray, j: int) -> ValueFunction:
    """v(S) = P(level of column j | X_S = x_S) for each level, or E[column j | X_S = x_S]; exact."""
    column = model.schema.columns[j]

    def value(row: np.ndarray, known: np.ndarray) -> Asked:
        first, place = distinct_words(np.where(known, X[row], np.nan))
        cells = np.where(known[first], X[row[first]], np.nan)
        state = model.observe(Evidence.of_values(cells))
        mean = state.level_probabilities(j) if column.is_categorical else state.moments(j)[0][:, None]
        return Asked(mean[place], np.zeros((len(row), mean.shape[1])))

    return value


# ---- Expected answers of an ensemble under one forest as means over completions: many coalitions in little time.

_DRAWN = 200_000
"""Completions at once."""


def by_completions(
    matched: MatchedEnsemble, rows: MatchedRows, m: int, seed: int, link: str
) -> tuple[np.ndarray, np.ndarray]:
    """Means over m stratified completions of each row and their standard errors, each (n, K)."""
    # The errors are those of neighbouring strata, taken in pairs.
    m += m % 2
    mean, error = np.zeros((2, len(rows.X), len(matched.ensemble.base)))
    complete = knows_splits(matched.features, rows)
    complete_rows = np.flatnonzero(complete)
    mean[complete_rows] = apply_link(link, raw(matched.ensemble, rows.X[complete_rows], rows.other[complete_rows]))
    part, size = np.flatnonzero(~complete), max(1, _DRAWN // m)
    for block, first in enumerate(range(0, len(part), size)):
        rows_here = part[first : first + size]
        seed_here = int(np.random.SeedSequence([seed, block]).generate_state(1, np.uint64)[0] >> 2)
        total = completed_sums(matched, take_matched(rows, rows_here), m, seed_here)
        answer = apply_link(link, total.reshape(-1, total.shape[2])).reshape(total.shape)
        mean[rows_here] = answer.mean(axis=1)
        error[rows_here] = np.sqrt(((answer[:, 0::2] - answer[:, 1::2]) ** 2).sum(axis=1)) / m
    return mean, error


# ---- Interventional Shapley values of sums over trees: over all coalitions at once, leaf by leaf.

_BACKGROUND_ROWS = 8
"""Rows of a chunk for a thread."""


def values_by_leaves(
    ensemble: Ensemble,
    X: np.ndarray,
    other: np.ndarray,
    known: np.ndarray,
    player: np.ndarray,
    p: int,
    background: Background,
) -> Solved:
    """Values of v(S) = mean over background rows b of F(x_S, b_rest), all coalitions, any number of players."""
    # Linear in leaves: a leaf that needs the players A from the row and C from the background gives its value times (a
    # - 1)! c! / (a + c)! to each of A, and takes its value times (c - 1)! a! / (a + c)! from each of C.
    there, other_there = background
    R, K = len(there), len(ensemble.base)
    share = np.zeros((p + 1, p + 1))
    for a in range(1, p + 1):
        for c in range(p + 1 - a):
            share[a, c] = 1.0 / (a * math.comb(a + c, a))
    phi, square = np.zeros((2, len(X), p, K))
    back = np.ascontiguousarray(there), np.ascontiguousarray(other_there)
    arrays, facing = routing(ensemble), Facing(X, other, np.ascontiguousarray(known), *back, player.astype(np.int32))

    def work(start: int, stop: int) -> None:
        interventional_rows(arrays, facing, share, start, stop, phi, square)

    list(map_ordered(work, chunks(len(X), _BACKGROUND_ROWS)))
    phi /= R
    variance = np.maximum(square / R - phi**2, 0.0) / (R - 1)
    total = raw(ensemble, *back)
    return Solved(phi, variance, total.mean(axis=0), total.var(axis=0, ddof=1) / R)


# ---- Losses of answers, and of answers that are known with an error.

_LEAST = 1e-12
"""Least probability that a logarithm is taken of."""


def loss_of(loss: str, answer: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Loss (q,) of answers (q, K), where the truth y (q,) is numbers for "squared", numbers of classes for "log"."""
    if loss == "squared":
        return ((answer[:, 0] - y) ** 2).astype(np.float64)
    return -np.log(np.maximum(_of_class(answer, y), _LEAST))


def loss_with_error(loss: str, answer: np.ndarray, variance: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`loss_of` answers with errors of this variance (q, K), less what these add to it on average (second order)."""
    plain = loss_of(loss, answer, y)
    if loss == "squared":
        return plain - variance[:, 0]
    p, v = _of_class(answer, y), _of_class(variance, y, complement=False)
    return plain - 0.5 * v / np.maximum(p, _LEAST) ** 2


def _of_class(answer: np.ndarray, y: np.ndarray, complement: bool = True) -> np.ndarray:
    """The entry of each row's class; one column is that of the second of two classes."""
    if answer.shape[1] == 1:
        return np.where(y == 1, answer[:, 0], 1.0 - answer[:, 0]) if complement else answer[:, 0]
    return answer[np.arange(len(y)), y]


# ---- Clusters of dependent columns, by the mutual information that the joint gives each two of them.


_TOGETHER = 0.5
"""Columns as dependent as normals of this correlation are put together."""
_DRAWS = 8192
"""Rows that are drawn to compare columns: the standard error of a correlation is about .01."""


def dependent_groups(model: Distribution, columns: list[int], most: int, seed: int) -> list[list[int]]:
    """Columns in at most ``most`` groups of dependent ones."""
    # Mutual information I, of 8,192 draws in at most 16 classes a column, becomes r = sqrt(1 - exp(-2 I)). Groups are
    # joined by average linkage while r is at least .5 or there are more than ``most``.
    if len(columns) < 2:
        return [[j] for j in columns]
    from scipy.cluster.hierarchy import fcluster, linkage

    nothing = Evidence.nothing(len(model.schema.columns))
    drawn = sample(model, nothing, _DRAWS, seed, False)[:, columns]
    is_categorical = [model.schema.columns[j].is_categorical for j in columns]
    classes = np.column_stack([_classes(x, levels) for x, levels in zip(drawn.T, is_categorical, strict=True)])
    information = mutual_information(classes.astype(np.int16), classes.max(axis=0) + 1)
    apart = 1.0 - np.sqrt(-np.expm1(-2.0 * np.maximum(information, 0.0)))
    tree = linkage(apart[np.triu_indices(len(columns), 1)], "average")
    height = tree[:, 2]
    cut = max(1.0 - _TOGETHER, height[len(columns) - most - 1] if len(columns) > most else 0.0)
    label = fcluster(tree, cut * (1 + 1e-12), "distance")
    members: dict[int, list[int]] = {}
    for j, one in zip(columns, label.tolist(), strict=True):
        members.setdefault(one, []).append(j)
    return sorted(members.values(), key=lambda group: columns.index(group[0]))


def _classes(x: np.ndarray, is_categorical: bool) -> np.ndarray:
    """At most 16 classes (n,) of one column's draws: runs of about equal mass, or the commonest levels and the rest."""
    value, code, count = np.unique(x, return_inverse=True, return_counts=True)
    if len(value) <= CLASSES:
        return code
    if not is_categorical:
        middle = (np.cumsum(count) - 0.5 * count) / len(x)
        return np.unique((middle * CLASSES).astype(np.int64), return_inverse=True)[1][code]
    to = np.full(len(value), CLASSES - 1)
    to[np.argsort(-count, kind="stable")[: CLASSES - 1]] = np.arange(CLASSES - 1)
    return to[code]
