"""Learning from cells that are ranges in batches: as in memory, and beyond the sample as from values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import jointforest as jf
from jointforest.data.cells import joined_cells, taken
from jointforest.data.frames import read
from jointforest.data.sample_rows import row_keys
from jointforest.learners.batches.sample import batch_cells, fold_of, prepared, take_sample
from jointforest.learners.generative import base as generative
from jointforest.learners.hidden_tree import hidden_tree_forest

pytestmark = pytest.mark.filterwarnings("ignore:the joint has lost")
LIMIT = 0.5


def values(n: int, seed: int = 0) -> pd.DataFrame:
    """A substance that grows with age."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 70, n).round()
    return pd.DataFrame({"pfos": rng.lognormal(0.03 * age - 2, 0.6).round(2), "age": age})


def as_ranges(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(pfos=[x if x >= LIMIT else jf.between(None, LIMIT, "neither") for x in frame["pfos"]])


def as_texts(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(pfos=[f"{x:.2f}" if x >= LIMIT else f"<{LIMIT}" for x in frame["pfos"]])


def in_batches(frame: pd.DataFrame, size: int = 170) -> Callable[[], Iterator[pd.DataFrame]]:
    return lambda: (frame.iloc[k : k + size] for k in range(0, len(frame), size))


def in_order_of_keys(frame: pd.DataFrame, kinds: Any, seed: int) -> pd.DataFrame:
    """The rows in the order in which the sample of all of them has them."""
    reader = prepared(frame, kinds or {})
    keys = row_keys([(name, reader.cells(name)) for name in reader.names], reader.n, seed)
    return frame.iloc[np.argsort(keys, kind="stable")]


@pytest.mark.parametrize(
    ("frame", "kinds"), [(as_ranges(values(600)), None), (as_texts(values(600)), {"pfos": "ranges"})]
)
def test_a_small_table_has_the_schema_and_values_of_learning_in_memory(frame: pd.DataFrame, kinds: Any) -> None:
    sample = take_sample(fold_of(in_batches(frame)), kinds, 1000, 0)
    of_memory = jf.HiddenTreeForest(n_states=2, max_iter=1, kinds=kinds, random_state=0).fit(frame).joint_.schema
    j = sample.schema.index("pfos")
    column, own = sample.schema.columns[j], of_memory.columns[j]
    assert replace(column, written=None) == replace(own, written=None)
    assert sample.ranges is not None and (sample.ranges.number[:, j] >= 0).sum() == (values(600).pfos < LIMIT).sum()
    above = values(600).pfos[values(600).pfos >= LIMIT]
    assert sorted(sample.X[sample.ranges.number[:, j] < 0, j]) == pytest.approx(sorted(above))
    assert (sample.X[sample.ranges.number[:, j] >= 0, j] < LIMIT).all()


@pytest.mark.parametrize(
    "learner",
    [
        jf.HiddenTreeForest(n_states=8, random_state=0),
        jf.AdversarialForest(5, leaf="normal", random_state=0),
        jf.JointTree(random_state=0),
    ],
    ids=lambda of: type(of).__name__,
)
@pytest.mark.parametrize(
    ("frame", "kinds"), [(as_ranges(values(900)), None), (as_texts(values(900)), {"pfos": "ranges"})]
)
def test_a_small_table_is_learned_as_in_memory(learner: Any, frame: pd.DataFrame, kinds: Any) -> None:
    learner = clone(learner).set_params(kinds=kinds)
    whole = clone(learner).fit(in_order_of_keys(frame, kinds, learner._draw_seed())).joint_
    for source in (in_batches(frame), in_batches(frame.iloc[::-1], 400)):
        joint = clone(learner).fit_batches(source).joint_
        assert np.allclose(joint.log_density(frame), whole.log_density(frame), rtol=1e-5, atol=1e-5)


def test_hidden_trees_beyond_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = values(9000)
    monkeypatch.setattr(hidden_tree_forest, "FIXED", replace(hidden_tree_forest.FIXED, batch_rows=1500))
    learner = jf.HiddenTreeForest(n_states=8, random_state=0)
    joint, of_values = (learner.fit_batches(in_batches(of, 1000)).joint_ for of in (as_ranges(frame), frame))
    share = (frame.pfos < LIMIT).mean()
    assert joint.probability(f"pfos < {LIMIT}") == pytest.approx(share, abs=3e-3)
    for event in ("age < 30", "age > 60"):
        rows = frame.query(event)
        assert joint.given(event).probability(f"pfos < {LIMIT}") == pytest.approx((rows.pfos < LIMIT).mean(), abs=0.04)
        assert joint.given(event).mean("pfos") == pytest.approx(of_values.given(event).mean("pfos"), abs=0.04)
    few = jf.HiddenTreeForest(n_states=8, random_state=0).fit(as_ranges(frame.iloc[:1500])).joint_
    assert abs(few.probability(f"pfos < {LIMIT}") - share) > 3e-3  # what a sample says


@pytest.mark.parametrize("leaf", ["normal", "chow_liu"])
def test_forests_beyond_the_sample(leaf: str) -> None:
    frame = values(8000)
    learner = jf.AdversarialForest(5, leaf=leaf, max_samples=1500, random_state=0)
    joint, of_values = (learner.fit_batches(in_batches(of, 1000)).joint_ for of in (as_ranges(frame), frame))
    assert joint.probability("pfos < 0.5") == pytest.approx((frame.pfos < LIMIT).mean(), abs=0.03)
    for event in ("age < 30", "age > 60"):
        below = [of.given(event).probability("pfos < 0.5") for of in (joint, of_values)]
        assert below[0] == pytest.approx(below[1], abs=0.06)


def test_generative_forests_beyond_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generative, "FIXED", replace(generative.FIXED, batch_rows=1500))
    frame = values(6000)
    old = np.where(frame["age"] > 45, "old", "young")
    frame = frame.drop(columns="age").assign(other=np.random.default_rng(0).normal(size=len(frame)), group=old)
    shares = []
    for of in (as_ranges(frame), frame):
        learned = jf.GenerativeForestClassifier(10, random_state=0).fit_batches(in_batches(of, 1000), "group")
        shares.append(learned.predict_proba(of.iloc[:300].drop(columns="group"))[:, 0])
    below = frame["pfos"].iloc[:300] < LIMIT
    assert abs(shares[0] - shares[1])[~below].mean() < 0.05
    assert shares[0][below].mean() == pytest.approx((old[frame["pfos"] < LIMIT] == "old").mean(), abs=0.04)


def test_histories_are_learned_as_in_memory() -> None:
    frame = values(600)
    frame = as_ranges(frame).assign(who=np.repeat(np.arange(100), 6), day=np.tile(np.arange(6.0), 100))
    whole, joint = (
        jf.HistoryForest(random_state=0).fit(frame, group="who", order="day").joint_,
        jf.HistoryForest(random_state=0).fit_batches(in_batches(frame), group="who", order="day").joint_,
    )
    drawn = [of.sample(500, random_state=1) for of in (whole, joint)]
    for of in drawn:
        assert (of["pfos"] < LIMIT).mean() == pytest.approx((values(600).pfos < LIMIT).mean(), abs=0.06)


def test_censored_times() -> None:
    rng = np.random.default_rng(0)
    time, until = rng.exponential(10.0, 1500), rng.uniform(0, 20, 1500)
    frame = pd.DataFrame({"months": np.minimum(time, until), "died": time <= until, "x": rng.normal(size=1500)})
    learner = jf.HiddenTreeForest(n_states=2, kinds={"months": jf.censored(event="died")}, random_state=0)
    whole, joint = learner.fit(frame).joint_, learner.fit_batches(in_batches(frame)).joint_
    at = [2.0, 5.0, 10.0, 15.0]
    assert np.allclose(joint.given().survival("months", at), np.exp(-np.array(at) / 10.0), atol=0.04)
    assert np.allclose(joint.given().survival("months", at), whole.given().survival("months", at), atol=0.01)
    assert joint.schema["months"] == whole.schema["months"]


def test_weights_stay_those_of_the_rows() -> None:
    frame = values(1200)
    weighed = as_ranges(frame).assign(w=np.where(frame["age"] > 45, 3.0, 1.0))
    joint = jf.HiddenTreeForest(n_states=4, random_state=0).fit_batches(in_batches(weighed), "w").joint_
    share = np.average(frame["pfos"] < LIMIT, weights=weighed["w"])
    assert joint.probability("pfos < 0.5") == pytest.approx(share, abs=0.01)


def test_columns_of_ranges_alone() -> None:
    frame = pd.DataFrame({"age": ["18-24", "25-34", "35-64", "65+"] * 50, "visits": np.arange(200) % 7})
    joint = jf.HiddenTreeForest(n_states=2, kinds={"age": "ranges"}, random_state=0).fit_batches(in_batches(frame))
    assert joint.joint_.probability("age <= 24") == pytest.approx(0.25, abs=0.02)


def test_cells_of_parts_keep_their_ranges() -> None:
    frame = pd.DataFrame({"x": [1.0, jf.between(0, 2), jf.between(1, 3), 4.0, jf.between(0, 2)]})
    cells = read(frame).cells("x")
    for rows in ([4, 0, 2], [3, 0], [1, 1]):
        few = taken(cells, np.array(rows))
        assert few.range_of is not None
        found = [few.intervals[k] if k >= 0 else None for k in few.range_of]
        wanted = [x if isinstance(x := frame["x"][i], jf.Interval) else None for i in rows]
        assert found == wanted
        assert len(few.intervals) == len({x for x in wanted if x})
    both = joined_cells("x", taken(cells, np.array([4, 0])), taken(cells, np.array([2, 1])))
    assert both.range_of is not None and len(both.intervals) == 2
    found = [both.intervals[k] if k >= 0 else None for k in both.range_of]
    assert found == [frame["x"][4], None, frame["x"][2], frame["x"][1]]


def test_draws_of_equal_rows_differ() -> None:
    frame = as_ranges(pd.DataFrame({"pfos": [0.1, 0.2, 0.9, 0.3, 0.9], "age": [30.0, 30.0, 40.0, 31.0, 40.0]}))
    schema = jf.HiddenTreeForest(n_states=1, random_state=0).fit(as_ranges(values(200))).joint_.schema
    rows = batch_cells(schema, frame)
    keys = rows.keys(0)
    assert len(set(keys)) == 4 and keys[2] == keys[4]
    assert set(batch_cells(schema, frame.iloc[::-1]).keys(0)) == set(keys)


@pytest.mark.parametrize(
    ("frame", "kinds", "message"),
    [
        (as_texts(values(300)), None, r"column 'pfos': texts such as '<0.5' may be ranges .*--kinds pfos=ranges"),
        (values(300).assign(pfos="a"), {"pfos": "ranges"}, "column 'pfos': expected numbers such as '12.5', got"),
        (values(300), {"pfos": jf.censored(event="died")}, "there is no column 'died'"),
        (as_ranges(values(300)).assign(pfos=lambda f: f.pfos.map(str)), None, "ranges have become texts"),
    ],
)
def test_errors_name_the_column(frame: pd.DataFrame, kinds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jf.HiddenTreeForest(kinds=kinds).fit_batches(in_batches(frame))


def test_ranges_that_the_sample_does_not_have() -> None:
    frame = values(3000)
    frame["pfos"] = frame["pfos"].astype(object)
    sample = take_sample(fold_of(in_batches(frame)), None, 300, 0)
    common = frame.index[~frame["pfos"].isin(sample.X[:, 0])]
    frame.loc[common[0], "pfos"] = jf.between(0.0, 0.5)
    with pytest.raises(ValueError, match="column 'pfos' has so few cells that are ranges"):
        jf.AdversarialForest(3, max_samples=300, random_state=0).fit_batches(in_batches(frame))
