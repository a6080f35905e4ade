"""Pictures of cards: what their shapes say is what they were given."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from jointforest import cards
from jointforest.explorer.scripts import PAGE


def tops(drawn: str) -> list[float]:
    """Upper ends of the bars, in pixels from above."""
    path = re.search(r'<path d="([^"]*)" fill="#2a8f86"', drawn).group(1)
    return [float(y) for y in re.findall(r"M[\d.]+ 88V([\d.]+)H", path)]


def test_heights_are_masses() -> None:
    mass = np.array([0.1, 0.2, 0.4, 0.3])
    heights = 88.0 - np.array(tops(cards.histogram_svg("x", mass, None, [], None)))
    np.testing.assert_allclose(heights / heights.sum(), mass, atol=0.005)


def test_a_bar_that_hides_the_others_is_broken_and_labelled() -> None:
    mass = np.array([0.02, 0.9, 0.03, 0.05])
    drawn = cards.histogram_svg("x", mass, None, [], None)
    heights = 88.0 - np.array(tops(drawn))
    np.testing.assert_allclose(heights / heights.sum(), [0.2, 0.3, 0.5], atol=0.01)
    assert "90.0%" in drawn and heights.max() == pytest.approx(74 / cards.CUT_AT, abs=0.1)
    rest = cards.histogram_svg("x", np.array([1e-5, 1.0, 1e-5]), None, [], None)  # nothing is worth a break
    assert len(tops(rest)) == 3 and "100%" in rest


def test_bars_have_one_scale() -> None:
    wide = [float(re.findall(r'width="([\d.]+)" height="10"', cards.bar_svg(share))[0]) for share in (0.0, 0.25, 1.0)]
    np.testing.assert_allclose(wide, [0.0, cards.BAR / 4, cards.BAR])
    assert cards.bar_svg(0.3, 0.6).count("<rect") == 3


def test_shares_never_look_like_none_or_all() -> None:
    said = [cards.percent(x) for x in (0.0, 1e-9, 0.0005, 0.1234, 0.9996, 1.0)]
    assert said == ["0%", "<0.1%", "0.1%", "12.3%", ">99.9%", "100%"]


@pytest.mark.parametrize(("low", "high", "whole"), [(1, 99, True), (0, 1, False), (0.5, 3.5, True), (-1e6, 3e6, False)])
def test_ticks_are_round_few_and_inside(low: float, high: float, whole: bool) -> None:
    ticks = cards.round_ticks(low, high, whole)
    assert 2 <= len(ticks) <= 4 and all(low <= x <= high for x in ticks)
    assert not whole or all(x == round(x) for x in ticks)


def test_texts_are_escaped_and_pieces_of_html_are_not() -> None:
    page = cards.view_html(
        "<a>", ["<b>"], [cards.card("<c>", "<d>", cards.table_html([("<e>", cards.Html("<i>f</i>"))]))], "<g>"
    )
    assert not re.search("<[acdeg]>", page) and "<i>f</i>" in page and "&lt;e&gt;" in page
    assert "<b>" in page.replace("<b><bdi>", "") or "&lt;b&gt;" in page


def test_the_pages_have_the_same_colours() -> None:
    style = (PAGE / "style.css").read_text(encoding="utf-8")
    root = style[: style.index("}")]  # elsewhere a comparison has colours of its own
    light = dict(re.findall(r"--([\w-]+): light-dark\((#\w+),", root))
    names = {"accent-fill": "POSTERIOR", "ghost": "PRIOR", "was": "PRIOR_LINE", "soft": "SOFT", "lower": "LOWER"}
    names |= {"ink": "TABLE", "edge": "EDGE"}
    assert {name: light[name] for name in names} == {name: getattr(cards, const) for name, const in names.items()}
    picture = (PAGE / "picture.js").read_text(encoding="utf-8")
    colours = re.search(r"const \[NOW, BEFORE, A, INK, SOFT\] = \[(.*)\];", picture)[1]
    now, before, _, ink, soft = json.loads(f"[{colours}]")  # charts of Python do not compare A with B
    assert [now, before, ink, soft] == [cards.POSTERIOR, cards.PRIOR, cards.TABLE, cards.SOFT]


def test_a_share_stands_over_its_own_bar() -> None:
    for k in range(20):
        mass = np.full(20, 0.02)
        mass[k] = 0.62
        drawn = cards.histogram_svg("x", mass, None, [], None)
        x, anchor = re.search(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="(\w+)" font-size="11"', drawn).groups()
        low, high = cards.WIDTH * k / 20, cards.WIDTH * (k + 1) / 20
        assert low - 0.1 <= float(x) <= high + 0.1 and anchor in ("start", "middle", "end")
