"""Runs inside the environment of lifelines and scikit-survival.

``tables FOLDER NAME ...`` writes tables of SurvSet as Parquet. ``curves FOLDER`` learns from each case in a folder and
writes the survival curves of its test rows; cases are made by survival.py. ``metrics FILE`` computes measures of one
case, to compare `_survival_metrics` with.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")
Curves = tuple[np.ndarray, np.ndarray]


def write_tables(folder: Path, names: list[str]) -> None:
    from SurvSet.data import SurvLoader

    loader = SurvLoader()
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        frame = loader.load_dataset(ds_name=name)["df"].drop(columns="pid")
        levels = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
        frame[levels] = frame[levels].astype(object).where(frame[levels].notna(), None)
        frame.to_parquet(folder / f"{name}.parquet")


def numbers(learn: pd.DataFrame, test: pd.DataFrame) -> Curves:
    """Indicators of levels and standardised numbers, mean imputation."""
    features = [c for c in learn if c not in ("time", "event")]
    parts = []
    for c in features:
        if pd.api.types.is_numeric_dtype(learn[c]):
            parts.append([frame[[c]].to_numpy(dtype=float) for frame in (learn, test)])
        else:
            levels = sorted(learn[c].dropna().unique())[1:]
            of = [frame[c].to_numpy(dtype=object)[:, None] == np.array(levels, dtype=object) for frame in (learn, test)]
            unknown = [frame[c].isna().to_numpy()[:, None] for frame in (learn, test)]
            parts.append([np.where(u, np.nan, o.astype(float)) for o, u in zip(of, unknown, strict=True)])
    X, X_test = (np.hstack([part[k] for part in parts]) for k in (0, 1))
    mean = np.nan_to_num(np.nanmean(X, axis=0))
    X, X_test = (np.where(np.isnan(cells), mean, cells) for cells in (X, X_test))
    spread = X.std(axis=0)
    use = spread > 1e-9
    return (X[:, use] - mean[use]) / spread[use], (X_test[:, use] - mean[use]) / spread[use]


def cox(X: np.ndarray, learn: pd.DataFrame, X_test: np.ndarray, at: np.ndarray) -> Curves:
    from lifelines import CoxPHFitter

    frame = pd.DataFrame(X).assign(time=learn["time"].to_numpy(), event=learn["event"].to_numpy())
    for penalizer in (0.01, 0.1, 1.0):
        try:
            model = CoxPHFitter(penalizer=penalizer).fit(frame, "time", "event")
            break
        except Exception:  # lifelines has several errors for a fit that does not converge; the next penalty is tried
            continue
    test = pd.DataFrame(X_test)
    base = model.baseline_survival_.iloc[:, 0]
    risk = model.predict_log_partial_hazard(test).to_numpy()
    place = np.searchsorted(base.index.to_numpy(), at, side="right")
    S0 = np.append(1.0, base.to_numpy())[place]
    return S0[None, :] ** np.exp(np.clip(risk, -50, 50))[:, None], risk


def sksurv(make: Callable) -> Callable:
    def run(X: np.ndarray, learn: pd.DataFrame, X_test: np.ndarray, at: np.ndarray) -> Curves:
        from sksurv.util import Surv

        y = Surv.from_arrays(learn["event"].to_numpy(dtype=bool), learn["time"].to_numpy(dtype=float))
        model = make().fit(X, y)
        found = model.predict_survival_function(X_test)
        domain = found[0].x
        S = np.array([np.append(1.0, f.y)[np.searchsorted(domain, at, side="right")] for f in found])
        return S, model.predict(X_test)

    return run


def forest() -> object:
    from sksurv.ensemble import RandomSurvivalForest

    return RandomSurvivalForest(n_estimators=200, min_samples_split=10, min_samples_leaf=15, n_jobs=1, random_state=0)


def boosting() -> object:
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis

    return GradientBoostingSurvivalAnalysis(random_state=0)


PEERS = {"Cox": cox, "random survival forest": sksurv(forest), "gradient boosting": sksurv(boosting)}


def write_curves(folder: Path) -> None:
    """Of each case: learn.parquet, test.parquet, at.npy -> NAME.npz with survival (n, q), risk and seconds."""
    for case in sorted(path for path in folder.iterdir() if path.is_dir()):
        learn, test = (pd.read_parquet(case / f"{part}.parquet") for part in ("learn", "test"))
        at = np.load(case / "at.npy")
        X, X_test = numbers(learn, test)
        for name, run in PEERS.items():
            start = time.process_time()
            survival, risk = run(X, learn, X_test, at)
            np.savez(case / f"{name}.npz", survival=survival, risk=risk, seconds=time.process_time() - start)


def metrics(file: Path) -> dict[str, float]:
    from sksurv.metrics import concordance_index_ipcw, integrated_brier_score
    from sksurv.util import Surv

    case = np.load(file)
    every = Surv.from_arrays(case["all_event"], case["all_time"])
    y = Surv.from_arrays(case["event"], case["time"])
    return {
        "C-index": float(concordance_index_ipcw(every, y, case["risk"], tau=float(case["tau"]))[0]),
        "integrated Brier score": float(integrated_brier_score(every, y, case["survival"], case["at"])),
    }


if __name__ == "__main__":
    what, where, *names = sys.argv[1:]
    if what == "tables":
        write_tables(Path(where), names)
    elif what == "curves":
        write_curves(Path(where))
    print(json.dumps(metrics(Path(where)) if what == "metrics" else {}))
