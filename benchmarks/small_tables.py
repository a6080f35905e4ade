"""Compares settings of hidden trees of small tables by the log-density of other rows and by correlations of draws.

Seven tenths of each table are learned. The errors of correlations are mean absolute differences between drawn rows and
the whole table, over pairs of columns that are numbers or have two levels. The slope is that of the correlations of
drawn rows on those of the learned rows: 1 where draws keep the dependence, less where they weaken it. It is given for
pairs that are neighbours in the tree, and for the others. No test rows are read.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read
from sklearn.datasets import load_diabetes

import jointforest as jf
from jointforest.api.joint import Joint
from jointforest.data.discretization.discretizer import code_table
from jointforest.data.discretization.learn import learn_scale
from jointforest.data.frames import encode
from jointforest.data.infer_schema import infer_schema
from jointforest.learners.hidden_tree.choose import choose_settings
from jointforest.learners.hidden_tree.constants import FIXED
from jointforest.learners.hidden_tree.em import Smoothing
from jointforest.learners.hidden_tree.learn import LearnSettings
from jointforest.learners.hidden_tree.leaves import learn_trees
from jointforest.learners.hidden_tree.structure import CodeTable
from jointforest.models.hidden_tree.hidden_tree import HiddenTree
from jointforest.models.hidden_tree.hidden_trees import HiddenTrees

ROWS = {"gef/wine": 600, "synth/shoppers": 1_500, "gef/robot": 1_000}
"""Rows that are taken of larger tables."""
TABLES = ("diabetes of scikit-learn", "penguins", "gef/diabetes", "gef/wdbc", "gef/vehicle", "gef/credit-g", "gef/cmc",
          "gef/authent", "insurance", *ROWS)  # fmt: skip
CHOSEN = "start and smoothing chosen"
SETTINGS: dict[str, tuple[float, str, tuple[str, ...]]] = {
    CHOSEN: (3.0, "shared", ("n_states", "start", "near", "normal", "transition")),
    "near 3": (3.0, "shared", ("n_states",)),
    "near 1": (1.0, "shared", ("n_states",)),
    "near .3": (0.3, "shared", ("n_states",)),
    "near 0": (0.0, "shared", ("n_states",)),
    "near .3, local start": (0.3, "local", ("n_states",)),
    "near .3, normal chosen": (0.3, "shared", ("n_states", "normal")),
    "near .3, normal 5 or 30": (0.3, "shared", ("n_states", "few_normal")),
}
"""The rows of a transition that are shared out by a normal, the start, and what trials choose."""
SHARE, DRAWS = 0.7, 10_000


def load(data: Path, name: str) -> pd.DataFrame:
    """A small table."""
    if name == TABLES[0]:
        return load_diabetes(as_frame=True, scaled=False).frame
    if name == "penguins":
        return jf.datasets.load_penguins()
    frame = read(data, name)
    return frame.sample(ROWS[name], random_state=0).reset_index(drop=True) if name in ROWS else frame


def learn(frame: pd.DataFrame, near: float, start: str, free: tuple[str, ...], seed: int) -> Joint:
    """One hidden tree, with settings of small tables but for what is given or chosen."""
    schema = infer_schema(frame)
    cells = encode(schema, frame)[0]
    n_bins = max(FIXED.fewest_bins, round(len(cells) ** 0.5))
    columns = enumerate(schema.columns)
    scales = tuple(learn_scale(column, cells[:, j], None, n_bins, FIXED.fine_ends) for j, column in columns)
    is_ordered = np.array([not column.is_categorical for column in schema.columns])
    table = CodeTable(code_table(scales, cells), np.array([scale.n_codes for scale in scales]), is_ordered)
    point_mass = max(FIXED.point_mass, FIXED.point_mass_bins / n_bins)
    smoothing = Smoothing(near=near, point_mass=point_mass)
    settings = LearnSettings(n_states=FIXED.states, start=start, passes=FIXED.most_passes, smoothing=smoothing)
    found = learn_trees(table, choose_settings(table, settings, free, seed), seed)
    return Joint(HiddenTree(HiddenTrees(schema, scales, found.trees, np.log(found.share))))


def correlations(frame: pd.DataFrame, columns: list[str], levels: dict[str, list[Any]]) -> np.ndarray:
    """Correlations (d, d) of numbers, and of codes of two levels."""
    coded = {c: frame[c].map(levels[c].index, na_action="ignore") if c in levels else frame[c] for c in columns}
    return pd.DataFrame(coded).astype(float).corr().to_numpy()


def measure(frame: pd.DataFrame, seed: int, near: float, start: str, free: tuple[str, ...]) -> dict[str, Any]:
    """The log-densities of held-out rows, and correlations of each pair: of table, learned rows and draws."""
    order = np.random.default_rng(seed).permutation(len(frame))
    cut = int(SHARE * len(order))
    rows, other = (frame.iloc[part].reset_index(drop=True) for part in (order[:cut], order[cut:]))
    begin = time.process_time()
    joint = learn(rows, near, start, free, seed)
    seconds = time.process_time() - begin
    is_number = {c: pd.api.types.is_numeric_dtype(frame[c]) and frame[c].dtype != bool for c in frame}
    levels = {c: sorted(frame[c].dropna().unique()) for c in frame if not is_number[c]}
    columns = [c for c in frame if is_number[c] or len(levels[c]) == 2]
    levels = {c: levels[c] for c in columns if c in levels}
    drawn = joint.sample(DRAWS, random_state=seed)
    each = [correlations(some, columns, levels) for some in (frame, rows, drawn)]
    tree, names = joint.distribution.hidden.trees[0], list(frame)
    edges = {
        frozenset((names[j], names[tree.column[k]])) for j, k in zip(tree.column[1:], tree.parent[1:], strict=True)
    }
    above = np.triu_indices(len(columns), 1)
    is_edge = np.array([frozenset((columns[i], columns[j])) in edges for i, j in zip(*above, strict=True)])
    pairs = np.column_stack([corr[above] for corr in each])
    known = np.isfinite(pairs).all(axis=1)
    return {"held out": joint.log_density(other), "pairs": pairs[known], "edge": is_edge[known], "seconds": seconds}


def slope(pairs: np.ndarray) -> float:
    """The slope through 0 of drawn correlations on those of the learned rows."""
    return float(pairs[:, 1] @ pairs[:, 2] / (pairs[:, 1] @ pairs[:, 1]))


def main() -> None:
    options = arguments(
        __doc__,
        tables=dict(nargs="*", default=list(TABLES), choices=TABLES),
        settings=dict(nargs="*", default=list(SETTINGS), choices=list(SETTINGS)),
        splits=dict(type=int, default=2, help="random splits (default 2)"),
    )
    if options.quick:
        options.tables, options.splits = ["penguins"], 1
    table: list[dict[str, Any]] = []
    for name in options.tables:
        frame, first = load(options.data, name), None
        for label in options.settings:
            runs = [measure(frame, options.seed + k, *SETTINGS[label]) for k in range(options.splits)]
            held = np.concatenate([run["held out"] for run in runs])
            first = held if first is None else first
            gain = held - first
            pairs, edge = (np.concatenate([run[key] for run in runs]) for key in ("pairs", "edge"))
            row: dict[str, Any] = {"table": name, "settings": label, "held-out log-density": float(held.mean())}
            row |= {"difference": float(gain.mean()), "se": float(gain.std() / len(gain) ** 0.5)}
            row |= {"error of correlations": float(np.abs(pairs[:, 2] - pairs[:, 0]).mean())}
            row |= {"slope, neighbours": slope(pairs[edge]), "slope, others": slope(pairs[~edge])}
            row |= {"processor seconds": float(np.mean([run["seconds"] for run in runs]))}
            table.append(row)
            progress(f"{row}")
    numbers = [key for key in table[0] if key not in ("table", "settings", "held-out log-density", "se")]
    means = [
        {"settings": label} | {key: float(np.mean([row[key] for row in table if row["settings"] == label]))
                               for key in numbers}
        for label in options.settings
    ]  # fmt: skip
    tables = {"Small tables, means": means, "Each small table": table}
    finish("small_tables", tables, {"seed": options.seed, "splits": options.splits}, options.quick)


if __name__ == "__main__":
    main()
