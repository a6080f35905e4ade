"""Forecasts of the next row and imputation of histories, beside last values, boosted trees, vector autoregression.

Three panels: flights from Houston by aircraft and day, the air of Beijing by day and hour, made visits of a known law.
Three quarters of the subjects, drawn at random, are learned from. Of each other subject the rows up to a random one are
known, and each number of the next row is forecast. Then a fifth of the known cells is hidden.

- last value: the last known value, plus the changes of the training rows from one row to the next.
- boosting: gradient boosted quantiles (scikit-learn) on the two rows before, a model for each of five quantiles. Their
  density is constant between neighbouring quantiles, with exponential tails.
- vector autoregression: a linear regression of each number on all cells of the two rows before, with normal errors.
- histories: `HistoryForest(ends=False)`. Its log-densities are given the time of the next row.

Imputed numbers of histories are values of the column's grid, so interpolation is also rounded to its nearest value.

With ``--sides``, only imputed numbers are measured, on training subjects that a trial model does not see: between known
cells of the column, after the last one and before the first one.

CRPS is twice the mean pinball loss of the five quantiles. The log-density of a number is that of a cell of its grid,
divided by the width of the cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read, timed
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor

import jointforest as jf

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
"""Quantiles that are forecast; the first and the last are the interval of 90 %."""
LAGS = 2
HIDDEN = 0.2


class Panel(NamedTuple):
    """A table, its columns of subjects and times, the numbers that are forecast with their steps, and levels."""

    frame: pd.DataFrame
    group: str
    order: str
    numbers: dict[str, float]
    levels: tuple[str, ...]


def flights(data: Path, seed: int) -> Panel:
    """Days of aircraft with at least 30 days: number of flights, mean delay, minutes in the air."""
    frame = read(data, "flights/hflights")
    frame = frame[(frame["Cancelled"] == 0) & frame["AirTime"].notna()]
    month, day = frame["Month"].astype(str).str.zfill(2), frame["DayofMonth"].astype(str).str.zfill(2)
    frame = frame.assign(date=pd.to_datetime("2011-" + month + "-" + day), TailNum=frame["TailNum"].astype(str))
    days = frame.groupby(["TailNum", "date"], as_index=False).agg(
        carrier=("UniqueCarrier", "first"),
        flights=("AirTime", "size"),
        minutes=("AirTime", "sum"),
        delay=("DepDelay", "mean"),
        destination=("Dest", "first"),
    )
    days["delay"] = days["delay"].round()
    often = days["destination"].value_counts().index[:15]
    days["destination"] = days["destination"].astype(str).where(days["destination"].isin(often), "other")
    days["carrier"] = days["carrier"].astype(str)
    days = days[days.groupby("TailNum")["date"].transform("size") >= 30]
    chosen = np.random.default_rng(seed).permutation(days["TailNum"].unique())[:400]
    days = days[days["TailNum"].isin(set(chosen))].reset_index(drop=True)
    return Panel(days, "TailNum", "date", {"minutes": 1.0, "delay": 1.0, "flights": 1.0}, ("destination",))


def air(data: Path, seed: int) -> Panel:
    """Hours of days: particles, dew point, temperature, pressure, wind."""
    frame = read(data, "synth/beijing").drop(columns=["Is", "Ir"])
    for name in ("year", "month", "day", "hour"):
        frame[name] = frame[name].astype(int)
    frame["date"] = pd.to_datetime(frame[["year", "month", "day"]]).dt.strftime("%Y-%m-%d")
    frame = frame[frame.groupby("date")["hour"].transform("size") >= 12]
    frame = frame.drop(columns=["year", "day"]).astype({"cbwd": str}).reset_index(drop=True)
    frame = frame.round({"TEMP": 0, "PRES": 0})
    numbers = {"pm2.5": 1.0, "DEWP": 1.0, "TEMP": 1.0, "PRES": 1.0, "Iws": 0.01}
    return Panel(frame, "date", "hour", numbers, ("cbwd",))


def visits(data: Path, seed: int) -> Panel:
    """Visits of patients by the law of `jf.datasets.make_visits`."""
    frame = jf.datasets.make_visits(2000, random_state=seed)
    return Panel(frame, "patient", "date", {"weight": 0.1, "pressure": 1.0}, ("status",))


PANELS: dict[str, Callable[[Path, int], Panel]] = {"flights": flights, "air": air, "visits": visits}


# ---- What is known, and what comes next.


class Task(NamedTuple):
    """Rows to learn from; rows known of test subjects, complete and with hidden cells; the next row of each of them."""

    train: pd.DataFrame
    known: pd.DataFrame
    hidden: pd.DataFrame
    future: pd.DataFrame


def task_of(panel: Panel, n_test: int, seed: int) -> Task:
    """A random split by subjects; of each test subject a random number of rows, at least three, is known."""
    frame, rng = panel.frame, np.random.default_rng(seed)
    subjects = rng.permutation(frame[panel.group].unique())
    tested = subjects[: len(subjects) // 4]
    train = frame[~frame[panel.group].isin(set(tested))].reset_index(drop=True)
    size = frame.groupby(panel.group)[panel.order].size()
    test = frame[frame[panel.group].isin(set(tested[size[tested] >= LAGS + 2]))].sort_values([panel.group, panel.order])
    known, future = [], []
    groups = [rows for _, rows in test.groupby(panel.group)]
    for k in range(n_test):
        rows = groups[k % len(groups)]
        cut = int(rng.integers(LAGS + 1, len(rows)))
        known.append(rows.iloc[:cut].assign(**{panel.group: f"s{k}"}))
        future.append(rows.iloc[[cut]].assign(**{panel.group: f"s{k}"}))
    start = pd.concat(known, ignore_index=True)
    hidden = start.copy()
    for name in (*panel.numbers, *panel.levels):
        hidden[name] = hidden[name].mask(rng.random(len(hidden)) < HIDDEN)
    return Task(train, start, hidden, pd.concat(future, ignore_index=True))


# ---- Forecasters: quantiles (n, 5) and log-density of the truth (n,) of each number of the next row.

Answers = dict[str, tuple[np.ndarray, np.ndarray]]


def log_mass(below: np.ndarray, above: np.ndarray, step: float) -> np.ndarray:
    """Log of the density of a cell of the grid from the cumulative distribution at its ends."""
    return np.log(np.maximum(above - below, 1e-12) / step)


def by_quantiles(quantiles: np.ndarray, truth: np.ndarray, step: float) -> np.ndarray:
    """Log-density of the truth under quantiles (n, 5): linear between them, with exponential tails."""
    q = np.maximum.accumulate(quantiles, axis=1) + 1e-6 * step * np.arange(len(LEVELS))
    scale = np.maximum(q[:, -1] - q[:, 0], step) / 5.0

    def below(x: np.ndarray) -> np.ndarray:
        inside = np.array([np.interp(one, points, LEVELS) for one, points in zip(x, q, strict=True)])
        left = LEVELS[0] * np.exp(-np.maximum(q[:, 0] - x, 0.0) / scale)
        right = 1.0 - (1.0 - LEVELS[-1]) * np.exp(-np.maximum(x - q[:, -1], 0.0) / scale)
        return np.where(x < q[:, 0], left, np.where(x > q[:, -1], right, inside))

    return log_mass(below(truth - step / 2), below(truth + step / 2), step)


def last_value(panel: Panel, task: Task, known: pd.DataFrame) -> Answers:
    """The last known value, plus the changes from row to row of the training rows."""
    found = {}
    for name, step in panel.numbers.items():
        change = (
            task.train.sort_values([panel.group, panel.order]).groupby(panel.group)[name].diff().dropna().to_numpy()
        )
        ahead = known.groupby(panel.group, sort=False)[name].last().fillna(task.train[name].mean()).to_numpy(float)
        truth = task.future[name].to_numpy(float)
        ordered = np.sort(change)
        ends = [
            (np.searchsorted(ordered, truth - ahead + side * step / 2) + 0.5) / (len(ordered) + 1) for side in (-1, 1)
        ]
        found[name] = ahead[:, None] + np.quantile(change, LEVELS), log_mass(*ends, step)
    return found


def lagged(panel: Panel, frame: pd.DataFrame, is_full: bool = False) -> tuple[np.ndarray, pd.DataFrame]:
    """Cells of the two rows before (columns of levels as 0 and 1), and the rows that come after them.

    With ``is_full`` what comes after the last row of each subject.
    """
    frame = frame.sort_values([panel.group, panel.order], kind="stable")
    numbers = [frame[name].astype(float) for name in panel.numbers]
    levels = [pd.get_dummies(frame[name].astype(str), prefix=name, dtype=float) for name in panel.levels]
    cells = pd.concat([*numbers, *levels], axis=1)
    groups = cells.groupby(frame[panel.group], sort=False)
    lags = [groups.shift(k - (1 if is_full else 0)) for k in range(1, LAGS + 1)]
    whole = pd.concat(lags, axis=1)
    place = frame.groupby(panel.group, sort=False).cumcount(ascending=not is_full)
    keep = (place == 0) if is_full else (place >= LAGS)
    return whole[keep], frame[keep]


def lags_of(panel: Panel, task: Task, known: pd.DataFrame) -> tuple[np.ndarray, pd.DataFrame, np.ndarray]:
    """Lags of training rows and the rows; lags of the next rows of tested subjects, in the order of the task."""
    X, rows = lagged(panel, task.train)
    ahead, last = lagged(panel, known, is_full=True)
    ahead.index = last[panel.group]
    names = list(X.columns)
    X.columns = ahead_names = [f"{k}:{name}" for k, name in enumerate(names)]
    found = pd.DataFrame(0.0, index=ahead.index, columns=ahead_names)
    width, lag = len(names) // LAGS, ahead.shape[1] // LAGS
    for k in range(LAGS):
        part = ahead.iloc[:, k * lag : (k + 1) * lag]
        for j, name in enumerate(names[:width]):
            if name in part:
                found.iloc[:, k * width + j] = part[name]
    return X.to_numpy(float), rows, found.loc[task.future[panel.group]].to_numpy(float)


Models = dict[str, list[HistGradientBoostingRegressor]]


def boosted(panel: Panel, task: Task) -> Models:
    """Models of the quantiles of each number, learned from lags."""
    X, rows, _ = lags_of(panel, task, task.known)
    settings: dict[str, Any] = {"max_iter": 60, "learning_rate": 0.1, "early_stopping": True, "random_state": 0}
    return {
        name: [
            HistGradientBoostingRegressor(loss="quantile", quantile=q, **settings).fit(X, rows[name].to_numpy(float))
            for q in LEVELS
        ]
        for name in panel.numbers
    }


def boosting(panel: Panel, task: Task, known: pd.DataFrame, models: Models) -> Answers:
    """Boosted quantiles of the next rows."""
    _, _, ahead = lags_of(panel, task, known)
    found = {}
    for name, step in panel.numbers.items():
        quantiles = np.sort(np.column_stack([model.predict(ahead) for model in models[name]]), axis=1)
        found[name] = quantiles, by_quantiles(quantiles, task.future[name].to_numpy(float), step)
    return found


def autoregression(panel: Panel, task: Task, known: pd.DataFrame) -> Answers:
    """Linear regression on lags with normal errors; missing cells are filled forward, then by means."""
    filled = known.copy()
    names = [*panel.numbers, *panel.levels]
    filled[names] = filled.groupby(panel.group, sort=False)[names].ffill()
    filled[names] = filled.groupby(panel.group, sort=False)[names].bfill()
    X, rows, ahead = lags_of(panel, task, filled)
    mean = X.mean(axis=0)
    ahead = np.where(np.isnan(ahead), mean, ahead)
    design = np.column_stack([np.ones(len(X)), X - mean])
    found = {}
    for name, step in panel.numbers.items():
        y = rows[name].to_numpy(float)
        weights = np.linalg.lstsq(design, y, rcond=1e-8)[0]
        error = float(np.std(y - design @ weights))
        center = np.column_stack([np.ones(len(ahead)), ahead - mean]) @ weights
        truth = task.future[name].to_numpy(float)
        ends = [norm.cdf(truth + side * step / 2, center, error) for side in (-1, 1)]
        found[name] = center[:, None] + error * norm.ppf(LEVELS), log_mass(*ends, step)
    return found


def by_histories(panel: Panel, task: Task, known: pd.DataFrame, joint: jf.HistoryJoint) -> Answers:
    """Quantiles of forecasts; log-densities as what a known number adds to a history with the time of the next row."""
    forecast = joint.forecast(known, random_state=0)
    place = [forecast.subjects.index(name) for name in task.future[panel.group]]

    def with_next(columns: list[str]) -> np.ndarray:
        both = pd.concat([known, task.future[[panel.group, panel.order, *columns]]], ignore_index=True)
        return joint.log_density(both, ended=False)

    before = with_next([])
    return {
        name: (forecast.quantile(name, LEVELS)[place, 0], (with_next([name]) - before)[place]) for name in panel.numbers
    }


def scores(panel: Panel, task: Task, answers: dict[str, Answers], condition: str, title: str) -> list[dict[str, Any]]:
    """One row for each number and method."""
    rows = []
    for name in panel.numbers:
        truth = task.future[name].to_numpy(float)[:, None]
        reference = None
        for method, found in answers.items():
            quantiles, log_density = found[name]
            loss = np.where(truth >= quantiles, LEVELS * (truth - quantiles), (1 - LEVELS) * (quantiles - truth))
            crps = 2.0 * float(loss.mean())
            reference = crps if reference is None else reference
            inside = (quantiles[:, :1] <= truth) & (truth <= quantiles[:, -1:])
            row = {"panel": title, "known": condition, "column": name, "method": method}
            row |= {"log-density": float(log_density.mean()), "CRPS": crps, "CRPS / last value": crps / reference}
            rows.append(row | {"in 90 % interval": float(inside.mean())})
    return rows


# ---- Cells in the middle.


def imputation(panel: Panel, task: Task, joint: jf.HistoryJoint, title: str) -> list[dict[str, Any]]:
    """Errors of hidden cells: root mean squares of numbers, shares of wrong levels."""
    ordered = task.hidden.sort_values([panel.group, panel.order], kind="stable")
    truth = task.known.loc[ordered.index]
    groups = ordered.groupby(panel.group, sort=False)
    forward, line = ordered.copy(), ordered.copy()
    for name in (*panel.numbers, *panel.levels):
        forward[name] = groups[name].transform(lambda x: x.ffill().bfill())
        line[name] = forward[name]
    for name in panel.numbers:
        line[name] = groups[name].transform(lambda x: x.astype(float).interpolate(limit_direction="both"))
    on_grid = line.copy()
    for name, step in panel.numbers.items():
        on_grid[name] = (line[name].astype(float) / step).round() * step
    ours = joint.impute(ordered, random_state=0)
    rows = []
    for name in (*panel.numbers, *panel.levels):
        hidden = (ordered[name].isna() & truth[name].notna()).to_numpy()
        row: dict[str, Any] = {"panel": title, "column": name, "cells": int(hidden.sum())}
        methods = {"forward fill": forward, "interpolation": line, "its nearest value": on_grid, "histories": ours}
        for method, answer in methods.items():
            a, b = answer[name][hidden], truth[name][hidden]
            if name in panel.numbers:
                fill = task.train[name].mean()
                row[method] = float(np.sqrt(np.mean((a.astype(float).fillna(fill) - b.astype(float)) ** 2)))
            else:
                row[method] = float((a.astype(str) != b.astype(str)).mean())
        rows.append(row)
    return rows


SIDE_ROWS = 8_000
"""Training rows of the subjects whose cells are hidden for the errors by side, about."""


def errors_by_side(panel: Panel, task: Task, title: str, seed: int) -> list[dict[str, Any]]:
    """Root mean square errors of hidden numbers of training subjects, by which known neighbours a cell has."""
    rng = np.random.default_rng([seed, 1])
    size = task.train.groupby(panel.group).size()
    subjects = rng.permutation(size.index.to_numpy())
    judged = set(subjects[: int(np.searchsorted(np.cumsum(size[subjects].to_numpy()), SIDE_ROWS))])
    is_judged = task.train[panel.group].isin(judged)
    truth = task.train[is_judged].sort_values([panel.group, panel.order]).reset_index(drop=True)
    hidden = truth.copy()
    for name in (*panel.numbers, *panel.levels):
        hidden[name] = hidden[name].mask(rng.random(len(hidden)) < HIDDEN)
    learner = jf.HistoryForest(ends=False, random_state=seed)
    moved = learner.fit(task.train[~is_judged], group=panel.group, order=panel.order).joint_
    alone = jf.HistoryJoint(replace(moved.model, line_share=np.zeros_like(moved.model.line_share)))
    groups = hidden.groupby(panel.group, sort=False)
    rows = []
    filled = {"mean of the joint": alone.impute(hidden, random_state=0), "moved": moved.impute(hidden, random_state=0)}
    for name, step in panel.numbers.items():
        line = groups[name].transform(lambda x: x.astype(float).interpolate(limit_direction="both"))
        answers = {"interpolation": (line / step).round() * step} | {how: of[name] for how, of in filled.items()}
        before, after = groups[name].ffill().notna(), groups[name].bfill().notna()
        sides = {"between": before & after, "after the last": before & ~after, "before the first": ~before & after}
        for side, where in sides.items():
            at = where & hidden[name].isna() & truth[name].notna()
            away = {how: (of - truth[name])[at].astype(float) for how, of in answers.items()}
            errors = {how: float(np.sqrt((of**2).mean())) for how, of in away.items()}
            rows.append({"panel": title, "column": name, "side": side, "cells": int(at.sum())} | errors)
    return rows


class Measured(NamedTuple):
    """Rows of the tables of one panel."""

    forecasts: list[dict[str, Any]]
    filled: list[dict[str, Any]]
    size: dict[str, Any]


def measure(title: str, panel: Panel, n_test: int, seed: int) -> Measured:
    """All figures of a panel."""
    task = task_of(panel, n_test, seed)
    learner = jf.HistoryForest(ends=False, random_state=seed)
    learn, joint = timed(lambda: learner.fit(task.train, group=panel.group, order=panel.order).joint_)
    learn_boosting, models = timed(lambda: boosted(panel, task))
    forecasts = []
    for condition, known in (("all cells", task.known), (f"{1 - HIDDEN:.0%} of the cells", task.hidden)):
        answers = {
            "last value": last_value(panel, task, known),
            "boosting": boosting(panel, task, known, models),
            "vector autoregression": autoregression(panel, task, known),
            "histories": by_histories(panel, task, known, joint),
        }
        forecasts += scores(panel, task, answers, condition, title)
        progress(f"{title}: {condition}")
    impute, filled = timed(lambda: imputation(panel, task, joint, title))
    size = {"panel": title, "subjects": task.train[panel.group].nunique(), "rows": len(task.train)}
    size |= {"learn s": learn, "learn boosting s": learn_boosting, "impute s": impute}
    return Measured(forecasts, filled, size)


def main() -> None:
    sides = {"action": "store_true", "help": "imputed numbers of training subjects, by their known neighbours"}
    options = arguments(__doc__, panels={"nargs": "+", "choices": list(PANELS), "default": list(PANELS)}, sides=sides)
    n_test = 40 if options.quick else 200
    for title in options.panels:
        if options.sides:
            panel = PANELS[title](options.data, options.seed)
            task = task_of(panel, n_test, options.seed)
            tables = {"Errors of hidden numbers": errors_by_side(panel, task, title, options.seed)}
            finish("panels.sides", tables, {"seed": options.seed}, options.quick, part=title)
            continue
        found = measure(title, PANELS[title](options.data, options.seed), n_test, options.seed)
        tables = {
            "Forecasts of the next row": found.forecasts,
            "Imputation: RMSE of numbers, share of wrong levels": found.filled,
            "Size": [found.size],
        }
        finish("panels", tables, {"seed": options.seed}, options.quick, part=title)


if __name__ == "__main__":
    main()
