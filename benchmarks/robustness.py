"""Measures whether a high robustness epsilon indicates a right prediction.

The 12 tables of Correia, Peharz, de Campos, "Towards Robust Classification with Deep Generative Forests" (2020): 30
trees, 70 % of the rows to learn, 30 % to test. Accuracy of test rows above thresholds of epsilon, as long as there are
30 of them in all splits together. Areas under the ROC curve of "is this prediction right" for epsilon and for other
measures, means over the splits. ``--picture`` draws the extreme rows of MNIST. Speed: robustness_speed.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from _common import arguments, finish, progress, timed
from gef_tables import features_and_target
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

TABLES = (
    "diabetes",
    "cmc",
    "texture",
    "credit-g",
    "electricity",
    "dna",
    "bank",
    "gesture",
    "jungle",
    "vowel",
    "mice",
    "phishing",
)
THRESHOLDS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)


def tree_variance(clf: Any, X: Any) -> np.ndarray:
    """Variance over trees of their own probability of the class that the mixture predicts."""
    from jointforest.forest.column.tree_answers import tree_answers

    model = clf.joint_.distribution.forest
    evidence = clf._evidence(X)
    _, answer = tree_answers(model, evidence, len(model.columns.slot) - 1)
    predicted = clf.predict_proba(X).argmax(axis=1)
    return np.take_along_axis(answer, predicted[:, None, None], axis=2)[:, :, 0].var(axis=1)


def together(epsilon: np.ndarray, density: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Score of a logistic regression on epsilon and log-density, each row's by the other folds.

    Epsilon alone where fewer than two predictions are wrong: nothing can be learned from them.
    """
    folds = min(5, np.sum(right), np.sum(~right))
    if folds < 2:
        return epsilon
    both = np.column_stack([epsilon, density])
    steps = make_pipeline(QuantileTransformer(n_quantiles=50), LogisticRegression())
    return cross_val_predict(steps, both, right, cv=int(folds), method="predict_proba")[:, 1]


def learn(X: Any, y: np.ndarray, seed: int, n_trees: int) -> tuple[Any, Any, np.ndarray]:
    """A forest of the mixture, and the test rows."""
    from jointforest import GenerativeForestClassifier

    X_learn, X_test, y_learn, y_test = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
    clf = GenerativeForestClassifier(n_trees, combine="mixture", random_state=seed)
    return clf.fit(X_learn.reset_index(drop=True), y_learn), X_test.reset_index(drop=True), y_test


def scores(X: Any, y: np.ndarray, seed: int, n_trees: int) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Epsilon of one split's test rows, whether their predictions are right, and the areas."""
    clf, X, y = learn(X, y, seed, n_trees)
    p = clf.predict_proba(X)
    right = clf.classes_[p.argmax(axis=1)] == y
    epsilon, density = clf.robustness(X), clf.score_samples(X)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(np.where(p > 0, p * np.log(p), 0.0), axis=1)
    found = {
        "epsilon": epsilon,
        "epsilon and density": together(epsilon, density, right),
        "max probability": p.max(axis=1),
        "entropy": -entropy,
        "tree variance": -tree_variance(clf, X),
    }
    if right.all():  # no area: nothing is wrong
        return epsilon, right, dict.fromkeys(found, np.nan)
    return epsilon, right, {name: float(roc_auc_score(right, score)) for name, score in found.items()}


def usefulness(options: Any, table: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A row of accuracies by threshold, and one of areas."""
    X, y = features_and_target(options.data, table)
    if len(X) > options.rows:
        kept = np.random.default_rng(options.seed).permutation(len(X))[: options.rows]
        X, y = X.iloc[kept], y[kept]
    splits = [scores(X, y, options.seed + k, options.trees) for k in range(options.splits)]
    epsilon, right = (np.concatenate([split[k] for split in splits]) for k in (0, 1))
    above = [epsilon >= t for t in THRESHOLDS]
    curve = [100 * right[rows].mean() if rows.sum() >= 30 else None for rows in above]
    points = [x for x in curve if x is not None]
    accuracy = {"table": table, "rows": len(right)} | {f">= {t:g}": x for t, x in zip(THRESHOLDS, curve, strict=True)}
    accuracy |= {"rises by": points[-1] - points[0], "worst step": float(min(np.diff(points), default=0.0))}
    names = list(splits[0][2])
    areas = {"table": table} | {name: float(np.nanmean([split[2][name] for split in splits])) for name in names}
    wins = [max(a[n] for n in names[:2]) >= max(a[n] for n in names[2:]) for _, _, a in splits]
    alone = [a["epsilon"] >= max(a[n] for n in names[2:]) for _, _, a in splits]
    best = "ours" if max(areas[n] for n in names[:2]) >= max(areas[n] for n in names[2:]) else "baseline"
    return accuracy, areas | {"best": best, "splits won": sum(wins), "by epsilon alone": sum(alone)}


def picture(options: Any) -> list[dict[str, Any]]:
    """Accuracy of the most and least robust test rows of MNIST; draws docs/images/mnist_robustness.png."""
    import matplotlib

    matplotlib.use("Agg")
    from jointforest import GenerativeForestClassifier
    from jointforest.plot import extreme_rows

    with np.load(options.data / "mnist.npz") as file:
        X, y = file["x_train"].reshape(-1, 784), file["y_train"]
    rows = np.random.default_rng(options.seed).permutation(len(X))[:3000]
    clf = GenerativeForestClassifier(
        30, combine="mixture", min_samples_leaf=4, smoothing=0.3, min_spread=0.1, random_state=options.seed
    ).fit(X[rows[:2000]].astype(float), y[rows[:2000]])
    X, y = X[rows[2000:]].astype(float), y[rows[2000:]]
    epsilon = clf.robustness(X)
    right = clf.predict(X) == y
    figure = extreme_rows(X, epsilon, (28, 28), k=10)
    figure.tight_layout()
    figure.savefig(Path(__file__).parent.parent / "docs" / "images" / "mnist_robustness.png", dpi=90)
    order = np.argsort(epsilon)
    parts = {"all": order, "least robust quarter": order[: len(order) // 4], "most": order[-(len(order) // 4) :]}
    return [
        {"rows": name, "n": len(i), "accuracy": 100 * right[i].mean(), "mean epsilon": epsilon[i].mean()}
        for name, i in parts.items()
    ]


def main() -> None:
    options = arguments(
        __doc__,
        tables=dict(nargs="+", choices=TABLES, default=list(TABLES), metavar="TABLE"),
        rows=dict(type=int, default=5_000, help="rows drawn of larger tables (default 5,000)"),
        splits=dict(type=int, default=5),
        picture=dict(action="store_true", help="MNIST too, its picture into docs/ (needs matplotlib)"),
    )
    options.trees = 30
    if options.quick:
        options.tables, options.trees, options.splits = ["diabetes", "cmc"], 10, 2
    curves, areas = [], []
    for table in options.tables:
        seconds, (curve, area) = timed(lambda table=table: usefulness(options, table))
        progress(f"{table}: {seconds:.1f} s")
        curves.append(curve)
        areas.append(area)
    tables = {
        "Accuracy (%) of test rows with an epsilon above a threshold": curves,
        "Area under the ROC curve: is the prediction right": areas,
    }
    if options.picture:
        tables["MNIST, 2,000 rows to learn, 1,000 to test"] = picture(options)
    settings = {name: getattr(options, name) for name in ("trees", "seed", "rows", "splits")}
    finish("robustness", tables, settings, options.quick)


if __name__ == "__main__":
    main()
