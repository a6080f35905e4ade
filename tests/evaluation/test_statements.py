"""Statements beside counts: an oracle by counting, planted mistakes, and true joints, which are not accused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import jointforest as jf
from jointforest.data.frames import encode
from jointforest.data.schema import kernel_columns, snap
from jointforest.evaluation import result
from jointforest.evaluation.result import CLOSE, verdict
from jointforest.evaluation.statements import (
    LEVEL,
    AskedStatement,
    Statement,
    Statements,
    asked_statements,
    share_interval,
    statements,
)
from jointforest.report.summary import judged


def table(n: int, seed: int, missing: bool) -> pd.DataFrame:
    """Levels, heavy tails, a point mass, a grid, truth values and dates that depend on each other."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 4, n)
    frame = pd.DataFrame(
        {
            "kind": np.array(list("abcd"))[kind],
            "amount": np.exp(rng.normal(0.5 * kind, 1.5, n)),
            "zeros": np.where(rng.random(n) < 0.3, 0.0, rng.gamma(0.5, 3.0, n)),
            "count": (2 + kind + rng.poisson(2, n)).astype(float),
            "flag": rng.random(n) < 0.2 + 0.2 * kind,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
        }
    )
    if missing:
        frame.loc[rng.random(n) < 0.15, "amount"] = np.nan
        frame.loc[rng.random(n) < np.where(kind > 1, 0.5, 0.1), "count"] = np.nan
        frame.loc[rng.random(n) < 0.1, "kind"] = None
    return frame


def joints(frame: pd.DataFrame) -> dict[str, jf.Joint]:
    """One of each kind."""
    return {
        "forest": jf.AdversarialForest(n_estimators=5, random_state=0).fit(frame).joint_,
        "hidden tree": jf.HiddenTreeForest(n_states=8, max_iter=3, random_state=0).fit(frame).joint_,
        "joint tree": jf.JointTree(min_samples_leaf=0.05, random_state=0).fit(frame).joint_,
    }


def rows_of(joint: jf.Joint, frame: pd.DataFrame) -> np.ndarray:
    return snap(kernel_columns(joint.schema), encode(joint.schema, frame)[0])


# ---- The oracle: a statement's text is read, and rows are counted one by one.

_EVENT = re.compile(r"(?:P|mean)\((.*?)(?: given (.*))?\)$")


def _met(text: str, row: dict[str, Any]) -> bool | None:
    """Whether a row meets a condition such as ``2 <= count <= 5``; None where the cell is missing."""
    words = text.replace(" 00:00:00'", "").replace("'", "").split()
    place = next(k for k, word in enumerate(words) if word in row)
    cell = row[words[place]]
    if cell is None or cell != cell:
        return None

    def value(word: str) -> Any:
        if isinstance(cell, pd.Timestamp):
            return pd.Timestamp(word)
        return {"true": True, "false": False}.get(word, word) if isinstance(cell, bool | str) else float(word)

    compare = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "=": lambda a, b: a == b}
    left = place == 0 or compare[words[1]](value(words[0]), cell)
    right = place == len(words) - 1 or compare[words[place + 1]](cell, value(words[-1]))
    return bool(left and right)


def counted(text: str, rows: list[dict[str, Any]]) -> tuple[float, int]:
    """The share or mean that the text is about, and the number of rows that have all of its cells."""
    what, given = _EVENT.match(text).groups()  # type: ignore[union-attr]
    fit = [row for row in rows if given is None or _met(given, row)]
    if text.startswith("mean"):
        cells = [row[what] for row in fit if row[what] == row[what]]
        return sum(cells) / len(cells), len(cells)
    found = [met for row in fit if (met := _met(what, row)) is not None]
    return sum(found) / len(found), len(found)


def python_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    plain = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{k: (np.nan if v is None and k in ("amount", "count") else v) for k, v in row.items()} for row in plain]


@pytest.mark.parametrize("missing", [False, True])
def test_rows_are_those_that_counting_finds(missing: bool) -> None:
    frame = table(300, 0, missing)
    joint = joints(frame)["joint tree"]
    found = asked_statements(joint.distribution, rows_of(joint, frame))
    rows = python_rows(frame)
    assert len(found) > 150 and any(" given " in one.text for one in found)
    for one in found:
        if "amount <" in one.text or "zeros <" in one.text or "amount)" in one.text:
            continue  # numbers that the text rounds
        share, n = counted(one.text, rows)
        assert (n, pytest.approx(share, rel=1e-9)) == (one.n_rows, one.rows), one.text


def test_answers_are_those_of_the_joint() -> None:
    for name, joint in joints(table(400, 1, False)).items():
        for one in asked_statements(joint.distribution, rows_of(joint, table(400, 1, False))):
            what, given = _EVENT.match(one.text).groups()  # type: ignore[union-attr]
            if "amount" in one.text or "zeros" in one.text:
                continue
            answer = joint.given(given).mean(what) if one.text[0] == "m" else joint.probability(what, given)
            assert one.joint == pytest.approx(answer, rel=1e-6, abs=1e-9), (name, one.text)


def test_answers_given_that_cells_are_known_are_those_of_draws() -> None:
    """Cells are missing more often for some levels: the answer is about the rows that have them."""
    frame = table(1_000, 2, True)
    for name, joint in joints(frame).items():
        drawn = joint.sample(20_000, 3, missing=True)
        of_table = {one.text: one for one in asked_statements(joint.distribution, rows_of(joint, drawn))}
        for one in of_table.values():
            if one.beyond is None:
                error = np.sqrt(max(one.joint * (1.0 - one.joint), 1e-3) / one.n_rows)
                assert abs(one.joint - one.rows) < 5.0 * error, (name, one.text, one.joint, one.rows)


# ---- The test: what chance explains, and what it does not.


def test_intervals_are_those_of_clopper_and_pearson() -> None:
    for k, n in ((0, 20), (3, 20), (20, 20), (412, 900)):
        exact = binomtest(k, n).proportion_ci(0.999, "exact")
        assert share_interval(k, n, 0.001) == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_a_mean_of_heavy_tails_is_not_judged_as_a_normal_one() -> None:
    light = AskedStatement("mean(x)", 1.0, 2.0, 100, sd=1.0, beyond=lambda apart: 0.0)
    heavy = light._replace(beyond=lambda apart: 1e-4)
    assert light.off(1e-4) == pytest.approx(0.3829249, abs=1e-6)  # P(|Z| < 1/2)
    assert heavy.off(1e-4) == 0.0


def test_true_joints_are_not_accused() -> None:
    accused = n = 0
    for joint in joints(table(800, 4, True)).values():
        for seed in range(25):
            found = statements(joint.distribution, rows_of(joint, joint.sample(300, seed, missing=True)), "draws")
            assert found.n > 200
            accused, n = accused + bool(found.wrong), n + 1
    assert accused <= n * LEVEL + 3


@pytest.mark.parametrize("learner", ["forest", "hidden tree", "joint tree"])
@pytest.mark.parametrize(("a", "b"), [("kind", "flag"), ("kind", "count"), ("count", "amount")])
def test_a_planted_mistake_is_named(learner: str, a: str, b: str) -> None:
    """The joint is learned from a table in which two columns do not depend on each other, as they do in the rows."""
    rng = np.random.default_rng(5)
    rows = table(1_500, 5, False)
    for name in ("count", "kind", "flag", "amount"):
        rows[name] = rng.permutation(rows[name])
    rows.loc[rows[a].argsort(kind="stable").to_numpy(), b] = np.sort(rows[b].to_numpy())
    wrong = rows.assign(**{b: rng.permutation(rows[b])})
    joint = joints(wrong)[learner]
    found = statements(joint.distribution, rows_of(joint, rows), "rows")
    assert a in found.wrong[0].text and b in found.wrong[0].text
    assert found.off > 0.2
    assert statements(joint.distribution, rows_of(joint, wrong), "rows").off < 0.1


def test_a_broken_relation_is_named_and_judged_on_its_line() -> None:
    rng = np.random.default_rng(6)
    time = rng.integers(0, 1440, 4_000)
    flights = pd.DataFrame(
        {
            "dep_time": time // 60 * 100 + time % 60,
            "minute": time % 60,
            "delay": np.round(rng.normal(5.0, 20.0, len(time))),
        }
    )
    joint = jf.fit(flights, budget="fast", rules="off", random_state=0)
    found = joint.fitted_by.statements  # type: ignore[union-attr]
    assert found is not None
    rule = next(one for one in found.wrong if one.is_rule)
    assert rule.text == "P(dep_time -> minute holds)"
    drawn = joint.sample(20_000, 0)
    drawn = drawn[drawn["dep_time"].isin(flights["dep_time"])]  # the rows say nothing of other times
    holds = float((drawn["dep_time"] % 100 == drawn["minute"]).mean())
    assert rule.rows == 1.0 and rule.joint < 0.6 and abs(rule.joint - holds) < 0.05
    assert found.wrong[0] is rule and str(rule) in str(joint.fitted_by)
    fidelity = jf.fidelity(joint, flights, only=["told_apart", "statements"], random_state=0)
    lines = [line for line in str(fidelity).splitlines() if str(rule) in line]
    assert len(lines) == 1 and "; poor: do not use" in lines[0] and str(fidelity).count("poor") == 1
    assert jf.fidelity(joint, flights, only=["statements"]).headline.startswith(f"{found.n} statements")
    assert joint.info()["checked"] == found.in_words == joint.schema.checked


def test_rules_of_each_kind_are_asked_about() -> None:
    rng = np.random.default_rng(7)
    n = 1_500
    a, b = rng.integers(0, 300, n), rng.integers(0, 300, n)
    x = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "a": a, "b": b, "total": a + b, "start": a / 7, "end": a / 7 + rng.exponential(20.0, n),
            "x": np.array(list("abc"))[x], "y": np.array(list("pqr"))[(x + rng.integers(0, 2, n)) % 3],
            "code": a // 3, "name": np.char.add("n", (a // 3).astype(str)),
        }
    )  # fmt: skip
    joint = jf.HiddenTreeForest(n_states=8, max_iter=3, rules="off", random_state=0).fit(frame).joint_
    kinds = {rule.kind for rule in joint.rules}
    assert kinds >= {"equation", "function", "order", "combinations"}
    found = {
        one.text: one for one in asked_statements(joint.distribution, rows_of(joint, frame)) if "holds" in one.text
    }
    assert {rule.kind for rule in joint.rules if any(text.startswith(f"P({rule} ") for text in found)} >= kinds - {
        "missing"
    }
    drawn = joint.sample(20_000, 0)
    for one in found.values():
        assert one.rows == 1.0 and 0.0 <= one.joint <= 1.0
    order = next(one for text, one in found.items() if "start < end" in text or "start <= end" in text)
    assert order.joint == pytest.approx(float((drawn["start"] <= drawn["end"]).mean()), abs=0.05)
    total = next(one for text, one in found.items() if "=" in text and "total" in text)
    assert total.joint == pytest.approx(float((drawn["a"] + drawn["b"] == drawn["total"]).mean()), abs=0.05)
    pair = next(one for text, one in found.items() if "combinations(x, y)" in text)
    seen = set(zip(frame["x"], frame["y"], strict=True))
    of_draws = np.mean([one in seen for one in zip(drawn["x"], drawn["y"], strict=True)])
    assert pair.joint == pytest.approx(float(of_draws), abs=0.05)
    with_rules = jf.HiddenTreeForest(n_states=8, max_iter=3, random_state=0).fit(frame).joint_
    texts = [one.text for one in asked_statements(with_rules.distribution, rows_of(with_rules, frame))]
    enforced = [str(rule) for rule in with_rules.rules if rule.is_enforced]
    assert enforced and not any(f"P({rule} holds" in text for rule in enforced for text in texts)


def test_held_out_rows_are_counted_where_there_are_any() -> None:
    frame, new = table(400, 8, True), table(200, 9, True)
    joint = jf.fit(frame, budget="fast", holdout=new, random_state=0)
    assert joint.fitted_by.statements.of == "the rows of holdout"  # type: ignore[union-attr]
    assert jf.fidelity(joint, frame, only=["statements"]).statements.of == "the table"  # type: ignore[union-attr]
    assert jf.fidelity(joint, frame, new, only=["statements"]).statements.of == "held-out rows"  # type: ignore[union-attr]
    assert jf.fidelity(frame, frame, only=["statements"]).statements is None


def test_files_keep_it_and_other_joints_do_not(tmp_path: Any) -> None:
    joint = jf.fit(table(200, 10, False), budget="fast", random_state=0)
    joint.save(tmp_path / "a.joint")
    assert jf.load(tmp_path / "a.joint").info()["checked"] == joint.info()["checked"] != ""
    assert joint.condition(kind="a").info()["checked"] == ""
    assert jf.mix([joint, joint]).info()["checked"] == ""


def test_the_verdict_of_the_worst_statement_is_on_its_line_alone() -> None:
    words = ("very good", "good", "fair", "poor")
    assert tuple(verdict(1.0 - off, CLOSE).split(":")[0] for off in (0.0, 0.04, 0.1, 0.3)) == words
    frame = table(400, 8, True)
    found = jf.fidelity(jf.JointTree(random_state=0).fit(frame).joint_, frame, random_state=0)
    wrong = Statement("P(x)", 0.2, 0.9, 400, 0.7, ("x",), is_rule=True)
    broken = replace(found, statements=Statements(1, "rows", (wrong,)))
    before, after = (result.headlines(one) for one in (found, broken))
    assert before[:-1] == after[:-1] and "; poor" in after[-1]
    rows = judged(broken)
    assert rows[:-1] == judged(found)[:-1] and rows[-1]["verdict"].startswith("poor")
    assert rows[-1]["value"] == "difference of the worst: 0.700"
    assert Statements(3, "rows", ()).in_words == "3 statements beside counts of rows: none is off by more than chance"
    assert Statements(3, "rows", ()).off == 0.0


def test_tables_with_next_to_nothing_are_checked() -> None:
    for frame in (
        table(5, 11, False),
        table(100, 11, False)[["amount"]],
        pd.DataFrame({"x": [1.0] * 50, "y": ["a"] * 50}),
    ):
        joint = jf.fit(frame, budget="fast", random_state=0)
        assert joint.fitted_by.statements.wrong == ()  # type: ignore[union-attr]


def test_orders_beside_sums_hold_as_often_as_in_draws() -> None:
    rng = np.random.default_rng(0)
    net, tax = rng.integers(10, 60, 600), rng.integers(1, 20, 600)
    paid = np.where(rng.random(600) < 0.5, net + tax, rng.integers(0, net + tax))
    frame = pd.DataFrame({"net": net, "tax": tax, "gross": net + tax, "paid": paid})
    learner = jf.HiddenTreeForest(n_states=4, max_iter=2, rules=["gross = net + tax", "auto"], random_state=0)
    joint = learner.fit(frame).joint_
    (rule,) = [one for one in joint.rules if not one.is_enforced and str(one) == "paid <= gross"]
    (asked,) = [one for one in asked_statements(joint.distribution, rows_of(joint, frame)) if str(rule) in one.text]
    assert asked.text == "P(paid <= gross holds)" and asked.rows == 1.0
    each = [joint.given(gross=int(x)).probability(f"paid <= {x}") for x in frame["gross"].iloc[:100]]
    assert asked.joint == pytest.approx(np.mean(each), abs=0.03)
    drawn = joint.sample(5_000, random_state=0)
    assert asked.joint == pytest.approx((drawn["paid"] <= drawn["gross"]).mean(), abs=0.04)
