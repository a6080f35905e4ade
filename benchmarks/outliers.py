"""Measures areas under the ROC curve of outlier detection: labelled tables, wines and digits.

PyOD runs in an environment of its own under benchmarks/.peers, made on first use. ``--only joints`` measures the
labelled tables under hidden trees and ``jf.fit(budget="fast")``, by ``ForestOutlierDetector.from_joint``: the
probability of values within a standard deviation, and the density.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from _common import HERE, arguments, finish, mean_and_error, progress, read, recorded_tables, timed, verdict
from peers import peer_python, run_json
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import jointforest as jf
from jointforest.data.infer_schema import infer_schema
from jointforest.estimators.outliers import ForestOutlierDetector
from jointforest.learners.adversarial.adversarial_forest import AdversarialForest
from jointforest.learners.generative.classifier import GenerativeForestClassifier

PINS = ["pyod==3.6.7", "numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.9.1", "numba==0.68.1", "pandas==3.1.1",
        "pyarrow"]  # fmt: skip
TABLES = ("annthyroid", "breastw", "cardio", "glass", "ionosphere", "pendigits", "pima", "thyroid", "wbc", "wine")
SMALL = ("breastw", "glass", "wbc", "wine")
JOINTS = ("hidden trees", "jf.fit, fast")
PARTS = ("labelled", "joints", "wine", "digits")
PEERS = ("IsolationForest", "KNN", "ECOD", "HBOS")
BANDWIDTHS = {"kerneldensity__bandwidth": np.geomspace(0.1, 1.6, 9)}


def auc(is_outlier: np.ndarray, normality: np.ndarray) -> float:
    """Area under the ROC curve of minus the score."""
    return float(roc_auc_score(is_outlier, -normality))


# -- labelled tables: learned from all rows, without labels


def pyod_scores(X: pd.DataFrame) -> dict[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        X.to_parquet(path)
        found = run_json([peer_python("pyod", PINS), HERE / "_pyod_worker.py", path])
    return {name: -np.array(scores) for name, scores in found.items()}


def labelled(data: Path, tables: tuple[str, ...], seeds: list[int]) -> list[dict]:
    """One line a table: AUC, averaged over seeds where a method is random."""
    lines = []
    for name in tables:
        frame = read(data, f"outlier/{name}")
        is_outlier, X = frame["outlier"].to_numpy(), frame.drop(columns="outlier")
        ours, held_out, isolation = [], [], []
        for seed in seeds:
            detector = ForestOutlierDetector(random_state=seed).fit(X)
            ours.append(auc(is_outlier, detector.score_samples(X)))
            held_out.append(auc(is_outlier, detector.training_scores_))
            forest = IsolationForest(n_estimators=100, random_state=seed).fit(X.to_numpy())
            isolation.append(auc(is_outlier, forest.score_samples(X.to_numpy())))
        line = {"table": name, "rows": len(X), "columns": X.shape[1], "outliers": float(is_outlier.mean()),
                "ours": np.mean(ours), "ours, out-of-bag": np.mean(held_out),
                "IsolationForest": np.mean(isolation)}  # fmt: skip
        line |= {peer: auc(is_outlier, scores) for peer, scores in pyod_scores(X).items()}
        lines.append(line)
        progress(f"{name}: ours {line['ours']:.3f}, isolation forest {line['IsolationForest']:.3f}")
    means = {k: float(np.mean([line[k] for line in lines])) for k in ("ours", "ours, out-of-bag", *PEERS)}
    best = max(means[peer] for peer in PEERS)
    return [*lines, {"table": "mean", **means, **verdict(means["ours"], round(best, 4), at_most=False)}]


def joints(data: Path, tables: tuple[str, ...], seeds: list[int]) -> list[dict]:
    """One line a table: AUC of other joints of all rows, beside what is recorded of the detector's own."""
    lines = recorded_tables("outliers", "labelled")
    recorded = {line["table"]: line.get("ours") for of in lines.values() for line in of}
    found = []
    for name in tables:
        frame = read(data, f"outlier/{name}")
        is_outlier, X = frame["outlier"].to_numpy(), frame.drop(columns="outlier")
        line: dict = {"table": name, "rows": len(X), "recorded": recorded.get(name)}
        for how in JOINTS:
            seconds, fitted = timed(lambda how=how, X=X: [joint_by(how, X, seed) for seed in seeds])
            for label, radius in {how: 1.0, f"{how}, density": 0.0}.items():
                scores = [
                    ForestOutlierDetector.from_joint(joint, X, radius=radius).training_scores_ for joint in fitted
                ]
                line[label] = float(np.mean([auc(is_outlier, one) for one in scores]))
            line[f"{how} (s)"] = seconds / len(seeds)
        found.append(line)
        progress(f"{line}")
    labels = [f"{how}{what}" for how in JOINTS for what in ("", ", density")]
    means = {label: float(np.mean([line[label] for line in found])) for label in labels}
    known = [line["recorded"] for line in found if line["recorded"] is not None]
    best = verdict(max(means.values()), 0.890, at_most=False)
    return [*found, {"table": "mean", "recorded": float(np.mean(known)) if known else None, **means, **best}]


def joint_by(how: str, X: pd.DataFrame, seed: int) -> jf.Joint:
    """A joint of the rows that are scored."""
    if how == "jf.fit, fast":
        return jf.fit(X, budget="fast", random_state=seed)
    return jf.HiddenTreeForest(random_state=seed).fit(X).joint_


# -- wine: learned from 70 % of one colour


def kernel_density(learn: pd.DataFrame) -> Callable[[pd.DataFrame], np.ndarray]:
    """Gaussian kernels on standardised columns, their bandwidth by 5-fold cross-validation."""
    pipeline = make_pipeline(StandardScaler(), KernelDensity())
    return GridSearchCV(pipeline, BANDWIDTHS, cv=5).fit(learn).best_estimator_.score_samples


def normal_forest(learn: pd.DataFrame, trees: int, seed: int) -> Callable[[pd.DataFrame], np.ndarray]:
    """The detector with normal leaves instead of uniform ones."""
    kinds = {c.name: "continuous" for c in infer_schema(learn).columns if not c.is_categorical}
    forest = AdversarialForest(trees, max_features=1, max_iters=0, kinds=kinds, random_state=seed)
    return ForestOutlierDetector(forest, radius=0, random_state=seed).fit(learn).score_samples


def default_detector(learn: pd.DataFrame, seed: int) -> Callable[[pd.DataFrame], np.ndarray]:
    return ForestOutlierDetector(random_state=seed).fit(learn).score_samples


def generative_forest(learn: pd.DataFrame, good: pd.Series, trees: int, seed: int) -> Callable:
    """The paper's way: a forest that predicts quality above 6, which is then summed out."""
    kinds = {c.name: "continuous" for c in infer_schema(learn).columns if not c.is_categorical}
    return GenerativeForestClassifier(trees, kinds=kinds, random_state=seed).fit(learn, good).score_samples


def wine(data: Path, seeds: list[int], trees: int) -> list[dict]:
    """Rows held out of one colour against all rows of the other."""
    frames = {colour: read(data, f"outlier/wine_{colour}") for colour in ("red", "white")}
    methods = {
        "normal leaves": lambda learn, good, seed: normal_forest(learn, trees, seed),
        "default detector": lambda learn, good, seed: default_detector(learn, seed),
        "Gaussian KDE": lambda learn, good, seed: kernel_density(learn),
        "GeF": lambda learn, good, seed: generative_forest(learn, good, trees, seed),
    }
    found: dict[tuple, list[float]] = {}
    for seed in seeds:
        for columns in ("without quality", "with quality"):
            for colour, other in (("red", "white"), ("white", "red")):
                tables = [frames[colour], frames[other]]
                if columns == "without quality":
                    tables = [table.drop(columns="quality") for table in tables]
                order = np.random.default_rng(seed).permutation(len(tables[0]))
                cut = round(0.7 * len(order))
                learn, rest = tables[0].iloc[order[:cut]], tables[0].iloc[order[cut:]]
                good = (frames[colour]["quality"].iloc[order[:cut]] > 6).reset_index(drop=True)
                is_outlier = np.repeat([False, True], [len(rest), len(tables[1])])
                for method, fit in methods.items():
                    if method == "GeF" and columns == "with quality":
                        continue  # its class
                    score = fit(learn.reset_index(drop=True), good, seed)
                    value = auc(is_outlier, score(pd.concat([rest, tables[1]], ignore_index=True)))
                    found.setdefault((colour, columns, method), []).append(value)
        progress(f"wine: split {seed} done")
    lines = []
    for (colour, columns, method), values in found.items():
        mean, error = mean_and_error(values)
        line = {"learned on": colour, "columns": columns, "method": method, "AUC": mean, "error": error,
                "lowest": min(values), "highest": max(values)}  # fmt: skip
        target = {"white": 0.988, "red": 0.985}[colour]
        lines.append(line | verdict(mean, target, at_most=False))
    return lines


# -- MNIST against Semeion: images of one size


def area_means(image: np.ndarray, side: int) -> np.ndarray:
    """The image (h, w) brought to side x side pixels, each the mean of the area it covers."""
    for _ in range(2):
        sums = np.vstack([np.zeros((1, image.shape[1])), np.cumsum(image, axis=0)])
        at = np.linspace(0, len(image), side + 1)
        below = np.minimum(at.astype(int), len(image) - 1)
        edges = sums[below] + (at - below)[:, None] * (sums[below + 1] - sums[below])
        image = (np.diff(edges, axis=0) * side / len(image)).T
    return image


def like_mnist(image: np.ndarray) -> np.ndarray:
    """A Semeion digit (16, 16), made as MNIST's were: in a box of 20 x 20, its centre of mass in that of 28 x 28."""
    small = area_means(image, 20)
    frame = np.zeros((28, 28))
    rows, columns = np.mgrid[:20, :20]
    top, left = (
        int(np.clip(round(13.5 - (small * axis).sum() / small.sum()), 0, 8)) for axis in (rows, columns)
    )  # fmt: skip
    frame[top : top + 20, left : left + 20] = small
    return frame


def pixels(images: np.ndarray) -> pd.DataFrame:
    """A column of booleans for each pixel: at least half black."""
    flat = images.reshape(len(images), -1)
    return pd.DataFrame(flat, columns=[f"p{k}" for k in range(flat.shape[1])])


def digits(data: Path, n_learn: int, trees: int, seed: int) -> list[dict]:
    """MNIST's training images to learn from; its test images against all of Semeion."""
    mnist = np.load(data / "mnist.npz")
    semeion = read(data, "outlier/semeion").drop(columns="digit").to_numpy(dtype=float).reshape(-1, 16, 16)
    order = np.random.default_rng(seed).permutation(len(mnist["x_train"]))[:n_learn]
    learn, rest = pixels(mnist["x_train"][order] >= 128), pixels(mnist["x_test"] >= 128)
    is_outlier = np.repeat([False, True], [len(rest), len(semeion)])
    seconds, joint = timed(lambda: AdversarialForest(trees, max_iters=0, random_state=seed).fit(learn).joint_)
    usual = joint.log_density(rest)
    lines = []
    for how, brought in (("stretched to 28 x 28", lambda i: area_means(i, 28)), ("made like MNIST's", like_mnist)):
        others = pixels(np.array([brought(image) for image in semeion]) >= 0.5)
        value = auc(is_outlier, np.concatenate([usual, joint.log_density(others)]))
        line = {"Semeion": how, "trees": trees, "images learned": len(learn), "AUC": value, "fit (s)": seconds}
        lines.append(line | verdict(value, 0.995, at_most=False))
    return lines


def main() -> None:
    options = arguments(
        __doc__,
        repeats=dict(type=int, default=3, help="seeds of the labelled tables"),
        splits=dict(type=int, default=5, help="splits of the wines"),
        trees=dict(type=int, default=100, help="trees with normal leaves on the wines"),
        images=dict(type=int, default=10_000, help="images of MNIST to learn from"),
        only=dict(nargs="*", choices=PARTS, default=list(PARTS)),
    )
    quick = options.quick
    seeds = [options.seed + k for k in range(1 if quick else options.repeats)]
    splits = [options.seed + k for k in range(1 if quick else options.splits)]
    if "labelled" in options.only:
        title = f"Labelled tables, learned from all rows without labels: AUC, mean of {len(seeds)} seeds"
        lines = labelled(options.data, SMALL if quick else TABLES, seeds)
        finish("outliers", {title: lines}, {"seeds": seeds, "pyod": PINS}, quick, "labelled")
    if "joints" in options.only:
        title = f"Labelled tables, other joints of all rows: AUC, mean of {len(seeds)} seeds"
        lines = joints(options.data, SMALL if quick else TABLES, seeds)
        finish("outliers", {title: lines}, {"seeds": seeds}, quick, "joints")
    if "wine" in options.only:
        title = f"Wine, 30 % of one colour against all of the other: AUC, mean of {len(splits)} splits"
        trees = 10 if quick else options.trees
        lines = wine(options.data, splits, trees)
        finish("outliers", {title: lines}, {"splits": splits, "trees": trees}, quick, "wine")
    if "digits" in options.only:
        title = "MNIST's test images against Semeion, black and white, 28 x 28"
        images, trees = (1_000, 10) if quick else (options.images, 50)
        lines = digits(options.data, images, trees, options.seed)
        finish("outliers", {title: lines}, {"seed": options.seed}, quick, "digits")


if __name__ == "__main__":
    main()
