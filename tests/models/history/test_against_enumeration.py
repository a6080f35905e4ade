"""Answers about histories against sums over every history of a small model."""

from __future__ import annotations

import itertools
import math
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.api.history_joint import HistoryJoint
from jointforest.learners.history import history_forest, learn
from jointforest.learners.history.constants import FIXED
from jointforest.models.history.contexts import (
    EXCESS,
    EXPECTED,
    FROM_EXPECTED,
    FROM_USUAL,
    LAST_EXCESS,
    OFFSET_USUAL,
)
from tests.oracle import histories as oracle
from tests.oracle.scale import base_density

LEVELS, COLUMNS = ("x", "y"), ("level", "number")


def table(seed: int, n: int = 2000) -> pd.DataFrame:
    """Subjects of 1 to 3 rows: a constant column, a sticky level, and a number from 0 to 2 that may be missing.

    For an odd seed the number is often twice the level.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        kind = rng.integers(2)
        level, number = int(rng.random() < 0.3 + 0.4 * kind), int(rng.integers(3))
        for _ in range(rng.choice([1, 2, 3], p=(0.2, 0.3, 0.5) if kind else (0.3, 0.4, 0.3))):
            rows.append((i, "uv"[kind], LEVELS[level], np.nan if rng.random() < 0.15 else float(number)))
            level = level if rng.random() < 0.8 else 1 - level
            number = (number + int(rng.integers(2)) + level) % 3 if rng.random() < 0.6 else number
            number = 2 * level if seed % 2 and rng.random() < 0.5 else number
    return pd.DataFrame(rows, columns=["id", "kind", "level", "number"])


@cache
def learned(seed: int) -> tuple[HistoryJoint, list[oracle.History]]:
    """A joint and all its histories; for an odd seed with an expectation tree, and many splits on what it tells."""
    expected, many = bool(seed % 2), replace(FIXED, value_gain=0.5, gain_a_type=0.0, ratio_gain=0.5)
    with ExitStack() as stack:
        stack.enter_context(patch.object(learn, "_judge_expectations", lambda of, *_: of.expectations.root.max()))
        if expected:
            stack.enter_context(patch.object(learn, "OWN", ()))
            stack.enter_context(patch.object(learn, "OWN_NUMBER", ()))
            stack.enter_context(patch.object(history_forest, "smoothed", lambda *_: many))
        else:
            stack.enter_context(patch.object(learn, "_judge_expectations", lambda *_: 0.0))
        joint = jf.HistoryForest(smoothing=0, random_state=seed).fit(table(seed), group="id").joint_
    joint = HistoryJoint(replace(joint.model, line_share=np.zeros_like(joint.model.line_share)))  # means of the joint
    columns, trees = joint.model.columns, joint.model.conditionals
    assert (columns.expectations.root.max() >= 0) == expected == (OFFSET_USUAL in trees.tree_class)
    assert not expected or {EXPECTED, FROM_EXPECTED, EXCESS, LAST_EXCESS, FROM_USUAL} <= set(
        trees.kind[trees.child >= 0]
    )
    assert [v.coding.column.name for v in columns.head] == ["kind", "number of rows"]
    assert joint.model.n_trees > 8 and joint.model.n_leaves > 15 and not columns.changes
    assert not any(v.coding.repeat.any() for v in columns.rows)
    # of cells that are never missing, the code of missing cells has hardly any probability
    level = place(joint, "level")
    every = oracle.all_histories(joint.model)
    return joint, [one for one in every if 0 not in one.head and all(row[level] > 0 for row in one.rows)]


def place(joint: HistoryJoint, name: str) -> int:
    """Number of a column among those of a row, as the model draws them."""
    return [v.coding.column.name for v in joint.model.columns.rows].index(name)


def frame_of(joint: HistoryJoint, head: tuple, rows: tuple, subject: Any = 0) -> pd.DataFrame:
    """The frame of a subject from codes; a set of codes is an empty cell."""
    level, number = place(joint, "level"), place(joint, "number")
    cells = [
        (
            subject,
            None if isinstance(head[0], set) else "uv"[head[0] - 1],
            None if isinstance(row[level], set) else LEVELS[row[level] - 1],
            np.nan if isinstance(row[number], set) or row[number] == 0 else row[number] - 1.0,
        )
        for row in rows
    ]
    return pd.DataFrame(cells, columns=["id", "kind", "level", "number"])


def log_base(joint: HistoryJoint, rows: tuple) -> float:
    """Log of the share of known numbers in their codes."""
    scale = joint.model.columns.rows[place(joint, "number")].coding.scale
    codes = [row[place(joint, "number")] for row in rows]
    return math.fsum(
        math.log(base_density(scale, code - 1.0)[1]) for code in codes if not isinstance(code, set) and code
    )


def some_histories(joint: HistoryJoint, rng: np.random.Generator, share: float) -> tuple[tuple, tuple]:
    """What is known of a subject: one of the histories, where cells of levels are unknown with this probability."""
    _, every = learned(0)
    one = every[int(rng.integers(len(every)))]
    level = place(joint, "level")
    unknown = {1, 2}
    rows = tuple(
        tuple(unknown if j == level and rng.random() < share else code for j, code in enumerate(row))
        for row in one.rows
    )
    return ((unknown if rng.random() < share else one.head[0]),), rows


# ---- Likelihoods.


@pytest.mark.parametrize("seed", [0, 1])
def test_probabilities_of_all_histories_sum_to_1(seed: int) -> None:
    _, every = learned(seed)
    assert len(every) == 2 * (8 + 64 + 512)
    assert math.fsum(one.p for one in every) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("seed", [0, 1])
def test_log_density_of_whole_histories(seed: int) -> None:
    joint, every = learned(seed)
    frame = pd.concat([frame_of(joint, one.head, one.rows, k) for k, one in enumerate(every)])
    expected = [math.log(one.p) + log_base(joint, one.rows) for one in every]
    np.testing.assert_allclose(joint.log_density(frame), expected, atol=1e-4)
    assert (joint.standard_error(frame[frame["id"] < 50]) == 0.0).all()


@pytest.mark.parametrize(("ended", "seed"), [(True, 0), (False, 0), (True, 1), (False, 1)])
def test_log_density_with_unknown_cells(ended: bool, seed: int) -> None:
    joint, every = learned(seed)
    rng = np.random.default_rng(5)
    known = [some_histories(joint, rng, 0.5) for _ in range(40)]
    frame = pd.concat([frame_of(joint, head, rows, k) for k, (head, rows) in enumerate(known)])
    expected = [math.log(oracle.given(every, head, rows, ended)[1]) + log_base(joint, rows) for head, rows in known]
    np.testing.assert_allclose(joint.log_density(frame, ended=ended), expected, atol=1e-4)
    assert (joint.standard_error(frame, ended=ended) == 0.0).all()


def test_attribution_sums_to_the_log_density() -> None:
    joint, _ = learned(0)
    frame = table(7, 30)
    of_length = joint.log_density(frame) - pd.Series(np.nansum(joint.attribution(frame), 1)).groupby(frame["id"]).sum()
    head = joint.model.columns.head[-1].coding
    assert (of_length < 0.0).all() and len(set(of_length.round(9))) <= 2 * head.scale.n_codes


# ---- Rows to come.


@pytest.mark.parametrize("seed", [0, 1])
def test_forecasts(seed: int) -> None:
    joint, every = learned(seed)
    rng = np.random.default_rng(2)
    known = [(head, rows[:n]) for n in (1, 2) for head, rows in [some_histories(joint, rng, 0.3) for _ in range(12)]]
    known = [(head, rows) for head, rows in known if len(rows) < 3]
    frame = pd.concat([frame_of(joint, head, rows, k) for k, (head, rows) in enumerate(known)])
    found = joint.forecast(frame, 2, n_draws=2000, random_state=0)
    assert found.exact.all() and found.subjects == list(range(len(known)))
    scale = joint.model.columns.rows[place(joint, "number")].coding.scale
    for k, (head, rows) in enumerate(known):
        kept, _ = oracle.given(every, head, rows, ended=False)
        n = len(rows)
        ends = [math.fsum(one.p for one in kept if len(one.rows) <= n + step) for step in range(2)]
        np.testing.assert_allclose(found.end_probability[k], ends, atol=1e-5)
        for step in range(min(2, 3 - n)):
            level, number = (oracle.probabilities(kept, n + step, place(joint, name), 4) for name in COLUMNS)
            np.testing.assert_allclose(found.proba("level")[k, step], level[1:3] / level[1:3].sum(), atol=1e-4)
            assert found.missing_probability("number")[k, step] == pytest.approx(number[0], abs=1e-4)
            centers = scale.moments[1]
            expected = number[1:] @ centers / number[1:].sum()
            assert found.mean("number")[k, step] == pytest.approx(expected, abs=2e-4)


def test_draws_of_rows_to_come_follow_their_distribution() -> None:
    joint, every = learned(0)
    head, rows = (1,), ((2, 2),)
    found = joint.forecast(frame_of(joint, head, rows), 2, n_draws=4000, random_state=1)
    kept, _ = oracle.given(every, head, rows, ended=False)
    draws = found.sample(4000)
    going_on = [one for one in kept if len(one.rows) == 3]
    share = math.fsum(one.p for one in going_on) / math.fsum(one.p for one in kept if len(one.rows) > 1)
    assert (draws["step"] == 2).sum() / 4000 == pytest.approx(share, abs=0.02)
    both = draws[draws["step"] == 2]["level"] == "y"
    expected = oracle.probabilities(kept, 2, place(joint, "level"), 3)[2]
    assert both.mean() == pytest.approx(expected, abs=0.03)


# ---- Cells in the middle.


def unknown_in_the_middle(joint: HistoryJoint) -> list[tuple[tuple, tuple, tuple]]:
    """Subjects of three rows, the second of which lacks its level, and how that cell is named in the model."""
    level, number = place(joint, "level"), place(joint, "number")
    found = []
    for a, b, c, d in itertools.product((1, 2), (1, 2), (1, 3), (2, 3)):
        rows = [[0, 0], [0, 0], [0, 0]]
        for row, (x, y) in zip(rows, ((a, c), ({1, 2}, {1, 2, 3}), (b, d)), strict=True):
            row[level], row[number] = x, y
        found.append(((1 + (a + d) % 2,), tuple(map(tuple, rows)), (1, level, number)))
    return found


def test_cells_are_imputed_given_rows_before_and_after() -> None:
    joint, every = learned(1)
    cases = unknown_in_the_middle(joint)
    frame = pd.concat([frame_of(joint, head, rows, k) for k, (head, rows, _) in enumerate(cases)], ignore_index=True)
    filled = joint.impute(frame)
    draws = joint.impute(frame, "sample", m=1000, random_state=3)
    levels = np.array([one["level"].to_numpy(object)[1::3] == "y" for one in draws]).mean(axis=0)
    numbers = np.array([one["number"].to_numpy(float)[1::3] for one in draws])
    centers = joint.model.columns.rows[place(joint, "number")].coding.scale.moments[1]
    for k, (head, rows, (row, level, number)) in enumerate(cases):
        kept, _ = oracle.given(every, head, rows, ended=True)
        of_level = oracle.probabilities(kept, row, level, 3)
        of_number = oracle.probabilities(kept, row, number, 4)
        assert filled["level"][3 * k + row] == LEVELS[int(np.argmax(of_level[1:]))]
        assert filled["number"][3 * k + row] == pytest.approx(round(of_number[1:] @ centers), abs=0)
        assert levels[k] == pytest.approx(of_level[2], abs=0.03)
        assert (numbers[:, k] <= 1.0).mean() == pytest.approx(of_number[1] + of_number[2], abs=0.03)
    known = frame.notna()
    assert filled.astype(object).where(known).equals(frame.astype(object).where(known))
    assert not filled.isna().any().any()


# ---- New subjects.


@pytest.mark.parametrize("seed", [0, 1])
def test_drawn_subjects_follow_the_distribution(seed: int) -> None:
    joint, every = learned(seed)
    n = 20_000
    drawn = joint.sample(n, random_state=0)
    length = drawn.groupby("id").size()
    p_length = [math.fsum(one.p for one in every if len(one.rows) == k) for k in (1, 2, 3)]
    np.testing.assert_allclose([(length == k).mean() for k in (1, 2, 3)], p_length, atol=0.015)
    second = drawn.groupby("id", sort=False).nth(1)
    number = oracle.probabilities(every, 1, place(joint, "number"), 4)
    values = second["number"].to_numpy(float)
    shares = [np.isnan(values).mean(), (values <= 0).mean(), (values == 1).mean(), (values >= 2).mean()]
    np.testing.assert_allclose(shares, number, atol=0.015)
    stays = [one for one in every if len(one.rows) == 3]
    same = math.fsum(one.p for one in stays if len({row[place(joint, "level")] for row in one.rows}) == 1)
    three = drawn[drawn["id"].map(length) == 3].groupby("id")["level"].nunique() == 1
    assert three.mean() == pytest.approx(same / math.fsum(one.p for one in stays), abs=0.015)


def test_each_drawn_subject_follows_the_distribution() -> None:
    joint, every = learned(1)
    n, calls = 3, 4000
    found = [joint.model.draw(n, seed) for seed in range(calls)]
    level = place(joint, "level")
    firsts = [np.concatenate([[0], np.cumsum(one.length)[:-1]]) for one in found]
    for i in range(n):
        kinds = np.array([(one.head[i, 0], one.code[at[i], level]) for one, at in zip(found, firsts, strict=True)])
        for kind, code in itertools.product((1, 2), (1, 2)):
            expected = math.fsum(one.p for one in every if one.head[0] == kind and one.rows[0][level] == code)
            assert (kinds == (kind, code)).all(axis=1).mean() == pytest.approx(expected, abs=0.025)
        last = [one.code[at[i] + 2, level] for one, at in zip(found, firsts, strict=True) if one.length[i] == 3]
        three = [one for one in every if len(one.rows) == 3]
        expected = math.fsum(one.p for one in three if one.rows[2][level] == 1) / math.fsum(one.p for one in three)
        assert np.mean(np.array(last) == 1) == pytest.approx(expected, abs=0.04)


def test_shares_of_drawn_subjects_are_close_to_the_probabilities() -> None:
    joint, every = learned(0)
    n, level = 1000, place(joint, "level")
    for seed in range(5):
        drawn = joint.model.draw(n, seed)
        first = np.concatenate([[0], np.cumsum(drawn.length)[:-1]])
        for kind, code in itertools.product((1, 2), (1, 2)):
            expected = n * math.fsum(one.p for one in every if one.head[0] == kind and one.rows[0][level] == code)
            # independent draws have a standard deviation of about 14
            assert np.sum((drawn.head[:, 0] == kind) & (drawn.code[first, level] == code)) == pytest.approx(
                expected, abs=6
            )


# ---- Estimates, where hypotheses are too many.


def test_estimates_are_unbiased() -> None:
    joint, every = learned(0)
    level, number = place(joint, "level"), place(joint, "number")
    rows = [[0, 0], [0, 0], [0, 0]]
    for row, codes in zip(rows, (({1, 2}, 3), ({1, 2}, 1), ({1, 2}, 2)), strict=True):
        row[level], row[number] = codes
    known = ({1, 2},), tuple(map(tuple, rows))
    exact = oracle.given(every, *known, ended=True)[1]
    histories = joint._read(frame_of(joint, *known), True).coded.histories
    estimates = []
    for seed in range(300):
        estimates += joint.model.walk(
            histories, np.zeros(1, dtype=np.int64), cap=3, seed=seed, each=lambda a, b, found: found.log_likelihood[0]
        )
    density = np.exp(estimates)
    assert density.std() > 0.01 * exact
    assert density.mean() == pytest.approx(exact, abs=4.0 * density.std() / math.sqrt(300))
