"""`Monitor`: e-values without and with a change, and what carries the evidence."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.drift.monitor import Monitor
from tests.drift.tables import plans


def test_e_values_without_a_change_have_a_mean_of_at_most_one() -> None:
    last, alarms = [], 0
    for seed in range(40):
        rows = plans(700, seed)[["plan", "region", "hours"]]
        monitor = Monitor(rows[:100], random_state=seed)
        values = [monitor.update(rows[first : first + 20]) for first in range(100, 700, 20)]
        assert values == sorted(values)
        last.append(values[-1])
        alarms += monitor.alarm is not None
    assert np.mean(last) <= 1.0
    assert alarms <= 6  # 2 expected at most


def test_ranks_are_uniform_though_the_old_table_is_small() -> None:
    total, narrow = np.zeros(8), []
    for seed in range(40):
        rows = plans(330, seed)
        monitor = Monitor(rows[["plan", "hours"]][:30], random_state=seed)
        monitor.update(rows[30:])
        for ranks, ends in zip(monitor._ranks, monitor._ends, strict=True):
            share = ranks.sum(0) / ranks.sum()
            total += np.add.reduceat(share, np.searchsorted(ends, np.arange(8) / 8))
            narrow += share[[0, -1]].tolist() if len(share) == 10 else []
    share = total / total.sum()
    assert share == pytest.approx(np.full(8, 0.125), abs=0.01)
    assert np.mean(narrow) == pytest.approx(1 / 64, abs=0.002)


@pytest.mark.parametrize("kind", ["marginal", "pair", "level", "missing"])
def test_a_change_raises_an_alarm_that_names_its_columns(kind: str) -> None:
    random = np.random.default_rng(0)
    monitor = jf.Monitor(plans(1_000, 0), random_state=0)
    for k in range(30):
        batch = plans(100, 100 + k)
        if k >= 10 and kind == "marginal":
            batch["hours"] += 3
        if k >= 10 and kind == "pair":
            batch["size"] = random.permutation(batch["size"])
        if k >= 10 and kind == "level":
            batch.loc[random.random(100) < 0.3, "region"] = "moon"
        if k >= 10 and kind == "missing":
            batch["hours"] = batch["hours"].mask(random.random(100) < 0.2)
        monitor.update(batch)
        assert k >= 10 or monitor.alarm is None
    assert monitor.alarm is not None and monitor.alarm <= 25
    assert monitor.since is not None and 6 <= monitor.since <= 14
    named = {"pair": ("hours", "size"), "level": ("region",)}.get(kind, ("hours",))
    assert set(named) <= set(next(iter(monitor.evidence)))
    assert sum(monitor.evidence.values()) == pytest.approx(1.0)
    assert f"alarm in batch {monitor.alarm}" in repr(monitor)


@pytest.mark.parametrize("seed", range(5))
def test_a_new_level_in_few_rows_raises_an_alarm(seed: int) -> None:
    """It is of one side of all known levels, where the narrow bins of ranks are."""
    monitor = jf.Monitor(plans(400, seed)[["plan", "hours"]], random_state=seed)
    for k in range(20):
        batch = plans(60, 100 * seed + k)[["plan", "hours"]]
        batch.loc[:5, "plan"] = "trial" if k >= 10 else batch.loc[:5, "plan"]
        monitor.update(batch)
    assert monitor.alarm is not None and 10 < monitor.alarm <= 18
    assert next(iter(monitor.evidence)) == ("plan",)


def test_columns_that_cannot_be_read_are_not_monitored() -> None:
    frame = plans(60, 0)
    monitor = jf.Monitor(frame.assign(parts=[[1, 2]] * 60), random_state=0)
    assert monitor.left_out == {"parts": "holds values of a type that is not supported"}
    assert monitor.update(frame) == jf.Monitor(frame, random_state=0).update(frame)
    with pytest.raises(ValueError, match="no column can be monitored: 'id' names the rows"):
        jf.Monitor(pd.DataFrame({"id": [f"c{k:03}" for k in range(200)]}))


def test_odd_tables_and_batches() -> None:
    frame = plans(150, 0)
    frame["id"], frame["empty"] = [f"c{k:03}" for k in range(150)], np.nan
    monitor = jf.Monitor(frame, random_state=0)
    assert set(monitor.left_out) == {"id", "empty"}
    assert monitor.since is None and monitor.e_value == pytest.approx(0.1)
    monitor.update(frame[:0])
    with pytest.warns(UserWarning, match="batch 2 has no column 'day', 'region', 'size': all their cells count as"):
        monitor.update(frame[["plan", "hours"]].assign(more=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitor.update(frame[["plan", "hours"]])  # a warning once for each column
    with pytest.warns(UserWarning, match="batch 4 has no column 'plan'"):
        monitor.update(frame[["hours"]])
    assert monitor.e_value > 0.1  # the other columns are missing
    with pytest.raises(ValueError, match="hours"):
        monitor.update(pd.DataFrame({"hours": ["many"]}))
    with pytest.raises(ValueError, match="at least 30 rows, got 20"):
        jf.Monitor(frame[:20])
    for level in (0, 1):
        with pytest.raises(ValueError, match="level must be more than 0 and less than 1"):
            jf.Monitor(frame, level=level)


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_columns_with_ranges_are_not_monitored(kind: str) -> None:
    x = np.random.default_rng(0).normal(size=(200, 3))
    cells = x.astype(object)
    cells[:9, 1] = [jf.between(0, 1)] * 9
    convert = np.asarray if kind == "array" else lambda rows: pd.DataFrame(rows, columns=["x0", "x1", "x2"])
    monitor, plain = jf.Monitor(convert(cells), random_state=0), jf.Monitor(x[:, [0, 2]], random_state=0)
    assert monitor.left_out == {"x1": "has cells that are ranges"}
    assert monitor.update(convert(cells[:50])) == plain.update(x[:50, [0, 2]])
    one = x.astype(object)
    one[3, 2] = jf.between(0, 1)
    with pytest.raises(ValueError, match="column 'x2' has 1 cell that is a range"):
        monitor.update(convert(one))


def test_the_same_seed_gives_the_same_evidence() -> None:
    found = []
    for _ in range(2):
        monitor = jf.Monitor(plans(200, 0)[["hours"]], random_state=1)
        found.append([monitor.update(plans(50, k)[["hours"]] + 2) for k in range(1, 4)])
    assert found[0] == found[1]


def test_durations_are_durations_in_the_stream_too() -> None:
    random = np.random.default_rng(0)
    old = pd.DataFrame(
        {"wait": pd.to_timedelta(random.integers(1, 500, 200), unit="min"), "x": random.normal(size=200)}
    )
    batches = old[:40], old[:40].assign(wait=old["wait"][:40].astype(str))
    first, second = (jf.Monitor(old, random_state=0).update(batch) for batch in batches)
    assert first == second
    with pytest.raises(ValueError, match=r"'wait': expected durations, got numbers; the unit.*to_timedelta"):
        jf.Monitor(old).update(old[:40].assign(wait=old["wait"][:40].dt.total_seconds() / 60.0))
    with pytest.raises(ValueError, match=r"'x': expected numbers, got durations.*total_seconds"):
        jf.Monitor(old).update(old[:40].assign(x=old["wait"][:40]))


def test_a_column_of_lists_can_be_dropped_as_the_hint_says() -> None:
    old = plans(200, 0)
    monitor = jf.Monitor(old, random_state=0)
    batch = old[:50].assign(hours=[[1, 2]] * 50)
    with pytest.raises(TypeError, match=r"'hours'.*list.*to leave the column out, drop it"):
        monitor.update(batch)
    with pytest.warns(UserWarning, match="has no column 'hours'"):
        monitor.update(batch.drop(columns="hours"))
