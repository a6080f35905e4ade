"""A report opened from disk, without a network: clicking works, and what it says is what Python says."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page

import jointforest as jf
from jointforest.cards import percent
from jointforest.explorer import answers
from jointforest.explorer.shown import ShownJoint, all_shown
from jointforest.explorer.state import ImpossibleEvidence
from jointforest.report import embed
from jointforest.report.embed import Embedded, embedded, random_pieces

from ..explorer import tables as hard
from . import tables
from .face import Face
from .random_joints import MODELS, random_joint
from .states import WIDTHS, faults

ASK = """async body => {
    const { InPageSource } = await import("jf/in_page_source.js");
    window.source ??= new InPageSource(JSON.parse(document.getElementById("joint").textContent));
    try { return await source.ask("posterior", body); }
    catch ({ message, impossible }) { return { error: message, impossible }; }
}"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, penguins: Any, mixed: Any) -> dict[str, tuple[Path, Embedded]]:
    found = {}
    for name, joint in (("penguins", penguins), ("mixed", mixed)):
        path = tmp_path_factory.mktemp("report") / f"{name}.html"
        rows = jf.datasets.load_penguins() if name == "penguins" else tables.mixed()
        target = joint.columns[0]
        joint.report(path, rows, holdout=rows.head(50), target=target, examples=3, title=f"{name}.joint")
        found[name] = path, embedded(ShownJoint(joint, f"{name}.joint"))
    with pytest.MonkeyPatch.context() as patch:  # so many digits that an error of the arithmetic is seen
        patch.setattr(embed, "BITS", (16,))
        patch.setattr(embed, "MOST_BYTES", 16 << 20)
        for name, joint in JOINTS.items():
            path = tmp_path_factory.mktemp("report") / "joint.html"
            joint().report(path, title=f"{name}.joint")
            found[name] = path, embedded(ShownJoint(joint(), f"{name}.joint"))
            assert found[name][1].is_itself
    return found


def quantile_leaves() -> Any:
    """A tree with quantile leaves."""
    return jf.JointTree(leaf="quantile", random_state=0).fit(hard.frame()).joint_


def several_trees() -> Any:
    """A mixture of hidden trees of other structures."""
    return jf.HiddenTreeForest(3, n_states=6, max_iter=2, rules="off", random_state=0).fit(hard.frame()).joint_


JOINTS = {
    "hidden tree": hard.hidden,
    "hidden trees": several_trees,
    "forest": hard.forest,
    "quantile leaves": quantile_leaves,
    "mixture": hard.both,
}
"""A joint of every kind, of a table with every kind of column."""


@pytest.fixture
def opened(new_context: Callable[..., BrowserContext], reports: Any) -> Callable[..., Page]:
    """Opens a report from disk, with no network."""

    def open_report(name: str, **options: Any) -> Page:
        context = new_context(**options)
        context.set_offline(True)
        page = context.new_page()
        page.goto(reports[name][0].as_uri())
        if options.get("java_script_enabled", True):
            page.wait_for_selector("#live[data-state=exact]")
        return page

    return open_report


def test_a_click_is_evidence_and_every_card_follows(opened: Callable[..., Page], reports: Any) -> None:
    page = opened("penguins")
    face = Face(page)
    before = face.shares("island")
    face.bar("species", "Gentoo").click()
    page.wait_for_selector("#live[data-state=exact] jf-card.evident")
    assert face.sentence == "species = 'Gentoo'"
    known = answers.posterior(reports["penguins"][1].shown, {"evidence": {"text": "species = 'Gentoo'"}})
    assert before != face.shares("island")
    assert list(face.shares("island").values()) == [percent(p) for p in known["columns"][1]["mass"]]
    face.bar("species", "Gentoo").click()
    page.wait_for_selector("#live[data-state=exact]:not(:has(jf-card.evident))")
    assert face.shares("island") == before


def test_what_the_file_cannot_do_is_not_offered(opened: Callable[..., Page]) -> None:
    page = opened("penguins")
    buttons = page.locator(".asks button:visible").all_text_contents()
    assert buttons == ["Compare", "History"]
    assert page.locator("textarea.sentence").get_attribute("readonly") is not None
    assert [b.get_attribute("aria-label") for b in page.locator("[data-copies]:visible").all()] == ["copy as Python"]


def test_text_fields_show_the_evidence(opened: Callable[..., Page], reports: Any) -> None:
    page, shown = opened("mixed"), reports["mixed"][1].shown
    face = Face(page)
    face.bar("group", "green").click()
    page.wait_for_selector("#live[data-state=exact] jf-card.evident")
    field = face.card("group").get_by_role("textbox", name="evidence on group")
    known = answers.posterior(shown, {"evidence": {"text": "group = green"}})
    assert field.input_value() == known["evidence"][0]["words"] == "= 'green'"
    assert field.get_attribute("readonly") is not None
    assert "Python" in (page.locator("textarea.sentence").get_attribute("title") or "")


def pieces(shown: ShownJoint) -> list[list[dict[str, Any]]]:
    """Evidence of every kind on every column, its intervals between edges of bins; and on several columns."""
    found: list[list[dict[str, Any]]] = [[]]
    for j, column in enumerate(shown.columns):
        if column.is_categorical:
            n = len(column.levels)
            found += [[{"column": j, "levels": [0]}], [{"column": j, "levels": list(range(1, n))}]]
            continue
        edges = answers.table(shown, {})["columns"][j]["edges"]
        low, high = edges[len(edges) // 4], edges[len(edges) // 2]
        found.append([{"column": j, "low": low, "high": high, "low_in": True, "high_in": True}])
        found.append([{"column": j, "low": None, "high": high, "low_in": True, "high_in": True}])
        found.append([{"column": j, "low": low, "high": None, "low_in": True, "high_in": True}])
        found += [
            [{"column": j, "low": x, "high": x, "low_in": True, "high_in": True}]
            for x in all_shown(column, np.array(column.atoms[:1]))
        ]
    for j, column in enumerate(shown.columns):
        if column.name in shown.can_miss:
            found += [[{"column": j, "missing": True}], [{"column": j, "missing": False}]]
    single = [piece[0] for piece in found[1:]]
    others = [[a, b] for a, b in zip(single, single[3:] + single[:3], strict=True) if a["column"] < b["column"]]
    return found + others


@pytest.mark.parametrize("name", JOINTS)
def test_its_answers_are_pythons(opened: Callable[..., Page], reports: Any, name: str) -> None:
    page, shown = opened(name), reports[name][1].shown
    # Numbers given evidence of probability 1e-6 show the rounding of the file's tables, so Python has the same tables.
    in_file = ShownJoint(jf.Joint(embed.rounded(shown.joint.distribution, 16)), shown.title)
    for evidence in pieces(shown) + random_pieces(shown, 60):
        body = {"evidence": evidence, "exact": True, "columns": None, "id": 1}
        found = page.evaluate(ASK, body)
        try:
            expected = answers.posterior(shown, body)
        except ImpossibleEvidence:
            assert found["impossible"] is True, evidence
            continue
        assert "error" not in found, (evidence, found)
        for key in ("version", "sentence", "python", "supported", "evidence", "extrapolated"):
            assert found[key] == expected[key], (evidence, key)
        expected = answers.posterior(in_file, body)
        for key in ("probability", "log_probability"):
            assert_close(found[key], expected[key], NEAR, (evidence, key))
        for j, column in enumerate(shown.columns):
            one, other = found["columns"][j], expected["columns"][j]
            where = (evidence, column.name)
            assert_close(one["mass"], other["mass"], NEAR, where)
            assert_close(one["missing"], other["missing"], NEAR, where)
            assert_close(one["moved"], other["moved"], 10 * NEAR, where)
            if column.is_categorical:
                assert_close([one[key] for key in NUMBERS], [other[key] for key in NUMBERS], NEAR, where)
                continue
            ends = answers.table(shown, {})["columns"][j]["edges"]
            for key in NUMBERS:  # the page knows nothing beyond the ends of its histograms
                mine, exact = (float(np.clip(each[key], ends[0], ends[-1])) for each in (one, other))
                assert abs(mine - exact) < 0.02 * (ends[-1] - ends[0]), (where, key)


SHOW = """wire => import("jf/in_page_source.js").then(({ InPageSource }) => {
    window.source = new InPageSource(wire);
    return window.source.ready;
})"""
BEYOND = "nothing beyond the ends"


@pytest.mark.parametrize("kind", MODELS)
def test_answers_of_random_joints_are_pythons(
    opened: Callable[..., Page], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(embed, "BITS", (16,))
    page, n = opened("penguins"), 0
    for seed in range(5):
        shown = ShownJoint(random_joint(kind, seed))
        embedded_joint = embedded(shown)
        assert embedded_joint.is_itself
        page.evaluate(SHOW, embed.wire(embedded_joint, "random", ""))
        for evidence in random_pieces(shown, 12, seed):
            body = {"evidence": evidence, "exact": False, "columns": None, "id": 1}
            found, expected = page.evaluate(ASK, body), answers.posterior(shown, body)
            if BEYOND in found.get("error", ""):  # of evidence on a tail, which the page refuses by design
                continue
            n += 1
            assert_close(found["log_probability"], expected["log_probability"], 10 * NEAR, (seed, evidence))
            assert found["supported"] == expected["supported"]
            for column, one, other in zip(shown.columns, found["columns"], expected["columns"], strict=True):
                where = (seed, evidence, column.name, column.kind)
                assert_close(one["mass"], other["mass"], 4 * NEAR, where)
                assert_close(one["missing"], other["missing"], 4 * NEAR, where)
    assert n >= 40


NEAR = 5e-4
NUMBERS = "mean", "low", "high"


def assert_close(a: Any, b: Any, error: float, where: Any) -> None:
    """Numbers, None, or lists of them are alike."""
    if isinstance(b, list):
        assert len(a) == len(b), where
        for x, y in zip(a, b, strict=True):
            assert_close(x, y, error, where)
    elif b is None:
        assert a is None, where
    else:
        assert math.isclose(a, b, abs_tol=error), (where, a, b)


def test_without_scripts_it_can_be_read(opened: Callable[..., Page]) -> None:
    page = opened("penguins", java_script_enabled=False)
    assert not page.locator("#live").is_visible()
    assert page.get_by_role("heading", name="body_mass_g").is_visible()


def test_in_a_frame_it_begins_with_what_can_be_clicked(
    opened: Callable[..., Page], tmp_path: Path, reports: Any
) -> None:
    page = opened("penguins")
    assert page.locator(".report-head").is_visible() and not page.locator("#live h1").is_visible()
    around = tmp_path / "around.html"
    around.write_text(f"<iframe src='{reports['penguins'][0].as_uri()}' width=900 height=700></iframe>")
    page.goto(around.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("#live[data-state=exact]").wait_for()
    assert not frame.locator(".report-head").is_visible() and frame.locator("#live h1").is_visible()
    frame.locator("jf-card[data-name=species]").get_by_text("Gentoo", exact=True).click()
    frame.locator("#live[data-state=exact] jf-card.evident").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_axe_finds_nothing(opened: Callable[..., Page], scheme: str, width: int) -> None:
    page = opened("mixed", color_scheme=scheme, viewport={"width": width, "height": 900})
    found: Any = Axe().run(page).response["violations"]
    assert [f"{one['id']}: {[node['html'][:120] for node in one['nodes']][:3]}" for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_times_that_are_not_over(new_context: Callable[..., BrowserContext], tmp_path: Path) -> None:
    joint = hard.contracts_joint()
    joint.report(tmp_path / "contracts.html")
    page = new_context().new_page()
    page.goto((tmp_path / "contracts.html").as_uri())
    page.wait_for_selector("#live[data-state=exact]")
    page.locator("jf-card[data-name=plan]").get_by_text("pro", exact=True).click()
    page.wait_for_selector("#live[data-state=exact] jf-card.evident")
    card = page.locator("jf-card[data-name=months]")
    summary = card.locator(".summary").text_content() or ""
    assert "not learned" in summary and "more than" in summary and card.locator(".survival").count() == 1
    card.locator(".area").hover(position={"x": 60, "y": 30})
    said = re.fullmatch(
        r"more than ([\d.]+): ([\d.]+)%, without evidence ([\d.]+)%", card.locator(".readout").inner_text()
    )
    assert said is not None
    for text, shown in (("plan = pro", said[2]), (None, said[3])):
        assert float(shown) == pytest.approx(100 * joint.given(text).survival("months", float(said[1])), abs=1.0)


def test_a_map_takes_the_place_of_a_large_matrix(new_context: Callable[..., BrowserContext], tmp_path: Path) -> None:
    frame = tables.wide(26).rename(columns={"x3": "a name of a column that is much longer than others are"})
    joint = jf.JointTree(min_samples_leaf=0.05, random_state=0).fit(frame).joint_
    joint.report(tmp_path / "wide.html")
    page = new_context(viewport={"width": 1440, "height": 9000}).new_page()
    page.goto((tmp_path / "wide.html").as_uri())
    page.wait_for_selector("#live[data-state=exact]")
    area = page.get_by_role("region", name="map of columns")
    assert page.locator(".r-matrix").count() == 0 and sorted(area.locator("li").all_text_contents()) == sorted(frame)
    title = area.locator("path title").first.text_content() or ""
    pair, bits = re.fullmatch(r"(.*): ([\d.]+) bits", title).groups()
    wanted = joint.mutual_information(*pair.split(" and "), bins=16).value / math.log(2.0)
    assert float(bits) == pytest.approx(wanted, abs=0.0051)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 9000})
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert faults(page) == [], width
    assert Axe().run(page, "section[aria-labelledby=depend]").response["violations"] == []
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 760, "height": 9000})
    assert faults(page) == []


@pytest.mark.parametrize("name", ["penguins", "mixed"])
def test_no_word_is_broken_and_nothing_is_cut_off(opened: Callable[..., Page], name: str) -> None:
    page = opened(name, viewport={"width": 1440, "height": 9000})
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 9000})
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert faults(page) == [], width
        assert page.evaluate(BROKEN) == [] or width < 768, width
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 760, "height": 9000})  # of A4 paper
    assert faults(page) == []
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgba(0, 0, 0, 0)"
    assert page.locator(".r-contents").is_visible() and not page.locator("#live").is_visible()


BROKEN = """() => {
    const found = [];
    const walker = document.createTreeWalker(document.querySelector(".report"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode;
        for (const { 0: word, index } of node.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
            const range = document.createRange();
            range.setStart(node, index);
            range.setEnd(node, index + word.length);
            const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
            const isTurned = node.parentElement.closest("thead");
            if (lines.size > 1 && !isTurned) found.push(word);
        }
    }
    return found;
}"""
