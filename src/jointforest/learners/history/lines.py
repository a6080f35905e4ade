"""How much imputed means follow the straight line between known neighbours, learned from cells that are hidden."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...models.history.columns import HistoryColumns, code_histories
from ...models.history.history_model import HistoryModel
from ...models.history.impute import AFTER, BEFORE, BETWEEN, impute_codes, line_of
from ...models.history.records import Histories, of_subjects
from .constants import Constants
from .order import take_subjects
from .prepare import Prepared


def split_off(histories: Histories, seed: int, constants: Constants) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of subjects to learn a trial model from, and of others whose cells it imputes; both ascending."""
    sample = take_subjects(histories, constants.line_rows, seed)
    mixed = np.random.default_rng([seed, 4]).permutation(sample)
    rows = np.cumsum(np.diff(histories.start)[mixed])
    n = np.searchsorted(rows, constants.judged_line_share * rows[-1])
    return np.sort(mixed[n:]), np.sort(mixed[:n])


def learn_line_shares(
    columns: HistoryColumns,
    histories: Histories,
    prepared: Prepared,
    learn: Callable[[Histories], HistoryModel],
    seed: int,
    constants: Constants,
) -> np.ndarray:
    """Weights of the line for each column of a row, float64 (d, 3): by least squares over hidden cells.

    They are lower by one standard error, so that few cells or a few large errors do not move the means.

    A fifth of the numbers of some subjects is hidden, and imputed by a model that is learned from others. Both come
    from a small sample: a larger one takes longer, and changes the weights little.
    """
    numbers = [j for j, v in enumerate(columns.rows) if v.source >= 0 and not v.coding.column.is_categorical]
    kept, judged = split_off(histories, seed, constants)
    found = np.zeros((len(columns.rows), 3))
    if not numbers or not len(judged):
        return found
    rows = prepared.rows
    length = rows.length[judged]
    start = np.concatenate([[0], np.cumsum(length)])
    at = np.repeat(rows.start[judged] - start[:-1], length) + np.arange(start[-1])
    truth, time = prepared.X[at], None if rows.time is None else rows.time[at]
    X, rng = truth.copy(), np.random.default_rng([seed, 5])
    for j in numbers:
        X[rng.random(len(X)) < constants.hidden_share, columns.rows[j].source] = np.nan
    trial = learn(of_subjects(histories, kept))
    coded = code_histories(columns, start, X, time, length, empty_is_unknown=True)
    (means,) = impute_codes(trial, X, coded, time, "mean", 1, constants.line_hypotheses, seed)
    for j in numbers:
        source = columns.rows[j].source
        line, sides = line_of(start, time, X[:, source])
        for k in (BETWEEN, AFTER, BEFORE):
            at = np.flatnonzero((sides == k) & ~np.isnan(line) & ~np.isnan(truth[:, source]))
            if len(at) >= constants.fewest_hidden:
                away, error = line[at] - means[at, source], truth[at, source] - means[at, source]
                total = max(away @ away, 1e-300)
                share = (away @ error) / total
                uncertain = np.sqrt(((error - share * away) ** 2 * away**2).sum()) / total
                found[j, k] = np.clip(share - constants.line_doubt * uncertain, 0.0, 1.0)
    return found
