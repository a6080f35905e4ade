"""Survival curves of 25 tables of SurvSet: `JointRegressor` beside Cox, random survival forests and gradient boosting.

Five folds; none or 30 % of the cells of the features are hidden at random, of rows to learn from and of test rows.
Peers get indicators of levels and mean imputation; they run in an environment of their own. The C-index counts pairs up
to the 95 % quantile of all times, weighted by inverse probability of censoring (IPCW); the integrated Brier score
is the mean over 100 times between the 5 % and the 95 % quantile of the events. D-calibration compares the survival
probability at each row's own time, of all folds, with a uniform distribution, in ten bins.

Runs continue: each table, fold and rate is one line of the results. ``--renew`` computes our figures anew. ``--test``
runs the tables that no setting was chosen on.
"""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import HERE, arguments, print_results, progress, results_path
from _survival_metrics import brier, calibration_bins, concordance, integrated, kaplan_meier, kept, steps
from peers import peer_python, run_json
from scipy.stats import chi2
from sklearn.model_selection import StratifiedKFold

import jointforest as jf

NAME, FOLDS, RATES = "survival", 5, (0.0, 0.3)
PINS = ["lifelines==0.30.3", "scikit-survival==0.28.0", "SurvSet==0.2.11", "pandas==2.3.3", "pyarrow==22.0.0"]
TABLES = ["LeukSurv", "Melanoma", "breast", "cancer", "colon", "follic", "grace", "phpl04K8a", "prostate", "stagec",
          "uis", "veteran", "vlbw", "whas500", "zinc"]  # fmt: skip
TEST_TABLES = ["GBSG2", "Pbc3", "actg", "cost", "diabetes", "e1684", "hepatoCellular", "mgus", "pbc", "scania"]
"""Drawn at random before anything was measured, and run only at the end."""
OURS, PEERS = "JointRegressor", ("Cox", "random survival forest", "gradient boosting", "Kaplan-Meier")
MEASURES = ("integrated Brier score", "C-index", "D-calibration")
Frame = pd.DataFrame


# ---- Cases: rows to learn from, rows to test, and the times that are asked.


def load(python: Path, name: str) -> Frame:
    """Features, then ``time`` and ``event``."""
    folder = HERE / ".peers" / "survival-tables"
    if not (folder / f"{name}.parquet").exists():
        run_json([python, HERE / "_survival_worker.py", "tables", folder, *TABLES, *TEST_TABLES])
    frame = pd.read_parquet(folder / f"{name}.parquet")
    frame = frame[frame["time"] > 0].reset_index(drop=True)
    return frame.assign(event=frame["event"].astype(bool))


def cases(frame: Frame, seed: int) -> list[tuple[int, float, Frame, Frame]]:
    """Fold, rate, rows to learn from and test rows."""
    found = []
    for k, (learn, test) in enumerate(
        StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(frame, frame["event"])
    ):
        for rate in RATES:
            hide = np.random.default_rng([seed, k]).random((len(frame), frame.shape[1] - 2)) < rate
            features = frame.drop(columns=["time", "event"]).mask(hide)
            rows = features.assign(time=frame["time"], event=frame["event"])
            found.append((k, rate, *(rows.iloc[part].reset_index(drop=True) for part in (learn, test))))
    return found


def asked(frame: Frame, test: Frame) -> tuple[np.ndarray, np.ndarray]:
    """Times of the Brier score, and all times that curves are asked at: those, and the test rows' own."""
    low, high = np.quantile(frame["time"][frame["event"]], [0.05, 0.95])
    at = np.linspace(low, high, 100)
    return at, np.unique(np.append(at, test["time"]))


# ---- Figures.


def figures(
    frame: Frame, test: Frame, at: np.ndarray, every: np.ndarray, survival: np.ndarray, risk: np.ndarray
) -> dict[str, Any]:
    """All measures of curves (n, q) at the times ``every``, and of risks (n,)."""
    time, event = test["time"].to_numpy(dtype=float), test["event"].to_numpy()
    censoring = kept(frame["time"].to_numpy(dtype=float), frame["event"].to_numpy())
    tau = float(np.quantile(frame["time"], 0.95))
    own = survival[np.arange(len(time)), np.searchsorted(every, time)]
    of_score = survival[:, np.searchsorted(every, at)]
    return {
        "integrated Brier score": integrated(at, brier(time, event, at, of_score, censoring)),
        "C-index": concordance(time, event, risk, tau, censoring),
        "bins": [round(float(x), 3) for x in calibration_bins(event, own)],
    }  # fmt: skip


def restricted_risk(every: np.ndarray, survival: np.ndarray) -> np.ndarray:
    """Minus the mean time up to the last one that is asked."""
    return -np.trapezoid(survival, every, axis=1)


def marginal(learn: Frame, test: Frame, every: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kaplan-Meier, the same for all rows."""
    curve = steps(*kaplan_meier(learn["time"].to_numpy(dtype=float), learn["event"].to_numpy()), every)
    return np.tile(curve, (len(test), 1)), np.zeros(len(test))


def ours(learn: Frame, test: Frame, every: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Curves of the predictor."""
    y = np.rec.fromarrays([learn["event"], learn["time"].astype(float)], names="event,time")
    model = jf.JointRegressor(random_state=0, n_jobs=1).fit(learn.drop(columns=["time", "event"]), y)
    found = model.predict_survival_function(test.drop(columns=["time", "event"]))
    survival = np.array([curve(np.minimum(every, curve.last)) for curve in found])
    return survival, restricted_risk(every, survival)


def measure(python: Path, name: str, seed: int, before: dict[tuple[Any, ...], dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of one table; figures of peers are those of earlier lines, if there are any."""
    frame = load(python, name)
    todo = cases(frame, seed)
    with tempfile.TemporaryDirectory() as folder:
        if any((name, k, rate) not in before for k, rate, _, _ in todo):
            for i, (_, _, learn, test) in enumerate(todo):
                case = Path(folder) / f"{i:02d}"
                case.mkdir()
                learn.to_parquet(case / "learn.parquet")
                test.to_parquet(case / "test.parquet")
                np.save(case / "at.npy", asked(frame, test)[1])
            run_json([python, HERE / "_survival_worker.py", "curves", folder])
        lines = []
        for i, (k, rate, learn, test) in enumerate(todo):
            at, every = asked(frame, test)
            line = before.get((name, k, rate), {"table": name, "fold": k, "hidden": rate, "rows": len(frame)})
            if PEERS[0] not in line:
                for peer in PEERS[:-1]:
                    got = np.load(Path(folder) / f"{i:02d}" / f"{peer}.npz")
                    line[peer] = figures(frame, test, at, every, got["survival"], got["risk"])
                    line[peer]["seconds"] = round(float(got["seconds"]), 2)
                line[PEERS[-1]] = figures(frame, test, at, every, *marginal(learn, test, every))
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                curves = ours(learn, test, every)
            line[OURS] = figures(frame, test, at, every, *curves) | {"seconds": round(time.process_time() - start, 2)}
            lines.append(line)
            said = [f"{m} {line[m][MEASURES[0]]:.4f} {line[m][MEASURES[1]]:.3f}" for m in (OURS, *PEERS)]
            progress(f"{name} {k} {rate}: {', '.join(said)}")
    return lines


# ---- What the lines say together.


def of_table(lines: list[dict[str, Any]], method: str) -> dict[str, float]:
    """Means over the folds of one table; D-calibration of all folds: the squared error of shares, and its p-value."""
    mine = [line[method] for line in lines]
    bins = np.sum([one["bins"] for one in mine], axis=0)
    share = bins / bins.sum()
    return {
        "integrated Brier score": float(np.mean([one["integrated Brier score"] for one in mine])),
        "C-index": float(np.mean([one["C-index"] for one in mine])),
        "D-calibration": float(((share - 0.1) ** 2).sum()),
        "p": float(chi2.sf(bins.sum() * ((share - 0.1) ** 2 / 0.1).sum(), len(bins) - 1)),
        "seconds": float(np.mean([one.get("seconds", 0.0) for one in mine])),
    }


def summary(lines: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Means and mean ranks over tables, for each rate."""
    found = {}
    for part, names in (("", TABLES), ("test tables, ", TEST_TABLES)):
        for rate in RATES:
            mine = [line for line in lines if line["table"] in names and line["hidden"] == rate]
            tables = [[line for line in mine if line["table"] == t] for t in dict.fromkeys(x["table"] for x in mine)]
            if not tables:
                continue
            methods = (OURS, *PEERS)
            each = {m: [of_table(of, m) for of in tables] for m in methods}
            rows = []
            for m in methods:
                row: dict[str, Any] = {"method": m}
                for what in MEASURES:
                    value = np.array([[one[what] for one in each[x]] for x in methods])
                    value = -value if what == "C-index" else value
                    own = value[methods.index(m)]
                    row[what] = float(abs(own.mean()))
                    row[f"rank of {what}"] = float(1 + (value < own).sum(axis=0).mean())
                row["D-calibrated (p > .05)"] = f"{sum(one['p'] > 0.05 for one in each[m])} of {len(tables)}"
                row["seconds"] = float(np.mean([one["seconds"] for one in each[m]]))
                rows.append(row)
            found[f"{part}{len(tables)} tables, {rate:.0%} of the features hidden"] = rows
    return found


def main() -> None:
    options = arguments(
        __doc__,
        tables=dict(nargs="*", help="default: all but the test tables"),
        test=dict(action="store_true", help="run the test tables"),
        renew=dict(action="store_true", help="compute our figures anew"),
    )
    python = peer_python(NAME, PINS)
    path = results_path(f"{NAME}.quick" if options.quick else NAME).with_suffix(".jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    before = {(line["table"], line["fold"], line["hidden"]): line for line in lines}
    names = options.tables or (TEST_TABLES if options.test else TABLES)
    for name in names[: 1 if options.quick else None]:
        if options.renew or not any(key[0] == name for key in before):
            for line in measure(python, name, options.seed, before):
                before[line["table"], line["fold"], line["hidden"]] = line
                with path.open("a") as file:  # appended, so that runs of several tables may go on at once
                    file.write(json.dumps(line) + "\n")
    print_results(summary(list(before.values())), options.quick)


if __name__ == "__main__":
    main()
