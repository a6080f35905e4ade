"""Repeats Table 1 of Joints in Random Forests: classification with missing cells on 21 tables.

Class-stratified 5 folds; the training rows are complete (mice and dresses have missing cells of their own). Exactly
floor(rate x cells) test cells are made missing, the same and more as the rate grows. 100 trees. Accuracy and log-loss
of every fold go to results/gef_tables.json, one line per fold. A recorded fold is not run again, so a run can be
interrupted and continued. Delete the lines of a table to run it anew. ``--repeats 0`` only prints the tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import arguments, environment, print_results, progress, read, results_path, timed, write_results
from _hidden_classes import HIDDEN, SETTINGS
from _missing_baselines import BASELINES, Fold, Predict
from scipy import stats
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

NAME = "gef_tables"
FOLD_ROWS = "Folds"
FOLDS = 5
COLUMNS = ("surrogate", "Friedman", "mean", "kNN", "MissForest", "GeF", "GeF(LSPN)")
# Accuracy in percent at 30 % missing. Surrogate splits stand here alone: no Python package implements them.
PUBLISHED = {
    "dresses": (45.48, 55.80, 58.18, 56.62, 55.68, 57.12, 57.14),
    "wdbc": (94.96, 94.96, 94.92, 95.59, 94.92, 95.64, 96.26),
    "diabetes": (72.97, 73.35, 71.67, 72.40, 72.46, 73.93, 73.83),
    "vehicle": (71.61, 67.12, 63.27, 71.77, 70.69, 72.39, 72.77),
    "vowel": (78.79, 70.81, 64.51, 85.62, 81.85, 89.25, 89.59),
    "credit-g": (71.97, 72.42, 73.01, 73.06, 73.03, 73.81, 73.97),
    "mice": (95.84, 91.01, 84.91, 97.70, 96.08, 98.38, 99.06),
    "authent": (88.65, 87.13, 84.47, 91.98, 90.74, 90.33, 89.66),
    "cmc": (48.70, 49.80, 47.67, 48.38, 48.28, 49.96, 50.08),
    "segment": (93.32, 84.14, 78.34, 94.25, 93.21, 93.42, 93.41),
    "dna": (90.53, 77.23, 83.91, 89.31, 90.76, 87.42, 82.99),
    "splice": (86.09, 84.76, 84.65, 89.06, 86.18, 91.10, 85.69),
    "krvskp": (73.62, 82.81, 83.58, 86.58, 86.24, 88.35, 88.65),
    "robot": (91.74, 84.73, 89.39, 92.74, 91.72, 92.97, 94.67),
    "texture": (95.31, 89.85, 84.24, 97.13, 95.40, 95.93, 97.12),
    "wine": (84.49, 82.45, 83.20, 85.73, 85.95, 85.22, 85.85),
    "gesture": (58.37, 52.86, 55.41, 61.62, 61.48, 58.65, 60.20),
    "phishing": (81.52, 88.98, 88.02, 92.06, 91.18, 92.99, 93.30),
    "bank": (90.42, 90.30, 90.09, 90.64, 90.40, 90.79, 90.77),
    "jungle": (63.45, 71.91, 66.89, 66.25, 65.67, 72.40, 72.30),
    "electricity": (79.79, 77.47, 73.24, 80.55, 81.21, 82.23, 82.64),
}
# The paper's two models with our leaf densities, and the default, whose leaf size and beta are chosen out of bag.
PLAIN = dict(min_samples_leaf=1, combine="trees")
OURS: dict[str, dict[str, Any]] = {"gef": PLAIN, "gef_spn": PLAIN | dict(leaf="spn"), "default": {}}
COUNTERPART = {
    "mean": "mean",
    "knn": "kNN",
    "missforest": "MissForest",
    "friedman": "Friedman",
    "gef": "GeF",
    "gef_spn": "GeF(LSPN)",
}
METHODS = (*BASELINES, *OURS, *HIDDEN)
Record = dict[str, Any]


def generative_forest(settings: dict[str, Any]) -> Callable[[Fold], Predict]:
    """Our forest as a method of a fold."""

    def learn(fold: Fold) -> Predict:
        from jointforest import GenerativeForestClassifier

        model = GenerativeForestClassifier(n_estimators=fold.n_trees, random_state=fold.seed, **settings)
        return model.fit(fold.frame, fold.y).predict_proba

    return learn


def settings_of(method: str) -> dict[str, Any]:
    """What a record says of how the method was run."""
    return SETTINGS if method in HIDDEN else OURS.get(method, {})


def features_and_target(data: Path, table: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Features, levels as pandas categories, and class labels as text (n,)."""
    frame = read(data, f"gef/{table}")
    target = json.loads((data / "manifest.json").read_text())[f"gef/{table}"]["target"]
    return frame.drop(columns=target), frame[target].astype(str).to_numpy()


def make_missing(frame: pd.DataFrame, rate: float, seed: Iterable[int]) -> pd.DataFrame:
    """Exactly floor(rate x cells) cells made missing; those of a lower rate are among those of a higher one."""
    order = np.random.default_rng(list(seed)).permutation(frame.size)
    hidden = order.argsort() < int(rate * frame.size + 1e-9)  # 0.29 * 100 is a little below 29
    return frame.mask(hidden.reshape(frame.shape))


def folds(frame: pd.DataFrame, y: np.ndarray, options: Any) -> Iterable[tuple[int, int, np.ndarray, np.ndarray]]:
    """(repeat, fold, rows to learn from, rows to test) of all repetitions."""
    for repeat in range(options.repeats):
        splits = StratifiedKFold(FOLDS, shuffle=True, random_state=options.seed + repeat).split(frame, y)
        for k, (learn, test) in enumerate(islice(splits, options.folds)):
            yield repeat, k, learn, test


def load_record(table: str, method: str, settings: dict[str, Any], quick: bool) -> Record:
    """The recorded folds of a table and a method; folds that were recorded with other settings are refused."""
    path = results_path(NAME)
    content = (
        json.loads(path.read_text()) if path.exists() and not quick else {"settings": {}, "tables": {FOLD_ROWS: []}}
    )
    entries = [row for row in content["tables"][FOLD_ROWS] if (row["table"], row["method"]) == (table, method)]
    recorded = content["settings"].get(method)
    if entries and recorded != json.loads(json.dumps(settings)):
        raise SystemExit(f"{table}, {method} was recorded with {recorded}, not with {settings}; delete its lines first")
    return {"table": table, "method": method, "settings": settings, "folds": entries}


def save_record(record: Record, quick: bool) -> None:
    """Replace the lines of a record in the file of results, so that a run of another table may add to it, too."""
    if quick:
        return
    path = results_path(NAME)
    content = json.loads(path.read_text()) if path.exists() else {"settings": {}, "tables": {FOLD_ROWS: []}}
    others = [row for row in content["tables"][FOLD_ROWS] if any(row[k] != record[k] for k in ("table", "method"))]
    rows = sorted([*others, *record["folds"]], key=lambda row: [row[k] for k in ("table", "method", "repeat", "fold")])
    settings = content["settings"] | {record["method"]: record["settings"]}
    facts = {"benchmark": NAME, "environment": environment(), "settings": settings}
    write_results(path, facts | {"tables": {FOLD_ROWS: rows}})


def entry_of(record: Record, repeat: int, k: int) -> Record:
    """The record's entry of a fold, made where there is none."""
    for entry in record["folds"]:
        if (entry["repeat"], entry["fold"]) == (repeat, k):
            return entry
    names = {"table": record["table"], "method": record["method"]}
    record["folds"].append(names | {"repeat": repeat, "fold": k, "rates": {}})
    return record["folds"][-1]


def run_table(table: str, records: dict[str, Record], options: Any) -> None:
    """Run what is not recorded yet; one model a fold answers all rates, and the baselines share one forest."""
    if not options.repeats:
        return
    frame, y = features_and_target(options.data, table)
    if len(frame) > options.missforest_rows:
        records = {method: record for method, record in records.items() if method != "missforest"}
    for repeat, k, learn, test in folds(frame, y, options):
        fold = None
        for method, record in records.items():
            entry = entry_of(record, repeat, k)
            rates = [rate for rate in options.rates if f"{rate:g}" not in entry["rates"]]
            if not rates:
                continue
            seed = options.seed + FOLDS * repeat + k
            fold = fold or Fold(frame.iloc[learn].reset_index(drop=True), y[learn], options.trees, seed)
            make = BASELINES.get(method) or HIDDEN.get(method) or generative_forest(OURS[method])
            seconds, predict = timed(lambda make=make, fold=fold: make(fold))
            entry["seconds to learn"] = round(seconds, 3)
            for rate in rates:
                holed = make_missing(frame.iloc[test].reset_index(drop=True), rate, (options.seed, repeat, k))
                seconds, p = timed(lambda predict=predict, holed=holed: predict(holed))
                entry["rates"][f"{rate:g}"] = {
                    "accuracy": float(np.mean(fold.classes[p.argmax(axis=1)] == y[test])),
                    "log-loss": float(log_loss(y[test], p, labels=fold.classes)),
                    "seconds": round(seconds, 3),
                }
            save_record(record, options.quick)
            last = entry["rates"][f"{rates[-1]:g}"]
            progress(f"{table} {method} {repeat}.{k}: {last['accuracy']:.4f} in {seconds:.2f} s")


def values(record: Record, rate: float, what: str) -> np.ndarray:
    """One figure of each recorded fold."""
    return np.array([e["rates"][f"{rate:g}"][what] for e in record["folds"] if f"{rate:g}" in e["rates"]])


def half_width(x: np.ndarray) -> float:
    """Half of the 95 % t-interval of the mean over folds."""
    return float(stats.t.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else float("nan")


def accuracy_rows(records: dict[str, dict[str, Record]], rate: float) -> list[Record]:
    """One row a table: ours in percent with half of the interval, then the published columns (30 % missing alone)."""
    rows = []
    for table, methods in records.items():
        row: Record = {"table": table}
        for method, record in methods.items():
            x = 100 * values(record, rate, "accuracy")
            row[method] = f"{x.mean():.2f} ±{half_width(x):.2f}" if len(x) else None
        if rate == 0.3:
            row |= {f"[{name}]": f"{v:.2f}" for name, v in zip(COLUMNS, PUBLISHED[table], strict=True)}
        rows.append(row)
    return rows


def loss_rows(records: dict[str, dict[str, Record]], rate: float) -> list[Record]:
    """Mean log-loss in nats, probabilities of 0 clipped as scikit-learn does."""
    rows = []
    for table, methods in records.items():
        found = {method: values(record, rate, "log-loss") for method, record in methods.items()}
        rows.append({"table": table} | {method: float(x.mean()) if len(x) else None for method, x in found.items()})
    return rows


def curve_rows(records: dict[str, dict[str, Record]], rates: list[float]) -> list[Record]:
    """Mean accuracy in percent by rate, over the tables that every method has at every rate."""
    methods = list(next(iter(records.values())))

    def is_whole(found: dict[str, Record]) -> bool:
        return all(len(values(found[method], rate, "accuracy")) for method in methods for rate in rates)

    whole = [table for table, found in records.items() if is_whole(found)]
    rows = []
    for rate in rates:
        row: Record = {"missing": f"{rate:g}", "tables": len(whole)}
        for method in methods:
            means = [100 * values(records[t][method], rate, "accuracy").mean() for t in whole]
            row[method] = float(np.mean(means)) if means else None
        rows.append(row)
    return rows


def compare(name: str, against: str, pairs: list[tuple[np.ndarray, float]]) -> Record:
    """One row: a method's folds against another figure of the same tables."""
    gaps = np.array([x.mean() - other for x, other in pairs])
    widths = np.array([half_width(x) for x, _ in pairs])
    return {
        "method": name,
        "against": against,
        "tables": len(gaps),
        "mean difference": float(gaps.mean()),
        "wins": int(np.sum(gaps > 0)),
        "losses": int(np.sum(gaps < 0)),
        "not below the interval": int(np.sum(gaps >= -widths)),
        "within the interval": int(np.sum(np.abs(gaps) <= widths)),
        "Wilcoxon p": float(stats.wilcoxon(gaps).pvalue) if len(gaps) > 4 and np.any(gaps) else None,
    }


def comparisons(records: dict[str, dict[str, Record]]) -> list[Record]:
    """At 30 % missing: baselines against their published column, ours against every column and every other method."""
    found = {
        method: {
            table: 100 * x
            for table, methods in records.items()
            if method in methods and len(x := values(methods[method], 0.3, "accuracy"))
        }
        for method in METHODS
    }
    published = {name: {table: figures[k] for table, figures in PUBLISHED.items()} for k, name in enumerate(COLUMNS)}
    published["better GeF"] = {table: max(figures[-2:]) for table, figures in PUBLISHED.items()}
    published["best of all columns"] = {table: max(figures) for table, figures in PUBLISHED.items()}
    others = {f"[{name}]": column for name, column in published.items()}
    others |= {m: {t: x.mean() for t, x in tables.items()} for m, tables in found.items()}
    rows = []
    for method, tables in found.items():
        its_own = [f"[{COUNTERPART[method]}]"] if method in COUNTERPART else []
        against = its_own if method in BASELINES else others
        for other in against:
            pairs = [(x, others[other][table]) for table, x in tables.items() if table in others[other]]
            if pairs and other != method:
                rows.append(compare(method, other, pairs))
    return rows


def beside_default(records: dict[str, dict[str, Record]]) -> list[Record]:
    """At 30 % missing, hidden trees and mixtures less the default, on the folds that both have."""

    def by_fold(table: str, method: str, what: str) -> dict[tuple[int, int], float]:
        found = [e for e in records[table].get(method, {"folds": []})["folds"] if "0.3" in e["rates"]]
        return {(e["repeat"], e["fold"]): e["rates"]["0.3"][what] for e in found}

    rows: list[Record] = []
    for table in records:
        row: Record = {"table": table}
        for method in HIDDEN:
            for what, unit in (("accuracy", 100), ("log-loss", 1)):
                own, default = by_fold(table, method, what), by_fold(table, "default", what)
                gaps = [unit * (own[key] - default[key]) for key in sorted(own.keys() & default.keys())]
                row |= {f"{method}, {what}": float(np.mean(gaps)) if gaps else None}
            row[f"{method}: folds"] = len(gaps)
        rows.append(row)
    total: Record = {"table": "better on"}
    for name in rows[0]:
        gaps = [row[name] for row in rows if row[name] is not None] if ", " in name else []
        if gaps:
            good = sum(gap > 0 if "accuracy" in name else gap < 0 for gap in gaps)
            total[name] = f"{good} of {len(gaps)}"
    return [*rows, total]


def main() -> None:
    options = arguments(
        __doc__,
        tables=dict(nargs="+", choices=PUBLISHED, default=list(PUBLISHED), metavar="TABLE"),
        methods=dict(nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD", help=", ".join(METHODS)),
        rates=dict(nargs="+", type=float, default=[round(0.1 * k, 1) for k in range(10)], metavar="RATE"),
        repeats=dict(type=int, default=2, help="repetitions of the 5 folds (default 2)"),
        folds=dict(type=int, default=FOLDS, help="folds of a repetition that are run (default 5, all)"),
        missforest_rows=dict(type=int, default=10_000, help="largest table for missforest (default 10,000 rows)"),
    )
    options.trees = 100
    if options.quick:
        options.tables, options.rates, options.repeats, options.trees = ["wdbc"], [0.0, 0.3], 1, 10
    records: dict[str, dict[str, Record]] = {}
    for table in options.tables:
        records[table] = {
            method: load_record(
                table,
                method,
                {"trees": options.trees, "folds": FOLDS, "seed": options.seed, **settings_of(method)},
                options.quick,
            )
            for method in options.methods
        }
        run_table(table, records[table], options)
    tables = {}
    for rate in options.rates:
        published = "; published in brackets" if rate == 0.3 else ""
        tables[f"Accuracy (%), {rate:.0%} missing, ± 95 % over folds{published}"] = accuracy_rows(records, rate)
        tables[f"Log-loss (nats), {rate:.0%} missing"] = loss_rows(records, rate)
    tables["Mean accuracy (%) over tables"] = curve_rows(records, options.rates)
    tables["30 % missing: comparisons over tables (percent; interval: of the method's folds)"] = comparisons(records)
    if set(HIDDEN) & set(options.methods) and "default" in options.methods and 0.3 in options.rates:
        tables["30 % missing: less the default (points, nats), on the folds that both have"] = beside_default(records)
    print_results(tables, options.quick)


if __name__ == "__main__":
    main()
