"""The states that a page can be in, and what is wrong with the layout of what it shows.

`tools/screenshots.py` makes a picture of each state; `test_states.py` looks for text that is cut off, overlaps other
text or lies beyond the screen, and asks axe.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from playwright.sync_api import Page
from sklearn.ensemble import RandomForestClassifier

import jointforest as jf
from jointforest.explorer.open import Explorer

from ..explorer.tables import contracts, contracts_joint, heavy, heavy_frame
from . import tables
from .face import Face

WIDTHS = 320, 768, 1440
LEVEL, NUMBER, DATE = "group = 'red'", "age >= 40", "day >= '2024-06-01'"
SEVERAL = f"{LEVEL} and {NUMBER} and amount = 0"
RARE = "group = 'green' and age < 25 and amount > 400"


class State(NamedTuple):
    """How a state is reached: evidence and panel in the address, then what a person does.

    Attributes
    ----------
    given : str
    panel : str or None
    act : function of Face, or None
    server : str
        Name of the joint that is shown, see `Servers`.
    end : str
        State of the page that is waited for.
    """

    given: str = ""
    panel: str | None = None
    act: Callable[[Face], Any] | None = None
    server: str = "mixed"
    end: str = "exact"

    @property
    def part(self) -> str | None:
        """What of the page differs from other states, for checks that take long; None for all of it."""
        return None if self.panel is None else ".panel"

    @property
    def address(self) -> str:
        """What stands behind the address of the server."""
        words = {"given": self.given, "panel": self.panel}
        return "#" + urlencode({name: text for name, text in words.items() if text})


def typed(column: str, text: str) -> Callable[[Face], None]:
    """Type a condition into a card."""

    def act(face: Face) -> None:
        field = face.card(column).locator(".typed")
        field.fill(text)
        field.press("Enter")

    return act


def tour(step: int) -> Callable[[Face], None]:
    """Take the tour up to a step, 0 to 4."""

    def act(face: Face) -> None:
        face.page.get_by_role("button", name="take the tour").click()
        for _ in range(step):
            face.page.locator(".tour").get_by_role("button", name="next").click()

    return act


def offer_the_tour(face: Face) -> None:
    """Come for the first time."""
    face.page.evaluate("localStorage.removeItem('jointforest-tour')")
    face.page.evaluate(
        "{ const old = document.querySelector('jf-tour'); old.replaceWith(document.createElement('jf-tour')); }"
    )


def pair(across: str, down: str) -> Callable[[Face], None]:
    """Choose two columns."""

    def act(face: Face) -> None:
        for where, column in (("across", across), ("down", down)):
            face.page.get_by_role("combobox", name=where).select_option(label=column)
            face.rest()

    return act


def predicted(column: str) -> Callable[[Face], None]:
    """Choose the column whose prediction is explained."""

    def act(face: Face) -> None:
        face.page.get_by_role("combobox", name="predicted column").select_option(label=column)
        face.rest()

    return act


def compare(face: Face) -> None:
    """Compare men of one group with those of another one."""
    face.page.get_by_role("button", name="use the evidence as A").click()
    face.rest()
    face.bar("group", "green").click()
    face.settle()
    face.rest()


def choose_axis(column: str, name: str) -> Callable[[Face], None]:
    """Show a column on another axis."""

    def act(face: Face) -> None:
        face.page.get_by_role("button", name=f"axis of {column}", exact=True).click(force=True)
        face.card(column).get_by_role("button", name=name).click()
        face.card(column).locator("jf-histogram").wait_for()
        face.settle()

    return act


def choose_axes(face: Face) -> None:
    """Show two columns on logarithmic axes, and a part of a third one; leave the choices of the last one open."""
    choose_axis("claim", "logarithmic axis")(face)
    choose_axis("count", "logarithmic axis")(face)
    choose_axis("age", "zoom to")(face)
    face.page.get_by_role("button", name="axis of age", exact=True).click(force=True)


def choose_on_map(face: Face, column: str) -> None:
    """Choose a column of the map."""
    face.page.locator(".column-map").get_by_role("button", name=column, exact=True).click()
    face.rest()


def sort_rows(face: Face) -> None:
    """Sort the rows of the table."""
    face.page.locator(".panel").get_by_role("button", name="amount").click()
    face.rest()


def leave_out_cells(face: Face) -> None:
    """Count two cells of the row as unknown."""
    for column in ("group", "real"):
        face.page.get_by_role("checkbox", name=f"{column} is known").click()
        face.rest()


def write_an_odd_cell(face: Face) -> None:
    """Give the row an unlikely age."""
    field = face.page.locator(".one-row").get_by_role("textbox", name="age")
    field.fill("300")
    field.press("Enter")
    face.page.locator("tr.odd").first.wait_for()
    face.rest()


def lose_the_server(face: Face) -> None:
    """Ask a server that does not answer."""
    face.page.route("**/ask/*", lambda route: route.abort())
    face.bar("group", "red").click()


def pin_and_hide(face: Face) -> None:
    """Pin one card, hide another one."""
    face.card("real").hover()
    face.page.get_by_role("button", name="pin real").click()
    face.card("age").hover()
    face.page.get_by_role("button", name="hide age").click()


def find_no_level(face: Face) -> None:
    """Search a list of levels for what it does not have."""
    face.page.get_by_role("searchbox", name="find a level of code").fill("nothing of this kind")


def keyboard_in_a_list(face: Face) -> None:
    """Stand on a level by the keyboard."""
    face.page.get_by_role("listbox", name="levels of group").focus()
    face.page.keyboard.press("ArrowDown")


def open_the_table(face: Face) -> None:
    """Show a map of two columns as a table, too."""
    face.page.get_by_text("as a table").click()


def scale_to_the_longest(face: Face) -> None:
    """Let the longest bar have the full width."""
    face.page.get_by_role("button", name="to the longest").click()


def several_steps(face: Face) -> None:
    """Give evidence in four steps."""
    for level in ("red", "green", "blue"):
        face.bar("group", level).click()
        face.settle()


STATES = {
    "start": State(),
    "level": State(LEVEL),
    "number": State(NUMBER),
    "date": State(DATE),
    "missing": State("real is missing"),
    "several": State(SEVERAL),
    "longest": State(LEVEL, act=scale_to_the_longest),
    "sorted": State(SEVERAL, act=lambda face: face.page.get_by_role("button", name="most moved").click()),
    "pinned": State(LEVEL, act=pin_and_hide),
    "hover bar": State(LEVEL, act=lambda face: face.bar("group", "green").hover()),
    "hover histogram": State(LEVEL, act=lambda face: face.card("age").locator(".area").hover()),
    "keyboard": State(act=keyboard_in_a_list),
    "save a picture": State(
        act=lambda face: face.page.get_by_role("button", name="save a picture of group").click(force=True)
    ),
    "other axes": State("group = b", act=choose_axes, server="heavy"),
    "survival": State("plan = pro", act=lambda face: face.card("months").locator(".area").hover(), server="contracts"),
    "survival compared": State("plan = pro", "compare", server="contracts"),
    "error in sentence": State("group = 'red' and agee > 3", end="refused"),
    "error in card": State(LEVEL, act=typed("age", "about the age of forty or fifty"), end="refused"),
    "impossible": State("group = 'red'", act=typed("size", "is missing"), end="refused"),
    "dimmed": State(RARE),
    "unsupported": State("age > 5000 and real < -90", server="forest"),
    "empty search": State(act=lambda face: face.page.get_by_role("searchbox", name="find a column").fill("zzz")),
    "no answer": State(act=lose_the_server, end="gone"),
    "many levels": State("group = 'a'", server="levels"),
    "no level found": State(act=find_no_level, server="levels"),
    "many columns": State(server="wide"),
    "hard names": State("`` >= 3", server="hostile"),
    "hard names in a panel": State("`` >= 3", "compare", server="hostile"),
    "rows": State(SEVERAL, "rows"),
    "rows of the table": State(NUMBER, "rows", sort_rows, server="asked"),
    "most probable row": State(SEVERAL, "mode"),
    "groups": State(SEVERAL, "why"),
    "waterfall of a number": State(SEVERAL, "reasons", predicted("real")),
    "waterfall of a level": State(f"{NUMBER} and real > 0", "reasons", predicted("group")),
    "waterfall of a date": State(SEVERAL, "reasons", predicted("day")),
    "waterfall without evidence": State("", "reasons"),
    "map": State(LEVEL, "map", lambda face: choose_on_map(face, "age")),
    "map of a level": State("", "map", lambda face: choose_on_map(face, "group")),
    "map of many columns": State("", "map", lambda face: choose_on_map(face, "x12"), server="wide"),
    "map of hard names": State("", "map", server="hostile"),
    "two numbers": State(LEVEL, "pair", pair("age", "real")),
    "two levels": State("", "pair", pair("group", "size")),
    "number and level": State("", "pair", pair("group", "amount")),
    "two levels as a table": State("", "pair", lambda face: (pair("group", "size")(face), open_the_table(face))),
    "the same column twice": State("", "pair", pair("group", "group")),
    "compare": State(LEVEL, "compare", compare),
    "compare with nothing": State(SEVERAL, "compare"),
    "row": State(LEVEL, "row"),
    "odd row": State("", "row", write_an_odd_cell, server="asked"),
    "prediction": State("", "row", leave_out_cells, server="asked"),
    "suspicious cells": State("", "check", server="dirty"),
    "history": State(SEVERAL, "history", several_steps),
    "tour offered": State(act=offer_the_tour),
    **{f"tour {step + 1}": State(act=tour(step)) for step in range(5)},
}
"""Every state of the explorer, by name."""


class Servers:
    """The servers of the joints that states name; each is started when it is first wanted.

    Parameters
    ----------
    mixed : Joint
        Of `tables.mixed`.
    """

    def __init__(self, mixed: jf.Joint) -> None:
        self._started: dict[str, Explorer] = {}
        frame = tables.mixed()
        complete = frame.dropna()
        model = RandomForestClassifier(5, max_depth=3, random_state=0)
        model.fit(complete[["age", "amount"]], complete["group"])
        forest = jf.AdversarialForest(n_estimators=2, random_state=0)
        tree = jf.JointTree(min_samples_leaf=0.05, random_state=0)
        hidden = jf.HiddenTreeForest(n_states=8, rules="off", random_state=0)
        self._start: dict[str, Callable[[], Explorer]] = {
            "mixed": lambda: Explorer(mixed, "mixed.joint"),
            "asked": lambda: mixed.explore(complete, model=model, title="mixed.joint", browser=False),
            "dirty": lambda: Explorer(hidden.fit(tables.dirty()).joint_, "dirty.joint", tables.dirty()),
            "contracts": lambda: Explorer(contracts_joint(), "contracts.joint", contracts()),
            "heavy": lambda: Explorer(heavy(), "heavy.joint", heavy_frame()),
            "forest": lambda: Explorer(forest.fit(frame).joint_, "forest.joint"),
            "levels": lambda: Explorer(tree.fit(tables.some_levels()).joint_, "levels.joint"),
            "wide": lambda: Explorer(tree.fit(tables.wide(60)).joint_, "wide.joint"),
            "hostile": lambda: Explorer(tree.fit(tables.hostile()).joint_, "a hostile table with a long name.joint"),
        }

    def __getitem__(self, name: str) -> Explorer:
        if name not in self._started:
            self._started[name] = self._start[name]()
        return self._started[name]

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *error: object) -> None:
        for server in self._started.values():
            server.close()


def reach(face: Face, state: State) -> None:
    """Bring a page that was opened at the state's address to the state."""
    if state.act is not None:
        face.settle("exact")
        face.rest()
        state.act(face)
    face.settle(state.end)
    face.rest()


FAULTS = (Path(__file__).parent / "faults.js").read_text(encoding="utf-8")


def faults(page: Page, root: str = "body") -> list[str]:
    """What is wrong with the layout of an element: text that is cut off, overlaps, or lies beyond the screen."""
    found: list[str] = page.evaluate(FAULTS, root)
    return found
