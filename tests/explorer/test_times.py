"""Times that are not over in some rows: what is shown of them is learned, and their rows are not counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jointforest as jf
from jointforest.explorer import answers, panels
from jointforest.explorer.shown import ShownJoint

from .tables import contracts, contracts_joint

MONTHS = 1


@pytest.fixture(scope="module")
def shown() -> ShownJoint:
    assert contracts_joint().columns[MONTHS] == "months"
    return ShownJoint(contracts_joint(), rows=contracts())


def ask(shown: ShownJoint, text: str, is_exact: bool = True) -> Any:
    return answers.posterior(shown, {"evidence": {"text": text}, "exact": is_exact})


def test_bins_are_those_of_the_survival_function(shown: ShownJoint) -> None:
    column = answers.table(shown, {})["columns"][MONTHS]
    last = contracts().loc[contracts()["ended"], "months"].max()
    assert column["until"] == pytest.approx(last) and column["beyond"][1]
    edges = np.array(column["edges"])
    within = edges[1:] <= last
    for text in ("", "plan = pro"):
        mass = ask(shown, text)["columns"][MONTHS]["mass"]
        wanted = contracts_joint().given(text or None).survival("months", edges[1:][within].tolist())
        assert 1.0 - np.cumsum(mass)[within] == pytest.approx(np.asarray(wanted), abs=1e-6)


@pytest.mark.parametrize("is_exact", [True, False])
def test_no_number_rests_on_what_is_not_learned(shown: ShownJoint, is_exact: bool) -> None:
    until = answers.table(shown, {})["columns"][MONTHS]["until"]
    pro, basic = (ask(shown, f"plan = {plan}", is_exact)["columns"][MONTHS] for plan in ("pro", "basic"))
    with pytest.warns(jf.NotLearnedWarning):
        assert contracts_joint().given("plan = pro").quantile("months", 0.95) == np.inf
    assert pro["mean"] is None and pro["high"] == until and pro["low"] < until
    early = ask(shown, "months <= 10", is_exact)["columns"][MONTHS]
    wanted = contracts_joint().given("months <= 10").mean("months")
    assert early["mean"] == pytest.approx(wanted, abs=1e-9 if is_exact else 0.2) and basic["low"] < pro["low"]


def test_rows_with_ranges_are_not_counted(shown: ShownJoint) -> None:
    rows = contracts()
    found = ask(shown, "plan = pro")
    assert found["support"].startswith(f"{(rows['plan'] == 'pro').sum()} rows of the table")
    assert found["columns"][MONTHS]["rows"] is None and found["columns"][0]["rows"] == [0.0, 1.0]
    assert "rows of the table" not in ask(shown, "months > 12")["support"]
    with pytest.raises(ValueError, match="column with ranges"):
        panels.rows(shown, {"evidence": {"text": "months > 12"}, "table": True})
    listed = panels.rows(shown, {"table": True, "n": 50})
    months, seats = (listed["columns"].index(name) for name in ("months", "seats"))
    for i, texts in zip(listed["numbers"], listed["rows"], strict=True):
        time = rows["months"].iloc[i]
        assert (texts[months] or "").startswith("…") != rows["ended"].iloc[i]
        assert float((texts[months] or "").split()[-1]) == pytest.approx(time)
        assert ("…" in (texts[seats] or "")) == (rows["seats"].iloc[i] == "9+")
    assert panels.row(shown, {"row": 0})["cells"]
