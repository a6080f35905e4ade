"""What a trained model predicts of a row: in expectation over the cells that are not known, and of the whole row."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..data.evidence import build
from ..ensembles.table import Ensemble
from ..inference.expectation.by_draws import expected_by_draws
from ..inference.expectation.expectation import MatchedRows, expected_answer, knows_splits
from ..inference.expectation.match import Features, MatchedEnsemble, filled, match_ensemble, match_features
from ..models.base import Distribution

TOLERANCE, DRAWS, SEED = 1e-4, 128, 0
"""Those of `ExpectedPredictor`, so that its answers are the same."""


class _Answer(NamedTuple):
    value: list[float]
    error: list[float]


class Predictor:
    """A trained ensemble asked under a joint.

    Parameters
    ----------
    ensemble : Ensemble
    model : Distribution
        Of the joint.

    Raises
    ------
    ValueError
        If the ensemble's features are not among the joint's columns.
    """

    def __init__(self, ensemble: Ensemble, model: Distribution) -> None:
        self.ensemble, self.model = ensemble, model
        self.features: Features = match_features(ensemble, model.schema)

    @cached_property
    def _matched(self) -> MatchedEnsemble | None:
        if not self.model.is_forest:
            return None
        return match_ensemble(self.ensemble, self.model.forest_for("a certified bound"))

    def ask(self, x: np.ndarray, known: np.ndarray) -> dict[str, Any]:
        """The model's expected prediction of a row x (d,) given its ``known`` cells, its error, and its own one."""
        expected = self._expected(self._rows(np.where(known, x, np.nan)))
        whole = self._rows(x)
        own = self._expected(whole).value if knows_splits(self.features, whole)[0] else None
        ensemble, names = self.ensemble, self.model.schema.names
        return {
            "library": ensemble.library,
            "classes": None if ensemble.classes is None else [str(label) for label in ensemble.classes],
            "features": [names[j] for j in self.features.column.tolist()],
            "expected": None if np.isnan(expected.value).any() else expected.value,
            "error": expected.error,
            "own": own,
        }

    def _rows(self, x: np.ndarray) -> MatchedRows:
        n = len(self.features.column)
        X, other = filled(self.features, np.full((1, n), np.nan), np.zeros((1, n), dtype=bool), x[None])
        return MatchedRows(build(self.model.schema, x[None]), X, other)

    def _expected(self, rows: MatchedRows) -> _Answer:
        if self._matched is None:
            drawn = expected_by_draws(self.features, self.model, rows, "auto", DRAWS, SEED)
            answer, error = drawn.answer[0], drawn.answer_error[0]
        else:
            found = expected_answer(self._matched, rows, "auto", DRAWS, SEED, TOLERANCE)
            answer, error = found.answer[0], found.error[0]
        if self.ensemble.classes is not None and self.ensemble.link == "logistic":
            answer, error = np.array([1.0 - answer[0], answer[0]]), np.array([error[0], error[0]])
        return _Answer(answer.tolist(), error.tolist())
