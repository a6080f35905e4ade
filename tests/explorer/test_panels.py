"""Rows, the most probable row, explanations, pairs, one row of a table: as Python answers them."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import numpy as np
import pytest

import jointforest as jf
from jointforest.explorer import panels
from jointforest.explorer.shown import ShownJoint

from .tables import JOINTS, forest, frame


def ask(question: Any, name: str, **body: Any) -> Any:
    """The answer, through JSON."""
    return json.loads(json.dumps(question(ShownJoint(JOINTS[name](), "a.joint", frame()), body), allow_nan=False))


@pytest.mark.parametrize("name", JOINTS)
def test_rows_meet_the_evidence_and_csv_has_the_same(name: str) -> None:
    said = {"text": "age >= 50 and size = L and day >= '2024-04-05'"}
    found = ask(panels.rows, name, evidence=said, n=50, seed=3)
    assert found["columns"] == list(frame().columns) and len(found["rows"]) == 50
    cells = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    assert all(int(c["age"]) >= 50 and c["size"] == "L" and c["day"] >= "2024-04-05" for c in cells)
    assert any(c["price"] is None for c in cells) and {c["member"] for c in cells} == {"True", "False"}
    assert ask(panels.rows, name, evidence=said, n=50, seed=3) == found != ask(panels.rows, name, evidence=said, n=50)
    text = ask(panels.csv_text, name, evidence=said, n=50, seed=3)
    header, *rows = csv.reader(io.StringIO(text))
    assert header == found["columns"] and len(rows) == 50
    for row, cell in zip(rows, cells, strict=True):
        whole = dict(zip(header, row, strict=True))
        assert whole["age"] == cell["age"] and float(whole["x"]) == pytest.approx(float(cell["x"]), rel=1e-5)
        assert whole["price"] == (cell["price"] or "")
    assert ask(panels.rows, name, n=0)["rows"] == []


@pytest.mark.parametrize("column", [None, "x", "age", "price", "day", "member", "size", "town"])
@pytest.mark.parametrize("descending", [False, True])
def test_rows_of_the_table_are_sorted(column: str | None, descending: bool) -> None:
    meets = (frame()["age"] >= 40) & frame()["size"].isin(["M", "L"])
    wanted = frame()[meets]
    if column is not None:  # text is sorted as the levels are, which is by the alphabet; missing cells come last
        wanted = wanted.sort_values(column, ascending=not descending, kind="stable", na_position="last")
    sort = None if column is None else list(frame().columns).index(column)
    body = {"evidence": {"text": "age >= 40 and size in {M, L}"}, "table": True, "sort": sort, "descending": descending}
    found = ask(panels.rows, "forest", n=25, **body)
    assert found["total"] == meets.sum() and found["numbers"] == wanted.index[:25].tolist()
    cells = dict(zip(found["columns"], zip(*found["rows"], strict=True), strict=True))
    assert list(cells["size"]) == wanted["size"].iloc[:25].tolist()
    prices = [math.nan if cell is None else float(cell) for cell in cells["price"]]
    assert prices == pytest.approx(wanted["price"].iloc[:25].tolist(), nan_ok=True)
    header, *rows = csv.reader(io.StringIO(ask(panels.csv_text, "forest", n=1000, **body)))
    assert [row[header.index("age")] for row in rows] == wanted["age"].astype(str).tolist()


def test_rows_of_the_table_show_missing_cells_and_levels_never_seen() -> None:
    rows = frame().copy()
    rows.loc[[4, 9], "town"] = "nowhere"
    shown = ShownJoint(forest(), rows=rows)
    place = list(rows.columns).index("town")
    found = panels.rows(shown, {"table": True, "n": 10})
    towns = [row[place] for row in found["rows"]]
    assert towns == [None if town is None or town != town else town for town in rows["town"].iloc[:10]]
    missing = panels.rows(shown, {"table": True, "evidence": {"text": "price is missing"}})
    assert missing["numbers"] == rows.index[rows["price"].isna()][:20].tolist()
    assert missing["total"] == rows["price"].isna().sum()


def test_drawn_rows_are_sorted() -> None:
    drawn = ask(panels.rows, "forest", n=200)
    found = ask(panels.rows, "forest", n=200, sort=2, descending=True)
    ages = [int(row[2]) for row in found["rows"]]
    assert ages == sorted(ages, reverse=True) and found["numbers"] is None
    assert sorted(map(str, found["rows"])) == sorted(map(str, drawn["rows"]))


@pytest.mark.parametrize("name", JOINTS)
def test_drawn_rows_follow_the_joint(name: str) -> None:
    found = ask(panels.rows, name, evidence={"text": "size = S"}, n=1000)
    share = np.mean([row[found["columns"].index("member")] == "True" for row in found["rows"]])
    assert share == pytest.approx(JOINTS[name]().probability("member", "size = S"), abs=0.06)


@pytest.mark.parametrize("name", JOINTS)
def test_the_most_probable_row(name: str) -> None:
    found = ask(panels.most_probable_row, name, evidence={"text": "size = L"})
    wanted = JOINTS[name]().given("size = L").mode(budget=panels.mode_budget(JOINTS[name]().distribution))
    assert found["row"]["size"] == "L" and found["row"]["town"] == wanted.rows["town"].iloc[0]
    assert found["log_density"] == pytest.approx(float(wanted.log_density[0]))
    assert found["bound"] >= found["log_density"] - 1e-9
    assert found["certified"] is bool(wanted.log_bound - wanted.log_density[0] < 1e-9 * abs(wanted.log_density[0]))


def test_large_hidden_trees_are_searched_less(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = panels.mode_budget(JOINTS["hidden trees"]().distribution)
    assert budget == panels.PANEL_BUDGET
    monkeypatch.setattr(panels, "ENTRIES", 10)
    assert 0 <= panels.mode_budget(JOINTS["mixture"]().distribution) < budget
    assert panels.mode_budget(forest().distribution) == panels.PANEL_BUDGET
    found = ask(
        panels.most_probable_row, "hidden trees", evidence={"text": "size = L"}
    )  # less certain, and a bound all the same
    wanted = JOINTS["hidden trees"]().given("size = L").mode(budget=10_000)
    assert found["log_density"] <= wanted.log_bound + 1e-9 and found["bound"] >= wanted.log_density[0] - 1e-9


@pytest.mark.parametrize("name", JOINTS)
def test_kernels_of_forests_are_compiled_ahead(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(panels, "model_modes", lambda *of: asked.append("mode"))
    monkeypatch.setattr(panels, "explain", lambda *of: asked.append("why"))
    panels.compile_ahead(ShownJoint(JOINTS[name]()))
    assert asked == ([] if name == "hidden trees" else ["mode", "why"])


@pytest.mark.parametrize("name", JOINTS)
def test_why(name: str) -> None:
    found = ask(panels.carriers, name, evidence={"text": "age > 50"})
    wanted = JOINTS[name]().given("age > 50").explain(panels.LISTED)
    assert found["text"] == wanted.text
    assert [item["weight"] for item in found["items"]] == pytest.approx([rule["weight"] for rule in wanted.rules])
    for item, rule in zip(found["items"], wanted.rules, strict=True):
        joined = " and ".join(f"({text})" for text in item["rules"])
        if rule["rule"]:
            p = JOINTS[name]().probability(rule["rule"])
            assert JOINTS[name]().probability(joined) == pytest.approx(p)


@pytest.mark.parametrize("name", JOINTS)
@pytest.mark.parametrize("columns", [(0, 8), (4, 5), (1, 6), (9, 3)])
def test_pairs(name: str, columns: tuple[int, int]) -> None:
    joint = JOINTS[name]()
    names = [joint.columns[j] for j in columns]
    found = ask(panels.two_columns, name, evidence={"text": "age > 30"}, columns=list(columns), bins=6)
    wanted = joint.given("age > 30").pair(*names, bins=6)
    mass = np.array(found["mass"])
    assert np.allclose(mass, wanted.probability, atol=1e-5) and mass.sum() == pytest.approx(1.0, abs=1e-4)
    for axis, n, j in zip(("a", "b"), mass.shape, columns, strict=True):
        column = joint.schema.columns[j]
        if column.is_categorical:
            assert found[axis]["labels"] == [str(x) for x in column.levels] and found[axis]["edges"] is None
            continue
        edges = np.array(found[axis]["edges"])
        assert len(edges) == n + 1 and (np.diff(edges) > 0).all()
        known = joint.given("age > 30").state
        cuts = edges[1:-1] / 1e3 - column.origin if column.kind == "datetime" else edges[1:-1]
        below = known.distribution.observe(known.evidence).cdf(j, cuts)[0]
        assert mass.sum(axis=0 if axis == "b" else 1).cumsum()[:-1] == pytest.approx(below.tolist(), abs=1e-4)
    assert found["information"] > 0.0 and found["in_table"] >= 0.0
    has_order = all(joint.kinds[n] not in ("categorical", "ordered") for n in names)
    if has_order:
        assert found["correlation"] == pytest.approx(joint.given("age > 30").corr(*names), abs=1e-6)
    else:
        assert found["correlation"] is None


def test_a_known_column_has_no_correlation() -> None:
    found = ask(panels.two_columns, "forest", evidence={"text": "age = 30"}, columns=[2, 0])
    assert found["correlation"] is None and found["information"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", JOINTS)
def test_a_row_of_the_table(name: str) -> None:
    joint, i = JOINTS[name](), 7
    found = ask(panels.row, name, row=i)
    row = frame().iloc[i : i + 1]
    assert found["log_density"] == pytest.approx(float(joint.log_density(row)[0]))
    said = {c["name"]: c for c in found["cells"]}
    assert [c["name"] for c in found["cells"]] == list(joint.columns)
    assert said["age"]["text"] == str(row["age"].iloc[0]) and said["size"]["text"] == row["size"].iloc[0]
    again = ask(panels.row, name, cells={c["name"]: c["text"] for c in found["cells"] if c["name"] != "x"})
    assert {c["name"]: c["text"] for c in again["cells"]} == {n: c["text"] for n, c in said.items()} | {"x": None}
    for column in joint.schema.columns:
        known = joint.given(row.drop(columns=[column.name]))
        if column.is_categorical and row[column.name].notna().iloc[0]:
            share = known.proba(column.name)[0]
            own = share[column.codes[row[column.name].iloc[0]]]
            assert math.exp(-said[column.name]["unlikely"]) == pytest.approx(
                share[share <= own + 1e-12].sum(), rel=1e-6
            )
            best = str(column.levels[share.argmax()])
            assert said[column.name]["expected"] == best
        elif column.name == "age":
            x, mass = float(row["age"].iloc[0]), known.marginal("age")
            below, above = float(mass.cdf(x)[0]), 1.0 - float(mass.cdf(x - 1)[0])
            assert math.exp(-said["age"]["unlikely"]) == pytest.approx(min(1.0, 2 * min(below, above)), rel=1e-6)
            assert float(said["age"]["expected"]) == pytest.approx(float(mass.mean()[0]), abs=0.51)


def test_an_odd_cell_stands_out() -> None:
    cells = {c["name"]: c["text"] for c in ask(panels.row, "forest", row=7)["cells"]}
    odd = ask(panels.row, "forest", cells=cells | {"age": "150"})
    unlikely = {c["name"]: c["unlikely"] or 0.0 for c in odd["cells"]}
    assert max(unlikely, key=lambda name: unlikely[name]) == "age" and unlikely["age"] > 3


@pytest.mark.parametrize(
    ("question", "body", "part"),
    [
        (panels.rows, {"n": 1001}, "n: expected a whole number of 0 to 1,000"),
        (panels.rows, {"n": -1}, "n: expected"),
        (panels.rows, {"n": 2.5}, "n: expected"),
        (panels.rows, {"n": True}, "n: expected"),
        (panels.rows, {"seed": -1}, "seed: expected"),
        (panels.rows, {"sort": 10}, "sort: expected a place of 0 to 9"),
        (panels.rows, {"table": True, "evidence": {"text": "x about 2 sd 1"}}, "likelihood.*drawn rows"),
        (panels.csv_text, {"n": 100_001}, "n: expected a whole number of 0 to 100,000"),
        (panels.two_columns, {"columns": [1]}, "two columns"),
        (panels.two_columns, {"columns": [1, 1]}, "twice"),
        (panels.two_columns, {"columns": [1, 10]}, "place of 0 to 9"),
        (panels.two_columns, {"columns": [1, 2], "bins": 1}, "bins: expected a whole number of 2 to 60"),
        (panels.most_probable_row, {"evidence": {"text": "x about 2 sd 1"}}, "soft"),
        (panels.most_probable_row, {"evidence": {"text": "age > 40 and age < 30"}}, "probability 0"),
        (panels.row, {"row": 300}, "row: expected a place of 0 to 299"),
        (panels.row, {"cells": [1]}, "expected an object"),
        (panels.row, {"cells": {"agee": "3"}}, "agee"),
        (panels.row, {"cells": {"age": "three"}}, "'age' .*expected a number, got 'three'"),
        (panels.row, {"cells": {"age": "nan"}}, "finite"),
        (panels.row, {"cells": {"size": "XXL"}}, "'size': 'XXL' is not one of its 3 levels"),
        (panels.row, {"cells": {"day": "soon"}}, "'day': expected a date"),
        (panels.row, {"cells": {"size": ["S"]}}, "size"),
    ],
)
def test_what_cannot_be_asked_is_named(question: Any, body: dict[str, Any], part: str) -> None:
    with pytest.raises(ValueError, match=part):
        ask(question, "forest", **body)


def test_a_row_needs_a_table() -> None:
    with pytest.raises(ValueError, match="no table was loaded"):
        panels.row(ShownJoint(forest()), {"row": 0})
    with pytest.raises(ValueError, match="no table was loaded"):
        panels.rows(ShownJoint(forest()), {"table": True})


def test_rows_of_any_frame() -> None:
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    plain = frame()[["x", "age", "town"]]
    joint = jf.AdversarialForest(n_estimators=1, random_state=0).fit(plain).joint_
    wanted = panels.row(ShownJoint(joint, rows=plain), {"row": 4})
    for rows in (polars.from_pandas(plain), pyarrow.Table.from_pandas(plain, preserve_index=False)):
        assert panels.row(ShownJoint(joint, rows=rows), {"row": 4}) == wanted


def dirty_penguins() -> Any:
    table = jf.datasets.load_penguins()
    table.loc[4, "body_mass_g"] *= 10
    return table


def test_suspicious_cells_follow_the_decisions() -> None:
    table = dirty_penguins()
    joint = jf.HiddenTreeForest(n_states=8, rules="off", random_state=0).fit(table).joint_
    shown, found = ShownJoint(joint, rows=table), joint.check(table)
    asked = json.loads(json.dumps(panels.suspicious_cells(shown, {})))
    wanted = found.cells[found.cells["p_wrong"] >= 0.5]
    assert [(c["row"], c["column"], c["value"], c["best"]) for c in asked["cells"]] == list(
        zip(wanted["row"], wanted["column"], wanted["value"], wanted["best"], strict=True)
    )
    assert (4, "body_mass_g") in {(c["row"], c["column"]) for c in asked["cells"]}
    assert list(asked["cells"][0]) == list(found.cells.columns)
    for right in ({"body_mass_g": "3450.0"}, {"body_mass_g": "34500.0"}):
        after = panels.suspicious_cells(shown, {"row": 4, "right": right})["cells"]
        cells = found.cells_of(4, right)
        assert [c["column"] for c in after] == cells["column"][cells["p_wrong"] >= 0.5].tolist()
        assert "body_mass_g" not in [c["column"] for c in after]
    with pytest.raises(ValueError, match="right: expected an object of texts"):
        panels.suspicious_cells(shown, {"row": 4, "right": {"body_mass_g": 3450}})
    with pytest.raises(ValueError, match="row: expected a number from 0 to 343"):
        panels.suspicious_cells(shown, {"row": 344})
    with pytest.raises(ValueError, match="no table was loaded"):
        panels.suspicious_cells(ShownJoint(joint), {})


def test_a_level_never_seen_costs_what_it_costs_the_joint() -> None:
    rows = frame().copy()
    rows.loc[4, "town"] = "nowhere"
    found = panels.row(ShownJoint(forest(), rows=rows), {"row": 4})
    with pytest.warns(jf.UnseenLevelWarning):
        assert found["log_density"] == pytest.approx(forest().log_density(rows.iloc[[4]])[0])
    cell = {c["name"]: c for c in found["cells"]}["town"]
    assert (cell["unseen"], cell["known"], cell["text"]) == ("nowhere", False, None)
    assert all(c["unseen"] is None for c in found["cells"] if c["name"] != "town")
