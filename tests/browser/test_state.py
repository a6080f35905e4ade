"""History, links, several tabs, order, pins, search: how the page is looked at."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from jointforest.explorer.open import Explorer

from ..explorer.tables import contracts, contracts_joint, heavy, heavy_frame
from .face import Face
from .states import choose_axis


def test_a_link_restores_the_state(visit: Callable[..., Face], penguin_server: Explorer) -> None:
    face = visit(penguin_server)
    face.write("species = 'Gentoo' and body_mass_g >= 5000")
    face.page.get_by_role("button", name="most moved").click()
    face.page.get_by_role("button", name="pin sex").click()
    face.page.get_by_role("button", name="hide island").click()
    address = face.page.url
    again = visit(penguin_server, "#" + address.split("#", 1)[1])
    assert again.sentence == face.sentence
    assert again.chance == face.chance
    assert again.order == face.order
    assert again.order[0] == "sex"
    assert "island" not in again.order
    again.page.get_by_role("button", name="show 1 hidden").click()
    assert "island" in again.order


def test_an_address_written_by_hand_is_followed(face: Face) -> None:
    face.page.evaluate("location.hash = 'given=species+%3D+Adelie'")
    expect(face.page.locator(".sentence")).to_have_value("species = 'Adelie'")
    face.settle()
    assert face.shares("species")["Adelie"] == "100%"


def ticks(face: Face, column: str) -> list[str]:
    """The kind of a card's picture, and the texts below its axis."""
    picture = face.card(column).locator("jf-histogram")
    return [picture.get_attribute("class") or "", *picture.locator(".axis span").all_text_contents()]


def test_a_link_restores_axes_and_the_compared_evidence(visit: Callable[..., Face]) -> None:
    with Explorer(heavy(), "heavy.joint", heavy_frame()) as server:
        face = visit(server, "#given=group+%3D+b&panel=compare")
        choose_axis("age", "zoom to")(face)
        choose_axis("claim", "logarithmic axis")(face)
        face.page.get_by_role("button", name="use the evidence as A").click()
        face.rest()
        face.write("group = a")
        face.rest()
        for again in (visit(server, "#" + face.page.url.split("#", 1)[1]), reloaded(face)):
            again.rest()
            for column in ("age", "claim", "count"):
                assert ticks(again, column) == ticks(face, column)
            assert again.page.locator(".compared dd").all_text_contents()[0].startswith("group = 'b'")
            assert (
                again.page.locator(".compared-columns").inner_text()
                == face.page.locator(".compared-columns").inner_text()
            )
            assert again.page.url == face.page.url
        choose_axis("age", "whole axis")(face)
        expect(face.page).not_to_have_url(re.compile("age"))
        face.page.evaluate("location.hash = 'given=group+%3D+a&axis=log:age&axis=log:count&panel=compare'")
        expect(face.page.locator(".compared dd").first).to_contain_text("no evidence")
        face.settle()
        assert face.page.evaluate("location.hash").count("axis") == 1  # age has no such axis
        assert ticks(face, "count") == ticks(visit(server, "#axis=log:count"), "count")
        assert face.sentence == "group = 'a'"


def reloaded(face: Face) -> Face:
    """The page after it was loaded once more."""
    face.page.reload()
    face.settle()
    return face


def test_a_link_restores_a_histogram_of_times(visit: Callable[..., Face]) -> None:
    with Explorer(contracts_joint(), "contracts.joint", contracts()) as server:
        face = visit(server)
        choose_axis("months", "histogram")(face)
        expect(face.page).to_have_url(re.compile("whole%3Amonths"))
        assert "survival" not in ticks(reloaded(face), "months")[0]


def test_cards_sort_by_how_much_they_moved(face: Face) -> None:
    table = face.order
    face.write("species = 'Gentoo'")
    assert face.order == table
    face.page.get_by_role("button", name="most moved").click()
    moved = face.page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('jf-card')].map(c => [c.dataset.name, c.known.now.moved]))"
    )
    assert face.order == sorted(table, key=lambda name: -moved[name])
    face.page.get_by_role("button", name="table order").click()
    assert face.order == table


def test_the_history_is_listed_and_walked(face: Face) -> None:
    face.write("species = 'Gentoo'")
    face.write("species = 'Gentoo' and sex = 'MALE'")
    face.page.get_by_role("button", name="History").click()
    steps = face.page.get_by_role("region", name="History").get_by_role("listitem")
    assert [step.locator("span").text_content() for step in steps.all()] == [
        "no evidence",
        "species = 'Gentoo'",
        "species = 'Gentoo' and sex = 'MALE'",
    ]
    steps.nth(1).get_by_role("button").click()
    face.settle()
    assert face.sentence == "species = 'Gentoo'"


def test_two_tabs_do_not_know_of_each_other(
    visit: Callable[..., Face], penguin_server: Explorer, new_context: Any
) -> None:
    context = new_context()
    one, two = visit(penguin_server, context=context), visit(penguin_server, context=context)
    one.bar("species", "Gentoo").click()
    two.bar("species", "Adelie").click()
    one.settle()
    two.settle()
    one.bar("sex", "MALE").click()
    two.bar("sex", "FEMALE").click()
    one.settle()
    two.settle()
    assert one.sentence == "species = 'Gentoo' and sex = 'MALE'"
    assert two.sentence == "species = 'Adelie' and sex = 'FEMALE'"


def test_a_column_is_found_and_none_is_said_kindly(face: Face) -> None:
    face.page.get_by_role("searchbox", name="find a column").fill("bill")
    assert face.order == ["bill_length_mm", "bill_depth_mm"]
    face.page.get_by_role("searchbox", name="find a column").fill("zebra")
    assert face.page.get_by_text("No column has such a name.").is_visible()
