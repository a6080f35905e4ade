"""Repeats the experiment of "Handling Missing Data in Decision Trees" (2020) on insurance.

Root mean squared error of charges, ten trials, each cell missing with a given probability. (a) Cells are missing at
deployment only: a forest of five trees of XGBoost predicts by expected predictions, by default directions, and after
three kinds of imputation. (b) Cells are missing at learning, too: a single tree of XGBoost learned from rows with
missing cells, and from imputed rows. Expected predictions use its own leaf values, and values refitted to the expected
loss (Proposition 2). "Best" counts within one standard error of the paired differences. Expected predictions under
hidden trees stand beside them and are not compared. ``--picture`` draws docs/images/expected_insurance.png.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _common import arguments, finish, hide, mean_and_error, progress, read
from sklearn.compose import make_column_transformer
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.model_selection import train_test_split
from xgboost import XGBRegressor, XGBRFRegressor

import jointforest as jf

TARGET = "charges"
RATES = tuple(k / 10 for k in range(10))
JOINT = {"n_estimators": 30}


def table(data: Path) -> pd.DataFrame:
    """The rows, levels as pandas categories."""
    frame = read(data, "insurance")
    text = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    return frame.astype(dict.fromkeys(text, "category"))


class Filler:
    """An imputer of a frame with levels: codes in, codes out, rounded to levels."""

    def __init__(self, how: str, frame: pd.DataFrame) -> None:
        self.levels = {c: frame[c].cat.categories for c in frame if frame[c].dtype == "category"}
        self.by_name = how == "median"
        if self.by_name:
            levels, numbers = list(self.levels), [c for c in frame if c not in self.levels]
            self.imputer = make_column_transformer(
                (SimpleImputer(strategy="median", keep_empty_features=True), numbers),
                (SimpleImputer(strategy="most_frequent", keep_empty_features=True), levels),
            )
            self.order = numbers + levels
        else:
            make = {"kNN": KNNImputer(keep_empty_features=True),
                    "iterative": IterativeImputer(random_state=0, keep_empty_features=True)}  # fmt: skip
            self.imputer, self.order = make[how], list(frame)
        self.imputer.fit(self._input(frame))

    def _codes(self, frame: pd.DataFrame) -> pd.DataFrame:
        out = frame.copy()
        for c in self.levels:
            out[c] = frame[c].cat.codes.where(frame[c].notna(), np.nan).astype(float)
        return out

    def _input(self, frame: pd.DataFrame) -> pd.DataFrame | np.ndarray:
        codes = self._codes(frame)
        return codes if self.by_name else codes.to_numpy(dtype=float, copy=True)

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        full = pd.DataFrame(self.imputer.transform(self._input(frame)), columns=self.order)[list(frame)]
        for c, levels in self.levels.items():
            code = full[c].round().clip(0, len(levels) - 1).astype(int)
            full[c] = pd.Categorical.from_codes(code, levels)
        return full


FILLERS = ("median", "kNN", "iterative")


def rmse(answer: np.ndarray, truth: pd.Series) -> float:
    return float(np.sqrt(np.mean((np.asarray(answer) - truth.to_numpy()) ** 2)))


def split(frame: pd.DataFrame, trial: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series, pd.Series]:
    parts = train_test_split(frame.drop(columns=TARGET), frame[TARGET], test_size=0.3, random_state=trial)
    return tuple(part.reset_index(drop=True) for part in parts)


HIDDEN = "hidden trees"


def hidden_of(frame: pd.DataFrame, seed: int) -> jf.Joint:
    """Hidden trees of these columns."""
    return jf.HiddenTreeForest(random_state=seed, n_jobs=1).fit(frame).joint_


def joint_of(frame: pd.DataFrame, seed: int) -> jf.Joint:
    """The joint of these columns."""
    return jf.AdversarialForest(**JOINT, random_state=seed).fit(frame).joint_


def at_deployment(frame: pd.DataFrame, trial: int) -> dict[str, list[float]]:
    """Errors of (a), by rate."""
    X, X_test, y, y_test = split(frame, trial)
    model = XGBRFRegressor(n_estimators=5, enable_categorical=True, random_state=trial, n_jobs=1).fit(X, y)
    predictor = jf.ExpectedPredictor(model, joint_of(X, trial))
    hidden = jf.ExpectedPredictor(model, hidden_of(X, trial))
    fillers = {how: Filler(how, X) for how in FILLERS}
    found: dict[str, list[float]] = {}
    for k, rate in enumerate(RATES):
        rows = hide(X_test, rate, 100 * trial + k)[0]
        found.setdefault("expected", []).append(rmse(predictor.predict(rows), y_test))
        found.setdefault(HIDDEN, []).append(rmse(hidden.predict(rows), y_test))
        found.setdefault("default direction", []).append(rmse(model.predict(rows), y_test))
        for how, fill in fillers.items():
            found.setdefault(how, []).append(rmse(model.predict(fill(rows)), y_test))
    return found


def at_learning(frame: pd.DataFrame, trial: int) -> dict[str, list[float]]:
    """Errors of (b), by rate."""
    X, X_test, y, y_test = split(frame, trial)

    def tree(rows: pd.DataFrame) -> XGBRegressor:
        return XGBRFRegressor(n_estimators=1, subsample=1, colsample_bynode=1, enable_categorical=True, n_jobs=1).fit(
            rows, y
        )

    found: dict[str, list[float]] = {}
    for k, rate in enumerate(RATES):
        learn, rows = hide(X, rate, 100 * trial + k)[0], hide(X_test, rate, 100 * trial + 50 + k)[0]
        model = tree(learn)
        known = learn.assign(**{TARGET: y})  # with the charges, leaves are refitted on likelier completions
        predictor = jf.ExpectedPredictor(model, joint_of(known, trial))
        found.setdefault("expected, refitted", []).append(rmse(predictor.refit(known, y).predict(rows), y_test))
        found.setdefault("expected", []).append(rmse(predictor.predict(rows), y_test))
        hidden = jf.ExpectedPredictor(model, hidden_of(known, trial))
        found.setdefault(HIDDEN, []).append(rmse(hidden.predict(rows), y_test))
        found.setdefault("default direction", []).append(rmse(model.predict(rows), y_test))
        for how in FILLERS:
            fill = Filler(how, learn)
            found.setdefault(how, []).append(rmse(tree(fill(learn)).predict(fill(rows)), y_test))
    return found


def judged(runs: list[dict[str, list[float]]], ours: str) -> list[dict]:
    """Mean errors by rate; whether ours is best or within a standard error of the best, in paired differences."""
    rows = []
    for k, rate in enumerate(RATES):
        errors = {who: np.array([run[who][k] for run in runs]) for who in runs[0]}
        row: dict = {"missing": f"{rate:.0%}"} | {who: float(of.mean()) for who, of in errors.items()}
        best = min((who for who in errors if who != HIDDEN), key=lambda who: errors[who].mean())
        beside, spread = mean_and_error(errors[HIDDEN] - errors["expected"])
        gap, error = mean_and_error(errors[ours] - errors[best])
        rows.append(
            row
            | {
                "best": best,
                "gap": gap,
                "standard error": error,
                "met": "yes" if gap <= error + 1e-6 * errors[best].mean() else "NO",
                "hidden trees - expected": beside,
                "its error": spread,
            }
        )
    return rows


COLOURS = {"expected": "C0", "expected, refitted": "C3", "default direction": "C1", "median": "C2", "kNN": "C4",
           "iterative": "C5", HIDDEN: "C6"}  # fmt: skip


def draw(tables: dict[str, list[dict]], path: Path) -> None:
    """The curves, one panel an experiment; those that leave the panel go on above it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(tables), figsize=(10, 4.2), sharey=True, layout="constrained")
    for ax, (title, rows) in zip(axes, tables.items(), strict=True):
        for who in [k for k in rows[0] if k in COLOURS]:
            width = 2.5 if who.startswith("expected") else 1.2
            errors = [row[who] / 1000 for row in rows]
            ax.plot(RATES, errors, label=who, color=COLOURS[who], linewidth=width, marker="o", markersize=3)
        ax.set(title=title, xlabel="share of cells missing", ylim=(4, 14.5))
        ax.legend(frameon=False, fontsize=8, loc="lower right")
    axes[0].set_ylabel("root mean squared error of charges (1,000)")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments(__doc__, trials=dict(type=int, default=10), picture=dict(action="store_true"))
    frame = table(options.data)
    trials = 2 if options.quick else options.trials
    a, b = [], []
    for trial in range(trials):
        a.append(at_deployment(frame, options.seed + trial))
        b.append(at_learning(frame, options.seed + trial))
        progress(f"trial {trial}")
    tables = {
        "(a) missing at deployment, five trees": judged(a, "expected"),
        "(b) missing at learning and deployment, one tree": judged(b, "expected, refitted"),
    }
    if options.picture:
        draw(tables, Path(__file__).parent.parent / "docs" / "images" / "expected_insurance.png")
    finish("expected_insurance", tables, {"seed": options.seed, "trials": trials, "joint": JOINT}, options.quick)


if __name__ == "__main__":
    main()
