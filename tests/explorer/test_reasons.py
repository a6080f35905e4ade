"""Reasons of a prediction: Shapley values by their definition."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from jointforest.explorer import questions
from jointforest.explorer.questions import answer
from jointforest.explorer.shown import ShownJoint
from jointforest.inference.shapley import make_plan

from . import tables

SAID = {"age": "age >= 40", "size": "size = 'M'", "price": "price is missing"}


def by_orders(value: Any, n: int) -> np.ndarray:
    """Shapley values as the mean over all orders."""
    amounts = np.zeros(n)
    for order in itertools.permutations(range(n)):
        for place, k in enumerate(order):
            before = frozenset(order[:place])
            amounts[k] += (value(before | {k}) - value(before)) / math.factorial(n)
    return amounts


@pytest.mark.parametrize("name", tables.JOINTS)
@pytest.mark.parametrize("column", ["member", "x"])
def test_amounts_are_shapley_values_of_the_posterior(name: str, column: str) -> None:
    joint = tables.JOINTS[name]()
    shown = ShownJoint(joint)
    j = joint.columns.index(column)
    text = " and ".join(SAID.values())
    status, found = answer(shown, "reasons", {"evidence": {"text": text}, "column": j})
    assert status == 200 and found["is_exact"]
    names = list(SAID)

    def value(some: frozenset[int]) -> float:
        given = joint.given(" and ".join(SAID[names[k]] for k in sorted(some))) if some else joint.given()
        if column == "x":
            return float(given.mean("x"))
        return float(given.proba("member")[found["level"] == "True"])

    expected = dict(zip(names, by_orders(value, 3), strict=True))
    assert {step["name"]: step["by"] for step in found["steps"]} == pytest.approx(expected, abs=1e-9)
    assert found["base"] + sum(expected.values()) == pytest.approx(found["value"])
    sizes = [abs(step["by"]) for step in found["steps"]]
    assert sizes == sorted(sizes, reverse=True)


def test_of_many_pieces_subsets_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates add up to the change of the prediction, and are near the exact amounts."""
    joint = tables.hidden()
    shown = ShownJoint(joint)
    text = " and ".join([*SAID.values(), "member = True"])
    body = {"evidence": {"text": text}, "column": joint.columns.index("x")}
    exact = answer(shown, "reasons", body)[1]
    monkeypatch.setattr(questions, "EXACT", 2)
    monkeypatch.setattr(questions, "make_plan", lambda p, m, seed: make_plan(p, 14, seed))
    found = answer(shown, "reasons", body)[1]
    assert exact["is_exact"] and not found["is_exact"]
    amounts, wanted = ({step["name"]: step["by"] for step in of["steps"]} for of in (found, exact))
    assert found["base"] + sum(amounts.values()) == pytest.approx(found["value"])
    largest = max(map(abs, wanted.values()))
    assert amounts == pytest.approx(wanted, abs=0.5 * largest)


def test_without_evidence_on_another_column_it_says_so() -> None:
    shown = ShownJoint(tables.hidden())
    j = tables.hidden().columns.index("member")
    status, found = answer(shown, "reasons", {"evidence": {"text": "member = True"}, "column": j})
    assert status == 400 and "give evidence on another column" in found["error"]
