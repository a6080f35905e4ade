"""Compares Shapley values with those of shap's TreeExplainer: errors and rows per second.

XGBoost of 100 trees of depth 6. Errors: eight columns of four values in a tree of dependent columns, whose 65,536
cells are summed for the truth. Speed: complete rows of Adult, with levels as codes. Quote ratios of time.
"""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import shap
from _common import arguments, finish, over_seeds, progress, read, timed
from xgboost import XGBClassifier, XGBRegressor

import jointforest as jf

TREES = {"n_estimators": 100, "max_depth": 6, "random_state": 0}
LEVELS, COLUMNS = 4, 8


def adult(options: Any, seed: int) -> list[dict[str, Any]]:
    """Seconds a row of each kind of values, and standard errors as shares of the prediction's spread."""
    frame = read(options.data, "adult_train").dropna().sample(frac=1, random_state=seed).reset_index(drop=True)
    y = (frame.pop("income").astype(str).str.contains(">")).astype(int)
    levels = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c].dtype)]
    frame = frame.assign(**{c: frame[c].astype("category").cat.codes.astype(int) for c in levels})
    n, most = 200, 4000 if options.quick else len(frame)
    test, learn = frame[:n], frame[n:most].reset_index(drop=True)
    model = XGBClassifier(**TREES).fit(learn, y[n:most])
    kinds = dict.fromkeys(levels, "categorical")
    joint = jf.AdversarialForest(n_estimators=10, kinds=kinds, random_state=0).fit(learn).joint_
    predictor = jf.ExpectedPredictor(model, joint, random_state=seed)
    spread = float(np.std(predictor.decision_function(test)))
    cases: list[tuple[str, int, dict[str, Any]]] = [
        (f"conditional, {m} coalitions drawn", options.rows, {"n_coalitions": m}) for m in (256, 512, 1024, 1536)
    ]
    cases += [
        ("conditional, groups='auto', all coalitions, 128 completions each", options.rows,
         {"groups": "auto", "method": "sample"}),
        ("conditional, groups='auto', all coalitions, expectations", 2, {"groups": "auto"}),
        ("interventional, 100 background rows", n, {"interventional": True, "background": learn.head(100)}),
    ]  # fmt: skip
    table = []
    for name, rows, how in cases:
        predictor.shap(test.head(1), **how)
        seconds, found = timed(lambda: predictor.shap(test.head(rows), **how))  # noqa: B023
        error = float(np.sqrt(np.mean(found.standard_error**2))) / spread
        progress(f"{name}: {rows / seconds:.2f} rows/s, {error:.4f}")
        table.append({"values": name, "players": len(found.feature_names), "rows": rows, "rows/s": rows / seconds,
                      "standard error, share of spread": error})  # fmt: skip
    for name, explainer in (
        ("TreeExplainer, path-dependent", shap.TreeExplainer(model)),
        ("TreeExplainer, interventional, 100 background rows", shap.TreeExplainer(model, learn.head(100))),
    ):
        explainer.shap_values(test.head(1))
        seconds, _ = timed(lambda: explainer.shap_values(test))  # noqa: B023
        table.append({"values": name, "players": test.shape[1], "rows": n, "rows/s": n / seconds})
    return table


def known_law(rng: np.random.Generator) -> np.ndarray:
    """Probabilities of all cells, (4,) * 8: each column hangs on one before it, which it mostly repeats or turns."""
    p = np.full((LEVELS,), 1.0 / LEVELS)
    for j in range(1, COLUMNS):
        parent = int(rng.integers(max(0, j - 3), j))
        table = 0.75 * np.eye(LEVELS)[rng.permutation(LEVELS)] + 0.25 * rng.dirichlet(np.ones(LEVELS), LEVELS)
        shape = [1] * (j + 1)
        shape[parent], shape[j] = LEVELS, LEVELS
        p = p[..., None] * table.reshape(shape)
    return p


def true_values(p: np.ndarray, f: np.ndarray, row: np.ndarray, conditional: bool) -> np.ndarray:
    """Shapley values (8,) of one cell: v(S) summed over all cells, of the law or of the law of the rest alone."""
    value = {}
    for size in range(COLUMNS + 1):
        for S in itertools.combinations(range(COLUMNS), size):
            at = tuple(row[j] if j in S else slice(None) for j in range(COLUMNS))
            weight = p[at] if conditional else p.sum(axis=S)
            value[S] = float((weight * f[at]).sum() / weight.sum())
    phi = np.zeros(COLUMNS)
    for S, v in value.items():
        for j in set(range(COLUMNS)) - set(S):
            share = 1.0 / (COLUMNS * math.comb(COLUMNS - 1, len(S)))
            phi[j] += share * (value[tuple(sorted((*S, j)))] - v)
    return phi


def law(options: Any, seed: int) -> list[dict[str, Any]]:
    """Errors against both truths, as shares of the prediction's spread, and seconds a row."""
    rng = np.random.default_rng(seed)
    p = known_law(rng)
    cells = np.array(list(itertools.product(range(LEVELS), repeat=COLUMNS)))
    names = [f"x{j}" for j in range(COLUMNS)]
    drawn = rng.choice(len(cells), 3000 if options.quick else 20_000, p=p.ravel())
    learn = pd.DataFrame(cells[drawn], columns=names)
    used = learn[names[1:]]  # the target depends on x0 through others alone
    y = used["x1"] * used["x3"] - 2.0 * (used["x5"] > 1) + used["x2"] ** 2 / 3.0 + rng.normal(0.0, 0.5, len(used))
    model = XGBRegressor(**TREES).fit(learn, y)
    f = model.predict(pd.DataFrame(cells, columns=names)).astype(float).reshape(p.shape)
    spread = float(np.sqrt((p * f**2).sum() - (p * f).sum() ** 2))
    n = 5 if options.quick else 40
    rows = learn.head(n)
    truth = {c: np.array([true_values(p, f, row, c) for row in rows.to_numpy()]) for c in (True, False)}
    kinds = dict.fromkeys(names, "ordered")
    forest = jf.AdversarialForest(n_estimators=10, kinds=kinds, random_state=0).fit(learn).joint_
    hidden = jf.HiddenTreeForest(kinds=kinds, random_state=0).fit(learn).joint_
    background = learn.sample(100, random_state=0)
    of_forest, of_hidden = jf.ExpectedPredictor(model, forest), jf.ExpectedPredictor(model, hidden)
    along = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    apart = shap.TreeExplainer(model, background, feature_perturbation="interventional")
    put = {"interventional": True, "background": background}
    table = []
    for name, answer in (
        ("conditional, adversarial forest", lambda X: of_forest.shap(X).values),
        ("conditional, hidden trees, 128 draws", lambda X: of_hidden.shap(X).values),
        ("interventional, 100 background rows", lambda X: of_forest.shap(X, **put).values),
        ("TreeExplainer, path-dependent", along.shap_values),
        ("TreeExplainer, interventional, 100 background rows", apart.shap_values),
    ):
        answer(rows.head(1))
        seconds, found = timed(lambda: answer(rows))  # noqa: B023
        off = {c: float(np.sqrt(np.mean((found - truth[c]) ** 2))) / spread for c in truth}
        errors = {"off the conditional truth": off[True], "off the interventional truth": off[False]}
        table.append({"values": name, **errors, "seconds a row": seconds / n})
        progress(str(table[-1]))
    between = float(np.sqrt(np.mean((truth[True] - truth[False]) ** 2))) / spread
    table.append({"values": "one truth off the other", "off the conditional truth": between,
                  "off the interventional truth": between})  # fmt: skip
    return table


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments(__doc__, rows=dict(type=int, default=20), seeds=dict(type=int, nargs="+", default=[0]))
    if options.quick:
        options.rows = 2
    runs = [
        {"A table of known law: root mean squared errors as shares of the prediction's spread": law(options, seed),
         "Adult, complete rows, log-odds": adult(options, seed)}
        for seed in options.seeds
    ]  # fmt: skip
    settings = {"seeds": options.seeds, "rows": options.rows, "model": TREES, "shap": shap.__version__}
    finish("shapley", over_seeds(runs), settings, options.quick)


if __name__ == "__main__":
    main()
