"""The joint distribution of two columns in bins, against sums over all rows of a small table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jointforest as jf

from ..random_cases.hidden_parts import ALL, INSIDE, hidden_joint, mixed_joint, small_table

pytestmark = pytest.mark.smoke  # runs on wheels

EVIDENCE = [{}, {"place": "there"}, {"size": jf.between(1, 3)}, {"grade": 2, "place": ["here", "nowhere"]}]


@pytest.mark.parametrize("make", [hidden_joint, mixed_joint])
@pytest.mark.parametrize("known", EVIDENCE, ids=str)
@pytest.mark.parametrize(("a", "b"), [("place", "flag"), ("size", "place"), ("place", "size"), ("grade", "size")])
def test_pairs_are_sums_over_rows(make, known: dict, a: str, b: str) -> None:
    given = make(small_table(0), 3).given({**INSIDE, **known})
    found = given.pair(a, b, bins=4)
    p = np.exp(make(small_table(0), 3).log_density(ALL))
    for name, said in {**INSIDE, **known}.items():
        inside = (
            ALL[name].between(said.lo, said.hi) if isinstance(said, jf.Interval) else ALL[name].isin(np.ravel(said))
        )
        p = p * inside.to_numpy()
    bins = [
        np.searchsorted(edges, ALL[name]) if name in ("size", "grade") else ALL[name].map(edges.index).to_numpy()
        for name, edges in ((a, found.a), (b, found.b))
    ]
    truth = np.zeros(found.probability.shape)
    np.add.at(truth, tuple(bins), p / p.sum())
    np.testing.assert_allclose(found.probability, truth, atol=1e-9)


def test_dates_and_numbers() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.round(5 * x + 40), unit="D")
    for joint in (
        hidden_joint(pd.DataFrame({"x": x, "day": day}), 1, n_bins=6),
        jf.JointTree(random_state=0).fit(pd.DataFrame({"x": x, "day": day})).joint_,
    ):
        found = joint.given().pair("day", "x", bins=6)
        assert found.a.dtype.kind == "M" and len(found.b) == 5
        assert found.probability.sum() == pytest.approx(1.0, abs=1e-9)
        np.testing.assert_allclose(
            found.probability.sum(axis=0).cumsum()[:-1], joint.given().marginal("x").cdf(found.b), atol=1e-9
        )
        np.testing.assert_allclose(
            found.probability.sum(axis=1).cumsum()[:-1], joint.given().marginal("day").cdf(found.a), atol=1e-9
        )
        other = joint.given().pair("x", "day", bins=6)
        np.testing.assert_allclose(other.probability.T, found.probability, atol=1e-9)


def test_what_is_no_pair_is_refused() -> None:
    joint = hidden_joint(small_table(0), 3)
    with pytest.raises(ValueError, match="'size' twice"):
        joint.given().pair("size", "size")
    with pytest.raises(ValueError, match="no column 'siz'"):
        joint.given().pair("siz", "place")
    with pytest.raises(ValueError, match="bins"):
        joint.given().pair("size", "place", bins=1)
    with pytest.raises(ValueError, match="got 2 rows"):
        joint.given(small_table(0).head(2)).pair("size", "place")
    with pytest.raises(ValueError, match="probability 0"):
        joint.condition(INSIDE).given(size=30).pair("size", "place")
