"""Pictures of every view of the explorer and the report, light and dark, into docs/images/explorer/.

By python tools/screenshots.py; names of views make only these: python tools/screenshots.py row pair.
Needs Chromium and playwright (pip install -e '.[test-browser]'). The joint is that of the penguins.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from sklearn.ensemble import RandomForestClassifier

import jointforest as jf
from jointforest.explorer.notebook import heard, script
from jointforest.explorer.subject import Subject

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images" / "explorer"
EVIDENCE = "species = 'Gentoo' and body_mass_g >= 5000"
COLOURS = 200
NUMBERS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]
# name of the picture: width, height, evidence, panel
VIEWS = {
    "nothing": (1280, 830, "", None),
    "evidence": (1280, 830, EVIDENCE, None),
    "rows": (1280, 800, EVIDENCE, "rows"),
    "mode": (1280, 800, EVIDENCE, "mode"),
    "why": (1280, 800, EVIDENCE, "why"),
    "pair": (1280, 800, "sex = 'MALE'", "pair"),
    "compare": (1280, 800, EVIDENCE, "compare"),
    "reasons": (1280, 800, EVIDENCE, "reasons"),
    "row": (1280, 800, EVIDENCE, "row"),
    "prediction": (1280, 800, "", "row"),
    "history": (1280, 800, EVIDENCE, "history"),
    "trouble": (1280, 500, "species = 'Emperor'", None),
    "narrow": (320, 800, EVIDENCE, None),
}


def picture(page: Page, name: str, scheme: str) -> None:
    """Write docs/images/explorer/NAME-SCHEME.png, with few colours so that it is small."""
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    shot.quantize(COLOURS, dither=Image.Dither.NONE).save(FOLDER / f"{name}-{scheme}.png", optimize=True)


NOTEBOOK = "<body style='margin: 20px; background: {}'><div id='cell'></div></body>"
PLAY = """
async (text) => {
  const view = await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  const hearers = [];
  const send = async (said) => { const found = await kernel(said); hearers.forEach((hear) => hear(found)); };
  const model = { send, on: (name, hear) => hearers.push(hear), off: () => {}, get: () => "" };
  view.default.render({ model, el: document.getElementById("cell") });
}
"""


def notebook(browser: Browser, joint: jf.Joint, scheme: str) -> None:
    """The page as a cell of a notebook shows it; this program plays the kernel."""
    page = browser.new_page(viewport={"width": 1000, "height": 745}, reduced_motion="reduce")
    subject = Subject(joint, "penguins")
    page.expose_function("kernel", lambda said: heard(subject, said))
    page.set_content(NOTEBOOK.format("#ffffff" if scheme == "light" else "#111111"))
    page.evaluate(PLAY, script())
    page.wait_for_selector(".page[data-state=exact]", timeout=300_000)
    page.locator("jf-card[data-name=species]").get_by_text("Gentoo", exact=True).click()
    page.get_by_role("button", name="Two columns", exact=True).click()
    page.wait_for_selector(".page[data-state=exact]")
    page.locator(".panel [aria-busy]").wait_for(state="detached", timeout=300_000)
    page.mouse.move(5, 5)
    picture(page, "notebook", scheme)
    page.close()


def report(browser: Browser, joint: jf.Joint, scheme: str) -> None:
    """The report's live part with evidence, and what stands below it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "penguins.html"
        joint.report(path, jf.datasets.load_penguins(), target="sex", examples=3, title="penguins")
        page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme, reduced_motion="reduce")
        page.goto(path.as_uri())
        page.wait_for_selector("#live[data-state=exact]", timeout=300_000)
        field = page.get_by_role("textbox", name="what is known of body_mass_g")
        field.fill(">= 5000")
        field.press("Enter")
        page.wait_for_selector("#live[data-state=exact] jf-card.evident")
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        picture(page, "report", scheme)
        page.evaluate("document.getElementById('depend').scrollIntoView()")
        picture(page, "report-below", scheme)
        page.close()


def main() -> None:
    penguins = jf.datasets.load_penguins()
    joint = jf.fit(penguins, budget="fast", random_state=0)
    odd = penguins.iloc[[0]].assign(body_mass_g=6100.0)  # a small penguin, weighed wrongly
    FOLDER.mkdir(exist_ok=True)
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    complete = penguins.dropna().reset_index(drop=True)
    model = RandomForestClassifier(20, max_depth=4, random_state=0).fit(complete[NUMBERS], complete["species"])
    served = joint.explore(title="penguins.joint", browser=False)
    asked = joint.explore(complete, model=model, title="penguins.joint", browser=False)
    with sync_playwright() as playwright, served, asked:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            for name, (width, height, given, panel) in VIEWS.items():
                if sys.argv[1:] and name not in sys.argv[1:]:
                    continue
                page = browser.new_page(
                    viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
                )
                words = {"given": given} | ({"panel": panel} if panel else {})
                page.goto(f"{(asked if name == 'prediction' else served).url}#{urlencode(words)}")
                page.wait_for_selector("body[data-state=exact], body[data-state=refused]", timeout=300_000)
                page.locator(".panel [aria-busy]").wait_for(state="detached", timeout=300_000)
                if name == "history":
                    for level in ("MALE", "FEMALE"):
                        page.locator("jf-card[data-name=sex]").get_by_text(level, exact=True).click()
                        page.wait_for_selector("body[data-state=exact]")
                if name == "row":
                    table = {"name": "odd.csv", "mimeType": "text/csv", "buffer": odd.to_csv(index=False).encode()}
                    page.locator("input[type=file]").set_input_files(table)
                    page.locator("tr.odd").first.wait_for(timeout=60_000)
                if name == "prediction":
                    for column in ("species", "bill_length_mm", "flipper_length_mm"):
                        page.get_by_role("checkbox", name=f"{column} is known").click()
                        page.locator(".panel [aria-busy]").wait_for(state="detached", timeout=60_000)
                page.evaluate("scrollTo(0, 0)")
                picture(page, name, scheme)
                page.close()
            if not sys.argv[1:] or "notebook" in sys.argv[1:]:
                notebook(browser, joint, scheme)
            if not sys.argv[1:] or "report" in sys.argv[1:]:
                report(browser, joint, scheme)
        browser.close()


if __name__ == "__main__":
    main()
