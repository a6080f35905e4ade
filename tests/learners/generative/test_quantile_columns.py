"""`leaf="auto"`: quantile leaves for the features that normals bend, where out-of-bag rows agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import jointforest as jf
from jointforest.learners.leaf_fitting import quantile

SETTINGS: dict[str, Any] = {"min_samples_leaf": 30, "max_depth": 3, "max_features": None, "random_state": 0}


def humps(n: int, seed: int = 0) -> pd.DataFrame:
    """A feature of two narrow humps, a normal one, and a class that depends on this one."""
    rng = np.random.default_rng(seed)
    a, side = rng.normal(size=n), rng.random(n) < 0.5
    hump = np.where(side, -3.0, 3.0) + 0.1 * rng.standard_exponential(n)
    label = np.where(a + 0.5 * rng.normal(size=n) > 0.3, "yes", "no")
    return pd.DataFrame({"a": a, "hump": hump, "label": label})


def fitted(table: pd.DataFrame, leaf: str, target: str = "label", **more: Any) -> Any:
    kind = jf.GenerativeForestClassifier if target == "label" else jf.GenerativeForestRegressor
    return kind(10, leaf=leaf, **{**SETTINGS, **more}).fit(table.drop(columns=target), table[target])


def distance(joint: jf.Joint, cells: pd.Series) -> float:
    """Kolmogorov distance of a column's rows and its exact marginal."""
    x = np.sort(cells.to_numpy())
    upper = np.arange(1, len(x) + 1) / len(x)
    below = joint.marginal(str(cells.name)).cdf(x)
    return float(max(np.abs(below - upper).max(), np.abs(below - upper + 1 / len(x)).max()))


def test_a_bent_feature_gets_quantile_leaves_and_others_keep_normals() -> None:
    table, test = humps(1_500), humps(500, seed=1)
    auto, normal = fitted(table, "auto"), fitted(table, "normal")
    assert distance(normal.joint_, table["hump"]) > 0.05
    assert distance(auto.joint_, table["hump"]) < 0.02
    assert auto.joint_.marginal("a").cdf(0.7) == pytest.approx(normal.joint_.marginal("a").cdf(0.7), abs=1e-12)
    assert auto.joint_.log_density(test).mean() > normal.joint_.log_density(test).mean() + 0.2
    right = [np.mean(forest.predict(test[["a"]]) == test["label"]) for forest in (auto, normal)]
    assert right[0] > right[1] - 0.03


def test_complete_rows_are_classified_by_the_same_leaves() -> None:
    table = humps(600)
    auto, normal = (fitted(table, leaf, combine="trees") for leaf in ("auto", "normal"))
    X = table.drop(columns="label")
    np.testing.assert_allclose(auto.predict_proba(X), normal.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize(
    "why", [{"bootstrap": False, "min_samples_leaf": 30}, {"target_in_leaf": "full"}], ids=["no judges", "mixtures"]
)
def test_normals_stay_where_nobody_can_judge_or_leaves_are_mixtures(why: dict[str, Any]) -> None:
    table = humps(400)
    auto, normal = (fitted(table, leaf, **why) for leaf in ("auto", "normal"))
    np.testing.assert_array_equal(auto.joint_.log_density(table), normal.joint_.log_density(table))


def test_normals_stay_where_out_of_bag_rows_are_less_probable() -> None:
    """Independent of all others, skewed, in leaves of a row or two: a CDF of its own in each learns these by heart."""
    rng = np.random.default_rng(1)
    x = pd.DataFrame(rng.normal(size=(600, 4))).add_prefix("x")
    x["skewed"] = np.round(1e6 * rng.lognormal(sigma=1.0, size=len(x)))
    x["label"] = np.where(x["x0"] + x["x1"] > 0, "yes", "no")
    auto, normal = (fitted(x, leaf, min_samples_leaf=1) for leaf in ("auto", "normal"))
    assert distance(normal.joint_, x["skewed"]) > 0.02
    np.testing.assert_array_equal(auto.joint_.log_density(x), normal.joint_.log_density(x))


def test_normals_stay_where_tables_would_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    table = humps(400)
    normal = fitted(table, "normal").joint_
    monkeypatch.setattr(quantile, "FIXED", replace(quantile.FIXED, quantile_bytes=10))
    small = fitted(table, "auto").joint_
    np.testing.assert_array_equal(small.log_density(table), normal.log_density(table))


def test_the_target_keeps_its_own_distribution() -> None:
    """A target of two humps: each leaf has a normal of it, whose mean is that of its rows."""
    table = humps(600).drop(columns="label")
    auto, normal = (fitted(table, leaf, "hump", combine="trees") for leaf in ("auto", "normal"))
    np.testing.assert_allclose(auto.predict(table[["a"]]), normal.predict(table[["a"]]), rtol=1e-12)


def test_adopted_forests_choose_alike() -> None:
    table = humps(1_000)
    X, y = table[["a", "hump"]], table["label"]
    grown = RandomForestClassifier(10, max_features=None, min_samples_leaf=30, max_depth=3, random_state=0).fit(X, y)
    adopted = jf.GenerativeForestClassifier.from_forest(grown, X, y, leaf="auto", combine="trees", random_state=0)
    assert distance(adopted.joint_, table["hump"]) < 0.03
    np.testing.assert_allclose(adopted.predict_proba(X), grown.predict_proba(X), atol=1e-12)


def test_threads_change_nothing() -> None:
    table = humps(500)
    first, second = (fitted(table, "auto", n_jobs=jobs).joint_ for jobs in (1, 2))
    np.testing.assert_array_equal(first.log_density(table), second.log_density(table))


def test_levels_keep_their_shares_whatever_pseudo_rows_are_chosen() -> None:
    rng = np.random.default_rng(0)
    few = rng.choice(list("abcdefgh"), 600, p=[0.7, 0.2, 0.05, 0.01, 0.01, 0.01, 0.01, 0.01])
    table = pd.DataFrame({"few": few, "x": rng.normal(size=600)})
    table["label"] = np.where(rng.random(600) < np.where(few == "a", 0.2, 0.9), "yes", "no")
    joint = fitted(table, "normal", min_samples_leaf=1).joint_
    share = table["few"].value_counts(normalize=True)
    assert sum(abs(p - share[level]) for level, p in joint.marginal("few").proba().items()) / 2 < 0.02


def test_a_row_beyond_the_data_is_answered_by_the_boxes_it_reaches() -> None:
    """At an exponent that was chosen as 1, too, where the background alone gives it a density."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=400)
    table = pd.DataFrame({"x": x, "label": np.where(x > 0.5, "yes", "no")})
    forest = fitted(table, "normal")
    forest.beta_ = 1.0
    assert forest.predict_proba(pd.DataFrame({"x": [1.5]}))[0, 1] > 0.95
