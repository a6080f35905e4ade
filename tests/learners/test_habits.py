"""What scikit-learn's users expect of every estimator: score, sample, weights of rows and classes, importances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import cross_val_score

import jointforest as jf

LEARNERS = {
    "forest": jf.AdversarialForest(n_estimators=4, min_samples_leaf=5, max_iters=1, random_state=0),
    "chow-liu": jf.AdversarialForest(n_estimators=2, min_samples_leaf=20, leaf="chow_liu", random_state=0),
    "tree": jf.JointTree(min_samples_leaf=10, random_state=0),
    "trees": jf.JointTree(3, min_samples_leaf=10, random_state=0),
    "hidden": jf.HiddenTreeForest(n_states=8, random_state=0),
}
TARGET = {
    "classifier": jf.GenerativeForestClassifier(20, min_samples_leaf=3, min_spread=0.1, beta=0, random_state=0),
    "regressor": jf.GenerativeForestRegressor(20, min_samples_leaf=3, min_spread=0.1, beta=0, random_state=0),
}


def table(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    s = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    x = rng.normal(size=n) + 2.0 * (s == "b")
    return pd.DataFrame({"s": s, "x": x, "y": x + rng.normal(size=n), "noise": rng.normal(size=n)})


def fitted(name: str, frame: pd.DataFrame, weight: Any = None) -> Any:
    learner = clone(LEARNERS.get(name) or TARGET[name])
    if name in LEARNERS:
        return learner.fit(frame, sample_weight=weight)
    target = "s" if name == "classifier" else "y"
    return learner.fit(frame.drop(columns=target), frame[target], sample_weight=weight)


@pytest.mark.parametrize("name", LEARNERS)
def test_score_is_the_mean_log_density(name: str) -> None:
    frame, other = table(), table(100, seed=1)
    learner = fitted(name, frame)
    density = learner.joint_.log_density(other)
    np.testing.assert_array_equal(learner.score_samples(other), density)
    assert learner.score(other) == pytest.approx(density.mean())
    weight = np.arange(100.0)
    assert learner.score(other, sample_weight=weight) == pytest.approx(density @ weight / weight.sum())
    found = cross_val_score(clone(LEARNERS[name]), frame, cv=3)
    assert found.shape == (3,) and np.isfinite(found).all()


@pytest.mark.parametrize("name", [*LEARNERS, *TARGET])
def test_estimators_draw_rows(name: str) -> None:
    learner = fitted(name, table())
    drawn = learner.sample(5, random_state=3)
    pd.testing.assert_frame_equal(drawn, learner.joint_.sample(5, random_state=3))
    assert len(learner.sample()) == 1
    with pytest.raises(ValueError, match="not fitted"):
        clone(learner).sample()


@pytest.mark.parametrize("name", LEARNERS)
def test_weights_of_rows(name: str) -> None:
    frame = table()
    rare = (frame["s"] == "c").to_numpy()
    same = fitted(name, frame, np.full(len(frame), 7.0)).joint_
    np.testing.assert_allclose(same.log_density(frame), fitted(name, frame).joint_.log_density(frame), rtol=1e-6)
    weight = np.where(rare, 9.0, 1.0)
    share = weight[rare].sum() / weight.sum()
    heavy = fitted(name, frame, weight).joint_
    assert heavy.probability("s = c") == pytest.approx(share, abs=0.03)
    mean = np.average(frame["x"], weights=weight)
    assert heavy.given().mean("x") == pytest.approx(mean, abs=0.12)
    times = fitted(name, frame, 5.0 * weight).joint_
    np.testing.assert_allclose(times.log_density(frame), heavy.log_density(frame), rtol=1e-6)
    without = fitted(name, frame, np.where(rare, 0.0, 1.0)).joint_
    assert without.levels("s") == ("a", "b")
    plain = fitted(name, frame[~rare].reset_index(drop=True)).joint_
    np.testing.assert_allclose(without.log_density(frame[~rare]), plain.log_density(frame[~rare]), rtol=1e-6)


@pytest.mark.parametrize("name", [*LEARNERS, *TARGET])
@pytest.mark.parametrize(
    ("weight", "says"), [([1.0], "shape"), (np.full(300, -1.0), ">= 0|at least 0"), (np.zeros(300), "zero")]
)
def test_wrong_weights(name: str, weight: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fitted(name, table(), weight)


def test_detectors_take_weights_and_score() -> None:
    frame = table()
    detector = jf.ForestOutlierDetector(jf.JointTree(random_state=0), random_state=0)
    weight = np.where(frame["s"] == "c", 9.0, 1.0)
    detector.fit(frame, sample_weight=weight)
    assert detector.joint_.probability("s = c") > 0.3
    assert detector.score(frame) == pytest.approx(detector.score_samples(frame).mean())


def test_weights_of_classes() -> None:
    frame = table()
    X, y = frame.drop(columns="s"), frame["s"]
    count = y.value_counts()
    balanced = clone(TARGET["classifier"]).set_params(class_weight="balanced").fit(X, y)
    by_hand = clone(TARGET["classifier"]).fit(X, y, sample_weight=(len(y) / 3 / count)[y].to_numpy())
    np.testing.assert_allclose(balanced.predict_proba(X), by_hand.predict_proba(X), rtol=1e-12)
    assert list(balanced.joint_.given().proba("s").values()) == pytest.approx([1 / 3] * 3, abs=0.06)
    some = clone(TARGET["classifier"]).set_params(class_weight={"c": 4.0}).fit(X, y)
    same = clone(TARGET["classifier"]).fit(X, y, sample_weight=np.where(y == "c", 4.0, 1.0))
    np.testing.assert_allclose(some.predict_proba(X), same.predict_proba(X), rtol=1e-12)
    forest = RandomForestClassifier(5, class_weight="balanced", random_state=0).fit(X, y)
    adopted = jf.GenerativeForestClassifier.from_forest(forest, X, y, class_weight="balanced", combine="trees")
    np.testing.assert_allclose(adopted.predict_proba(X), forest.predict_proba(X), atol=1e-12)
    for wrong, says in ((3, "class_weight"), ({"d": 2.0}, "'d' is no class"), ({"a": 0.0}, "above 0")):
        with pytest.raises(ValueError, match=says):
            clone(TARGET["classifier"]).set_params(class_weight=wrong).fit(X, y)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
def test_importances_are_those_of_scikit_learn(criterion: str) -> None:
    frame = table()
    is_number = criterion == "squared_error"
    X, y = frame[["x", "noise"]].assign(z=frame["x"] * frame["noise"]), frame["y" if is_number else "s"]
    peer = (RandomForestRegressor if is_number else RandomForestClassifier)(8, criterion=criterion, random_state=1)
    weight = np.random.default_rng(0).random(len(y))
    peer.fit(X, y, sample_weight=weight)
    cls = jf.GenerativeForestRegressor if is_number else jf.GenerativeForestClassifier
    adopted = cls.from_forest(peer, X, y, sample_weight=weight, criterion=criterion)
    np.testing.assert_allclose(adopted.feature_importances_, peer.feature_importances_, atol=1e-10)
    grown = clone(TARGET["regressor" if is_number else "classifier"]).set_params(criterion=criterion).fit(X, y)
    assert grown.feature_importances_.sum() == pytest.approx(1.0) and grown.feature_importances_.argmax() == 0


@pytest.mark.parametrize("learner", [jf.AdversarialForest, jf.HiddenTreeForest])
def test_verbose_must_be_a_flag_or_a_number(learner: type) -> None:
    with pytest.raises(ValueError, match=r"verbose must be .*, got 'no'"):
        learner(verbose="no").fit(table(20))
