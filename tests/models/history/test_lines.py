"""Imputed means between the mean of the joint and the line between known neighbours."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd

import jointforest as jf
from jointforest.api.history_joint import HistoryJoint
from jointforest.models.history.history_model import AFTER, BEFORE, BETWEEN, line_of


def slow_line(x: np.ndarray, time: np.ndarray) -> list[tuple[float, int]]:
    """The line of each cell of one subject, and which known neighbours it has, cell by cell."""
    found = []
    for k in range(len(x)):
        before = [i for i in range(k) if not np.isnan(x[i])]
        after = [i for i in range(k + 1, len(x)) if not np.isnan(x[i])]
        if not np.isnan(x[k]) or not (before or after):
            found.append((np.nan, BETWEEN))
        elif before and after:
            a, b = before[-1], after[0]
            share = (time[k] - time[a]) / (time[b] - time[a])
            found.append(((1 - share) * x[a] + share * x[b], BETWEEN))
        else:
            found.append((x[before[-1]], AFTER) if before else (x[after[0]], BEFORE))
    return found


def test_lines() -> None:
    rng = np.random.default_rng(0)
    for timed in (False, True):
        length = rng.integers(1, 8, 60)
        start = np.concatenate([[0], np.cumsum(length)])
        x = np.where(rng.random(start[-1]) < 0.6, np.nan, rng.normal(size=start[-1]))
        time = np.cumsum(rng.random(start[-1]) + 0.1) if timed else np.arange(start[-1], dtype=np.float64)
        line, sides = line_of(start, time if timed else None, x)
        expected = [one for a, b in itertools.pairwise(start) for one in slow_line(x[a:b], time[a:b])]
        np.testing.assert_allclose(line, [one for one, _ in expected], atol=1e-12)
        unknown = np.isnan(x)
        assert sides[unknown].tolist() == [side for (_, side), one in zip(expected, unknown, strict=True) if one]


def slopes(n: int, seed: int) -> pd.DataFrame:
    """Twelve points near a straight line for each subject."""
    rng, row = np.random.default_rng(seed), np.tile(np.arange(12), n)
    begin, slope = np.repeat(rng.normal(size=n), 12), np.repeat(rng.normal(size=n), 12)
    value = begin + slope * row + 0.05 * rng.normal(size=12 * n)
    return pd.DataFrame({"id": np.repeat(np.arange(n), 12), "time": row, "value": value})


def test_imputed_means_are_at_least_as_good_as_the_line_and_as_the_joint() -> None:
    joint = jf.HistoryForest(ends=False, random_state=0).fit(slopes(400, 0), group="id", order="time").joint_
    share = joint.model.line_share
    assert share.shape == (1, 3) and 0.1 < share[0, 0] <= 1.0
    truth = slopes(200, 1)
    hidden = np.random.default_rng(2).random(len(truth)) < 0.2
    frame = truth.assign(value=truth["value"].mask(hidden))
    alone = HistoryJoint(replace(joint.model, line_share=np.zeros((1, 3))))
    ours, mean = (one.impute(frame, random_state=0)["value"].to_numpy() for one in (joint, alone))
    line, sides = line_of(np.arange(0, len(truth) + 1, 12), None, frame["value"].to_numpy())
    has_line = ~np.isnan(line)
    weight = share[0, sides[has_line]]
    blended = mean[has_line] + weight * (line - mean)[has_line]
    np.testing.assert_allclose(ours[has_line], blended, atol=1e-9)
    errors = [np.sqrt(np.mean((one - truth["value"])[has_line] ** 2)) for one in (ours, mean, line)]
    assert errors[0] < 1.02 * min(errors[1:])
    drawn, of_joint = (one.impute(frame, "sample", m=2, random_state=0) for one in (joint, alone))
    for one, other in zip(drawn, of_joint, strict=True):
        pd.testing.assert_frame_equal(one, other)
