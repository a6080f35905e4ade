"""Two uncertainties of a prediction: is it fragile, and is its row unlike the rows that were learned from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.evidence import Evidence
from ..models.base import Distribution
from ..models.box_forest.robustness import robustness

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
