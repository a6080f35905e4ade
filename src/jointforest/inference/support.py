"""The number of training rows that evidence stands for, and the standard errors of answers that follow."""

# The formulas are in docs/concepts/standard-errors.md.

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..data.evidence import Evidence
from ..models.base import Distribution, Parts
from ..models.box_forest.robustness import robustness

NEIGHBOURHOOD = 0.05
"""Probability of the neighbourhood in its column that a value with a density stands for."""
SUPPORT = 0.5
"""Evidence is unsupported if backgrounds carry more than this share of the posterior."""
FEW_SUPPORTING = 5.0
"""Answers that rest on fewer rows than this are extrapolated."""


def rows_like(model: Distribution, evidence: Evidence, log_probability: np.ndarray) -> np.ndarray:
    """Number of training rows that each row of evidence stands for, (n,); NaN if the model does not know its rows."""
    # ``log_probability`` (n,) is that of the evidence, with the condition that cells are missing.
    n_rows, n = model.schema.n_rows, len(evidence.value)
    if n_rows == 0.0:
        return np.full(n, np.nan)
    log_share = np.array(log_probability, np.float64)
    for rows, given, log_p in model.given_evidence_present(evidence):
        if given is not model and len(rows):
            of = evidence.take(rows)
            log_both = -np.inf if given is None else given.log_density(of) + log_p
            with np.errstate(invalid="ignore"):
                log_share[rows] += np.nan_to_num(log_both - model.log_density(of), nan=0.0, neginf=-np.inf)
    for j, column in enumerate(model.schema.columns):
        known = ~np.isnan(evidence.value[:, j])
        if column.is_categorical or not known.any():
            continue
        if column.step > 0.0:
            # log_probability holds the density of the cell's mass
            log_share = log_share + np.where(known, np.log(column.step), 0.0)
            continue
        is_dense = known & ~np.isin(evidence.value[:, j], column.atoms)
        alone = model.log_density(_column_alone(evidence, j))
        log_share = log_share + np.where(is_dense, np.log(NEIGHBOURHOOD) - alone, 0.0)
    return np.asarray(n_rows * np.exp(np.minimum(log_share, 0.0)))


def _column_alone(evidence: Evidence, j: int) -> Evidence:
    """The known values of column j, and nothing else."""
    value = np.full_like(evidence.value, np.nan)
    value[:, j] = evidence.value[:, j]
    region = np.full_like(evidence.region, -1) if evidence.region.size else evidence.region
    return evidence._replace(value=value, region=region, log_penalty=np.zeros_like(evidence.log_penalty))


def column_errors(model: Distribution, evidence: Evidence, n_rows: np.ndarray, j: int) -> np.ndarray:
    """Standard errors of the probabilities of column j's levels, or of its mean, given n rows of evidence, (n, L)."""
    # ``n_rows`` (n,) is that of `rows_like`. NaN where the evidence has probability 0.
    column = model.schema.columns[j]

    def of_one(_: int, row: Evidence, rows: float) -> np.ndarray:
        return _error(model, row, j, model.observe(row).parts(j), rows, column.is_categorical)

    return _by_row(evidence, n_rows, of_one, len(column.levels) if column.is_categorical else 1)


def event_errors(
    model: Distribution, evidence: Evidence, both: Evidence | None, n_rows: np.ndarray, j: int, share: np.ndarray
) -> np.ndarray:
    """Standard errors of the probabilities ``share`` (n,) of an event that names column j, (n,)."""
    # ``both`` is the evidence together with the event; None if it cannot be evidence, as for missing cells.

    def of_one(i: int, row: Evidence, rows: float) -> np.ndarray:
        probability = float(share[i])
        if both is None:
            parts = with_event = Parts(np.zeros(1), np.ones(1), np.zeros((1, 1)), np.zeros((1, 1)))
        else:
            parts = model.observe(row).parts(j)
            with_event = parts if probability == 0.0 else model.observe(both.take(np.array([i]))).parts(j)
        inside = probability * with_event.weight / np.maximum(parts.weight, np.finfo(float).tiny)
        mean = np.clip(inside, 0.0, 1.0)[:, None]
        return _error(model, row, j, parts._replace(mean=mean, variance=mean * (1.0 - mean)), rows, True)

    return _by_row(evidence, n_rows, of_one, 1)[:, 0]


def _by_row(
    evidence: Evidence, n_rows: np.ndarray, of_one: Callable[[int, Evidence, float], np.ndarray], size: int
) -> np.ndarray:
    """Answers of ``of_one`` to each row of evidence: its number, the row, and the rows it stands for, (n, size)."""
    out = np.full((len(n_rows), size), np.nan)
    for i in np.flatnonzero(n_rows > 0.0).tolist():
        out[i] = of_one(i, evidence.take(np.array([i])), float(n_rows[i]))
    return out


def _error(model: Distribution, row: Evidence, j: int, parts: Parts, rows: float, is_share: bool) -> np.ndarray:
    """Standard errors of the means of the parts, (L,), given one row of evidence that stands for so many rows."""
    asked = ~np.isnan(row.value[0]) | (row.cell_regions()[0] >= 0)
    of_evidence = float(np.prod([_share_known(model, k) for k in np.flatnonzero(asked).tolist()]))
    rows = rows / of_evidence  # parts are estimated from rows without these cells, too
    with np.errstate(divide="ignore", invalid="ignore"):
        meets = np.where(parts.prior > 0.0, parts.weight * (rows / model.schema.n_rows) / parts.prior, 1.0)
    meets = parts.weight * np.minimum(meets, 1.0)  # times P(evidence | part)
    center = parts.weight @ parts.mean
    within, between = meets @ parts.variance, parts.weight @ (parts.mean - center) ** 2
    if is_share:
        # as if half a row more had been seen of either outcome: shares of 0 and 1 are uncertain, too
        shrunk = (center * rows + 0.5 * meets.sum()) / (rows + meets.sum())
        within = np.maximum(within + meets.sum() * (shrunk * (1.0 - shrunk) - center * (1.0 - center)), 0.0)
    total = (within / _share_known(model, j) + between / of_evidence) / (rows if is_share else max(rows, 1.0))
    return np.asarray(np.minimum(np.sqrt(total), 0.5) if is_share else np.sqrt(total))


def _share_known(model: Distribution, j: int) -> float:
    """Share of the rows in which column j was known at learning; more than 0."""
    return min(max(model.schema.columns[j].n_observed, 1) / model.schema.n_rows, 1.0)


def support_in_words(n_rows: float, n_table: float) -> str:
    """How many rows an answer rests on, in words; empty if it is not known."""
    if np.isnan(n_rows) or n_table == 0.0:
        return ""
    if n_rows < FEW_SUPPORTING:
        return f"extrapolated: fewer than {FEW_SUPPORTING:.0f} of {n_table:,.0f} rows are like this"
    digits = 10.0 ** max(int(np.floor(np.log10(n_rows))) - 2, 0)
    return f"about {round(n_rows / digits) * digits:,.0f} of {n_table:,.0f} rows"


# ---- Two uncertainties of a prediction: is it fragile, and is its row unlike the rows that were learned from.

READINGS = ("ordinary", "ambiguous", "unfamiliar", "both")


class Uncertainty(NamedTuple):
    """Both kinds of uncertainty of n predictions; ``pandas.DataFrame(u._asdict())`` is a table of them.

    Attributes
    ----------
    predicted : array (n,)
        Predicted classes.
    probability : float64 array (n,)
        Of the predicted class.
    epsilon : float64 array (n,)
        Robustness: see `models.box_forest.robustness`.
    log_density : float64 array (n,)
        Of the row's known cells, by the mixture of all trees.
    percentile : float64 array (n,)
        Share of the reference rows, 0..100, that are less likely, the same cells of them known.
    reading : array of str (n,)
        "ordinary"; "ambiguous": a likely row, a fragile prediction; "unfamiliar": an unlikely row; "both".
    """

    predicted: np.ndarray
    probability: np.ndarray
    epsilon: np.ndarray
    log_density: np.ndarray
    percentile: np.ndarray
    reading: np.ndarray


def uncertainty(
    model: Distribution,
    evidence: Evidence,
    reference: Evidence,
    j: int,
    *,
    beta: float = 1.0,
    fragile: float = 0.1,
    unlikely: float = 5.0,
) -> Uncertainty:
    """Predictions of categorical column j, as level codes, with epistemic and aleatory uncertainty."""
    # A fragile prediction (epsilon below ``fragile``) of a likely row is aleatory: classes overlap there. An unlikely
    # row (percentile among ``reference`` below ``unlikely``) has few data like it: epistemic.
    evidence, reference = evidence.without(j), reference.without(j)
    epsilon, predicted = robustness(model.forest_for("robustness"), evidence, j, beta=beta)
    probability = model.observe_by_trees(evidence, beta).level_probabilities(j)[np.arange(len(predicted)), predicted]
    density = model.log_density(evidence)
    percentile = _percentile(model, evidence, reference, density)
    kind = 2 * (percentile < unlikely) + ~(epsilon >= fragile)
    return Uncertainty(predicted, probability, epsilon, density, percentile, np.array(READINGS)[kind])


def _percentile(model: Distribution, evidence: Evidence, reference: Evidence, density: np.ndarray) -> np.ndarray:
    """Share of the reference rows with a lower density of the same cells, in percent."""
    # Once for each pattern of cells: densities of different cells have different units.
    patterns, place = np.unique(np.isnan(evidence.value), axis=0, return_inverse=True)
    out = np.empty(len(density))
    for k, pattern in enumerate(patterns):
        rows = np.flatnonzero(place.ravel() == k)
        masked = reference._replace(value=np.where(pattern, np.nan, reference.value))
        others = np.sort(model.log_density(masked))
        out[rows] = 100.0 * np.searchsorted(others, density[rows]) / len(others)
    return out
