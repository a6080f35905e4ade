"""Joint trees of odd tables: questions that published code answers wrongly, against counts of the table itself."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointforest as jf
from jointforest.runtime.threads import map_ordered, use_jobs

pytestmark = pytest.mark.smoke  # runs on wheels

RNG = np.random.default_rng(0)
N = 4000
GROUP = RNG.integers(0, 2, N)
TABLE = pd.DataFrame(
    {
        "size": np.round(RNG.normal(10 * GROUP, 1.0, N), 6) + 20.0,
        "dose": np.where(RNG.random(N) < 0.5, 0.0, RNG.gamma(2.0, 3.0, N)),  # half is tied at the minimum
        "code": np.where(RNG.random(N) < 0.3, 5.0, RNG.uniform(0.0, 10.0, N)),  # an atom inside
        "same": 7.25,
        "kind": np.where(GROUP == 1, "big", "small"),
    }
)


@pytest.fixture(scope="module")
def joint() -> jf.Joint:
    return jf.JointTree(min_samples_leaf=0.05, epsilon=0.0, random_state=0).fit(TABLE).joint_


def share(rows: pd.Series) -> float:
    return float(rows.mean())


def test_the_same_column_in_query_and_evidence(joint: jf.Joint) -> None:
    assert joint.probability("size > 25", given="size > 22") == pytest.approx(
        share(TABLE["size"] > 25) / share(TABLE["size"] > 22), abs=0.02
    )
    assert joint.probability("size < 21", given="size > 22") == 0.0
    assert joint.given("size > 22").proba("kind")["big"] > joint.given().proba("kind")["big"]
    assert joint.given("kind = 'big'").proba("kind")["big"] == pytest.approx(1.0, abs=1e-12)


def test_unions_of_intervals_are_cropped_with_their_weights(joint: jf.Joint) -> None:
    union = "size <= 20 or size > 30"
    held = TABLE[(TABLE["size"] <= 20) | (TABLE["size"] > 30)]
    posterior = joint.given(union)
    assert joint.probability(union) == pytest.approx(len(held) / N, abs=0.02)
    assert posterior.probability("size > 30") == pytest.approx(share(held["size"] > 30), abs=0.02)
    assert posterior.mean("size") == pytest.approx(held["size"].mean(), abs=0.1)
    draws = posterior.sample(2000, random_state=0)["size"]
    assert ((draws <= 20) | (draws > 30)).all()
    assert share(draws > 30) == pytest.approx(share(held["size"] > 30), abs=0.05)


def test_half_of_a_column_tied_at_its_minimum(joint: jf.Joint) -> None:
    assert joint.probability("dose = 0") == pytest.approx(share(TABLE["dose"] == 0), abs=0.01)
    below = joint.probability("dose < 0")  # a leaf keeps a row's mass beyond its values
    assert 0 <= below < 1e-3
    assert joint.probability("dose <= 0") - below == pytest.approx(joint.probability("dose = 0"), abs=1e-12)
    assert joint.given().quantile("dose", 0.25) == 0.0
    assert joint.given("dose > 0").mean("dose") == pytest.approx(TABLE["dose"][TABLE["dose"] > 0].mean(), rel=0.05)


def test_an_atom_inside(joint: jf.Joint) -> None:
    assert joint.probability("code = 5") == pytest.approx(share(TABLE["code"] == 5), abs=0.01)
    assert joint.probability("code <= 5") - joint.probability("code < 5") == pytest.approx(
        joint.probability("code = 5"), abs=1e-12
    )
    assert joint.given("code > 4 and code < 6").probability("code = 5") == pytest.approx(
        share(TABLE["code"] == 5) / share((TABLE["code"] > 4) & (TABLE["code"] < 6)), abs=0.02
    )


def test_all_equal_values(joint: jf.Joint) -> None:
    assert joint.probability("same = 7.25") == pytest.approx(1.0, abs=1e-9)
    assert joint.given(kind="big").mean("same") == pytest.approx(7.25)
    assert np.isfinite(joint.log_density(TABLE.head(50))).all()


def test_a_level_never_seen(joint: jf.Joint) -> None:
    with pytest.raises(ValueError, match="huge"):
        joint.probability("kind = 'huge'")
    row = TABLE.head(1).assign(kind="huge")
    with pytest.warns(jf.UnseenLevelWarning, match="huge"):
        unseen = joint.log_density(row)[0]
    assert np.isfinite(unseen) and unseen < joint.log_density(row.assign(kind=None))[0]


def test_evidence_that_no_row_met() -> None:
    joint = jf.JointTree(min_samples_leaf=0.05, random_state=0).fit(TABLE).joint_
    assert 0 < joint.probability("size > 1000") < 1e-3
    with pytest.warns(jf.UnsupportedEvidenceWarning):
        assert np.isfinite(joint.given("size > 1000").mean("dose"))
    bare = jf.JointTree(min_samples_leaf=0.05, epsilon=0.0, random_state=0).fit(TABLE).joint_
    assert bare.probability("size > 1000") == 0.0
    with pytest.raises(ValueError, match="probability 0"):
        bare.given("size > 1000").mean("dose")


def test_a_worker_that_fails_is_an_error() -> None:
    def work(item: int) -> int:
        if item == 3:
            raise RuntimeError("worker 3")
        return item

    start = time.monotonic()
    with pytest.raises(RuntimeError, match="worker 3"), use_jobs(4):
        list(map_ordered(work, [(i,) for i in range(100)]))
    assert time.monotonic() - start < 60


@given(st.floats(15, 35), st.floats(0.1, 20))
@settings(max_examples=30, deadline=None)
def test_an_event_and_its_opposite_sum_to_one(joint: jf.Joint, cut: float, dose: float) -> None:
    low, high = joint.probability(f"size <= {cut!r}"), joint.probability(f"size > {cut!r}")
    assert low + high == pytest.approx(1.0, abs=1e-10)
    parts = [joint.probability(f"size > {cut!r} and dose {sign} {dose!r}") for sign in ("<=", ">")]
    assert sum(parts) == pytest.approx(high, abs=1e-10)
