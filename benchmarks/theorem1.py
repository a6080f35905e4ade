"""Checks Theorem 1 of Joints in Random Forests: on complete rows a generative forest predicts as its forest.

For every complete row of the 21 `gef` tables, 100 trees learned on all of them: the largest difference between class
probabilities of an adopted scikit-learn forest and its own `predict_proba`, and between a grown forest and the class
frequencies in the leaves that a plain walk down its trees reaches.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read, timed, verdict
from sklearn.ensemble import RandomForestClassifier

from jointforest.data.frames import encode
from jointforest.learners.base import draw_bootstrap
from jointforest.learners.generative.classifier import GenerativeForestClassifier
from jointforest.models.box_forest.structure import Trees

LIMIT = 1e-12
PLAIN = {"combine": "trees", "min_spread": 0.1, "min_samples_leaf": 1}  # nothing to choose: no part in the theorem


def complete_rows(data: Path, name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Features and target of the rows without missing cells."""
    frame = read(data, f"gef/{name}").dropna().reset_index(drop=True)
    target = json.loads((data / "manifest.json").read_text())[f"gef/{name}"]["target"]
    return frame.drop(columns=target), frame[target].astype(str)


def adopted_difference(X: pd.DataFrame, y: pd.Series, trees: int, seed: int) -> float:
    """Of scikit-learn's forest, on codes of the categories, and the same forest adopted."""
    categories = X.columns[[not pd.api.types.is_numeric_dtype(dtype) for dtype in X.dtypes]]
    codes = X.assign(**{name: X[name].astype("category").cat.codes for name in categories})
    forest = RandomForestClassifier(trees, n_jobs=-1, random_state=seed).fit(codes, y)
    kinds = dict.fromkeys(categories, "categorical")
    ours = GenerativeForestClassifier.from_forest(forest, codes, y, kinds=kinds, random_state=seed, **PLAIN)
    return float(np.abs(ours.predict_proba(codes) - forest.predict_proba(codes)).max())


def grown_difference(X: pd.DataFrame, y: pd.Series, trees: int, seed: int) -> float:
    """Of a grown forest, and the classes of the rows drawn for each tree in the leaves of a plain walk."""
    ours = GenerativeForestClassifier(trees, random_state=seed, **PLAIN).fit(X, y)
    model = ours.joint_.distribution.forest
    cells = encode(model.schema, X.assign(**{model.schema.names[-1]: y}))[0]
    classes = cells[:, -1].astype(int)
    expected = np.zeros((len(X), len(ours.classes_)))
    forest_seed = int(np.random.RandomState(seed).randint(2**31 - 1))
    for t in range(trees):
        leaf = walk(model.trees, int(model.trees.root[t]), cells)
        drawn = draw_bootstrap(len(X), len(X), True, forest_seed, t)
        held = np.array([np.bincount(leaf, drawn * (classes == c)) for c in range(expected.shape[1])])
        expected += (held[:, leaf] / held[:, leaf].sum(axis=0)).T
    return float(np.abs(ours.predict_proba(X) - expected / trees).max())


def walk(trees: Trees, root: int, cells: np.ndarray) -> np.ndarray:
    """Leaf of each row of ``cells`` (n, d), step by step from the root."""
    node = np.full(len(cells), root)
    while (on_way := np.flatnonzero(trees.left[node] >= 0)).size:
        here = node[on_way]
        value = cells[on_way, trees.feature[here]]
        code = np.where(trees.levels_at[here] >= 0, value, 0).astype(int)
        word = np.append(trees.left_levels, np.uint64(0))[trees.levels_at[here] + code // 64]
        has_bit = (word >> (code % 64).astype(np.uint64)) & np.uint64(1) == 1
        left = np.where(trees.levels_at[here] >= 0, has_bit, value <= trees.threshold[here])
        node[on_way] = np.where(left, trees.left[here], trees.right[here])
    return trees.leaf[node]


def main() -> None:
    options = arguments(__doc__, trees=dict(type=int, default=100), tables=dict(nargs="*", default=None))
    trees = 5 if options.quick else options.trees
    names = options.tables or sorted(path.stem for path in (options.data / "gef").glob("*.parquet"))
    rows = []
    for name in names:
        X, y = complete_rows(options.data, name)
        if options.quick:
            X, y = X[:300], y[:300]
        seconds, differences = timed(
            lambda X=X, y=y: [work(X, y, trees, options.seed) for work in (adopted_difference, grown_difference)]
        )
        row = {"table": name, "complete rows": len(X), "adopted": differences[0], "grown": differences[1]}
        rows.append(row | verdict(max(differences), LIMIT) | {"seconds": seconds})
        progress(f"{name}: adopted {differences[0]:.1e}, grown {differences[1]:.1e}, {seconds:.0f} s")
    settings = {"trees": trees, "seed": options.seed, **PLAIN}
    finish("theorem1", {"Largest difference of a class probability": rows}, settings, options.quick)


if __name__ == "__main__":
    main()
