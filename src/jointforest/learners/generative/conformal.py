"""Conformal intervals and sets of a bagged forest: jackknife+ after bootstrap, at any pattern of missing cells.

The mathematics and its sources: docs/concepts/conformal-prediction.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...models.box_forest.posterior import tree_answers
from ...models.box_forest.structure import Forest
from ..leaf_fitting.densities import AssignedRows
from .constants import FIXED
from .targets import Training, know_features


class Calibration(NamedTuple):
    """Training rows that some trees were grown without.

    X : float64 array (c, d). Features, encoded; NaN where missing. In random order.
    y : float64 array (c,). Target: a number, or the code of a class.
    out_of_bag : bool array (c, T). Trees that were grown without the row.
    n : int. Rows of the table.
    """

    X: np.ndarray
    y: np.ndarray
    out_of_bag: np.ndarray
    n: int


class CalibrationPairs(NamedTuple):
    """Of c rows that calibrate, and m that are asked about: the predictions of both by the trees grown without the
    former.

    calibrating : float64 array (c, K). Of the row that calibrates.
    y : float64 array (c,). Its target.
    asked : float64 array (c, m, K). Of the row that is asked about.
    """

    calibrating: np.ndarray
    y: np.ndarray
    asked: np.ndarray


def calibration_rows(training: Training, assigned: AssignedRows, seed: int) -> Calibration:
    """What is kept at learning. Raises ValueError if every tree was grown on every row."""
    rows = np.flatnonzero((assigned.weight == 0).any(axis=0))
    if not len(rows):
        n = assigned.weight.shape[1]
        raise ValueError(
            f"conformal=True needs rows out of bag, and every tree was grown on all rows (n_samples = {n}): "
            "bootstrap=True, and more than a few rows"
        )
    rows = np.random.default_rng([seed, 2]).permutation(rows)[: FIXED.kept_rows]
    out_of_bag = np.ascontiguousarray((assigned.weight[:, rows] == 0).T)
    return Calibration(training.X[rows, :-1], training.X[rows, -1], out_of_bag, training.X.shape[0])


def pairs_by_pattern(
    forest: Forest, kept: Calibration, X: np.ndarray, beta: float, centre: float | None
) -> Iterator[tuple[np.ndarray, CalibrationPairs]]:
    """Rows of X (n, d; encoded, NaN where missing) with one pattern of missing cells, and their `CalibrationPairs`."""

    def ask(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        evidence = know_features(forest.schema, cells)
        log_tree, answer = tree_answers(forest, evidence, cells.shape[1], centre)
        return beta * np.maximum(log_tree, -1e300), answer

    patterns, which = np.unique(np.isnan(X), axis=0, return_inverse=True)
    gaps = np.isnan(kept.X)
    for k, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.ravel() == k)
        within = np.flatnonzero(~(gaps & ~pattern).any(axis=1))[: FIXED.pattern_rows]
        if len(within) >= min(FIXED.pattern_fewest_rows, len(kept.y)):
            out = kept.out_of_bag[within]
            calibrating = own_average(*ask(np.where(pattern, np.nan, kept.X[within])), out)
            for start in range(0, len(rows), FIXED.pattern_rows):
                block = rows[start : start + FIXED.pattern_rows]
                yield block, CalibrationPairs(calibrating, kept.y[within], left_out_averages(*ask(X[block]), out))
            continue
        unions, of_row = np.unique(gaps[: FIXED.union_rows] | pattern, axis=0, return_inverse=True)
        of_row, out, y = of_row.ravel(), kept.out_of_bag[: len(of_row)], kept.y[: len(of_row)]
        calibrating = own_average(*ask(np.where(unions[of_row], np.nan, kept.X[: len(of_row)])), out)
        for start in range(0, len(rows), FIXED.calibration_chunk):
            block = rows[start : start + FIXED.calibration_chunk]
            cells = np.where(unions[:, None], np.nan, X[block]).reshape(-1, X.shape[1])
            log_weight, answer = (each.reshape(len(unions), len(block), *each.shape[1:]) for each in ask(cells))
            asked = np.empty((len(of_row), len(block), answer.shape[-1]))
            for u in range(len(unions)):
                asked[of_row == u] = left_out_averages(log_weight[u], answer[u], out[of_row == u])
            yield block, CalibrationPairs(calibrating, y, asked)


def own_average(log_weight: np.ndarray, answer: np.ndarray, out_of_bag: np.ndarray) -> np.ndarray:
    """Answers (c, T, K) averaged over each row's trees out of bag (c, T), with weights exp(``log_weight``): (c, K)."""
    weight = np.where(out_of_bag, log_weight, -np.inf)
    weight = np.exp(weight - weight.max(axis=1, keepdims=True))
    return np.asarray(np.einsum("ct,ctk->ck", weight / weight.sum(axis=1, keepdims=True), answer))


def left_out_averages(log_weight: np.ndarray, answer: np.ndarray, out_of_bag: np.ndarray) -> np.ndarray:
    """Answers (m, T, K) averaged over the trees out of bag of each of c rows (c, T): (c, m, K)."""
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    out = out_of_bag.astype(np.float64)
    total = out @ weight.T
    with np.errstate(divide="ignore", invalid="ignore"):
        averages = np.stack([out @ (weight * answer[:, :, k]).T / total for k in range(answer.shape[2])], axis=-1)
    for i, r in np.argwhere(total < 1e-200):  # all of these trees weigh nothing beside others: among themselves
        averages[i, r] = own_average(log_weight[r : r + 1], answer[r : r + 1], out_of_bag[i : i + 1])[0]
    return averages


def interval(pairs: CalibrationPairs, level: float, centre: float, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends (m,) of jackknife+ intervals of scores |y - mean| / standard deviation; ``least``: smallest deviation."""
    spread = _standard_deviation(pairs.calibrating, centre, least)
    score = np.abs(pairs.y - pairs.calibrating[:, 0]) / spread
    reach = _standard_deviation(pairs.asked, centre, least) * score[:, None]
    mean = pairs.asked[:, :, 0]
    high = kth_smallest(mean + reach, level)
    low = -kth_smallest(reach - mean, level)
    return np.minimum(low, high), np.maximum(low, high)


def label_set(pairs: CalibrationPairs, level: float) -> np.ndarray:
    """Which classes are in the set of each row, bool (m, K): fewer than level (c + 1) rows fit theirs better."""
    probability = pairs.calibrating[np.arange(len(pairs.y)), pairs.y.astype(np.intp)]
    fits_better = (probability[:, None, None] > pairs.asked).sum(axis=0)
    return np.asarray(fits_better < level * (len(probability) + 1) - 1e-9)


def kth_smallest(values: np.ndarray, level: float) -> np.ndarray:
    """The ceil(level (c + 1))-th smallest of c values (c, m), (m,); inf if there are not so many."""
    c = len(values)
    k = max(int(np.ceil(level * (c + 1) - 1e-9)), 1)
    return np.partition(values, k - 1, axis=0)[k - 1] if k <= c else np.full(values.shape[1], np.inf)


def _standard_deviation(moments: np.ndarray, centre: float, least: float) -> np.ndarray:
    """Standard deviation of mean and mean squared distance from the centre (..., 2)."""
    return np.asarray(np.sqrt(np.maximum(moments[..., 1] - (moments[..., 0] - centre) ** 2, least**2)))
