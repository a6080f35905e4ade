"""What the page is told equals what `Posterior` answers."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.explorer import answers, panels
from jointforest.explorer.shown import ShownJoint
from jointforest.explorer.state import ImpossibleEvidence

from .tables import JOINTS, NAMES, frame

EVIDENCE = [
    "",
    "age >= 40",
    "30 <= age <= 45 and member = true",
    "size != 'M' and price > 10",
    "spend = 0",
    "day >= '2024-04-05' and town in {'town 1', 'town 9'}",
    "price is missing",
    "town is not missing and x < 2",
    "x about 4 sd 1",
    "spend = 0 or spend > 20",
]


@cache
def shown(name: str) -> ShownJoint:
    return ShownJoint(JOINTS[name](), f"{name}.joint")


def asked(name: str, text: str, **more: Any) -> dict[str, Any]:
    """The answer, through JSON."""
    found = answers.posterior(shown(name), {"evidence": {"text": text}, **more})
    return json.loads(json.dumps(found, allow_nan=False))


def number(column: Any, value: Any) -> float:
    """What the page has for a value: dates in milliseconds since 1970."""
    if column.kind != "datetime":
        return float(value)
    moment = pd.Timestamp(value)
    return (moment if moment.tzinfo else moment.tz_localize("UTC")).timestamp() * 1e3


@pytest.mark.parametrize("name", JOINTS)
def test_the_table_names_all_columns_and_cuts(name: str) -> None:
    found = json.loads(json.dumps(answers.table(shown(name), {}), allow_nan=False))
    joint = JOINTS[name]()
    assert [c["name"] for c in found["columns"]] == list(joint.columns)
    assert found["title"] == f"{name}.joint" and found["rows"] is None and "10 columns" in found["said"]
    can_miss = {c["name"] for c in found["columns"] if c["can_miss"]}
    assert can_miss == {c for c in frame().columns if frame()[c].isna().any()}
    for c in found["columns"]:
        assert (c["levels"] is None) != (c["edges"] is None)
        if c["levels"] is not None:
            assert c["levels"] == list(joint.levels(c["name"])) and c["labels"] == [str(x) for x in c["levels"]]
        else:
            assert (np.diff(c["edges"]) > 0).all() and len(c["edges"]) <= 41
    said = {c["name"]: c for c in found["columns"]}
    assert said["at"]["zone"] == "Europe/Berlin" and said["day"]["zone"] is None
    assert said["day"]["step"] == 86_400_000 and said["x"]["step"] is None


@pytest.mark.parametrize("text", EVIDENCE)
@pytest.mark.parametrize("name", JOINTS)
def test_masses_are_the_posterior_s(name: str, text: str) -> None:
    found, known = asked(name, text), JOINTS[name]().given(text or None)
    assert found["log_probability"] <= 0 or found["probability"] is None
    for c, column in zip(found["columns"], JOINTS[name]().schema.columns, strict=True):
        assert sum(c["mass"]) == pytest.approx(1.0, abs=1e-6)
        if column.is_categorical:
            assert c["mass"] == pytest.approx(list(known.proba(column.name).values()), abs=1e-7)
            continue
        edges = shown(name).bins[column_place(name, column.name)].edges
        wanted = np.diff(known.state.cdf(column_place(name, column.name), edges[1:-1])[0], prepend=0.0, append=1.0)
        assert c["mass"] == pytest.approx(wanted.tolist(), abs=2e-6)


def column_place(name: str, column: str) -> int:
    return JOINTS[name]().schema.index(column)


@pytest.mark.parametrize("text", EVIDENCE)
@pytest.mark.parametrize("name", JOINTS)
def test_exact_numbers_are_the_posterior_s(name: str, text: str) -> None:
    found, known = asked(name, text, exact=True), JOINTS[name]().given(text or None)
    for c, column in zip(found["columns"], JOINTS[name]().schema.columns, strict=True):
        if column.kind == "boolean":
            assert c["mean"] == pytest.approx(known.mean(column.name)) and c["low"] is None and c["high"] is None
        elif column.kind == "ordered":
            levels = [column.levels[k] for k in (c["low"], c["high"])]
            assert levels == list(known.interval(column.name)) and c["mean"] is None
        elif column.is_categorical:
            assert c["mean"] is None and c["low"] is None and c["high"] is None
        else:
            wanted = [known.mean(column.name), *known.interval(column.name)]
            assert [c["mean"], c["low"], c["high"]] == pytest.approx([number(column, x) for x in wanted], rel=1e-9)


@pytest.mark.parametrize("text", EVIDENCE)
@pytest.mark.parametrize("name", JOINTS)
def test_fast_numbers_are_near_the_exact_ones(name: str, text: str) -> None:
    fast, exact = asked(name, text), asked(name, text, exact=True)
    table = answers.table(shown(name), {})["columns"]
    for about, a, b in zip(table, fast["columns"], exact["columns"], strict=True):
        assert a["mass"] == b["mass"] and a["moved"] == b["moved"] and a["missing"] == b["missing"]
        if about["edges"] is not None:
            bins = 2.5 * max(np.diff(about["edges"]).max(), about["step"] or 0.0)
            ends = about["edges"][0], about["edges"][-1]
            fast_, exact_ = (np.clip([x["mean"], x["low"], x["high"]], *ends) for x in (a, b))
            assert np.abs(fast_ - exact_).max() <= bins


@pytest.mark.parametrize("name", JOINTS)
@pytest.mark.parametrize("text", ["", "age >= 40", "price is missing", "x < 2 and size = S", "town is not missing"])
def test_shares_of_missing_cells(name: str, text: str) -> None:
    found, known = asked(name, text), JOINTS[name]().given(text or None)
    for c, column in zip(found["columns"], JOINTS[name]().schema.columns, strict=True):
        if column.name in text and "missing" in text:
            assert c["missing"] == (0.0 if "not" in text else 1.0)
        elif column.name in ("price", "town"):
            assert c["missing"] == pytest.approx(known.probability({column.name: jf.Missing()}), rel=1e-6)
        else:
            assert c["missing"] is None


TABLE_EVIDENCE = {
    "": lambda rows: rows["x"] == rows["x"],
    "age >= 40": lambda rows: rows["age"] >= 40,
    "30 <= age <= 45 and member = true": lambda rows: rows["age"].between(30, 45) & rows["member"],
    "size != 'M' and price > 10": lambda rows: (rows["size"] != "M") & (rows["price"] > 10.0),
    "spend = 0 or spend > 20": lambda rows: (rows["spend"] == 0.0) | (rows["spend"] > 20.0),
    "day >= '2024-04-05' and town in {'town 1', 'town 9'}": lambda rows: (
        (rows["day"] >= "2024-04-05") & rows["town"].isin(["town 1", "town 9"])
    ),
    "price is missing": lambda rows: rows["price"].isna(),
    "town is not missing and x < 2": lambda rows: rows["town"].notna() & (rows["x"] < 2.0),
}


@pytest.mark.parametrize("text", TABLE_EVIDENCE)
def test_the_rows_of_the_table_stand_beside_the_joint(text: str) -> None:
    beside = ShownJoint(JOINTS["forest"](), rows=frame())
    found = answers.posterior(beside, {"evidence": {"text": text}})
    met = frame()[TABLE_EVIDENCE[text](frame())]
    if text:
        expected = len(frame()) * beside.joint.probability(text)
        said = re.fullmatch(r"(\d+) rows of the table, where the joint expects (\d+)", found["support"])
        assert said is not None and int(said[1]) == len(met)
        assert text.count("missing") or abs(int(said[2]) - expected) <= 0.3 * expected + 2.0
    for one, column, bins in zip(found["columns"], beside.columns, beside.bins, strict=True):
        cells = met[column.name].dropna()
        if column.is_categorical:
            counts = np.array([(cells == level).sum() for level in column.levels])
        else:
            numbers = np.array([column.to_number(value) for value in cells])
            counts = np.histogram(np.clip(numbers, bins.edges[0], bins.edges[-1]), bins.edges)[0]
            assert column.step > 0.0 or np.abs(np.array(one["rows"]) * len(cells) - counts).sum() <= 2.0
            if column.step == 0.0:
                continue  # ends of bins belong to the lower one
        np.testing.assert_allclose(one["rows"], counts / max(len(cells), 1), atol=1e-9)
    assert answers.posterior(shown("forest"), {"evidence": {"text": text}})["columns"][0]["rows"] is None


@cache
def gaps() -> ShownJoint:
    """A joint of columns that are missing together: a and b always, c nearly always, more often where x is great."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=1_500)
    gone = rng.random(len(x)) < 0.6 / (1.0 + np.exp(-2.0 * x))
    table = pd.DataFrame({"x": x, "a": x + rng.normal(size=len(x)), "b": rng.normal(size=len(x)), "c": np.round(5 * x)})
    table.loc[gone, ["a", "b"]] = np.nan
    table.loc[gone ^ (rng.random(len(x)) < 0.1), "c"] = np.nan
    return ShownJoint(jf.HiddenTreeForest(n_states=8, max_iter=5, random_state=0).fit(table).joint_)


@pytest.mark.parametrize(
    "text", ["a >= 0.5", "c >= 2 and x > 0", "b is not missing", "a > 0 and c is missing", "c = 3"]
)
def test_evidence_on_a_cell_says_that_it_is_known(text: str) -> None:
    found = answers.posterior(gaps(), {"evidence": {"text": text}})
    drawn = gaps().joint.given(text).sample(4_000, random_state=1, missing=True)
    rows = panels.rows(gaps(), {"evidence": {"text": text}, "n": 1_000})["rows"]
    for k, (one, name) in enumerate(zip(found["columns"], gaps().joint.columns, strict=True)):
        share = 0.0 if one["missing"] is None else one["missing"]
        assert share == pytest.approx(gaps().joint.given(text).probability({name: jf.Missing()}), rel=1e-6)
        assert abs(drawn[name].isna().mean() - share) < 0.03
        assert abs(np.mean([row[k] is None for row in rows]) - share) < 0.06
    partner = {"a >= 0.5": "b", "b is not missing": "a"}.get(text)
    assert partner is None or found["columns"][gaps().joint.schema.index(partner)]["missing"] == 0.0


@pytest.mark.parametrize("text", ["a is missing and b > 1", "b is missing and a < 0 and x > 0"])
def test_a_cell_has_no_value_where_its_partner_is_missing(text: str) -> None:
    with pytest.raises(ImpossibleEvidence):
        answers.posterior(gaps(), {"evidence": {"text": text}})


@pytest.mark.parametrize("name", JOINTS)
def test_how_probable_the_evidence_is(name: str) -> None:
    joint = JOINTS[name]()
    for text in ("age = 40", "age = 40 and size = S", "age >= 40", "price is missing and member = true", "spend = 0"):
        found = asked(name, text)
        assert found["probability"] == pytest.approx(joint.probability(text), rel=1e-6)
        assert math.exp(found["log_probability"]) == pytest.approx(found["probability"])
        assert found["supported"] is joint.given(text).supported
    for text in ("x = 0.25", "spend = 3.5", "x about 2 sd 1", "x = 0.25 and age > 30"):
        found = asked(name, text)
        assert found["probability"] is None
        assert found["log_probability"] == pytest.approx(joint.given(text).log_probability, rel=1e-9)
    nothing = asked(name, "")
    assert nothing["probability"] == 1.0 and nothing["sentence"] == "" and nothing["evidence"] == []


@pytest.mark.parametrize("name", JOINTS)
def test_how_far_a_column_moved(name: str) -> None:
    before, found = asked(name, ""), asked(name, "size = 'L'")
    assert all(c["moved"] == 0.0 for c in before["columns"])
    for a, b in zip(before["columns"], found["columns"], strict=True):
        p, q = np.array(b["mass"]), np.array(a["mass"])
        wanted = sum(p_ * math.log2(p_ / q_) for p_, q_ in zip(p, q, strict=True) if p_ > 0)
        assert b["moved"] == pytest.approx(max(wanted, 0.0), abs=1e-5)
    moved = {c.name: a["moved"] for c, a in zip(JOINTS[name]().schema.columns, found["columns"], strict=True)}
    assert moved["size"] > moved["member"] > 0.0


def test_unlikely_evidence_is_not_supported() -> None:
    assert asked("forest", "age > 400 and x < -80")["supported"] is False


@pytest.mark.parametrize("exact", [False, True])
def test_work_ends_where_nobody_waits(exact: bool) -> None:
    asked_for = []

    def is_wanted() -> bool:
        asked_for.append(1)
        return len(asked_for) <= 3

    with pytest.raises(answers.Overtaken):
        answers.posterior(shown("forest"), {"evidence": {"text": "age > 30"}, "exact": exact}, is_wanted)
    assert len(asked_for) <= 10


def test_some_columns_alone() -> None:
    found, all_ = asked("forest", "age > 30", columns=[3, 0], id=5), asked("forest", "age > 30")
    assert found["id"] == 5 and found["columns"] == [all_["columns"][3], all_["columns"][0]]
    assert asked("forest", "age > 30", columns=[])["columns"] == []
    for columns in ([10], [-1], ["age"], 3, [True], [0.0]):
        with pytest.raises(ValueError, match="columns"):
            asked("forest", "age > 30", columns=columns)


@pytest.mark.parametrize(
    "said",
    [
        [{"column": 0, "missing": True}],
        [{"column": 2, "text": "age > 40 and age < 30"}],
        [{"column": 2, "low": 40.2, "high": 40.4}],
        [{"column": 8, "levels": [0]}, {"column": 8, "levels": [1]}],
    ],
)
def test_impossible_evidence(said: list[dict[str, Any]]) -> None:
    with pytest.raises(ImpossibleEvidence, match="evidence has probability 0"):
        answers.posterior(shown("forest"), {"evidence": said})


@pytest.mark.parametrize("name", JOINTS)
def test_the_same_joint_has_the_same_version(name: str, tmp_path: Any) -> None:
    joint = JOINTS[name]()
    joint.save(tmp_path / "a.joint")
    again = ShownJoint(jf.load(tmp_path / "a.joint"))
    assert again.version == shown(name).version == asked(name, "")["version"]
    assert len({shown(n).version for n in JOINTS}) == 3


def test_names_and_levels_are_data() -> None:
    found = answers.table(shown("forest"), {})["columns"]
    hard = found[[c["name"] for c in found].index(NAMES["script"])]
    assert set(hard["levels"]) == {NAMES["level"], NAMES["right_to_left"], NAMES["emoji"]}
    for k in range(3):
        place = found.index(hard)
        got = answers.posterior(shown("forest"), {"evidence": [{"column": place, "levels": [k]}]})
        assert got["columns"][place]["mass"][k] == 1.0
        again = asked("forest", got["sentence"])
        assert again["columns"][place]["mass"][k] == 1.0


def test_small_and_odd_tables() -> None:
    odd = pd.DataFrame({"one": [3.0] * 30, "all": ["a"] * 30, "yes": [True] * 30, "huge": np.arange(30) * 1e12})
    for table in (odd, odd[["one"]], odd.head(2)):
        try:
            joint = jf.AdversarialForest(n_estimators=1, random_state=0).fit(table).joint_
        except ValueError:
            continue
        one = ShownJoint(joint)
        json.dumps(answers.table(one, {}), allow_nan=False)
        for exact in (False, True):
            found = answers.posterior(one, {"evidence": [], "exact": exact})
            json.dumps(found, allow_nan=False)
            assert all(sum(c["mass"]) == pytest.approx(1.0, abs=1e-6) for c in found["columns"])
