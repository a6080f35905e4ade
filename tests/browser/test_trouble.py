"""What goes wrong is said, nothing is lost, and the page goes on by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

import jointforest as jf
from jointforest.explorer.open import Explorer

from . import tables
from .face import Face


def test_a_sentence_that_cannot_be_read_stays_to_be_mended(face: Face) -> None:
    face.write("species = 'Gentoo'")
    face.write("species = 'Gentoo' and bodymass > 3", "refused")
    assert "bodymass" in face.trouble
    assert face.sentence == "species = 'Gentoo' and bodymass > 3"
    assert face.shares("species")["Gentoo"] == "100%"
    face.write("species = 'Gentoo' and body_mass_g >= 4000")
    assert face.trouble == ""
    face.write("species = 'Gentoo' and bodymass > 3", "refused")
    face.page.get_by_role("button", name="back to the last evidence").click()
    face.settle()
    assert face.sentence == "species = 'Gentoo' and body_mass_g >= 4000"
    assert face.trouble == ""


def test_impossible_evidence_is_said_kindly(face: Face) -> None:
    face.write("species = 'Gentoo'")
    face.write("species = 'Gentoo' and island is missing", "refused")
    assert face.trouble.startswith("No row can be like this.")
    assert face.shares("species")["Gentoo"] == "100%"
    face.page.keyboard.press("Escape")
    assert face.sentence == "species = 'Gentoo'"
    assert face.trouble == ""
    face.bar("sex", "MALE").click()
    face.settle()
    assert face.sentence == "species = 'Gentoo' and sex = 'MALE'"


def test_a_typed_condition_that_is_refused_stays(face: Face) -> None:
    field = face.card("species").locator(".typed")
    field.fill("Emperor")
    field.press("Enter")
    face.settle("refused")
    assert "Emperor" in face.trouble and "Adelie" in face.trouble
    assert field.input_value() == "Emperor"
    assert field.get_attribute("aria-invalid") == "true"


def test_a_link_to_what_there_is_not_shows_the_page(
    visit: Callable[..., Face], penguin_server: Explorer, new_context: Any
) -> None:
    page = new_context().new_page()
    page.goto(penguin_server.url + "#given=emperor+%3D+1&pin=nobody&panel=nothing")
    face = Face(page)
    face.settle("refused")
    assert "emperor" in face.trouble
    assert len(face.order) == 7


def test_a_joint_replaced_under_the_page(penguins: Any, visit: Callable[..., Face]) -> None:
    other = jf.JointTree(min_samples_leaf=0.05).fit(jf.datasets.load_penguins().drop(columns="island")).joint_
    with Explorer(penguins, "penguins.joint") as server:
        face = visit(server)
        face.bar("species", "Gentoo").click()
        face.settle()
        server.show(other, "others.joint")
        face.bar("sex", "MALE").click()
        expect(face.page.locator("h1")).to_have_text("others.joint")
        expect(face.page.locator("jf-card")).to_have_count(6)
        face.settle()
        assert "replaced" in face.trouble
        assert face.sentence == "species = 'Gentoo'"
        assert face.shares("species")["Gentoo"] == "100%"
        assert face.shares("sex") != {}


def test_a_stopped_server_is_said_and_its_return_noticed(
    penguins: Any, visit: Callable[..., Face], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_urlsafe", lambda size: "the-same-secret-in-the-address-again")
    first = Explorer(penguins, "penguins.joint")
    port = int(first.url.split(":")[2].split("/")[0])
    try:
        face = visit(first)
        face.bar("species", "Gentoo").click()
        face.settle()
    finally:
        first.close()
    face.bar("sex", "MALE").click()
    face.settle("gone")
    assert "No answer" in face.trouble
    assert face.shares("species")["Gentoo"] == "100%"
    with Explorer(penguins, "penguins.joint", port=port):
        face.settle()
        assert face.trouble == ""
        assert face.sentence == "species = 'Gentoo' and sex = 'MALE'"


def test_evidence_that_the_model_hardly_knows_says_so(
    visit: Callable[..., Face], mixed: Any, mixed_server: Explorer
) -> None:
    face = visit(mixed_server)
    sentence = "real > 20 and group = 'red'"
    face.write(sentence)
    assert mixed.given(sentence).supported is False
    assert face.page.get_by_text("not supported").first.is_visible()
    assert tables.HOSTILE_NAME not in face.order


def test_it_says_that_it_is_at_work(face: Face) -> None:
    held: list[Any] = []
    face.page.route("**/ask/mode", lambda route: held.append(route))
    face.page.get_by_role("button", name="Most probable row", exact=True).click()
    working = face.page.locator(".panel").get_by_role("status")
    expect(working).to_have_text("Working …")
    expect(working).to_contain_text("takes longest")
    held[0].continue_()
    face.rest()
    expect(working).to_have_count(0)
    assert "log-density" in (face.page.locator(".panel").text_content() or "")


def test_a_slow_start_says_why(new_context: Any, penguin_server: Explorer) -> None:
    held: list[Any] = []
    page = new_context().new_page()
    page.route("**/ask/table", lambda route: held.append(route))
    page.goto(penguin_server.url)
    expect(page.locator("jf-notice")).to_contain_text("Getting ready.")
    held[0].continue_()
    face = Face(page)
    face.settle()
    assert face.trouble == ""
