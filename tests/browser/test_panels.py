"""The panels: what they show is what Python answers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Locator, expect

import jointforest as jf
from jointforest.cards import percent
from jointforest.explorer.open import Explorer

from ..explorer.tables import contracts, contracts_joint, heavy, heavy_frame
from . import tables
from .face import Face

ISLANDS = "Biscoe", "Dream", "Torgersen"


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


def test_rows_of_the_table_are_sorted_by_mouse_and_keyboard(penguins: Any, visit: Callable[..., Face]) -> None:
    table = jf.datasets.load_penguins()
    with Explorer(penguins, "penguins.joint", table) as server:
        face = visit(server, "#given=species+%3D+Gentoo")
        panel = open_panel(face, "Rows like this")
        wanted = table[table["species"] == "Gentoo"]
        assert (panel.locator(".lead").text_content() or "").startswith(f"{len(wanted)} rows of the table")

        def numbers() -> list[int]:
            return [int(text) - 1 for text in panel.locator("tbody td:first-child").all_text_contents()]

        assert numbers() == wanted.index[:20].tolist()
        head = panel.get_by_role("columnheader", name="body_mass_g")
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", "ascending")
        face.rest()
        by = {"by": "body_mass_g", "kind": "stable"}
        assert numbers() == wanted.sort_values(**by).index[:20].tolist()
        expect(head.get_by_role("button")).to_be_focused()
        face.page.keyboard.press("Enter")
        expect(head).to_have_attribute("aria-sort", "descending")
        face.rest()
        heaviest = wanted.sort_values(**by, ascending=False).index.tolist()
        assert numbers() == heaviest[:20]
        panel.get_by_role("button", name="show more").click()
        expect(panel.locator("tbody tr")).to_have_count(100)
        with face.page.expect_download() as waiting:
            panel.get_by_role("button", name="download CSV").click()
        text = Path(waiting.value.path()).read_text(encoding="utf-8")
        assert len(list(csv.DictReader(io.StringIO(text)))) == len(wanted)
        panel.get_by_role("button", name=f"open row {heaviest[0] + 1}", exact=True).click()
        face.page.get_by_text(f"row {heaviest[0] + 1} of {len(table)}").wait_for()


def test_suspicious_cells_are_accepted_and_rejected_by_mouse_and_keyboard(visit: Callable[..., Face]) -> None:
    table = tables.dirty()
    joint = jf.HiddenTreeForest(n_states=8, rules="off", random_state=0).fit(table).joint_
    check = joint.check(table)
    wanted = check.cells[check.cells["p_wrong"] >= 0.5]
    assert len(wanted) >= 4 and wanted["row"].duplicated().any()
    with Explorer(joint, "dirty.joint", table) as server:
        face = visit(server)
        panel = open_panel(face, "Suspicious cells")
        lines = panel.locator(".suspects > li")
        expect(lines).to_have_count(len(wanted))
        first = wanted.iloc[0]
        assert first["column"] in (lines.first.text_content() or "") and first["reason"] in (
            lines.first.text_content() or ""
        )
        panel.get_by_role("button", name=f"reject the change of {first['column']} of row {first['row'] + 1}").click()
        expect(lines).to_have_count(len(wanted) - 1)
        pair = wanted[wanted["row"].duplicated(keep=False)].iloc[0]
        name = f"accept the change of {pair['column']} of row {pair['row'] + 1}"
        panel.get_by_role("button", name=name, exact=True).press("a")
        others = check.cells_of(int(pair["row"]), {pair["column"]: pair["best"]})
        left = int((others["p_wrong"] >= 0.5).sum())
        expect(lines.filter(has_text=f"row {pair['row'] + 1}")).to_have_count(left)
        expect(panel.locator(".note").first).to_have_text(re.compile("1 accepted, 1 rejected"))
        assert face.page.evaluate("document.activeElement.closest('.suspects') !== null")
        with face.page.expect_download() as waiting:
            panel.get_by_role("button", name="download changes").click()
        text = Path(waiting.value.path()).read_text(encoding="utf-8")
        (change,) = csv.DictReader(io.StringIO(text))
        assert list(change) == list(check.cells.columns)
        assert (change["row"], change["column"]) == (str(pair["row"]), pair["column"])
        assert (change["value"], change["best"]) == (pair["value"], pair["best"])
        assert float(change["p_wrong"]) == pytest.approx(pair["p_wrong"])
        for _ in range(2):
            panel.get_by_role("button", name="undo the last decision").click()
        expect(lines).to_have_count(len(wanted))


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
    panel = open_panel(face, "Most probable row")
    mode = penguins.given(species="Gentoo").mode().rows.iloc[0]
    shown = dict(zip(panel.locator("dt").all_text_contents(), panel.locator("dd").all_text_contents(), strict=True))
    assert shown["species"] == "Gentoo"
    assert shown["island"] == str(mode["island"])
    assert float(shown["body_mass_g"]) == pytest.approx(float(mode["body_mass_g"]))


def test_why(penguins: Any, face: Face) -> None:
    face.write("species = 'Gentoo' and body_mass_g > 5000")
    panel = open_panel(face, "Groups of rows")
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


def test_a_column_is_chosen_on_the_map(penguins: Any, face: Face) -> None:
    face.write("sex = 'MALE'")
    panel = open_panel(face, "Map of columns")
    assert panel.locator("path.arc").count() >= 4
    button = panel.locator(".column-map").get_by_role("button", name="species", exact=True)
    button.focus()
    face.page.keyboard.press("Enter")
    face.rest()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert panel.locator("path.arc.on").count() >= 1
    panel.get_by_label("level").select_option(label="Chinstrap")
    face.rest()
    said = panel.locator(".reasons li:not([aria-hidden])")
    shares = [penguins.given(f"sex = 'MALE' and island = '{name}'").proba("species")["Chinstrap"] for name in ISLANDS]
    line = said.filter(has=face.page.get_by_text("island", exact=True))
    assert line.locator("b").text_content() == f"{percent(min(shares))} to {percent(max(shares))}"
    assert said.count() == len(penguins.columns) - 2


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
    open_panel(face, "Groups of rows")
    assert re.search(r"#panel=why$", face.page.url)
    face.page.get_by_role("button", name="close Groups of rows").click()
    assert face.page.locator(".panel").is_hidden()


def test_two_pieces_of_evidence_are_compared(penguins: Any, face: Face) -> None:
    face.write("species = 'Gentoo'")
    face.page.get_by_role("button", name="Compare", exact=True).click()
    face.rest()
    panel = face.page.locator("[data-panel=compare]")
    face.page.get_by_role("button", name="use the evidence as A").click()
    face.write("species = 'Adelie'")
    face.rest()
    line = panel.locator("tr").filter(has=face.page.get_by_role("rowheader", name="island", exact=True))
    shares = [penguins.given(species=name).proba("island") for name in ("Gentoo", "Adelie")]
    apart = 0.5 * sum(abs(shares[0][level] - shares[1][level]) for level in shares[0])
    assert line.locator("small").text_content() == percent(apart)
    assert percent(shares[0]["Biscoe"]) in (line.locator("td").nth(0).text_content() or "")
    assert panel.locator("dd > span").all_text_contents() == ["species = 'Gentoo'", "species = 'Adelie'"]
    assert (face.bar("island", "Dream").get_attribute("title") or "").endswith(f", A {percent(shares[0]['Dream'])}")
    said = [re.fullmatch(r"([\d.]+)% apart", text) for text in face.page.locator("jf-card .moved").all_text_contents()]
    amounts = [float(found[1]) if found else 0.0 for found in said]
    assert amounts == sorted(amounts, reverse=True) and face.order[0] == "species"
    masses = [panel.locator("tr").filter(has_text="body_mass_g").locator("td").nth(k).text_content() for k in (0, 1)]
    means = [penguins.given(species=name).mean("body_mass_g") for name in ("Gentoo", "Adelie")]
    for text, mean in zip(masses, means, strict=True):
        assert float((text or "").removeprefix("mean ").replace(",", "")) == pytest.approx(mean, abs=0.51)
    with face.page.expect_download() as waiting:
        panel.get_by_role("button", name="save as SVG").click()
    picture = waiting.value.path().read_text(encoding="utf-8")
    assert ElementTree.fromstring(picture).tag.endswith("svg") and "A: species = 'Gentoo'" in picture
    assert all(f">{name}</text>" in picture for name in penguins.columns)
    face.page.get_by_role("button", name="close Compare").click()
    assert ", without evidence " in (face.bar("island", "Dream").get_attribute("title") or "")
    assert face.order == list(penguins.columns)


def test_bars_have_one_scale_on_all_cards(face: Face) -> None:
    read = """() => [...document.querySelectorAll('.bar')].map(bar => [
        new DOMMatrix(getComputedStyle(bar.querySelector('.fill')).transform).a,
        parseFloat(bar.querySelector('.bar-value').textContent) / 100])"""
    for scale, evidence in (("to 100%", "island = 'Dream'"), ("to the longest", "island = 'Dream'")):
        face.write(evidence)
        face.page.get_by_role("button", name=scale, exact=True).click()
        bars = [(length, share) for length, share in face.page.evaluate(read) if 0.005 < share < 1.0]
        ratios = [length / share for length, share in bars]
        assert len(bars) >= 4 and max(ratios) < 1.1 * min(ratios)
        assert (abs(max(ratios) - 1.0) < 0.05) == (scale == "to 100%")


def test_a_bin_is_read_out_on_hover_and_focus(penguins: Any, face: Face) -> None:
    card = face.card("body_mass_g")
    card.locator(".area").hover(position={"x": 100, "y": 40})
    said = card.locator(".readout").text_content() or ""
    assert re.fullmatch(r"[\d,]+ to [\d,]+: [\d.]+%, without evidence [\d.]+%", said)
    face.page.mouse.move(5, 5)
    assert not card.locator(".readout").is_visible()
    face.slider("body_mass_g", "lowest").focus()
    assert card.locator(".readout").is_visible()


def test_a_card_is_shown_on_other_axes(visit: Callable[..., Face]) -> None:
    with Explorer(heavy(), "heavy.joint", heavy_frame()) as server:
        face = visit(server)
        button = face.page.get_by_role("button", name="axis of age", exact=True)
        assert face.page.get_by_role("button", name="axis of group", exact=True).count() == 0
        face.write("30 <= age <= 39")
        face.card("age").hover()
        button.click()
        face.card("age").get_by_role("button", name="zoom to 30 to 39").click()
        expect(face.card("age").locator(".beyond")).to_have_count(2)
        expect(button).to_be_focused()
        face.write("group = b")
        face.card("age").locator(".area").hover(position={"x": 3, "y": 40})
        said = face.card("age").locator(".readout").text_content() or ""
        assert said.startswith(f"30: {percent(heavy().given('group = b').probability('age = 30'))}, without evidence ")
        face.drag("age", 0.3, 1.0)  # the end of this axis is not the end of the column
        assert face.sentence == "33 <= age <= 39 and group = 'b'"
        open_panel(face, "Compare")
        face.page.get_by_role("button", name="use the evidence as A").click()
        face.rest()
        button.click()
        face.card("age").get_by_role("button", name="whole axis").click()
        expect(face.card("age").locator(".beyond")).to_have_count(0)
        face.settle()
        face.card("claim").hover()
        face.page.get_by_role("button", name="axis of claim", exact=True).click()
        face.card("claim").get_by_role("button", name="logarithmic axis").click()
        expect(face.card("claim").locator(".tick").nth(1)).to_have_text("100")
        face.settle()
        assert face.card("claim").locator(".moved").text_content() == ""  # A is the evidence


def test_times_that_are_not_over_have_a_survival_curve(visit: Callable[..., Face]) -> None:
    with Explorer(contracts_joint(), "contracts.joint", contracts()) as server:
        face = visit(server, "#given=plan+%3D+pro")
        card = face.card("months")
        box = card.locator(".area").bounding_box()
        assert box is not None and face.card("seats").locator(".survival").count() == 0
        card.locator(".area").hover(position={"x": 0.3 * box["width"], "y": 30})
        said = re.fullmatch(r"more than ([\d.]+): (.*), without evidence (.*)", card.locator(".readout").inner_text())
        assert said is not None
        shares = [contracts_joint().given(text).survival("months", float(said[1])) for text in ("plan = pro", None)]
        assert [said[2], said[3]] == [percent(float(share)) for share in shares]
        card.locator(".area").hover(position={"x": box["width"] - 2, "y": 30})
        assert card.locator(".readout").inner_text().startswith("not learned beyond ")
        assert "not learned" in face.summary("months") and "more than" in face.summary("months")
        card.hover()
        face.page.get_by_role("button", name="axis of months", exact=True).click()
        card.get_by_role("button", name="histogram").click()
        expect(card.locator(".survival")).to_have_count(0)
        face.settle()
        assert "not learned" in face.summary("months")


def test_a_bar_that_is_broken_is_labelled(mixed_face: Face) -> None:
    assert mixed_face.card("amount").locator("jf-histogram .share:visible").count() == 1
    assert mixed_face.card("age").locator("jf-histogram .share:visible").count() == 0


@pytest.mark.parametrize("column", ["species", "body_mass_g"])
def test_a_card_is_saved_as_a_picture(face: Face, column: str) -> None:
    face.write("island = 'Dream'")
    for kind, begin in (("SVG", b"<svg "), ("PNG", b"\x89PNG")):
        face.card(column).hover()
        face.page.get_by_role("button", name=f"save a picture of {column}").click()
        with face.page.expect_download() as waiting:
            face.page.get_by_role("button", name=f"save as {kind}").click()
        data = waiting.value.path().read_bytes()
        assert data.startswith(begin) and waiting.value.suggested_filename == f"{column}.{kind.lower()}"
        if kind == "SVG":
            assert ElementTree.fromstring(data).tag.endswith("svg") and b"island = 'Dream'" in data


def test_reasons_of_a_prediction_are_a_waterfall(penguins: Any, face: Face) -> None:
    face.write("bill_length_mm > 45 and sex = 'MALE'")
    panel = open_panel(face, "Why this prediction")
    panel.get_by_label("predicted column").select_option(label="species")
    face.rest()
    panel.get_by_label("predicted level").select_option(label="Gentoo")
    face.rest()
    said = [text.strip() for text in panel.locator(".reasons li:not([aria-hidden]) b").all_text_contents()]
    given = penguins.given("bill_length_mm > 45 and sex = 'MALE'")
    assert said[0] == percent(penguins.given().proba("species")["Gentoo"])
    assert said[-1] == percent(given.proba("species")["Gentoo"])
    assert len(said) == 4 and all(re.fullmatch(r"[+−][\d.]+ points", step) for step in said[1:-1])
    panel.get_by_label("predicted column").select_option(label="body_mass_g")
    face.rest()
    assert panel.get_by_label("predicted level").is_hidden()
    assert panel.locator("h3").text_content() == "Mean of body_mass_g"


def test_the_tour_has_five_steps(face: Face) -> None:
    button = face.page.get_by_role("button", name="take the tour")
    tour = face.page.get_by_role("group", name="tour")
    assert tour.is_hidden()
    button.click()
    for step in range(1, 6):
        assert (tour.get_by_role("status").text_content() or "").startswith(f"{step} of 5: ")
        assert face.page.locator(".pointed").count() == 1
        face.page.keyboard.press("Enter")
    assert tour.is_hidden() and face.page.locator(".pointed").count() == 0


def test_the_tour_is_offered_once(penguin_server: Explorer, browser: Browser) -> None:
    page = browser.new_page()  # in a browser that has not been here
    tour = page.get_by_role("group", name="tour")
    page.goto(penguin_server.url)
    tour.get_by_text("New here?").wait_for()
    assert page.evaluate("document.activeElement === document.body")
    tour.get_by_role("button", name="start").click()
    assert "1 of 5" in (tour.text_content() or "")
    tour.get_by_role("button", name="stop").click()
    page.reload()
    page.wait_for_selector("body[data-state=exact]")
    assert tour.is_hidden()
    page.close()
