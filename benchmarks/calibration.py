"""Measures coverage of intervals and calibration of class probabilities, 30 % of the other cells hidden.

Twelve tables, all columns in turn, learners at their defaults. Numbers: coverage of ``interval(column, 0.9)``, and
rank coverage, the proportion of cells that are neither the lowest nor the highest of themselves and 19 draws, ties
broken at random. Rank coverage is 0.9 for the truth, whatever the column. Levels: expected calibration error of the
most likely level, over ten equal groups of rows, and the error that chance alone would give. Recorded lines of other
tables and learners are kept.
"""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from _common import arguments, finish, hide, progress, read, recorded_tables, timed
from sklearn.model_selection import train_test_split

import jointforest as jf

TABLES = ("insurance", "gef/diabetes", "gef/credit-g", "gef/cmc", "jpt/abalone", "jpt/wine_quality", "gef/segment",
          "synth/shoppers", "synth/beijing", "jpt/bank", "adult_train", "flights/hflights")  # fmt: skip
LEARNERS = {"AdversarialForest": jf.AdversarialForest, "JointTree": jf.JointTree,
            "HiddenTreeForest": jf.HiddenTreeForest,
            "HiddenTreeForest, 4 trees": partial(jf.HiddenTreeForest, 4)}  # fmt: skip
LEARN, TEST, RATE, LEVEL, DRAWS, GROUPS, CHANCES = 6_000, 1_000, 0.3, 0.9, 19, 10, 20


def split(data: Path, name: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """75 % of the rows to learn from, 25 % to test, at most 6,000 and 1,000."""
    frame = read(data, name).dropna(axis=1, how="all")
    learn, test = train_test_split(frame, test_size=0.25, random_state=seed)
    return learn[:LEARN].reset_index(drop=True), test[:TEST].reset_index(drop=True)


def coverage(posterior: jf.Posterior, column: str, truth: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """Shares of cells (n,) inside their intervals, and inside all but the outermost of their draws."""
    low, high = (as_numbers(bound) for bound in posterior.interval(column, LEVEL, n_jobs=1))
    draws = as_numbers(posterior.marginal(column).sample(DRAWS, random_state=rng.integers(2**31), n_jobs=1))
    draws = draws.reshape(len(truth), DRAWS)
    ties = (draws == truth[:, None]).sum(axis=1)
    rank = (draws < truth[:, None]).sum(axis=1) + rng.integers(ties + 1)
    return float(np.mean((low <= truth) & (truth <= high))), float(np.mean((rank > 0) & (rank < DRAWS)))


def as_numbers(values: object) -> np.ndarray:
    """Numbers as they are, dates in seconds."""
    array = np.asarray(values)
    return array.astype("datetime64[ns]").astype(float) / 1e9 if array.dtype.kind == "M" else array.astype(float)


def calibration_error(top: np.ndarray, is_right: np.ndarray) -> float:
    """Expected calibration error of probabilities (n,) of the likeliest level, by equal groups."""
    groups = np.array_split(np.argsort(top, kind="stable"), min(GROUPS, len(top)))
    return float(sum(abs(is_right[g].mean() - top[g].mean()) * len(g) for g in groups) / len(top))


def one_column(joint: jf.Joint, test: pd.DataFrame, column: str, seed: int) -> dict[str, float]:
    """Figures of one column."""
    rng = np.random.default_rng(seed)
    known = test[test[column].notna()].reset_index(drop=True)
    if not len(known):
        return {}
    posterior = joint.given(hide(known, RATE, seed)[0].drop(columns=column))
    if joint.kinds[column] not in ("categorical", "boolean", "ordered"):
        inside, rank = coverage(posterior, column, as_numbers(known[column]), rng)
        return {"interval": inside, "rank": rank}
    p = posterior.proba(column, n_jobs=1)
    place = {level: k for k, level in enumerate(joint.levels(column))}
    truth = known[column].map(lambda level: place.get(level, -1)).to_numpy(dtype=int)
    top = p.max(axis=1)
    chance = np.mean([calibration_error(top, rng.random(len(top)) < top) for _ in range(CHANCES)])
    return {"error": calibration_error(top, p.argmax(axis=1) == truth), "chance": float(chance)}


def one_table(data: Path, name: str, seed: int, learner: str) -> dict:
    """One line: a table under a learner."""
    learn, test = split(data, name, seed)
    make = LEARNERS[learner](random_state=seed, n_jobs=1)
    seconds, joint = timed(lambda: make.fit(learn).joint_)
    found = {column: one_column(joint, test, column, seed + k) for k, column in enumerate(joint.columns)}

    def of(figure: str) -> np.ndarray:
        return np.array([figures[figure] for figures in found.values() if figure in figures])

    line: dict = {"table": name.split("/")[-1], "learner": learner, "rows": len(learn), "numbers": len(of("rank"))}
    if len(of("rank")):
        line |= {"interval": of("interval").mean(), "lowest": of("interval").min(), "rank": of("rank").mean(),
                 "rank, farthest": of("rank")[np.abs(of("rank") - LEVEL).argmax()]}  # fmt: skip
    line |= {"level columns": len(of("error"))}
    if len(of("error")):
        line |= {"error": of("error").mean(), "by chance": of("chance").mean(), "worst": of("error").max()}
    progress(f"{line} in {seconds:.1f} s")
    return line


def summary(lines: list[dict]) -> list[dict]:
    """How many tables each learner has where they should be: errors of 2,000 rows and more."""
    rows = []
    for learner in dict.fromkeys(line["learner"] for line in lines):
        mine = [line for line in lines if line["learner"] == learner]
        row: dict = {"learner": learner}
        for figure in ("interval", "rank"):
            values = np.array([line[figure] for line in mine if figure in line])
            row |= {f"{figure} in 0.88 to 0.92": f"{int(np.sum(np.abs(values - 0.9) <= 0.02))} of {len(values)}"}
        errors = np.array([line["error"] for line in mine if "error" in line and line["rows"] >= 2_000])
        rows.append(row | {"error <= 0.05": f"{int(np.sum(errors <= 0.05))} of {len(errors)}"})
    return rows


def recorded(title: str) -> dict[tuple[str, str], dict]:
    """Lines of earlier runs by table and learner."""
    lines = recorded_tables("calibration").get(title, [])
    return {(line["table"], line["learner"]): line for line in lines}


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments(
        __doc__,
        tables=dict(nargs="+", default=list(TABLES), metavar="TABLE"),
        learners=dict(nargs="+", choices=list(LEARNERS), default=list(LEARNERS)),
    )
    tables = ["gef/cmc"] if options.quick else options.tables
    title = f"Coverage of {LEVEL:.0%} and calibration error, {RATE:.0%} of the other cells hidden"
    found = {} if options.quick else recorded(title)
    found |= {
        (name.split("/")[-1], who): one_table(options.data, name, options.seed, who)
        for name in tables
        for who in options.learners
    }
    order = [(name.split("/")[-1], who) for name in TABLES for who in LEARNERS]
    lines = [found[key] for key in sorted(found, key=order.index)]
    settings = {"seed": options.seed, "rows to learn": LEARN, "rows to test": TEST, "hidden": RATE}
    finish("calibration", {title: lines, "Summary": summary(lines)}, settings, options.quick)


if __name__ == "__main__":
    main()
