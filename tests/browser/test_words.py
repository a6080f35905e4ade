"""The page's own words: numbers as people read them, conditions as people type them, evidence as an address."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd

import jointforest as jf
from jointforest.cards import number_writer, percent
from jointforest.data.reading import number_text
from jointforest.data.written_forms import WrittenForm

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


def test_python_writes_shares_and_numbers_as_the_page_does(face: Face) -> None:
    random = np.random.default_rng(0)
    shares = [0.0, 1.0, 0.0005, 0.9995, 0.1235, 0.00051, *random.random(200), *10.0 ** random.uniform(-8, 0, 50)]
    said = face.page.evaluate("shares => import('./format.js').then(page => shares.map(page.percent))", shares)
    assert said == [percent(share) for share in shares]
    for low, high, step in [
        (16.5, 90.5, 1), (0.0, 0.8, 0), (-3.0, 3.0, 0.01), (0.0, 99999.5, 1), (1987.0, 2011.0, 1), (-4e5, 1e6, 0),
        (0.0, 3e9, 1), (0.0, 2e-9, 0), (1.0, 1.0005, 0), (-20.0, 1400.0, 0.5),
    ]:  # fmt: skip
        column = {"kind": "integer", "edges": [low, high], "step": step or None}
        values = [low, high, 0.5 * (low + high), 2.5, 1.005, *random.uniform(low, high, 40)]
        values = [round(x) if step == 1 else x for x in values]
        for kind in ("value", "mean"):
            said = face.page.evaluate(
                "([column, values, kind]) => import('./format.js').then(page => values.map(page.writer(column)[kind]))",
                [column, values, kind],
            )
            write = number_writer(low, high, step, of_means=kind == "mean")
            assert said == list(map(write, values)), (low, high, step, kind)


def test_python_writes_dates_as_the_page_does(face: Face) -> None:
    days = pd.date_range("2023-12-30", periods=90, tz="Europe/Berlin")
    hours = pd.date_range("2024-03-30 21:07:11", periods=90, freq="37min", tz="Europe/Berlin")
    seconds = pd.date_range("2024-03-01 23:59:02", periods=90, freq="17s")
    for times, step in ((days.tz_localize(None), 864e5), (hours, None), (seconds, 1e3)):
        schema = jf.JointTree(random_state=0).fit(pd.DataFrame({"at": times, "x": range(90)})).joint_.schema
        column = schema.columns[0]
        low, high = (column.to_number(times[k]) for k in (0, -1))
        shown = [at.timestamp() * 1e3 for at in (times if times.tz else times.tz_localize("UTC"))]
        page = {"kind": "datetime", "edges": [shown[0], shown[-1]], "step": step, "zone": str(times.tz or "UTC")}
        said = face.page.evaluate(
            "([column, values]) => import('./format.js').then(page => values.map(page.writer(column).value))",
            [page, shown],
        )
        assert said == [number_text(column, column.to_number(at), low, high) for at in times]
        between = np.linspace(low, high, 32)[1:-1].tolist()  # means lie beside the grid
        means = face.page.evaluate(
            "([column, values]) => import('./format.js').then(page => values.map(page.writer(column).mean))",
            [page, [shown[0] + (x - low) * 1e3 for x in between]],
        )
        assert step != 864e5 or means == [number_text(column, x, low, high) for x in between]


def test_months_are_written_as_in_the_table(face: Face) -> None:
    for pattern in ("%m/%Y", "%Y-%m", "%b %Y", "%b-%y", "%B %Y"):
        form = WrittenForm("month", "str", pattern=pattern, unit="months")
        for month in (-840, -1, 0, 11, 360, 599):
            assert run(face, "format", "monthText", month, pattern) == form.write(float(month))


def test_ticks_are_round_and_few(face: Face) -> None:
    assert run(face, "scale", "ticks", AGE) == [20, 40, 60, 80]
    assert run(face, "scale", "ticks", REAL) == [0, 0.2, 0.4, 0.6, 0.8]
    assert 2 <= len(run(face, "scale", "ticks", DAY)) <= 5


def test_an_address_is_read_back(face: Face) -> None:
    view = {
        "given": "a = 'x&y' and `b#c` > 1",
        "sort": "moved",
        "scale": "most",
        "axes": [{"name": "a:b", "low": -1.5e-9, "high": 1e21}, {"name": "", "log": True}, {"name": "5:6:x"}],
        "pinned": ["p&q", "="],
        "hidden": ["#"],
        "panel": "why",
        "a": "c = '#'",
    }
    hash = run(face, "state", "writeHash", view)
    assert run(face, "state", "readHash", hash) == view
    plain = {
        "given": "",
        "sort": "table",
        "scale": "full",
        "axes": [],
        "pinned": [],
        "hidden": [],
        "panel": None,
        "a": "",
    }
    assert run(face, "state", "writeHash", plain) == ""
    wrong = "#axis=age&axis=30:20:age&axis=low:high:age&axis=linear:age"
    assert run(face, "state", "readHash", wrong) == plain


def test_levels_are_put_in_and_taken_out(face: Face) -> None:
    assert run(face, "state", "chooseLevel", None, 1) == {"levels": [1]}
    assert run(face, "state", "chooseLevel", {"levels": [1]}, 1) is None
    assert run(face, "state", "toggleLevel", {"levels": [0]}, 1, 3) == {"levels": [0, 1]}
    assert run(face, "state", "toggleLevel", {"levels": [0, 1]}, 2, 3) is None
    assert run(face, "state", "excludeLevel", None, 1, 3) == {"levels": [0, 2]}
    assert run(face, "state", "excludeLevel", {"levels": [1]}, 1, 3) == {"levels": [0, 2]}
