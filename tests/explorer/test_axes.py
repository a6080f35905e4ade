"""Cards on other axes: a part of the range, and logarithmic ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jointforest.explorer import answers
from jointforest.explorer.shown import ShownJoint, from_shown

from .tables import JOINTS, frame, heavy, heavy_frame


def asked(joint: Any, rows: Any, column: str, axis: dict[str, Any], text: str = "") -> dict[str, Any]:
    """The answer of one column on another axis, and its edges as the joint has them."""
    j = list(joint.columns).index(column)
    body = {"evidence": {"text": text}, "columns": [j], "axes": [{"column": j, **axis}]}
    (found,) = answers.posterior(ShownJoint(joint, rows=rows), body)["columns"]
    return found | {"at": np.array([from_shown(joint.schema.columns[j], x) for x in found["edges"]])}


@pytest.mark.parametrize("name", JOINTS)
@pytest.mark.parametrize(("column", "low", "high"), [("age", 30, 49), ("x", 0.0, 2.0), ("spend", 0.0, 10.0)])
@pytest.mark.parametrize("text", ["", "size = L"])
def test_bins_of_a_part_of_the_range(name: str, column: str, low: float, high: float, text: str) -> None:
    joint = JOINTS[name]()
    found = asked(joint, frame(), column, {"low": low, "high": high}, text)
    given = joint.given(text or None)
    found["at"][0] = np.nextafter(found["at"][0], -np.inf)  # both ends are in
    below = given.marginal(column).cdf(found["at"])
    assert np.diff(below) == pytest.approx(found["mass"], abs=1e-6)
    assert sum(found["mass"]) + sum(found["outside"]) == pytest.approx(1.0, abs=1e-6)
    assert sum(found["mass"]) == pytest.approx(given.probability(f"{low} <= {column} <= {high}"), abs=1e-6)
    values = frame().query("size == 'L'" if text else "size == size")[column]
    counted = ((values >= low) & (values <= high)).mean()
    assert sum(found["rows"]) == pytest.approx(counted)
    usual = answers.posterior(ShownJoint(joint), {"evidence": {"text": text}, "columns": [joint.columns.index(column)]})
    for key in ("mean", "low", "high", "moved"):  # do not depend on how the column is shown
        assert found[key] == usual["columns"][0][key]


@pytest.mark.parametrize("column", ["claim", "count"])
def test_logarithmic_axes(column: str) -> None:
    joint = heavy()
    found = asked(joint, heavy_frame(), column, {"log": True}, "group = b")
    edges = found["at"]
    assert (np.diff(edges) > 0.0).all() and 10 <= len(edges) <= 42
    assert sum(found["mass"]) == pytest.approx(1.0, abs=1e-6) and found["outside"] == []
    assert sum(found["rows"]) == pytest.approx(1.0)
    ratio = edges[2:] / edges[1:-1]
    assert ratio.max() < 3.1 and (column == "count" or ratio.min() > 1.2)
    first = float(edges[1])
    assert found["mass"][0] == pytest.approx(joint.given("group = b").probability(f"{column} <= {first}"), abs=1e-6)
    assert found["mass"][0] >= joint.given("group = b").probability(f"{column} = 0") - 1e-6


def test_which_columns_have_a_heavy_tail() -> None:
    columns = answers.table(ShownJoint(heavy()), {})["columns"]
    assert {c["name"]: c["heavy"] for c in columns} == {"claim": True, "count": True, "age": False, "group": False}
    wide = answers.table(ShownJoint(JOINTS["forest"]()), {})["columns"]
    assert not any(c["heavy"] for c in wide if c["name"] in ("x", "age", "price", "day", "at"))


@pytest.mark.parametrize(
    ("axes", "part"),
    [
        ({"column": 0}, "axes: expected a list of objects"),
        ([{"column": 9, "log": True}], "axes: expected a place of 0 to 3"),
        ([{"column": 2, "log": True}], "column 'age' has no such axis"),
        ([{"column": 3, "low": 1, "high": 2}], "column 'group' has no such axis"),
        ([{"column": 2, "low": 30, "high": 20}], "column 'age': expected a low and a high end, got"),
        ([{"column": 2, "low": None, "high": 20}], "column 'age': expected a low and a high end, got"),
        ([{"column": 2, "low": 20, "high": "b"}], "column 'age': expected a low and a high end, got"),
    ],
)
def test_axes_that_cannot_be(axes: Any, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        answers.posterior(ShownJoint(heavy()), {"axes": axes})
