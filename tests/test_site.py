"""The documentation site, without building it: tables of contents, the API page, the chooser, relative links."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import pytest

import jointforest
import jointforest.integrations.dask
import jointforest.integrations.mlflow
import jointforest.plot

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MADE = ("gallery/", "generated/")  # folders that the build writes
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")

PAGES = sorted(
    path.relative_to(DOCS).with_suffix("").as_posix()
    for path in DOCS.rglob("*.md")
    if not path.relative_to(DOCS).as_posix().startswith(MADE)
)


def below(page: str) -> list[str]:
    """Return the pages that the tables of contents of a page name, as paths from docs/."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    lines = [line for block in TOCTREE.findall(text) for line in block.split("\n") if line and line[0] != ":"]
    names = [line.rpartition("<")[2].rstrip(">") for line in lines]  # page, or Title <page>
    return [posixpath.normpath(posixpath.join(posixpath.dirname(page), name)) for name in names]


def test_every_page_is_in_the_table_of_contents_once() -> None:
    found, todo = ["index"], ["index"]
    while todo:
        new = [page for page in below(todo.pop()) if not page.startswith(MADE)]
        found += new
        todo += new
    assert sorted(found) == PAGES


def test_every_public_name_is_in_the_api() -> None:
    listed = set(re.findall(r"^   (\w+)$", (DOCS / "reference" / "api.md").read_text(encoding="utf-8"), re.MULTILINE))
    modules = jointforest, jointforest.integrations.dask, jointforest.integrations.mlflow, jointforest.plot
    public = {name for module in modules for name in module.__all__} | {"load_penguins"}
    public -= {"datasets"}
    assert listed == public


def test_the_chooser_knows_the_sections_of_its_page() -> None:
    text = (DOCS / "how-to" / "choose-a-learner.md").read_text(encoding="utf-8")
    titles = re.findall(r"^### (.*)$", text, re.MULTILINE)  # the learners; no other section is that deep
    ids = {re.sub(r"[^a-z0-9]+", "-", title.lower()) for title in titles}  # as docutils makes them
    script = (DOCS / "_static" / "chooser.js").read_text(encoding="utf-8")
    named = set(re.findall(r'"([a-z-]+)"', script.split("function learners")[1].split("function question")[0]))
    assert named - {"predict", "odd", "read", "subjects", "trained", "boxes", "rows", "many", "few"} == ids


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md", *(f"docs/{p}.md" for p in PAGES)]
)
def test_relative_links_lead_to_files(page: str) -> None:
    path = ROOT / page
    targets = LINK.findall(CODE.sub("", path.read_text(encoding="utf-8")))
    broken = [to for to in targets if not (path.parent / to).exists() and not to.removeprefix("../").startswith(MADE)]
    assert not broken
