"""Columns that are sums in some rows only: orders of a column that a rule makes missing, and columns often equal."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.infer_schema import infer_schema
from jointforest.learners.rows import read_training_rows
from jointforest.learners.rules import find_ties
from jointforest.models.ruled import translate

from ...random_cases.ruled_joints import Tally, all_rows, compare_given, random_evidence

N = 800
KINDS = ("order", "order with other missing cells", "tie", "tie with missing cells")
OF_SUMS = ("tie with a sum", "tie with a sum and missing cells", "tie with a part of a sum")


def _table(kind: str, seed: int) -> tuple[pd.DataFrame, list[str]]:
    """A table of few values, and its declared rules."""
    rng = np.random.default_rng(seed)
    side = rng.choice(["u", "v"], N)
    if kind.startswith("order"):
        total = rng.poisson(np.where(side == "u", 3, 6)).astype(float)
        is_back = rng.random(N) < np.where(side == "u", 0.3, 0.6)
        part = np.where(rng.random(N) < 0.4, total, rng.binomial(total.astype(int), 0.6))
        if kind != "order":
            total[rng.random(N) < 0.1] = np.nan
        frame = pd.DataFrame(
            {"total": total, "back": np.where(is_back, "yes", "no"), "part": np.where(is_back, part, np.nan), "s": side}
        )
        return frame, ["part <= total", "part missing iff back = 'no'"]
    if kind in OF_SUMS:
        a, b = (rng.integers(0, top, N).astype(float) for top in (24, 7))
        t = a + b
        other = t if "a sum" in kind else a
        u = np.where(rng.random(N) < np.where(side == "u", 0.9, 0.5), other, rng.integers(0, 30, N))
        frame = pd.DataFrame({"a": a, "b": b, "t": t, "u": u, "s": side})
        if "missing" in kind:
            frame.loc[rng.random(N) < 0.1, "t"] = np.nan
            frame.loc[rng.random(N) < 0.2, "u"] = np.nan
        return frame, ["t = a + b"]
    a = rng.integers(0, 25, N).astype(float)
    b = np.where(rng.random(N) < np.where(side == "u", 0.9, 0.5), a, rng.integers(0, 25, N))
    if kind != "tie":
        a[rng.random(N) < 0.1], b[rng.random(N) < 0.2] = np.nan, np.nan
    return pd.DataFrame({"a": a, "b": b, "s": side}), []


@cache
def _joint(kind: str, seed: int) -> jf.Joint:
    frame, rules = _table(kind, seed)
    learner = jf.HiddenTreeForest(
        n_states=4, max_iter=5, max_leaf_nodes=1 + seed % 2, rules=[*rules, "auto"], random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learner.fit(frame).joint_


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", (*KINDS, *OF_SUMS))
@pytest.mark.parametrize("few", [translate.FEW_PLACES, 0])
def test_all_answers(kind: str, seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All questions, beside sums over all rows of both cases; ``few`` is 0 for sums that are linked."""
    monkeypatch.setattr(translate, "FEW_PLACES", few)
    joint = _joint(kind, seed)
    assert len(joint.distribution.components) > 1
    rows = all_rows(joint)
    assert rows is not None
    rng, tally = np.random.default_rng(seed), Tally()
    compare_given(joint, rows, {}, rng, tally, f"{kind} {seed}")
    for _ in range(4):
        said = random_evidence(joint, rows, rng, int(rng.integers(1, 3)))
        compare_given(joint, rows, said, rng, tally, f"{kind} {seed}, given {said}")
    assert tally.made > 60
    assert tally.wrong == []


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS[:2])
def test_orders_hold_and_no_value_is_impossible(kind: str, seed: int) -> None:
    frame, _ = _table(kind, seed)
    joint = _joint(kind, seed)
    assert joint.probability("part < 0") < 1e-6
    assert joint.query("P(part > total)").value < 1e-7
    back = frame[frame["back"] == "yes"]
    known = joint.given(back="yes")
    assert known.mean("part") == pytest.approx(back["part"].mean(), abs=0.3)
    assert known.mean("total") == pytest.approx(back["total"].mean(), abs=0.3)
    assert joint.given(back="no").mean("total") == pytest.approx(frame["total"][frame["back"] == "no"].mean(), abs=0.3)
    drawn = joint.sample(2_000, random_state=0)
    assert not (drawn["part"] > drawn["total"]).any() and not (drawn["part"] < 0).any()
    assert ((drawn["back"] == "no") == drawn["part"].isna()).all()
    filled = joint.impute(frame.assign(total=np.nan))
    assert not (filled["part"] > filled["total"]).any() and not filled["total"].isna().any()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS[2:])
def test_columns_are_equal_as_often_as_in_the_table(kind: str, seed: int) -> None:
    frame, _ = _table(kind, seed)
    joint = _joint(kind, seed)
    drawn = joint.sample(4_000, random_state=0)
    for side in ("u", "v"):
        both = frame[frame["s"] == side].dropna()
        expected = (both["a"] == both["b"]).mean()
        assert joint.query(f"P(a = b | s = {side})").value == pytest.approx(expected, abs=0.07)
        rows = drawn[drawn["s"] == side].dropna()
        assert (rows["a"] == rows["b"]).mean() == pytest.approx(expected, abs=0.08)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", OF_SUMS)
def test_a_column_is_as_often_equal_to_a_sum_or_its_part(kind: str, seed: int) -> None:
    frame, _ = _table(kind, seed)
    joint, other = _joint(kind, seed), "t" if "a sum" in kind else "a"
    drawn = joint.sample(4_000, random_state=0)
    assert (drawn["t"] == drawn["a"] + drawn["b"]).all()
    for side in ("u", "v"):
        both = frame[frame["s"] == side].dropna()
        expected = (both["u"] == both[other]).mean()
        assert joint.query(f"P(u = {other} | s = {side})").value == pytest.approx(expected, abs=0.07)
        rows = drawn[drawn["s"] == side].dropna()
        assert (rows["u"] == rows[other]).mean() == pytest.approx(expected, abs=0.08)
    above = frame.dropna().query(f"{other} > 9")
    assert joint.query(f"P(u > 9 | {other} > 9)") == pytest.approx((above["u"] > 9).mean(), abs=0.07)
    filled = joint.impute(frame.assign(a=np.nan), method="sample", random_state=0)
    known = frame["t"].notna()
    np.testing.assert_allclose((filled["a"] + filled["b"])[known], frame["t"][known])


def test_a_saved_joint_has_both_cases(tmp_path: object) -> None:
    for kind in (*KINDS[::2], OF_SUMS[0]):
        joint = _joint(kind, 0)
        joint.save(f"{tmp_path}/cases.joint")
        again = jf.load(f"{tmp_path}/cases.joint")
        frame, _ = _table(kind, 0)
        np.testing.assert_allclose(again.log_density(frame), joint.log_density(frame))


@pytest.mark.parametrize("seed", range(8))
def test_only_columns_that_are_equal_by_more_than_chance_are_ties(seed: int) -> None:
    """Beside a count of each pair."""
    rng = np.random.default_rng(seed)
    a = np.round(rng.gamma(2.0, 30.0, N), 2)
    frame = pd.DataFrame({
        "a": a,
        "often": np.where(rng.random(N) < 0.7, a, np.round(a / 2.0, 2)),
        "always": a,
        "other": np.round(rng.gamma(2.0, 30.0, N), 2),
        "few": rng.integers(0, 3, N),
        "fewer": rng.integers(0, 3, N),
        "level": rng.choice(["x", "y"], N),
    })  # fmt: skip
    rows = read_training_rows(frame, None)
    names = rows.schema.names
    found = {frozenset((names[i], names[j])) for i, j in find_ties(rows.schema, rows.X)}
    assert found == {frozenset(("a", "often")), frozenset(("always", "often"))}
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, N), unit="D")
    dates = pd.DataFrame({"out": days, "back": days + pd.to_timedelta((rng.random(N) < 0.3) * 3, unit="D")})
    schema = infer_schema(dates)
    assert find_ties(schema, read_training_rows(dates, None).X) == [(0, 1)]


@pytest.mark.parametrize("seed", range(12))
def test_ties_are_those_of_a_count_of_all_pairs(seed: int) -> None:
    """Tables of many columns, some of few values, some with missing cells, some equal in a random share of the rows."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(60, 900))
    columns = [rng.integers(0, 10 ** rng.uniform(0.3, 3), n) + 0.0 for _ in range(8)]
    for share in (0.3, 0.55, 0.8, 1.0):
        base = columns[int(rng.integers(8))]
        columns.append(np.where(rng.random(n) < share, base, rng.integers(0, 500, n)))
    cells = np.column_stack(columns)
    cells[rng.random(cells.shape) < rng.choice([0.0, 0.2])] = np.nan
    rows = read_training_rows(pd.DataFrame(cells).rename(columns="c{}".format), None)
    expected = set()
    for a in range(cells.shape[1]):
        for b in range(a + 1, cells.shape[1]):
            both = [(x, y) for x, y in zip(cells[:, a], cells[:, b], strict=True) if x == x and y == y]
            equal = sum(x == y for x, y in both)
            chance = sum(x == z for x, _ in both for _, z in both) / max(len(both), 1) ** 2
            if 20 <= equal < len(both) and equal >= 0.5 * len(both) and chance <= 0.05:
                expected.add((f"c{a}", f"c{b}"))
    names = rows.schema.names
    assert {(names[i], names[j]) for i, j in find_ties(rows.schema, rows.X)} == expected
