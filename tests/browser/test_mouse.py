"""Evidence by mouse: each gesture says what it seems to say, and is released by a click."""

from __future__ import annotations

import re

from playwright.sync_api import Route, expect

from .face import Face


def test_a_click_on_a_bar_is_evidence_and_another_releases_it(face: Face) -> None:
    before = face.shares("island")
    face.bar("species", "Gentoo").click()
    face.settle()
    assert face.sentence == "species = 'Gentoo'"
    assert face.bar("species", "Gentoo").get_attribute("aria-selected") == "true"
    assert face.shares("species")["Gentoo"] == "100%"
    assert face.shares("island") != before
    face.bar("species", "Gentoo").click()
    face.settle()
    assert face.sentence == ""
    assert face.shares("island") == before


def test_a_click_on_another_bar_takes_its_place(face: Face) -> None:
    face.bar("species", "Gentoo").click()
    face.settle()
    face.bar("species", "Adelie").click()
    face.settle()
    assert face.sentence == "species = 'Adelie'"


def test_one_more_level_with_ctrl_or_by_the_word_or(face: Face) -> None:
    face.bar("species", "Gentoo").click()
    face.settle()
    face.bar("species", "Adelie").click(modifiers=["ControlOrMeta"])
    face.settle()
    assert face.shares("species")["Chinstrap"] == "0%"
    face.bar("species", "Adelie").hover()
    face.bar("species", "Adelie").get_by_text("or", exact=True).click()
    face.settle()
    assert face.sentence == "species = 'Gentoo'"


def test_not_this_one(face: Face) -> None:
    face.bar("species", "Gentoo").hover()
    face.bar("species", "Gentoo").get_by_text("not", exact=True).click()
    face.settle()
    assert face.sentence == "species != 'Gentoo'"
    assert face.shares("species")["Gentoo"] == "0%"
    assert face.card("species").locator(".typed").input_value() == "!= 'Gentoo'"


def test_a_drag_over_bars_takes_in_all_between(face: Face) -> None:
    face.bar("island", "Biscoe").hover()
    face.page.mouse.down()
    face.bar("island", "Dream").hover()
    face.page.mouse.up()
    face.settle()
    assert face.shares("island")["Torgersen"] == "0%"
    assert face.shares("island")["Dream"] != "0%"


def test_a_drag_over_a_histogram_is_an_interval(face: Face) -> None:
    face.drag("body_mass_g", 0.5, 0.8)
    found = re.fullmatch(r"([\d.]+) <= body_mass_g <= ([\d.]+)", face.sentence)
    assert found is not None
    assert 4000 < float(found[1]) < float(found[2]) < 6000
    face.card("body_mass_g").locator(".area").click(position={"x": 5, "y": 40})
    face.settle()
    assert face.sentence == ""


def test_the_other_cards_follow_while_the_mouse_moves(face: Face) -> None:
    before = face.shares("species")
    face.drag("body_mass_g", 0.97, 0.75, drop=False)
    expect(face.bar("species", "Gentoo").locator(".bar-value")).to_have_text(re.compile(r"^9\d\.|>99"))
    assert face.card("body_mass_g").locator("jf-histogram.live").count() == 1
    face.page.keyboard.press("Escape")
    face.settle()
    assert face.sentence == ""
    assert face.shares("species") == before
    face.page.mouse.up()


def test_a_click_in_a_histogram_takes_one_bin(face: Face) -> None:
    area = face.card("bill_length_mm").locator(".area")
    box = area.bounding_box()
    assert box is not None
    area.click(position={"x": 0.3 * box["width"], "y": 40})
    face.settle()
    assert re.fullmatch(r"[\d.]+ <= bill_length_mm <= [\d.]+", face.sentence)


def test_a_handle_moves_one_end_and_the_window_slides(face: Face) -> None:
    face.drag("body_mass_g", 0.2, 0.6)
    low, high = map(float, re.findall(r"[\d.]+", face.sentence))
    handle = face.slider("body_mass_g", "highest").bounding_box()
    area = face.card("body_mass_g").locator(".area").bounding_box()
    assert handle is not None and area is not None
    mouse = face.page.mouse
    mouse.move(area["x"] + 0.6 * area["width"], handle["y"] + handle["height"] - 10)
    mouse.down()
    mouse.move(area["x"] + 0.8 * area["width"], handle["y"] + 20, steps=4)
    mouse.up()
    face.settle()
    same, higher = map(float, re.findall(r"[\d.]+", face.sentence))
    assert same == low
    assert higher > high
    mouse.move(area["x"] + 0.4 * area["width"], area["y"] + 30)
    mouse.down()
    mouse.move(area["x"] + 0.5 * area["width"], area["y"] + 30, steps=4)
    mouse.up()
    face.settle()
    slid = list(map(float, re.findall(r"[\d.]+", face.sentence)))
    assert slid[0] > low
    assert abs((slid[1] - slid[0]) - (higher - low)) < 60


def test_a_drag_to_the_end_of_the_axis_leaves_that_end_open(face: Face) -> None:
    face.drag("body_mass_g", 0.5, 1.0)
    assert re.fullmatch(r"body_mass_g >= [\d.]+", face.sentence)


def test_missing_is_evidence(face: Face) -> None:
    button = face.card("sex").get_by_role("button", name=re.compile("^missing"))
    button.click()
    face.settle()
    assert face.sentence == "sex is missing"
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    face.settle()
    assert face.sentence == ""


def test_the_cross_releases_a_card(face: Face) -> None:
    face.bar("species", "Gentoo").click()
    face.settle()
    face.page.get_by_role("button", name="remove the evidence on species").click()
    face.settle()
    assert face.sentence == ""


def test_start_over_undo_and_redo(face: Face) -> None:
    face.bar("species", "Gentoo").click()
    face.settle()
    face.bar("sex", "MALE").click()
    face.settle()
    both = face.sentence
    face.page.get_by_role("button", name="start over").click()
    face.settle()
    assert face.sentence == ""
    face.page.get_by_role("button", name="undo").click()
    face.settle()
    assert face.sentence == both
    face.page.get_by_role("button", name="undo").click()
    face.settle()
    assert face.sentence == "species = 'Gentoo'"
    face.page.get_by_role("button", name="redo").click()
    face.settle()
    assert face.sentence == both


def test_overtaken_questions_are_dropped(face: Face) -> None:
    """While the first question of a drag waits for its answer, of two hundred more only the newest is kept."""
    asked: list[str] = []

    def hold_the_first(route: Route) -> None:
        asked.append(route.request.post_data or "")
        if len(asked) > 1:
            route.continue_()

    face.page.route("**/ask/*", hold_the_first)
    area = face.card("body_mass_g").locator(".area")
    box = area.bounding_box()
    assert box is not None
    face.page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 50)
    face.page.mouse.down()
    face.page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 50, steps=200)
    assert len(asked) == 1
    face.page.mouse.up()
    face.settle()
    assert 2 <= len(asked) <= 4
    assert '"exact":true' in asked[-1]
    assert len(re.findall(r"[\d.]+", face.sentence)) == 2


def test_questions_are_numbered_so_that_the_server_can_drop_overtaken_ones(face: Face) -> None:
    asked: list[dict] = []
    face.page.on(
        "request", lambda request: asked.append(request.post_data_json) if "posterior" in request.url else None
    )
    face.drag("body_mass_g", 0.2, 0.7)
    numbers = [body["id"] for body in asked if "id" in body]
    assert len(numbers) > 2 and numbers == sorted(set(numbers))
    assert len({body["page"] for body in asked if "id" in body}) == 1
    assert all(isinstance(body["page"], str) and body["page"] for body in asked if "id" in body)
