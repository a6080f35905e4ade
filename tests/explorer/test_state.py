"""Evidence as JSON means what it says, and goes there and back."""

from __future__ import annotations

import json
import shlex
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.conditions import without_missing
from jointforest.data.evidence import Evidence, build
from jointforest.data.schema import Schema
from jointforest.explorer.state import python_call, read_evidence, sentence, shell_command, tidied, write_evidence

from .tables import NAMES, forest, frame

SCHEMA = forest().schema
PLACE = {name: j for j, name in enumerate(SCHEMA.names)}


def day(text: str, zone: str | None = None) -> float:
    """Milliseconds since 1970."""
    return pd.Timestamp(text, tz=zone or "UTC").timestamp() * 1e3


def meaning(said: Any, schema: Schema = SCHEMA) -> tuple[Evidence, dict[str, bool]]:
    rest, missing = without_missing(read_evidence(schema, said))
    return build(schema, conditions=rest), missing


def same(a: tuple[Evidence, Any], b: tuple[Evidence, Any]) -> bool:
    arrays = zip(a[0], b[0], strict=True)
    return a[1] == b[1] and all(np.array_equal(x, y, equal_nan=True) for x, y in arrays)


CASES: list[tuple[dict[str, Any], str]] = [
    ({"column": PLACE["size"], "levels": [0]}, "size = 'S'"),
    ({"column": PLACE["size"], "levels": [2, 1]}, "size != 'S'"),
    ({"column": PLACE["town"], "levels": [1, 3]}, "town in {'town 1', 'town 11'}"),
    ({"column": PLACE["town"], "levels": list(range(10))}, "town not in {'town 8', 'town 9'}"),
    ({"column": PLACE["member"], "levels": [1]}, "member = true"),
    ({"column": PLACE["member"], "levels": [0]}, "member = false"),
    ({"column": PLACE["age"], "low": 39.5, "high": 50.5}, "40 <= age <= 50"),
    ({"column": PLACE["age"], "low": 40, "high": 50, "low_in": False, "high_in": False}, "41 <= age <= 49"),
    ({"column": PLACE["age"], "low": 40, "high": None}, "age >= 40"),
    ({"column": PLACE["age"], "low": 40, "high": 40}, "age = 40"),
    ({"column": PLACE["age"], "low": 39.5, "high": 40.5}, "age = 40"),
    ({"column": PLACE["price"], "low": 9.994, "high": 10.251}, "10 <= price <= 10.25"),
    ({"column": PLACE["price"], "missing": True}, "price is missing"),
    ({"column": PLACE["price"], "missing": False}, "price is not missing"),
    ({"column": PLACE["x"], "low": None, "high": 1.5, "high_in": False}, "x < 1.5"),
    ({"column": PLACE["x"], "low": 1, "high": 1.5}, "1 <= x <= 1.5"),
    ({"column": PLACE["x"], "low": 0.25, "high": 0.25}, "x = 0.25"),
    ({"column": PLACE["spend"], "low": 0, "high": 0}, "spend = 0"),
    ({"column": PLACE["spend"], "text": "spend = 0 or spend > 20"}, "(spend = 0 or spend > 20)"),
    ({"column": PLACE["x"], "text": "x about 2 sd 0.5"}, "x about 2 sd 0.5"),
    (
        {"column": PLACE["day"], "low": day("2024-04-01"), "high": day("2024-04-03")},
        "'2024-04-01' <= day <= '2024-04-03'",
    ),
    ({"column": PLACE["day"], "low": day("2024-03-31 12:00"), "high": None}, "day >= '2024-04-01'"),
    ({"column": PLACE["at"], "low": day("2024-10-26 12:30"), "high": None}, "at >= '2024-10-26 14:30'"),
    # in Berlin clocks were put back at 01:00 UTC of the 27th: 02:30 came twice
    ({"column": PLACE["at"], "low": day("2024-10-27 00:30"), "high": None}, "at >= '2024-10-27 02:30:00+02:00'"),
    ({"column": PLACE["at"], "low": day("2024-10-27 01:30"), "high": None}, "at >= '2024-10-27 02:30:00+01:00'"),
    ({"column": PLACE[NAMES["script"]], "levels": [0]}, ""),
]


@pytest.mark.parametrize(("said", "text"), CASES)
def test_a_condition_reads_as_its_sentence_and_goes_there_and_back(said: dict[str, Any], text: str) -> None:
    found = tidied(SCHEMA, read_evidence(SCHEMA, [said]))
    if text:
        assert sentence(found) == text
    written = json.loads(json.dumps(write_evidence(SCHEMA, found), allow_nan=False))
    assert len(written) == 1 and written[0]["column"] == said["column"]
    assert same(meaning(written), meaning([said]))
    assert same(meaning({"text": sentence(found)}), meaning([said]))
    assert same(meaning([{"column": one["column"], "text": one["words"]} for one in written]), meaning([said]))
    assert write_evidence(SCHEMA, tidied(SCHEMA, read_evidence(SCHEMA, written))) == written


def test_random_conditions_of_all_columns_go_there_and_back() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        said = []
        for j, column in enumerate(SCHEMA.columns):
            if rng.random() < 0.5:
                continue
            if column.is_categorical:
                n = len(column.levels)
                said.append({"column": j, "levels": rng.permutation(n)[: rng.integers(1, n + 1)].tolist()})
                continue
            ends = np.sort(rng.uniform(column.minimum, column.maximum, 2))
            if column.kind == "datetime":
                ends = (ends + column.origin) * 1e3
            elif column.step > 0.0 and rng.random() < 0.5:
                ends = np.round(ends / column.step) * column.step
            low, high = (x if rng.random() < 0.7 else None for x in ends.tolist())
            said.append(
                {"column": j, "low": low, "high": high, "low_in": rng.random() < 0.5, "high_in": rng.random() < 0.5}
            )
        found = tidied(SCHEMA, read_evidence(SCHEMA, said))
        written = json.loads(json.dumps(write_evidence(SCHEMA, found), allow_nan=False))
        cells = [c["column"] for c in written]
        assert cells == sorted(set(cells))
        assert same(meaning(written), meaning({"text": sentence(found)}) if found else meaning([]))
        assert same(meaning(written), meaning([{"column": c["column"], "text": c["words"]} for c in written]))
        assert met(said) == met(written)


def met(said: list[dict[str, Any]]) -> list[bool]:
    """Which rows of the table meet conditions, read off the JSON and the table alone."""
    table = frame()
    found = np.ones(len(table), bool)
    for c in said:
        cells = table[SCHEMA.names[c["column"]]]
        if "levels" in c:
            levels = SCHEMA.columns[c["column"]].levels
            found &= cells.isna().to_numpy() | cells.isin([levels[k] for k in c["levels"]]).to_numpy()
            continue
        is_date = pd.api.types.is_datetime64_any_dtype(cells)
        x = np.array([t.timestamp() * 1e3 for t in cells]) if is_date else cells.to_numpy(float)
        eps = 1e-6
        if c["low"] is not None:
            found &= ~(x < c["low"] - eps) & (c["low_in"] | ~(np.abs(x - c["low"]) < eps))
        if c["high"] is not None:
            found &= ~(x > c["high"] + eps) & (c["high_in"] | ~(np.abs(x - c["high"]) < eps))
    return found.tolist()


def test_texts_become_conditions_of_the_page() -> None:
    text = (
        "age in [40, 41] and size not in {M} and town = 'town 3', price > 10 and price <= 11 and not day < '2024-04-01'"
    )
    found = write_evidence(SCHEMA, tidied(SCHEMA, read_evidence(SCHEMA, {"text": text})))
    said = {SCHEMA.names[c["column"]]: c for c in found}
    assert said["size"]["levels"] == [0, 2] and said["town"]["levels"] == [SCHEMA["town"].codes["town 3"]]
    assert (said["price"]["low"], said["price"]["high"]) == (10.01, 11.0)
    assert "text" in said["age"]
    assert list(said) == [name for name in SCHEMA.names if name in said]


def test_conditions_of_one_column_are_joined() -> None:
    j = PLACE["age"]
    said = [
        {"column": j, "low": 30, "high": None},
        {"column": j, "low": None, "high": 50},
        {"column": j, "low": 20, "high": 60},
    ]
    found = tidied(SCHEMA, read_evidence(SCHEMA, said))
    ends = {"low": 30.0, "high": 50.0, "low_in": True, "high_in": True}
    assert write_evidence(SCHEMA, found) == [{"column": j, "words": "between 30 and 50"} | ends]


def test_what_says_nothing_is_left_out() -> None:
    said = [{"column": PLACE["size"], "levels": [0, 1, 2]}, {"column": PLACE["x"], "low": None, "high": None}]
    assert tidied(SCHEMA, read_evidence(SCHEMA, said)) == {}
    assert read_evidence(SCHEMA, None) == {} and read_evidence(SCHEMA, {"text": "  "}) == {}


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ([{"column": 99, "low": 1}], "column: expected a place of 0 to 9"),
        ([{"column": -1, "low": 1}], "expected a place"),
        ([{"column": True, "low": 1}], "expected a place"),
        ([{"column": "age", "low": 1}], "expected a place"),
        ([{}], "expected a place"),
        ([7], "expected an object"),
        ("age > 3", "expected a list"),
        ({"text": 3}, "a sentence"),
        ({"text": "age > 3", "more": 1}, "a sentence"),
        ({"text": "agee > 3"}, "agee"),
        ({"text": "age >"}, "expected"),
        ([{"column": PLACE["age"]}], "'age': expected levels, low and high, missing, or text"),
        ([{"column": PLACE["age"], "levels": [0]}], "no levels"),
        ([{"column": PLACE["size"], "low": 0}], "levels, not numbers"),
        ([{"column": PLACE["size"], "levels": []}], "no level is left"),
        ([{"column": PLACE["size"], "levels": [3]}], "place of 0 to 2"),
        ([{"column": PLACE["size"], "levels": [0.5]}], "place of 0 to 2"),
        ([{"column": PLACE["size"], "levels": "S"}], "list of places"),
        ([{"column": PLACE["age"], "low": 5, "high": 4}], "reversed"),
        ([{"column": PLACE["age"], "low": float("nan")}], "finite"),
        ([{"column": PLACE["age"], "low": float("inf")}], "finite"),
        ([{"column": PLACE["age"], "low": 10**400}], "finite"),
        ([{"column": PLACE["age"], "low": "5"}], "number or null"),
        ([{"column": PLACE["age"], "low": True}], "number or null"),
        ([{"column": PLACE["age"], "low": 5, "low_in": 1}], "true or false"),
        ([{"column": PLACE["age"], "missing": "yes"}], "true or false"),
        ([{"column": PLACE["age"], "text": "size = S"}], "a condition on 'size' beside the name of 'age'"),
        ([{"column": PLACE["age"], "text": 5}], "expected a text"),
        ([{"column": PLACE["day"], "low": 1e18}], "years 1 to 9999"),
    ],
)
def test_what_cannot_be_said_is_named(said: Any, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        tidied(SCHEMA, read_evidence(SCHEMA, said))


def test_columns_with_numbers_for_names() -> None:
    numbered = pd.DataFrame({0: np.arange(40.0), 1: np.arange(40) % 3})
    joint = jf.AdversarialForest(n_estimators=1, random_state=0).fit(numbered).joint_
    found = tidied(joint.schema, read_evidence(joint.schema, [{"column": 1, "low": 1, "high": 1}]))
    assert sentence(found) == "`1` = 1"
    assert joint.given(sentence(found)).log_probability == pytest.approx(joint.given({1: 1}).log_probability)


def test_python_and_shell_ask_the_same() -> None:
    found = tidied(SCHEMA, read_evidence(SCHEMA, {"text": f"`{NAMES['script']}` = {NAMES['emoji']!r} and age > 30"}))
    call = python_call(found)
    asked = eval(call, {"joint": forest()})
    assert asked.log_probability == pytest.approx(forest().given(found).log_probability)
    assert python_call({}) == "joint.given()"
    command = shell_command("my file.joint", found, [SCHEMA["age"], SCHEMA["x"]])
    words = shlex.split(command)
    assert words[:3] == ["jointforest", "query", "my file.joint"]
    assert words[3].startswith("E(x | ")  # age has evidence
    assert shlex.split(shell_command("joint", found, [SCHEMA["x"]]))[2] == "MODEL.joint"
    assert forest().query(words[3]) == pytest.approx(forest().given(found).mean("x"))


@pytest.mark.parametrize(
    ("column", "text", "same_as"),
    [
        ("age", "40", "age = 40"),
        ("age", ">= 30 and < 40", "age >= 30 and age < 40"),
        ("age", "< 20 or > 50", "age < 20 or age > 50"),
        ("age", "between 30 and 40", "age between 30 and 40"),
        ("age", "not between 30 and 40", "age not between 30 and 40"),
        ("age", "30 <= age < 40", "30 <= age < 40"),
        ("x", "about 2 sd 0.5", "x about 2 sd 0.5"),
        ("x", "-1.5", "x = -1.5"),
        ("size", "M", "size = M"),
        ("size", "'M' or L", "size in {M, L}"),
        ("size", "not M", "size != M"),
        ("size", "likely {M: 0.7, others: 0.1}", "size likely {M: 0.7, others: 0.1}"),
        ("day", "> '2024-04-01'", "day > '2024-04-01'"),
        ("price", "is not missing", "price is not missing"),
    ],
)
def test_the_name_of_the_column_may_be_left_out(column: str, text: str, same_as: str) -> None:
    assert same(meaning([{"column": PLACE[column], "text": text}]), meaning({"text": same_as}))


@pytest.mark.parametrize(
    ("column", "text", "part"),
    [
        ("age", "30-40", "cannot read '30-40': .* write such as = 40, >= 40, between 40 and 60, is missing"),
        ("day", "2024-04-01", "in single quotes"),
        ("size", "M L", "expected ',' or 'and'"),
        ("age", "> 3, size = M", "a condition on 'size' beside the name of 'age'"),
        ("age", "size", "'size' is ordered"),
        ("age", "", "expected a condition"),
        ("age", "1,5", "decimals have a point, 1.5, .*several values are: in {1,5}"),
        ("age", "40 EUR", "write the number alone, 40"),
        ("size", "M, L", "several values are: in {M, L}"),
    ],
)
def test_a_text_beside_a_name_is_refused(column: str, text: str, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        read_evidence(SCHEMA, [{"column": PLACE[column], "text": text}])


def test_a_level_that_is_also_the_name_of_a_column() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"color": rng.choice(["red", "ok", "n", "color"], 200), "ok": rng.random(200) < 0.5})
    table["n"] = rng.integers(0, 9, 200)
    schema = jf.AdversarialForest(n_estimators=1, random_state=0).fit(table).joint_.schema
    place = schema.index("color")
    for text, levels in (("ok", ["ok"]), ("n", ["n"]), ("color", ["color"]), ("ok or red", ["ok", "red"])):
        (found,) = tidied(schema, read_evidence(schema, [{"column": place, "text": text}])).values()
        assert sorted(getattr(found, "conditions", (found,))) == levels
    assert read_evidence(schema, [{"column": schema.index("ok"), "text": "not ok"}]) == {"ok": False}
    with pytest.raises(ValueError, match="a condition on 'n' beside the name of 'color'"):
        read_evidence(schema, [{"column": place, "text": "n > 3"}])
