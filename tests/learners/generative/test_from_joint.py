"""Generative estimators of joints that are there already: their predictions are the joint's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jointforest as jf

from ...random_cases.hidden_parts import hidden_joint, mixed_joint, small_table


def rows(without: str) -> pd.DataFrame:
    frame = small_table(6, 30).drop(columns=without)
    return frame.convert_dtypes().mask(np.random.default_rng(0).random(frame.shape) < 0.3)


@pytest.mark.parametrize("make", [hidden_joint, mixed_joint])
def test_classifiers(make) -> None:
    joint, X = make(small_table(0), 2), rows("place")
    clf = jf.GenerativeForestClassifier.from_joint(joint, "place")
    np.testing.assert_array_equal(clf.predict_proba(X), joint.predict_proba(X, "place"))
    assert clf.predict(X).tolist() == joint.predict(X, "place").tolist()
    assert tuple(clf.classes_) == tuple(joint.levels("place"))
    np.testing.assert_array_equal(clf.score_samples(X), joint.log_density(X))
    assert clf.n_features_in_ == 3 and clf.feature_names_in_.tolist() == ["size", "grade", "flag"]
    flag = jf.GenerativeForestClassifier.from_joint(joint, "flag").predict(rows("flag"))
    assert set(flag.tolist()) <= {True, False}
    with pytest.raises(ValueError, match="robustness needs a joint that is one forest"):
        clf.robustness(X)
    with pytest.raises(ValueError, match="give some as reference"):
        clf.uncertainty(X)


@pytest.mark.parametrize("make", [hidden_joint, mixed_joint])
def test_regressors(make) -> None:
    joint, X = make(small_table(0), 2), rows("size")
    regressor = jf.GenerativeForestRegressor.from_joint(joint, "size")
    np.testing.assert_array_equal(regressor.predict(X), joint.predict(X, "size"))
    q = [0.1, 0.5, 0.9]
    np.testing.assert_array_equal(regressor.predict_quantiles(X, q), joint.given(X).quantile("size", q))
    lo, hi = regressor.predict_interval(X, 0.8)
    assert (lo <= hi).all()


def test_one_forest_keeps_its_own_questions() -> None:
    table = small_table(0)
    joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(table).joint_
    clf = jf.GenerativeForestClassifier.from_joint(joint, "place")
    X = table.drop(columns="place").head(5)
    np.testing.assert_array_equal(clf.robustness(X), joint.robustness(X, "place"))
    assert clf.uncertainty(X, reference=X).predicted.tolist() == clf.predict(X).tolist()


def test_what_does_not_fit_is_refused() -> None:
    joint = hidden_joint(small_table(0), 2)
    with pytest.raises(TypeError, match="got HiddenTreeForest"):
        jf.GenerativeForestClassifier.from_joint(jf.HiddenTreeForest(), "place")
    with pytest.raises(ValueError, match="predicts levels; column 'size' is integer"):
        jf.GenerativeForestClassifier.from_joint(joint, "size")
    with pytest.raises(ValueError, match="predicts numbers; column 'place' is categorical"):
        jf.GenerativeForestRegressor.from_joint(joint, "place")
    with pytest.raises(ValueError, match=r"no column 'plaice'.*place"):
        jf.GenerativeForestClassifier.from_joint(joint, "plaice")
    with pytest.raises(ValueError, match="no other column than 'place'"):
        jf.GenerativeForestClassifier.from_joint(joint.select("place"), "place")
