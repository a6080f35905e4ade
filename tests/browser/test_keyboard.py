"""Evidence by keyboard: everything that the mouse does."""

from __future__ import annotations

import re

import pytest

from .face import Face


def focus_levels(face: Face, column: str) -> None:
    face.page.get_by_role("listbox", name=f"levels of {column}").focus()


def press(face: Face, *keys: str) -> None:
    for key in keys:
        face.page.keyboard.press(key)


def test_a_bar_by_arrows_and_enter(face: Face) -> None:
    focus_levels(face, "species")
    press(face, "ArrowDown", "ArrowDown", "Enter")
    face.settle()
    assert face.sentence == "species = 'Gentoo'"
    press(face, "Enter")
    face.settle()
    assert face.sentence == ""


def test_one_more_and_not_this_one_by_keys(face: Face) -> None:
    focus_levels(face, "species")
    press(face, "Home", "Space", "End", "Shift+Enter")
    face.settle()
    assert face.shares("species")["Chinstrap"] == "0%"
    press(face, "Escape")
    face.settle()
    assert face.sentence == ""
    press(face, "Delete")
    face.settle()
    assert face.sentence == "species != 'Gentoo'"


def test_the_active_level_is_told_to_screen_readers(face: Face) -> None:
    focus_levels(face, "species")
    press(face, "ArrowDown")
    listbox = face.page.get_by_role("listbox", name="levels of species")
    active = face.page.locator(f"#{listbox.get_attribute('aria-activedescendant')}")
    assert active.get_attribute("role") == "option"
    assert "Chinstrap" in (active.text_content() or "")


def test_both_ends_of_a_histogram_by_arrows(face: Face) -> None:
    low = face.slider("body_mass_g", "lowest")
    assert low.get_attribute("aria-valuetext") == "no lower end"
    low.focus()
    press(face, "PageUp", "PageUp", "ArrowRight")
    face.settle()
    found = re.fullmatch(r"body_mass_g >= ([\d.]+)", face.sentence)
    assert found is not None
    assert low.get_attribute("aria-valuetext") == found[1].replace(".0", "")
    assert float(low.get_attribute("aria-valuenow") or 0) == float(found[1])
    face.slider("body_mass_g", "highest").focus()
    press(face, "PageDown", "Shift+ArrowLeft")
    face.settle()
    assert re.fullmatch(r"[\d.]+ <= body_mass_g <= [\d.]+", face.sentence)
    press(face, "Home")
    face.settle()
    low_end, high_end = re.findall(r"[\d.]+", face.sentence) if "<=" in face.sentence else ("", "")
    assert low_end == high_end or face.sentence.startswith("body_mass_g = ")
    press(face, "Escape")
    face.settle()
    assert face.sentence == ""


def test_home_and_end_open_an_end_again(face: Face) -> None:
    face.slider("body_mass_g", "lowest").focus()
    press(face, "PageUp")
    face.settle()
    assert face.sentence
    press(face, "Home")
    face.settle()
    assert face.sentence == ""


@pytest.mark.parametrize(
    ("column", "typed", "sentence"),
    [
        ("body_mass_g", "between 4000 and 5000", "4000 <= body_mass_g <= 5000"),
        ("body_mass_g", ">= 4500", "body_mass_g >= 4500"),
        ("species", "in {Chinstrap, Gentoo}", "species != 'Adelie'"),
        ("body_mass_g", "4000", "body_mass_g = 4000"),
        ("species", "not Gentoo", "species != 'Gentoo'"),
        ("species", "Chinstrap", "species = 'Chinstrap'"),
        ("sex", "is missing", "sex is missing"),
    ],
)
def test_a_typed_condition(face: Face, column: str, typed: str, sentence: str) -> None:
    field = face.card(column).locator(".typed")
    field.fill(typed)
    field.press("Enter")
    face.settle()
    assert face.sentence == sentence
    field.fill("")
    field.press("Enter")
    face.settle()
    assert face.sentence == ""


def test_dates_typed_and_by_arrows(mixed_face: Face) -> None:
    field = mixed_face.card("day").locator(".typed")
    field.fill("between '2024-03-01' and '2024-04-01'")
    field.press("Enter")
    mixed_face.settle()
    assert "2024-03-01" in mixed_face.sentence
    assert "2024-04-01" in mixed_face.sentence
    assert mixed_face.trouble == ""
    low = mixed_face.slider("day", "lowest")
    assert low.get_attribute("aria-valuetext") == "2024-03-01"
    low.focus()
    press(mixed_face, "ArrowRight")
    mixed_face.settle()
    assert "2024-03-01" not in mixed_face.sentence


def test_what_the_field_shows_can_be_edited(mixed_face: Face) -> None:
    mixed_face.write("day >= '2024-03-01' and age > 30")
    for column, words in [("day", ">= '2024-03-01'"), ("age", ">= 31")]:
        assert mixed_face.card(column).locator(".typed").input_value() == words
    field = mixed_face.card("age").locator(".typed")
    field.fill(field.input_value().replace("31", "41"))
    field.press("Enter")
    mixed_face.settle()
    assert mixed_face.sentence == "age >= 41 and day >= '2024-03-01'"


def test_the_sentence_is_edited(face: Face) -> None:
    face.write("body_mass_g > 5000 and sex = 'MALE'")
    assert face.bar("sex", "MALE").get_attribute("aria-selected") == "true"
    assert face.card("body_mass_g").locator(".window").is_visible()
    face.write("")
    assert face.chance == "all rows"


def test_undo_and_redo_by_keys(face: Face) -> None:
    focus_levels(face, "species")
    press(face, "Enter")
    face.settle()
    said = face.sentence
    press(face, "ControlOrMeta+z")
    face.settle()
    assert face.sentence == ""
    press(face, "ControlOrMeta+Shift+z")
    face.settle()
    assert face.sentence == said


def test_every_control_is_reached_by_tab_and_shows_it(face: Face) -> None:
    seen = []
    for _ in range(200):
        face.page.keyboard.press("Tab")
        found = face.page.evaluate(
            """() => { const e = document.activeElement; if (!e || e === document.body) return null;
            const s = getComputedStyle(e), after = getComputedStyle(e, '::after');
            const shows = s.outlineStyle !== 'none' || after.outlineStyle !== 'none' || s.borderBottomStyle !== 'none';
            return [e.getAttribute('aria-label') ?? e.textContent, shows, e.tagName]; }"""
        )
        if found is None or found in seen[:1]:
            break
        seen.append(found)
    names = [name for name, _, _ in seen]
    for name in (
        "the evidence, in the query language",
        "find a column",
        "levels of species",
        "lowest body_mass_g",
        "highest body_mass_g",
        "pin species",
        "hide species",
        "evidence on sex",
        "table order",
        "Groups of rows",
    ):
        assert name in names, name
    assert all(shows for _, shows, _ in seen)


def test_slash_goes_to_the_search(face: Face) -> None:
    face.page.keyboard.press("/")
    face.page.keyboard.type("bill")
    assert face.order == ["bill_length_mm", "bill_depth_mm"]


def test_the_map_of_two_columns_by_arrows_and_enter(face: Face) -> None:
    face.page.get_by_role("button", name="Two columns", exact=True).click()
    panel = face.page.get_by_role("region", name="Two columns", exact=True)
    for which, name in (("across", "species"), ("down", "island")):
        panel.get_by_role("combobox", name=which).select_option(label=name)
        face.rest()
    grid = panel.get_by_role("application")
    grid.focus()
    heard = panel.locator(".panel-body .unseen[role=status]")
    assert (heard.text_content() or "").startswith("Gentoo and Biscoe: ")  # the heaviest
    press(face, "ArrowLeft", "ArrowDown")
    assert (heard.text_content() or "").startswith("Chinstrap and Dream: ")
    assert panel.locator(".cursor").evaluate("node => getComputedStyle(node).visibility") == "visible"
    press(face, "Home", "PageDown", "ArrowDown", "ArrowLeft")
    assert (heard.text_content() or "").startswith("Adelie and Torgersen: ")
    press(face, "Enter")
    face.settle()
    face.rest()
    assert face.sentence == "species = 'Adelie' and island = 'Torgersen'"
    focused = panel.get_by_role("application").evaluate("node => node === document.activeElement")
    assert focused and (heard.text_content() or "") == "Adelie and Torgersen: 100%"


def test_greater_numbers_lie_higher_in_the_map(face: Face) -> None:
    face.page.get_by_role("button", name="Two columns", exact=True).click()
    panel = face.page.get_by_role("region", name="Two columns", exact=True)
    for which, name in (("across", "bill_length_mm"), ("down", "body_mass_g")):
        panel.get_by_role("combobox", name=which).select_option(label=name)
        face.rest()
    panel.get_by_role("application").focus()
    told = panel.locator(".told")

    def mass() -> float:
        found = re.search(r" and (?:up to )?([\d.,]+)(?: to .*)?:", told.text_content() or "")  # the lowest bin is open
        return float(found[1].replace(",", "")) if found else float("nan")

    before = mass()
    press(face, "ArrowUp")
    assert mass() > before
    press(face, "PageDown")
    assert mass() < before
