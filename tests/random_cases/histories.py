"""Small random tables of histories with columns of several kinds, joints of them, and what is known of some subjects."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import jointforest as jf
from jointforest.api.history_joint import HistoryJoint
from jointforest.learners.history import history_forest, learn
from jointforest.learners.history.constants import FIXED
from tests.oracle.history_values import MISSING, PRESENT, UNKNOWN, Law

KINDS = ("level", "flag", "gap", "count", "tenths", "mass", "money", "day")
"""Columns that a table may have: levels, booleans, levels that may be missing, a walk on whole numbers and one on tenths
(changes are predicted), numbers with a point mass, numbers that repeat, and dates."""
WALKS = ("count", "tenths")
MOST_ROWS = 3


def table(kinds: tuple[str, ...], seed: int, n: int = 400) -> pd.DataFrame:
    """Subjects of 1 to 3 rows, with a constant column that is missing at times, and columns of these kinds."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        kind = int(rng.integers(2))
        level, walk = int(rng.random() < 0.3 + 0.4 * kind), int(rng.integers(0, 6))
        money = float(rng.choice([10.0, 20.5, 31.25])) + rng.random()
        for _ in range(rng.choice([1, 2, 3], p=(0.2, 0.3, 0.5) if kind else (0.3, 0.4, 0.3))):
            cells = {
                "level": "xy"[level],
                "flag": bool(rng.random() < (0.8 if level else 0.3)),
                "gap": None if rng.random() < 0.2 + 0.3 * level else "pqr"[rng.integers(3)],
                "count": walk,
                "tenths": np.round(0.1 * walk + 2.5, 1),
                "mass": 0.0 if rng.random() < 0.4 else rng.exponential() + level,
                "money": money,
                "day": pd.Timestamp("2024-03-01") + pd.Timedelta(int(rng.integers(0, 3) + 2 * level), "D"),
            }
            rows.append({"id": i, "kind": None if i % 9 == 0 else "uv"[kind]} | {name: cells[name] for name in kinds})
            level = level if rng.random() < 0.8 else 1 - level
            walk = int(np.clip(walk + rng.choice([-1, 0, 1, 1 + level]), 0, 7))
            money = money if rng.random() < 0.6 else 10.0 + 20.0 * rng.random()
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Case:
    """A joint of a random table, its law by the oracle, the table, and the columns."""

    joint: HistoryJoint
    law: Law
    frame: pd.DataFrame
    kinds: tuple[str, ...]


def case(seed: int) -> Case:
    """A joint that predicts the changes of walks, with many splits; for some seeds without numbers of rows."""
    rng = np.random.default_rng([seed, 7])
    kinds = tuple(rng.permutation(KINDS)[: int(rng.integers(1, 4))].tolist())
    frame = table(kinds, seed)
    many = replace(FIXED, value_gain=0.5, gain_a_type=0.0, ratio_gain=0.5)

    def may_change(columns: Any, prepared: Any, j: int, share: float) -> bool:
        return columns.rows[j].coding.column.name in WALKS

    with ExitStack() as stack:
        stack.enter_context(patch.object(learn, "_may_change", may_change))
        stack.enter_context(patch.object(learn, "_judge", lambda columns, *_: float(len(columns.changes))))
        stack.enter_context(patch.object(history_forest, "smoothed", lambda *_: many))
        learner = jf.HistoryForest(ends=seed % 4 != 3, smoothing=0, random_state=seed)
        joint = learner.fit(frame, group="id").joint_
    model = replace(joint.model, line_share=np.zeros_like(joint.model.line_share))  # means of the joint
    return Case(HistoryJoint(model), Law(model), frame, kinds)


def holed(one: Case, rng: np.random.Generator, most: int, share: float) -> pd.DataFrame:
    """One subject of new rows, of which at most so many cells are empty, beside those that are missing in the table."""
    frame = table(one.kinds, int(rng.integers(1 << 30)), 1).assign(id=0)
    cells = [(r, name) for r in range(len(frame)) for name in one.kinds if rng.random() < share]
    for r, name in [cells[k] for k in rng.permutation(len(cells))[:most]]:
        frame[name] = frame[name].astype(object) if frame[name].dtype == bool else frame[name]
        frame.loc[frame.index[r], name] = None
    if rng.random() < 0.3:
        frame["kind"] = None
    return frame


def known_of(one: Case, frame: pd.DataFrame, empty_is_unknown: bool) -> tuple[list[Any], list[list[Any]]]:
    """What a frame of one subject says of head variables and of the cells of its rows, in the order of the model."""
    columns = one.joint.model.columns
    X = one.joint._read(frame, True).X

    def spec(variable: Any, x: float) -> Any:
        if not np.isnan(x):
            return float(x)
        return PRESENT if empty_is_unknown else MISSING if variable.coding.has_missing else UNKNOWN

    head = [spec(v, X[0, v.source]) if v.source >= 0 else None for v in columns.head]
    return head, [[spec(v, row[v.source]) for v in columns.rows] for row in X]
