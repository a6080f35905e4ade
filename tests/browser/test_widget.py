"""The explorer inside a cell of a notebook: a small page plays the widget's model, Python's own code answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page

import jointforest as jf
from jointforest.explorer.open import heard
from jointforest.explorer.scripts import script
from jointforest.explorer.shown import ShownJoint

from .face import Face
from .states import faults

# a notebook's page with a loud style of its own, and a model as anywidget hands it to a view
PAGE = """
<!doctype html><html lang="en"><head><title>notebook</title><style>
  body { background: BACKGROUND; font: 30px serif; color: red }
  button, h2, table, .cards, .top, jf-card { color: rgb(1, 2, 3); border: 9px dashed lime; letter-spacing: 7px }
</style></head><body><h1>notebook</h1><p id="before">a paragraph</p><button id="own">a button</button>
<main><div id="cell"></div><div id="other"></div></main></body></html>
"""
MODEL = """
async (text) => {
  const view = await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  const again = await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));  // as a second cell
  const hearers = new Set();
  window.commands = [];
  document.addEventListener("keydown", (event) => window.commands.push(event.key));
  window.model = {
    on: (name, hear) => hearers.add(hear),
    off: (name, hear) => hearers.delete(hear),
    send: async (said) => {
      const answer = await window.kernel(said);
      if (answer) for (const hear of [...hearers]) hear(answer, []);
    },
    tell: (said) => hearers.forEach((hear) => hear(said, [])),
    hearers,
    get: (name) => (name === "picture" ? PICTURE : undefined),
  };
  window.views = [view.default, again.default];
  window.leave = view.default.render({ model: window.model, el: document.getElementById("cell") });
}
"""


class Notebook:
    """A page with one cell, and what the kernel shows in it."""

    def __init__(self, page: Page, joint: Any, background: str = "white", is_busy: bool = False) -> None:
        self.page, self.shown = page, ShownJoint(joint, "penguins")
        self.asked: list[dict[str, Any]] = []
        self.is_busy = is_busy
        page.expose_function("kernel", self._kernel)
        page.set_content(PAGE.replace("BACKGROUND", background))
        page.evaluate(MODEL.replace("PICTURE", json.dumps(joint._repr_html_())), script("widget_main.js"))
        self.face = CellFace(page)
        if not is_busy:
            self.face.settle()

    def _kernel(self, said: dict[str, Any]) -> Any:
        self.asked.append(said)
        return None if self.is_busy else heard(self.shown, said)

    def show(self, joint: Any) -> None:
        self.shown = ShownJoint(joint, "penguins")
        self.page.evaluate("model.tell({ kind: 'changed' })")


class CellFace(Face):
    """The explorer in a cell."""

    def settle(self, state: str = "exact") -> None:
        self.page.wait_for_selector(f"#cell .page[data-state={state}]")


@pytest.fixture
def new_notebook(new_context: Callable[..., BrowserContext], penguins: Any) -> Callable[..., Notebook]:
    def make(background: str = "white", is_busy: bool = False, **options: Any) -> Notebook:
        return Notebook(new_context(**options).new_page(), penguins, background, is_busy)

    return make


def style(page: Page, selector: str) -> dict[str, str]:
    names = ["color", "fontSize", "letterSpacing", "borderTopStyle", "backgroundColor"]
    return page.locator(selector).first.evaluate(
        "(node, names) => Object.fromEntries(names.map(name => [name, getComputedStyle(node)[name]]))", names
    )


def test_a_click_is_evidence_and_the_numbers_are_pythons(new_notebook: Callable[..., Notebook], penguins: Any) -> None:
    face = new_notebook().face
    face.bar("species", "Gentoo").click()
    face.settle()
    assert face.sentence == "species = 'Gentoo'"
    given = penguins.given(species="Gentoo")
    shown = face.shares("island")
    for level, share in given.proba("island").items():
        assert float(shown[level].strip("<>%")) == pytest.approx(100 * share, abs=0.0501)
    assert f"{given.mean('body_mass_g'):.0f}"[:3] in face.summary("body_mass_g")
    face.drag("flipper_length_mm", 0.3, 0.6)
    assert "flipper_length_mm" in face.sentence
    face.write("sex = 'MALE'")
    assert face.shares("sex")["MALE"] == "100%"


def test_panels_work_in_it(new_notebook: Callable[..., Notebook]) -> None:
    face = new_notebook().face
    for name in ("Rows like this", "Most probable row", "Groups of rows", "Two columns", "One row", "History"):
        face.page.get_by_role("button", name=name, exact=True).click()
        face.page.get_by_role("region", name=name, exact=True).wait_for()
        face.rest()
        assert face.page.locator(".panel .trouble:not(:empty)").count() == 0, name
    assert face.page.get_by_role("button", name="copy as Python").is_visible()
    assert face.page.get_by_role("button", name="copy as shell").is_hidden()
    assert face.page.get_by_role("button", name="copy as link").is_hidden()


def test_keys_stay_in_the_cell(new_notebook: Callable[..., Notebook]) -> None:
    face = new_notebook().face
    face.page.get_by_role("listbox", name="levels of species").focus()
    for key in ("ArrowDown", "Enter", "d", "d"):
        face.page.keyboard.press(key)
    face.settle()
    assert face.sentence == "species = 'Chinstrap'"
    face.page.keyboard.press("Control+z")
    face.settle()
    assert face.sentence == ""
    face.page.keyboard.press("/")
    focused = "document.querySelector('#cell > div').shadowRoot.activeElement.getAttribute('aria-label')"
    assert face.page.evaluate(focused) == "find a column"
    assert face.page.evaluate("commands") == []


def test_neither_style_reaches_the_other(new_notebook: Callable[..., Notebook]) -> None:
    page = new_notebook().page
    own = {"color": "rgb(1, 2, 3)", "letterSpacing": "7px", "borderTopStyle": "dashed"}
    assert own.items() <= style(page, "#own").items()
    assert style(page, "#before")["fontSize"] == "30px" and style(page, "body")["color"] == "rgb(255, 0, 0)"
    card = style(page, "jf-card")
    assert card["borderTopStyle"] == "solid" and card["letterSpacing"] == "normal" and card["fontSize"] == "15px"
    assert page.title() == "notebook" and page.url == "about:blank"


@pytest.mark.parametrize(("background", "scheme"), [("#111", "light"), ("white", "dark")])
def test_it_is_as_dark_as_the_notebook(new_notebook: Callable[..., Notebook], background: str, scheme: str) -> None:
    notebook = new_notebook(background, color_scheme=scheme)
    paper = {"#111": "rgb(27, 30, 34)", "white": "rgb(255, 255, 255)"}
    notebook.page.wait_for_function(
        "paper => getComputedStyle(document.querySelector('#cell > div').shadowRoot.querySelector('jf-card'))"
        ".backgroundColor === paper",
        arg=paper[background],
    )
    assert faults(notebook.page, "#cell > div") == []
    found: Any = Axe().run(notebook.page, context="#cell").response
    assert [one["id"] for one in found["violations"]] == []


def test_another_joint_in_its_place(new_notebook: Callable[..., Notebook], penguins: Any) -> None:
    notebook = new_notebook()
    notebook.face.bar("species", "Gentoo").click()
    notebook.face.settle()
    notebook.show(penguins.select("species", "sex"))
    notebook.page.locator("jf-notice").get_by_text("The joint was replaced").wait_for()
    notebook.face.settle()
    assert notebook.page.locator("jf-card").count() == 2
    assert notebook.face.sentence == "species = 'Gentoo'"


def test_a_busy_kernel_is_said_and_waited_for(new_notebook: Callable[..., Notebook]) -> None:
    notebook = new_notebook()
    notebook.is_busy = True
    notebook.face.bar("species", "Gentoo").click()
    notebook.page.locator("jf-notice").get_by_text("Python is busy").wait_for()
    notebook.is_busy = False
    said = heard(notebook.shown, notebook.asked[-1])
    notebook.page.evaluate("said => model.tell(said)", said)
    notebook.face.settle()
    assert notebook.face.trouble == "" and notebook.face.shares("species")["Gentoo"] == "100%"


def test_where_nobody_answers_it_is_the_static_picture_until_somebody_does(
    new_notebook: Callable[..., Notebook],
) -> None:
    notebook = new_notebook(is_busy=True)
    cell = notebook.page.locator("#cell")
    cell.get_by_text("No Python answers here").wait_for()
    assert cell.locator("table tr").count() >= 7 and cell.get_by_text("flipper_length_mm").is_visible()
    assert cell.locator(".page").is_hidden()
    found: Any = Axe().run(notebook.page, context="#cell").response
    # the picture has the colour of the text around it, here a red, and as it is static its cards take no focus
    assert {one["id"] for one in found["violations"]} <= {"color-contrast", "scrollable-region-focusable"}
    notebook.is_busy = False
    notebook.page.evaluate("said => model.tell(said)", heard(notebook.shown, notebook.asked[0]))
    notebook.face.settle()
    assert cell.locator(".page").is_visible() and cell.get_by_text("No Python answers here").is_hidden()
    notebook.face.bar("species", "Gentoo").click()
    notebook.face.settle()
    assert notebook.face.sentence == "species = 'Gentoo'"


def test_hostile_answers_do_no_harm(new_notebook: Callable[..., Notebook]) -> None:
    notebook = new_notebook()
    for said in (
        "null",
        "7",
        "{ kind: 'answer' }",
        "{ kind: 'answer', page: 'other', number: 1, status: 200, said: {} }",
        "{ kind: 'answer', page: 'p', number: 1e9, status: 200, said: { columns: '<img src=x onerror=alert(1)>' } }",
    ):
        notebook.page.evaluate(f"model.tell({said})")
    notebook.face.bar("species", "Gentoo").click()
    notebook.face.settle()
    assert notebook.face.sentence == "species = 'Gentoo'"


def test_two_views_of_one_model_and_taking_one_away(new_notebook: Callable[..., Notebook]) -> None:
    notebook = new_notebook()
    page = notebook.page
    page.evaluate("void (window.later = views[1].render({ model, el: document.getElementById('other') }))")
    page.wait_for_selector("#other .page[data-state=exact]")
    page.locator("#other jf-card[data-name=species]").scroll_into_view_if_needed()
    page.locator("#other jf-card[data-name=species]").get_by_text("Gentoo", exact=True).click()
    page.wait_for_function(
        "document.querySelector('#other > div').shadowRoot.querySelector('textarea').value === \"species = 'Gentoo'\""
    )
    assert page.locator("#cell textarea.sentence").input_value() == ""
    page.evaluate("leave()")
    assert page.locator("#cell").inner_html() == "" and page.evaluate("model.hearers.size") == 1
    before = len(notebook.asked)
    page.locator("#other jf-card[data-name=species]").get_by_text("Gentoo", exact=True).click()
    page.wait_for_function("document.querySelector('#other > div').shadowRoot.querySelector('textarea').value === ''")
    assert len({said["page"] for said in notebook.asked[before:]}) == 1


def test_a_cell_that_is_moved_is_still_whole(new_notebook: Callable[..., Notebook]) -> None:
    face = new_notebook().face
    face.page.evaluate("document.getElementById('other').append(document.getElementById('cell'))")
    assert face.page.locator("textarea.sentence").count() == 1
    face.bar("species", "Gentoo").click()
    face.settle()
    assert face.sentence == "species = 'Gentoo'"


def test_hostile_names_are_text(new_context: Callable[..., BrowserContext]) -> None:
    from .tables import HOSTILE_NAME, hostile

    joint = jf.JointTree(min_samples_leaf=0.05).fit(hostile()).joint_
    notebook = Notebook(new_context().new_page(), joint)
    assert notebook.face.card(HOSTILE_NAME).locator("h2").text_content() == HOSTILE_NAME
    assert notebook.page.locator("jf-card img").count() == 0
