"""A real notebook: JupyterLab with a kernel, in which the explorer is live; and the same notebook exported to HTML."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

import jointforest as jf

from .face import Face

CELLS = [
    "import jointforest as jf\npenguins = jf.datasets.load_penguins()\n"
    "joint = jf.JointTree(min_samples_leaf=0.05, random_state=0).fit(penguins).joint_\njoint",
    "joint.given(species='Gentoo')",
    "joint.given(species='Gentoo').marginal('body_mass_g')",
    "jf.fidelity(joint, penguins, only=['marginals'], random_state=0)",
    "joint.tree_text()",
    "joint.explore()",
]
TEXTS = [
    "Joint(7 columns: species, island",
    "probability of the evidence 36.0%",
    "body_mass_g given species = 'Gentoo'",
    "Columns that differ most",
    "(all rows)  100.0%",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a notebook."""
    folder = tmp_path_factory.mktemp("notebook")
    cells = [nbformat.v4.new_code_cell(text) for text in CELLS]
    book = nbformat.v4.new_notebook(
        cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    )
    nbformat.write(book, folder / "penguins.ipynb")
    return folder


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a Jupyter that knows nothing of the user's."""
    folder = tmp_path_factory.mktemp("jupyter")
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "JUPYTERLAB_SETTINGS_DIR")
    names += ("JUPYTERLAB_WORKSPACES_DIR",)
    of_widgets = folder / "jupyterlab_settings_dir" / "@jupyter-widgets" / "jupyterlab-manager"
    of_widgets.mkdir(parents=True)
    (of_widgets / "plugin.jupyterlab-settings").write_text('{"saveState": true}')
    return {**os.environ, **{name: str(folder / name.lower()) for name in names}}


@pytest.fixture(scope="module")
def lab(place: Path, own: dict[str, str]) -> Iterator[str]:
    """The address of the notebook in JupyterLab."""
    options = ["--no-browser", "--ip=127.0.0.1", "--port=0", "--allow-root", "--LabApp.extension_manager=readonly"]
    options += [f"--ServerApp.root_dir={place}", "--LabApp.news_url="]
    command = [sys.executable, "-m", "jupyterlab", *options]
    with subprocess.Popen(command, env=own, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        found = next(filter(None, (re.search(r"(http://127\S+?/lab)\?token=(\w+)", line) for line in server.stderr)))
        with open(os.devnull, "w") as nowhere, server.stderr:
            drain = subprocess.Popen(["cat"], stdin=server.stderr, stdout=nowhere)
            yield f"{found[1]}/tree/penguins.ipynb?token={found[2]}"
            server.terminate()
            drain.wait()


@pytest.fixture
def notebook(lab: str, new_context: Callable[..., BrowserContext]) -> Page:
    """The notebook with all its cells run."""
    page = new_context(viewport={"width": 1280, "height": 7000}).new_page()
    page.goto(lab)
    run_all(page)
    return page


def run_all(page: Page) -> None:
    """Run all cells, again if need be: JupyterLab drops cells that are run while a kernel connects."""
    page.locator(".jp-Notebook .jp-CodeCell").nth(len(CELLS) - 1).wait_for()
    prompt = page.locator(".jp-Notebook .jp-CodeCell .jp-InputPrompt").first
    for _ in range(10):
        page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        try:
            expect(prompt).to_have_text("[*]:", timeout=5_000)
        except AssertionError:
            continue
        expect(prompt).not_to_have_text("[*]:", timeout=120_000)
        if re.search(r"\d", prompt.inner_text()):
            return
    raise AssertionError("JupyterLab has not run the cells")


class CellFace(Face):
    """The explorer in a cell of JupyterLab."""

    def settle(self, state: str = "exact") -> None:
        self.page.wait_for_selector(f".jp-OutputArea .page[data-state={state}]")


def test_the_explorer_is_live_in_jupyterlab(notebook: Page) -> None:
    penguins = jf.JointTree(min_samples_leaf=0.05, random_state=0).fit(jf.datasets.load_penguins()).joint_
    face = CellFace(notebook)
    face.settle()
    face.bar("species", "Gentoo").click()
    expect(notebook.locator(".jp-OutputArea textarea.sentence")).to_have_value("species = 'Gentoo'")
    face.settle()
    notebook.locator(".page").evaluate("page => page.scrollTo(0, page.scrollHeight)")
    expect(face.bar("sex", "MALE")).to_be_visible()
    shown = face.shares("sex")
    for level, share in penguins.given(species="Gentoo").proba("sex").items():
        assert float(shown[level].strip("<>%")) == pytest.approx(100 * share, abs=0.0501)
    face.drag("flipper_length_mm", 0.5, 0.8)
    assert "flipper_length_mm" in face.sentence
    notebook.get_by_role("button", name="Most probable row", exact=True).click()
    face.rest()
    expect(notebook.locator(".jp-OutputArea .panel")).to_contain_text("log-density")
    for text in TEXTS:
        expect(notebook.locator(".jp-OutputArea").get_by_text(text).first).to_be_visible()


def test_an_exported_notebook_opens_without_a_network(place: Path, own: dict[str, str], browser: Browser) -> None:
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--execute", "--output", "exported.html"]
    subprocess.run([*command, str(place / "penguins.ipynb")], env=own, check=True, capture_output=True)
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto((place / "exported.html").as_uri())
    for text in TEXTS:
        expect(page.get_by_text(text).first).to_be_visible()
    explorer = page.locator(".jp-OutputArea").last  # the joint's static picture: a row for each level
    expect(explorer.locator("tr")).to_have_count(8)
    expect(explorer).to_contain_text("flipper_length_mm")
    context.close()


def test_a_notebook_saved_with_its_widgets_shows_the_picture_until_python_answers(
    place: Path, lab: str, notebook: Page
) -> None:
    CellFace(notebook).settle()
    notebook.keyboard.press("Control+s")
    expect(notebook.locator(".jp-mod-dirty")).to_have_count(0)
    assert "widgets" in nbformat.read(place / "penguins.ipynb", 4).metadata
    server, token = lab.split("/lab/")[0], lab.rpartition("=")[2]
    user = {"Authorization": f"token {token}"}
    for session in notebook.request.get(f"{server}/api/sessions", headers=user).json():
        notebook.request.delete(f"{server}/api/sessions/{session['id']}", headers=user)
    notebook.goto(lab)
    explorer = notebook.locator(".jp-OutputArea").last
    expect(explorer).to_contain_text("No Python answers here", timeout=60_000)
    expect(explorer.locator("tr:visible")).to_have_count(8)
    run_all(notebook)
    CellFace(notebook).settle()
    expect(explorer).not_to_contain_text("No Python answers here", use_inner_text=True)
