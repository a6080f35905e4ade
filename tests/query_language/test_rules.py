"""Texts to rules, and back."""

from __future__ import annotations

import pytest

import jointforest as jf
from jointforest.data.rules.rule import Equation, MissingWhere, Order

TEXTS = [
    ("start <= end", "start <= end"),
    ("end > start", "start < end"),
    ("end >= `start time`", "`start time` <= end"),
    ("total = net + 0.5*fee - 3", "total = net + 0.5 * fee - 3"),
    ("a + b = c", "c = a + b"),
    ("price = income / 3 - a / 8", "price = income / 3 - 0.125 * a"),
    ("mean = low/2 + high/2 within .010", "mean = 0.5 * low + 0.5 * high within 0.01"),
    ("a = 3 * within within 1e-5", "a = 3 * within within 1e-05"),
    ("city -> country", "city -> country"),
    ("origin, target -> distance", "origin, target -> distance"),
    ("code <-> `long name`", "code <-> `long name`"),
    ("combinations(a, b, c)", "combinations(a, b, c)"),
    ("delay, reason missing together", "delay, reason missing together"),
    ("delay missing iff state = cancelled", "delay missing iff state = 'cancelled'"),
    ("delay missing iff state in {1, 2.5}", "delay missing iff state in {1, 2.5}"),
    ("delay missing iff (a, b) in {(1, x), (2, true)}", "delay missing iff (a, b) in {(1, 'x'), (2, true)}"),
    ("shoe_size missing if runs = no", "shoe_size missing if runs = 'no'"),
    ("race missing iff km<=20", "race missing iff km <= 20"),
    ("race missing if km >= 2.5", "race missing if km >= 2.5"),
    ("combinations = b", "combinations = b"),
]


@pytest.mark.parametrize(("text", "said"), TEXTS)
def test_texts_are_read_and_written(text: str, said: str) -> None:
    assert str(jf.rule(text)) == said
    assert jf.rule(said) == jf.rule(text)


def test_rules_have_fields() -> None:
    assert jf.rule("end > start") == Order(low="start", high="end", is_strict=True)
    assert jf.rule("c = 2 * a") == Equation(column="c", terms=((2.0, "a"),))
    assert jf.rule("d missing iff s in {1, 2}") == MissingWhere(column="d", of=("s",), values=((1,), (2,)))
    assert jf.rule("d missing if s = 1") == MissingWhere(column="d", of=("s",), values=((1,),), is_mutual=False)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the rule is empty"),
        ("a", "expected a rule"),
        ("a <= b <= c", "several rules"),
        ("a + 1 <= b", "two columns as they are"),
        ("a + b = c + d", "one column on one side"),
        ("a = 3", "one column on one side"),
        ("a, b <-> c", "between two columns"),
        ("combinations(a)", "two columns or more"),
        ("a missing together", "one column"),
        ("a missing iff b < 3", "expected '=', '<=', '>=' or 'in'"),
        ("a missing iff b <= low", "expected a number after the comparison"),
        ("a missing iff (b, c) in {(1, 2, 3)}", "expected 2 values"),
        ("a -> a", "each column once"),
        ("a <= b extra", "nothing more"),
        ("pm2.5 <= a", "backticks"),
        ("a <= pm2.5", "backticks"),
        ("a = b + c within", "above 0 after 'within'"),
        ("a = b + c within -1", "above 0 after 'within'"),
        ("a = b + c within 0", "above 0 after 'within'"),
        ("a <= b within 1", "nothing more"),
        ("3 <= a", "column 'a': expected another column beside it, got 3"),
        ("`an a` >= 2.5", "column 'an a': expected another column beside it, got 2.5"),
        ("2024-01-01 <= start", "column 'start': expected another column beside it, got '2024-01-01'"),
        ("'2024-01-01' <= `the start`", "column 'the start': expected another column beside it, got '2024-01-01'"),
        ("2024-13-01 <= start", r"column 'start': expected a date or time.*got '2024-13-01'.*month must be in 1..12"),
        ("'2024-02-30 10:00' < start", r"column 'start': expected a date.*got '2024-02-30 10:00'.*day is out of range"),
        ("start < 2024-13-01", "column 'start': expected a date or time.*got '2024-13-01'"),
        ("start = 2024-1-1", r"column 'start': .*got '2024-1-1'.*have two digits"),
        ("end = start + 2024-13-01", "expected a date or time.*got '2024-13-01'"),
        ("a missing iff start = 2024-13-01", "column 'start': expected a date.*got 2024-13-01"),
    ],
)  # fmt: skip
def test_faults_are_named(text: str, problem: str) -> None:
    with pytest.raises(jf.QuerySyntaxError, match=problem):
        jf.rule(text)


def test_a_rule_is_a_text() -> None:
    with pytest.raises(TypeError, match="expected a text"):
        jf.rule(3)  # type: ignore[arg-type]
