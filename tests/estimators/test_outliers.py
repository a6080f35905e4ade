"""Attribution of cells, and the outlier detector."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import jointforest as jf
from jointforest.estimators.outliers import ForestOutlierDetector, histogram_forest
from jointforest.learners.generative.classifier import GenerativeForestClassifier
from jointforest.models.box_forest.box_forest import BoxForest

from .. import oracle
from ..random_cases.evidence import random_evidence
from ..random_cases.hidden_parts import hidden_joint, mixed_joint, small_table
from ..random_cases.models import random_model, seeds

# -- attribution


@given(seeds)
@settings(max_examples=25)
def test_attribution_is_the_conditional_of_each_known_cell(seed: int) -> None:
    model = random_model(seed, n_trees=1 + seed % 3, max_depth=1 + seed % 4, background=seed % 3 > 0)
    evidence = random_evidence(model, seed, 8)
    found = BoxForest(model).attribution(evidence)
    for i, j in np.ndindex(found.shape):
        if oracle.cell(evidence, i, j) is None:
            assert math.isnan(found[i, j])
            continue
        whole = oracle.log_sum(oracle.log_joint(model, evidence, i))
        rest = oracle.log_sum(oracle.log_joint(model, evidence, i, leave_out=j))
        if rest == -math.inf:
            assert math.isnan(found[i, j])
        else:
            assert found[i, j] == pytest.approx(whole - rest, abs=1e-8)


@given(seeds)
@settings(max_examples=10)
def test_attribution_of_a_level_is_its_predicted_probability(seed: int) -> None:
    """Against another query: the probability of the level found, of the column without its own cell."""
    frame = mixed_frame(80, seed)
    joint = jf.AdversarialForest(n_estimators=3, random_state=seed % 2**31).fit(frame).joint_
    proba = joint.predict_proba(frame, "c")
    level = [joint.levels("c").index(c) for c in frame["c"]]
    found = joint.attribution(frame)[:, joint.columns.index("c")]
    np.testing.assert_allclose(found, np.log(proba[np.arange(len(frame)), level]), atol=1e-9)


def test_attribution_does_not_depend_on_threads() -> None:
    joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(mixed_frame(100)).joint_
    rows = mixed_frame(700, seed=1)
    np.testing.assert_array_equal(joint.attribution(rows, n_jobs=1), joint.attribution(rows, n_jobs=3))


def test_the_cell_that_was_changed_is_the_lowest() -> None:
    """Normal columns that hang together: a cell moved by four standard deviations stands out, in rows never seen."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1200, 1))
    table = pd.DataFrame(z + 0.3 * rng.normal(size=(1200, 4)), columns=list("abcd"))
    joint = jf.AdversarialForest(n_estimators=50, random_state=0).fit(table[:1000]).joint_
    rows = table[1000:].reset_index(drop=True)
    place = rng.integers(0, 4, len(rows))
    cells = rows.to_numpy(copy=True)
    cells[np.arange(len(rows)), place] -= 4.0 * np.sign(cells.mean(axis=1))
    changed = pd.DataFrame(cells, columns=rows.columns)
    assert np.mean(joint.attribution(changed).argmin(axis=1) == place) > 0.9


def test_levels_never_seen_have_their_penalty() -> None:
    frame = mixed_frame(100)
    joint = jf.AdversarialForest(n_estimators=3, random_state=0).fit(frame).joint_
    row = frame.iloc[[0]].assign(c="elsewhere")
    with pytest.warns(jf.UnseenLevelWarning):
        found = joint.attribution(row)[0]
    c = joint.columns.index("c")
    assert found[c] == pytest.approx(-math.log(101))
    others = joint.attribution(row.drop(columns="c"))[0]
    np.testing.assert_allclose(np.delete(found, c), np.delete(others, c), rtol=1e-9)


# -- the detector


def mixed_frame(n: int, seed: int = 0, missing: float = 0.0) -> pd.DataFrame:
    """A number, an integer and a level that hang together."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    frame = pd.DataFrame(
        {"x": z + 0.2 * rng.normal(size=n), "k": np.round(3 * z).astype(int), "c": np.where(z > 0, "up", "down")}
    )
    return frame.mask(rng.random(frame.shape) < missing) if missing else frame


@pytest.fixture(scope="module")
def detector() -> ForestOutlierDetector:
    return ForestOutlierDetector(contamination=0.1, random_state=0).fit(mixed_frame(300))


def test_scores_are_log_densities(detector: ForestOutlierDetector) -> None:
    rows = mixed_frame(50, seed=1, missing=0.3)
    np.testing.assert_array_equal(detector.score_samples(rows), detector.joint_.log_density(rows))
    np.testing.assert_array_equal(detector.attribution(rows), detector.joint_.attribution(rows))
    np.testing.assert_array_equal(detector.decision_function(rows), detector.score_samples(rows) - detector.offset_)
    np.testing.assert_array_equal(detector.predict(rows), np.where(detector.decision_function(rows) < 0, -1, 1))


def assert_scored_like_new_rows(detector: ForestOutlierDetector, frame: object, fresh: object) -> None:
    """New rows of the same source score like training rows; training rows that are scored once more are flattered."""
    new = detector.score_samples(fresh).mean()
    assert abs(detector.training_scores_.mean() - new) < 0.4 * (detector.score_samples(frame).mean() - new)


def test_training_scores_are_out_of_bag() -> None:
    frame = mixed_frame(1000)
    detector = ForestOutlierDetector(random_state=0).fit(frame)
    forest = clone(detector.estimator_).fit(frame)
    np.testing.assert_array_equal(detector.training_scores_, forest.oob_log_density_)
    assert_scored_like_new_rows(detector, frame, mixed_frame(3000, seed=5))


def test_contamination_is_the_share_of_new_rows(detector: ForestOutlierDetector) -> None:
    labels = ForestOutlierDetector(contamination=0.1, random_state=0).fit_predict(mixed_frame(300))
    assert np.sum(labels == -1) == 30
    assert 0.05 < np.mean(detector.predict(mixed_frame(2000, seed=5)) == -1) < 0.15


def test_auto_threshold_is_tukeys_fence() -> None:
    auto = ForestOutlierDetector(random_state=0).fit(mixed_frame(300))
    low, high = np.quantile(auto.training_scores_, [0.25, 0.75])
    assert auto.offset_ == pytest.approx(low - 1.5 * (high - low))


def test_percentiles_count_training_rows(detector: ForestOutlierDetector) -> None:
    rows = mixed_frame(40, seed=2)
    count = [np.mean(detector.training_scores_ < score) for score in detector.score_samples(rows)]
    np.testing.assert_allclose(detector.percentile(rows), 100 * np.array(count))


def test_outliers_are_found_and_explained(detector: ForestOutlierDetector) -> None:
    odd = pd.DataFrame({"x": [2.0, 0.5, 30.0], "k": [-6, 2, 2], "c": ["up", "up", "up"]})
    assert detector.predict(odd).tolist() == [-1, 1, -1]
    columns = np.array(detector.joint_.columns)[np.nanargmin(detector.attribution(odd), axis=1)]
    assert columns[0] == "k" and columns[2] == "x"
    everything = pd.concat([mixed_frame(200, seed=3), odd.iloc[[0, 2]]])
    assert roc_auc_score(np.arange(202) >= 200, -detector.score_samples(everything)) > 0.98


@pytest.mark.parametrize("convert", [pl.from_pandas, lambda f: pa.Table.from_pandas(f, preserve_index=False)])
def test_frames_of_all_kinds(detector: ForestOutlierDetector, convert: object) -> None:
    frame, rows = mixed_frame(300), mixed_frame(50, seed=1)
    other = ForestOutlierDetector(contamination=0.1, random_state=0).fit(convert(frame))
    assert other.feature_names_in_.tolist() == ["x", "k", "c"] and other.n_features_in_ == 3
    np.testing.assert_array_equal(other.score_samples(convert(rows)), detector.score_samples(rows))


def test_the_result_does_not_depend_on_threads(detector: ForestOutlierDetector) -> None:
    one = ForestOutlierDetector(contamination=0.1, n_jobs=1, random_state=0).fit(mixed_frame(300))
    np.testing.assert_array_equal(one.training_scores_, detector.training_scores_)
    assert one.offset_ == detector.offset_


def test_numbers_of_the_default_forest_are_densities() -> None:
    frame = mixed_frame(200).assign(day=pd.Timestamp("2024-01-01"))
    assert histogram_forest(frame).kinds == {"k": "continuous"}  # x has neither heaps nor a grid


class Held(jf.AdversarialForest):
    """A learner without out-of-bag densities."""

    def __init__(self, n_estimators: int = 5, random_state: int = 0) -> None:
        super().__init__(n_estimators, random_state=random_state)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return ["n_estimators", "random_state"]


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, lambda f: f[["x", "k"]].to_numpy(dtype=float)])
def test_learners_without_out_of_bag_scores_are_cross_validated(convert: object) -> None:
    frame, fresh = convert(mixed_frame(1000)), convert(mixed_frame(3000, seed=5))
    assert_scored_like_new_rows(ForestOutlierDetector(Held(), radius=0, random_state=0).fit(frame), frame, fresh)


def test_the_target_of_a_classifier_is_summed_out() -> None:
    frame, rows = mixed_frame(300), mixed_frame(50, seed=1, missing=0.2).drop(columns="c")
    classifier = GenerativeForestClassifier(5, random_state=0)
    X, y = frame.drop(columns="c"), frame["c"]
    detector = ForestOutlierDetector(classifier, radius=0, random_state=0).fit(X, y)
    assert detector.n_features_in_ == 2 and detector.joint_.columns == ("x", "k", "c")
    np.testing.assert_array_equal(detector.score_samples(rows), clone(classifier).fit(X, y).score_samples(rows))
    np.testing.assert_array_equal(detector.attribution(rows), detector.joint_.attribution(rows)[:, :2])


def test_parameters_out_of_range_are_refused() -> None:
    frame = mixed_frame(30)
    for contamination in (0.0, 0.6, -0.1, "half", True, math.nan):
        with pytest.raises(ValueError, match="contamination"):
            ForestOutlierDetector(contamination=contamination).fit(frame)
    with pytest.raises(ValueError, match="n_jobs"):
        ForestOutlierDetector(n_jobs=0).fit(frame)
    fitted = ForestOutlierDetector(jf.AdversarialForest(n_estimators=2, random_state=0)).fit(frame)
    with pytest.raises(ValueError, match="other"):
        fitted.predict(frame.assign(other=1))


# -- any joint


@pytest.mark.parametrize("kind", ["hidden trees", "mixture"])
def test_detectors_of_any_joint(kind: str) -> None:
    table = small_table(0, 400)
    joint = hidden_joint(table[::2], 1) if kind == "hidden trees" else mixed_joint(table[::2], 1)
    usual = table[1::2]
    detector = ForestOutlierDetector.from_joint(joint, usual, contamination=0.1, radius=0, n_jobs=1)
    np.testing.assert_array_equal(detector.score_samples(usual), joint.log_density(usual))
    np.testing.assert_array_equal(detector.training_scores_, joint.log_density(usual))
    assert detector.offset_ == pytest.approx(np.percentile(joint.log_density(usual), 10), rel=1e-8)
    odd = usual.head(3).assign(size=[30, -20, 99])
    assert detector.predict(odd).tolist() == [-1] * 3 and (detector.percentile(odd) == 0).all()
    assert (np.nanargmin(detector.attribution(odd), axis=1) == 1).all()
    np.testing.assert_array_equal(detector.attribution(odd), joint.attribution(odd))
    assert detector.n_features_in_ == 4 and detector.feature_names_in_.tolist() == list(table.columns)
    assert not hasattr(detector, "estimator_")


def test_a_hidden_tree_forest_as_the_estimator() -> None:
    table = small_table(0, 120)
    estimator = jf.HiddenTreeForest(n_states=4, max_iter=2, random_state=0)
    detector = ForestOutlierDetector(estimator, random_state=0).fit(table)
    assert type(detector.estimator_) is jf.HiddenTreeForest
    odd = table.head(1).assign(size=60)
    assert detector.predict(odd)[0] == -1 and np.isfinite(detector.training_scores_).all()


def test_from_joint_refuses_what_is_none() -> None:
    table = small_table(0)
    learner = jf.HiddenTreeForest(n_states=2, random_state=0)
    with pytest.raises(TypeError, match=r"expected a Joint, got HiddenTreeForest$"):
        ForestOutlierDetector.from_joint(learner, table)
    joint = hidden_joint(table, 0)
    with pytest.raises(ValueError, match="no row"):
        ForestOutlierDetector.from_joint(joint, table.head(0))
    with pytest.raises(ValueError, match="contamination"):
        ForestOutlierDetector.from_joint(joint, table, contamination=0.9)


# -- rows like a row


def by_intervals(joint: jf.Joint, rows: pd.DataFrame, radius: float) -> np.ndarray:
    """log p of rows whose numbers are within so many standard deviations of the row's, one row at a time."""
    numbers = [name for name, kind in joint.kinds.items() if kind not in ("categorical", "boolean", "ordered")]
    far = {name: radius * joint.given().std(name) for name in numbers}
    out = []
    for row in rows.to_dict("records"):
        known = {name: value for name, value in row.items() if not pd.isna(value)}
        near = {name: jf.between(known[name] - far[name], known[name] + far[name]) for name in numbers if name in known}
        out.append(joint.given({**known, **near}).log_probability)
    return np.array(out)


@pytest.mark.parametrize("radius", [0.1, 1.0])
@pytest.mark.parametrize("kind", ["forest", "hidden trees", "mixture"])
def test_scores_are_probabilities_of_rows_within_radius(kind: str, radius: float) -> None:
    heaped = mixed_frame(300).assign(z=np.where(np.arange(300) % 3 == 0, 0.0, np.arange(300) ** 0.7))
    rows = mixed_frame(40, seed=1, missing=0.2).assign(z=np.where(np.arange(40) % 2 == 0, 0.0, np.arange(40) * 1.3))
    if kind == "forest":
        joint = jf.AdversarialForest(3, random_state=0).fit(heaped).joint_
    else:
        joint = hidden_joint(heaped, 1) if kind == "hidden trees" else mixed_joint(heaped, 1)
    assert joint.kinds["z"] == "mixed"
    detector = ForestOutlierDetector.from_joint(joint, heaped, radius=radius, n_jobs=1)
    found = detector.score_samples(rows)
    np.testing.assert_allclose(found, by_intervals(joint, rows, radius), rtol=1e-5, atol=1e-6)
    j = list(rows).index("z")
    without = ForestOutlierDetector.from_joint(joint, heaped, radius=radius).score_samples(rows.assign(z=np.nan))
    np.testing.assert_allclose(detector.attribution(rows)[:, j], found - without, rtol=1e-4, atol=1e-4)


def test_units_and_heaps_do_not_hide_outliers() -> None:
    rng = np.random.default_rng(0)
    usual = np.where(rng.random(500) < 0.6, 0.0, 0.001 * rng.normal(3, 1, 500))
    table = pd.DataFrame({"x": usual, "y": rng.normal(size=500)})
    odd = pd.DataFrame({"x": 0.001 * rng.uniform(8, 12, 25), "y": rng.uniform(3, 5, 25)})
    both, is_odd = pd.concat([table, odd], ignore_index=True), np.arange(525) >= 500
    joint = jf.HiddenTreeForest(n_states=8, random_state=0).fit(both).joint_
    assert joint.kinds["x"] == "mixed"
    density = ForestOutlierDetector.from_joint(joint, both, radius=0).score_samples(both)
    np.testing.assert_array_equal(density, joint.log_density(both))
    near = ForestOutlierDetector.from_joint(joint, both).score_samples(both)
    assert roc_auc_score(is_odd, -near) > 0.97 > 0.8 > roc_auc_score(is_odd, -density)


def test_a_column_of_one_value_says_nothing() -> None:
    frame = pd.DataFrame({"a": np.full(50, 7.5), "b": np.arange(50.0)})
    detector = ForestOutlierDetector(jf.HiddenTreeForest(n_states=2, random_state=0), random_state=0).fit(frame)
    assert np.isfinite(detector.training_scores_).all()


def test_out_of_bag_densities_are_used_where_density_is_the_score() -> None:
    frame = mixed_frame(200)
    forest = jf.AdversarialForest(5, random_state=0)
    by_density = ForestOutlierDetector(forest, radius=0, random_state=0).fit(frame)
    oob = by_density.estimator_.oob_log_density_
    assert not np.isnan(oob).all()
    np.testing.assert_array_equal(by_density.training_scores_[~np.isnan(oob)], oob[~np.isnan(oob)])
    by_reach = ForestOutlierDetector(forest, random_state=0).fit(frame)
    assert not hasattr(by_reach.estimator_, "oob_log_density_") and (by_reach.training_scores_ < 0).all()
    with pytest.raises(ValueError, match="radius"):
        ForestOutlierDetector(radius=-1).fit(frame)


@pytest.mark.parametrize("contamination", ["auto", 0.1])
@pytest.mark.parametrize("learner", [None, jf.HiddenTreeForest(n_states=2, max_iter=1, n_jobs=1, random_state=0)])
def test_rows_that_are_all_alike_are_no_outliers(contamination: float | str, learner: Any) -> None:
    """Their scores differ by the rounding of sums, which says nothing."""
    for frame in (pd.DataFrame({"a": ["u"] * 50, "b": [0.3] * 50}), np.full((7, 2), 0.1), np.ones((100, 3))):
        detector = ForestOutlierDetector(learner, contamination=contamination, random_state=0).fit(frame)
        scores = detector.score_samples(frame)
        assert np.ptp(scores) < 1e-9 * max(1.0, abs(scores[0]))
        assert (detector.predict(frame) == 1).all()
        assert (detector.fit_predict(frame) == 1).all()
        # hidden trees of four fifths of the rows are less dense, by pseudo-counts
        assert learner is not None or (detector.percentile(frame) == 0).all()
