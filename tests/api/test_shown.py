"""What joints, posteriors and marginals say of themselves: in words, and as HTML."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.schema import Column
from jointforest.inference.explanation import column_summary

from ..explorer.tables import JOINTS, NAMES, forest

TAGS = {"div", "p", "b", "br", "i", "table", "tr", "td", "th", "span", "bdi", "pre"}
TAGS |= {"svg", "rect", "path", "circle", "text"}
PRESENTATION = {"fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "font-size", "text-anchor"}
PLACES = {"width", "height", "viewbox", "x", "y", "cx", "cy", "r", "rx", "d"}
ATTRIBUTES = {"style", "role", "aria-label", "aria-hidden"} | PRESENTATION | PLACES


class Tags(HTMLParser):
    """Tags and attributes of a piece of HTML, and whether each is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]*>", " ", html)))


@pytest.mark.parametrize("name", JOINTS)
def test_a_marginal_says_its_mean_and_interval(name: str) -> None:
    known = JOINTS[name]().given("size = L")
    said = repr(known.marginal("age"))
    found = re.fullmatch(r"age given size = 'L': mean ([\d.]+), 90% of values: (\d+) to (\d+)", said)
    assert found, said
    mean, low, high = (float(x) for x in found.groups())
    assert mean == pytest.approx(known.mean("age"), abs=0.06) and (low, high) == known.interval("age")
    assert repr(JOINTS[name]().marginal("age")).startswith("age: mean ")


@pytest.mark.parametrize("name", JOINTS)
def test_a_marginal_of_levels_says_the_most_probable(name: str) -> None:
    known = JOINTS[name]().given("age > 50")
    best = sorted(known.proba("town").items(), key=lambda pair: -pair[1])[:3]
    said = repr(known.marginal("town"))
    named = [level for level, _ in best]
    assert re.findall(r"(town \d+) ", said.split(": ", 1)[1]) == named and said.endswith("9 others")
    shares = [float(x) for x in re.findall(r"([\d.]+)%", said)]
    assert shares == pytest.approx([100 * share for _, share in best], abs=0.51)


def test_dates_are_dates() -> None:
    said = repr(forest().given("day >= '2024-04-05'").marginal("day"))
    assert re.fullmatch(
        r"day given day >= '2024-04-05': mean 2024-04-\d\d, 90% of values: 2024-04-\d\d to 2024-04-\d\d", said
    )
    assert re.search(r"mean 2024-10-2\d \d\d:\d\d, 90% of values: ", repr(forest().marginal("at")))


def test_what_cannot_be_said_is_no_error() -> None:
    nothing = forest().given("age > 40 and age < 30")
    assert repr(nothing.marginal("x")).endswith(": the evidence has probability 0")
    for html in (nothing._repr_html_(), nothing.marginal("size")._repr_html_(), nothing.marginal("x")._repr_html_()):
        assert "probability 0" in words(html)
    rows = pd.DataFrame({"age": [30, 40]})
    assert repr(forest().given(rows).marginal("x")) == "x: given 2 rows of evidence"
    assert "2 rows" in words(forest().given(rows)._repr_html_())
    assert "0 rows" in words(forest().given(rows.head(0))._repr_html_())
    assert "mean" in words(forest().given(rows.head(1))._repr_html_())
    known = forest().given(age=40).marginal("age")
    assert repr(known) == "age given age = 40: 40"
    assert "background" in words(forest().given("age > 400 and x < -80")._repr_html_())


def test_rules_are_lines_in_a_notebook() -> None:
    rules = forest().tree_text(0, 5)
    html = rules._repr_html_()
    assert (
        isinstance(rules, str)
        and Tags(html).tags == {"pre"}
        and unescape(html).endswith(f">{rules}</pre>")
        and "white-space:pre" in html
    )
    assert "<script" not in html and "<b" not in html


@pytest.mark.parametrize("name", JOINTS)
def test_html_is_small_static_and_escaped(name: str) -> None:
    joint = JOINTS[name]()
    known = joint.given("size = L and price is missing")
    pieces = [joint._repr_html_(), known._repr_html_(), joint.marginal("x")._repr_html_()]
    pieces += [known.marginal(NAMES["script"])._repr_html_(), known.explain(3)._repr_html_()]
    for html in pieces:
        found = Tags(html)
        assert not found.open and found.tags <= TAGS
        assert found.attributes <= ATTRIBUTES and len(html) < 40_000 and "url(" not in html
    assert all(column in words(pieces[1]) for column in joint.columns)
    assert NAMES["level"] in words(pieces[3]) and f"<b>{'bold'}</b>" not in pieces[3]
    assert "probability of the evidence" in words(pieces[1]) and "log-probability" in words(pieces[1])


def test_wide_and_long_tables_are_cut() -> None:
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(60, 40)), columns=[f"c{k}" for k in range(40)])
    wide["levels"] = [f"{k % 30} " + "x" * 500 for k in range(60)]
    joint = jf.AdversarialForest(n_estimators=1, random_state=0).fit(wide).joint_
    for html in (joint._repr_html_(), joint.given("c0 > 0")._repr_html_()):
        assert "and 11 columns more" in words(html)
    assert "and 10 levels more" in words(joint.marginal("levels")._repr_html_())
    assert len(joint.marginal("levels")._repr_html_()) < 16_000 and len(repr(joint.marginal("levels"))) < 300


def shares(html: str) -> dict[str, float]:
    """Texts of cells that stand before a bar, and the per cent after it."""
    found = re.findall(r"<td[^>]*><bdi>([^<]*)</bdi></td><td[^>]*><svg.*?</svg></td><td[^>]*><bdi>([^<]*)%</bdi>", html)
    return {
        unescape(name): float(text.strip("<>")) / 100
        for name, text in ((name, unescape(text)) for name, text in found)
        if text.strip("<>")[0].isdigit()
    }


@pytest.mark.parametrize("name", JOINTS)
def test_cards_say_what_queries_say(name: str) -> None:
    known = JOINTS[name]().given("age > 50")
    for html in (known._repr_html_(), known.marginal("size")._repr_html_()):
        said = shares(html)
        want = known.proba("size")
        assert all(
            said[str(level)] == pytest.approx(share, abs=0.00051) for level, share in want.items() if share > 0.01
        )
    mean = float(re.search(r"mean (?:about )?([\d.]+)", words(known.marginal("age")._repr_html_())).group(1))
    assert mean == pytest.approx(known.mean("age"), abs=0.06)
    card = re.search(r"<bdi>age</bdi></b>.*?mean (?:about )?([\d.]+)", known._repr_html_()).group(1)
    assert float(card) == pytest.approx(known.mean("age"), rel=0.02)  # of a mixture from draws


def test_other_views_are_static_and_escaped() -> None:
    evil = "<script>alert(1)</script>"
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    frame = pd.DataFrame(
        {evil: np.where(x > 0, f"a{evil}", "b"), "x": x.round(2), "y": (x + rng.normal(size=120)).round(2)}
    )
    joint = jf.fit(frame, budget="fast", random_state=0)
    forest_of = jf.AdversarialForest(n_estimators=3, random_state=0).fit(frame).joint_
    values = jf.shapley(evil, forest_of, frame.head(2))
    views = [
        joint.fitted_by,
        joint.reading,
        values,
        jf.shapley("x", forest_of, frame.head(9)),
        forest_of.given(x=0.5).explain(3),
    ]
    views += [
        forest_of.reverse({evil: "b"}),
        forest_of.counterfactual(frame[x > 1].iloc[[0]], evil, ["b"], random_state=0),
    ]
    views += [jf.fidelity(forest_of, frame.head(60), frame.tail(60), random_state=0)]
    views += [jf.sage(lambda X: X["x"], forest_of, frame[["x", "y"]].head(20), frame["x"].head(20), n_draws=4)]
    for view in views:
        html = view._repr_html_()
        found = Tags(html)
        assert not found.open and found.tags <= TAGS and found.attributes <= ATTRIBUTES, type(view)
        assert "script>" not in html and len(html) < 40_000 and repr(view), type(view)
    assert "candidate" in str(joint.fitted_by) and repr(joint.fitted_by) == str(joint.fitted_by)


def test_an_outlier_does_not_take_the_digits_away() -> None:
    x = np.random.default_rng(0).normal(0.5, 0.1, 500)
    x[0] = 1e4
    joint = jf.JointTree(random_state=0).fit(pd.DataFrame({"x": x})).joint_
    low, high = (f"{end:.3f}".rstrip("0") for end in joint.given().quantile("x", [0.05, 0.95]))
    assert f"90% of values: {low} to {high}" in repr(joint.given().marginal("x"))


def test_what_differences_of_sums_leave_of_zero_is_zero() -> None:
    column = Column("x", "continuous", "float64", minimum=-5.0, maximum=5.0)
    assert column_summary(column, np.array([-7.168e-10, 0.0, 1e-8])) == {"mean": 0.0, "low": 0.0, "high": 1e-8}
