"""The augmenter: whose rows it adds, how many, in which types; what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import jointforest as jf

SMALL = jf.HiddenTreeForest(n_states=4, max_iter=1, max_leaf_nodes=1, smoothing=1.0, random_state=1)


def table(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """A number and a level that tell classes apart; "a" is rare."""
    rng = np.random.default_rng(seed)
    label = rng.choice(["a", "b", "c"], n, p=[0.1, 0.3, 0.6])
    x = np.array([{"a": -3.0, "b": 0.0, "c": 3.0}[c] for c in label]) + rng.normal(size=n)
    X = pd.DataFrame({"x": np.where(rng.random(n) < 0.1, np.nan, x), "k": np.round(x), "u": rng.random(n) < 0.5})
    return X, pd.Series(label, name="class")


def small(**params: Any) -> jf.JointAugmenter:
    return jf.JointAugmenter(SMALL, **{"random_state": 0, **params})


def test_classes_are_balanced_and_the_rows_stay_first() -> None:
    X, y = table()
    more, labels = small().fit_resample(X, y)
    assert labels.value_counts().tolist() == [y.value_counts().max()] * 3
    pd.testing.assert_frame_equal(more[:300], X)
    pd.testing.assert_series_equal(labels[:300], y)
    added = more["k"][300:].groupby(labels[300:]).mean()
    assert added["a"] == pytest.approx(-3, abs=0.7) and added["b"] == pytest.approx(0, abs=0.5)
    assert 0 < more["x"][300:].isna().mean() < 0.25  # cells are missing as often as in the table
    assert not more["k"].isna().any()


def test_rows_of_a_class_are_those_of_the_joints_conditional() -> None:
    """Shares of a level given the class: draws beside the joint's own answer."""
    X, y = table()
    augmenter = small().fit(X, y)
    rows, labels = augmenter.sample(4000, "b", random_state=1)
    assert (labels == "b").all()
    for low, high in ((-9, -1), (-1, 0), (0, 1), (1, 9)):
        wanted = augmenter.joint_.probability(f"{low} < k <= {high}", given="class = 'b'")
        found = int(((low < rows["k"]) & (rows["k"] <= high)).sum())
        assert stats.binomtest(found, 4000, float(wanted)).pvalue > 1e-4


def test_strategies() -> None:
    X, y = table()
    counts = y.value_counts()
    _, labels = small(sampling_strategy={"a": 100}).fit_resample(X, y)
    assert labels.value_counts().to_dict() == {**counts, "a": 100}
    more, labels = small(sampling_strategy=50).fit_resample(X, y)
    assert len(more) == len(labels) == 350
    assert (labels[300:] == "c").sum() > 15
    more, labels = small(sampling_strategy=0).fit_resample(X, y)
    assert len(more) == 300
    same = pd.Series(["b"] * 300)
    assert len(small().fit_resample(X, same)[0]) == 300


def test_numbers_as_target() -> None:
    X, _ = table()
    y = X["k"].to_numpy() + np.random.default_rng(0).normal(size=300)
    learner = jf.HiddenTreeForest(n_states=16, smoothing=0.1, random_state=0)
    more, found = jf.JointAugmenter(learner, sampling_strategy=200, random_state=0).fit_resample(X, y)
    assert found.dtype == np.float64 and len(found) == 500
    assert np.corrcoef(found[300:], more["k"][300:])[0, 1] > 0.7
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        small().fit(X, y)


def test_seeds_and_threads() -> None:
    X, y = table()
    one, two, other = (small(n_jobs=k, random_state=s).fit_resample(X, y)[0] for k, s in ((1, 0), (3, 0), (1, 1)))
    pd.testing.assert_frame_equal(one, two)
    assert not one.equals(other)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "numpy"])
def test_frames_of_all_libraries(kind: str) -> None:
    X, y = table()
    into: dict[str, Any] = {
        "pandas": (lambda f: f, lambda s: s.astype("category")),
        "polars": (pl.from_pandas, pl.from_pandas),
        "pyarrow": (lambda f: pa.Table.from_pandas(f, preserve_index=False), lambda s: pa.chunked_array([s.tolist()])),
        "numpy": (lambda f: f.to_numpy(dtype=float), lambda s: s.to_numpy()),
    }
    given, label = into[kind][0](X), into[kind][1](y)
    augmenter = small()
    more, labels = augmenter.fit_resample(given, label)
    assert type(more) is type(given) and type(labels) is type(label)
    assert len(more) == len(labels) == 3 * y.value_counts().max()
    assert getattr(labels, "dtype", None) == getattr(label, "dtype", None)
    if kind == "pandas":
        assert (more.dtypes == given.dtypes).all() and labels.name == "class"
    elif kind == "numpy":
        assert more.dtype == given.dtype
        np.testing.assert_array_equal(more[:300], given)
    else:
        assert more.schema == given.schema
    few = augmenter.sample(3, "a", random_state=0)
    assert type(few[0]) is type(given) and list(few[1] if kind != "pyarrow" else few[1].to_pylist()) == ["a"] * 3


@pytest.mark.parametrize("label", [np.array([True, False]), np.array([7, 3], dtype=np.int8), np.array([2.0, 1.0])])
def test_labels_keep_their_type(label: np.ndarray) -> None:
    X, y = table()
    y = label[(y == "a").astype(int)]
    more, labels = small().fit_resample(X.to_numpy(dtype=float), y)
    assert labels.dtype == label.dtype
    assert set(np.unique(labels)) == set(label) and len(set(np.unique(labels, return_counts=True)[1])) == 1
    assert len(more) == len(labels)


def test_weights_and_routing() -> None:
    X, y = table()
    weight = (np.arange(300) % 2).astype(float)
    alone = small().fit(X[weight > 0], y[weight > 0]).joint_
    np.testing.assert_allclose(small().fit(X, y, sample_weight=weight).joint_.log_density(X), alone.log_density(X))
    with sklearn.config_context(enable_metadata_routing=True):
        asked = small().set_fit_request(sample_weight=True).get_metadata_routing().fit.requests
    assert asked == {"sample_weight": True}


def test_helps_a_rare_class() -> None:
    """Recall of the rare class by a linear model that has to choose: with as many rows of each class it is higher."""
    X, y = table(600)
    X = X.drop(columns="x")
    new, label = table(600, seed=1)
    new, rare = new.drop(columns="x"), (label == "a").to_numpy()
    plain = LogisticRegression().fit(X, y).predict(new)
    balanced = LogisticRegression().fit(*small().fit_resample(X, y)).predict(new)
    assert (balanced[rare] == "a").mean() >= (plain[rare] == "a").mean()


def test_what_is_refused() -> None:
    X, y = table(60)
    with pytest.raises(ValueError, match="sampling_strategy must be 'auto', a dict or a number of rows, got 'all'"):
        small(sampling_strategy="all").fit(X, y)
    with pytest.raises(ValueError, match="'z' is no class"):
        small(sampling_strategy={"z": 9}).fit(X, y)
    with pytest.raises(ValueError, match=r"class 'c' has \d+ rows and is to have 1"):
        small(sampling_strategy={"c": 1}).fit(X, y)
    with pytest.raises(ValueError, match=r"class 'c' has \d+ rows and is to have '90'"):
        small(sampling_strategy={"c": "90"}).fit(X, y)
    with pytest.raises(ValueError, match=r"class 'c' has \d+ rows and is to have True"):
        small(sampling_strategy={"c": True}).fit(X, y)
    with pytest.raises(TypeError, match=r"estimator: .*the class HiddenTreeForest"):
        jf.JointAugmenter(jf.HiddenTreeForest).fit(X, y)
    with pytest.raises(ValueError, match="has a target of its own"):
        jf.JointAugmenter(jf.GenerativeForestClassifier()).fit(X, y)
    with pytest.raises(ValueError, match="label: 'z' is no class"):
        small().fit(X, y).sample(1, "z")
    with pytest.raises(ValueError, match="X has 60 rows and y has 59"):
        small().fit(X, y[:-1])
    assert clone(small(sampling_strategy=3)).sampling_strategy == 3


def test_a_target_named_like_a_column() -> None:
    X, y = table(100)
    more, labels = small().fit_resample(X, y.rename("x"))
    assert labels.name == "x" and list(more) == list(X)
