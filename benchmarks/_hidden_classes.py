"""Classes of rows with missing cells by hidden trees, alone and beside a generative forest.

The class is a column of the joint; a row's class probabilities are the joint's, its missing cells summed out. Two kinds
of joint: hidden trees of all columns, class among them; and for each class trees of its own, on common scales, which
together are one mixture. Of the first kind several, which differ by rows drawn with replacement, structure and start.

How they are put together: p(class | row) = sum_k w_k p_k(class | row), with weights that maximise the log-likelihood of
the classes of held-out rows to learn from, 30 % of their cells hidden; then all rows are learned from. ``hidden``: of
hidden trees alone. ``mixture``: of these, of the default generative forest, and of the joint in which features are
distributed as in the first hidden trees and classes given all features as in the forest: the forest asked about ten
completions of the row, drawn from hidden trees. (In `jf.mix` of the joints a part weighs by how well it fits the row's
cells, whatever it says of the class, so hidden trees would nearly always speak alone.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple
from warnings import catch_warnings

import numpy as np
import pandas as pd
from _common import hide, progress
from _missing_baselines import Fold, Predict
from sklearn.model_selection import train_test_split

from jointforest.api.joint import Joint
from jointforest.data.discretization.discretizer import codes_of
from jointforest.data.discretization.learn import learn_scale
from jointforest.data.frames import encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import Schema
from jointforest.learners.generative.classifier import GenerativeForestClassifier
from jointforest.learners.hidden_tree.em import Smoothing
from jointforest.learners.hidden_tree.learn import LearnSettings, learn_tree
from jointforest.learners.hidden_tree.structure import CodeTable
from jointforest.models.hidden_tree.hidden_tree import HiddenTree
from jointforest.models.hidden_tree.hidden_trees import HiddenTrees

CLASS = "(class)"
RATE, HELD, DRAWS, MANY_ROWS = 0.3, 0.25, 10, 5_000


class Kind(NamedTuple):
    """A kind of joint: ``members`` of it are learned.

    ``others`` is None where the class is a column like others; else each class has its own trees, in which a row of
    another class counts ``others`` rows.
    """

    members: int
    states: int
    start: str
    normal: float
    others: float | None = None


FEW = {
    "columns": Kind(2, 32, "shared", 30.0),
    "classes": Kind(1, 8, "shared", 30.0, 0.1),
}
MANY = {"columns": Kind(1, 128, "shared", 30.0), "classes": Kind(1, 32, "shared", 30.0, 0.0)}
PASSES = 4
PRIOR = 5.0  # rows that speak for equal weights
SETTINGS: dict[str, Any] = {
    "fewer than 5,000 rows": {name: list(kind) for name, kind in FEW.items()},
    "more": {name: list(kind) for name, kind in MANY.items()},
    "draws": DRAWS,
    "passes": PASSES,
    "prior": PRIOR,
}


class Codes(NamedTuple):
    """Rows to learn from as codes (n, d), the class last, and what they mean."""

    schema: Schema
    scales: tuple[Any, ...]
    codes: np.ndarray

    def tree(self, kind: Kind, seed: int, weight: np.ndarray | None) -> Any:
        n_codes = np.array([scale.n_codes for scale in self.scales])
        is_ordered = np.array([not column.is_categorical for column in self.schema.columns])
        smoothing = Smoothing(normal=kind.normal)
        if len(self.codes) < MANY_ROWS:  # as `HiddenTreeForest` does by default
            smoothing = smoothing._replace(near=3.0, point_mass=max(smoothing.point_mass, 2.0 / bins(len(self.codes))))
        settings = LearnSettings(kind.states, start=kind.start, passes=PASSES, full=0, smoothing=smoothing, perturb=0.2)
        return learn_tree(CodeTable(self.codes, n_codes, is_ordered, weight), settings, seed)

    def joint(self, trees: list[Any], weight: Any) -> Joint:
        log_weight = np.log(np.asarray(weight) / np.sum(weight))
        return Joint(HiddenTree(HiddenTrees(self.schema, self.scales, tuple(trees), log_weight)))


def bins(n: int) -> int:
    """Most codes of a number, as `HiddenTreeForest` has them by default."""
    return 128 if n >= MANY_ROWS else max(16, round(n**0.5))


def codes_with_class(frame: pd.DataFrame, y: np.ndarray, classes: np.ndarray) -> Codes:
    """Features, and the class as a last column."""
    frame = frame.assign(**{CLASS: pd.Categorical(y, categories=classes)})
    schema = infer_schema(frame)
    cells = encode(schema, frame)[0]
    n_bins, fine = bins(len(frame)), 0.5 if len(frame) < MANY_ROWS else 0.0
    scales = tuple(learn_scale(column, cells[:, j], None, n_bins, fine) for j, column in enumerate(schema.columns))
    return Codes(schema, scales, np.column_stack([codes_of(scale, cells[:, j])[0] for j, scale in enumerate(scales)]))


def learn_joint(rows: Codes, y: np.ndarray, kind: Kind, seed: int) -> Joint:
    """One member of a kind."""
    if kind.others is None:
        draw = np.random.default_rng(seed).integers(len(y), size=len(y))
        weight = np.bincount(draw, minlength=len(y)).astype(float) if kind.members > 1 else None
        return rows.joint([rows.tree(kind, seed, weight)], [1.0])
    trees, total = [], []
    for k, label in enumerate(np.unique(y)):
        weight = np.where(y == label, 1.0, kind.others)
        total.append(weight.sum())
        trees.append(rows.tree(kind, 1_000 * k + seed, weight * (np.count_nonzero(weight) / weight.sum())))
    return rows.joint(trees, total)


def hidden_joints(frame: pd.DataFrame, y: np.ndarray, classes: np.ndarray, seed: int) -> list[list[Joint]]:
    """The members of each kind."""
    rows = codes_with_class(frame, y, classes)
    kinds = MANY if len(frame) >= MANY_ROWS else FEW
    return [[learn_joint(rows, y, kind, 100 * seed + m) for m in range(kind.members)] for kind in kinds.values()]


def by_joints(joints: list[Joint]) -> Predict:
    """The mean of class probabilities of some joints."""
    models = [GenerativeForestClassifier.from_joint(joint, CLASS, n_jobs=1) for joint in joints]
    return lambda holed: np.mean([model.predict_proba(holed) for model in models], axis=0)


def by_completions(joints: list[Joint], model: Predict, seed: int) -> Predict:
    """The mean of a model's class probabilities over completions of a row, drawn from the joints in turn."""

    def predict(holed: pd.DataFrame) -> np.ndarray:
        posteriors = [joint.given(holed) for joint in joints]
        total = 0.0
        for k in range(DRAWS):
            with catch_warnings(action="ignore"):  # of rows unlike any learned from
                drawn = posteriors[k % len(joints)].sample(1, random_state=DRAWS * seed + k, n_jobs=1)
            total = total + model(drawn[list(holed)])
        return total / DRAWS

    return predict


def forest(frame: pd.DataFrame, y: np.ndarray, trees: int, seed: int) -> Predict:
    """The default generative forest."""
    return GenerativeForestClassifier(trees, random_state=seed, n_jobs=1).fit(frame, y).predict_proba


class HeldOut(NamedTuple):
    """The rows to learn from, split: those that are learned from, and the others, with cells hidden."""

    frame: pd.DataFrame
    y: np.ndarray
    holed: pd.DataFrame
    truth: np.ndarray


def held_out(fold: Fold) -> HeldOut:
    learn, held = train_test_split(np.arange(len(fold.y)), test_size=HELD, random_state=fold.seed, stratify=fold.y)
    rest = hide(fold.frame.iloc[held].reset_index(drop=True), RATE, fold.seed)[0]
    return HeldOut(fold.frame.iloc[learn].reset_index(drop=True), fold.y[learn], rest, fold.y[held])


@lru_cache(maxsize=1)
def learned(fold: Fold) -> tuple[list[list[Joint]], list[list[Joint]]]:
    """Hidden trees of the split's rows, and of all."""
    split = held_out(fold)
    part = hidden_joints(split.frame, split.y, fold.classes, fold.seed)
    return part, hidden_joints(fold.frame, fold.y, fold.classes, fold.seed)


def log_true(kinds: list[Predict], split: HeldOut, classes: np.ndarray) -> np.ndarray:
    """log p (m, kinds) of each held-out row's own class."""
    at = np.arange(len(split.truth)), np.searchsorted(classes, split.truth)
    return np.log(np.maximum(np.column_stack([kind(split.holed)[at] for kind in kinds]), 1e-12))


def weigh(log_p: np.ndarray) -> np.ndarray:
    """Weights (kinds,) that maximise sum log sum_k w_k p_k of held-out rows (m, kinds), with a prior for equal ones."""
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    weight = np.full(p.shape[1], 1.0 / p.shape[1])
    for _ in range(200):
        share = p * weight
        count = (share / share.sum(axis=1, keepdims=True)).sum(axis=0) + PRIOR / len(weight)
        weight = count / count.sum()
    return weight


def pool(kinds: list[Predict], weight: np.ndarray) -> Predict:
    """The weighted mean of class probabilities."""
    used = [(kind, w) for kind, w in zip(kinds, weight.tolist(), strict=True) if w > 1e-3]
    total = sum(w for _, w in used)
    return lambda holed: sum((w / total) * kind(holed) for kind, w in used)


def hidden(fold: Fold) -> Predict:
    """The pool of the kinds of hidden trees."""
    return pooled(fold, lambda _frame, _y, joints: [by_joints(members) for members in joints])


def mixture(fold: Fold) -> Predict:
    """The pool of these, the default generative forest, and the forest on completions."""

    def kinds(frame: pd.DataFrame, y: np.ndarray, joints: list[list[Joint]]) -> list[Predict]:
        model = forest(frame, y, fold.n_trees, fold.seed)
        return [model, by_completions(joints[0], model, fold.seed), *(by_joints(members) for members in joints)]

    return pooled(fold, kinds)


def pooled(fold: Fold, kinds: Callable[[pd.DataFrame, np.ndarray, list[list[Joint]]], list[Predict]]) -> Predict:
    """Kinds made of rows, classes and hidden trees, weighed on held-out rows and learned from all."""
    part, whole = learned(fold)
    split = held_out(fold)
    weight = weigh(log_true(kinds(split.frame, split.y, part), split, fold.classes))
    progress(f"weights {weight.round(2).tolist()}")
    return pool(kinds(fold.frame, fold.y, whole), weight)


HIDDEN: dict[str, Callable[[Fold], Predict]] = {"hidden": hidden, "mixture": mixture}
