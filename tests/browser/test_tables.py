"""Tables that are large, wide, or hostile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jointforest as jf
from jointforest.explorer.open import Explorer

from . import tables
from .face import Face


@pytest.fixture(scope="module")
def hostile() -> Any:
    return jf.JointTree(min_samples_leaf=0.1).fit(tables.hostile()).joint_


def test_hostile_names_and_levels_are_text(hostile: Any, visit: Callable[..., Face], new_context: Any) -> None:
    context = new_context()
    context.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    with Explorer(hostile, "<b>hostile</b>.joint") as server:
        face = visit(server, context=context)
        assert face.page.locator("h1").text_content() == "<b>hostile</b>.joint"
        assert face.order == list(tables.hostile().columns)
        assert set(face.shares(tables.HOSTILE_NAME)) == set(tables.HOSTILE_LEVELS)
        for level in tables.HOSTILE_LEVELS:
            face.bar(tables.HOSTILE_NAME, level).click()
            face.settle()
            assert face.shares(tables.HOSTILE_NAME)[level] == "100%"
        sentence = face.sentence
        face.write("")
        face.write(sentence)
        assert face.shares(tables.HOSTILE_NAME)[level] == "100%"
        for panel in ("Rows like this", "Most probable row", "Groups of rows", "Two columns", "One row", "History"):
            face.page.get_by_role("button", name=panel, exact=True).click()
            face.rest()
        assert face.page.locator("main script, main img, h1 *").count() == 0


def test_each_level_of_a_right_to_left_column_reads_its_own_way(hostile: Any, visit: Callable[..., Face]) -> None:
    with Explorer(hostile, "hostile.joint") as server:
        face = visit(server)
        label = face.card("עמודה").locator(".bar-label").first
        assert label.evaluate("node => getComputedStyle(node).direction") == "rtl"
        assert face.card("עמודה").locator("h2").evaluate("node => getComputedStyle(node).direction") == "rtl"


def test_three_hundred_columns(visit: Callable[..., Face]) -> None:
    joint = jf.JointTree(min_samples_leaf=0.1).fit(tables.wide()).joint_
    with Explorer(joint, "wide.joint") as server:
        face = visit(server)
        assert len(face.order) == 300
        drawn = "document.querySelectorAll('jf-card .bar, jf-card .plot').length"
        assert face.page.evaluate(drawn) < 150
        asked: list[str] = []
        face.page.on("request", lambda request: asked.append(request.post_data or ""))
        face.drag("x1", 0.3, 0.6, drop=False)
        face.settle("known")
        assert asked[-1].count(",") < 100
        face.page.mouse.up()
        face.settle()
        face.page.get_by_role("button", name="most moved").click()
        assert face.order[0] == "x1"
        face.page.get_by_role("searchbox", name="find a column").fill("x299")
        face.card("x299").scroll_into_view_if_needed()
        expected = joint.given(face.sentence).mean("x299")
        assert face.summary("x299").startswith(f"mean {expected:.3g}".replace("-", "−")[:8])


def test_ten_thousand_levels(visit: Callable[..., Face]) -> None:
    joint = jf.JointTree(min_samples_leaf=0.1).fit(tables.many_levels()).joint_
    with Explorer(joint, "codes.joint") as server:
        face = visit(server)
        card = face.card("code")
        assert card.locator(".bar").count() == 8
        assert card.locator(".others").text_content().startswith("9,992 others, ")  # type: ignore[union-attr]
        card.locator(".others").click()
        assert card.locator(".bar").count() == 58
        search = card.get_by_role("searchbox")
        search.fill("code 0777")
        assert card.locator(".bar").count() == 10
        face.bar("code", "code 07771").click()
        face.settle()
        assert face.sentence == "code = 'code 07771'"
        search.fill("")
        assert face.shares("code")["code 07771"] == "100%"
        card.locator(".typed").fill("!= 'code 07771'")
        card.locator(".typed").press("Enter")
        face.settle()
        assert face.sentence == "code != 'code 07771'"


def test_bars_of_many_levels_stand_in_the_order_of_what_is_known(visit: Callable[..., Face]) -> None:
    frame = tables.some_levels()
    joint = jf.JointTree(min_samples_leaf=0.05).fit(frame).joint_
    with Explorer(joint, "codes.joint") as server:
        face = visit(server)
        for group in ("a", "b", "a", "c"):
            face.write(f"group = '{group}'")
            shares = joint.given(group=group).proba("code")
            most = sorted(shares, key=lambda level: -shares[level])[:8]
            assert list(face.shares("code")) == most
            ends = face.page.evaluate(
                """() => Object.fromEntries([...document.querySelectorAll('jf-card[data-name=group] .bar')].map(bar => {
                const [track, was] = ['.track', '.was'].map(s => bar.querySelector(s).getBoundingClientRect());
                return [bar.querySelector('.bar-label').textContent, (was.right - track.left) / track.width]; }))"""
            )
            assert ends == pytest.approx(joint.given().proba("group"), abs=0.01)  # marks of what was known before
