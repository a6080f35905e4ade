"""One column given evidence: levels, moments, CDF, density, quantiles; sums over codes of what each code holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..table.evidence import Evidence
from ..table.scale import distribution, draws
from ..table.scale.scale import Scale
from ..table.schema import Column
from .evidence import CodeEvidence
from .hidden_trees import HiddenTrees, lost_atoms
from .posterior import CodePosterior, OneRow, by_batches

Read = Callable[[Scale, np.ndarray], np.ndarray]


def level_probability(
    hidden: HiddenTrees, evidence: Evidence, j: int, n_jobs: int | None = -1, known: OneRow | None = None
) -> np.ndarray:
    """Probability of each of the L levels of a categorical column, (n, L)."""
    L = len(hidden.schema.columns[j].levels)

    def of_value(x: np.ndarray) -> np.ndarray:
        return (x[:, None] == np.arange(L)).astype(np.float64)

    return _ask(hidden, evidence, j, lambda scale, p: draws.levels(scale, p, L), of_value, n_jobs, known)


def mean_variance(
    hidden: HiddenTrees, evidence: Evidence, j: int, n_jobs: int | None = -1, known: OneRow | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of a numeric column, each (n,)."""
    column = hidden.schema.columns[j]

    def read(scale: Scale, p: np.ndarray) -> np.ndarray:
        _, mean, variance = scale.moments
        center = p @ mean
        return np.column_stack([center, p @ variance + (p * (mean - center[:, None]) ** 2).sum(axis=1)])

    def of_value(x: np.ndarray) -> np.ndarray:
        return np.column_stack([at_center(column, x), np.zeros(len(x))])

    both = _ask(hidden, evidence, j, read, of_value, n_jobs, known)
    return both[:, 0].copy(), both[:, 1].copy()


def cdf(
    hidden: HiddenTrees, evidence: Evidence, j: int, x: np.ndarray, n_jobs: int | None = -1, known: OneRow | None = None
) -> np.ndarray:
    """P(column <= x) of a numeric column at q points, (n, q)."""
    column, x = hidden.schema.columns[j], np.asarray(x, dtype=np.float64)

    def read(scale: Scale, p: np.ndarray) -> np.ndarray:
        return np.minimum(p @ distribution.cdf(scale, x).T, 1.0)

    def of_value(value: np.ndarray) -> np.ndarray:
        return (at_center(column, value)[:, None] <= x).astype(np.float64)

    return _but_nan(_ask(hidden, evidence, j, read, of_value, n_jobs, known), x)


def histogram(
    hidden: HiddenTrees,
    evidence: Evidence,
    j: int,
    cuts: np.ndarray,
    n_jobs: int | None = -1,
    known: OneRow | None = None,
) -> np.ndarray:
    """Probability of the bins below, between and above q ascending cuts, (n, q + 1); or of levels, without cuts."""
    if hidden.schema.columns[j].is_categorical:
        return level_probability(hidden, evidence, j, n_jobs, known)
    below = cdf(hidden, evidence, j, np.append(cuts, np.inf), n_jobs, known)
    return np.maximum(np.diff(below, axis=1, prepend=0.0), 0.0)


def pdf(
    hidden: HiddenTrees, evidence: Evidence, j: int, x: np.ndarray, n_jobs: int | None = -1, known: OneRow | None = None
) -> np.ndarray:
    """Density of a numeric column at q points, (n, q); on a grid a cell's mass over the step, at an atom its mass."""
    column, x = hidden.schema.columns[j], np.asarray(x, dtype=np.float64)
    height = np.full(len(x), 1.0 / column.step if column.step > 0.0 else np.inf)
    if column.step == 0.0:
        height[np.isin(x, column.atoms)] = 1.0

    def of_value(value: np.ndarray) -> np.ndarray:
        return np.where(at_center(column, value)[:, None] == at_center(column, x), height, 0.0)

    def read(scale: Scale, p: np.ndarray) -> np.ndarray:
        return p @ np.where(np.isin(x, lost_atoms(scale, column)), 0.0, distribution.pdf(scale, x).T)

    return _but_nan(_ask(hidden, evidence, j, read, of_value, n_jobs, known), x)


def quantile(
    hidden: HiddenTrees, evidence: Evidence, j: int, q: np.ndarray, n_jobs: int | None = -1, known: OneRow | None = None
) -> np.ndarray:
    """inf{x: P(column <= x) >= q} of a numeric column at k levels, (n, k)."""
    column, q = hidden.schema.columns[j], np.asarray(q, dtype=np.float64)
    wrong = q[~((q > 0.0) & (q < 1.0))]
    if len(wrong):
        raise ValueError(f"quantile of column {column.name!r}: q must be above 0 and below 1, got {wrong[0]}")

    def of_value(value: np.ndarray) -> np.ndarray:
        return np.repeat(at_center(column, value)[:, None], len(q), axis=1)

    return _ask(hidden, evidence, j, lambda scale, p: draws.quantiles(scale, p, q), of_value, n_jobs, known)


def at_center(column: Column, x: np.ndarray) -> np.ndarray:
    """Numbers, on a grid those of their cells' centres."""
    if column.step == 0.0:
        return x
    return column.center + np.rint((x - column.center) / column.step) * column.step


def groups(scale: Scale, known: CodeEvidence) -> Iterator[tuple[np.ndarray, Scale | None]]:
    """Rows of which the same is known of the column, and its scale there; None for rows with a value."""
    K = scale.n_codes
    yield np.flatnonzero(known.code < K), None
    yield np.flatnonzero(known.code == K), scale
    for r, region in enumerate(known.regions):
        yield np.flatnonzero(known.code == K + 1 + r), region


def _ask(
    hidden: HiddenTrees,
    evidence: Evidence,
    j: int,
    read: Read,
    of_value: Callable[[np.ndarray], np.ndarray],
    n_jobs: int | None,
    known: OneRow | None,
) -> np.ndarray:
    """What ``read`` says of a scale and weights of its codes, ``of_value`` of known values; NaN where impossible."""
    scale = hidden.scales[j]

    def answer(found: CodePosterior) -> np.ndarray:
        weight, said = found.codes[j], found.known[j]
        out: np.ndarray | None = None
        for rows, at in groups(scale, said):
            if len(rows) or at is scale:
                part = of_value(said.value[rows]) if at is None else _possible(at, weight[rows], read)
                out = np.full((len(weight), part.shape[1]), np.nan) if out is None else out
                out[rows] = part
        assert out is not None
        out[np.isneginf(found.log_joint.max(axis=1))] = np.nan
        return out

    return by_batches(hidden, evidence, [j], answer, n_jobs, known)


def _possible(scale: Scale, weight: np.ndarray, read: Read) -> np.ndarray:
    """``read`` of a scale cut to a region; rows of NaN are harmless, an empty region has no answer."""
    if not len(scale.code):
        return np.full((len(weight), 1), np.nan)
    return read(scale, np.nan_to_num(weight))


def _but_nan(answers: np.ndarray, x: np.ndarray) -> np.ndarray:
    answers[:, np.isnan(x)] = np.nan
    return answers
