"""Tables in batches whose rows have weights, in a column of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointforest as jf
from jointforest.data.frames import read
from jointforest.data.sample_rows import row_keys
from jointforest.learners.batches.sample import Pass, Weights, take_weighed
from jointforest.models.box_forest.files import check_forest

from .test_fit_batches import FewRows, batches, table

pytestmark = [
    pytest.mark.filterwarnings("ignore:the joint has lost"),
    pytest.mark.filterwarnings("ignore:levels never seen"),
]

LEARNERS: dict[str, tuple[Callable[[], Any], str | None]] = {
    "adversarial": (lambda: jf.AdversarialForest(3, max_samples=500, random_state=0), None),
    "joint tree": (lambda: jf.JointTree(random_state=0), None),
    "hidden tree": (lambda: jf.HiddenTreeForest(n_states=8, max_iter=1, random_state=0), None),
    "classes": (lambda: jf.GenerativeForestClassifier(5, random_state=0), "many"),
    "outliers": (lambda: jf.ForestOutlierDetector(random_state=0), None),
}
SAMPLED: dict[str, Callable[[], Any]] = {
    "adversarial": lambda: jf.AdversarialForest(2, max_samples=200, min_samples_leaf=20, leaf="normal", random_state=0),
    "quantile": lambda: FewRows(2, leaf="quantile", min_samples_leaf=0.2, random_state=0),
}


def weighed(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Rows of which some have no weight, and those of group "c" a third of the others'."""
    frame = table(n, seed)
    weight = np.random.default_rng(seed + 100).uniform(0.5, 1.5, len(frame)) * np.where(frame["g"] == "c", 1 / 3, 1.0)
    weight[::7] = 0.0
    return frame.assign(w=weight)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_table_no_larger_than_the_sample_is_learned_as_in_memory(name: str) -> None:
    """Bit for bit what `fit` learns of the same rows, in the order of their keys, with the same weights."""
    make, target = LEARNERS[name]
    frame = weighed()
    frame = frame[frame[target].notna()].reset_index(drop=True) if target else frame
    some, learner = frame[frame["w"] > 0].reset_index(drop=True), make()
    reader = read(some)
    keys = row_keys(((column, reader.cells(column)) for column in some), len(some), learner._draw_seed())
    rows = some.iloc[np.argsort(keys)].reset_index(drop=True)
    weight, rest = rows["w"].to_numpy(), rows.drop(columns="w")
    given_ = (rest.drop(columns=target), rest[target]) if target else (rest,)
    at_once = learner.fit(*given_, sample_weight=weight / weight.mean())
    source = batches(frame, [100, 130])
    in_parts = make().fit_batches(source, *([target] if target else []), sample_weight="w")
    assert in_parts.joint_.columns == at_once.joint_.columns and "w" not in in_parts.joint_.columns
    test = frame.drop(columns="w")
    assert np.allclose(in_parts.joint_.log_density(test), at_once.joint_.log_density(test), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", SAMPLED)
@settings(max_examples=5)
@given(st.lists(st.integers(1, 439), max_size=4, unique=True), st.integers(0, 99))
def test_joint_does_not_depend_on_cuts_or_order(name: str, cuts: list[int], seed: int) -> None:
    frame = weighed()
    test = frame.drop(columns="w")
    learned = SAMPLED[name]().fit_batches(frame, sample_weight="w").joint_
    forest = learned.distribution.components[0].forest
    check_forest(forest.schema, forest.columns, forest.trees, forest.leaves, forest.has_background)
    shuffled = frame.sample(frac=1, random_state=seed).reset_index(drop=True)
    other = SAMPLED[name]().fit_batches(batches(shuffled, sorted(cuts)), sample_weight="w").joint_
    assert np.array_equal(other.log_density(test), learned.log_density(test))


@pytest.mark.parametrize("name", SAMPLED)
def test_leaves_hold_all_rows_by_their_weights(name: str) -> None:
    frame = weighed(3000).dropna(subset=["g"]).reset_index(drop=True)
    learned = SAMPLED[name]().set_params(epsilon=0.0).fit_batches(batches(frame, [999]), sample_weight="w").joint_
    share = frame.groupby("g")["w"].sum() / frame["w"].sum()
    for level, p in learned.given().proba("g").items():
        assert p == pytest.approx(share[level], abs=5e-3)
    assert share["c"] < 0.2
    rate = frame.loc[frame["x"].isna(), "w"].sum() / frame["w"].sum()
    assert learned.query("P(x is missing)") == pytest.approx(rate, abs=1e-9)
    known = frame["k"].notna()
    mean = np.average(frame.loc[known, "k"], weights=frame.loc[known, "w"])
    assert learned.given().mean("k") == pytest.approx(mean, rel=0.02)


def test_chow_liu_leaves_beyond_the_sample() -> None:
    frame = weighed(3000).dropna(subset=["g"]).reset_index(drop=True)
    learner = FewRows(leaf="chow_liu", epsilon=0.0, random_state=0)
    found = learner.fit_batches(frame, sample_weight="w").joint_
    shuffled = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    other = learner.fit_batches(batches(shuffled, [10, 900]), sample_weight="w").joint_
    test = frame.drop(columns="w")
    assert np.array_equal(found.log_density(test), other.log_density(test))
    share = frame.groupby("g")["w"].sum() / frame["w"].sum()
    assert share["c"] < 0.2 and found.given().proba("g")["c"] == pytest.approx(share["c"], abs=0.01)


def test_hidden_trees_beyond_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    from jointforest.learners.hidden_tree import hidden_tree_forest

    monkeypatch.setattr(hidden_tree_forest, "FIXED", replace(hidden_tree_forest.FIXED, batch_rows=1000))
    frame = weighed(3000).dropna(subset=["g"]).reset_index(drop=True)
    learner = jf.HiddenTreeForest(n_states=8, max_leaf_nodes=2, max_iter=1, random_state=0)
    found = learner.fit_batches(frame, sample_weight="w").joint_
    shuffled = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    other = learner.fit_batches(batches(shuffled, [10, 900]), sample_weight="w").joint_
    test = frame.drop(columns="w")
    assert np.allclose(found.log_density(test), other.log_density(test), atol=1e-4)
    share = frame.groupby("g")["w"].sum() / frame["w"].sum()
    assert found.given().proba("g")["c"] == pytest.approx(share["c"], abs=5e-3)


def test_generative_forests_beyond_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    from jointforest.learners.generative import base

    monkeypatch.setattr(base, "FIXED", replace(base.FIXED, batch_rows=300))
    frame = weighed(1500).dropna(subset=["g"]).reset_index(drop=True)
    forest = jf.GenerativeForestClassifier(10, random_state=0).fit_batches(frame, "g", sample_weight="w")
    share = frame.groupby("g")["w"].sum() / frame["w"].sum()
    assert forest.joint_.given().proba("g")["c"] == pytest.approx(share["c"], abs=2e-3)
    assert "w" not in forest.feature_names_in_ and forest.joint_.columns[-1] == "g"


def test_weights_are_counted_in_parts_of_the_largest() -> None:
    """A row that has a weight counts, however small it is; sums over the table stay below 2^62."""
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "w": [8.0, 3.0, 1e-9]})
    assert Weights("w", 8.0, 4).counts(read(frame)).tolist() == [16, 6, 1]

    def fold(one: Pass, n: int | None = None) -> Any:
        return one.over([pd.concat([frame] * 1000, ignore_index=True)])

    found = take_weighed(fold, None, 10, 0, "w").weights
    assert found is not None and found.largest == 8.0
    assert 2**60 < 3000 * 2**found.bits < 2**62


def test_rows_without_weight_are_left_out() -> None:
    """What only they have is not known: a level, the largest number."""
    frame = weighed()
    frame.loc[0, ["g", "x"]] = ["z", 1e6]
    assert frame.loc[0, "w"] == 0.0
    joint = jf.JointTree(random_state=0).fit_batches(batches(frame, [1]), sample_weight="w").joint_
    assert joint.schema["g"].levels == ("a", "b", "c") and joint.schema["x"].maximum < 1e6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="w"), "sample_weight: there is no column 'w'"),
        (lambda f: f.assign(w=f["w"] - 0.1), r"sample_weight: column 'w': expected finite numbers >= 0, got -0\.1"),
        (lambda f: f.assign(w=np.inf), "sample_weight: column 'w': expected finite numbers >= 0, got inf"),
        (lambda f: f.assign(w=f["w"].where(f["w"] > 0)), "sample_weight: column 'w': 63 missing cells"),
        (lambda f: f.assign(w="heavy"), "sample_weight: column 'w': expected numbers, got cells of type"),
        (lambda f: f.assign(w=0.0), "sample_weight: column 'w': every weight is zero"),
        (lambda f: f[["w"]], "sample_weight: there is no other column than 'w'"),
    ],
)
def test_weights_that_cannot_be_used(change: Callable[[pd.DataFrame], pd.DataFrame], message: str) -> None:
    learner = jf.JointTree(random_state=0)
    with pytest.raises(ValueError, match=message):
        learner.fit_batches(change(weighed()), sample_weight="w")
    assert not hasattr(learner, "joint_")


def test_weights_are_named() -> None:
    frame = weighed()
    with pytest.raises(TypeError, match=r"sample_weight: .*expected its name, got ndarray"):
        jf.JointTree().fit_batches(frame, sample_weight=frame["w"].to_numpy())


def test_the_target_is_no_weight() -> None:
    with pytest.raises(ValueError, match="'k' is the target"):
        jf.GenerativeForestRegressor().fit_batches(weighed(), "k", sample_weight="k")
