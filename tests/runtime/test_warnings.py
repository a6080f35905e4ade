"""Where warnings point to."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import jointforest as jf


@pytest.fixture(scope="module")
def joint() -> jf.Joint:
    """A joint whose answers about a sum are estimates."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(np.round(rng.gamma(2.0, 3_000.0, (300, 3)), 2), columns=list("abc"))
    frame["total"] = (frame["a"] + frame["b"] + frame["c"]).round(2)
    return jf.HiddenTreeForest(n_states=4, max_iter=1, rules=["total = a + b + c"], random_state=0).fit(frame).joint_


@pytest.mark.parametrize(
    "ask",
    [
        lambda joint: joint.given(total=9_000.0).mean("a"),
        lambda joint: joint.given(total=9_000.0).quantile("b", 0.5),
        lambda joint: joint.probability("total = 9000"),
        lambda joint: joint.query("P(a > 3000 | total > 9000)"),
        lambda joint: joint.log_density(pd.DataFrame({"total": [9_000.0]})),
        lambda joint: joint.impute(pd.DataFrame({"total": [9_000.0]}).reindex(columns=["a", "b", "c", "total"])),
        lambda joint: joint.given(total=9_000.0).sample(3, random_state=0),
    ],
)
def test_warnings_of_estimates_point_to_the_caller(joint: jf.Joint, ask) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask(joint)
    caught = [one for one in caught if issubclass(one.category, jf.EstimatedAnswerWarning)]
    assert caught
    assert {one.filename for one in caught} == {__file__}


def test_unsupported_rows_of_a_frame_are_named_once() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "y": rng.normal(size=200)})
    joint = jf.AdversarialForest(n_estimators=3, random_state=0).fit(frame).joint_
    given = joint.given(pd.DataFrame({"x": [0.0, 1e6, 1e7]}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        given.mean("y")
        given.quantile("y", 0.5)
        given.probability("y > 0")
    (one,) = [one for one in caught if issubclass(one.category, jf.UnsupportedEvidenceWarning)]
    assert "2 of 3 rows" in str(one.message) and one.filename == __file__
