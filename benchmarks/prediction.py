"""Prediction with missing inputs: `JointClassifier` and `JointRegressor` beside gradient boosting, on 27 tables.

Test cells are hidden completely at random, by blocks of neighbouring columns, and depending on values (large or small
numbers and some levels are missing more often). Models learn from complete rows, and from rows of which 30 % of the
cells are hidden. Peers take missing cells themselves, as they are and trained also on copies of which 30 and 60 % are
hidden ("masked"), or get them imputed. Our members stand beside. Tables have at most so many rows to learn from and to
test as ``--learn`` and ``--test`` say.

Runs continue: each table, fold and learning condition is one line of the results, and what is there is not run again.
After a change of the predictor, ``--renew`` computes its figures anew and keeps those of the peers. Each line has a
digest of the source of the predictor and of hidden trees, which are its joint on most tables.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _common import arguments, print_results, progress, read, results_path
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.model_selection import KFold, StratifiedKFold

import jointforest as jf
from jointforest.estimators import predictor
from jointforest.estimators.predictor.members import ask_members
from jointforest.estimators.predictor.pooling import LEVELS, crps
from jointforest.learners import hidden_tree

NAME, FOLDS = "prediction", 5
GEF = ["authent", "bank", "cmc", "credit-g", "diabetes", "dna", "dresses", "electricity", "gesture", "jungle", "krvskp",
       "mice", "phishing", "robot", "segment", "splice", "texture", "vehicle", "vowel", "wdbc", "wine"]  # fmt: skip
OTHERS = {
    "adult": "adult_train",
    "shoppers": "synth/shoppers",
    "insurance": "insurance",
    "beijing": "synth/beijing",
    "hflights": "flights/hflights",
    "fremtpl2": "large/fremtpl2freq",
}
NUMBERS = ("insurance", "beijing", "hflights", "fremtpl2")
RATES = (0.0, 0.1, 0.3, 0.6, 0.9)
HOW = ("random", "block", "values")
SETS = [(how, rate) for rate in RATES for how in HOW if rate or how == "random"]
CONDITIONS = ("complete", "30 % hidden")
MOST_LEVELS = 250
FEWEST = 50  # predictions in a bin of a calibration curve
OURS, MEMBERS = (
    "predictor",
    (
        "generative forest",
        "joint",
        "expected boosting",
        "expected additive model",
        "boosting on masked copies",
        "boosting",
        "expected boosting on completed rows",
    ),
)
Frame = pd.DataFrame
Predict = Callable[[Frame], np.ndarray]


class Task(NamedTuple):
    """What one method learns from: inputs, and codes of classes or numbers; K classes, 0 of a number."""

    X: Frame
    y: np.ndarray
    K: int
    seed: int


# ---- Tables, and cells to hide.


def load(data: Path, table: str) -> tuple[Frame, np.ndarray, int]:
    """Inputs with levels as categories of text, codes of classes or numbers, and the number of classes."""
    key = OTHERS.get(table, f"gef/{table}")
    target = json.loads((data / "manifest.json").read_text())[key]["target"]
    frame = read(data, key)
    frame = frame[frame[target].notna()].reset_index(drop=True).dropna(axis=1, how="all")  # peers refuse such columns
    y = frame.pop(target)
    for c in frame:
        column = frame[c]
        if not pd.api.types.is_numeric_dtype(column) or column.dtype == bool:
            text = column.astype(object).where(column.notna(), None).map(lambda x: x if x is None else str(x))
            frame[c] = text.astype("category")
    if table in NUMBERS:
        return frame, y.to_numpy(dtype=float), 0
    codes, classes = pd.factorize(y.astype(str), sort=True)
    return frame, codes, len(classes)


def hidden(frame: Frame, how: str, rate: float, rng: np.random.Generator) -> Frame:
    """The frame with about this share of its cells hidden."""
    n, d = frame.shape
    if how == "random":
        return frame.mask(rng.random((n, d)) < rate)
    if how == "block":
        width = np.floor(rate * d + rng.random(n))
        first = rng.integers(0, d, n)
        return frame.mask((np.arange(d) - first[:, None]) % d < width[:, None])
    mask = np.zeros((n, d), bool)
    for j, name in enumerate(frame):
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            weight = rng.random(len(column.cat.categories) + 1)[column.cat.codes.to_numpy()]
        else:
            weight = column.rank(pct=True).fillna(0.5).to_numpy()
            weight = weight if rng.random() < 0.5 else 1 - weight
        weight = weight**2 + 1e-3
        low, high = 0.0, 1e5
        for _ in range(60):
            factor = (low + high) / 2
            low, high = (factor, high) if np.minimum(factor * weight, 0.99).mean() < rate else (low, factor)
        mask[:, j] = rng.random(n) < np.minimum(low * weight, 0.99)
    return frame.mask(mask)


def folds(X: Frame, y: np.ndarray, K: int, options: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn from, and rows to test, of each fold; some of them, where there are more than wanted."""
    kind = StratifiedKFold if K else KFold
    for k, (learn, test) in enumerate(kind(FOLDS, shuffle=True, random_state=options.seed).split(X, y)):
        rng = np.random.default_rng([options.seed, k])
        yield rng.permutation(learn)[: options.learn], rng.permutation(test)[: options.test]


# ---- Peers.


def masked(task: Task) -> Task:
    """The rows, and copies of which 30 and 60 % of the cells are hidden."""
    rng = np.random.default_rng(task.seed)
    parts = [task.X, *(hidden(task.X, "random", rate, rng) for rate in (0.3, 0.6))]
    return task._replace(X=pd.concat(parts, ignore_index=True), y=np.tile(task.y, 3))


def fit_xgboost(task: Task) -> Predict:
    from xgboost import XGBClassifier, XGBRegressor

    settings = dict(n_estimators=200, learning_rate=0.1, max_depth=6, enable_categorical=True, n_jobs=1)
    model = (XGBClassifier if task.K else XGBRegressor)(**settings, random_state=task.seed).fit(task.X, task.y)
    return model.predict_proba if task.K else model.predict


def fit_lightgbm(task: Task) -> Predict:
    from lightgbm import LGBMClassifier, LGBMRegressor

    settings = dict(n_estimators=200, learning_rate=0.05, num_leaves=31, n_jobs=1, verbose=-1)

    def plain(frame: Frame) -> Frame:  # it takes no punctuation in names
        return frame.set_axis([f"c{j}" for j in range(frame.shape[1])], axis=1)

    model = (LGBMClassifier if task.K else LGBMRegressor)(**settings, random_state=task.seed)
    model.fit(plain(task.X), task.y)
    return lambda frame: (model.predict_proba if task.K else model.predict)(plain(frame))


def fit_catboost(task: Task) -> Predict:
    from catboost import CatBoostClassifier, CatBoostRegressor

    def plain(frame: Frame) -> Frame:  # it takes no missing categories
        levels = {c: frame[c].astype(object).where(frame[c].notna(), "?") for c in categories}
        return frame.assign(**levels)

    categories = [c for c in task.X if isinstance(task.X[c].dtype, pd.CategoricalDtype)]
    settings = dict(iterations=500, thread_count=1, verbose=0, allow_writing_files=False, cat_features=categories)
    model = (CatBoostClassifier if task.K else CatBoostRegressor)(**settings, random_seed=task.seed)
    model.fit(plain(task.X), task.y)
    return lambda frame: (model.predict_proba if task.K else model.predict)(plain(frame))


def fit_hist(task: Task) -> Predict:
    settings = dict(max_iter=300, learning_rate=0.05, early_stopping=True, categorical_features="from_dtype")
    kind = HistGradientBoostingClassifier if task.K else HistGradientBoostingRegressor
    keep = {
        c: task.X[c].value_counts().index[:MOST_LEVELS].tolist()
        for c in task.X
        if isinstance(task.X[c].dtype, pd.CategoricalDtype)
    }

    def plain(frame: Frame) -> Frame:  # it takes at most 255 levels
        return frame.assign(**{c: frame[c].cat.set_categories(levels) for c, levels in keep.items()})

    model = kind(**settings, random_state=task.seed).fit(plain(task.X), task.y)
    return lambda frame: (model.predict_proba if task.K else model.predict)(plain(frame))


def imputed(make: Callable[[], Any]) -> Callable[[Task], Predict]:
    """HistGradientBoosting after imputation of numbers and codes; levels are codes by frequency, then categories."""

    def fit(task: Task) -> Predict:
        keep = {
            c: task.X[c].value_counts().index[:MOST_LEVELS].tolist()
            for c in task.X
            if isinstance(task.X[c].dtype, pd.CategoricalDtype)
        }

        def numbers(frame: Frame) -> np.ndarray:
            columns = []
            for c in frame:
                if c not in keep:
                    columns.append(frame[c].to_numpy(dtype=float))
                    continue
                code = frame[c].cat.set_categories(keep[c]).cat.codes.to_numpy().astype(float)
                columns.append(np.where(code < 0, np.nan, code))
            return np.column_stack(columns)

        imputer = make().set_params(keep_empty_features=True)

        def plain(cells: np.ndarray) -> np.ndarray:
            for j, c in enumerate(task.X):
                if c in keep:
                    cells[:, j] = np.clip(np.rint(cells[:, j]), 0, max(len(keep[c]) - 1, 0))
            return cells

        kind = HistGradientBoostingClassifier if task.K else HistGradientBoostingRegressor
        is_level = [c in keep for c in task.X]
        settings = dict(max_iter=300, learning_rate=0.05, early_stopping=True, categorical_features=is_level)
        model = kind(**settings, random_state=task.seed)
        model.fit(plain(imputer.fit_transform(numbers(task.X))), task.y)
        answer = model.predict_proba if task.K else model.predict
        return lambda frame: answer(plain(imputer.transform(numbers(frame))))

    return fit


PEERS: dict[str, Callable[[Task], Predict]] = {
    "XGBoost": fit_xgboost,
    "LightGBM": fit_lightgbm,
    "CatBoost": fit_catboost,
    "HistGB": fit_hist,
    "XGBoost, masked": lambda task: fit_xgboost(masked(task)),
    "LightGBM, masked": lambda task: fit_lightgbm(masked(task)),
    "CatBoost, masked": lambda task: fit_catboost(masked(task)),
    "HistGB, masked": lambda task: fit_hist(masked(task)),
    "mean, HistGB": imputed(lambda: SimpleImputer(strategy="mean")),
    "iterative, HistGB": imputed(lambda: IterativeImputer(max_iter=3, n_nearest_features=15, random_state=0)),
}


# ---- One line of results.


def source() -> str:
    """A digest of the source of the predictor, and of the learner of its joint."""
    files = [path for module in (predictor, hidden_tree) for path in sorted(Path(module.__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def measure(options: Any, table: str, k: int, condition: str, before: dict[str, Any] | None) -> dict[str, Any]:
    """All methods on one fold of a table; the peers' figures are those of an earlier line, if there is one."""
    X, y, K = load(options.data, table)
    learn, test = list(folds(X, y, K, options))[k]
    rng = np.random.default_rng([options.seed, k, CONDITIONS.index(condition)])
    X_learn, X_test = (X.iloc[rows].reset_index(drop=True) for rows in (learn, test))
    if condition != "complete":
        X_learn = hidden(X_learn, "random", 0.3, rng)
    task = Task(X_learn, y[learn], K, k)
    rows = pd.concat([hidden(X_test, how, rate, rng) for how, rate in SETS], ignore_index=True)
    truth = np.tile(y[test], len(SETS))
    line: dict[str, Any] = {"table": table, "fold": k, "condition": condition, "learn": len(learn), "test": len(test)}
    line |= {"version": jf.__version__, "seed": options.seed, "source": source()}
    same = ("learn", "test", "seed")
    if before is not None and any(before[key] != line[key] for key in same):
        raise SystemExit(f"{table}: the earlier line has {[before[key] for key in same]}; give --learn, --test, --seed")
    for name, fit in PEERS.items():
        if before is not None:
            line[name] = before[name]
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            if K:
                line[name] = class_figures(fit(task)(rows), truth, K)
            else:
                line[name] = peer_figures(fit, task, rows, truth)
            line[name]["seconds"] = round(time.perf_counter() - start, 1)
        progress(f"{table} {k} {condition} {name}: {first(line[name])}, {line[name]['seconds']} s")
    line |= our_figures(task, rows, truth)
    progress(f"{table} {k} {condition} {OURS}: {first(line[OURS])}, {line[OURS]['seconds']} s")
    return line


def first(figures: dict[str, Any]) -> list[float]:
    """The first figures of a method, at random patterns."""
    loss = figures.get("log-loss") or figures["mse"]
    return [loss[i] for i, (how, _) in enumerate(SETS) if how == "random"]


def by_set(loss: np.ndarray) -> list[float]:
    """Means over the test rows of each set of hidden cells."""
    return [float(f"{x:.4g}") for x in loss.reshape(len(SETS), -1).mean(axis=1)]


def class_figures(p: np.ndarray, truth: np.ndarray, K: int) -> dict[str, Any]:
    """Log-loss, with probabilities of at least 1e-4, and accuracy."""
    p = np.clip(p, 1e-4, None)
    p = p / p.sum(axis=1, keepdims=True)
    if p.shape[1] != K:
        raise ValueError(f"{p.shape[1]} classes, expected {K}")
    return {
        "log-loss": by_set(-np.log(p[np.arange(len(p)), truth])),
        "accuracy": by_set((p.argmax(axis=1) == truth).astype(float)),
    }


def number_figures(mean: np.ndarray, quantiles: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """Squared error of means, CRPS of quantiles, and coverage and width of intervals of 90 %."""
    low, high = (np.array([np.interp(q, LEVELS, row) for row in quantiles]) for q in (0.05, 0.95))
    return {
        "mse": by_set((mean - truth) ** 2),
        "CRPS": by_set(crps(quantiles, truth)),
        "coverage": by_set(((low <= truth) & (truth <= high)).astype(float)),
    }


def peer_figures(fit: Callable[[Task], Predict], task: Task, rows: Frame, truth: np.ndarray) -> dict[str, Any]:
    """A peer that predicts a number: its distribution is that of residuals of validation rows with as much hidden."""
    rng = np.random.default_rng([task.seed, 7])
    order = rng.permutation(len(task.y))
    held, rest = order[: len(order) // 4], order[len(order) // 4 :]
    trial = fit(task._replace(X=task.X.iloc[rest].reset_index(drop=True), y=task.y[rest]))
    residual = {}
    for rate in RATES:
        of_rate = hidden(task.X.iloc[held].reset_index(drop=True), "random", rate, rng)
        residual[rate] = np.quantile(task.y[held] - trial(of_rate), LEVELS)
    mean = fit(task)(rows)
    spread = np.repeat([residual[rate] for _, rate in SETS], len(truth) // len(SETS), axis=0)
    return number_figures(mean, mean[:, None] + spread, truth)


def our_figures(task: Task, rows: Frame, truth: np.ndarray) -> dict[str, Any]:
    """The predictor, and its members alone."""
    kind = jf.JointClassifier if task.K else jf.JointRegressor
    start = time.perf_counter()
    model = kind(random_state=task.seed, n_jobs=1).fit(task.X, task.y)
    fitted = time.perf_counter() - start
    found: dict[str, Any] = {}
    start = time.perf_counter()
    if task.K:
        p = model.predict_proba(rows)
        found[OURS] = class_figures(p, truth, task.K) | {"calibration": reliability(p, truth)}
    else:
        evidence = model._evidence(rows)
        found[OURS] = number_figures(model.predict(rows), model._quantiles(evidence, LEVELS), truth)
    found[OURS] |= {"seconds": round(fitted, 1), "seconds to predict": round(time.perf_counter() - start, 1)}
    found[OURS]["weights"] = {
        one.name: [round(w, 2) for w in one.weight] for one in model.fitted_by.members if one.weight
    }
    evidence = model._evidence(rows)
    for name, answer in ask_members(model._members, model.joint_.distribution, evidence, model._seed).items():
        if task.K:
            found[name] = class_figures(np.nan_to_num(answer.value, nan=1.0 / task.K), truth, task.K)
        else:
            found[name] = {"mse": by_set((answer.value[:, 0] - truth) ** 2)}
            if answer.quantiles is not None:
                found[name]["CRPS"] = by_set(crps(answer.quantiles, truth))
    return found


def reliability(p: np.ndarray, truth: np.ndarray) -> dict[str, list[list[float]]]:
    """By rate of cells hidden at random: rows, mean probability and frequency of all classes in ten bins."""
    K, found = p.shape[1], {}
    for i, (how, rate) in enumerate(SETS):
        if how != "random":
            continue
        n = len(truth) // len(SETS)
        here = slice(i * n, (i + 1) * n)
        q, hit = p[here].ravel(), (truth[here, None] == np.arange(K)).ravel()
        place = np.minimum((q * 10).astype(int), 9)
        count = np.bincount(place, minlength=10)
        some = np.maximum(count, 1)
        mean, share = np.bincount(place, q, 10) / some, np.bincount(place, hit, 10) / some
        found[f"{rate:g}"] = [[int(c), round(float(m), 3), round(float(s), 3)]
                              for c, m, s in zip(count, mean, share, strict=True)]  # fmt: skip
    return found


# ---- What the lines say together.


Key = tuple[str, int, str]


def recorded(path: Path) -> dict[Key, dict[str, Any]]:
    """The lines of a file of results by table, fold and condition, the last of each."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {(line["table"], line["fold"], line["condition"]): line for line in lines}


def tables_of(lines: list[dict[str, Any]], condition: str) -> dict[str, list[dict[str, Any]]]:
    """All tables of results of one learning condition."""
    mine = [line for line in lines if line["condition"] == condition]
    if not mine:
        return {}
    n_folds = {t: sum(line["table"] == t for line in mine) for t in dict.fromkeys(line["table"] for line in mine)}
    title = f"Learned from rows, {condition}"
    losses = {t: mean_losses([line for line in mine if line["table"] == t]) for t in n_folds}
    found = {
        f"{title}: mean rank of log-loss or squared error": ranks(losses),
        f"{title}: shares of (table, rate, mechanism)": shares(losses),
        f"{title}: log-loss or root mean squared error, cells hidden at random": each_table(losses, n_folds),
    }
    numbers = [line for line in mine if line["table"] in NUMBERS]
    if numbers:
        found[f"{title}: CRPS, relative to the predictor, and coverage of its intervals of 90 %"] = scores(numbers)
    classes = [line for line in mine if line["table"] not in NUMBERS]
    if classes:
        found[f"{title}: calibration of the predictor, all classes of all tables"] = calibration(classes)
    found[f"{title}: seconds on one core"] = seconds(mine)
    return found


def mean_losses(lines: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Mean over folds of each method's losses, (sets,): log-losses, or squared errors."""
    methods = [m for m in (*PEERS, *MEMBERS, OURS) if all(m in line for line in lines)]
    what = "mse" if lines[0]["table"] in NUMBERS else "log-loss"
    return {m: np.mean([line[m][what] for line in lines], axis=0) for m in methods}


def ranks(losses: dict[str, dict[str, np.ndarray]]) -> list[dict[str, Any]]:
    """Mean rank of each method at each rate, over tables and mechanisms; members that a table did not keep are last."""
    rows = []
    methods = (*PEERS, *MEMBERS, OURS)
    place: dict[str, dict[float, list[float]]] = {m: {rate: [] for rate in RATES} for m in methods}
    for found in losses.values():
        for i, (_, rate) in enumerate(SETS):
            loss = np.array([found[m][i] if m in found else np.inf for m in methods])
            rank = [(loss < x).sum() + ((loss == x).sum() + 1) / 2 for x in loss]
            for m, r in zip(methods, rank, strict=True):
                place[m][rate].append(float(r))
    for m in methods:
        rows.append({"method": m} | {f"{rate:.0%}": float(np.mean(place[m][rate])) for rate in RATES})
    return rows


def shares(losses: dict[str, dict[str, np.ndarray]]) -> list[dict[str, Any]]:
    """How often the predictor is near the best method, and better than the best peer; errors of numbers in relation."""
    rows = []
    for rate in (*RATES, None):
        near, better, cases = 0, 0, 0
        for table, found in losses.items():
            is_number = table in NUMBERS
            for i, (_, here) in enumerate(SETS):
                if rate is not None and here != rate:
                    continue
                if rate is None and here == 0.0:
                    continue
                own = found[OURS][i]
                best = min(found[m][i] for m in found if m != OURS)
                peer = min(found[m][i] for m in found if m in PEERS)
                near += own <= 1.02 * best if is_number else own <= best + 0.01
                better += own < peer
                cases += 1
        rows.append(
            {
                "hidden": "any" if rate is None else f"{rate:.0%}",
                "cases": cases,
                "at most .01 (numbers: 2 %) above the best single method": near / cases,
                "better than the best peer": better / cases,
            }
        )
    return rows


def each_table(losses: dict[str, dict[str, np.ndarray]], n_folds: dict[str, int]) -> list[dict[str, Any]]:
    """The predictor, the best peer and the best member of each table at three rates."""
    rows = []
    for table, found in losses.items():
        row: dict[str, Any] = {"table": table, "folds": n_folds[table]}
        for rate in (0.0, 0.3, 0.6):
            i = SETS.index(("random", rate))
            value = {m: float(np.sqrt(x[i]) if table in NUMBERS else x[i]) for m, x in found.items()}
            peer = min(PEERS, key=lambda m: value[m])
            member = min((m for m in MEMBERS if m in value), key=lambda m: value[m])
            row |= {
                f"{rate:.0%} {OURS}": value[OURS],
                f"{rate:.0%} best peer": value[peer],
                f"{rate:.0%} which": peer,
                f"{rate:.0%} best member": value[member],
            }
        rows.append(row)
    return rows


def scores(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """CRPS of the best peer and of the members, over that of the predictor; coverage."""
    rows = []
    for table in dict.fromkeys(line["table"] for line in lines):
        mine = [line for line in lines if line["table"] == table]
        for rate in RATES:
            at = [i for i, (_, here) in enumerate(SETS) if here == rate]
            value = {
                m: float(np.mean([np.array(line[m]["CRPS"])[at] for line in mine]))
                for m in (*PEERS, *MEMBERS, OURS)
                if all("CRPS" in line.get(m, {}) for line in mine)
            }
            peer = min(PEERS, key=lambda m: value[m])
            row: dict[str, Any] = {"table": table, "hidden": f"{rate:.0%}", "CRPS": value[OURS], "best peer": peer}
            row["its CRPS / ours"] = value[peer] / value[OURS]
            row |= {f"{m} / ours": value[m] / value[OURS] for m in MEMBERS if m in value}
            row["coverage"] = float(np.mean([np.array(line[OURS]["coverage"])[at] for line in mine]))
            rows.append(row)
    return rows


def calibration(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Frequency of classes whose probability lies in each bin, by rate, and the mean distance (ECE)."""
    rows: list[dict[str, Any]] = []
    for rate in RATES:
        n, mean, share = curve(lines, rate).T
        row: dict[str, Any] = {"hidden": f"{rate:.0%}"}
        row |= {f"bin {k}": f"{m:.2f} > {s:.2f}" for k, (m, s) in enumerate(zip(mean, share, strict=True))}
        row["mean distance"] = float((n * np.abs(mean - share)).sum() / n.sum())
        rows.append(row)
    return rows


def picture(lines: list[dict[str, Any]], path: Path) -> None:
    """Frequency of classes against their predicted probability, a curve for each rate of cells hidden at random."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(CONDITIONS), figsize=(8.4, 4.0), sharey=True)
    for ax, condition in zip(axes, CONDITIONS, strict=True):
        mine = [line for line in lines if line["condition"] == condition and "calibration" in line[OURS]]
        ax.plot([0, 1], [0, 1], color="#999999", lw=0.8, ls=":")
        for rate in RATES if mine else ():
            bins = [row for row in curve(mine, rate) if row[0] >= FEWEST]
            ax.plot(*zip(*[row[1:] for row in bins], strict=True), marker="o", ms=3, lw=1.2, label=f"{rate:.0%}")
        ax.set_title(
            f"learned from {'complete rows' if condition == 'complete' else 'rows with 30 % hidden'}", fontsize=10
        )
        ax.set_xlabel("predicted probability of a class")
        ax.set_aspect("equal")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("frequency of the class")
    axes[0].legend(title="cells hidden", fontsize=8, title_fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    plt.close(figure)
    progress(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def curve(lines: list[dict[str, Any]], rate: float) -> np.ndarray:
    """Of ten bins of predicted probabilities: how many there are, their mean, and the frequency of the classes."""
    cells = np.array([line[OURS]["calibration"][f"{rate:g}"] for line in lines])  # lines, bins, (n, mean, frequency)
    n = cells[:, :, 0].sum(axis=0)
    return np.column_stack([n, (cells[:, :, :1] * cells[:, :, 1:]).sum(axis=0) / np.maximum(n, 1)[:, None]])


# ---- The tables of the page docs/experiments/prediction-missing-cells.md, in Markdown.


def page(lines: list[dict[str, Any]]) -> str:
    """All tables of the page that come from these lines, each under what it shows."""
    of = {c: [line for line in lines if line["condition"] == c] for c in CONDITIONS}
    losses = {
        c: {
            t: mean_losses([line for line in mine if line["table"] == t])
            for t in dict.fromkeys(x["table"] for x in mine)
        }
        for c, mine in of.items()
    }
    shown = [f"{len(losses[c])} tables and {len(of[c])} lines learned from rows, {c}" for c in CONDITIONS]
    kept = sum("expected additive model" in line for line in lines)
    native = sum("boosting" in line for line in lines)
    sources = {line["source"]: [] for line in lines}
    for line in lines:
        sources[line["source"]].append(f"{line['table']} {line['fold']} {line['condition']}")
    parts = [
        f"{'; '.join(shown)}. The additive model is kept in {kept} of {len(lines)} runs, boosting by its own rule in "
        f"{native}.",
        *(f"Measured with the source {name}: {', '.join(keys)}." for name, keys in sources.items()),
        "Mean ranks",
        markdown(["method", *[f"{rate:.0%}" for _ in CONDITIONS for rate in RATES]], page_of_ranks(losses)),
        "Shares of cases",
        markdown(
            ["cells hidden"]
            + [f"{what}, {c}" for c in CONDITIONS for what in ("near the best", "better than the best peer")],
            page_of_shares(losses),
        ),
    ]
    for c in CONDITIONS:
        head = ["table"] + [x for r in ("0 %", "30 %", "60 %") for x in (f"{r}: predictor", "best peer", "which")]
        parts += [f"Each table, learned from rows, {c}", markdown(head, page_of_tables(losses[c]))]
    head = ["table", "cells hidden"] + [x for c in CONDITIONS for x in (f"CRPS ({c})", "of the best peer", "coverage")]
    parts += ["CRPS and coverage", markdown(head, page_of_scores(of))]
    parts += ["Calibration", markdown(["learned from", *[f"{rate:.0%}" for rate in RATES]], page_of_calibration(of))]
    return "\n\n".join(parts)


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def page_of_ranks(losses: dict[str, dict[str, dict[str, np.ndarray]]]) -> list[list[str]]:
    """Our mean ranks first, then those of the members and of the peers; "-" of a member that is not there."""
    found = {c: {row["method"]: row for row in ranks(mine)} for c, mine in losses.items() if mine}
    rows = []
    for m in (OURS, *MEMBERS, *PEERS):
        row = [m]
        for c in CONDITIONS:
            is_there = c in found and any(m in methods for methods in losses[c].values())
            row += [f"{found[c][m][f'{rate:.0%}']:.1f}" if is_there else "-" for rate in RATES]
        rows.append(row)
    return rows


def page_of_shares(losses: dict[str, dict[str, dict[str, np.ndarray]]]) -> list[list[str]]:
    """Shares of the cases at each rate, and of those with hidden cells."""
    each = [shares(losses[c]) for c in CONDITIONS if losses[c]]
    return [
        ["any but 0%" if rows[0]["hidden"] == "any" else rows[0]["hidden"]]
        + [f"{value:.0%}" for row in rows for value in list(row.values())[2:]]
        for rows in zip(*each, strict=True)
    ]


def page_of_tables(losses: dict[str, dict[str, np.ndarray]]) -> list[list[str]]:
    """The predictor and the best peer, the better one in bold."""
    rows = []
    for row in each_table(losses, dict.fromkeys(losses, 0)):
        cells = [row["table"]]
        for rate in ("0%", "30%", "60%"):
            ours, peer = row[f"{rate} {OURS}"], row[f"{rate} best peer"]
            text = [f"{x:,.3f}" if x < 5 else f"{x:,.1f}" if x < 1000 else f"{x:,.0f}" for x in (ours, peer)]
            bold = [f"**{text[0]}**", text[1]] if ours <= peer else [text[0], f"**{text[1]}**"]
            cells += [*bold, row[f"{rate} which"]]
        rows.append(cells)
    return rows


def page_of_scores(of: dict[str, list[dict[str, Any]]]) -> list[list[str]]:
    """CRPS of the predictor and of the best peer, and the coverage of its intervals, at three rates."""
    found = {
        c: {(row["table"], row["hidden"]): row for row in scores([line for line in mine if line["table"] in NUMBERS])}
        for c, mine in of.items()
    }
    rows = []
    for key in dict.fromkeys(key for mine in found.values() for key in mine):
        if key[1] not in ("0%", "30%", "60%"):
            continue
        row = list(key)
        for c in CONDITIONS:
            here = found[c].get(key)
            if here is None:
                row += ["-", "-", "-"]
                continue
            ours, peer = here["CRPS"], here["CRPS"] * here["its CRPS / ours"]
            row += [f"{x:,.3f}" if x < 1 else f"{x:,.1f}" if x < 1000 else f"{x:,.0f}" for x in (ours, peer)]
            row.append(f"{here['coverage']:.2f}")
        rows.append(row)
    return rows


def page_of_calibration(of: dict[str, list[dict[str, Any]]]) -> list[list[str]]:
    """Mean distance of predicted probabilities and frequencies at each rate."""
    rows = []
    for c, mine in of.items():
        classes = [line for line in mine if line["table"] not in NUMBERS]
        if classes:
            rows.append([c] + [f"{row['mean distance']:.3f}" for row in calibration(classes)])
    return rows


def seconds(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean seconds to learn and to predict."""
    rows = [{"method": m, "seconds": float(np.mean([line[m]["seconds"] for line in lines]))} for m in (*PEERS, OURS)]
    rows[-1]["of them to predict"] = float(np.mean([line[OURS]["seconds to predict"] for line in lines]))
    return rows


def main() -> None:
    every = [*GEF, *OTHERS]
    options = arguments(
        __doc__,
        tables=dict(nargs="*", choices=every, default=every, metavar="TABLE"),
        folds=dict(type=int, nargs="*", default=list(range(FOLDS)), help="numbers of the folds that are run"),
        conditions=dict(nargs="*", choices=CONDITIONS, default=list(CONDITIONS)),
        learn=dict(type=int, default=3_000, help="most rows to learn from (default 3,000)"),
        test=dict(type=int, default=1_000, help="most rows to test (default 1,000)"),
        seconds=dict(type=float, default=float("inf"), help="no new line is begun after so many seconds"),
        renew=dict(action="store_true", help="our figures of recorded lines, where the predictor has changed"),
        show=dict(action="store_true", help="show what is recorded, run nothing"),
        table=dict(action="store_true", help="print the tables of the page on prediction, run nothing"),
    )
    if options.quick:
        options.tables, options.folds, options.conditions = ["diabetes", "insurance"], [0], ["complete"]
        options.learn, options.test = 300, 100
    path = results_path(f"{NAME}.quick" if options.quick else NAME).with_suffix(".jsonl")
    if options.quick:
        path.unlink(missing_ok=True)
    start = time.monotonic()
    wanted = [(t, k, c) for c in options.conditions for k in options.folds for t in options.tables]
    for key in [] if options.show or options.table else wanted:
        before = recorded(path).get(key)
        is_due = before is None if not options.renew else before is not None and before.get("source") != source()
        if not is_due or time.monotonic() - start > options.seconds:
            continue
        line = measure(options, *key, before)
        with path.open("a") as file:  # appended, so that runs of several tables may go on at once
            file.write(json.dumps(line) + "\n")
    lines = list(recorded(path).values())
    lines.sort(key=lambda line: (CONDITIONS.index(line["condition"]), every.index(line["table"]), line["fold"]))
    if options.table:
        print(page(lines))
        return
    if options.renew:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    if not options.quick:
        picture(lines, Path(__file__).parents[1] / "docs" / "images" / "prediction_calibration.png")
    tables = {}
    for condition in CONDITIONS:
        tables |= tables_of(lines, condition)
    print_results(tables, options.quick)


if __name__ == "__main__":
    main()
