"""Small random tables of histories with columns of several kinds, joints of them, and answers beside the oracle's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd

import jointforest as jf
from jointforest.api.history_joint import HistoryJoint
from jointforest.learners.history import history_forest, learn, prepare
from jointforest.learners.history.constants import FIXED
from jointforest.models.history.history_model import IMPUTE_CAP, impute_codes
from tests.oracle.history_values import MISSING, PRESENT, UNKNOWN, Law, shares, total

KINDS = ("level", "flag", "gap", "count", "tenths", "mass", "money", "day")
"""Columns that a table may have: levels, booleans, levels that may be missing, walks on whole numbers and on tenths, of
which changes are predicted, numbers with a point mass, numbers that repeat, and dates."""
WALKS = ("count", "tenths")
MOST_ROWS = 3
DRAWS = 1000
"""Draws of forecasts and of imputed cells."""
LEAST = 0.02
"""Probabilities nearer to 0 or 1 are not compared with shares of draws."""
EXACT = 5e-4
"""Rounding of exact answers: entries of leaves are 32-bit numbers, and what has a millionth of the rest is left out."""


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

    def may_change(columns: Any, prepared: Any, j: int, *_: Any) -> bool:
        return columns.rows[j].coding.column.name in WALKS

    with ExitStack() as stack:
        stack.enter_context(patch.object(prepare, "FIXED", replace(FIXED, codes=6)))  # few codes, of several values
        stack.enter_context(patch.object(learn, "_may_change", may_change))
        stack.enter_context(patch.object(learn, "_judge", lambda columns, *_: float(len(columns.changes))))
        stack.enter_context(patch.object(history_forest, "smoothed", lambda *_: many))
        learner = jf.HistoryForest(ends=seed % 4 != 3, smoothing=0, random_state=seed)
        joint = learner.fit(frame, group="id").joint_
    model = replace(joint.model, line_share=np.zeros_like(joint.model.line_share))  # means of the joint
    return Case(HistoryJoint(model), Law(model), frame, kinds)


class Compared(NamedTuple):
    """One answer of a sort beside that of the oracle; ``error`` is its standard error, 0 where it is exact."""

    sort: str
    what: str
    found: float
    expected: float
    error: float

    @property
    def z(self) -> float:
        """Standard errors between the answers; 0 for exact answers that agree, infinite for others."""
        off = abs(self.found - self.expected) - (EXACT if self.error == 0.0 else 0.0)
        return max(off, 0.0) / self.error if self.error > 0.0 else math.inf if off > 0.0 else 0.0


def comparisons(one: Case, rng: np.random.Generator) -> Iterator[Compared]:
    """Log-densities, probabilities of a forecast, and of imputed cells, of a random subject with unknown cells."""
    frame = holed(one, rng)
    for ended in (True, False):
        expected = math.log(total(one.law.ways(*known_of(one, frame, False), ended)))
        found = one.joint.log_density(frame, ended=ended)[0]
        error = one.joint.standard_error(frame, ended=ended)[0]
        yield Compared("log-density", f"ended={ended}, of {frame.to_dict('list')}", found, expected, error)
    if len(frame) < MOST_ROWS or not one.joint.model.columns.has_length:
        yield from _forecast(one, frame, int(rng.integers(1 << 30)))
    yield from _imputed(one, frame, int(rng.integers(1 << 30)))


def _forecast(one: Case, frame: pd.DataFrame, seed: int) -> Iterator[Compared]:
    """Probabilities of the codes of each cell of the next row, and of values of columns that are drawn."""
    columns = one.joint.model.columns
    ways = one.law.ways(*known_of(one, frame, False), False, 1)
    n, going_on = len(frame), [way for way in ways if way.length > len(frame)]
    found = one.joint.forecast(frame, 1, n_draws=DRAWS, random_state=seed)
    text = f" after {frame.to_dict('list')}"
    if columns.has_length and found.exact[0]:
        yield Compared("forecast", f"end{text}", found.end_probability[0, 0], 1.0 - total(going_on) / total(ways), 0.0)
    for j, variable in enumerate(columns.rows):
        of_code = shares(going_on, n, j)
        what = f"{variable.coding.column.name}{text}"
        if variable.coding.change is None and found.exact[0]:
            for c in range(variable.coding.n_codes):
                yield Compared(
                    "forecast", f"code {c} of {what}", float(found._marginal[0, 0, j, c]), of_code.get(c, 0.0), 0.0
                )
        if variable.coding.change is not None or variable.coding.repeat.any():
            yield from _drawn(found._values(j)[0, :, 0], shares(going_on, n, j, _value), "forecast", what)


def _imputed(one: Case, frame: pd.DataFrame, seed: int) -> Iterator[Compared]:
    """Probabilities of levels or values of each empty cell of rows, by draws."""
    head, rows = known_of(one, frame, True)
    ways = one.law.ways(head, rows, True)
    given = one.joint._read(frame, True, empty_is_unknown=True)
    draws = np.array(impute_codes(one.joint.model, given.X, given.coded, None, "sample", DRAWS, IMPUTE_CAP, seed))
    for j, variable in enumerate(one.joint.model.columns.rows):
        scale = variable.coding.scale
        for r in [r for r, row in enumerate(rows) if row[j] == PRESENT]:
            what = f"{variable.coding.column.name} of row {r} of {frame.to_dict('list')}"
            if variable.coding.column.is_categorical:
                of_code = shares(ways, r, j)
                of_value = {float(x): of_code.get(c + 1, 0.0) * math.exp(log_mass)
                            for x, c, log_mass in zip(scale.lo, scale.code, scale.log_mass, strict=True)}  # fmt: skip
            else:
                of_value = shares(ways, r, j, _value)
            yield from _drawn(draws[:, r, variable.source], of_value, "imputed", what)


def _value(cell: Any) -> float | None:
    """The value of a cell, without rounding errors."""
    return None if cell.value is None else round(cell.value, 6)


def _drawn(x: np.ndarray, expected: dict[Any, float], sort: str, what: str) -> Iterator[Compared]:
    """Shares of draws with each value, of those that are probable enough for a standard error."""
    for value, p in expected.items():
        if value is not None and LEAST < p < 1.0 - LEAST:
            share = float((np.abs(x - value) < 1e-6).mean())
            yield Compared(sort, f"{value:g} of {what}", share, p, math.sqrt(p * (1.0 - p) / DRAWS))


def holed(one: Case, rng: np.random.Generator) -> pd.DataFrame:
    """One subject of new rows, of which at most two cells are empty, beside those that are missing in the table."""
    frame = table(one.kinds, int(rng.integers(1 << 30)), 1).assign(id=0)
    cells = [(r, name) for r in range(len(frame)) for name in one.kinds if rng.random() < 0.5]
    for r, name in [cells[k] for k in rng.permutation(len(cells))[:2]]:
        frame[name] = frame[name].astype(object) if frame[name].dtype == bool else frame[name]
        frame.loc[frame.index[r], name] = None
    return frame.assign(kind=None) if rng.random() < 0.3 else frame


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
