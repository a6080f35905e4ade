"""Survival curves of groups, beside Kaplan-Meier."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest import plot
from jointforest.plot.predictions import kaplan_meier


def learned() -> tuple[jf.Joint, pd.DataFrame]:
    rng = np.random.default_rng(0)
    plan = rng.choice(["basic", "pro"], 300)
    months, until = rng.exponential(np.where(plan == "pro", 30, 10)), rng.uniform(1, 40, 300)
    frame = pd.DataFrame({"plan": plan, "months": np.minimum(months, until), "ended": months <= until})
    kinds = {"months": jf.censored(event="ended")}
    return jf.HiddenTreeForest(kinds=kinds, max_iter=2, n_states=8, random_state=0).fit(frame).joint_, frame


def test_curves_are_the_answers_and_steps_those_of_the_rows() -> None:
    joint, frame = learned()
    ax = plot.survival(joint, "months", ["plan = basic", "plan = pro"], frame, standard_errors=True)
    labels = [line.get_label() for line in ax.lines]
    assert labels == ["plan = 'basic'", "Kaplan-Meier", "plan = 'pro'", "Kaplan-Meier"] and len(ax.collections) == 2
    last = frame.loc[frame["ended"], "months"].max()
    for k, name in enumerate(("basic", "pro")):
        x, y = ax.lines[2 * k].get_data()
        assert x[0] == 0 and x[-1] == last
        np.testing.assert_allclose(y, joint.given(plan=name).survival("months", x), atol=1e-6)
        steps, share = ax.lines[2 * k + 1].get_data()
        rows = frame[frame["plan"] == name].sort_values("months")
        expected = 1.0
        for i, (month, ended) in enumerate(rows[["months", "ended"]].itertuples(index=False)):
            expected *= 1 - ended / (len(rows) - i)
            if ended and month < last:
                assert share[np.searchsorted(steps, month)] == pytest.approx(expected, abs=1e-6)
    assert len(plot.survival(joint, "months").lines) == 1
    assert plot.survival(joint, "months", until=12).lines[0].get_xdata()[-1] == 12


def test_kaplan_and_meier_by_hand() -> None:
    """Events at 1, 2 and 4; censored at 2 and 3, and a row whose group is known by half."""
    joint, _ = learned()
    rows = pd.DataFrame({"months": [1.0, 2, 2, 3, 4, 4], "ended": [True, True, False, False, True, True]})
    found = kaplan_meier(joint.given(rows).state.evidence, 1, np.array([1, 1, 1, 1, 1, 0.5]))
    assert found is not None
    at, share = found
    np.testing.assert_array_equal(at, [1, 2, 4])
    np.testing.assert_allclose(share, np.cumprod([1 - 1 / 5.5, 1 - 1 / 4.5, 0.0]))


def test_groups_without_rows_or_events() -> None:
    joint, frame = learned()
    groups = ["plan = basic", "plan = pro"]
    assert len(plot.survival(joint, "months", groups, frame[:0]).lines) == 2
    assert len(plot.survival(joint, "months", groups, frame[["plan"]]).lines) == 2
    basic = frame[frame["plan"] == "basic"]
    assert len(plot.survival(joint, "months", groups, basic).lines) == 3
    ax = plot.survival(joint, "months", frame=basic[~basic["ended"]])
    at, share = ax.lines[1].get_data()
    assert at[-1] == frame.loc[frame["ended"], "months"].max() and set(share) == {1.0}


def test_columns_and_groups_that_cannot_be_drawn() -> None:
    joint, _ = learned()
    with pytest.raises(ValueError, match="column 'plan' is categorical: it has no times"):
        plot.survival(joint, "plan")
    with pytest.raises(ValueError, match="groups must be a list"):
        plot.survival(joint, "months", "plan = pro")
