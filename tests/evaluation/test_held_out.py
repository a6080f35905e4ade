"""Held-out rows: log-density beside independence, and coverage, against the joint's own answers one by one."""

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.frames import encode
from jointforest.evaluation import held_out as module
from jointforest.evaluation.held_out import coverage, held_out

from .tables import table

JOINT = jf.JointTree(min_samples_leaf=0.05, random_state=0).fit(table(300, 0)).joint_
NEW = table(120, 1)
X, UNSEEN = encode(JOINT.schema, NEW)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_independence_is_the_product_of_the_joints_own_marginals() -> None:
    found = held_out(JOINT.distribution, X, UNSEEN, rng())
    alone = sum(JOINT.select(name).log_density(NEW[[name]]) for name in JOINT.columns)
    assert found.log_density == pytest.approx(JOINT.log_density(NEW).mean(), abs=1e-10)
    assert found.independent == pytest.approx(alone.mean(), abs=1e-10)
    assert found.log_density > found.independent and found.n_rows == 120 and found.impossible == 0.0


def test_many_values_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = held_out(JOINT.distribution, X, UNSEEN, rng())
    monkeypatch.setattr(module, "_MOST_CELLS", 60)
    monkeypatch.setattr(module, "_MOST_ROWS", 100)
    found = held_out(JOINT.distribution, X, UNSEEN, rng())
    assert found.n_rows == 100 and found.independent != exact.independent
    assert found.independent == pytest.approx(exact.independent, abs=0.5)


def test_levels_never_seen_cost_their_penalty_on_both_sides() -> None:
    new = NEW.copy()
    new["kind"] = "new"
    encoded = encode(JOINT.schema, new)
    found = held_out(JOINT.distribution, *encoded, rng())
    without = held_out(JOINT.distribution, encoded[0], np.zeros_like(encoded[1]), rng())
    penalty = JOINT.schema["kind"].log_unseen
    assert found.log_density - without.log_density == pytest.approx(penalty)
    assert found.independent - without.independent == pytest.approx(penalty)


def test_rows_of_density_0_are_counted() -> None:
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=50)})
    joint = jf.JointTree(epsilon=0, leaf="quantile", random_state=0).fit(frame).joint_
    rows = np.array([[0.0], [1e6]])
    found = held_out(joint.distribution, rows, np.zeros((2, 1), dtype=bool), rng())
    assert found.log_density == -np.inf and found.impossible == 0.5


def test_coverage_is_counted_on_the_joints_intervals() -> None:
    found = coverage(JOINT.distribution, X, UNSEEN, rng())
    assert found.n_rows == 120 and set(found.share) == {"x", "y", "count", "when"}
    for name, share in found.share.items():
        known = NEW[NEW[name].notna()]
        lo, hi = JOINT.given(known.drop(columns=name)).interval(name, 0.9)
        value = known[name].to_numpy().astype(lo.dtype)
        assert share == pytest.approx(np.mean((lo <= value) & (value <= hi)))


def test_intervals_that_are_too_narrow_come_first() -> None:
    wide = X.copy()
    wide[:, 0] *= 10.0
    found = coverage(JOINT.distribution, wide, UNSEEN, rng())
    assert next(iter(found.share)) == "x" and found.share["x"] < 0.6
