"""Measures the speed of generative forests relative to scikit-learn's random forest, on the gef tables.

Learning and complete rows are ratios within one run (100 trees, all cores, the same rows), medians of several calls.
Kernels are compiled before the clock starts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import arguments, finish, hide, median_seconds, progress, timed, verdict
from gef_tables import features_and_target
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold

from jointforest.learners.generative.classifier import GenerativeForestClassifier

PLAIN: dict[str, Any] = {"min_samples_leaf": 1, "min_spread": 0.1, "smoothing": 1.0, "combine": "trees"}
"""The paper's model: trees to purity, factorised leaves, the average of trees; nothing is chosen out of bag."""


def halves(data: Path, name: str, rows: int | None) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    """70 % of a table's rows to learn from, the rest to ask."""
    X, y = features_and_target(data, name)
    order = np.random.default_rng(0).permutation(len(X))[:rows]
    cut = int(0.7 * len(order))
    asked = X.iloc[order[cut:]].reset_index(drop=True)
    return X.iloc[order[:cut]].reset_index(drop=True), y[order[:cut]], asked


def codes(X: pd.DataFrame) -> np.ndarray:
    """Categorical columns as codes, which scikit-learn's forests can read."""
    columns = [X[c].cat.codes if isinstance(X[c].dtype, pd.CategoricalDtype) else X[c] for c in X]
    return np.column_stack(columns).astype(float)


def against_sklearn(data: Path, name: str, trees: int, repeats: int, rows: int | None) -> list[dict[str, Any]]:
    """Learning, adopting and complete rows of one table."""
    X, y, asked = halves(data, name, rows)
    forest = RandomForestClassifier(trees, max_features="sqrt", n_jobs=-1, random_state=0)
    numbers, asked_numbers = codes(X), codes(asked)
    ours = GenerativeForestClassifier(trees, random_state=0, **PLAIN)
    default = GenerativeForestClassifier(trees, random_state=0)
    kinds = {f"x{j}": "categorical" for j, c in enumerate(X) if isinstance(X[c].dtype, pd.CategoricalDtype)}

    def adopt() -> GenerativeForestClassifier:
        return GenerativeForestClassifier.from_forest(forest, numbers, y, kinds=kinds, random_state=0, **PLAIN)

    few = slice(0, 200)
    GenerativeForestClassifier(2, random_state=0).fit(X.iloc[few], y[few]).predict_proba(asked.iloc[few])
    theirs = median_seconds(lambda: forest.fit(numbers, y), repeats)
    adopt()
    fit = median_seconds(lambda: ours.fit(X, y), repeats)
    adopting = median_seconds(adopt, repeats)
    chosen = median_seconds(lambda: default.fit(X, y), repeats)
    ask_theirs = median_seconds(lambda: forest.predict_proba(asked_numbers), repeats)
    ours.predict_proba(asked)
    ask = median_seconds(lambda: ours.predict_proba(asked), repeats)
    ask_chosen = median_seconds(lambda: default.predict_proba(asked), repeats)
    progress(f"{name}: fit {fit:.2f} s, scikit-learn {theirs:.2f} s")

    def row(what: str, seconds: float, of: float, limit: float | None) -> dict[str, Any]:
        ratio = seconds / of
        goal = verdict(ratio, limit) if limit else {}
        return {"table": name, "what": what, "seconds": seconds, "scikit-learn": of, "ratio": ratio} | goal

    return [
        row("learn", fit, theirs, 1.5),
        row("adopt", adopting, theirs, 0.5),
        row("learn, default (leaf size and beta chosen)", chosen, theirs, None),
        row(f"predict_proba, {len(asked):,} complete rows", ask, ask_theirs, 2.0),
        row("predict_proba, complete rows, default", ask_chosen, ask_theirs, None),
    ]


def missing_cells(data: Path, trees: int, repeats: int, rows: int | None) -> list[dict[str, Any]]:
    """Rows of texture with 30 % of their cells missing, factorised and LearnSPN leaves."""
    X, y, asked = halves(data, "texture", rows)
    masked, _ = hide(asked, 0.3, 0)
    found = []
    for what, settings, limit in (("factorised leaves", {}, 1000.0), ("LearnSPN leaves", {"leaf": "spn"}, 200.0)):
        GenerativeForestClassifier(2, random_state=0, **PLAIN | settings).fit(X[:300], y[:300]).predict(masked[:50])
        forest = GenerativeForestClassifier(trees, random_state=0, **PLAIN | settings)
        learn = median_seconds(lambda f=forest: f.fit(X, y), repeats)
        ask = median_seconds(lambda f=forest: f.predict_proba(masked), repeats)
        goal = verdict(learn, 60.0) if settings else {}
        found.append({"what": f"learn, {what}", "seconds": learn, "rows/s": len(X) / learn} | goal)
        speed = len(masked) / ask
        found.append({"what": f"30 % missing, {what}", "seconds": ask, "rows/s": speed} | verdict(speed, limit, False))
        progress(f"texture, {what}: {learn:.1f} s, {speed:,.0f} rows/s")
    return found


def end_to_end(data: Path, trees: int, rows: int | None) -> list[dict[str, Any]]:
    """Electricity, 5 folds, learn and predict with 30 % of the cells missing."""
    X, y = features_and_target(data, "electricity")
    X, y = X.iloc[:rows], y[:rows]
    found = []
    for what, settings in (("the paper's model", PLAIN), ("default", {})):

        def work(settings: dict[str, Any] = settings) -> float:
            right = []
            for learn, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
                forest = GenerativeForestClassifier(trees, random_state=0, **settings).fit(X.iloc[learn], y[learn])
                masked, _ = hide(X.iloc[test].reset_index(drop=True), 0.3, 0)
                right.append(np.mean(forest.predict(masked) == y[test]))
            return float(np.mean(right))

        seconds, accuracy = timed(work)
        found.append({"what": what, "seconds": seconds, "accuracy": accuracy} | verdict(seconds, 300.0))
        progress(f"electricity, {what}: {seconds:.0f} s")
    return found


def main() -> None:
    options = arguments(
        __doc__,
        repeats=dict(type=int, default=3),
        tables=dict(nargs="+", default=["segment", "texture", "wine", "gesture", "electricity"]),
        only=dict(nargs="+", default=["ratios", "missing", "electricity"]),
    )
    trees, rows = (10, 600) if options.quick else (100, None)
    repeats = 1 if options.quick else options.repeats
    parts = {
        "ratios": lambda: {
            "Against scikit-learn's forest, median seconds": [
                r for name in options.tables for r in against_sklearn(options.data, name, trees, repeats, rows)
            ]
        },
        "missing": lambda: {"texture, 30 % of cells missing": missing_cells(options.data, trees, repeats, rows)},
        "electricity": lambda: {"electricity, 5 folds, learn and predict": end_to_end(options.data, trees, rows)},
    }
    for part in options.only:
        settings = {"trees": trees, "repeats": repeats, "plain": PLAIN}
        finish("generative", parts[part](), settings, options.quick, part)


if __name__ == "__main__":
    main()
