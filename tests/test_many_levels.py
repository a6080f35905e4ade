"""Columns of many levels answer as dense rows would: each model twice, once with every column of levels wide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

import jointforest as jf
from jointforest.data.evidence import Evidence
from jointforest.models.box_forest.box_forest import merge_forests
from jointforest.models.box_forest.condition import condition, marginalize
from jointforest.models.box_forest.files import check_forest
from jointforest.models.box_forest.leaves import levels as wide_levels
from jointforest.models.box_forest.posterior import log_density, sample
from jointforest.models.box_forest.structure import Forest

from .box_answers import impute, level_probability
from .random_cases.evidence import random_evidence
from .random_cases.models import random_model

pytestmark = pytest.mark.filterwarnings("ignore")


def both(monkeypatch: pytest.MonkeyPatch, ask: Callable[[], dict[str, Any]]) -> None:
    """What is asked has the same answers when columns of levels are dense, and when all but the smallest are wide."""
    monkeypatch.setattr(wide_levels, "MANY_LEVELS", 10**6)
    want = ask()
    monkeypatch.setattr(wide_levels, "MANY_LEVELS", 1)
    found = ask()
    assert found.keys() == want.keys()
    for name, answer in want.items():
        np.testing.assert_allclose(found[name], answer, rtol=1e-12, atol=1e-12, err_msg=name)


def read(model: Forest, evidence: Evidence, name: str = "") -> dict[str, Any]:
    """Densities and probabilities of levels."""
    check_forest(model.schema, model.columns, model.trees, model.leaves, model.has_background)
    found = {f"{name} density": log_density(model, evidence)}
    for j in np.flatnonzero(model.columns.is_categorical).tolist():
        found[f"{name} levels of {j}"] = level_probability(model, evidence, j)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_random_models(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> dict[str, Any]:
        model = random_model(seed)
        evidence = random_evidence(model, seed, 30)
        found = read(model, evidence)
        found["draws"] = sample(model, evidence, 5, 0)
        return found | {"filled": impute(model, evidence)}

    both(monkeypatch, ask)


@pytest.mark.parametrize("seed", range(6))
def test_forests_made_of_forests(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> dict[str, Any]:
        model = random_model(seed)
        evidence = random_evidence(model, seed, 40)
        small, mixed = marginalize(model, [0, 2, 5, 6]), merge_forests([model, random_model(seed)], np.log([0.3, 0.7]))
        found = read(small, random_evidence(small, seed, 10), "kept") | read(mixed, evidence, "mixed")
        for i in np.flatnonzero(log_density(model, evidence) > -np.inf)[:4].tolist():
            given = condition(model, evidence.take(np.array([i])))
            found |= read(given, random_evidence(given, seed, 10), f"given {i}")
        return found

    both(monkeypatch, ask)


def frame(n: int) -> pd.DataFrame:
    """Rows with three columns of levels, one of them of 70, and some missing cells."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, n)
    many = np.minimum(rng.geometric(0.08, n) + 5 * group, 70)
    made = pd.DataFrame({
        "x": group + rng.normal(size=n),
        "count": rng.poisson(2 + group),
        "many": [f"level {k:02d}" for k in many],
        "few": np.array(["a", "b", "c", "d"])[np.where(rng.random(n) < 0.2, 3, group)],
        "flag": rng.random(n) < 0.3 + 0.2 * group,
        "y": np.array(["low", "mid", "high"])[group],
    })  # fmt: skip
    made["flag"] = made["flag"].astype(object)
    return made.mask(rng.random(made.shape) < 0.05)


@pytest.mark.parametrize("leaf", ["normal", "quantile"])
def test_adversarial_forest(leaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = frame(300)
    asked = {"x": 1.0}, {"many": ["level 02", "level 07", "level 11"]}, {"few": "a", "flag": True}

    def ask() -> dict[str, Any]:
        learner = jf.AdversarialForest(3, leaf=leaf, oob_score=True, random_state=0).fit(rows)
        joint = learner.joint_
        found = {"held out": learner.oob_log_density_, "density": joint.log_density(rows)}
        found["cells"] = joint.attribution(rows.iloc[:20])
        for k, evidence in enumerate(asked):
            given = joint.given(evidence)
            for column in ("many", "few", "flag"):
                found[f"{column} given {k}"] = list(given.proba(column).values())
            found[f"conditioned on {k}"] = joint.condition(evidence).log_density(rows.iloc[:50])
        found["histogram"] = joint.given().marginal("many").histogram().mass
        found["raked"] = joint.rake(rows.iloc[:100]).log_density(rows)
        found["entropy"] = joint.entropy("many", "few").value
        found["likeliest"] = joint.given({"few": "b"}).mode().log_density
        return found

    both(monkeypatch, ask)


@pytest.mark.parametrize("options", [{}, {"leaf": "quantile"}, {"leaf": "spn", "min_spn_samples": 10}])
def test_classes(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = frame(300).dropna(subset=["many"])
    X, y = rows.drop(columns="many"), rows["many"]

    def ask() -> dict[str, Any]:
        forest = jf.GenerativeForestClassifier(3, random_state=0, **options).fit(X, y)
        found = {"probability": forest.predict_proba(X)}
        return found | {"robustness": forest.robustness(X.iloc[:5])}

    both(monkeypatch, ask)


@pytest.mark.parametrize("leaf", ["normal", "quantile"])
def test_expected_predictions(leaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = frame(300)[["many", "few", "x", "count"]].dropna()
    code = rows.assign(many=rows["many"].str[-2:].astype(int), few=rows["few"].map("abcd".index))
    trained = RandomForestRegressor(5, max_depth=4, random_state=0).fit(code[["x", "count"]], code["many"])

    def ask() -> dict[str, Any]:
        joint = jf.AdversarialForest(2, leaf=leaf, random_state=0).fit(rows).joint_
        hidden = rows.iloc[:20].mask(np.random.default_rng(1).random((20, 4)) < 0.5)
        return {"mean": jf.ExpectedPredictor(trained, joint).predict(hidden)}

    both(monkeypatch, ask)


@pytest.mark.parametrize("leaf", ["normal", "quantile"])
def test_expected_predictions_of_trees_that_split_the_levels(leaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = frame(300)[["many", "few", "x", "count"]].dropna()
    features = rows[["many", "few", "x"]].astype({"many": "category", "few": "category"})
    answer = rows["many"].str[-2:].astype(float) + rows["count"]
    boosted = HistGradientBoostingRegressor(max_iter=10, max_leaf_nodes=8, categorical_features="from_dtype")
    boosted.fit(features, answer)
    hidden = features.iloc[:20].astype(object).mask(np.random.default_rng(1).random((20, 3)) < 0.5)

    def ask() -> dict[str, Any]:
        joint = jf.AdversarialForest(2, leaf=leaf, random_state=0).fit(rows).joint_
        expected = jf.ExpectedPredictor(boosted, joint)
        return {"mean": expected.predict(hidden), "spread": expected.predict_std(hidden)}

    both(monkeypatch, ask)
