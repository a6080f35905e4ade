"""Shapley values of rows: coalitions of columns, what a prediction is given each, and the values that follow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..data.discretization.dependence import CLASSES, mutual_information
from ..data.evidence import Evidence
from ..data.schema import Schema
from ..ensembles.evaluate import apply_link, raw, routing
from ..ensembles.table import Ensemble
from ..models.base import Distribution
from ..runtime.threads import chunks, map_ordered
from .expectation.expectation import MatchedRows, completed_sums, knows_splits, take_matched
from .expectation.match import MatchedEnsemble
from .sampling import sample
from .shapley_kernels import Facing, interventional_rows

# ---- Which coalitions of p players are asked, and the linear map from their values to Shapley values.


class Plan(NamedTuple):
    """m coalitions of p players, and how Shapley values follow from the game's values v (m,).

    member : bool array (m, p). Players of each coalition. The first is empty, the second has all.
    weight : float64 array (p, m). ``phi = weight @ v``. Its columns sum to -1, 1, 0, ..., 0: phi sums to v[1] - v[0].
    first_sampled : int. Number of the first drawn coalition, m if none: first k coalitions, then their k complements.
    score : float64 array (p, k). Factors of the residuals of the k drawn pairs in the error of phi (HC3); see `solve`.
    """

    member: np.ndarray
    weight: np.ndarray
    first_sampled: int
    score: np.ndarray

    @property
    def is_exact(self) -> bool:
        """Whether all coalitions are asked."""
        return self.first_sampled == len(self.member)


def least_coalitions(p: int) -> int:
    """Fewest coalitions from which the values of p players can be sampled: all of one or p - 1, and eight more."""
    return 2 * p + 10


def make_plan(p: int, m: int, seed: int) -> Plan:
    """All coalitions if they are at most m, else about m of them, paired, by the weights of KernelSHAP."""
    # The smallest and largest coalitions weigh most: all of them are asked as long as no fewer draws would be due to
    # them.
    return _all(p) if 2**p <= m else _sampled(p, m, np.random.default_rng(seed))


def _all(p: int) -> Plan:
    """Every coalition, weighed by (s - 1)! (p - s)! / p! for its s players, -s! (p - s - 1)! / p! for the others."""
    bits = np.arange(2**p)
    bits[[1, -1]] = bits[[-1, 1]]
    member = (bits[:, None] >> np.arange(p)) & 1 > 0
    size = np.arange(p + 1)
    with_player = np.array([1.0 / (p * math.comb(p - 1, s - 1)) if s else 0.0 for s in size])
    without = np.array([1.0 / (p * math.comb(p - 1, s)) if s < p else 0.0 for s in size])
    s = member.sum(axis=1)
    weight = np.where(member, with_player[s][:, None], -without[s][:, None]).T
    return Plan(member, np.ascontiguousarray(weight), len(member), np.empty((p, 0)))


def _sampled(p: int, m: int, rng: np.random.Generator) -> Plan:
    """Pairs of coalitions, and the constrained weighted least squares that they make."""
    sizes = np.arange(1, p // 2 + 1)
    half = np.where(2 * sizes == p, 0.5, 1.0)  # a pair of two halves occurs twice
    mass = half * 2.0 * (p - 1) / (sizes * (p - sizes))
    n_pairs = np.array([math.comb(p, s) for s in sizes.tolist()]) * half
    left = (m - 2) // 2
    n_complete = 0
    # the pairs of a size are listed if as many draws would be due to them; those of one player always
    while n_complete == 0 or left * mass[n_complete] / mass[n_complete:].sum() >= n_pairs[n_complete] <= left - 4:
        left -= int(n_pairs[n_complete])
        n_complete += 1
    listed = np.concatenate([_of_size(p, int(s)) for s in sizes[:n_complete]])
    listed_weight = np.repeat(mass[:n_complete] / n_pairs[:n_complete], n_pairs[:n_complete].astype(int))
    drawn = _drawn_coalitions(p, sizes[n_complete:], mass[n_complete:], left, rng)
    pairs = np.concatenate([listed, drawn])
    weight = np.append(listed_weight, np.full(left, mass[n_complete:].sum() / left))
    return _least_squares(pairs, weight, len(listed))


def _of_size(p: int, s: int) -> np.ndarray:
    """One coalition of each pair of sizes s and p - s, bool (., p)."""
    chosen = np.array(list(combinations(range(p), s)))
    if 2 * s == p:
        chosen = chosen[: len(chosen) // 2]  # those with player 0
    member = np.zeros((len(chosen), p), bool)
    member[np.arange(len(chosen))[:, None], chosen] = True
    return member


def _drawn_coalitions(p: int, sizes: np.ndarray, mass: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """k coalitions, bool (k, p): sizes by their mass, as evenly as can be; players at random."""
    at = (np.arange(k) + rng.random()) / k
    size = sizes[np.searchsorted(np.cumsum(mass)[:-1] / mass.sum(), at)]
    return rng.random((k, p)).argsort(axis=1).argsort(axis=1) < size[:, None]


def _least_squares(pairs: np.ndarray, pair_weight: np.ndarray, n_listed: int) -> Plan:
    """The least-squares Shapley values of paired coalitions, which sum to v[1] - v[0]."""
    # phi minimises sum of pair_weight ((v(S) - v(rest)) / 2 - sum_j phi_j (1[j in S] - 1/2))^2. With the orthonormal
    # basis B of what is orthogonal to ones, phi = (v[1] - v[0]) / p + B gamma is free in gamma.
    p = pairs.shape[1]
    B = np.linalg.qr(np.column_stack([np.ones(p), np.eye(p)[:, : p - 1]]))[0][:, 1:]
    c = pairs - 0.5
    D = c @ B
    inverse = np.linalg.inv((D * pair_weight[:, None]).T @ D)
    gain = B @ inverse @ (D * pair_weight[:, None]).T  # (p, k): of (v(S) - v(rest)) / 2
    leverage = pair_weight * np.einsum("ij,jk,ik->i", D, inverse, D)
    from_total = (1.0 - gain @ c.sum(axis=1)) / p
    drawn = pairs[n_listed:]
    listed, ends = pairs[:n_listed], np.array([[False], [True]]).repeat(p, 1)
    member = np.concatenate([ends, listed, ~listed, drawn, ~drawn])
    here, there = gain[:, :n_listed] / 2.0, gain[:, n_listed:] / 2.0
    weight = np.hstack([-from_total[:, None], from_total[:, None], here, -here, there, -there])
    score = gain[:, n_listed:] / (1.0 - leverage[n_listed:])
    return Plan(member, weight, 2 + 2 * n_listed, score)


# ---- Shapley values and their standard errors from the values of a plan's coalitions.


def solve(plan: Plan, value: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shapley values of n games with K outputs, and the variance of each, both (n, p, K)."""
    # Two sources: which coalitions were drawn, by the residuals of the drawn pairs (a sandwich, HC3), and the noise of
    # all other values, by the linear map.
    phi = np.matmul(plan.weight, value)
    given = slice(0, plan.first_sampled)
    spread = np.matmul(plan.weight[:, given] ** 2, variance[:, given])
    k = plan.score.shape[1]
    if k:
        drawn = plan.member[plan.first_sampled :][:k] - 0.5
        first = value[:, plan.first_sampled : plan.first_sampled + k]
        second = value[:, plan.first_sampled + k :]
        residual = (first - second) / 2.0 - np.matmul(drawn, phi)
        mean = np.matmul(plan.score, residual) / k
        squares = np.matmul(plan.score**2, residual**2)
        spread = spread + np.maximum(squares - k * mean**2, 0.0) * (k / (k - 1))
    return phi, spread


EXACT_PLAYERS = 12
"""Up to so many players all coalitions are asked, by default."""
SAMPLED = 512
"""Coalitions of a row with more players, by default."""
MOST_COALITIONS = 65_536
"""Most coalitions of a row; of all rows together, the most whose values are asked at once."""


class Asked(NamedTuple):
    """Values of q coalitions.

    mean, variance : float64 array (q, K). The value, and the variance of its error, independent between coalitions.
    replicates : float64 array (q, R, K) or None. Values by background row, with mean ``mean``; ``variance`` is 0.
    """

    mean: np.ndarray
    variance: np.ndarray
    replicates: np.ndarray | None = None


ValueFunction = Callable[[np.ndarray, np.ndarray], Asked]
"""``value(row, known)``: of q coalitions, by row numbers (q,) and the columns that are known, bool (q, d)."""


class Solved(NamedTuple):
    """Shapley values of n rows with p players and K outputs.

    phi, variance : float64 array (n, p, K). Values, and the variance of their errors.
    base, base_variance : float64 array (K,). Of the empty coalition.
    """

    phi: np.ndarray
    variance: np.ndarray
    base: np.ndarray
    base_variance: np.ndarray


def shapley_values(
    value: ValueFunction,
    base: Asked,
    players: np.ndarray,
    known: np.ndarray,
    n_coalitions: int | None,
    seed: int,
    own_coalitions: bool = False,
) -> Solved:
    """Shapley values of each row's game; a player whose cells are all missing has the value 0."""
    present = known @ players.T  # (n, p), bool
    phi, variance = np.zeros((2, *present.shape, base.mean.shape[1]))
    key = np.column_stack([present, np.arange(len(present))]) if own_coalitions else present.astype(np.int64)
    patterns, place = np.unique(key, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        who, rows = np.flatnonzero(pattern[: len(players)]), np.flatnonzero(place.ravel() == k)
        if not len(who):
            continue
        plan = make_plan(len(who), budget(len(who), n_coalitions), _seed(seed, pattern))
        columns = plan.member @ players[who]
        size = max(1, MOST_COALITIONS // (len(columns) * base.mean.shape[1]))
        for first in range(0, len(rows), size):
            rows_here = rows[first : first + size]
            solved = _solved_rows(plan, value, base, rows_here, columns & known[rows_here][:, None])
            phi[np.ix_(rows_here, who)], variance[np.ix_(rows_here, who)] = solved
    return Solved(phi, variance, base.mean[0], _total_variance(base)[0])


def budget(p: int, n_coalitions: int | None) -> int:
    """Most coalitions of a row with p players."""
    if n_coalitions is not None:
        return n_coalitions
    return 2**p if p <= EXACT_PLAYERS else max(SAMPLED, 4 * p)


def _seed(seed: int, pattern: np.ndarray) -> int:
    """A pattern's own seed, whatever other patterns there are."""
    return int(np.random.SeedSequence([seed, *pattern.tolist()]).generate_state(1, np.uint64)[0])


def _solved_rows(
    plan: Plan, value: ValueFunction, base: Asked, rows: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values and variances (r, p, K) of r rows with one plan; ``known`` (r, m, d)."""
    r, m, d = known.shape
    asked = value(np.repeat(rows, m - 1), known[:, 1:].reshape(-1, d))
    K = base.mean.shape[1]
    mean = _with_base(base.mean, asked.mean.reshape(r, m - 1, K))
    phi, variance = solve(plan, mean, _with_base(base.variance, asked.variance.reshape(r, m - 1, K)))
    if asked.replicates is not None and base.replicates is not None:
        R = base.replicates.shape[1]
        each = _with_base(base.replicates.reshape(1, R * K), asked.replicates.reshape(r, m - 1, R * K))
        solved = np.matmul(plan.weight, each).reshape(r, -1, R, K)
        variance = variance + solved.var(axis=2, ddof=1) / R
    return phi, variance


def _with_base(base: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The empty coalition's answer (1, K) before those of the others (r, m - 1, K)."""
    return np.concatenate([np.broadcast_to(base, (len(others), 1, base.shape[1])), others], axis=1)


def _total_variance(asked: Asked) -> np.ndarray:
    """Variance of the values' errors, (q, K)."""
    if asked.replicates is None:
        return asked.variance
    return asked.variance + asked.replicates.var(axis=1, ddof=1) / asked.replicates.shape[1]


# ---- Players of a game on a table: columns, or groups of columns, that are known together.


class Players(NamedTuple):
    """p players, each some columns of a joint.

    columns : tuple of p tuples of int. Numbers of the joint's columns; no column is of two players.
    """

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]

    def of_columns(self, d: int) -> np.ndarray:
        """Which of d columns each player has, bool (p, d)."""
        out = np.zeros((len(self.columns), d), bool)
        for k, columns in enumerate(self.columns):
            out[k, list(columns)] = True
        return out


def make_players(schema: Schema, columns: Iterable[int], groups: Any) -> Players:
    """Players of these columns: one each, or the groups, with a player for each column that is in none."""
    names, columns_of = [], []
    for name, group in _groups_asked(groups):
        words = [group] if isinstance(group, str) else list(group)
        if not words:
            raise ValueError(f"groups: the group {name!r} has no columns" if name else "groups: a group has no columns")
        columns_of.append(tuple(schema.index(word) for word in words))
        names.append(" + ".join(schema.names[j] for j in columns_of[-1]) if name is None else str(name))
    flat = [j for group in columns_of for j in group]
    twice = [j for i, j in enumerate(flat) if j in flat[:i]]
    if twice:
        raise ValueError(f"groups: column {schema.names[twice[0]]!r} is named twice")
    alone = [j for j in columns if j not in flat]
    names, columns_of = names + [schema.names[j] for j in alone], columns_of + [(j,) for j in alone]
    same = [name for i, name in enumerate(names) if name in names[:i]]
    if same:
        raise ValueError(f"groups: two players are called {same[0]!r}; give the group another name")
    return Players(tuple(names), tuple(columns_of))


def _groups_asked(groups: Any) -> list[tuple[Any, Any]]:
    """Name, or None, and members of each group."""
    if groups is None:
        return []
    if isinstance(groups, Mapping):
        return list(groups.items())
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise ValueError(f"groups must be None, 'auto', a list of lists of columns or a dict, got {groups!r}")
    return [(None, group) for group in groups]


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
