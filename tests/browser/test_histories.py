"""The page of a joint of histories: subjects, forecasts, changed cells, all subjects, trouble."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

import jointforest as jf
from jointforest.explorer.histories import shown_histories
from jointforest.explorer.open import Explorer, heard, picture_of
from jointforest.explorer.scripts import script

from .test_widget import MODEL, PAGE


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    return jf.datasets.make_visits(200, random_state=0)


@pytest.fixture(scope="module")
def joint(visits: pd.DataFrame) -> jf.HistoryJoint:
    return jf.fit(visits, group="patient", order="date", random_state=0)


@pytest.fixture(scope="module")
def server(joint: jf.HistoryJoint, visits: pd.DataFrame) -> Iterator[Explorer]:
    with Explorer(joint, "visits.joint", visits) as running:
        yield running


class Histories:
    """The page as a test handles it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.who = page.locator(".who-now")

    def card(self, name: str) -> Locator:
        return self.page.get_by_role("region", name=name, exact=True)

    def cell(self, column: str, row: int) -> Locator:
        return self.page.get_by_label(f"{column}, row {row}", exact=True)

    def type(self, cell: Locator, text: str) -> None:
        cell.fill(text)
        cell.press("Tab")

    def choose(self, patient: int) -> None:
        self.page.get_by_label("find a subject").fill(str(patient))
        self.page.locator(".matches").get_by_role("button").filter(has_text=f"{patient} ").first.click()
        expect(self.who).to_contain_text(f"patient {patient}:")


@pytest.fixture
def open_page(new_context: Callable[..., BrowserContext]) -> Callable[..., Histories]:
    def visit(server: Explorer, hash: str = "", **options: Any) -> Histories:
        page = new_context(**options).new_page()
        page.goto(server.url + hash)
        expect(page.locator(".time-card").first).to_be_visible()
        return Histories(page)

    return visit


def test_the_first_subject_is_shown_with_a_forecast(
    open_page: Callable[..., Histories], server: Explorer, joint: jf.HistoryJoint, visits: pd.DataFrame
) -> None:
    shown = open_page(server)
    rows = visits[visits["patient"] == visits["patient"].iloc[0]]
    expect(shown.who).to_have_text(f"patient {visits['patient'].iloc[0]}: {len(rows)} rows")
    expect(shown.card("pressure").locator(".dot:not(.ahead)")).to_have_count(len(rows))
    expect(shown.card("pressure").locator(".dot.ahead")).to_have_count(3)
    mean = joint.forecast(rows, 1, n_draws=200, random_state=0).mean("weight")[0, 0]
    expect(shown.card("weight")).to_contain_text(f"Next row: mean {mean:.1f}".rstrip("0").rstrip("."))
    expect(shown.cell("status", 1)).to_have_value(rows["status"].iloc[0])
    assert "probability that the history ends" in (
        shown.card("The history has ended").locator("svg").get_attribute("aria-label") or ""
    )


def test_a_subject_is_found_and_kept_in_the_address(open_page: Callable[..., Histories], server: Explorer) -> None:
    shown = open_page(server)
    shown.choose(123)
    expect(shown.page.locator(".matches")).to_be_hidden()
    again = open_page(server, shown.page.url.removeprefix(server.url))
    expect(again.who).to_contain_text("patient 123:")
    shown.page.get_by_label("find a subject").fill("nobody")
    expect(shown.page.locator(".matches")).to_contain_text("No subject of the table has such a name.")


def test_cells_can_be_changed_and_taken_back(
    open_page: Callable[..., Histories], server: Explorer, visits: pd.DataFrame
) -> None:
    shown = open_page(server)
    patient = int(visits.groupby("patient").size().idxmax())
    shown.choose(patient)
    before = shown.card("pressure").locator("p").first.text_content() or ""
    last = int((visits["patient"] == patient).sum())
    shown.type(shown.cell("pressure", last), "165")
    expect(shown.who).to_contain_text("changed")
    expect(shown.card("pressure").locator(".dot.odd").last).to_be_attached()
    expect(shown.card("pressure").locator("p").first).not_to_have_text(before)
    shown.type(shown.cell("weight", 2), "")
    expect(shown.card("weight").locator(".dot.filled-in")).to_have_count(1)
    shown.page.get_by_role("button", name="back to the first cells").click()
    expect(shown.card("pressure").locator("p").first).to_have_text(before)
    expect(shown.card("weight").locator(".dot.filled-in")).to_have_count(0)


def test_a_wrong_cell_says_why_and_the_last_cells_come_back(
    open_page: Callable[..., Histories], server: Explorer
) -> None:
    shown = open_page(server)
    was = shown.cell("status", 1).input_value()
    shown.type(shown.cell("status", 1), "dead")
    expect(shown.page.locator("jf-notice")).to_contain_text("'dead' is not one of its 3 levels")
    expect(shown.cell("status", 1)).to_have_attribute("aria-invalid", "true")
    shown.page.get_by_role("button", name="back to the last cells").click()
    expect(shown.cell("status", 1)).to_have_value(was)
    expect(shown.page.locator("jf-notice")).to_be_hidden()


def test_rows_are_added_and_removed(open_page: Callable[..., Histories], server: Explorer) -> None:
    shown = open_page(server)
    rows = shown.page.locator(".editor tbody tr")
    n = rows.count()
    shown.page.get_by_role("button", name="add the expected next row").click()
    expect(rows).to_have_count(n + 1)
    expect(shown.who).to_contain_text(f"{n + 1} rows, changed")
    assert float(shown.cell("weight", n + 1).input_value()) > 0 and shown.cell("date", n + 1).input_value() > "2020"
    shown.page.get_by_role("button", name=f"remove row {n + 1}", exact=True).click()
    expect(rows).to_have_count(n)
    expect(shown.who).not_to_contain_text("changed")


def test_a_row_that_moves_in_time_moves_on_the_page(open_page: Callable[..., Histories], server: Explorer) -> None:
    shown = open_page(server)
    n = shown.page.locator(".editor tbody tr").count()
    weight = shown.cell("weight", 1).input_value()
    shown.type(shown.cell("date", 1), "2031-01-01")
    expect(shown.cell("date", n)).to_have_value("2031-01-01")
    expect(shown.cell("weight", n)).to_have_value(weight)


def test_all_subjects_by_row_number(open_page: Callable[..., Histories], server: Explorer) -> None:
    shown = open_page(server)
    shown.page.get_by_role("button", name="all subjects").click()
    expect(shown.card("pressure").locator(".curve.drawn")).to_be_attached()
    expect(shown.card("pressure").locator(".curve.table")).to_be_attached()
    expect(shown.card("status").locator(".square.table").first).to_be_attached()
    expect(shown.page.locator(".editor")).to_be_hidden()
    expect(shown.who).to_have_text("All subjects")
    again = open_page(server, shown.page.url.removeprefix(server.url))
    expect(again.card("pressure").locator(".curve.drawn")).to_be_attached()


def test_without_a_table_subjects_are_drawn(open_page: Callable[..., Histories], joint: jf.HistoryJoint) -> None:
    with Explorer(joint, "visits.joint") as server:
        shown = open_page(server)
        expect(shown.who).to_contain_text("drawn subject 1:")
        expect(shown.page.get_by_label("find a subject")).to_be_hidden()
        shown.page.get_by_role("button", name="draw a new subject").click()
        expect(shown.who).to_contain_text("drawn subject 2:")


def test_a_server_that_is_gone_is_said_and_a_new_joint_is_followed(
    open_page: Callable[..., Histories], joint: jf.HistoryJoint, visits: pd.DataFrame
) -> None:
    server = Explorer(joint, "visits.joint", visits)
    shown = open_page(server)
    fewer = visits[visits["patient"] <= 100]
    server.show(jf.fit(fewer, group="patient", order="date", random_state=0), "fewer.joint")
    expect(shown.page.locator("h1")).to_have_text("fewer.joint", timeout=20_000)
    expect(shown.page.locator("jf-notice")).to_contain_text("The joint was replaced")
    expect(shown.page.locator(".about")).to_contain_text("100 subjects")
    server.close()
    shown.page.get_by_role("button", name="draw a new subject").click()
    expect(shown.page.locator("jf-notice")).to_contain_text("the explorer was stopped")


def test_in_a_cell_of_a_notebook_cells_can_be_changed(
    new_context: Callable[..., BrowserContext], joint: jf.HistoryJoint, visits: pd.DataFrame
) -> None:
    of, page = shown_histories(joint, "visits", visits), new_context().new_page()
    page.expose_function("kernel", lambda said: heard(of, said))
    page.set_content(PAGE.replace("BACKGROUND", "white"))
    page.evaluate(MODEL.replace("PICTURE", json.dumps(picture_of(joint))), script("widget_histories.js"))
    shown = Histories(page)
    expect(shown.card("pressure").locator(".dot.ahead")).to_have_count(3)
    assert page.evaluate("() => getComputedStyle(document.querySelector('#own')).color") == "rgb(1, 2, 3)"
    shown.type(shown.cell("weight", 2), "")
    expect(shown.card("weight").locator(".dot.filled-in")).to_have_count(1)
    page.evaluate("() => window.leave()")
    expect(page.locator(".time-card")).to_have_count(0)


@pytest.mark.parametrize("options", [{"viewport": {"width": 360, "height": 740}}, {"color_scheme": "dark"}])
def test_nothing_sticks_out(open_page: Callable[..., Histories], server: Explorer, options: dict[str, Any]) -> None:
    shown = open_page(server, **options)
    inner = shown.page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    assert inner[0] <= inner[1]


def test_every_input_and_picture_has_a_name(open_page: Callable[..., Histories], server: Explorer) -> None:
    shown = open_page(server)
    nameless = shown.page.evaluate(
        """() => [...document.querySelectorAll("input, button, svg[role=img]")].filter((node) =>
            !(node.getAttribute("aria-label") || node.labels?.length || node.textContent.trim())).length"""
    )
    assert nameless == 0
