"""What is left of each column when a neighbour in the table's Chow-Liu tree is known: targets of joint trees. Leaves
that hold a Chow-Liu tree model the dependence of neighbours, so a split is worth only what it adds to that. If the tree
were all there is to the table, a column would be independent of a further one given its neighbour on the way there; so
a split by the further one is judged by what that neighbour leaves of the column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .constants import FIXED
from .learn import chow_liu_tree
from .leaves import CodedRows


class ConditionalRanks(NamedTuple):
    """Targets that are no columns of the table.

    values : float64 array (n, q). Ranks in (0, 1), evenly spread over the rows that have the neighbour's code; NaN
        where the column is missing.
    column : int array (q,). Whose rest it is.
    judges : bool array (d, q). Whether a split by column j is judged by it.
    """

    values: np.ndarray
    column: np.ndarray
    judges: np.ndarray


def conditional_ranks(table: CodedRows, weight: np.ndarray | None, seed: int) -> ConditionalRanks:
    """The conditional ranks of each column given each of its neighbours, from rows of weights (n,) or None."""
    n, d = table.codes.shape
    n_codes = np.array([scale.n_codes for scale in table.scales])
    is_ordered = np.array([not column.is_categorical for column in table.schema.columns])
    near = _neighbours(*chow_liu_tree(table.codes, n_codes, is_ordered))
    weight = np.ones(n) if weight is None else weight
    values, column, judges = [np.empty((n, 0))], [], []
    for k in range(d):
        toward = _first_steps(near, k)
        for m in near[k]:
            code = table.codes[:, m]
            for t, x in enumerate(_targets(table.rows.filled[:, k], int(n_codes[k]), bool(is_ordered[k]))):
                if _left(x, code, weight) > FIXED.least_left:
                    values.append(_ranks(x, code, weight, np.random.default_rng([seed, k, m, t]))[:, None])
                    column.append(k)
                    judges.append(toward == m)
    return ConditionalRanks(
        np.concatenate(values, axis=1), np.array(column, int), np.array(judges, bool).reshape(-1, d).T
    )


def _neighbours(order: np.ndarray, parent: np.ndarray) -> list[list[int]]:
    """Columns next to each column of a tree."""
    near: list[list[int]] = [[] for _ in order]
    for k, above in enumerate(parent.tolist()):
        if above >= 0:
            near[order[k]].append(int(order[above]))
            near[order[above]].append(int(order[k]))
    return near


def _first_steps(near: list[list[int]], k: int) -> np.ndarray:
    """The neighbour of column k on the way to each column, (d,); -1 of k itself."""
    step = np.full(len(near), -1)
    for m in near[k]:
        reached = [(m, k)]
        for here, before in reached:
            step[here] = m
            reached += [(further, here) for further in near[here] if further != before]
    return step


def _targets(code: np.ndarray, n_codes: int, is_ordered: bool) -> list[np.ndarray]:
    """What is predicted of a column's codes (n,), NaN where missing: the code, or whether it is some level."""
    if is_ordered:
        return [code]
    count = np.bincount(code[~np.isnan(code)].astype(int), minlength=n_codes)
    common = np.argsort(-count, kind="stable")[: min(FIXED.target_levels, max(n_codes - 1, 1))]
    return [np.where(np.isnan(code), np.nan, code == level) for level in common]


def _left(x: np.ndarray, code: np.ndarray, weight: np.ndarray) -> float:
    """Share of the variance of x (n,) that a neighbour's codes leave; 0 of a constant."""
    known = ~np.isnan(x) & (weight > 0.0)
    if not known.any():
        return 0.0
    x, code, weight = x[known], code[known], weight[known]
    x = x - np.average(x, weights=weight)
    mean = np.bincount(code, weight * x) / np.maximum(np.bincount(code, weight), 1e-300)
    of_all = weight @ x**2
    return float(weight @ (x - mean[code]) ** 2 / of_all) if of_all > 0.0 else 0.0


def _ranks(x: np.ndarray, code: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rank of each x (n,) among the rows with its code, by weight, in (0, 1), ties in random order; NaN where missing.
    So the rest is independent of the neighbour, in its mean and in its spread; the noise test counts on both."""
    known = np.flatnonzero(~np.isnan(x) & (weight > 0.0))
    known = known[np.lexsort((rng.random(len(known)), x[known], code[known]))]
    ends = np.cumsum(weight[known])
    first = np.searchsorted(code[known], code[known])
    last = np.searchsorted(code[known], code[known], side="right") - 1
    below = (ends - weight[known])[first]
    out = np.full(len(x), np.nan)
    out[known] = (ends - 0.5 * weight[known] - below) / (ends[last] - below)
    return out
