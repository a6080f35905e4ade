"""Learning from Dask frames within this process: one joint, however the table is cut, that of learning in memory."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import jointforest as jf
from jointforest.integrations import dask as jfd

from .tables import cut, stored, table

pytestmark = [
    pytest.mark.filterwarnings("ignore:the joint has lost"),
    pytest.mark.filterwarnings("ignore:levels never seen"),
]

LEARNERS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "adversarial": (
        lambda: jfd.AdversarialForest(3, max_samples=150, leaf="quantile", random_state=0),
        lambda: jf.AdversarialForest(3, max_samples=150, leaf="quantile", random_state=0),
    ),
    "joint trees": (
        lambda: jfd.JointTree(2, min_samples_leaf=20, random_state=0),
        lambda: jf.JointTree(2, min_samples_leaf=20, random_state=0),
    ),
    "chow_liu": (
        lambda: jfd.AdversarialForest(2, max_samples=150, leaf="chow_liu", random_state=0),
        lambda: jf.AdversarialForest(2, max_samples=150, leaf="chow_liu", random_state=0),
    ),
}


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("name", LEARNERS)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ends=st.lists(st.integers(0, 440), max_size=11), seed=st.integers(0, 99))
def test_joint_is_that_of_batches_bit_by_bit(name: str, ends: list[int], seed: int, tmp_path: Path) -> None:
    frame = table()
    on_dask, here = LEARNERS[name]
    shuffled = frame.sample(frac=1, random_state=seed)
    found = on_dask().fit(cut(shuffled, ends))
    assert stored(found.joint_, tmp_path) == stored(here().fit_batches(frame).joint_, tmp_path)


@pytest.mark.parametrize("npartitions", [1, 2, 8, 80])
def test_partitions_with_divisions(npartitions: int, tmp_path: Path) -> None:
    lazy = dd.from_pandas(table(), npartitions=npartitions)  # which makes Arrow strings of text
    here = jf.JointTree(random_state=0).fit_batches(lazy.compute()).joint_
    assert stored(jfd.JointTree(random_state=0).fit(lazy).joint_, tmp_path) == stored(here, tmp_path)


def test_joint_is_that_of_learning_in_memory() -> None:
    """A table that fits into the sample, in another order: one tree is the same tree but for rounding."""
    frame = table(3000).dropna(ignore_index=True)
    found = jfd.JointTree(leaf="normal", random_state=0).fit(cut(frame, [100, 101, 2000])).joint_
    whole = jf.JointTree(leaf="normal", random_state=0).fit(frame).joint_
    assert np.allclose(found.log_density(frame), whole.log_density(frame), atol=1e-9)


def test_leaves_hold_all_rows() -> None:
    """Counts, means and missing cells of the whole table, as Dask itself has them, though a sample grew the trees."""
    frame = cut(table(3000), [10, 500, 1700])
    learned = jfd.AdversarialForest(3, max_samples=300, leaf="normal", epsilon=0.0, random_state=0).fit(frame).joint_
    shares = frame["g"].value_counts(normalize=True).compute()
    assert learned.given().proba("g") == pytest.approx(shares.to_dict(), abs=5e-3)  # smoothing, rows without a level
    assert learned.query("P(x is missing)") == pytest.approx(frame["x"].isna().mean().compute(), abs=1e-9)
    assert learned.given().mean("k") == pytest.approx(frame["k"].mean().compute(), abs=0.1)


def test_types_that_differ_by_partition(tmp_path: Path) -> None:
    """Categories in another order, of one class, without a row, and one row; Arrow and plain text."""
    frame = table()[["g", "x", "flag"]].dropna(ignore_index=True)
    frame["g"] = pd.Categorical(frame["g"])
    here = jf.JointTree(random_state=0).fit_batches(frame.assign(g=frame["g"].astype(object))).joint_
    orders = [["c", "a", "b"], ["a", "b", "c"], ["b"], ["a", "c", "b"], ["c", "b", "a"]]
    only = frame["g"] == "b"
    pieces = [
        frame[~only].iloc[:1],
        frame[~only].iloc[:0],
        frame[only],
        frame[~only].iloc[1:90],
        frame[~only].iloc[90:],
    ]
    parts = [p.assign(g=pd.Categorical(p["g"].astype(object), of)) for p, of in zip(pieces, orders, strict=True)]
    lazy = dd.from_delayed([dask.delayed(p) for p in parts], meta=parts[0], verify_meta=False)
    for known in (lazy, lazy.assign(g=lazy["g"].cat.as_unknown())):
        found = jfd.JointTree(random_state=0).fit(known).joint_
        assert found.schema["g"].levels == ("a", "b", "c")
        assert np.array_equal(found.log_density(frame), here.log_density(frame))
    text = pd.ArrowDtype(pa.string())
    arrow = [p.assign(g=p["g"].astype(object).astype(text), x=p["x"].astype("float64[pyarrow]")) for p in parts]
    found = jfd.JointTree(random_state=0).fit(dd.from_delayed([dask.delayed(p) for p in arrow])).joint_
    assert np.array_equal(found.log_density(frame), here.log_density(frame))
    assert found.sample(3, random_state=0)["g"].dtype == text


@pytest.mark.parametrize("target", ["g", "k"])
def test_generative_forests(target: str, tmp_path: Path) -> None:
    frame = table(500).dropna(subset=["g", "k"], ignore_index=True)
    X, test = frame.drop(columns=target), table(100, 3).drop(columns=target)
    on_dask = jfd.GenerativeForestClassifier if target == "g" else jfd.GenerativeForestRegressor
    local = jf.GenerativeForestClassifier if target == "g" else jf.GenerativeForestRegressor
    here = local(10, random_state=0).fit_batches(frame, target)
    lazy = cut(frame, [3, 200])
    for given_ in ((lazy, target), (lazy.drop(columns=target), lazy[target])):
        found = on_dask(10, random_state=0).fit(*given_)
        assert stored(found.joint_, tmp_path) == stored(here.joint_, tmp_path)
    predicted = found.predict(cut(test, [0, 7]))
    assert isinstance(predicted, dd.Series) and predicted.compute().tolist() == here.predict(test).tolist()
    assert found.predict(test).tolist() == here.predict(test).tolist()
    assert np.array_equal(found.score_samples(cut(test, [5])).compute(), here.score_samples(test))
    if target == "g":
        shares = found.predict_proba(cut(test, [7]))
        assert shares.columns.tolist() == ["a", "b", "c"]
        assert np.array_equal(shares.compute(), here.predict_proba(test))
    assert X.shape[1] == found.n_features_in_


@pytest.mark.parametrize("target", [None, "flag"])
def test_weights_in_a_column(target: str | None, tmp_path: Path) -> None:
    frame = table(500).assign(w=np.random.default_rng(0).integers(0, 4, 540) / 4)
    lazy, settings = cut(frame, [3, 200]), {"max_samples": 150, "random_state": 0}
    if target:
        found: Any = jfd.GenerativeForestClassifier(3, random_state=0).fit(lazy, target, sample_weight="w")
        here: Any = jf.GenerativeForestClassifier(3, random_state=0).fit_batches(frame, target, sample_weight="w")
    else:
        found = jfd.AdversarialForest(2, **settings).fit(lazy, sample_weight="w")
        here = jf.AdversarialForest(2, **settings).fit_batches(frame, sample_weight="w")
    assert stored(found.joint_, tmp_path) == stored(here.joint_, tmp_path)
    assert "w" not in found.joint_.columns


def test_target_beside_features_in_files(tmp_path: Path) -> None:
    """Dask joins small files where only one column is read; rows stay side by side."""
    frame = table(300).dropna(subset=["g"], ignore_index=True)
    for k in range(6):
        frame.iloc[50 * k : 50 * k + 50].to_parquet(tmp_path / f"{k}.parquet")
    lazy = dd.read_parquet(tmp_path)
    y = lazy["g"]
    assert len(y.to_delayed()) < lazy.npartitions
    here = jf.GenerativeForestClassifier(5, random_state=0).fit_batches(lazy.compute(), "g").joint_
    for X in (lazy.drop(columns="g"), lazy.drop(columns="g").persist()):
        found = jfd.GenerativeForestClassifier(5, random_state=0).fit(X, y).joint_
        assert stored(found, tmp_path) == stored(here, tmp_path)


def test_hidden_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the sample they add up float32 products: equal but for the last digits."""
    from jointforest.learners.hidden_tree import hidden_tree_forest

    frame = table(900)
    settings = {
        "n_states": 4,
        "max_leaf_nodes": 1,
        "start": "shared",
        "smoothing": 20.0,
        "max_iter": 2,
        "random_state": 0,
    }
    here, there = jf.HiddenTreeForest(**settings), jfd.HiddenTreeForest(**settings)
    whole = here.fit_batches(frame).joint_.log_density(frame)
    assert np.array_equal(there.fit(cut(frame, [0, 7, 300])).joint_.log_density(frame), whole)
    monkeypatch.setattr(hidden_tree_forest, "FIXED", replace(hidden_tree_forest.FIXED, batch_rows=400))
    found = there.fit(cut(frame, [0, 7, 300])).joint_.log_density(frame)
    assert np.allclose(found, here.fit_batches(frame).joint_.log_density(frame), atol=1e-4)


@pytest.mark.parametrize("estimator", [None, jf.AdversarialForest(5, max_samples=200, leaf="uniform", random_state=0)])
def test_outlier_detector(estimator: Any) -> None:
    frame = table(500)
    here = jf.ForestOutlierDetector(estimator, random_state=0).fit_batches(frame)
    found = jfd.ForestOutlierDetector(estimator, random_state=0).fit(cut(frame, [100, 100, 450]))
    assert found.offset_ == here.offset_
    assert np.array_equal(found.predict(cut(frame, [9])).compute(), here.predict(frame))
    assert np.array_equal(found.decision_function(cut(frame, [9])).compute(), here.decision_function(frame))


def test_learners_are_those_of_scikit_learn() -> None:
    learner = jfd.JointTree(2, min_samples_leaf=5, client="some client")
    assert learner.client == "some client" and "client" not in learner.get_params()
    assert clone(learner).get_params() == learner.get_params() == jf.JointTree(2, min_samples_leaf=5).get_params()
    learner = jfd.JointTree(random_state=0).fit(cut(table(), [50]))
    learner.client = "some client"
    kept = pickle.loads(pickle.dumps(learner))
    assert kept.client is None and np.array_equal(kept.score_samples(table()), learner.score_samples(table()))
    local = learner.to_local()
    assert type(local) is jf.JointTree and local.joint_ is learner.joint_ and not hasattr(local, "client")


def with_infinity(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(x=np.inf)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (lambda: table(), TypeError, "expected a Dask DataFrame, got pandas.DataFrame"),
        (lambda: da.ones((10, 2)), TypeError, "got dask.Array; dask.dataframe.from_dask_array"),
        (lambda: cut(table().iloc[:0], [0]), ValueError, "no rows"),
        (lambda: cut(table(), [10]).map_partitions(with_infinity), ValueError, "column 'x': 440 infinite values"),
        (
            lambda: dd.from_map(lambda v: table(40).assign(x=v), [1.0, "text"], meta=table(1)),
            ValueError,
            "column 'x': numbers in one part of the table, text in another",
        ),
    ],
)
def test_tables_that_cannot_be_used(X: Callable[[], Any], error: type[Exception], message: str) -> None:
    learner = jfd.JointTree(random_state=0)
    with pytest.raises(error, match=message):
        learner.fit(X())
    assert not hasattr(learner, "joint_")


def test_other_things_that_are_refused() -> None:
    lazy, other = cut(table(), [10]), cut(table(), [10, 20])
    forest = jfd.GenerativeForestClassifier(2)
    with pytest.raises(ValueError, match="X has 2 partitions and y 3"):
        forest.fit(lazy.drop(columns="g"), other["g"])
    with pytest.raises(ValueError, match=r"a partition of X has \d+ rows, that of y has \d+"):
        forest.fit(lazy.drop(columns="g"), cut(table(), [11])["g"])
    with pytest.raises(ValueError, match="X has a column 'g', too"):
        forest.fit(lazy, lazy["g"])
    with pytest.raises(ValueError, match="needs a name"):
        forest.fit(lazy, lazy["g"].rename(None))
    with pytest.raises(TypeError, match="y: expected the name of a column, or a Dask Series, got ndarray"):
        forest.fit(lazy, np.zeros(440))
    with pytest.raises(ValueError, match=r"column 'g': .* missing cells in the target"):
        forest.fit(lazy, "g")
    with pytest.raises(ValueError, match="expected the name of a column of X, got ndarray"):
        jfd.JointTree().fit(lazy, sample_weight=np.ones(440))
    with pytest.raises(ValueError, match="sample_weight: column 'w': every weight is zero"):
        jfd.JointTree().fit(lazy.assign(w=0.0), sample_weight="w")
    with pytest.raises(ValueError, match=r"sample_weight: column 'w': expected finite numbers >= 0, got -2"):
        jfd.JointTree().fit(lazy.assign(w=-2.0), sample_weight="w")
    with pytest.raises(ValueError, match="all rows at once"):
        jfd.AdversarialForest(leaf_rows="oob").fit(lazy)


def test_frame_that_changes() -> None:
    passes: list[int] = []

    def rows(_: int) -> pd.DataFrame:
        passes.append(1)
        return table().iloc[: 440 if len(passes) < 2 else 400]

    with pytest.raises(ValueError, match="gave 440 rows at first and 400 later"):
        jfd.AdversarialForest(2, max_samples=100).fit(dd.from_map(rows, [0], meta=table(1)))
