"""The language: what is read, what is refused and where, and that every query survives being written out."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jointforest.data.conditions import AllOf, AnyOf, Interval, Not, about, likely
from jointforest.query_language.parser import Query, QuerySyntaxError, parse_conditions, parse_query
from jointforest.query_language.render import conditions_text

KINDS = {
    "age": "integer",
    "sex": "categorical",
    "income": "categorical",
    "smoker": "boolean",
    "hours per week": "integer",
    "a.b": "continuous",
    "native-country": "categorical",
}


def one(text: str) -> object:
    """Condition of a text about one column."""
    ((_, condition),) = parse_conditions(text, KINDS)
    return condition


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age = 40", 40),
        ("age about 40 sd 2.5", about(40, sd=2.5)),
        ("age ABOUT -4e2 SD 2 and age > 3", AllOf(about(-400.0, sd=2), Interval(3, None, "neither"))),
        ("sex likely {Male: 0.7, Female: 3e-1}", likely({"Male": 0.7, "Female": 0.3})),
        ("sex likely {Male: 1, others: 0.5}", likely({"Male": 1}, others=0.5)),
        ("sex likely {'others': 1}", likely({"others": 1})),
        ("age likely {40: 1, 20 <= age < 30: .5}", likely({40: 1, Interval(20, 30, "left"): 0.5})),
        ("age likely {age in {1, 2}: 1, age > 5: 2}", likely({AnyOf(1, 2): 1, Interval(5, None, "neither"): 2})),
        ("`hours per week` likely {`hours per week` between 1 and 2: 1}", likely({Interval(1, 2): 1})),
        ("age == +40", 40),
        ("age = -4.5e-3", -0.0045),
        ("age != 40", Not(40)),
        ("age <> 40", Not(40)),
        ("age < 40", Interval(None, 40, "neither")),
        ("age <= 40", Interval(None, 40, "right")),
        ("age > 40", Interval(40, None, "neither")),
        ("age ≥ 40", Interval(40, None, "left")),
        ("40 <= age", Interval(40, None, "left")),
        ("40 = age", 40),
        ("40 <= age < 60", Interval(40, 60, "left")),
        ("60 > age >= 40", Interval(40, 60, "left")),
        ("age between 40 and 60", Interval(40, 60, "both")),
        ("age NOT BETWEEN 40 AND 60", Not(Interval(40, 60, "both"))),
        ("sex in {Male, 'Female'}", AnyOf("Male", "Female")),
        ("sex in (Male)", "Male"),
        ("sex not in [Male, Female]", Not(AnyOf("Male", "Female"))),
        ("not (not (sex = Male))", "Male"),
        ("age > 1 and age < 5, age != 3", AllOf(Interval(1, None, "neither"), Interval(None, 5, "neither"), Not(3))),
        ("age = 1 or age in {2, 3}", AnyOf(1, 2, 3)),
        ("age > 5 and age < 7 or age = 1", AnyOf(AllOf(Interval(5, None, "neither"), Interval(None, 7, "neither")), 1)),
        ("smoker", True),
        ("not smoker", False),
        ("smoker = FALSE", False),
        ("smoker != true", False),
        ("`hours per week` = 3", 3),
        ('"a.b" > 3', Interval(3, None, "neither")),
        ("income = '>50K'", ">50K"),
        ("income = 'it''s'", "it's"),
        ('sex = "Female"', "Female"),
        ("sex = '5'", "5"),
        ("age >= '2024-03-01'", Interval("2024-03-01", None, "left")),
    ],
)
def test_conditions(text: str, expected: object) -> None:
    condition = one(text)
    assert condition == expected and type(condition) is type(expected)


def test_number_types() -> None:
    assert type(one("age = 40")) is int
    assert type(one("age = 40.")) is float
    assert type(one("age = 4e1")) is float


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P(income = '>50K' | age >= 40, sex = 'Female')", "P(income = '>50K' | age >= 40, sex = 'Female')"),
        ("P(sex)", "P(sex)"),
        ("P(smoker)", "P(smoker)"),
        ("P((smoker))", "P(smoker = true)"),
        ("p( sex | smoker )", "P(sex | smoker = true)"),
        ("e(age)", "E(age)"),
        ("VAR(age | sex = Male)", "Var(age | sex = 'Male')"),
        ("sd(`hours per week`)", "Sd(`hours per week`)"),
        ("Q(age, .05, 0.5 | age > 3)", "Q(age, 0.05, 0.5 | age > 3)"),
        ('Median("a.b")', "Median(`a.b`)"),
        ("mode(sex)", "Mode(sex)"),
        ("logp(age = 3, sex = Male)", "logp(age = 3, sex = 'Male')"),
    ],
)
def test_queries(text: str, expected: str) -> None:
    assert str(parse_query(text, KINDS)) == expected


def test_the_parts_of_a_query() -> None:
    query = parse_query("Q(age, 0.1, 0.9 | sex = Male)", KINDS)
    assert query == Query("Q", "age", (0.1, 0.9), (), (("sex", "Male"),))
    query = parse_query("P(age > 3, sex = Male)", KINDS)
    assert query == Query("P", None, (), (("age", Interval(3, None, "neither")), ("sex", "Male")), ())


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("P(income = '>50K | age > 3)", 11, "quote ' is not closed"),
        ("E(age, sex = 'Male')", 5, "after a bar"),
        ("E(agee)", 2, "did you mean 'age'"),
        ("P(age > 3 or sex = Male)", 2, "P(A) + P(B) - P(A, B)"),
        ("P(not (age > 3, sex = Male))", 2, "1 - P(A)"),
        ("P(age >)", 7, "expected a value"),
        ("Medin(age)", 0, "did you mean 'Median'"),
        ("mean(age)", 0, "did you mean 'E'"),
        ("std(age)", 0, "did you mean 'Sd'"),
        ("age > 3", 0, "expected a query"),
        ("P(age > 3 | )", 12, "no evidence"),
        ("P(age > 3 | sex = Male | age = 4)", 23, "second bar"),
        ("P(age > 3 , )", 12, "expected a column"),
        ("P(a.b > 3)", 3, "backticks"),
        ("P(native-country = x)", 2, "`native-country`"),
        ("P(sex = Never-married)", 13, "'Never-married'"),
        ("P(age > 50%)", 10, "quote it as the table writes it"),
        ("P(age > $5)", 8, "write the number alone"),
        ("P(age = 12,5)", 12, "decimals have a point, 12.5"),
        ("P(age > 2023-01-01)", 8, "column 'age': expected a date or time in single quotes"),
        ("P(age > 2023-01-01 12:30)", 8, "write '2023-01-01 12:30'"),
        ("P(age = 2024-13-01)", 8, "got 2024-13-01"),
        ("P(age = 2024-13-01)", 8, "month must be in 1..12"),
        ("P(age in {2024-02-30})", 10, "column 'age': expected a date"),
        ("P(2024-13-01 <= age)", 2, "column 'age': expected a date or time in single quotes"),
        ("P(sex = Male | 2024-13-01 <= age < 2025-01-01)", 15, "column 'age': expected a date"),
        ("P(2024-1-1 <= age)", 2, "months, days and hours have two digits"),
        ("P(sex && age)", 6, "write 'and'"),
        ("P(sex, age > 3)", 2, "write sex = value"),
        ("Q(age)", 5, "needs the levels"),
        ("Q(age, 2)", 7, "less than 1"),
        ("P(age > 3", 9, "')'"),
        ("P(age > 3) given sex", 11, "nothing more"),
        ("P(40 < age > 3)", 11, "same way"),
        ("P(age >= 40 < 50)", 12, "40 <= age < 60"),
        ("P(sex = NA)", 8, "missing value"),
        ("P(sex in {})", 10, "empty list"),
        ("P(sex in {a b})", 12, "joined by ','"),
        ("E(age | age about 40)", 20, "expected 'sd'"),
        ("E(age | age about 40 sd 0)", 24, "sd is a number above 0"),
        ("E(age | age about 40 sd much)", 24, "sd is a number above 0"),
        ("E(age | sex likely Male)", 19, "expected '{'"),
        ("E(age | sex likely {})", 20, "expected a value"),
        ("E(age | sex likely {Male})", 24, "expected ':'"),
        ("E(age | sex likely {Male: x})", 26, "expected a likelihood"),
        ("E(age | sex likely {Male: 1, Male: 2})", 29, "second likelihood"),
        ("E(age | sex likely {Male: 0})", 12, "all likelihoods are 0"),
        ("E(age | sex likely {Male: 1", 27, "end with '}'"),
        ("E(age | sex likely {age > 3: 1})", 20, "a condition on 'age' among likelihoods of 'sex'"),
        ("E(age | age likely {age about 3 sd 1: 1})", 20, "likelihood of soft evidence"),
        ("E(age | age " + "likely {age " * 5000, 608, "deep"),
        ("P(age = 1e999)", 8, "too large"),
        ("P(age = " + "9" * 5000 + ")", 8, "too large"),
        ("P(" + "(" * 5000, 52, "deep"),
        ("P(" + "not " * 5000, 202, "deep"),
        ("", 0, "expected a query"),
    ],
)
def test_errors_point_at_the_place(text: str, position: int, words: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query(text, KINDS)
    assert caught.value.position == position
    assert words in f"{caught.value.problem} {caught.value.hint}"
    message, shown, caret = str(caught.value).split("\n")
    assert f"position {position + 1}" in message
    if position < len(text):
        assert shown[len(caret) - 1] == text[position]


def test_names_that_were_set_aside_are_quoted_too() -> None:
    with pytest.raises(QuerySyntaxError, match="`order-no`"):
        parse_query("P(order-no = 3)", KINDS, {"order-no": "names the rows"})


def test_names_with_spaces_at_their_ends_are_shown_as_they_are_written() -> None:
    kinds = {**KINDS, " Aktiv": KINDS["sex"]}
    for text, name in (("P(aktiv = yes)", " Aktiv"), ("P(Name = 'A1')", " Name")):
        with pytest.raises(QuerySyntaxError, match=f"spaces at their ends are quoted: `{name}`"):
            parse_query(text, kinds, {" Name": "names the rows"})


def test_the_line_at_fault_is_shown_alone() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query("P(sex\n | age >\n)", KINDS)
    assert str(caught.value).split("\n")[1:] == ["    )", "    ^"]


@pytest.mark.parametrize("text", ["age > 3 | sex = Male", "age > 3 sex", "age >", "", "(age > 3", "age > 3)"])
def test_conditions_refused(text: str) -> None:
    with pytest.raises(QuerySyntaxError):
        parse_conditions(text, KINDS)


PIECES = [
    "P(", "E(", "Q(", "logp(", "Mode(", ")", "(", "|", ",", " and ", " or ", " not ", " in ", " between ", "{", "}",
    "[", "]", "age", "sex", "smoker", "`hours per week`", '"a.b"', "'x'", "'", "`", "=", "<", "<=", ">", "!=", "-", "+",
    " about ", " sd ", " likely ", ":", "others",
    "4", "0.5", "1e3", "1e999", ".", "Male", "true", "é", "²", "\n", "\u2264", "\u0301", "\x00", "NA",
]  # fmt: skip
TEXT = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))


@settings(max_examples=1500, deadline=None)
@given(TEXT, st.booleans())
@example("P(²)", False)
@example("P(x = ²)", False)
def test_any_text_is_read_or_refused(text: str, known: bool) -> None:
    kinds = KINDS if known else None
    try:
        query = parse_query(text, kinds)
    except QuerySyntaxError as error:
        assert 0 <= error.position <= len(text)
        assert str(error)
    else:
        assert parse_query(str(query), kinds) == query
    try:
        conditions = parse_conditions(text, kinds)
    except QuerySyntaxError:
        return
    assert parse_conditions(conditions_text(conditions), kinds) == conditions


NAME = st.text(min_size=1, max_size=8)
NUMBER = st.one_of(st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False))
VALUE = st.one_of(NUMBER, st.text(max_size=8), st.booleans())
LIKELIHOOD = st.floats(1e-300, 1e300)
LEAF = st.one_of(
    VALUE,
    st.builds(about, NUMBER, st.floats(1e-300, 1e300)),
    st.dictionaries(st.text(max_size=8), LIKELIHOOD, min_size=1, max_size=3).map(likely),
    st.builds(lambda value, x, others: likely({Interval(value, None): x}, others), NUMBER, LIKELIHOOD, LIKELIHOOD),
    st.builds(Interval, NUMBER, NUMBER, st.sampled_from(["both", "left", "right", "neither"])),
    st.builds(Interval, st.none(), NUMBER, st.sampled_from(["right", "neither"])),
    st.builds(Interval, NUMBER, st.none(), st.sampled_from(["left", "neither"])),
)
BRANCH = st.recursive(
    LEAF, lambda inner: st.lists(inner, min_size=2, max_size=3).map(lambda c: AnyOf(*c)), max_leaves=6
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(NAME, BRANCH, min_size=1, max_size=3), st.lists(st.floats(0.001, 0.999), min_size=1, max_size=3))
def test_written_out_and_read_again(conditions: dict[str, object], levels: list[float]) -> None:
    query = Query("Q", next(iter(conditions)), tuple(levels), (), tuple(conditions.items()))
    once = parse_query(str(query))
    assert once.column == query.column and once.levels == query.levels
    assert [column for column, _ in once.evidence] == list(conditions)
    assert parse_query(str(once)) == once


@settings(max_examples=300, deadline=None)
@given(NAME, VALUE)
def test_any_name_and_value_can_be_written(name: str, value: object) -> None:
    ((column, condition),) = parse_conditions(conditions_text({name: value}))
    assert column == name and condition == value and type(condition) is type(value)


@pytest.mark.parametrize("name", ["NONE", "na", "true", "False", "and"])
def test_names_that_are_words_of_the_language_are_written_in_backticks(name: str) -> None:
    conditions = ((name, likely({Interval(0, None, "left"): 1.0}, 0.5)),)
    assert f"`{name}`" in conditions_text(conditions)
    assert parse_conditions(conditions_text(conditions)) == conditions


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age > 20 EUR", "write the number alone, 20, or quote it as the table writes it: '20 EUR'"),
        ("age = 40-60", "a range is: between 40 and 60"),
        ("age = 40 to 60", "a range is: between 40 and 60"),
        ("age = 40–60", "a range is: between"),
        ("age > 2024-03", "dates and times go in single quotes"),
    ],
)
def test_hints_fit_the_text(text: str, words: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_conditions(text, {"age": "integer"})
    assert words in caught.value.hint


def test_the_opposite_of_a_word_is_one_of_booleans_alone() -> None:
    kinds = {"answer": "categorical", "ok": "boolean"}
    assert parse_conditions("answer != true", kinds) == (("answer", Not(True)),)
    assert parse_conditions("not (answer = false)", kinds) == (("answer", Not(False)),)
    assert parse_conditions("answer not in {true}", kinds) == (("answer", Not(True)),)
    assert parse_conditions("ok != true", kinds) == (("ok", False),)
