"""Accuracy of drawn histories against its definition, cell by cell; two-sample tests of good and bad draws."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import cache

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.evaluation.histories import accuracy, summaries, two_rows


@cache
def visits(seed: int) -> pd.DataFrame:
    made = jf.datasets.make_visits(300, random_state=seed)
    rng = np.random.default_rng(seed)
    return made.assign(weight=made["weight"].mask(rng.random(len(made)) < 0.1))


@cache
def joint() -> jf.HistoryJoint:
    return jf.fit(visits(0), group="patient", order="date", random_state=0)


def cells(frame: pd.DataFrame):
    return joint()._cells(joint()._read(frame, True))


def bin_of(value: object, known: list) -> object:
    """Bin of a value: how many deciles of the known numbers are below it; of a level itself, if it is frequent."""
    if pd.isna(value):
        return "missing"
    if isinstance(value, str):
        frequent = [level for level, _ in Counter(known).most_common(10)]
        return value if value in frequent else "other"
    deciles = set(np.quantile(known, np.arange(1, 10) / 10, method="closest_observation"))
    return sum(decile < value for decile in deciles)


def naive(table: pd.DataFrame, other: pd.DataFrame, seed: int) -> dict[str, float]:
    frames = []
    for frame in (table, other):
        gap = frame.groupby("patient")["date"].diff().dt.total_seconds()
        frames.append(frame.drop(columns="date").assign(gap=gap))
    names = [name for name in frames[0] if name != "patient"]
    known = {name: frames[0][name].dropna().tolist() for name in names}
    drawn = []
    for frame in frames:
        now, after, distinct = [], [], []
        points = np.random.default_rng(seed).random(frame["patient"].nunique())
        for point, (_, rows) in zip(points, frame.groupby("patient"), strict=True):
            binned = [tuple(bin_of(x, known[name]) for name, x in zip(names, row, strict=True))
                      for row in rows[names].itertuples(index=False)]  # fmt: skip
            place = int(point * (len(binned) - 1))
            now.append((*binned[place], len(binned)))
            after.append(binned[place + 1] if len(binned) > 1 else None)
            distinct.append(tuple(len({row[j] for row in binned}) for j in range(len(names))))
        drawn.append((now, after, distinct))

    def alike(of) -> float:
        one, two = (Counter(map(of, range(len(now)), now, after, distinct)) for now, after, distinct in drawn)
        n, m = one.total(), two.total()
        return 1.0 - sum(abs(one[key] / n - two[key] / m) for key in one | two) / 2.0

    d = len(names)
    sets = [
        [alike(lambda i, now, *_, c=c: tuple(now[j] for j in c)) for c in itertools.combinations(range(d + 1), size)]
        for size in (1, 2, 3)
    ]
    follow = [alike(lambda i, now, after, _, j=j: (now[j], after and after[j])) for j in range(d)]
    distinct = [alike(lambda i, now, after, count, j=j: count[j]) for j in range(d)]
    figures = {"columns": sets[0], "pairs": sets[1] + follow, "next_row": follow, "triples": sets[2]}
    return {name: float(np.mean(of)) for name, of in (figures | {"distinct": distinct}).items()}


@pytest.mark.parametrize("seed", [0, 3])
def test_accuracy_is_what_its_definition_says(seed: int) -> None:
    other = visits(1).assign(status=visits(1)["status"].where(visits(1)["patient"] > 30, "well"))
    found = accuracy(cells(visits(0)), cells(other), seed)
    for name, expected in naive(visits(0), other, seed).items():
        assert getattr(found, name) == pytest.approx(expected, abs=1e-9), name


def test_a_table_is_like_itself() -> None:
    same = accuracy(cells(visits(0)), cells(visits(0)), 0)
    assert (same.columns, same.pairs, same.next_row, same.triples, same.distinct) == (1.0,) * 5


def test_summaries_are_those_of_each_subject() -> None:
    found = summaries(cells(visits(0)))
    column = {name: found.X[:, j] for j, name in enumerate(found.names)}
    groups = visits(0).groupby("patient")
    np.testing.assert_array_equal(column["number of rows"], groups.size())
    np.testing.assert_allclose(column["mean weight"], groups["weight"].mean(), rtol=1e-9)
    np.testing.assert_allclose(column["spread weight"], groups["weight"].std(ddof=0), atol=1e-6)
    np.testing.assert_allclose(column["least pressure"], groups["pressure"].min())
    np.testing.assert_array_equal(column["distinct status"], groups["status"].nunique())
    changes = groups["status"].apply(lambda x: int((x.shift() != x).iloc[1:].sum()))
    np.testing.assert_array_equal(column["changes status"], changes)


def test_two_rows_follow_each_other() -> None:
    found = two_rows(cells(visits(0)), 0)
    column = {name: found.X[:, j] for j, name in enumerate(found.names)}
    a, b = column["pressure"], column["next pressure"]
    np.testing.assert_array_equal(column["change of pressure"], b - a)
    np.testing.assert_array_equal(column["same pressure"], a == b)
    pairs = visits(0).assign(next=visits(0).groupby("patient")["pressure"].shift(-1)).dropna(subset="next")
    assert set(zip(a, b, strict=True)) <= set(zip(pairs["pressure"].astype(float), pairs["next"], strict=True))


def test_fidelity_tells_good_draws_from_bad_ones() -> None:
    good = joint().fidelity(visits(0), visits(1), random_state=0)
    text = str(good)
    assert "held-out" in text and "two rows" in text and good.n_subjects == 300 and good.against == "held-out"
    assert good.told_apart_rows.score > 0.6 and good.drawn.columns > 0.9
    shuffled = visits(0).assign(status=np.random.default_rng(0).permutation(visits(0)["status"]))
    bad = jf.fit(shuffled, group="patient", order="date", random_state=0).fidelity(visits(0), random_state=0)
    assert bad.drawn.next_row < good.drawn.next_row - 0.02 and bad.held_out is None
    with pytest.raises(TypeError, match=r"joint\.fidelity"):
        jf.fidelity(joint(), visits(0))
