"""Repeats the regression toy and Table 2 of "Joint Probability Trees" (Nyga et al., 2023).

The toy: f(x) = x sin x, 500 x uniform on (-20, 0) and 500 on (0, 10), noise N(0, (1.5 + 0.5 U(0, 1))), with a
standard deviation drawn for each row. Mean absolute error of the mean of y given x against f on 1,000 even points,
and coverage of the 90 % interval for 5,000 new rows. Then every column of a table is predicted from all others by one
joint tree, and by a CART for that column alone. pyjpt 1.3.4, the package of the paper, learns the same toy and a part
of the table.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _common import HERE, arguments, finish, progress, read, results_path, verdict
from joint_tree_speed import PINS
from peers import peer_python, run_json
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from jointforest.learners.joint_tree.joint_tree import JointTree

MIN_LEAF = (0.2, 0.1, 0.05, 0.02, 0.01)
PAPER = {"JPT (paper)": (3.00, 2.19, 1.62, 1.28, 0.785), "CART (paper)": (4.82, 4.05, 2.38, 1.31, 0.956)}
TREES = {
    "tree": {},
    "tree, quantile leaves": {"leaf": "quantile"},
    "tree, split to the end": {"leaf": "quantile", "min_impurity_decrease": 0.0},
    "tree, Chow-Liu leaves": {"leaf": "chow_liu"},
    "tree, y alone": {"leaf": "quantile", "min_impurity_decrease": 0.0, "targets": ["y"]},
    "30 trees": {"leaf": "quantile", "min_impurity_decrease": 0.0, "n_estimators": 30},
    "30 trees, random columns": {
        "leaf": "quantile",
        "min_impurity_decrease": 0.0,
        "n_estimators": 30,
        "max_features": 1,
    },
}
COVERED = (0.85, 0.95)
PEER = "pyjpt 1.3.4"
PEER_ROWS, PEER_TEST = 20_000, 300


def pyjpt(learn: pd.DataFrame, test: pd.DataFrame, min_leaf: tuple[float, ...], columns: list[str]) -> list[dict]:
    """What pyjpt predicts of columns of the test rows given their others, for each smallest leaf."""
    python = peer_python("pyjpt", PINS)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "learn.parquet", Path(folder) / "test.parquet"]
        learn.to_parquet(paths[0])
        test.to_parquet(paths[1])
        worker = HERE / "_pyjpt_regression_worker.py"
        found = run_json([python, worker, *paths, "--min-leaf", *min_leaf, "--columns", *columns])
    return [leaf["predictions"] for leaf in found]


def toy(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """2 n rows."""
    x = np.concatenate([rng.uniform(-20, 0, n), rng.uniform(0, 10, n)])
    return pd.DataFrame({"x": x, "y": x * np.sin(x) + rng.normal(0, 1.5 + 0.5 * rng.random(2 * n))})


def toy_errors(seed: int, with_peer: bool) -> dict[str, list[tuple[float, float]]]:
    """Error and coverage of each learner, by smallest leaf; the peer's error over the points that it answers."""
    rng = np.random.default_rng(seed)
    learn, new = toy(500, rng), toy(2500, rng)
    x = np.linspace(learn["x"].min(), learn["x"].max(), 1000)
    truth, points = x * np.sin(x), pd.DataFrame({"x": x})
    found: dict[str, list[tuple[float, float]]] = {}
    for share in MIN_LEAF:
        for name, settings in TREES.items():
            joint = JointTree(min_samples_leaf=share, random_state=seed, **settings).fit(learn).joint_
            error = np.abs(joint.given(points).mean("y") - truth).mean()
            low, high = joint.given(new[["x"]]).interval("y", 0.9)
            found.setdefault(name, []).append((error, np.mean((low <= new["y"]) & (new["y"] <= high))))
        cart = DecisionTreeRegressor(min_samples_leaf=share, random_state=seed).fit(learn[["x"]], learn["y"])
        found.setdefault("CART", []).append((np.abs(cart.predict(points) - truth).mean(), np.nan))
    for said in pyjpt(learn, points.assign(y=truth), MIN_LEAF, ["y"]) if with_peer else []:
        found.setdefault(PEER, []).append((np.nanmean(np.abs(np.array(said["y"], float) - truth)), np.nan))
    return found


def toy_tables(repeats: int, seed: int, with_peer: bool) -> dict[str, list[dict]]:
    """Errors and coverages, means over the repeats."""
    runs = [toy_errors(seed + r, with_peer) for r in range(repeats)]
    errors, covered = [], []
    for name in runs[0]:
        mean = np.mean([run[name] for run in runs], axis=0)
        row = {"who": name} | {f"{s:.0%}": e for s, e in zip(MIN_LEAF, mean[:, 0], strict=True)}
        if name != "CART":
            met = sum(e <= p for e, p in zip(mean[:, 0], PAPER["JPT (paper)"], strict=True))
            row |= {"at or below the paper's": met}
            if PEER in runs[0]:
                peer = np.mean([run[PEER] for run in runs], axis=0)[:, 0]
                row |= {"at or below pyjpt's": int(np.sum(mean[:, 0] <= peer))}
        if name == PEER:
            errors.append(row)
        elif name != "CART":
            errors.append(row | verdict(met, 4, at_most=False))
            inside = all(COVERED[0] <= c <= COVERED[1] for c in mean[:, 1])
            covered.append({"who": name} | {f"{s:.0%}": c for s, c in zip(MIN_LEAF, mean[:, 1], strict=True)}
                           | {"target": "0.85 to 0.95", "met": "yes" if inside else "NO"})  # fmt: skip
        else:
            errors.append(row)
    errors += [{"who": who} | {f"{s:.0%}": e for s, e in zip(MIN_LEAF, of, strict=True)} for who, of in PAPER.items()]
    return {"Toy: mean absolute error by smallest leaf": errors, "Toy: coverage of the 90 % interval of y": covered}


def codes(frame: pd.DataFrame) -> pd.DataFrame:
    """Levels as numbers, for a CART."""
    return frame.apply(lambda c: c if pd.api.types.is_numeric_dtype(c) else c.astype("category").cat.codes)


def column_errors(
    frame: pd.DataFrame, n_test: int, share: float, seed: int, asked: dict[str, np.ndarray] | None = None
) -> list[dict]:
    """For each column: errors of joint trees, one with as many leaves as all CARTs together, and of its CART.

    Numbers by the median, which least absolute errors ask for and a joint knows, and by the mean, which a CART says.
    With ``asked``, the frame is in order, and a column is predicted of these of the test rows (n_test,).
    """
    if asked is None:
        frame = frame.iloc[np.random.default_rng(seed).permutation(len(frame))].reset_index(drop=True)
    numbers = codes(frame)
    whole, learn = frame.iloc[:n_test], frame.iloc[n_test:]
    joints = {}
    settings: dict[str, dict] = {
        "joint tree": {"min_samples_leaf": share},
        "joint tree, quantile leaves": {"min_samples_leaf": share, "leaf": "quantile"},
        "joint tree, small leaves": {"min_samples_leaf": share / frame.shape[1], "leaf": "quantile"},
        "joint tree, Chow-Liu leaves": {"min_samples_leaf": share, "leaf": "chow_liu"},
    }
    for name, chosen in settings.items():
        tree = JointTree(min_impurity_decrease=0, random_state=seed, **chosen)
        joints[name] = tree.fit(learn).joint_
        progress(f"{name}: {joints[name].n_leaves} leaves")
    rows = []
    for name in frame.columns:
        others = [c for c in frame.columns if c != name]
        X, y = numbers.iloc[n_test:][others], numbers.iloc[n_test:][name]
        of_test = np.arange(n_test) if asked is None else np.flatnonzero(asked[name])
        test = whole.iloc[of_test]
        truth = numbers.iloc[of_test][name].to_numpy()
        is_number = not joints["joint tree"].levels(name)
        make = DecisionTreeRegressor if is_number else DecisionTreeClassifier
        answer = make(min_samples_leaf=share, random_state=seed).fit(X, y).predict(numbers.iloc[of_test][others])
        row = {"column": name, "error": "mean absolute" if is_number else "error rate"}
        row["CART"] = np.abs(answer - truth).mean() if is_number else np.mean(answer != truth)
        for who, joint in joints.items():
            posterior = joint.given(test[others])
            if is_number:
                row[who] = np.abs(posterior.quantile(name, 0.5) - truth).mean()
                row[who + ", by the mean"] = np.abs(posterior.mean(name) - truth).mean()
            else:
                levels = np.array(joint.levels(name), dtype=object).astype(str)
                likely = levels[np.asarray(posterior.proba(name)).argmax(axis=1)]
                row[who] = row[who + ", by the mean"] = np.mean(likely != test[name].astype(str).to_numpy())
        rows.append(row)
        progress(str(row))
    return rows


def beside_peer(frame: pd.DataFrame, share: float, seed: int) -> list[dict]:
    """Errors of CART, joint trees and pyjpt on each column, all on the test rows that pyjpt answers."""
    order = np.random.default_rng(seed).permutation(len(frame))
    frame = frame.iloc[order].reset_index(drop=True)
    for name in frame.columns[frame.dtypes == "category"]:
        frame[name] = frame[name].astype(str).astype(object)
    test, learn = frame.iloc[:PEER_TEST], frame.iloc[PEER_TEST:].reset_index(drop=True)
    said = pyjpt(learn, test, (share,), list(frame.columns))[0]
    answered = {name: np.array([value is not None for value in predicted]) for name, predicted in said.items()}
    rows = column_errors(frame, PEER_TEST, share, seed, answered)
    for row in rows:
        kept = answered[row["column"]]
        predicted, truth = np.array(said[row["column"]], object)[kept], test[row["column"]].to_numpy()[kept]
        is_number = row["error"] == "mean absolute"
        row[PEER] = np.abs(predicted.astype(float) - truth).mean() if is_number else np.mean(predicted != truth)
        row["rows without an answer"] = int((~kept).sum())
    return rows


def compared(rows: list[dict]) -> list[dict]:
    """On how many columns each joint tree is better than the CARTs, or as good."""
    names = [name for name in rows[0] if name.startswith(("joint tree", PEER))]
    better = {name: sum(row[name] <= row["CART"] for row in rows) for name in names}
    return [{"who": who, "better or equal": n, "of": len(rows)} | verdict(n, len(rows) / 2, at_most=False)
            for who, n in better.items()]  # fmt: skip


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments(
        __doc__,
        repeats=dict(type=int, default=10, help="toy tables"),
        rows=dict(type=int, default=0, help="rows of the table (0: all)"),
        test_rows=dict(type=int, default=20_000),
        min_leaf=dict(type=float, default=0.01, help="smallest leaf of joint tree and CARTs"),
        no_peer=dict(action="store_true", help="leave pyjpt out"),
        only_peer=dict(action="store_true", help="what pyjpt is beside, no more; recorded lines of the rest are kept"),
    )
    with_peer = not (options.no_peer or options.quick)
    tables = toy_tables(1 if options.quick else options.repeats, options.seed, with_peer)
    frame = read(options.data, "large/fremtpl2freq")
    n = 5_000 if options.quick else options.rows or len(frame)
    part = frame.sample(min(PEER_ROWS, len(frame)), random_state=options.seed)
    if with_peer:
        rows = beside_peer(part, options.min_leaf, options.seed)
        tables[f"Every column of {len(part):,} policies from all others, {PEER_TEST} test rows"] = rows
        tables["The same: columns as good as a CART's"] = compared(rows)
    settings = {"seed": options.seed, "repeats": options.repeats, "rows": n}
    if options.only_peer:
        recorded = json.loads(results_path("joint_tree_regression").read_text())
        tables, settings = recorded["tables"] | tables, recorded["settings"] | {"repeats": options.repeats}
    else:
        frame = frame.sample(n, random_state=options.seed)
        rows = column_errors(frame, min(options.test_rows, n // 5), options.min_leaf, options.seed)
        tables[f"Every column of {n:,} policies from all others"] = rows
        tables["Columns on which a joint tree is as good as a CART of the column"] = compared(rows)
    finish("joint_tree_regression", tables, settings, options.quick)


if __name__ == "__main__":
    main()
