"""The imputer as a transformer: what it fills in, several draws, frames of all libraries, pipelines."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import jointforest as jf
from jointforest.learners.hidden_tree.hidden_tree_forest import as_chosen

SMALL = jf.HiddenTreeForest(n_states=4, max_iter=1, max_leaf_nodes=1, smoothing=1.0, random_state=0)


def table(n: int = 300, seed: int = 0, missing: float = 0.15) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "x": z + 0.3 * rng.normal(size=n),
            "k": np.round(3 * z),
            "c": pd.Categorical(np.where(z > 0, "up", "down")),
            "w": rng.normal(size=n),
        }
    )
    hidden = rng.random(frame.shape) < missing
    hidden[:, 3] = False
    return frame.mask(hidden)


def small(**params: Any) -> jf.JointImputer:
    return jf.JointImputer(SMALL, **{"random_state": 0, **params})


def test_fills_what_the_joint_says_and_nothing_else() -> None:
    frame, new = table(), table(seed=1)
    imputer = small().fit(frame)
    filled = imputer.transform(new)
    pd.testing.assert_frame_equal(filled, imputer.joint_.impute(new))
    assert not filled.isna().any().any()
    known = new.notna()
    for name in new:
        assert (filled.loc[known[name], name] == new.loc[known[name], name]).all()
    pd.testing.assert_frame_equal(imputer.joint_.impute(new), SMALL.fit(frame).joint_.impute(new))


def test_default_learner_and_its_seed() -> None:
    frame = table(60)
    one, other = (jf.JointImputer(random_state=3).fit(frame) for _ in range(2))
    assert isinstance(one.estimator_, jf.HiddenTreeForest)
    pd.testing.assert_frame_equal(one.transform(frame), other.transform(frame))


def test_draws_repeat_and_differ() -> None:
    frame = table()
    imputer = small(method="sample", m=3).fit(frame)
    first, second, third = imputer.impute(frame)
    pd.testing.assert_frame_equal(imputer.transform(frame), first)
    pd.testing.assert_frame_equal(imputer.impute(frame, m=2)[1], second)
    assert not first.equals(second) and not second.equals(third)
    assert len(imputer.impute(frame, m=7)) == 7 and len(imputer.joints_) == 1
    assert not imputer.impute(frame, m=1, random_state=9)[0].equals(first)
    pd.testing.assert_frame_equal(
        imputer.impute(frame, 1, np.random.RandomState(2))[0], imputer.impute(frame, 1, np.random.RandomState(2))[0]
    )


@pytest.mark.parametrize("proper", [False, True])
def test_draws_do_not_depend_on_threads(proper: bool) -> None:
    frame = table()
    one, two = (small(n_jobs=k, m=2, proper=proper).fit(frame).impute(frame) for k in (1, 3))
    for a, b in zip(one, two, strict=True):
        pd.testing.assert_frame_equal(a, b)


def test_proper_draws_are_of_joints_of_bootstraps() -> None:
    """Each joint is that of rows weighed by how often a bootstrap of the seed drew them, which is a multinomial."""
    frame = table(100)
    imputer = small(m=4, proper=True).fit(frame)
    assert len(imputer.joints_) == 4
    means = [joint.marginal("w").mean() for joint in imputer.joints_]
    assert len(set(means)) == 4 and imputer.joint_.marginal("w").mean() not in means
    with pytest.raises(ValueError, match="m=5: proper draws come from a joint each, and fit learned 4"):
        imputer.impute(frame, m=5)


def test_bootstrapped_means_vary_as_theory_says() -> None:
    """The mean of a known column under joints of bootstraps has the standard error s / sqrt(n)."""
    x = np.random.default_rng(0).normal(size=(200, 2)) * 2.0
    imputer = jf.JointImputer(jf.JointTree(max_depth=1), m=60, proper=True, random_state=0).fit(x)
    means = [joint.marginal("x0").mean() for joint in imputer.joints_]
    assert np.std(means) == pytest.approx(x[:, 0].std() / np.sqrt(200), rel=0.3)
    assert np.mean(means) == pytest.approx(x[:, 0].mean(), abs=0.06)


class Unweighed(sklearn.base.BaseEstimator):
    """A learner without weights."""

    def fit(self, X: Any) -> Any:
        self.joint_ = jf.JointTree(max_depth=1).fit(X).joint_
        self.n_ = len(X)
        return self


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_learners_without_weights() -> None:
    frame = table(80)
    imputer = jf.JointImputer(Unweighed(), m=2, proper=True, random_state=0).fit(frame)
    assert not imputer.impute(frame)[0].isna().any().any()
    with pytest.raises(ValueError, match=r"Unweighed\.fit takes no sample_weight"):
        jf.JointImputer(Unweighed()).fit(frame, sample_weight=np.linspace(0.1, 1, 80))


def test_weights_are_passed_on() -> None:
    frame = table()
    weight = (np.arange(len(frame)) % 3 == 0).astype(float)
    imputer = small().fit(frame, sample_weight=weight)
    alone = SMALL.fit(frame[weight > 0]).joint_
    pd.testing.assert_frame_equal(imputer.transform(frame), alone.impute(frame))


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "numpy"])
def test_frames_of_all_libraries(kind: str) -> None:
    frame = table()
    into: dict[str, Any] = {
        "pandas": lambda f: f,
        "polars": pl.from_pandas,
        "pyarrow": lambda f: pa.Table.from_pandas(f, preserve_index=False),
        "numpy": lambda f: f.to_numpy(dtype=object),
    }
    given = into[kind](frame)
    imputer = small(add_indicator=True).fit(given)
    filled = imputer.transform(given)
    assert type(filled) is type(given)
    expected = small(add_indicator=True).fit(frame).transform(frame)
    if kind == "numpy":
        found = pd.DataFrame(filled).set_axis(expected.columns, axis=1).astype(expected.dtypes)
        assert imputer.get_feature_names_out(list("xkcw")).tolist() == list(expected.columns)
    else:
        found = filled.to_pandas() if kind != "pandas" else filled
        assert imputer.get_feature_names_out().tolist() == list(expected.columns)
    for name in expected:
        a, b = found[name], expected[name]
        if name == "c":
            assert a.astype(str).tolist() == b.astype(str).tolist()
        else:
            np.testing.assert_allclose(a.to_numpy(dtype=float), b.to_numpy(dtype=float))
    if kind == "polars":
        assert filled.schema == {**given.schema, **{n: pl.Boolean for n in expected.columns[4:]}}
    as_pandas = imputer.set_output(transform="pandas").transform(given)
    assert isinstance(as_pandas, pd.DataFrame) and list(as_pandas) == list(imputer.get_feature_names_out())
    if kind != "numpy":
        assert as_pandas.dtypes.map(str).tolist() == expected.dtypes.map(str).tolist()
    assert isinstance(imputer.set_output(transform="polars").transform(given), pl.DataFrame)


def test_indicators_are_scikit_learns() -> None:
    """Beside `SimpleImputer`: the same names, the same flags, also of columns that are not there."""
    frame, new = table(), table(seed=1)
    numbers = ["x", "k", "w"]
    imputer = small(add_indicator=True).fit(frame[numbers])
    peer = SimpleImputer(add_indicator=True).fit(frame[numbers])
    assert imputer.get_feature_names_out().tolist() == peer.get_feature_names_out().tolist()
    np.testing.assert_array_equal(
        imputer.transform(new[numbers]).iloc[:, 3:].to_numpy(dtype=float), peer.transform(new[numbers])[:, 3:]
    )
    array = frame[numbers].to_numpy()
    filled = small(add_indicator=True).fit(array).transform(array)
    assert filled.dtype == np.float64 and filled.shape == (300, 5)
    np.testing.assert_array_equal(filled[:, 3:], np.isnan(array[:, :2]))
    short = imputer.transform(new[["k", "w"]])
    assert short["missingindicator_x"].all() and not short["x"].isna().any()


def test_index_order_and_constant_columns() -> None:
    frame = table().assign(one=1.0)
    frame.index = frame.index[::-1] + 10
    filled = small().fit(frame).transform(frame[[*"wcxk", "one"]])
    assert filled.index.equals(frame.index) and list(filled) == list(frame)
    assert (filled["one"] == 1.0).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_column_without_cells_stays_empty() -> None:
    frame = table().assign(nothing=np.nan)
    imputer = small(add_indicator=True).fit(frame)
    filled = imputer.transform(frame)
    assert filled["nothing"].isna().all() and filled["missingindicator_nothing"].all()
    assert list(filled) == list(imputer.get_feature_names_out())


def test_in_a_pipeline_and_column_transformer() -> None:
    frame = table()
    y = frame["w"].to_numpy()
    X = frame.drop(columns="w")
    coder = ColumnTransformer([("n", StandardScaler(), ["x", "k"]), ("c", OneHotEncoder(), ["c"])])
    pipe = make_pipeline(small(), coder, LinearRegression()).fit(X, y)
    assert np.isfinite(pipe.predict(X)).all()
    within = ColumnTransformer(
        [("i", small(add_indicator=True), ["x", "k"]), ("c", "drop", ["c"])], verbose_feature_names_out=False
    ).set_output(transform="pandas")
    assert list(within.fit_transform(X)) == ["x", "k", "missingindicator_x", "missingindicator_k"]
    search = GridSearchCV(pipe, {"jointimputer__method": ["mean", "sample"]}, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_metadata_routing() -> None:
    """Weights reach the learner through a pipeline that was told to route them."""
    frame = table()
    weight = (np.arange(len(frame)) % 2).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = Pipeline([("i", small().set_fit_request(sample_weight=True))])
        routed = pipe.fit(frame, sample_weight=weight).transform(frame)
    pd.testing.assert_frame_equal(routed, small().fit(frame[weight > 0]).transform(frame))


@pytest.mark.filterwarnings("ignore::jointforest.UnsupportedEvidenceWarning")
def test_weights_reach_it_through_a_search_a_pipeline_and_a_column_transformer() -> None:
    frame = table()
    weight = (np.arange(len(frame)) % 2).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        columns = ColumnTransformer([("i", small().set_fit_request(sample_weight=True), ["x", "k"])])
        last = LinearRegression().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipe = make_pipeline(columns.set_output(transform="pandas"), last)
        search = GridSearchCV(pipe, {"columntransformer__i__method": ["mean"]}, cv=2)
        search.fit(frame, frame["w"], sample_weight=weight)
        routed = search.best_estimator_[0].transform(frame)
    assert np.isfinite(search.best_score_)
    alone = small().fit(frame.loc[weight > 0, ["x", "k"]]).transform(frame[["x", "k"]])
    pd.testing.assert_frame_equal(routed.rename(columns=lambda name: name.removeprefix("i__")), alone)


def test_what_is_refused() -> None:
    frame = table(50)
    with pytest.raises(NotFittedError):
        small().transform(frame)
    with pytest.raises(ValueError, match="method must be one of 'mean', 'sample', got 'mode'"):
        small(method="mode").fit(frame)
    with pytest.raises(ValueError, match="proper must be True or False, got 'no'"):
        small(proper="no").fit(frame)
    with pytest.raises(ValueError, match="GenerativeForestClassifier needs a target"):
        jf.JointImputer(jf.GenerativeForestClassifier()).fit(frame)
    with pytest.raises(ValueError, match="m must be a whole number at least 1, got 0"):
        small().fit(frame).impute(frame, m=0)
    with pytest.raises(ValueError, match="columns that the model does not have: 'z'"):
        small().fit(frame).transform(frame.assign(z=1))
    for wrong, message in (
        (jf.HiddenTreeForest, "the class HiddenTreeForest"),
        ("hidden", "got str"),
        (small().fit(frame).joint_, "got Joint"),
        (StandardScaler(), "StandardScaler has no joint_"),
    ):
        with pytest.raises(TypeError, match=f"estimator: .*{message}"):
            jf.JointImputer(wrong).fit(frame[["w"]])
    with pytest.raises(ValueError, match=r"indicator of column 'c' would be 'missingindicator_c'.*rename"):
        small(add_indicator=True).fit(frame.assign(missingindicator_c=1))


def test_whole_numbers_decimals_and_nanoseconds_past_floats_stay_what_they_are() -> None:
    n = 60
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": 2**60 + 7 * np.arange(n) + 1,
            "gaps": pd.array([None if i % 4 == 0 else 2**60 + i for i in range(n)], dtype="Int64"),
            "unsigned": np.arange(n, dtype=np.uint64) + np.uint64(2**63 + 5),
            "whole": pd.Series([10**30 + i for i in range(n)], dtype=object),
            "price": [Decimal(f"1.{i:030d}") for i in range(n)],
            "at": pd.to_datetime(10**18 + rng.integers(1, 10**17, n)),
            "x": np.where(np.arange(n) % 3 == 0, np.nan, rng.normal(size=n)),
        },
        index=rng.permutation(n),
    )
    learner = jf.AdversarialForest(2, random_state=0)
    with pytest.warns(UserWarning, match="floating-point"):
        joint = learner.fit(frame).joint_
    filled = joint.impute(frame)
    assert filled.dtypes.equals(frame.dtypes) and filled.index.equals(frame.index)
    known = frame.notna()
    for name in frame:
        assert filled[name].notna().all()
        assert filled[name][known[name]].tolist() == frame[name][known[name]].tolist(), name
    other = frame.astype({"id": "Int64"}).assign(id=lambda t: t["id"].where(t["id"] % 2 == 0))
    assert joint.impute(other)["id"][other["id"].notna()].tolist() == other["id"].dropna().tolist()

    wide = pl.from_pandas(frame.drop(columns=["whole", "price"]))
    for table in (wide, wide.to_arrow()):
        with pytest.warns(UserWarning, match="floating-point"):
            out = pl.from_dataframe(learner.fit(table).joint_.impute(table))
        for name in ("id", "gaps", "unsigned", "at"):
            assert out.schema[name] == wide.schema[name]
            assert out[name].filter(wide[name].is_not_null()).equals(wide[name].drop_nulls()), name
    array = np.column_stack([2**60 + np.arange(n), np.arange(n)])
    with pytest.warns(UserWarning, match="floating-point"):
        assert (learner.fit(array).joint_.impute(array) == array).all()


def test_clones() -> None:
    imputer = small(m=2, proper=True, add_indicator=True)
    assert clone(imputer).get_params(deep=False).keys() == imputer.get_params(deep=False).keys()
    assert not hasattr(clone(imputer.fit(table(50))), "joint_")


def test_forests_after_it_get_their_weights_routed() -> None:
    """A column transformer, the imputer and a generative forest in one pipeline, weights for the forest alone."""
    frame = table(120)
    y = np.where(frame["w"] > 0, "yes", "no")
    weight = (np.arange(len(frame)) % 2).astype(float)
    forest = jf.GenerativeForestClassifier(3, min_samples_leaf=5, smoothing=0.3, min_spread=0.1, beta=0, random_state=0)
    columns = ColumnTransformer([("all", small(), ["x", "k", "c"])]).set_output(transform="pandas")
    with sklearn.config_context(enable_metadata_routing=True):
        asked = ColumnTransformer([("all", small().set_fit_request(sample_weight=False), ["x", "k", "c"])])
        pipe = make_pipeline(asked.set_output(transform="pandas"), forest.set_fit_request(sample_weight=True))
        routed = pipe.fit(frame, y, sample_weight=weight).predict_proba(frame)
    filled = columns.fit_transform(frame)
    alone = clone(forest).fit(filled, y, sample_weight=weight).predict_proba(filled)
    np.testing.assert_allclose(routed, alone)


def test_joints_of_bootstraps_have_the_settings_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    imputer = jf.JointImputer(m=2, proper=True, random_state=0).fit(X)
    chosen = imputer.estimator_.settings_
    again = as_chosen(imputer.estimator_)
    assert (again.n_states, again.start, again.smoothing) == (chosen.n_states, chosen.start, chosen.smoothing.normal)
    assert not hasattr(again, "joint_") and all(one.n_states <= chosen.n_states for one in imputer.joints_)
