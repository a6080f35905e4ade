"""Generative forests with Chow-Liu trees in their leaves: every answer that of the joint they end in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jointforest as jf


def table(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    s = rng.choice(["a", "b", "c"], n)
    x = rng.normal(size=n) + 2.0 * (s == "b")
    frame = pd.DataFrame({"s": s, "x": x, "y": x + rng.normal(size=n), "k": rng.poisson(3, n)})
    return frame.assign(twin=frame["k"] * 2).mask(rng.random((n, 5)) < [0.0, 0.1, 0.0, 0.1, 0.1])


def fitted(target: str, **params: object) -> tuple:
    X, y = table().drop(columns=target), table()[target]
    cls = jf.GenerativeForestClassifier if target == "s" else jf.GenerativeForestRegressor
    return cls(5, leaf="chow_liu", random_state=0, **params).fit(X, y), X, y


def test_classes_are_the_joints_conditionals() -> None:
    clf, X, y = fitted("s")
    joint, rows = clf.joint_, X.head(20)
    assert clf.beta_ == 1.0 and joint.columns == (*X.columns, "s")
    assert joint.distribution.components[0].kind == "forest with Chow-Liu leaves"
    share = np.column_stack([joint.log_density(rows.assign(s=level)) for level in clf.classes_])
    share = np.exp(share - np.logaddexp.reduce(share, axis=1)[:, None])
    np.testing.assert_allclose(clf.predict_proba(rows), share, atol=1e-5)
    some = rows[["y"]]
    np.testing.assert_allclose(clf.predict_proba(some), joint.predict_proba(some, "s"), atol=1e-6)
    assert clf.score(X, y) > 0.6
    assert joint.given().corr("k", "twin") > 0.8  # what independent columns in a leaf cannot hold
    assert clf.feature_importances_.sum() == pytest.approx(1.0)
    assert len(clf.sample(4)) == 4 and np.isfinite(clf.score_samples(X)).all()
    with pytest.raises(ValueError, match="robustness"):
        clf.robustness(rows)


def test_numbers_are_the_joints_conditionals() -> None:
    forest, X, y = fitted("y")
    rows = X.head(20)
    given = forest.joint_.given(rows)
    np.testing.assert_allclose(forest.predict(rows), given.mean("y"), rtol=1e-6)
    low, high = forest.predict_interval(rows, 0.8)
    np.testing.assert_allclose(np.column_stack([low, high]), given.quantile("y", [0.1, 0.9]), rtol=1e-6)
    assert forest.score(X, y) > 0.4
    assert ((forest.predict_interval(X, 0.9)[0] < y) & (y < forest.predict_interval(X, 0.9)[1])).mean() > 0.8


def test_seeds_threads_weights_and_files(tmp_path) -> None:
    clf, X, _ = fitted("s")
    again = fitted("s", n_jobs=1)[0]
    np.testing.assert_array_equal(clf.predict_proba(X), again.predict_proba(X))
    heavy = jf.GenerativeForestClassifier(5, leaf="chow_liu", class_weight={"c": 9.0}, random_state=0).fit(
        X, table()["s"]
    )
    assert heavy.joint_.probability("s = c") > 0.7
    clf.joint_.save(tmp_path / "clf.joint")
    loaded = jf.GenerativeForestClassifier.from_joint(jf.load(tmp_path / "clf.joint"), "s")
    np.testing.assert_allclose(loaded.predict_proba(X), clf.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize(
    "params", [{"combine": "trees"}, {"beta": 0.5}, {"target_in_leaf": "full"}], ids=lambda params: next(iter(params))
)
def test_what_does_not_go_together_is_refused(params: dict) -> None:
    with pytest.raises(ValueError, match="chow_liu"):
        fitted("s", **params)


def test_adopted_trees_are_refused() -> None:
    from sklearn.ensemble import RandomForestClassifier

    X, y = table()[["y"]], table()["s"]
    forest = RandomForestClassifier(2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="use fit"):
        jf.GenerativeForestClassifier.from_forest(forest, X, y, leaf="chow_liu")
