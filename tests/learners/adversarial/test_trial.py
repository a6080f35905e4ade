"""The trial of quantile leaves: what validation rows gain, against forests that are made with such leaves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.evidence import build
from jointforest.learners.adversarial.adversarial_forest import _Trial
from jointforest.learners.leaf_fitting.densities import as_forest, fit_trees, quantile_trees
from jointforest.learners.leaf_fitting.fit import prepare_table
from jointforest.learners.rows import read_training_rows
from jointforest.models.box_forest.posterior import log_density


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_gains_are_those_of_forests_with_quantile_leaves(missing: float) -> None:
    rng = np.random.default_rng(0)
    n = 300
    x = rng.exponential(size=n)
    frame = pd.DataFrame({"x": x, "grid": rng.poisson(3, n), "level": np.where(x > 1, "u", "v")})
    frame["atom"] = np.where(rng.random(n) < 0.4, 0.0, rng.normal(size=n) + 5 * (x > 1))
    frame["tied"] = np.where(rng.random(n) < 0.5, 7, rng.integers(0, 40, n))  # a grid with an atom
    frame = frame.mask(rng.random(frame.shape) < missing)
    rows = read_training_rows(frame, None).completed(None, 0)
    learner = jf.AdversarialForest(n_estimators=3, random_state=0)
    learner.n_features_in_ = len(frame.columns)
    cells, settings = prepare_table(rows.columns, rows.filled, rows.drawn), learner._leaf_settings()
    trial = _Trial(rows, cells, learner._grow(rows, None, 0).filled, settings, None, 0)
    trees = trial._normal[0]
    none = np.zeros(len(rows.columns.step), bool)
    plain = fit_trees(rows.columns, cells, trees, settings, quantile=none)
    asked = build(rows.schema, rows.X[trial.asked])

    def density(slots: np.ndarray) -> np.ndarray:
        fitted = quantile_trees(rows.columns, cells, trees, plain, slots, settings.quantile_epsilon)
        return log_density(as_forest(rows.schema, rows.columns, cells, trees.trees, fitted, 1e-3), asked)

    normal = log_density(as_forest(rows.schema, rows.columns, cells, trees.trees, plain, 1e-3), asked)
    for slots in (~none, *np.eye(len(none), dtype=bool)):
        [gain] = trial.gains(slots)
        np.testing.assert_allclose(gain, density(slots) - normal, rtol=1e-9, atol=1e-9)
