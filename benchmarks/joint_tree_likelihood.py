"""Repeats Table 3 of "Joint Probability Trees": held-out log-likelihood by the smallest leaf.

A random tenth of the rows is the test set. pyjpt runs on the same split in an environment of its own. Our mean covers
every row; those of pyjpt and the paper leave out the rows of likelihood zero, whose proportion is shown. Missing cells
are a level, as in the paper. The second table has each number spread evenly over its step, because tied values raise
densities.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from _common import HERE, arguments, finish, progress, read, verdict
from joint_tree_speed import PINS
from peers import peer_python, run_json

from jointforest.data.infer_schema import infer_schema
from jointforest.learners.joint_tree.joint_tree import JointTree

MIN_LEAF = (0.9, 0.4, 0.2, 0.1, 0.05, 0.01)
MOST_DROPPED = 5  # percent
TABLES = {
    "iris": "jpt/iris",
    "adult": "adult_train",
    "dry bean": "jpt/dry_bean",
    "wine": "jpt/wine",
    "wine, no class": "jpt/wine",
    "wine quality": "jpt/wine_quality",
    "bank": "jpt/bank",
    "car": "jpt/car",
    "car, no first column": "jpt/car",
    "abalone": "jpt/abalone",
}
LEARNERS: dict[str, dict] = {
    "tree": {"leaf": "quantile"},  # as the paper's; the default is beside it in joint_tree_auto.py
    "tree, split to the end": {"leaf": "quantile", "min_impurity_decrease": 0},
    "tree, normal leaves": {"leaf": "normal"},
    "30 trees": {"leaf": "quantile", "n_estimators": 30},
    "30 trees, split to the end": {"leaf": "quantile", "n_estimators": 30, "min_impurity_decrease": 0},
    "30 trees, normal leaves": {"n_estimators": 30, "leaf": "normal"},
}
# (mean, percent of test rows of likelihood 0), by MIN_LEAF
PAPER = {
    "iris": [(-5.63, 0), (-3.33, 0), (-2.66, 20), (-1.91, 27), (-1.20, 67), (None, 100)],
    "adult": [(-54.98, 49), (-53.07, 58), (-52.45, 64), (-50.18, 70), (-50.25, 81), (-42.96, 93)],
    "dry bean": [(-16.98, 95), (-13.23, 95), (-10.68, 95), (-6.75, 95), (-4.11, 95), (0.85, 96)],
    "wine, no class": [(-19.83, 56), (-18.69, 83), (-14.90, 94), (-12.46, 94), (None, 100), (None, 100)],
    "wine quality": [(-9.80, 0), (-8.34, 1), (-7.68, 1), (-6.57, 2), (-5.85, 4), (-3.82, 12)],
    "bank": [(-34.64, 7), (-34.54, 8), (-34.32, 12), (-32.77, 20), (-32.08, 32), (-29.45, 73)],
    "car, no first column": [(-7.03, 0), (-7.03, 0), (-6.62, 0), (-6.61, 0), (-6.59, 0), (-6.66, 0)],
    "abalone": [(-0.04, 0), (3.66, 0), (5.11, 0), (8.05, 2), (9.28, 3), (10.74, 18)],
}


def table(data: Path, name: str) -> pd.DataFrame:
    """The rows as the paper has them: text for levels, a level '?' for missing cells."""
    frame = read(data, TABLES[name])
    frame = frame.drop(columns={"wine, no class": "target", "car, no first column": frame.columns[0]}.get(name, []))
    for column in frame.columns[frame.dtypes == "category"]:
        frame[column] = frame[column].astype("str").fillna("?")
    for column in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "?").astype(str)
    return frame.dropna().reset_index(drop=True)


def spread(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The frame with each number spread evenly over the step of its column."""
    rng = np.random.default_rng(seed)
    out = frame.copy()
    for column in infer_schema(frame).columns:
        if not column.is_categorical and column.step > 0:
            out[column.name] = frame[column.name] + column.step * (rng.random(len(frame)) - 0.5)
    return out


def ours(train: pd.DataFrame, test: pd.DataFrame, seed: int, continuous: bool, **settings: object) -> list[dict]:
    """Mean log-density of all test rows, for each smallest leaf."""
    kinds = {c: "continuous" for c in train if continuous and pd.api.types.is_numeric_dtype(train[c])}
    found = []
    for share in MIN_LEAF:
        tree = JointTree(min_samples_leaf=share, random_state=seed, kinds=kinds or None, **settings).fit(train)
        density = tree.joint_.log_density(test)
        found.append({"mean": float(density.mean()), "zero": float((density == -np.inf).mean())})
    return found


def pyjpt(train: pd.DataFrame, test: pd.DataFrame) -> list[dict]:
    """What pyjpt says of the same rows."""
    python = peer_python("pyjpt", PINS)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "train.parquet", Path(folder) / "test.parquet"]
        train.to_parquet(paths[0])
        test.to_parquet(paths[1])
        return run_json([python, HERE / "_pyjpt_likelihood_worker.py", *paths, "--min-leaf", *MIN_LEAF])


def averaged(runs: list[list[dict]]) -> list[tuple[float | None, float]]:
    """Mean over the splits that have one, and percent of zeros, for each smallest leaf."""
    out = []
    for settings in zip(*runs, strict=True):
        means = [s["mean"] for s in settings if s["mean"] is not None]
        zero = 100 * float(np.mean([s["zero"] for s in settings]))
        out.append((float(np.mean(means)) if means else None, zero))
    return out


def line(name: str, who: str, found: list[tuple[float | None, float]]) -> dict:
    """One row of the printed table: mean, and percent of zeros in brackets."""
    cells = {}
    for share, (mean, zero) in zip(MIN_LEAF, found, strict=True):
        text = "none" if mean is None else f"{mean:.2f}"
        cells[f"{share:.0%}"] = text + (f" ({zero:.0f})" if zero > 0 else "")
    return {"table": name, "who": who} | cells


def best(found: list[tuple[float | None, float]], most_dropped: float = MOST_DROPPED) -> float | None:
    """The best mean of those that dropped few rows."""
    means = [mean for mean, zero in found if mean is not None and zero <= most_dropped]
    return max(means) if means else None


def main() -> None:
    options = arguments(
        __doc__,
        tables=dict(nargs="+", default=list(TABLES), choices=list(TABLES)),
        splits=dict(type=int, default=3, help="of tables of at least 1,000 rows; smaller ones get ten"),
        no_peer=dict(action="store_true", help="leave pyjpt out"),
    )
    names = ["iris"] if options.quick else options.tables
    shown: dict[bool, list[dict]] = {False: [], True: []}
    judged = []
    for name in names:
        whole = table(options.data, name)
        for is_spread in (False, True):
            frame = spread(whole, options.seed) if is_spread else whole
            runs: dict[str, list[list[dict]]] = {}
            for split in range(1 if options.quick else 10 if len(frame) < 1000 else options.splits):
                order = np.random.default_rng([options.seed, split]).permutation(len(frame))
                n_test = round(0.1 * len(frame))
                test, train = (frame.iloc[rows].reset_index(drop=True) for rows in (order[:n_test], order[n_test:]))
                for who, settings in LEARNERS.items():
                    runs.setdefault(who, []).append(ours(train, test, split, is_spread, **settings))
                if not options.no_peer:
                    runs.setdefault("pyjpt", []).append(pyjpt(train, test))
                progress(f"{name}{', spread' if is_spread else ''}: split {split}")
            found = {who: averaged(of) for who, of in runs.items()}
            if not is_spread and name in PAPER:
                found["paper"] = PAPER[name]
            shown[is_spread] += [line(name, who, cells) for who, cells in found.items()]
            ours_best = {who: best(found[who]) for who in LEARNERS}
            tree = max(value for who, value in ours_best.items() if who.startswith("tree"))
            forest = max(value for who, value in ours_best.items() if who.startswith("30"))
            row = {"table": name + (", spread" if is_spread else ""), "tree": tree, "30 trees": forest}
            row |= {"30 trees better": forest > tree}
            row["of the same kind"] = sum(
                ours_best[who.replace("tree", "30 trees", 1)] > ours_best[who] for who in LEARNERS if who[0] == "t"
            )
            row["zeros"] = max(zero for who in runs if who != "pyjpt" for _, zero in found[who])
            for peer in ("pyjpt", "paper"):
                if peer in found:
                    row[peer] = best(found[peer])
            if (limit := row.get("paper")) is not None:
                row |= verdict(tree, limit, at_most=False)
            judged.append(row)
    tables = {
        "Mean log-likelihood by smallest leaf (percent of rows of likelihood 0, dropped by pyjpt and the paper)": shown[
            False
        ],
        "The same with numbers spread over their steps": shown[True],
        f"Best of the settings that dropped at most {MOST_DROPPED} %": judged,
    }
    finish("joint_tree_likelihood", tables, {"seed": options.seed, "splits": options.splits}, options.quick)


if __name__ == "__main__":
    main()
