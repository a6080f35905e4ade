"""Measures imputation of Adult with 30 % of the cells hidden, and the probability of the hidden cells.

23,000 rows to learn. Imputation: root mean squared error of numbers in standard deviations, rate of wrong categories.
Probability: mean -log p(cell | the row's known cells) of each hidden cell, numbers as the mass of their rounding cell.
The same model without evidence stands beside it.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from _common import adult_split, arguments, finish, hide, mean_and_error, progress, timed
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from jointforest.learners.adversarial.adversarial_forest import AdversarialForest
from jointforest.learners.hidden_tree.hidden_tree_forest import HiddenTreeForest
from jointforest.runtime.warnings import UnsupportedEvidenceWarning


class OneHot:
    """Numbers standardised, levels one-hot with NaN where missing: what imputers of numeric arrays can work on."""

    def __init__(self, learn: pd.DataFrame):
        self.numbers = [name for name in learn if pd.api.types.is_numeric_dtype(learn[name])]
        self.mean, self.std = learn[self.numbers].mean(), learn[self.numbers].std()
        self.levels = {name: learn[name].cat.categories for name in learn if name not in self.numbers}

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        parts = [((frame[self.numbers].astype(float) - self.mean) / self.std).to_numpy()]
        for name, levels in self.levels.items():
            code = pd.Categorical(frame[name], categories=levels).codes
            block = (code[:, None] == np.arange(len(levels))).astype(float)
            block[code < 0] = np.nan
            parts.append(block)
        return np.hstack(parts)

    def decode(self, array: np.ndarray, frame: pd.DataFrame) -> pd.DataFrame:
        out = pd.DataFrame(array[:, : len(self.numbers)], columns=self.numbers) * self.std + self.mean
        at = len(self.numbers)
        for name, levels in self.levels.items():
            out[name] = levels.to_numpy()[array[:, at : at + len(levels)].argmax(axis=1)]
            at += len(levels)
        return out[list(frame)]


def with_imputer(imputer, donors: pd.DataFrame, learn: pd.DataFrame, masked: pd.DataFrame) -> pd.DataFrame:
    coder = OneHot(learn)
    imputer.set_params(keep_empty_features=True)  # keeps the layout where a rare level has no donor
    imputer.fit(coder.encode(donors))
    return coder.decode(imputer.transform(coder.encode(masked)), masked)


def errors(filled: pd.DataFrame, truth: pd.DataFrame, hidden: np.ndarray, spread: pd.Series) -> tuple[float, float]:
    """Root mean squared error of hidden numbers in standard deviations; share of hidden categories filled wrongly."""
    squares, wrong = [], []
    for j, name in enumerate(truth):
        at = hidden[:, j]
        if name in spread.index:
            gap = filled[name].to_numpy(dtype=float)[at] - truth[name].to_numpy(dtype=float)[at]
            squares.append(np.mean((gap / spread[name]) ** 2))
        else:
            wrong.append(np.mean(filled[name].astype(str).to_numpy()[at] != truth[name].astype(str).to_numpy()[at]))
    return float(np.sqrt(np.mean(squares))), float(np.mean(wrong))


def surprise(joint, truth: pd.DataFrame, masked: pd.DataFrame, hidden: np.ndarray) -> tuple[float, float]:
    """Mean -log p of the hidden cells: given what is known of their row, and given nothing."""
    base = joint.log_density(masked)
    given, alone, count = 0.0, 0.0, 0
    for j, name in enumerate(truth):
        at = hidden[:, j]
        revealed = masked.loc[at].assign(**{name: truth.loc[at, name]})
        given -= float(np.sum(joint.log_density(revealed) - base[at]))
        alone -= float(np.sum(joint.log_density(truth.loc[at, [name]])))
        count += int(at.sum())
    return given / count, alone / count


def main() -> None:
    options = arguments(__doc__, repeats=dict(type=int, default=3))
    repeats, n_learn, n_test, n_donors, trees = (
        (1, 1_500, 200, 500, 5) if options.quick else (options.repeats, 23_000, 2_000, 5_000, 30)
    )
    filling: dict[str, list[tuple[float, float]]] = {}
    seconds: dict[str, list[float]] = {}
    surprises: dict[str, list[tuple[float, float]]] = {}
    for repeat in range(repeats):
        seed = options.seed + repeat
        learn, rest = adult_split(options.data, seed, n_learn)
        truth = rest.iloc[:n_test].reset_index(drop=True)
        masked, hidden = hide(truth, 0.3, seed)
        spread = learn.std(numeric_only=True)
        donors = learn.iloc[:n_donors]
        joints = {
            "adversarial forest": AdversarialForest(trees, min_samples_leaf=5, random_state=seed).fit(learn).joint_,
            "hidden trees": HiddenTreeForest(random_state=seed, **({"n_states": 8} if options.quick else {}))
            .fit(learn)
            .joint_,
        }

        def simple(learn: pd.DataFrame = learn, masked: pd.DataFrame = masked) -> pd.DataFrame:
            fill = {
                name: learn[name].mean() if pd.api.types.is_numeric_dtype(learn[name]) else learn[name].mode()[0]
                for name in learn
            }
            return masked.fillna(fill)

        methods = {
            "mean or mode of the column": simple,
            "IterativeImputer, one-hot": lambda d=donors, n=learn, k=masked: with_imputer(
                IterativeImputer(max_iter=3, n_nearest_features=30, random_state=0), d, n, k
            ),
            "KNNImputer (k = 7), one-hot": lambda d=donors, n=learn, k=masked: with_imputer(
                KNNImputer(n_neighbors=7), d, n, k
            ),
        }
        for kind, joint in joints.items():
            methods[f"{kind}, mean or mode"] = lambda joint=joint, masked=masked: joint.impute(masked)
            methods[f"{kind}, a draw"] = lambda joint=joint, masked=masked: joint.impute(
                masked, method="sample", random_state=0
            )
            surprises.setdefault(kind, []).append(surprise(joint, truth, masked, hidden))
        for name, work in methods.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                warnings.simplefilter("ignore", UnsupportedEvidenceWarning)  # some rows are far from all others
                spent, filled = timed(work)
            filling.setdefault(name, []).append(errors(filled, truth, hidden, spread))
            seconds.setdefault(name, []).append(spent)
            progress(f"repeat {repeat + 1} of {repeats}, {name}: {filling[name][-1]} in {spent:.1f} s")

    table = []
    for name, found in filling.items():
        number, number_error = mean_and_error([a for a, _ in found])
        wrong, wrong_error = mean_and_error([b for _, b in found])
        table.append({"method": name, "RMSE (std)": number, "error": number_error, "wrong categories": wrong,
                      "its error": wrong_error, "seconds": float(np.median(seconds[name]))})  # fmt: skip
    cells = []
    for kind, found in surprises.items():
        for knowing, each in (
            ("the row's other cells", [a for a, _ in found]),
            ("nothing of the row", [b for _, b in found]),
        ):
            mean, error = mean_and_error(each)
            cells.append(
                {"joint": kind, "knowing": knowing, "-log p(hidden cell) (nats)": mean, "standard error": error}
            )
    settings = {"learn": n_learn, "test": n_test, "donors of the scikit-learn imputers": n_donors, "trees": trees,
                "rate": 0.3, "repeats": repeats, "seed": options.seed}  # fmt: skip
    finish("missing", {"Filling hidden cells": table, "Probability of hidden cells": cells}, settings, options.quick)


if __name__ == "__main__":
    main()
