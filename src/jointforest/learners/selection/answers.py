"""Score of a candidate's answers about columns of validation rows, each given one other column."""

# The log-density of rows hardly changes if a little mass lies far away, but the standard deviation of a column does. So
# candidates are also compared by the mean and the standard deviation of a number, given a column on which it depends
# (the score of Dawid and Sebastiani, 1999), and by the log-probability of a level. But for limits to what one row
# counts, both scores are proper: in the mean, the true distribution has the highest one.

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...data.evidence import build
from ...data.schema import Schema
from ...evaluation.columns_and_pairs import pair_information, some
from ...models.base import Distribution
from .constants import FIXED


class Pairs(NamedTuple):
    """What is asked: columns, each given the column on which it depends most, or one drawn at random.

    column, given : integer arrays (q,).
    center, spread : float arrays (q,). Of the column's numbers: the median, and the range of the middle 80 % over that
        of a standard normal distribution.
    is_level : bool array (q,). Whether the column is categorical.
    at_random : bool array (q,). Whether the given column was drawn at random; else it is the strongest partner.
    """

    column: np.ndarray
    given: np.ndarray
    center: np.ndarray
    spread: np.ndarray
    is_level: np.ndarray
    at_random: np.ndarray


def pairs_of(schema: Schema, X: np.ndarray, seed: int) -> Pairs:
    """Columns of rows X (n, d), d >= 2, each with the one on which it depends most, and with others at random."""
    # other columns are given too, because a candidate may have learned the strongest dependence only
    d, random = X.shape[1], np.random.default_rng(seed)
    information = pair_information(schema, X, random)
    each = []
    for j in some(d, FIXED.asked_columns, random).tolist():
        strongest = int(information[j].argmax())
        others = np.delete(np.arange(d), [j, strongest])
        each.append((j, strongest, 0))
        each += [(j, p, 1) for p in others[some(d - 2, FIXED.asked_at_random, random)].tolist()]
    column, given, at_random = np.array(each, np.int64).reshape(-1, 3).T
    low, center, high = np.nanquantile(X[:, column], (0.1, 0.5, 0.9), axis=0)
    spread = (high - low) / _MIDDLE
    spread = np.where(spread > 0.0, spread, np.nanstd(X[:, column], axis=0))
    is_level = np.array([schema.columns[j].is_categorical for j in column.tolist()], bool)
    return Pairs(column, given, center, np.where(spread > 0.0, spread, 1.0), is_level, at_random == 1)


_MIDDLE = 2.5631
"""Range of the middle 80 % of a standard normal distribution."""


class Answers(NamedTuple):
    """A candidate's answers about m rows, each array (m, q).

    log_given : float. Log-density of the given cell.
    first, second : float. Moments of the column given that cell, of numbers less `Pairs.center` over `Pairs.spread`; of
        a categorical column, ``first`` is the probability of the row's level.
    cell : float. The row's number, on the same scale. NaN where this cell or the given one is missing.
    pairs : Pairs. What was asked.
    """

    log_given: np.ndarray
    first: np.ndarray
    second: np.ndarray
    cell: np.ndarray
    pairs: Pairs


def answers(model: Distribution, pairs: Pairs, X: np.ndarray) -> Answers:
    """The answers of a model about rows X (m, d)."""
    cell = (X[:, pairs.column] - pairs.center) / pairs.spread
    cell[np.isnan(X[:, pairs.given])] = np.nan
    log_given, first, second = np.zeros(cell.shape), np.zeros(cell.shape), np.ones(cell.shape)
    for p in np.unique(pairs.given).tolist():
        rows = np.flatnonzero(~np.isnan(X[:, p]))
        if not len(rows):
            continue
        # each value is asked about once
        value, row_of = np.unique(X[rows, p], return_inverse=True)
        evidence = np.full((len(value), X.shape[1]), np.nan)
        evidence[:, p] = value
        state = model.observe(build(model.schema, evidence))
        asked = np.flatnonzero(pairs.given == p)
        state.prepare(pairs.column[asked].tolist())
        log_p = state.log_probability()
        for k in asked.tolist():
            j = int(pairs.column[k])
            log_given[rows, k] = log_p[row_of]
            if pairs.is_level[k]:
                known = ~np.isnan(X[rows, j])
                codes = X[rows[known], j].astype(np.int64)
                first[rows[known], k] = state.level_probabilities(j)[row_of[known], codes]
            else:
                mean, variance = state.moments(j)
                mean, variance = (mean - pairs.center[k]) / pairs.spread[k], variance / pairs.spread[k] ** 2
                first[rows, k], second[rows, k] = mean[row_of], (variance + mean**2)[row_of]
    return Answers(log_given, first, second, cell, pairs)


def joined(each: Sequence[Answers]) -> Answers:
    """Answers about rows of several splits, one after the other."""
    log_given, first, second, cell = (np.concatenate(parts) for parts in zip(*(one[:4] for one in each), strict=True))
    return Answers(log_given, first, second, cell, each[0].pairs)


def score(each: Sequence[Answers], weight: np.ndarray, only_at_random: bool = False) -> float:
    """Mean score of the answers of a mixture of candidates with weight (K,); 0 where nothing is asked.

    Those about the strongest partners count as much as those about partners drawn at random, which count alone if asked
    for.
    """
    used = np.flatnonzero(weight).tolist()
    known, at_random = ~np.isnan(each[0].cell), each[0].pairs.at_random
    # a component counts by its weight, and by how probable the given cell is to it
    log_share = np.stack([np.log(weight[k]) + each[k].log_given for k in used])
    top = log_share.max(axis=0)
    share = np.where(np.isfinite(top), np.exp(log_share - np.where(np.isfinite(top), top, 0.0)), 1.0)
    share /= share.sum(axis=0)
    first, second = (
        sum(s * moment for s, moment in zip(share, moments, strict=True))
        for moments in ([each[k].first for k in used], [each[k].second for k in used])
    )
    # The variance of an error of 2 % of the spread is added. Otherwise columns that are nearly functions of others
    # would outweigh all others.
    noise = FIXED.noise**2
    variance = np.maximum(second - first**2, 0.0) + noise
    off = np.minimum(((each[0].cell - first) ** 2 + noise) / variance, FIXED.most_errors**2)
    of_numbers = -0.5 * np.log(variance) - 0.5 * off
    of_levels = np.log(np.maximum(first, np.exp(-0.5 * FIXED.most_errors**2)))
    of_cells = np.where(each[0].pairs.is_level, of_levels, of_numbers)
    asked = [known & at_random] if only_at_random else [known & at_random, known & ~at_random]
    means = [of_cells[cells].mean() for cells in asked if cells.any()]
    return float(np.mean(means)) if means else 0.0
