"""Contrast, names of controls, small screens, right ways to be told: for everyone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from jointforest.explorer.open import Explorer

from .face import Face

PANELS = ["Rows like this", "Most probable row", "Groups of rows", "Two columns", "One row", "History"]


def complaints(face: Face, rule: str | None = None, part: str | None = None) -> list[str]:
    """What axe finds wrong with the page, or with a part of it, by all its rules or by one."""
    options = {"resultTypes": ["violations"]} | ({"runOnly": [rule]} if rule else {})
    found: Any = Axe().run(face.page, part, options).response
    assert len(found["passes"]) > (0 if rule or part else 20)  # it did look
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:120] for node in one['nodes']][:3]}"
        for one in found["violations"]
    ]


@pytest.mark.parametrize("width", [900, 2560])
def test_nothing_is_wider_than_the_screen(visit: Callable[..., Face], mixed_server: Explorer, width: int) -> None:
    face = visit(mixed_server, "#given=group+%3D+red", viewport={"width": width, "height": 900})
    for panel in PANELS:
        face.page.get_by_role("button", name=panel, exact=True).click()
        face.rest()
        assert face.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), panel


def test_the_probability_is_told_once_things_rest(face: Face) -> None:
    told = face.page.locator("jf-sentence [aria-live=polite]")
    face.write("species = 'Gentoo'")
    assert told.text_content() == "1 row in 2.8, probability 36.0%"


def test_nothing_moves_where_less_motion_is_wished_for(face: Face) -> None:
    face.bar("species", "Gentoo").click()
    face.settle()
    assert face.page.evaluate("document.getAnimations().length") == 0


def test_bars_glide_where_motion_is_welcome(visit: Callable[..., Face], penguin_server: Explorer) -> None:
    face = visit(penguin_server, reduced_motion="no-preference")
    assert face.page.evaluate("getComputedStyle(document.querySelector('.track .fill')).transitionDuration") == "0.22s"
