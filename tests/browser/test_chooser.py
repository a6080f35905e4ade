"""The chooser of the documentation's page "Choose a learner": by keyboard, on the page's own sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how-to" / "choose-a-learner.md").read_text(encoding="utf-8")
TITLES = re.findall(r"^### (.*)$", PAGE, re.MULTILINE)


@pytest.fixture
def chooser(browser: Browser) -> Iterator[Page]:
    """The page as Sphinx nests it: a section a title."""
    sections = "".join(
        f'<section id="{re.sub(r"[^a-z0-9]+", "-", title.lower())}"><h3>{title}</h3></section>' for title in TITLES
    )
    page = browser.new_page()
    page.set_content(
        f'<section id="choose-a-learner"><h1>Choose a learner</h1><section id="learners"><h2>Learners</h2>{sections}'
        "</section></section>"
    )
    page.add_script_tag(path=DOCS / "_static" / "chooser.js")
    yield page
    page.close()


def shown(page: Page) -> list[str]:
    return [title.inner_text() for title in page.locator("h3").all() if title.is_visible()]


@pytest.mark.parametrize(
    "choices, titles",
    [
        (["ask questions, impute"], ["jf.fit", "AdversarialForest"]),
        (["ask questions, impute", "more"], ["jf.fit", "HiddenTreeForest"]),
        (["synthetic rows", "more"], ["HiddenTreeForest"]),
        (["synthetic rows", "rules, or robustness of a prediction"], ["AdversarialForest"]),
        (
            ["predict one column", "rules, or robustness of a prediction"],
            ["GenerativeForestClassifier, GenerativeForestRegressor"],
        ),
        (["find unusual rows"], ["ForestOutlierDetector"]),
        (["a model to read"], ["JointTree"]),
        (["several rows for each subject"], ["HistoryForest"]),
    ],
)
def test_it_shows_what_fits(chooser: Page, choices: list[str], titles: list[str]) -> None:
    for choice in choices:
        chooser.get_by_label(choice, exact=True).check()
    assert shown(chooser) == titles
    expect(chooser.get_by_role("status")).to_have_text(f"Take {', or '.join(titles)}.")


def test_at_first_and_after_show_all_all_are_shown(chooser: Page) -> None:
    assert shown(chooser) == TITLES
    chooser.get_by_label("predict one column").focus()
    chooser.keyboard.press("Space")
    assert shown(chooser) == [title for title in TITLES if title.startswith(("GenerativeForest", "JointC"))]
    expect(chooser.get_by_label("nothing else")).to_be_enabled()
    expect(chooser.get_by_label("more", exact=True)).to_be_disabled()  # it would change nothing
    chooser.get_by_role("button", name="Show all").focus()
    chooser.keyboard.press("Enter")
    expect(chooser.get_by_role("status")).to_have_text("All learners are shown.")
    assert shown(chooser) == TITLES
