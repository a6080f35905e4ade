"""Histograms as users ask for them: bins that stay, dates, levels, frames, mixtures, errors."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.api.joint import Joint

from ..random_cases.hidden_parts import ALL, INSIDE, hidden_joint, mixed_joint, small_table

pytestmark = pytest.mark.smoke  # runs on wheels

EVIDENCE = [
    {},
    {"place": "there"},
    {"size": jf.between(1, 4), "flag": [True]},
    {"grade": 2, "place": jf.likely({"here": 1.0, "there": 0.25})},
    {"size": jf.about(3, sd=1.0)},
]


@cache
def joints() -> dict[str, Joint]:
    frame = small_table(0)
    forest = jf.AdversarialForest(n_estimators=3, random_state=0).fit(frame).joint_
    tree = jf.JointTree(random_state=0).fit(frame).joint_
    return {"forest": forest, "tree": tree, "hidden": hidden_joint(frame, 3), "mixed": mixed_joint(frame, 3)}


def likelihood(said: object, x: object) -> float:
    """How likely evidence is where its column is x."""
    if isinstance(said, jf.Interval):
        return float(said.lo <= x <= said.hi)
    if isinstance(said, list):
        return float(x in said)
    if hasattr(said, "likelihoods"):
        return dict(said.likelihoods).get(x, 0.0)
    if hasattr(said, "sd"):
        return float(np.exp(-0.5 * ((x - said.value) / said.sd) ** 2))
    return float(x == said)


@pytest.mark.parametrize("name", ["forest", "tree", "hidden", "mixed"])
@pytest.mark.parametrize("known", EVIDENCE, ids=str)
def test_all_columns_are_sums_over_rows(name: str, known: dict) -> None:
    joint = joints()[name].condition(INSIDE)
    p = np.exp(joint.log_density(ALL)) * np.prod([[likelihood(s, x) for x in ALL[c]] for c, s in known.items()], axis=0)
    for column, marginal in joint.given(known).marginals().items():
        found = marginal.histogram(4)
        if column in ("size", "grade"):
            bins = np.searchsorted(found.edges[1:-1], ALL[column])
            assert (np.diff(found.edges) == found.edges[1] - found.edges[0]).all() and found.edges[0] % 1 == 0.5
        else:
            bins = ALL[column].map(found.edges.index).to_numpy()
        truth = np.bincount(bins, p / p.sum(), len(found.mass))
        np.testing.assert_allclose(found.mass, truth, rtol=1e-6, atol=1e-9)
        assert found.mass.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("name", ["forest", "tree", "mixed"])
def test_frames_have_a_row_each_with_the_same_bins(name: str) -> None:
    joint = joints()[name]
    frame = pd.DataFrame({"place": ["here", None, "there"], "grade": [3, None, 0], "flag": [None, True, None]})
    frame = frame.astype({"grade": "Float64", "flag": "boolean"})
    for column, marginal in joint.given(frame).marginals().items():
        found = marginal.histogram(3)
        assert found.mass.shape == (3, len(found.edges) - (column in ("size", "grade")))
        for i, known in enumerate(({"place": "here", "grade": 3}, {"flag": True}, {"place": "there", "grade": 0})):
            one = joint.given(known).marginal(column).histogram(3)
            np.testing.assert_array_equal(one.edges, found.edges)
            np.testing.assert_allclose(one.mass, found.mass[i], rtol=1e-6, atol=1e-9)


def test_numbers_dates_and_atoms_stay_in_the_bins_of_the_table() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    frame = pd.DataFrame(
        {
            "x": x,
            "paid": np.where(rng.random(400) < 0.4, 0.0, np.exp(x)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.round(5 * x + 40), unit="D"),
            "one": np.full(400, 7.5),
        }
    )
    frame.loc[::7, "x"] = np.nan
    for joint in (
        jf.AdversarialForest(n_estimators=3, random_state=0).fit(frame).joint_,
        hidden_joint(frame, 1, n_bins=6),
    ):
        for known in ({}, {"x": jf.Interval(0.1, None)}, {"paid": jf.Not(0.0)}, {"day": "2024-02-12"}, {"x": 1.5}):
            given = joint.given(known)
            for name in ("x", "paid", "day"):
                found, marginal = given.marginal(name).histogram(7), given.marginal(name)
                np.testing.assert_array_equal(found.edges, joint.marginal(name).histogram(7).edges)
                assert len(found.mass) == len(found.edges) - 1 <= 7
                assert found.edges[0] <= frame[name].min() and found.edges[-1] >= frame[name].max()
                want = np.diff(marginal.cdf(found.edges[1:-1]), prepend=0.0, append=1.0)
                np.testing.assert_allclose(found.mass, want, rtol=1e-6, atol=1e-9)
            wide = given.marginal("one").histogram(1)
            assert wide.mass.tolist() == [1.0] and wide.edges[0] < 7.5 < wide.edges[1]
        days = pd.to_datetime(["2024-01-20", "2024-02-10", "2024-03-01"])
        found = joint.marginal("day").histogram(days)
        assert found.edges.dtype.kind == "M" and (found.edges == days).all()
        assert found.mass[0] == pytest.approx(joint.probability("day <= '2024-02-10'"), rel=1e-6)


def test_what_is_no_bins_is_refused() -> None:
    joint = joints()["forest"]
    for bins in (0, -3, 2.5, True, "many", None):
        with pytest.raises(ValueError, match="bins must be an integer of 1 to"):
            joint.marginal("size").histogram(bins)
    for bins in ([], [1.0], [2.0, 1.0], [1.0, 1.0], [0.0, np.nan], [[0.0, 1.0], [2.0, 3.0]]):
        with pytest.raises(ValueError, match="column 'size': edges of bins must ascend"):
            joint.marginal("size").histogram(bins)
    with pytest.raises(ValueError, match="each level is a bin"):
        joint.marginal("place").histogram(["here", "there"])
