"""What joints, posteriors and marginals say of themselves: in words, and as HTML."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import jointforest as jf

from ..explorer.tables import JOINTS, NAMES, forest


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
    found = re.fullmatch(r"age given size = 'L': mean ([\d.]+), 90 % in (\d+) to (\d+)", said)
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
    shares = [float(x) for x in re.findall(r"([\d.]+) %", said)]
    assert shares == pytest.approx([100 * share for _, share in best], abs=0.51)


def test_dates_are_dates() -> None:
    said = repr(forest().given("day >= '2024-04-05'").marginal("day"))
    assert re.fullmatch(
        r"day given day >= '2024-04-05': mean 2024-04-\d\d .*, 90 % in 2024-04-\d\d.* to 2024-04-\d\d.*", said
    )
    assert "+02:00" in repr(forest().marginal("at")) or "+01:00" in repr(forest().marginal("at"))


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
    rules = forest().rules(0, 5)
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
        assert not found.open and found.tags <= {"div", "p", "b", "br", "table", "tr", "td", "span", "bdi", "pre"}
        assert found.attributes <= {"style"} and len(html) < 20_000 and "url(" not in html
    assert all(column in words(pieces[1]) for column in joint.columns)
    assert NAMES["level"] in words(pieces[3]) and f"<b>{'bold'}</b>" not in pieces[3]
    assert "log-probability of the evidence" in words(pieces[1])


def test_wide_and_long_tables_are_cut() -> None:
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(60, 40)), columns=[f"c{k}" for k in range(40)])
    wide["levels"] = [f"{k % 30} " + "x" * 500 for k in range(60)]
    joint = jf.AdversarialForest(n_estimators=1, random_state=0).fit(wide).joint_
    for html in (joint._repr_html_(), joint.given("c0 > 0")._repr_html_()):
        assert "and 11 columns more" in words(html)
    assert "and 10 levels more" in words(joint.marginal("levels")._repr_html_())
    assert len(joint.marginal("levels")._repr_html_()) < 10_000 and len(repr(joint.marginal("levels"))) < 300
