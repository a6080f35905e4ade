"""Expected predictions in the panel of one row: the page shows Python's numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier

import jointforest as jf
from jointforest.explorer.open import Explorer

from .face import Face

NUMBERS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]


def complete() -> pd.DataFrame:
    return jf.datasets.load_penguins().dropna().reset_index(drop=True)


def served(joint: Any, model: Any) -> Explorer:
    return joint.explore(complete(), model=model, title="penguins.joint", browser=False)


@pytest.fixture(scope="module")
def classifier() -> Any:
    return RandomForestClassifier(10, max_depth=4, random_state=0).fit(complete()[NUMBERS], complete()["species"])


@pytest.fixture(scope="module")
def class_server(penguins: Any, classifier: Any) -> Iterator[Explorer]:
    with served(penguins, classifier) as server:
        yield server


def shown(panel: Locator) -> dict[str, str]:
    """Classes with what is written of them."""
    lines = panel.locator(".prediction dl > div").all()
    return {line.locator("dt").text_content() or "": line.locator("dd").inner_text() for line in lines}


def test_classes_with_cells_taken_out(
    visit: Callable[..., Face], class_server: Explorer, penguins: Any, classifier: Any
) -> None:
    face = visit(class_server, "#panel=row")
    face.rest()
    panel = face.page.get_by_role("region", name="One row", exact=True)
    row = complete().iloc[:1]
    for line in panel.locator(".prediction dl > div").all():  # the bar is below the text, over its width
        text, bar = line.locator("dt").bounding_box(), line.locator(".share").bounding_box()
        assert text is not None and bar is not None
        assert bar["x"] == text["x"] and bar["y"] >= text["y"] + text["height"] - 1
    predictor = jf.ExpectedPredictor(classifier, penguins)
    own = dict(zip(classifier.classes_, classifier.predict_proba(row[NUMBERS])[0], strict=True))
    out: list[str] = []
    for name in ("", "species", "bill_length_mm", "island"):
        if name:
            out.append(name)
            box = panel.get_by_role("checkbox", name=f"{name} is known", exact=True)
            box.press("Space")
            face.rest()
            assert box.is_visible() and not box.is_checked()
            assert box.evaluate("box => box === document.activeElement")
        expected = dict(zip(predictor.classes_, predictor.predict_proba(row.drop(columns=out))[0], strict=True))
        for species, said in shown(panel).items():
            first, _, rest = said.replace("\n", " ").partition("%")
            assert float(first.lstrip("<>")) == pytest.approx(100 * expected[species], abs=0.0501)
            whole = rest.split("complete row ")[1].rstrip("%")
            assert float(whole.lstrip("<>")) == pytest.approx(100 * own[species], abs=0.0501)
    assert panel.locator("tr.taken").count() == 3
    assert Axe().run(face.page).response["violations"] == []
    panel.get_by_role("textbox", name="flipper_length_mm", exact=True).fill("")
    panel.get_by_role("textbox", name="flipper_length_mm", exact=True).press("Enter")
    panel.get_by_text("Cells that the model reads are missing.").wait_for()


def test_a_number(visit: Callable[..., Face], penguins: Any) -> None:
    model = GradientBoostingRegressor(n_estimators=10, random_state=0)
    model.fit(complete()[NUMBERS], complete()["body_mass_g"])
    with served(penguins, model) as server:
        face = visit(server, "#panel=row", viewport={"width": 320, "height": 800})
        face.rest()
        panel = face.page.get_by_role("region", name="One row", exact=True)
        panel.get_by_role("checkbox", name="flipper_length_mm is known", exact=True).click()
        face.rest()
        row = complete().iloc[:1]
        wanted = jf.ExpectedPredictor(model, penguins).predict(row.drop(columns="flipper_length_mm"))[0]
        said = panel.locator(".amount b").text_content() or ""
        assert float(said.replace(",", "")) == pytest.approx(wanted, rel=1e-4)
        whole = (panel.locator(".amount small").text_content() or "").removeprefix("for the complete row ")
        assert float(whole.replace(",", "")) == pytest.approx(model.predict(row[NUMBERS])[0], rel=1e-4)
        assert face.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
