"""Random small ensembles over the columns of a random model, and random rows for both."""

from __future__ import annotations

import numpy as np

from jointforest.ensembles.table import Ensemble
from jointforest.models.box_forest.structure import Forest

from .evidence import random_point
from .models import cell_number, random_number


def random_ensemble(rng: np.random.Generator, model: Forest, n_trees=3, max_depth=3, n_outputs=1, link="identity"):
    """An ensemble whose features are the columns in another order, dates left out, some of them with other levels.

    Levels come in another order; some are not known to the model, and some of its own are not known to the joint.
    Splits are drawn without regard to those above them, so that empty leaves occur.
    """
    columns = [c for c in model.schema.columns if c.kind != "datetime"]
    columns = [columns[k] for k in rng.permutation(len(columns))]
    categories: list[tuple | None] = []
    for c in columns:
        if not c.is_categorical or (c.kind == "boolean" and rng.random() < 0.5):
            categories.append(None)
            continue
        known = [level for level in c.levels if rng.random() < 0.8] or list(c.levels[:1])
        if c.kind != "boolean":
            known.append("level of the model alone")
        categories.append(tuple(known[k] for k in rng.permutation(len(known))))
    feature, threshold, levels_at, words = [], [], [], []
    left, right, leaf, other_left, missing_left = [], [], [], [], []
    n_leaves = 0

    def add(depth: int) -> int:
        nonlocal n_leaves
        node = len(feature)
        for column, value in (
            (feature, -1), (threshold, 0.0), (levels_at, -1), (left, -1), (right, -1), (leaf, -1),
            (other_left, False), (missing_left, bool(rng.random() < 0.5)),
        ):  # fmt: skip
            column.append(value)
        if depth == 0 or rng.random() < 0.15:
            leaf[node] = n_leaves
            n_leaves += 1
            return node
        f = int(rng.integers(len(columns)))
        feature[node] = f
        if categories[f] is not None:
            levels_at[node] = len(words)
            other_left[node] = bool(rng.random() < 0.5)
            bits = rng.random(-(-len(categories[f]) // 64) * 64) < 0.5
            words.extend(np.packbits(bits, bitorder="little").view("<u8").tolist())
        elif columns[f].is_categorical:
            threshold[node] = float(rng.choice([-0.5, 0.0, 0.5, 1.0]))
        else:
            threshold[node] = random_threshold(rng, columns[f])
        left[node] = add(depth - 1)
        right[node] = add(depth - 1)
        return node

    root = [add(max_depth) for _ in range(n_trees)]
    return Ensemble(
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold, np.float64),
        levels_at=np.array(levels_at, np.int32),
        left_levels=np.array(words, np.uint64),
        missing_left=np.array(missing_left),
        other_left=np.array(other_left),
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        leaf=np.array(leaf, np.int32),
        root=np.array(root, np.int32),
        value=rng.normal(size=(n_leaves, n_outputs)),
        base=rng.normal(size=n_outputs),
        link=link,
        names=tuple(c.name for c in columns),
        categories=tuple(categories),
        classes=None,
        library="test Ensemble",
    )


def random_threshold(rng, column):
    """A number to split at: anywhere, or a value of the column itself (a cell's centre, an atom)."""
    x = random_number(rng, column)
    if column.step == 0.0:
        return x if rng.random() < 0.5 else x + float(rng.normal())
    if column.kind == "integer" and rng.random() < 0.5:
        return x
    return column.origin + (cell_number(column, x) + float(rng.uniform(0.1, 0.9))) * column.step


def random_rows(rng, model: Forest, ensemble: Ensemble, n: int):
    """Rows of a table: for the joint (lists of cells), for the naive ensemble (dicts), and X, other for the kernels."""
    cells, rows = [], []
    X = np.full((n, len(ensemble.names)), np.nan)
    other = np.zeros(X.shape, dtype=bool)
    for i in range(n):
        point = random_point(rng, model)
        share = (1.0, 0.0)[i] if i < 2 else rng.uniform(0.2, 0.8)
        mine, known = [], {}
        for column, x in zip(model.schema.columns, point, strict=True):
            if rng.random() < share:
                mine.append(None)
                continue
            mine.append(float(x))
            if column.name not in ensemble.names:
                continue
            f = ensemble.names.index(column.name)
            label = column.levels[int(x)] if column.is_categorical else float(x)
            if column.is_categorical and column.kind != "boolean" and rng.random() < 0.1:
                label, mine[-1] = "level that nobody knows", None
            known[column.name] = label
            levels = ensemble.categories[f]
            if levels is None:
                X[i, f] = float(label)
            elif label in levels:
                X[i, f] = levels.index(label)
            else:
                other[i, f] = True
        cells.append(mine)
        rows.append(known)
    return cells, rows, X, other
