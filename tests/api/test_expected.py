"""ExpectedPredictor: frames in, predictions out; the mathematics is tested in test_expectation*.py."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor

import jointforest as jf
from jointforest.data.evidence import build
from jointforest.data.frames import encode
from jointforest.models.box_forest.descent_kernels import routed_rows
from jointforest.models.box_forest.posterior import posterior

PENGUINS = jf.datasets.load_penguins().dropna().reset_index(drop=True)
NUMBERS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]
JOINT = jf.AdversarialForest(n_estimators=3, random_state=0).fit(PENGUINS).joint_
FOREST = RandomForestRegressor(5, random_state=0).fit(PENGUINS[NUMBERS], PENGUINS["body_mass_g"])
BOOSTED = GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0).fit(
    PENGUINS[NUMBERS], PENGUINS["sex"]
)
SPECIES = GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0).fit(
    PENGUINS[NUMBERS], PENGUINS["species"]
)


def holes(frame, share=0.4, seed=0):
    """The frame with some of its cells missing."""
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < share)


def test_complete_rows_have_the_models_own_predictions():
    X = PENGUINS[NUMBERS]
    np.testing.assert_allclose(jf.ExpectedPredictor(FOREST, JOINT).predict(X), FOREST.predict(X), rtol=1e-12)
    for model in (BOOSTED, SPECIES):
        predictor = jf.ExpectedPredictor(model, JOINT)
        np.testing.assert_array_equal(predictor.classes_, model.classes_)
        np.testing.assert_array_equal(predictor.predict(X), model.predict(X))
        for method in ("auto", "sample"):
            np.testing.assert_allclose(predictor.predict_proba(X, method), model.predict_proba(X), atol=1e-12)
        np.testing.assert_allclose(predictor.predict_std(X), 0)


def test_levels_of_the_model_in_another_order():
    X = PENGUINS[["island", "sex", "bill_depth_mm"]].astype({"island": "category", "sex": "category"})
    X["island"] = X["island"].cat.reorder_categories(["Torgersen", "Dream", "Biscoe"])
    model = HistGradientBoostingRegressor(max_iter=5, categorical_features="from_dtype", random_state=0)
    model.fit(X, PENGUINS["body_mass_g"])
    predictor = jf.ExpectedPredictor(model, JOINT, tolerance=0)
    np.testing.assert_allclose(predictor.predict(X), model.predict(X), rtol=1e-9)
    lacks = predictor.predict(X.assign(island=np.nan))
    share = JOINT.given(X[["sex", "bill_depth_mm"]]).proba("island")
    direct = sum(
        share[:, k] * model.predict(X.assign(island=pd.Categorical([level] * len(X), X["island"].cat.categories)))
        for k, level in enumerate(JOINT.levels("island"))
    )
    np.testing.assert_allclose(lacks, direct, rtol=1e-9)


def test_a_joint_of_the_same_tree_gives_its_leaf_weights():
    X, y = PENGUINS[NUMBERS], PENGUINS["body_mass_g"].astype(float)
    tree = DecisionTreeRegressor(max_leaf_nodes=12, random_state=0).fit(X, y)
    joint = jf.GenerativeForestRegressor.from_forest(tree, X, y, epsilon=0.0).joint_
    values, unseen = encode(joint.schema, X)
    lands = routed_rows(joint.distribution.forest.trees, np.hstack([values]), 0, len(values), 1)
    value = np.full(joint.n_leaves, np.nan)
    value[lands] = tree.predict(X)
    some = holes(X).assign(body_mass_g=np.nan)
    post = posterior(joint.distribution.forest, build(joint.schema, *encode(joint.schema, some)))
    assert not unseen.any()
    direct = [
        np.exp(post.log_weight[a:b] - total) @ value[post.leaf[a:b]]
        for a, b, total in zip(post.start[:-1], post.start[1:], post.log_evidence, strict=True)
    ]
    predictor = jf.ExpectedPredictor(tree, joint, tolerance=0)
    np.testing.assert_allclose(predictor.predict(some[NUMBERS]), direct, rtol=1e-10)


@pytest.mark.parametrize("kind", [pl.from_pandas, pa.Table.from_pandas])
def test_frames_of_every_kind_columns_in_any_order(kind):
    predictor = jf.ExpectedPredictor(FOREST, JOINT)
    some = holes(PENGUINS[[*reversed(NUMBERS), "island"]])
    np.testing.assert_array_equal(predictor.predict(kind(some)), predictor.predict(some))


def test_arrays_and_models_without_names_go_by_position():
    X = holes(PENGUINS[NUMBERS]).to_numpy()
    joint = jf.AdversarialForest(n_estimators=3, random_state=0).fit(PENGUINS[[*NUMBERS, "species"]]).joint_
    bare = RandomForestRegressor(5, random_state=0).fit(PENGUINS[NUMBERS].to_numpy(), PENGUINS["body_mass_g"])
    named = RandomForestRegressor(5, random_state=0).fit(PENGUINS[NUMBERS], PENGUINS["body_mass_g"])
    answer = jf.ExpectedPredictor(named, joint).predict(pd.DataFrame(X, columns=NUMBERS))
    predictor = jf.ExpectedPredictor(bare, joint)
    np.testing.assert_array_equal(predictor.predict(X), answer)
    np.testing.assert_array_equal(predictor.predict(pd.DataFrame(X, columns=NUMBERS)), answer)
    whole = np.hstack([X.astype(object), np.full((len(X), 1), None)])
    np.testing.assert_array_equal(predictor.predict(whole), answer)
    np.testing.assert_array_equal(predictor.feature_names_in_, NUMBERS)


def test_absent_columns_are_missing_and_other_columns_are_evidence():
    predictor = jf.ExpectedPredictor(FOREST, JOINT)
    part = PENGUINS[["bill_length_mm"]]
    missing = part.assign(bill_depth_mm=np.nan, flipper_length_mm=np.nan)
    np.testing.assert_array_equal(predictor.predict(part), predictor.predict(missing))
    with_species = predictor.predict(PENGUINS[["bill_length_mm", "species"]])
    off = np.abs(predictor.predict(part) - FOREST.predict(PENGUINS[NUMBERS])).mean()
    assert np.abs(with_species - FOREST.predict(PENGUINS[NUMBERS])).mean() < 0.8 * off


def test_methods_for_two_classes_agree_roughly():
    predictor = jf.ExpectedPredictor(BOOSTED, JOINT, n_draws=400)
    some = holes(PENGUINS[NUMBERS])
    exact = predictor.predict_proba(some, "exact")
    np.testing.assert_allclose(exact.sum(axis=1), 1)
    np.testing.assert_allclose(predictor.predict_proba(some), exact)
    np.testing.assert_allclose(predictor.predict_proba(some, "sample"), exact, atol=0.02)
    np.testing.assert_allclose(predictor.predict_proba(some, "probit"), exact, atol=0.02)
    np.testing.assert_array_equal(predictor.predict(some), BOOSTED.classes_[exact.argmax(axis=1)])


def test_softmax_by_cells_and_by_completions():
    predictor = jf.ExpectedPredictor(SPECIES, JOINT, n_draws=400)
    some = holes(PENGUINS[NUMBERS])
    exact = predictor.predict_proba(some, "exact")
    sampled = predictor.predict_proba(some, "sample")
    np.testing.assert_allclose(sampled, exact, atol=0.03)
    np.testing.assert_allclose(sampled.sum(axis=1), 1)
    again = jf.ExpectedPredictor(SPECIES, JOINT, n_draws=400, n_jobs=1).predict_proba(some, "sample")
    np.testing.assert_array_equal(again, sampled)
    assert predictor.predict_std(some).shape == (len(some), 3)


def test_averaged_probabilities_are_exact_whatever_the_method():
    model = RandomForestClassifier(4, max_depth=3, random_state=0).fit(PENGUINS[NUMBERS], PENGUINS["species"])
    predictor = jf.ExpectedPredictor(model, JOINT, tolerance=0)
    some = holes(PENGUINS[NUMBERS])
    proba = predictor.predict_proba(some)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_array_equal(predictor.predict_proba(some, "sample"), proba)


def test_spread_is_that_of_imputed_rows():
    predictor = jf.ExpectedPredictor(FOREST, JOINT)
    some = PENGUINS[["bill_length_mm", "species"]].head(20)
    draws = np.array([FOREST.predict(frame[NUMBERS]) for frame in JOINT.impute(some, "sample", m=400, random_state=0)])
    np.testing.assert_allclose(predictor.predict_std(some), draws.std(axis=0), rtol=0.2)
    np.testing.assert_allclose(predictor.predict(some), draws.mean(axis=0), rtol=0.03)


def test_errors_are_bounded():
    some = holes(PENGUINS[NUMBERS])
    exact = jf.ExpectedPredictor(FOREST, JOINT, tolerance=0)
    assert (exact.error_bound(some) == 0).all()
    rough = jf.ExpectedPredictor(FOREST, JOINT, tolerance=0.05)
    off = np.abs(rough.predict(some) - exact.predict(some))
    assert (off <= rough.error_bound(some) + 1e-9).all() and off.max() > 0
    np.testing.assert_array_equal(rough.decision_function(some), rough.predict(some))


def test_levels_that_the_joint_does_not_know_are_the_models_own_business():
    X = PENGUINS[["island", "bill_depth_mm"]].astype({"island": "category"})
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype", random_state=0)
    model.fit(X, PENGUINS["species"])
    others = PENGUINS[PENGUINS["island"] != "Dream"].astype({"island": str})
    joint = jf.AdversarialForest(n_estimators=3, random_state=0).fit(others).joint_
    with pytest.warns(jf.UnseenLevelWarning, match="Dream"):
        proba = jf.ExpectedPredictor(model, joint).predict_proba(X)
    np.testing.assert_allclose(proba, model.predict_proba(X), atol=1e-9)


def test_rows_of_probability_zero_are_warned_of():
    plain = PENGUINS[NUMBERS]
    joint = jf.AdversarialForest(n_estimators=2, random_state=0, epsilon=0.0).fit(plain).joint_
    some = pd.DataFrame({"bill_length_mm": [40.0, 1e200], "bill_depth_mm": [18.0, 18.0]})
    with pytest.warns(jf.UnsupportedEvidenceWarning, match="1 of 2 rows"):
        mean = jf.ExpectedPredictor(FOREST, joint).predict(some)
    assert np.isnan(mean).tolist() == [False, True]
    with pytest.warns(jf.UnsupportedEvidenceWarning, match="1 of 2 rows"):
        labels = jf.ExpectedPredictor(BOOSTED, joint).predict(some)
    assert labels[1] is None and labels[0] in BOOSTED.classes_


def test_columns_that_do_not_fit():
    def joint(frame, **options):
        return jf.AdversarialForest(n_estimators=1, random_state=0, **options).fit(frame).joint_

    with pytest.raises(ValueError, match="columns that the joint does not have: 'bill_depth_mm'"):
        jf.ExpectedPredictor(FOREST, joint(PENGUINS.drop(columns="bill_depth_mm")))
    text = PENGUINS.assign(bill_depth_mm=np.where(PENGUINS["bill_depth_mm"] > 17, "deep", "flat"))
    with pytest.raises(ValueError, match=r"'bill_depth_mm': .* takes numbers, the joint has levels such as"):
        jf.ExpectedPredictor(FOREST, joint(text))
    when = PENGUINS.assign(bill_depth_mm=pd.date_range("2020-01-01", periods=len(PENGUINS)))
    with pytest.raises(ValueError, match=r"'bill_depth_mm': .* the joint has dates"):
        jf.ExpectedPredictor(FOREST, joint(when))
    X = PENGUINS[["island", "bill_depth_mm"]].astype({"island": "category"})
    model = HistGradientBoostingRegressor(max_iter=2, categorical_features="from_dtype")
    model.fit(X, PENGUINS["body_mass_g"])
    with pytest.raises(ValueError, match=r"'island': .* knows none of the joint's, such as 'A'"):
        jf.ExpectedPredictor(model, joint(PENGUINS.assign(island=np.where(PENGUINS["sex"] == "MALE", "A", "B"))))
    with pytest.raises(ValueError, match=r"'island': .* takes levels such as .* kinds=\{'island': 'categorical'\}"):
        jf.ExpectedPredictor(model, joint(PENGUINS.assign(island=PENGUINS["body_mass_g"])))
    bare = RandomForestRegressor(2).fit(np.random.default_rng(0).random((50, 9)), np.arange(50.0))
    with pytest.raises(ValueError, match="9 features without names, the joint only 7 columns"):
        jf.ExpectedPredictor(bare, JOINT)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"tolerance": -1}, ValueError, "tolerance must be"),
        ({"tolerance": True}, ValueError, "tolerance must be"),
        ({"n_draws": 1}, ValueError, "n_draws must be"),
        ({"joint": jf.AdversarialForest()}, TypeError, "expected a Joint, got AdversarialForest"),
    ],
)
def test_bad_parameters(options, error, match):
    with pytest.raises(error, match=match):
        jf.ExpectedPredictor(**{"model": FOREST, "joint": JOINT, **options})


def test_bad_questions():
    some = PENGUINS[NUMBERS].head(2)
    with pytest.raises(ValueError, match="method must be one of"):
        jf.ExpectedPredictor(BOOSTED, JOINT).predict_proba(some, "best")
    with pytest.raises(ValueError, match="'probit' is for the log-odds of two classes"):
        jf.ExpectedPredictor(SPECIES, JOINT).predict_proba(some, "probit")
    with pytest.raises(ValueError, match="predicts numbers, not classes"):
        jf.ExpectedPredictor(FOREST, JOINT).predict_proba(some)
    with pytest.raises(ValueError, match="columns that the model does not have: 'bill'"):
        jf.ExpectedPredictor(FOREST, JOINT).predict(some.assign(bill=1.0))
    with pytest.raises(ValueError, match="the array has 5 columns; expected the joint's 7, or the model's 3 features"):
        jf.ExpectedPredictor(FOREST, JOINT).predict(np.zeros((2, 5)))
