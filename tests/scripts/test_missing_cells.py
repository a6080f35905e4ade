"""Evidence on a cell says that it is known: wherever it is asked how probable it is that a cell is missing."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.explorer import answers
from jointforest.explorer.shown import ShownJoint
from jointforest.report.embed import embedded, wire

from .node import run

EVIDENCE = [
    "", "a >= 0.5", "a > 0.5 and x > 0", "b is not missing", "c >= 10", "c = 10", "a is missing",
    "a >= 0.5 and c is missing", "town = s", "town = s and a < 1",
]  # fmt: skip
ASK = "(new InPageSource(data.wire)).ask('posterior', {evidence: data.evidence})"


@cache
def frame() -> pd.DataFrame:
    """2,000 rows; a, b, c and town are nearly always missing together, more often where x is great."""
    rng = np.random.default_rng(0)
    n = 2_000
    x = rng.normal(size=n)
    gone = rng.random(n) < 0.6 / (1.0 + np.exp(-2.0 * x))
    a = x + rng.normal(size=n)
    table = pd.DataFrame({"x": x, "a": a, "b": a + 0.3 * rng.normal(size=n), "c": np.round(rng.gamma(2.0, 10.0, n))})
    table["town"] = rng.choice(["r", "s", "t"], n)
    for name, odd in (("a", 0.0), ("b", 0.02), ("c", 0.1), ("town", 0.1)):
        table.loc[gone ^ (rng.random(n) < odd), name] = None
    return table


@cache
def joint(kind: str) -> jf.Joint:
    if kind == "forest":
        return jf.AdversarialForest(n_estimators=3, random_state=0).fit(frame()).joint_
    if kind == "mixture":
        return jf.mix([joint("forest"), joint("hidden trees")], [0.4, 0.6])
    return jf.HiddenTreeForest(n_states=8, max_iter=5, random_state=0).fit(frame()).joint_


@cache
def shown(kind: str) -> ShownJoint:
    return ShownJoint(joint(kind))


@cache
def in_file(kind: str) -> Any:
    return wire(embedded(shown(kind)), "t", "s")


def pieces(kind: str, text: str) -> list[dict[str, Any]]:
    """Evidence as a report's page has it."""
    from jointforest.explorer.state import read_evidence, write_evidence

    schema = joint(kind).schema
    return write_evidence(schema, read_evidence(schema, {"text": text}))


@pytest.mark.parametrize("kind", ["forest", "hidden trees", "mixture"])
@pytest.mark.parametrize("text", EVIDENCE)
def test_a_report_knows_how_often_cells_are_missing(kind: str, text: str) -> None:
    here = run("in_page_source.js", ASK, {"wire": in_file(kind), "evidence": pieces(kind, text)})
    there = answers.posterior(shown(kind), {"evidence": {"text": text}})
    for one, other in zip(here["columns"], there["columns"], strict=True):
        assert one["missing"] == (None if other["missing"] is None else pytest.approx(other["missing"], abs=2e-3))
        assert one["mass"] == pytest.approx(other["mass"], abs=2e-3)
