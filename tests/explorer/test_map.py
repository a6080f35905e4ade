"""The map of columns, and which column would move a prediction most, beside sums of single answers."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

import jointforest as jf
from jointforest.explorer import panels
from jointforest.explorer.shown import ShownJoint
from jointforest.inference.information.divergence import column_map

from .tables import JOINTS, forest, frame

PLAIN = "x", "spend", "age", "price", "member", "size", "town"


def ask(question: Any, joint: jf.Joint, **body: Any) -> Any:
    return json.loads(json.dumps(question(ShownJoint(joint), body), allow_nan=False))


def classes(joint: jf.Joint, name: str, given: str) -> list[str]:
    """Conditions of a column's levels, or of bins of about equal probability of its numbers."""
    column = joint.schema.columns[joint.schema.index(name)]
    if column.is_categorical:
        return [f"`{name}` = {value!r}" if isinstance(value, str) else f"`{name}` = {value}" for value in column.levels]
    cuts = panels.class_cuts(joint.given(given or None).state, joint.schema.index(name), panels.CHANGE_BINS).tolist()
    middle = [f"{low!r} < `{name}` <= {high!r}" for low, high in itertools.pairwise(cuts)]
    return [f"`{name}` <= {cuts[0]!r}", *middle, f"`{name}` > {cuts[-1]!r}"]


@pytest.mark.parametrize("name", JOINTS)
@pytest.mark.parametrize("given", ["", "age >= 40 and price is missing"])
@pytest.mark.parametrize("target", ["x", "size"])
def test_expected_changes_are_sums_over_classes(name: str, given: str, target: str) -> None:
    joint = JOINTS[name]()
    j = list(joint.columns).index(target)
    found = ask(panels.moves, joint, column=j, level=None if target == "x" else 1, evidence={"text": given})
    prior = joint.given(given or None)
    expected = prior.mean("x") if target == "x" else prior.proba("size")["M"]
    assert found["value"] == pytest.approx(expected)
    amounts = [one["by"] for one in found["columns"]]
    assert amounts == sorted(amounts, reverse=True)
    names = [joint.columns[one["column"]] for one in found["columns"]]
    assert set(names) == set(joint.columns) - {target} - ({"age", "price"} if given else set())
    for one, of in zip(found["columns"], names, strict=True):
        if of not in PLAIN:
            continue
        p, predicted = [], []
        for condition in classes(joint, of, given):
            text = " and ".join(part for part in (condition, given) if part)
            if not prior.probability(condition) > 0.0:
                continue
            p.append(prior.probability(condition))
            posterior = joint.given(text)
            predicted.append(posterior.mean("x") if target == "x" else posterior.proba("size")["M"])
        share = np.array(p) / sum(p)
        mean = share @ predicted
        assert one["by"] == pytest.approx(share @ np.abs(np.array(predicted) - mean), rel=1e-4, abs=1e-6)
        often = np.array(predicted)[share >= 0.01]
        assert (one["low"], one["high"]) == pytest.approx((often.min(), often.max()), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", JOINTS)
def test_the_map_has_the_information_of_the_joint(name: str) -> None:
    joint = JOINTS[name]()
    d = len(joint.columns)
    found = ask(panels.depends, joint, columns=list(range(d)))
    assert sorted(found["order"]) == list(range(d))
    for a, b, bits in found["edges"]:
        wanted = joint.mutual_information(joint.columns[a], joint.columns[b], bins=16).value
        assert bits == pytest.approx(wanted / math.log(2.0), abs=1e-6)
    few = ask(panels.depends, joint, columns=[0, 2, 6], evidence={"text": "size = L"})
    assert sorted(few["order"]) == [0, 2, 6] and {a for a, *_ in few["edges"]} <= {0, 2, 6}


def test_edges_of_a_map() -> None:
    rng = np.random.default_rng(0)
    bits = rng.random((9, 9))
    bits = np.triu(bits, 1) + np.triu(bits, 1).T
    bits[3] = bits[:, 3] = 0.0
    found = column_map(bits)
    pairs = {(i, j): x for i, j, x in found.edges}
    assert len(pairs) == len(found.edges) <= 2 * 9 - 1 and all(i < j and x == bits[i, j] for (i, j), x in pairs.items())
    assert not any(3 in pair for pair in pairs) and sorted(found.order) == list(range(9))
    strongest = sorted(((bits[i, j], (i, j)) for i in range(9) for j in range(i + 1, 9)), reverse=True)[:9]
    assert {pair for _, pair in strongest} <= set(pairs)
    reached, new = {0}, [0]  # all but the lonely one are joined
    while new:
        here = new.pop()
        near = {j if i == here else i for i, j in pairs if here in (i, j)} - reached
        reached |= near
        new += near
    assert reached == set(range(9)) - {3}


@pytest.mark.parametrize(
    ("question", "body", "part"),
    [
        (panels.depends, {"columns": [0]}, "columns: expected the places of 2 to 60 columns"),
        (panels.depends, {"columns": [0, 10]}, "columns: expected a place of 0 to 9"),
        (panels.moves, {}, "column: expected a place of 0 to 9"),
        (panels.moves, {"column": 8, "level": 3}, "level: expected a place of 0 to 2"),
    ],
)
def test_what_cannot_be_asked_of_a_map(question: Any, body: dict[str, Any], part: str) -> None:
    with pytest.raises(ValueError, match=part):
        question(ShownJoint(forest(), rows=frame()), body)
