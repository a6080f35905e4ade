"""The page of a joint of histories: its answers are those of the joint, and wrong questions are refused."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.explorer import histories
from jointforest.explorer.histories import BAND, HISTORY_ASKS, HISTORY_DRAWS, ShownHistories, shown_histories
from jointforest.explorer.open import NotebookExplorer, heard
from jointforest.explorer.questions import answer, replaced, shown_of
from jointforest.explorer.scripts import script

from .tables import forest

MILLISECONDS = np.timedelta64(1, "ms")


@cache
def visits() -> pd.DataFrame:
    return jf.datasets.make_visits(200, random_state=0)


@cache
def joint() -> jf.HistoryJoint:
    return jf.fit(visits(), group="patient", order="date", random_state=0)


@cache
def shown() -> ShownHistories:
    """The joint with its table, whose rows are in no order."""
    return shown_histories(joint(), "visits.joint", visits().sample(frac=1.0, random_state=0))


def ask(what: str, body: Any, of: ShownHistories | None = None) -> Any:
    """An answer, through JSON."""
    status, said = answer(of or shown(), what, body)
    assert status == 200, said
    return json.loads(json.dumps(said, allow_nan=False))


def refusal(what: str, body: Any, of: ShownHistories | None = None) -> str:
    status, said = answer(of or shown(), what, body)
    assert status == 400
    return str(said["error"])


def place_of(patient: int) -> int:
    return shown().labels.index(str(patient))


def rows_of(patient: int) -> pd.DataFrame:
    return visits()[visits()["patient"] == patient]


def test_the_table_says_what_the_columns_are() -> None:
    said = ask("table", {})
    assert [c["name"] for c in said["columns"]] == ["sex", "status", "weight", "pressure"]
    assert [c["constant"] for c in said["columns"]] == [True, False, False, False]
    assert (said["group"], said["time"]["name"], said["subjects"], said["ends"]) == ("patient", "date", 200, True)
    assert said["version"] == ask("table", {}, ShownHistories(joint()))["version"]
    assert ask("table", {}, ShownHistories(joint()))["subjects"] is None


def test_subjects_are_found_by_a_part_of_their_names() -> None:
    found = ask("subjects", {"word": "12"})
    names = [str(k) for k in visits()["patient"].unique() if "12" in str(k)]
    assert found["found"] == len(names) and {one["label"] for one in found["subjects"]} == set(names)
    assert found["subjects"][0]["label"] == "12"
    assert all(one["rows"] == len(rows_of(int(one["label"]))) for one in found["subjects"])
    assert ask("subjects", {"word": "nobody"}) == {"found": 0, "subjects": []}
    assert len(ask("subjects", {"word": ""})["subjects"]) == 50
    assert "no table was loaded" in refusal("subjects", {"word": ""}, ShownHistories(joint()))


def test_a_subject_has_its_rows_in_the_order_of_time() -> None:
    found = ask("history", {"place": place_of(3)})
    wanted = rows_of(3).sort_values("date")
    assert found["label"] == "3" and found["constant"] == {"sex": wanted["sex"].iloc[0]}
    assert [row["date"] for row in found["rows"]] == wanted["date"].dt.strftime("%Y-%m-%d").tolist()
    assert [float(row["weight"]) for row in found["rows"]] == wanted["weight"].tolist()
    assert [row["status"] for row in found["rows"]] == wanted["status"].tolist()


def test_of_a_very_long_history_the_last_rows_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "_MOST_ROWS", 2)
    found = ask("history", {"place": place_of(3)})
    assert found["label"] == "3, its last 2 rows"
    last = rows_of(3).sort_values("date").iloc[-2:]
    assert [float(row["weight"]) for row in found["rows"]] == last["weight"].tolist()


def test_drawn_subjects_depend_on_the_seed_alone() -> None:
    one = ask("history", {"seed": 4})
    assert one == ask("history", {"seed": 4}) and one["label"] == "drawn subject 5"
    assert one["rows"] != ask("history", {"seed": 5})["rows"]


def test_a_forecast_is_that_of_the_joint() -> None:
    rows = rows_of(3)
    found = ask("forecast", ask("history", {"place": place_of(3)}) | {"steps": 2})
    wanted = joint().forecast(rows, 2, n_draws=HISTORY_DRAWS, random_state=0)
    status, weight = found["columns"][1]["next"], found["columns"][2]["next"]
    np.testing.assert_allclose(status["proba"], wanted.proba("status")[0])
    np.testing.assert_allclose(weight["mean"], wanted.mean("weight")[0])
    np.testing.assert_allclose(weight["band"], wanted.quantile("weight", BAND)[0])
    np.testing.assert_allclose(found["ends"], wanted.end_probability[0])
    times = wanted.mean("date")[0].astype("datetime64[us]") - np.datetime64(0, "us")
    np.testing.assert_allclose(found["time"]["next"]["mean"], times / MILLISECONDS, atol=1e3)
    assert found["columns"][0]["next"] is None
    assert status["expected"] == wanted.mean("status")[0, 0]
    assert abs(float(weight["expected"]) - wanted.mean("weight")[0, 0]) <= 0.05 + 1e-9
    nearest = (wanted.mean("date")[0, 0] + np.timedelta64(12, "h")).astype("datetime64[D]")
    assert found["time"]["expected"] == str(nearest)


def test_no_step_is_no_forecast() -> None:
    found = ask("forecast", ask("history", {"place": place_of(3)}) | {"steps": 0})
    assert (
        found["ends"] == [] and found["columns"][2]["next"]["mean"] == [] and found["columns"][1]["next"]["proba"] == []
    )


def test_rows_may_come_in_any_order() -> None:
    said = ask("history", {"place": place_of(3)}) | {"steps": 1}
    turned = said | {"rows": said["rows"][::-1]}
    found, other = ask("forecast", said), ask("forecast", turned)
    n = len(said["rows"])
    assert other.pop("order") == list(range(n))[::-1] and found.pop("order") == list(range(n))
    assert found == other


def test_unusual_cells_have_few_drawn_ones_below_them() -> None:
    said = ask("history", {"place": place_of(3)}) | {"steps": 1}
    usual = ask("forecast", said)["columns"][3]["less"]
    said["rows"][2]["pressure"] = "168"
    changed = ask("forecast", said)["columns"][3]["less"]
    assert changed[2] < 0.01 < usual[2]
    logs = joint().attribution(joint().sample(300, random_state=1), random_state=0)[:, 3]
    odd = rows_of(3).assign(pressure=[*rows_of(3)["pressure"].iloc[:2], 168, *rows_of(3)["pressure"].iloc[3:]])
    own = joint().attribution(odd, random_state=0)[:, 3]
    np.testing.assert_allclose(changed, [(logs < x).mean() for x in own])


def test_an_unknown_cell_is_expected_between_its_neighbours() -> None:
    said = ask("history", {"place": place_of(3)}) | {"steps": 1}
    said["rows"][2]["weight"] = None
    said["rows"][1]["status"] = ""
    found = ask("forecast", said)
    gaps = rows_of(3).copy()
    gaps.iloc[2, gaps.columns.get_loc("weight")] = np.nan
    gaps.iloc[1, gaps.columns.get_loc("status")] = None
    weight = found["columns"][2]["unknown"]["2"]
    assert list(found["columns"][2]["unknown"]) == ["2"] and found["columns"][2]["x"][2] is None
    assert weight["band"][0] <= weight["mean"] <= weight["band"][3] and np.all(np.diff(weight["band"]) >= 0.0)
    filled = joint().impute(gaps, random_state=0)
    assert abs(weight["mean"] - filled["weight"].iloc[2]) < 0.5
    shares = found["columns"][1]["unknown"]["1"]
    assert abs(sum(shares["proba"]) - 1.0) < 1e-9
    assert found["columns"][1]["unknown"]["1"]["mean"] == int(np.argmax(shares["proba"]))


def test_columns_over_row_numbers_are_those_of_the_table() -> None:
    found = ask("population", {})
    ordered = visits().sort_values(["patient", "date"])
    number = ordered.groupby("patient").cumcount()
    first = ordered[number == 0]
    pressure, status = found["columns"][3], found["columns"][1]
    np.testing.assert_allclose(pressure["table"]["mean"][0], first["pressure"].mean())
    np.testing.assert_allclose(pressure["table"]["band"][0], first["pressure"].quantile(list(BAND)))
    levels = ask("table", {})["columns"][1]["labels"]
    np.testing.assert_allclose(status["table"]["proba"][0], [(first["status"] == level).mean() for level in levels])
    np.testing.assert_allclose(found["having"]["table"][1], (ordered.groupby("patient").size() >= 2).mean())
    assert found["columns"][0] is None and abs(pressure["drawn"]["mean"][0] - first["pressure"].mean()) < 3.0
    assert set(ask("population", {}, ShownHistories(joint()))["subjects"]) == {"drawn"}


@pytest.mark.parametrize(
    ("what", "change", "fault"),
    [
        ("forecast", {"rows": []}, "expected a list of rows, at least one"),
        ("forecast", {"rows": "x"}, "expected a list of rows"),
        ("forecast", {"steps": -1}, "steps: expected"),
        ("forecast", {"steps": 51}, "steps: expected"),
        ("forecast", {"constant": {"hat": "M"}}, "hat"),
        ("forecast", {"constant": {"sex": "X"}}, "column 'sex': 'X' is not one of its 2 levels"),
        ("forecast", {"rows": [{"date": "2021-01-01", "pressure": "high"}]}, "column 'pressure'.*expected a number"),
        ("forecast", {"rows": [{"status": "ill"}]}, "row 1: its date is missing"),
        ("forecast", {"rows": [{"date": "soon"}]}, "column 'date'"),
        ("forecast", {"rows": [{"date": "2021-01-01"}] * 2001}, "at most 2,000"),
        ("history", {"place": 200}, "place: expected"),
        ("history", {"place": None}, "place: expected"),
        ("history", {"seed": -1}, "seed: expected"),
        ("subjects", {"word": 3}, "word: expected a text"),
    ],
)
def test_wrong_questions_are_refused(what: str, change: dict[str, Any], fault: str) -> None:
    body = ask("history", {"place": 0}) | {"steps": 1} if what == "forecast" else {}
    assert re.search(fault, refusal(what, body | change))


def test_a_table_that_does_not_fit_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="group: there is no column 'patient'"):
        shown_histories(joint(), "visits", visits().drop(columns="patient"))
    with pytest.raises(ValueError, match="predicts from single rows"):
        shown_of(joint(), "visits", None, object())  # type: ignore[arg-type]


def test_a_page_stays_with_its_kind_of_joint() -> None:
    assert replaced(shown(), joint(), "again").title == "again"
    with pytest.raises(ValueError, match="shows a joint of histories, and the new one is of single rows"):
        replaced(ShownHistories(joint()), forest(), None)


def test_subjects_with_names_and_without_times() -> None:
    frame = visits().drop(columns="date").assign(patient=lambda x: "p" + x["patient"].astype(str))
    found = jf.fit(frame, group="patient", random_state=0)
    of = shown_histories(found, "named", frame)
    said = ask("history", {"place": 7}, of)
    assert said["label"] == frame["patient"].unique()[7]
    answer = ask("forecast", said | {"steps": 2}, of)
    assert answer["time"] is None and len(answer["columns"][2]["next"]["mean"]) == 2


def test_in_a_notebook_the_page_of_histories_is_shown() -> None:
    explorer = NotebookExplorer(joint(), "visits", visits())
    explorer.widget = None
    assert "HistoryJoint(200 subjects" in explorer._repr_mimebundle_()["text/html"]
    found = heard(shown(), {"kind": "ask", "page": "p", "number": 1, "what": "table", "body": {}})
    assert found is not None and set(HISTORY_ASKS) <= set(found["said"]["can"])
    refused = heard(shown(), {"kind": "ask", "page": "p", "number": 1, "what": "posterior", "body": {}})
    assert refused is not None and refused["status"] == 404
    assert "HistoriesPage" in script("widget_histories.js") and "timeline" in script("widget_histories.js")


def test_the_page_is_served() -> None:
    httpx = pytest.importorskip("httpx")
    with joint().explore(visits(), browser=False, title="visits.joint") as page:
        text = httpx.get(page.url).text
        assert "histories_main.js" in text
        for name in ("histories_main.js", "histories.js", "timeline.js", "histories.css"):
            assert httpx.get(page.url + name).status_code == 200
        found = httpx.post(page.url + "ask/history", json={"place": 0}).json()
        assert found["label"] == shown_of(joint(), "v", visits()).labels[0]  # type: ignore[union-attr]
        assert httpx.post(page.url + "ask/posterior", json={}).status_code == 404
        page.show(joint(), "other.joint")
        assert httpx.post(page.url + "ask/table", json={}).json()["title"] == "other.joint"


def test_levels_never_seen_are_named() -> None:
    table = visits().copy()
    table["status"] = table["status"].astype(object)
    first = table.index[table["patient"] == 12][1]
    table.loc[first, "status"] = "unheard of"
    shown = shown_histories(joint(), "visits.joint", table)
    assert ask("history", {"place": shown.labels.index("12")}, shown)["unseen"] == ["status 'unheard of' in row 2"]
    assert ask("history", {"place": shown.labels.index("13")}, shown)["unseen"] == []


def test_rows_that_no_draw_reaches_have_no_numbers() -> None:
    said = ask("history", {"place": place_of(12)})
    found = ask("forecast", {"constant": said["constant"], "rows": said["rows"], "steps": 50})
    times = np.array(found["time"]["next"]["mean"], dtype=np.float64)
    assert np.isnan(times).any() and np.nanmin(times) > 0.0
    for mean, band in zip(times, found["time"]["next"]["band"], strict=True):
        assert not np.isnan(mean) or band == [None] * 4
