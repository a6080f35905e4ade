"""Many draws come in blocks, each under a seed of its own."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.inference import comparison, sampling


@pytest.fixture(scope="module")
def joints() -> list[jf.Joint]:
    penguins = jf.datasets.load_penguins()
    forest = jf.AdversarialForest(n_estimators=2, leaf="normal", random_state=0).fit(penguins).joint_
    hidden = jf.HiddenTreeForest(n_states=4, max_iter=1, random_state=0).fit(penguins).joint_
    return [forest, hidden, jf.mix([forest, hidden])]


@pytest.mark.parametrize("where", [None, "island in {Biscoe}", "bill_length_mm > 3 * bill_depth_mm, sex = MALE"])
@pytest.mark.parametrize("k", range(3))
def test_blocks_are_the_rows_of_one_call(
    joints: list[jf.Joint], k: int, where: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in (sampling, comparison):
        monkeypatch.setattr(room, "DRAWS_AT_ONCE", 100)
    known = joints[k].given(species="Gentoo")
    whole = known.sample(250, 7, where=where)
    parts = list(known.sample_batches(250, 7, where=where))
    assert [len(part) for part in parts] == [100, 100, 50]
    stacked = np.concatenate([part.to_numpy() for part in parts])
    assert (stacked == whole.to_numpy()).all()
    assert (known.sample(100, 7, where=where).to_numpy() == stacked[:100]).all()
    assert not (stacked[100:150] == stacked[200:]).all(axis=1).any()
    assert list(known.sample_batches(0, 7, where=where)) == []
    if where is not None and "3 *" in where:
        assert (whole["bill_length_mm"] > 3 * whole["bill_depth_mm"]).all() and (whole["sex"] == "MALE").all()


def test_a_comparison_that_is_too_rare_says_so_as_rows_are_drawn(joints: list[jf.Joint]) -> None:
    rows = joints[0].given().sample_batches(10, 0, where="bill_length_mm > flipper_length_mm + body_mass_g")
    with pytest.raises(ValueError, match="too rare to be drawn"):
        next(rows)
    with pytest.raises(ValueError, match="got 'beak'"):
        joints[0].given().sample_batches(10, 0, where="bill_length_mm > beak")


def test_blocks_follow_the_distribution(joints: list[jf.Joint], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "DRAWS_AT_ONCE", 50)
    share = joints[0].given().proba("species")
    drawn = joints[0].sample(6000, 3)["species"].value_counts(normalize=True)
    for level, expected in share.items():
        assert abs(drawn[level] - expected) < 4 * np.sqrt(expected * (1 - expected) / 6000)


def test_several_rows_of_evidence(joints: list[jf.Joint], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "DRAWS_AT_ONCE", 10)
    known = joints[2].given(pd.DataFrame({"species": ["Gentoo", "Adelie", "Chinstrap"]}))
    drawn = known.sample(25, 1)
    assert drawn["species"].tolist() == [level for level in ("Gentoo", "Adelie", "Chinstrap") for _ in range(25)]
    with pytest.raises(ValueError, match="one row of evidence, got 3"):
        known.sample_batches(5)


@pytest.mark.parametrize("k", range(3))
def test_rows_filled_in_blocks_are_checked_as_in_one(
    joints: list[jf.Joint], k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last row alone is impossible; where nothing is drawn nothing is said of other rows."""
    monkeypatch.setattr(sampling, "DRAWS_AT_ONCE", 10)
    frame = pd.DataFrame({"species": ["Gentoo"] * 24 + ["Adelie"], "bill_length_mm": [np.nan] * 24 + [1e300]})
    with pytest.warns(jf.UnsupportedEvidenceWarning, match="1 of 25 rows"):
        filled = joints[k].impute(frame, method="sample", random_state=0)
    assert filled["bill_length_mm"].notna().all() and (filled["species"] == frame["species"]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(joints[k].given(frame[:24]).sample(0)) == 0
