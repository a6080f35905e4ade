"""The page's own words: numbers as people read them, conditions as people type them, evidence as an address."""

from __future__ import annotations

import json
import math
from typing import Any

from .face import Face

AGE = {"name": "age", "kind": "integer", "levels": None, "edges": [16.5 + 2 * k for k in range(38)], "step": 1}
REAL = {"name": "my real", "kind": "continuous", "levels": None, "edges": [0.02 * k for k in range(41)], "step": None}
DAYS = [1.6e12 + 8.64e8 * k for k in range(41)]
DAY = {"name": "day", "kind": "datetime", "levels": None, "edges": DAYS, "step": 8.64e7}
BERLIN = DAY | {"name": "at", "zone": "Europe/Berlin"}
CODE = {"name": "it's", "kind": "categorical", "levels": ["Male", "Female", "a or b"]}


def run(face: Face, module: str, call: str, *arguments: Any) -> Any:
    """What a function of one of the page's modules answers."""
    said = ", ".join(json.dumps(argument) for argument in arguments)
    return face.page.evaluate(f"import('./{module}.js').then(page => page.{call}({said}))")


def test_odds(face: Face) -> None:
    said = {
        1.0: "every row",
        0.97: "nearly every row",
        2 / 3: "2 rows in 3",
        0.027: "1 row in 37",
        0.36: "1 row in 2.8",
    }
    said |= {1e-5: "1 row in 100 thousand", 1e-40: "1 row in 10⁴⁰"}
    for probability, text in said.items():
        assert run(face, "format", "oneIn", probability, math.log(probability)) == text
    assert run(face, "format", "oneIn", 0.0, -1000.0) == "1 row in 10⁴³⁴"


def test_shares(face: Face) -> None:
    cases = [(0.0, "0%"), (1.0, "100%"), (0.0004, "<0.1%"), (0.9996, ">99.9%"), (0.1234, "12.3%"), (None, "–")]
    for share, text in cases:
        assert run(face, "format", "percent", share) == text


def test_what_is_typed(face: Face) -> None:
    def both(low: float | None, high: float | None, low_in: bool = True, high_in: bool = True) -> dict[str, Any]:
        return {"low": low, "high": high, "low_in": low_in, "high_in": high_in}

    cases: list[tuple[str, dict[str, Any], Any]] = [
        ("40", AGE, both(40, 40)),
        ("20 to 60", AGE, both(20, 60)),
        ("20..60", AGE, both(20, 60)),
        ("≥ 1,000", AGE, both(1000, None)),
        ("< -3.5", AGE, both(None, -3.5, high_in=False)),
        ("", AGE, None),
        ("is missing", AGE, {"missing": True}),
        ("about 40 sd 2", AGE, {"text": "age about 40 sd 2"}),
        ("in [1, 2]", REAL, {"text": "`my real` in [1, 2]"}),
        ("2024-03-01", DAY, both(1709251200e3, 1709251200e3)),
        ("'2024-03-01' to 2024-04-01", DAY, both(1709251200e3, 1711929600e3)),
        ("< 2024-03-01 12:30", DAY, both(None, 1709296200e3, high_in=False)),
        ("2024-02-30", DAY, {"text": "day = '2024-02-30'"}),
        ("2024-03-01T00:00:30Z to soon", DAY, {"text": "day between '2024-03-01T00:00:30Z' and 'soon'"}),
        (">= 2024-07-01", BERLIN, both(1719784800e3, None)),
        (">= 2024-01-01 00:00:30", BERLIN, both(1704063630e3, None)),
        (">= 2024-10-27 02:30", BERLIN, {"text": "at >= '2024-10-27 02:30'"}),  # twice
        (">= 2024-03-31 02:30", BERLIN, {"text": "at >= '2024-03-31 02:30'"}),  # never
        ("female", CODE, {"levels": [1]}),
        ("not female", CODE, {"levels": [0, 2]}),
        ("a or b", CODE, {"levels": [2]}),
        ("Male or Female", CODE, {"levels": [0, 1]}),
        ("zebra's", CODE, {"text": "`it's` = 'zebra''s'"}),
    ]
    for typed, column, condition in cases:
        assert run(face, "typed", "parse", typed, column) == condition, typed


def test_ticks_are_round_and_few(face: Face) -> None:
    assert run(face, "scale", "ticks", AGE) == [20, 40, 60, 80]
    assert run(face, "scale", "ticks", REAL) == [0, 0.2, 0.4, 0.6, 0.8]
    assert 2 <= len(run(face, "scale", "ticks", DAY)) <= 5


def test_an_address_is_read_back(face: Face) -> None:
    view = {
        "given": "a = 'x&y' and `b#c` > 1",
        "sort": "moved",
        "pinned": ["p&q", "="],
        "hidden": ["#"],
        "panel": "why",
    }
    hash = run(face, "state", "writeHash", view)
    assert run(face, "state", "readHash", hash) == view
    plain = {"given": "", "sort": "table", "pinned": [], "hidden": [], "panel": None}
    assert run(face, "state", "writeHash", plain) == ""


def test_levels_are_put_in_and_taken_out(face: Face) -> None:
    assert run(face, "state", "chooseLevel", None, 1) == {"levels": [1]}
    assert run(face, "state", "chooseLevel", {"levels": [1]}, 1) is None
    assert run(face, "state", "toggleLevel", {"levels": [0]}, 1, 3) == {"levels": [0, 1]}
    assert run(face, "state", "toggleLevel", {"levels": [0, 1]}, 2, 3) is None
    assert run(face, "state", "excludeLevel", None, 1, 3) == {"levels": [0, 2]}
    assert run(face, "state", "excludeLevel", {"levels": [1]}, 1, 3) == {"levels": [0, 2]}
