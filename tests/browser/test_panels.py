"""The panels: what they show is what Python answers."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

import jointforest as jf

from .face import Face


def open_panel(face: Face, title: str) -> Locator:
    face.page.get_by_role("button", name=title, exact=True).click()
    panel = face.page.get_by_role("region", name=title, exact=True)
    panel.wait_for()
    face.rest()
    return panel


def test_rows_meet_the_evidence_and_follow_it(face: Face) -> None:
    panel = open_panel(face, "Rows like this")
    assert panel.locator("tbody tr").count() == 20
    face.write("species = 'Gentoo'")
    panel.locator("tbody tr td:first-child", has_text="Gentoo").nth(19).wait_for()
    face.rest()
    assert {cell.text_content() for cell in panel.locator("tbody tr td:first-child").all()} == {"Gentoo"}
    before = panel.locator("tbody").text_content()
    panel.get_by_role("button", name="draw again").click()
    expect(panel.locator("tbody")).not_to_have_text(before or "")


def test_rows_are_downloaded_as_csv(face: Face) -> None:
    face.write("species = 'Gentoo'")
    panel = open_panel(face, "Rows like this")
    panel.get_by_role("spinbutton").fill("37")
    with face.page.expect_download() as waiting:
        panel.get_by_role("button", name="download CSV").click()
    assert waiting.value.suggested_filename == "penguins-rows.csv"
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text(encoding="utf-8"))))
    assert len(rows) == 37
    assert {row["species"] for row in rows} == {"Gentoo"}


def test_the_most_probable_row(penguins: Any, face: Face) -> None:
    face.write("species = 'Gentoo'")
    panel = open_panel(face, "Most probable")
    mode = penguins.given(species="Gentoo").mode().rows.iloc[0]
    shown = dict(zip(panel.locator("dt").all_text_contents(), panel.locator("dd").all_text_contents(), strict=True))
    assert shown["species"] == "Gentoo"
    assert shown["island"] == str(mode["island"])
    assert float(shown["body_mass_g"]) == pytest.approx(float(mode["body_mass_g"]))


def test_why(penguins: Any, face: Face) -> None:
    face.write("species = 'Gentoo' and body_mass_g > 5000")
    panel = open_panel(face, "Why")
    rules = penguins.given("species = 'Gentoo' and body_mass_g > 5000").explain().rules
    weights = panel.locator(".why > li b").all_text_contents()
    assert weights[0] == f"{rules[0]['weight']:.1%}"
    assert panel.locator(".why > li").count() == len(rules[:8])


def test_a_pair_of_columns(penguins: Any, face: Face) -> None:
    face.write("sex = 'MALE'")
    panel = open_panel(face, "Two columns")
    panel.get_by_role("combobox", name="across").select_option(label="species")
    face.rest()
    panel.get_by_role("combobox", name="down").select_option(label="island")
    face.rest()
    panel.get_by_text("as a table").click()
    cells = panel.locator("tbody tr").first.locator("td").all_text_contents()
    given = penguins.given(sex="MALE")
    expected = [given.probability(f"species = '{s}' and island = 'Biscoe'") for s in ("Adelie", "Chinstrap", "Gentoo")]
    for cell, share in zip(cells, expected, strict=True):
        assert cell.startswith("<") or float(cell.rstrip("%")) == pytest.approx(100 * share, abs=0.051)
    panel.locator("rect.cell").first.click()
    face.settle()
    assert face.sentence == "species = 'Adelie' and island = 'Biscoe' and sex = 'MALE'"


def test_one_row_of_a_file_with_its_unlikely_cell_marked(face: Face, tmp_path: Path) -> None:
    frame = jf.datasets.load_penguins().head(3).copy()
    frame.loc[1, "body_mass_g"] = 6200.0
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    panel = open_panel(face, "One row")
    panel.locator("input[type=file]").set_input_files(path)
    panel.get_by_text("row 1 of 3").wait_for()
    face.rest()
    assert panel.locator("tr.odd").count() == 0
    panel.get_by_role("button", name="next").click()
    panel.get_by_text("row 2 of 3").wait_for()
    panel.locator("tr.odd").first.wait_for()
    assert "body_mass_g" in panel.locator("tr.odd th").all_text_contents()
    panel.get_by_role("textbox", name="body_mass_g").fill("3700")
    panel.get_by_role("textbox", name="body_mass_g").press("Enter")
    panel.locator("tr.odd").first.wait_for(state="detached")


def test_panels_close_and_links_open_them(face: Face) -> None:
    open_panel(face, "Why")
    assert re.search(r"#panel=why$", face.page.url)
    face.page.get_by_role("button", name="close Why").click()
    assert face.page.locator(".panel").is_hidden()
