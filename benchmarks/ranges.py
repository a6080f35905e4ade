"""Measures what is lost where numbers are known as ranges: limits of detection and brackets.

Of three columns of a table the smallest 10, 30 or 60 % are known to be below a limit, or all values to be in one of
seven brackets. Tables are completed by draws of a joint that learned the ranges, of one that took them as missing, and
by rules of thumb. The mean, the standard deviation, correlations and conditional means of the columns in the completed
table are compared with those of the true table, in its standard deviations. The loss of log-density on complete
held-out rows is that against a joint of the true values.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read

import jointforest as jf

TABLES = {
    "abalone": ("jpt/abalone", ["diameter", "shucked", "shell"], 3_000),
    "wine_quality": ("jpt/wine_quality", ["residual sugar", "free sulfur dioxide", "sulphates"], 4_000),
    "dry_bean": ("jpt/dry_bean", ["Area", "roundness", "ShapeFactor2"], 4_000),
    "insurance": ("insurance", ["age", "bmi", "charges"], 1_000),
    "adult": ("adult_train", ["age", "hours_per_week", "fnlwgt"], 6_000),
}
SHARES = (0.1, 0.3, 0.6)
BRACKETS = 7


def below(x: pd.Series, share: float) -> pd.Series:
    """The cells of a column, the smallest of them as ranges below a limit."""
    limit = float(np.quantile(x, share))
    return pd.Series([jf.between(None, limit, "neither") if v < limit else v for v in x], dtype=object)


def in_brackets(x: pd.Series) -> pd.Series:
    """The cells of a column as brackets of about as many rows each, the outermost of them open."""
    inner = np.unique(np.quantile(x, np.arange(1, BRACKETS) / BRACKETS))
    edges = [None, *inner.tolist(), None]
    return pd.Series([jf.between(edges[k], edges[k + 1], "right") for k in np.searchsorted(inner, x)], dtype=object)


def substituted(cells: pd.Series, rule: str, x: pd.Series) -> pd.Series:
    """Numbers in place of ranges by a rule of thumb; an open bracket is as wide as the one beside it."""
    one_of = sorted({c for c in cells if isinstance(c, jf.Interval) and c.lo is not None and c.hi is not None},
                    key=lambda c: c.lo)  # fmt: skip
    of_rule = {"limit / 2": 0.5, "limit / root 2": 2.0**-0.5}

    def number(cell: Any) -> float:
        if not isinstance(cell, jf.Interval):
            return float(cell)
        if rule in of_rule:
            return float(cell.hi) * of_rule[rule]
        lo = cell.lo if cell.lo is not None else max(cell.hi - (one_of[0].hi - one_of[0].lo), min(x.min(), 0.0))
        hi = cell.hi if cell.hi is not None else cell.lo + (one_of[-1].hi - one_of[-1].lo)
        return 0.5 * (lo + hi)

    return cells.map(number)


def statistics(table: pd.DataFrame, names: list[str], truth: pd.DataFrame) -> dict[str, np.ndarray]:
    """What is compared: moments of the columns, correlations with all numbers, means given halves of others."""
    numbers = [name for name in truth if pd.api.types.is_numeric_dtype(truth[name]) and truth[name].nunique() > 2]
    scale = truth[names].std()
    halves = [(a, b) for a in names for b in numbers if a != b]
    low = {b: table[b] <= truth[b].median() for b in numbers}
    return {
        "mean": (table[names].mean() / scale).to_numpy(),
        "sd": (table[names].std() / scale).to_numpy(),
        "correlation": table[numbers].corr().loc[names].to_numpy()[~np.eye(len(numbers), dtype=bool)[
            [numbers.index(name) for name in names]]],
        "conditional mean": np.array([table.loc[low[b], a].mean() / scale[a] for a, b in halves]),
    }  # fmt: skip


def joint_of(table: pd.DataFrame, n_states: int) -> tuple[jf.Joint, float]:
    """A joint, and the processor seconds of learning it."""
    start = time.process_time()
    joint = jf.HiddenTreeForest(n_states=n_states, start="shared", rules="off", random_state=0).fit(table).joint_
    return joint, time.process_time() - start


def main() -> None:
    options = arguments(__doc__, tables={"nargs": "*", "default": list(TABLES)})
    warnings.simplefilter("ignore")
    n_states = 16 if options.quick else 64
    joint_of(pd.DataFrame({"x": np.arange(200.0), "y": np.arange(200.0) ** 2}), n_states)  # kernels are compiled
    rows, losses = [], []
    for name in options.tables:
        path, names, n = TABLES[name]
        frame = read(options.data, path).sample(frac=1.0, random_state=options.seed).reset_index(drop=True)
        n = 500 if options.quick else n
        truth, test = frame.iloc[:n].reset_index(drop=True), frame.iloc[n : n + 3_000]
        real, seconds = joint_of(truth, n_states)
        top = real.log_density(test).mean()
        wanted = statistics(truth, names, truth)
        problems = {f"{share:.0%} below": share for share in SHARES} | {"30% below, 20% missing": 0.3, "brackets": None}
        for problem, share in problems.items():
            cells = {x: in_brackets(truth[x]) if share is None else below(truth[x], share) for x in names}
            ranged = truth.assign(**cells)
            others = [x for x in truth if x not in names]
            if "missing" in problem:
                gone = np.random.default_rng(options.seed).random((n, len(others))) < 0.2
                ranged[others] = ranged[others].mask(gone)
            is_range = {x: cells[x].map(lambda c: isinstance(c, jf.Interval)) for x in names}
            lost = ranged.assign(**{x: ranged[x].mask(is_range[x]).astype(float) for x in names})
            joint, own = joint_of(ranged, n_states)
            loss = {"ranges": top - joint.log_density(test).mean()}
            filled = {"ranges": joint.impute(ranged, "sample", random_state=1, ranges="fill")}
            if share is not None:
                missing, _ = joint_of(lost, n_states)
                loss["as missing"] = top - missing.log_density(test).mean()
                filled["as missing"] = missing.impute(lost, "sample", random_state=1)
            if "missing" not in problem:
                rules = ["midpoint"] if share is None else ["limit / 2", "limit / root 2"]
                for rule in rules:
                    filled[rule] = ranged.assign(**{x: substituted(cells[x], rule, truth[x]) for x in names})
                if share is not None:
                    filled["rows dropped"] = lost.dropna(subset=names)
            for method, table in filled.items():
                found = statistics(table, names, truth)
                errors = {what: float(np.abs(found[what] - wanted[what]).mean()) for what in wanted}
                rows.append({"table": name, "ranges": problem, "method": method} | errors)
            losses.append({"table": name, "ranges": problem, "seconds / values": own / seconds} | loss)
            progress(f"{name}, {problem}")
    of = pd.DataFrame(rows)
    mean = of.groupby(["ranges", "method"], sort=False)[["mean", "sd", "correlation", "conditional mean"]].mean()
    finish(
        "ranges",
        {
            "mean absolute error, standard deviations": mean.reset_index().to_dict("records"),
            "of each table": rows,
            "loss of log-density on complete rows": losses,
        },
        {"tables": options.tables, "n_states": n_states, "seed": options.seed},
        options.quick,
    )


if __name__ == "__main__":
    main()
