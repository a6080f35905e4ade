"""Pictures of the explorer, the report and the notebook widget.

    python tools/screenshots.py [NAME ...]     those of the documentation, into docs/images/explorer/
    python tools/screenshots.py --all FOLDER   every state of the pages, 320, 768 and 1,440 pixels wide, into a folder

Needs Chromium and playwright (pip install -e '.[test-browser]'). The documentation shows a joint of the penguins; the
states are those of `tests/browser/states.py`, which the tests check for text that is cut off or overlaps.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from sklearn.ensemble import RandomForestClassifier

import jointforest as jf
from jointforest.explorer.open import heard
from jointforest.explorer.scripts import script
from jointforest.explorer.shown import ShownJoint

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.browser import tables  # noqa: E402
from tests.browser.face import Face  # noqa: E402
from tests.browser.states import (  # noqa: E402
    STATES,
    WIDTHS,
    Servers,
    State,
    choose_on_map,
    reach,
)

DOCS = ROOT / "docs" / "images" / "explorer"
SCHEMES = "light", "dark"
COLOURS = 200
HIGH = 900
PATIENCE = 300_000
"""Milliseconds: a first question compiles kernels."""
NUMBERS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]
EVIDENCE = "species = 'Gentoo' and body_mass_g >= 5000"


def save(page: Page, path: Path, full: bool = False) -> None:
    """Write what is seen, or the full page, with few colours so that the file is small."""
    shot = Image.open(io.BytesIO(page.screenshot(full_page=full))).convert("RGB")
    shot.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


@contextmanager
def opened(browser: Browser, scheme: str, width: int, height: int) -> Iterator[Page]:
    """A page without motion."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE)
    page.add_init_script("try { localStorage.setItem('jointforest-tour', 'seen') } catch {}")
    yield page
    page.close()


# ---- Pictures of the documentation.


def leave_out_cells(face: Face) -> None:
    """Count three cells as unknown."""
    for column in ("species", "bill_length_mm", "flipper_length_mm"):
        face.page.get_by_role("checkbox", name=f"{column} is known").click()
        face.rest()


# name of the picture: state, width, height
VIEWS: dict[str, tuple[State, int, int]] = {
    "evidence": (State(EVIDENCE), 1280, 830),
    "reasons": (State(EVIDENCE, "reasons"), 1280, 800),
    "map": (State("sex = 'MALE'", "map", lambda face: choose_on_map(face, "species")), 1280, 900),
    "check": (State("", "check", server="dirty"), 1280, 800),
    "prediction": (State("", "row", leave_out_cells, "asked"), 1280, 800),
}

NOTEBOOK = "<body style='margin: 20px; background: #ffffff'><div id='cell'></div></body>"
PLAY = """
async (text) => {
  const view = await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  const hearers = [];
  const send = async (said) => { const found = await kernel(said); hearers.forEach((hear) => hear(found)); };
  const model = { send, on: (name, hear) => hearers.push(hear), off: () => {}, get: () => "" };
  view.default.render({ model, el: document.getElementById("cell") });
}
"""


def notebook(page: Page, joint: jf.Joint) -> None:
    """The page as a cell of a notebook shows it; this program plays the kernel."""
    shown = ShownJoint(joint, "penguins")
    page.expose_function("kernel", lambda said: heard(shown, said))
    page.set_content(NOTEBOOK)
    page.evaluate(PLAY, script("widget_main.js"))
    page.wait_for_selector(".page[data-state=exact]")
    page.locator("jf-card[data-name=species]").get_by_text("Gentoo", exact=True).click()
    page.get_by_role("button", name="Two columns", exact=True).click()
    page.wait_for_selector(".page[data-state=exact]")
    page.locator(".panel [aria-busy]").wait_for(state="detached")


def report(page: Page, path: Path, column: str, start: float, end: float) -> None:
    """A report with evidence in its live part: a drag over a histogram, by shares of its width."""
    page.goto(path.as_uri())
    page.wait_for_selector("#live[data-state=exact]")
    Face(page).drag(column, start, end, drop=False)
    page.mouse.up()
    page.wait_for_selector("#live[data-state=exact] jf-card.evident")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")


def cards(page: Page) -> None:
    """The static view of a posterior, as a notebook shows it."""
    joint = jf.HiddenTreeForest(random_state=0).fit(jf.datasets.load_penguins()).joint_
    view = joint.given("species = Gentoo and sex = FEMALE")._repr_html_()
    page.set_content(f"<body style='margin: 16px'>{view}</body>")


def histories(browser: Browser) -> None:
    """One patient's visits, with a changed cell and an empty one."""
    visits = jf.datasets.make_visits(300, random_state=0)
    joint = jf.fit(visits, group="patient", order="date", random_state=0)
    with (
        joint.explore(visits, title="visits.joint", browser=False) as served,
        opened(browser, "light", 1280, 1000) as page,
    ):
        page.goto(served.url + f"#subject={visits['patient'].unique().tolist().index(123)}&steps=3")
        for column, row, text in (("pressure", 8, "165"), ("weight", 4, "")):
            page.get_by_label(f"{column}, row {row}", exact=True).fill(text)
            page.get_by_label(f"{column}, row {row}", exact=True).press("Enter")
            page.locator(".timelines:not([aria-busy])").wait_for()
        page.locator(".dot.filled-in").first.wait_for(state="attached")
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        save(page, DOCS / "histories-light.png")


def documentation(browser: Browser, names: list[str]) -> None:
    """The pictures of docs/images/explorer/, or those with these names."""
    penguins = jf.datasets.load_penguins()
    joint = jf.fit(penguins, budget="fast", random_state=0)
    complete = penguins.dropna().reset_index(drop=True)
    model = RandomForestClassifier(20, max_depth=4, random_state=0).fit(complete[NUMBERS], complete["species"])
    wanted = names or [*VIEWS, "notebook", "report", "cards", "histories"]
    DOCS.mkdir(exist_ok=True)
    if "histories" in wanted:
        histories(browser)
    with (
        joint.explore(title="penguins.joint", browser=False) as served,
        joint.explore(complete, model=model, title="penguins.joint", browser=False) as asked,
        TemporaryDirectory() as folder,
        Servers(joint) as others,
    ):
        servers = {"mixed": served, "asked": asked}
        file = Path(folder) / "penguins.html"
        joint.report(file, penguins, target="sex", examples=3, title="penguins")
        if "cards" in wanted:
            with opened(browser, "light", 1000, 100) as page:
                cards(page)
                save(page, DOCS.parent / "notebook_posterior.png", full=True)
        for name in wanted:
            if name in VIEWS:
                state, width, height = VIEWS[name]
                with opened(browser, "light", width, height) as page:
                    page.goto((servers.get(state.server) or others[state.server]).url + state.address)
                    reach(Face(page), state)
                    page.evaluate("scrollTo(0, 0)")
                    page.mouse.move(2, 2)
                    save(page, DOCS / f"{name}-light.png")
        if "notebook" in wanted:
            with opened(browser, "light", 1000, 745) as page:
                notebook(page, joint)
                page.mouse.move(2, 2)
                save(page, DOCS / "notebook-light.png")
        if "report" in wanted:
            with opened(browser, "light", 1280, 900) as page:
                report(page, file, "body_mass_g", 0.6, 1.0)
                save(page, DOCS / "report-light.png")


# ---- Every state.


def all_states(browser: Browser, folder: Path) -> None:
    """A picture of every state of the explorer and the report, at each width, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    mixed = jf.JointTree(min_samples_leaf=0.05).fit(tables.mixed()).joint_
    file = folder / "report.html"
    mixed.report(file, tables.mixed(), holdout=tables.mixed().head(50), target="group", examples=3, title="mixed.joint")

    with Servers(mixed) as servers:
        for scheme in SCHEMES:
            for width in WIDTHS:
                for name, state in STATES.items():
                    with opened(browser, scheme, width, HIGH) as page:
                        page.goto(servers[state.server].url + state.address)
                        reach(Face(page), state)
                        save(page, folder / f"{name.replace(' ', '-')}-{width}-{scheme}.png")
                with opened(browser, scheme, width, 6 * HIGH) as page:
                    report(page, file, "age", 0.3, 0.6)
                    save(page, folder / f"report-{width}-{scheme}.png", full=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="pictures of the documentation (default: all)")
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="every state, into this folder")
    options = parser.parse_args()
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        if options.all:
            all_states(browser, options.all)
        else:
            documentation(browser, options.names)
        browser.close()


if __name__ == "__main__":
    main()
