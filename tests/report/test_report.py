"""A report is one file: safe, small, the same each time, without rows unless they are asked for."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.evaluation.statements import statements
from jointforest.explorer.shown import ShownJoint
from jointforest.report import embed
from jointforest.report.summary import _faithful, columns, encoded, find_dependence
from jointforest.report.write import WantedSections, report_text

from ..explorer import tables


class Elements(HTMLParser):
    """Names, attributes and texts of the elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def hostile() -> str:
    """The report of a joint of a table with hard names, with everything in it."""
    frame = tables.frame()
    name = tables.NAMES["script"]
    wanted = WantedSections(frame.iloc[:200], frame.iloc[200:], name, 2, "</title><script>alert(2)</script>")
    return report_text(tables.hidden(), wanted)


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="joint">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_names_and_levels_are_text(hostile: str) -> None:
    page = Elements(hostile)
    assert [one.get("type") for one in page.of("script")] == ["importmap", "application/json", "module"]
    assert "<b>bold" not in hostile
    assert tables.NAMES["script"] in page.texts
    assert data_of(hostile)["table"]["columns"][7]["name"] == tables.NAMES["script"]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]


def test_it_asks_nobody(hostile: str) -> None:
    page = Elements(hostile)
    for _, attributes in page.tags:
        assert not {"src", "srcset", "action"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
    policy = next(one["content"] for one in page.of("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and "default-src 'none'" in policy and "connect-src 'none'" in policy
    assert "unsafe" not in policy
    modules = json.loads(re.search(r'<script type="importmap">(.*?)</script>', hostile)[1])["imports"]  # type: ignore[index]
    scripts = [base64.b64decode(address.partition(",")[2]).decode() for address in modules.values()]
    without = [script.replace("http://www.w3.org/2000/svg", "") for script in scripts]
    assert not [script for script in [hostile, *without] if re.search(r"https?://", script)]
    assert "fetch(" not in "".join(scripts)
    wanted = {name for script in scripts for name in re.findall(r'^import .*?"(.*?)";', script, re.MULTILINE)}
    wanted |= {name for script in scripts for name in re.findall(r'\}? from "(.*?)";', script)}
    assert wanted <= set(modules)


def test_sections_are_there(hostile: str) -> None:
    sections = ["summary", "learned", "read", "between", "good", "columns", "depend", "target", "unusual", "suspicious"]
    assert [one["id"] for one in Elements(hostile).of("h2") if "id" in one] == sections
    assert not [one for _, one in Elements(hostile).tags if "style" in one]


@pytest.mark.filterwarnings("ignore::jointforest.LostDependenceWarning")
def test_text_of_a_small_tree_and_no_sections_that_were_not_asked_for() -> None:
    penguins = jf.datasets.load_penguins()
    joint = jf.JointTree(leaf="quantile", max_leaf_nodes=3, random_state=0).fit(penguins).joint_
    text = report_text(joint, WantedSections())
    assert [one["id"] for one in Elements(text).of("h2") if "id" in one] == [
        "summary", "learned", "read", "columns", "depend", "tree",
    ]  # fmt: skip
    assert "The joint itself is in this file" in text
    assert data_of(text)["table"]["can"] == []


def test_no_row_is_in_it_unless_asked_for() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300).round(9), "y": rng.choice(["a", "b"], 300)})
    joint = jf.HiddenTreeForest(n_states=4, max_iter=1, random_state=0).fit(frame).joint_
    plain, rows = report_text(joint, WantedSections(frame)), report_text(joint, WantedSections(frame, examples=3))
    worst = np.argsort(joint.log_density(frame), kind="stable")[:3].tolist()
    inner = frame["x"].sort_values()[10:-10]
    assert not any(str(x) in plain for x in inner)
    assert "Unusual rows" not in plain
    assert all(f"<h3>row {i}</h3>" in rows and f"{frame['x'][i]:.3g}"[:4] in rows for i in worst)


def test_the_same_joint_gives_the_same_bytes(tmp_path: Path) -> None:
    joint, frame = tables.hidden(), tables.frame()
    joint.report(tmp_path / "a.html", frame, examples=1)
    joint.report(tmp_path / "b.html", frame, examples=1)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_hundred_columns_fit_in_a_megabyte_besides_the_joint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "_DRAWS", 300)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1)) + rng.normal(size=(200, 100))
    X[:, 50:] = np.floor(X[:, 50:])
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(100)])
    joint = jf.HiddenTreeForest(n_states=48, max_iter=0, random_state=0).fit(frame).joint_
    text = report_text(joint, WantedSections(target="column 3"))
    packed = data_of(text)["packed"]
    assert len(packed) <= embed.MOST_BYTES
    assert len(text) - len(packed) <= 1_000_000


def test_a_smaller_joint_is_said_at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "MOST_BYTES", 24_000)
    monkeypatch.setattr(embed, "_DRAWS", 500)
    text = report_text(tables.forest(), WantedSections())
    assert "The joint is too large for this file." in text
    assert re.search(r"Over 200 random pieces of evidence .* was [\d.e-]+ percentage points", text)


def test_cells_that_a_rule_makes_missing() -> None:
    """Sections take the drawn rows in which a column has a value, as the table has it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"state": rng.choice(["run", "stop"], 400, p=[0.7, 0.3]), "x": rng.normal(size=400)})
    frame["delay"] = np.where(frame["state"] == "stop", np.nan, np.round(frame["x"] * 3 + 50))
    frame["why"] = np.where(frame["state"] == "stop", None, np.where(frame["x"] > 0, "late", "early"))
    rules = ["delay missing iff state = stop", "why missing iff state = stop"]
    learner = jf.HiddenTreeForest(n_states=8, max_iter=4, max_leaf_nodes=1, rules=rules, random_state=0)
    joint = learner.fit(frame).joint_
    shown = ShownJoint(joint)
    found = find_dependence(shown)
    assert found is not None
    j, k, x = (joint.columns.index(name) for name in ("delay", "why", "x"))
    assert found.strength[j, k] > 0.8 and found.strength[j, x] > 0.8
    centers = shown.centers[j]
    assert np.isfinite(centers).all() and (np.diff(centers) > 0.0).all()
    assert shown.masses[j] @ centers / shown.masses[j].sum() == pytest.approx(joint.given().mean("delay"), abs=1.0)
    assert "delay" in report_text(joint, WantedSections(frame))


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"holdout": tables.frame()}, "holdout= needs the rows"),
        ({"examples": 3}, "examples= needs the rows"),
        ({"examples": -1}, "examples"),
        ({"target": "nothing"}, "nothing"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, wanted: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        tables.hidden().report(tmp_path / "r.html", **wanted)
    assert not (tmp_path / "r.html").exists()


def test_a_path_that_cannot_be_written_is_named_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jointforest.report.write.report_text", None)
    with pytest.raises(IsADirectoryError, match=r"is a directory; .* such as .*report\.html"):
        tables.hidden().report(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no directory .*nowhere"):
        tables.hidden().report(tmp_path / "nowhere" / "r.html")


def test_other_rows_than_the_joints_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="other"):
        tables.hidden().report(tmp_path / "r.html", tables.frame().assign(other=1))


def contents(text: str) -> list[str]:
    """Where the links of a page lead."""
    return [one["href"] or "" for one in Elements(text).of("a")]


def test_links_of_the_contents_lead_to_the_sections(hostile: str) -> None:
    ids = {one["id"] for _, one in Elements(hostile).tags if "id" in one}
    assert contents(hostile) and {link[1:] for link in contents(hostile)} <= ids


def test_the_summary_has_five_sentences(hostile: str) -> None:
    found = re.search(r'<h2 id="summary">.*?<ol>(.*?)</ol>', hostile, re.DOTALL)
    assert found is not None
    said = re.findall(r"<li[^>]*>(.*?)</li>", found[1])
    assert len(said) == 5 and all(sentence.endswith(".") for sentence in said)
    assert said[1].startswith(
        "This report describes a table of 300 rows with 10 columns: 4 with numbers, 4 with levels"
    )
    assert "Taken alone" in said[2] and "classifier" in said[0] and "most unusual row" in said[3]


def test_the_first_sentence_names_the_weakest_point() -> None:
    rng = np.random.default_rng(0)
    hour, minute = rng.integers(6, 22, 3_000), rng.integers(0, 60, 3_000)
    frame = pd.DataFrame({"dep_time": 100 * hour + minute, "minute": minute, "x": rng.normal(size=3_000)})
    joint = jf.HiddenTreeForest(n_states=4, max_iter=1, max_leaf_nodes=1, rules=[], random_state=0).fit(frame).joint_
    counted = statements(joint.distribution, encoded(ShownJoint(joint), frame).X, "the table")
    found = jf.fidelity(joint, frame, random_state=0)
    assert counted.wrong
    sentence = _faithful(replace(found, statements=counted))
    worst = (counted.broken or counted.wrong)[0]
    assert sentence.startswith(f"The weakest point that was found is {worst.text}: joint ") and worst.beside in sentence
    plain = _faithful(replace(found, statements=replace(counted, wrong=())))
    assert plain.startswith("As a picture of the table the joint is ")


def test_without_rows_the_summary_says_what_was_not_measured() -> None:
    text = report_text(tables.hidden(), WantedSections())
    assert "was not measured" in text and "depend most on" in text and "option examples" in text


@pytest.mark.filterwarnings("error:this joint expects")
def test_suspicious_cells_are_those_of_the_check() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.integers(0, 9, 400) * 1.5, "town": rng.choice(["Bremen", "Lisboa"], 400)})
    frame["zip"] = frame["town"].map({"Bremen": "D28", "Lisboa": "P11"})
    joint = jf.HiddenTreeForest(n_states=4, max_iter=1, random_state=0).fit(frame).joint_
    clean = report_text(joint, WantedSections(frame, examples=3))
    assert "No cell is more probably wrong than right." in clean
    frame.loc[7, "town"] = "Brxmen"
    text = report_text(joint, WantedSections(frame, examples=3))
    assert 'id="suspicious"' not in report_text(joint, WantedSections(frame))
    rows = re.findall(r'<tr><th scope="row">(\d+)</th><td dir="auto">(.*?)</td><td dir="auto">(.*?)</td>', text)
    assert rows == [("7", "town", "Brxmen")]
    assert "typing error of &#39;Bremen&#39;" in text
    assert "Note: this joint expects the wrong cells that it has learned" in text


def test_the_verdict_is_in_words(hostile: str) -> None:
    found = re.findall(r'class="r-verdict t-\w">(.*?)</td>', hostile)
    assert len(found) == 4
    assert all(re.match("very good|good|fair|poor", words) for words in found)


def test_what_was_converted_is_said() -> None:
    rng = np.random.default_rng(0)
    price = [f"{x:.2f} EUR" for x in rng.gamma(2.0, 9.0, 200)]
    frame = pd.DataFrame({"price": price, "same": 1.0, "kind": rng.choice(["a", "b"], 200)})
    joint = jf.HiddenTreeForest(n_states=4, max_iter=1, random_state=0).fit(frame).joint_
    text = report_text(joint, WantedSections())
    assert "Text read as" in text and "How the table was read" in text
    assert f"{sum(len(one.notes) for one in joint.reading.columns)} note" in text


def test_rows_stand_beside_all_columns_but_those_with_ranges() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(50.0, 9.0, 300).round()
    frame = pd.DataFrame({"sick": np.where(x > 55, "yes", "no"), "y": (x + rng.normal(size=300)).round(1)})
    frame["age"] = [f"{age:.0f}" if age < 60 else "60+" for age in x]
    joint = jf.HiddenTreeForest(n_estimators=1, n_states=8, random_state=0).fit(frame).joint_
    shown = ShownJoint(joint)
    rows = encoded(shown, frame)
    assert rows.has_ranges.tolist() == [False, False, True]
    found = find_dependence(shown, rows)
    assert found is not None and found.rows is not None
    assert np.isfinite(found.rows[0, 1]) and np.isnan(found.rows[2]).all()
    sick, _, _ = columns(shown, rows)
    bars = {bar["label"]: bar["rows_share"] for bar in sick["bars"]}
    assert bars == {label: f"{(frame.sick == label).mean():.1%}" for label in ("no", "yes")}
    assert "suspicious" in report_text(joint, WantedSections(frame, examples=2)).casefold()
