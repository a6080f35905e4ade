"""Expected answers of an ensemble under a joint of any parts: by cells of one missing column, else by draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ensembles.adopt import cell_edges
from ...ensembles.evaluate import apply_link, raw
from ...models.base import Distribution
from ...runtime.parameters import check
from ..sampling import sample
from .expectation import MatchedRows, distinct, knows_splits, take_matched
from .match import Features, filled, split_features

_METHODS = ("auto", "exact", "sample")
_DRAWN = 100_000
"""Completions at once."""
_CELLS = 4096
"""Most cells that a missing column is summed over."""


class Drawn(NamedTuple):
    """Expected answers for n rows, and how well they are known.

    answer, answer_error : float64 array (n, K). E[link(F)], and its standard error: 0 where it is exact.
    mean, mean_error : float64 array (n, K). E[F] of the sums F before the link, and its standard error.
    variance : float64 array (n, K). Var[F]
    """

    answer: np.ndarray
    answer_error: np.ndarray
    mean: np.ndarray
    mean_error: np.ndarray
    variance: np.ndarray


def expected_by_draws(
    features: Features, model: Distribution, rows: MatchedRows, method: str, m: int, seed: int
) -> Drawn:
    """Expectations over completions: exact if at most one split column is missing, else means over m draws."""
    check("method", method, _METHODS)
    out = _own_answers(features, rows)
    part = np.flatnonzero(~knows_splits(features, rows))
    if not len(part):
        return out
    few, place = distinct(take_matched(rows, part))
    lacks = _lacking(features, few)
    alone = _only_missing_feature(features, lacks) if method != "sample" else np.full(len(lacks), -1)
    many = np.flatnonzero(alone < 0)
    if method == "exact" and len(many):
        first = int(part[np.flatnonzero(np.isin(np.arange(len(few.X))[place], many))[0]])
        raise ValueError(
            f"row {first} lacks several of the columns that the {features.ensemble.library} splits: for a joint that "
            "is not one forest only one is summed exactly; use method='auto'"
        )
    of_few = Drawn(*np.empty((5, len(few.X), out.mean.shape[1])))
    _sum_lone(of_few, features, model, few, alone)
    size = max(1, _DRAWN // m)
    for first in range(0, len(many), size):
        rows_here = many[first : first + size]
        own_seed = int(np.random.default_rng([seed, first]).integers(2**62))
        _put(of_few, rows_here, _mean_over_draws(features, model, take_matched(few, rows_here), m, own_seed))
    _put(out, part, Drawn(*(answers[place] for answers in of_few)))
    return out


def _sum_lone(out: Drawn, features: Features, model: Distribution, rows: MatchedRows, alone: np.ndarray) -> None:
    """Put the answers of rows that lack one feature alone, ``alone`` (n,), into their places; -1: not such a row."""
    for f in np.unique(alone[alone >= 0]).tolist():
        rows_here = np.flatnonzero(alone == f)
        _put(out, rows_here, _exact_by_cells(features, model, take_matched(rows, rows_here), f))


def needs_draws(features: Features, rows: MatchedRows) -> np.ndarray:
    """Rows whose expectations are means over draws, bool (n,): they lack several of the features that are split."""
    lacks = _lacking(features, rows)
    return lacks.any(axis=1) & (_only_missing_feature(features, lacks) < 0)


def expected_by_completions(features: Features, model: Distribution, rows: MatchedRows, completed: np.ndarray) -> Drawn:
    """As `expected_by_draws`, over draws (n, m, d) that are there already, of the rows that need them."""
    out = _own_answers(features, rows)
    lacks = _lacking(features, rows)
    alone = _only_missing_feature(features, lacks)
    _sum_lone(out, features, model, rows, alone)
    many = np.flatnonzero(lacks.any(axis=1) & (alone < 0))
    if len(many):
        _put(out, many, _over(features, take_matched(rows, many), completed[many]))
    return out


def _put(out: Drawn, at: np.ndarray, answers_there: Drawn) -> None:
    for answers, new in zip(out, answers_there, strict=True):
        answers[at] = new


def _own_answers(features: Features, rows: MatchedRows) -> Drawn:
    """The ensemble's own answers."""
    total = raw(features.ensemble, rows.X, rows.other)
    nothing = np.zeros((3, *total.shape))
    return Drawn(apply_link(features.ensemble.link, total).copy(), nothing[0], total, nothing[1], nothing[2])


def _lacking(features: Features, rows: MatchedRows) -> np.ndarray:
    """Which of the features that are split each row lacks, bool (n, n_features)."""
    split = np.zeros(rows.X.shape[1], bool)
    split[split_features(features)] = True
    return np.isnan(rows.X) & ~rows.other & split


def _only_missing_feature(features: Features, lacks: np.ndarray) -> np.ndarray:
    """The only feature that a row lacks, if its cells are few enough to be summed; -1 otherwise, (n,)."""
    few = np.array([len(_cells(features, f)[1]) <= _CELLS for f in range(lacks.shape[1])])
    feature = lacks.argmax(axis=1)
    return np.where((lacks.sum(axis=1) == 1) & few[feature], feature, -1)


def _cells(features: Features, f: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges (c - 1,) between the cells into which splits cut feature f's column, and a value in each cell (c,)."""
    # Of a column of levels there are no edges, and each level is a cell.
    ensemble, columns = features.ensemble, features.columns
    j = int(features.column[f])
    slot = columns.slot[j]
    if columns.is_categorical[j]:
        return np.empty(0), np.arange(columns.n_levels(slot), dtype=np.float64)
    step, threshold = float(columns.step[slot]), np.unique(ensemble.threshold[ensemble.feature == f])
    edges = cell_edges(threshold, step, float(columns.origin[slot])) if step > 0.0 else threshold
    is_finite = np.isfinite(edges)
    edges, first = np.unique(edges[is_finite], return_index=True)
    if not len(edges):
        return edges, np.zeros(1)
    # a threshold's own value goes left, as does the cell below its edge; the last cell is beyond all thresholds
    value = threshold[is_finite]
    return edges, np.append(value[first], np.nextafter(value[-1], np.inf))


def _exact_by_cells(features: Features, model: Distribution, rows: MatchedRows, f: int) -> Drawn:
    """Exact answers for rows that lack feature f alone."""
    j = int(features.column[f])
    edges, value = _cells(features, f)
    if features.columns.is_categorical[j]:
        mass = model.observe(rows.evidence).level_probabilities(j)
    else:
        below = np.hstack([np.zeros((len(rows.X), 1)), model.observe(rows.evidence).cdf(j, edges)])
        mass = np.diff(below, axis=1, append=1.0)
    out = Drawn(*np.empty((5, len(rows.X), len(features.ensemble.base))))
    size = max(1, _DRAWN // len(value))
    for first in range(0, len(mass), size):
        here = slice(first, first + size)
        cells = np.full((len(mass[here]), len(value), rows.evidence.value.shape[1]), np.nan)
        cells[:, :, j] = value
        total = _totals(features, take_matched(rows, np.arange(len(mass))[here]), cells)
        _put(out, np.arange(len(mass))[here], _weighed_answers(features, total, mass[here][:, :, None], exact=True))
    return out


def _mean_over_draws(features: Features, model: Distribution, rows: MatchedRows, m: int, seed: int) -> Drawn:
    """Means over m draws for each row, and their standard errors."""
    n, d = rows.evidence.value.shape
    return _over(features, rows, sample(model, rows.evidence, m, seed, False).reshape(n, m, d))


def _over(features: Features, rows: MatchedRows, completed: np.ndarray) -> Drawn:
    """Means over m draws for each row, ``completed`` (n, m, d), and their standard errors."""
    n, m, _ = completed.shape
    total = _totals(features, rows, completed)
    total[np.isnan(completed).all(axis=2)] = np.nan
    return _weighed_answers(features, total, np.full((n, m, 1), 1.0 / m), exact=False)


def _totals(features: Features, rows: MatchedRows, cells: np.ndarray) -> np.ndarray:
    """F of each row with its missing cells from each of c rows, ``cells`` (n, c, d): (n, c, K)."""
    n, c, d = cells.shape
    X, other = filled(features, np.repeat(rows.X, c, axis=0), np.repeat(rows.other, c, axis=0), cells.reshape(-1, d))
    return raw(features.ensemble, X, other).reshape(n, c, -1)


def _weighed_answers(features: Features, total: np.ndarray, weight: np.ndarray, exact: bool) -> Drawn:
    """Drawn from F (n, c, K) and weights (n, c, 1) that sum to 1 for each row."""
    answer = apply_link(features.ensemble.link, total.reshape(-1, total.shape[2])).reshape(total.shape)
    mean, expected = (weight * total).sum(axis=1), (weight * answer).sum(axis=1)
    variance = (weight * (total - mean[:, None]) ** 2).sum(axis=1)
    if exact:
        nothing = np.where(np.isnan(mean), np.nan, 0.0)
        return Drawn(expected, nothing, mean, nothing, variance)
    spread = (weight * (answer - expected[:, None]) ** 2).sum(axis=1)
    m = total.shape[1]
    return Drawn(expected, np.sqrt(spread / (m - 1)), mean, np.sqrt(variance / (m - 1)), variance * (m / (m - 1)))
