"""The numbers on the page are Python's."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import jointforest as jf
from jointforest.cards import percent
from jointforest.explorer.open import Explorer
from jointforest.explorer.shown import ShownJoint

from .face import Face

EVIDENCE = [
    "",
    "species = 'Gentoo'",
    "bill_length_mm > 45 and island = 'Biscoe'",
    "4000 <= body_mass_g <= 5000 and sex = 'MALE'",
    "sex is missing",
    "species in {'Adelie', 'Gentoo'} and bill_depth_mm < 15",
]


def number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_what_a_card_says_is_what_python_says(
    penguins: Any, visit: Callable[..., Face], penguin_server: Explorer, evidence: str
) -> None:
    face = visit(penguin_server)
    if evidence:
        face.write(evidence)
    given = penguins.given(evidence) if evidence else penguins.given()
    for column in ("species", "island", "sex"):
        assert face.shares(column) == {level: percent(p) for level, p in given.proba(column).items()}, column
    for column in ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"):
        numbers = re.fullmatch(r"mean ([\d,.]+)90% of values: ([\d,.]+)(?: to ([\d,.]+))?", face.summary(column))
        assert numbers is not None, face.summary(column)
        low, high = given.interval(column, 0.9)
        digits = len(numbers[1].partition(".")[2])
        assert number(numbers[1]) == pytest.approx(given.mean(column), abs=0.501 * 10.0**-digits)
        assert number(numbers[2]) == pytest.approx(low, rel=1e-6)
        assert number(numbers[3] or numbers[2]) == pytest.approx(high, rel=1e-6)


@pytest.mark.parametrize("evidence", EVIDENCE[1:])
def test_the_probability_is_pythons(
    penguins: Any, visit: Callable[..., Face], penguin_server: Explorer, evidence: str
) -> None:
    face = visit(penguin_server)
    face.write(evidence)
    probability = penguins.probability(evidence)
    said = face.page.locator(".odds .detail").text_content()
    assert said == f"probability {percent(probability)}"
    shown = face.page.locator(".odds .support").text_content()
    assert shown == f"about {penguins.given(evidence).n_rows:.0f} of 344 rows"
    rows = re.search(r"1 row in (\d[\d,.]*)$", face.chance)
    if rows:
        assert number(rows[1]) == pytest.approx(1 / probability, rel=0.05)


def test_answers_without_rows_are_dimmed(visit: Callable[..., Face], penguin_server: Explorer) -> None:
    face = visit(penguin_server)
    face.write("species = 'Gentoo'")
    assert face.page.locator(".extrapolated").count() == 0
    face.write("species = 'Gentoo' and island = 'Dream' and body_mass_g < 3000")
    assert face.page.locator(".extrapolated").count() == 1
    weak = face.page.locator(".odds .weak")
    assert weak.is_visible() and weak.text_content() in (
        "extrapolated: fewer than 5 of 344 rows are like this",
        "not supported: no learned row is like this",
    )


def test_the_heights_of_a_histogram_are_pythons(penguins: Any, face: Face) -> None:
    face.write("species = 'Gentoo'")
    given = penguins.given(species="Gentoo")
    heights = face.page.evaluate(
        """() => { const card = document.querySelector('jf-card[data-name=bill_length_mm]');
        const path = card.querySelector('.plot .fill').getAttribute('d');
        return [...path.matchAll(/M([\\d.]+) 100V([\\d.-]+)H([\\d.]+)/g)].map(m => [+m[1], 100 - m[2], +m[3]]); }"""
    )
    edges = face.page.evaluate("document.querySelector('jf-card[data-name=bill_length_mm]').column.edges")
    span = edges[-1] - edges[0]
    masses = []
    for left, _, right in heights:
        place = 0.5 * (left + right) / 100 * span + edges[0]
        k = max(i for i, edge in enumerate(edges) if edge <= place)
        masses.append(given.probability(f"{edges[k]:.6f} < bill_length_mm <= {edges[k + 1]:.6f}"))
    tallest = max(height for _, height, _ in heights)
    inner = slice(1, -1)  # the outermost bins hold all beyond them, too
    for (_, height, _), mass in zip(heights[inner], masses[inner], strict=True):
        assert height / tallest == pytest.approx(mass / max(masses), abs=0.01)


def test_what_is_copied_runs(
    penguins: Any, visit: Callable[..., Face], penguin_server: Explorer, new_context: Any
) -> None:
    context = new_context(permissions=["clipboard-read", "clipboard-write"])
    face = visit(penguin_server, context=context)
    face.write("bill_length_mm > 45 and species = 'Gentoo'")

    def copied(what: str) -> str:
        face.page.get_by_role("button", name=f"copy as {what}").click()
        face.page.get_by_text("copied", exact=True).wait_for()
        return str(face.page.evaluate("navigator.clipboard.readText()"))

    posterior = eval(copied("Python"), {"joint": penguins, "jf": jf})
    assert posterior.log_probability == pytest.approx(
        penguins.given("bill_length_mm > 45 and species = 'Gentoo'").log_probability
    )
    assert copied("shell").startswith("jointforest query penguins.joint ")
    assert copied("link") == face.page.url


def test_every_kind_of_column_has_its_numbers(mixed: Any, mixed_face: Face) -> None:
    mixed_face.write("group = 'red' and age >= 40")
    given = mixed.given("group = 'red' and age >= 40")
    assert mixed_face.shares("size") == {level: percent(p) for level, p in given.proba("size").items()}
    assert list(mixed_face.shares("smoker")) == ["False", "True"]
    assert mixed_face.shares("smoker")["True"] == percent(given.proba("smoker")[True])
    mean = re.match(r"mean (\d{4}-\d\d-\d\d)", mixed_face.summary("day"))
    assert mean is not None
    assert mean[1] == f"{given.mean('day') + timedelta(hours=12):%Y-%m-%d}"  # the nearest day
    share = mixed_face.card("amount").locator("jf-histogram .share:visible").first.text_content()
    edges = ShownJoint(mixed, "mixed").bins[mixed.schema.index("amount")].edges
    assert share == percent(given.probability(f"amount <= {edges[1]}"))
