"""Known sums whose parts are all parts of another sum, beside all rows of the table and their probabilities."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.evidence import build
from jointforest.models.ruled import translate
from jointforest.models.ruled.ruled import RuledDistribution

from ...random_cases.ruled_joints import Tally, all_rows, compare_given, random_evidence

N = 500
KINDS = ("a sum", "twice a sum", "less a sum", "two orders")


def _table(kind: str, seed: int) -> tuple[pd.DataFrame, list[str]]:
    rng = np.random.default_rng(seed)
    a, c = rng.integers(0, 5, N), rng.integers(0, 4, N)
    b = np.minimum(rng.poisson(0.5 + 0.5 * a), 5)
    side = np.where(rng.random(N) < 0.2 + 0.15 * a, "u", "v")
    t = a + b - 1
    if kind == "two orders":
        return pd.DataFrame({"first": a, "second": a + b, "third": a + c, "side": side}), [
            "first <= second",
            "first <= third",
        ]
    other, rule = {
        "a sum": (t + c, "w = t + c"),
        "twice a sum": (2 * t + 3 * c, "w = 2 * t + 3 * c"),
        "less a sum": (c - t, "w = c - t"),
    }[kind]
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "t": t, "w": other, "side": side})
    return frame, ["t = a + b - 1", rule]


@cache
def _joint(kind: str, seed: int) -> jf.Joint:
    frame, rules = _table(kind, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = jf.HiddenTreeForest(n_states=4, max_iter=3, max_leaf_nodes=1, rules=rules, random_state=0)
        return learner.fit(frame).joint_


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("few", [translate.FEW_PLACES, 0])
def test_all_answers(kind: str, seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate, "FEW_PLACES", few)
    joint = _joint(kind, seed)
    rows = all_rows(joint)
    assert rows is not None
    rng, tally = np.random.default_rng(seed), Tally()
    for _ in range(8):
        said = random_evidence(joint, rows, rng, int(rng.integers(2, 5)))
        compare_given(joint, rows, said, rng, tally, f"{kind} {seed}, given {said}")
    assert tally.made > 60
    assert tally.wrong == []


@pytest.mark.parametrize("kind", KINDS[:3])
def test_two_known_sums_leave_one_of_two_parts(kind: str) -> None:
    """The row is one row about the coordinates, with one sum beside it; no grid is added up."""
    frame, _ = _table(kind, 0)
    model = _joint(kind, 0).distribution
    assert isinstance(model, RuledDistribution)
    said = {name: float(frame[name].iloc[0]) for name in ("t", "w")}
    ((_, rows),) = model.rows(build(model.schema, conditions=said))
    assert rows.is_one_each
    assert rows.cells.pending.sum() == 1
    assert rows.cells.value[0, model.coordinates.plain[frame.columns.get_loc("c")]] == frame["c"].iloc[0]
