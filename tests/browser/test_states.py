"""In every state and at every width, no text is cut off, overlapping or beyond the screen; and axe finds nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .face import Face
from .states import STATES, WIDTHS, Servers, State, faults, reach
from .test_access import complaints

HIGH, TALL = 900, 4000
"""Heights of a usual screen, and of one on which all cards are drawn."""


@pytest.fixture(scope="module")
def served(mixed: Any) -> Iterator[Servers]:
    """The servers of the joints that states name."""
    with Servers(mixed) as servers:
        yield servers


@pytest.mark.parametrize("name", STATES)
def test_states(new_context: Callable[..., Any], served: Servers, name: str) -> None:
    state: State = STATES[name]
    page = new_context(viewport={"width": WIDTHS[-1], "height": HIGH}).new_page()
    page.goto(served[state.server].url + state.address)
    face = Face(page)
    reach(face, state)
    for width in WIDTHS:
        resize(face, width, TALL)
        assert faults(page) == [], width
    resize(face, WIDTHS[-1], HIGH)
    assert complaints(face, "color-contrast", state.part) == []
    page.emulate_media(color_scheme="dark")
    resize(face, WIDTHS[0], HIGH)
    assert complaints(face, part=state.part) == []


def resize(face: Face, width: int, height: int) -> None:
    """Give the page a screen of another size, and wait until it is laid out."""
    face.page.set_viewport_size({"width": width, "height": height})
    face.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
