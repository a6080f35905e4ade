"""scikit-learn's checks of estimators, for all estimators of the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

import jointforest as jf
from jointforest.learners.base import as_frame

from .quick_predictors import quick

__all__ = ["quick"]

SMALL = jf.HiddenTreeForest(n_states=2, max_iter=1, max_leaf_nodes=1, smoothing=1.0, n_jobs=1, random_state=0)
QUICK: dict[str, Any] = {"n_jobs": 1, "random_state": 0}


class Visits(jf.HistoryForest):
    """`HistoryForest` of tables without a column of subjects: each subject has four rows of the table."""

    def fit(self, X: Any, y: Any = None) -> Any:  # type: ignore[override]
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(as_frame(X)).add_prefix("x")
        return super().fit(frame.assign(subject=np.arange(len(frame)) // 4), group="subject")


WITHOUT_FIT = {
    "check_array_api_input",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
}
NO_GROUP = {
    check.func.__name__: "fit needs the name of the column of subjects, group, which this check does not give"
    for _, check in estimator_checks_generator(jf.HistoryForest())
    if check.func.__name__ not in WITHOUT_FIT
}
WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data": "a row of weight 2 counts as two rows, but the random numbers of "
    "trees and bootstraps belong to rows, so that a table with the row twice has other trees",
}

MORE_COLUMNS = "the table has a column of subjects beside those that the check counts"
CASES: dict[str, tuple[BaseEstimator, dict[str, str]]] = {
    # each estimator, and the checks that cannot apply to it with their reasons
    "JointTree": (jf.JointTree(**QUICK), {}),
    "AdversarialForest": (jf.AdversarialForest(n_estimators=3, **QUICK), {}),
    "HiddenTreeForest": (jf.HiddenTreeForest(n_states=4, max_iter=2, **QUICK), {}),
    "HistoryForest": (jf.HistoryForest(**QUICK), NO_GROUP),
    "HistoryForest of visits": (
        Visits(**QUICK),
        {
            "check_fit2d_1sample": "one row is no history of several rows, and the error says so in these words",
            "check_n_features_in": MORE_COLUMNS,
            "check_n_features_in_after_fitting": MORE_COLUMNS,
        },
    ),
    "GenerativeForestClassifier": (jf.GenerativeForestClassifier(n_estimators=3, **QUICK), WEIGHTS),
    "GenerativeForestClassifier, conformal": (
        jf.GenerativeForestClassifier(n_estimators=3, conformal=True, **QUICK),
        WEIGHTS,
    ),
    "GenerativeForestRegressor": (jf.GenerativeForestRegressor(n_estimators=3, **QUICK), WEIGHTS),
    "GenerativeForestRegressor, conformal": (
        jf.GenerativeForestRegressor(n_estimators=3, conformal=True, **QUICK),
        WEIGHTS,
    ),
    "ForestOutlierDetector": (
        jf.ForestOutlierDetector(jf.AdversarialForest(n_estimators=5, random_state=0), radius=0, **QUICK),
        {
            "check_outliers_train": "contamination is the share of new rows that are outliers; rows that the trees "
            "were grown on have higher densities, so that fewer of them are",
            "check_outliers_fit_predict": "fit_predict scores each training row by trees grown without it, as it "
            "would score a new row, and predict by all trees",
            **WEIGHTS,
        },
    ),
    "JointImputer": (jf.JointImputer(SMALL, **QUICK), {}),
    "JointImputer, proper draws": (
        jf.JointImputer(SMALL, method="sample", m=2, proper=True, add_indicator=True, **QUICK),
        {},
    ),
    "JointAugmenter": (jf.JointAugmenter(SMALL, **QUICK), {}),
    "JointAugmenter, a number of rows": (jf.JointAugmenter(SMALL, sampling_strategy=5, **QUICK), {}),
    "JointClassifier": (jf.JointClassifier(**QUICK), {}),
    "JointRegressor": (jf.JointRegressor(**QUICK), {}),
}


def test_every_public_estimator_is_checked() -> None:
    public = {name for name in jf.__all__ if hasattr(getattr(jf, name), "get_params")}
    assert public == {name for name in CASES if name in jf.__all__}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", CASES)
def test_scikit_learn_checks(name: str) -> None:
    """Each check passes unless it cannot apply; that of other array libraries runs only where scipy is told to."""
    estimator, fails = CASES[name]
    done = check_estimator(estimator, expected_failed_checks=fails, on_skip=None, on_fail="raise")
    assert {one["check_name"] for one in done if one["status"] == "xfail"} == set(fails)
    assert {one["check_name"] for one in done if one["status"] == "skipped"} <= {"check_array_api_input"}


LEARNERS = [jf.JointTree(**QUICK), jf.AdversarialForest(n_estimators=3, **QUICK), SMALL]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_columns_of_arrays_lists_and_frames(learner: Any) -> None:
    """All columns count, those of which no cell is known too; an array has no names."""
    X = np.column_stack([np.arange(40.0) % 7, np.full(40, np.nan), np.arange(40.0) % 3])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    wanted = clone(learner).fit(frame)
    assert wanted.n_features_in_ == 3 and wanted.feature_names_in_.tolist() == ["a", "b", "c"]
    for given in (X, X.tolist()):
        found = clone(learner).fit(given)
        assert found.n_features_in_ == 3 and not hasattr(found, "feature_names_in_")
        np.testing.assert_array_equal(found.score_samples(given), wanted.score_samples(frame))
    assert not hasattr(wanted.fit(X), "feature_names_in_")
    texts = [[float(k % 3), "ab"[k % 2]] for k in range(40)]
    assert clone(learner).fit(texts).joint_.kinds == {"x0": "integer", "x1": "categorical"}
